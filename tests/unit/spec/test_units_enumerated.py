"""The constants between persons and households, against all small files of homes: counted one by one, without the library.

A file says which persons live in which home; a vacant home counts as one record of the joint file. Distances of persons
are counted record by record: a change inside a home is one, a move two where the link is kept and one where it is free.
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

import stirred.spec as sp
from stirred.errors import IncompatibleError
from stirred.spec.input_premetrics import find_record_constant

# what a home may hold; None: there is no such home
CONTENTS = [people for size in range(4) for people in combinations_with_replacement("fm", size)]
FILES = [*product((None, *CONTENTS), repeat=2)]
File = tuple[tuple[str, ...] | None, ...]


def homes(file: File) -> "Counter[tuple[str, ...]]":
    return Counter(content for content in file if content is not None)


def apart(x: File, y: File) -> tuple[int, int, int, int]:
    """What differs by home: changed inside, come or gone, records of x, records of y."""
    inside = moved = 0
    sizes = [0, 0]
    for content in zip(x, y, strict=True):
        left, right = (Counter(c or (("vacant",) if c == () else ())) for c in content)
        sizes[0] += sum(left.values())
        sizes[1] += sum(right.values())
        a, b = sum((left - right).values()), sum((right - left).values())
        inside += min(a, b)
        moved += abs(a - b)
    return inside, moved, sizes[0], sizes[1]


def distances(x: File, y: File) -> dict[tuple[str, str, str], int | None]:
    """Every distance of the two files; None for infinite."""
    one, other = homes(x), homes(y)
    differ = sum((one - other).values()) + sum((other - one).values())
    inside, moved, before, after = apart(x, y)
    same = before == after
    return {
        ("ham", "household", "kept"): differ // 2 if one.total() == other.total() else None,
        ("sym", "household", "kept"): differ,
        ("ham", "person", "kept"): inside + moved
        if same
        else None,  # moved / 2 persons move, two changes each
        ("ham", "person", "free"): inside + moved // 2 if same else None,
        ("sym", "person", "kept"): 2 * inside + moved,
    }


@pytest.fixture(scope="module")
def pairs() -> list[tuple[bool, dict[tuple[str, str, str], int | None]]]:
    """Whether two files have equally many homes, and their distances."""
    found = {}
    for x in FILES:
        for y in FILES:
            if x != y:
                far = distances(x, y)
                equal = homes(x).total() == homes(y).total()
                found[equal, tuple(far.values())] = (equal, far)
    return list(found.values())


DOMAIN = sp.Domain(
    name="homes",
    record_types=(
        sp.RecordType(name="household", variables=(sp.Variable(name="tenure"),)),
        sp.RecordType(name="person", variables=(sp.Variable(name="sex", levels=("f", "m")),)),
    ),
)
FIXED, NONE = sp.Multiverse.of(sp.Margin("household")), sp.Multiverse.none()


def premetric(name: tuple[str, str, str]) -> sp.Hamming | sp.SymmetricDifference:
    kind = sp.Hamming if name[0] == "ham" else sp.SymmetricDifference
    return kind(name[1], link=name[2])  # type: ignore[arg-type]


HOUSEHOLD = [("ham", "household", "kept"), ("sym", "household", "kept")]
PERSON = [("ham", "person", "kept"), ("ham", "person", "free"), ("sym", "person", "kept")]


@pytest.mark.parametrize("to", PERSON, ids=str)
@pytest.mark.parametrize("source", HOUSEHOLD, ids=str)
def test_a_promise_per_household_is_one_per_person(
    source: tuple[str, str, str], to: tuple[str, str, str], pairs: list
) -> None:
    """With a fixed number of homes the constant holds for every pair, and no smaller one does."""
    factor = find_record_constant(premetric(source), premetric(to), DOMAIN, FIXED).factor
    ratios = []
    for equal, far in pairs:
        if equal and far[to]:
            assert far[source] is not None
            assert far[source] <= factor * far[to]
            ratios.append(Fraction(far[source], far[to]))
    assert max(ratios) == factor


@pytest.mark.parametrize("to", PERSON, ids=str)
def test_without_a_fixed_number_of_homes_no_constant_holds(to: tuple[str, str, str], pairs: list) -> None:
    source = HOUSEHOLD[0]
    assert any(
        far[to] and far[source] is None for _, far in pairs
    )  # finite for persons, infinite for households
    with pytest.raises(IncompatibleError, match="different numbers of households") as refused:
        find_record_constant(premetric(source), premetric(to), DOMAIN, NONE)
    assert 'given(Margin("household"))' in refused.value.fix
    # added and removed households are counted wherever persons are
    added = HOUSEHOLD[1]
    factor = find_record_constant(premetric(added), premetric(to), DOMAIN, NONE).factor
    assert all(far[added] <= factor * far[to] for _, far in pairs if far[to])


def test_one_person_changed_at_home_leaves_the_number_of_homes(pairs: list) -> None:
    """For neighbours with the link kept nothing has to be fixed; where a person may move it has to be."""
    source, (kept, free, _) = HOUSEHOLD[0], PERSON
    assert all(far[source] is not None and far[source] <= 1 for _, far in pairs if far[kept] == 1)
    assert any(far[source] is None for _, far in pairs if far[free] == 1)
    near = sp.Hamming("household").constant(sp.Neighbours(sp.Hamming("person")), DOMAIN, NONE)
    assert near.factor == 1
    with pytest.raises(IncompatibleError):
        sp.Hamming("household").constant(sp.Neighbours(sp.Hamming("person", link="free")), DOMAIN, NONE)


def test_publishing_the_number_of_households_is_no_promise_per_person() -> None:
    """At ε = 0 the number of households may be published; one person who founds a household changes it."""

    def stated(unit: str, *kept: sp.Margin) -> sp.Specification:
        return sp.Specification(
            domain=DOMAIN,
            multiverse=sp.Multiverse.of(*kept),
            input_premetric=sp.Hamming(unit),
            output_premetric=sp.Multiplicative(),
            budget=sp.Budget.zero(),
        )

    assert not stated("household").implies(stated("person"))
    fixed = sp.Margin("household")
    assert stated("household", fixed).implies(stated("person", fixed))
    assert stated("household", fixed).per("person").budget.is_zero
