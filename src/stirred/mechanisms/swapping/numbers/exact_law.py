r"""The exact law of a swap of a small census: every permutation with its probability, and what each of them releases.

A record is selected with its own chance, a lone selection is drawn again, and the selected records are deranged uniformly:
$\Pr(g) \propto \prod_{i\ \mathrm{moved}} o_i \,/\, d(k)$ within each stratum, with strata independent of each other.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import permutations
from math import factorial, prod

import numpy as np
import polars as pl

from stirred.frames import frame_of
from stirred.mechanisms.contents import LARGEST, Content, Law, Row, rows_of, shown
from stirred.mechanisms.swapping.draw.strata import OUT
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import table
from stirred.spec.laws.derangements import derangements

Permutation = tuple[int, ...]
PermutationLaw = Mapping[Permutation, Fraction]


@lru_cache(maxsize=64)
def selection(chances: tuple[Fraction, ...]) -> PermutationLaw:
    """The law of one stratum whose records have these chances to be selected.

    >>> selection((Fraction(1, 2), Fraction(1, 2)))[(1, 0)]
    Fraction(1, 2)
    """
    n = len(chances)
    if n < 2:
        return {tuple(range(n)): Fraction(1)}
    odds = [p / (1 - p) for p in chances]
    nobody = prod((1 - p for p in chances), start=Fraction(1))
    scale = nobody / (1 - nobody * sum(odds, Fraction(0)))
    found = {}
    for g in permutations(range(n)):
        moved = [i for i in range(n) if g[i] != i]
        found[g] = scale * prod((odds[i] for i in moved), start=Fraction(1)) / derangements(len(moved))
    return found


def in_strata(
    codes: Sequence[int], law: Callable[[list[int]], PermutationLaw], *, rows: int
) -> PermutationLaw | None:
    """The law of all records from the law of each stratum's; None where there are too many permutations."""
    groups = [[i for i in range(rows) if codes[i] == code] for code in sorted({*codes} - {int(OUT)})]
    if prod(factorial(len(group)) for group in groups) > LARGEST:
        return None
    found: dict[Permutation, Fraction] = {tuple(range(rows)): Fraction(1)}
    for group in groups:
        inside = law(group)
        found = {
            _placed(g, group, h): chance * more
            for g, chance in found.items()
            for h, more in inside.items()
            if more
        }
    return found


def _placed(g: Permutation, group: Sequence[int], inside: Permutation) -> Permutation:
    """A permutation of all records that permutes this group too."""
    after = list(g)
    for i, j in zip(group, inside, strict=True):
        after[i] = group[j]
    return tuple(after)


def by_record(frame: Frame, chances: Sequence[Fraction]) -> PermutationLaw | None:
    """Algorithm 1 in the strata of a frame, with a chance for each record."""
    return _selected(tuple(frame.strata.codes.tolist()), tuple(chances))


@lru_cache(maxsize=8)
def _selected(codes: tuple[int, ...], chances: tuple[Fraction, ...]) -> PermutationLaw | None:
    """The data sets of one universe share their strata, and often the law."""
    return in_strata(codes, lambda group: selection(tuple(chances[i] for i in group)), rows=len(codes))


def released_law(
    frame: Frame, law: PermutationLaw | None, *, microdata: bool, tables: Sequence[tuple[str, ...]]
) -> Law | None:
    """What a swap releases under each permutation; None where linked records are released too."""
    if law is None or any(group.words.shape[0] for group in frame.members):
        return None
    rows = _rows(frame)
    found: dict[Content, Fraction] = {}
    for g, chance in law.items():
        after = [rows(i, j) for i, j in enumerate(g)]
        told: dict[str, list[Row]] = {frame.roles.record_type: after} if microdata else {}
        told |= {" × ".join(by): _counted(frame, g, by) for by in tables}
        key = shown(told)
        found[key] = found[key] + chance if key in found else chance
    return found


def _rows(frame: Frame) -> Callable[[int, int], Row]:
    """The released row of record i with the place of record j, as a text."""
    names = sorted(frame.roles.released)
    moving = {*frame.roles.moving}
    own = rows_of(pl.DataFrame({name: pl.Series(frame.columns[name].arrow()) for name in names}))
    places = [name in moving for name in names]

    @cache
    def row(i: int, j: int) -> Row:
        return tuple(own[j][k] if moves else own[i][k] for k, moves in enumerate(places))

    return row


def _counted(frame: Frame, g: Permutation, by: tuple[str, ...]) -> list[Row]:
    """The rows of one table of the swapped records."""
    moved = {name: frame.columns[name].taken(np.array(g, np.uint32)) for name in frame.roles.moving}
    return rows_of(frame_of(table({**frame.columns, **moved}, by)))
