"""Define the histogram of a run: axes, axes made of parts, cells and marginal queries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean

# The histogram of a TopDown run, and its marginal queries.
#
# A query is a *coarsened marginal*: each axis is kept, grouped by a recode (some levels may be dropped), or summed,
# and the groups are crossed. Its 0/1 matrix is a Kronecker product with at most one 1 in each column, so changing one
# record moves at most two of its cells by one.

Recode = tuple[int, ...]  # level → group, -1 where the level is dropped
Cells = NDArray[np.int64]
MAX_TABLED_CELLS = 1 << 16  # cells of a histogram up to which the answers of all of them are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSource:
    """The source of an axis: a column, and how its values become levels 0, 1, 2 …

    ``cuts`` makes bins of a number (18 splits into under 18 and the rest), ``values`` lists the values of each
    level, ``offset`` is subtracted from a code. ``cases`` decides by several columns: the level is the number of the
    first case whose columns all have one of the listed values. ``product`` crosses several sources with their sizes,
    the last varying fastest; ``levels`` lists the combinations that are levels, the others have none. A person's column
    may come from its household.
    """

    column: str = ""
    cuts: tuple[int, ...] = ()
    values: tuple[tuple[int | str, ...], ...] = ()
    offset: int = 0
    cases: tuple[tuple[tuple[str, tuple[int | str, ...]], ...], ...] = ()
    product: tuple[tuple["AxisSource", int], ...] = ()
    levels: tuple[int, ...] = field(default=(), metadata={"later": True})

    @property
    def columns(self) -> tuple[str, ...]:
        """Return every column that it uses."""
        if self.product:
            return tuple({name: None for part, _ in self.product for name in part.columns})
        return (
            (self.column,) if self.column else tuple({name: None for case in self.cases for name, _ in case})
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramAxis:
    """One dimension of the histogram with its named recodes.

    >>> axis = HistogramAxis(name="hhgq", size=8, recodes={"inst": (0, 1, 1, 1, 1, 2, 2, 2)})
    >>> axis.groups("inst"), axis.groups("hhgq")
    (3, 8)
    """

    name: str
    size: int
    labels: tuple[str, ...] = ()
    recodes: dict[str, Recode] = field(default_factory=dict)
    source: AxisSource | None = None

    def __post_init__(self) -> None:
        for name, recode in self.recodes.items():
            used = sorted(set(recode) - {-1})
            if len(recode) != self.size or used != list(range(len(used))):
                raise InputError(
                    f"recode {name} of axis {self.name} does not map its {self.size} levels to groups 0, 1, 2 …",
                    why="groups are numbered without a gap",
                    fix="give every level one group number, or -1 to drop it",
                )

    def recode(self, name: str) -> Recode:
        """Return the recode of that name; the axis's own name keeps every level."""
        return tuple(range(self.size)) if name == self.name else self.recodes[name]

    def groups(self, name: str) -> int:
        """Return how many groups the recode makes."""
        return max(self.recode(name)) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A product of axes; cells are numbered in row-major order.

    >>> h = Histogram(axes=(HistogramAxis(name="race", size=8), HistogramAxis(name="votingage", size=2)))
    >>> h.shape, h.cells
    ((8, 2), 16)
    """

    axes: tuple[HistogramAxis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of levels by axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return prod(self.shape)

    def axis(self, name: str) -> HistogramAxis:
        """Return the axis of that name."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise InputError(
            f"no axis {name} in the histogram",
            why="an axis is asked for by its name",
            fix=did_you_mean(name, [a.name for a in self.axes]),
        )

    def coordinates(self, cells: Cells) -> tuple[NDArray[np.int64], ...]:
        """Return the levels by axis of the given cells."""
        return tuple(np.unravel_index(cells, self.shape))

    def query(self, name: str, parts: tuple[str, ...]) -> "Query":
        """Return the marginal that keeps the named axes or recodes and sums the others."""
        by_axis: dict[str, str] = {}
        for part in parts:
            for axis in self.axes:
                if part == axis.name or part in axis.recodes:
                    if axis.name in by_axis:
                        raise InputError(
                            f"query {name} uses axis {axis.name} twice",
                            why="a query counts each axis once",
                            fix="name one recode of each axis",
                        )
                    by_axis[axis.name] = part
                    break
            else:
                known = [n for axis in self.axes for n in (axis.name, *axis.recodes)]
                raise InputError(
                    f"query {name} asks for {part}, which no axis has",
                    why="a query names axes and recodes of the histogram",
                    fix=did_you_mean(part, known),
                )
        factors = tuple(
            axis.recode(by_axis[axis.name]) if axis.name in by_axis else (0,) * axis.size
            for axis in self.axes
        )
        kept = tuple(axis.name in by_axis for axis in self.axes)
        return Query(name=name, factors=factors, kept=kept, parts=parts)


