"""Closed forms against full enumeration of Algorithm 1 in rational arithmetic, written here on its own."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from stirred.errors import InputError
from stirred.mechanisms.swap import estimates

DERANGEMENTS = [1, 0, 1, 2, 9, 44, 265]
RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(4, 5)]


def law(n: int, p: Fraction) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every permutation with its probability: select, redraw a lone one, derange uniformly."""
    lone = n * p * (1 - p) ** (n - 1)
    for g in permutations(range(n)):
        k = sum(g[i] != i for i in range(n))
        yield g, p**k * (1 - p) ** (n - k) / (1 - lone) / DERANGEMENTS[k]


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_effective_rate(n: int, p: Fraction) -> None:
    exact = sum((weight for g, weight in law(n, p) if g[0] != 0), Fraction(0))
    assert float(estimates.effective_rate(n, p)) == pytest.approx(float(exact), rel=1e-12)


def test_effective_rate_of_the_facts() -> None:
    q = estimates.effective_rate([2, 5, 20, 10**6], Fraction(1, 20))
    assert q.round(4).tolist() == [0.0028, 0.0116, 0.05, 0.05]
    assert estimates.effective_rate([0, 1], Fraction(1, 20)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("p", RATES)
def test_mean_table_and_the_estimator_that_undoes_it(p: Fraction) -> None:
    hold, swap = [0, 0, 0, 1, 1], [0, 1, 1, 1, 2]
    mean = np.zeros((2, 3))
    for g, weight in law(5, p):
        for i in range(5):
            mean[hold[i], swap[g[i]]] += float(weight)
    table = np.array([[1, 2, 0], [0, 1, 1]])
    assert estimates.mean_table(table, p) == pytest.approx(mean, rel=1e-12)
    assert estimates.deshrink(mean, p) == pytest.approx(table, abs=1e-9)


def test_strata_are_treated_apart() -> None:
    strata = np.array([[[5, 0], [0, 5]], [[1, 0], [0, 0]]])
    both = estimates.mean_table(strata, Fraction(1, 2))
    assert both[1] == pytest.approx(strata[1])
    assert both[0] == pytest.approx(estimates.mean_table(strata[0], Fraction(1, 2)))


@pytest.mark.parametrize("p", RATES)
def test_channel_and_posterior(p: Fraction) -> None:
    swap = [0, 1, 1, 1, 2]
    channel = np.zeros((3, 3))
    for g, weight in law(5, p):
        for i in (0, 1, 4):
            channel[swap[i], swap[g[i]]] += float(weight)
    assert estimates.channel([1, 3, 1], p) == pytest.approx(channel, rel=1e-12)
    q = float(estimates.effective_rate(5, p))
    assert estimates.posterior([1, 3, 1], 0, p)[0] == pytest.approx(1 - q * (5 - 1) / (5 - 1))
    assert estimates.posterior([1, 3, 1], 1, p)[1] == pytest.approx(1 - q * (5 - 3) / (5 - 1))
    sure = estimates.posterior([1, 3, 1], 1, p, prior=[1, 0, 0])
    assert sure.tolist() == [1.0, 0.0, 0.0]


def test_a_table_without_a_trace_cannot_be_undone() -> None:
    with pytest.raises(InputError, match="de-shrunk"):
        estimates.deshrink([[1, 0], [0, 1]], Fraction(1, 2))


def test_small_strata_are_warned_about() -> None:
    weak = estimates.weak_strata([1, 2, 5, 500], Fraction(1, 20), counts=[9, 3, 2, 1])
    assert weak is not None
    assert (weak.strata, weak.records) == (5, 16)
    assert estimates.weak_strata([1, 500], Fraction(1, 20)) is None
