"""The same draw is the same number: alone or in a row, in any chunk, thread or process (must hold bit for bit)."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.chance import (
    DiscreteGaussian,
    DiscreteLaplace,
    Key,
    Stream,
    bernoulli,
    binomial,
    derangement,
    discrete_gaussian,
    discrete_laplace,
    integers,
    inversion,
    permutation,
)
from stirred.chance.inversion import AddressableLaw
from stirred.errors import InputError

KEY = Key.for_tests(4)
NOISES: dict[str, AddressableLaw] = {
    "table": DiscreteGaussian("9/4"),
    "short words": DiscreteGaussian("9/4", word_bits=8, extension_bits=8),
    "wide": DiscreteGaussian(10**12),
    "laplace": DiscreteLaplace(3),
    "wide laplace": DiscreteLaplace(10**9),
}


@pytest.mark.parametrize("name", NOISES)
@settings(deadline=None, max_examples=25)
@given(start=st.integers(0, 20_000), n=st.integers(0, 300))
def test_a_range_is_its_single_cells(name: str, start: int, n: int) -> None:
    noise, stream = NOISES[name], KEY.stream("query", 1)
    row = noise.draw_range(stream, start, n)
    positions = np.arange(start, start + n, dtype=np.uint64)
    assert np.array_equal(noise.at_positions(stream, positions), row)
    assert np.array_equal(noise.at(KEY, ("query", 1), positions[::-1]), row[::-1])
    assert np.array_equal(noise.draw(stream.at(start * noise.width), n), row)


@pytest.mark.parametrize("name", NOISES)
def test_neighbours_that_share_a_block_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, repeats and far places, more than a chunk, against one block for each draw."""
    noise, stream = NOISES[name], KEY.stream("runs")
    far = np.random.default_rng(1).integers(0, 1 << 60, 3_000)
    runs = (np.repeat(far, 5) + np.tile([0, 1, 2, 2, 9], 3_000)).astype(np.uint64)
    monkeypatch.setattr(inversion, "NUMPY_MAX_DRAWS", 1 << 60)
    alone = noise.at_positions(stream, runs)
    monkeypatch.setattr(inversion, "NUMPY_MAX_DRAWS", 0)
    assert np.array_equal(noise.at_positions(stream, runs), alone)
    assert np.array_equal(noise.at_positions(stream, runs[:1]), alone[:1])


@pytest.mark.parametrize("name", NOISES)
def test_chunks_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, n = NOISES[name], 40_000
    whole = noise.draw(KEY.stream("chunks"), n)
    stream = KEY.stream("chunks")
    pieces = [noise.draw(stream, size) for size in (1, 2, 3, 5, 16_383, 16_385, n - 32_779)]
    assert np.array_equal(np.concatenate(pieces), whole)
    monkeypatch.setattr(inversion, "CHUNK_BYTES", 256)
    assert np.array_equal(noise.draw(KEY.stream("chunks"), n), whole)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_matter(threads: int) -> None:
    noise, stream, n, step = NOISES["short words"], KEY.stream("threads"), 60_000, 3_333
    out = np.empty(n, dtype=np.int64)

    def part(start: int) -> None:
        stop = min(n, start + step)
        noise.draw_range(stream, start, stop - start, out=out[start:stop])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, range(0, n, step)))
    assert np.array_equal(out, noise.draw_range(stream, 0, n))


def everything() -> str:
    """A digest of draws of every sampler."""
    key = Key.for_tests(9).bind("here or there", 1)
    ids = np.arange(1000, dtype=np.uint64)
    parts = [
        discrete_gaussian(key.stream("a"), Fraction(7, 3), 5000),
        discrete_gaussian(key.stream("b"), Fraction(10**12), 5000),
        discrete_laplace(key.stream("c"), Fraction(5), 5000),
        bernoulli(key.stream("d"), Fraction(1, 3), 5000, word_bits=8).astype(np.int64),
        integers(key.stream("e"), 12345, 5000, word_bits=16),
        permutation(key.stream("f"), 1000),
        derangement(key.stream("g"), 1000),
        binomial(key.stream("h"), 100, Fraction(1, 3), 1000),
        key.blocks("i", ids).astype(np.int64).ravel(),
        np.frombuffer(key.multiset_digest([ids, ids]), dtype=np.int64),
    ]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def test_processes_do_not_matter() -> None:
    code = f"import runpy; print(runpy.run_path({__file__!r})['everything']())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == everything()


