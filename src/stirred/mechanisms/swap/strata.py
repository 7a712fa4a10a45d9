"""Form the strata of the match variables, and count their sizes, types, margins and shapes."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stirred.errors import InputError
from stirred.kernels import compile_kernel
from stirred.mechanisms.swap.records import Column, Digits, pack_columns, rank_columns

# Number the strata of the match variables, count their sizes, and find whether each holds one, two or more types.

NO_STRATUM = np.uint32(0xFFFFFFFF)  # the stratum of a record that takes no part
ROWS_PER_CALL = 1 << 16
MANY_TYPES = (
    3  # more than two types are not distinguished; only small strata have all margins counted (partitions.py)
)


@compile_kernel
def _mark(codes: NDArray[np.uint32], present: NDArray[np.uint32]) -> None:
    for code in codes:
        if code != NO_STRATUM:
            present[code] = np.uint32(1)


@compile_kernel
def _renumber(codes: NDArray[np.uint32], places: NDArray[np.uint32], sizes: NDArray[np.uint32]) -> None:
    for i in range(codes.size):
        if codes[i] != NO_STRATUM:
            place = places[codes[i]]
            codes[i] = place
            sizes[place] += np.uint32(1)


@compile_kernel
def _count_types(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    firsts: NDArray[np.uint64],
    seconds: NDArray[np.uint64],
    first_counts: NDArray[np.uint32],
    types: NDArray[np.uint8],
) -> int:
    """Count the types of each stratum as one, two or many; returns the strata that have many."""
    full = 0
    for i in range(strata.size):
        stratum = strata[i]
        if stratum == NO_STRATUM:
            continue
        seen = types[stratum]
        if seen == 3:
            continue
        number = numbers[i]
        if seen == 0:
            firsts[stratum] = number
            types[stratum] = 1
            first_counts[stratum] = 1
        elif number == firsts[stratum]:
            first_counts[stratum] += np.uint32(1)
        elif seen == 1:
            seconds[stratum] = number
            types[stratum] = 2
        elif number != seconds[stratum]:
            types[stratum] = 3
            full += 1
    return full


@dataclass(frozen=True, slots=True, kw_only=True)
class Types:
    """For each stratum: 1, 2 or 3 (many) distinct types, and the number of records with the first of them."""

    types: NDArray[np.uint8]
    first_counts: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCodes:
    """The stratum of every record (``NO_STRATUM`` if it takes no part) and the size of every stratum."""

    codes: NDArray[np.uint32]
    sizes: NDArray[np.uint32]

    def types(self, columns: Sequence[Column]) -> Types:
        """Count the distinct values of the given columns in each stratum, as one, two or many."""
        n = self.sizes.size
        found = Types(types=np.zeros(n, np.uint8), first_counts=np.zeros(n, np.uint32))
        if all(column.span <= 1 for column in columns):
            found.types[:] = 1
            found.first_counts[:] = self.sizes
            return found
        number = number_rows(columns)
        firsts, seconds = np.empty(n, np.uint64), np.empty(n, np.uint64)
        full = 0
        for start in range(0, self.codes.size, ROWS_PER_CALL):
            part = slice(start, start + ROWS_PER_CALL)
            full += _count_types(
                self.codes[part], number.numbers(part), firsts, seconds, found.first_counts, found.types
            )
            if full == n:
                break
        return found


def number_rows(columns: Sequence[Column]) -> Digits:
    """Pack the columns into one number for each row, equal for equal values."""
    varying = [column for column in columns if column.span > 1]
    packed = pack_columns(varying)
    return packed[0] if len(packed) == 1 else Digits.of([rank_columns(varying)])


def form_strata(
    match: Sequence[Column], *, rows: int, taking_part: NDArray[np.bool_] | None = None
) -> StratumCodes:
    """Form the exact strata of the match variables; without match variables all records are one stratum.

    >>> import pyarrow as pa
    >>> size = Column(name="size", codes=np.array([2, 7, 2]), type=pa.int64())
    >>> form_strata([size], rows=3).sizes
    array([2, 1], dtype=uint32)
    """
    digits = Digits.of(match)
    if digits.range > max(1 << 22, 2 * rows):
        digits = Digits.of([rank_columns(match)])
    codes = np.empty(rows, np.uint32)
    present = np.zeros(digits.range, np.uint32)
    for start in range(0, rows, ROWS_PER_CALL):
        part = slice(start, min(start + ROWS_PER_CALL, rows))
        codes[part] = digits.numbers(part) if match else 0
        if taking_part is not None:
            codes[part][~taking_part[part]] = NO_STRATUM
        _mark(codes[part], present)
    places = np.cumsum(present, dtype=np.uint32) - present
    sizes = np.zeros(int(present.sum(dtype=np.int64)), np.uint32)
    _renumber(codes, places, sizes)
    return StratumCodes(codes=codes, sizes=sizes)


@compile_kernel
def _count_strata(strata: NDArray[np.uint32]) -> int:
    """Return one more than the largest stratum code, or 0 if no record takes part."""
    largest = -1
    for stratum in strata:
        if stratum != NO_STRATUM and stratum > largest:
            largest = int(stratum)
    return largest + 1


@compile_kernel
def _count_sizes(strata: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    for stratum in strata:
        if stratum != NO_STRATUM:
            counts[stratum] += np.uint32(1)


def count_sizes(strata: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count the records of every stratum.

    >>> count_sizes(np.array([0, 1, 1], np.uint32))
    array([1, 2], dtype=uint32)
    """
    counts = np.zeros(_count_strata(strata), np.uint32)
    _count_sizes(strata, counts)
    return counts