@dataclass(frozen=True, kw_only=True)
class Query:
    """A coarsened marginal: for each axis, level → group (-1 dropped).

    >>> h = Histogram(axes=(HistogramAxis(name="race", size=3), HistogramAxis(name="votingage", size=2)))
    >>> h.query("race", ("race",)).of(np.arange(6)).tolist()
    [0, 0, 1, 1, 2, 2]
    >>> h.query("race", ("race",)).of(np.array([5, 5, 0, 0, 2, 2, 4])).tolist()  # more than the histogram has
    [2, 2, 0, 0, 1, 1, 2]
    """

    name: str
    factors: tuple[Recode, ...]
    kept: tuple[bool, ...]
    parts: tuple[str, ...] = ()

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Return the number of groups by axis (1 where the axis is summed)."""
        return tuple(max(factor) + 1 for factor in self.factors)

    @property
    def size(self) -> int:
        """Return the number of answers."""
        return prod(self.shape)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.int64], ...]:
        strides = [prod(self.shape[i + 1 :]) for i in range(len(self.shape))]
        return tuple(
            np.array([-(1 << 60) if g < 0 else g * stride for g in factor], dtype=np.int64)
            for factor, stride in zip(self.factors, strides, strict=True)
        )

    def of(self, cells: Cells) -> NDArray[np.int64]:
        """Return the answer each cell of the histogram is counted in, -1 where it is dropped."""
        if (
            MAX_TABLED_CELLS >= prod(len(factor) for factor in self.factors) < len(cells)
        ):  # each is met more than once
            return self._of_each[cells]
        return self._compute_answers(cells)

    @cached_property
    def _of_each(self) -> NDArray[np.int64]:
        """Return the answer of every cell of the histogram."""
        return self._compute_answers(np.arange(prod(len(factor) for factor in self.factors)))

    def _compute_answers(self, cells: Cells) -> NDArray[np.int64]:
        coordinates = np.unravel_index(cells, tuple(len(factor) for factor in self.factors))
        index = np.zeros(len(cells), dtype=np.int64)
        for table, levels in zip(self._tables, coordinates, strict=True):
            index += table[levels]
        return np.where(index < 0, -1, index)

    def answers(self, cells: Cells, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the query's exact answers on a sparse histogram."""
        index = self.of(cells)
        keep = index >= 0
        result = np.zeros(self.size, dtype=np.int64)
        np.add.at(result, index[keep], counts[keep])
        return result

    def arrange_answers(self, answers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return answers (geounits × answers) as they are published, in the order of the shape."""
        return answers

    def counts_for(self, axis: int) -> bool:
        """Return whether the query distinguishes levels of this axis."""
        return len(set(self.factors[axis]) - {-1}) >= 2


def axis_expression(axis: HistogramAxis, types: pl.Schema) -> pl.Expr:
    """Return an expression for the level of each record on an axis; null where it has none."""
    source = axis.source
    if source is None:
        return pl.col(axis.name).cast(pl.Int64)
    for column in source.columns:
        if column not in types:
            raise InputError(
                f"axis {axis.name} needs the column {column}",
                why="the levels of the axis are computed from it",
                fix=did_you_mean(column, types.names()),
            )
    if source.product:
        whole: pl.Expr = pl.lit(0, dtype=pl.Int64)
        for part, size in source.product:
            inner = axis_expression(HistogramAxis(name=axis.name, size=size, source=part), types)
            whole = whole * size + pl.when((inner >= 0) & (inner < size)).then(inner)
        if not source.levels:
            return whole
        numbers = {combination: level for level, combination in enumerate(source.levels)}
        return whole.replace_strict(numbers, default=None, return_dtype=pl.Int64)
    if source.cases:
        expression: pl.Expr = pl.lit(None, dtype=pl.Int64)
        for level in range(len(source.cases) - 1, -1, -1):
            condition = pl.lit(True)
            for column, values in source.cases[level]:
                condition = condition & pl.col(column).is_in(list(values))
            expression = pl.when(condition).then(level).otherwise(expression)
        return expression
    value = pl.col(source.column)
    if source.cuts:
        expression = pl.lit(0, dtype=pl.Int64)
        for cut in source.cuts:
            expression = expression + (value >= cut).cast(pl.Int64)
        return expression
    if source.values:
        expression = pl.lit(None, dtype=pl.Int64)
        for level, values in enumerate(source.values):
            expression = pl.when(value.is_in(list(values))).then(level).otherwise(expression)
        return expression
    return value.cast(pl.Int64) - source.offset


def cell_expression(histogram: Histogram, types: pl.Schema) -> pl.Expr:
    """Return an expression for the number of the cell each record falls in."""
    cell: pl.Expr = pl.lit(0, dtype=pl.Int64)
    for axis in histogram.axes:
        level = axis_expression(axis, types)
        cell = cell * axis.size + pl.when((level >= 0) & (level < axis.size)).then(level)
    return cell


def name_column(axis: HistogramAxis, names: dict[str, str]) -> tuple[str, int]:
    """Return the published name of an axis, and the offset added to its levels to give the census's codes."""
    if axis.name in names:
        return names[axis.name], 1 if axis.source and (axis.source.offset or axis.source.cuts) else 0
    source = axis.source
    if source is not None and source.column and not (source.cuts or source.values):
        return source.column, source.offset
    return axis.name, 0


# An axis made of parts: its levels are the combinations of the parts' levels that no rule excludes.

Excluded = Mapping[
    str, tuple[int, ...]
]  # part → levels; a combination with one of them in each part is excluded


@dataclass(frozen=True, kw_only=True)
class AxisPart:
    """One part: its name, the words for its levels, and the columns that they come from."""

    name: str
    labels: tuple[str, ...]
    source: AxisSource


@dataclass(frozen=True, kw_only=True)
class AxisParts:
    """Parts in order, the last varying fastest, without the combinations that some exclusion matches in full.

    >>> one = AxisPart(name="size", labels=("one", "two or more"), source=AxisSource(column="size"))
    >>> two = AxisPart(name="couple", labels=("no couple", "couple"), source=AxisSource(column="couple"))
    >>> parts = AxisParts(parts=(one, two), without=({"size": (0,), "couple": (1,)},))
    >>> parts.labels
    ('one, no couple', 'two or more, no couple', 'two or more, couple')
    >>> parts.recode({"couple": (0, 1)})
    (0, 0, 1)
    """

    parts: tuple[AxisPart, ...]
    without: tuple[Excluded, ...] = ()

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Return the levels of the parts in each level of the axis."""
        excluded = [tuple((self._at(name), levels) for name, levels in one.items()) for one in self.without]
        every = product(*(range(len(part.labels)) for part in self.parts))
        return tuple(
            one
            for one in every
            if not any(all(one[at] in levels for at, levels in rule) for rule in excluded)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the words for each level: those of its parts."""
        return tuple(
            ", ".join(part.labels[level] for part, level in zip(self.parts, one, strict=True))
            for one in self.levels
        )

    @property
    def source(self) -> AxisSource:
        """Return the product of the parts' sources, without the excluded combinations."""
        sizes = [len(part.labels) for part in self.parts]
        strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
        kept = tuple(
            sum(level * stride for level, stride in zip(one, strides, strict=True)) for one in self.levels
        )
        crossed = tuple((part.source, size) for part, size in zip(self.parts, sizes, strict=True))
        return AxisSource(product=crossed, levels=kept)

    def recode(self, groups: Mapping[str, tuple[int, ...]]) -> Recode:
        """Return each level's group, by the crossed groups of some parts; only groups in use count."""
        by = [(self._at(name), numbers) for name, numbers in groups.items()]
        for at, numbers in by:
            if len(numbers) != len(self.parts[at].labels):
                raise InputError(
                    f"a recode gives {len(numbers)} groups to part {self.parts[at].name}",
                    why=f"each of its {len(self.parts[at].labels)} levels has one group",
                    fix="write one number for each level",
                )
        crossed = [tuple(numbers[one[at]] for at, numbers in by) for one in self.levels]
        number = {group: i for i, group in enumerate(sorted(set(crossed)))}
        return tuple(number[group] for group in crossed)

    def _at(self, name: str) -> int:
        names = [part.name for part in self.parts]
        if name not in names:
            raise InputError(
                f"no part {name} of the axis",
                why="recodes and exclusions name parts of their axis",
                fix=did_you_mean(name, names),
            )
        return names.index(name)