SAMPLERS: dict[str, Callable[[Stream, int], np.ndarray]] = {
    "bernoulli": lambda s, n: bernoulli(s, Fraction(1, 3), n, word_bits=8),
    "integers": lambda s, n: integers(s, 10, n, word_bits=8),
    "binomial": lambda s, n: binomial(s, 12, Fraction(1, 3), n),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_in_pieces_are_the_draws_at_once(name: str) -> None:
    sampler = SAMPLERS[name]
    stream = KEY.stream("pieces")
    pieces = np.concatenate([sampler(stream, n) for n in (1, 7, 100, 892)])
    assert np.array_equal(pieces, sampler(KEY.stream("pieces"), 1000))


def test_a_binomial_count_depends_on_its_place_not_on_its_company() -> None:
    trials = np.array([4, 9, 4, 0, 9, 30] * 50)
    together = binomial(KEY.stream("b"), trials, Fraction(1, 3))
    nines = binomial(KEY.stream("b"), np.where(trials == 9, 9, 1), Fraction(1, 3))
    assert np.array_equal(together[trials == 9], nines[trials == 9])


@pytest.mark.parametrize("n", [0, 2, 3, 50, 70_000])
def test_derangements_move_everything(n: int) -> None:
    order = derangement(KEY.stream("d", n), n)
    assert np.array_equal(np.sort(order), np.arange(n))
    assert (order != np.arange(n)).all()


def test_two_derangements_of_a_stream_use_different_words() -> None:
    stream = KEY.stream("d")
    first, reached = derangement(stream, 20), stream.position
    assert reached >= 160
    assert not np.array_equal(first, derangement(stream, 20))


def test_a_stream_never_goes_back() -> None:
    stream = KEY.stream("x")
    first = stream.words32(5)
    with pytest.raises(InputError):
        DiscreteGaussian(1).draw(stream, -5)
    assert stream.position == 20
    assert not np.array_equal(stream.words32(5), first)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: derangement(KEY.stream("x"), 1),
        lambda: permutation(KEY.stream("x"), -1),
        lambda: integers(KEY.stream("x"), 0, 3),
        lambda: bernoulli(KEY.stream("x"), Fraction(3, 2), 3),
        lambda: DiscreteGaussian(0),
        lambda: DiscreteGaussian("-1"),
        lambda: DiscreteGaussian(2.5),
        lambda: DiscreteLaplace("none"),
        lambda: binomial(KEY.stream("x"), -1, Fraction(1, 2)),
        lambda: binomial(KEY.stream("x"), 10**9, Fraction(1, 2)),
        lambda: DiscreteGaussian(1).draw(KEY.stream("x"), 3, out=np.empty(2, dtype=np.int64)),
        lambda: DiscreteGaussian(2**114 + 1),
        lambda: DiscreteLaplace(2**55 + 1),
        lambda: DiscreteGaussian(1).draw(KEY.stream("x"), -1),
        lambda: DiscreteGaussian(1).draw_range(KEY.stream("x"), -1, 2),
        lambda: bernoulli(KEY.stream("x"), Fraction(1, 2), -1),
        lambda: integers(KEY.stream("x"), 5, -1),
        lambda: KEY.stream("x").bytes(-1),
        # 1.2 and 1.7 would be cut to one number and get one noise
        lambda: DiscreteGaussian(1).at(KEY, "x", np.array([1.2, 1.7])),
        lambda: DiscreteGaussian(1).at(KEY, "x", np.array([-1])),
        lambda: KEY.blocks("x", np.array([1.2, 1.7])),
        lambda: KEY.blocks("x", np.array([-1])),
    ],
)
def test_what_has_no_meaning_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        wrong()


@pytest.mark.parametrize(
    "sigma_squared", ["1/1000000", "1/3", "4096", "16777216", "16777217", "1e12", "1e30"]
)
def test_every_rational_variance_has_noise(sigma_squared: str) -> None:
    noise = DiscreteGaussian(sigma_squared)
    scale = float(Fraction(sigma_squared)) ** 0.5
    drawn = noise.draw(KEY.stream("any", sigma_squared), 2000)
    assert np.abs(drawn).max() <= 7 * scale  # over fresh keys a false alarm has probability 5e-9
    assert (drawn != 0).any() == (scale > 0.01)
