"""Compile constraints to bounds on sums of cells in every geounit, and record which confidential numbers they use.

The multiverse of a run's specification is derived from that record and from nothing else: a constraint that reads a
confidential number without recording it cannot be built here, because the counts are fetched through ``Record``. What
the tree shows is recorded with it (``areas``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.mechanisms.topdown import areas
from stirred.mechanisms.topdown.histogram import Axis, Histogram, Query
from stirred.mechanisms.topdown.spine import ALIASES, Spine
from stirred.mechanisms.topdown.tabulate import Sparse, axis_expression
from stirred.mechanisms.topdown.workload import Rule, Workload
from stirred.spec import Custom, Invariant, Margin, Multiverse

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]


def invariant(rule: Rule, workload: Workload, level: str) -> Invariant:
    """The statistic a rule reads: a margin, or what is determined by one when the query coarsens its columns."""
    if rule.kind == "facilities":
        assert rule.kinds is not None
        return Margin(rule.units, (level, *rule.kinds.columns))
    query = workload.query(rule.query)
    kept = [axis for axis, keep in zip(workload.histogram.axes, query.kept, strict=True) if keep]
    columns = [name for axis in kept for name in (axis.source.columns if axis.source else (axis.name,))]
    where = {name: [str(v) for v in values] for name, values in workload.where}
    margin = Margin(workload.record, (level, *columns), where or None)
    coarse = any(
        axis.source and (axis.source.cuts or axis.source.values or axis.source.cases) for axis in kept
    )
    if coarse or any(part not in {axis.name for axis in kept} for part in query.parts):
        words = f"{query.name} of {workload.record}s by {level}"
        return Custom(words, (margin,), words)
    return margin


def declared(census: "Census", workload: Workload) -> Multiverse:
    """The multiverse a run will use, from its rules and its tree; the run checks that it used no more than this."""
    record = Record()
    record.tree(census)
    for rule in workload.rules:
        if rule.kind in {"exact", "facilities"}:
            record.used.add(invariant(rule, workload, level_of(census, rule.level)))
    return record.multiverse


def level_of(census: "Census", level: str) -> str:
    """The census's own name of a workload's level."""
    for name in (level, *ALIASES.get(level, ())):
        if name in census.schema.spine:
            return name
    raise InputError(
        f"a rule names level {level}, which the census does not have",
        why=f"it has {', '.join(census.schema.spine)}",
        fix="name one of these levels in the rule",
    )


@dataclass(slots=True)
class Record:
    """The only way a constraint reads confidential numbers: every number that is read is recorded."""

    used: set[Invariant] = field(default_factory=set)

    def tree(self, census: "Census") -> None:
        """Record the areas of the tree, if records decide which areas there are."""
        self.used.update(areas.tree_invariants(census))

    def truth(self, level: str, rule: Rule, workload: Workload, histograms: Sparse) -> Ints:
        """Exact answers of a rule's query at a level."""
        self.used.add(invariant(rule, workload, level))
        return answers(histograms, workload.query(rule.query))

    def told(self, rule: Rule, workload: Workload, level: str) -> None:
        """Record the same numbers, which were read and summed where the records are stored."""
        self.used.add(invariant(rule, workload, level))

    def units(self, census: "Census", rule: Rule, workload: Workload, leaf: str, codes: pl.Series) -> Ints:
        """How many units of each kind are in each leaf (leaves × kinds)."""
        assert rule.kinds is not None
        size = workload.query(rule.query).size
        self.used.add(invariant(rule, workload, leaf))
        frame = census.scan(rule.units, [leaf, *rule.kinds.columns])
        level = axis_expression(Axis(name="kind", size=size, source=rule.kinds), frame.collect_schema())
        counts = (
            frame.select(leaf, level.alias("kind"))
            .group_by(leaf, "kind")
            .agg(pl.len().alias("count"))
            .collect()
        )
        number = pl.DataFrame({leaf: codes}).with_row_index("number")
        joined = counts.join(number, on=leaf, how="inner").drop_nulls()
        result = np.zeros((len(codes), size), np.int64)
        inside = joined.filter((pl.col("kind") >= 0) & (pl.col("kind") < size))
        result[inside["number"].to_numpy(), inside["kind"].to_numpy()] = inside["count"].to_numpy()
        return result

    @property
    def multiverse(self) -> Multiverse:
        """The multiverse of the numbers that were used; what a listed margin determines is not listed again."""
        margins = {m for m in self.used if isinstance(m, Margin)}
        implied = {
            i
            for i in self.used - margins
            if i.needs() and all(any(summed_from(n, m) for n in margins) for m in i.needs())
        }
        return Multiverse(frozenset(self.used - implied))


def summed_from(whole: Margin, part: Margin) -> bool:
    """Whether the second table is made of sums of the first, whatever the domain is.

    >>> kinds = Margin("household", ("block", "kind"))
    >>> summed_from(kinds, Margin("household", ("block",), {"kind": ["1"]}))
    True
    >>> summed_from(kinds, Margin("household", ("block",), {"vacant": ["1"]}))
    False
    """
    if whole.record_type != part.record_type:
        return False
    if whole.where == part.where:
        return {*part.by} <= {*whole.by}
    # other records are counted: the whole must include every record and show which of them the part excludes
    return whole.where is None and {*part.by, *part.conditions()} <= {*whole.by}


