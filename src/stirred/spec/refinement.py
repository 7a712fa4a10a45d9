"""Which invariants determine which, with a derivation that a checker verifies.

A yes is a computation: the wanted table is read off a given one, or is a combination of given ones. A no is a pair of data
sets that agree on everything given and differ on what is wanted. Anything else is unknown.
"""

from collections.abc import Iterable, Sequence

from stirred.spec.domain import QUARTERS, Domain
from stirred.spec.invariants.axes import UndecidedError, build_models
from stirred.spec.invariants.brief import abbreviate
from stirred.spec.invariants.determine import SignedTable, find_combinations
from stirred.spec.invariants.inequalities import AtLeast
from stirred.spec.invariants.margins import Invariant, Margin
from stirred.spec.invariants.reading import derive_by_homes, derive_by_size, read_off
from stirred.spec.invariants.search import find_witness
from stirred.spec.verdict import Verdict, combine_verdicts
from stirred.spec.verdicts.derivation import Derivation


def refines(finer: Iterable[Invariant], coarser: Iterable[Invariant], domain: Domain) -> Verdict:
    r"""Decide whether the invariants of ``finer`` determine those of ``coarser``.

    >>> from stirred.spec.multiverse import Multiverse
    >>> domain = Domain(name="toy", spine=("county", "block"))
    >>> by_block, by_county = (Multiverse.of(Margin("household", (area,))) for area in ("block", "county"))
    >>> print(refines(by_block, by_county, domain))
    yes: households by block determine households by county (block → county)
    >>> refines(by_county, by_block, domain).answer.value
    'no'
    """
    given = tuple(finer)
    return combine_verdicts(
        [decide_determined(given, wanted, domain) for wanted in coarser], "nothing has to be determined"
    )


def fixes_everything(multiverse: Iterable[Invariant], domain: Domain) -> Verdict:
    """Decide whether every universe is a single data set: then any budget is met and nothing is protected.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> from stirred.spec.multiverse import Multiverse
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=(Variable(name="age"),)),))
    >>> bool(fixes_everything(Multiverse.of(Margin("person", ("age",))), toy))
    True
    """
    tables = sorted((Margin(kind.name, kind.names()) for kind in domain.record_types), key=Margin.words)
    if not tables or not all(kind.variables for kind in domain.record_types):
        return Verdict.unknown("the domain does not list its variables")
    if has_linked_records(domain):
        return Verdict.unknown("no table says which persons live together")
    return refines(multiverse, tables, domain)


def has_linked_records(domain: Domain) -> bool:
    """Return whether records of one type belong to records of another, such as persons to households."""
    kinds = {kind.name for kind in domain.record_types}
    return len(kinds) > 1 and kinds != {"household", QUARTERS}


def decide_determined(given: Sequence[Invariant], wanted: Invariant, domain: Domain) -> Verdict:
    """Decide whether one invariant is a function of the given ones."""
    if wanted in given:
        because = f"both keep {abbreviate(wanted, domain)}"
        return Verdict.yes(because, Derivation(rule="kept", claim=because, facts={"wanted": wanted}))
    if isinstance(wanted, Margin):
        return _decide_margin(given, wanted, domain)
    needed = [_decide_margin(given, margin, domain) for margin in wanted.needs()]
    if needed and all(needed):
        because = "; ".join(dict.fromkeys(v.because for v in needed))
        step = Derivation(
            rule="function of", claim=because, premises=_collect_steps(*needed), facts={"wanted": wanted}
        )
        return Verdict.yes(because, step)
    if isinstance(wanted, AtLeast):
        return _decide_inequality(given, wanted, domain)
    return Verdict.unknown(f"no rule tells whether the others fix {wanted}")


def _collect_steps(*verdicts: Verdict) -> tuple[Derivation, ...]:
    return tuple(verdict.derivation for verdict in verdicts if verdict.derivation is not None)


def _decide_margin(given: Sequence[Invariant], wanted: Margin, domain: Domain) -> Verdict:
    margins = [invariant for invariant in given if isinstance(invariant, Margin)]
    for margin in margins:
        found = read_off(margin, wanted, domain) or derive_by_size(margin, wanted, domain)
        if found is not None:
            return Verdict.yes(found.claim, found)
    homes = derive_by_homes(margins, wanted, domain)
    if homes is not None:
        return Verdict.yes(homes.claim, homes)
    summed = _derive_sums([m for m in margins if m.record_type == wanted.record_type], wanted, domain)
    if summed is not None:
        return Verdict.yes(summed.claim, summed)
    return find_witness(given, wanted, wanted, domain)


def _derive_sums(margins: Sequence[Margin], wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive the wanted table as sums and differences of given ones in every model of the domain, or None."""
    steps = []
    try:
        for model in build_models(domain, wanted.record_type, [*margins, wanted]):
            found = find_combinations(margins, wanted, model)
            if isinstance(found, SignedTable):
                return None
            facts = {"given": tuple(margins), "wanted": wanted, "axes": model.axes, "combinations": found}
            claim = f"{abbreviate(wanted, domain)} are sums and differences of given tables"
            steps.append(Derivation(rule="sums", claim=claim, facts=facts))
    except UndecidedError:
        return None
    if len(steps) == 1:
        return steps[0]
    return Derivation(
        rule="every map", claim=f"{steps[0].claim}, whichever area lies in which", premises=tuple(steps)
    )


def _decide_inequality(given: Sequence[Invariant], wanted: AtLeast, domain: Domain) -> Verdict:
    for other in given:
        if isinstance(other, AtLeast) and other.than == wanted.than == 1:
            # an area holds at least one exactly when some part of it does
            found = read_off(other.statistic, wanted.statistic, domain)
            if found is not None and other.statistic.where == wanted.statistic.where:
                because = f"an area has one exactly when some part of it has: {found.claim}"
                facts = {"given": other, "wanted": wanted}
                return Verdict.yes(
                    because, Derivation(rule="some part", claim=because, premises=(found,), facts=facts)
                )
    if isinstance(wanted.than, int):
        return find_witness(given, wanted.statistic, wanted, domain)
    return Verdict.unknown(f"no rule tells whether the others fix {wanted}")
