"""Buckets of partners: the best free partner of another area, as a scan finds it, and never twice."""

from fractions import Fraction

import numpy as np
import pytest

from stirred.chance import Key
from stirred.mechanisms.swap.pairs import (
    FREE,
    Buckets,
    Pairing,
    Tier,
    draw_exponential,
    draw_pairs,
    number_densely,
    order_by_risk,
    round_at_random,
    share_total,
)


def scanned(
    tiers: list[Tier], own: np.ndarray, order: np.ndarray, seekers: np.ndarray
) -> list[tuple[int, int]]:
    """The pairs that a scan of all records finds."""
    free, pairs = np.ones(own.size, bool), []
    for seeker in seekers:
        if not free[seeker]:
            continue
        for tier in tiers:
            found = [
                row
                for row in order
                if free[row]
                and tier.partners[row]
                and own[row] != own[seeker]
                and tier.groups[row] == tier.groups[seeker] >= 0
            ]
            if found:
                pairs.append((int(seeker), int(found[0])))
                free[[seeker, found[0]]] = False
                break
    return pairs


@pytest.mark.parametrize("seed", range(40))
def test_buckets_find_what_a_scan_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    own = rng.integers(0, rng.integers(1, 9), n)
    tiers = [
        Tier(groups=rng.integers(-1, 5, n), partners=rng.random(n) < 0.8),
        Tier(groups=rng.integers(0, 2, n), partners=np.ones(n, bool)),
    ]
    order, seekers = rng.permutation(n), rng.permutation(n)[: n // 2]
    pairing = Pairing.of(np.ones(n, bool))
    Buckets.of(tiers, own, order).pair(
        pairing, seekers, level=0, must=False,
        quota_of=np.zeros(n, np.int64), quota=np.full(1, n), done=np.zeros(1, np.int64),
    )  # fmt: skip
    expected = scanned(tiers, own, order, seekers)
    assert sorted(expected) == sorted(
        (int(row), int(pairing.partner[row])) for row in np.flatnonzero(pairing.begun)
    )
    assert (pairing.partner[pairing.partner[pairing.moved_mask]] == np.flatnonzero(pairing.moved_mask)).all()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cycle", [3, 5])
def test_cycles_are_what_a_scan_finds(seed: int, cycle: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    own = rng.integers(0, rng.integers(1, 9), n)
    groups, can = rng.integers(-1, 3, n), rng.random(n) < 0.8
    order, seekers = rng.permutation(n), rng.permutation(n)[: n // 2]
    free = np.ones(n, bool)
    expected: dict[int, int] = {}
    for seeker in seekers:
        ring = [int(seeker)]
        while free[seeker] and groups[seeker] >= 0 and len(ring) < cycle:
            there = [
                int(row)
                for row in order
                if free[row] and can[row] and groups[row] == groups[seeker] and row not in ring
                and own[row] not in (own[ring[0]], own[ring[-1]])
            ]  # fmt: skip
            if not there:
                break
            ring.append(there[0])
        if len(ring) > 1:
            free[ring] = False
            expected |= dict(zip(ring, [*ring[1:], ring[0]], strict=True))
    pairing = Pairing.of(np.ones(n, bool))
    Buckets.of([Tier(groups=groups, partners=can)], own, order).pair(
        pairing, seekers, level=0, must=False, cycle=cycle,
        quota_of=np.zeros(n, np.int64), quota=np.full(1, n), done=np.zeros(1, np.int64),
    )  # fmt: skip
    moved = np.flatnonzero(pairing.moved_mask)
    assert {int(row): int(pairing.partner[row]) for row in moved} == expected
    assert (own[moved] != own[pairing.partner[moved]]).all()
    assert sorted(pairing.partner[moved]) == sorted(moved)


def test_a_quota_ends_the_swaps_of_an_area() -> None:
    own = np.array([0, 0, 0, 1, 1, 1])
    tier = Tier(groups=np.zeros(6, np.int64), partners=np.ones(6, bool))
    pairing, done = Pairing.of(np.ones(6, bool)), np.zeros(2, np.int64)
    Buckets.of([tier], own, np.arange(6)).pair(
        pairing, np.arange(3), level=0, must=False, quota_of=own, quota=np.array([2, 0]), done=done
    )
    assert done.tolist() == [2, 0]
    assert (pairing.state == FREE).sum() == 2


def test_who_must_and_cannot_is_no_partner_later() -> None:
    own = np.array([0, 0, 1])
    tiers = [Tier(groups=np.array([0, 1, 1]), partners=np.ones(3, bool))]
    pairing = Pairing.of(np.ones(3, bool))
    Buckets.of(tiers, own, np.arange(3)).pair(
        pairing, np.array([0]), level=0, must=True,
        quota_of=np.zeros(3, np.int64), quota=np.full(1, 9), done=np.zeros(1, np.int64),
    )  # fmt: skip
    assert pairing.failed.tolist() == [True, False, False]
    assert pairing.state[0] != FREE


def test_dense_numbers_do_not_depend_on_the_room() -> None:
    numbers = np.random.default_rng(1).integers(0, 50, 200)
    assert all(
        (a == b).all()
        for a, b in zip(number_densely(numbers, 50), number_densely(numbers, 1 << 40), strict=True)
    )


def test_the_logarithm_is_right() -> None:
    words = np.random.default_rng(1).integers(0, 2**63, 1000, dtype=np.uint64) * np.uint64(2)
    uniform = ((words >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
    assert np.allclose(draw_exponential(words), -np.log(uniform), rtol=1e-14, atol=1e-16)


def test_risk_decides_who_is_first() -> None:
    """The first of two records with risks 1 and 1/3 is the first one in three of four draws."""
    ids, risk = np.array([7, 9], np.uint64), np.array([1.0, 1 / 3])
    first = sum(int(order_by_risk(Key.for_tests(k), ("t", 0), ids, risk)[0] == 0) for k in range(800))
    assert abs(first / 800 - 0.75) < 0.06


def test_shares_are_rounded_with_their_sum_and_mean() -> None:
    sizes = np.array([3, 50, 7, 40])
    drawn = np.array([share_total(Key.for_tests(k).stream("a"), 7, sizes) for k in range(400)])
    assert (drawn.sum(axis=1) == 7).all()
    assert (np.abs(drawn - 7 * sizes / 100) < 1).all()
    assert np.allclose(drawn.mean(axis=0), 7 * sizes / 100, atol=0.12)
    assert {round_at_random(Key.for_tests(k).stream("b"), Fraction(5, 2)) for k in range(20)} == {2, 3}


def test_seekers_have_keys_of_their_own() -> None:
    """Who begins a swap does not follow the order in which partners are taken.

    Two areas of five alike households, one swap: who begins it is the first partner of its area in a fifth of 300 keys. More
    than 120 of 300 have a probability below 1e-12; with one key for both orders it would be all 300.
    """
    n, area = 10, np.repeat([0, 1], 5)
    ids, risk = np.arange(n, dtype=np.uint64), np.ones(n)
    first = 0
    for seed in range(300):
        run = Key.for_tests(seed)
        pairing = draw_pairs(
            run, ids=ids, taking_part=np.ones(n, bool), areas=[area], profiles=[np.zeros(n, np.int64)], risks=[risk],
            must=np.ones(n, np.int8), rate=Fraction(1, 5),
        )  # fmt: skip
        (seeker,) = np.flatnonzero(pairing.begun)
        order = order_by_risk(run, ("targeted", 0), ids, risk)
        first += int(order[area[order] == area[seeker]][0] == seeker)
    assert 20 < first <= 120
