"""Tables with discrete Gaussian noise: the stated ρ² holds, every listed cell has noise, and sums know their error."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import GaussianTables
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import BudgetError, DataError, InputError
from stirred.frames import frame_of
from stirred.mechanisms.tables.gaussian import ListedCells, half_width
from stirred.spec import Hamming, NormalizedRenyi

SCHEMA: dict[str, Any] = {
    "geography": {"spine": ["county", "tract"]},
    "record": {
        "household": {
            "id": "hid",
            "variables": {"tenure": {"levels": ["own", "rent"]}, "kind": {"levels": [1, 2, 3]}},
        }
    },
}


def small(rows: list[tuple[str, str, str, int]]) -> Census:
    names = ("county", "tract", "tenure", "kind")
    columns: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Census.of(SCHEMA, {"household": {"hid": list(range(len(rows))), **columns}})


ROWS = [("a", "a1", "own", 1), ("a", "a1", "own", 2), ("a", "a2", "rent", 2), ("b", "b1", "own", 1)]
TABLES = [["county", "tenure"], ["kind"]]


def test_the_promise_is_stated_with_the_areas_that_are_shown() -> None:
    mechanism = GaussianTables(tables=TABLES, rho_squared="1/2", shares=["3/4", "1/4"])
    promise = mechanism.specification(small(ROWS))
    assert str(promise.rho_squared.exact) == "1/2"
    assert promise.input_premetric == Hamming("household")
    assert promise.output_premetric == NormalizedRenyi()
    assert [str(kept) for kept in promise.multiverse] == [
        "which areas of level county hold a household record"
    ]
    assert mechanism.variances == (Fraction(8, 3), Fraction(8))


def test_the_variance_pays_for_the_largest_move_of_one_record() -> None:
    """Enumerated: over all changes of a record, Σ‖u_t‖²/2σ_t² is at most ρ², and some change reaches it."""
    mechanism = GaussianTables(tables=TABLES, rho_squared="1/3", shares=["2/3", "1/3"])
    rows = [*ROWS, ("b", "b1", "rent", 3)]  # both counties keep a record, whichever one changes

    def cells(rows: list[tuple[str, str, str, int]], by: list[str]) -> np.ndarray:
        census = small(rows)
        counts = frame_of(census.counts("household", by))
        return ListedCells.of(counts, by, "household", census).frame["count"].to_numpy()

    before = [cells(rows, by) for by in TABLES]
    largest = Fraction(0)
    for place, tenure, kind in product([("a", "a1"), ("b", "b1")], ["own", "rent"], [1, 2, 3]):
        after = [cells([(*place, tenure, kind), *rows[1:]], by) for by in TABLES]
        moved = [int(((one - other) ** 2).sum()) for one, other in zip(before, after, strict=True)]
        cost = [m / (2 * v) for m, v in zip(moved, mechanism.variances, strict=True)]
        largest = max(largest, sum(cost, Fraction(0)))
    assert largest == Fraction(1, 3)


def test_cells_without_records_have_noise_and_no_other_cell_is_listed() -> None:
    mechanism = GaussianTables(tables=[["tract", "tenure", "kind"]], rho_squared="1/100")
    found = frame_of(mechanism.release(small(ROWS), key=Key.for_tests(1)).tables["kind-by-tenure-by-tract"])
    assert found.height == 3 * 2 * 3
    empty = found.filter((pl.col("tract") == "b1") & (pl.col("kind") == 3))
    assert empty.height == 2
    assert found["count"].n_unique() > 9  # σ = 10: noise everywhere
    moved = [ROWS[0], ("a", "a1", "rent", 3), *ROWS[2:]]  # the same areas: the same cells
    other = frame_of(mechanism.release(small(moved), key=Key.for_tests(1)).tables["kind-by-tenure-by-tract"])
    assert other.select("tract", "tenure", "kind").equals(found.select("tract", "tenure", "kind"))
    assert not other["count"].equals(found["count"])


def test_noise_is_new_for_other_counts_tables_and_keys() -> None:
    mechanism = GaussianTables(tables=[["county"], ["tract"]], rho_squared="1/1000")
    census = small(ROWS)
    first = mechanism.release(census, key=Key.for_tests(1)).tables
    assert mechanism.release(census, key=Key.for_tests(1)).tables == first
    assert mechanism.release(census, key=Key.for_tests(2)).tables != first
    noise = [
        (frame_of(first[name])["count"] - frame_of(census.counts("household", [name]))["count"]).to_list()
        for name in ("county", "tract")
    ]
    assert noise[0] != noise[1][:2]
    more = small([*ROWS, *ROWS])
    again = frame_of(mechanism.release(more, key=Key.for_tests(1)).tables["county"])
    difference = again["count"] - frame_of(first["county"])["count"]
    assert difference.to_list() != frame_of(census.counts("household", ["county"]))["count"].to_list()


def test_sums_of_cells_have_their_own_error_from_the_table_that_errs_least() -> None:
    mechanism = GaussianTables(
        tables=[["tract", "kind"], ["county", "tenure"]], rho_squared="1", shares=["3/4", "1/4"]
    )
    release = mechanism.release(small(ROWS), key=Key.for_tests(1))
    own = frame_of(mechanism.table(release, ["county", "tenure"]))
    assert own["standard_error"].to_list() == [2.0] * 4
    tract = frame_of(mechanism.table(release, ["tract"]))  # three kinds of variance 4/3
    assert tract["standard_error"].to_list() == pytest.approx([2.0] * 3)
    assert (tract["high"] >= tract["low"]).all()
    with pytest.raises(InputError, match="no table has"):
        mechanism.table(release, ["tract", "tenure"])


@pytest.mark.parametrize("variance", [0.05, 1.0, 7.3, 400.0])
def test_intervals_cover(variance: float) -> None:
    from stirred.chance import DiscreteGaussian

    noise = DiscreteGaussian(Fraction(str(variance))).draw(Key.for_tests(4).stream("cover"), 20_000)
    half = half_width(variance, 1)
    assert (np.abs(noise) <= half).mean() > 0.944
    assert half == 0 or (np.abs(noise) <= half - 1).mean() < 0.956


def test_what_cannot_be_counted_is_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"rho_squared": "0"},
        {"rho_squared": 0.5},
        {"shares": ["1/2", "1/4"]},
        {"shares": ["1"]},
    ]
    for settings in wrong:
        with pytest.raises(BudgetError):
            GaussianTables(**({"tables": TABLES, "rho_squared": "1/2"} | settings))
    twice: list[Any] = [[[]], [["kind"], ["kind"]], ["kind"]]
    for tables in twice:
        with pytest.raises(InputError):
            GaussianTables(tables=tables, rho_squared="1/2")
    with pytest.raises(InputError, match="stability"):
        GaussianTables(tables=TABLES, rho_squared="1/2", stability="1").refuse(small(ROWS))
    with pytest.raises(InputError, match="are open"):
        GaussianTables(tables=[["hid"]], rho_squared="1/2").refuse(small(ROWS))
    gone = small(ROWS)
    broken = Census.of(SCHEMA, {"household": gone.table("household").to_pandas().assign(kind=None)})
    with pytest.raises(DataError):
        GaussianTables(tables=[["kind"]], rho_squared="1/2").release(broken, key=Key.for_tests(1))
