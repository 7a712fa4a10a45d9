"""Odds follow what leaves and nothing else of the codebook: held against all data sets of a few records."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

from stirred import GaussianTables
from stirred.census import Census
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.spec import (
    Budget,
    Domain,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
)
from stirred.spec.card import Card, bound_odds
from stirred.spec.files import from_json, to_json
from stirred.spec.nearest import smallest_distance

HOME, PERSON = "household", "person"
Record = Mapping[str, str]
LEVELS = {"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1", "2")}


def domain_of(**records: Mapping[str, Sequence[str]]) -> Domain:
    kinds = [
        RecordType(
            name=name, variables=tuple(Variable(name=v, levels=tuple(values)) for v, values in levels.items())
        )
        for name, levels in records.items()
    ]
    return Domain(name="toy", record_types=tuple(kinds))


def key_of(table: Margin, record: Record) -> tuple[str, ...] | None:
    if any(record[name] not in values for name, values in table.conditions().items()):
        return None
    return tuple(record[name] for name in table.by)


def count_by(table: Margin, records: Sequence[Record]) -> frozenset[tuple[object, int]]:
    keys = (key_of(table, record) for record in records)
    return frozenset(Counter(key for key in keys if key is not None).items())


# --- one record type: the answer is the true one ----------------------------------------------------------------------

MOST = 3  # records of one data set


def true_distance(
    levels: Mapping[str, Sequence[str]], tables: Sequence[Margin], view: Margin, *, hamming: bool
) -> int | None:
    """The smallest |x ⊖ x'| of two data sets with equal tables and unequal views, by trying all; None beyond the search.

    A nearest pair shares no record, so the sizes of x and x' add up to |x ⊖ x'|.
    """
    everyone = [dict(zip(levels, values, strict=True)) for values in product(*levels.values())]
    bags: dict[int, dict[object, set[object]]] = {size: defaultdict(set) for size in range(MOST + 1)}
    for size, bag in bags.items():
        for records in combinations_with_replacement(everyone, size):
            bag[tuple(count_by(table, records) for table in tables)].add(count_by(view, records))
    for norm in range(1, 2 * MOST + 1):
        for first in range((norm + 1) // 2, min(MOST, norm) + 1):
            if hamming and 2 * first != norm:
                continue
            for tables_of, seen in bags[first].items():
                there = bags[norm - first].get(tables_of, set())
                if there and len(seen | there) > 1:
                    return norm
    return None


def draw_tables(rng: random.Random, number: int, *, restricted: bool) -> list[Margin]:
    found = []
    for _ in range(number):
        where = None
        if restricted and rng.random() < 0.5:
            name = rng.choice([*LEVELS])
            where = {name: rng.sample(LEVELS[name], rng.randint(1, len(LEVELS[name]) - 1))}
        found.append(Margin(HOME, [name for name in LEVELS if rng.random() < 0.5], where))
    return [*dict.fromkeys(found)]


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("hamming", [True, False])
def test_one_view_is_read_at_the_true_distance(hamming: bool, restricted: bool) -> None:
    rng = random.Random(f"{hamming} {restricted}")
    premetric = Hamming(HOME) if hamming else SymmetricDifference(HOME)
    for _ in range(10):
        tables = draw_tables(rng, rng.randint(1, 3), restricted=restricted)
        (view,) = draw_tables(rng, 1, restricted=restricted)
        found = smallest_distance(domain_of(household=LEVELS), Multiverse.of(*tables), premetric, [view])
        truth = true_distance(LEVELS, tables, view, hamming=hamming)
        assert found.exact
        if found.value is None:
            assert truth is None
        elif truth is None:
            assert found.value > MOST
        else:
            assert found.value * (2 if hamming else 1) == truth


def test_one_more_view_never_lowers_the_odds() -> None:
    rng = random.Random(3)
    where = domain_of(household=LEVELS)
    for _ in range(60):
        tables = Multiverse.of(*draw_tables(rng, rng.randint(1, 3), restricted=True))
        views = draw_tables(rng, 3, restricted=True)
        alone = [smallest_distance(where, tables, Hamming(HOME), [view]) for view in views]
        both = smallest_distance(where, tables, Hamming(HOME), views)
        values = [found.value for found in alone if found.value is not None]
        if not values:
            assert both.value is None
            continue
        assert both.value is not None
        assert both.value >= min(values)
        assert not both.exact or both.value == min(values)
        assert both.others == (both.value > min(values))


# --- persons in households: never below the true one ------------------------------------------------------------------

PLACES, ANSWERS = ("x", "y"), ("0", "1")
HOMES: list[tuple[Record, tuple[str, ...]]] = [
    ({"place": place, "tenure": tenure}, persons)
    for place, tenure in product(PLACES, ANSWERS)
    for number in (0, 1, 2)
    for persons in combinations_with_replacement(ANSWERS, number)
]
LINKED = domain_of(
    household={"place": PLACES, "tenure": ANSWERS},
    person={"place": PLACES, "tenure": ANSWERS, "race": ANSWERS},
)


def persons_of(homes: Sequence[tuple[Record, tuple[str, ...]]]) -> list[Record]:
    return [{**home, "race": race} for home, persons in homes for race in persons]


def counts_of(table: Margin, homes: Sequence[tuple[Record, tuple[str, ...]]]) -> object:
    return count_by(table, persons_of(homes) if table.record_type == PERSON else [home for home, _ in homes])


def joint_file(unit: str, homes: Sequence[tuple[Record, tuple[str, ...]]]) -> Counter[object]:
    """The records that the unit's distance counts; an empty home counts as one record of persons."""
    if unit == HOME:
        return Counter((*home.items(), *persons) for home, persons in homes)
    empty = [{**home, "race": "nobody"} for home, persons in homes if not persons]
    return Counter(tuple(sorted(record.items())) for record in (*persons_of(homes), *empty))


