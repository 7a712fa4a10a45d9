"""Pairs of different data sets in one universe, at which a budget can be refuted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stirred.spec.domain import HOUSEHOLDS, PERSON, QUARTERS, Domain
from stirred.spec.invariants.axes import Model, UndecidedError, models
from stirred.spec.invariants.determine import keys
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.nearest.distance import smallest_distance
from stirred.spec.neighbours import Neighbours
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.refinement import determined, linked
from stirred.spec.verdict import Answer
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault
from stirred.spec.verdicts.reach import counts_only_its_own
from stirred.spec.verdicts.witness import DataSet, Values, Witness

MOST_COPIES = 1000
ANYTHING = "anything else"  # a variable of a record type whose variables the domain does not list


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A pair of one universe at finite distance, or the proof that there is none."""

    pair: Witness | None = None
    derivation: Derivation | None = None
    singletons: Derivation | None = None


def different_pair(multiverse: Multiverse, domain: Domain, premetric: InputPremetric) -> Example:
    """Two different data sets on which all invariants agree, at finite distance.

    >>> from stirred.spec.premetrics import Hamming
    >>> found = different_pair(Multiverse.of(Margin("person", ("age",))), Domain(name="toy"), Hamming("person"))
    >>> found.pair.distance("person")
    1
    """
    if isinstance(premetric, Neighbours):
        return _neighbouring(multiverse, domain, premetric.inner)
    fixed = premetric.fixed()
    if fixed is None:
        return Example()
    listed = [kind.name for kind in domain.record_types]
    kinds = [premetric.unit, *(kind for kind in listed if kind != premetric.unit)]
    totals = frozenset() if fixed.is_vacuous else frozenset(Margin(kind) for kind in kinds)
    tables = [Margin(kind, _names(multiverse, domain, kind)) for kind in kinds]
    even = multiverse & fixed & Multiverse(totals)
    # persons who stay where they are first: a move counts once or twice
    places = Margin(PERSON, _names(multiverse, domain, PERSON) & places_of(domain))
    tried = (even & places, even) if premetric.unit == PERSON and places.by else (even,)
    for kept in dict.fromkeys((*tried, _with_homes(multiverse, premetric, kinds))):
        for table in tables:
            found = determined(tuple(kept), table, domain)
            # a pair for each way in which areas may lie in each other is no single pair
            if found.answer is Answer.NO and found.derivation is not None and found.derivation.witness:
                return Example(pair=found.derivation.witness, derivation=found.derivation)
    if not listed or linked(domain):
        return Example()
    # only what every pair at finite distance has in common is fixed
    sure = multiverse & fixed if counts_only_its_own(premetric, domain) else multiverse
    steps = [found.derivation for table in tables if (found := determined(tuple(sure), table, domain))]
    if len(steps) < len(tables):
        return Example()
    claim = "the invariants determine every table, so each universe is a single data set"
    premises = tuple(step for step in steps if step is not None)
    return Example(singletons=Derivation(rule="all of", claim=claim, premises=premises))


def places_of(domain: Domain) -> frozenset[str]:
    """The variables that say where a person lives, in a domain that lists homes."""
    if not any(domain.has(kind) for kind in (*HOUSEHOLDS, QUARTERS)):
        return frozenset()
    return frozenset({"household", "quarters", *domain.spine, *domain.identifiers("household")})


def _with_homes(multiverse: Multiverse, premetric: InputPremetric, kinds: Sequence[str]) -> Multiverse:
    """What a pair keeps so that it is at finite distance: where homes are counted, persons may come and go."""
    keeps = isinstance(premetric, Hamming) and premetric.record_type in HOUSEHOLDS
    totals = [Margin(kind) for kind in kinds if kind != PERSON or not keeps]
    return multiverse & Multiverse(frozenset(totals)) if isinstance(premetric, Hamming) else multiverse


def _neighbouring(multiverse: Multiverse, domain: Domain, inner: InputPremetric) -> Example:
    """Two neighbours of one universe, or that there are none."""
    if no_neighbours(multiverse, domain, inner):
        claim = "no two data sets of one universe are neighbours"
        return Example(singletons=Derivation(rule="no neighbours", claim=claim))
    near = smallest_distance(domain, multiverse, inner)
    kept = tuple(multiverse)
    # a pair that depends on which area lies in which, or on rules of the domain, refutes nothing
    if near.value != 1 or not near.safe or near.pair is None or fault(domain, kept, None, near.pair):
        return Example()
    step = Derivation(
        rule="pair", claim="two neighbours of one universe", witness=near.pair, facts={"given": kept}
    )
    return Example(pair=near.pair, derivation=step)


