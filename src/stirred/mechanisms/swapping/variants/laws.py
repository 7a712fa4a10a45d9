"""The laws of the swapping variants for the enumeration oracle, written from their definitions, in fractions."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product

from stirred.mechanisms.swapping.variants.enumeration import (
    Labels,
    Law,
    Loss,
    Permutation,
    all_permutations,
    apply,
    largest_loss_of,
    repeat_labels,
    selection_law,
    swapping_law,
    tabulate,
)

Distance = Callable[[int, int], int]


def held_law(chance_of: Mapping[int, Fraction]) -> Law:
    """Return law 1a: the chance depends on the record's hold value."""
    return selection_law(lambda hold, _: [chance_of[h] for h in hold])


def place_law(chance_of: Mapping[tuple[int, int], Fraction]) -> Law:
    """Return law 1b: the chance depends on the record's hold and swap values."""
    return selection_law(lambda hold, swap: [chance_of[cell] for cell in zip(hold, swap, strict=True)])


def rarity_law(common: Fraction, unique: Fraction, group: Callable[[int], int] = int) -> Law:
    """Return law 1c with c = 1: a record unique in its group and place has its own probability."""

    def chances(hold: Labels, swap: Labels) -> list[Fraction]:
        cells = [(group(h), s) for h, s in zip(hold, swap, strict=True)]
        return [unique if cells.count(cell) == 1 else common for cell in cells]

    return selection_law(chances)


