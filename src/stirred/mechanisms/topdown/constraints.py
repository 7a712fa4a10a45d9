"""What must hold exactly, compiled to bounds on sums of cells in every geounit, with a record of what it uses.

The multiverse of a run's specification is derived from that record and from nothing else: a constraint that reads a
confidential number without recording it cannot be built here, because the counts are fetched through ``Record``.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InfeasibleError, InputError
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


def leaves_used(census: "Census", workload: Workload) -> Invariant | None:
    """The tree itself: which leaves hold a record at all, unless a public file lists all areas."""
    if census.schema.geography.areas is not None:
        return None
    leaf = census.schema.spine[-1]
    units = next((record.name for record in census.schema.records if not record.linked_to), workload.record)
    words = f"which areas of level {leaf} hold a {units} record"
    return Custom(words, (Margin(units, (leaf,)),), words)


def declared(census: "Census", workload: Workload) -> Multiverse:
    """The multiverse a run will use, from its rules alone; the run checks that it used exactly this."""
    record = Record()
    for rule in workload.rules:
        if rule.kind in {"exact", "facilities"}:
            record.used.add(invariant(rule, workload, level_of(census, rule.level)))
    tree = leaves_used(census, workload)
    if tree is not None:
        record.used.add(tree)
    return record.multiverse


def level_of(census: "Census", level: str) -> str:
    """The census's own name of a workload's level."""
    for name in (level, *ALIASES.get(level, ())):
        if name in census.schema.spine:
            return name
    raise InputError(
        f"a rule speaks of level {level}, which the census lacks",
        why=f"it has {', '.join(census.schema.spine)}",
    )


@dataclass(slots=True)
class Record:
    """The only way a constraint gets at confidential numbers: what is fetched is written down."""

    used: set[Invariant] = field(default_factory=set)

    def truth(self, level: str, rule: Rule, workload: Workload, histograms: Sparse) -> Ints:
        """Exact answers of a rule's query at a level."""
        self.used.add(invariant(rule, workload, level))
        return answers(histograms, workload.query(rule.query))

    def units(self, census: "Census", rule: Rule, workload: Workload, leaf: str, codes: pl.Series) -> Ints:
        """How many units of each kind stand in each leaf (leaves × kinds)."""
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
        """All universes of what was used; what another invariant determines is not listed twice."""
        margins = {m for m in self.used if isinstance(m, Margin)}
        implied = {
            i
            for i in self.used
            if isinstance(i, Custom)
            and i.determined_by
            and all(
                any(
                    m.record_type == n.record_type and set(m.by) <= set(n.by) and not n.where for n in margins
                )
                for m in i.determined_by
            )
        }
        return Multiverse(frozenset(self.used - implied))


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
    """Everything that holds: bounds by level, cells that are empty in any census, and the record of numbers used."""

    held: tuple[Held, ...]
    zeros: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    record: Record
    histogram: Histogram

    def possible(self, cells: Ints) -> NDArray[np.bool_]:
        """Which cells may hold anybody, by the structural zeros."""
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
        """Which cells may hold anybody in which geounit (nodes × cells), structural zeros aside."""
        result = np.ones((len(nodes), len(cells)), bool)
        for held in self.held:
            if depth < len(held.high):
                groups = held.query.of(cells)
                inside = groups >= 0
                result[:, inside] &= held.high[depth][nodes][:, groups[inside]] > 0
        return result

    def asymmetric(self) -> tuple[str, ...]:
        """Axes on which constraints tell levels apart."""
        names = {axis for zero in self.zeros for axis, _ in zero}
        for held in self.held:
            names |= {a.name for a, kept in zip(self.histogram.axes, held.query.kept, strict=True) if kept}
        return tuple(sorted(names))


