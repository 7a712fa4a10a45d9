"""All small strata by their margins, and the loss of a swap with noise after it: only tests enumerate these."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from stirred.mechanisms.swap.enumeration import (
    Labels,
    Law,
    Loss,
    distance,
    largest_of,
    outputs,
    repeat_labels,
    universe,
)


def partitions(n: int, *, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Margins: partitions of n into positive parts, largest first.

    >>> list(partitions(3))
    [(3,), (2, 1), (1, 1, 1)]
    """
    if n == 0:
        yield ()
        return
    for first in range(min(n, most or n), 0, -1):
        for rest in partitions(n - first, most=first):
            yield (first, *rest)


def shapes(n: int) -> list[tuple[Labels, Labels]]:
    """Every pair of margins of a stratum of n records with at least two types on both sides."""
    sides = [repeat_labels(margins) for margins in partitions(n) if len(margins) >= 2]
    return [(hold, swap) for hold in sides for swap in sides]


def noised_loss(law: Law, hold: Labels, swap: Labels, q: Fraction) -> Loss:
    r"""Law 6b on a 2×2 universe: the upper left count of the swapped table plus noise with $P(z) \propto q^{|z|}$.

    Beyond the range of the counts every ratio is constant, so one step beyond it is enough.

    >>> from stirred.mechanisms.swap.enumeration import swapping_law
    >>> str(noised_loss(swapping_law(Fraction(1, 4)), (0, 1), (0, 1), Fraction(1, 2)).budget.upper(3))
    '0.274'
    """
    n = len(hold)
    sets = universe(hold, swap)
    laws: list[dict[object, Fraction]] = []
    for arrangement in sets.values():
        counts: dict[int, Fraction] = {}
        for table, chance in outputs(law, hold, arrangement).items():
            count = dict(table).get((0, 0), 0)  # type: ignore[call-overload]
            counts[count] = counts.get(count, Fraction(0)) + chance
        laws.append(
            {y: sum((c * q ** abs(y - z) for z, c in counts.items()), Fraction(0)) for y in range(-1, n + 2)}
        )
    tables = list(sets)
    units = np.array([[distance(a, b) for b in tables] for a in tables])
    return largest_of(laws, units, tables)
