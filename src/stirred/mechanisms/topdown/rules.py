"""Compile the rules of a workload to bounds, record the confidential numbers they use, and check them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InfeasibleError, InputError
from stirred.languages import Phrase, unit
from stirred.mechanisms.release import Check, count_cells
from stirred.mechanisms.topdown import tree as areas
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.histogram import Histogram, HistogramAxis, Query, axis_expression
from stirred.mechanisms.topdown.tree import ALIASES, Tree
from stirred.mechanisms.topdown.workload import (
    PART_SUFFIX,
    Rule,
    SpineOptions,
    Workload,
    list_occupied_answers,
)
from stirred.spec import Custom, Invariant, Margin, Multiverse

if TYPE_CHECKING:
    from stirred.census import Census


# Record which confidential numbers constraints use, and state them as invariants.
#
# The multiverse of a run's specification is derived from this record and from nothing else: a constraint that reads a
# confidential number without recording it cannot be built, because the counts are fetched through ``Record``. What
# the tree shows is recorded with it (``tree_invariants``).

Ints = NDArray[np.int64]


def build_invariant(rule: Rule, workload: Workload, level: str) -> Invariant:
    """Return the statistic that a rule reads: a margin, or a coarsening of one."""
    if rule.kind == "facilities":
        return Margin(rule.units, (level, *rule.unit_source.columns))
    if rule.kind == "parts":
        return build_part_totals(workload.record, rule.level.removesuffix(PART_SUFFIX), rule.areas)
    query = workload.query(rule.query)
    kept = [axis for axis, keep in zip(workload.histogram.axes, query.kept, strict=True) if keep]
    columns = source_columns(workload, rule.query)
    where = {name: [str(v) for v in values] for name, values in workload.where}
    margin = Margin(workload.record, (level, *columns), where or None)
    coarse = any(
        axis.source and (axis.source.cuts or axis.source.values or axis.source.cases) for axis in kept
    )
    if coarse or any(part not in {axis.name for axis in kept} for part in query.parts):
        ones = unit(workload.record, "ones")
        words = Phrase("topdown.query", query=query.name, ones=ones, level=level)
        return Custom(words, (margin,), words)
    return margin


def source_columns(workload: Workload, query: str) -> list[str]:
    """Return the columns of the census that a query is counted by."""
    asked = workload.query(query)
    kept = [axis for axis, keep in zip(workload.histogram.axes, asked.kept, strict=True) if keep]
    return [name for axis in kept for name in (axis.source.columns if axis.source else (axis.name,))]


def build_part_totals(record_type: str, level: str, areas: str) -> Invariant:
    """Return the count of records inside and outside the areas that cut those of a level."""
    ones = unit(record_type, "ones")
    words = Phrase("topdown.parts", ones=ones, level=level, areas=areas)
    return Custom(words, (Margin(record_type, (level, areas)),), words)


def declare_multiverse(
    census: "Census", workload: Workload, options: SpineOptions | None = None
) -> Multiverse:
    """Return the multiverse that a run will use, by its rules and tree; the run checks it used no more."""
    record = Record()
    record.tree(census)
    for rule in workload.rules:
        if rule.kind in {"exact", "facilities"}:
            record.used.add(build_invariant(rule, workload, name_level(census, rule.level)))
    if (
        options
        and options.bounds
        and options.aian
        and any(rule.kind == "facilities" for rule in workload.rules)
    ):
        record.used.add(build_part_totals(workload.record, options.split_at, options.aian))
    return record.multiverse


def name_level(census: "Census", level: str) -> str:
    """Return the census's own name of a workload's level."""
    for name in (level, *ALIASES.get(level, ())):
        if name in census.schema.spine:
            return name
    raise InputError(
        f"a rule of the workload names level {level}, which the census does not have",
        why=f"it has {', '.join(census.schema.spine)}",
        fix="name one of these levels in the rule; or let this command propose a workload for the census: "
        "stirred plan new plan.toml --mechanism topdown --census census.toml",
    )


@dataclass(slots=True)
class Record:
    """The only way a constraint reads confidential numbers: every number that is read is recorded."""

    used: set[Invariant] = field(default_factory=set)

    def tree(self, census: "Census") -> None:
        """Record the areas of the tree, if records decide which areas there are."""
        self.used.update(areas.tree_invariants(census))

    def truth(self, level: str, rule: Rule, workload: Workload, histograms: Sparse) -> Ints:
        """Return the exact answers of a rule's query at a level, and record their use."""
        self.used.add(build_invariant(rule, workload, level))
        return sum_answers(histograms, workload.query(rule.query))

    def record_use(self, rule: Rule, workload: Workload, level: str) -> None:
        """Record the same numbers, which were read and summed where the records are stored."""
        self.used.add(build_invariant(rule, workload, level))

    def units(self, census: "Census", rule: Rule, workload: Workload, leaf: str, codes: pl.Series) -> Ints:
        """Return how many units of each kind are in each leaf (leaves × kinds)."""
        counts = self.count_units(census, rule, workload, leaf)
        return arrange_units(counts, workload.query(rule.query).size, leaf, codes)

    def count_units(self, census: "Census", rule: Rule, workload: Workload, leaf: str) -> pl.DataFrame:
        """Count the units of each kind by the code of their leaf."""
        size = workload.query(rule.query).size
        self.used.add(build_invariant(rule, workload, leaf))
        frame = census.scan(rule.units, [leaf, *rule.unit_source.columns])
        level = axis_expression(
            HistogramAxis(name="kind", size=size, source=rule.unit_source), frame.collect_schema()
        )
        return count_cells(frame.select(leaf, level.alias("kind")), [leaf, "kind"]).collect()

    def quarters(self, census: "Census", rule: Rule, workload: Workload, leaf: str) -> pl.DataFrame:
        """Count the units that always hold somebody, by leaf and kind, in the order of the leaves."""
        self.used.add(build_invariant(rule, workload, leaf))
        frame = census.scan(rule.units, [leaf, *rule.unit_source.columns])
        axis = HistogramAxis(name="kind", size=workload.query(rule.query).size, source=rule.unit_source)
        kinds = axis_expression(axis, frame.collect_schema()).alias("kind")
        inside = frame.select(leaf, kinds).filter(pl.col("kind").is_in(list_occupied_answers(rule)))
        return count_cells(inside, [leaf, "kind"]).collect().sort(leaf, "kind")

    @property
    def multiverse(self) -> Multiverse:
        """Return the multiverse of the numbers used, without those that a listed margin determines."""
        margins = {m for m in self.used if isinstance(m, Margin)}
        implied = {
            i
            for i in self.used - margins
            if i.needs() and all(any(is_summed_from(n, m) for n in margins) for m in i.needs())
        }
        return Multiverse(frozenset(self.used - implied))


