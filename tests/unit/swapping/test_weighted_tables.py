"""Weighted totals of swapped files: against every draw of a small census, by coverage on a survey, on every engine."""

from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred import ExactMargins, run
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InputError, StirredError
from stirred.frames import frame_of
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.estimates import Units, finish_cells, keeps_table, sum_moments
from stirred.publish import parse
from stirred.publish.check import prepare
from stirred.publish.packet.lookup import look_up

BY, MATCH, SWAP = ["district", "water"], ["m"], ["district"]


def draws(n: int, p: Fraction) -> list[tuple[tuple[int, ...], Fraction]]:
    """Every permutation of a stratum with its probability, by the definition of Algorithm 1."""
    derangements = [1, 0]
    for m in range(2, n + 1):
        derangements.append(m * derangements[-1] + (-1) ** m)
    weights = []
    for g in permutations(range(n)):
        k = sum(g[i] != i for i in range(n))
        weights.append((g, Fraction(0) if k == 1 else p**k * (1 - p) ** (n - k) / derangements[k]))
    total = sum((w for _, w in weights), Fraction(0))
    return [(g, w / total) for g, w in weights if w]


def table(units: pl.DataFrame, counted: pl.DataFrame, p: Fraction, largest: float) -> pl.DataFrame:
    scale = Units.of(largest)
    made = sum_moments(units, counted, by=BY, match=MATCH, swap=SWAP, rate=p, weight="w", scale=scale)
    return finish_cells([made], BY, weight="w", scale=scale)


@pytest.mark.parametrize("p", [Fraction(1, 5), Fraction(2, 3)])
def test_the_estimate_has_the_true_mean_over_all_draws(p: Fraction) -> None:
    stratum = [0, 0, 0, 0, 1, 1, 1]
    district = np.array(["a", "b", "b", "c", "a", "a", "b"])
    water = ["x", "x", "y", "x", "y", "x", "x"]
    weight = [2.25, 10.5, 3.125, 7.75, 1.5, 40.25, 4.0]
    base = pl.DataFrame({"unit": range(7), "m": stratum, "water": water, "w": weight})
    truth = base.with_columns(pl.Series("district", district)).group_by(BY).agg(pl.col("w").sum())
    true = {(d, w): total for d, w, total in truth.rows()}
    mean: dict[tuple[str, str], float] = {}
    second: dict[tuple[str, str], float] = {}
    for (g, one), (h, other) in product(draws(4, p), draws(3, p)):
        chance = float(one * other)
        places = district[[*g, *(4 + i for i in h)]]
        units = base.select("unit", "m").with_columns(pl.Series("district", places))
        made = table(units, base.join(units, on=["unit", "m"]), p, max(weight))
        for d, w, estimate in made.select(*BY, "estimate").rows():
            mean[d, w] = mean.get((d, w), 0.0) + chance * estimate
            second[d, w] = second.get((d, w), 0.0) + chance * (estimate - true.get((d, w), 0.0)) ** 2
    assert set(true) <= set(mean)
    for cell, value in mean.items():
        assert value == pytest.approx(true.get(cell, 0.0), abs=1e-6)
    # the closed form of the variance at the truth is that of the estimate over all draws
    assert _variance(base, district, p) == pytest.approx(
        {cell: second[cell] for cell in _variance(base, district, p)}, abs=1e-5
    )


def _variance(base: pl.DataFrame, district: np.ndarray, p: Fraction) -> dict[tuple[str, str], float]:
    """The variance of the estimate in closed form, from the true file: Theorem W of proof.md."""
    from stirred.mechanisms.swap.estimates import cell_shrinkage, variance

    found: dict[tuple[str, str], float] = {}
    rows = base.with_columns(pl.Series("district", district))
    for (_,), part in rows.group_by("m"):
        n = np.array([part.height])
        for place, kind in product(part["district"].unique(), part["water"].unique()):
            inside = part.filter((pl.col("district") == place) & (pl.col("water") == kind))["w"].to_numpy()
            all_of = part.filter(pl.col("water") == kind)["w"].to_numpy()
            lies = np.array([float((part["district"] == place).sum())])
            sums = [np.array([x]) for x in (inside.sum(), all_of.sum(), (inside**2).sum(), (all_of**2).sum())]
            value = variance(n, lies, *sums, p) / (1 - cell_shrinkage(n, p)) ** 2
            found[place, kind] = found.get((place, kind), 0.0) + float(value[0])
    return found


