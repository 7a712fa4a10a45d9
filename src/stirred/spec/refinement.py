"""Which invariants determine which: decided from the functional dependencies, with a reason.

A yes is a computation: the wanted table can be read off the given ones. A no is a construction (see `witness`): two data
sets that agree on everything given and differ on what is wanted. Anything else is unknown.
"""

from collections.abc import Sequence

from stirred.spec.brief import brief
from stirred.spec.domain import Domain
from stirred.spec.multiverse import AtLeast, Invariant, Margin, Multiverse
from stirred.spec.premetrics import HOUSEHOLDS, PERSON, InputPremetric
from stirred.spec.verdict import Answer, Verdict, all_of
from stirred.spec.witness import differing_pair


def refines(finer: Multiverse, coarser: Multiverse, domain: Domain) -> Verdict:
    r"""Whether the invariants of ``finer`` determine those of ``coarser``: every universe lies in one of the other's.

    >>> domain = Domain(name="toy", spine=("county", "block"))
    >>> by_block, by_county = (Multiverse.of(Margin("household", (area,))) for area in ("block", "county"))
    >>> print(refines(by_block, by_county, domain))
    yes: households by block determine households by county (block → county)
    >>> refines(by_county, by_block, domain).answer.value
    'no'
    """
    given = tuple(finer)
    return all_of([determined(given, wanted, domain) for wanted in coarser], "nothing has to be determined")


def refines_within_reach(
    finer: Multiverse, coarser: Multiverse, domain: Domain, premetric: InputPremetric
) -> Verdict:
    """The same asked only of data sets at finite distance, the only ones of which a specification says anything.

    A yes is weaker here (Hamming distances fix the number of records by themselves), a no is stronger: it names data
    sets at finite distance, as the second half of Proposition 1 asks.

    >>> from stirred.spec.premetrics import Hamming
    >>> total = Multiverse.of(Margin("household"))
    >>> print(refines_within_reach(Multiverse.none(), total, Domain(name="toy"), Hamming("household")))
    yes: d_Ham(household) is infinite unless number of households agree
    """
    plain = refines(finer, coarser, domain)
    fixed = premetric.fixed()
    if plain or (fixed is not None and fixed.is_vacuous):
        return plain
    if fixed is None:
        return Verdict.unknown(
            f"{premetric} does not say which data sets are at finite distance: {plain.because}"
        )
    reached = refines(finer & fixed, coarser, domain)
    if not reached:
        return reached
    if _counts_only_its_own(premetric, domain):
        words = ", ".join(invariant.words() for invariant in fixed)
        return Verdict.yes(f"{premetric} is infinite unless {words} agree")
    return Verdict.unknown(
        f"{premetric} fixes the number of its records in the joint file, where vacant units and empty facilities count "
        f"too: {plain.because}"
    )


def _counts_only_its_own(premetric: InputPremetric, domain: Domain) -> bool:
    """Whether no record of another type counts as a unit of this distance."""
    others = {kind.name for kind in domain.record_types} - {premetric.unit}
    return not others or (premetric.unit in HOUSEHOLDS and others <= {PERSON})


def fixes_everything(multiverse: Multiverse, domain: Domain) -> Verdict:
    """Whether the universes are single data sets: then any budget is met, even 0, and nothing is protected.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=(Variable(name="age"),)),))
    >>> bool(fixes_everything(Multiverse.of(Margin("person", ("age",))), toy))
    True
    """
    tables = [Margin(kind.name, kind.names()) for kind in domain.record_types]
    if not tables:
        return Verdict.unknown("the domain states no variables")
    return refines(multiverse, Multiverse.of(*tables), domain)


def determined(given: Sequence[Invariant], wanted: Invariant, domain: Domain) -> Verdict:
    """Whether one invariant is a function of the given ones."""
    if wanted in given:
        return Verdict.yes(f"both keep {brief(wanted, domain)}")
    if isinstance(wanted, Margin):
        return _margin(given, wanted, domain)
    needed = [_margin(given, margin, domain) for margin in wanted.needs()]
    if needed and all(needed):
        return Verdict.yes("; ".join(dict.fromkeys(v.because for v in needed)))
    if isinstance(wanted, AtLeast):
        return _inequality(given, wanted, domain, needed)
    return Verdict.unknown(f"no rule tells whether {wanted} follows")


def _margin(given: Sequence[Invariant], wanted: Margin, domain: Domain) -> Verdict:
    margins = [invariant for invariant in given if isinstance(invariant, Margin)]
    found = _computed(margins, wanted, domain, depth=3)
    if found:
        return Verdict.yes(found)
    if not wanted.by and any(_covers_total(margin, wanted) for margin in margins):
        return Verdict.yes(f"a full table determines the {wanted}")
    return differing_pair(given, wanted, domain)


