"""Design, read and write perturbation tables: which noise a cell gets, by its count and by its cell key."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import DataError, InputError
from stirred.roots import require_readable
from stirred.text_formats import MAX_LINE_CHARACTERS, CsvTable, require_plain

# Design the noise of the cell key method: the law of largest entropy with a given bound and variance.
#
# For a count i the noise v has the law p that maximises $-\sum_v p_v \log p_v$ subject to $\sum_v p_v = 1$,
# $\sum_v v p_v = 0$ and $\sum_v v^2 p_v \le V$, where v runs over the values with $|v| \le D$ and $i + v$ either 0 or
# above ``js``. Optionally $p_0$ is given (``pstay``) and $p_v$ does not fall from the smallest v up to 0 (``mono``).
# Where no inequality binds, $p_v \propto e^{a v - b v^2}$; in the symmetric rows a = 0, the discrete Gaussian cut at ±D.
#
# Why the algorithm is right. With multipliers $\theta_v = a v - b v^2 - c$ the dual function is
# $G(a,b,c) = \sum_v p_v(\theta) + c + bV$ (without the part that pstay fixes), where p(θ) maximises
# $\sum_v p_v(\theta_v + 1 - \log p_v)$ over the laws that do not fall up to 0. That maximiser is the exponential of the
# isotonic regression of θ over v ≤ 0 (Barlow and Brunk 1972, Theorem 3.1), cut at $\log p_0$ where $p_0$ is given. G is
# convex and has a continuous gradient, so Newton's method with a line search finds its minimum; the moments hold there.

Floats = NDArray[np.float64]
PTABLE_STEPS = 20
PTABLE_MIN_CHANCE = 1e-8  # the smallest chance that ptable allows


def design_law(values: Floats, variance: float, *, stay: float | None = None, mono: bool = True) -> Floats:
    """Return the probabilities of largest entropy on some values, with mean 0 and at most a variance.

    >>> [round(float(p), 4) for p in design_law(np.arange(-2.0, 3.0), 1.0)]
    [0.0638, 0.2447, 0.383, 0.2447, 0.0638]
    """
    fixed = stay is not None and bool((values == 0).any())
    free = values[values != 0] if fixed else values
    mass = 1.0 - float(stay or 0) if fixed else 1.0
    bound = np.log(float(stay or 1)) if fixed and mono else np.inf
    least = _least_variance(free, mass)
    if not least < variance:
        raise _infeasible_error(variance, least)
    spread = max(1.0, float(np.abs(free).max()))
    scaled = free / spread
    features = np.stack([scaled, -(scaled**2), -np.ones_like(scaled)], axis=1)
    targets = np.array([0.0, -variance / spread**2, -mass])
    below = int((free <= 0).sum()) if mono else 0
    # without the bound on the variance first: where the law has less than V already, that one is it
    plain = features[:, [0, 2]]
    chances = _compute_chances(plain @ _find_multipliers(plain, targets[[0, 2]], below, bound), below, bound)[
        0
    ]
    if chances @ free**2 > variance:
        chances = _compute_chances(
            features @ _find_multipliers(features, targets, below, bound), below, bound
        )[0]
    if not fixed:
        return chances
    found = np.empty_like(values)
    found[values != 0], found[values == 0] = chances, float(stay or 0)
    return found


def design_lowered_law(values: Floats, variance: float, *, start: float, mono: bool = True) -> Floats:
    """Return the law that the package ptable designs: the chance of no noise is at least ``start``, lowered step by step.

    Each step is the law of largest entropy with $p_0$ at or above a bound. While its variance, rounded to three decimals, is
    not V, the bound falls by 0.05, at most 19 times. A count that cannot stay (1 to ``js``) has one step.

    >>> [round(float(p), 4) for p in design_lowered_law(np.arange(-2.0, 3.0), 1.0, start=0.9)]
    [0.1, 0.1, 0.6, 0.1, 0.1]
    """
    plain = design_law(values, variance, mono=mono)
    zero = values == 0
    if not zero.any():
        return plain
    bound, found = start, plain
    for _ in range(PTABLE_STEPS):
        bound = max(bound, PTABLE_MIN_CHANCE)
        if plain[zero][0] >= bound:  # the bound does not bind, nor does any lower one
            return plain
        found = design_law(values, variance, stay=bound, mono=mono)
        if round(float(found @ values**2), 3) == variance:
            break
        bound -= 0.05
    return found


def _find_multipliers(features: Floats, targets: Floats, below: int, bound: float) -> Floats:
    """Return the multipliers at which the moments hold, by Newton's method on the convex dual."""
    weights = np.zeros(len(targets))
    weights[-1] = np.log(len(features) / -targets[-1])
    value = _dual_value(features, targets, weights, below, bound)
    for _ in range(200):
        chances, blocks = _compute_chances(features @ weights, below, bound)
        gradient = features.T @ chances - targets
        if np.abs(gradient).max() < 1e-13:
            return weights
        pooled = np.stack([np.bincount(blocks, column) for column in features.T], axis=1)
        sizes = np.bincount(blocks)
        height = np.bincount(blocks, chances) / sizes
        moving = np.bincount(blocks, features @ weights) / sizes < bound
        pooled, scale = pooled[moving], (height / sizes)[moving]
        hessian = pooled.T @ (pooled * scale[:, None]) + 1e-14 * np.eye(len(targets))
        step = np.linalg.solve(hessian, gradient)
        length = 1.0
        while length > 1e-12:
            tried = weights - length * step
            found = _dual_value(features, targets, tried, below, bound)
            if found <= value - 1e-4 * length * float(gradient @ step):
                break
            length /= 2
        else:
            break
        weights, value = tried, found
    chances, _ = _compute_chances(features @ weights, below, bound)
    if np.abs(features.T @ chances - targets).max() > 1e-9:
        raise InputError(
            "no law of noise meets these wishes",
            why="the largest noise, the variance, the chance to stay and mono contradict each other for a small count",
            fix="a smaller pstay, another V, a larger D, or mono = false",
        )
    return weights


