"""Compile the rules of a workload to bounds on sums of cells in every geounit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import Histogram, Query
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    pass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HeldQuery:
    """A query whose answers lie between bounds in every geounit down to a level; ``low[d]`` is nodes × answers."""

    name: str
    query: Query
    low: tuple[Ints, ...]
    high: tuple[Ints, ...]
    late: bool = False  # met after the solve, by exchanges and moves in the leaves (``rules.repair``)

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
