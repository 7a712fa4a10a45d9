"""The smallest distance inside a universe: held against all data sets of a few records, and against the old rule."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.mechanisms.swap import PermutationSwapping
from stirred.spec import (
    AtLeast,
    Budget,
    Constraint,
    Custom,
    Dependency,
    Domain,
    Hamming,
    InputPremetric,
    Margin,
    Multiplicative,
    Multiverse,
    Neighbours,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
)
from stirred.spec.card import Card
from stirred.spec.nearest import (
    Distance,
    TableKeys,
    ask_own_tables,
    find_lightest,
    find_shortest,
    smallest_distance,
)

UNIT = "household"
Levels = dict[str, tuple[str, ...]]
Cell = dict[str, str]


def table(*by: str, **where: str) -> Margin:
    """A margin of households; ``kind="1"`` or ``kind="12"`` restricts to these levels."""
    return Margin(UNIT, by, {name: list(values) for name, values in where.items()} or None)


def domain(levels: Levels) -> Domain:
    variables = tuple(Variable(name=name, levels=values) for name, values in levels.items())
    return Domain(name="toy", record_types=(RecordType(name=UNIT, variables=variables),))


def cells(levels: Levels) -> list[Cell]:
    return [dict(zip(levels, values, strict=True)) for values in product(*levels.values())]


def key(margin: Margin, cell: Cell) -> tuple[str, ...] | None:
    """Where a margin counts a record, by the definition of a margin alone."""
    if any(cell[name] not in values for name, values in margin.conditions().items()):
        return None
    return tuple(cell[name] for name in margin.by)


# --- the oracle: all pairs of data sets of at most MOST records -------------------------------------------------------

MOST = 4


class Oracle:
    """All data sets of at most MOST records, in bags that agree on every margin."""

    def __init__(self, everyone: Sequence[Cell], margins: Sequence[Margin], *, hamming: bool) -> None:
        self.everyone, self.margins, self.hamming = everyone, margins, hamming
        self.keys = [[key(margin, cell) for margin in margins] for cell in everyone]
        self._bags: dict[int, dict[object, list[tuple[int, ...]]]] = {}

    def bags(self, size: int) -> dict[object, list[tuple[int, ...]]]:
        if size not in self._bags:
            found: dict[object, list[tuple[int, ...]]] = defaultdict(list)
            for records in combinations_with_replacement(range(len(self.everyone)), size):
                tables = frozenset(
                    Counter(t for i in records for t in enumerate(self.keys[i]) if t[1] is not None).items()
                )
                found[tables].append(records)
            self._bags[size] = found
        return self._bags[size]

    def nearest(self, noticed: Sequence[object]) -> int | None:
        """The smallest |x ⊖ x'| in one universe such that what is noticed of x and of x' differs (None: nothing of a cell).

        A nearest pair shares no record, so the sizes of x and x' add up to |x ⊖ x'|. None where the search ends.
        """

        def seen(records: tuple[int, ...]) -> frozenset[tuple[object, int]]:
            return frozenset(Counter(noticed[i] for i in records if noticed[i] is not None).items())

        for norm in range(1, 2 * MOST + 1):
            for first in range((norm + 1) // 2, min(MOST, norm) + 1):
                second = norm - first
                if self.hamming and first != second:
                    continue
                for tables, here in self.bags(first).items():
                    there = here if first == second else self.bags(second).get(tables, [])
                    if there and len({*here, *there}) > 1 and len({seen(x) for x in (*here, *there)}) > 1:
                        return norm
        return None

    def any_change(self) -> int | None:
        return self.nearest([*range(len(self.everyone))])

    def by_the_rule(self) -> int | None:
        """The rule of `smallest_distance` read literally: kinds of records, then what tables show, then everything."""
        kinds = [frozenset(i for i, k in enumerate(keys) if k is not None) for keys in self.keys]
        found = []
        for kind in {*kinds} - {frozenset()}:
            shown = [
                tuple(keys) if mine == kind else None for keys, mine in zip(self.keys, kinds, strict=True)
            ]
            near = self.nearest(shown)
            if near is None:
                near = self.nearest([place if mine == kind else None for place, mine in enumerate(kinds)])
            if near is not None:
                found.append(near)
        return max(found) if found else self.any_change()


def rank_says_single(everyone: Sequence[Cell], margins: Sequence[Margin], *, hamming: bool) -> bool:
    rows: dict[object, np.ndarray] = defaultdict(lambda: np.zeros(len(everyone)))
    for place, cell in enumerate(everyone):
        for number, margin in enumerate(margins):
            if key(margin, cell) is not None:
                rows[number, key(margin, cell)][place] = 1
        if hamming:
            rows["total"][place] = 1
    return bool(rows) and int(np.linalg.matrix_rank(np.array([*rows.values()]))) == len(everyone)


def random_margins(rng: random.Random, levels: Levels, *, restricted: bool) -> list[Margin]:
    found = []
    for _ in range(rng.randint(1, 4)):
        by = [name for name in levels if rng.random() < 0.5]
        where = {}
        if restricted and rng.random() < 0.7:
            name = rng.choice([*levels])
            where = {name: rng.sample(levels[name], rng.randint(1, len(levels[name]) - 1))}
        found.append(Margin(UNIT, by, where or None))
    return [*dict.fromkeys(found)]


SHAPES: list[Levels] = [
    {"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1")},
    {"a": ("0", "1", "2"), "b": ("0", "1", "2")},
    {"a": ("0", "1", "2"), "b": ("0", "1"), "c": ("0", "1")},
]


def agrees(
    found: Distance, truth: int | None, *, hamming: bool, single: bool, margins: Iterable[Margin]
) -> None:
    """One answer against the oracle; beyond its reach only "more than that" can be checked."""
    if found.value is None:
        assert single
        assert truth is None
        return
    assert not single
    assert found.exact
    norm = found.value * (2 if hamming else 1)
    assert norm == truth if truth is not None else norm > (2 * MOST if hamming else MOST)
    assert found.pair is not None
    assert found.pair.difference(UNIT) == norm
    for margin in margins:
        assert found.pair.first.table(margin) == found.pair.second.table(margin)


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("hamming", [True, False])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_against_all_data_sets_of_a_few_records(shape: int, hamming: bool, restricted: bool) -> None:
    rng = random.Random(f"{shape} {hamming} {restricted}")
    levels = SHAPES[shape]
    everyone = cells(levels)
    premetric = Hamming(UNIT) if hamming else SymmetricDifference(UNIT)
    for _ in range(20 if shape < 2 else 12):
        margins = random_margins(rng, levels, restricted=restricted)
        found = smallest_distance(domain(levels), Multiverse.of(*margins), premetric)
        truth = Oracle(everyone, margins, hamming=hamming).by_the_rule()
        single = rank_says_single(everyone, margins, hamming=hamming)
        agrees(found, truth, hamming=hamming, single=single, margins=margins)


@pytest.mark.parametrize("hamming", [True, False])
def test_the_smallest_change_of_all_against_all_data_sets(hamming: bool) -> None:
    rng = random.Random(11)
    for turn in range(30):
        levels = SHAPES[turn % len(SHAPES)]
        margins = random_margins(rng, levels, restricted=turn % 2 == 0)
        everyone = cells(levels)
        truth = Oracle(everyone, margins, hamming=hamming).any_change()
        change = ask_own_tables(domain(levels), Multiverse.of(*margins), UNIT, total=hamming).find_nearest()
        if change is None:
            assert truth is None
            assert rank_says_single(everyone, margins, hamming=hamming)
        else:
            assert change.proved
            assert change.norm == truth if truth is not None else change.norm > MOST


def test_areas_nest() -> None:
    """Counties of one state are exchanged where states are fixed: the spine's own parts, against all data sets."""
    rng = random.Random(5)
    places = [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]
    levels: Levels = {
        "state": ("a", "b"),
        "county": ("a1", "a2", "b1", "b2"),
        "h": ("0", "1"),
        "s": ("0", "1"),
    }
    everyone = [
        {"state": state, "county": county, "h": h, "s": s}
        for (state, county), h, s in product(places, "01", "01")
    ]
    variables = tuple(Variable(name=name, levels=values) for name, values in levels.items())
    nested = Domain(
        name="toy", spine=("state", "county"), record_types=(RecordType(name=UNIT, variables=variables),)
    )
    for turn in range(15):
        half = {"h": ["1"]} if turn % 2 else None
        margins = [
            Margin(UNIT, [n for n in levels if rng.random() < 0.5], half if rng.random() < 0.5 else None)
            for _ in range(rng.randint(1, 3))
        ]
        margins = [*dict.fromkeys(margins)]
        # by county is by state × county: the oracle's keys hold it already
        found = smallest_distance(nested, Multiverse.of(*margins), Hamming(UNIT))
        truth = Oracle(everyone, margins, hamming=True).by_the_rule()
        single = rank_says_single(everyone, margins, hamming=True)
        assert (found.value is None) == single
        if found.value is not None:
            assert 2 * found.value == truth if truth is not None else found.value > MOST / 2


