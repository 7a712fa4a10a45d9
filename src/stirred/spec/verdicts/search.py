"""Decide whether one specification implies another: yes with the rules, no with a witness, or unknown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from stirred.errors import IncompatibleError
from stirred.spec.budgets import Budget
from stirred.spec.domain import HOUSEHOLDS, PERSON, QUARTERS, Domain
from stirred.spec.finite_model import Model, UndecidedError, build_models, find_keys
from stirred.spec.input_premetrics import (
    Exchanges,
    Hamming,
    InputPremetric,
    Neighbours,
    RecordPremetric,
    SymmetricDifference,
    counts_only_its_own,
    find_needed_totals,
    refines_within_reach,
)
from stirred.spec.invariants import Invariant, Margin, abbreviate
from stirred.spec.laws import LargestStratum
from stirred.spec.multiverse import Multiverse
from stirred.spec.nearest import smallest_distance
from stirred.spec.output_premetrics import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    scale_delta,
)
from stirred.spec.refinement import decide_determined, has_linked_records
from stirred.spec.statement import (
    PlainPromise,
    SpecificationFields,
    account,
    compare_functions,
    find_part_constant,
    is_free,
)
from stirred.spec.verdict import Answer, DataSet, Derivation, Values, Verdict, Witness, find_fault
from stirred.spec.verdicts.transfer import Transfer, TransferQuestion, transfer, write_budget

# Pairs of different data sets in one universe, at which a budget can be refuted.

MAX_COPIES = 1000
UNLISTED_VARIABLE = "anything else"  # a variable of a record type whose variables the domain does not list


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A pair of one universe at finite distance, or the proof that there is none."""

    pair: Witness | None = None
    derivation: Derivation | None = None
    singletons: Derivation | None = None


def find_different_pair(multiverse: Multiverse, domain: Domain, premetric: InputPremetric) -> Example:
    """Find two different data sets at finite distance on which all invariants agree.

    >>> from stirred.spec.input_premetrics import Hamming
    >>> found = find_different_pair(Multiverse.of(Margin("person", ("age",))), Domain(name="toy"), Hamming("person"))
    >>> found.pair.distance("person")
    1
    """
    if isinstance(premetric, Neighbours):
        return _find_neighbours(multiverse, domain, premetric.inner)
    if isinstance(premetric, Exchanges):
        # what exchanges connect has as many records; how many steps a pair is apart is asked where it is used
        return find_different_pair(multiverse, domain, premetric.hamming)
    fixed = premetric.derive_multiverse()
    if fixed is None:
        return Example()
    listed = [kind.name for kind in domain.record_types]
    kinds = [premetric.unit, *(kind for kind in listed if kind != premetric.unit)]
    totals = frozenset() if fixed.is_vacuous else frozenset(Margin(kind) for kind in kinds)
    tables = [Margin(kind, _list_variables(multiverse, domain, kind)) for kind in kinds]
    even = multiverse & fixed & Multiverse(totals)
    # persons who stay where they are first: a move counts once or twice
    places = Margin(PERSON, _list_variables(multiverse, domain, PERSON) & list_places(domain))
    tried = (even & places, even) if premetric.unit == PERSON and places.by else (even,)
    for kept in dict.fromkeys((*tried, _add_homes(multiverse, premetric, kinds))):
        for table in tables:
            found = decide_determined(tuple(kept), table, domain)
            # a pair for each way in which areas may lie in each other is no single pair
            if found.answer is Answer.NO and found.derivation is not None and found.derivation.witness:
                return Example(pair=found.derivation.witness, derivation=found.derivation)
    if not listed or has_linked_records(domain):
        return Example()
    # only what every pair at finite distance has in common is fixed
    sure = multiverse & fixed if counts_only_its_own(premetric, domain) else multiverse
    steps = [found.derivation for table in tables if (found := decide_determined(tuple(sure), table, domain))]
    if len(steps) < len(tables):
        return Example()
    claim = "the invariants determine every table, so each universe is a single data set"
    premises = tuple(step for step in steps if step is not None)
    return Example(singletons=Derivation(rule="all of", claim=claim, premises=premises))


def list_places(domain: Domain) -> frozenset[str]:
    """Return the variables that say where a person lives, or none if the domain has no homes."""
    if not any(domain.has(kind) for kind in (*HOUSEHOLDS, QUARTERS)):
        return frozenset()
    return frozenset({"household", "quarters", *domain.spine, *domain.identifiers("household")})


def _add_homes(multiverse: Multiverse, premetric: InputPremetric, kinds: Sequence[str]) -> Multiverse:
    """Return the invariants of a pair at finite distance; where homes are counted, persons may come and go."""
    keeps = isinstance(premetric, Hamming) and premetric.record_type in HOUSEHOLDS
    totals = [Margin(kind) for kind in kinds if kind != PERSON or not keeps]
    return multiverse & Multiverse(frozenset(totals)) if isinstance(premetric, Hamming) else multiverse


