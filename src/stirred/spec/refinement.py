"""Which invariants determine which, with a derivation that a checker verifies.

A yes is a computation: the wanted table is read off a given one, or is a combination of given ones. A no is a pair of data
sets that agree on everything given and differ on what is wanted. Anything else is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stirred.spec.domain import Domain
from stirred.spec.invariants.axes import Axis, Model, UndecidedError, models
from stirred.spec.invariants.brief import brief
from stirred.spec.invariants.determine import Signed, combinations_for, pairs
from stirred.spec.invariants.reading import by_homes, by_size, read_off
from stirred.spec.multiverse import AtLeast, Invariant, Margin, Multiverse
from stirred.spec.premetrics import HOUSEHOLDS, PERSON, InputPremetric
from stirred.spec.verdict import Answer, Verdict, all_of
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault
from stirred.spec.verdicts.witness import DataSet, Pair

MOST_FIXED = 24  # ways to hold constrained variables at one level that are tried for a witness


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
    >>> refines_within_reach(Multiverse.none(), total, Domain(name="toy"), Hamming("household")).because
    'd_Ham(household) is infinite unless number of households agree'
    """
    inner = getattr(premetric, "inner", None)
    if isinstance(inner, InputPremetric):
        # neighbours are at finite distance; for a no the two data sets have to be neighbours, which the caller asks
        return refines_within_reach(finer, coarser, domain, inner)
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
        return _at_finite_distance(finer & fixed, coarser, domain, reached)
    if counts_only_its_own(premetric, domain):
        words = ", ".join(invariant.words() for invariant in fixed)
        because = f"{premetric} is infinite unless {words} agree"
        step = Derivation(
            rule="finite distance", claim=because, premises=_steps(reached), facts={"fixed": tuple(fixed)}
        )
        return Verdict.yes(because, step)
    return Verdict.unknown(
        f"{premetric} fixes the number of its records in the joint file, where vacant units and empty facilities count "
        f"too: {plain.because}"
    )


def _steps(*verdicts: Verdict) -> tuple[Derivation, ...]:
    return tuple(verdict.derivation for verdict in verdicts if verdict.derivation is not None)


def _at_finite_distance(finer: Multiverse, coarser: Multiverse, domain: Domain, found: Verdict) -> Verdict:
    """A no whose pair has as many records of every type on both sides, so that every Hamming distance is finite."""
    if found.answer is not Answer.NO or _even(found.derivation):
        return found
    totals = {Margin(need.record_type) for invariant in coarser for need in invariant.needs()}
    again = refines(Multiverse(finer.invariants | totals), coarser, domain)
    if again.answer is Answer.NO:
        return again
    return Verdict.unknown(f"no pair of data sets with equal numbers of records is known: {found.because}")


def _even(step: Derivation | None) -> bool:
    """Whether both data sets of every witness have equally many records of each type."""
    if step is None:
        return False
    pair = step.witness
    if pair is not None:
        kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
        return all(pair.distance(kind) is not None for kind in kinds)
    return bool(step.premises) and all(_even(premise) for premise in step.premises)


def counts_only_its_own(premetric: InputPremetric, domain: Domain) -> bool:
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
    if not tables or not all(kind.variables for kind in domain.record_types):
        return Verdict.unknown("the domain does not list its variables")
    return refines(multiverse, Multiverse.of(*tables), domain)


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


def witnessed(given: Sequence[Invariant], wanted: Margin, changed: Invariant, domain: Domain) -> Verdict:
    """No, with a pair of data sets on which the given invariants agree and ``changed`` differs; else unknown."""
    seen: list[Margin] = []
    for invariant in given:
        if isinstance(invariant, AtLeast) and isinstance(invariant.than, int):
            continue  # holds on both sides once enough records are added to both
        if not invariant.needs():
            return Verdict.unknown(f"{invariant} does not say what determines it")
        seen += [margin for margin in invariant.needs() if margin.record_type == wanted.record_type]
    steps = []
    try:
        for model in models(domain, wanted.record_type, [*seen, wanted]):
            pair, reason = _pair(given, seen, wanted, changed, domain, model)
            if pair is None:
                return Verdict.unknown(
                    f"no rule tells whether the others fix {brief(changed, domain)}{_and(reason)}"
                )
            claim = f"{brief(changed, domain)} are not determined: {_change(pair, wanted.record_type)}"
            facts = {"given": tuple(given), "wanted": changed, "axes": model.axes}
            steps.append(Derivation(rule="pair", claim=claim, witness=pair, facts=facts))
    except UndecidedError as reason:
        return Verdict.unknown(f"no rule tells whether the others fix {brief(changed, domain)}: {reason}")
    if len(steps) == 1:
        return Verdict.no(steps[0].claim, steps[0])
    every = Derivation(rule="every map", claim=steps[0].claim, premises=tuple(steps))
    return Verdict.no(every.claim, every)


