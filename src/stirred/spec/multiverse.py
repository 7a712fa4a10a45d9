"""The multiverse that invariants induce: where protection extends."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from stirred.errors import SpecificationError, require_kind
from stirred.spec.domain import Domain
from stirred.spec.invariants.inequalities import AtLeast
from stirred.spec.invariants.margins import Custom, Invariant, Margin, Restriction, SupportsCounts, pluralize
from stirred.spec.refinement import refines
from stirred.spec.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Multiverse:
    r"""The universes $\mathcal D_c(x) = \{x' : c(x') = c(x)\}$ of a set of invariants, for all their values.

    >>> print(Multiverse.of(Margin("person", ("state",))) & Multiverse.of(Margin("household", ("block",))))
    {households by block, persons by state}
    """

    invariants: frozenset[Invariant] = frozenset()

    @staticmethod
    def of(*invariants: Invariant) -> "Multiverse":
        for invariant in invariants:
            require_kind(
                "an invariant",
                invariant,
                Invariant,
                wanted="an Invariant",
                fix='Multiverse.of(Margin("household", ("block",)))',
                error=SpecificationError,
            )
        return Multiverse(frozenset(invariants))

    @staticmethod
    def realised_only(values: object) -> NoReturn:
        """Refuse a single universe, which is one accidental value of the invariants (Section 2.1)."""
        del values
        refuse_single_universe()

    @staticmethod
    def none() -> "Multiverse":
        """Return the vacuous multiverse {X}, which has no invariant."""
        return Multiverse()

    @property
    def is_vacuous(self) -> bool:
        return not self.invariants

    def __and__(self, other: "Multiverse | Invariant") -> "Multiverse":
        """Return the multiverse of both sets of invariants."""
        more = frozenset([other]) if isinstance(other, Invariant) else other.invariants
        return Multiverse(self.invariants | more)

    def __iter__(self) -> Iterator[Invariant]:
        return iter(sorted(self.invariants, key=lambda invariant: (invariant.words(), invariant.identity())))

    def __len__(self) -> int:
        return len(self.invariants)

    def check(self, domain: Domain) -> "Multiverse":
        """Return this multiverse if the domain has every record type and variable it names; otherwise raise.

        A domain without record types, or a record type without variables, is not checked.
        """
        tables = [
            needed for invariant in self if not isinstance(invariant, Custom) for needed in invariant.needs()
        ]
        for margin in tables if domain.record_types else ():
            kind = domain.record_type(margin.record_type)
            for name in (*margin.by, *margin.conditions()) if kind.variables else ():
                if name not in domain.spine:
                    domain.variable(margin.record_type, name)
        return self

    def refines(self, other: "Multiverse", domain: Domain) -> Verdict:
        """Decide whether every universe of this multiverse lies in one of the other's."""
        return refines(self, other, domain)

    def __str__(self) -> str:
        return "{" + ", ".join(invariant.words() for invariant in self) + "}"


def refuse_single_universe() -> NoReturn:
    """Refuse a specification for one realised universe only, with the paper's reason (Section 2.1)."""
    raise SpecificationError(
        "a specification covers a multiverse, not one universe",
        why="the value of an invariant is accidental, only its being published is essential: "
        "the promise must hold whatever value it takes",
        fix="give Multiverse.of(the invariants); their realised values go into the receipt",
    )


__all__ = [
    "AtLeast",
    "Custom",
    "Invariant",
    "Margin",
    "Multiverse",
    "Restriction",
    "SupportsCounts",
    "pluralize",
    "refuse_single_universe",
]