def arrange_units(counts: pl.DataFrame, size: int, leaf: str, codes: pl.Series) -> Ints:
    """Return counted units as leaves × kinds, in the order of the codes."""
    number = pl.DataFrame({leaf: codes}).with_row_index("number")
    joined = counts.join(number, on=leaf, how="inner").drop_nulls()
    result = np.zeros((len(codes), size), np.int64)
    inside = joined.filter((pl.col("kind") >= 0) & (pl.col("kind") < size))
    result[inside["number"].to_numpy(), inside["kind"].to_numpy()] = inside["count"].to_numpy()
    return result


def is_summed_from(whole: Margin, part: Margin) -> bool:
    """Return whether the second table consists of sums of the first, whatever the domain is.

    >>> kinds = Margin("household", ("block", "kind"))
    >>> is_summed_from(kinds, Margin("household", ("block",), {"kind": ["1"]}))
    True
    >>> is_summed_from(kinds, Margin("household", ("block",), {"vacant": ["1"]}))
    False
    """
    if whole.record_type != part.record_type:
        return False
    if whole.where == part.where:
        return {*part.by} <= {*whole.by}
    # other records are counted: the whole must include every record and show which of them the part excludes
    return whole.where is None and {*part.by, *part.conditions()} <= {*whole.by}


# Compile the rules of a workload to bounds on sums of cells in every geounit.