def _find_neighbours(multiverse: Multiverse, domain: Domain, inner: InputPremetric) -> Example:
    """Find two neighbours of one universe, or prove that there are none."""
    if has_no_neighbours(multiverse, domain, inner):
        claim = "no two data sets of one universe are neighbours"
        return Example(singletons=Derivation(rule="no neighbours", claim=claim))
    near = smallest_distance(domain, multiverse, inner)
    kept = tuple(multiverse)
    # a pair that depends on which area lies in which, or on rules of the domain, refutes nothing
    if near.value != 1 or not near.safe or near.pair is None or find_fault(domain, kept, None, near.pair):
        return Example()
    step = Derivation(
        rule="pair", claim="two neighbours of one universe", witness=near.pair, facts={"given": kept}
    )
    return Example(pair=near.pair, derivation=step)


def has_no_neighbours(multiverse: Multiverse, domain: Domain, premetric: InputPremetric) -> bool:
    """Return whether no universe holds two neighbours, because every single change shows in an exact table.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> from stirred.spec.input_premetrics import Hamming
    >>> variables = (Variable(name="age"), Variable(name="sex"))
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=variables),))
    >>> both = Multiverse.of(Margin("person", ("age",)), Margin("person", ("sex",)))
    >>> has_no_neighbours(both, toy, Hamming("person")), has_no_neighbours(Multiverse.none(), toy, Hamming("person"))
    (True, False)
    """
    kind = premetric.unit
    if not isinstance(premetric, Hamming | SymmetricDifference) or premetric.copies > 1:
        return False
    if [known.name for known in domain.record_types] != [kind]:
        return False
    margins = [invariant for invariant in multiverse if isinstance(invariant, Margin)]
    names = _list_variables(multiverse, domain, kind)
    try:
        return all(
            _each_change_shows(model, margins, names, premetric)
            for model in build_models(domain, kind, [*margins, Margin(kind, names)])
        )
    except UndecidedError:
        return False


def _each_change_shows(
    model: Model, margins: list[Margin], names: frozenset[str], premetric: InputPremetric
) -> bool:
    cells = model.cells()
    places = [find_keys(margin, model, cells) for margin in margins]
    seen = [model.find_shown_parts(margin.by) for margin in margins]
    plain = model.find_shown_parts(names)
    for one in range(len(cells)):
        counted = [place for place, found in enumerate(places) if found[one] is not None]
        if isinstance(premetric, SymmetricDifference):
            if not counted:
                return False  # a record that no table counts can be added
            continue
        if plain - frozenset[str]().union(*(seen[place] for place in counted)):
            return False  # a plain variable that no table shows of such a record
        if any(all(found[one] == found[other] for found in places) for other in range(one)):
            return False
    return True


def _list_variables(multiverse: Multiverse, domain: Domain, kind: str) -> frozenset[str]:
    """Return the variables of a record: those the domain lists, or those that invariants read and one more."""
    listed = domain.record_type(kind).names() if domain.has(kind) else frozenset()
    if listed:
        return listed - domain.identifiers(kind)
    read = {
        name
        for invariant in multiverse
        for margin in invariant.needs()
        if margin.record_type == kind
        for name in (*margin.by, *margin.conditions())
    }
    return frozenset({*read, UNLISTED_VARIABLE})


def add_largest_stratum(found: Example, statistic: LargestStratum, b: int, domain: Domain) -> Example:
    """Return the pair with records added to both sides so that b is the largest stratum, or an empty example."""
    if found.pair is None or measure_largest_stratum(statistic, found.pair) is None:
        return Example()
    kind = statistic.record_type
    for more in (DataSet(()), *_generate_second_values(found.pair, statistic, domain)):
        pair = found.pair.with_background(more)
        now = measure_largest_stratum(statistic, pair) or 0
        if not 2 <= now <= b:
            continue
        for _, values, _ in pair.first.rows:
            filled = pair.with_background(_make_copies(domain, kind, values, b - now))
            if (
                measure_largest_stratum(statistic, filled)
                == b
                == measure_largest_stratum(statistic, filled.reverse())
            ):
                return Example(pair=filled, derivation=found.derivation)
    return Example()


def measure_largest_stratum(statistic: LargestStratum, pair: Witness) -> int | None:
    """Return b in the universe of a pair, or None where its records lack a variable of the statistic."""
    needed = {*statistic.match, *statistic.hold, *statistic.swap}
    records = list(pair.first.records(statistic.record_type))
    if any(not needed <= {*values} for values, _ in records):
        return None
    return statistic.evaluate_counts(records)


