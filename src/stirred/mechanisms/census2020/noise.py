r"""The noise of a published count: discrete Gaussian for zCDP, two-sided geometric for pure DP, with its exact variance.

A record touches at most s groups, each by 1. With zCDP a budget ρ² needs $\sigma^2 = s / 2\rho^2$ on every count, with
pure DP a budget ε needs a scale of $s / \varepsilon$ (proof.md, Lemma 2).
"""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, isqrt

import numpy as np
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, DiscreteLaplace, Key
from stirred.chance.inversion import FallingLaw
from stirred.chance.keys import Part
from stirred.chance.noise import draw_exceeding
from stirred.errors import BudgetError
from stirred.mechanisms.census2020.factors import Definition
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import gaussian_change, geometric_change
from stirred.spec import Budget, Multiplicative, NormalizedRenyi

Ints = NDArray[np.int64]
NEAR_CHANCE = 1 - Fraction(1, 1 << 40)
MAX_GAUSSIAN_DEVIATION, MAX_GEOMETRIC_SCALE = (
    4096,
    1024,
)  # deviation and scale up to which the samplers have tables
MAX_DRAWS_AT_ONCE = 1 << 22
MAX_COUNTS_AUDITED = 2000  # counts whose noise an audit sees


def choose_premetric(definition: Definition) -> NormalizedRenyi | Multiplicative:
    """Return D_nor (zCDP) for Gaussian noise, D_mult (pure DP) for geometric noise."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def make_budget(amount: Fraction | None, definition: Definition) -> Budget:
    """Return a budget of the settings in its output premetric: ρ for ρ², ε as it is; None is no noise."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


