"""The draw of a stirring: exactly its law, the same for any order of rows, and wrong draws are caught."""

import types
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.stirring import moves
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    StratumLaw,
    StratumLaws,
    enumerate_cycles,
    enumerate_trades,
    trade_chances,
)
from stirred.mechanisms.swap.strata import NO_STRATUM

Draw = Callable[..., moves.Moves]
FALSE_ALARM = 1e-7  # of each statistical test here


class GivenWords:
    """Words that are looked up by identifier, so that every possible draw can be made once."""

    def __init__(self, words: list[int]) -> None:
        self.words = np.array([words, words], np.uint64).T.copy()

    def blocks(self, label: str, ids: NDArray[np.uint64], *, counter: int = 0) -> NDArray[np.uint64]:
        """Return the given word of each identifier."""
        del label, counter
        return self.words[ids.astype(np.int64)]


def one_law(kind: int, weight: Fraction, strata: int) -> StratumLaws:
    return StratumLaws((StratumLaw(kind, weight),), np.zeros(strata, np.intp))


def permutations_of(made: moves.Moves, n: int, strata: int) -> Counter:
    """Count the permutations of equally many records in each stratum."""
    images = np.arange(n * strata)
    images[made.receivers] = made.givers
    assert (np.sort(images) == np.arange(n * strata)).all()
    return Counter(map(tuple, (images.reshape(strata, n) - n * np.arange(strata)[:, None]).tolist()))


