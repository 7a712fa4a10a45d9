"""Draws look like the law they claim: chi-square over all outcomes, words cut short so that ties are common.

False alarms: every p-value is held against 1e-9 and the file makes about 80 of them, so over fresh keys a correct sampler
fails with probability about 8e-8; the chi-square approximation, with at least 8 expected per class, may cost a factor
of ten, which leaves it below 1e-6. With the fixed keys used here the outcome does not change from run to run.
The sharper tests of exactness, without chance, are in tests/unit/chance/test_exactness.py.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from stirred.chance import (
    DiscreteGaussian,
    DiscreteLaplace,
    Key,
    Stream,
    bernoulli,
    binomial,
    derangement,
    integers,
    permutation,
)
from stirred.chance.inversion import UNDECIDED, CoarseLaw, FallingLaw, TabledLaw

ALARM = 1e-9
KEY = Key.for_tests(2020)
DERANGEMENTS = {2: 1, 3: 2, 4: 9, 5: 44, 6: 265}


def chi_square(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """The p-value; cells expected fewer than 8 times are pooled."""
    rare = expected < 8
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 8:
        observed, wanted = observed[:-1], wanted[:-1]
        wanted = wanted * observed.sum() / wanted.sum()
    return float(stats.chisquare(observed, wanted).pvalue)


def p_of_orders(
    draw: Callable[[Stream], NDArray[np.int64]], outcomes: list[tuple[int, ...]], name: str
) -> float:
    """The p-value of "all outcomes equally likely"; an impossible outcome gives 0."""
    number = {outcome: i for i, outcome in enumerate(outcomes)}
    stream = KEY.stream("orders", name, len(outcomes))
    draws = 60 * len(outcomes) + 400
    counts = np.zeros(len(outcomes), dtype=np.int64)
    for _ in range(draws):
        place = number.get(tuple(draw(stream).tolist()))
        if place is None:
            return 0.0
        counts[place] += 1
    if len(outcomes) == 1:
        return 1.0
    return chi_square(counts, np.full(len(outcomes), draws / len(outcomes)))


def deranged(n: int) -> list[tuple[int, ...]]:
    return [order for order in permutations(range(n)) if all(i != j for i, j in enumerate(order))]


@pytest.mark.parametrize("n", DERANGEMENTS)
@pytest.mark.parametrize("bits", [64, 4])
def test_derangements_are_uniform(n: int, bits: int) -> None:
    outcomes = deranged(n)
    assert len(outcomes) == DERANGEMENTS[n]
    p = p_of_orders(
        lambda s: derangement(s, n, word_bits=bits, extension_bits=8), outcomes, f"derangement {bits}"
    )
    assert p > ALARM


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("bits", [64, 4])
def test_permutations_are_uniform(n: int, bits: int) -> None:
    orders = list(permutations(range(n)))
    p = p_of_orders(
        lambda s: permutation(s, n, word_bits=bits, extension_bits=8), orders, f"permutation {bits}"
    )
    assert p > ALARM


def biased_shuffle(stream: Stream, n: int) -> NDArray[np.int64]:
    """The mutant: every place may swap with every place, n^n equally likely ways for n! orders."""
    order = np.arange(n)
    for i, j in enumerate(integers(stream, n, n).tolist()):
        order[i], order[j] = order[j], order[i]
    return order


def sattolo(stream: Stream, n: int) -> NDArray[np.int64]:
    """The mutant: one cycle only, which deranges but never makes two cycles."""
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = int(integers(stream, i, 1)[0])
        order[i], order[j] = order[j], order[i]
    return order


def shifted(stream: Stream, n: int) -> NDArray[np.int64]:
    """The mutant: a biased shuffle that is repeated until nothing is in its place."""
    while True:
        order = biased_shuffle(stream, n)
        if (order != np.arange(n)).all():
            return order


def test_biased_shuffles_are_caught() -> None:
    assert p_of_orders(lambda s: biased_shuffle(s, 4), list(permutations(range(4))), "biased") < ALARM
    assert p_of_orders(lambda s: sattolo(s, 4), deranged(4), "sattolo") < ALARM
    assert p_of_orders(lambda s: shifted(s, 5), deranged(5), "shifted") < ALARM


def gaussian_pmf(sigma_squared: float, reach: int) -> NDArray[np.float64]:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma_squared))
    return np.asarray(weights / weights.sum())


def laplace_pmf(scale: float, reach: int) -> NDArray[np.float64]:
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(weights / weights.sum())


def p_of_law(drawn: NDArray[np.int64], pmf: NDArray[np.float64]) -> float:
    reach = len(pmf) // 2
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=len(pmf))
    return chi_square(counts, pmf * len(drawn))


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("sigma_squared", ["1/4", "9/4", "100", "30000/7"])
def test_discrete_gaussian(sigma_squared: str, bits: int) -> None:
    noise = DiscreteGaussian(sigma_squared, word_bits=bits, extension_bits=8 if bits == 8 else 128)
    n = 40_000 if bits == 8 else 300_000
    variance = float(Fraction(sigma_squared))
    drawn = noise.draw(KEY.stream("gaussian", sigma_squared, bits), n)
    assert p_of_law(drawn, gaussian_pmf(variance, int(12 * variance**0.5) + 3)) > ALARM


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("scale", ["1/2", "7/2", "40"])
def test_discrete_laplace(scale: str, bits: int) -> None:
    noise = DiscreteLaplace(scale, word_bits=bits, extension_bits=8)
    drawn = noise.draw(KEY.stream("laplace", scale, bits), 40_000 if bits == 8 else 300_000)
    assert p_of_law(drawn, laplace_pmf(float(Fraction(scale)), int(45 * Fraction(scale)) + 5)) > ALARM


def test_the_tie_path_is_really_taken() -> None:
    # 8-bit words at σ = 10: about 70 thresholds in 256 words, so ties are a fifth of all draws or more
    for noise in (DiscreteGaussian(100, word_bits=8), DiscreteLaplace(8, word_bits=8)):
        words, out = KEY.stream("ties").words32(100_000), np.empty(100_000, dtype=np.int64)
        share = noise._decide(words, out) / len(out)
        assert share == (out == UNDECIDED).mean()
        assert 0.15 < share < 0.4


@pytest.mark.parametrize("stride", [3, 10])
@pytest.mark.parametrize("bits", [8, 32])
def test_coarse_tables_give_the_same_laws(stride: int, bits: int) -> None:
    # σ = 25 with strides that make the coin fall often: rejection, signs and further attempts are all exercised
    n = 30_000
    gaussian = CoarseLaw(
        FallingLaw(Fraction(1, 1250), Fraction(0), mirrored=True), stride=stride, word_bits=bits
    )
    assert p_of_law(gaussian.draw(KEY.stream("coarse", stride, bits), n), gaussian_pmf(625, 300)) > ALARM
    laplace = CoarseLaw(
        FallingLaw(Fraction(0), Fraction(1, 12), mirrored=True), stride=stride, word_bits=bits
    )
    assert p_of_law(laplace.draw(KEY.stream("coarse l", stride, bits), n), laplace_pmf(12, 540)) > ALARM


@pytest.mark.parametrize("sigma", [5_000, 1_000_000, 10**15])
def test_wide_gaussians(sigma: int) -> None:
    # at this width the discrete law is the rounded normal to one part in σ; classes of equal probability
    drawn = DiscreteGaussian(sigma**2).draw(KEY.stream("wide", sigma), 400_000)
    share = stats.norm.cdf((drawn + 0.5) / sigma)
    counts = np.bincount((share * 200).astype(np.int64).clip(0, 199), minlength=200)
    assert chi_square(counts, np.full(200, len(drawn) / 200)) > ALARM
    # and every last digit is equally likely
    digits = np.bincount(np.abs(drawn) % 10, minlength=10)
    assert chi_square(digits, np.full(10, len(drawn) / 10)) > ALARM


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 20), Fraction(999, 1000), Fraction(1, 2**40)])
def test_coins(p: Fraction, bits: int) -> None:
    n = 200_000
    yes = int(bernoulli(KEY.stream("coin", str(p), bits), p, n, word_bits=bits, extension_bits=8).sum())
    assert float(stats.binomtest(yes, n, float(p)).pvalue) > ALARM


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("bound", [2, 6, 52, 365])
def test_whole_numbers(bound: int, bits: int) -> None:
    n = 40_000
    drawn = integers(KEY.stream("integers", bound, bits), bound, n, word_bits=bits, extension_bits=8)
    assert chi_square(np.bincount(drawn, minlength=bound), np.full(bound, n / bound)) > ALARM


@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize(("trials", "p"), [(1, Fraction(1, 2)), (20, Fraction(1, 3)), (5000, Fraction(1, 7))])
def test_binomial_counts(trials: int, p: Fraction, bits: int) -> None:
    n = 30_000
    drawn = binomial(KEY.stream("binomial", trials, bits), trials, p, n, word_bits=bits, extension_bits=8)
    pmf = stats.binom.pmf(np.arange(trials + 1), trials, float(p))
    assert chi_square(np.bincount(drawn, minlength=trials + 1), pmf * n) > ALARM


def test_a_threshold_that_is_off_is_caught() -> None:
    class Mutant(TabledLaw):
        """Ties are decided upwards without looking, as a sampler without extension would."""

        def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
            value = int(words[0]) >> (32 - self.word_bits)
            return int(np.searchsorted(self.guide.yes, value, side="right")) + self.first

    law = FallingLaw(Fraction(2, 9), Fraction(0), mirrored=True)
    pmf = gaussian_pmf(2.25, 20)
    right = TabledLaw(law, word_bits=8).draw(KEY.stream("threshold"), 100_000)
    wrong = Mutant(law, word_bits=8).draw(KEY.stream("threshold"), 100_000)
    assert p_of_law(right, pmf) > ALARM
    assert p_of_law(wrong, pmf) < ALARM
