"""Which invariants determine which, with a derivation that a checker verifies.

A yes is a computation: the wanted table is read off a given one, or is a combination of given ones. A no is a pair of data
sets that agree on everything given and differ on what is wanted. Anything else is unknown.
"""

from collections.abc import Iterable, Sequence

from stirred.spec.domain import QUARTERS, Domain
from stirred.spec.invariants.axes import UndecidedError, models
from stirred.spec.invariants.brief import brief
from stirred.spec.invariants.determine import Signed, combinations_for
from stirred.spec.invariants.inequalities import AtLeast
from stirred.spec.invariants.margins import Invariant, Margin
from stirred.spec.invariants.reading import by_homes, by_size, read_off
from stirred.spec.invariants.search import witnessed
from stirred.spec.verdict import Verdict, all_of
from stirred.spec.verdicts.derivation import Derivation


def refines(finer: Iterable[Invariant], coarser: Iterable[Invariant], domain: Domain) -> Verdict:
    r"""Whether the invariants of ``finer`` determine those of ``coarser``: every universe lies in one of the other's.

    >>> from stirred.spec.multiverse import Multiverse
    >>> domain = Domain(name="toy", spine=("county", "block"))
    >>> by_block, by_county = (Multiverse.of(Margin("household", (area,))) for area in ("block", "county"))
    >>> print(refines(by_block, by_county, domain))
    yes: households by block determine households by county (block → county)
    >>> refines(by_county, by_block, domain).answer.value
    'no'
    """
    given = tuple(finer)
    return all_of([determined(given, wanted, domain) for wanted in coarser], "nothing has to be determined")


def fixes_everything(multiverse: Iterable[Invariant], domain: Domain) -> Verdict:
    """Whether the universes are single data sets: then any budget is met, even 0, and nothing is protected.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> from stirred.spec.multiverse import Multiverse
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=(Variable(name="age"),)),))
    >>> bool(fixes_everything(Multiverse.of(Margin("person", ("age",))), toy))
    True
    """
    tables = sorted((Margin(kind.name, kind.names()) for kind in domain.record_types), key=Margin.words)
    if not tables or not all(kind.variables for kind in domain.record_types):
        return Verdict.unknown("the domain does not list its variables")
    if linked(domain):
        return Verdict.unknown("no table says which persons live together")
    return refines(multiverse, tables, domain)


def linked(domain: Domain) -> bool:
    """Whether records of one type belong to records of another, which tables of each type do not tell."""
    kinds = {kind.name for kind in domain.record_types}
    return len(kinds) > 1 and kinds != {"household", QUARTERS}


def determined(given: Sequence[Invariant], wanted: Invariant, domain: Domain) -> Verdict:
    """Whether one invariant is a function of the given ones."""
    if wanted in given:
        because = f"both keep {brief(wanted, domain)}"
        return Verdict.yes(because, Derivation(rule="kept", claim=because, facts={"wanted": wanted}))
    if isinstance(wanted, Margin):
        return _margin(given, wanted, domain)
    needed = [_margin(given, margin, domain) for margin in wanted.needs()]
    if needed and all(needed):
        because = "; ".join(dict.fromkeys(v.because for v in needed))
        step = Derivation(
            rule="function of", claim=because, premises=_steps(*needed), facts={"wanted": wanted}
        )
        return Verdict.yes(because, step)
    if isinstance(wanted, AtLeast):
        return _inequality(given, wanted, domain)
    return Verdict.unknown(f"no rule tells whether the others fix {wanted}")


def _steps(*verdicts: Verdict) -> tuple[Derivation, ...]:
    return tuple(verdict.derivation for verdict in verdicts if verdict.derivation is not None)


def _margin(given: Sequence[Invariant], wanted: Margin, domain: Domain) -> Verdict:
    margins = [invariant for invariant in given if isinstance(invariant, Margin)]
    for margin in margins:
        found = read_off(margin, wanted, domain) or by_size(margin, wanted, domain)
        if found is not None:
            return Verdict.yes(found.claim, found)
    homes = by_homes(margins, wanted, domain)
    if homes is not None:
        return Verdict.yes(homes.claim, homes)
    summed = _summed([m for m in margins if m.record_type == wanted.record_type], wanted, domain)
    if summed is not None:
        return Verdict.yes(summed.claim, summed)
    return witnessed(given, wanted, wanted, domain)


def _summed(margins: Sequence[Margin], wanted: Margin, domain: Domain) -> Derivation | None:
    """The wanted table as sums and differences of given ones, in every model of the domain."""
    steps = []
    try:
        for model in models(domain, wanted.record_type, [*margins, wanted]):
            found = combinations_for(margins, wanted, model)
            if isinstance(found, Signed):
                return None
            facts = {"given": tuple(margins), "wanted": wanted, "axes": model.axes, "combinations": found}
            claim = f"{brief(wanted, domain)} are sums and differences of given tables"
            steps.append(Derivation(rule="sums", claim=claim, facts=facts))
    except UndecidedError:
        return None
    if len(steps) == 1:
        return steps[0]
    return Derivation(
        rule="every map", claim=f"{steps[0].claim}, whichever area lies in which", premises=tuple(steps)
    )


def _inequality(given: Sequence[Invariant], wanted: AtLeast, domain: Domain) -> Verdict:
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
        return witnessed(given, wanted.statistic, wanted, domain)
    return Verdict.unknown(f"no rule tells whether the others fix {wanted}")
