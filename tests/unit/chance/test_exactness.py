"""The law is exact: no statistics, the whole tree of bits is walked and weighed.

A sampler is a function of an endless string of bits. All prefixes are walked; wherever the sampler has decided, the
prefix must lie between F(k - 1) and F(k), and what stays undecided must be small.
The probabilities come from mpmath or from exact fractions, never from the code under test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, permutations, product
from math import comb
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, Key
from stirred.chance.inversion import (
    NUMPY_MAX_DRAWS,
    UNDECIDED,
    BinomialLaw,
    CoarseLaw,
    EnclosedSteps,
    FallingLaw,
    Law,
    TabledLaw,
    enclose_exp,
    invert_words,
    is_below_exp,
    search_numpy,
)
from stirred.chance.noise import ExceedanceLaw, TailLaw
from stirred.chance.streams import EXTENSION_BITS, Uniform
from stirred.chance.uniform import _scale_words, _shuffle, draw_floors, settle, settle_floor

CHUNK = 4
ROUNDING = Fraction(1, 10**45)  # the oracle's numbers have 50 digits


class OutOfBitsError(Exception):
    """The prefix is used up."""


class Found(NamedTuple):
    """What the walk saw of one outcome: its mass, and the smallest and largest U that led to it."""

    mass: Fraction
    low: Fraction
    high: Fraction


def walked(decide: Callable[[Uniform], int], first: int, depth: int) -> tuple[dict[int, Found], Fraction]:
    """All bit strings: a first word of ``first`` bits, then chunks of 4, up to ``depth``; and the mass left open."""
    found: dict[int, Found] = {}
    open_mass = Fraction(0)
    pending: list[tuple[int, tuple[int, ...]]] = [(word, ()) for word in range(1 << first)]
    while pending:
        word, chunks = pending.pop()

        def more(level: int, chunks: tuple[int, ...] = chunks) -> int:
            if level >= len(chunks):
                raise OutOfBitsError
            return chunks[level] << (EXTENSION_BITS - CHUNK)

        weight = Fraction(1, 1 << (first + CHUNK * len(chunks)))
        start = Fraction(word, 1 << first)
        for i, chunk in enumerate(chunks):
            start += Fraction(chunk, 1 << (first + CHUNK * (i + 1)))
        try:
            k = decide(Uniform(more, value=word, bits=first, chunk=CHUNK))
        except OutOfBitsError:
            if len(chunks) < depth:
                pending += [(word, (*chunks, chunk)) for chunk in range(1 << CHUNK)]
            else:
                open_mass += weight
            continue
        old = found.get(k, Found(Fraction(0), start, start))
        found[k] = Found(old.mass + weight, min(old.low, start), max(old.high, start + weight))
    return found, open_mass


@cache
def falling_cdf(square: Fraction, linear: Fraction) -> dict[int, Fraction]:
    """F(k) of weights exp(-square k² - linear |k|), summed by mpmath at 400 bits."""
    with mpmath.workprec(400):
        a, b = (mpmath.mpf(f.numerator) / f.denominator for f in (square, linear))
        reach = next(k for k in range(1, 10**6) if float(square) * k * k + float(linear) * k > 130)
        weights = [mpmath.exp(-a * k * k - b * abs(k)) for k in range(-reach, reach + 1)]
        total, running = mpmath.fsum(weights), mpmath.mpf(0)
        values = {}
        for k, weight in zip(range(-reach, reach + 1), weights, strict=True):
            running += weight
            values[k] = Fraction(mpmath.nstr(running / total, 60))
        return values


@cache
def binomial_cdf(trials: int, p: Fraction) -> dict[int, Fraction]:
    """F(k) by exact fractions."""
    pmf = [comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    return {-1: Fraction(0), **dict(enumerate(accumulate(pmf)))}


def tail_cdf(cdf: dict[int, Fraction], above: int) -> dict[int, Fraction]:
    """F(k) given that the value lies above a bound."""
    rest = 1 - cdf[above]
    return {k: max((value - cdf[above]) / rest, Fraction(0)) for k, value in cdf.items() if k >= above}


NARROW = FallingLaw(Fraction(3, 14), Fraction(0), mirrored=True)
NARROW_CDF = falling_cdf(Fraction(3, 14), Fraction(0))

LAWS: dict[str, tuple[Law, dict[int, Fraction]]] = {
    "gaussian 1/4": (
        FallingLaw(Fraction(2), Fraction(0), mirrored=True),
        falling_cdf(Fraction(2), Fraction(0)),
    ),
    "gaussian 7/3": (
        FallingLaw(Fraction(3, 14), Fraction(0), mirrored=True),
        falling_cdf(Fraction(3, 14), Fraction(0)),
    ),
    "gaussian 40": (
        FallingLaw(Fraction(1, 80), Fraction(0), mirrored=True),
        falling_cdf(Fraction(1, 80), Fraction(0)),
    ),
    "laplace 3/2": (
        FallingLaw(Fraction(0), Fraction(2, 3), mirrored=True),
        falling_cdf(Fraction(0), Fraction(2, 3)),
    ),
    "binomial 1, 1/2": (BinomialLaw(1, Fraction(1, 2)), binomial_cdf(1, Fraction(1, 2))),
    "binomial 9, 1/3": (BinomialLaw(9, Fraction(1, 3)), binomial_cdf(9, Fraction(1, 3))),
    "binomial 30, 19/20": (BinomialLaw(30, Fraction(19, 20)), binomial_cdf(30, Fraction(19, 20))),
    "tail from -1": (TailLaw(NARROW, -1), tail_cdf(NARROW_CDF, -1)),
    "tail beyond 4": (TailLaw(NARROW, 4), tail_cdf(NARROW_CDF, 4)),
    "exceeding 0 of 7": (ExceedanceLaw(7, NARROW, 0), binomial_cdf(7, 1 - NARROW_CDF[0])),
    "exceeding 3 of 40": (ExceedanceLaw(40, NARROW, 3), binomial_cdf(40, 1 - NARROW_CDF[3])),
}


def walk_table(law: Law, cdf: dict[int, Fraction]) -> None:
    # precision 12 makes the walk pass from the first enclosure of F to the second
    table = TabledLaw(law, word_bits=6, extension_bits=CHUNK, precision=12)
    found, still_open = walked(table.settle, 6, depth=3)
    assert still_open < Fraction(1, 50)
    for k, outcome in found.items():
        assert cdf[k - 1] - ROUNDING <= outcome.low, k
        assert outcome.high <= cdf[k] + ROUNDING, k


def sweep_kernel(law: Law, cdf: dict[int, Fraction], bits: int) -> None:
    """Every first word: what is decided is right, and only words that hold a threshold are left open."""
    table = TabledLaw(law, word_bits=bits)
    words = (np.arange(1 << bits, dtype=np.uint64) << np.uint64(32 - bits)).astype(np.uint32)
    out = np.empty(len(words), dtype=np.int64)
    undecided = table._decide(words, out)
    assert undecided == int((out == UNDECIDED).sum())
    for k in np.unique(out[out != UNDECIDED]).tolist():
        mine = np.flatnonzero(out == k)
        assert cdf[k - 1] - ROUNDING <= Fraction(int(mine[0]), 1 << bits), k
        assert Fraction(int(mine[-1]) + 1, 1 << bits) <= cdf[k] + ROUNDING, k
    holding = {int(value * (1 << bits)) for value in cdf.values()} | {0, (1 << bits) - 1}
    holding |= {word - 1 for word in holding}  # a threshold exactly between two words may leave both open
    assert set(np.flatnonzero(out == UNDECIDED).tolist()) <= holding


@pytest.mark.parametrize("name", LAWS)
def test_settling_weighs_every_outcome_right(name: str) -> None:
    walk_table(*LAWS[name])


@pytest.mark.parametrize("bits", [8, 11, 16])
@pytest.mark.parametrize("name", LAWS)
def test_the_kernel_decides_every_first_word_right(bits: int, name: str) -> None:
    sweep_kernel(*LAWS[name], bits)


@pytest.mark.parametrize("name", [*LAWS, "gaussian 1000²", "gaussian 4000²"])
def test_the_kernel_decides_full_words_right(name: str) -> None:
    # 2^32 words are too many: those around every threshold and every edge of a bucket, and random ones
    if name in LAWS:
        law, cdf = LAWS[name]
        values = [cdf[k] for k in sorted(cdf)]
        first = min(cdf)
    else:
        variance = Fraction(int(name.split()[1].rstrip("²")) ** 2)
        law = FallingLaw(1 / (2 * variance), Fraction(0), mirrored=True)
        enclosed = law.steps(
            160
        )  # wider than what the kernel was built from, and itself tested against mpmath
        values, first = [Fraction(t, 1 << 160) for t in enclosed.low], enclosed.first
    table = TabledLaw(law)
    size = 1 << 32
    near = np.array([int(value * size) for value in values])
    edges = np.arange(len(table.guide.entries) + 1) << int(table.guide.shift)
    after = np.concatenate([np.arange(-3, 4), [2**8 - 1, 2**8, 300, 1000]])
    random = np.random.default_rng(3).integers(0, size, 50_000)  # inputs of a test, not noise
    words = np.unique(
        np.concatenate([(near[:, None] + after).ravel(), (edges[:, None] + [-1, 0, 1]).ravel(), random])
    )
    words = words[(words >= 0) & (words < size)]
    out = np.empty(len(words), dtype=np.int64)
    table._decide(words.astype(np.uint32), out)
    decided = out != UNDECIDED
    # U in [w, w + 1) / 2^32 lies between F(k - 1) and F(k) exactly when no threshold lies inside and k is the rank
    rank_low = np.searchsorted(near, words, side="left")  # thresholds whose word is below w
    rank_high = np.searchsorted(near, words, side="right")  # those whose word is at most w
    assert np.array_equal(out[decided], first + rank_high[decided])
    touched = rank_low != rank_high
    on_a_word = np.isin(words, [int(value * size) for value in values if (value * size).denominator == 1])
    assert not (decided & touched & ~on_a_word).any()
    beside = on_a_word | np.isin(words + 1, words[on_a_word]) | (words == 0) | (words == size - 1)
    assert (decided | touched | beside).all()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("word_bits", [16, 32])
def test_few_draws_without_a_kernel_equal_those_of_the_kernel(name: str, word_bits: int) -> None:
    law, _ = LAWS[name]
    table = TabledLaw(law, word_bits=word_bits)
    yes, no = table.thresholds
    near = (np.concatenate([yes, no])[:, None] + np.arange(-2, 3)).ravel() << (32 - word_bits)
    ends = [0, 1, (1 << 32) - 1]
    words = np.concatenate([near[(near >= 0) & (near < 1 << 32)], ends]).astype(np.uint32)
    slow, quick = np.empty(len(words), dtype=np.int64), np.empty(len(words), dtype=np.int64)
    few = search_numpy(words >> np.uint32(32 - word_bits), yes, no, table.first, slow)
    many = invert_words(words, *table.guide, table.first, np.empty(len(words), dtype=np.int32), quick)
    assert few == many
    assert np.array_equal(slow, quick)


@pytest.mark.parametrize("variance", [Fraction(7, 3), Fraction(10**9)])
def test_a_draw_does_not_depend_on_how_many_were_made_before(variance: Fraction) -> None:
    key, places = Key.for_tests(4), np.array([3, 0, 17, 2**40 + 1, 5], dtype=np.uint64)
    fresh, used = DiscreteGaussian(variance), DiscreteGaussian(variance)
    used._use_numpy(NUMPY_MAX_DRAWS)
    used._body._use_numpy(NUMPY_MAX_DRAWS)
    assert np.array_equal(fresh.at(key, "x", places), used.at(key, "x", places))
    stream = key.stream("y")
    assert np.array_equal(fresh.draw_range(stream, 3, 9), used.draw_range(stream, 3, 9))


@pytest.mark.parametrize("word_bits", [8, 64])
def test_few_integers_without_a_kernel_equal_those_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, word_bits: int
) -> None:
    stream, bounds = Key.for_tests(5).stream("z"), np.array([3, 1, 2**63, 10**6 + 3, 97], dtype=np.uint64)

    def drawn(*, loaded: bool) -> NDArray[np.int64]:
        monkeypatch.setattr("stirred.chance.uniform.kernels_are_loaded", lambda: loaded)
        return draw_floors(stream, 16, bounds, 5, word_bits=word_bits)

    assert np.array_equal(drawn(loaded=False), drawn(loaded=True))


@dataclass(frozen=True)
class Mutant:
    """A law with one threshold off by a single unit of a 16-bit word."""

    law: Law
    by: int

    def steps(self, bits: int) -> EnclosedSteps:
        steps = self.law.steps(bits)
        middle = len(steps.low) // 2
        unit = self.by << bits >> 16
        steps.low[middle] += unit
        steps.high[middle] += unit
        return steps


@pytest.mark.parametrize("by", [-1, 1])
def test_a_threshold_off_by_one_is_seen(by: int) -> None:
    law, cdf = LAWS["gaussian 7/3"]
    with pytest.raises(AssertionError):
        sweep_kernel(Mutant(law, by), cdf, 16)
    with pytest.raises(AssertionError):
        walk_table(Mutant(law, by * 16), cdf)


def test_a_damaged_guide_is_seen() -> None:
    law, cdf = LAWS["gaussian 7/3"]

    class Damaged(TabledLaw):
        def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
            entries = self.guide.entries.copy()
            place = int(np.flatnonzero(entries & np.uint64(0xFF))[5])
            entries[place] += np.uint64(1)  # the first doubtful word of one bucket, one too late
            doubtful = np.empty(len(words), dtype=np.int32)
            return invert_words(words, *self.guide._replace(entries=entries), self.first, doubtful, out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "TabledLaw", Damaged)
        with pytest.raises(AssertionError):
            sweep_kernel(law, cdf, 16)


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 3), Fraction(1, 4), Fraction(19, 20), Fraction(1)])
def test_coins(p: Fraction) -> None:
    masses, still_open = walked(lambda u: int(settle(p, u)), 4, depth=3)
    yes = masses[1].mass if 1 in masses else 0
    assert yes <= p <= yes + still_open
    assert still_open <= Fraction(1, 1 << 16)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(3), Fraction(50)])
def test_coins_of_an_exponential(x: Fraction) -> None:
    masses, still_open = walked(lambda u: int(is_below_exp(u, x)), 4, depth=3)
    with mpmath.workprec(200):
        target = Fraction(str(mpmath.nstr(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 50)))
    yes = masses[1].mass if 1 in masses else 0
    assert yes - ROUNDING <= target <= yes + still_open + ROUNDING


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 7, 16, 17, 100])
def test_whole_numbers(bound: int) -> None:
    masses, still_open = walked(lambda u: settle_floor(u, bound), 4, depth=3)
    for k in range(bound):
        mass = masses[k].mass if k in masses else 0
        assert mass <= Fraction(1, bound) <= mass + still_open
    assert set(masses) <= set(range(bound))


@pytest.mark.parametrize("bound", [1, 3, 255, 256, 2**32, 2**32 + 1, 2**62 + 12345, 2**63])
def test_the_kernel_agrees_with_exact_arithmetic_on_whole_numbers(bound: int) -> None:
    edges = [
        0,
        1,
        2**32 - 1,
        2**32,
        2**63,
        2**64 - 1,
        2**64 // bound,
        2**64 // bound * (bound - 1),
        0xDEADBEEFCAFEF00D,
    ]
    words = np.array([min(max(e + d, 0), 2**64 - 1) for e in edges for d in (-1, 0, 1)], dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    _scale_words(words, np.array([bound], dtype=np.uint64), 0, out)
    for word, found in zip(words.tolist(), out.tolist(), strict=True):
        low, high = word * bound >> 64, ((word + 1) * bound - 1) >> 64
        assert found == (low if low == high else -1)


@pytest.mark.parametrize("bits", [20, 96, 300])
@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 10**30), Fraction(1, 3), Fraction(1), Fraction(355, 113), Fraction(10**7)]
)
def test_enclosures_contain_the_exponential_and_are_narrow(x: Fraction, bits: int) -> None:
    low, high = enclose_exp(x, bits)
    with mpmath.workprec(bits + 200):
        value = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= value <= high
    assert high - low <= 2


@pytest.mark.parametrize("bits", [96, 224])
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 100), Fraction(9, 4), Fraction(12345, 7)])
def test_distribution_functions_are_enclosed(sigma_squared: Fraction, bits: int) -> None:
    steps = FallingLaw(1 / (2 * sigma_squared), Fraction(0), mirrored=True).steps(bits)
    with mpmath.workprec(bits + 150):
        s = mpmath.mpf(sigma_squared.numerator) / sigma_squared.denominator
        reach = int(mpmath.sqrt(s * (bits + 150) * 1.5)) + 3
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s)) for k in range(-reach, reach + 1)]
        total, running = mpmath.fsum(weights), mpmath.mpf(0)
        for k, weight in zip(range(-reach, reach + 1), weights, strict=True):
            running += weight
            i = k - steps.first
            if 0 <= i < len(steps.low):
                value, blur = running / total * mpmath.mpf(2) ** bits, mpmath.mpf(2) ** -40
                assert steps.low[i] - blur <= value <= steps.high[i] + blur
                assert steps.high[i] - steps.low[i] <= 4
    assert steps.low == sorted(steps.low)
    assert steps.high == sorted(steps.high)


def test_coarse_attempts_are_accepted_only_when_the_exponential_allows() -> None:
    # the kernel's plain-word test against exact arithmetic, on random and extreme words
    law = FallingLaw(Fraction(1, 2 * 30**2), Fraction(0), mirrored=True)
    coarse = CoarseLaw(law, stride=7)
    random = np.random.default_rng(1)  # inputs of a test, not noise
    words = random.integers(0, 2**32, size=4 * 20_000, dtype=np.uint32)
    words[4 * 100 + 1 : 4 * 2000 : 4] |= np.uint32(0xF0000000)
    out = np.empty(20_000, dtype=np.int64)
    undecided = coarse._decide(words, out)
    assert 0 < undecided < 8000
    for i in np.flatnonzero(out != UNDECIDED)[:3000].tolist():
        size = abs(int(out[i]))
        y, z = divmod(size, 7)
        place = int(words[4 * i + 2]) | int(words[4 * i + 3]) << 32
        assert z == place * 7 >> 64 == ((place + 1) * 7 - 1) >> 64
        low, _ = enclose_exp(law.rise(7 * y, z), 60)
        assert (int(words[4 * i + 1] >> 1) + 1) << 29 <= low
        assert (out[i] < 0) == bool(words[4 * i + 1] & 1) or size == 0


def test_permutations_are_a_bijection_of_jumps() -> None:
    # n! sequences of jumps, n! orders: each order has exactly one sequence, so uniform jumps give uniform orders
    for n in range(1, 6):
        found = set()
        for jumps in product(*(range(bound) for bound in range(n, 1, -1))):
            order = np.arange(n, dtype=np.int64)
            _shuffle(order, np.array(jumps, dtype=np.int64))
            found.add(tuple(order.tolist()))
        assert found == set(permutations(range(n)))
