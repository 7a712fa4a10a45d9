"""The draw of a stirring: exactly its law, the same for any order of rows, and wrong draws are caught."""

import sys
import types
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from stirred.chance import Key
from stirred.chance.uniform import threshold
from stirred.engine import Local
from stirred.mechanisms.stirring import moves
from stirred.mechanisms.stirring.free_slots import expect_tries
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    StratumLaw,
    StratumLaws,
    enumerate_cycles,
    enumerate_types,
    free_chances,
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


TYPE_MUTANTS = {
    "blocks not made up for": ("chance *= 2.0", "chance *= 1.0"),
    "blocks of another length": ("t = mode + block * up + at", "t = mode + block * (up + 1.0) + at"),
    "the mode twice": ("else mode - 1.0 - block * down - (at - up)", "else mode - block * down - (at - up)"),
    "one step of the chance missing": (
        "k = mode\n        while k < t:",
        "k = mode + 1.0\n        while k < t:",
    ),
    "free records accepted as they come": (
        "accepted = two or _accept_together(",
        "accepted = True or _accept_together(",
    ),
    "one type weighs more": (
        "chance *= whole * r / odds[h] *",
        "chance *= 0.5 * whole * r / odds[h] *",
    ),
    "the first of a type are free": (
        "i, j = start + k, start + k + np.int64(drawn)",
        "i, j = start + k, start + k",
    ),
    "free records keep their order": ("givers[i], givers[j] = givers[j], givers[i]", "givers[i] = givers[i]"),
}


def check_types(draw: Draw, strata: int = 1500) -> None:
    for own, weight in (([0, 1, 0, 0], Fraction(1)), ([0, 1, 2, 0], Fraction(9, 4))):
        compare(draw_types(own, weight, strata, draw=draw), enumerate_types(own, weight), strata)
    # several blocks: how many records of thirty change their type
    two = [0] * 15 + [1] * 15
    trades = {2 * t: chance for t, chance in enumerate(trade_chances(15, 15, Fraction(3, 2)))}
    compare(count_changes(draw_types(two, Fraction(3, 2), strata, draw=draw), two), trades, strata)
    three = [0, 0, 0, 1, 1, 2]
    law = count_changes(enumerate_types(three, Fraction(9)), three)
    compare(count_changes(draw_types(three, Fraction(9), strata, draw=draw), three), law, strata)


def count_changes(found: Mapping, own: list[int]) -> Counter:
    """Count permutations by the number of records whose type differs where they go."""
    changes: Counter = Counter()
    for s, many in found.items():
        changes[sum(own[i] != own[j] for i, j in enumerate(s))] += many
    return changes


