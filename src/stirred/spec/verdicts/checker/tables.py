"""Check the steps of a derivation that say which tables determine which, by code that did not find them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import comb, prod
from typing import Any

from stirred.spec.domain import Domain
from stirred.spec.invariants import AtLeast, Invariant, Margin
from stirred.spec.verdict import DataSet, Derivation, Witness, find_fault

# What a derivation must look like before any rule is tried: plain objects of a bounded size.
#
# A derivation may come from anywhere. Its objects are of the classes named here and of no subclass, because a subclass
# can lie about what it equals; and it is small enough that every rule ends soon.

MAX_STEPS = 20_000  # steps of a derivation, a step that is shared counted each time
MAX_DEPTH = 100
MAX_ROWS_PER_DATA_SET = 20_000  # different records of a data set
MAX_RECORDS_PER_ROW = 10**30  # records of one kind in a data set


def check_form(step: object) -> str:
    """Return why this derivation cannot be checked; empty where it can."""
    left = MAX_STEPS
    open_ones: list[tuple[object, int]] = [(step, 1)]
    while open_ones:
        now, depth = open_ones.pop()
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            return "the derivation is too large to be checked"
        if type(now) is not Derivation:
            return "a step is no derivation"
        if type(now.rule) is not str or type(now.premises) is not tuple or not isinstance(now.facts, Mapping):
            return "a step has no rule, premises or facts of the usual kind"
        if now.witness is not None and (problem := _check_pair(now.witness)):
            return problem
        open_ones += [(premise, depth + 1) for premise in now.premises]
    return ""


def _check_pair(witness: object) -> str:
    if type(witness) is not Witness or type(witness.first) is not DataSet is not type(witness.second):
        return "a witness is no pair of data sets"
    return _check_data_set(witness.first) or _check_data_set(witness.second)


def _check_data_set(data: object) -> str:
    if type(data) is not DataSet or type(data.rows) is not tuple or len(data.rows) > MAX_ROWS_PER_DATA_SET:
        return "a witness is no pair of data sets"
    for row in data.rows:
        if type(row) is not tuple or len(row) != 3:
            return "a row of a data set is not a record type with values and a number"
        kind, values, number = row
        if type(kind) is not str or type(number) is not int or not 0 < number < MAX_RECORDS_PER_ROW:
            return "a number of records is not positive"
        if type(values) is not tuple or not all(
            type(pair) is tuple and len(pair) == 2 and all(type(text) is str for text in pair)
            for pair in values
        ):
            return "the values of a record are not texts"
        if len({name for name, _ in values}) < len(values):
            return "a record has two values of one variable"
    return ""


def read_whole_number(facts: Mapping[str, Any], name: str, default: int) -> int | None:
    """Return a fact that is a whole number, or None where it is anything else."""
    found = facts.get(name, default)
    return found if type(found) is int else None


def read_margins(value: object) -> tuple[Margin, ...] | None:
    """Return a fact that is a tuple of tables, or None where it is anything else."""
    if type(value) is not tuple or not all(type(item) is Margin for item in value):
        return None
    return value


# Checking that tables determine a table: every rule is verified from its facts, by code that did not find them.

MAX_WEIGHED_TERMS = 5_000_000  # cells times terms of a combination of tables
Axis = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]  # variables, and their joint levels


@dataclass(frozen=True, slots=True)
class Given:
    """The premises of a derivation: invariants, and what the distance fixes by itself."""

    invariants: frozenset[Invariant]
    fixed: frozenset[Invariant] = frozenset()

    def __contains__(self, invariant: object) -> bool:
        return invariant in self.invariants


def check_determines(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    """Return what is wrong with a derivation that ``given`` determines ``wanted``; empty where it holds."""
    if step.rule == "all of":
        faults = [check_determines(premise, given, wanted, domain) for premise in step.premises]
        return "" if any(not found for found in faults) else f"no step concludes: {wanted}"
    if wanted != step.facts.get("wanted", wanted) and step.rule not in {"finite distance", "every map"}:
        return f"the step is not about {wanted}"
    rule = _RULES.get(step.rule)
    return f"there is no rule {step.rule!r}" if rule is None else rule(step, given, wanted, domain)


def check_determines_all(step: Derivation, given: Given, wanted: Iterable[Invariant], domain: Domain) -> str:
    """Return what is wrong with a derivation of several invariants, each by some step; empty where it holds."""
    return next((found for one in wanted if (found := check_determines(step, given, one, domain))), "")


def check_leaves_open(step: Derivation, given: Given, wanted: Iterable[Invariant], domain: Domain) -> str:
    """Return what is wrong with a derivation that ``given`` leaves one of ``wanted`` open; empty if it holds."""
    asked = tuple(wanted)
    kinds = {need.record_type for one in asked for need in one.needs()}
    if step.rule == "every map":
        if len(kinds) != 1:
            return "the tables asked for are of several record types"
        faults = (
            _open_pair(premise, given, asked, domain) or _another_map(premise, domain)
            for premise in step.premises
        )
        return next((found for found in faults if found), "") or _missing_maps(step, domain, *kinds)
    if step.witness is not None and has_undecided_map(step.witness, domain):
        return "the areas may lie in each other in other ways too"
    return _open_pair(step, given, asked, domain)


def _open_pair(step: Derivation, given: Given, wanted: tuple[Invariant, ...], domain: Domain) -> str:
    if step.rule != "pair" or step.witness is None:
        return f"{step.rule!r} shows no pair of data sets"
    faults = [find_fault(domain, tuple(given.invariants), one, step.witness) for one in wanted]
    return (
        "" if any(not found for found in faults) else "; ".join(dict.fromkeys(faults)) or "nothing is asked"
    )


def has_undecided_map(pair: Witness, domain: Domain) -> bool:
    """Return whether a pair names areas of which the domain does not say which lies in which."""
    return any(
        _onto(len(domain.levels(kind, fine) or ()), len(domain.levels(kind, coarse) or ())) != 1
        for kind, fine, coarse, _ in _named_areas(pair, domain)
    )


def _named_areas(pair: Witness, domain: Domain) -> Iterator[tuple[str, str, str, tuple[str, str]]]:
    """Yield record type, finer and coarser variable, and the levels of both in one record of the pair."""
    for kind, values, _ in (*pair.first.rows, *pair.second.rows):
        at = dict(values)
        for fine, coarse in product(at, at):
            levels = (domain.levels(kind, fine) or (), domain.levels(kind, coarse) or ())
            if fine == coarse or at[fine] not in levels[0] or at[coarse] not in levels[1]:
                continue
            if coarse in domain.closure(kind, (fine,)):
                yield kind, fine, coarse, (at[fine], at[coarse])


def _another_map(step: Derivation, domain: Domain) -> str:
    """Return why the pair of a step lies in other areas than the step's joint levels say; empty otherwise."""
    if step.witness is None:
        return "a step shows no pair of data sets"
    ways = _joint(step)
    for _, fine, coarse, (low, high) in _named_areas(step.witness, domain):
        if not any(
            fine in names
            and coarse in names
            and any(
                level[names.index(fine)] == low and level[names.index(coarse)] == high for level in levels
            )
            for names, levels in ways.items()
        ):
            return "a pair of data sets lies in other areas than its step says"
    return ""


