"""Decide which invariants determine which: a derivation for a yes, a pair of data sets for a no."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from stirred.spec.domain import QUARTERS as DOMAIN_QUARTERS
from stirred.spec.domain import Domain
from stirred.spec.finite_model import (
    Model,
    ModelAxis,
    SignedTable,
    UndecidedError,
    build_models,
    find_combinations,
    generate_pairs,
)
from stirred.spec.invariants import AtLeast, Invariant, Margin, abbreviate
from stirred.spec.verdict import DataSet, Derivation, Verdict, Witness, combine_verdicts, find_fault

# Reading one table off another: the rules that need no linear algebra.

PERSON, HOUSEHOLD, QUARTERS = "person", "household", "group quarters"


def read_off(margin: Margin, wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive the wanted table as sums of cells of a given one; None where its cells do not show enough.

    >>> toy = Domain(name="toy", spine=("county", "block"))
    >>> print(read_off(Margin("person", ("block",)), Margin("person", ("county",)), toy))
    persons by block determine persons by county (block → county) [read off]
    """
    if margin.record_type != wanted.record_type:
        return None
    have, want = margin.conditions(), wanted.conditions()
    constant = {v for v, values in have.items() if len(values) == 1}
    known = domain.closure(margin.record_type, (*margin.by, *constant))
    fixed = {v for v, values in want.items() if len(values) == 1}
    if not known.issuperset({*wanted.by} - fixed):
        return None
    for variable, values in have.items():
        asked = want.get(variable) or domain.levels(wanted.record_type, variable)
        if asked is None or not set(values).issuperset(asked):
            return None  # the given table leaves out records that the wanted one counts
    for variable, values in want.items():
        if variable not in known and not (variable in have and set(values).issuperset(have[variable])):
            return None  # the given table does not show who is to be left out
    wanted_variables = {*wanted.by, *want}
    steps = [
        str(rule)
        for rule in domain.rules(margin.record_type)
        if known.issuperset(rule.of)
        and {*rule.determines} - {*margin.by}
        and not wanted_variables <= {*margin.by}
    ]
    why = f" ({', '.join(dict.fromkeys(steps))})" if steps else ""
    claim = f"{abbreviate(margin, domain)} determine {abbreviate(wanted, domain)}{why}"
    return Derivation(rule="read off", claim=claim, facts={"given": margin, "wanted": wanted})


def derive_by_homes(margins: Sequence[Margin], wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive persons by area from households by size and from tables of persons outside households, or None."""
    size, areas = domain.size_variable, {*wanted.by, *wanted.conditions()}
    if not size or wanted.record_type != PERSON or not domain.has(QUARTERS) or not areas <= {*domain.spine}:
        return None
    sized = Margin(HOUSEHOLD, (*wanted.by, size), wanted.where)
    for outside in [m for m in margins if counts_outside_homes(m, domain)]:
        rest = Margin(
            PERSON, wanted.by, {**wanted.conditions(), "quarters": outside.conditions()["quarters"]}
        )
        steps = [
            next((found for m in margins if (found := read_off(m, table, domain)) is not None), None)
            for table in (sized, rest)
        ]
        if all(step is not None for step in steps):
            claim = f"{abbreviate(wanted, domain)} are the persons of households (by {size}) and those in group quarters"
            facts = {"wanted": wanted, "given": (sized, rest)}
            return Derivation(
                rule="homes", claim=claim, premises=tuple(s for s in steps if s is not None), facts=facts
            )
    return None


def counts_outside_homes(margin: Margin, domain: Domain) -> bool:
    """Return whether a table counts exactly the persons who live outside households."""
    levels = domain.levels(PERSON, "quarters") or ()
    chosen = {*margin.conditions().get("quarters", ())}
    only = margin.record_type == PERSON and len(margin.conditions()) == 1
    return only and bool(chosen) and chosen == {*levels} - {HOUSEHOLD}


def derive_by_size(margin: Margin, wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive persons by area from households by exact size (Σ size · households), or return None.

    Only for areas: a person's race is not the householder's, though the two columns may share a name.
    """
    size = domain.size_variable
    if not size or wanted.record_type != PERSON or margin.record_type != HOUSEHOLD:
        return None
    # people in group quarters of their own record type are in no household
    if domain.has(QUARTERS) or not {*domain.spine}.issuperset({*wanted.by, *wanted.conditions()}):
        return None
    sized = Margin(HOUSEHOLD, (*wanted.by, size), wanted.where)
    found = read_off(margin, sized, domain)
    if found is None:
        return None
    claim = f"{abbreviate(margin, domain)} determine {abbreviate(wanted, domain)} (each household counts for its {size})"
    facts = {"given": sized, "wanted": wanted, "size": size}
    return Derivation(rule="size", claim=claim, premises=(found,), facts=facts)


# The search for two data sets that agree on some invariants and differ on another: the witness of a no.

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


# Which invariants determine which, with a derivation that a checker verifies.
#
# A yes is a computation: the wanted table is read off a given one, or is a combination of given ones. A no is a pair
# of data sets that agree on everything given and differ on what is wanted. Anything else is unknown.


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
    return len(kinds) > 1 and kinds != {"household", DOMAIN_QUARTERS}


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
