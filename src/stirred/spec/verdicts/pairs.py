"""Checking a witness: two data sets of the domain that agree on some invariants and differ on another.

It shares no code with the search for witnesses, which calls it before it answers "no". It counts records and reads the
domain, and nothing else.
"""

from collections.abc import Iterable, Sequence

from stirred.spec.domain import Domain
from stirred.spec.invariants.inequalities import AtLeast
from stirred.spec.invariants.margins import Invariant, Margin
from stirred.spec.verdicts.witness import DataSet, Witness

PERSON, HOUSEHOLD, UNIT, QUARTERS = "person", "household", "housing unit", "group quarters"
# types of which no record belongs to a record of the other
_APART = {frozenset((HOUSEHOLD, QUARTERS)), frozenset((UNIT, QUARTERS))}


def find_fault(domain: Domain, kept: Sequence[Invariant], changed: Invariant | None, pair: Witness) -> str:
    """Return why the pair does not show that ``kept`` leaves ``changed`` open; empty where it does.

    With ``changed`` None the two data sets only have to be different.

    >>> x, y = (DataSet.of("household", [({"tenure": value}, 1)]) for value in ("own", "rent"))
    >>> find_fault(Domain(name="toy"), [Margin("household")], Margin("household", ("tenure",)), Witness(x, y))
    ''
    >>> find_fault(Domain(name="toy"), [Margin("household", ("tenure",))], None, Witness(x, y))
    'the two data sets differ in: households by tenure'
    """
    if not any(pair.difference(kind) for kind in _list_types(pair)):
        return "the two data sets are equal"
    asked = [*kept, *([] if changed is None else [changed])]
    if _lacks_variables([margin for invariant in asked for margin in invariant.needs()], pair):
        return "the records leave out a variable that an invariant reads"
    for invariant in kept:
        same = _agree(invariant, pair)
        if same is None:
            return f"nothing says what determines: {invariant}"
        if not same:
            return f"the two data sets differ in: {invariant}"
    if changed is not None and not _differ(changed, pair):
        return f"the two data sets agree on: {changed}"
    margins = [margin for invariant in kept for margin in invariant.needs()]
    return find_inadmissible(domain, pair) or _find_incoherent(domain, margins, pair)


def _list_types(pair: Witness) -> set[str]:
    return {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}


def _lacks_variables(margins: Sequence[Margin], pair: Witness) -> bool:
    """Return whether some record lacks a variable of a table that counts its type."""
    for data in (pair.first, pair.second):
        for kind, values, _ in data.rows:
            mine = [m for m in margins if m.record_type == kind]
            named = {name for name, _ in values}
            if any(not named.issuperset((*m.by, *m.conditions())) for m in mine):
                return True
    return False


def _agree(invariant: Invariant, pair: Witness) -> bool | None:
    if isinstance(invariant, AtLeast):
        first, second = (_find_deciding_cells(invariant, data) for data in (pair.first, pair.second))
        return first == second
    needs = invariant.needs()
    if not needs:
        return None
    return all(pair.first.table(margin) == pair.second.table(margin) for margin in needs)


def _differ(invariant: Invariant, pair: Witness) -> bool:
    if isinstance(invariant, AtLeast):
        return _find_deciding_cells(invariant, pair.first) != _find_deciding_cells(invariant, pair.second)
    if isinstance(invariant, Margin):
        return pair.first.table(invariant) != pair.second.table(invariant)
    return False  # of another statistic only what determines it is known


def _find_deciding_cells(invariant: AtLeast, data: DataSet) -> frozenset[tuple[str, ...]]:
    """Return the cells that decide the inequality: those that reach a number, or those that miss a margin."""
    have = data.table(invariant.statistic)
    if isinstance(invariant.than, int):
        return frozenset(cell for cell, count in have.items() if count >= invariant.than)
    want = data.table(invariant.than)
    return frozenset(cell for cell, count in want.items() if have.get(cell, 0) < count)


def find_inadmissible(domain: Domain, pair: Witness) -> str:
    """Return why one of the two is not a data set of the domain; empty where no rule is broken."""
    both = [(kind, dict(values)) for data in (pair.first, pair.second) for kind, values, _ in data.rows]
    if any(number < 1 for data in (pair.first, pair.second) for _, _, number in data.rows):
        return "a number of records is not positive"
    for kind in _list_types(pair):
        problem = _find_unlisted(domain, kind, [values for k, values in both if k == kind])
        if problem:
            return problem
    for kind in _list_types(pair):
        for rule in domain.rules(kind):
            found: dict[tuple[str, ...], tuple[str, ...]] = {}
            for _, values in ((k, v) for k, v in both if k == kind):
                if not all(name in values for name in (*rule.of, *rule.determines)):
                    continue
                key, seen = (tuple(values[n] for n in names) for names in (rule.of, rule.determines))
                if found.setdefault(key, seen) != seen:
                    return f"it breaks {rule}"
        if _repeats_identifier(domain, kind, pair):
            return "two records have the same identifier"
        for constraint in domain.constraints:
            if constraint.record_type not in {"", kind}:
                continue
            if not constraint.variables:
                return f"nothing says that it meets the constraint: {constraint.words}"
            if not _has_two_profiles([values for k, values in both if k == kind], constraint.variables):
                return f"nothing says that it meets the constraint: {constraint.words}"
    return ""


