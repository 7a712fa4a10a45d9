"""Predict the error of areas beside the spine before a run, from public geography and the shares of the budget alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from stirred.mechanisms.proposal import Goal
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.tree import (
    OUTSIDE,
    Tree,
    add_entities,
    extend_frame,
    list_leaves,
    split_tree,
)
from stirred.mechanisms.topdown.tuning import MAE_PER_DEVIATION, TreeShape, build_problem
from stirred.mechanisms.topdown.workload import SpineOptions, Workload

if TYPE_CHECKING:
    from stirred.census import Census

# An area is built from measured ones that are added and taken away. From the leaves upward, the part of an area in a
# geounit costs f, and what is left of the geounit g: both are sums over the children, or the geounit itself and the
# other of the two, whichever is cheaper. At cost 1 for each geounit f at the root is the smallest number of them; at the
# cost of a total's variance it is that of the area's total, if the errors of geounits were independent.


@dataclass(frozen=True, slots=True)
class PredictedAreas:
    """What is predicted for one geography: its areas, the measured ones that build each, and the error of totals."""

    name: str
    areas: int
    units: float
    most_units: int
    error: float
    largest_error: float


def predict_areas(
    census: "Census", workload: Workload, options: SpineOptions | None, names: Sequence[str]
) -> list[PredictedAreas]:
    """Predict each geography in the tree that is measured; of the census only its geography is read.

    Nothing is predicted where the workload has no closed form.
    """
    spine = census.schema.spine
    if not names or not Algebra.of(workload.histogram, workload.queries).fits:
        return []
    chosen = options or SpineOptions()
    beside = [name for name in (*chosen.entities, *names) if name not in spine]
    leaves = add_entities(census, list_leaves(census, workload), beside)
    frame, levels, _ = extend_frame(chosen, leaves, spine)
    measured = split_tree(chosen, leaves, spine, workload)[2]
    variances = _list_variances(measured, Tree.of(frame.select(levels), levels, root=measured.levels[0]))
    found = []
    for name in names:
        own = pl.col(name).cast(pl.String).fill_null("")
        inside = frame.with_columns(own.alias("area")).filter(~pl.col("area").is_in(OUTSIDE))
        units, variance = (
            build_areas(inside, frame, levels, dict.fromkeys(levels, 1.0)),
            build_areas(inside, frame, levels, variances),
        )
        errors = MAE_PER_DEVIATION * variance.sqrt()
        if len(units):
            numbers = units.mean(), units.max(), errors.mean(), errors.max()
            mean, most, error, largest = (float(number) for number in numbers)  # type: ignore[arg-type]
            found.append(PredictedAreas(name, len(units), mean, int(most), error, largest))
    return found


def build_areas(
    inside: pl.DataFrame, frame: pl.DataFrame, levels: Sequence[str], cost: Mapping[str, float]
) -> pl.Series:
    """Return the smallest cost of every ``area`` of the leaves ``inside``, in the order of their codes.

    >>> leaves = pl.DataFrame({"tract": list("aaab"), "block": list("1234"), "area": ["x", "x", "", "x"]})
    >>> own = leaves.filter(pl.col("area") == "x")
    >>> build_areas(own, leaves, ["tract", "block"], {"tract": 1.0, "block": 1.0}).to_list()  # a less block 3, and b
    [3.0]
    """
    leaf = levels[-1]
    now = inside.select("area", pl.col(leaf).alias("node")).with_columns(f=pl.lit(cost[leaf]), g=pl.lit(0.0))
    for depth in range(len(levels) - 1, 0, -1):
        level, below = levels[depth - 1], levels[depth]
        pairs = frame.select(node=pl.col(below), above=pl.col(level)).unique()
        children = pairs.group_by("above").agg(children=pl.len())
        sums = now.join(pairs, on="node").group_by("area", "above")
        up = sums.agg(pl.col("f", "g").sum(), seen=pl.len()).join(children, on="above")
        rest = pl.col("g") + (pl.col("children") - pl.col("seen")) * cost[below]
        up = up.with_columns(g=rest)
        now = up.select(
            "area",
            node="above",
            f=pl.min_horizontal("f", cost[level] + pl.col("g")),
            g=pl.min_horizontal("g", cost[level] + pl.col("f")),
        )
    return now.group_by("area").agg(pl.col("f").sum()).sort("area")["f"]


def _list_variances(workload: Workload, tree: Tree) -> dict[str, float]:
    """Return the variance of a total at every level of the tree; infinite where nothing is measured."""
    found = [(level, depth) for level in workload.levels if (depth := tree.depth(level)) is not None]
    shape = TreeShape(tuple(level for level, _ in found), tuple(tree.size(depth) for _, depth in found))
    goals = [Goal(by=(level,), limit=1.0) for level in shape.levels]
    asked = build_problem(workload, shape, goals, ())
    known = dict(
        zip(shape.levels, asked.errors.variances(asked.reference, asked.asked).tolist(), strict=True)
    )
    return {level: known.get(level, float("inf")) for level in tree.levels}
