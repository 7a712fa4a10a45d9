"""Moments of a swapped cell against full enumeration of Algorithm 1's permutations."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from stirred.mechanisms.swap.estimates import (
    StratumCells,
    binomial_pmf,
    cell_shrinkage,
    estimate,
    pair_law,
    variance,
)


def exact_law(n: int, p: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Probability of every permutation of n records, by the definition of Algorithm 1."""
    derangements = [1, 0]
    for m in range(2, n + 1):
        derangements.append(m * derangements[-1] + (-1) ** m)
    weights = {}
    for g in permutations(range(n)):
        k = sum(g[i] != i for i in range(n))
        weights[g] = Fraction(0) if k == 1 else p**k * (1 - p) ** (n - k) / derangements[k]
    total = sum(weights.values())
    return {g: w / total for g, w in weights.items()}


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize(
    ("inside", "weights"),
    [
        ((1, 0), (1, 1)),
        ((1, 0, 0), (1, 1, 0)),
        ((1, 1, 0, 0), (1, 0, 1, 1)),
        ((1, 0, 1, 0, 0), (2, 1, 0, 3, 1)),
        ((1, 1, 0, 0, 1, 0), (1, 2, 2, 0, 1, 5)),
    ],
)
def test_moments_equal_enumeration(p: Fraction, inside: tuple[int, ...], weights: tuple[int, ...]) -> None:
    n = len(inside)
    first = second = Fraction(0)
    for g, probability in exact_law(n, p).items():
        shown = sum(w for w, j in zip(weights, g, strict=True) if inside[j])
        first += probability * shown
        second += probability * shown**2
    u, w = np.array(inside, dtype=float), np.array(weights, dtype=float)
    arguments = [np.array([x]) for x in (u.sum(), (w * u).sum(), w.sum(), (w**2 * u).sum(), (w**2).sum())]
    got = variance(np.array([n]), *arguments, p)[0]
    assert got == pytest.approx(float(second - first**2), abs=1e-12)
    lam = cell_shrinkage(np.array([n]), p)[0]
    mean = (1 - lam) * (w * u).sum() + lam * w.sum() * u.sum() / n
    assert mean == pytest.approx(float(first), abs=1e-12)


def test_pair_law_sums_to_one() -> None:
    for n in (2, 3, 4, 7, 50, 10_000):
        for p in (Fraction(1, 100), Fraction(1, 2), Fraction(99, 100)):
            item = pair_law(n, p)
            total = item.both_stay + item.exchange
            total += 2 * (n - 2) * (item.stay_and_go + item.follow) + (n - 2) * (n - 3) * item.apart
            assert total == pytest.approx(1, abs=1e-9)


def test_estimate_is_unbiased_over_all_outcomes() -> None:
    p, inside, n = Fraction(1, 3), (1, 1, 0, 0, 0), 5
    held = (1, 1, 1, 0, 0)
    mean = Fraction(0)
    for g, probability in exact_law(n, p).items():
        shown = float(sum(h for h, j in zip(held, g, strict=True) if inside[j]))
        cells = StratumCells(
            n=np.array([n]),
            places=np.array([2.0]),
            shown=np.array([shown]),
            weight=np.array([3.0]),
            shown_squares=np.array([shown]),
            squares=np.array([3.0]),
        )
        mean += probability * Fraction(float(estimate(cells, p)[0][0]))
    assert float(mean) == pytest.approx(2.0, abs=1e-9)


def test_a_cell_the_swap_erased_has_no_finite_interval() -> None:
    one = np.ones(1)
    cells = StratumCells(n=np.array([2]), places=one, shown=one, weight=one, shown_squares=one, squares=one)
    assert np.isinf(estimate(cells, Fraction(1, 2))[1][0])


@pytest.mark.parametrize(("n", "p"), [(2, 0.5), (11, 0.05), (400, 0.9), (264_331, 0.01)])
def test_binomial_chances_are_those_of_scipy_to_the_bit(n: int, p: float) -> None:
    k = np.arange(max(0, int(n * p) - 300), min(n, int(n * p) + 300) + 1, dtype=np.float64)
    assert np.array_equal(binomial_pmf(k, n, p), stats.binom.pmf(k, n, p))