def _find_unlisted(domain: Domain, kind: str, records: Sequence[dict[str, str]]) -> str:
    """Return why the records do not fit the variables and levels of the domain; empty where they fit."""
    if not domain.has(kind) or not domain.record_type(kind).variables:
        return ""
    known = {variable.name: variable for variable in domain.record_type(kind).variables}
    tied = {name for rule in domain.rules(kind) for name in (*rule.of, *rule.determines)}
    free = {name for c in domain.constraints if c.record_type in {"", kind} for name in c.variables}
    for name in {name for values in records for name in values}:
        if name not in known:
            if name in domain.spine:
                continue
            return f"the domain lists no variable {name} of a {kind}"
        used = {values[name] for values in records if name in values}
        levels, size = known[name].levels, known[name].size
        # which area lies in which, and which records a constraint admits, is not listed: there a value may stand for one
        named = {value for value in used if value.startswith(f"{name} ")} if name in tied | free else set()
        if isinstance(levels, tuple) and not all(value in levels for value in used - named):
            return f"{name} has no such level"
        if size is not None and len(used) > size:
            return f"{name} has not so many levels"
    return _find_branching(domain, kind, records)


def _find_branching(domain: Domain, kind: str, records: Sequence[dict[str, str]]) -> str:
    """Return why the pair's areas may not exist: unless maps are listed, one area with two parts is sure."""
    branches = 0
    for rule in domain.rules(kind):
        if len(rule.of) != 1 or len(rule.determines) != 1:
            continue
        fine, coarse = rule.of[0], rule.determines[0]
        sizes = [domain.levels(kind, name) for name in (fine, coarse)]
        symbolic = any(values.get(fine, "").startswith(f"{fine} ") for values in records)
        if sizes[0] is None or sizes[1] is None or not symbolic:
            continue
        parts: dict[str, set[str]] = {}
        for values in records:
            if fine in values:
                parts.setdefault(values.get(coarse, ""), set()).add(values[fine])
        more = [len(found) for found in parts.values() if len(found) > 1]
        if more and len(sizes[0]) <= len(sizes[1]):
            return f"no {coarse} is sure to have two parts"
        branches += sum(n - 1 for n in more)
    return "" if branches <= 1 else "the areas of the domain need not lie in each other so"


def _has_two_profiles(records: Sequence[dict[str, str]], names: Iterable[str]) -> bool:
    """Return whether the records have one combination of these variables, or two that differ in each of them.

    A constraint leaves such combinations admissible, by what `Constraint` says of its variables.
    """
    told = [name for name in names if any(name in values for values in records)]
    found = {tuple(values.get(name) for name in told) for values in records}
    if len(found) <= 1:
        return True
    return len(found) == 2 and all(a != b for a, b in zip(*found, strict=True))


def _repeats_identifier(domain: Domain, kind: str, pair: Witness) -> bool:
    for name in domain.identifiers(kind):
        for data in (pair.first, pair.second):
            used = [n for values, n in data.records(kind) if name in values]
            named = [values[name] for values, _ in data.records(kind) if name in values]
            if any(n > 1 for n in used) or len(set(named)) < len(named):
                return True
    return False


def _find_incoherent(domain: Domain, margins: Iterable[Margin], pair: Witness) -> str:
    """Return why the other record types could not stay as they are; empty where they can.

    Persons live in households and facilities, households in housing units. Records of one type change here; tables of
    linked types must stay the same. They do

    - for households that are changed in place in variables those tables do not read; a household that moves into a vacant
      unit leaves the number of units in each area as it was, two that exchange their homes leave everything about them;
    - for persons where those tables read only areas (a person enters or leaves a home that is there);
    - for vacant housing units, in which nobody lives.
    """
    (kind, *more) = sorted(kind for kind in _list_types(pair) if pair.difference(kind))
    if more:
        return "records of several types change"
    others = [m for m in margins if m.record_type != kind and frozenset((m.record_type, kind)) not in _APART]
    records = [values for data in (pair.first, pair.second) for values, _ in data.records(kind)]
    names = {name for values in records for name in values}
    if kind in {HOUSEHOLD, UNIT}:
        others = [m for m in others if not _counts_outside_homes(m)]
    if kind == HOUSEHOLD:
        homes = Margin(kind, names & {*domain.spine})
        exchanged = pair.first.table(homes) == pair.second.table(homes)
        others = [
            m
            for m in others
            if m.record_type != UNIT or not (exchanged or {*m.by, *m.conditions()} <= {*domain.spine})
        ]
    if not others:
        return ""
    read = frozenset[str]().union(
        *(domain.closure(margin.record_type, (*margin.by, *margin.conditions())) for margin in others)
    )
    counting = {domain.size_variable, "size", "members"}
    if kind == PERSON:
        seen = {n for m in others if m.record_type == HOUSEHOLD for n in (*m.by, *m.conditions())}
        enters = seen <= {*domain.spine} and not read & counting
        return "" if enters else "a table of the homes might change with the persons in them"
    vacant = {values.get("occupancy") for values in records} == {"vacant"}
    if kind == UNIT and vacant and all(m.record_type in {HOUSEHOLD, PERSON} for m in others):
        return ""
    for name in sorted(names):
        moved = {other for other in names if name in domain.closure(kind, (other,))}
        rest = Margin(kind, names - moved)
        if pair.first.table(rest) == pair.second.table(rest) and not moved & (read | counting):
            return ""
    return "a table of another record type might change too"


def _counts_outside_homes(margin: Margin) -> bool:
    """Return whether a table counts persons who do not live in households."""
    quarters = margin.conditions().get("quarters")
    return margin.record_type == PERSON and quarters is not None and HOUSEHOLD not in quarters