@dataclass(frozen=True, slots=True)
class HeldQuery:
    """A query whose answers lie between bounds in every geounit down to a level; ``low[d]`` is nodes × answers."""

    name: str
    query: Query
    low: tuple[Ints, ...]
    high: tuple[Ints, ...]
    late: bool = False  # met after the solve, by exchanges and moves in the leaves (``repair_leaves``)

    @property
    def whole(self) -> bool:
        """Return whether it is the total of the histogram."""
        return self.query.size == 1 and all(min(factor) == 0 for factor in self.query.factors)


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints: bounds by level, cells that are empty in any census, and the record of numbers used."""

    held: tuple[HeldQuery, ...]
    zeros: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    record: Record
    histogram: Histogram
    exact: tuple[bool, ...] | None = None  # of a part of the tree: which are equalities in the whole of it

    @property
    def solve_queries(self) -> tuple[HeldQuery, ...]:
        """Return the constraints that the solve itself meets."""
        return tuple(held for held in self.held if not held.late)

    def possible(self, cells: Ints) -> NDArray[np.bool_]:
        """Return which cells may be non-zero, by the structural zeros."""
        result = np.ones(len(cells), bool)
        if not self.zeros:
            return result
        levels = self.histogram.coordinates(cells)
        names = [axis.name for axis in self.histogram.axes]
        for zero in self.zeros:
            hit: slice | Ints = slice(None)
            for axis, values in zero:
                at = names.index(axis)
                listed = np.zeros(self.histogram.axes[at].size, bool)
                listed[list(values)] = True
                found = np.flatnonzero(listed[levels[at][hit]])
                hit = found if isinstance(hit, slice) else hit[found]
            result[hit] = False
        return result

    def find_allowed(self, depth: int, nodes: Ints, cells: Ints) -> NDArray[np.bool_]:
        """Return which cells may be non-zero in which geounit, apart from structural zeros."""
        result = np.ones((len(nodes), len(cells)), bool)
        for held in self.solve_queries:
            if depth < len(held.high):
                groups = held.query.of(cells)
                inside = groups >= 0
                result[:, inside] &= held.high[depth][nodes][:, groups[inside]] > 0
        return result

    def list_asymmetric_axes(self) -> tuple[str, ...]:
        """Return the axes on which constraints distinguish levels."""
        names = {axis for zero in self.zeros for axis, _ in zero}
        for held in self.held:
            names |= {a.name for a, kept in zip(self.histogram.axes, held.query.kept, strict=True) if kept}
        return tuple(sorted(names))


def compile_rules(
    workload: Workload,
    spine: Tree,
    truth: list[Sparse],
    record: Record,
    units: Callable[[Rule], Ints],
    given: HeldQuery | None = None,
    *,
    first: int = 0,
    late: str = "",
) -> Constraints:
    """Compile the bounds of every rule in a tree, or in a subtree below level ``first``.

    The rule ``late`` is met after the solve.
    """
    held: list[HeldQuery] = [] if given is None else [given]
    for rule in list_bounding_rules(workload):
        depth = find_depth(rule, spine)
        if depth < first:  # constraints above a subtree do not apply inside it
            nothing = (np.zeros((0, workload.query(rule.query).size), np.int64),) * (depth + 1)
            held.append(HeldQuery(rule.name, workload.query(rule.query), nothing, nothing))
            continue
        low, high = compute_bounds(rule, workload, spine, truth, record, units)
        own = sum_bounds(rule.name, workload.query(rule.query), low, high, spine, depth, first=first)
        held.append(replace(own, late=rule.name == late))
    for rule in (rule for rule in workload.rules if rule.kind == "parts"):
        totals = record.truth(rule.level, rule, workload, truth[find_depth(rule, spine)])
        held = [tighten_bounds(one, totals[:, 0], find_depth(rule, spine)) for one in held]
    return Constraints(tuple(held), list_structural_zeros(workload), record, workload.histogram)


def tighten_bounds(held: HeldQuery, totals: Ints, depth: int) -> HeldQuery:
    """Tighten the bounds of one level by the exact totals of its geounits.

    As in production: $u_k \\le t - \\sum_{j \\ne k} l_j$, and $l_k = t$ where no other answer is possible.
    """
    if held.query.size < 2 or depth >= len(held.low) or any(min(factor) < 0 for factor in held.query.factors):
        return held
    low, high = held.low[depth], held.high[depth]
    others = low.sum(axis=1, keepdims=True) - low
    alone = (high > 0) & ((high > 0).sum(axis=1, keepdims=True) == 1)
    least = np.where(alone, totals[:, None], low)
    most = np.minimum(high, totals[:, None] - others)
    lows = (*held.low[:depth], least, *held.low[depth + 1 :])
    return replace(held, low=lows, high=(*held.high[:depth], most, *held.high[depth + 1 :]))


def list_bounding_rules(workload: Workload) -> tuple[Rule, ...]:
    """Return the rules that bound numbers by themselves, in their order."""
    return tuple(rule for rule in workload.rules if rule.kind not in {"zero", "parts"})


def list_structural_zeros(workload: Workload) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
    """Return the cells that are empty in any census."""
    zeros = tuple(rule.cells for rule in workload.rules if rule.kind == "zero")
    for cells in zeros:
        for axis, _ in cells:
            workload.histogram.axis(axis)
    return zeros


def find_depth(rule: Rule, spine: Tree) -> int:
    """Return the depth of a rule's level in the spine."""
    depth = spine.depth(rule.level)
    if depth is None:
        raise InputError(
            f"rule {rule.name} names level {rule.level}, which the census does not have",
            why=f"the census has {', '.join(spine.levels)}",
            fix="name one of these levels in the rule",
        )
    if rule.kind == "facilities" and depth != len(spine.levels) - 1:
        raise InputError(
            f"rule {rule.name}: facilities are counted at the lowest level, {spine.levels[-1]}",
            why="a facility lies in one area of the lowest level",
            fix=f'level = "{spine.levels[-1]}"',
        )
    return depth


