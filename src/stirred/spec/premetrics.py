"""Input premetrics: the distance of data sets, and with it the unit that is protected.

Distances are taken on the joint file: a person's record carries its household's variables, and a unit that differs
without any person differing (a vacant unit, an empty facility) counts as one record. Otherwise two censuses that
differ only in tenure or vacancy would be at person distance 0, and no constant would relate persons and households.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from stirred.errors import IncompatibleError, SpecificationError, require_kind
from stirred.spec.domain import HOUSEHOLDS, PERSON, Domain
from stirred.spec.invariants.margins import Margin, pluralize
from stirred.spec.multiverse import Multiverse
from stirred.spec.units import Constant, Link, find_record_constant


class InputPremetric:
    """A distance of data sets whose unit is what differs at distance 1; subclass it (frozen) for one of your own."""

    __slots__ = ()

    whole: ClassVar[bool] = False  # every distance is 0, 1, 2, … or ∞, which (ε, δ) needs
    neighbours_only: ClassVar[bool] = False  # every distance is 0, 1 or ∞

    @property
    def unrestricted(self) -> "InputPremetric":
        """Return the premetric without a restriction to neighbours."""
        return self

    @property
    def unit(self) -> str:
        raise NotImplementedError

    @property
    def smallest_distance(self) -> str:
        """Return in words what differs at distance 1."""
        return f"one {self.unit}"

    def derive_multiverse(self) -> Multiverse | None:
        """Return the invariants that data sets share exactly where their distance is finite, or None if unstated."""
        return None

    def join(self, other: "InputPremetric") -> "InputPremetric":
        """Return the premetric in which specifications under both are accounted together."""
        if self == other:
            return self
        if other.neighbours_only:
            return other.join(self)
        raise IncompatibleError(
            "cannot compose these specifications",
            why=f"no rule relates {self} and {other}",
            fix="state both under one input premetric first: spec.per(unit)",
        )

    def constant(self, to: "InputPremetric", domain: Domain, multiverse: Multiverse) -> Constant:
        """Return the smallest known c with d_self ≤ c·d_to in every universe; raise where none is known."""
        if self == to:
            return Constant(Fraction(1))
        if to.neighbours_only:  # neighbours are at distance 1, and the rest is infinitely far apart
            return self.constant(to.unrestricted, domain, multiverse)
        raise IncompatibleError(
            f"cannot restate {self} as {to}",
            why="no rule relates the two",
            fix="write constant() in your input premetric, or state the specification under the other one",
        )


@dataclass(frozen=True, slots=True)
class RecordPremetric(InputPremetric):
    """A distance that counts records of one type.

    ``link`` matters for persons only. "kept": a person's change touches one household, and a move from one household
    to another counts as two changes. "free": a move is one change, and touches two households. ``copies`` > 1 counts
    contributors before imputation, each copied into at most that many records.
    """

    record_type: str
    link: Link = "kept"
    copies: int = 1
    symbol: ClassVar[str] = "d"
    whole: ClassVar[bool] = True
    keeps_number: ClassVar[bool] = (
        False  # data sets with different numbers of records are infinitely far apart
    )

    def __post_init__(self) -> None:
        require_kind(
            "the unit",
            self.record_type,
            str,
            wanted="a record type",
            fix=f'{type(self).__name__}("household")',
            error=SpecificationError,
        )
        if self.copies < 1:
            raise SpecificationError(
                f"copies={self.copies} is too small",
                why="every contributor has at least one record",
                fix="give copies=1 or more",
            )
        if self.link not in ("kept", "free"):
            raise SpecificationError(
                f"unknown link {self.link!r}",
                why="a person either stays in one household or may move to another",
                fix='give link="kept" or link="free"',
            )
        if self.record_type != PERSON:
            object.__setattr__(self, "link", "kept")

    @property
    def unit(self) -> str:
        return self.record_type

    @property
    def smallest_distance(self) -> str:
        whose = f" with up to {self.copies} imputed copies" if self.copies > 1 else ""
        return f"one {self.record_type}{whose}: {self.change}"

    @property
    def change(self) -> str:
        raise NotImplementedError

    def join(self, other: InputPremetric) -> InputPremetric:
        if not isinstance(other, RecordPremetric):
            return InputPremetric.join(self, other)
        units = {self.record_type, other.record_type}
        if (
            len(units) > 1
            and not (PERSON in units and units <= HOUSEHOLDS | {PERSON})
            and not units <= HOUSEHOLDS
        ):
            return InputPremetric.join(self, other)
        unit = PERSON if PERSON in units else min(units)
        people = [p for p in (self, other) if p.record_type == PERSON]
        link: Link = "kept" if not people or any(p.link == "kept" for p in people) else "free"
        kind = Hamming if Hamming in (type(self), type(other)) else type(self)
        return kind(unit, link=link, copies=max(self.copies, other.copies))

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        near = to.unrestricted
        if not isinstance(near, RecordPremetric):
            return InputPremetric.constant(self, to, domain, multiverse)
        return find_record_constant(self, near, domain, multiverse, neighbours_only=to.neighbours_only)

    def __str__(self) -> str:
        more = ", may move" if self.link == "free" else ""
        copied = f", {self.copies} copies" if self.copies > 1 else ""
        return f"{self.symbol}({self.record_type}{more}{copied})"


@dataclass(frozen=True, slots=True)
class Hamming(RecordPremetric):
    r"""Change one record: $d(x, x') = |x \ominus x'|/2$ if $|x| = |x'|$, else ∞ (Equation 5; order ignored).

    >>> print(Hamming("household"), "-", Hamming("household").smallest_distance)
    d_Ham(household) - one household: its record changed
    """

    symbol: ClassVar[str] = "d_Ham"
    keeps_number: ClassVar[bool] = True

    @property
    def change(self) -> str:
        return "its record changed"

    def derive_multiverse(self) -> Multiverse:
        """Return the number of records: data sets of different size are infinitely far apart."""
        return Multiverse.of(Margin(self.record_type))

    __str__ = RecordPremetric.__str__


@dataclass(frozen=True, slots=True)
class SymmetricDifference(RecordPremetric):
    r"""Add or remove one record: $d(x, x') = |x \ominus x'|$. One changed record is at distance 2.

    >>> print(SymmetricDifference("person"))
    d_Sym(person)
    """

    symbol: ClassVar[str] = "d_Sym"

    def derive_multiverse(self) -> Multiverse:
        return Multiverse.none()

    @property
    def change(self) -> str:
        return f"added to or removed from the {pluralize(self.record_type)}"

    __str__ = RecordPremetric.__str__


__all__ = ["Constant", "Hamming", "InputPremetric", "RecordPremetric", "SymmetricDifference"]
