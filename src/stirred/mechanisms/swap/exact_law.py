"""Enumerate the exact law of a swap of a small census, and make copies of a census for repeated draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import permutations
from math import factorial, prod
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from stirred.census.schema import VariableSchema
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.contents import MAX_OUTPUTS, Content, Law, Row, make_content, rows_of
from stirred.mechanisms.swap.config import Roles
from stirred.mechanisms.swap.frame import Frame, count_table
from stirred.mechanisms.swap.strata import NO_STRATUM
from stirred.spec.laws import count_derangements

if TYPE_CHECKING:
    from stirred.census import Census


# The exact law of a swap of a small census: every permutation with its probability, and what each of them releases.
#
# A record is selected with its own chance, a lone selection is drawn again, and the selected records are deranged
# uniformly: $\Pr(g) \propto \prod_{i\ \mathrm{moved}} o_i \,/\, d(k)$ within each stratum, with strata
# independent of each other.

Permutation = tuple[int, ...]
PermutationLaw = Mapping[Permutation, Fraction]


@lru_cache(maxsize=64)
def enumerate_selection(chances: tuple[Fraction, ...]) -> PermutationLaw:
    """Return the law of one stratum whose records have these chances to be selected.

    >>> enumerate_selection((Fraction(1, 2), Fraction(1, 2)))[(1, 0)]
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
        found[g] = scale * prod((odds[i] for i in moved), start=Fraction(1)) / count_derangements(len(moved))
    return found


def combine_strata(
    codes: Sequence[int], law: Callable[[list[int]], PermutationLaw], *, rows: int
) -> PermutationLaw | None:
    """Combine the laws of all strata into one law, or return None if it has too many permutations."""
    groups = [[i for i in range(rows) if codes[i] == code] for code in sorted({*codes} - {int(NO_STRATUM)})]
    if prod(factorial(len(group)) for group in groups) > MAX_OUTPUTS:
        return None
    found: dict[Permutation, Fraction] = {tuple(range(rows)): Fraction(1)}
    for group in groups:
        inside = law(group)
        found = {
            _embed_permutation(g, group, h): chance * more
            for g, chance in found.items()
            for h, more in inside.items()
            if more
        }
    return found


def _embed_permutation(g: Permutation, group: Sequence[int], inside: Permutation) -> Permutation:
    """Return a permutation of all records that also permutes this group."""
    after = list(g)
    for i, j in zip(group, inside, strict=True):
        after[i] = group[j]
    return tuple(after)


def enumerate_moves(frame: Frame, chances: Sequence[Fraction]) -> PermutationLaw | None:
    """Return the law of Algorithm 1 in the strata of a frame, with a chance for each record."""
    return _enumerate_cached(tuple(frame.strata.codes.tolist()), tuple(chances))


@lru_cache(maxsize=8)
def _enumerate_cached(codes: tuple[int, ...], chances: tuple[Fraction, ...]) -> PermutationLaw | None:
    """Return the law and cache it, because the data sets of one universe share their strata."""
    return combine_strata(
        codes, lambda group: enumerate_selection(tuple(chances[i] for i in group)), rows=len(codes)
    )


def enumerate_releases(
    frame: Frame, law: PermutationLaw | None, *, microdata: bool, tables: Sequence[tuple[str, ...]]
) -> Law | None:
    """Return what a swap releases under each permutation, or None if linked records are released too."""
    if law is None or any(group.words.shape[0] for group in frame.members):
        return None
    rows = _read_rows(frame)
    found: dict[Content, Fraction] = {}
    for g, chance in law.items():
        after = [rows(i, j) for i, j in enumerate(g)]
        told: dict[str, list[Row]] = {frame.roles.record_type: after} if microdata else {}
        told |= {" × ".join(by): _count_rows(frame, g, by) for by in tables}
        key = make_content(told)
        found[key] = found[key] + chance if key in found else chance
    return found


def _read_rows(frame: Frame) -> Callable[[int, int], Row]:
    """Return a function that gives the released row of record i with the place of record j."""
    names = sorted(frame.roles.released_variables)
    moving = {*frame.roles.moving_variables}
    own = rows_of(pl.DataFrame({name: pl.Series(frame.columns[name].arrow()) for name in names}))
    places = [name in moving for name in names]

    @cache
    def row(i: int, j: int) -> Row:
        return tuple(own[j][k] if moves else own[i][k] for k, moves in enumerate(places))

    return row


def _count_rows(frame: Frame, g: Permutation, by: tuple[str, ...]) -> list[Row]:
    """Return the rows of one table of the swapped records."""
    moved = {
        name: frame.columns[name].take_rows(np.array(g, np.uint32)) for name in frame.roles.moving_variables
    }
    return rows_of(frame_of(count_table({**frame.columns, **moved}, by)))


# A census that holds many copies of a small one, each a stratum of its own: one swap of it is many independent swaps.


def copy_census(census: "Census", record_type: str, copies: int) -> tuple["Census", str]:
    """Return a census of independent copies and the variable that numbers them, without linked records."""
    schema, record = census.schema, census.schema.record(record_type)
    frame = collect_frame(census.scan(record_type, list(census.columns(record_type))))
    name = "copy"
    while name in frame.columns:
        name += "_"
    number = VariableSchema(name=name, kind="integer", levels=range(copies))
    own = [*record.variables] if record.variables else [VariableSchema(name=c) for c in frame.columns]
    alone = replace(schema, records=(replace(record, variables=(*own, number)),))
    rows = frame[np.tile(np.arange(frame.height), copies)]
    rows = rows.with_columns(pl.Series(name, np.repeat(np.arange(copies), frame.height)))
    if record.id:
        rows = rows.with_columns(pl.Series(record.id, np.arange(1, rows.height + 1)))
    return type(census)(schema=alone, files={record_type: rows.lazy()}, folder=census.folder), name


def settings_of_copies(match: Sequence[str], roles: Roles, name: str) -> dict[str, object]:
    """Return the settings of a swap within copies, with guards that refuse nothing."""
    held = [column for column in roles.held_variables if column != name]
    return {
        "match": [*match, name],
        "release_identifiers": dict.fromkeys([name, *held], "copies"),
        "accept_reversal": held,
    }