def _make_copies(domain: Domain, kind: str, values: Values, number: int) -> DataSet:
    """Return that many records like this one; each has its own identifiers where records have them."""
    identifiers = domain.identifiers(kind) & {name for name, _ in values}
    if number < 1:
        return DataSet(())
    if not identifiers or number > MAX_COPIES:
        return DataSet(((kind, values, number),))
    plain = {name: value for name, value in values if name not in identifiers}
    return DataSet.of(
        kind,
        [({**plain, **{name: f"{name} copy {i + 1}" for name in identifiers}}, 1) for i in range(number)],
    )


def add_finer_strata(found: Example, coarse: LargestStratum, fine: LargestStratum, domain: Domain) -> Example:
    """Return the pair with records added that share its stratum only in the coarse sense, or an empty example."""
    base = add_largest_stratum(found, fine, 3, domain)
    if base.pair is None or coarse.record_type != fine.record_type:
        return Example()
    kind = fine.record_type
    apart = {*fine.match} - {*coarse.match}
    about = [{*c.variables} for c in domain.constraints if c.record_type in {"", kind}]
    while True:  # constraints tie variables: two records differ in all of them or in none
        tied = apart.union(*(variables for variables in about if variables & apart))
        if tied == apart:
            break
        apart = tied
    if not apart or apart & {*coarse.match}:
        return Example()
    record = dict(base.pair.first.rows[0][1])
    fresh = {
        name: _choose_other_value(domain, kind, name, value) if name in apart else value
        for name, value in record.items()
    }
    more = DataSet.of(kind, [(fresh, 1000)])
    return Example(pair=base.pair.with_background(more), derivation=base.derivation)


def _generate_second_values(pair: Witness, statistic: LargestStratum, domain: Domain) -> Iterator[DataSet]:
    """Yield further records of the stratum that differ in one hold and one swap variable."""
    kind = statistic.record_type
    constrained = {v for c in domain.constraints if c.record_type in {"", kind} for v in c.variables}
    for _, values, _ in pair.first.rows[:1]:
        record = dict(values)
        for held in [name for name in statistic.hold if name in record and name not in constrained][:3]:
            for moved in [name for name in statistic.swap if name in record][:1]:
                fresh = dict(record)
                for name in record:
                    named = name in domain.identifiers(kind)
                    if name == held or named or moved in domain.closure(kind, (name,)):
                        fresh[name] = _choose_other_value(domain, kind, name, record[name])
                yield DataSet.of(kind, [(fresh, 1)])


def _choose_other_value(domain: Domain, kind: str, name: str, value: str) -> str:
    levels = domain.levels(kind, name)
    tied = len(domain.closure(kind, (name,))) > 1 or any(
        name in {*r.of, *r.determines} for r in domain.rules(kind)
    )
    if levels is not None and not tied:
        return next((level for level in levels if level != value), value)
    return f"{value} b"


# Implication between specifications whose universes are nested: units, output premetrics and budgets.


def refute(
    found: Transfer,
    pair: Witness,
    second: SpecificationFields,
    limit: Budget,
    allowed: Budget | None,
    *premises: Derivation | None,
) -> Verdict:
    facts = {
        "mechanism": found.mechanism,
        "copies": found.copies,
        "allowed": None if allowed is None else allowed.exact,
        "limit": limit.exact,
        "distance": find_distance(pair, second.input_premetric, second.domain),
    }
    steps = tuple(step for step in premises if step is not None)
    return Verdict.no(
        found.because,
        Derivation(rule="mechanism", claim=found.because, premises=steps, witness=pair, facts=facts),
    )


def find_distance(pair: Witness, premetric: InputPremetric, domain: Domain) -> Fraction | None:
    """Return the distance of a pair of records of the unit, or None where it is not known."""
    inner = premetric.unrestricted
    if isinstance(inner, Exchanges):
        # the pair lies in one universe: where at most two records differ it is one step, else the steps are not known
        changed = find_distance(pair, inner.hamming, domain)
        return Fraction(1) if changed is not None and 1 <= changed <= 2 else None
    if not isinstance(inner, RecordPremetric) or inner.copies > 1:
        return None
    kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
    if kinds != {inner.record_type}:
        return None
    half = pair.distance(inner.record_type)
    moved = inner.record_type == PERSON and not _keeps_homes(pair, domain)
    if isinstance(inner, Hamming):
        # a person who moves to another home counts once or twice
        return None if half is None or moved else Fraction(half)
    if moved and (domain.size_variable or any(rule.kind == "size" for rule in domain.constraints)):
        return None  # with a person more the size of a home changes, and with it the records of all who live there
    return Fraction(pair.difference(inner.record_type))