def make_mutant(right: str, wrong: str) -> Draw:
    """Return the draw of the module with one line changed, interpreted."""
    source = Path(moves.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1
    mutant = types.ModuleType("mutant")
    sys.modules["mutant"] = mutant
    interpreted = source.replace("from stirred.kernels import compile_kernel", "compile_kernel = lambda f: f")
    exec(interpreted.replace(right, wrong), mutant.__dict__)
    return mutant.draw_stirring


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_draw_is_caught(name: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(AssertionError):
        check_cases(make_mutant(*MUTANTS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPE_MUTANTS)
def test_a_wrong_draw_by_types_is_caught(name: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        check_types(make_mutant(*TYPE_MUTANTS[name]))


def test_right_draws_are_not_caught() -> None:
    same = "import numpy as np", "import numpy as np"
    with np.errstate(over="ignore"):
        check_every_draw(make_mutant(*same), 3, Fraction(7))
        assert draw_types([0, 1, 2, 0], Fraction(9), 20, draw=make_mutant(*same)) == draw_types(
            [0, 1, 2, 0], Fraction(9), 20
        )
    check_types(moves.draw_stirring)


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


def draw_types(
    own: list[int], weight: Fraction, strata: int, *, kind: int = BY_HELD, draw: Draw = moves.draw_stirring
) -> Counter:
    """Draw strata whose records have these types, and count their permutations."""
    n = len(own)
    ids, numbers = np.arange(n * strata, dtype=np.uint64), np.tile(np.array(own, np.uint64), strata)
    made = draw(
        Key.for_tests(2),
        ids=ids,
        strata=(ids // n).astype(np.uint32),
        sizes=np.full(strata, n, np.uint32),
        laws=one_law(kind, weight, strata),
        held=numbers if kind == BY_HELD else None,
        places=numbers if kind == BY_PLACE else None,
        engine=Local(workers=1),
    )
    return permutations_of(made, n, strata)


@pytest.mark.parametrize("kind", [BY_HELD, BY_PLACE])
@pytest.mark.parametrize(
    ("own", "weight"),
    [
        ([0, 1, 0, 0, 1], Fraction(7, 2)),
        ([0, 1, 0, 0, 1], Fraction(1, 3)),
        ([0, 1, 2, 0], Fraction(9)),
        ([0, 1, 2, 3, 3], Fraction(9, 4)),
    ],
)
def test_draws_by_types_follow_the_law(kind: int, own: list[int], weight: Fraction) -> None:
    compare(draw_types(own, weight, 10_000, kind=kind), enumerate_types(own, weight), 10_000)


@pytest.mark.parametrize(
    ("counts", "weight"),
    [
        ((40, 25), Fraction(30)),
        ((300, 1000), Fraction(5)),
        ((1, 50), Fraction(100)),
        ((6, 6), Fraction(1, 4)),
        ((9, 2), Fraction(1)),
        ((6, 3, 2), Fraction(4)),
        ((12, 5, 1, 1), Fraction(36)),
        ((3, 3, 3, 2, 2), Fraction(100)),
    ],
)
def test_numbers_of_free_records_follow_the_law(counts: tuple[int, ...], weight: Fraction) -> None:
    strata, n = 8_000, sum(counts)
    ids = np.arange(n * strata, dtype=np.uint64)
    laws = one_law(BY_HELD, weight, strata)
    found = moves.FreeDraw(
        words=Key.for_tests(3),
        ids=ids,
        starts=n * np.arange(strata + 1),
        grouped=ids.astype(np.uint32),
        laws=laws,
        chosen=np.arange(strata),
        counts=np.tile(np.array([*counts, *[0] * (moves.MAX_TYPES - len(counts))]), (strata, 1)),
        types=np.full(strata, len(counts)),
    ).draw(Local(workers=1))
    law = (
        {(t, t): chance for t, chance in enumerate(trade_chances(*counts, weight))}
        if len(counts) == 2
        else free_chances(counts, laws[0].root)
    )
    compare(Counter(tuple(row[: len(counts)]) for row in found.tolist()), law, strata)


def list_chances(
    counts: NDArray[np.int64], law: StratumLaw, coordinate: int, blocks: tuple[float, float, float], last: int
) -> dict[int, Fraction]:
    """Return how probable each number is as a candidate that is accepted."""
    mode, up, down = (int(value) for value in blocks)
    found = {}
    for t in range(last + 1):
        block = (t - mode) // up if t >= mode else (mode - t - 1) // down
        state = np.array([0, 0, 0, coordinate, t, block])
        chance = moves.find_chance(counts, law, state, counts)
        assert 0 < chance <= 1
        found[t] = chance / (2 << block) / (up + down)
    return found


@pytest.mark.parametrize(
    ("counts", "weight"),
    [
        ((1, 1), Fraction(3)),
        ((9, 4), Fraction(1, 7)),
        ((30, 50), Fraction(11, 2)),
        ((1, 1, 1), Fraction(4)),
        ((3, 2, 1), Fraction(9, 4)),
        ((6, 5, 1), Fraction(121)),
        ((4, 3, 3, 2), Fraction(49, 4)),
        ((5, 4, 1), Fraction(10**8)),
    ],
)
def test_accepted_candidates_have_exactly_the_law(counts: tuple[int, ...], weight: Fraction) -> None:
    law, own = StratumLaw(BY_HELD, weight), np.array(counts)
    if len(counts) == 2:
        blocks = moves.lay_blocks(float(counts[0]), float(counts[1]), float(1 / weight))
        found = list_chances(own, law, 0, blocks, min(counts))
        assert {t: p / sum(found.values()) for t, p in found.items()} == dict(
            enumerate(trade_chances(*counts, weight))
        )
        return
    odds, around = np.empty(own.size), np.empty(own.size)
    moves.envelop(own.astype(float), float(law.root - 1), odds, around)
    each = [
        list_chances(own, law, h, moves.lay_blocks(float(n), 0.0, odds[h]), n) for h, n in enumerate(counts)
    ]
    joint = {}
    for free in product(*(range(n + 1) for n in counts)):
        together = moves.find_chance(own, law, np.array([0, 0, 0, moves.JOINT, 0, 0]), np.array(free))
        assert 0 < together <= 1
        joint[free] = together * prod(one[f] for one, f in zip(each, free, strict=True))
    whole = sum(joint.values())
    assert {free: p / whole for free, p in joint.items()} == free_chances(counts, law.root)
    # the tries that are expected before a draw, from the counts alone
    each_whole = prod(sum(one.values()) for one in each)
    assert expect_tries(counts, law.root) == pytest.approx(float(each_whole / whole), rel=1e-6)


@pytest.mark.parametrize(("counts", "root"), [((400,) * 5, 30), ((5000, 300, 20, 1), 100), ((90,) * 12, 8)])
def test_no_number_is_accepted_with_more_than_certainty(counts: tuple[int, ...], root: int) -> None:
    own, law = np.array(counts), StratumLaw(BY_HELD, Fraction(root * root))
    odds, around = np.empty(own.size), np.empty(own.size)
    moves.envelop(own.astype(float), float(root - 1), odds, around)
    rng = np.random.default_rng(1)
    for spread in (0.0, 1.0, 3.0):
        for _ in range(4):
            free = np.clip(np.rint(around + spread * np.sqrt(around + 1) * rng.normal(size=own.size)), 0, own)
            state = np.array([0, 0, 0, moves.JOINT, 0, 0])
            assert moves.find_chance(own, law, state, free.astype(np.int64)) <= 1


@pytest.mark.parametrize(
    ("own", "weight"), [([0, 1, 0, 0, 1], Fraction(7, 2)), ([0, 1, 2, 0, 2, 2, 1], Fraction(16))]
)
def test_fractions_decide_as_doubles_do(
    own: list[int], weight: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = draw_types(own, weight, 150)
    monkeypatch.setattr(moves, "ROUNDING", 1.0)  # no coin is certain now: fractions decide all of them
    assert draw_types(own, weight, 150) == usual


def test_a_tie_is_decided_by_more_words() -> None:
    chance = Fraction(1, 3)
    coin = threshold(chance)
    words = GivenWords([0, (1 << 64) - 1])
    first, last = np.uint64(0), np.uint64(1)
    assert moves.break_tie(words, moves.TIE_LABEL, first, 0, coin)
    assert not moves.break_tie(words, moves.TIE_LABEL, last, 0, coin)


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