def distances(unit: str, sets: Sequence[Sequence[tuple[Record, tuple[str, ...]]]]) -> np.ndarray:
    """The Hamming distance of every two data sets, infinite where their numbers of records differ."""
    files = [joint_file(unit, homes) for homes in sets]
    places = {record: place for place, record in enumerate({record for file in files for record in file})}
    counts = np.zeros((len(files), len(places)), int)
    for row, file in zip(counts, files, strict=True):
        for record, number in file.items():
            row[places[record]] = number
    found = np.abs(counts[:, None] - counts[None]).sum(axis=2) / 2
    sizes = counts.sum(axis=1)
    return np.where(sizes[:, None] == sizes[None], found, np.inf)


def test_joint_views_are_never_read_below_the_true_distance() -> None:
    rng = random.Random(17)
    columns = {HOME: ("place", "tenure"), PERSON: ("place", "tenure", "race")}
    sets = [chosen for size in (1, 2) for chosen in combinations_with_replacement(HOMES, size)]
    far = {unit: distances(unit, sets) for unit in (HOME, PERSON)}

    def draw(number: int) -> list[Margin]:
        kinds = [rng.choice([HOME, PERSON]) for _ in range(number)]
        return [Margin(kind, [name for name in columns[kind] if rng.random() < 0.6]) for kind in kinds]

    def codes(tables: Sequence[Margin]) -> np.ndarray:
        """Equal numbers for data sets with equal tables."""
        known: dict[object, int] = {}
        return np.array(
            [known.setdefault(tuple(counts_of(t, homes) for t in tables), len(known)) for homes in sets]
        )

    finite = 0
    for _ in range(40):
        tables, views = draw(rng.randint(1, 3)), draw(rng.randint(1, 2))
        kept, seen = codes(tables), codes(views)
        told_apart = (kept[:, None] == kept[None]) & (seen[:, None] != seen[None])
        for unit in (HOME, PERSON):
            # persons who share a home in one file and not in the other are at distance 0 on the joint file
            near = far[unit][told_apart & (far[unit] > 0)]
            truth = near.min(initial=np.inf)
            found = smallest_distance(LINKED, Multiverse.of(*tables), Hamming(unit), views)
            if found.value is None:
                # there is none where this is said to be proved; the search has two homes at most
                assert not found.exact or truth == np.inf
                continue
            finite += 1
            if truth != np.inf:
                assert found.value >= truth
                assert found.value == truth or not found.exact
    assert finite > 30


# --- specifications ---------------------------------------------------------------------------------------------------