def _dual_value(features: Floats, targets: Floats, weights: Floats, below: int, bound: float) -> float:
    with np.errstate(over="ignore"):
        theta = features @ weights
        chances, _ = _compute_chances(theta, below, bound)
        cut = 0.0
        if np.isfinite(bound) and below:  # at the bound the maximiser keeps the slope of θ
            at = np.zeros(len(theta), bool)
            at[:below] = chances[:below] >= np.exp(bound) * (1 - 1e-15)
            cut = float((chances * (theta - bound))[at].sum())
        found = float(chances.sum() + cut - weights @ targets)
    return found if np.isfinite(found) else np.inf


def _compute_chances(theta: Floats, below: int, bound: float) -> tuple[Floats, NDArray[np.int64]]:
    """$e^{\\hat\\theta}$ with the first ``below`` values pooled where they fall, and the block of each value."""
    blocks: list[list[float]] = []  # mean, number
    for value in theta[:below]:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, number = blocks.pop()
            other = blocks[-1]
            other[0] = (other[0] * other[1] + mean * number) / (other[1] + number)
            other[1] += number
    numbers = np.array([int(number) for _, number in blocks] + [1] * (len(theta) - below))
    means = np.concatenate([np.minimum([mean for mean, _ in blocks], bound), theta[below:]])
    with np.errstate(over="ignore"):
        heights = np.exp(means)
    return np.repeat(heights, numbers), np.repeat(np.arange(len(numbers)), numbers)


def _least_variance(values: Floats, mass: float) -> float:
    """Return the variance that every law on some values with mean 0 and a mass exceeds."""
    lower, upper = values[values < 0], values[values > 0]
    if not len(lower) or not len(upper):
        return np.inf
    return 0.0 if (values == 0).any() else mass * float(lower.max() * -upper.min())