def smallest_left_out(sets: Sequence[frozenset[str]], names: str) -> int | None:
    """|F| for the smallest set of variables contained in none of the sets, by trying all."""
    for size in range(len(names) + 1):
        if any(not any({*chosen} <= s for s in sets) for chosen in combinations(names, size)):
            return size
    return None


def test_the_closed_form_is_the_integer_programme_on_complete_products() -> None:
    rng = random.Random(7)
    names = "uvwx"
    everyone = cells(dict.fromkeys(names, ("0", "1")))
    for _ in range(30):
        sets = [frozenset(n for n in names if rng.random() < 0.65) for _ in range(rng.randint(1, 4))]
        sets = [*dict.fromkeys(sets)]
        size = smallest_left_out(sets, names)
        plain = find_lightest([TableKeys(((),), shown) for shown in sets], names, [0], 1)
        rows = [[tuple(cell[n] for n in sorted(shown)) for cell in everyone] for shown in sets]
        vector, proved = find_shortest(rows, range(len(everyone)), len(everyone))
        assert proved
        if size is None:
            assert plain is None
            assert vector is None
        else:
            assert plain is not None
            assert vector is not None
            assert plain.norm == 2**size
            assert sum(map(abs, vector.values())) == 2**size


# --- the reproductions, and the old rule ------------------------------------------------------------------------------