def no_neighbours(multiverse: Multiverse, domain: Domain, premetric: InputPremetric) -> bool:
    """Whether no two data sets of one universe are at distance 1: every single change shows in some exact table.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> from stirred.spec.premetrics import Hamming
    >>> variables = (Variable(name="age"), Variable(name="sex"))
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=variables),))
    >>> both = Multiverse.of(Margin("person", ("age",)), Margin("person", ("sex",)))
    >>> no_neighbours(both, toy, Hamming("person")), no_neighbours(Multiverse.none(), toy, Hamming("person"))
    (True, False)
    """
    kind = premetric.unit
    if not isinstance(premetric, Hamming | SymmetricDifference) or premetric.copies > 1:
        return False
    if [known.name for known in domain.record_types] != [kind]:
        return False
    margins = [invariant for invariant in multiverse if isinstance(invariant, Margin)]
    names = _names(multiverse, domain, kind)
    try:
        return all(
            _each_change_shows(model, margins, names, premetric)
            for model in models(domain, kind, [*margins, Margin(kind, names)])
        )
    except UndecidedError:
        return False


def _each_change_shows(
    model: Model, margins: list[Margin], names: frozenset[str], premetric: InputPremetric
) -> bool:
    cells = model.cells()
    places = [keys(margin, model, cells) for margin in margins]
    seen = [model.shown(margin.by) for margin in margins]
    plain = model.shown(names)
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


def _names(multiverse: Multiverse, domain: Domain, kind: str) -> frozenset[str]:
    """The variables of a record: those the domain lists, or those some invariant reads and one more."""
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
    return frozenset({*read, ANYTHING})


def with_largest_stratum(found: Example, statistic: LargestStratum, b: int, domain: Domain) -> Example:
    """The pair with records added to both sides, so that the largest stratum has b records."""
    if found.pair is None or largest_stratum(statistic, found.pair) is None:
        return Example()
    kind = statistic.record_type
    for more in (DataSet(()), *_second_values(found.pair, statistic, domain)):
        pair = found.pair.with_background(more)
        now = largest_stratum(statistic, pair) or 0
        if not 2 <= now <= b:
            continue
        for _, values, _ in pair.first.rows:
            filled = pair.with_background(_copies(domain, kind, values, b - now))
            if largest_stratum(statistic, filled) == b == largest_stratum(statistic, filled.turned()):
                return Example(pair=filled, derivation=found.derivation)
    return Example()


def largest_stratum(statistic: LargestStratum, pair: Witness) -> int | None:
    """b at the universe of a pair; None where its records leave out a variable that the statistic reads."""
    needed = {*statistic.match, *statistic.hold, *statistic.swap}
    records = list(pair.first.records(statistic.record_type))
    if any(not needed <= {*values} for values, _ in records):
        return None
    return statistic.counted(records)


def _copies(domain: Domain, kind: str, values: Values, number: int) -> DataSet:
    """So many records like this one; where records have identifiers, each with its own."""
    identifiers = domain.identifiers(kind) & {name for name, _ in values}
    if number < 1:
        return DataSet(())
    if not identifiers or number > MOST_COPIES:
        return DataSet(((kind, values, number),))
    plain = {name: value for name, value in values if name not in identifiers}
    return DataSet.of(
        kind,
        [({**plain, **{name: f"{name} copy {i + 1}" for name in identifiers}}, 1) for i in range(number)],
    )


def with_finer_strata(
    found: Example, coarse: LargestStratum, fine: LargestStratum, domain: Domain
) -> Example:
    """The pair with many records added to both sides that share its stratum in the coarse sense, not in the fine one."""
    base = with_largest_stratum(found, fine, 3, domain)
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
        name: _another(domain, kind, name, value) if name in apart else value
        for name, value in record.items()
    }
    more = DataSet.of(kind, [(fresh, 1000)])
    return Example(pair=base.pair.with_background(more), derivation=base.derivation)


def _second_values(pair: Witness, statistic: LargestStratum, domain: Domain) -> Iterator[DataSet]:
    """One more record of the stratum that differs in one hold and one swap variable."""
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
                        fresh[name] = _another(domain, kind, name, record[name])
                yield DataSet.of(kind, [(fresh, 1)])


def _another(domain: Domain, kind: str, name: str, value: str) -> str:
    levels = domain.levels(kind, name)
    tied = len(domain.closure(kind, (name,))) > 1 or any(
        name in {*r.of, *r.determines} for r in domain.rules(kind)
    )
    if levels is not None and not tied:
        return next((level for level in levels if level != value), value)
    return f"{value} b"