def _infeasible_error(variance: float, least: float) -> InputError:
    return InputError(
        f"a variance of {variance:g} cannot be had for a small count",
        why=f"with this D, js and pstay it is above {least:.4g}",
        fix="change V, or take a larger D",
    )


def to_number(value: Fraction | str | int) -> float:
    """Return a setting that is written exactly as the number that noise is computed with.

    >>> to_number("1/4")
    0.25
    """
    return float(Fraction(str(value)))


# Perturbation tables: which noise a cell gets, by its count and by its cell key, in both dialects of the method.
#
# Keys are whole numbers below a modulus. In the *decimal* dialect (destatis, cellKey, tau-ARGUS) a key k stands for
# k / modulus in [0, 1) and falls into an interval of the row of its count; large counts share the last row. In the *integer*
# dialect (ABS, ONS) a table has one noise for each pair of a row and a key, and the rows repeat for large counts.

Ints = NDArray[np.int64]
BOUND_DIGITS = 8  # of the bounds of intervals, as the files of the peers have them
UNITS_PER_ONE = 10**BOUND_DIGITS
Ties = Literal["below", "up-to"]


class Perturbation(Protocol):
    """A perturbation table: it gives noise to counts with keys."""

    @property
    def modulus(self) -> int:
        """Return the modulus of keys: a cell's key is the sum of its records' keys modulo this number."""
        ...

    def noise(self, counts: Ints, keys: Ints) -> Ints:
        """Return the noise of each cell; an empty cell has none."""
        ...

    @property
    def largest(self) -> float:
        """Return the largest noise, up or down."""
        ...

    def chance(self, counts: Ints, noise: Ints) -> Floats:
        """Return the probability of a noise at a count, over a uniform key."""
        ...


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """The noise of one count: values from the smallest to the largest, and where the interval of each ends (in 10^-8)."""

    values: Floats
    ends: Ints

    def __post_init__(self) -> None:
        if not len(self.ends) or self.ends[-1] != UNITS_PER_ONE or (np.diff(self.ends, prepend=0) < 0).any():
            raise DataError(
                "the intervals of a row of the perturbation table do not fill 0 to 1",
                why="their ends must not fall, and the last must be 1",
                fix="take the table as the design wrote it",
            )

    @property
    def chances(self) -> Floats:
        """Return the probability of each value."""
        return np.asarray(np.diff(self.ends, prepend=0) / UNITS_PER_ONE)

    @property
    def variance(self) -> float:
        """Return the variance of the noise."""
        mean = float(self.chances @ self.values)
        return float(self.chances @ self.values**2) - mean**2