def names_of(*names: str) -> Domain:
    return Domain(
        name="toy", record_types=(RecordType(name=UNIT, variables=tuple(Variable(name=n) for n in names)),)
    )


KINDS = names_of("kind", "h", "s")
CASES: list[tuple[Domain, list[Margin], int]] = [
    # a swap that leaves vacant units out: its tables have a restriction
    (KINDS, [table("kind", "h", kind="1"), table("s", kind="1")], 2),
    # a swap that publishes vacant units as they are
    (KINDS, [table("kind", "h"), table("s"), table("kind", "h", "s", kind="0")], 2),
    # two swaps of one census, published together
    (names_of("u", "v", "w"), [table("u", "v"), table("u", "w"), table("v", "w")], 4),
    # three-way tables of four variables: alternate in all four
    (names_of("u", "v", "w", "x"), [table(*"uvw"), table(*"uvx"), table(*"uwx"), table(*"vwx")], 8),
    # one table with a restriction: the variable that it does not show can change alone
    (KINDS, [table("h", kind="1")], 1),
    # swapped records beside records with one noisy variable: the swapped ones decide
    (KINDS, [table("h", kind="1"), table("s", kind="1"), table("h", kind="0")], 2),
]


def old_rule(domain: Domain, multiverse: Multiverse, premetric: InputPremetric) -> int:
    """The rule as it was: restricted tables are ignored, and 2 is the largest answer."""
    unit = premetric.unit
    margins = [m for m in multiverse if isinstance(m, Margin) and m.record_type == unit and m.where is None]
    known = [domain.closure(unit, margin.by) for margin in margins]
    fixed = frozenset[str]().union(*known)
    if domain.record_type(unit).names() <= fixed or any(not (a <= b or b <= a) for a in known for b in known):
        return 2
    return 1


def check_cases(rule: Callable[[Domain, Multiverse, InputPremetric], int | None]) -> None:
    for where, margins, expected in CASES:
        assert rule(where, Multiverse.of(*margins), Hamming(UNIT)) == expected, margins