def stated(
    *tables: Margin, released: Sequence[Margin] = (), where: Domain | None = None, unit: str = HOME
) -> Specification:
    return Specification(
        domain=where or domain_of(household={**LEVELS, "income": tuple(map(str, range(9)))}),
        multiverse=Multiverse.of(*tables),
        input_premetric=Hamming(unit),
        output_premetric=Multiplicative(),
        budget=Budget.log(3),
        released=tuple(released),
    )


SWAPPED = (Margin(HOME, ("a", "b")), Margin(HOME, ("a", "c")))
SHOWN = Margin(HOME, ("a", "b", "c"))


def test_a_listed_variable_that_does_not_leave_changes_nothing() -> None:
    spec = stated(*SWAPPED, released=[SHOWN])
    assert bound_odds(spec).distance == 2
    assert bound_odds(spec).factor == "9.01"  # 3², rounded up
    assert "income" not in Card(spec).text()
    leaves = stated(*SWAPPED, released=[Margin(HOME, (*SHOWN.by, "income"))])
    assert bound_odds(leaves).distance == 1


def test_the_field_is_read_and_written_and_joined() -> None:
    spec = stated(*SWAPPED, released=[SHOWN])
    assert from_json(to_json(spec)) == spec
    assert "released" not in to_json(stated(*SWAPPED))
    noisy = stated(released=[Margin(HOME, ("income",))])
    assert (spec + noisy).views == (SHOWN, Margin(HOME, ("income",)))
    assert (spec + stated()).views == ()  # what one of them releases is not known
    assert (spec + spec).views == (SHOWN,)
    assert spec.released_columns == {HOME: ("a", "b", "c")}
    assert stated().released_columns == {HOME: ("a", "b", "c", "income")}
    # the swap decides, and the sentence says that another table can change by less
    both = bound_odds(spec + noisy)
    assert both.distance == 2
    assert "another released table can change by less" in both.reason
    assert "that suffices for each released table" in both.change


def test_no_claim_rests_on_it() -> None:
    mine, other = stated(*SWAPPED, released=[SHOWN]), stated(*SWAPPED)
    assert mine.implies(other)
    assert other.implies(mine)
    assert mine.budget == other.budget


def test_it_names_variables_of_the_domain() -> None:
    with pytest.raises(Exception, match="unknown variable 'incone'"):
        stated(released=[Margin(HOME, ("incone",))])


def test_what_the_exact_tables_determine_is_not_protected() -> None:
    spec = stated(SHOWN, released=[Margin(HOME, ("b", "c"))])
    what = bound_odds(spec)
    assert what.distance is None
    assert what.factor == "∞"
    assert "Nothing is protected" in Card(spec).sentence()
    assert "determine all that is released" in Card(spec).sentence()


# --- mechanisms -------------------------------------------------------------------------------------------------------

Columns = dict[str, list[object]]


def survey(
    name: str,
    spine: list[str],
    home: tuple[str, str, Columns, dict[str, object], tuple[str, ...]],
    person: tuple[str, Columns, dict[str, object], tuple[str, ...]],
    *,
    listed: bool,
) -> Census:
    """A census of households and persons whose codebook lists the numbers that no release publishes, or not."""
    number, size, homes, own, amounts = home
    identifier, persons, theirs, more = person
    records = {
        HOME: {
            "id": number,
            "size": size,
            "variables": own | (dict.fromkeys(amounts, "0..100000") if listed else {}),
        },
        PERSON: {
            "id": identifier,
            "household": number,
            "variables": theirs | (dict.fromkeys(more, "0..100000") if listed else {}),
        },
    }
    book = {"name": name, "largest_household": 30, "geography": {"spine": spine}, "record": records}
    return Census.of(book, {HOME: pa.table(homes), PERSON: pa.table(persons)})


SILC_NUMBERS = ("hy010", "hy020", "hy040n", "hy090n", "db090")
SILC_PERSON = ("rb050", "py010n", "py050n", "pb040")


