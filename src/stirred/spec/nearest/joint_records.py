"""Tables of several record types as tables of one joint record.

Where every household has one person and lives in one housing unit, a person, its household and its unit are one record, and
a table of any of the three is a table of that record. A pair of data sets of such records is a pair of the domain, so what
the joint record shows possible is possible.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from stirred.spec.domain import HOUSEHOLDS, Domain, RecordType, Variable
from stirred.spec.multiverse import AtLeast, Custom, Invariant, Margin, Multiverse
from stirred.spec.nearest.questions import Question
from stirred.spec.released import Views, largest_views

PERSON, HOUSEHOLD, UNIT, QUARTERS = "person", "household", "housing unit", "group quarters"
RELATED_TYPES: Mapping[str, tuple[str, ...]] = {
    PERSON: (HOUSEHOLD, UNIT),
    HOUSEHOLD: (PERSON, UNIT),
    UNIT: (HOUSEHOLD, PERSON),
    QUARTERS: (PERSON,),
}


def ask_own_tables(domain: Domain, multiverse: Multiverse, unit: str, *, total: bool) -> Question:
    """Return the question with the tables of the unit alone; its answer holds whatever else is published."""
    identifiers = domain.identifiers(unit)
    margins = [
        _drop_identifiers(m, identifiers, unit)
        for m in multiverse
        if isinstance(m, Margin) and m.record_type == unit
    ]
    distinct = tuple(dict.fromkeys(margins))
    return Question(
        domain=domain, kind=unit, margins=distinct, own=frozenset(range(len(distinct))), total=total
    )


def ask_joint_tables(
    domain: Domain, multiverse: Multiverse, unit: str, published: str, *, total: bool, custom: bool
) -> Question:
    """Return the question with all tables of the joint record; those of the type ``published`` count as own.

    ``custom``: whether invariants that are no tables are taken to say all that the margins which determine them say.
    """
    family = (unit, *RELATED_TYPES.get(unit, ()))
    joint = _joint_domain(domain, unit, family)
    identifiers = _identifiers(domain, family)
    tables: dict[Margin, bool] = {}
    for invariant in multiverse:
        for margin in _list_tables(invariant, family, custom=custom):
            table = _drop_identifiers(margin, identifiers, unit)
            mine = isinstance(invariant, Margin) and invariant.record_type == published
            tables[table] = tables.get(table, False) or mine
    tied = {
        name for rule in domain.constraints if rule.record_type in {"", *family} for name in rule.variables
    }
    if domain.has(PERSON):
        tied.add(domain.size_variable)
    return Question(
        domain=joint,
        kind=unit,
        margins=tuple(tables),
        own=frozenset(place for place, mine in enumerate(tables.values()) if mine),
        total=total,
        tied=frozenset(tied),
    )


def join_record_views(domain: Domain, views: Iterable[Margin], unit: str) -> Views:
    """Return the views as tables of the joint record, without views of records that the distance ignores."""
    family = (unit, *RELATED_TYPES.get(unit, ()))
    identifiers = _identifiers(domain, family)
    mine = [_drop_identifiers(view, identifiers, unit) for view in views if view.record_type in family]
    return largest_views(_joint_domain(domain, unit, family), mine)


def ask_lower_tables(
    asked: Question, domain: Domain, multiverse: Multiverse, views: Views
) -> Question | None:
    """Return the question with tables that bind every record of the unit in any household, or None.

    No change is smaller than the lightest one that these tables leave, because a table of another record type binds only
    some of the records: an empty home is in no table of persons. Of statistics that are no tables only those count that join
    tables by an identifier: who lives together, with all that is held.
    """
    unit = asked.kind
    if any(view.record_type != unit for view in views) and unit not in HOUSEHOLDS:
        return None
    family = (unit, *RELATED_TYPES.get(unit, ()))
    identifiers = _identifiers(domain, family)
    kept = [
        _drop_identifiers(margin, identifiers, unit)
        for invariant in multiverse
        if (isinstance(invariant, Margin) and invariant.record_type == unit)
        or (isinstance(invariant, Custom) and all(identifiers & {*m.by} for m in invariant.needs()))
        for margin in _list_tables(invariant, family, custom=True)
    ]
    return replace(asked, margins=tuple(dict.fromkeys(kept)), own=frozenset(), tied=frozenset())


def _identifiers(domain: Domain, family: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(domain.identifiers(kind) for kind in family))


def _list_tables(invariant: Invariant, family: tuple[str, ...], *, custom: bool) -> Iterator[Margin]:
    """Yield tables that together fix what an invariant says of these records."""
    if isinstance(invariant, Margin):
        if invariant.record_type in family:
            yield invariant
        return
    if isinstance(invariant, AtLeast) and isinstance(invariant.than, int):
        return  # enough further records on both sides keep it
    if not custom:
        return
    needs = [margin for margin in invariant.needs() if margin.record_type in family]
    yield from needs
    if isinstance(invariant, AtLeast):
        return
    # tables that share an identifier can be joined record by record
    for size in range(2, len(needs) + 1):
        for chosen in combinations(needs, size):
            where: dict[str, tuple[str, ...]] = {}
            for margin in chosen:
                for name, values in margin.conditions().items():
                    where[name] = tuple(v for v in values if name not in where or v in where[name])
            if all(where.values()):
                yield Margin(family[0], [name for margin in chosen for name in margin.by], where)


def _drop_identifiers(margin: Margin, identifiers: frozenset[str], unit: str) -> Margin:
    """Return the table as one of the unit's records, without identifiers."""
    return Margin(unit, [name for name in margin.by if name not in identifiers], margin.where)


def _joint_domain(domain: Domain, unit: str, family: tuple[str, ...]) -> Domain:
    if not domain.has(unit):
        return domain
    variables: dict[str, Variable] = {}
    identifiers = _identifiers(domain, family)
    for kind in family:
        if domain.has(kind):
            for variable in domain.record_type(kind).variables:
                if variable.name not in identifiers:
                    variables.setdefault(variable.name, variable)
    rules = [rule for rule in domain.dependencies if rule.record_type in {"", *family}]
    plain = tuple(replace(rule, record_type=unit) for rule in rules if not identifiers & {*rule.of})
    return replace(
        domain,
        record_types=(RecordType(name=unit, variables=tuple(variables.values())),),
        dependencies=plain,
    )
