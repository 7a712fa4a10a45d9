r"""Estimate tables of a stirred file: by cycles as every swap does, by types from the moments of the law by types.

In a stratum with a law by types a slot i (a record, where places are the types; a place of one record, where held values
are) shows a type $\tau'_i$ instead of $\tau_i$. A cell shows $\sum_i a_i\,b(\tau'_i)$: $a_i$ is what a record adds and b
whether a place belongs to the cell, or $a_i$ is whether a place does and b what a held type adds. With the chances
$M_{hk}$ that a slot of type h shows type k, $\beta = M^{-1}b$ makes $\sum_i a_i\,\beta(\tau'_i)$ an unbiased estimate of the
cell, and its variance follows from the free slots: their numbers are independent given s (free_slots.py), those of a type
are chosen evenly, and their types are arranged evenly. Counts of types are invariants; the parts of a cell by type are
estimated without bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.kernels import compile_kernel
from stirred.mechanisms.release import UNIT, as_arrow
from stirred.mechanisms.stirring.free_slots import MAX_POINTS, MAX_TYPES, integrate
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    Asked,
    StratumLaws,
    StratumShape,
    StratumShapes,
    choose_laws,
    compute_trade_moments,
    moved_share,
)
from stirred.mechanisms.swap.estimates import (
    MAX_PAIRS_PER_PASS,
    WEIGHT_COLUMN,
    Moments,
    add_up_cells,
    lay_out_sums,
    round_whole,
    weigh_records,
)
from stirred.mechanisms.swap.records import Column, encode_table
from stirred.mechanisms.swap.strata import (
    MANY_TYPES,
    Shapes,
    StratumCodes,
    count_each_type,
    form_strata,
    read_margins,
)

# The shapes of strata, from which their laws are chosen: sizes and counts of types, counted in records or read.

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


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MIN_PIVOT = 1e-9  # below it the release holds no trace of the types


# The chances by which types change, and the variance of a sum over slots.


@compile_kernel
def _list_channel(
    counts: Floats,
    scale: float,
    channel: NDArray[np.float64],
    points: Floats,
    weights: Floats,
    moments: NDArray[np.float64],
) -> int:
    """Write the chances M that a slot of one type shows another; return the points of the integral, 0 for two types.

    For two types the first moments hold mean and variance of the number of trades.
    """
    found = 0
    if counts.size == 2:
        mean, spread = compute_trade_moments(counts[0], counts[1], scale)
        moments[0, 0, 0], moments[0, 0, 1] = mean, spread
        channel[0, 1], channel[1, 0] = mean / counts[0], mean / counts[1]
    else:
        found = integrate(counts, scale, points, weights, moments)
        for h in range(counts.size):
            for k in range(h):
                met = 0.0
                for j in range(found):
                    met += weights[j] / points[j] * moments[j, h, 0] * moments[j, k, 0]
                channel[h, k], channel[k, h] = met / counts[h], met / counts[k]
    for h in range(counts.size):
        channel[h, h] = 1.0
        for k in range(counts.size):
            if k != h:
                channel[h, h] -= channel[h, k]
    return found


@compile_kernel
def _list_changes(
    types: Integers, counts: NDArray[np.float64], scales: Floats, changed: NDArray[np.float64]
) -> None:
    """Write the chance of a slot of each type to show another one, for every stratum."""
    points, weights = np.empty(MAX_POINTS + 1), np.empty(MAX_POINTS + 1)
    moments = np.empty((MAX_POINTS, MAX_TYPES, 4))
    for s in range(types.size):
        channel = np.empty((types[s], types[s]))
        _list_channel(counts[s, : types[s]], scales[s], channel, points, weights, moments)
        for h in range(types[s]):
            changed[s, h] = 1.0 - channel[h, h]


@compile_kernel
def _invert(matrix: NDArray[np.float64], inverse: NDArray[np.float64]) -> bool:
    """Write the inverse, by elimination with pivots; return whether there is one."""
    size = matrix.shape[0]
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 1.0 if i == j else 0.0
    for c in range(size):
        best = c
        for i in range(c, size):
            if abs(matrix[i, c]) > abs(matrix[best, c]):
                best = i
        if abs(matrix[best, c]) < MIN_PIVOT:
            return False
        for j in range(size):
            matrix[c, j], matrix[best, j] = matrix[best, j], matrix[c, j]
            inverse[c, j], inverse[best, j] = inverse[best, j], inverse[c, j]
        pivot = matrix[c, c]
        for j in range(size):
            matrix[c, j] /= pivot
            inverse[c, j] /= pivot
        for i in range(size):
            factor = matrix[i, c]
            if i != c and factor != 0.0:
                for j in range(size):
                    matrix[i, j] -= factor * matrix[c, j]
                    inverse[i, j] -= factor * inverse[c, j]
    return True


@compile_kernel
def _vary_two(
    counts: Floats, mean: float, spread: float, sums: Floats, squares: Floats, values: Floats
) -> float:
    """Return the variance where t slots of each of two types show the other: t varies, and which slots they are."""
    among = 0.0
    for h in range(2):
        n = counts[h]
        if n > 1.0:
            outside = mean * (n - mean) - spread  # of t(n − t)
            among += outside / (n * (n - 1.0)) * max(squares[h] - sums[h] * sums[h] / n, 0.0)
    apart = sums[0] / counts[0] - sums[1] / counts[1]
    return float((values[0] - values[1]) ** 2 * (spread * apart * apart + among))


@compile_kernel
def _vary_more(
    counts: Floats,
    found: int,
    points: Floats,
    weights: Floats,
    moments: NDArray[np.float64],
    sums: Floats,
    squares: Floats,
    values: Floats,
) -> float:
    r"""Return the variance of $D = \sum_{i\,\mathrm{free}} a_i(\beta(\tau'_i)-\beta(\tau_i))$, proof.md, Section 8."""
    n, middle = 0.0, 0.0
    for h in range(counts.size):
        n += counts[h]
        middle += counts[h] * values[h]
    middle /= n
    first, second = 0.0, 0.0
    for j in range(found):
        x = y = w = vx = vy = vw = cxy = cxw = cwy = 0.0
        kxxy = kxyy = kxxyy = kxwy = rho = left = less = 0.0
        rho_x = rho_xx = left_y = left_yy = left_rho = less_y = own = single = 0.0
        for h in range(counts.size):
            m, v2, v3, v4 = moments[j, h, 0], moments[j, h, 1], moments[j, h, 2], moments[j, h, 3]
            a, b = sums[h] / counts[h], values[h] - middle
            pair = 0.0
            if counts[h] > 1.0:
                pair = (sums[h] * sums[h] - squares[h]) / (counts[h] * (counts[h] - 1.0))
            ab = a * b
            x += a * m
            y += b * m
            w += ab * m
            vx += a * a * v2
            vy += b * b * v2
            vw += ab * ab * v2
            cxy += ab * v2
            cxw += a * ab * v2
            cwy += ab * b * v2
            kxxy += a * ab * v3
            kxyy += ab * b * v3
            kxxyy += ab * ab * (v4 - 3.0 * v2 * v2)
            kxwy += ab * ab * v3
            # the terms of X² and Y² in which both records have one type, as polynomials of f − m
            one, two = pair * (2.0 * m - 1.0) - 2.0 * a * a * m, pair - a * a
            same = pair * (m * m - m) - a * a * m * m + two * v2
            rho -= b * b * m
            rho_x -= ab * b * v2
            rho_xx -= ab * ab * v3
            left += same
            left_y += b * (one * v2 + two * v3)
            left_yy += b * b * (one * v3 + two * (v4 - v2 * v2))
            left_rho -= b * b * (one * v2 + two * v3)
            less += b * same
            less_y += b * b * (one * v2 + two * v3)
            own += b * b * same
            for k in range(h):
                apart = values[h] - values[k]
                single += (
                    (squares[h] / counts[h] + squares[k] / counts[k]) * m * moments[j, k, 0] * apart * apart
                )
        both = x * x * y * y + x * x * vy + y * y * vx + 4.0 * x * y * cxy + vx * vy + 2.0 * cxy * cxy
        both += 2.0 * x * kxyy + 2.0 * y * kxxy + kxxyy
        both += rho * (x * x + vx) + 2.0 * x * rho_x + rho_xx
        both += left * (y * y + vy) + 2.0 * y * left_y + left_yy + left * rho + left_rho
        shown = x * w * y + x * cwy + w * cxy + y * cxw + kxwy + less * y + less_y
        s = points[j]
        first += weights[j] * ((x * y + cxy) / s - w)
        second += weights[j] * (both / s / s + (single - 2.0 * shown) / s + w * w + vw + own)
    return max(second - first * first, 0.0)


@compile_kernel
def estimate_types(
    types: Integers,
    counts: NDArray[np.float64],
    scales: Floats,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int64],
    shown: Floats,
    shown_squares: Floats,
    values: Floats,
    estimates: Floats,
    variances: Floats,
    slacks: Floats,
) -> None:
    """Write the estimate, variance and slack of every cell of strata with a law by types.

    Stratum s has ``sizes[s]`` = (u, v): u kinds of slots with their sums by type in ``shown`` (types × u), and v kinds of
    values of types in ``values`` (types × v); ``starts`` says where each begins, and where its u × v cells do.
    """
    points, weights = np.empty(MAX_POINTS + 1), np.empty(MAX_POINTS + 1)
    moments = np.empty((MAX_POINTS, MAX_TYPES, 4))
    for s in range(types.size):
        number, many, kinds = types[s], sizes[s, 0], sizes[s, 1]
        own = counts[s, :number]
        channel, inverse = np.empty((number, number)), np.empty((number, number))
        found = _list_channel(own, scales[s], channel, points, weights, moments)
        known = _invert(channel, inverse)
        sums, squares, beta = np.empty(number), np.empty(number), np.empty(number)
        for u in range(many):
            total, total_squares = 0.0, 0.0
            for h in range(number):
                total += shown[starts[s, 0] + h * many + u]
                total_squares += shown_squares[starts[s, 0] + h * many + u]
            for h in range(number):
                sums[h], squares[h] = 0.0, 0.0
                for k in range(number):
                    sums[h] += shown[starts[s, 0] + k * many + u] * inverse[k, h]
                    squares[h] += shown_squares[starts[s, 0] + k * many + u] * inverse[k, h]
                sums[h] = min(max(sums[h], 0.0), total)
                squares[h] = min(max(squares[h], 0.0), total_squares)
            for v in range(kinds):
                cell, value, even, n, most = starts[s, 2] + u * kinds + v, 0.0, 0.0, 0.0, 0.0
                for h in range(number):
                    beta[h] = 0.0
                    for k in range(number):
                        beta[h] += inverse[h, k] * values[starts[s, 1] + k * kinds + v]
                    value += shown[starts[s, 0] + h * many + u] * beta[h]
                    even += own[h] * values[starts[s, 1] + h * kinds + v]
                    most = max(most, values[starts[s, 1] + h * kinds + v])
                    n += own[h]
                estimates[cell], slacks[cell] = value, 0.0
                if not known:
                    estimates[cell], variances[cell], slacks[cell] = total * even / n, 0.0, total * most
                elif number == 2:
                    variances[cell] = _vary_two(own, moments[0, 0, 0], moments[0, 0, 1], sums, squares, beta)
                else:
                    variances[cell] = _vary_more(own, found, points, weights, moments, sums, squares, beta)


# The cells of a table, stratum by stratum.


@dataclass(frozen=True, slots=True)
class StirredMoments(Moments):
    """Sum counts and moments of the cells of whole strata, each by its own law.

    ``held`` are the variables that make held types, None where linked records make all records differ. Records with one
    of ``levels`` of the variable ``first`` were shuffled among themselves before: where they add different amounts to a
    category, nothing is left of who was where, and the interval allows for all of them.
    """

    asked: Asked | None = None
    held: tuple[str, ...] | None = None
    first: str = ""
    levels: tuple[str, ...] = ()

    @property
    def strata(self) -> tuple[str, ...]:
        """Return the variables that make strata, places and types, and that choose who was shuffled first."""
        return tuple(
            dict.fromkeys([*self.match, *self.swap, *(self.held or ()), *filter(None, [self.first])])
        )

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the counts, estimates and variances that these strata add to the cells."""
        keys, names = list(self.by), {BY_HELD: self.held or (), BY_PLACE: self.swap}
        units, laws = self.find_laws(units)
        typed = units.filter(pl.col("_law") != CYCLES)
        parts = [
            Moments.of(
                self,
                units.filter(pl.col("_law") == CYCLES).drop("_m", "_law"),
                counted.join(typed.select(UNIT), on=UNIT, how="anti"),
            )
        ]
        for kind, variables in names.items():
            own = typed.filter(pl.col("_law") == kind)
            if own.height:
                parts.append(
                    self._sum_types(own.with_columns(_k=_rank_types(variables)), counted, laws, kind)
                )
        if self.first:
            parts.append(self._allow_for_shuffle(units, counted))
        return add_up_cells([lay_out_sums(part, keys) for part in parts], keys)

    def find_laws(self, units: pl.DataFrame) -> tuple[pl.DataFrame, StratumLaws]:
        """Return the records with the number of their stratum and the kind of its law; and the laws of all strata."""
        columns = encode_table(as_arrow(units), self.strata)
        codes = form_strata([columns[name] for name in self.match], rows=units.height)
        held = None if self.held is None else [columns[name] for name in self.held]
        assert self.asked is not None  # every kernel is given what is asked for
        shapes = count_stratum_shapes(codes, held, [columns[name] for name in self.swap])
        laws = choose_laws(shapes, self.asked)
        return units.with_columns(_m=pl.Series(codes.codes), _law=pl.Series(laws.kinds()[codes.codes])), laws

    def find_moved(self, units: pl.DataFrame) -> Floats:
        """Return the chance of each record to be shown at the place of another one.

        By types it is the chance that its place, or what is held there, is not shown. A shuffled record is at one of
        the places of all shuffled ones.
        """
        units, laws = self.find_laws(units.select(self.strata))
        units = units.with_row_index("_i").with_columns(_n=pl.len().over("_m").cast(pl.Int64))
        sizes = units["_n"].to_numpy()
        pairs = np.stack([sizes, laws.numbers[units["_m"].to_numpy()]])
        distinct, places = np.unique(pairs, axis=1, return_inverse=True)
        found = [float(moved_share(n, laws.laws[law].weight)) for n, law in distinct.T.tolist()]
        shares = np.array(found)[np.asarray(places).reshape(-1)]
        for kind, variables in ((BY_HELD, self.held or ()), (BY_PLACE, self.swap)):
            own = units.filter(pl.col("_law") == kind)
            if own.height:
                own = own.with_columns(_k=_rank_types(variables))
                gone, same = (
                    _find_changed(own, laws),
                    own.group_by("_m", "_k").agg(_t=pl.len().cast(pl.Int64)),
                )
                if kind == BY_PLACE:
                    t = own.join(same, on=["_m", "_k"], how="left", maintain_order="left")["_t"].to_numpy()
                    n = own["_n"].to_numpy()
                    gone = gone * (n - 1) / np.maximum(n - t, 1)
                shares[own["_i"].to_numpy()] = gone
        if self.first:
            chosen = pl.col(self.first).cast(pl.String).is_in(list(self.levels)).fill_null(False)
            many = units.select(pl.when(chosen).then(chosen.sum().over("_m")).otherwise(1))
            c = many.to_series().to_numpy()
            shares = 1 - (1 - shares + (c - 1) * shares / np.maximum(sizes - 1, 1)) / c
        return shares

    def _weigh(self, counted: pl.DataFrame) -> pl.DataFrame:
        """Return what each unit adds to each category of the variables that stay."""
        held = [name for name in self.by if name not in set(self.swap)]
        weighed = weigh_records(counted, self.weight, self.scale)
        return weighed.group_by(UNIT, *held).agg(pl.col(WEIGHT_COLUMN).sum().alias("_w"))

    def _sum_types(
        self, units: pl.DataFrame, counted: pl.DataFrame, laws: StratumLaws, kind: int
    ) -> pl.DataFrame:
        """Sum the moments of strata with a law by held types or by places."""
        keys, moving = list(self.by), [name for name in self.by if name in set(self.swap)]
        held = [name for name in self.by if name not in set(self.swap)]
        counted = counted.join(units.select(UNIT), on=UNIT, how="semi")
        weighed = weigh_records(counted, self.weight, self.scale)
        still = weighed.group_by(keys).agg(
            pl.len().cast(pl.Int64).alias("count"), pl.col(WEIGHT_COLUMN).sum().alias("weighted")
        )
        places = units.select(UNIT, "_m", "_k", *[pl.col(name).alias(f"_p_{name}") for name in moving])
        adds = self._weigh(counted).join(places, on=UNIT)
        there = [f"_p_{name}" for name in moving]
        slots, sorts = (held, there) if kind == BY_PLACE else (there, held)
        if kind == BY_PLACE:
            square = (pl.col("_w").cast(pl.Float64) ** 2 / self.scale.squares).round() * self.scale.squares
            shown = adds.group_by("_m", "_k", *slots).agg(
                pl.col("_w").sum().cast(pl.Float64).alias("_x"), square.sum().alias("_q")
            )
            values = places.select("_m", "_k", *sorts).unique().with_columns(_b=pl.lit(1.0))
        else:
            shown = places.group_by("_m", "_k", *slots).agg(pl.len().cast(pl.Float64).alias("_x"))
            shown = shown.with_columns(_q=pl.col("_x"))
            values = adds.group_by("_m", "_k", *sorts).agg(pl.col("_w").first().cast(pl.Float64).alias("_b"))
        counts = units.group_by("_m", "_k").agg(pl.len().cast(pl.Float64).alias("_n"))
        found = []
        for some in _list_pairs(shown.select("_m", *slots), values.select("_m", *sorts)):
            own = [part.join(some, on="_m", how="semi") for part in (counts, shown, values)]
            found.append(self._estimate_some(laws, own[0], own[1], own[2], slots, sorts))
        cells = pl.concat(found).rename(dict(zip(there, moving, strict=True)))
        summed = cells.group_by(keys).agg(pl.col("estimate", "variance", "slack").sum())
        return add_up_cells([lay_out_sums(part, keys) for part in (still, summed)], keys)

    def _estimate_some(
        self,
        laws: StratumLaws,
        counts: pl.DataFrame,
        shown: pl.DataFrame,
        values: pl.DataFrame,
        slots: list[str],
        sorts: list[str],
    ) -> pl.DataFrame:
        """Return estimate, variance and slack of every cell of some strata, in whole numbers."""
        strata, types, table, scales = _lay_out_types(counts, laws)
        first, second = (
            part.select("_m", *names)
            .unique()
            .sort("_m", *names, nulls_last=False)
            .with_columns(pl.int_range(pl.len()).over("_m").alias(label))
            for part, names, label in ((shown, slots, "_u"), (values, sorts, "_v"))
        )
        many, kinds = (_count_rows(part, strata) for part in (first, second))
        sizes = np.stack([many, kinds], axis=1)
        starts = np.stack([np.cumsum(x) - x for x in (types * many, types * kinds, many * kinds)], axis=1)
        sides = []
        for part, index, names, label, at, columns in (
            (shown, first, slots, "_u", 0, ("_x", "_q")),
            (values, second, sorts, "_v", 1, ("_b",)),
        ):
            joined = part.join(index, on=["_m", *names], nulls_equal=True).join(strata, on="_m")
            s, k, u = (joined[name].to_numpy().astype(np.int64) for name in ("_s", "_k", label))
            for column in columns:
                flat = np.zeros(int((types * sizes[:, at]).sum()))
                flat[starts[s, at] + k * sizes[s, at] + u] = joined[column].to_numpy()
                sides.append(flat)
        value, spread, slack = (np.zeros(int((many * kinds).sum())) for _ in range(3))
        sums, squares, each = sides
        estimate_types(types, table, scales, sizes, starts, sums, squares, each, value, spread, slack)
        cross = first.join(second, on="_m").sort("_m", "_u", "_v")
        return cross.select(*slots, *sorts).with_columns(
            estimate=round_whole(value * self.scale.estimate),
            variance=round_whole(spread * self.scale.variance),
            slack=round_whole(slack * self.scale.estimate),
        )

    def _allow_for_shuffle(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the slack of categories to which the shuffled records of a stratum add different amounts."""
        keys, moving = list(self.by), [name for name in self.by if name in set(self.swap)]
        held = [name for name in self.by if name not in set(self.swap)]
        chosen = units.filter(pl.col(self.first).cast(pl.String).is_in(list(self.levels)))
        number = chosen.group_by("_m").agg(pl.len().cast(pl.Float64).alias("_c"))
        adds = self._weigh(counted).join(chosen.select(UNIT, "_m"), on=UNIT).join(number, on="_m")
        amount = pl.col("_w").cast(pl.Float64)
        mixed = adds.group_by("_m", "_c", *held).agg(
            amount.sum().alias("_sum"), (amount**2).sum().alias("_squares")
        )
        mixed = mixed.filter(pl.col("_c") * pl.col("_squares") > pl.col("_sum") ** 2 * (1 + 1e-9))
        cells = mixed.join(units.select("_m", *moving).unique(), on="_m")
        found = cells.group_by(keys).agg(pl.col("_sum").sum())
        return found.with_columns(slack=round_whole(found["_sum"].to_numpy() * self.scale.estimate))


def _rank_types(names: tuple[str, ...]) -> pl.Expr:
    """Return the number of each record's type in its stratum, by values: so sums do not depend on the parts of a file."""
    values = [pl.col(name).cast(pl.String) for name in names]
    return pl.struct(values).rank("dense").over("_m").cast(pl.Int64) - 1


def _lay_out_types(counts: pl.DataFrame, laws: StratumLaws) -> tuple[pl.DataFrame, Integers, Floats, Floats]:
    """Return the strata with their places, how many types each has, the counts of these, and the scales of their laws."""
    strata = counts.select("_m").unique().sort("_m").with_row_index("_s")
    types, table = _count_rows(counts, strata), np.zeros((strata.height, MAX_TYPES))
    placed = counts.join(strata, on="_m")
    table[placed["_s"].to_numpy(), placed["_k"].to_numpy()] = placed["_n"].to_numpy()
    own = [laws[stratum] for stratum in strata["_m"].to_list()]
    scales = [
        float(1 / law.weight if number == 2 else law.root - 1)
        for law, number in zip(own, types.tolist(), strict=True)
    ]
    return strata, types, table, np.array(scales)


def _find_changed(units: pl.DataFrame, laws: StratumLaws) -> Floats:
    """Return the chance of each slot of strata by types to show another type."""
    counts = units.group_by("_m", "_k").agg(pl.len().cast(pl.Float64).alias("_n"))
    strata, types, table, scales = _lay_out_types(counts, laws)
    found = np.zeros(table.shape)
    _list_changes(types, table, scales, found)
    placed = units.join(strata, on="_m", how="left", maintain_order="left")
    changed: Floats = found[placed["_s"].to_numpy(), placed["_k"].to_numpy()]
    return changed


def _count_rows(part: pl.DataFrame, strata: pl.DataFrame) -> Integers:
    """Return how many rows of a part each stratum has."""
    found = strata.join(part.group_by("_m").len(name="_l"), on="_m", how="left", maintain_order="left")
    counts: Integers = found["_l"].fill_null(0).to_numpy().astype(np.int64)
    return counts


def _list_pairs(slots: pl.DataFrame, sorts: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the strata in portions that have not too many cells."""
    many, kinds = (
        part.unique().group_by("_m").len(name=name) for part, name in ((slots, "_u"), (sorts, "_v"))
    )
    pairs = (
        many.join(kinds, on="_m")
        .sort("_m")
        .with_columns(_part=(pl.col("_u").cast(pl.Int64) * pl.col("_v")).cum_sum() // MAX_PAIRS_PER_PASS)
    )
    return [part.select("_m") for part in pairs.partition_by("_part", maintain_order=True)]