def _covers_total(margin: Margin, wanted: Margin) -> bool:
    return margin.record_type == wanted.record_type and not margin.where and not wanted.where


def _computed(margins: Sequence[Margin], wanted: Margin, domain: Domain, *, depth: int) -> str:
    """How the wanted table is read off the given ones, or nothing."""
    for margin in margins:
        reason = _direct(margin, wanted, domain) or _by_size(margin, wanted, domain)
        if reason:
            return reason
    if depth == 0:
        return ""
    # a table restricted to each level of a variable in turn adds up to the whole
    conditions = wanted.conditions()
    split = sorted({v for m in margins if m.record_type == wanted.record_type for v in m.conditions()})
    for variable in split:
        values = conditions.get(variable) or domain.levels(wanted.record_type, variable)
        if not values or len(values) == 1:
            continue
        pieces = [
            Margin(wanted.record_type, wanted.by, {**conditions, variable: (value,)}, wanted.label)
            for value in values
        ]
        if all(_computed(margins, piece, domain, depth=depth - 1) for piece in pieces):
            return f"the tables for each {variable} add up to {brief(wanted, domain)}"
    return ""


def _direct(margin: Margin, wanted: Margin, domain: Domain) -> str:
    if margin.record_type != wanted.record_type:
        return ""
    have, want = margin.conditions(), wanted.conditions()
    constant = {v for v, values in have.items() if len(values) == 1}
    known = domain.closure(margin.record_type, (*margin.by, *constant))
    fixed = {v for v, values in want.items() if len(values) == 1}
    if not known.issuperset({*wanted.by} - fixed):
        return ""
    for variable, values in have.items():
        asked = want.get(variable) or domain.levels(wanted.record_type, variable)
        if asked is None or not set(values).issuperset(asked):
            return ""  # the given table leaves out records that the wanted one counts
    for variable, values in want.items():
        shown = variable in known or (variable in have and set(values).issuperset(have[variable]))
        if not shown:
            return ""  # the given table does not show who is to be left out
    steps = [
        str(rule)
        for rule in domain.rules(margin.record_type)
        if _used(rule.of, rule.determines, margin, wanted, known)
    ]
    why = f" ({', '.join(dict.fromkeys(steps))})" if steps else ""
    return f"{brief(margin, domain)} determine {brief(wanted, domain)}{why}"


def _used(
    of: tuple[str, ...], determines: tuple[str, ...], margin: Margin, wanted: Margin, known: frozenset[str]
) -> bool:
    """Whether a dependency lies between what is given and what is wanted, for the reason's sake."""
    wanted_variables = {*wanted.by, *wanted.conditions()}
    reached = {*determines} - {*margin.by}
    return bool(known.issuperset(of) and reached and not wanted_variables <= {*margin.by})


def _by_size(margin: Margin, wanted: Margin, domain: Domain) -> str:
    """Households by exact size give persons by area: n persons = Σ size · households.

    Only for areas: a person's race is not the householder's, though the two columns may share a name.
    """
    size = domain.size_variable
    if not size or wanted.record_type != PERSON or margin.record_type != "household":
        return ""
    # people in group quarters of their own record type are in no household
    if domain.has("group quarters") or not {*domain.spine}.issuperset({*wanted.by, *wanted.conditions()}):
        return ""
    sized = Margin("household", (*wanted.by, size), wanted.where)
    if not _direct(margin, sized, domain):
        return ""
    return f"{brief(margin, domain)} determine {brief(wanted, domain)} (each household counts for its {size})"


def _inequality(
    given: Sequence[Invariant], wanted: AtLeast, domain: Domain, needed: Sequence[Verdict]
) -> Verdict:
    for other in given:
        if isinstance(other, AtLeast) and other.than == wanted.than == 1:
            # an area holds at least one exactly when some part of it does
            reason = _direct(other.statistic, wanted.statistic, domain)
            if reason and other.statistic.where == wanted.statistic.where:
                return Verdict.yes(f"an area has one exactly when some part of it has: {reason}")
    others = [i for i in given if not isinstance(i, Margin)]
    if isinstance(wanted.than, int) and wanted.than > 0 and not others and needed[0].answer is Answer.NO:
        return Verdict.no(f"not {wanted}: {needed[0].because}")
    return Verdict.unknown(f"no rule tells whether {wanted} follows")