def _keeps_homes(pair: Witness, domain: Domain) -> bool:
    """Return whether as many persons live in each place on both sides, or the domain lists no homes."""
    places = Margin(PERSON, list_places(domain))
    return not places.by or pair.first.table(places) == pair.second.table(places)


def find_budget_at(spec: SpecificationFields, pair: Witness | None) -> Budget | None:
    """Return the budget of a specification in the universe of a pair, or None where it is not known."""
    if spec.varies is None or pair is None:
        return spec.budget
    law, statistic = spec.varies.law, spec.varies.statistic
    if law is None or statistic is None:
        return None
    b = measure_largest_stratum(statistic, pair)
    if b is None:
        return None
    # at the realised universe itself the budget may be smaller still
    return None if b == spec.varies.b else law.at(b)


@dataclass(frozen=True, slots=True)
class BudgetQuestion:
    """The question whether the first implies the second, where the second's universes lie in the first's."""

    first: SpecificationFields
    second: SpecificationFields
    nested: Verdict
    pair: Example

    def answer(self) -> Verdict:
        first, second = self.first, self.second
        if len(first.statements) > 1 and not self._is_uniform():
            return self._decide_parts()
        found, allowed = self._transfer(first.budget, second.budget, self.pair.pair)
        return self._write_verdict(found, second.budget, allowed, self.pair)

    def _is_uniform(self) -> bool:
        """Return whether all parts have the premetrics of the whole, and these are not (ε, δ)."""
        first = self.first
        flavor = (first.input_premetric, first.output_premetric)
        return not isinstance(first.output_premetric, Approximate) and all(
            (part.input_premetric, part.output_premetric) == flavor for part in first.statements
        )

    def _decide_parts(self) -> Verdict:
        """Decide for parts in several units or premetrics: convert each part by itself, then compose."""
        try:
            budget, notes = account(
                self.first.statements,
                domain=self.first.domain,
                multiverse=self.second.multiverse,
                input_premetric=self.second.input_premetric,
                output_premetric=self.second.output_premetric,
            )
        except IncompatibleError as reason:
            return pick_known(self._refute_by_one_part(), Verdict.unknown(f"{reason.what}: {reason.why}"))
        mine, theirs = (write_budget(self.second.output_premetric, b) for b in (budget, self.second.budget))
        if budget <= self.second.budget:
            nested = self._decide_nesting()
            if not all(nested):
                return pick_known(self._refute_by_one_part(), next(found for found in nested if not found))
            because = "; ".join([*notes, f"together the parts have {mine} ≤ {theirs}"])
            facts = {"first": budget.exact, "second": self.second.budget.exact}
            proofs = [
                *(found.derivation for found in nested),
                *self._prove_fixed_numbers(),
                *self._prove_free_parts(),
            ]
            premises = tuple(proof for proof in proofs if proof is not None)
            step = Derivation(rule="parts", claim=because, premises=premises, facts=facts)
            return self._confirm(because, step)
        more = f"the rules give {mine}, more than {theirs}; a sharper conversion may exist"
        return pick_known(self._refute_by_one_part(), Verdict.unknown(more))

    def _decide_nesting(self) -> list[Verdict]:
        """Decide for each part with other tables whether its universes contain those of the second."""
        return [
            refines_within_reach(
                self.second.multiverse, part.multiverse, self.first.domain, self.second.input_premetric
            )
            for part in self.first.statements
            if part.multiverse is not None
            and not part.multiverse.invariants <= self.second.multiverse.invariants
        ]

    def _prove_free_parts(self) -> list[Derivation | None]:
        """Return the proofs that the invariants fix all that some parts are computed from."""
        domain, kept = self.second.domain, self.second.multiverse
        return [
            kept.refines(Multiverse.of(*part.measures), domain).derivation
            for part in self.first.statements
            if is_free(part, domain, kept)
        ]

    def _refute_by_one_part(self) -> Verdict | None:
        """Return a no where one part alone refutes it (the others may publish nothing), or None."""
        for part in self.first.statements:
            if part.varies is not None:
                continue
            alone = replace(
                self.first,
                input_premetric=part.input_premetric,
                output_premetric=part.output_premetric,
                budget=part.budget,
                parts=(),
            )
            found, allowed = BudgetQuestion(alone, self.second, self.nested, self.pair)._transfer(
                part.budget, self.second.budget, self.pair.pair
            )
            if found.answer == "no" and self.pair.pair is not None:
                told = replace(found, because=f"one part alone refutes it: {found.because}")
                verdict = refute(
                    told, self.pair.pair, self.second, self.second.budget, allowed, self.pair.derivation
                )
                assert verdict.derivation is not None
                facts = {**verdict.derivation.facts, "part": self.first.statements.index(part)}
                return Verdict.no(told.because, replace(verdict.derivation, facts=facts))
        return None

    def _transfer(
        self, budget: Budget, limit: Budget, pair: Witness | None
    ) -> tuple[Transfer, Budget | None]:
        """Return the transfer between two budgets in the second's unit, and what the first allows at the pair."""
        first, second = self.first, self.second
        (part, *_) = first.statements
        whole = len(first.statements) == 1
        try:
            constant = find_part_constant(part, second.input_premetric, first.domain, second.multiverse)
        except IncompatibleError as reason:
            return Transfer(answer="unknown", because=f"{reason.what}: {reason.why}"), None
        own: OutputPremetric = part.output_premetric if whole else first.output_premetric
        stated = budget if whole else first.budget
        try:
            measure, scaled = own.scale(stated, constant.factor)
        except IncompatibleError as reason:
            return Transfer(answer="unknown", because=f"{reason.what}: {reason.why}"), None
        theirs = None if pair is None else find_distance(pair, second.input_premetric, second.domain)
        mine = None if pair is None else find_distance(pair, first.input_premetric, second.domain)
        linear = own == second.output_premetric and isinstance(own, Multiplicative | NormalizedRenyi)
        same = first.input_premetric == second.input_premetric
        if isinstance(second.input_premetric.unrestricted, Exchanges) and theirs is None:
            pair = None  # exchanges need not connect it, so it refutes nothing
        if mine is None and pair is not None and same and linear:
            mine = theirs = Fraction(1)  # whatever the distance is, it is the same for both
        only = isinstance(second.input_premetric, Neighbours)
        exact = (
            mine is not None
            and theirs is not None
            and (mine == constant.factor * theirs or (linear and whole and budget * mine > limit * theirs))
            and not (only and theirs != 1)
        )
        allowed = budget * mine if exact and mine is not None else None
        asked = TransferQuestion(
            first=measure,
            budget=scaled,
            second=second.output_premetric,
            limit=limit,
            allowed=allowed
            if exact
            else (Budget.of(1) if pair is not None and budget and not budget.is_zero else None),
            distance=theirs if exact else None,
            stated=(own, stated, mine) if exact and mine is not None else None,
            neighbours_only=only,
            whole=second.input_premetric.whole,
        )
        found = transfer(asked)
        unit = second.input_premetric
        if (
            found.answer == "unknown"
            and not only
            and has_no_neighbours(second.multiverse, second.domain, unit)
        ):
            found = transfer(replace(asked, least=2))
        return found, allowed

    def _write_verdict(
        self, found: Transfer, limit: Budget, allowed: Budget | None, pair: Example
    ) -> Verdict:
        if found.answer == "yes":
            (part, *_) = self.first.statements
            constant = find_part_constant(
                part, self.second.input_premetric, self.first.domain, self.second.multiverse
            )
            because = "; ".join(filter(None, (constant.because, found.because)))
            facts = {
                "first": self.first.budget.exact,
                "second": limit.exact,
                "factor": constant.factor,
                "least": found.least,
            }
            step = Derivation(
                rule="budget", claim=found.because, premises=tuple(self._prove_fixed_numbers()), facts=facts
            )
            return self._confirm(because, step)
        if found.answer == "no" and pair.pair is not None:
            return refute(found, pair.pair, self.second, limit, allowed, pair.derivation)
        return Verdict.unknown(found.because)

    def _prove_fixed_numbers(self) -> list[Derivation]:
        """Return the proofs that numbers of records are fixed, so that Hamming distances are finite."""
        to, domain = self.second.input_premetric.unrestricted, self.second.domain
        units = {part.input_premetric.unrestricted for part in self.first.statements}
        totals = {
            total
            for unit in units
            if isinstance(unit, RecordPremetric) and isinstance(to, RecordPremetric)
            for total in find_needed_totals(unit, to, domain, self.second.multiverse)
        }
        found = [
            self.second.multiverse.refines(Multiverse.of(t), domain) for t in sorted(totals, key=Margin.words)
        ]
        return [proof.derivation for proof in found if proof and proof.derivation is not None]

    def _confirm(self, because: str, *steps: Derivation) -> Verdict:
        premises = (*((self.nested.derivation,) if self.nested.derivation is not None else ()), *steps)
        if self.first.multiverse.invariants - self.second.multiverse.invariants:
            short = len(self.first.multiverse) == 1
            told = (
                self.nested.because if short else "the invariants of the second determine those of the first"
            )
            because = f"{told}; and {because}"
        return Verdict.yes(
            because, Derivation(rule="implication", claim="the first implies the second", premises=premises)
        )