@dataclass(frozen=True)
class IntervalTable:
    """The decimal dialect: a row for each class of counts; counts above the largest class have its row.

    ``ties`` says where a key belongs that equals the end of an interval: "below" puts it into the next interval
    (key < end, as the code of cellKey reads), "up-to" into the one that ends there (key ≤ end, as the handbook writes).
    """

    rows: Mapping[float, NoiseRow]  # by class; class 0 has the noise 0 alone
    digits: int = BOUND_DIGITS
    ties: Ties = "below"

    def __post_init__(self) -> None:
        if 0 not in self.rows or len(self.rows) < 2:
            raise DataError(
                "a perturbation table needs a row for 0 and one for 1",
                why="every count must find its row",
                fix="take the whole table",
            )
        if not 5 <= self.digits <= 17:
            raise InputError(
                "record keys have 5 to 17 digits", why="sums of keys must be exact", fix="digits = 8"
            )

    @property
    def modulus(self) -> int:
        """Return the modulus of keys, a power of ten."""
        return int(10**self.digits)

    @property
    def largest(self) -> float:
        """Return D, the largest noise."""
        return max(float(np.abs(row.values).max()) for row in self.rows.values())

    def classes(self) -> Floats:
        """Return the classes, sorted."""
        return np.array(sorted(self.rows))

    def noise(self, counts: Ints, keys: Ints) -> Ints:
        """Return the noise of each cell."""
        return self.values(np.minimum(counts, self.classes()[-1]), keys).astype(np.int64)

    def values(self, classes: NDArray[np.generic], keys: Ints) -> Floats:
        """Return the noise at classes that the table has, by keys."""
        found = np.zeros(len(keys))
        for at in np.unique(classes):
            row, here = self.rows[float(at)], np.flatnonzero(classes == at)
            found[here] = row.values[self._places(row, keys[here])]
        return found

    def _places(self, row: NoiseRow, keys: Ints) -> Ints:
        # both sides in units of 10^-max(digits, 8), so that a tie is a tie
        scale = 10 ** max(self.digits - BOUND_DIGITS, 0)
        own = keys * 10 ** max(BOUND_DIGITS - self.digits, 0)
        side: Literal["left", "right"] = "right" if self.ties == "below" else "left"
        return np.asarray(np.searchsorted(row.ends * scale, own, side=side))

    def chance(self, counts: Ints, noise: Ints) -> Floats:
        """Return the probability of each noise, from the row of each count; an empty cell has no noise."""
        found = np.zeros(len(counts))
        classes = np.minimum(np.maximum(counts, 0), self.classes()[-1])
        for at in np.unique(classes):
            row, here = self.rows[float(at)], np.flatnonzero(classes == at)
            known = dict(zip(row.values.tolist(), row.chances.tolist(), strict=True))
            found[here] = [known.get(float(value), 0.0) for value in noise[here]]
        return found


@dataclass(frozen=True)
class GridTable:
    """The integer dialect: ``grid[row - 1, key]`` is the noise; larger counts repeat the last ``period`` rows."""

    grid: Ints
    period: int = 250

    def __post_init__(self) -> None:
        if self.grid.ndim != 2 or not self.grid.size or not 1 <= self.period <= len(self.grid):
            raise DataError(
                "a perturbation table has a row for each count from 1 and a column for each key from 0",
                why="some pairs are missing, or the period is longer than the table",
                fix="take the whole table; for ONS tables period = 250",
            )

    @property
    def modulus(self) -> int:
        """Return the modulus of keys: 256 for a census, 4096 for administrative files."""
        return int(self.grid.shape[1])

    def rows(self, counts: Ints) -> Ints:
        """Return the row of each count: the count itself, or ((n − 1) mod period) + rows − period + 1."""
        number = len(self.grid)
        return np.where(counts <= number, counts, (counts - 1) % self.period + number - self.period + 1)

    def noise(self, counts: Ints, keys: Ints) -> Ints:
        """Return the noise of each cell."""
        found = np.zeros(len(counts), np.int64)
        full = np.flatnonzero(counts > 0)
        found[full] = self.grid[self.rows(counts[full]) - 1, keys[full]]
        return found

    @property
    def largest(self) -> float:
        """Return the largest noise in the grid."""
        return float(np.abs(self.grid).max())

    def chance(self, counts: Ints, noise: Ints) -> Floats:
        """Return the share of keys with this noise in the row of each count; an empty cell has no noise."""
        rows = self.grid[self.rows(np.maximum(counts, 1)) - 1]
        found = (rows == noise[:, None]).mean(axis=1)
        return np.asarray(np.where(counts > 0, found, noise == 0))


