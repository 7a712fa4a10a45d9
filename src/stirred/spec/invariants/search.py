"""The search for two data sets that agree on some invariants and differ on another: the witness of a no."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stirred.spec.domain import Domain
from stirred.spec.invariants.axes import Model, ModelAxis, UndecidedError, build_models
from stirred.spec.invariants.brief import abbreviate
from stirred.spec.invariants.determine import SignedTable, find_combinations, generate_pairs
from stirred.spec.invariants.inequalities import AtLeast
from stirred.spec.invariants.margins import Invariant, Margin
from stirred.spec.verdict import Verdict
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import find_fault
from stirred.spec.verdicts.witness import DataSet, Witness

MAX_FIXED_WAYS = 24  # ways to hold constrained variables at one level that are tried for a witness


def find_witness(given: Sequence[Invariant], wanted: Margin, changed: Invariant, domain: Domain) -> Verdict:
    """Return a no with a pair that agrees on the given invariants and differs on ``changed``, else unknown."""
    seen: list[Margin] = []
    for invariant in given:
        if isinstance(invariant, AtLeast) and isinstance(invariant.than, int):
            continue  # holds on both sides once enough records are added to both
        if not invariant.needs():
            return Verdict.unknown(f"{invariant} does not say what determines it")
        seen += [margin for margin in invariant.needs() if margin.record_type == wanted.record_type]
    steps = []
    try:
        for model in build_models(domain, wanted.record_type, [*seen, wanted]):
            pair, reason = _find_pair(given, seen, wanted, changed, domain, model)
            if pair is None:
                return Verdict.unknown(
                    f"no rule tells whether the others fix {abbreviate(changed, domain)}{_append_reason(reason)}"
                )
            claim = f"{abbreviate(changed, domain)} are not determined: {_describe_change(pair, wanted.record_type)}"
            facts = {"given": tuple(given), "wanted": changed, "axes": model.axes}
            steps.append(Derivation(rule="pair", claim=claim, witness=pair, facts=facts))
    except UndecidedError as reason:
        return Verdict.unknown(
            f"no rule tells whether the others fix {abbreviate(changed, domain)}: {reason}"
        )
    if len(steps) == 1:
        return Verdict.no(steps[0].claim, steps[0])
    every = Derivation(rule="every map", claim=steps[0].claim, premises=tuple(steps))
    return Verdict.no(every.claim, every)


def _append_reason(reason: str) -> str:
    return f": {reason}" if reason else ""


def _find_pair(
    given: Sequence[Invariant],
    seen: Sequence[Margin],
    wanted: Margin,
    changed: Invariant,
    domain: Domain,
    model: Model,
) -> tuple[Witness | None, str]:
    """Return a pair that meets all conditions, or None with the reason why the last one tried was refused."""
    told = [margin for invariant in (*given, wanted) for margin in invariant.needs()]
    mine = [margin for margin in told if margin.record_type == wanted.record_type]
    names = frozenset(name for margin in mine for name in (*margin.by, *margin.conditions()))
    reason = ""
    for reduced in (model, *_reduce_model(model, domain, names)):
        signed = find_combinations(seen, wanted, reduced)
        if not isinstance(signed, SignedTable):
            continue
        for bare in generate_pairs(signed, domain, wanted, names):
            for pair in _raise_counts(bare, given, changed):
                reason = find_fault(domain, given, changed, pair)
                if not reason:
                    return pair, ""
    return None, reason


def _reduce_model(model: Model, domain: Domain, names: frozenset[str]) -> Iterator[Model]:
    """Yield models in which records differ in every variable that a constraint names, or in none of them."""
    kind = model.record_type
    about = [{*c.variables} & names for c in domain.constraints if c.record_type in {"", kind}]
    touched = frozenset[str]().union(*about)
    if not touched:
        return
    plain = frozenset(p for p in model.plain if not touched & _find_variables_above(domain, kind, p, names))
    free = [axis for axis in model.axes if not touched & {*axis.variables}]
    held = [axis for axis in model.axes if touched & {*axis.variables}]
    levels: list[list[ModelAxis]] = [[]]
    for axis in held:
        levels = [
            [*chosen, ModelAxis(axis.variables, (level,))] for chosen in levels for level in axis.levels
        ]
    profiles = {name: name_profile(name, about) for name in touched if name in model.parts}
    parts = {
        name: model.parts[name] | ({profiles[name]} if name in profiles else set()) for name in model.parts
    }
    both = plain | frozenset(profiles.values())
    for chosen in levels[:MAX_FIXED_WAYS]:
        axes = (*free, *chosen)
        yield replace(model, axes=axes, plain=plain)
        if profiles and not held:
            yield replace(model, axes=axes, plain=both, parts=parts)


def name_profile(name: str, about: Sequence[set[str]]) -> str:
    """Return a name for all variables that constraints tie to this one, directly or through others."""
    group = {name}
    while True:
        grown = group.union(*(variables for variables in about if variables & group))
        if grown == group:
            return "profile of " + ", ".join(sorted(group))
        group = grown


def _find_variables_above(domain: Domain, kind: str, part: str, names: frozenset[str]) -> frozenset[str]:
    """Return the variables whose values show an own part."""
    return frozenset(name for name in names if part in domain.closure(kind, (name,)))


def _raise_counts(pair: Witness, given: Sequence[Invariant], changed: Invariant) -> Iterator[Witness]:
    """Yield the pair, also with records added to both sides so that inequalities hold or fail as needed."""
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


def _describe_change(pair: Witness, kind: str) -> str:
    """Describe what differs between the two data sets."""
    if pair.distance(kind) is None:
        return "a record more changes none of the given tables"
    records = [values for data in (pair.first, pair.second) for values, _ in data.records(kind)]
    names = sorted({*records[0]}) if records else []
    varying = [name for name in names if len({values[name] for values in records}) > 1]
    return f"exchanging {' and '.join(varying)} keeps every given table and changes this one"