# Number the margins of small strata: a stratum of n records has a partition of n as its margins.
#
# The number of a partition is its rank among the partitions of n in lexicographic order,
# $\sum_i P(n_i, \lambda_i - 1)$ with $n_i = \lambda_i + \lambda_{i+1} + \dots$ and $P(m, k)$ the partitions of m with
# parts of at most k, so that equal margins have equal numbers and no text is made for each stratum.

MAX_RECORDS_RANKED = 40  # records; 37,338 partitions, so that a rank fits 16 bits


def _count_partitions(largest: int) -> NDArray[np.int64]:
    """Return P(m, k), the number of partitions of m with no part above k, as a matrix."""
    found = np.zeros((largest + 1, largest + 1), np.int64)
    found[0, :] = 1
    for m in range(1, largest + 1):
        for k in range(1, largest + 1):
            found[m, k] = found[m, k - 1] + (found[m - k, k] if k <= m else 0)
    return found


PARTITION_COUNTS = _count_partitions(MAX_RECORDS_RANKED)


def unrank_margins(n: int, rank: int) -> tuple[int, ...]:
    """Return the partition of n with the given rank, largest part first.

    >>> [unrank_margins(4, rank) for rank in range(5)]
    [(1, 1, 1, 1), (2, 1, 1), (2, 2), (3, 1), (4,)]
    """
    parts = []
    while n:
        part = int(np.searchsorted(PARTITION_COUNTS[n], rank, side="right"))
        rank -= int(PARTITION_COUNTS[n, part - 1])
        n -= part
        parts.append(part)
    return tuple(parts)


