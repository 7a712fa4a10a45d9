"""Implication between specifications whose universes are nested: units, output premetrics and budgets."""

from dataclasses import dataclass, replace
from fractions import Fraction

from stirred.errors import IncompatibleError
from stirred.spec.algebra.accounting import account, find_part_constant, is_free
from stirred.spec.algebra.stated import SpecificationFields
from stirred.spec.domain import PERSON, Domain
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.outputs.transfer import Transfer, TransferQuestion, transfer, write_budget
from stirred.spec.premetrics import Hamming, InputPremetric, RecordPremetric
from stirred.spec.units import find_needed_totals
from stirred.spec.verdict import Verdict
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.examples import (
    Example,
    has_no_neighbours,
    list_places,
    measure_largest_stratum,
)
from stirred.spec.verdicts.reach import refines_within_reach
from stirred.spec.verdicts.witness import Witness


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
        if mine is None and pair is not None and first.input_premetric == second.input_premetric and linear:
            mine = theirs = Fraction(1)  # whatever the distance is, it is the same for both
        only = isinstance(second.input_premetric, Neighbours)
        exact = (
            mine is not None
            and theirs is not None
            and mine == constant.factor * theirs
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
