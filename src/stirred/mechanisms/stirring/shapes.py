"""The shapes of strata, from which their laws are chosen: sizes and counts of types, counted in records or read."""

from collections.abc import Sequence

import numpy as np

from stirred.mechanisms.stirring.free_slots import MAX_TYPES
from stirred.mechanisms.stirring.law import StratumShape, StratumShapes
from stirred.mechanisms.swap.records import Column
from stirred.mechanisms.swap.strata import MANY_TYPES, Shapes, StratumCodes, count_each_type, read_margins

Counts = tuple[int, ...] | None


def count_stratum_shapes(
    strata: StratumCodes, held: Sequence[Column] | None, places: Sequence[Column]
) -> StratumShapes:
    """Return the shape of each stratum of some records; without ``held`` all of them are taken to differ.

    >>> import pyarrow as pa
    >>> from stirred.mechanisms.swap.strata import form_strata
    >>> place = Column(name="place", codes=np.array([2, 7, 2]), type=pa.int64())
    >>> count_stratum_shapes(form_strata([], rows=3), None, [place]).distinct
    (StratumShape(n=3, held=None, places=(2, 1)),)
    """
    several = strata.sizes > 1
    rows = np.zeros((several.size, 1 + 2 * MAX_TYPES), np.uint32)
    rows[:, 0] = strata.sizes
    if held is not None:
        rows[several, 1 : 1 + MAX_TYPES] = count_each_type(strata, held, several, MAX_TYPES)
    rows[several, 1 + MAX_TYPES :] = count_each_type(strata, places, several, MAX_TYPES)
    distinct, numbers = np.unique(rows, axis=0, return_inverse=True)
    shapes = (
        StratumShape(n, _trim(counts[:MAX_TYPES]), _trim(counts[MAX_TYPES:]))
        for n, *counts in distinct.tolist()
    )
    return StratumShapes(tuple(shapes), np.asarray(numbers).reshape(-1))


def _trim(counts: Sequence[int]) -> Counts:
    return tuple(filter(None, counts)) or None


def list_shapes(shapes: Shapes) -> StratumShapes:
    """Return the shapes of strata that were counted for a promise, with three and more types in their margins."""
    margins = [read_margins(text) if text else (None, None) for text in shapes.margins.tolist()]
    columns = (
        shapes.n.tolist(),
        shapes.hold_types.tolist(),
        shapes.hold_larger.tolist(),
        shapes.swap_types.tolist(),
        shapes.swap_larger.tolist(),
        margins,
    )
    return StratumShapes.of(
        StratumShape(n, _join_counts(n, held, many, own), _join_counts(n, places, most, other))
        for n, held, many, places, most, (own, other) in zip(*columns, strict=True)
    )


def _join_counts(n: int, types: int, larger: int, margins: Counts) -> Counts:
    if types >= MANY_TYPES:
        return margins if margins is not None and len(margins) <= MAX_TYPES else None
    return (n,) if types < 2 else (larger, n - larger)
