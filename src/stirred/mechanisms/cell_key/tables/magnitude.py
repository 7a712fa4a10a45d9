r"""Perturb a magnitude, such as a total of incomes: noise in proportion to its largest contributors.

For a total x with the j-th largest contributor $x_j$ the noise is $\sum_j \delta_j\,\mathrm{sign}(v_j)(\mu_j + |v_j|)$ with
$\delta_j = x_j\,m(x_j)\,\epsilon_j$ (Giessing and Tent 2019, after the code of the package cellKey, which was read and not
run). $v_j$ is looked up in a table with fractions at the class $|x|/|\delta_j|$, between two classes by linear
interpolation, with the key of the cell, whose digits are rotated by j − 1. $\mu$ is extra noise of sensitive cells, on
the largest contributor alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.mechanisms.cell_key.files import read_table
from stirred.mechanisms.cell_key.perturbation import IntervalTable, Ties, design_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
