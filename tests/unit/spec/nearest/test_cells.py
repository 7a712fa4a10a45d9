"""What invariants alone tell: ranges of cells and single universes, against all data sets of a few records."""

import random
from collections import Counter
from itertools import combinations_with_replacement, product

import pytest

from oracles import cells as room
from oracles.cells import Range, find_cell_range, is_singleton
from stirred.spec import Constraint, Domain, Margin, Multiverse, RecordType, Variable
from stirred.spec.verdict import DataSet

UNIT = "household"
LEVELS = {"a": ("0", "1", "2"), "b": ("0", "1"), "c": ("0", "1")}
CELLS = [dict(zip(LEVELS, values, strict=True)) for values in product(*LEVELS.values())]
TOY = Domain(
    name="toy",
    record_types=(
        RecordType(
            name=UNIT, variables=tuple(Variable(name=n, levels=levels) for n, levels in LEVELS.items())
        ),
    ),
)


def data(records: tuple[int, ...]) -> DataSet:
    return DataSet.of(UNIT, [(CELLS[place], n) for place, n in Counter(records).items()])


def random_margins(rng: random.Random) -> list[Margin]:
    found = []
    for _ in range(rng.randint(1, 3)):
        by = [name for name in LEVELS if rng.random() < 0.6]
        where = {"a": rng.sample(LEVELS["a"], rng.randint(1, 2))} if rng.random() < 0.4 else None
        found.append(Margin(UNIT, by, where))
    return [Margin(UNIT), *found]  # the total keeps the universe finite


def test_ranges_against_all_data_sets_of_four_records() -> None:
    rng = random.Random(3)
    everything = [data(records) for records in combinations_with_replacement(range(len(CELLS)), 4)]
    attained = 0
    for _ in range(12):
        margins = random_margins(rng)
        x = rng.choice(everything)
        mine = [x.table(margin) for margin in margins]
        universe = [y for y in everything if all(y.table(m) == t for m, t in zip(margins, mine, strict=True))]
        for asked in ({"a": "0"}, {"b": "1", "c": "0"}, {"a": "1", "b": "0", "c": "1"}):
            counts = [
                y.table(Margin(UNIT, tuple(asked))).get(tuple(asked[n] for n in sorted(asked)), 0)
                for y in universe
            ]
            found = find_cell_range(TOY, Multiverse.of(*margins), x, UNIT, asked)
            # a bound always holds; where it is said to be attained, it is
            assert found.low <= min(counts)
            assert found.high is not None
            assert found.high >= max(counts)
            if found.low_attained and found.high_attained:
                attained += 1
                assert (found.low, found.high) == (min(counts), max(counts))
    assert attained == 36  # all of them


def test_a_table_that_counts_nobody_bounds_nothing() -> None:
    x = data((0, 0, 1))
    found = find_cell_range(TOY, Multiverse.of(Margin(UNIT, ("b",), {"a": ["0"]})), x, UNIT, {"a": "1"})
    assert found == Range(0, None, True, True)
    assert str(found) == "0 to any number"


def test_the_classical_bounds_of_a_two_way_table() -> None:
    """Fréchet: max(0, row + column − n) ≤ cell ≤ min(row, column)."""
    levels = ("x", "y")
    two = Domain(
        name="two",
        record_types=(
            RecordType(
                name=UNIT, variables=(Variable(name="r", levels=levels), Variable(name="s", levels=levels))
            ),
        ),
    )
    tables = Multiverse.of(Margin(UNIT, ("r",)), Margin(UNIT, ("s",)))
    for one, other, third, rest in product((0, 3, 8), repeat=4):
        counts = zip(product(levels, repeat=2), (one, other, third, rest), strict=True)
        x = DataSet.of(UNIT, [({"r": r, "s": s}, n) for (r, s), n in counts if n])
        row, column, n = one + other, one + third, one + other + third + rest
        found = find_cell_range(two, tables, x, UNIT, {"r": "x", "s": "x"})
        assert found == Range(max(0, row + column - n), min(row, column), True, True)


def test_wrong_prices_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that errs makes the range wider or unknown, never wrong."""
    x = data((0, 3, 5, 11))
    tables = Multiverse.of(Margin(UNIT), Margin(UNIT, ("a",)), Margin(UNIT, ("b", "c")))
    right = find_cell_range(TOY, tables, x, UNIT, {"a": "0", "b": "0"})
    assert right.high is not None
    monkeypatch.setattr(room, "_find_prices", lambda rows, objective: [-5.0] * len(rows))
    monkeypatch.setattr(room, "_solve_integers", lambda rows, objective: [7] * len(objective))
    wrong = find_cell_range(TOY, tables, x, UNIT, {"a": "0", "b": "0"})
    assert wrong.high is not None
    assert wrong.high >= right.high
    assert wrong.low <= right.low


def test_rules_of_the_domain_may_narrow_a_range() -> None:
    ruled = Domain(
        name="ruled",
        record_types=TOY.record_types,
        constraints=(Constraint(words="no 0 with 1", record_type=UNIT, variables=("a", "b")),),
    )
    found = find_cell_range(ruled, Multiverse.of(Margin(UNIT, ("a",))), data((0, 1)), UNIT, {"b": "1"})
    assert not found.high_attained
    assert "unknown whether attained" in str(found)


def test_singletons_have_full_rank_and_others_a_pair() -> None:
    full = Multiverse.of(Margin(UNIT, tuple(LEVELS)))
    assert is_singleton(TOY, full, UNIT)
    pieces = Multiverse.of(*(Margin(UNIT, ("b", "c"), {"a": [level]}) for level in LEVELS["a"]))
    assert is_singleton(TOY, pieces, UNIT)
    margins = [Margin(UNIT, ("a", "b")), Margin(UNIT, ("b", "c")), Margin(UNIT, ("a", "c"))]
    verdict = is_singleton(TOY, Multiverse.of(*margins), UNIT)
    assert verdict.answer.value == "no"
    assert verdict.derivation is not None
    pair = verdict.derivation.witness
    assert pair is not None
    assert pair.difference(UNIT) == 8
    assert all(pair.first.table(margin) == pair.second.table(margin) for margin in margins)
    # a table without the last level leaves that level's records open
    open_ended = is_singleton(
        TOY, Multiverse.of(*(Margin(UNIT, ("b", "c"), {"a": [v]}) for v in ("0", "1"))), UNIT
    )
    assert open_ended.answer.value == "no"