def _check_kept(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    del step, domain
    return "" if wanted in given else f"{wanted} is not among the given invariants"


def _read_off(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    source = step.facts["given"]
    if not isinstance(wanted, Margin) or type(source) is not Margin or source not in given:
        return "the table to read off is not a given one"
    return check_readable(source, wanted, domain)


def check_readable(source: Margin, wanted: Margin, domain: Domain) -> str:
    """Return why cells of the source do not sum to those of the wanted table; empty where they do."""
    if source.record_type != wanted.record_type:
        return "the tables count different records"
    single = [name for name, values in source.conditions().items() if len(values) == 1]
    seen = domain.closure(source.record_type, (*source.by, *single))
    for name in wanted.by:
        if name not in seen and len(wanted.conditions().get(name, ("", ""))) != 1:
            return f"{source} does not show {name}"
    for name, values in wanted.conditions().items():
        inside = {*source.conditions().get(name, ())} or None
        if name not in seen and not (inside is not None and inside <= {*values}):
            return f"{source} does not show who has {name} as asked"
    for name, values in source.conditions().items():
        needed = wanted.conditions().get(name) or domain.levels(source.record_type, name)
        if needed is None or not {*needed} <= {*values}:
            return f"{source} leaves records out"
    return ""


def _size(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    if not isinstance(wanted, Margin) or wanted.record_type != "person" or domain.has("group quarters"):
        return "persons are not counted by the households' sizes here"
    areas = {*wanted.by, *wanted.conditions()}
    if not areas <= {*domain.spine} or not domain.size_variable:
        return "only counts by area follow from the sizes of households"
    sized = Margin("household", (*wanted.by, domain.size_variable), wanted.where)
    return check_determines(step.premises[0], given, sized, domain)


def _homes(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    """Return why households by size and persons elsewhere do not give persons by area; empty if they do."""
    if not isinstance(wanted, Margin) or wanted.record_type != "person" or not domain.size_variable:
        return "persons are not counted by the households' sizes here"
    areas = {*wanted.by, *wanted.conditions()}
    if not areas <= {*domain.spine} or "household" not in (domain.levels("person", "quarters") or ()):
        return "only counts by area follow from the sizes of households"
    elsewhere = [level for level in domain.levels("person", "quarters") or () if level != "household"]
    sized = Margin("household", (*wanted.by, domain.size_variable), wanted.where)
    rest = Margin("person", wanted.by, {**wanted.conditions(), "quarters": elsewhere})
    faults = [
        [check_determines(premise, given, table, domain) for premise in step.premises]
        for table in (sized, rest)
    ]
    return (
        "" if all(any(not f for f in found) for found in faults) else "a part of the persons is not counted"
    )


def _sums(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    margins = read_margins(step.facts["given"])
    axes = _axes(step)
    if not isinstance(wanted, Margin) or margins is None or not all(margin in given for margin in margins):
        return "a table of the combination is not given"
    combinations = _combinations(step, len(margins))
    if axes is None or combinations is None:
        return "the combination of tables is not written out as it should be"
    named = [name for names, _ in axes for name in names]
    on_axes = {*named}
    if len(on_axes) < len(named):
        return "a variable is written out twice"
    terms = 1 + sum(1 + len(combination) for combination in combinations.values())
    if terms * prod(len(levels) for _, levels in axes) > MAX_WEIGHED_TERMS:
        return "the combination of tables is too large to be checked"
    used = {place for combination in combinations.values() for place, _ in combination}
    if any(margins[place].record_type != wanted.record_type for place in used):
        return "the tables count different records"
    for axis in axes:
        missing = _too_few(axis, [*margins, wanted], domain, wanted.record_type)
        if missing:
            return missing
    for margin in [wanted, *(margins[place] for place in used)]:
        if not {*margin.conditions()} <= on_axes:
            return f"a restriction of {margin} is not written out"
    plain = domain.closure(wanted.record_type, [name for name in wanted.by if name not in on_axes]) - on_axes
    for place in used:
        seen = domain.closure(wanted.record_type, margins[place].by)
        if any(name not in seen and not _constant(domain, wanted.record_type, name) for name in plain):
            return f"{margins[place]} does not show all variables of {wanted}"
    return _adds_up(combinations, margins, wanted, axes, on_axes)


def _axes(step: Derivation) -> tuple[Axis, ...] | None:
    """Return the axes of a step as plain texts, or None where they are anything else."""
    found: list[Axis] = []
    for axis in step.facts.get("axes", ()):
        names, levels = tuple(axis.variables), tuple(tuple(level) for level in axis.levels)
        texts = [*names, *(text for level in levels for text in level)]
        if not names or any(type(text) is not str for text in texts):
            return None
        if any(len(level) != len(names) for level in levels) or len({*levels}) < len(levels):
            return None
        found.append((names, levels))
    return tuple(found)


Combinations = Mapping[tuple[str, ...], Mapping[tuple[int, tuple[str, ...]], Fraction]]


def _combinations(step: Derivation, tables: int) -> Combinations | None:
    """Return the combination for each wanted cell as plain numbers, or None where it is anything else."""
    found: dict[tuple[str, ...], dict[tuple[int, tuple[str, ...]], Fraction]] = {}
    for cell, terms in dict(step.facts["combinations"]).items():
        if type(cell) is not tuple or any(type(text) is not str for text in cell):
            return None
        found[cell] = {}
        for (place, key), weight in dict(terms).items():
            if type(place) is not int or not 0 <= place < tables or type(key) is not tuple:
                return None
            if type(weight) not in {int, Fraction} or any(type(text) is not str for text in key):
                return None
            found[cell][place, key] = Fraction(weight)
    return found


def _sums_alone(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    return _sums(step, given, wanted, domain) or _several_maps(step, domain, wanted.needs()[0].record_type)


def _adds_up(
    combinations: Combinations,
    margins: tuple[Margin, ...],
    wanted: Margin,
    axes: tuple[Axis, ...],
    on_axes: set[str],
) -> str:
    """Return why the combination counts some record unlike the wanted table; empty where it adds up."""
    for chosen in product(*(levels for _, levels in axes)):
        cell = {
            n: v
            for (names, _), level in zip(axes, chosen, strict=True)
            for n, v in zip(names, level, strict=True)
        }
        mine = _key(wanted, cell, on_axes)
        if mine is not None and mine not in combinations:
            return f"a cell of {wanted} is missing"
        for key, combination in combinations.items():
            total = sum(
                (
                    c
                    for (place, other), c in combination.items()
                    if _key(margins[place], cell, on_axes) == other
                ),
                Fraction(0),
            )
            if total != (1 if key == mine else 0):
                return f"the combination does not give {wanted}"
    return ""


def _key(margin: Margin, cell: Mapping[str, str], on_axes: set[str]) -> tuple[str, ...] | None:
    if any(cell[name] not in values for name, values in margin.conditions().items()):
        return None
    return tuple(cell[name] for name in margin.by if name in on_axes)


def _constant(domain: Domain, kind: str, name: str) -> bool:
    levels = _sizes(domain, kind)
    above = domain.closure(kind, (name,)) - {name}
    size = levels.get(name)
    return size is not None and (size == 1 or any(levels.get(other) == size for other in above))


def _sizes(domain: Domain, kind: str) -> dict[str, int | None]:
    return {v.name: v.size for v in domain.record_type(kind).variables} if domain.has(kind) else {}


def _too_few(axis: Axis, margins: Iterable[Margin], domain: Domain, kind: str) -> str:
    """Return why the levels written out do not stand for all levels of an axis; empty where they do."""
    names, levels = axis
    if len(names) > 1:
        return _no_nesting(axis, domain, kind)
    (name,) = names
    limits = [frozenset(m.conditions()[name]) for m in margins if name in m.conditions()]
    shown = {level for (level,) in levels}
    stated = domain.levels(kind, name)
    size = _sizes(domain, kind).get(name)
    named = frozenset[str]().union(*limits) if limits else frozenset()
    every = stated if stated is not None else tuple(named)
    classes: dict[tuple[bool, ...], list[str]] = {}
    for level in every:
        classes.setdefault(tuple(level in limit for limit in limits), []).append(level)
    if any(len(shown & {*members}) < min(2, len(members)) for members in classes.values()):
        return f"too few levels of {name} are written out"
    unnamed = len(shown - {*every})
    if stated is None and unnamed < (2 if size is None else max(0, min(2, size - len(named)))):
        return f"too few levels of {name} are written out"
    return ""


def _no_nesting(axis: Axis, domain: Domain, kind: str) -> str:
    """Return why joint levels are no possible nesting of the listed areas; empty where they are."""
    names, levels = axis
    for coarse, fine in pairwise(names):
        if coarse not in domain.closure(kind, (fine,)):
            return f"nothing says that a {fine} lies in one {coarse}"
    for place, name in enumerate(names):
        if {level[place] for level in levels} != {*(domain.levels(kind, name) or ())}:
            return f"levels of {name} are missing"
    for place in range(len(names) - 1):
        above = {(level[place + 1], level[place]) for level in levels}
        if len({fine for fine, _ in above}) < len(above):
            return f"a {names[place + 1]} lies in two areas"
    return ""


def _every_map(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    if any(premise.rule != "sums" or wanted != premise.facts.get("wanted") for premise in step.premises):
        return "a step is about another table"
    faults = (_sums(premise, given, wanted, domain) for premise in step.premises)
    kind = wanted.needs()[0].record_type
    return next((found for found in faults if found), "") or _missing_maps(step, domain, kind)


def _joint(step: Derivation) -> dict[tuple[str, ...], frozenset[tuple[str, ...]]]:
    """Return the joint axes of a step, each with its set of joint levels."""
    return {names: frozenset(levels) for names, levels in _axes(step) or () if len(names) > 1}


def _maps(step: Derivation, domain: Domain, kind: str) -> int:
    """Return the number of ways in which the areas of a step may lie in each other."""
    expected = 1
    for names in _joint(step):
        sizes = [len(domain.levels(kind, name) or ()) for name in names]
        for coarse, fine in pairwise(sizes):
            expected *= _onto(fine, coarse)
    return expected


def _several_maps(step: Derivation, domain: Domain, kind: str) -> str:
    if _joint(step) and _maps(step, domain, kind) != 1:
        return "the areas may lie in each other in other ways too"
    return ""


def _missing_maps(step: Derivation, domain: Domain, kind: str) -> str:
    """Return why the steps do not cover each way of nesting the same areas once; empty where they do."""
    ways = [_joint(premise) for premise in step.premises]
    axes = (axis for way in ways for axis in way.items())
    if not ways or not ways[0] or any({*way} != {*ways[0]} for way in ways):
        return "the steps are not about the same areas"
    if any(_no_nesting((names, tuple(levels)), domain, kind) for names, levels in axes):
        return "a step is about areas that do not lie in each other so"
    different = {frozenset(way.items()) for way in ways}
    expected = _maps(step.premises[0], domain, kind)
    return "" if len(different) == expected else "some ways in which areas may lie in each other are missing"


def _onto(fine: int, coarse: int) -> int:
    """Return the number of maps from ``fine`` onto ``coarse`` levels, by inclusion and exclusion."""
    return sum((-1) ** j * comb(coarse, j) * (coarse - j) ** fine for j in range(coarse + 1))


def _function_of(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    needs = wanted.needs()
    if not needs:
        return f"{wanted} does not say what determines it"
    for need in needs:
        faults = [check_determines(premise, given, need, domain) for premise in step.premises]
        if all(faults):
            return faults[0] if faults else f"nothing gives {need}"
    return ""


def _some_part(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    other = step.facts["given"]
    if not (isinstance(wanted, AtLeast) and type(other) is AtLeast and other in given):
        return "the inequality is not given"
    if not (wanted.than == other.than == 1 and wanted.statistic.where == other.statistic.where):
        return "only whether there is any record passes from parts to the whole"
    return check_readable(other.statistic, wanted.statistic, domain)


def _finite_distance(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    # which numbers the distance fixes is worked out from the specification, whatever the step says
    return check_determines(
        step.premises[0], Given(given.invariants | given.fixed, given.fixed), wanted, domain
    )


_RULES = {
    "kept": _check_kept,
    "read off": _read_off,
    "homes": _homes,
    "size": _size,
    "sums": _sums_alone,
    "every map": _every_map,
    "function of": _function_of,
    "some part": _some_part,
    "finite distance": _finite_distance,
}
