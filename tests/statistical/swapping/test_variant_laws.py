"""Samplers of the swapping variants against laws enumerated here, over the tables that come out of small strata."""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.swap import NoisyKey
from stirred.mechanisms.swap.moves import Moves, draw_moves
from stirred.mechanisms.swap.strata import StratumCodes
from stirred.mechanisms.swap.variants import draw_non_vacuous, rearrange_pairs

STRATA = 200_000
FALSE_ALARM = 1e-7  # chance that one of these checks fails on a right sampler
HOLD = (0, 0, 1, 1)
SWAP = (0, 1, 1, 2)
N = len(HOLD)
DERANGEMENTS = [1, 0, 1, 2, 9]
Permutation = tuple[int, ...]
Law = dict[Permutation, Fraction]


def selection_law(rates: tuple[Fraction, ...]) -> Law:
    """Select with individual rates, redraw a lone one, derange uniformly."""
    law: Law = {}
    total = Fraction(0)
    for chosen in product((0, 1), repeat=N):
        if sum(chosen) == 1:
            continue
        weight = Fraction(1)
        for i, c in enumerate(chosen):
            weight *= rates[i] if c else 1 - rates[i]
        total += weight
        for g in permutations(range(N)):
            if all((g[i] != i) == bool(chosen[i]) for i in range(N)):
                law[g] = law.get(g, Fraction(0)) + weight / DERANGEMENTS[sum(chosen)]
    return {g: weight / total for g, weight in law.items()}


def table(values: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(zip(HOLD, values, strict=True)))


def outputs(law: Law) -> Counter[object]:
    found: Counter[object] = Counter()
    for g, weight in law.items():
        found[table(tuple(SWAP[j] for j in g))] += weight  # type: ignore[assignment]
    return found


def check(expected: Counter[object], sampled: np.ndarray) -> float:
    rows, counts = np.unique(sampled, axis=0, return_counts=True)
    observed: Counter[object] = Counter()
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        observed[table(tuple(row))] += count
    assert set(observed) <= {key for key, weight in expected.items() if weight > 0}
    assert sum(expected.values()) == 1
    keys = [key for key, weight in expected.items() if weight * STRATA >= 10]
    left = [key for key in expected if key not in keys]
    seen = [observed[key] for key in keys] + [sum(observed[key] for key in left)]
    wanted = [float(expected[key]) * STRATA for key in keys] + [
        float(sum(expected[key] for key in left)) * STRATA
    ]
    if wanted[-1] == 0:
        seen, wanted = seen[:-1], wanted[:-1]
    return float(stats.chisquare(seen, wanted).pvalue)


IDS = np.random.default_rng(9).permutation(STRATA * N).astype(np.uint64)
CODES = np.repeat(np.arange(STRATA, dtype=np.uint32), N)
VALUES = np.tile(np.array(SWAP), STRATA)
HELD = np.tile(np.array(HOLD), STRATA)


def sample(moves: Moves) -> np.ndarray:
    return moves.apply(VALUES).reshape(STRATA, N)


def test_rates_by_class() -> None:
    rates = (Fraction(1, 5), Fraction(2, 3))
    classes = np.tile(np.array([0, 1, 1, 0], np.uint16), STRATA)
    moves = draw_moves(Key.for_tests(1), ids=IDS, strata=CODES, rate=rates, classes=classes)
    law = selection_law((rates[0], rates[1], rates[1], rates[0]))
    assert check(outputs(law), sample(moves)) > FALSE_ALARM
    swapped = selection_law((rates[1], rates[0], rates[0], rates[1]))
    assert check(outputs(swapped), sample(moves)) < FALSE_ALARM


@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(2, 3)])
def test_no_vacuous_swap(p: Fraction) -> None:
    strata = StratumCodes(codes=CODES, sizes=np.full(STRATA, N, np.uint32))
    moves = draw_non_vacuous(Key.for_tests(2), IDS, strata, HELD, VALUES, p)
    law = selection_law((p,) * N)
    identity = tuple(range(N))
    kept = {g: w for g, w in law.items() if g == identity or table(tuple(SWAP[j] for j in g)) != table(SWAP)}
    total = sum(kept.values())
    assert check(outputs({g: w / total for g, w in kept.items()}), sample(moves)) > FALSE_ALARM
    assert check(outputs(law), sample(moves)) < FALSE_ALARM


def pairings() -> Iterator[list[tuple[int, int]]]:
    yield [(0, 1), (2, 3)]
    yield [(0, 2), (1, 3)]
    yield [(0, 3), (1, 2)]


