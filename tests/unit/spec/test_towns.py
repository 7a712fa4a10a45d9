"""The library's answers about small domains, held against all their data sets, and the oracle's own sums.

`oracles.towns` enumerates households with the persons in them, `oracles.losses` what mechanisms may and do lose there, and
`oracles.cases` asks the library the same questions. No answer may be one that enumeration refutes.
"""

from fractions import Fraction
from math import isclose, log
from random import Random

import mpmath
import numpy as np
import pytest

from oracles.cases import Maker, Tally, allowed_by, promised, run, towns
from oracles.losses import Statement, extreme, judge, noisy_table, true_loss
from oracles.swaps import permutation_law, swap_law
from oracles.towns import HOUSEHOLD, PERSON, Count, Distance, Home, Town, Whole

QUICK = {
    "implies": 180,
    "compare": 120,
    "restate": 170,
    "compose": 100,
    "distance": 210,
    "mechanism": 45,
    "swap": 20,
    "forge": 100,
}
PARTS = 20  # the long run is cut into so many tests
LONG = {kind: 10 * cases for kind, cases in QUICK.items()}  # of each part; bounded by cases, not by the clock


# --- the oracle itself

PAIR = Town("pair", (("block", ("0", "1")),), (("sex", ("f", "m")),), spine=("block",), most=2)


def place_of(*homes: str) -> int:
    """``place_of("0fm", "1f")``: a man and a woman in block 0, a woman in block 1."""
    wanted = sorted(PAIR.kinds.index(Home((("block", h[0]),), tuple((s,) for s in h[1:]))) for h in homes)
    return PAIR.data.index(tuple(wanted))


@pytest.mark.parametrize(
    ("one", "other", "distance", "expected"),
    [
        # counted by hand from the definition of the joint file
        (("0f",), ("0m",), Distance(HOUSEHOLD), 1),
        (("0f",), ("0m",), Distance(PERSON), 1),
        (("0f",), ("0ff",), Distance(PERSON), -1),
        (("0f",), ("0ff",), Distance(PERSON, change=False), 1),
        (("0f",), ("0ff",), Distance(HOUSEHOLD), 1),
        (("0fm",), ("0f", "0m"), Distance(HOUSEHOLD), -1),
        (("0fm",), ("0f", "0m"), Distance(HOUSEHOLD, change=False), 3),
        (("0fm",), ("0f", "0m"), Distance(PERSON), 2),
        (("0fm",), ("0f", "0m"), Distance(PERSON, free=True), 1),
        (("0fm", "0f"), ("0f", "0mf"), Distance(PERSON), 0),
        (("0fm", "0f"), ("0ff", "0m"), Distance(HOUSEHOLD), 2),
        (("0fm", "1f"), ("0f", "1fm"), Distance(PERSON), 2),
        (("0fm", "1f"), ("0f", "1fm"), Distance(PERSON, free=True), 1),
        (("0fm",), ("1fm",), Distance(PERSON), 2),
        (("0fm",), ("1fm",), Distance(PERSON, change=False), 4),
        (("0fm",), ("1fm",), Distance(HOUSEHOLD, near=True), 1),
        (("0fm", "1f"), ("0f", "1fm"), Distance(HOUSEHOLD, near=True), -1),
    ],
)
def test_distances_are_those_of_the_joint_file(
    one: tuple[str, ...], other: tuple[str, ...], distance: Distance, expected: int
) -> None:
    x, y = (
        place_of(*("".join((h[0], *sorted(h[1:]))) for h in one)),
        place_of(*("".join((h[0], *sorted(h[1:]))) for h in other)),
    )
    assert PAIR.distances(distance)[x, y] == PAIR.distances(distance)[y, x] == expected


@pytest.mark.parametrize("town", towns(), ids=lambda town: town.name)
def test_distances_are_metrics(town: Town) -> None:
    some = np.random.default_rng(1).choice(len(town.data), min(60, len(town.data)), replace=False)
    units = (
        [(town.kind, False)] if town.people is None else [(HOUSEHOLD, False), (PERSON, False), (PERSON, True)]
    )
    for unit, free in units:
        for change in (True, False):
            found = town.distances(Distance(unit, change, free))[np.ix_(some, some)].astype(float)
            found[found < 0] = np.inf
            assert ((found == 0) == np.eye(len(some), dtype=bool)).all()
            assert (found[:, None, :] <= found[:, :, None] + found[None, :, :]).all()


