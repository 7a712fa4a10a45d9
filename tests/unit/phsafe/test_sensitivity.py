"""Brute force over all neighbours of small censuses, and one wrong implementation for each claim, which a check notices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.mechanisms.census2020.phsafe import budgets, counting, mechanism, tables
from stirred.mechanisms.census2020.phsafe.counting import CensusColumns, Ranks
from unit.phsafe import checks
from unit.phsafe.neighbours import START, code_neighbours, squared, vectors
from unit.phsafe.small import home, person

CHECKS = [
    checks.code_relation,
    checks.one_household,
    checks.additive,
    checks.moving_person,
    checks.published_variance,
    checks.noise_of_its_own,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_holds(check: Callable[[], None]) -> None:
    check()


def test_there_are_enough_neighbours() -> None:
    found = code_neighbours(START)
    assert len(found) > 300
    assert {len(units) for units, _ in found} == {0, 1, 2, 3, 4}


def test_the_bound_is_nearly_met() -> None:
    """Three households: two unit records go with τ persons each, and a third exchanges one person for another."""
    tau, homes = 2, [home(name) for name in "abc"]
    crowd = [person(name) for name in "ab" for _ in range(2)] + [person("c"), person("c")]
    before = (tuple(homes), tuple(crowd))
    third = [((homes[2],), (*crowd, person("c", age=30, race=2))), before]
    found = vectors(third, tau)["PH1_num.state_*"]
    assert np.abs(found[0] - found[1]).sum() in (2 * tau, 2 * tau + 2)


def test_two_steps_of_the_code_exceed_the_factor_two() -> None:
    """Proof.md, witness: four unit rows of other households vanish, and 4τ counts fall in one cell."""
    tau, names = 3, "abcd"
    homes = tuple(home(name) for name in names)
    crowd = tuple(person(name) for name in names for _ in range(tau))
    found = vectors([(homes, crowd), ((), crowd)], tau)["PH1_num.state_*"]
    assert squared(found[0] - found[1]) == (4 * tau) ** 2 > 2 * (2 * tau + 2) ** 2


# ---- wrong implementations --------------------------------------------------------------------------------------------


def nobody_cut(self: Ranks, inside: Any, homes: Any, count: int, tau: int) -> Any:
    return inside


def by_the_file(units: Any, values: Any, homes: Any, least: int, hasher: Any) -> Ranks:
    rows = np.arange(len(homes))
    turned = rows[::-1] if len(homes) % 2 else rows  # the order depends on how many persons there are
    return Ranks(rows, turned.astype(np.uint64))


def duplicates_kept(self: Any, _: int, homes: Any, persons: Any) -> Any:
    units = self.columns.homes(pl.DataFrame(pl.from_arrow(homes))).with_row_index(counting.HOME_COLUMN)
    made = [counting._group_cells(units, counting.TABULATION_BY_NAME[name]) for name in self.households]
    return counting.arrow_of(pl.concat([*made, *self._persons(units, persons)]))


def too_little(table: str, tau: Any) -> int:
    return 2 * tau[table] if table in tau else 1


def one_label(self: tables.Answers, key: Any) -> Any:
    numbers = np.arange(self.counts.size, dtype=np.uint64)
    return self.counts + self.measured.noise.at(key, ("noise",), numbers).reshape(self.counts.shape)


def unbound(self: Any, *context: Any) -> Any:
    return self


MUTANTS: list[tuple[str, object, str, object, Callable[[], None]]] = [
    ("nobody is cut", Ranks, "keep_first", nobody_cut, checks.one_household),
    ("the order depends on other records", counting, "rank_persons", by_the_file, checks.additive),
    (
        "a household may have two unit records",
        counting.CountKernel,
        "__call__",
        duplicates_kept,
        checks.one_household,
    ),
    ("the sensitivity is too small", budgets, "sensitivity", too_little, checks.published_variance),
    ("tables share their noise", tables.Answers, "add_noise", one_label, checks.noise_of_its_own),
    ("the key is not bound to the data", mechanism.Key, "bind", unbound, checks.noise_of_its_own),
]


@pytest.mark.parametrize(
    ("name", "place", "attribute", "wrong", "check"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_wrong_implementation_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    place: Any,
    attribute: str,
    wrong: object,
    check: Callable[[], None],
) -> None:
    monkeypatch.setattr(place, attribute, wrong)
    with pytest.raises(AssertionError):
        check()


def test_equal_records_are_numbered_and_cut_alike() -> None:
    """Twenty equal records of one household: τ of them stay, whichever they are."""
    homes = np.zeros(20, np.int64)
    values = [np.full(20, 7, np.int64)]
    units = pl.Series(["a"]).to_arrow()
    ranks = counting.rank_persons(units, values, homes, 3, counting.Hasher(1, 2))
    assert sorted(ranks.place.tolist()) == list(range(20))
    assert ranks.keep_first(np.ones(20, bool), homes, 1, 3).sum() == 3


def test_residents_never_take_a_place() -> None:
    columns = CensusColumns(
        state="state",
        unit="household_id",
        link="household_id",
        household=(),
        person=(("relationship", "relationship"),),
    )
    rows = pl.DataFrame({"household_id": ["a", "a"], "relationship": [5, 18]})
    assert columns.persons(rows).height == 1


def test_who_is_cut_follows_the_hash_and_not_the_value() -> None:
    """Eight persons of different ages, three places: over 400 keys each is kept as often as the others.

    The number of keys that keep a person is binomial (400, 3/8), mean 150 and deviation 9.7; all eight within 60 of the
    mean fails by chance with a probability below 1e-8. An order by value keeps the same three always.
    """
    homes, units = np.zeros(8, np.int64), pl.Series(["a"]).to_arrow()
    ages = [np.arange(8, dtype=np.int64)]
    kept = np.zeros(8, np.int64)
    for word in range(400):
        ranks = counting.rank_persons(units, ages, homes, 3, counting.Hasher(word, 7 * word + 1))
        kept += ranks.keep_first(np.ones(8, bool), homes, 1, 3)
    assert kept.sum() == 1200
    assert np.abs(kept - 150).max() <= 60