def _and(reason: str) -> str:
    return f": {reason}" if reason else ""


def _pair(
    given: Sequence[Invariant],
    seen: Sequence[Margin],
    wanted: Margin,
    changed: Invariant,
    domain: Domain,
    model: Model,
) -> tuple[Pair | None, str]:
    """A pair that the checker accepts, and otherwise why the last one tried was refused."""
    told = [margin for invariant in (*given, wanted) for margin in invariant.needs()]
    mine = [margin for margin in told if margin.record_type == wanted.record_type]
    names = frozenset(name for margin in mine for name in (*margin.by, *margin.conditions()))
    reason = ""
    for reduced in (model, *_reduced(model, domain, names)):
        signed = combinations_for(seen, wanted, reduced)
        if not isinstance(signed, Signed):
            continue
        for bare in pairs(signed, domain, wanted, names):
            for pair in _raised(bare, given, changed):
                reason = fault(domain, given, changed, pair)
                if not reason:
                    return pair, ""
    return None, reason


def _reduced(model: Model, domain: Domain, names: frozenset[str]) -> Iterator[Model]:
    """The model with two records in mind that differ in every variable a constraint is about, or in none of them."""
    kind = model.record_type
    about = [{*c.variables} & names for c in domain.constraints if c.record_type in {"", kind}]
    touched = frozenset[str]().union(*about)
    if not touched:
        return
    plain = frozenset(p for p in model.plain if not touched & _above(domain, kind, p, names))
    free = [axis for axis in model.axes if not touched & {*axis.variables}]
    held = [axis for axis in model.axes if touched & {*axis.variables}]
    levels: list[list[Axis]] = [[]]
    for axis in held:
        levels = [[*chosen, Axis(axis.variables, (level,))] for chosen in levels for level in axis.levels]
    profiles = {name: profile_of(name, about) for name in touched if name in model.parts}
    parts = {
        name: model.parts[name] | ({profiles[name]} if name in profiles else set()) for name in model.parts
    }
    both = plain | frozenset(profiles.values())
    for chosen in levels[:MOST_FIXED]:
        axes = (*free, *chosen)
        yield replace(model, axes=axes, plain=plain)
        if profiles and not held:
            yield replace(model, axes=axes, plain=both, parts=parts)


def profile_of(name: str, about: Sequence[set[str]]) -> str:
    """A name for all variables that constraints tie to this one, directly or through others."""
    group = {name}
    while True:
        grown = group.union(*(variables for variables in about if variables & group))
        if grown == group:
            return "profile of " + ", ".join(sorted(group))
        group = grown


def _above(domain: Domain, kind: str, part: str, names: frozenset[str]) -> frozenset[str]:
    """The variables whose values show an own part."""
    return frozenset(name for name in names if part in domain.closure(kind, (name,)))


def _raised(pair: Pair, given: Sequence[Invariant], changed: Invariant) -> Iterator[Pair]:
    """The pair, and the pair with records added to both sides so that inequalities hold, or fail, as they must."""
    if isinstance(changed, AtLeast) and isinstance(changed.than, int):
        first, second = pair.first.table(changed.statistic), pair.second.table(changed.statistic)
        for cell in sorted({*first, *second}):
            missing = changed.than - max(first.get(cell, 0), second.get(cell, 0))
            if first.get(cell, 0) != second.get(cell, 0) and missing > 0:
                side = pair.first if first.get(cell) else pair.second
                rows = [row for row in side.rows if DataSet((row,)).table(changed.statistic).get(cell)]
                yield pair.with_background(DataSet(((*rows[0][:2], missing),)))
    yield pair
    limits = [i.than for i in given if isinstance(i, AtLeast) and isinstance(i.than, int)]
    if limits:
        both = pair.first + pair.second
        yield pair.with_background(
            DataSet(tuple((kind, values, max(limits)) for kind, values, _ in both.rows))
        )


def _change(pair: Pair, kind: str) -> str:
    """What differs between the two data sets, in words."""
    if pair.distance(kind) is None:
        return "a record more changes none of the given tables"
    records = [values for data in (pair.first, pair.second) for values, _ in data.records(kind)]
    names = sorted({*records[0]}) if records else []
    varying = [name for name in names if len({values[name] for values in records}) > 1]
    return f"exchanging {' and '.join(varying)} keeps every given table and changes this one"


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
