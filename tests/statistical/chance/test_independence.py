"""Different names, runs and censuses share no randomness: a difference of two releases shows two noises, not one change.

False alarms: each statistic is held against 6.5 standard errors (8e-11 two-sided), about 15 of them: below 2e-9.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, Key

LIMIT = 6.5
N = 200_000
NOISE = DiscreteGaussian(25)


def released(key: Key, counts: NDArray[np.int64], census_digest: bytes, rho: str = "1") -> NDArray[np.int64]:
    """A miniature release: counts plus noise from streams bound to mechanism, parameters and census."""
    run = key.bind("miniature", f'{{"rho": "{rho}"}}', census_digest)
    return np.asarray(counts + NOISE.draw_range(run.stream("county", 1), 0, len(counts)))


def looks_independent(difference: NDArray[np.int64]) -> bool:
    """Whether the difference of two noisy tables has mean 0 and twice the noise's variance, as independent noises have."""
    n, variance = len(difference), 2 * 25.0
    mean = float(difference.mean()) / (variance / n) ** 0.5
    spread = (float(difference.var()) / variance - 1) / (2 / n) ** 0.5
    return abs(mean) < LIMIT and abs(spread) < LIMIT


def correlation(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """In standard errors."""
    return float(np.corrcoef(a, b)[0, 1]) * len(a) ** 0.5


@pytest.fixture(scope="module")
def counts() -> NDArray[np.int64]:
    return np.arange(N, dtype=np.int64) % 50


def digest(key: Key, counts: NDArray[np.int64]) -> bytes:
    return key.multiset_digest([np.arange(len(counts)), counts])


def test_one_record_more_and_the_same_key(counts: NDArray[np.int64]) -> None:
    key, other = Key.for_tests(7), counts.copy()
    other[123] += 1
    difference = released(key, counts, digest(key, counts)) - released(key, other, digest(key, other))
    assert looks_independent(difference)


def test_another_budget_and_the_same_key(counts: NDArray[np.int64]) -> None:
    key = Key.for_tests(7)
    census = digest(key, counts)
    assert looks_independent(released(key, counts, census) - released(key, counts, census, rho="2"))


def test_the_reused_stream_is_caught(counts: NDArray[np.int64]) -> None:
    # the mutant forgets the census: the noise cancels and the one changed record stands alone in the difference
    key, other = Key.for_tests(7), counts.copy()
    other[123] += 1
    difference = released(key, counts, b"") - released(key, other, b"")
    assert not looks_independent(difference)
    assert np.flatnonzero(difference).tolist() == [123]


def test_the_same_census_in_another_order_is_the_same_run(counts: NDArray[np.int64]) -> None:
    key, order = Key.for_tests(7), np.arange(N)[::-1]
    assert digest(key, counts) == key.multiset_digest([np.arange(N)[order], counts[order]])


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a",), ("b",)), (("county", 1), ("county", 2)), (("county", 1), ("county", 256)), ((1, 23), (12, 3))],
)
def test_streams_with_other_names_are_uncorrelated(
    one: tuple[str | int, ...], other: tuple[str | int, ...]
) -> None:
    key = Key.for_tests(8)
    a, b = NOISE.draw(key.stream(*one), N), NOISE.draw(key.stream(*other), N)
    assert abs(correlation(a, b)) < LIMIT
    assert abs(correlation(a[1:], b[:-1])) < LIMIT


def test_neighbouring_cells_are_uncorrelated() -> None:
    a = NOISE.draw(Key.for_tests(8).stream("row"), N)
    for lag in (1, 2, 3, 4, 16):
        assert abs(correlation(a[lag:], a[:-lag])) < LIMIT


def test_extensions_are_uncorrelated_with_the_first_words() -> None:
    # with 8-bit words every draw near a threshold hangs on its extension; neighbours must not move together
    short = DiscreteGaussian(25, word_bits=8, extension_bits=8)
    a = short.draw(Key.for_tests(8).stream("row"), 50_000)
    assert abs(correlation(a[1:], a[:-1])) < LIMIT


def test_tiny_streams_are_uniform_and_distinct() -> None:
    blocks = Key.for_tests(8).blocks("stratum", np.arange(500_000, dtype=np.uint64))
    assert len(np.unique(blocks[:, 0])) == 500_000  # two equal words: chance below 1e-8
    bits = np.unpackbits(blocks.view(np.uint8)).mean()
    assert abs(bits - 0.5) / (0.25 / (500_000 * 128)) ** 0.5 < LIMIT
