"""Checking that tables determine a table: every rule is verified from its facts, by code that did not find them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from stirred.spec.domain import Domain
from stirred.spec.multiverse import AtLeast, Invariant, Margin
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault


@dataclass(frozen=True, slots=True)
class Given:
    """What a derivation may use: invariants, and what the distance fixes by itself."""

    invariants: frozenset[Invariant]
    fixed: frozenset[Invariant] = frozenset()

    def __contains__(self, invariant: object) -> bool:
        return invariant in self.invariants


def determines(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    """What is wrong with a derivation that ``given`` determines ``wanted``; empty where it holds."""
    if step.rule == "all of":
        faults = [determines(premise, given, wanted, domain) for premise in step.premises]
        return "" if any(not found for found in faults) else f"no step concludes: {wanted}"
    if step.facts.get("wanted", wanted) != wanted and step.rule not in {"finite distance", "every map"}:
        return f"the step is about {step.facts['wanted']}, not about {wanted}"
    rule = _RULES.get(step.rule)
    return f"there is no rule {step.rule!r}" if rule is None else rule(step, given, wanted, domain)


def determines_all(step: Derivation, given: Given, wanted: Iterable[Invariant], domain: Domain) -> str:
    """The same for several invariants, each by some step of the derivation."""
    return next((found for one in wanted if (found := determines(step, given, one, domain))), "")


def leaves_open(step: Derivation, given: Given, wanted: Iterable[Invariant], domain: Domain) -> str:
    """What is wrong with a derivation that ``given`` does not determine one of ``wanted``; empty where it holds."""
    asked = tuple(wanted)
    if step.rule == "every map":
        faults = [_open_pair(premise, given, asked, domain) for premise in step.premises]
        return next((found for found in faults if found), "") or _missing_maps(step, domain)
    return _open_pair(step, given, asked, domain) or _several_maps(step, domain)


def _open_pair(step: Derivation, given: Given, wanted: tuple[Invariant, ...], domain: Domain) -> str:
    if step.rule != "pair" or step.witness is None:
        return f"{step.rule!r} shows no pair of data sets"
    faults = [fault(domain, tuple(given.invariants), one, step.witness) for one in wanted]
    return (
        "" if any(not found for found in faults) else "; ".join(dict.fromkeys(faults)) or "nothing is asked"
    )


def _kept(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    del step, domain
    return "" if wanted in given else f"{wanted} is not among the given invariants"


def _read_off(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    source = step.facts["given"]
    if not isinstance(wanted, Margin) or not isinstance(source, Margin) or source not in given:
        return f"{source} is not a given table"
    return readable(source, wanted, domain)


def readable(source: Margin, wanted: Margin, domain: Domain) -> str:
    """Each cell of the source must lie in one cell of the wanted table or wholly outside it; and none may be missing."""
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
    sized = step.facts["given"]
    if not isinstance(wanted, Margin) or wanted.record_type != "person" or domain.has("group quarters"):
        return "persons are not counted by the households' sizes here"
    areas = {*wanted.by, *wanted.conditions()}
    if not areas <= {*domain.spine} or not domain.size_variable:
        return "only counts by area follow from the sizes of households"
    if sized != Margin("household", (*wanted.by, domain.size_variable), wanted.where):
        return "the table of households is not the one by area and size"
    return determines(step.premises[0], given, sized, domain)


def _homes(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    """Persons by area: of the households by size, and of those who live elsewhere as counted."""
    if not isinstance(wanted, Margin) or wanted.record_type != "person" or not domain.size_variable:
        return "persons are not counted by the households' sizes here"
    areas = {*wanted.by, *wanted.conditions()}
    if not areas <= {*domain.spine} or "household" not in (domain.levels("person", "quarters") or ()):
        return "only counts by area follow from the sizes of households"
    elsewhere = [level for level in domain.levels("person", "quarters") or () if level != "household"]
    sized = Margin("household", (*wanted.by, domain.size_variable), wanted.where)
    rest = Margin("person", wanted.by, {**wanted.conditions(), "quarters": elsewhere})
    faults = [
        [determines(premise, given, table, domain) for premise in step.premises] for table in (sized, rest)
    ]
    return (
        "" if all(any(not f for f in found) for found in faults) else "a part of the persons is not counted"
    )


def _sums(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    margins: tuple[Margin, ...] = step.facts["given"]
    if not isinstance(wanted, Margin) or not all(margin in given for margin in margins):
        return "a table of the combination is not given"
    axes: tuple[Any, ...] = step.facts["axes"]
    on_axes = {name for axis in axes for name in axis.variables}
    used = {place for combination in step.facts["combinations"].values() for place, _ in combination}
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
    return _adds_up(step.facts["combinations"], margins, wanted, axes, on_axes)


def _sums_alone(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    return _sums(step, given, wanted, domain) or _several_maps(step, domain)


def _adds_up(
    combinations: Mapping[tuple[str, ...], Mapping[tuple[int, tuple[str, ...]], Fraction]],
    margins: tuple[Margin, ...],
    wanted: Margin,
    axes: tuple[Any, ...],
    on_axes: set[str],
) -> str:
    """On every combination of levels the combination counts a record exactly as the wanted table does."""
    for levels in product(*(axis.levels for axis in axes)):
        cell = {
            n: v
            for axis, level in zip(axes, levels, strict=True)
            for n, v in zip(axis.variables, level, strict=True)
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


def _too_few(axis: Any, margins: Iterable[Margin], domain: Domain, kind: str) -> str:
    """Whether the levels written out stand for all: two of each class that the restrictions do not tell apart."""
    if len(axis.variables) > 1:
        names = axis.variables
        for place, name in enumerate(names):
            if {level[place] for level in axis.levels} != {*(domain.levels(kind, name) or ())}:
                return f"levels of {name} are missing"
        return ""
    (name,) = axis.variables
    limits = [frozenset(m.conditions()[name]) for m in margins if name in m.conditions()]
    shown = {level for (level,) in axis.levels}
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


def _every_map(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    faults = [_sums(premise, given, wanted, domain) for premise in step.premises]
    about = all(premise.facts.get("wanted") == wanted and premise.rule == "sums" for premise in step.premises)
    if not about:
        return "a step is about another table"
    return next((found for found in faults if found), "") or _missing_maps(step, domain)


def _joint(step: Derivation) -> list[Any]:
    return [axis for axis in step.facts.get("axes", ()) if len(axis.variables) > 1]


def _maps(step: Derivation, domain: Domain) -> int:
    """In how many ways the areas of a step may lie in each other."""
    kind = step.facts["wanted"].needs()[0].record_type
    expected = 1
    for axis in _joint(step):
        sizes = [len(domain.levels(kind, name) or ()) for name in axis.variables]
        for coarse, fine in pairwise(sizes):
            expected *= _onto(fine, coarse)
    return expected


def _several_maps(step: Derivation, domain: Domain) -> str:
    if _joint(step) and _maps(step, domain) != 1:
        return "the areas may lie in each other in other ways too"
    return ""


def _missing_maps(step: Derivation, domain: Domain) -> str:
    ways = {tuple(axis.levels for axis in _joint(premise)) for premise in step.premises}
    expected = _maps(step.premises[0], domain)
    return "" if len(ways) == expected else "some ways in which areas may lie in each other are missing"


def _onto(fine: int, coarse: int) -> int:
    """The number of maps from ``fine`` onto ``coarse`` levels, by inclusion and exclusion."""
    from math import comb

    return sum((-1) ** j * comb(coarse, j) * (coarse - j) ** fine for j in range(coarse + 1))


def _function_of(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    needs = wanted.needs()
    if not needs:
        return f"{wanted} does not say what determines it"
    for need in needs:
        faults = [determines(premise, given, need, domain) for premise in step.premises]
        if all(faults):
            return faults[0] if faults else f"nothing gives {need}"
    return ""


def _some_part(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    other = step.facts["given"]
    if not (isinstance(wanted, AtLeast) and isinstance(other, AtLeast) and other in given):
        return "the inequality is not given"
    if not (wanted.than == other.than == 1 and wanted.statistic.where == other.statistic.where):
        return "only whether there is any record passes from parts to the whole"
    return readable(other.statistic, wanted.statistic, domain)


def _finite_distance(step: Derivation, given: Given, wanted: Invariant, domain: Domain) -> str:
    fixed = frozenset(step.facts["fixed"])
    if not fixed <= given.fixed:
        return "the distance does not fix these numbers"
    return determines(step.premises[0], Given(given.invariants | fixed, given.fixed), wanted, domain)


_RULES = {
    "kept": _kept,
    "read off": _read_off,
    "homes": _homes,
    "size": _size,
    "sums": _sums_alone,
    "every map": _every_map,
    "function of": _function_of,
    "some part": _some_part,
    "finite distance": _finite_distance,
}