def compute_bounds(
    rule: Rule, workload: Workload, spine: Tree, truth: list[Sparse], record: Record, units: Callable[[Rule], Ints]
) -> tuple[Ints, Ints]:  # fmt: skip
    """Return the bounds of a rule in the geounits of its own level."""
    query, depth = workload.query(rule.query), find_depth(rule, spine)
    if rule.kind == "facilities":
        counted = units(rule)
        return counted * np.array(rule.lower or (0,) * query.size), counted * rule.largest
    if rule.kind == "exact":
        exact = record.truth(spine.levels[depth], rule, workload, truth[depth])
        return exact, exact
    values = np.tile(np.array(rule.values, np.int64), (spine.size(depth), 1))
    if rule.kind == "at-least":
        return values, np.full_like(values, 10**12)
    return np.zeros_like(values), values


def sum_bounds(
    name: str, query: Query, low: Ints, high: Ints, spine: Tree, depth: int, *, first: int = 0
) -> HeldQuery:
    """Return bounds of one level and their sums at all levels above, up to ``first``."""
    lows = [low]
    highs = lows if high is low else [high]  # exact sums are kept once
    for d in range(depth, first, -1):
        for values in {id(lows): lows, id(highs): highs}.values():
            up = np.zeros((spine.size(d - 1), query.size), np.int64)
            np.add.at(up, spine.parent[d], values[-1])
            values.append(up)
    unknown = (np.zeros((0, query.size), np.int64),) * first
    return HeldQuery(name, query, (*unknown, *lows[::-1]), (*unknown, *highs[::-1]))


# Check the constraints against the census before anything is solved, and again on the released integers.
#
# A census that satisfies every constraint shows that the problem has a solution. Violations are counted by geounit, so
# that parts of the tree can be checked separately and their counts added; so are the findings on released integers.
#
# The set of areas is not checked: released records are counted by the number of a leaf, so they cannot be outside the
# tree, and the tree is declared where it is read (``tree_invariants``).

MAX_NAMED = 3  # areas that an error names
BREACHES = ("fewer records than it asks for", "more records than it allows")
KEPT_PHRASES = {
    "state population": "topdown.kept.population",
    "persons by facilities": "topdown.kept.facilities",
    "residents by type of facility": "topdown.kept.residents",
    "housing units by block": "topdown.kept.units",
}  # the names that presets give what they keep, as keys of the catalog


def compile_and_check(
    census: "Census",
    workload: Workload,
    spine: Tree,
    truth: list[Sparse],
    given: HeldQuery | None = None,
    counted: Mapping[str, Callable[[], Ints]] | None = None,
    *,
    late: str = "",
) -> Constraints:
    """Compile the bounds in every geounit, and check them against the census and each other.

    ``counted`` are the units of rules by name, where somebody else counts and records them; the rule ``late`` is met
    after the solve.
    """
    record = Record()

    def units(rule: Rule) -> Ints:
        if counted is not None and rule.name in counted:
            return counted[rule.name]()
        return record.units(census, rule, workload, spine.levels[-1], spine.codes[-1])

    result = compile_rules(workload, spine, truth, record, units, given, late=late)
    record.tree(census)
    require_consistent(
        result, workload, truth[0], [find_misfits(result, spine, truth, range(len(spine.levels)))]
    )
    return result