def survey(n: int = 900) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A survey like Ghana's: regions, districts, areas with weights of their own, households and persons."""
    rng = np.random.default_rng(8)
    district = rng.integers(0, 6, n)
    home = pl.DataFrame(
        {
            "hid": np.arange(n),
            "region": district % 2,
            "district": district,
            "size": rng.integers(1, 4, n),
            "water": np.where(rng.random(n) < 0.15 + 0.12 * district, "pipe", "well"),
            "weight": rng.choice(np.round(rng.lognormal(4, 0.8, 12), 3), n),
        }
    )
    person = home.select("hid", n=pl.int_ranges(0, "size")).explode("n").drop("n")
    return home, person.with_columns(sex=pl.Series(rng.integers(1, 3, person.height)))


SCHEMA = {
    "geography": {"spine": ["region", "district"]},
    "record": {
        "household": {"id": "hid", "weight": "weight"},
        "person": {"household": "hid", "of": "household"},
    },
}
SWAPPING = PermutationSwapping(match=["region", "size"], swap=["district"], rate="3/10")


def test_intervals_of_weighted_totals_cover_on_a_survey() -> None:
    home, person = survey()
    census = Census.of(SCHEMA, {"household": home, "person": person})
    truth = {
        (d, w): total for d, w, total in home.group_by("district", "water").agg(pl.col("weight").sum()).rows()
    }
    runs, covered, cells, errors = 60, 0, 0, []
    for number in range(runs):
        release = SWAPPING.release(census, key=Key.for_tests(50 + number))
        made = frame_of(SWAPPING.table(release, ["district", "water"], weight="weight"))
        for row in made.rows(named=True):
            true = truth[row["district"], row["water"]]
            cells += 1
            covered += row["low"] <= true <= row["high"]
            errors.append((row["estimate"] - true) / row["standard_error"])
    # 60 independent runs at 95 %: P(Bin(60, 0.95) ≤ 45) < 2e-7, even if the cells of a run moved as one
    assert covered / cells > 0.75
    # standardised errors: five standard deviations of the mean and of the spread of 60 runs (false alarm below 1e-6)
    assert abs(np.mean(errors)) < 0.65
    assert 0.5 < np.std(errors) < 1.5


class Narrow(Local):
    """An engine on which nothing fits."""

    def fits(self, size: int) -> bool:
        del size
        return False

    def parts_for(self, size: int) -> int:
        del size
        return 5


@pytest.mark.parametrize(
    ("by", "record_type"),
    [
        (["district", "water"], "household"),
        (["district", "sex"], "person"),
        (["water"], "household"),
        (["region", "district"], "household"),
        (["region", "sex"], "person"),
    ],
)
def test_weighted_tables_are_the_same_in_parts(by: list[str], record_type: str) -> None:
    home, person = survey(300)
    release = SWAPPING.release(Census.of(SCHEMA, {"household": home, "person": person}), key=Key.for_tests(3))
    whole = SWAPPING.table(release, by, record_type=record_type, weight="weight")
    assert whole.equals(
        SWAPPING.table(release, by, record_type=record_type, weight="weight", engine=Narrow())
    )
    frame = frame_of(whole)
    units = release.to_polars("household")
    total = units["weight"].sum() if record_type == "household" else (units["weight"] * units["size"]).sum()
    assert frame["weighted"].sum() == pytest.approx(total, rel=1e-8)
    # weights stay with the record: totals without a place are exact, totals by place are not
    exact = frame["standard_error"].max() == 0
    assert exact == ("district" not in by)


def test_a_weight_is_a_held_variable_for_what_is_exact() -> None:
    assert keeps_table(["region", "district"], match=["region", "size"], swap=["district"])
    assert not keeps_table(
        ["region", "district"], match=["region", "size"], swap=["district"], weight="weight"
    )
    assert keeps_table(["district"], match=["weight"], swap=["district"], weight="weight")
    assert keeps_table(["water"], match=["region"], swap=["district"], weight="weight")