@dataclass(frozen=True, slots=True)
class Held:
    """A query whose answers lie between bounds in every geounit down to a level; ``low[d]`` is nodes × answers."""

    name: str
    query: Query
    low: tuple[Ints, ...]
    high: tuple[Ints, ...]

    @property
    def whole(self) -> bool:
        """Whether it is the total of the histogram."""
        return self.query.size == 1 and all(min(factor) == 0 for factor in self.query.factors)


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints: bounds by level, cells that are empty in any census, and the record of numbers used."""

    held: tuple[Held, ...]
    zeros: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    record: Record
    histogram: Histogram
    exact: tuple[bool, ...] | None = None  # of a part of the tree: which are equalities in the whole of it

    def possible(self, cells: Ints) -> NDArray[np.bool_]:
        """Which cells may be non-zero, by the structural zeros."""
        result = np.ones(len(cells), bool)
        if not self.zeros:
            return result
        levels = self.histogram.coordinates(cells)
        names = [axis.name for axis in self.histogram.axes]
        for zero in self.zeros:
            hit = np.ones(len(cells), bool)
            for axis, values in zero:
                hit &= np.isin(levels[names.index(axis)], values)
            result &= ~hit
        return result

    def allowed(self, depth: int, nodes: Ints, cells: Ints) -> NDArray[np.bool_]:
        """Which cells may be non-zero in which geounit (nodes × cells), apart from structural zeros."""
        result = np.ones((len(nodes), len(cells)), bool)
        for held in self.held:
            if depth < len(held.high):
                groups = held.query.of(cells)
                inside = groups >= 0
                result[:, inside] &= held.high[depth][nodes][:, groups[inside]] > 0
        return result

    def asymmetric(self) -> tuple[str, ...]:
        """Axes on which constraints distinguish levels."""
        names = {axis for zero in self.zeros for axis, _ in zero}
        for held in self.held:
            names |= {a.name for a, kept in zip(self.histogram.axes, held.query.kept, strict=True) if kept}
        return tuple(sorted(names))


def compiled_rules(
    census: "Census", workload: Workload, spine: Spine, truth: list[Sparse], given: Held | None = None
) -> Constraints:
    """Bounds in every geounit, checked against the census and against each other before anything is solved."""
    record = Record()

    def units(rule: Rule) -> Ints:
        return record.units(census, rule, workload, spine.levels[-1], spine.codes[-1])

    result = rules_of(workload, spine, truth, record, units, given)
    record.tree(census)
    from stirred.mechanisms.topdown.feasibility import misfits, require

    require(result, workload, spine.levels, truth[0], *misfits(result, truth, range(len(spine.levels))))
    return result


def rules_of(
    workload: Workload,
    spine: Spine,
    truth: list[Sparse],
    record: Record,
    units: Callable[[Rule], Ints],
    given: Held | None = None,
    *,
    first: int = 0,
) -> Constraints:
    """The bounds of every rule in a tree, or in a subtree whose root is at level ``first``."""
    held: list[Held] = [] if given is None else [given]
    for rule in bounding(workload):
        depth = depth_of(rule, spine)
        if depth < first:  # constraints above a subtree do not apply inside it
            nothing = (np.zeros((0, workload.query(rule.query).size), np.int64),) * (depth + 1)
            held.append(Held(rule.name, workload.query(rule.query), nothing, nothing))
            continue
        low, high = bounds(rule, workload, spine, truth, record, units)
        held.append(summed(rule.name, workload.query(rule.query), low, high, spine, depth, first=first))
    return Constraints(tuple(held), structural(workload), record, workload.histogram)


def bounding(workload: Workload) -> tuple[Rule, ...]:
    """The rules that bound numbers, in their order; the others declare cells empty."""
    return tuple(rule for rule in workload.rules if rule.kind != "zero")


def structural(workload: Workload) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
    """The cells that are empty in any census."""
    zeros = tuple(rule.cells for rule in workload.rules if rule.kind == "zero")
    for cells in zeros:
        for axis, _ in cells:
            workload.histogram.axis(axis)
    return zeros


def depth_of(rule: Rule, spine: Spine) -> int:
    """The depth of a rule's level in the spine."""
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


def bounds(
    rule: Rule, workload: Workload, spine: Spine, truth: list[Sparse], record: Record, units: Callable[[Rule], Ints]
) -> tuple[Ints, Ints]:  # fmt: skip
    """The bounds of a rule in the geounits of its own level."""
    query, depth = workload.query(rule.query), depth_of(rule, spine)
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


def answers(histograms: Sparse, query: Query) -> Ints:
    """Exact answers of a query for every node of a level."""
    index = query.of(histograms.cells)
    keep = index >= 0
    result = np.zeros((len(histograms.first) - 1, query.size), np.int64)
    np.add.at(result, (histograms.nodes[keep], index[keep]), histograms.counts[keep])
    return result


def summed(
    name: str, query: Query, low: Ints, high: Ints, spine: Spine, depth: int, *, first: int = 0
) -> Held:
    """Bounds of one level and their sums at all levels above, up to ``first``."""
    lows = [low]
    highs = lows if high is low else [high]  # exact sums are kept once
    for d in range(depth, first, -1):
        for values in {id(lows): lows, id(highs): highs}.values():
            up = np.zeros((spine.size(d - 1), query.size), np.int64)
            np.add.at(up, spine.parent[d], values[-1])
            values.append(up)
    unknown = (np.zeros((0, query.size), np.int64),) * first
    return Held(name, query, (*unknown, *lows[::-1]), (*unknown, *highs[::-1]))
