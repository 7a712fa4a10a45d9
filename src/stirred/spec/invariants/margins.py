"""Invariants: tables of counts, and other statistics that tables determine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from stirred.errors import SpecificationError, require_kind
from stirred.languages import Phrase, unit

if TYPE_CHECKING:
    import pyarrow as pa


class SupportsCounts(Protocol):
    """The protocol by which spec reads a census: tables of counts."""

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> "pa.Table": ...


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction to records whose variables take one of these values.

    >>> print(Restriction.of({"kind": ["gq"]}))
    kind = gq
    """

    conditions: tuple[tuple[str, tuple[str, ...]], ...]

    @staticmethod
    def of(conditions: "Mapping[str, Iterable[str]] | Restriction") -> "Restriction":
        if isinstance(conditions, Restriction):
            return conditions
        return Restriction(
            tuple((name, tuple(sorted({*values}))) for name, values in sorted(conditions.items()))
        )

    def as_dict(self) -> dict[str, tuple[str, ...]]:
        return dict(self.conditions)

    def words(self) -> str:
        """Return the conditions in words."""
        each: list[str] = [describe_condition(name, values) for name, values in self.conditions]
        return reduce(_join_and, each) if each else ""

    def __str__(self) -> str:
        return self.words()


def describe_condition(variable: str, levels: Sequence[str]) -> Phrase:
    """Describe the condition that a variable takes one of these values.

    >>> describe_condition("kind", ("gq", "hh"))
    'kind = gq or hh'
    """
    values = reduce(_join_or, levels) if levels else ""
    return Phrase("invariant.condition", variable=variable, values=values)


def _join_or(first: str, second: str) -> str:
    return Phrase("lists.either", first=first, second=second)


def _join_and(first: str, second: str) -> str:
    return Phrase("lists.both", first=first, second=second)


class Invariant:
    """A statistic released exactly, hence unprotected; subclass it (frozen and hashable) for one of your own.

    `needs` are the margins that determine it: enough for every rule of `refines`.
    """

    __slots__ = ()

    def words(self) -> str:
        """Return the invariant in words; a ``Phrase`` is shown in the language of the card."""
        raise NotImplementedError

    def needs(self) -> "tuple[Margin, ...]":
        raise NotImplementedError

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        raise NotImplementedError

    def identity(self) -> str:
        """Return a fixed text that identifies the invariant; it goes into digests, and labels do not change it."""
        return f"{type(self).__name__}:{self.words()}"

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True, slots=True)
class Margin(Invariant):
    """A table of counts of one record type over some variables; over none it is the total.

    >>> print(Margin("household", ("size", "block")))
    households by block × size
    """

    record_type: str
    by: tuple[str, ...] = ()
    where: Restriction | None = None
    label: str = field(default="", compare=False)  # a name, no part of the meaning

    def __init__(
        self,
        record_type: str,
        by: Iterable[str] = (),
        where: "Restriction | Mapping[str, Iterable[str]] | None" = None,
        label: str = "",
    ) -> None:
        if isinstance(by, str):
            raise SpecificationError(
                f"by={by!r} is one text, not a list of variables",
                why="each letter would be read as a variable",
                fix=f'by=("{by}",)',
            )
        require_kind(
            "the record type of a margin",
            record_type,
            str,
            wanted="a text",
            fix='Margin("household", ("block",))',
            error=SpecificationError,
        )
        object.__setattr__(self, "record_type", record_type)
        object.__setattr__(self, "by", tuple(sorted({*by})))
        object.__setattr__(self, "where", Restriction.of(where) if where else None)
        object.__setattr__(self, "label", label)

    def conditions(self) -> dict[str, tuple[str, ...]]:
        return self.where.as_dict() if self.where else {}

    def needs(self) -> "tuple[Margin, ...]":
        return (self,)

    def words(self) -> str:
        if self.label:
            return self.label
        return describe_table(self.record_type, " × ".join(self.by), self.where)

    def identity(self) -> str:
        return f"Margin:{self.record_type}|{','.join(self.by)}|{self.where or ''}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        return counts.counts(self.record_type, self.by, self.conditions() or None)

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True, slots=True)
class Custom(Invariant):
    """Any other statistic that declares the margins which determine it."""

    name: str
    determined_by: tuple[Margin, ...] = ()
    description: str = field(default="", compare=False)

    def needs(self) -> tuple[Margin, ...]:
        return self.determined_by

    def words(self) -> str:
        return self.description or self.name

    def identity(self) -> str:
        return f"Custom:{self.name}|{';'.join(margin.identity() for margin in self.determined_by)}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        del counts  # what it would be computed from; this class has no rule for it
        raise SpecificationError(
            f"cannot compute the invariant {self.name!r}",
            why="a Custom invariant states what determines it, not how it is computed",
            fix="subclass Invariant and write realised()",
        )

    def __str__(self) -> str:
        return self.words()


def describe_table(record_type: str, variables: str, where: Restriction | None = None) -> Phrase:
    """Describe a table of counts; without variables it is the number of records.

    >>> describe_table("household", "size", Restriction.of({"kind": ["gq", "hh"]}))
    'households by size where kind = gq or hh'
    """
    ones = unit(record_type, "ones")
    if where:
        told = where.words()
        if variables:
            return Phrase("invariant.table_where", ones=ones, variables=variables, condition=told)
        return Phrase("invariant.total_where", ones=ones, condition=told)
    if variables:
        return Phrase("invariant.table", ones=ones, variables=variables)
    return Phrase("invariant.total", ones=ones)


def pluralize(record_type: str) -> str:
    """Return the plural of a record type; group quarters stay as they are.

    >>> pluralize("person"), pluralize("group quarters")
    ('persons', 'group quarters')
    """
    return record_type if record_type.endswith("s") else record_type + "s"
