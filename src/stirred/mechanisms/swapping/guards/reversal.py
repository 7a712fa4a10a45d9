"""Measure how far held columns undo a swap: how well they predict the swapped variables on the released file alone.

Survey weights that are constant within an enumeration area, or a postcode that follows from the district, stay with
the household when its place is swapped. Most records are not swapped, so the released file shows which value belongs
to which place, and the swapped records can be put back. The measure uses nothing but the released file, so it is
post-processing: it costs no protection loss.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.languages import Phrase

REFUSED_SHARE = 0.5  # of the way from chance to what a column that tells the place would reach: from here on it is refused
MAX_COLUMNS_PAIRED = 6  # columns from which sets of two are tried
RECORDS_PER_BIN = 10  # records of a bin, where numbers are tried in bins
MIN_RECORDS_TESTED = 50  # records with a value: fewer say nothing
PERMUTATIONS_PER_TARGET = 2  # permutations from which chance is measured
MIN_SHARE_UNMOVED = (
    0.25  # of the records that are assumed to stand where they stood, however high the swap rate is
)

Codes = NDArray[np.int64]
Form = tuple[Codes, Codes]  # the group of each row, and the record that is swapped to which the row belongs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """How well some held columns predict a swapped variable: the share of records guessed right from others."""

    columns: tuple[str, ...]
    place: tuple[str, ...]  # the swapped variables that are predicted
    guessed: float
    chance: float  # the same with the swapped variables permuted within strata
    unmoved: float = 1.0  # the share of records that stand where they stood
    rows: int = 0  # that were measured

    @property
    def share(self) -> float:
        """Return how far the guesses are from chance (0) to those of a column that tells the place (1).

        Such a column guesses the unmoved records right, and of the moved ones as many as chance gives. Two standard
        errors of a share are allowed for: in a small file some column is always lucky.
        """
        way = self.unmoved * (1 - self.chance)
        lucky = max(self.rows, 1) ** -0.5
        return min(1.0, max(0.0, (self.guessed - self.chance - lucky) / way)) if way > 0 else 0.0

    def words(self) -> Phrase:
        """Return the finding as a phrase."""
        return Phrase(
            "guard.guesses",
            columns=reduce(_join_names, self.columns),
            place=" × ".join(self.place),
            guessed=Phrase("guard.share", number=round(100 * self.guessed)),
            chance=Phrase("guard.share", number=round(100 * self.chance)),
        )

    def __str__(self) -> str:
        return str(self.words())


def _join_names(first: str, second: str) -> str:
    return Phrase("guard.with", first=first, second=second)


@dataclass(frozen=True, slots=True)
class _Places:
    """The swapped variables of the swapped records, as released and permuted within strata."""

    names: tuple[str, ...]
    codes: Codes
    mixed: tuple[Codes, ...]
    usual: NDArray[np.float64]  # the share of the most frequent place in the stratum of each record


def measure_reversals(
    released: pl.DataFrame,
    *,
    match: Sequence[str],
    swap: Sequence[str],
    held: Sequence[str],
    rate: float = 0.0,
    unit: str = "",
) -> tuple[Reversal, ...]:
    """Measure what every held column, and pairs of the best ones, predict; return the best first.

    A record is guessed from all other records that have the same values in these columns, within its stratum and in the
    whole file: the most frequent place among them. Each swapped variable is predicted alone, and all together. What
    chance gives is measured in the same way after the places were permuted within strata. With ``unit`` the rows
    are members of the records that are swapped, which it numbers: equal members of one record count once.

    >>> released = pl.DataFrame({"area": ["a", "b"] * 40, "weight": [1.5, 2.5] * 40, "rooms": [1, 1, 2, 2] * 20})
    >>> for found in measure_reversals(released, match=[], swap=["area"], held=["weight", "rooms"]):
    ...     print(found.columns, round(found.share, 1))
    ('weight',) 0.8
    ('weight', 'rooms') 0.8
    ('rooms',) 0.0
    """
    if released.height < MIN_RECORDS_TESTED or not swap or not held:
        return ()
    owner, first = _number_owners(released, unit)
    homes = released[first] if unit else released
    strata, places = _code_rows(homes, match), _list_targets(homes, swap, _code_rows(homes, match))
    unmoved = max(1 - rate, MIN_SHARE_UNMOVED)
    known = {name: _group_column(released[name], owner, several=bool(unit)) for name in held}
    singles = [_find_best_form((name,), known[name], strata, places, unmoved) for name in held]
    singles.sort(key=lambda found: -found.share)
    tried = sorted((found.columns[0] for found in singles[:MAX_COLUMNS_PAIRED]), key=list(held).index)
    pairs = [
        _find_best_form(pair, _group_pair(released, pair, owner, several=bool(unit)), strata, places, unmoved)
        for pair in itertools.combinations(tried, 2)
    ]
    return tuple(sorted([*singles, *pairs], key=lambda found: (-round(found.share, 1), len(found.columns))))


def _number_owners(released: pl.DataFrame, unit: str) -> tuple[Codes, Codes]:
    """Return the number of the swapped record of each row, and the first row of each swapped record."""
    if not unit:
        return np.arange(released.height), np.empty(0, np.int64)
    _, first, owner = np.unique(released[unit].to_numpy(), return_index=True, return_inverse=True)
    return owner.astype(np.int64), first.astype(np.int64)


def _list_targets(homes: pl.DataFrame, swap: Sequence[str], strata: Codes) -> list[_Places]:
    """List what is predicted: each swapped variable, the one with the fewest values first, and all together."""
    orders = [_permute_within(strata, seed) for seed in range(PERMUTATIONS_PER_TARGET)]
    found: dict[int, _Places] = {}
    for names in (*((name,) for name in swap), tuple(swap)):
        codes = _code_rows(homes, names)
        number = int(codes.max(initial=0))
        if number > 1 and number not in found:
            mixed = tuple(codes[order] for order in orders)
            found[number] = _Places(names, codes, mixed, _usual_share(strata, codes))
    chain = [found[number] for number in sorted(found)]
    # a column that tells a level between two others tells the one above it too
    between = [one for one in chain[1:-1] if not _is_determined(chain[0].codes, one.codes)]
    return [chain[0], *between, chain[-1]] if len(chain) > 1 else chain


def _is_determined(coarse: Codes, fine: Codes) -> bool:
    """Return whether the fine value determines the coarse one."""
    return np.unique(_join_codes(coarse, fine)).size == np.unique(fine).size


def _group_column(values: pl.Series, owner: Codes, *, several: bool) -> list[Form]:
    """Group the rows of a column by value, without its most frequent value, and numbers also in bins.

    Rows without a value are left out. Coordinates lie close without being equal, hence the bins. A school code is "none"
    for most, hence the form without the most frequent value.
    """
    there = np.flatnonzero(values.is_not_null().to_numpy())
    if there.size < MIN_RECORDS_TESTED:
        return []
    values, owner = values[there], owner[there]
    codes = _code_rows(values.to_frame("value"), ["value"])
    found = [_count_once(codes, owner, several=several)]
    counts = np.bincount(codes)
    most = int(counts.argmax())
    left = codes != most
    if counts[most] * 2 > codes.size and int(left.sum()) >= MIN_RECORDS_TESTED:
        found.append(_count_once(codes[left], owner[left], several=several))
    bins = max(2, round((codes.size / RECORDS_PER_BIN) ** 0.5))
    if values.dtype.is_numeric() and np.count_nonzero(counts) > bins:
        ranks = values.rank("ordinal").to_numpy().astype(np.int64)
        found.append(_count_once((ranks * bins) // (codes.size + 1), owner, several=several))
    return found


def _group_pair(released: pl.DataFrame, pair: tuple[str, str], owner: Codes, *, several: bool) -> list[Form]:
    """Group the rows by two columns: by their values, and in bins if both are numbers with many values."""
    some = released.select(pair).with_row_index("__row").drop_nulls()
    if some.height < MIN_RECORDS_TESTED:
        return []
    owner = owner[some["__row"].to_numpy()]
    found = [_count_once(_code_rows(some, pair), owner, several=several)]
    bins = max(2, round((some.height / RECORDS_PER_BIN) ** 0.5))
    if all(some[name].dtype.is_numeric() and some[name].n_unique() > bins for name in pair):
        one, other = (
            (some[name].rank("ordinal").to_numpy().astype(np.int64) * bins) // (some.height + 1)
            for name in pair
        )
        found.append(_count_once(one * bins + other, owner, several=several))
    return found


def _count_once(groups: Codes, owner: Codes, *, several: bool) -> Form:
    """Count rows of one group and one swapped record once, because members of a household share its place."""
    if not several:
        return groups, owner
    keys = np.unique(groups * (int(owner.max(initial=0)) + 1) + owner)
    return keys // (int(owner.max(initial=0)) + 1), keys % (int(owner.max(initial=0)) + 1)


def _find_best_form(
    columns: tuple[str, ...], forms: list[Form], strata: Codes, places: list[_Places], unmoved: float
) -> Reversal:
    """Return the best of all forms; chance is measured only where it can still decide."""
    tried = []
    for form, owner in forms:
        for groups in (form, _renumber_densely(_join_codes(strata[owner], form))):
            for place in places:
                found = Reversal(
                    columns=columns,
                    place=place.names,
                    guessed=_share_guessed(groups, place.codes[owner]),
                    chance=float(place.usual[owner].mean()),
                    unmoved=unmoved,
                    rows=groups.size,
                )
                tried.append((found, groups, place, owner))
    tried.sort(key=lambda one: -one[0].share)
    best: Reversal | None = None
    for found, groups, place, owner in tried:
        if best is not None and found.share <= best.share:
            break
        known = replace(found, chance=max(found.chance, _measure_chance(groups, place, owner)))
        best = known if best is None or known.share > best.share else best
    return best or Reversal(columns=columns, place=(), guessed=0.0, chance=0.0)


def _measure_chance(groups: Codes, place: _Places, owner: Codes) -> float:
    """Return the share of right guesses with permuted places."""
    return sum(_share_guessed(groups, mixed[owner]) for mixed in place.mixed) / len(place.mixed)


@compile_kernel
def _count_right(keys: Codes, width: int) -> float:
    """Count, from sorted keys group × place, rows whose place most others of their group have; ties are half."""
    total = 0.0
    at = 0
    while at < keys.size:
        group = keys[at] // width
        first, second = 0, 0
        while at < keys.size and keys[at] // width == group:
            start = at
            while at < keys.size and keys[at] == keys[start]:
                at += 1
            n = at - start
            if n > first:
                first, second = n, first
            elif n > second:
                second = n
        if first - 1 > second:
            total += first
        elif first - 1 == second and first > 1:
            total += first / 2
    return total


def _share_guessed(groups: Codes, places: Codes) -> float:
    """Return the share of rows whose place is the most frequent one among the others of their group."""
    width = int(places.max(initial=0)) + 1
    cells = (int(groups.max(initial=0)) + 1) * width
    keys = groups * width + places
    if cells > 4 * keys.size:
        return float(_count_right(np.sort(keys), width)) / max(groups.size, 1)
    first, second = _two_largest(np.bincount(keys, minlength=cells).reshape(-1, width))
    right = np.where(first - 1 > second, first, np.where((first - 1 == second) & (first > 1), first / 2, 0))
    return float(right.sum()) / max(groups.size, 1)


def _two_largest(counts: Codes) -> tuple[Codes, Codes]:
    """Return the largest and the second largest count of each row."""
    if counts.shape[1] < 2:
        return counts[:, 0], np.zeros_like(counts[:, 0])
    ends = np.partition(counts, counts.shape[1] - 2, axis=1)
    return ends[:, -1], ends[:, -2]


def _renumber_densely(codes: Codes) -> Codes:
    """Renumber the groups without gaps if the numbers are much larger than the number of rows."""
    if int(codes.max(initial=0)) <= 4 * codes.size:
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _code_rows(frame: pl.DataFrame, names: Sequence[str]) -> Codes:
    """Return one number for each combination of values, from 1 on."""
    if not names:
        return np.ones(frame.height, np.int64)
    by = pl.col(names[0]) if len(names) == 1 else pl.struct(list(names))
    return frame.select(by.rank("dense").fill_null(0).cast(pl.Int64)).to_series().to_numpy()


def _join_codes(one: Codes, other: Codes) -> Codes:
    return one * (int(other.max(initial=0)) + 1) + other


def _usual_share(strata: Codes, codes: Codes) -> NDArray[np.float64]:
    """Return, for each record, the share of the most frequent place in its stratum."""
    _, where, counts = np.unique(_join_codes(strata, codes), return_inverse=True, return_counts=True)
    most = np.zeros(int(strata.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, strata, counts[where])
    return most[strata] / np.bincount(strata)[strata]


def _permute_within(strata: Codes, seed: int) -> Codes:
    """Return a fixed permutation within strata, so that a packet is the same when it is made again."""
    words = np.random.default_rng(seed).random(strata.size)
    found = np.empty_like(strata)
    found[np.argsort(strata, kind="stable")] = np.lexsort((words, strata))
    return found