def pick_known(*verdicts: Verdict | None) -> Verdict:
    """Return the first verdict that is not None; ``or`` would skip a no, which is falsy."""
    return next(verdict for verdict in verdicts if verdict is not None)


# Implication where a budget differs by universe: by the order of the laws, or at one universe that refutes it.

STRATUM_SIZES_TRIED = (2, 3, 10, 1000, 10**6, 10**12)


@dataclass(frozen=True, slots=True)
class FunctionQuestion(BudgetQuestion):
    """The question whether the first implies the second, where one of the budgets differs by universe."""

    def answer(self) -> Verdict:
        first, second = self.first, self.second
        same = (
            first.input_premetric == second.input_premetric
            and first.output_premetric == second.output_premetric
        )
        if same:
            order = compare_functions(
                PlainPromise(first.budget, first.varies), PlainPromise(second.budget, second.varies)
            )
            if order.answer == "yes" and not self._covers_small_universes():
                several = (
                    "where b = 0 the second promises that nothing is lost, and such a universe may be large"
                )
                return pick_known(self._refute_in_small_universe(), Verdict.unknown(several))
            if order.answer == "yes":
                facts = {"first": _describe_function(first), "second": _describe_function(second)}
                return self._confirm(order.because, Derivation(rule="laws", claim=order.because, facts=facts))
            if order.answer == "unknown" or order.b is None:
                return pick_known(
                    self._refute_at_some_size(STRATUM_SIZES_TRIED, ""),
                    self._refute_in_finer_strata(),
                    Verdict.unknown(order.because),
                )
            if order.realised and not self._is_exchangeable():
                return Verdict.unknown(f"{order.because}, and no pair of data sets is known there")
            if order.realised:
                numbers = {"first": first.budget.exact, "second": second.budget.exact, "b": order.b}
                step = Derivation(rule="realised universe", claim=order.because, facts=numbers)
                return Verdict.no(order.because, step)
            places = range(order.b, order.b + 8)
            return pick_known(
                self._refute_at_some_size(places, order.because), Verdict.unknown(order.because)
            )
        told = "; ".join(spec.varies.words for spec in (first, second) if spec.varies is not None)
        return pick_known(
            self._decide_by_bounds() if self._covers_small_universes() else self._refute_in_small_universe(),
            self._refute_at_some_size(STRATUM_SIZES_TRIED, ""),
            Verdict.unknown(f"a budget differs by universe, and no rule decides in all of them: {told}"),
        )

    def _covers_small_universes(self) -> bool:
        """Return whether b = 0 needs no proof: the first loses nothing there, or each universe is one data set."""
        function, mine = self.second.varies, self.first.varies
        if function is None or function.law is None or (self.first.budget.is_zero and mine is None):
            return True
        statistic = function.statistic
        if mine is not None and mine.law is not None and mine.statistic is not None and statistic is not None:
            # then the first's b is 0 there as well, and only a budget that was raised may be above 0
            small = any((b := f.b) is not None and b < 2 for f in (mine, function))
            raised = small and self.first.budget > self.second.budget
            return mine.statistic.never_above(statistic) and (not raised or self._is_one_data_set())
        return self._is_one_data_set()

    def _is_one_data_set(self) -> bool:
        """Return whether a universe with b = 0 is one data set, because the second's strata determine a record."""
        statistic = None if self.second.varies is None else self.second.varies.statistic
        domain = self.second.domain
        if statistic is None or [kind.name for kind in domain.record_types] != [statistic.record_type]:
            return False
        kind = statistic.record_type
        seen = domain.closure(kind, (*statistic.match, *statistic.hold, *statistic.swap))
        return domain.record_type(kind).names() - domain.identifiers(kind) <= seen

    def _is_exchangeable(self) -> bool:
        """Return whether two records can exchange swap values inside the realised universe, at finite distance.

        Only then is the larger budget used up there, by a mechanism of pure DP or zCDP.
        """
        first, domain = self.first, self.first.domain
        known_measure = type(first.output_premetric) in {Multiplicative, NormalizedRenyi}
        if not known_measure or not isinstance(first.input_premetric, Hamming | SymmetricDifference):
            return False
        if first.multiverse != self.second.multiverse:
            return False
        for function in (first.varies, self.second.varies):
            statistic = None if function is None else function.statistic
            if function is None:
                continue
            if statistic is None:
                return False
            kind = statistic.record_type
            held = domain.closure(kind, (*statistic.match, *statistic.hold))
            moved = domain.closure(kind, (*statistic.match, *statistic.swap))
            own = {*statistic.swap} - {*statistic.match, *statistic.hold}
            rules = [rule for rule in domain.constraints if rule.record_type in {"", kind}]
            if any(not rule.variables or own & {*rule.variables} for rule in rules):
                return False
            for invariant in first.multiverse:
                tables = invariant.needs()
                if not tables or any(
                    table.record_type == kind
                    and not any({*table.by, *table.conditions()} <= seen for seen in (held, moved))
                    for table in tables
                ):
                    return False
        return True

    def _refute_in_small_universe(self) -> Verdict | None:
        """Return a no at the pair itself, where b = 0 in its universe and the second allows no loss; else None."""
        limit, budget = (
            find_budget_at(self.second, self.pair.pair),
            find_budget_at(self.first, self.pair.pair),
        )
        if limit is None or budget is None or self.pair.pair is None:
            return None
        found, allowed = self._transfer(budget, limit, self.pair.pair)
        return self._write_verdict(found, limit, allowed, self.pair) if found.answer == "no" else None

    def _decide_by_bounds(self) -> Verdict | None:
        """Return a yes where the largest budget of the first gives the smallest of the second, else None."""
        first, second = self.first, self.second
        most = first.budget if first.varies is None else max(first.budget, first.varies.most)
        least = second.budget
        if second.varies is not None:
            law = second.varies.law
            floor = second.varies.least if law is None else min(law.at(2), law.at(3))
            least = min(least, floor)
        if not most.is_finite:
            return None
        found, _ = self._transfer(most, least, None)
        return self._write_verdict(found, least, None, self.pair) if found.answer == "yes" else None

    def _refute_at_some_size(self, places: Iterable[int], because: str) -> Verdict | None:
        """Return a no at the universe of one of these b, or None."""
        return next((found for b in places if (found := self._refute_at_size(b, because)) is not None), None)

    def _refute_in_finer_strata(self) -> Verdict | None:
        """Return a no at a universe where the second's strata are much smaller than the first's, or None."""
        functions = [spec.varies for spec in (self.first, self.second)]
        statistics = [function.statistic for function in functions if function is not None]
        if len(statistics) < 2 or statistics[0] is None or statistics[1] is None:
            return None
        found = add_finer_strata(self.pair, statistics[0], statistics[1], self.first.domain)
        return None if found.pair is None else self._refute_at_pair(found, "")

    def _refute_at_size(self, b: int, because: str) -> Verdict | None:
        """Return a no at a universe with this b, or None where no pair can be written there."""
        functions = [spec.varies for spec in (self.first, self.second) if spec.varies is not None]
        statistics = [f.statistic for f in functions if f.statistic is not None]
        if len(statistics) < len(functions) or any(f.law is None or f.b == b for f in functions):
            return None
        found = add_largest_stratum(self.pair, statistics[0], b, self.first.domain)
        return self._refute_at_pair(found, because or f"at b = {b:,}")

    def _refute_at_pair(self, found: Example, because: str) -> Verdict | None:
        """Return a no at the universe of this pair, or None."""
        if found.pair is None:
            return None
        mine, theirs = find_budget_at(self.first, found.pair), find_budget_at(self.second, found.pair)
        if mine is None or theirs is None:
            return None
        told, allowed = self._transfer(mine, theirs, found.pair)
        if told.answer != "no":
            return None
        verdict = self._write_verdict(told, theirs, allowed, found)
        if verdict.derivation is None:
            return None
        words = f"{because} {told.because}".strip() if because.startswith("at b") or not because else because
        return Verdict.no(words, verdict.derivation)