def estimate_counts(table: Perturbation, shown: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the standard error and the bounds of a 95 % interval for counts as they are shown.

    Every true count n that can be shown as c has the weight P(c − n | n), as if all were equally likely before; in the
    symmetric rows this is the law of the noise itself, and the interval covers as often as it says.
    """
    reach = int(table.largest)
    distinct, place = np.unique(shown, return_inverse=True)
    noise = np.arange(-reach, reach + 1)
    found = np.zeros((3, len(distinct)))
    for i, count in enumerate(distinct):
        true = count - noise
        weights = np.where(true >= 0, table.chance(np.maximum(true, 0), noise), 0.0)
        total = float(weights.sum())
        if not total:  # no count is shown like this: the table is another one
            found[:, i] = (np.nan, 0, np.inf)
            continue
        weights = weights / total
        likely = np.argsort(-weights, kind="stable")
        kept = likely[: int(np.searchsorted(np.cumsum(weights[likely]), 0.95 - 1e-12)) + 1]
        found[:, i] = (np.sqrt(weights @ noise.astype(float) ** 2), true[kept].min(), true[kept].max())
    error, low, high = found[:, place]
    return error, low, high


def find_smallest_shown(table: Perturbation, threshold: int) -> tuple[int, float]:
    """Return the smallest count that is ever shown, and the chance that it is."""
    reach = int(table.largest)
    noise = np.arange(-reach, reach + 1)
    for number in range(1, max(threshold, 1) + 2 * reach + 2):
        shown = number + noise >= max(threshold, 1)
        chance = float(table.chance(np.full(len(noise), number), noise)[shown].sum())
        if chance > 0:
            return number, chance
    raise DataError(
        "the perturbation table shows nothing",
        why="every count is changed to one below the threshold",
        fix="a smaller threshold, or another perturbation table",
    )


def design_table(
    largest: int,
    variance: float,
    *,
    js: int = 0,
    stay: float | Sequence[float] | None = None,
    lowered: bool = False,
    mono: bool = True,
    steps: int = 1,
    classes: Sequence[int] | None = None,
    digits: int = BOUND_DIGITS,
    ties: Ties = "below",
) -> IntervalTable:
    """Return a table of the laws of largest entropy; with ``steps`` above 1 the noise has fractions.

    ``stay`` is the chance of no noise; where it is ``lowered``, it is the start of ptable's rule (``design_lowered_law``).

    >>> design_table(3, 1).rows[3.0].values.tolist()
    [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    """
    if largest < 1 or js < 0 or variance <= 0 or steps < 1:
        raise InputError(
            "a perturbation table needs D of at least 1, V above 0 and js of at least 0",
            why="D bounds the noise, V is its variance, and counts from 1 to js never appear",
            fix="for example D = 5, V = 3, js = 2",
        )
    grid = np.arange(-largest * steps, largest * steps + 1) / steps
    rows = {0.0: NoiseRow(np.zeros(1), np.array([UNITS_PER_ONE]))}
    wanted = list(classes) if classes is not None else list(range(1, largest + js + (2 if js else 1)))
    for place, at in enumerate(wanted):
        after = at + grid
        values = grid[(after == 0) | (after > js)] if steps == 1 else grid[after >= 0]
        asked = stay[min(place, len(stay) - 1)] if isinstance(stay, Sequence) else stay
        chances = (
            design_lowered_law(values, variance, start=asked, mono=mono)
            if lowered and asked is not None
            else design_law(values, variance, stay=asked, mono=mono)
        )
        rows[float(at)] = NoiseRow(values, _interval_ends(chances))
    return IntervalTable(rows, digits, ties)


def _interval_ends(chances: Floats) -> Ints:
    """Return where intervals end, in units of 10^-8; the last ends at 1."""
    ends = np.rint(np.cumsum(chances) * UNITS_PER_ONE).astype(np.int64)
    ends[-1] = UNITS_PER_ONE
    return np.asarray(np.minimum(ends, UNITS_PER_ONE))


# Perturbation tables as files: those of ptable and tau-ARGUS (intervals), and those of the ONS (a grid).

GRID_COLUMNS = ("pcv", "ckey", "pvalue")
OLD_NAMES = {"p_ij": "p", "p_ij_ub": "p_int_ub"}  # of tau-ARGUS before 2019
ROW_KINDS = ("all", "even", "odd")


def read_table(
    path: Path | str,
    *,
    digits: int = BOUND_DIGITS,
    ties: Ties = "below",
    period: int = 250,
    kind: str = "all",
) -> IntervalTable | GridTable:
    """Read the perturbation table of a file, in either dialect; ``kind`` chooses rows of even or odd counts.

    Files of ptable and tau-ARGUS have a row for each interval (columns i, v, p_int_ub; ``;`` or ``,`` between), those of the
    ONS one for each pair of a row and a key (columns pcv, ckey, pvalue; CSV or Parquet).
    """
    path = Path(path)
    rows = _read_rows(path)
    names = set(rows[0]) if rows else set()
    if names >= set(GRID_COLUMNS):
        return _read_grid(rows, period)
    if not names >= {"i", "v", "p_int_ub"}:
        raise DataError(
            f"{path.name} is not a perturbation table",
            why="it has neither the columns i, v, p_int_ub nor the columns pcv, ckey, pvalue",
            fix="export it with pt_export of ptable, or as pcv,ckey,pvalue",
        )
    chosen = [row for row in rows if row.get("type", "all") in (kind, "all")]
    by_class: dict[float, list[tuple[float, int]]] = {}
    try:
        for row in chosen:
            end = Fraction(row["p_int_ub"]) * UNITS_PER_ONE
            by_class.setdefault(float(row["i"]), []).append((float(row["v"]), round(end)))
    except ValueError:
        raise _number_error(path) from None
    found = {
        at: NoiseRow(np.array([value for value, _ in row]), np.array([end for _, end in row]))
        for at, row in by_class.items()
    }
    return IntervalTable(found, digits, ties)


def write_intervals(
    table: IntervalTable, path: Path | str, *, separator: str = ";", kind: str = "all"
) -> None:
    """Write intervals as tau-ARGUS reads them (``;``), or as ptable's own CSV (``,``, with where intervals begin)."""
    full = separator == ","
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(
            ["i", "j", "p", "v", *(["p_int_lb"] if full else []), "p_int_ub", *(["type"] if full else [])]
        )
        for at in table.classes():
            row = table.rows[float(at)]
            starts = np.concatenate([[0], row.ends[:-1]])
            for value, start, end in zip(row.values, starts, row.ends, strict=True):
                line = [
                    _write_plain(at),
                    _write_plain(at + value),
                    _write_decimal(int(end - start)),
                    _write_plain(value),
                ]
                writer.writerow(
                    [
                        *line,
                        *([_write_decimal(int(start))] if full else []),
                        _write_decimal(int(end)),
                        *([kind] if full else []),
                    ]
                )


def write_grid(table: GridTable, path: Path | str) -> None:
    """Write a grid as the ONS packages read it."""
    rows, keys = table.grid.shape
    pl.DataFrame(
        {
            "pcv": np.repeat(np.arange(1, rows + 1), keys),
            "ckey": np.tile(np.arange(keys), rows),
            "pvalue": table.grid.ravel(),
        }
    ).write_csv(path)


def _read_rows(path: Path) -> Sequence[Mapping[str, str]]:
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(require_readable(path))
            return [dict(zip(frame.columns, map(str, row), strict=True)) for row in frame.iter_rows()]
        require_plain(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(MAX_LINE_CHARACTERS)
            file.seek(0)
            found = CsvTable(file, delimiter=";" if ";" in first else ",").rows()
            return [
                {
                    OLD_NAMES.get(str(name).strip(), str(name).strip()): str(value)
                    for name, value in row.items()
                }
                for row in found
            ]
    except FileNotFoundError:
        raise InputError(
            f"there is no perturbation table {path.name}",
            why="the file does not exist",
            fix="name an existing file, or design one with D and V",
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error, pl.exceptions.PolarsError):
        raise DataError(
            f"{path.name} cannot be read as a table",
            why="it is neither CSV in UTF-8 nor Parquet",
            fix="save it again as CSV",
        ) from None


def _read_grid(rows: Sequence[Mapping[str, str]], period: int) -> GridTable:
    try:
        numbers = np.array([[int(float(row[name])) for name in GRID_COLUMNS] for row in rows], np.int64)
    except ValueError:
        raise _number_error(None) from None
    most, keys = int(numbers[:, 0].max()), int(numbers[:, 1].max()) + 1
    grid = np.full((most, keys), np.iinfo(np.int64).min)
    inside = (numbers[:, 0] >= 1) & (numbers[:, 1] >= 0)
    grid[numbers[inside, 0] - 1, numbers[inside, 1]] = numbers[inside, 2]
    missing = int((grid == np.iinfo(np.int64).min).sum())
    if missing or len(numbers) != most * keys:
        raise DataError(
            "the perturbation table does not have each pair of pcv and ckey once",
            why=f"{missing} pairs are missing, {max(len(numbers) - most * keys, 0)} are too many",
            fix="take the whole table: every pcv from 1 with every ckey from 0",
        )
    return GridTable(grid, min(period, most))


def _number_error(path: Path | None) -> DataError:
    name = path.name if path is not None else "the perturbation table"
    return DataError(
        f"{name} has a value that is not a number",
        why="classes, noise and bounds are numbers",
        fix="write decimals with a point",
    )


def _write_decimal(units: int) -> str:
    """Return a number of units of 10^-8 as a decimal."""
    text = f"{units // UNITS_PER_ONE}.{units % UNITS_PER_ONE:0{BOUND_DIGITS}d}".rstrip("0").rstrip(".")
    return text or "0"


def _write_plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# Perturb a magnitude, such as a total of incomes: noise in proportion to its largest contributors.
#
# For a total x with the j-th largest contributor $x_j$ the noise is
# $\sum_j \delta_j\,\mathrm{sign}(v_j)(\mu_j + |v_j|)$ with $\delta_j = x_j\,m(x_j)\,\epsilon_j$ (Giessing and Tent
# 2019, after the code of the package cellKey, which was read and not run). $v_j$ is looked up in a table with
# fractions at the class $|x|/|\delta_j|$, between two classes by linear interpolation, with the key of the cell, whose
# digits are rotated by j − 1. $\mu$ is extra noise of sensitive cells, on the largest contributor alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class Flex:
    r"""The multiplier: ``small`` up to the flex point fp, then falling towards ``large``.

    $m(x) = p_l\,(1 + \frac{p_s x - p_l fp}{p_l fp}\,(\frac{2 fp}{fp + x})^q)$ for $|x| \ge fp$; with ``fp`` 0, ``large``.

    >>> Flex(fp=1000.0, small=0.2, large=0.05, q=3.0).of(np.array([10.0, 1000.0])).round(3).tolist()
    [0.2, 0.2]
    """

    fp: float = 0.0
    small: float = 0.05
    large: float = 0.05
    q: float = 1.0

    def __post_init__(self) -> None:
        if self.fp < 0 or not 0 < self.large <= self.small or self.q < 1:
            raise InputError(
                "the multiplier of a magnitude table cannot be",
                why="fp is at least 0, the share of small values is at least that of large ones, and q is at least 1",
                fix="for example fp = 1000, small = 0.2, large = 0.05, q = 3",
            )

    @property
    def most(self) -> float:
        r"""The largest multiplier: at fp, or at $fp\,(r + q)/(r (q - 1))$ with $r = p_s/p_l$; with q = 1 its limit."""
        if not self.fp:
            return self.large
        ratio = self.small / self.large
        if self.q == 1:
            return self.large * max(ratio, 1 + 2 * ratio)
        far = max((ratio + self.q) / (ratio * (self.q - 1)), 1.0)
        return self.large * float(1 + (ratio * far - 1) * (2 / (1 + far)) ** self.q)

    def of(self, values: Floats) -> Floats:
        """Return the share of each value that a unit of noise is."""
        size = np.abs(values)
        if not self.fp:
            return np.full(len(size), self.large)
        far = (self.small * size - self.large * self.fp) / (self.large * self.fp)
        falling = self.large * (1 + far * (2 * self.fp / (self.fp + size)) ** self.q)
        return np.where(size < self.fp, self.small, falling)


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnitudeNoise:
    """The noise of totals: the table with fractions, the multiplier, and the weights of the largest contributors."""

    table: IntervalTable
    multiplier: Flex = field(default_factory=Flex)
    weights: Sequence[float] = (1.0,)  # ε of the first, second, … contributor
    extra: float = 0.0  # μ of sensitive cells

    def __post_init__(self) -> None:
        if (
            not 1 <= len(self.weights) <= 6
            or not all(weight > 0 for weight in self.weights)
            or self.extra < 0
        ):
            raise InputError(
                "the weights of the largest contributors cannot be",
                why="there are one to six, each above 0, and the extra noise is at least 0",
                fix='epsilon = ["1", "0.5"], mu_c = "0"',
            )

    def require_keys(self, modulus: int) -> None:
        """Raise an error unless keys below this number have digits to rotate."""
        if modulus != self.table.modulus:
            raise InputError(
                "totals need record keys with decimals",
                why="the keys of a grid of the ONS have no digits to rotate for the second contributor",
                fix="give a ptable of intervals, of ptable or tau-ARGUS, or leave magnitudes out",
            )

    @property
    def share(self) -> float:
        """Return the largest share of the contributors that one unit of noise can be."""
        return max(self.weights) * self.multiplier.most

    @property
    def deviation(self) -> float:
        """Return the largest standard deviation of a row of the table."""
        return float(np.sqrt(max(row.variance for row in self.table.rows.values())))

    def noise(
        self, totals: Floats, contributors: Floats, keys: Ints, sensitive: NDArray[np.bool_] | None = None
    ) -> Floats:
        """Return the noise of each total; ``contributors`` has one row per total, largest first."""
        marked = np.zeros(len(totals), bool) if sensitive is None else sensitive
        found = np.zeros(len(totals))
        for j, weight in enumerate(self.weights[: contributors.shape[1]]):
            step = contributors[:, j] * self.multiplier.of(contributors[:, j]) * weight
            drawn = self._look_up_noise(
                np.abs(totals), np.abs(step), rotate_digits(keys, j, self.table.digits)
            )
            more = np.where(marked & (j == 0), self.extra, 0.0)
            found += step * np.sign(drawn) * (more + np.abs(drawn))
        return found

    def _look_up_noise(self, totals: Floats, steps: Floats, keys: Ints) -> Floats:
        classes = self.table.classes()
        place = np.divide(totals, steps, out=np.zeros(len(totals)), where=steps > 0).clip(0, classes[-1])
        upper = np.searchsorted(classes, place).clip(1, len(classes) - 1)
        below, above = classes[upper - 1], classes[upper]
        part = (place - below) / (above - below)
        low, high = self.table.values(below, keys), self.table.values(above, keys)
        return np.where(steps > 0, low * (1 - part) + high * part, 0.0)


def make_magnitude_table(
    path: Path | None, largest: int, variance: float, *, digits: int, ties: Ties
) -> IntervalTable:
    """Return the perturbation table of totals: read from a file, or designed as ptable does."""
    if path is None:
        classes = sorted({1, (1 + largest) // 2, largest})
        return design_table(largest, variance, steps=4, classes=classes, digits=digits, ties=ties)
    table = read_table(path, digits=digits, ties=ties)
    if not isinstance(table, IntervalTable):
        raise InputError(
            f"{path.name} is not a perturbation table of totals",
            why="it is a grid of the ONS, which is for counts",
            fix="give a table of intervals, of ptable or tau-ARGUS",
        )
    return table


def rotate_digits(keys: Ints, by: int, digits: int) -> Ints:
    """Return keys with their decimal digits rotated, so that each contributor has noise of its own.

    >>> rotate_digits(np.array([12345678]), 1, 8).tolist()
    [23456781]
    """
    if not by:
        return keys
    cut = 10 ** (digits - by % digits)
    return np.asarray(keys % cut * 10 ** (by % digits) + keys // cut)
