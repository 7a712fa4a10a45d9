"""The constants between units, checked on censuses small enough to enumerate."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import pytest

from stirred.errors import IncompatibleError, SpecificationError
from stirred.spec import (
    Domain,
    Hamming,
    InputPremetric,
    Margin,
    Multiverse,
    RecordType,
    SymmetricDifference,
)
from stirred.spec.input_premetrics import RecordPremetric

DOMAIN = Domain(name="toy", largest_household=3)
NONE = Multiverse.none()
POPULATION = Multiverse.of(Margin("person"))
UNITS = Multiverse.of(Margin("household"))


def factor(source: InputPremetric, to: InputPremetric, multiverse: Multiverse = NONE) -> Fraction:
    return source.constant(to, DOMAIN, multiverse).factor


@pytest.mark.parametrize(
    ("source", "to", "multiverse", "expected"),
    [
        (Hamming("household"), Hamming("household"), NONE, 1),
        (Hamming("household"), Hamming("person"), UNITS, 1),
        (Hamming("household"), Hamming("person", link="free"), UNITS, 2),
        (SymmetricDifference("household"), Hamming("household"), NONE, 2),
        (SymmetricDifference("person"), Hamming("person"), NONE, 2),
        (Hamming("person"), SymmetricDifference("person"), POPULATION, 1),
        (Hamming("person", link="free"), SymmetricDifference("person"), POPULATION, Fraction(1, 2)),
        (Hamming("person"), Hamming("household"), POPULATION, 3),
        (SymmetricDifference("person"), SymmetricDifference("household"), NONE, 3),
        (SymmetricDifference("person"), Hamming("household"), NONE, 6),
        (SymmetricDifference("household"), SymmetricDifference("person"), NONE, 2),
        (Hamming("household"), SymmetricDifference("person"), UNITS, 1),
        (Hamming("person", link="free"), Hamming("person"), NONE, 1),
        (Hamming("person"), Hamming("person", link="free"), NONE, 2),
        (Hamming("person"), Hamming("person", copies=2), NONE, 2),
        (Hamming("household"), Hamming("person", link="free", copies=3), UNITS, 6),
        (Hamming("person", copies=2), Hamming("person"), NONE, 1),
    ],
)
def test_constants(
    source: InputPremetric, to: InputPremetric, multiverse: Multiverse, expected: int | Fraction
) -> None:
    assert factor(source, to, multiverse) == expected


@pytest.mark.parametrize(
    ("source", "to"),
    [
        (Hamming("person"), SymmetricDifference("person")),  # infinite between sizes
        (Hamming("person"), Hamming("household")),  # a household may change its size
        (Hamming("household"), SymmetricDifference("person")),
        (Hamming("household"), Hamming("person")),  # a person may found a household
        (Hamming("business"), Hamming("person")),
    ],
)
def test_what_no_rule_bounds_is_refused_with_a_reason(source: InputPremetric, to: InputPremetric) -> None:
    with pytest.raises(IncompatibleError) as caught:
        factor(source, to)
    assert caught.value.why


def test_the_largest_household_must_be_stated() -> None:
    with pytest.raises(IncompatibleError, match="how large a household"):
        Hamming("person").constant(Hamming("household"), Domain(name="open"), POPULATION)


# A census of two homes: each home is a multiset of persons. Enumerated distances against the constants.
Home = tuple[str, ...]
HOMES: list[Home] = [home for size in range(4) for home in combinations_with_replacement("ab", size)]
CENSUSES = [(first, second) for first in HOMES for second in HOMES]


def multiset_symmetric(x: list[object], y: list[object]) -> int:
    kinds = {*x, *y}
    return sum(abs(x.count(kind) - y.count(kind)) for kind in kinds)


def household_hamming(x: tuple[Home, ...], y: tuple[Home, ...]) -> int:
    """Homes are units with an address, so the address is part of the record."""
    return sum(a != b for a, b in zip(x, y, strict=True))


def person_kept(x: tuple[Home, ...], y: tuple[Home, ...]) -> int:
    """Changes inside homes, and a move counted for both homes; whole censuses only of one size."""
    total = 0
    for a, b in zip(x, y, strict=True):
        common = sum(min(a.count(kind), b.count(kind)) for kind in {*a, *b})
        total += max(len(a), len(b)) - common
    return total


def person_free(x: tuple[Home, ...], y: tuple[Home, ...]) -> int:
    """Half the symmetric difference of person records that carry their home."""
    mine = [(i, person) for i, home in enumerate(x) for person in home]
    theirs = [(i, person) for i, home in enumerate(y) for person in home]
    return multiset_symmetric(list(mine), list(theirs)) // 2


def test_the_constants_hold_and_are_attained_on_an_enumerated_census() -> None:
    worst = dict.fromkeys(("household/kept", "household/free", "kept/household", "kept/free"), Fraction(0))
    for x in CENSUSES:
        for y in CENSUSES:
            if x == y or sum(map(len, x)) != sum(map(len, y)):
                continue
            distances = {
                "household": household_hamming(x, y),
                "kept": person_kept(x, y),
                "free": person_free(x, y),
            }
            for pair in worst:
                top, bottom = pair.split("/")
                worst[pair] = max(worst[pair], Fraction(distances[top], distances[bottom]))
    assert worst["household/kept"] <= factor(Hamming("household"), Hamming("person"), UNITS) == 1
    assert worst["household/free"] == factor(Hamming("household"), Hamming("person", link="free"), UNITS) == 2
    assert worst["kept/household"] == factor(Hamming("person"), Hamming("household"), POPULATION) == 3
    assert worst["kept/free"] <= factor(Hamming("person"), Hamming("person", link="free")) == 2


def test_the_constants_of_adding_and_removing_on_an_enumerated_census() -> None:
    worst = dict.fromkeys(("homes/people", "people/homes", "people/changed", "changed/people"), Fraction(0))
    for x in CENSUSES:
        for y in CENSUSES:
            if x == y:
                continue
            mine = [(i, person) for i, home in enumerate(x) for person in home]
            theirs = [(i, person) for i, home in enumerate(y) for person in home]
            changed = household_hamming(x, y)
            distances = {
                "homes": 2 * changed,
                "people": multiset_symmetric(list(mine), list(theirs)),
                "changed": changed,
            }
            for pair in worst:
                top, bottom = pair.split("/")
                worst[pair] = max(worst[pair], Fraction(distances[top], distances[bottom]))
    homes, people = SymmetricDifference("household"), SymmetricDifference("person")
    assert worst["homes/people"] == factor(homes, people) == 2
    assert worst["people/homes"] == factor(people, homes) == 3
    assert worst["people/changed"] == factor(people, Hamming("household")) == 6
    assert worst["changed/people"] == factor(Hamming("household"), people, UNITS) == 1


def test_a_move_is_two_changes_and_two_records_that_differ() -> None:
    """Half a record added or removed is a change only where nobody moves between homes."""
    worst = {"kept": Fraction(0), "free": Fraction(0)}
    for x in CENSUSES:
        for y in CENSUSES:
            if x == y or sum(map(len, x)) != sum(map(len, y)):
                continue
            people = 2 * person_free(x, y)
            worst["kept"] = max(worst["kept"], Fraction(person_kept(x, y), people))
            worst["free"] = max(worst["free"], Fraction(person_free(x, y), people))
    people_added = SymmetricDifference("person")
    assert worst["kept"] == factor(Hamming("person"), people_added, POPULATION) == 1
    assert worst["free"] == factor(Hamming("person", link="free"), people_added, POPULATION) == Fraction(1, 2)
    alone = Domain(name="alone", record_types=(RecordType(name="person"),))
    assert Hamming("person").constant(people_added, alone, POPULATION).factor == Fraction(1, 2)


PREMETRICS = [
    kind(unit, link=link, copies=copies)
    for kind in (Hamming, SymmetricDifference)
    for unit, link in (("household", "kept"), ("person", "kept"), ("person", "free"))
    for copies in (1, 2)
]


def test_joining_premetrics_is_associative_commutative_and_idempotent() -> None:
    for a, b, c in permutations(PREMETRICS, 3):
        assert a.join(b) == b.join(a)
        assert a.join(b).join(c) == a.join(b.join(c))
        assert a.join(a) == a


def test_every_premetric_carries_over_to_its_join() -> None:
    both = POPULATION & UNITS
    for a, b in permutations(PREMETRICS, 2):
        assert a.constant(a.join(b), DOMAIN, both).factor > 0


def test_unrelated_units_are_refused() -> None:
    with pytest.raises(IncompatibleError, match="no rule relates"):
        Hamming("business").join(Hamming("person"))
    with pytest.raises(SpecificationError):
        Hamming("person", copies=0)
    with pytest.raises(SpecificationError, match="unknown link"):
        Hamming("person", link="loose")  # type: ignore[arg-type]


def test_names() -> None:
    assert str(Hamming("household")) == "d_Ham(household)"
    assert str(Hamming("person", link="free", copies=2)) == "d_Ham(person, may move, 2 copies)"
    assert "added" in SymmetricDifference("person").smallest_distance
    assert isinstance(Hamming("person"), RecordPremetric)