def rank_margins(
    strata: StratumCodes, columns: Sequence[Column], chosen: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """Return the ranks of the margins of the chosen strata, each of at most ``MAX_RECORDS_RANKED`` records.

    >>> import pyarrow as pa
    >>> from stirred.mechanisms.swap.strata import form_strata
    >>> place = Column(name="place", codes=np.array([2, 7, 2, 2]), type=pa.int64())
    >>> unrank_margins(4, rank_margins(form_strata([], rows=4), [place], np.array([True]))[0])
    (3, 1)
    """
    types, starts, sizes = _gather_types(strata, columns, chosen)
    ranks = np.empty(sizes.size, np.uint16)
    _rank_strata(types, starts, sizes, PARTITION_COUNTS, ranks)
    return ranks


def _gather_types(
    strata: StratumCodes, columns: Sequence[Column], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the types of the records of the chosen strata, one stratum after the other; their starts and sizes."""
    sizes = strata.sizes[chosen].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    places = np.full(chosen.size, -1, np.int64)
    places[chosen] = starts
    types = np.zeros(int(sizes.sum()), np.uint64)
    if any(column.span > 1 for column in columns):
        number = number_rows(columns)
        for start in range(0, strata.codes.size, ROWS_PER_CALL):
            part = slice(start, start + ROWS_PER_CALL)
            _scatter_types(strata.codes[part], number.numbers(part), places, types)
    return types, starts, sizes


@compile_kernel
def _scatter_types(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    places: NDArray[np.int64],
    types: NDArray[np.uint64],
) -> None:
    """Put the type of each record behind those of its stratum; places of strata that are not chosen are −1."""
    for i in range(strata.size):
        if strata[i] != NO_STRATUM:
            place = places[strata[i]]
            if place >= 0:
                types[place] = numbers[i]
                places[strata[i]] = place + 1


@compile_kernel
def _rank_strata(
    types: NDArray[np.uint64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    partitions: NDArray[np.int64],
    ranks: NDArray[np.uint16],
) -> None:
    counts = np.empty(partitions.shape[0], np.int64)
    for s in range(sizes.size):
        own = types[starts[s] : starts[s] + sizes[s]]
        _sort_in_place(own)
        found = 0
        for i in range(own.size):
            if i and own[i] == own[i - 1]:
                counts[found - 1] += 1
            else:
                counts[found] = 1
                found += 1
        _sort_in_place(counts[:found])
        rest, rank = sizes[s], 0
        for i in range(found - 1, -1, -1):
            rank += partitions[rest, counts[i] - 1]
            rest -= counts[i]
        ranks[s] = rank


def count_each_type(
    strata: StratumCodes, columns: Sequence[Column], chosen: NDArray[np.bool_], most: int
) -> NDArray[np.uint32]:
    """Count the records of each type of the chosen strata, the commonest first; zeros where there are more than ``most``.

    >>> import pyarrow as pa
    >>> place = Column(name="place", codes=np.array([2, 7, 2, 9]), type=pa.int64())
    >>> strata, every = form_strata([], rows=4), np.array([True])
    >>> count_each_type(strata, [place], every, 3), count_each_type(strata, [place], every, 2)
    (array([[2, 1, 1]], dtype=uint32), array([[0, 0]], dtype=uint32))
    """
    positions = np.full(chosen.size, -1, np.int64)
    positions[chosen] = np.arange(int(chosen.sum()))
    found = np.zeros((int(chosen.sum()), most), np.uint32)
    if not any(column.span > 1 for column in columns):
        found[:, 0] = strata.sizes[chosen]
        return found
    seen, kinds = np.zeros(found.shape, np.uint64), np.zeros(len(found), np.uint8)
    number, open_strata = number_rows(columns), len(found)
    for start in range(0, strata.codes.size, ROWS_PER_CALL):
        if not open_strata:
            break  # every stratum has too many: the rest need not be read
        part = slice(start, start + ROWS_PER_CALL)
        open_strata -= _count_each(strata.codes[part], number.numbers(part), positions, seen, kinds, found)
    found[kinds > most] = 0
    found.sort(axis=1)
    return found[:, ::-1]


@compile_kernel
def _count_each(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    positions: NDArray[np.int64],
    seen: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    found: NDArray[np.uint32],
) -> int:
    """Count the types of some rows; return how many strata turn out to have more than there is room for."""
    most, closed = found.shape[1], 0
    for i in range(strata.size):
        if strata[i] == NO_STRATUM or positions[strata[i]] < 0:
            continue
        s, h = positions[strata[i]], 0
        if kinds[s] > most:
            continue
        while h < kinds[s] and seen[s, h] != numbers[i]:
            h += 1
        if h == kinds[s]:
            kinds[s] += 1
            if h == most:
                closed += 1
                continue
            seen[s, h] = numbers[i]
        found[s, h] += 1
    return closed


@compile_kernel
def _sort_in_place(values: NDArray[np.int64] | NDArray[np.uint64]) -> None:
    """Sort a few values in place, in ascending order."""
    for i in range(1, values.size):
        value, at = values[i], i
        while at and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


# Strata as the bounds read them: one by one, or as columns.

Counts = NDArray[np.int64]
MAX_RECORDS_WITH_MARGINS = 40  # of a stratum of which all margins are kept; larger ones have Theorem B


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One stratum: its size, the number of hold and swap types in it, and their counts where known."""

    n: int
    hold_types: int
    swap_types: int
    hold_margins: tuple[int, ...] | None = None
    swap_margins: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for margins, types in ((self.hold_margins, self.hold_types), (self.swap_margins, self.swap_types)):
            if margins is not None and (len(margins) != types or sum(margins) != self.n):
                raise InputError(
                    "the margins of a stratum do not fit its size",
                    why=f"{len(margins)} margins for {types} types must add up to {self.n} records",
                    fix="give one count for each type, with this sum",
                )


def write_margins(hold: Iterable[int] | None, swap: Iterable[int] | None) -> str:
    """Write all margins of a stratum as one text, equal for equal strata; "*" is a side that is not known.

    >>> write_margins((1, 2, 1), None), read_margins("2.1.1/*")
    ('2.1.1/*', ((2, 1, 1), None))
    """
    sides = ("*" if side is None else ".".join(map(str, sorted(side, reverse=True))) for side in (hold, swap))
    return "/".join(sides)


def read_margins(text: str) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Read the margins that ``write_margins`` wrote, as (hold, swap)."""
    hold, swap = (None if side == "*" else tuple(map(int, side.split("."))) for side in text.split("/"))
    return hold, swap


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumTable:
    """All strata as columns; ``hold_larger`` and ``swap_larger`` count the commoner of two types, 0 where unknown.

    ``margins`` holds all margins (``write_margins``) of small strata with three and more types on both sides, "" elsewhere.
    """

    n: Counts
    hold_types: Counts
    swap_types: Counts
    hold_larger: Counts
    swap_larger: Counts
    margins: NDArray[np.object_]

    @staticmethod
    def of(strata: "StratumTable | Iterable[Stratum]") -> "StratumTable":
        """Make the table from single strata.

        >>> StratumTable.of([Stratum(n=3, hold_types=2, swap_types=3, hold_margins=(2, 1))]).hold_larger
        array([2])
        """
        if isinstance(strata, StratumTable):
            return strata
        every = tuple(strata)
        rows = [
            (s.n, s.hold_types, s.swap_types, max(s.hold_margins or (0,)), max(s.swap_margins or (0,)))
            for s in every
        ]
        table = np.array(rows, np.int64).reshape(-1, 5)
        texts = [
            write_margins(s.hold_margins, s.swap_margins)
            if s.n <= MAX_RECORDS_WITH_MARGINS
            and min(s.hold_types, s.swap_types) > 2
            and (s.hold_margins or s.swap_margins)
            else ""
            for s in every
        ]
        return StratumTable.columns(*table.T, margins=texts)

    @staticmethod
    def columns(
        n: ArrayLike,
        hold_types: ArrayLike,
        swap_types: ArrayLike,
        hold_larger: ArrayLike = 0,
        swap_larger: ArrayLike = 0,
        *,
        margins: ArrayLike = "",
    ) -> "StratumTable":
        """Make the table from arrays of equal length (or single numbers), one entry for each stratum."""
        parts = np.broadcast_arrays(
            *(np.asarray(x, np.int64) for x in (n, hold_types, swap_types, hold_larger, swap_larger))
        )
        size, hold, swap, hold_more, swap_more = (np.atleast_1d(part) for part in parts)
        return StratumTable(
            n=size,
            hold_types=hold,
            swap_types=swap,
            hold_larger=hold_more,
            swap_larger=swap_more,
            margins=np.broadcast_to(np.asarray(margins, np.object_), size.shape),
        )

    def kinds(self) -> Counts:
        """Return the distinct (n, larger hold margin, larger swap margin) of strata where data sets can differ.

        A margin is 0 where that side does not have two types, and −1 where it has but the margin is unknown.
        """
        live = (self.n >= 2) & (self.hold_types >= 2) & (self.swap_types >= 2)
        hold = np.where(self.hold_types == 2, np.where(self.hold_larger > 0, self.hold_larger, -1), 0)
        swap = np.where(self.swap_types == 2, np.where(self.swap_larger > 0, self.swap_larger, -1), 0)
        n, hold, swap = self.n[live], hold[live], swap[live]
        # Sorting one packed number is ten times as fast as sorting rows; the few largest strata do not fit.
        small = n < 1 << 20
        packed = np.unique((n[small] << 42) | ((hold[small] + 1) << 21) | (swap[small] + 1))
        mask = (1 << 21) - 1
        rows = np.stack([packed >> 42, ((packed >> 21) & mask) - 1, (packed & mask) - 1], axis=1)
        large = np.unique(np.stack([n, hold, swap], axis=1)[~small], axis=0)
        return np.concatenate([rows, large])

    def list_many_types(self) -> list[tuple[int, str]]:
        """List size and margins of strata with three or more types on both sides, each once, the largest first."""
        live = (self.hold_types > 2) & (self.swap_types > 2)
        sizes = self.n[live]
        if not sizes.size or sizes.max() > MAX_RECORDS_WITH_MARGINS:
            return [(int(sizes.max()), "")] if sizes.size else []
        return sorted(set(zip(sizes.tolist(), self.margins[live].tolist(), strict=True)), reverse=True)


# The shapes of all strata: sizes, types and margins, as the bounds use them. All are functions of the invariants.

MAX_RECORDS_COUNTED = 20_000_000  # records in small strata whose margins are counted
RANK_COLUMNS = ("hold_rank", "swap_rank")  # of the margins, as margins_of_rank reads them
NO_RANK, UNKNOWN_RANK = -1, -2  # no margins are counted for the stratum; not for this side
NUMBER_COLUMNS = ("n", "hold_types", "swap_types", "hold_larger", "swap_larger", "strata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The strata by what the bounds use: one row for each distinct shape, and its number of strata."""

    n: NDArray[np.int64]
    hold_types: NDArray[np.int64]
    swap_types: NDArray[np.int64]
    hold_larger: NDArray[np.int64]
    swap_larger: NDArray[np.int64]
    strata: NDArray[np.int64]
    margins: NDArray[np.object_]  # all margins of small strata with three and more types on both sides

    @staticmethod
    def merge_rows(rows: pl.DataFrame, *, keep_margins: bool = False) -> "Shapes":
        """Join rows of shapes in one table with a row for each distinct shape; ``keep_margins`` of large strata too."""
        many = (pl.col("hold_types") >= MANY_TYPES) & (pl.col("swap_types") >= MANY_TYPES)
        if not keep_margins and not rows.filter(many & (pl.col("n") > MAX_RECORDS_WITH_MARGINS)).is_empty():
            # a large stratum decides, and only Theorem B is known for it
            rows = rows.with_columns(margins=pl.lit(""))
        by = [name for name in rows.columns if name != "strata"]
        distinct = rows.group_by(by).agg(pl.col("strata").sum()).sort(by)
        numbers = {name: distinct[name].to_numpy().astype(np.int64) for name in NUMBER_COLUMNS}
        return Shapes(**numbers, margins=np.array(distinct["margins"].to_list(), np.object_))

    @staticmethod
    def join_parts(parts: Iterable["Shapes"], *, keep_margins: bool = False) -> "Shapes":
        """Join the shapes of several parts in one table."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        kinds = {**dict.fromkeys(NUMBER_COLUMNS, pl.Int64), "margins": pl.String}
        rows = {name: [entry for part in found for entry in getattr(part, name)] for name in kinds}
        return Shapes.merge_rows(pl.DataFrame(rows, schema=kinds), keep_margins=keep_margins)

    @property
    def table(self) -> StratumTable:
        """Return one stratum of each shape, for the bounds."""
        return StratumTable.columns(
            self.n,
            self.hold_types,
            self.swap_types,
            self.hold_larger,
            self.swap_larger,
            margins=self.margins,
        )

    @property
    def b(self) -> int:
        """Return the size of the largest stratum with two distinct records (the paper's b), or 0."""
        alive = (self.n >= 2) & ((self.hold_types >= 2) | (self.swap_types >= 2))
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def largest_differing(self) -> int:
        """Return the size of the largest stratum with two hold and two swap types, or 0."""
        alive = (self.hold_types >= 2) & (self.swap_types >= 2)
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def fingerprint(self) -> str:
        """Return a digest of the shapes, equal for censuses whose bounds come from the same numbers.

        All of them are functions of the invariants, which are published, so the digest reveals nothing new.
        """
        columns = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()

    def count_by_size(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sizes that occur and the number of strata of each size."""
        sizes, places = np.unique(self.n, return_inverse=True)
        counts = np.zeros(sizes.size, np.int64)
        np.add.at(counts, places.ravel(), self.strata)
        return sizes, counts


def count_shapes(
    strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column], *, most_types: int = 0
) -> Shapes:
    """Count the shapes of all strata; without ``hold`` every two records are assumed to differ in what is held.

    With ``most_types`` the margins are those of every stratum that has three and at most so many types on a side.
    """
    sizes = strata.sizes.astype(np.int64)
    moved = strata.types(swap)
    if hold is None:
        held = Types(types=np.where(sizes >= 2, MANY_TYPES, 1).astype(np.uint8), first_counts=strata.sizes)
    else:
        held = strata.types(hold)
    # with more than two types margins are not used, so they do not distinguish shapes
    rows = pl.DataFrame(
        {
            "n": sizes,
            "hold_types": held.types.astype(np.int64),
            "swap_types": moved.types.astype(np.int64),
            "hold_larger": np.where(held.types == 2, _larger_margin(held, sizes), 0),
            "swap_larger": np.where(moved.types == 2, _larger_margin(moved, sizes), 0),
        }
    )
    if most_types:
        every = _write_each_margins(strata, hold, swap, most_types, held.types, moved.types)
        rows = rows.with_columns(pl.Series("margins", every, pl.String))
        counted = rows.group_by(rows.columns).agg(pl.len().cast(pl.Int64).alias("strata"))
        return Shapes.merge_rows(counted, keep_margins=True)
    rows = rows.with_columns(
        **{
            name: pl.Series(ranks)
            for name, ranks in _rank_many_types(
                strata, hold, swap, (held.types >= MANY_TYPES) & (moved.types >= MANY_TYPES)
            ).items()
        }
    )
    distinct = rows.group_by(rows.columns).agg(pl.len().cast(pl.Int64).alias("strata"))
    texts = [_write_ranks(n, *ranks) for n, *ranks in distinct.select("n", *RANK_COLUMNS).iter_rows()]
    return Shapes.merge_rows(
        distinct.select(*NUMBER_COLUMNS[:-1], pl.Series("margins", texts, pl.String), "strata")
    )


def _rank_many_types(
    strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column], many: NDArray[np.bool_]
) -> dict[str, NDArray[np.int32]]:
    """Rank the margins of strata with three or more types if all of these are small; else leave them out."""
    sizes = strata.sizes.astype(np.int64)
    found = {name: np.full(sizes.size, NO_RANK, np.int32) for name in RANK_COLUMNS}
    if (
        many.any()
        and sizes[many].max() <= MAX_RECORDS_WITH_MARGINS
        and sizes[many].sum() <= MAX_RECORDS_COUNTED
    ):
        for ranks, columns in zip(found.values(), (hold, swap), strict=True):
            ranks[many] = UNKNOWN_RANK if columns is None else rank_margins(strata, columns, many)
    return found


def _write_each_margins(
    strata: StratumCodes,
    hold: Sequence[Column] | None,
    swap: Sequence[Column],
    most: int,
    held_types: NDArray[np.uint8],
    swap_types: NDArray[np.uint8],
) -> NDArray[np.object_]:
    """Write the margins of strata that differ and have three to ``most`` types on a side; "" for the others."""
    chosen = (np.minimum(held_types, swap_types) >= 2) & (np.maximum(held_types, swap_types) >= MANY_TYPES)
    found = np.full(chosen.size, "", np.object_)
    sides = [
        np.zeros((int(chosen.sum()), most), np.uint32)
        if columns is None
        else count_each_type(strata, columns, chosen, most)
        for columns in (hold, swap)
    ]
    distinct, places = np.unique(np.concatenate(sides, axis=1), axis=0, return_inverse=True)
    counts = ((tuple(filter(None, row[:most])), tuple(filter(None, row[most:]))) for row in distinct.tolist())
    texts = [write_margins(held or None, moved or None) for held, moved in counts]
    found[chosen] = np.array(texts, np.object_)[np.asarray(places).reshape(-1)]
    return found


def _write_ranks(n: int, hold: int, swap: int) -> str:
    if swap == NO_RANK:
        return ""
    return write_margins(None if hold == UNKNOWN_RANK else unrank_margins(n, hold), unrank_margins(n, swap))


def _larger_margin(types: Types, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    first = types.first_counts.astype(np.int64)
    larger: NDArray[np.int64] = np.maximum(first, sizes - first)
    return larger