@dataclass(frozen=True)
class CellNoise:
    """Noise on each of many counts; a budget of None is infinite, and adds none.

    >>> CellNoise("zcdp", Fraction(1), squared=Fraction(9)).variance
    Fraction(9, 2)
    """

    definition: Definition
    budget: Fraction | None  # ρ² or ε
    squared: Fraction  # the squared L2 sensitivity for zCDP, the square of the L1 sensitivity for pure DP

    @classmethod
    def of(cls, definition: Definition, budget: Fraction | None, touched: int) -> "CellNoise":
        """Return the noise of counts of which a record touches at most so many, each by 1."""
        most = Fraction(max(touched, 1))
        return cls(definition, budget, most if definition == "zcdp" else most**2)

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget <= 0:
            raise BudgetError(
                "a count is measured with a budget above 0",
                why="with a budget of 0 nothing can be measured",
                fix="leave this table out, or give it a budget",
            )

    @property
    def variance(self) -> Fraction | float:
        """Return the variance: σ² of the Gaussian, or 2q/(1 − q)² with q = e^(−1/scale)."""
        if self.budget is None:
            return Fraction(0)
        if self.definition == "zcdp":
            return self.squared / (2 * self.budget)
        q = exp(-1 / self.scale)
        return 2 * q / (1 - q) ** 2

    @property
    def scale(self) -> float:
        """Return the scale of the geometric law as a float, used for the published variance only."""
        return float(_square_root(self.squared) / (self.budget or 1))

    @property
    def change(self) -> float:
        """Return the chance that the noise is not 0."""
        if self.budget is None:
            return 0.0
        if self.definition == "zcdp":
            return gaussian_change(self.squared / (2 * self.budget))
        return geometric_change(self.scale)

    @cached_property
    def law(self) -> FallingLaw:
        """Return the law of the noise."""
        if self.budget is None:
            raise AssertionError("without noise there is no law to draw from")
        if self.definition == "zcdp":
            return FallingLaw(self.budget / self.squared, Fraction(0), mirrored=True)
        return FallingLaw(Fraction(0), self.budget / _square_root(self.squared), mirrored=True)

    def at(self, key: Key, label: tuple[Part, ...], numbers: NDArray[np.uint64]) -> Ints:
        """Draw the noise of the counts with these numbers; each count has its own draw."""
        if self.budget is None:
            return np.zeros(len(numbers), np.int64)
        return self._sampler.at(key, label, numbers)

    def describe_noise(self, name: str, noise: Ints, loss: Fraction) -> MeasuredNoise:
        """Return noise that was drawn from this law, with its loss in the account, for an audit."""
        paid = Fraction(self.budget or 1)
        if self.definition == "zcdp":
            law = self.squared / (2 * paid)
            return MeasuredNoise(name=name, noise=noise, kind="gaussian", parameter=law, loss=loss)
        scale = _square_root(self.squared) / paid
        return MeasuredNoise(name=name, noise=noise, kind="geometric", parameter=scale, loss=loss)

    def sample_noise(self, name: str, key: Key, loss: Fraction) -> MeasuredNoise:
        """Return the noise of many counts, drawn as a release draws it, for an audit."""
        return self.describe_noise(
            name, self.at(key, ("audit", name), np.arange(MAX_COUNTS_AUDITED, dtype=np.uint64)), loss
        )

    def above(self, key: Key, label: tuple[Part, ...], n: int, bound: int) -> tuple[Ints, Ints]:
        """Return which of n empty counts have noise above a bound, and that noise; draw no others."""
        if self.budget is None:
            keep = n if bound < 0 else 0
            return np.arange(keep), np.zeros(keep, np.int64)
        if self.is_wide:
            return self._draw_all_above(key, label, n, bound)
        # far out the chance has thousands of leading zeros, so what lies above a nearer bound is drawn and then cut
        near = min(bound, self.cut(NEAR_CHANCE))
        places, values = draw_exceeding(key, label, n, self.law, near)
        return places[values > bound], values[values > bound]

    @property
    def is_wide(self) -> bool:
        """Return whether a table of the law would be too large, so that draws cost more."""
        if self.definition == "zcdp":
            return self.variance > MAX_GAUSSIAN_DEVIATION**2
        return self.scale > MAX_GEOMETRIC_SCALE

    def _draw_all_above(self, key: Key, label: tuple[Part, ...], n: int, bound: int) -> tuple[Ints, Ints]:
        """Return the same by drawing all n, some at a time."""
        places, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start in range(0, n, MAX_DRAWS_AT_ONCE):
            numbers = np.arange(start, min(start + MAX_DRAWS_AT_ONCE, n), dtype=np.uint64)
            drawn = self.at(key, label, numbers)
            places.append(numbers[drawn > bound].astype(np.int64))
            values.append(drawn[drawn > bound])
        return np.concatenate(places), np.concatenate(values)

    def cut(self, chance: Fraction) -> int:
        """Return the smallest k with P(noise ≤ k) ≥ ``chance``.

        >>> CellNoise("zcdp", Fraction("0.1431"), squared=Fraction(9)).cut(Fraction("0.9999"))
        21
        """
        return 0 if self.budget is None else _find_cut(self.law, chance)

    @property
    def _sampler(self) -> DiscreteGaussian | DiscreteLaplace:
        if self.definition == "zcdp":
            return _gaussian(self.squared / (2 * Fraction(self.budget or 1)))
        return _laplace(_square_root(self.squared) / Fraction(self.budget or 1))


# lines of a product share few laws, and their tables are made once
_gaussian = lru_cache(maxsize=64)(DiscreteGaussian)
_laplace = lru_cache(maxsize=64)(DiscreteLaplace)


@lru_cache(maxsize=256)
def _find_cut(law: FallingLaw, chance: Fraction) -> int:
    bits = 64
    while True:
        steps = law.steps(bits)
        least = -(-(chance.numerator << bits) // chance.denominator)  # low ≥ this iff low / 2^bits ≥ chance
        sure, maybe = bisect_left(steps.low, least), bisect_left(steps.high, least)
        if sure == maybe < len(steps.low):
            return steps.first + sure
        bits *= 2


def _square_root(squared: Fraction) -> Fraction:
    """Return the square root of the square of a whole number."""
    root = Fraction(isqrt(int(squared)))
    if root * root != squared:
        raise AssertionError("an L1 sensitivity is a whole number")
    return root