@dataclass(frozen=True, slots=True)
class Misfits:
    """Geounits that break a constraint, or exclude a pair of them, and the codes of the first few of the lowest level.

    Codes of areas are public; the numbers of records in them are not, and are not kept.
    """

    levels: tuple[str, ...]
    broken: Ints  # held × level × BREACHES
    clash: Ints  # held × held × level
    codes: Mapping[str, NDArray[np.str_]]  # "broken i depth" or "clash i j depth" → some codes

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return it as arrays, for a message."""
        return {"broken": self.broken, "clash": self.clash} | dict(self.codes)

    @classmethod
    def read(cls, levels: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]) -> "Misfits":
        """Return it from the arrays of a message that may have others."""
        codes = {
            name: array.astype(str)
            for name, array in arrays.items()
            if name.startswith(("broken ", "clash "))
        }
        broken, clash = (arrays[name].astype(np.int64) for name in ("broken", "clash"))
        return cls(tuple(levels), broken, clash, codes)


def find_misfits(
    constraints: Constraints, spine: Tree, truth: Sequence[Sparse], depths: Iterable[int]
) -> Misfits:
    """Find the geounits of these levels that break a constraint or are excluded by two."""
    held, codes = constraints.held, dict[str, NDArray[np.str_]]()
    broken = np.zeros((len(held), len(truth), len(BREACHES)), np.int64)
    clash = np.zeros((len(held), len(held), len(truth)), np.int64)

    def name(key: str, depth: int, wrong: NDArray[np.bool_]) -> None:
        if wrong.any():
            codes[key] = np.array(
                [str(c) for c in spine.codes[depth].gather(np.flatnonzero(wrong)[:MAX_NAMED])]
            )

    for depth in depths:
        for i, one in enumerate(held):
            if depth >= len(one.low):
                continue
            value = sum_answers(truth[depth], one.query)
            wrong = np.stack([(value < one.low[depth]).any(axis=1), (value > one.high[depth]).any(axis=1)])
            broken[i, depth] = wrong.sum(axis=1)
            name(f"broken {i} {depth}", depth, np.asarray(wrong.any(axis=0)))
            for j, other in enumerate(held):
                if depth < len(other.low):
                    wrong = _find_clashes(one, other, depth)
                    clash[i, j, depth] = wrong.sum()
                    name(f"clash {i} {j} {depth}", depth, wrong)
    return Misfits(tuple(spine.levels), broken, clash, codes)


def find_equalities(constraints: Constraints, levels: int, depths: Iterable[int]) -> NDArray[np.bool_]:
    """Return whether each constraint is an equality in all geounits of each level (held × level)."""
    found = np.ones((len(constraints.held), levels), bool)
    for depth in depths:
        for i, held in enumerate(constraints.held):
            if depth < len(held.low):
                found[i, depth] = bool((held.low[depth] == held.high[depth]).all())
    return found


def require_consistent(
    constraints: Constraints, workload: Workload, root: Sparse, misfits: Sequence[Misfits]
) -> None:
    """Raise for the first constraint that cannot hold in a part of the tree; ``root`` is the histogram of all records."""
    for rule in (rule for rule in workload.rules if rule.kind == "zero"):
        one = Constraints((), (rule.cells,), constraints.record, constraints.histogram)
        outside = int(root.counts[~one.possible(root.cells)].sum())
        if outside:
            raise InfeasibleError(
                f"constraint {rule.name!r} does not hold in the census",
                why=f"{outside} {workload.record} records are in cells that it declares empty",
                fix="edit the records, or drop the rule",
            )
    rules = {rule.name for rule in workload.rules}
    held, levels = constraints.held, misfits[0].levels
    broken, clash = sum(one.broken for one in misfits), sum(one.clash for one in misfits)
    assert isinstance(broken, np.ndarray)
    assert isinstance(clash, np.ndarray)
    for i in np.flatnonzero(broken.any(axis=(1, 2))):
        if held[i].name not in rules:
            continue  # an earlier product: its own run shows that it is possible, and the census need not agree with it
        depth = np.flatnonzero(broken[i].any(axis=1))[-1]  # the levels above only add up what is wrong below
        told = [
            f"{number} {'geounit' if number == 1 else 'geounits'} with {words}"
            for number, words in zip(broken[i, depth], BREACHES, strict=True)
            if number
        ]
        raise InfeasibleError(
            f"constraint {held[i].name!r} does not hold in the census",
            why=f"level {levels[depth]}, the lowest at fault, has {' and '.join(told)}"
            f" ({_name_areas(misfits, f'broken {i} {depth}', broken[i, depth].sum())}), so no data set"
            " can meet it together with the exact counts",
            fix=f"edit the records of these areas of level {levels[depth]}, or relax the rule",
        )
    for i, j in np.argwhere(clash.any(axis=2)):
        depth = np.flatnonzero(clash[i, j])[-1]
        raise InfeasibleError(
            f"constraints {held[i].name!r} and {held[j].name!r} cannot both hold",
            why=f"they exclude each other in {clash[i, j, depth]} geounits of level {levels[depth]}"
            f" ({_name_areas(misfits, f'clash {i} {j} {depth}', clash[i, j, depth])})",
            fix="relax one of them",
        )


def _name_areas(misfits: Sequence[Misfits], key: str, number: int) -> str:
    """Return the codes of some areas at fault, and that there are more."""
    codes = [code for one in misfits for code in one.codes.get(key, np.empty(0, str)).tolist()][:MAX_NAMED]
    return ", ".join(codes) + (" and others" if number > len(codes) else "")


def _find_clashes(one: HeldQuery, other: HeldQuery, depth: int) -> NDArray[np.bool_]:
    """Return which geounits cannot meet both."""
    if one.query == other.query:
        return np.asarray((one.low[depth] > other.high[depth]).any(axis=1))
    if other.whole and not one.whole:
        return np.asarray(one.low[depth].sum(axis=1) > other.high[depth][:, 0])
    return np.zeros(len(one.low[depth]), bool)


@dataclass(slots=True)
class Findings:
    """Results of checks in a part of the tree: whether each constraint is kept, and the numbers it fixes."""

    kept: list[bool]
    numbers: list[int]
    possible: bool = True  # no released record is in a cell that is empty in any census
    agree: bool = True  # children add up to parents, and no count is negative
    entries: int = 0

    @staticmethod
    def of(constraints: Constraints, spine: Tree, levels: Sequence[Sparse], depths: range) -> "Findings":
        """Check these levels, and the parent sums of all but the root."""
        found = Findings([True] * len(constraints.held), [0] * len(constraints.held))
        for i, held in enumerate(constraints.held):
            depth = len(held.low) - 1
            if depth in depths:
                value = sum_answers(levels[depth], held.query)
                found.kept[i] = bool(((value >= held.low[depth]) & (value <= held.high[depth])).all())
                found.numbers[i] = value.size
        size = constraints.histogram.cells
        for d in depths:
            found.agree &= bool((levels[d].counts >= 0).all())
            if d == 0:
                continue
            up = levels[d].up(spine.parent[d], spine.size(d - 1), size)
            for name in ("first", "cells", "counts"):
                found.agree &= np.array_equal(getattr(up, name), getattr(levels[d - 1], name))
        last = len(spine.levels) - 1
        if last in depths:
            found.possible = bool(constraints.possible(np.unique(levels[last].cells)).all())
            found.entries = len(levels[last].cells)
        return found

    def join(self, other: "Findings") -> None:
        """Add another part of the tree."""
        self.kept = [a and b for a, b in zip(self.kept, other.kept, strict=True)]
        self.numbers = [a + b for a, b in zip(self.numbers, other.numbers, strict=True)]
        self.possible &= other.possible
        self.agree &= other.agree
        self.entries += other.entries

    def checks(self, workload: Workload, constraints: Constraints) -> tuple[Check, ...]:
        """Return the findings as checks with words."""
        name = workload.name
        checks = [
            Check(invariant=_describe_constraint(name, held.name), kept=kept, numbers=numbers)
            for held, kept, numbers in zip(constraints.held, self.kept, self.numbers, strict=True)
        ]
        if constraints.zeros:
            zeros = len(constraints.zeros)
            checks.append(
                Check(invariant=Phrase("topdown.check.zeros", name=name), kept=self.possible, numbers=zeros)
            )
        agree = Check(
            invariant=Phrase("topdown.check.adds_up", name=name), kept=self.agree, numbers=self.entries
        )
        return (*checks, agree)


def _describe_constraint(name: str, constraint: str) -> str:
    """Describe in words what a workload keeps; the presets' names are known in every language."""
    known = KEPT_PHRASES.get(constraint)
    return Phrase(known, name=name) if known else f"{name}: {constraint}"