def test_restricted_and_joint_releases() -> None:
    check_cases(lambda *question: smallest_distance(*question).value)
    for where, margins, expected in CASES:
        if expected > 1:
            found = smallest_distance(where, Multiverse.of(*margins), SymmetricDifference(UNIT))
            assert found.value == 2 * expected


def test_the_old_rule_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_cases(old_rule)
    wrong = [m for where, m, truth in CASES if old_rule(where, Multiverse.of(*m), Hamming(UNIT)) < truth]
    assert len(wrong) >= 3


def card_of(where: Domain, *margins: Margin, premetric: InputPremetric | None = None) -> Card:
    return Card(
        Specification(
            domain=where,
            multiverse=Multiverse.of(*margins),
            input_premetric=premetric or Hamming(UNIT),
            output_premetric=Multiplicative(),
            budget=Budget.log(3),
        )
    )


def test_the_card_at_distance_four() -> None:
    card = card_of(names_of("u", "v", "w"), table("u", "v"), table("u", "w"), table("v", "w"))
    assert card.bound_odds().factor == "81.1"  # e^{4 ln 3} = 81, rounded up
    assert "a change of four household records (the smallest that can occur)" in card.sentence()
    assert "the values of four household records can be arranged in two ways" in card.write_example()
    assert "stratum" not in card.write_example()
    assert dict(card.rows())["smallest distance"].startswith(
        "4: u, v and w never appear in the same exact table"
    )
    for form in (card.text(), card.markdown(), card.html()):
        assert "u, v and w never appear in the same exact table" in form


def test_the_card_names_what_is_exchanged() -> None:
    card = card_of(KINDS, table("kind", "h", kind="1"), table("s", kind="1"))
    assert card.bound_odds().factor == "9.01"
    assert "two households differ in h and in s" in card.write_example()
    replaced = card_of(names_of("h"), table(), premetric=SymmetricDifference(UNIT))
    assert replaced.bound_odds().distance == 2
    assert "one household could have been another one" in replaced.write_example()


def test_where_nothing_can_change_nothing_is_protected() -> None:
    card = card_of(KINDS, table("kind", "h", "s"))
    what = card.bound_odds()
    assert what.distance is None
    assert what.factor == "∞"
    assert "Nothing is protected" in card.sentence()
    for form in (card.text(), card.markdown(), card.html()):
        assert "othing is protected" in form
        assert "None" not in form


# --- conventions ------------------------------------------------------------------------------------------------------


def test_own_premetrics_and_neighbours() -> None:
    class Mine(InputPremetric):
        unit = UNIT

        def __str__(self) -> str:
            return "mine"

    assert smallest_distance(KINDS, Multiverse.of(table("h")), Mine()) == Distance(
        1, False, "no rule says which distances occur under mine"
    )
    near = smallest_distance(KINDS, Multiverse.of(table("h")), Neighbours(Hamming(UNIT)))
    assert near.value == 1
    assert near.exact
    # a swap has no neighbours inside a universe: a promise for neighbours promises nothing
    swap = [table("kind", "h"), table("s")]
    none = smallest_distance(KINDS, Multiverse.of(*swap), Neighbours(Hamming(UNIT)))
    assert none.value == 1
    assert not none.exact
    assert "Nothing is promised" in card_of(KINDS, *swap, premetric=Neighbours(Hamming(UNIT))).sentence()


def census(*dependencies: Dependency, constraints: tuple[Constraint, ...] = ()) -> Domain:
    """Households with persons, the latter with their household's number."""
    homes = ("hid", "state", "county", "size", "tenure")
    people = ("hid", "age", "sex")
    return Domain(
        name="toy",
        spine=("state", "county"),
        record_types=(
            RecordType(name=UNIT, variables=tuple(Variable(name=n) for n in homes)),
            RecordType(name="person", variables=tuple(Variable(name=n) for n in people)),
        ),
        dependencies=(
            Dependency(record_type=UNIT, of=("hid",), determines=("state", "county", "size", "tenure")),
            *dependencies,
        ),
        constraints=constraints,
        size_variable="size",
    )


SWAP = (table("state", "size", "tenure"), table("county", "size"))
MEMBERS = Custom(
    name="persons within households",
    determined_by=(Margin("person", ("hid", "age", "sex")), table("hid", "size", "state", "tenure")),
)