def nonvacuous_law(p: Fraction) -> Law:
    """Return law 3: the swap, given that no record was selected or the table changed."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        identity = tuple(range(len(hold)))
        before = tabulate(hold, swap)
        kept = {
            g: chance
            for g, chance in psa(hold, swap).items()
            if chance and (g == identity or tabulate(hold, apply(g, swap)) != before)
        }
        total = sum(kept.values(), Fraction(0))
        return {g: chance / total for g, chance in kept.items()}

    return law


@cache
def pairings(n: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return all ways to pair n records, one left over if n is odd.

    >>> len(pairings(4)), len(pairings(5))
    (3, 15)
    """

    def of(items: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
        if len(items) < 2:
            return [()]
        first, rest = items[0], items[1:]
        found = [
            ((first, other), *more) for other in rest for more in of(tuple(x for x in rest if x != other))
        ]
        if len(items) % 2:
            found += of(rest)  # the first record has no partner
        return found

    return tuple(of(tuple(range(n))))


def near_law(p: Fraction, preference: Fraction, away: Distance) -> Law:
    """Return law 4: draw g, pair all records, choose the arrangement of each exchangeable pair by distance."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        result: dict[Permutation, Fraction] = {}
        ways = pairings(n)
        for g, chance in psa(hold, swap).items():
            for pairing in ways:
                open_pairs = [
                    (i, j) for i, j in pairing if g[i] != i and g[j] != j and g[i] != j and g[j] != i
                ]
                for exchanged in product((False, True), repeat=len(open_pairs)):
                    after, weight = list(g), chance / len(ways)
                    for (i, j), flip in zip(open_pairs, exchanged, strict=True):
                        stay = away(swap[i], swap[g[i]]) + away(swap[j], swap[g[j]])
                        cross = away(swap[i], swap[g[j]]) + away(swap[j], swap[g[i]])
                        chosen, other = (cross, stay) if flip else (stay, cross)
                        if chosen == other:
                            weight /= 2
                        else:
                            weight *= (preference if chosen < other else Fraction(1)) / (1 + preference)
                        if flip:
                            after[i], after[j] = g[j], g[i]
                    key = tuple(after)
                    result[key] = result.get(key, Fraction(0)) + weight
        return result

    return law


def stratified_law(
    p: Fraction, stratum: Callable[[int], int] | None = None, keys: Sequence[int] | None = None
) -> Law:
    """Return Algorithm 1 in several strata, given by a function of the hold value or record by record."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        del swap  # places have no effect
        marks = list(keys) if keys is not None else [stratum(h) if stratum else 0 for h in hold]
        result: dict[Permutation, Fraction] = {}
        groups = [[i for i, mark in enumerate(marks) if mark == m] for m in sorted(set(marks))]
        for g in all_permutations(len(hold)):
            if any(marks[i] != marks[j] for i, j in enumerate(g)):
                continue
            chance = Fraction(1)
            for group in groups:
                inside = tuple(group.index(g[i]) for i in group)
                if len(group) > 1:
                    chance *= psa(tuple(group), tuple(group))[inside]
            result[g] = chance
        return result

    return law


def chain_law(first: Law, second: Law) -> Law:
    """Return the law of one swap after the other; the second must not depend on the swap values."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        result: dict[Permutation, Fraction] = {}
        later = second(hold, swap)
        for g, chance in first(hold, swap).items():
            for f, more in later.items():
                key = tuple(g[j] for j in f)
                result[key] = result.get(key, Fraction(0)) + chance * more
        return result

    return law


def unit_matching_law(p: Fraction, alpha: Fraction, stratum: Callable[[int], int]) -> Law:
    """Return law 5: PSA(αp) in the pool, then PSA((1−α)p) in the strata."""
    return chain_law(swapping_law(alpha * p), stratified_law((1 - alpha) * p, stratum))


def noisy_key_law(
    p: Fraction, kernel: Mapping[int, Mapping[int, Fraction]], stratum: Callable[[int], int]
) -> Law:
    """Return law 6a: every record draws a noisy stratum, then Algorithm 1 runs within these strata."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        options = [kernel[stratum(h)] for h in hold]
        result: dict[Permutation, Fraction] = {}
        for keys in product(*options):
            weight = Fraction(1)
            for key, option in zip(keys, options, strict=True):
                weight *= option[key]
            for g, chance in stratified_law(p, keys=keys)(hold, swap).items():
                result[g] = result.get(g, Fraction(0)) + weight * chance
        return result

    return law


SMALL_MARGINS = (((1, 1, 1, 1), (1, 1, 1, 1)), ((2, 2), (2, 2)), ((2, 1, 1), (2, 1, 1)))


def example_law(law: str, p: Fraction, **parameters: Fraction) -> Law:
    """Return a law of each variant at given rates, on strata of four records with places 0 … 3."""
    high = parameters.get("highest", p)
    other = (
        parameters.get("change", Fraction(1, 2)) / 2
    )  # redrawn between two keys, half of the time the same
    kernel = {0: {0: 1 - other, 1: other}, 1: {0: other, 1: 1 - other}}
    makers: dict[str, Callable[[], Law]] = {
        "1a": lambda: held_law({h: high if h > 1 else p for h in range(4)}),
        "1b": lambda: place_law({(h, s): high if (h + s) % 2 else p for h in range(4) for s in range(4)}),
        "1c": lambda: rarity_law(p, high, lambda h: h // 2),
        "3": lambda: nonvacuous_law(p),
        "4": lambda: near_law(p, parameters.get("preference", Fraction(1)), lambda a, b: abs(a - b)),
        "5": lambda: unit_matching_law(p, parameters["alpha"], lambda h: h // 2),
        "6a": lambda: noisy_key_law(p, kernel, lambda h: h // 2),
    }
    return makers[law]() if law in makers else swapping_law(p)


@cache
def find_loss(law: str, p: Fraction, parameters: tuple[tuple[str, Fraction], ...] = ()) -> Loss:
    """Return the largest loss of a variant on a few universes of four records, a lower bound on any budget.

    >>> find_loss("2", Fraction(1, 2)).budget.exact
    '1/2*ln(9)'
    """
    made = example_law(law, p, **dict(parameters))
    return max(
        (largest_loss_of(made, repeat_labels(hold), repeat_labels(swap)) for hold, swap in SMALL_MARGINS),
        key=lambda loss: loss.budget,
    )
