"""All data sets of small universes: no stated loss of stirring is below the true one; the cases are counted."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import lcm

import pytest
from tests.oracles import stirring as oracle

from stirred import Stirring
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.stirring import law as the_law
from stirred.spec import Budget

WEIGHTS = (Fraction(1, 3), Fraction(1), Fraction(4), Fraction(49, 4))
MAX_DATA_SETS = 24  # of a universe of five records; smaller strata are enumerated whatever they are
# by size: strata, laws of these, ordered pairs of data sets, and laws that attain their loss; proof.md, Section 10
COUNTED = {2: (4, 32, 24, 12), 3: (9, 72, 384, 24), 4: (25, 220, 8_208, 52), 5: (43, 372, 19_888, 44)}
COUNTED_TWO = 20_682  # pairs of two strata
COUNTED_CENSUSES = (220, 720)  # censuses with persons, and pairs of them


def partitions(n: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write n as a sum, the largest first: the counts of types that a stratum can have."""
    if not n:
        yield ()
    for first in range(min(n, most or n), 0, -1):
        for rest in partitions(n - first, first):
            yield (first, *rest)


def spell(counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(kind for kind, count in enumerate(counts) for _ in range(count))


def list_strata(n: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return all strata of so many records, of five those with few data sets, by counts of types and of places."""
    every = product(partitions(n), repeat=2)
    return [pair for pair in every if n < 5 or len(oracle.universe(*map(spell, pair))) <= MAX_DATA_SETS]


def list_laws(held: Sequence[int], places: Sequence[int]) -> Iterator[tuple[int, Fraction]]:
    """Yield every law that the strata may have: by cycles, and by the types of either side at a λ that it can have."""
    for weight in WEIGHTS:
        yield the_law.CYCLES, weight
        for kind, own in ((the_law.BY_HELD, held), (the_law.BY_PLACE, places)):
            several = weight > 1 and the_law.StratumLaw(kind, weight).root ** 2 == weight
            if len(own) == 2 or (len(own) > 2 and several):
                yield kind, weight


@cache
def publish_all(
    held: tuple[int, ...], places: tuple[int, ...], kind: int, weight: Fraction
) -> dict[oracle.DataSet, dict[oracle.DataSet, int]]:
    """Return the law of what is published under every data set, as whole numbers with one denominator."""

    def law(data: oracle.DataSet) -> oracle.Law:
        if kind == the_law.CYCLES:
            return the_law.enumerate_cycles(len(data), weight)
        return the_law.enumerate_types([record[kind == the_law.BY_PLACE] for record in data], weight)

    found = {data: oracle.published(data, law) for data in oracle.universe(spell(held), spell(places))}
    whole = lcm(*{chance.denominator for one in found.values() for chance in one.values()})
    return {data: {y: int(chance * whole) for y, chance in one.items()} for data, one in found.items()}


def check_pair(one: Mapping[object, int], other: Mapping[object, int], odds: Fraction) -> bool:
    """Check that no chance differs by more than these odds, and return whether one does by just as much."""
    assert one.keys() == other.keys()
    above, below = odds.numerator, odds.denominator
    attained = False
    for y, chance in one.items():
        assert chance * below <= other[y] * above
        attained = attained or chance * below == other[y] * above
    return attained


@pytest.mark.parametrize("n", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_no_pair_of_data_sets_loses_more_and_laws_attain_it_where_the_proof_says(n: int) -> None:
    pairs = attained = cases = 0
    for held, places in list_strata(n):
        for kind, weight in list_laws(held, places):
            laws, worst = publish_all(held, places, kind, weight), False
            cases += 1
            for one in laws:
                for other, exchanges in oracle.exchanges_from(one).items():
                    if exchanges:
                        pairs += 1
                        reached = check_pair(laws[one], laws[other], the_law.ratio(weight) ** exchanges)
                        worst = worst or (reached and exchanges == 1)
            # by cycles where one side is all different, by types where the other side is: each slot a place of its own
            sides = {the_law.CYCLES: (held, places), the_law.BY_HELD: (places,), the_law.BY_PLACE: (held,)}[
                kind
            ]
            if len(laws) > 1 and any(max(side) == 1 for side in sides):
                assert worst, (held, places, kind, weight)
                attained += 1
    assert (len(list_strata(n)), cases, pairs, attained) == COUNTED[n]


def test_strata_with_laws_of_their_own_add_up() -> None:
    """Two strata, each by any law: every pair of data sets of both, and every output."""
    small = [((1, 1), (1, 1)), ((2, 1), (1, 1, 1)), ((1, 1, 1), (2, 1)), ((2, 1), (2, 1))]
    pairs = 0
    for (held, places), (others, far) in combinations(small, 2):
        for first, second in product(list_laws(held, places), list_laws(others, far)):
            if first[1] == second[1]:
                continue  # each λ beside another one
            here, there = publish_all(held, places, *first), publish_all(others, far, *second)
            starts = {data: oracle.exchanges_from(data) for data in (*here, *there)}
            for one, other in product(product(here, there), repeat=2):
                odds = (
                    the_law.ratio(first[1]) ** starts[one[0]][other[0]]
                    * the_law.ratio(second[1]) ** starts[one[1]][other[1]]
                )
                laws = [
                    {(y, z): p * q for y, p in here[x].items() for z, q in there[w].items()}
                    for x, w in (one, other)
                ]
                check_pair(laws[0], laws[1], odds)
                pairs += 1
    assert pairs == COUNTED_TWO


# The mechanism itself, with the persons of a household and with records that are shuffled first.


def make_census(
    stratum: Sequence[int], held: Sequence[int], ages: Sequence[int], county: Sequence[int]
) -> Census:
    """Return households with one person each; two that are alike may differ in the person."""
    n = len(held)
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {
            "household": {"id": "hid"},
            "person": {"household": "hid", "of": "household", "variables": {"age": "0..99"}},
        },
    }
    homes = {"hid": list(range(n)), "state": [1] * n, "county": county, "size": stratum, "race": held}
    return Census.of(schema, {"household": homes, "person": {"hid": list(range(n)), "age": ages}})


HOMES = [  # stratum, held value, age of the person
    ((1, 1, 1), (0, 0, 0), (30, 30, 40)),
    ((1, 1, 1), (0, 0, 0), (30, 40, 50)),
    ((1, 1, 1), (0, 0, 1), (30, 40, 40)),
    ((1, 1, 1), (0, 0, 1), (30, 30, 30)),
    ((1, 1, 1, 2, 2), (0, 0, 0, 0, 0), (30, 30, 40, 30, 40)),
    ((1, 1, 2, 2), (0, 0, 0, 1), (30, 40, 30, 30)),
]
SETTINGS = [
    {"rate": "1/4"},
    {"rate": "5/6"},
    {"loss": "2", "law": "types"},
    {"rate": "1/3", "law": "cycles"},
    {"rate": "1/3", "shuffle_first": "race", "shuffle_levels": ["0"]},
]


def test_the_mechanism_keeps_its_promise_over_all_censuses_with_persons() -> None:
    censuses = pairs = 0
    for stratum, held, ages in HOMES:
        who = tuple(zip(stratum, held, ages, strict=True))
        for places in ((0, 0, 1, 0, 1), (0, 1, 2, 0, 1)):
            every = {}
            for county in {*permutations(places[: len(who)])}:
                strata = [
                    tuple(
                        sorted((*one, place) for one, place in zip(who, county, strict=True) if one[0] == own)
                    )
                    for own in (1, 2)
                ]
                kept = [sorted(record[-1] for record in part) for part in strata]
                if kept == [
                    sorted(p for s, p in zip(stratum, places, strict=False) if s == own) for own in (1, 2)
                ]:
                    every[tuple(strata)] = county
            for settings in SETTINGS:
                mechanism = Stirring(
                    match=["size"],
                    swap=["county"],
                    **settings,
                    accept_reversal=["race", "age"],
                    release_identifiers={},
                )
                laws, stated = {}, set()
                for data, county in every.items():
                    census = make_census(stratum, held, ages, county)
                    stated.add(mechanism.specification(census).budget)
                    laws[data] = publish(mechanism, census, who, county)
                (budget,) = stated
                censuses += len(every)
                for one, other in product(every, repeat=2):
                    exchanges = sum(map(count_exchanges, one, other))
                    if exchanges:
                        pairs += 1
                        assert laws[one].keys() == laws[other].keys()
                        worst = max(laws[one][y] / laws[other][y] for y in laws[one])
                        assert Budget.log(worst) <= budget * exchanges
    assert (censuses, pairs) == COUNTED_CENSUSES


def publish(
    mechanism: Stirring, census: Census, who: Sequence[tuple], county: Sequence[int]
) -> Mapping[tuple, Fraction]:
    """Return the law of the released file: who is shown where, whatever the order of the records."""
    moves = mechanism.permutations(mechanism.frame(census))
    assert moves is not None
    found: dict[tuple, Fraction] = {}
    for g, chance in moves.items():
        shown = tuple(sorted((*one, county[j]) for one, j in zip(who, g, strict=True)))
        found[shown] = found.get(shown, Fraction(0)) + chance
    assert sum(found.values()) == 1
    return found


def count_exchanges(one: Sequence[tuple], other: Sequence[tuple]) -> int:
    """Return the least number of exchanges between two data sets of one stratum, with what identifies a record as held."""
    kinds = sorted({record[:-1] for record in one})
    here, there = (tuple(sorted((kinds.index(r[:-1]), r[-1]) for r in data)) for data in (one, other))
    return oracle.exchanges_from(here)[there]


# Records that are shuffled first move no less often, and the rate is reached.


@pytest.mark.parametrize("law", ["cycles", "types"])
@pytest.mark.parametrize(
    ("held", "places"),
    [
        ((0, 1), (0, 1)),
        ((0, 1, 2), (0, 1, 2)),
        ((0, 0, 1), (0, 1, 2)),
        ((0, 1, 2, 3), (0, 0, 1, 2)),
        ((0, 0, 1, 2), (0, 1, 2, 3)),
        ((0, 0, 1, 1), (0, 0, 1, 1)),
    ],
)
def test_the_rate_is_reached_where_records_are_shuffled_first(
    held: tuple[int, ...], places: tuple[int, ...], law: str
) -> None:
    n = len(held)
    census = make_census((1,) * n, held, (30,) * n, places)
    for levels in ([0], [0, 1], sorted({*held})):
        for rate in (
            Fraction(1, 10),
            Fraction(1, 2),
            Fraction(n - 1, n),
            Fraction(n - 1, n) + Fraction(1, 100),
        ):
            settings = {"match": ["size"], "swap": ["county"], "rate": str(rate), "law": law, "carry": False}
            plain = Stirring(**settings, accept_reversal=["race"])
            first = plain.replace(shuffle_first="race", shuffle_levels=[str(level) for level in levels])
            if rate > Fraction(n - 1, n):
                with pytest.raises(InputError, match="not reached where records are shuffled first"):
                    first.specification(census)
                continue
            frame = plain.frame(census)
            kind = plain._choose_laws(frame)[0].kind
            assert first.specification(census).budget == plain.specification(census).budget
            moved = [
                _expect_moved(mechanism.permutations(frame), _list_types(kind, held, places))
                for mechanism in (plain, first)
            ]
            assert moved[1] >= moved[0]
            if kind == the_law.CYCLES:
                assert moved[0] == n * rate


def _list_types(kind: int, held: Sequence[int], places: Sequence[int]) -> Sequence[int]:
    return {the_law.CYCLES: range(len(held)), the_law.BY_HELD: held, the_law.BY_PLACE: places}[kind]


def _expect_moved(moves: oracle.Law | None, types: Sequence[int]) -> Fraction:
    """Return how many records are expected to be shown where another one is, or one of another type."""
    assert moves is not None
    return sum(
        (chance * sum(types[i] != types[j] for i, j in enumerate(g)) for g, chance in moves.items()),
        Fraction(0),
    )


def test_a_shuffle_before_a_small_weight_would_move_fewer() -> None:
    """Two records, both shuffled first: half of them move whatever follows, and the rate was nine in ten."""
    census = make_census((1, 1), (0, 1), (30, 30), (0, 1))
    settings = {
        "match": ["size"],
        "swap": ["county"],
        "rate": "9/10",
        "accept_reversal": ["race"],
        "carry": False,
    }
    both = Stirring(**settings, shuffle_first="race", shuffle_levels=["0", "1"])
    moves = both.permutations(both.frame(census))
    assert _expect_moved(moves, range(2)) == 1  # of two
    with pytest.raises(InputError) as caught:
        both.release(census, key=Key.for_tests(1))
    assert "1 stratum (1 of 2 records)" in caught.value.why
    assert "at most 1/2" in caught.value.fix
