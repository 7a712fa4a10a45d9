"""The data sets that could have been collected: who is eligible for protection."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from stirred.errors import SpecificationError, did_you_mean, require_kind

PERSON = "person"
HOUSEHOLD, UNIT, QUARTERS = "household", "housing unit", "group quarters"
HOUSEHOLDS = frozenset({HOUSEHOLD, UNIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A column of one record type; its levels by number, by name, or not stated.

    >>> Variable(name="tenure", levels=("owned", "rented")).size
    2
    """

    name: str
    levels: int | tuple[str, ...] | None = None
    label: str = ""

    @property
    def size(self) -> int | None:
        return len(self.levels) if isinstance(self.levels, tuple) else self.levels


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """Persons, households, housing units, group quarters: one file of the census."""

    name: str
    variables: tuple[Variable, ...] = ()

    def names(self) -> frozenset[str]:
        return frozenset(variable.name for variable in self.variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A functional dependency inside a record type: block → block group. An empty record type means every one.

    ``fixed``: the map is the same in every data set of the domain, as for geography. An identifier determines its
    record in each data set, but another one in another data set: such a dependency is not fixed, and a table by
    identifier determines nothing else.
    """

    record_type: str = ""
    of: tuple[str, ...]
    determines: tuple[str, ...]
    fixed: bool = True

    def __str__(self) -> str:
        return f"{' × '.join(self.of)} → {', '.join(self.determines)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A condition that every data set of the domain meets: an edit constraint, a structural zero.

    ``variables`` are those that the condition restricts in each record. At least two combinations of their values that
    differ in every variable must meet it. Without variables nothing is known about the condition, so no pair of data
    sets is taken to meet it. A constraint is not an invariant (the paper's Remark 3). A condition that was read from
    the confidential file is an invariant, and is refused here.
    """

    words: str
    record_type: str = ""
    variables: tuple[str, ...] = ()
    kind: Literal["edit", "structural zero", "admissible values", "size"] = "edit"
    reads_data: bool = False

    def __post_init__(self) -> None:
        if self.reads_data:
            raise SpecificationError(
                f"this is no constraint of the domain: {self.words}",
                why="it reads the confidential file, so it holds for some data sets and not for others",
                fix="declare what it reads as an invariant of the multiverse",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    r"""The domain $\mathcal X$: record types, variables, geography, and what holds for every data set.

    >>> domain = Domain(name="CEF", spine=("state", "county", "block"))
    >>> sorted(domain.closure("household", ["county"]))
    ['county', 'state']
    """

    name: str
    record_types: tuple[RecordType, ...] = ()
    spine: tuple[str, ...] = ()  # coarsest → finest; each level determines the ones before it
    dependencies: tuple[Dependency, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    copies: int = 1  # the largest number of records one contributor was imputed into
    largest_household: int | None = None
    # a household variable that counts its persons exactly, where there is one; all others live in group quarters
    size_variable: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        require_kind(
            "the name of a domain",
            self.name,
            str,
            wanted="a text",
            fix='Domain(name="households")',
            error=SpecificationError,
        )
        if self.copies < 1:
            raise SpecificationError(
                f"copies={self.copies} is too small",
                why="every contributor has at least one record",
                fix="give copies=1 or more",
            )
        if self.largest_household is not None and self.largest_household < 1:
            raise SpecificationError(
                f"largest_household={self.largest_household} is too small",
                why="the largest household has at least one person",
                fix="give a whole number of at least 1, or leave it out",
            )

    def record_type(self, name: str) -> RecordType:
        for record_type in self.record_types:
            if record_type.name == name:
                return record_type
        known = [record_type.name for record_type in self.record_types]
        raise SpecificationError(
            f"unknown record type {name!r}",
            why=f"the domain {self.name} has no such record type",
            fix=did_you_mean(name, known),
        )

    def has(self, record_type: str) -> bool:
        return any(known.name == record_type for known in self.record_types)

    def variable(self, record_type: str, name: str) -> Variable:
        variables = self.record_type(record_type).variables
        for variable in variables:
            if variable.name == name:
                return variable
        known = [variable.name for variable in variables]
        raise SpecificationError(
            f"unknown variable {name!r}",
            why=f"a {record_type} of the domain {self.name} has no such variable",
            fix=did_you_mean(name, known),
        )

    def levels(self, record_type: str, name: str) -> tuple[str, ...] | None:
        """Return the names of a variable's levels, or None where the domain does not state them."""
        for known in self.record_types:
            if known.name == record_type:
                for variable in known.variables:
                    if variable.name == name and isinstance(variable.levels, tuple):
                        return variable.levels
        return None

    def identifiers(self, record_type: str) -> frozenset[str]:
        """Return the variables that determine a whole record by a declared dependency, without geography."""
        if not self.has(record_type):
            return frozenset()
        names = self.record_type(record_type).names()
        keys = {
            rule.of[0] for rule in self.dependencies if rule.record_type == record_type and len(rule.of) == 1
        }
        every = self.rules(record_type) + self.keys(record_type)
        return frozenset(k for k in keys - {*self.spine} if names <= _closure(every, (k,)))

    def rules(self, record_type: str) -> tuple[Dependency, ...]:
        """Return the functional dependencies of a record type that all data sets share, with those of the spine."""
        return _rules(tuple(self.spine), tuple(self.dependencies), record_type)

    def keys(self, record_type: str) -> tuple[Dependency, ...]:
        """Return the functional dependencies that hold inside each data set but differ between data sets."""
        return tuple(d for d in self.dependencies if not d.fixed and d.record_type in {"", record_type})

    def closure(
        self, record_type: str, variables: "frozenset[str] | tuple[str, ...] | list[str]"
    ) -> frozenset[str]:
        """Return all variables that these determine in every data set (the attribute closure)."""
        return _closure(self.rules(record_type), variables)

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=1024)
def _rules(
    spine: tuple[str, ...], dependencies: tuple[Dependency, ...], record_type: str
) -> tuple[Dependency, ...]:
    """Return the fixed dependencies of a record type; cached, because a witness asks for them very often."""
    steps = tuple(
        Dependency(record_type=record_type, of=(fine,), determines=(coarse,))
        for coarse, fine in pairwise(spine)
    )
    return steps + tuple(d for d in dependencies if d.fixed and d.record_type in {"", record_type})


def _closure(rules: Iterable[Dependency], variables: Iterable[str]) -> frozenset[str]:
    known = set(variables)
    every = tuple(rules)
    grown = True
    while grown:
        grown = False
        for rule in every:
            if known.issuperset(rule.of) and not known.issuperset(rule.determines):
                known.update(rule.determines)
                grown = True
    return frozenset(known)