def near_law(p: Fraction, weight: Fraction, apart: Callable[[int, int], int]) -> Law:
    """Law 4 by enumeration: g, pairing, and the choice in each pair that has one."""
    law: Law = {}
    near = weight / (1 + weight)
    for g, base in selection_law((p,) * N).items():
        for pairs in pairings():
            options: list[list[tuple[dict[int, int], Fraction]]] = []
            for i, j in pairs:
                if g[i] == i or g[j] == j or g[i] == j or g[j] == i:
                    options.append([({i: g[i], j: g[j]}, Fraction(1))])
                    continue
                straight = apart(SWAP[i], SWAP[g[i]]) + apart(SWAP[j], SWAP[g[j]])
                crossed = apart(SWAP[i], SWAP[g[j]]) + apart(SWAP[j], SWAP[g[i]])
                chance = Fraction(1, 2) if straight == crossed else near if straight < crossed else 1 - near
                options.append([({i: g[i], j: g[j]}, chance), ({i: g[j], j: g[i]}, 1 - chance)])
            for first, second in product(*options):
                image = {**first[0], **second[0]}
                h = tuple(image[i] for i in range(N))
                law[h] = law.get(h, Fraction(0)) + base * Fraction(1, 3) * first[1] * second[1]
    return law


def test_near_places() -> None:
    p, weight = Fraction(2, 3), Fraction(4)
    key = Key.for_tests(3)
    moves = draw_moves(key, ids=IDS, strata=CODES, rate=p)
    chosen = rearrange_pairs(key, IDS, CODES, moves, [VALUES], weight)
    law = near_law(p, weight, lambda a, b: int(a != b))
    assert check(outputs(law), sample(chosen)) > FALSE_ALARM
    assert check(outputs(selection_law((p,) * N)), sample(chosen)) < FALSE_ALARM
    assert (
        check(
            outputs(near_law(p, Fraction(1), lambda a, b: int(a != b))),
            sample(rearrange_pairs(key, IDS, CODES, moves, [VALUES], Fraction(1))),
        )
        > FALSE_ALARM
    )


def test_two_swaps_one_after_the_other() -> None:
    """Law 5 in pools of four with strata of two: the composition of the two draws."""
    wide, narrow = Fraction(1, 3), Fraction(1, 2)
    key = Key.for_tests(4)
    fine = np.repeat(np.arange(STRATA * 2, dtype=np.uint32), 2)
    first = draw_moves(key.bind("pools"), ids=IDS, strata=CODES, rate=wide).apply(VALUES)
    second = draw_moves(key.bind("strata"), ids=IDS, strata=fine, rate=narrow).apply(first).reshape(STRATA, N)
    pair = narrow * narrow / (1 - 2 * narrow * (1 - narrow))
    expected: Counter[object] = Counter()
    for g, weight in selection_law((wide,) * N).items():
        middle = tuple(SWAP[j] for j in g)
        for left, right in product((False, True), repeat=2):
            a = middle[1::-1] if left else middle[:2]
            b = middle[:1:-1] if right else middle[2:]
            chance = (pair if left else 1 - pair) * (pair if right else 1 - pair)
            expected[table((*a, *b))] += weight * chance  # type: ignore[assignment]
    assert check(expected, second) > FALSE_ALARM


def test_a_noisy_key() -> None:
    """Law 6a through the mechanism: pools of four, keys redrawn between 0 and 1, a swap within equal noisy keys."""
    rate, change = Fraction(1, 3), Fraction(1, 2)
    law: Law = {}
    for keys in product((0, 1), repeat=N):
        weight = Fraction(1)
        for key, true in zip(keys, HOLD, strict=True):
            weight *= change / 2 + (1 - change if key == true else 0)
        for g in permutations(range(N)):
            if any(keys[i] != keys[j] for i, j in enumerate(g)):
                continue
            chance = weight
            for key in set(keys):
                inside = [i for i in range(N) if keys[i] == key]
                m, k = len(inside), sum(g[i] != i for i in inside)
                if m > 1:
                    chance *= rate**k * (1 - rate) ** (m - k) / DERANGEMENTS[k]
                    chance /= 1 - m * rate * (1 - rate) ** (m - 1)
            law[g] = law.get(g, Fraction(0)) + chance
    schema = {"geography": {"spine": ["pool"]}, "record": {"household": {"id": "hid"}}}
    data = pa.table({"hid": IDS, "pool": CODES, "size": HELD, "shop": VALUES})
    mechanism = NoisyKey(match=["pool", "size"], swap=["shop"], rate=rate, noisy="size", change=change)
    release = mechanism.release(Census.of(schema, {"household": data}), key=Key.for_tests(6))
    after = release.microdata["household"].sort_by([("pool", "ascending"), ("size", "ascending")])
    assert check(outputs(law), after["shop"].to_numpy().reshape(STRATA, N)) > FALSE_ALARM
