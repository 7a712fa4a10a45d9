"""The law of a permutation swap, from its definition: every permutation of every stratum, in exact fractions.

Each record of a stratum is selected with probability p; a selection of exactly one is drawn again; the selected records'
swap values are deranged uniformly. What is released is the multiset of households after the swap.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import comb
from typing import Any

from oracles.towns import Home, Town

Law = dict[Any, Fraction]


@lru_cache(maxsize=64)
def permutation_law(n: int, rate: Fraction) -> tuple[tuple[tuple[int, ...], Fraction], ...]:
    """Every permutation of n records with its probability."""
    moved = [(g, sum(i != j for i, j in enumerate(g))) for g in permutations(range(n))]
    number = {k: sum(size == k for _, size in moved) for _, k in moved}
    weight = [(g, comb(n, k) * rate**k * (1 - rate) ** (n - k) / number[k]) for g, k in moved]
    total = sum((w for _, w in weight), Fraction(0))
    # all selections but those of one record, which are drawn again
    assert total == 1 - n * rate * (1 - rate) ** (n - 1)
    return tuple((g, w / total) for g, w in weight)


def swap_law(
    homes: Sequence[Home], match: Sequence[str], swap: Sequence[str], hidden: Sequence[str], rate: Fraction
) -> Law:
    """What a swap of these households releases: sorted households without the hidden variables, with their probability."""
    strata: dict[tuple[str, ...], list[Home]] = {}
    for home in homes:
        at = dict(home.values)
        strata.setdefault(tuple(at[name] for name in match), []).append(home)
    law: Law = {(): Fraction(1)}
    for _, members in sorted(strata.items()):
        inside: Law = {}
        for g, chance in permutation_law(len(members), rate):
            shown = tuple(sorted(_released(members, g, swap, hidden)))
            inside[shown] = inside.get(shown, Fraction(0)) + chance
        law = _joined(law, inside)
    return law


def _joined(law: Law, inside: Law) -> Law:
    found: Law = {}
    for one, p in law.items():
        for other, q in inside.items():
            key = tuple(sorted((*one, *other)))
            found[key] = found.get(key, Fraction(0)) + p * q
    return found


def _released(
    members: Sequence[Home], g: Sequence[int], swap: Sequence[str], hidden: Sequence[str]
) -> Iterator[Any]:
    for home, giver in zip(members, g, strict=True):
        at, place = dict(home.values), dict(members[giver].values)
        values = {**at, **{name: place[name] for name in swap}}
        yield (tuple((n, v) for n, v in sorted(values.items()) if n not in hidden), home.persons)


def universe_laws(
    town: Town,
    places: Sequence[int],
    match: Sequence[str],
    swap: Sequence[str],
    hidden: Sequence[str],
    rate: Fraction,
) -> list[Law]:
    """The law of each of these data sets."""
    return [
        swap_law([town.kinds[kind] for kind in town.data[place]], match, swap, hidden, rate)
        for place in places
    ]
