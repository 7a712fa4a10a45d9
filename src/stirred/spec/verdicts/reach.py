"""Refinement among data sets at finite distance, the only ones that a specification bounds."""

from stirred.spec.domain import HOUSEHOLDS, PERSON, Domain
from stirred.spec.invariants.margins import Margin
from stirred.spec.multiverse import Multiverse
from stirred.spec.premetrics import InputPremetric
from stirred.spec.refinement import refines
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.derivation import Derivation


def refines_within_reach(
    finer: Multiverse, coarser: Multiverse, domain: Domain, premetric: InputPremetric
) -> Verdict:
    """Decide whether ``finer`` determines ``coarser`` among data sets at finite distance.

    A yes is weaker here (Hamming distances fix the number of records by themselves), a no is stronger: it names data
    sets at finite distance, as the second half of Proposition 1 asks.

    >>> from stirred.spec.premetrics import Hamming
    >>> total = Multiverse.of(Margin("household"))
    >>> refines_within_reach(Multiverse.none(), total, Domain(name="toy"), Hamming("household")).because
    'd_Ham(household) is infinite unless number of households agree'
    """
    if premetric.neighbours_only:
        # neighbours are at finite distance; for a no the two data sets have to be neighbours, which the caller asks
        return refines_within_reach(finer, coarser, domain, premetric.unrestricted)
    plain = refines(finer, coarser, domain)
    fixed = premetric.derive_multiverse()
    if plain or (fixed is not None and fixed.is_vacuous):
        return plain
    if fixed is None:
        return Verdict.unknown(
            f"{premetric} does not say which data sets are at finite distance: {plain.because}"
        )
    reached = refines(finer & fixed, coarser, domain)
    if not reached:
        return _decide_at_finite_distance(finer & fixed, coarser, domain, reached)
    if counts_only_its_own(premetric, domain):
        words = ", ".join(invariant.words() for invariant in fixed)
        because = f"{premetric} is infinite unless {words} agree"
        premises = () if reached.derivation is None else (reached.derivation,)
        step = Derivation(
            rule="finite distance", claim=because, premises=premises, facts={"fixed": tuple(fixed)}
        )
        return Verdict.yes(because, step)
    return Verdict.unknown(
        f"{premetric} fixes the number of its records in the joint file, where vacant units and empty facilities count "
        f"too: {plain.because}"
    )


def _decide_at_finite_distance(
    finer: Multiverse, coarser: Multiverse, domain: Domain, found: Verdict
) -> Verdict:
    """Turn a no into one whose pair has equally many records of every type, or into unknown."""
    if found.answer is not Answer.NO or _is_even(found.derivation):
        return found
    totals = {Margin(need.record_type) for invariant in coarser for need in invariant.needs()}
    again = refines(Multiverse(finer.invariants | totals), coarser, domain)
    if again.answer is Answer.NO:
        return again
    return Verdict.unknown(f"no pair of data sets with equal numbers of records is known: {found.because}")


def _is_even(step: Derivation | None) -> bool:
    """Return whether both data sets of every witness have equally many records of each type."""
    if step is None:
        return False
    pair = step.witness
    if pair is not None:
        kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
        return all(pair.distance(kind) is not None for kind in kinds)
    return bool(step.premises) and all(_is_even(premise) for premise in step.premises)


def counts_only_its_own(premetric: InputPremetric, domain: Domain) -> bool:
    """Return whether no record of another type counts as a unit of this distance."""
    others = {kind.name for kind in domain.record_types} - {premetric.unit}
    return not others or (premetric.unit in HOUSEHOLDS and others <= {PERSON})