def test_a_universe_is_what_the_tables_leave_open() -> None:
    x, y = place_of("0f", "0fm"), place_of("0ff", "0m")
    separate = frozenset({Count(HOUSEHOLD, ("block",)), Count(PERSON, ("sex",))})
    assert PAIR.universes(separate)[x] == PAIR.universes(separate)[y]  # who lives with whom is open
    together = frozenset({Whole(("block",))})
    assert PAIR.universes(together)[x] != PAIR.universes(together)[y]
    assert PAIR.smallest(separate, Distance(HOUSEHOLD)) == 2
    assert PAIR.smallest(together, Distance(HOUSEHOLD)) is None
    assert PAIR.smallest(frozenset(), Distance(HOUSEHOLD), (Count(HOUSEHOLD),)) is None


def test_a_statement_is_used_up_by_a_mechanism_with_two_outcomes() -> None:
    """What `judge` calls broken is broken by a law that is written out and keeps the first statement."""
    random, seen = Random("extreme"), 0
    for _ in range(60):
        town = random.choice([t for t in towns() if len(t.data) < 250])
        maker = Maker(town, random)
        kept, wider = maker.kept(), maker.kept()
        first = Statement(kept, maker.distance(), "pure", mpmath.mpf(1))
        second = Statement(
            kept if random.random() < 0.7 else wider, maker.distance(near=0.3), "pure", mpmath.mpf(2) / 3
        )
        found = judge(town, [first], second)
        if found.pair is None:
            continue
        seen += 1
        laws = extreme(town, first, *found.pair)
        assert true_loss(town, laws, first.kept, first.distance) <= 1 + 1e-6
        assert true_loss(town, laws, second.kept, second.distance) > 2 / 3 + 1e-6
    assert seen > 20


def test_the_law_of_a_swap_is_the_definition() -> None:
    third = Fraction(1, 3)
    law = dict(permutation_law(2, third))
    assert law[0, 1] == Fraction(4, 5)  # (2/3)² against (1/3)², without selections of one record
    assert law[1, 0] == Fraction(1, 5)
    assert permutation_law(1, third) == (((0,), Fraction(1)),)
    homes = [Home((("block", b), ("tenure", t))) for b, t in ("00", "11", "01")]
    for match in ((), ("tenure",)):
        assert sum(swap_law(homes, match, ("block",), (), third).values()) == 1


def test_the_loss_of_a_law_is_the_largest_ratio() -> None:
    laws = noisy_table(PAIR, Count(HOUSEHOLD), 0.5)
    assert true_loss(PAIR, laws, frozenset(), Distance(HOUSEHOLD)) == 0  # it does not see what changes
    found = true_loss(PAIR, laws, frozenset(), Distance(HOUSEHOLD, change=False))
    assert isclose(
        found, log(16 / 7)
    )  # none or one household: 1/(1 + 1/2 + 1/4) against (1/2)/(1/2 + 1 + 1/2)
    exact = {place: {len(data): 1.0} for place, data in enumerate(PAIR.data)}
    assert true_loss(PAIR, exact, frozenset(), Distance(HOUSEHOLD)) == 0
    assert true_loss(PAIR, exact, frozenset(), Distance(PERSON)) == float("inf")


# --- the library


def decided(tally: Tally, kind: str) -> float:
    """The share of questions that were not left open."""
    open_ = sum(
        n for (name, answer), n in tally.answers.items() if name == kind and answer.startswith("unknown")
    )
    return 1 - open_ / max(1, tally.asked(kind))


@pytest.mark.parametrize("kind", QUICK)
def test_enumeration_refutes_no_answer(kind: str) -> None:
    tally = run(range(QUICK[kind]), (kind,))
    assert not tally.faults, str(tally)
    assert (
        tally.asked("forged" if kind == "forge" else "+" if kind == "compose" else kind) or kind == "restate"
    )
    if kind == "implies":
        assert decided(tally, kind) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", LONG)
def test_enumeration_refutes_no_answer_of_many(kind: str, part: int) -> None:
    first = 10_000 + part * LONG[kind]
    tally = run(range(first, first + LONG[kind]), (kind,))
    assert not tally.faults, str(tally)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (
            "compose",
            10423,
        ),  # neighbours only where two blocks lie in one county, which the domain does not say
        (
            "implies",
            31916,
        ),  # with one person more the size of a home changes, so there are no such neighbours
        ("distance", 448),  # idem for the smallest distance
        ("distance", 356),  # the distance of persons does not fix the number of households
        ("distance", 3561),  # a person of a household of two does not change its place alone
    ],
)
def test_cases_that_were_once_refuted(kind: str, case: int) -> None:
    tally = run(range(case, case + 1), (kind,))
    assert not tally.faults, str(tally)


def test_a_specification_reads_back_as_it_was_written() -> None:
    random = Random("read back")
    for _ in range(40):
        maker = Maker(random.choice(towns()), random)
        spec = maker.specification()
        (stated,) = allowed_by(spec)
        read = promised(spec)
        assert (stated.kept, stated.distance, stated.output, stated.delta) == (
            read.kept,
            read.distance,
            read.output,
            read.delta,
        )
