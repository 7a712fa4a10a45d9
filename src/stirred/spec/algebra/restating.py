"""The same promise on another domain, with the variables of one named as those of the other.

A user's census and the catalog's are different domains. Where every variable that a promise speaks of has a counterpart, the
promise can be read on the other domain: each of its data sets is seen through the shared variables, and the others are
not touched by the mechanism. The budget and the premetrics stay; invariants and budget functions change their names.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from stirred.errors import SpecificationError, did_you_mean
from stirred.spec.algebra.stated import Spec
from stirred.spec.algebra.statement import BudgetFunction, Part
from stirred.spec.domain import Domain
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.multiverse import AtLeast, Custom, Invariant, Margin, Multiverse, Restriction
from stirred.spec.neighbours import Neighbours
from stirred.spec.premetrics import InputPremetric, RecordPremetric
from stirred.spec.released import Views, largest_views, make_view


@dataclass(frozen=True, slots=True)
class NameMapping:
    """A mapping of the variables and record types of one domain to those of another."""

    domain: Domain
    variables: Mapping[str, str]
    record_types: Mapping[str, str]

    def kind(self, name: str) -> str:
        found = self.record_types.get(name, name)
        if self.domain.record_types:
            self.domain.record_type(found)  # refuses what is not there, with the nearest name
        return found

    def variable(self, kind: str, name: str) -> str:
        found = self.variables.get(name, name)
        listed = self.domain.record_type(kind).names() if self.domain.has(kind) else frozenset()
        if not listed or found in listed or found in self.domain.spine:
            return found
        raise SpecificationError(
            f"{name!r} has no counterpart among the {kind} variables of {self.domain}",
            why=f"an invariant of the specification reads it, and {self.domain} lists other variables",
            fix=f"map it: {name}=…; {did_you_mean(found, listed)}",
        )

    def margin(self, margin: Margin) -> Margin:
        kind = self.kind(margin.record_type)
        where = {self.variable(kind, name): values for name, values in margin.conditions().items()}
        by = [self.variable(kind, name) for name in margin.by]
        if len({*by}) < len(by):
            raise SpecificationError(
                f"two variables of {margin} get the same name",
                why=f"both are mapped to one variable of {self.domain}",
                fix="map each variable to one of its own",
            )
        # a label describes the table in the words of the first domain, which need not fit here
        return Margin(kind, by, where or None)

    def invariant(self, invariant: Invariant) -> Invariant:
        if isinstance(invariant, Margin):
            return self.margin(invariant)
        if isinstance(invariant, AtLeast):
            than = self.margin(invariant.than) if isinstance(invariant.than, Margin) else invariant.than
            return AtLeast(self.margin(invariant.statistic), than)
        if isinstance(invariant, Custom):
            return replace(invariant, determined_by=tuple(self.margin(m) for m in invariant.determined_by))
        raise SpecificationError(
            f"cannot restate the invariant {invariant}",
            why="only tables, inequalities and declared statistics can be given other names",
            fix="write it as a Margin, or state the specification on the other domain yourself",
        )

    def multiverse(self, multiverse: Multiverse) -> Multiverse:
        return Multiverse(frozenset(self.invariant(invariant) for invariant in multiverse))

    def premetric(self, premetric: InputPremetric) -> InputPremetric:
        if isinstance(premetric, Neighbours):
            return Neighbours(self.premetric(premetric.inner))
        if isinstance(premetric, RecordPremetric):
            return replace(premetric, record_type=self.kind(premetric.record_type))
        return premetric

    def _names(self, kind: str, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.variable(kind, name) for name in names)

    def _restriction(self, kind: str, restriction: Restriction) -> Restriction:
        return Restriction.of({self.variable(kind, n): v for n, v in restriction.conditions})

    def statistic(self, statistic: LargestStratum | None) -> LargestStratum | None:
        if statistic is None:
            return None
        kind = self.kind(statistic.record_type)
        return LargestStratum(
            kind,
            match=self._names(kind, statistic.match),
            hold=self._names(kind, statistic.hold),
            swap=self._names(kind, statistic.swap),
            where=None if statistic.where is None else self._restriction(kind, statistic.where),
            without=[self._restriction(kind, restriction) for restriction in statistic.without],
        )

    def function(self, function: BudgetFunction | None) -> BudgetFunction | None:
        if function is None:
            return None
        words = "" if function.law is not None else function.words
        return replace(function, words=words, statistic=self.statistic(function.statistic))

    def views(self, views: Views) -> Views:
        """Return the views with mapped names; columns without a counterpart are dropped and count as not released."""
        kept = []
        for view in views:
            with suppress(SpecificationError):  # a restriction or a record type that the other domain lacks
                named = [self.variables.get(name, name) for name in view.by]
                part = self.margin(Margin(view.record_type, (), view.where))
                kept.append(make_view(self.domain, part.record_type, named, part.conditions()))
        return largest_views(self.domain, kept)

    def part(self, part: Part) -> Part:
        return replace(
            part,
            input_premetric=self.premetric(part.input_premetric),
            varies=self.function(part.varies),
            multiverse=None if part.multiverse is None else self.multiverse(part.multiverse),
            measures=tuple(self.margin(table) for table in part.measures),
        )


def change_domain(
    spec: Spec,
    domain: Domain,
    mapping: Mapping[str, str] | None = None,
    *,
    record_types: Mapping[str, str] | None = None,
) -> Spec:
    """Return the specification with the names of another domain; equal names need no entry in the mapping.

    >>> from stirred.spec import Budget, Hamming, Multiplicative, Specification
    >>> from stirred.spec.domain import RecordType, Variable
    >>> mine = Specification(
    ...     domain=Domain(name="mine"), multiverse=Multiverse.of(Margin("household", ("ward",))),
    ...     input_premetric=Hamming("household"), output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> tracts = RecordType(name="household", variables=(Variable(name="tract"), Variable(name="tenure")))
    >>> print(change_domain(mine, Domain(name="theirs", record_types=(tracts,)), {"ward": "tract"}))
    theirs | {households by tract} | d_Ham(household) | D_mult | ε = 1.0000
    """
    names = NameMapping(domain, dict(mapping or {}), dict(record_types or {}))
    told = ", ".join(
        f"{mine} = {theirs}" for mine, theirs in sorted(names.variables.items()) if mine != theirs
    )
    note = f"restated from {spec.domain} on {domain}" + (f" with {told}" if told else "")
    return replace(
        spec,
        domain=domain,
        multiverse=names.multiverse(spec.multiverse),
        input_premetric=names.premetric(spec.input_premetric),
        varies=names.function(spec.varies),
        parts=tuple(names.part(part) for part in spec.parts),
        measures=tuple(names.margin(table) for table in spec.measures),
        released=names.views(spec.released),
        notes=tuple(sorted({*spec.notes, note})),
    )
