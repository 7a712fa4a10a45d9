"""Record which confidential numbers constraints use, and state them as invariants.

The multiverse of a run's specification is derived from this record and from nothing else: a constraint that reads a
confidential number without recording it cannot be built, because the counts are fetched through ``Record``. What
the tree shows is recorded with it (``tree.leaves``).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.languages import Phrase, unit
from stirred.mechanisms.released_parts import count_cells
from stirred.mechanisms.topdown.tree import leaves as areas
from stirred.mechanisms.topdown.tree.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.tree.geounits import ALIASES
from stirred.mechanisms.topdown.workload.histogram import HistogramAxis, axis_expression
from stirred.mechanisms.topdown.workload.options import PART_SUFFIX, SpineOptions
from stirred.mechanisms.topdown.workload.rule import Rule, list_occupied_answers
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec import Custom, Invariant, Margin, Multiverse

if TYPE_CHECKING:
    from stirred.census import Census

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
