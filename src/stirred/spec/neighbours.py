"""Promises for neighbours only, and when they hold at every distance.

The usual definition of differential privacy speaks of neighbours. A specification speaks of every pair of a universe. The
two say the same where each pair of a universe is joined by a path of neighbours inside it that is as long as its
distance; under invariants this often fails (no two swapped censuses of one universe are neighbours).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from stirred.errors import IncompatibleError, SpecificationError
from stirred.spec.domain import HOUSEHOLDS, PERSON, Domain
from stirred.spec.invariants.margins import Margin, pluralize
from stirred.spec.multiverse import Multiverse
from stirred.spec.premetrics import Hamming, InputPremetric, RecordPremetric
from stirred.spec.units import Constant
from stirred.spec.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Neighbours(InputPremetric):
    """0 between equal data sets, 1 between neighbours (distance 1 of the inner premetric), ∞ between all others.

    With it a promise that is known for neighbours only is stated as what it is, under any output premetric.

    >>> print(Neighbours(Hamming("household")))
    d_Ham(household), neighbours only
    """

    inner: InputPremetric
    whole: ClassVar[bool] = True
    neighbours_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        inner: object = self.inner
        if not isinstance(inner, InputPremetric) or isinstance(inner, Neighbours):
            raise SpecificationError(
                "Neighbours needs an input premetric",
                why="neighbours are the data sets at distance 1 under it",
                fix='Neighbours(Hamming("household"))',
            )

    @property
    def unrestricted(self) -> InputPremetric:
        return self.inner

    @property
    def unit(self) -> str:
        return self.inner.unit

    @property
    def smallest_distance(self) -> str:
        return f"{self.inner.smallest_distance} (neighbours only)"

    def derive_multiverse(self) -> Multiverse | None:
        """Return None: data sets may agree on all that neighbours agree on without being neighbours."""
        return None

    def join(self, other: InputPremetric) -> InputPremetric:
        """Return the neighbours of the joint unit, for which both promises hold."""
        return Neighbours(self.inner.join(other.unrestricted))

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        """Return 1 where neighbours there are neighbours here, else the constant along paths of neighbours."""
        if self == to:
            return Constant(Fraction(1))
        step = self.inner.constant(to, domain, multiverse)
        if isinstance(to, Neighbours) and self.inner.whole and step.factor <= 1:
            return Constant(Fraction(1), step.because)  # distance 1 there is distance 0 or 1 here
        connected = neighbours_connect(domain, multiverse, self.inner)
        if not connected:
            raise IncompatibleError(
                f"cannot restate {self} as {to}",
                why=f"between data sets that are no neighbours it promises nothing, and {connected.because}",
                fix=f"prove the promise at every distance and state it under {self.inner}",
            )
        return Constant(Fraction(1), connected.because, along_paths=True) * step

    def __str__(self) -> str:
        return f"{self.inner}, neighbours only"


def neighbours_connect(domain: Domain, multiverse: Multiverse, premetric: InputPremetric) -> Verdict:
    """Decide whether k steps between neighbours join any two data sets at distance k inside their universe.

    Proved here for records of one kind: k records are changed (or added, or removed) one after the other, which keeps
    their number where only changes are counted, and their number in each part where the invariants are one table.

    >>> from stirred.spec.domain import Domain
    >>> neighbours_connect(Domain(name="toy"), Multiverse.none(), Hamming("household")).answer.value
    'yes'
    """
    if not isinstance(premetric, RecordPremetric) or premetric.copies > 1:
        return Verdict.unknown(
            f"no rule says that neighbours under {premetric} connect the data sets of a universe"
        )
    unit = premetric.record_type
    others = {kind.name for kind in domain.record_types} - {unit}
    if others and not (unit in HOUSEHOLDS and others <= {PERSON}):
        return Verdict.unknown(
            f"the domain holds other records than {pluralize(unit)}, and a change of one may be no step between neighbours"
        )
    if domain.keys(unit) or not all(rule.variables for rule in domain.constraints):
        return Verdict.unknown(
            f"the rules of the domain may forbid the data sets on the way, where only some {pluralize(unit)} have changed"
        )
    free = frozenset({Margin(unit)}) if isinstance(premetric, Hamming) else frozenset[Margin]()
    if not multiverse.invariants <= free and not _is_one_partition(domain, multiverse, premetric):
        return Verdict.unknown(
            f"the invariants may not hold on the way, where only some {pluralize(unit)} have changed"
        )
    return Verdict.yes(
        f"{pluralize(unit)} can be changed one after the other, so neighbours reach every distance"
    )


def _is_one_partition(domain: Domain, multiverse: Multiverse, premetric: RecordPremetric) -> bool:
    """Return whether the invariants fix the number of records in each part of one partition, and no more.

    Then two data sets of a universe agree part by part, and records are changed inside their parts one after the other.
    A table of persons is no partition of the households they live in: one household alone may not be able to change.
    """
    if not isinstance(premetric, Hamming):
        return False  # one record more or less changes the number in its part
    total = Margin(premetric.record_type)
    tables = [invariant for invariant in multiverse if isinstance(invariant, Margin)]
    return len(tables) == len(multiverse) and any(
        table.record_type == premetric.record_type and Multiverse.of(table, total).refines(multiverse, domain)
        for table in tables
    )