def check_every_draw(draw: Draw, n: int, weight: Fraction) -> None:
    """Make every draw of a stratum once, each in a stratum of its own, and compare with the law exactly."""
    bounds = [1, *(weight.numerator + weight.denominator * rank for rank in range(1, n))]
    every = list(product(*(range(bound) for bound in bounds)))
    # a word just above x·2⁶⁴/bound is read as x, and evenly
    words = [
        -(-(x << 64) // bound) + (1 << 20)
        for chosen in every
        for x, bound in zip(chosen, bounds, strict=True)
    ]
    ids = np.arange(len(words), dtype=np.uint64)
    made = draw(
        GivenWords(words),
        ids=ids,
        strata=(ids // n).astype(np.uint32),
        sizes=np.full(len(every), n, np.uint32),
        laws=one_law(CYCLES, weight, len(every)),
    )
    found = permutations_of(made, n, len(every))
    law = enumerate_cycles(n, weight)
    assert {s: Fraction(found[s], len(every)) for s in law} == dict(law)


CASES = [
    (2, Fraction(3)),
    (3, Fraction(7)),
    (3, Fraction(1, 3)),
    (3, Fraction(5, 2)),
    (4, Fraction(7)),
    (4, Fraction(2, 3)),
]


@pytest.mark.parametrize(("n", "weight"), CASES)
def test_all_draws_together_are_the_law(n: int, weight: Fraction) -> None:
    check_every_draw(moves.draw_stirring, n, weight)


def check_cases(draw: Draw) -> None:
    for n, weight in CASES[:4]:
        check_every_draw(draw, n, weight)


MUTANTS = {
    "1/λ for λ": (
        "stay, each = numerators[stratum], denominators[stratum]",
        "each, stay = numerators[stratum], denominators[stratum]",
    ),
    "stay weight of another step": (
        "bound = stay + each * np.uint64(rank)\n        drawn, even = _draw_below(words[k, 0], bound)",
        "bound = stay + each * np.uint64(rank - 1)\n        drawn, even = _draw_below(words[k, 0], bound)",
    ),
    "j up to i": ("np.int64((drawn - stay) // each)", "np.int64((drawn - stay) // each) + 1"),
    "stays one too often": ("elif drawn >= stay:", "elif drawn > stay:"),
    "values copied, not exchanged": ("images[i], images[j] = images[j], images[i]", "images[i] = images[j]"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_draw_is_caught(name: str) -> None:
    source = Path(moves.__file__).read_text(encoding="utf-8")
    right, wrong = MUTANTS[name]
    assert source.count(right) == 1
    mutant = types.ModuleType("mutant")
    interpreted = source.replace("from stirred.kernels import compile_kernel", "compile_kernel = lambda f: f")
    with np.errstate(over="ignore"):
        exec(interpreted, mutant.__dict__)
        check_every_draw(mutant.draw_stirring, 3, Fraction(7))
        exec(interpreted.replace(right, wrong), mutant.__dict__)
        with pytest.raises(AssertionError):
            check_cases(mutant.draw_stirring)


@pytest.mark.parametrize("weight", [Fraction(7), Fraction(1, 3)])
def test_draws_with_a_key_follow_the_law(weight: Fraction) -> None:
    n, strata = 4, 20_000
    ids = np.arange(n * strata, dtype=np.uint64)
    made = moves.draw_stirring(
        Key.for_tests(1),
        ids=ids,
        strata=(ids // n).astype(np.uint32),
        sizes=np.full(strata, n, np.uint32),
        laws=one_law(CYCLES, weight, strata),
    )
    compare(permutations_of(made, n, strata), enumerate_cycles(n, weight), strata)


@pytest.mark.parametrize("kind", [BY_HELD, BY_PLACE])
@pytest.mark.parametrize("weight", [Fraction(7, 2), Fraction(1, 3)])
def test_trades_with_a_key_follow_the_law(kind: int, weight: Fraction) -> None:
    n, strata, own = 5, 20_000, [0, 1, 0, 0, 1]
    ids = np.arange(n * strata, dtype=np.uint64)
    numbers = np.tile(np.array(own, np.uint64), strata)
    made = moves.draw_stirring(
        Key.for_tests(2),
        ids=ids,
        strata=(ids // n).astype(np.uint32),
        sizes=np.full(strata, n, np.uint32),
        laws=one_law(kind, weight, strata),
        held=numbers if kind == BY_HELD else None,
        places=numbers if kind == BY_PLACE else None,
    )
    compare(permutations_of(made, n, strata), enumerate_trades(own, weight), strata)


@pytest.mark.parametrize(
    ("n1", "n2", "weight"),
    [
        (40, 25, Fraction(30)),
        (300, 1000, Fraction(5)),
        (1, 50, Fraction(100)),
        (6, 6, Fraction(1, 4)),
        (9, 2, Fraction(1)),
    ],
)
def test_numbers_of_trades_follow_fisher_s_law(n1: int, n2: int, weight: Fraction) -> None:
    law = moves.TradeCount(n1, n2, weight.numerator, weight.denominator)
    source = iter(Key.for_tests(3).stream("trades").words64(4_000_000).tolist())
    found = Counter(law.draw(source) for _ in range(20_000))
    compare(found, dict(enumerate(trade_chances(n1, n2, weight))), 20_000)


def compare(found: Counter, law: dict, draws: int) -> None:
    """Compare counts with a law; outcomes that are expected less than ten times are one."""
    assert {*found} <= {outcome for outcome, chance in law.items() if chance}
    many = [outcome for outcome, chance in law.items() if draws * chance >= 10]
    seen = [found[outcome] for outcome in many]
    expected = [float(draws * law[outcome]) for outcome in many]
    rest = draws - sum(expected)
    if rest > 1:
        seen, expected = [*seen, draws - sum(seen)], [*expected, rest]
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True))
    assert chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM


def test_the_draw_does_not_depend_on_rows_or_threads() -> None:
    rng = np.random.default_rng(4)
    n = 150_000
    ids = rng.permutation(10 * n)[:n].astype(np.uint64)
    codes = rng.integers(0, 60, n).astype(np.uint32)
    codes[rng.random(n) < 0.1] = NO_STRATUM
    held, places = rng.integers(0, 2, n).astype(np.uint64), rng.integers(0, 2, n).astype(np.uint64)
    laws = StratumLaws(
        (
            StratumLaw(CYCLES, Fraction(900, 7)),
            StratumLaw(BY_HELD, Fraction(50)),
            StratumLaw(BY_PLACE, Fraction(300)),
        ),
        np.arange(60) % 3,
    )

    def draw(order: NDArray[np.int64], workers: int) -> dict[int, int]:
        made = moves.draw_stirring(
            Key.for_tests(5),
            ids=ids[order],
            strata=codes[order],
            sizes=np.bincount(codes[codes != NO_STRATUM], minlength=60).astype(np.uint32),
            laws=laws,
            held=held[order],
            places=places[order],
            engine=Local(workers=workers),
        )
        assert (codes[order][made.receivers] == codes[order][made.givers]).all()
        return dict(zip(ids[order][made.receivers].tolist(), ids[order][made.givers].tolist(), strict=True))

    one = draw(np.arange(n), 1)
    assert one == draw(rng.permutation(n), 2) == draw(np.argsort(ids), 1)
    assert 0.01 < len(one) / n < 0.5


def test_words_that_are_uneven_are_drawn_again() -> None:
    # with λ = 2⁶⁰ a step has weights up to 2⁶⁰ + 2: words whose low half is small are not used
    weight = Fraction((1 << 60) + 1)
    bound = weight.numerator + 1
    unused = next(w for w in range(1, 1000) if (w * bound) % (1 << 64) < (1 << 64) % bound)

    class Uneven(GivenWords):
        def blocks(self, label: str, ids: NDArray[np.uint64], *, counter: int = 0) -> NDArray[np.uint64]:
            if counter:
                last = np.uint64(
                    (1 << 64) - 1
                )  # read as the largest number: an exchange with the first record
                return np.full((ids.size, 2), last, np.uint64)
            return super().blocks(label, ids)

    ids = np.arange(2, dtype=np.uint64)
    made = moves.draw_stirring(
        Uneven([unused, unused]),
        ids=ids,
        strata=np.zeros(2, np.uint32),
        sizes=np.array([2], np.uint32),
        laws=one_law(CYCLES, weight, 1),
    )
    assert sorted(made.receivers.tolist()) == [0, 1]