def _describe_function(spec: SpecificationFields) -> str:
    return spec.budget.exact if spec.varies is None else spec.varies.words


# Does one specification imply another? Yes with the rules used, no with a witness that a checker verifies, or unknown.
#
# A specification allows B(x, x') = ε_D · d(x, x') between two data sets of one universe, and anything between others.
# The first implies the second exactly when, for all x, x' of one universe of the second at finite distance, what the
# first allows is within what the second allows: for every pair there is a mechanism that uses up what the first allows.


def implies(first: SpecificationFields, second: SpecificationFields) -> Verdict:
    """Decide whether every mechanism under the first specification is under the second (Lemma 1, conversions).

    A composed specification speaks of mechanisms made of its parts, and each part is converted by itself.

    >>> from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> implies(spec, spec.within(Budget.of(2))).because
    'ε = 1.0000 ≤ ε = 2.0000'
    >>> print(implies(spec.within(Budget.of(2)), spec).answer.value)
    no
    """
    if not second.budget.is_finite and second.varies is None:
        return _confirm_by_rule("nothing promised", "the second promises nothing: its budget is infinite")
    if first is second:
        return _confirm_by_rule("same", "the two are one statement")
    if first.domain != second.domain:
        return Verdict.unknown(
            f"the domains differ: {first.domain} and {second.domain}; restate one on the other's domain with spec.on"
        )
    pair = find_different_pair(second.multiverse, second.domain, second.input_premetric)
    if pair.singletons is not None:
        rule = "no neighbours" if pair.singletons.rule == "no neighbours" else "singletons"
        because = {
            "singletons": "every universe of the second is a single data set, so it promises nothing",
            "no neighbours": "no two data sets of one universe are neighbours, so the second promises nothing",
        }[rule]
        return _confirm_by_rule(rule, because, pair.singletons)
    if _is_void(second):
        return _confirm_by_rule(
            "void", "the second promises nothing at any distance that occurs: its δ reaches 1 there"
        )
    apart = find_distance_invariants(first)
    sizes = refines_within_reach(second.multiverse, apart, first.domain, second.input_premetric)
    nested = refines_within_reach(second.multiverse, first.multiverse, first.domain, second.input_premetric)
    for found in (nested, sizes):
        if found.answer is Answer.NO:
            return _refute_by_publication(first, second, found)
    if not nested:
        return pick_known(_refute_anyway(first, second, pair), nested)
    varies = first.varies is not None or second.varies is not None
    question = FunctionQuestion if varies else BudgetQuestion
    return question(first, second, nested, pair).answer()


