"""Two data sets that agree on the given invariants and differ on the wanted one: the proof of a no.

If for every given table some variable of the wanted one is not determined by it, take two values of each of those
variables and exchange them over a product of records: every given table stays, the wanted one moves. (The signed table
⊗ᵥ(δ_a − δ_a') has zero sums over each v, hence vanishes on every table that does not see v.) Adding any number of
records to both sides keeps inequality invariants with room to spare.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from stirred.spec.brief import brief
from stirred.spec.domain import Domain
from stirred.spec.multiverse import AtLeast, Invariant, Margin
from stirred.spec.premetrics import PERSON
from stirred.spec.verdict import Verdict

HOUSEHOLD, UNIT, QUARTERS = "household", "housing unit", "group quarters"
# Which records belong to which: a change of the second type may change counts of the first.
_LINKED = {
    frozenset(pair) for pair in ((PERSON, HOUSEHOLD), (PERSON, UNIT), (PERSON, QUARTERS), (HOUSEHOLD, UNIT))
}
MOST_CASES = 256


def differing_pair(given: Sequence[Invariant], wanted: Margin, domain: Domain) -> Verdict:
    """No, where such a pair of data sets can be named; else unknown."""
    seen: list[Margin] = []
    for invariant in given:
        if isinstance(invariant, AtLeast) and isinstance(invariant.than, int):
            continue  # holds on both sides once enough records are added to both
        needs = invariant.needs()
        if not needs:
            return Verdict.unknown(f"{invariant} does not say what determines it")
        for margin in needs:
            projected = _as_seen(margin, wanted, domain)
            if projected is None:
                return Verdict.unknown(
                    f"no rule tells whether {brief(margin, domain)} bear on {brief(wanted, domain)}"
                )
            seen += projected
    touched = {
        v for c in domain.constraints if c.record_type in {"", wanted.record_type} for v in c.variables
    }
    for case in _cases(seen, wanted, domain):
        if _may_be_empty({*case, *wanted.conditions()}, wanted.record_type, domain):
            continue
        moved = _moved(seen, wanted, domain, case)
        if moved is not None and not moved & touched:
            return Verdict.no(f"{brief(wanted, domain)} are not determined: {_words(moved, case)}")
    return Verdict.unknown(f"no rule tells whether {brief(wanted, domain)} follow")


def _as_seen(margin: Margin, wanted: Margin, domain: Domain) -> list[Margin] | None:
    """What a given table can show about records of the wanted type, at most; None where that is not known."""
    mine, theirs = wanted.record_type, margin.record_type
    if mine == theirs:
        return [margin]
    if frozenset((mine, theirs)) not in _LINKED:
        return []
    variables = {*margin.by, *margin.conditions()}
    areas_only = variables <= {*domain.spine}
    if mine == PERSON:
        # one more person in a home or facility that is there already changes no count of homes and facilities
        counts_persons = bool(variables & {domain.size_variable, "size"})
        return [] if (areas_only or theirs in {UNIT, QUARTERS}) and not counts_persons else None
    if mine == UNIT and theirs == HOUSEHOLD:
        return []  # a vacant unit more or less changes no household
    if theirs == UNIT:
        # a household can move into a vacant unit and leave one behind: counts of units by area do not see it
        return [] if areas_only else [Margin(mine, variables)]
    # persons move with the home or facility they belong to, so the table sees at most what can change their number
    if not domain.has(mine):
        return None
    own = domain.record_type(mine).names() - {*domain.spine}
    if not areas_only or mine == QUARTERS:
        carrying = own if not areas_only else {*wanted.conditions()}
    elif domain.size_variable:
        carrying = {v for v in own if domain.size_variable in domain.closure(mine, (v,))}
    else:
        carrying = own
    return [Margin(mine, (*(variables & {*domain.spine}), *carrying))]


def _cases(seen: Sequence[Margin], wanted: Margin, domain: Domain) -> Iterator[dict[str, str]]:
    """One level for each variable that some table is restricted by, inside what the wanted table counts."""
    variables = sorted({v for margin in seen for v in margin.conditions()})
    choices = []
    for variable in variables:
        mentioned = {value for margin in (*seen, wanted) for value in margin.conditions().get(variable, ())}
        levels = wanted.conditions().get(variable) or domain.levels(wanted.record_type, variable)
        choices.append(levels or tuple(sorted(mentioned)))
    yield from (dict(zip(variables, case, strict=True)) for case in islice(product(*choices), MOST_CASES))


def _may_be_empty(fixed: set[str], record_type: str, domain: Domain) -> bool:
    """Whether a level of one variable may exclude that of another: no block of one county lies in another."""
    return any(v in domain.closure(record_type, tuple(fixed - {v})) for v in fixed)


def _moved(
    seen: Sequence[Margin], wanted: Margin, domain: Domain, case: Mapping[str, str]
) -> frozenset[str] | None:
    """The variables to exchange among records of this case, so that no given table notices; None if one would."""
    kind = wanted.record_type
    # a variable that only the wanted table is restricted by is exchanged for a value outside the restriction
    open_ended = {
        v for v, values in wanted.conditions().items() if {*values} != {*(domain.levels(kind, v) or ())}
    }
    varying = {v for v in {*wanted.by} | open_ended if v not in case and not _is_constant(domain, kind, v)}
    finest = {v for v in varying if not any(w != v and v in domain.closure(kind, (w,)) for w in varying)}
    moved: set[str] = set()
    for margin in seen:
        if any(case[v] not in values for v, values in margin.conditions().items()):
            continue  # records of this case are not in that table
        hidden = finest - domain.closure(kind, (*margin.by, *case))
        if not hidden:
            return None
        moved.add(min(hidden))
    return frozenset(moved)


def _is_constant(domain: Domain, record_type: str, name: str) -> bool:
    if not domain.has(record_type):
        return False
    return any(v.name == name and v.size == 1 for v in domain.record_type(record_type).variables)


def _words(moved: frozenset[str], case: Mapping[str, str]) -> str:
    among = f" among records with {', '.join(f'{v} = {value}' for v, value in case.items())}" if case else ""
    if not moved:
        return (
            f"another record{among} changes none of the given tables"
            if case
            else "no given table counts such records"
        )
    return f"exchanging {' and '.join(sorted(moved))}{among} keeps every given table and changes this one"