def silc(*, listed: bool) -> Census:
    """A file with the columns of EU-SILC as laeken ships it: households with incomes, persons with weights and incomes."""
    rng = random.Random(5)
    homes: dict[str, list[object]] = {name: [] for name in ("db030", "db040", "hsize", *SILC_NUMBERS)}
    persons: dict[str, list[object]] = {
        name: [] for name in ("rb030", "db030", "age", "rb090", "pl030", "pb220a", *SILC_PERSON)
    }
    for home in range(80):
        size = rng.choice([1, 1, 2, 2, 3, 4])
        row = {"db030": home, "db040": rng.choice(["Tyrol", "Vienna", "Styria"]), "hsize": size}
        row |= {name: rng.randint(0, 900) * 100 for name in SILC_NUMBERS}
        for name, value in row.items():
            homes[name].append(value)
        for number in range(size):
            one = {
                "rb030": home * 100 + number,
                "db030": home,
                "age": rng.randint(0, 95),
                "rb090": rng.choice(["male", "female"]),
                "pl030": str(rng.randint(1, 7)),
                "pb220a": rng.choice(["AT", "EU", "Other"]),
            } | {name: rng.randint(0, 900) * 100 for name in SILC_PERSON}
            for name, value in one.items():
                persons[name].append(value)
    own: dict[str, object] = {"hsize": "1..12"}
    theirs: dict[str, object] = {
        "age": "0..120",
        "rb090": ["male", "female"],
        "pl030": ["1", "2", "3", "4", "5", "6", "7"],
        "pb220a": ["AT", "EU", "Other"],
    }
    return survey(
        "silc",
        ["db040"],
        ("db030", "hsize", homes, own, SILC_NUMBERS),
        ("rb030", persons, theirs, SILC_PERSON),
        listed=listed,
    )


GHANA_HOME = ("hhweight", "totexp", "foodexp", "rent")
GHANA_PERSON = ("wage", "hours", "weight_p")


def ghana(*, listed: bool) -> Census:
    """A file with the columns of a living standards survey: region, district, urban or rural, expenditure, and persons."""
    rng = random.Random(8)
    homes: dict[str, list[object]] = {
        name: [] for name in ("hid", "region", "district", "loc2", "hhsize", "toilet", *GHANA_HOME)
    }
    persons: dict[str, list[object]] = {
        name: [] for name in ("pid", "hid", "s1q2", "s1q5y", "s1q3", "s2aq1", *GHANA_PERSON)
    }
    for home in range(90):
        size, region = rng.choice([1, 1, 2, 3, 4, 5]), rng.choice(["Ashanti", "Volta"])
        row = {
            "hid": home,
            "region": region,
            "district": f"{region} {rng.randint(1, 3)}",
            "loc2": rng.choice(["urban", "rural"]),
            "hhsize": size,
            "toilet": str(rng.randint(1, 4)),
        } | {name: rng.randint(0, 900) * 10 for name in GHANA_HOME}
        for name, value in row.items():
            homes[name].append(value)
        for number in range(size):
            one = {
                "pid": home * 100 + number,
                "hid": home,
                "s1q2": rng.choice(["male", "female"]),
                "s1q5y": rng.randint(0, 95),
                "s1q3": str(rng.randint(1, 9)),
                "s2aq1": rng.choice(["yes", "no"]),
            } | {name: rng.randint(0, 900) for name in GHANA_PERSON}
            for name, value in one.items():
                persons[name].append(value)
    own: dict[str, object] = {"hhsize": "1..30", "loc2": ["urban", "rural"], "toilet": ["1", "2", "3", "4"]}
    theirs: dict[str, object] = {
        "s1q2": ["male", "female"],
        "s1q5y": "0..120",
        "s1q3": [str(number) for number in range(1, 10)],
        "s2aq1": ["yes", "no"],
    }
    spine = ["region", "district"]
    return survey(
        "glss",
        spine,
        ("hid", "hhsize", homes, own, GHANA_HOME),
        ("pid", persons, theirs, GHANA_PERSON),
        listed=listed,
    )


SURVEYS = {
    "silc": (silc, {"match": ["hsize"], "swap": ["db040"]}, (*SILC_NUMBERS, *SILC_PERSON)),
    # every column of the household is matched or moves: what stays with it are its persons
    "ghana": (
        ghana,
        {"match": ["region", "hhsize"], "swap": ["district"], "hold": ["region", "hhsize"]},
        (*GHANA_HOME, *GHANA_PERSON),
    ),
}


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("unit", [HOME, PERSON])
def test_a_survey_has_the_same_odds_with_and_without_its_dropped_numbers(name: str, unit: str) -> None:
    make, settings, dropped = SURVEYS[name]
    found = []
    for listed in (True, False):
        drop = dropped if listed else ()
        promise = PermutationSwapping(**settings, rate="1/10", drop=drop).specification(make(listed=listed))
        columns = {column for names in promise.released_columns.values() for column in names}
        assert not columns & {*dropped}
        found.append(bound_odds(promise if unit == HOME else promise.per(PERSON)))
    assert [what.distance for what in found] == [2, 2]  # two households exchange their places
    assert found[0].factor == found[1].factor
    assert found[0].reason == found[1].reason
    assert found[0].changed == unit