def find_distance_invariants(spec: SpecificationFields) -> Multiverse:
    """Return the invariants that differ only at infinite distance, so that they may be published."""
    fixed = spec.input_premetric.derive_multiverse()
    return (
        Multiverse.none()
        if fixed is None or not counts_only_its_own(spec.input_premetric, spec.domain)
        else fixed
    )


def _confirm_by_rule(rule: str, because: str, *premises: Derivation) -> Verdict:
    return Verdict.yes(because, Derivation(rule=rule, claim=because, premises=premises))


def _refute_by_publication(
    first: SpecificationFields, second: SpecificationFields, nested: Verdict
) -> Verdict:
    """Return a no where the first may publish what the second does not fix (Proposition 1), else unknown."""
    pair = None if nested.derivation is None else nested.derivation.witness
    limit = find_budget_at(second, pair)
    distance = None if pair is None else find_distance(pair, second.input_premetric, second.domain)
    far = isinstance(second.input_premetric, Neighbours) and distance != 1
    far = far or (isinstance(second.input_premetric.unrestricted, Exchanges) and distance is None)
    if pair is None or limit is None or far:
        return Verdict.unknown(nested.because)
    breaks = (
        second.output_premetric.excludes(limit, distance)
        if distance is not None
        else second.output_premetric.infinite_at_total_variation_one and limit.is_finite
    )
    if not breaks:
        return Verdict.unknown(
            f"what the first publishes exactly may stay within the second: {nested.because}"
        )
    let_out = _find_changed(nested.derivation)
    because = f"the first may publish {abbreviate(let_out, first.domain)} exactly, which the second protects (Proposition 1)"
    premises = (nested.derivation,) if nested.derivation is not None else ()
    facts = {"mechanism": "publish", "limit": limit.exact, "distance": distance}
    return Verdict.no(
        because, Derivation(rule="mechanism", claim=because, premises=premises, witness=pair, facts=facts)
    )


