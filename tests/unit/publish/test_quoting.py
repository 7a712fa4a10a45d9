"""Every published table says which number to quote; estimates are not negative, exact numbers have no interval."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.chance import Key
from stirred.publish.packet.lookup import explain_number, look_up, prepare_table
from stirred.publish.plan import load
from stirred.publish.run import run

CENSUS = """name = "town"
[geography]
spine = ["county"]
[record.household]
files = ["household.csv"]
id = "id"
size = "size"
kind = {column = "kind", occupied = [1], vacant = [2]}
[record.household.variables]
kind = [1, 2]
size = "0..2"
tenure = [0, 1, 2]
"""
PLAN = """title = "Town"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["size"]
swap = ["county"]
rate = "1/2"
[publish]
microdata = false
formats = ["parquet", "csv"]
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
[[table]]
name = "size-by-county"
by = ["county", "size"]
[assess]
utility = false
"""


@pytest.fixture(scope="module")
def packet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More owners live in the east, more tenants in the west; ten homes of each county are vacant."""
    folder = tmp_path_factory.mktemp("town")
    counties = ("east", "west")
    homes = [(c, 1 + n % 2, 1, 1 + ((c == "west") == (n % 4 > 0))) for n in range(200) for c in counties]
    homes += [(c, 0, 2, 0) for _ in range(10) for c in counties]
    frame = pl.DataFrame(homes, schema=["county", "size", "kind", "tenure"], orient="row")
    frame.with_row_index("id").write_csv(folder / "household.csv")
    (folder / "census.toml").write_text(CENSUS, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return run(load(folder / "plan.toml"), folder / "packet", key=Key.for_tests(1)).folder


def table(packet: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(packet / "public" / "tables" / f"{name}.parquet")


def test_estimates_and_intervals_are_not_negative_and_every_cell_names_its_number(packet: Path) -> None:
    made = table(packet, "tenure-by-county")
    assert made.select(pl.min_horizontal("estimate", "low", "high").min()).item() >= 0
    uncertain = pl.col("standard_error") > 0
    finite = made.filter(uncertain, pl.col("standard_error").is_finite())
    # records move with chance 1/2: the count is quoted where it is nearer than one standard error to the estimate
    near = (finite["estimate"] - finite["count"]) ** 2 <= 2 * 0.5 * finite["standard_error"] ** 2
    assert ((finite["quote"] == "count") == near).all()
    assert set(finite["quote"]) <= {"count", "estimate"}
    # vacant homes stay where they are: their cells are exact
    assert made.filter(~uncertain)["quote"].unique().to_list() == ["count"]
    assert finite.filter(~pl.col("count").is_between("low", "high")).height > 0


def test_invariants_are_integers_without_an_interval(packet: Path) -> None:
    made = table(packet, "size-by-county")
    assert (made["standard_error"] == 0).all()
    assert made["low"].null_count() == made["high"].null_count() == made.height
    with (packet / "public" / "tables" / "size-by-county.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row["count"] == row["estimate"] and row["low"] == row["high"] == "" for row in rows)


def test_the_rule_stands_in_every_file_and_in_look_up(packet: Path) -> None:
    folder = packet / "public" / "tables"
    for path in folder.glob("*.parquet"):
        assert (
            b"Quote the number that the column quote names"
            in pq.read_metadata(path).metadata[b"stirred.quote"]
        )
    for path in folder.glob("*.csv"):
        assert path.read_text(encoding="utf-8").splitlines()[0].endswith('"quote"')
    assert "To add cells up, always take the counts." in (folder / "README.txt").read_text(encoding="utf-8")
    row = table(packet, "tenure-by-county").filter(pl.col("quote") == "estimate").row(0, named=True)
    where = {name: str(row[name]) for name in ("county", "tenure")}
    assert "Quote the estimate" in "\n".join(look_up(packet, where).sentences())


def test_a_cell_without_certainty_is_not_quoted_alone() -> None:
    said = explain_number(count=3, estimate=3.0, standard_error=float("inf"), low=0.0, high=9.0)
    assert said.startswith("Quote no number")
    assert explain_number(count=3, estimate=None, standard_error=None).startswith("Quote 3;")


def test_the_count_is_quoted_where_it_is_likely_to_be_nearer() -> None:
    """The rule by hand, at its edge: (estimate − count)² against twice the chance to move times the variance."""
    made = pa.table({
        "count": [100, 100, 100, 7, 5], "estimate": [103.0, 103.2, 97.0, 7.0, -0.5],
        "standard_error": [10.0, 10.0, 10.0, 0.0, float("inf")], "low": [80.0, 80.0, 77.0, 7.0, 0.0],
        "high": [123.0, 123.0, 117.0, 7.0, 9.0],
    })  # fmt: skip
    swapped = made.replace_schema_metadata(
        {b"stirred.pull": b"1/20"}
    )  # the edge is √(2/20) = 0.316 standard errors
    assert prepare_table(swapped)["quote"].to_pylist() == ["count", "estimate", "count", "count", "neither"]
    assert prepare_table(made)["quote"].to_pylist() == ["estimate"] * 3 + ["count", "neither"]


def test_the_rule_errs_less_than_either_number_where_one_of_them_is_worse() -> None:
    """A model of a swap of its own: a count of mean T + q (m − T), an estimate without bias, 20,000 cells of each kind."""
    rng, q = np.random.default_rng(8), 0.05
    for spread, best in (
        (0.5, "count"),
        (30.0, "estimate"),
    ):  # how far true numbers lie from the average of their area
        average = np.full(20_000, 200.0)
        truth = average + spread * rng.standard_normal(20_000)
        count = np.rint(truth + q * (average - truth) + 3.0 * rng.standard_normal(20_000))
        estimate = (count - q * average) / (1 - q)
        cells = {
            "count": count.astype(int),
            "estimate": estimate,
            "standard_error": np.full(20_000, 3.0 / (1 - q)),
        }
        table = pa.table({**cells, "low": estimate - 9, "high": estimate + 9})
        quote = np.array(
            prepare_table(table.replace_schema_metadata({b"stirred.pull": b"1/20"}))["quote"].to_pylist()
        )
        errors = {
            "count": np.abs(count - truth).mean(), "estimate": np.abs(estimate - truth).mean(),
            "quoted": np.abs(np.where(quote == "count", count, estimate) - truth).mean(),
        }  # fmt: skip
        other = {"count": "estimate", "estimate": "count"}[best]
        assert errors[best] < errors[other]
        # standard errors of the differences are below 0.003: 5 of them are a false alarm below 1e-6
        assert errors["quoted"] < errors[other] - 0.015
        assert errors["quoted"] < errors[best] + 0.04
