"""The sampler's distribution over all permutations of five records against the exact one, and mutants it must catch."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from stirred.chance import Key
from stirred.mechanisms.swap import moves
from stirred.mechanisms.swap.moves import draw_moves

STRATA = 300_000
N = 5
DERANGEMENTS = [1, 0, 1, 2, 9, 44]
FALSE_ALARM = 1e-7  # chance that one of these checks fails on a right sampler


def expected(p: Fraction) -> np.ndarray:
    lone = N * p * (1 - p) ** (N - 1)
    moved = [sum(g[i] != i for i in range(N)) for g in permutations(range(N))]
    exact = [p**k * (1 - p) ** (N - k) / (1 - lone) / DERANGEMENTS[k] for k in moved]
    assert sum(exact) == 1
    return np.array([float(x) for x in exact])


def sampled(p: Fraction, seed: int) -> np.ndarray:
    """How often each permutation was drawn in many independent strata of five records."""
    ids = np.random.default_rng(seed).permutation(STRATA * N).astype(np.uint64)
    strata = np.repeat(np.arange(STRATA, dtype=np.uint32), N)
    moves = draw_moves(Key.for_tests(seed), ids=ids, strata=strata, rate=p)
    images = np.tile(np.arange(N), STRATA)
    images[moves.receivers] = moves.givers % N
    codes = images.reshape(STRATA, N) @ (N ** np.arange(N))
    index = {sum(g[i] * N**i for i in range(N)): j for j, g in enumerate(permutations(range(N)))}
    table = np.zeros(N**N, np.int64)
    for code, place in index.items():
        table[code] = place
    return np.bincount(table[codes], minlength=len(index))


def p_value(p: Fraction, seed: int = 11) -> float:
    probabilities = expected(p)
    counts = sampled(p, seed)
    # cells that are too rare for the approximation are pooled
    rare = probabilities * STRATA < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(probabilities[~rare], probabilities[rare].sum()) * STRATA
    keep = wanted > 0
    assert observed[~keep].sum() == 0
    return float(stats.chisquare(observed[keep], wanted[keep]).pvalue)


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)])
def test_the_sampler_follows_the_exact_law(p: Fraction) -> None:
    assert p_value(p) > FALSE_ALARM


def _permute_instead(
    words: object, ids: np.ndarray, starts: np.ndarray, rows: np.ndarray, _: object
) -> np.ndarray:
    rng = np.random.default_rng(4)
    images = np.empty(rows.size, np.uint32)
    for start, stop in pairwise(starts):
        images[start:stop] = rng.permutation(stop - start)
    return images


def _drop_lone(original: Callable[..., object]) -> Callable[..., object]:
    def select(selection: object, sizes: np.ndarray, engine: object) -> object:
        # sizes of one make every lone selection look like a stratum of one: dropped, never redrawn
        return original(selection, np.ones_like(sizes), engine)

    return select


def test_mutant_permutation_instead_of_derangement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "derange", _permute_instead)
    assert p_value(Fraction(1, 2)) < FALSE_ALARM


def test_mutant_reselect_rule_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "select", _drop_lone(moves.select))
    assert p_value(Fraction(1, 2)) < FALSE_ALARM


def test_mutant_rate_off_by_three_in_a_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    original = moves.threshold
    monkeypatch.setattr(moves, "threshold", lambda rate: original(rate * Fraction(97, 100)))
    assert p_value(Fraction(1, 2)) < FALSE_ALARM
