"""A TopDown plan from start to end: every table has its uncertainty, the same key gives the same bytes, look-up answers."""

import hashlib
from pathlib import Path

import polars as pl
import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import StirredError
from stirred.mechanisms.topdown.workload import SpineOptions
from stirred.publish.packet.lookup import look_up
from stirred.publish.plan import load
from stirred.publish.run import run

PLAN = """title = "Town"
census = "census/census.toml"
[[mechanism]]
name = "topdown"
workload = "small"
replicates = {replicates}
[[table]]
name = "race-by-tract"
record_type = "person"
by = ["tract", "race"]
[[table]]
name = "persons-by-county"
record_type = "person"
by = ["county"]
[[table]]
name = "persons-by-state"
record_type = "person"
by = ["state"]
[assess]
utility = false
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A synthetic census of 500 households."""
    folder = tmp_path_factory.mktemp("town")
    write_preset("demo", folder / "census", seed=3, households=500)
    return folder


def released(folder: Path, name: str, replicates: int, seed: int = 1) -> Path:
    (folder / "plan.toml").write_text(PLAN.format(replicates=replicates), encoding="utf-8")
    run(load(folder / "plan.toml"), folder / name, key=Key.for_tests(seed))
    return folder / name


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_tables_carry_their_uncertainty_and_packets_repeat(town):
    first, second = released(town, "first", 4), released(town, "second", 4)
    assert digest(first) == digest(second)
    for name in ("race-by-tract", "persons-by-county", "persons-by-state"):
        table = pl.read_parquet(first / "public" / "tables" / f"{name}.parquet")
        assert table.columns[-6:] == ["count", "estimate", "standard_error", "low", "high", "quote"]
        uncertain = table.filter(pl.col("standard_error") > 0)
        assert uncertain.null_count().sum_horizontal().item() == 0
        assert (
            (uncertain["low"] <= uncertain["estimate"]) & (uncertain["estimate"] <= uncertain["high"])
        ).all()
    state = pl.read_parquet(first / "public" / "tables" / "persons-by-state.parquet")
    assert (state["standard_error"] == 0).all()  # the invariant
    assert (state["estimate"] == state["count"]).all()
    assert state["low"].null_count() == state["high"].null_count() == state.height  # exact: no interval


def test_replicates_leave_the_counts_as_they_were(town):
    with_them, without = released(town, "with", 3, seed=2), released(town, "without", 0, seed=2)
    same = "data/person.parquet"
    assert (with_them / "public" / same).read_bytes() == (without / "public" / same).read_bytes()
    plain = pl.read_parquet(without / "public" / "tables" / "race-by-tract.parquet")
    assert plain.columns == ["tract", "race", "count", "quote"]
    more = pl.read_parquet(with_them / "public" / "tables" / "race-by-tract.parquet").filter(
        pl.col("count") > 0
    )
    assert more["count"].sum() == plain["count"].sum()


def test_a_number_is_looked_up_with_its_interval(town):
    packet = released(town, "looked", 4, seed=4)
    county = pl.read_parquet(packet / "public" / "tables" / "persons-by-county.parquet").row(0, named=True)
    found = look_up(packet, {"county": str(county["county"])})
    assert found.count == county["count"]
    assert found.low is not None
    assert any("The interval is" in said or "exact" in said for said in found.sentences())
    state = pl.read_parquet(packet / "public" / "tables" / "persons-by-state.parquet").row(0, named=True)
    assert "exact" in " ".join(look_up(packet, {"state": str(state["state"])}).sentences())


def test_persons_and_units_keep_their_own_intervals(town):
    """Both files in one release: the households of a block are exact, its persons are not."""
    text = PLAN.format(replicates=2).replace('"small"', '"pl94"').replace('by = ["county"]', 'by = ["block"]')
    text += '[[table]]\nname = "units-by-block"\nrecord_type = "household"\nby = ["block"]\n'
    (town / "plan.toml").write_text(text, encoding="utf-8")
    run(load(town / "plan.toml"), town / "both", key=Key.for_tests(1))
    units = pl.read_parquet(town / "both" / "public" / "tables" / "units-by-block.parquet")
    assert (units["standard_error"] == 0).all()
    assert (units["estimate"] == units["count"]).all()
    persons = pl.read_parquet(town / "both" / "public" / "tables" / "persons-by-county.parquet")
    assert (persons["standard_error"] > 0).all()


def test_a_plan_may_name_another_tree(town):
    text = PLAN.format(replicates=0).replace(
        '"small"', '"small"\naian = "aiannh"\noptimized_block_groups = ["place"]'
    )
    (town / "plan.toml").write_text(text, encoding="utf-8")
    assert load(town / "plan.toml").mechanisms[0].spine == SpineOptions(
        aian="aiannh", block_groups=("place",)
    )


def test_one_replicate_is_refused(town):
    (town / "plan.toml").write_text(PLAN.format(replicates=1), encoding="utf-8")
    with pytest.raises(StirredError, match="at least two"):
        load(town / "plan.toml")
