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
from stirred.mechanisms.released_parts import cells
from stirred.mechanisms.topdown.tree import leaves as areas
from stirred.mechanisms.topdown.tree.counts import Sparse, answers
from stirred.mechanisms.topdown.tree.geounits import ALIASES
from stirred.mechanisms.topdown.workload.histogram import HistogramAxis, axis_expression
from stirred.mechanisms.topdown.workload.options import PART, SpineOptions
from stirred.mechanisms.topdown.workload.rule import Rule, occupied
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec import Custom, Invariant, Margin, Multiverse

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]


def invariant(rule: Rule, workload: Workload, level: str) -> Invariant:
    """The statistic a rule reads: a margin, or what is determined by one when the query coarsens its columns."""
    if rule.kind == "facilities":
        return Margin(rule.units, (level, *rule.unit_source.columns))
    if rule.kind == "parts":
        return totals_of_parts(workload.record, rule.level.removesuffix(PART), rule.areas)
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
    """The columns of the census that a query is counted by."""
    asked = workload.query(query)
    kept = [axis for axis, keep in zip(workload.histogram.axes, asked.kept, strict=True) if keep]
    return [name for axis in kept for name in (axis.source.columns if axis.source else (axis.name,))]


def totals_of_parts(record_type: str, level: str, areas: str) -> Invariant:
    """How many records lie inside and outside the areas that cut those of a level."""
    ones = unit(record_type, "ones")
    words = Phrase("topdown.parts", ones=ones, level=level, areas=areas)
    return Custom(words, (Margin(record_type, (level, areas)),), words)


def declared(census: "Census", workload: Workload, options: SpineOptions | None = None) -> Multiverse:
    """The multiverse a run will use, from its rules and its tree; the run checks that it used no more than this."""
    record = Record()
    record.tree(census)
    for rule in workload.rules:
        if rule.kind in {"exact", "facilities"}:
            record.used.add(invariant(rule, workload, level_of(census, rule.level)))
    if (
        options
        and options.bounds
        and options.aian
        and any(rule.kind == "facilities" for rule in workload.rules)
    ):
        record.used.add(totals_of_parts(workload.record, options.split_at, options.aian))
    return record.multiverse


def level_of(census: "Census", level: str) -> str:
    """The census's own name of a workload's level."""
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
        """Exact answers of a rule's query at a level."""
        self.used.add(invariant(rule, workload, level))
        return answers(histograms, workload.query(rule.query))

    def told(self, rule: Rule, workload: Workload, level: str) -> None:
        """Record the same numbers, which were read and summed where the records are stored."""
        self.used.add(invariant(rule, workload, level))

    def units(self, census: "Census", rule: Rule, workload: Workload, leaf: str, codes: pl.Series) -> Ints:
        """How many units of each kind are in each leaf (leaves × kinds)."""
        counts = self.counted_units(census, rule, workload, leaf)
        return units_at(counts, workload.query(rule.query).size, leaf, codes)

    def counted_units(self, census: "Census", rule: Rule, workload: Workload, leaf: str) -> pl.DataFrame:
        """How many units of each kind there are by the code of their leaf."""
        size = workload.query(rule.query).size
        self.used.add(invariant(rule, workload, leaf))
        frame = census.scan(rule.units, [leaf, *rule.unit_source.columns])
        level = axis_expression(
            HistogramAxis(name="kind", size=size, source=rule.unit_source), frame.collect_schema()
        )
        return cells(frame.select(leaf, level.alias("kind")), [leaf, "kind"]).collect()

    def quarters(self, census: "Census", rule: Rule, workload: Workload, leaf: str) -> pl.DataFrame:
        """How many units that always hold somebody are in each leaf that has one, by kind, in the order of the leaves."""
        self.used.add(invariant(rule, workload, leaf))
        frame = census.scan(rule.units, [leaf, *rule.unit_source.columns])
        axis = HistogramAxis(name="kind", size=workload.query(rule.query).size, source=rule.unit_source)
        kinds = axis_expression(axis, frame.collect_schema()).alias("kind")
        inside = frame.select(leaf, kinds).filter(pl.col("kind").is_in(occupied(rule)))
        return cells(inside, [leaf, "kind"]).collect().sort(leaf, "kind")

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


def units_at(counts: pl.DataFrame, size: int, leaf: str, codes: pl.Series) -> Ints:
    """Counted units as leaves × kinds, in the order of the codes."""
    number = pl.DataFrame({leaf: codes}).with_row_index("number")
    joined = counts.join(number, on=leaf, how="inner").drop_nulls()
    result = np.zeros((len(codes), size), np.int64)
    inside = joined.filter((pl.col("kind") >= 0) & (pl.col("kind") < size))
    result[inside["number"].to_numpy(), inside["kind"].to_numpy()] = inside["count"].to_numpy()
    return result


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
