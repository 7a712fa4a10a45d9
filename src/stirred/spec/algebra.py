"""Derive one specification from others (composition, refinement, change of unit, chaining), and keep a run's account."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Generic, Literal

from stirred.errors import BudgetError, IncompatibleError, SpecificationError, did_you_mean, require_kind
from stirred.spec.budgets import Budget
from stirred.spec.domain import Domain
from stirred.spec.exact import parse_fraction, write_fraction
from stirred.spec.input_premetrics import (
    Exchanges,
    ExchangeShape,
    InputPremetric,
    Neighbours,
    RecordPremetric,
    find_exchanges,
    refines_within_reach,
)
from stirred.spec.invariants import (
    AtLeast,
    Custom,
    Invariant,
    Margin,
    Restriction,
    Views,
    join_views,
    largest_views,
    make_view,
)
from stirred.spec.laws import LargestStratum
from stirred.spec.multiverse import Multiverse
from stirred.spec.notebook import write_html_table
from stirred.spec.output_premetrics import Approximate, Multiplicative, OutputPremetric, make_conversion_error
from stirred.spec.statement import (
    BudgetFunction,
    Part,
    Spec,
    account,
    build_joint_function,
    change_part_unit,
    convert_and_compose,
    is_free,
)
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.search import implies

# Composition, refinement and change of unit: how one specification follows from others.


def _rebuild(
    spec: Spec,
    parts: tuple[Part, ...],
    *,
    multiverse: Multiverse | None = None,
    input_premetric: InputPremetric | None = None,
    output_premetric: OutputPremetric | None = None,
    exactly: bool = False,
    kept: frozenset[str] | None = None,
) -> Spec:
    """Return the specification of these parts under a changed flavor, with its budget computed anew.

    The δ of an (ε, δ) premetric is what the parts add up to, unless the premetric is asked for ``exactly``.
    """
    flavor_multiverse = spec.multiverse if multiverse is None else multiverse
    unit = input_premetric or spec.input_premetric
    measure, budget, notes = convert_and_compose(
        parts,
        domain=spec.domain,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        kind=output_premetric or spec.output_premetric,
    )
    if exactly and output_premetric is not None:
        found = measure.convert(budget, output_premetric)
        if found is None:
            raise make_conversion_error(measure, output_premetric)
        measure, budget = output_premetric, found

    def total(taken: Sequence[Part]) -> Budget:
        return account(
            taken,
            domain=spec.domain,
            multiverse=flavor_multiverse,
            input_premetric=unit,
            output_premetric=measure,
        )[0]

    same = unit == spec.input_premetric and measure == spec.output_premetric
    alone = len(parts) == 1 and parts[0] == replace(
        parts[0],
        input_premetric=unit,
        output_premetric=measure,
        multiverse=None if parts[0].multiverse is None else flavor_multiverse,
    )
    return replace(
        spec,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        output_premetric=measure,
        budget=budget,
        bounds=spec.bounds if same else (),
        notes=tuple(sorted({*(_find_own_notes(spec) if kept is None else kept), *notes})),
        parts=() if alone else parts,
        varies=build_joint_function(
            [part for part in parts if not is_free(part, spec.domain, flavor_multiverse)], measure, total
        ),
        measures=parts[0].measures if len(parts) == 1 else (),
    )


def _find_own_notes(spec: Spec) -> frozenset[str]:
    """Return the notes of a specification without those that its current unit and premetric gave rise to."""
    try:
        _, _, derived = convert_and_compose(
            spec.statements,
            domain=spec.domain,
            multiverse=spec.multiverse,
            input_premetric=spec.input_premetric,
            kind=spec.output_premetric,
        )
    except SpecificationError:
        derived = ()  # its parts were restated by hand
    return frozenset(spec.notes) - frozenset(derived)


def compose(specs: Sequence[Spec]) -> Spec:
    """Return the specification of publishing all outputs: invariants join, parts convert once, budgets compose.

    >>> from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.of(Margin("household")),
    ...     input_premetric=Hamming("household"), output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> compose([spec, spec.per("person"), spec]).budget.exact
    '3'
    """
    first = specs[0]
    for spec in specs[1:]:
        if spec.domain != first.domain:
            raise IncompatibleError(
                "cannot compose these specifications",
                why=f"their domains differ: {first.domain} and {spec.domain}",
                fix="state both for one domain",
            )
    parts = tuple(sorted((part for spec in specs for part in spec.statements), key=Part.order))
    multiverse = Multiverse.join(spec.multiverse for spec in specs)
    free = [all(is_free(part, first.domain, multiverse) for part in spec.statements) for spec in specs]
    charged = [spec for spec, costs_nothing in zip(specs, free, strict=True) if not costs_nothing] or [first]
    input_premetric = reduce(lambda a, b: a.join(b), (spec.input_premetric for spec in charged))
    if isinstance(input_premetric, Exchanges):
        # what one release keeps exact may forbid the exchanges of another: then changed records are counted
        input_premetric = _count_where_connected(input_premetric, first.domain, multiverse, charged)
    output_premetric = reduce(lambda a, b: a.join(b), (spec.output_premetric for spec in charged))
    together = replace(
        first,
        evidence=reduce(lambda a, b: a & b, (spec.evidence for spec in specs)),
        bounds=(),
        untouched=tuple(sorted({word for spec in specs for word in spec.untouched})),
        released=join_views(first.domain, (spec.views for spec in specs)),
    )
    return _rebuild(
        together,
        parts,
        multiverse=multiverse,
        input_premetric=input_premetric,
        output_premetric=output_premetric,
        kept=frozenset().union(*(_find_own_notes(spec) for spec in specs)),
    )


def _count_where_connected(
    exchanges: Exchanges, domain: Domain, multiverse: Multiverse, specs: Sequence[Spec]
) -> InputPremetric:
    """Return the distance of exchanges where they are known to connect the joint universes, else that of changed records."""
    same = all(spec.multiverse == multiverse for spec in specs)
    connected = same or isinstance(find_exchanges(domain, multiverse, exchanges.record_type), ExchangeShape)
    return exchanges if connected else exchanges.hamming


def add_invariants(spec: Spec, more: Multiverse | Invariant) -> Spec:
    """Return the specification with more invariants and the same budget (Proposition 5).

    The parts keep the universes they were stated in.
    """
    finer = spec.multiverse & more
    if finer == spec.multiverse:
        return spec
    return replace(spec, multiverse=finer, parts=spec.statements)


def drop_invariants(spec: Spec, dropped: Sequence[Invariant], *, released: bool) -> Spec:
    """Return the specification with fewer invariants; the budget depends on whether they are still published."""
    rest = Multiverse(spec.multiverse.invariants - frozenset(dropped))
    verdict = refines_within_reach(rest, spec.multiverse, spec.domain, spec.input_premetric)
    if verdict:
        return replace(spec, multiverse=rest, parts=() if _is_single_part(spec, rest) else spec.parts)
    if not released and _is_stated_within(spec, rest):
        with suppress(IncompatibleError):  # a constant between units may need what was dropped
            return _rebuild(spec, spec.statements, multiverse=rest)
    words = ", ".join(sorted(invariant.words() for invariant in dropped))
    told = "released exactly but not declared invariant" if released else "no longer declared invariant"
    proved = (
        released and verdict.answer is Answer.NO and spec.output_premetric.infinite_at_total_variation_one
    )
    why = "no finite budget holds (Proposition 1)" if proved else "no finite budget is known"
    if not proved and verdict.answer is Answer.UNKNOWN:
        why += f" ({verdict.because})"
    return replace(
        spec,
        multiverse=rest,
        budget=Budget.infinite(),
        bounds=(),
        parts=(),
        varies=None,
        notes=tuple(sorted({*spec.notes, f"{told}: {words}; {why}"})),
    )


def _is_stated_within(spec: Spec, multiverse: Multiverse) -> bool:
    """Return whether every part was stated in universes that contain those of this multiverse."""
    return all(
        part.multiverse is not None
        and refines_within_reach(multiverse, part.multiverse, spec.domain, spec.input_premetric)
        for part in spec.statements
    )


def _is_single_part(spec: Spec, multiverse: Multiverse) -> bool:
    """Return whether the only part states the same as the specification does in these universes."""
    return spec.parts == replace(spec, multiverse=multiverse, parts=()).statements


def count_changes(premetric: InputPremetric) -> InputPremetric:
    """Return the distance that counts changed records where this one counts exchanges of them, else itself."""
    return premetric.hamming if isinstance(premetric, Exchanges) else premetric


def change_unit(
    spec: Spec,
    unit: str | InputPremetric,
    *,
    link: Literal["kept", "free"] | None,
    copies: int | None,
) -> Spec:
    """Return the specification for another protection unit; parts convert from their first unit."""
    if isinstance(unit, InputPremetric):
        target: InputPremetric = unit
    elif isinstance(now := count_changes(spec.input_premetric.unrestricted), RecordPremetric):
        target = type(now)(
            unit,
            link=link or (now.link if now.record_type == unit else "kept"),
            copies=now.copies if copies is None else copies,
        )
        if isinstance(spec.input_premetric, Neighbours):
            target = Neighbours(target)
    else:
        raise IncompatibleError(
            f"cannot restate {spec.input_premetric} per {unit}",
            why="it does not count records of one type, so the name of a record type does not say which distance is meant",
            fix="give the input premetric itself: spec.per(Hamming(…))",
        )
    return _rebuild(spec, spec.statements, input_premetric=target)


def change_output_premetric(spec: Spec, output_premetric: OutputPremetric) -> Spec:
    """Return the specification under another output premetric."""
    return _rebuild(spec, spec.statements, output_premetric=output_premetric, exactly=True)


# Chaining: the second mechanism reads the first one's output, and nothing else of the confidential file.
#
# This is not composition (`+`), where both read the file. Two rules are known; the specification of a chain of
# mechanisms with different specifications is otherwise open (the paper, Section 6.2).

OPEN_QUESTION = (
    "whether the second step adds protection of its own (a smaller budget, or fewer invariants) is unknown: "
    "no rule gives the specification of such a chain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Generic[Spec]):
    """The proved specification of a chain, and whether a sharper one is known."""

    specification: Spec
    sharper: Verdict
    also: Spec | None = None  # a second promise the chain keeps, not ranked with the first


def chain(first: Spec, second: Spec, *, stability: int | Fraction | None = None) -> Chain[Spec]:
    r"""Return what is proved of reading the first output through the second mechanism.

    Rule 1, post-processing: whatever reads the output alone keeps the first promise.

    Rule 2, stability: the second promise with its budget times s, in the universes of both. The caller states s, and with
    it this hypothesis. For all x, x' that agree on the invariants of both steps, the outputs Y of the first step on x and
    Y' on x' can be drawn together so that always (a) both agree with x on the second's invariants, and (b)
    d(Y, Y') ≤ s · d(x, x'), d the second's distance. Proof: given (y, y'), the second step's outputs are at most
    ε·d(y, y') ≤ sε·d(x, x') apart, because (a) puts y and y' into one universe of the second, that of x. The chain's
    outputs mix these with the same weights, and a quasi-convex D does not grow by that. ∎ Nothing is assumed between x and
    x' that differ on an invariant of the first step, so nothing is promised about them: no invariant of either is dropped.

    >>> from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
    >>> noisy = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> swapped = noisy.given(Margin("household", ("block",))).within(Budget.of(9))
    >>> print(chain(swapped, noisy, stability=1).specification)
    toy | {households by block} | d_Ham(household) | D_mult | ε = 1.0000
    """
    # what leaves is what the second step makes of the first one's output
    kept = replace(
        first,
        notes=tuple(sorted({*first.notes, "chained: " + OPEN_QUESTION})),
        released=second.views or first.released,
    )
    if stability is None:
        return Chain(specification=kept, sharper=Verdict.unknown(OPEN_QUESTION))
    if isinstance(stability, float) or stability < 0:
        raise SpecificationError(
            f"{stability} is no stability",
            why="the budget is multiplied by it, so it has to be an exact number of at least 0",
            fix="give an int or a Fraction: stability=1",
        )
    if first.domain != second.domain:
        reason = (
            f"the second speaks of {second.domain}, and stability is stated for data sets of {first.domain}"
        )
        return Chain(specification=kept, sharper=Verdict.unknown(reason))
    if not second.output_premetric.quasi_convex:
        return Chain(
            specification=kept,
            sharper=Verdict.unknown(
                f"{second.output_premetric} is not known to be quasi-convex, so mixing may raise it"
            ),
        )
    try:
        carried = _carry_promise(first, second, Fraction(stability))
    except SpecificationError as void:  # no δ below 1 is left, or none that is right in every universe
        return Chain(specification=kept, sharper=Verdict.unknown(f"{void.what}: {void.why}"))
    if implies(carried, kept):
        return Chain(specification=carried, sharper=Verdict.yes(f"the first step is {stability}-stable"))
    return Chain(
        specification=kept,
        sharper=Verdict.yes(f"by stability the chain also keeps a second promise: {carried}"),
        also=carried,
    )


def _carry_promise(first: Spec, second: Spec, stability: Fraction) -> Spec:
    """Return the second promise scaled by the stability of the first step, in the universes of both."""
    measure, budget = change_part_unit(replace(second, parts=()).statements[0], stability)
    note = f"chained: the first step is {stability}-stable and keeps the invariants of both, as stated by the caller"
    return replace(
        second,
        multiverse=first.multiverse & second.multiverse,
        output_premetric=measure,
        budget=budget,
        parts=(),
        bounds=(),
        varies=second.varies if stability == 1 else _scale_function(second.varies, stability),
        notes=tuple(sorted({*second.notes, note})),
    )


def _scale_function(function: BudgetFunction | None, stability: Fraction) -> BudgetFunction | None:
    """Return a budget function times a constant; only its words and its bounds are known."""
    if function is None:
        return None
    return BudgetFunction(
        words=f"{stability} × ({function.words})",
        universe=function.universe,
        least=function.least * stability,
        most=function.most * stability,
    )


# The same promise on another domain, with the variables of one named as those of the other.
#
# A user's census and the catalog's are different domains. Where every variable that a promise speaks of has a
# counterpart, the promise can be read on the other domain: each of its data sets is seen through the shared variables,
# and the others are not touched by the mechanism. The budget and the premetrics stay; invariants and budget functions
# change their names.


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
            kept = invariant.keeps_with and self.kind(invariant.keeps_with)
            tables = tuple(self.margin(margin) for margin in invariant.determined_by)
            return replace(invariant, determined_by=tables, keeps_with=kept)
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
        if isinstance(premetric, RecordPremetric | Exchanges):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step that spent a budget on something."""

    by: str
    on: str
    budget: Budget
    delta: Fraction | None = None  # of (ε, δ) alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The account of a run: which step spent which budget on what; the premetric says how entries compose.

    Under (ε, δ) the δ of the premetric is the one that all entries together may have, and each of them states its own: so
    the total is a true statement under the ledger's premetric at any time.

    >>> ledger = Ledger(limit=Budget.of(2)).spend("topdown", "state queries", Budget.of("1/2"))
    >>> str(ledger.remaining)
    '1.5000'
    >>> both = Ledger(output_premetric=Approximate("1/10")).spend("a", "x", Budget.of(1), delta="1/25")
    >>> both.delta_left
    Fraction(3, 50)
    """

    limit: Budget | None = None
    output_premetric: OutputPremetric = field(default_factory=Multiplicative)
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if self.limit is not None:
            require_kind(
                "the limit of a ledger",
                self.limit,
                Budget,
                wanted="a Budget",
                fix='Ledger(limit=Budget.of("2"))',
                error=BudgetError,
            )
        for entry in self.entries:
            self._check(entry)
        if isinstance(self.output_premetric, Approximate) and self.delta > self.output_premetric.delta:
            raise BudgetError(
                "the entries of this ledger have a larger δ than it allows",
                why=f"together {write_fraction(self.delta)}, allowed {write_fraction(self.output_premetric.delta)}",
                fix="allow the ledger a larger δ, or leave out an entry",
            )

    @property
    def total(self) -> Budget:
        return self.output_premetric.compose([entry.budget for entry in self.entries])

    @property
    def delta(self) -> Fraction:
        """Return the δ of all entries together, which is 0 under other premetrics than (ε, δ)."""
        return sum((entry.delta or Fraction(0) for entry in self.entries), Fraction(0))

    @property
    def remaining(self) -> Budget:
        """Return the largest budget that can still be spent."""
        if self.limit is None:
            return Budget.infinite()
        return self.output_premetric.compute_remaining(self.limit, self.total)

    @property
    def delta_left(self) -> Fraction:
        """Return the largest δ that can still be spent."""
        allowed = (
            self.output_premetric.delta if isinstance(self.output_premetric, Approximate) else Fraction(0)
        )
        return allowed - self.delta

    def __repr__(self) -> str:
        number = f"{len(self.entries)} {'entry' if len(self.entries) == 1 else 'entries'}"
        most = "" if self.limit is None else f" of {self.limit}"
        return f"Ledger({number}, {self.output_premetric}: {self.total}{most} spent)"

    def _repr_html_(self) -> str:
        """Return the entries, the total and what remains as an HTML table."""
        rows = [(entry.by, entry.on, str(entry.budget)) for entry in self.entries]
        rows.append(("total", str(self.output_premetric), str(self.total)))
        if self.limit is not None:
            rows.append(("left", f"of {self.limit}", str(self.remaining.lower(4))))
        notes = ["Budgets are rounded up, what is left is rounded down."]
        return write_html_table("Ledger", rows, columns=("by", "on", "budget"), notes=notes)

    def spend(
        self, by: str, on: str, budget: Budget, *, delta: int | str | Fraction | None = None
    ) -> "Ledger":
        """Return a new ledger with one more entry; an error gives requested, remaining and difference."""
        if not isinstance(budget, Budget):
            raise BudgetError(
                "only a Budget can be spent",
                why=f"this is a {type(budget).__name__}, and the ledger keeps exact numbers",
                fix='give Budget.of("1/20")',
            )
        number = None if delta is None else parse_fraction(delta, "delta")
        entry = Entry(by=by, on=on, budget=budget, delta=number)
        self._check(entry)
        if number is not None and number > self.delta_left:
            raise BudgetError(
                f"{by} asks for a larger δ than is left, on {on}",
                why=f"requested {write_fraction(number)}, remaining {write_fraction(self.delta_left)}, "
                f"difference {write_fraction(number - self.delta_left)}",
                fix="spend a smaller δ, or open the ledger with a larger one",
            )
        after = replace(self, entries=(*self.entries, entry))
        if self.limit is not None and after.total > self.limit:
            left = self.remaining
            over = (budget - left).upper(6) if budget.is_finite and left.is_finite else "∞"
            raise BudgetError(
                f"{by} asks for more than is left, on {on}",
                why=f"requested {budget.upper(6)}, remaining {left.lower(6)}, difference {over}",
                fix="spend less, or raise the limit of the ledger",
            )
        return after

    def _check(self, entry: Entry) -> None:
        """Refuse an entry without δ in an (ε, δ) ledger, and an entry with δ in any other."""
        approximate = isinstance(self.output_premetric, Approximate)
        if approximate and entry.delta is None:
            raise BudgetError(
                f"{entry.by} does not say its δ, on {entry.on}",
                why=f"the ledger is under {self.output_premetric}, where the δ of all entries add up",
                fix='spend(…, delta="1e-10"), or delta=0 for a pure release',
            )
        if not approximate and entry.delta is not None:
            raise BudgetError(
                f"{entry.by} spends a δ, on {entry.on}",
                why=f"the ledger is under {self.output_premetric}, which has none",
                fix="Ledger(output_premetric=Approximate(…)), with the δ that is allowed in total",
            )
        if entry.delta is not None and not 0 <= entry.delta < 1:
            raise BudgetError(
                "delta must be at least 0 and below 1",
                why="at 1 nothing is promised",
                fix='give an exact number such as "1e-10"',
            )