def test_persons_follow_their_households() -> None:
    both = Multiverse.of(*SWAP, MEMBERS)
    homes = smallest_distance(census(), both, Hamming(UNIT))
    assert (homes.value, homes.exact) == (2, True)
    people = smallest_distance(census(), both, Hamming("person"))
    assert people.value == 2
    # without tables of households one person changes alone, whatever else is counted
    noisy = Multiverse.of(Margin("person", ("age",)), AtLeast(table("county"), 1))
    assert smallest_distance(census(), noisy, Hamming("person")).value == 1
    assert smallest_distance(census(), noisy, Hamming(UNIT)).value == 1


def test_a_table_of_persons_binds_their_household() -> None:
    """Persons by county: a household that moves takes its persons along, so two of them exchange places."""
    tied = Multiverse.of(
        table("county", "size"), table("state", "size", "tenure"), Margin("person", ("county", "tenure"))
    )
    found = smallest_distance(census(), tied, Hamming(UNIT))
    assert found.value is not None
    assert found.value >= 2


def test_rules_of_the_domain_are_kept_out_of_the_pair() -> None:
    rule = Constraint(words="owners live in large homes", record_type=UNIT, variables=("tenure", "size"))
    loose = names_of("size", "tenure", "county")
    strict = Domain(name="toy", record_types=loose.record_types, constraints=(rule,))
    tables = Multiverse.of(table("size", "tenure"))
    assert smallest_distance(strict, tables, Hamming(UNIT)).exact  # county is free
    swap = Multiverse.of(table("size", "county"), table("tenure"))
    found = smallest_distance(strict, swap, Hamming(UNIT))
    assert (found.value, found.exact) == (2, False)
    assert smallest_distance(loose, swap, Hamming(UNIT)).exact


def test_a_restriction_by_an_area_without_a_list_of_areas() -> None:
    where = Domain(
        name="toy",
        spine=("state", "county"),
        record_types=(
            RecordType(name=UNIT, variables=tuple(Variable(name=n) for n in ("state", "county", "h", "s"))),
        ),
    )
    tables = Multiverse.of(table("county", "h"), table("s"), table("s", "county", state="1"))
    found = smallest_distance(where, tables, Hamming(UNIT))
    assert found.value is not None
    assert found.value >= 2
    assert not found.exact


# --- the same with the mechanism's own specifications -----------------------------------------------------------------


@pytest.mark.parametrize("untouched", ["publish", "drop"])
def test_a_swap_beside_vacant_units_is_read_at_two(untouched: str) -> None:
    rows = [*(("1", f"h{i}", f"s{i}") for i in range(8)), ("0", "h0", "s0")]
    columns = zip(*rows, strict=True)
    table = pa.table(
        {"hid": [*range(1, 10)], **dict(zip(("kind", "h", "s"), map(list, columns), strict=True))}
    )
    kinds = {"column": "kind", "occupied": ["1"], "vacant": ["0"]}
    tiny = Census.of(
        {"name": "tiny", "geography": {"spine": []}, "record": {UNIT: {"id": "hid", "kind": kinds}}},
        {UNIT: table},
    )
    spec = PermutationSwapping(swap=["s"], rate="1/20", untouched=untouched).specification(tiny)
    what = Card(spec).bound_odds()
    assert what.distance == 2
    assert what.log_odds is not None
    assert what.log_odds >= 2 * spec.budget.lower(6)


def test_two_swaps_published_together_are_read_at_four() -> None:
    rows = [*product("01", repeat=3)]
    table = pa.table({"hid": [*range(1, 9)], **{n: [row[i] for row in rows] for i, n in enumerate("uvw")}})
    mine = Census.of(
        {"name": "mine", "geography": {"spine": []}, "record": {UNIT: {"id": "hid"}}}, {UNIT: table}
    )
    first = PermutationSwapping(match=["u"], swap=["v"], rate="1/10").specification(mine)
    second = PermutationSwapping(match=["v"], swap=["w"], rate="1/10").specification(mine)
    assert Card(first).bound_odds().distance == Card(second).bound_odds().distance == 2
    both = first + second
    what = Card(both).bound_odds()
    assert what.distance == 4
    assert what.log_odds is not None
    assert what.log_odds >= 4 * both.budget.lower(6)