def compiled_rules(
    census: "Census", workload: Workload, spine: Spine, truth: list[Sparse], given: Held | None = None
) -> Constraints:
    """Bounds in every geounit, checked against the census and against each other before anything is solved."""
    record = Record()
    held: list[Held] = [] if given is None else [given]
    zeros = []
    last = len(spine.levels) - 1
    for rule in workload.rules:
        if rule.kind == "zero":
            cells = dict(rule.cells)
            for axis in cells:
                workload.histogram.axis(axis)
            zeros.append(rule.cells)
            continue
        query = workload.query(rule.query)
        depth = spine.depth(rule.level)
        if depth is None:
            raise InputError(f"rule {rule.name} speaks of level {rule.level}, which the census lacks",
                             why=f"the census has {', '.join(spine.levels)}")  # fmt: skip
        if rule.kind == "facilities":
            if depth != last:
                raise InputError(
                    f"rule {rule.name}: facilities are counted at the lowest level, {spine.levels[-1]}"
                )
            units = record.units(census, rule, workload, spine.levels[-1], spine.codes[-1])
            lower = np.array(rule.lower or (0,) * query.size)
            held.append(summed(rule.name, query, units * lower, units * rule.largest, spine, depth))
        elif rule.kind == "exact":
            exact = record.truth(spine.levels[depth], rule, workload, truth[depth])
            held.append(summed(rule.name, query, exact, exact, spine, depth))
        else:
            values = np.tile(np.array(rule.values, np.int64), (spine.size(depth), 1))
            free = np.full_like(values, 10**12) if rule.kind == "at-least" else np.zeros_like(values)
            low, high = (values, free) if rule.kind == "at-least" else (free, values)
            held.append(summed(rule.name, query, low, high, spine, depth))
    result = Constraints(tuple(held), tuple(zeros), record, workload.histogram)
    tree = leaves_used(census, workload)
    if tree is not None:
        record.used.add(tree)
    _feasible(result, workload, spine, truth)
    return result


def answers(histograms: Sparse, query: Query) -> Ints:
    """Exact answers of a query for every node of a level."""
    index = query.of(histograms.cells)
    keep = index >= 0
    result = np.zeros((len(histograms.first) - 1, query.size), np.int64)
    np.add.at(result, (histograms.nodes[keep], index[keep]), histograms.counts[keep])
    return result


def summed(name: str, query: Query, low: Ints, high: Ints, spine: Spine, depth: int) -> Held:
    """Bounds of one level and their sums at all levels above."""
    lows = [low]
    highs = lows if high is low else [high]  # exact sums are kept once
    for d in range(depth, 0, -1):
        for values in {id(lows): lows, id(highs): highs}.values():
            up = np.zeros((spine.size(d - 1), query.size), np.int64)
            np.add.at(up, spine.parent[d], values[-1])
            values.append(up)
    return Held(name, query, tuple(lows[::-1]), tuple(highs[::-1]))


def _feasible(constraints: Constraints, workload: Workload, spine: Spine, truth: list[Sparse]) -> None:
    """The census is the witness: it meets every constraint, so the whole problem has a solution. Else say which fails."""
    for rule in (rule for rule in workload.rules if rule.kind == "zero"):
        one = Constraints((), (rule.cells,), constraints.record, constraints.histogram)
        broken = int(truth[0].counts[~one.possible(truth[0].cells)].sum())
        if broken:
            raise InfeasibleError(
                f"constraint {rule.name!r} does not hold in the census",
                why=f"{broken} {workload.record} records stand in cells it declares empty",
                fix="edit the records, or drop the rule",
            )
    rules = {rule.name for rule in workload.rules}
    for held in constraints.held:
        if held.name not in rules:
            continue  # an earlier product: its own run is the witness, the census need not agree with it
        for depth in range(len(held.low)):
            value = answers(truth[depth], held.query)
            broken = int(((value < held.low[depth]) | (value > held.high[depth])).any(axis=1).sum())
            if broken:
                raise InfeasibleError(
                    f"constraint {held.name!r} does not hold in the census",
                    why=f"{broken} geounits of level {spine.levels[depth]} are outside its bounds, so no data set"
                    " can meet it together with the exact counts",
                    fix="edit the records, or relax the rule",
                )
    for first in constraints.held:
        for other in constraints.held:
            for depth in range(min(len(first.low), len(other.low))):
                if first.query == other.query:
                    clash = int((first.low[depth] > other.high[depth]).any(axis=1).sum())
                elif other.whole and not first.whole:
                    clash = int((first.low[depth].sum(axis=1) > other.high[depth][:, 0]).sum())
                else:
                    continue
                if clash:
                    raise InfeasibleError(
                        f"constraints {first.name!r} and {other.name!r} cannot both hold",
                        why=f"they exclude each other in {clash} geounits of level {spine.levels[depth]}",
                        fix="relax one of them",
                    )