def test_small_and_large_weights_keep_their_digits() -> None:
    for scale in (1e-9, 1.0, 1e9):
        weights = [1.2345678901 * scale, 0.000123 * scale, 3.0 * scale]
        units = pl.DataFrame({"unit": range(3), "m": [0] * 3, "district": ["a", "b", "b"]})
        counted = units.with_columns(pl.Series("water", ["x", "x", "y"]), pl.Series("w", weights))
        made = table(units, counted, Fraction(1, 5), max(weights))
        shown = {(d, w): total for d, w, total in made.select(*BY, "weighted").rows()}
        assert shown["a", "x"] == pytest.approx(weights[0], rel=1e-8)
        assert shown["b", "y"] == pytest.approx(weights[2], rel=1e-8)


@pytest.mark.filterwarnings("error")
def test_a_stratum_that_the_swap_erased_has_no_standard_error_and_a_wide_interval() -> None:
    """A stratum of two at rate 1/2 keeps no trace: before, the cast of its infinite variance gave any number."""
    units = pl.DataFrame({"unit": range(2), "m": [0, 0], "district": ["a", "b"]})
    counted = units.with_columns(pl.Series("water", ["x", "y"]), pl.Series("w", [4.0, 2.0]))
    made = table(units, counted, Fraction(1, 2), 4.0)
    assert made["standard_error"].to_list() == [float("inf")] * 4
    assert made["low"].to_list() == [0.0] * 4
    first = made.row(0, named=True)
    assert first["estimate"] == 2.0
    assert first["high"] == 6.0
    counts = finish_cells(
        [sum_moments(units, counted, by=BY, match=MATCH, swap=SWAP, rate=Fraction(1, 2))], BY
    )
    assert counts.row(0, named=True)["high"] == 1.5


PLAN = """title = "survey"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["region", "size"]
swap = ["district"]
rate = "1/5"
[[table]]
name = "water"
by = ["district", "water"]
weight = "weight"
[[table]]
name = "sex"
record_type = "person"
by = ["district", "sex"]
weight = "weight"
[assess]
utility = true
"""
CENSUS = """name = "survey"
[geography]
spine = ["region", "district"]
[record.household]
files = ["household.csv"]
id = "hid"
weight = "weight"
[record.person]
files = ["person.csv"]
household = "hid"
of = "household"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home, person = survey(200)
    (tmp_path / "census.toml").write_text(CENSUS)
    home.write_csv(tmp_path / "household.csv")
    person.write_csv(tmp_path / "person.csv")
    return tmp_path


def test_a_plan_publishes_weighted_tables(folder: Path) -> None:
    packet = run(parse(PLAN, folder=folder), folder / "packet", key=Key.for_tests(4))
    made = pl.read_parquet(packet.public / "tables" / "water.parquet")
    assert made.columns == [*BY, "count", "weighted", "estimate", "standard_error", "low", "high", "quote"]
    cell = look_up(folder / "packet", {"district": "0", "water": "well"}, table="water")
    assert any("the weights of" in said for said in cell.sentences())
    assert cell.document()["weighted"] == pytest.approx(cell.weighted)


REFUSED = {
    "dropped": ('rate = "1/5"\n', 'rate = "1/5"\ndrop = ["weight"]\n', "not released"),
    "swapped": ('swap = ["district"]', 'swap = ["district", "weight"]', "does not hold"),
    "unknown": ('weight = "weight"', 'weight = "weigth"', "did you mean weight"),
    "no closed form": ("permutation-swapping", "swapping-no-vacuous", "makes no weighted tables"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_weights_are_refused_before_anything_exists(name: str, folder: Path) -> None:
    old, new, expected = REFUSED[name]
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(StirredError) as caught:
        prepare(parse(PLAN.replace(old, new), folder=folder), folder / "packet")
    assert expected in str(caught.value)
    assert "fix:" in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_mechanism_without_weights_says_so_in_python() -> None:
    home, person = survey(60)
    census = Census.of(SCHEMA, {"household": home, "person": person})
    mechanism = ExactMargins(rows="district", columns="water", rho_squared="1/2")
    release = mechanism.release(census, key=Key.for_tests(1))
    with pytest.raises(InputError, match="makes no weighted tables"):
        mechanism.table(release, ["district"], weight="weight")
