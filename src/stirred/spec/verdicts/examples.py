"""Pairs of different data sets in one universe, at which a budget can be refuted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stirred.spec.domain import HOUSEHOLDS, PERSON, QUARTERS, Domain
from stirred.spec.invariants.axes import Model, UndecidedError, build_models
from stirred.spec.invariants.determine import find_keys
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.nearest.distance import smallest_distance
from stirred.spec.neighbours import Neighbours
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.refinement import decide_determined, has_linked_records
from stirred.spec.verdict import Answer
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import find_fault
from stirred.spec.verdicts.reach import counts_only_its_own
from stirred.spec.verdicts.witness import DataSet, Values, Witness

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

    >>> from stirred.spec.premetrics import Hamming
    >>> found = find_different_pair(Multiverse.of(Margin("person", ("age",))), Domain(name="toy"), Hamming("person"))
    >>> found.pair.distance("person")
    1
    """
    if isinstance(premetric, Neighbours):
        return _find_neighbours(multiverse, domain, premetric.inner)
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
    >>> from stirred.spec.premetrics import Hamming
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
