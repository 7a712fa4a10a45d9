"""Perturbation tables: which noise a cell gets, by its count and by its cell key, in both dialects of the method.

Keys are whole numbers below a modulus. In the *decimal* dialect (destatis, cellKey, tau-ARGUS) a key k stands for
k / modulus in [0, 1) and falls into an interval of the row of its count; large counts share the last row. In the
*integer* dialect (ABS, ONS) a table has one noise for each pair of a row and a key, and the rows repeat for large counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.errors import DataError, InputError
from stirred.mechanisms.cell_key.design import design_law, design_lowered_law

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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
