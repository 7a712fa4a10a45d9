"""Which invariants determine which, held against linear algebra on an enumerated domain."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.spec import (
    Answer,
    AtLeast,
    Constraint,
    Custom,
    Dependency,
    Domain,
    Margin,
    Multiverse,
    RecordType,
    Variable,
)

BLOCKS = {"b1": "c1", "b2": "c1", "b3": "c2", "b4": "c2"}
LEVELS = {"kind": ("occupied", "vacant"), "tenure": ("owned", "rented"), "size": ("1", "2", "3")}
VARIABLES = ("county", "block", *LEVELS)
TOY = Domain(
    name="toy",
    spine=("county", "block"),
    record_types=(
        RecordType(
            name="household",
            variables=(
                Variable(name="county", levels=("c1", "c2")),
                Variable(name="block", levels=tuple(BLOCKS)),
                *(Variable(name=name, levels=levels) for name, levels in LEVELS.items()),
            ),
        ),
    ),
)
CELLS = [
    {"county": county, "block": block, **dict(zip(LEVELS, rest, strict=True))}
    for block, county in BLOCKS.items()
    for rest in product(*LEVELS.values())
]

RESTRICTING = {"county": ("c1", "c2"), "block": ("b1", "b4"), **LEVELS}
restrictions = st.dictionaries(
    st.sampled_from(["kind", "tenure", "county", "block"]), st.sampled_from([0, 1]), max_size=2
).map(lambda chosen: {name: (RESTRICTING[name][i],) for name, i in chosen.items()} or None)
margins = st.builds(
    lambda by, where: Margin("household", by, where),
    st.sets(st.sampled_from(VARIABLES), max_size=3),
    restrictions,
)
multiverses = st.lists(margins, max_size=3).map(lambda chosen: Multiverse.of(*chosen))


def rows(margin: Margin) -> list[list[Fraction]]:
    """The margin as a linear map from cell counts to table cells."""
    found: dict[tuple[str, ...], list[Fraction]] = {}
    for i, cell in enumerate(CELLS):
        if all(cell[v] in values for v, values in margin.conditions().items()):
            key = tuple(cell[v] for v in margin.by)
            found.setdefault(key, [Fraction(0)] * len(CELLS))[i] = Fraction(1)
    return list(found.values())


def rank(matrix: list[list[Fraction]]) -> int:
    """Exact rank modulo a large prime; a rank mod p never exceeds the true one, and 0/1 tables this small reach it."""
    prime = 2_147_483_647
    work = [[int(x) for x in row] for row in matrix]
    found = 0
    for column in range(len(CELLS)):
        pivot = next((i for i in range(found, len(work)) if work[i][column] % prime), None)
        if pivot is None:
            continue
        work[found], work[pivot] = work[pivot], work[found]
        inverse = pow(work[found][column], -1, prime)
        work[found] = [x * inverse % prime for x in work[found]]
        for i in range(len(work)):
            if i != found and work[i][column]:
                factor = work[i][column]
                work[i] = [(x - factor * y) % prime for x, y in zip(work[i], work[found], strict=True)]
        found += 1
    return found


def truly_refines(finer: Multiverse, coarser: Multiverse) -> bool:
    """Tables of counts determine another table exactly when its rows lie in the span of theirs."""
    given_rows = [row for margin in finer for row in rows(margin)]
    wanted = [row for margin in coarser for row in rows(margin)]
    return rank(given_rows) == rank(given_rows + wanted)


@settings(max_examples=150, deadline=None)
@given(multiverses, multiverses)
def test_every_yes_and_every_no_is_true(finer: Multiverse, coarser: Multiverse) -> None:
    verdict = finer.refines(coarser, TOY)
    if verdict.answer is not Answer.UNKNOWN:
        assert bool(verdict) == truly_refines(finer, coarser), verdict


@settings(max_examples=150, deadline=None)
@given(multiverses, multiverses, multiverses)
def test_refines_is_a_partial_order_up_to_equivalence(a: Multiverse, b: Multiverse, c: Multiverse) -> None:
    assert a.refines(a, TOY)
    assert (a & b).refines(a, TOY)
    assert a.refines(Multiverse.none(), TOY)
    if a.refines(b, TOY) and b.refines(c, TOY):
        assert a.refines(c, TOY).answer is not Answer.NO
    # joining is the greatest common refinement
    if c.refines(a, TOY) and c.refines(b, TOY):
        assert c.refines(a & b, TOY)


plain = st.sets(st.sampled_from(VARIABLES), max_size=3).map(lambda by: Multiverse.of(Margin("household", by)))


@settings(deadline=None)
@given(plain, plain, plain)
def test_full_tables_are_always_decided_and_transitively(a: Multiverse, b: Multiverse, c: Multiverse) -> None:
    assert a.refines(b, TOY).answer is not Answer.UNKNOWN
    if a.refines(b, TOY) and b.refines(c, TOY):
        assert a.refines(c, TOY)


def households(*by: str, **where: str) -> Multiverse:
    return Multiverse.of(Margin("household", by, {k: (v,) for k, v in where.items()} or None))


def test_block_determines_county_and_says_why() -> None:
    verdict = households("block").refines(households("county"), TOY)
    assert verdict
    assert "block → county" in verdict.because
    back = households("county").refines(households("block"), TOY)
    assert back.answer is Answer.NO
    assert "exchanging block" in back.because


def test_the_order_of_variables_and_labels_do_not_matter() -> None:
    assert Margin("household", ("size", "block")) == Margin("household", ("block", "size"), label="a name")


def test_a_table_over_the_restricted_variable_determines_the_restricted_one() -> None:
    assert households("block", "kind").refines(households("block", kind="vacant"), TOY)
    assert households("block").refines(households("block", kind="vacant"), TOY).answer is Answer.NO
    assert households("block", kind="vacant").refines(households("block"), TOY).answer is Answer.NO
    both = households("block", kind="vacant") & households("block", kind="occupied")
    assert both.refines(households("county"), TOY)


def test_a_block_of_another_county_is_never_taken_for_a_witness() -> None:
    # no household stands in block b4 (county c2) and in county c1: the empty table is determined by anything
    empty = households("tenure", county="c1", block="b4")
    assert Multiverse.none().refines(empty, TOY).answer is Answer.UNKNOWN
    # the given table leaves out block b1 only, which is in c1: all of c2 is seen
    seen = Multiverse.of(
        Margin("household", ("county", "tenure"), {"block": ("b2", "b3", "b4")}),
        Margin("household", ("county",)),
    )
    assert seen.refines(households("tenure", county="c2"), TOY).answer is not Answer.NO


def test_other_record_types_do_not_help() -> None:
    quarters = Multiverse.of(Margin("group quarters", ("block", "type")))
    assert households("block").refines(quarters, TOY).answer is Answer.NO


LINKED = Domain(
    name="linked",
    spine=("county", "block"),
    record_types=(
        RecordType(
            name="household", variables=tuple(Variable(name=n) for n in ("county", "block", "size", "tenure"))
        ),
        RecordType(name="person", variables=tuple(Variable(name=n) for n in ("county", "block", "age"))),
    ),
)
SIZED = Domain(name="sized", spine=LINKED.spine, record_types=LINKED.record_types, size_variable="size")


def test_persons_follow_from_households_only_where_the_size_is_proved_exact() -> None:
    persons = Multiverse.of(Margin("person", ("county",)))
    sized = households("block", "size")
    assert sized.refines(persons, LINKED).answer is Answer.UNKNOWN
    assert sized.refines(persons, SIZED)
    assert households("block").refines(persons, SIZED).answer is Answer.NO
    assert sized.refines(Multiverse.of(Margin("person", ("age",))), SIZED).answer is Answer.UNKNOWN
    # a person's tenure column need not be the household's
    by_tenure = Multiverse.of(Margin("person", ("tenure",)))
    assert households("tenure", "size").refines(by_tenure, SIZED).answer is Answer.UNKNOWN
    # people in group quarters are in no household
    quarters = replace(SIZED, record_types=(*SIZED.record_types, RecordType(name="group quarters")))
    assert not sized.refines(persons, quarters)


def test_inequalities() -> None:
    block, county = (AtLeast(Margin("household", (area,)), 1) for area in ("block", "county"))
    some = Multiverse.of(block)
    assert households("block").refines(some, TOY)
    assert some.refines(Multiverse.of(county), TOY)
    # another block of the same county
    assert Multiverse.of(county).refines(some, TOY).answer is Answer.NO
    assert some.refines(households("block"), TOY).answer is Answer.NO
    assert households("county").refines(some, TOY).answer is Answer.NO
    # two blocks of one county with a household each, against one such block: no block has two
    two = Multiverse.of(AtLeast(Margin("household", ("county",)), 2))
    assert not Multiverse.of(AtLeast(Margin("household", ("block",)), 2)).refines(two, TOY)


def test_custom_invariants_declare_what_determines_them() -> None:
    median = Custom("median size by county", (Margin("household", ("county", "size")),))
    assert households("block", "size").refines(Multiverse.of(median), TOY)
    assert households("block").refines(Multiverse.of(median), TOY).answer is Answer.UNKNOWN
    # what it is a function of bounds what it can determine
    assert Multiverse.of(median).refines(households("block"), TOY).answer is Answer.NO
    assert Multiverse.of(median).refines(households("size"), TOY).answer is Answer.UNKNOWN


def test_a_constraint_on_the_variables_turns_a_no_into_unknown() -> None:
    tied = Domain(
        name="tied",
        record_types=TOY.record_types,
        spine=TOY.spine,
        constraints=(
            Constraint(words="one tenure per block", record_type="household", variables=("tenure", "block")),
        ),
    )
    assert households("block").refines(households("block", "tenure"), tied).answer is Answer.UNKNOWN
    assert households("block").refines(households("block", "size"), tied).answer is Answer.NO


@pytest.mark.parametrize("dependency", [Dependency(of=("size",), determines=("tenure",)), None])
def test_declared_dependencies_are_used(dependency: Dependency | None) -> None:
    domain = Domain(name="d", record_types=TOY.record_types, dependencies=(dependency,) if dependency else ())
    assert bool(households("size").refines(households("tenure"), domain)) == (dependency is not None)