def _refute_anyway(first: SpecificationFields, second: SpecificationFields, pair: Example) -> Verdict | None:
    """Return a no for any multiverses: the first allows what the second's premetric forbids; else None.

    If the pair lies in one universe of the first, the mechanism at hand breaks the second; if not, the first may tell
    the two apart with certainty.
    """
    limit = None if pair.pair is None else find_budget_at(second, pair.pair)
    if pair.pair is None or limit is None or not limit.is_finite:
        return None
    counted = second.input_premetric
    if (
        isinstance(counted.unrestricted, Exchanges)
        and find_distance(pair.pair, counted, second.domain) is None
    ):
        return None
    for part in first.statements:
        if part.varies is not None or part.budget.is_zero:
            continue
        asked = TransferQuestion(
            first=part.output_premetric,
            budget=part.budget,
            second=second.output_premetric,
            limit=limit,
            allowed=Budget.of(1),  # any positive amount: only mechanisms whose loss is infinite are asked for
        )
        found = transfer(asked)
        if found.answer == "no" and found.mechanism in {"gaussian", "reveal"}:
            return refute(found, pair.pair, second, limit, None, pair.derivation)
    return None


def _find_changed(step: Derivation | None) -> Invariant:
    """Return the invariant that a pair of data sets leaves open."""
    while step is not None and "wanted" not in step.facts:
        step = step.premises[0]
    assert step is not None
    found: Invariant = step.facts["wanted"]
    return found


def _is_void(spec: SpecificationFields) -> bool:
    """Return whether an (ε, δ) promise says nothing between any two data sets of one universe."""
    measure = spec.output_premetric
    if not isinstance(measure, Approximate) or spec.varies is not None:
        return False
    apart = has_no_neighbours(spec.multiverse, spec.domain, spec.input_premetric)
    return scale_delta(spec.budget, measure.delta, Fraction(2 if apart else 1)) >= 1