def leaf_workload(rule: str, source: str) -> Workload:
    return Workload.parse(f"""
name = "w"
record = "household"
rho_squared = 1
levels = ["region", "district"]
axis = [{{ name = "x", size = 2, source = {source} }}]
query = [{{ name = "cells", of = ["x"] }}, {{ name = "total" }}]
rule = [{{ name = "leaf", kind = "exact", query = "{rule}", level = "district" }}]
level_shares = {{ region = "1/2", district = "1/2" }}
query_shares = {{ region = {{ cells = 1 }}, district = {{ cells = 1 }} }}
""")


CASES = "{ cases = [{ loc2 = ['urban'] }, {}] }"


def homes_alone() -> Census:
    homes: Columns = {
        "hid": [*range(8)],
        "region": ["r"] * 8,
        "district": [*"ddddeeee"],
        "loc2": ["urban", "rural"] * 4,
    }
    book = {
        "name": "homes",
        "geography": {"spine": ["region", "district"]},
        "record": {HOME: {"id": "hid", "variables": {"loc2": ["urban", "rural"], "hid": "0..9"}}},
    }
    return Census.of(book, {HOME: pa.table(homes)})


def test_topdown_with_an_exact_leaf_histogram_protects_nothing() -> None:
    census = homes_alone()
    free = TopDown(workload=leaf_workload("total", CASES)).specification(census)
    assert bound_odds(free).distance == 1
    assert bound_odds(free).moved == ("loc2",)
    exact = TopDown(workload=leaf_workload("cells", CASES)).specification(census)
    assert exact.released_columns == {HOME: ("district", "loc2")}
    assert bound_odds(exact).distance is None
    assert bound_odds(exact).factor == "∞"


def test_a_person_is_named_only_where_a_column_of_persons_leaves() -> None:
    census = ghana(listed=True)
    homes = TopDown(workload=leaf_workload("total", CASES)).specification(census)
    assert homes.input_premetric == Hamming(PERSON)
    assert "the record of one household of one person" in Card(homes).sentence()
    persons = GaussianTables(tables=[["district", "s1q2"]], record=PERSON, rho_squared="1/2").specification(
        census
    )
    assert "one person's record" in Card(persons).sentence()


def test_one_person_changes_alone_beside_exact_tables_of_homes() -> None:
    """The redistricting file: homes by block are exact twice over, and a person's race is measured with noise."""
    levels = {"state": ("s",), "block": ("1", "2", "3"), "kind": ("1", "2", "3"), "gq": ("0", "1")}
    where = domain_of(household=levels, person={**levels, "race": ("a", "b")})
    tables = (
        Margin(PERSON, ("state",)),
        Margin(HOME, ("block",), {"kind": ["1", "2"]}),
        Margin(HOME, ("block", "gq")),
    )
    silent = smallest_distance(where, Multiverse.of(*tables), Hamming(PERSON))
    spec = stated(*tables, released=[Margin(PERSON, ("block", "gq", "race"))], where=where, unit=PERSON)
    assert silent.value == 2  # not stated: a home may change its kind only together with another one
    assert bound_odds(spec).distance == 1
    assert bound_odds(spec).moved == ("race",)


def test_zcdp_is_read_at_that_distance_too() -> None:
    spec = Specification(
        domain=domain_of(household={**LEVELS, "income": ("0", "1")}),
        multiverse=Multiverse.of(*SWAPPED),
        input_premetric=Hamming(HOME),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(1),
        released=(SHOWN,),
    )
    # ρ² = 1 at distance 2 and δ = 10⁻¹⁰: 4 + 4·√(10 ln 10) = 23.19…, e to which is 1.18 × 10¹⁰
    assert bound_odds(spec).factor == "1.19 × 10¹⁰"
