"""Domains hold what is true of every data set, and refuse what was read off one."""

import pytest

from stirred.errors import SpecificationError
from stirred.spec import Constraint, Dependency, Domain, Margin, Multiverse, RecordType, Variable

DOMAIN = Domain(
    name="toy",
    spine=("state", "county", "block"),
    record_types=(
        RecordType(name="household", variables=(Variable(name="size", levels=3), Variable(name="block"))),
    ),
    dependencies=(
        Dependency(record_type="household", of=("size", "kind"), determines=("group",)),
        Dependency(of=("group",), determines=("coarse",)),
    ),
)


def test_closure_follows_chains_and_joint_dependencies() -> None:
    assert DOMAIN.closure("household", ("block",)) == {"block", "county", "state"}
    assert DOMAIN.closure("household", ("size",)) == {"size"}
    assert DOMAIN.closure("household", ("size", "kind")) == {"size", "kind", "group", "coarse"}
    assert DOMAIN.closure("person", ("size", "kind")) == {"size", "kind"}


def test_a_constraint_that_reads_the_file_is_refused() -> None:
    with pytest.raises(SpecificationError, match="reads the confidential file") as caught:
        Constraint(words="no block has more than its counted persons", reads_data=True)
    assert "invariant" in caught.value.fix
    assert Constraint(words="a spouse is at least 15", variables=("age",)).kind == "edit"


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(SpecificationError, match="did you mean household"):
        DOMAIN.record_type("houshold")
    with pytest.raises(SpecificationError, match="did you mean size"):
        DOMAIN.variable("household", "sise")


def test_invariants_are_checked_against_the_domain() -> None:
    fine = Multiverse.of(Margin("household", ("size",)))
    assert fine.check(DOMAIN) is fine
    with pytest.raises(SpecificationError, match="did you mean size"):
        Multiverse.of(Margin("household", ("sizes",))).check(DOMAIN)
    with pytest.raises(SpecificationError, match="unknown record type"):
        Multiverse.of(Margin("person")).check(DOMAIN)


@pytest.mark.parametrize("bad", [{"copies": 0}, {"largest_household": 0}])
def test_impossible_domains(bad: dict[str, int]) -> None:
    with pytest.raises(SpecificationError):
        Domain(name="x", **bad)


def test_levels_by_number_or_name() -> None:
    assert Variable(name="tenure", levels=("owned", "rented")).size == 2
    assert DOMAIN.variable("household", "size").size == 3
    assert DOMAIN.levels("household", "size") is None
