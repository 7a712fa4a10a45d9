"""Digest what a run reads, and compare fingerprints of what a swap keeps before and after it."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.keys import MultisetDigest
from stirred.chance.words import Hasher, Words, is_text, pack_null_bits
from stirred.errors import PrivacyError
from stirred.kernels import compile_kernel
from stirred.mechanisms.release import Check
from stirred.mechanisms.swap.records import Codes, Column, Digit, Members, find_level_codes, pack_columns

# Read encoded values as 64-bit words, and digest all that a run reads; both are the same on every engine and file layout.
#
# Rows go into a keyed multiset digest as words (values.py); the names of the columns are sealed with the sums.

Hashers = tuple[Hasher, ...]


def make_hashers(key: Key) -> Hashers:
    """Return the two hashers whose words together represent a text."""
    return Hasher.of(key, "text", "first"), Hasher.of(key, "text", "second")


@dataclass(frozen=True, slots=True)
class CodeWords:
    """The words of one variable by its codes: from tables, or the code plus ``low`` if the codes are numbers."""

    tables: tuple[Words, ...]
    low: int = 0
    empty: int = -1  # the code of the empty value; -1: there is none
    nothing: int = 0  # the word of the empty value

    @staticmethod
    def of(column: Column, both: Hashers, *, nothing: int = 0) -> "CodeWords":
        """Return the words of a column, whose empty value is the last."""
        if column.values is None:
            return CodeWords(())
        empty = len(column.values) - 1 if column.values.null_count else -1
        return CodeWords(_hash_values(column.values, empty, both, nothing), 0, empty, nothing)

    @staticmethod
    def of_digit(digit: Digit, both: Hashers, *, holds_empty: bool, nothing: int = 0) -> "CodeWords":
        """Return the words of a packed variable, whose empty value is the last digit."""
        empty = digit.span - 1 if holds_empty else -1
        if digit.values is None:
            return CodeWords((), digit.low, empty, nothing)
        return CodeWords(_hash_values(digit.values, empty, both, nothing), 0, empty, nothing)

    def find_empty(self, codes: Codes) -> NDArray[np.bool_] | None:
        """Return which values are empty, or None if none can be."""
        if self.empty < 0:
            return None
        found: NDArray[np.bool_] = codes == codes.dtype.type(self.empty)
        return found

    def of_codes(self, codes: Codes) -> list[Codes]:
        """Return the words of some codes: two of a text under two hashers, one of anything else."""
        if self.tables:
            return [table[codes] for table in self.tables]
        if self.empty < 0 and not self.low:
            return [codes]
        words = codes.astype(np.uint64, copy=False) + np.uint64(self.low % 2**64)
        gone = self.find_empty(codes)
        if gone is not None:
            words[gone] = np.uint64(self.nothing)
        return [words]


def _hash_values(values: pa.Array, empty: int, both: Hashers, nothing: int) -> tuple[Words, ...]:
    used = both if is_text(values.type) else both[:1]
    found = []
    for hasher in used:
        table = hasher.words(values)
        if empty >= 0:
            table = np.append(table[:empty], np.uint64(nothing))
        found.append(table)
    return tuple(found)


def digest_words(variables: Iterable[tuple[CodeWords, Codes]], rows: int) -> list[Codes]:
    """Return the words of several variables, with the bits of the empty ones at the end."""
    found: list[Codes] = []
    gone: list[NDArray[np.bool_] | None] = []
    for words, codes in variables:
        found += words.of_codes(codes)
        gone.append(words.find_empty(codes))
    return found + list(pack_null_bits(gone, rows))


@dataclass(frozen=True, slots=True)
class RecordDigest:
    """The digest sum of one record type, with the names of its columns."""

    record_type: str
    names: tuple[str, ...]
    total: MultisetDigest

    def parts(self) -> tuple[bytes, ...]:
        """Return the parts that are sealed: the names of the columns and the sum."""
        names = (self.record_type, *self.names)
        return (str(len(names)).encode(), *(name.encode() for name in names), self.total.value())


def merge_digests(
    key: Key, parts: Iterable[tuple[bytes, int]], kinds: Sequence[pa.DataType]
) -> MultisetDigest:
    """Add the digests (sum, number of rows) of several processes under one key; ``kinds`` are the types of the values."""
    # the words of a row: its identifier, one for each value, two for a text, and the bits of empty values
    width = 1 + sum(2 if is_text(kind) else 1 for kind in kinds) + len(range(0, max(len(kinds), 1), 64))
    whole = key.multiset()
    for amount, rows in parts:
        whole.merge_part(amount, rows=rows, width=width)
    return whole


def seal_digest(key: Key, homes: RecordDigest, along: Sequence[RecordDigest]) -> bytes:
    """Return the digest of all that a run reads."""
    return key.digest(*homes.parts(), *(part for group in along for part in group.parts()))


# Verify the invariants: fingerprints of what a swap keeps, of the records before it and of the records to be published.
#
# Words of values are made with fresh random salts, once for a run: no data set can be made to collide, unequal
# multisets agree with probability about 2⁻⁶⁴, and a task that runs again finds the same numbers.

ROWS_PER_PASS = 1 << 18  # rows processed together
MAX_ROWS_COUNTED = 1 << 22  # rows of a part up to which the cells of a kept table are counted one by one
HELD_TABLE_INDEX = 1  # the position of the table of all held variables among the kept tables
MODULUS = 1 << 64


@compile_kernel
def _mix_word(word: np.uint64) -> np.uint64:
    """Scatter a word by the finaliser of SplitMix64, a bijection of words."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compile_kernel
def _add_codes(total: Words, codes: Codes, salt: np.uint64, empty: int, nothing: np.uint64) -> None:
    """Add the scattered word of one more number to each row; ``empty`` is the code of the word ``nothing``, or -1."""
    for i in range(codes.size):
        if empty >= 0 and codes[i] == empty:
            total[i] += _mix_word(nothing)
        else:
            total[i] += _mix_word(np.uint64(codes[i]) + salt)


@compile_kernel
def _add_table_words(total: Words, codes: Codes, table: Words, salt: np.uint64) -> None:
    for i in range(codes.size):
        total[i] += _mix_word(table[codes[i]] + salt)


@compile_kernel
def _mix_all(total: Words) -> None:
    for i in range(total.size):
        total[i] = _mix_word(total[i])


@compile_kernel
def _sum_words(mixed: Words) -> tuple[np.uint64, np.uint64]:
    first, second = np.uint64(0), np.uint64(0)
    for word in mixed:
        first += word
        second += _mix_word(word + np.uint64(0x9E3779B97F4A7C15))
    return first, second


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of rows and two sums over scattered rows: equal for equal multisets, whatever their order."""

    rows: int = 0
    first: int = 0
    second: int = 0

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(
            self.rows + other.rows,
            (self.first + other.first) % MODULUS,
            (self.second + other.second) % MODULUS,
        )

    @staticmethod
    def of(mixed: Words) -> "Fingerprint":
        """Return the fingerprint of rows that are already scattered."""
        first, second = _sum_words(mixed)
        return Fingerprint(mixed.size, int(first), int(second))

    @staticmethod
    def sums(parts: Iterable[Sequence["Fingerprint"]], number: int) -> list["Fingerprint"]:
        """Add up several lists of fingerprints."""
        total = [Fingerprint() for _ in range(number)]
        for part in parts:
            total = [a + b for a, b in zip(total, part, strict=True)]
        return total


@dataclass(frozen=True, slots=True)
class Scatter:
    """Map some values of each row to one word, equal for equal values in any part."""

    hasher: Hasher
    empty: int  # the word of an empty value
    salts: tuple[int, ...]  # one for each place in a list of columns, and at the end one for identifiers

    @staticmethod
    def fresh(places: int) -> "Scatter":
        """Make new random salts."""
        words = np.frombuffer(secrets.token_bytes(8 * (places + 3)), np.uint64).tolist()
        return Scatter(Hasher(words[0], words[1]), words[2], tuple(words[3:]))

    @staticmethod
    def with_fixed_salts(places: int) -> "Scatter":
        """Make a scatter with fixed salts, enough to divide records into parts that are not published."""
        step = 0x9E3779B97F4A7C15  # the odd number next to 2⁶⁴ over the golden ratio: its multiples are far apart
        return Scatter(Hasher(), step, tuple((step * i) % 2**64 for i in range(2, places + 2)))

    def words(self, columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, CodeWords]:
        """Return the words of the values of some columns."""
        return {
            name: CodeWords.of(columns[name], (self.hasher,), nothing=self.empty)
            for name in dict.fromkeys(names)
        }

    def rows(
        self, variables: Iterable[tuple[CodeWords, Codes]], rows: int, owners: Words | None = None
    ) -> Words:
        r"""Return the word of each row from the codes of its variables and, if given, its owner's identifier.

        It is $M(\sum_i M(v_i + s_i))$ with the bijection M and a salt for each place.
        """
        total = np.zeros(rows, np.uint64)
        for (words, codes), salt in zip(variables, self.salts, strict=False):
            if words.tables:
                _add_table_words(total, codes, words.tables[0], np.uint64(salt))
            else:
                shift, nothing = ((number + salt) % MODULUS for number in (words.low, words.nothing))
                _add_codes(total, codes, np.uint64(shift), words.empty, np.uint64(nothing))
        if owners is not None:
            _add_codes(total, owners, np.uint64(self.salts[-1]), -1, np.uint64(0))
        _mix_all(total)
        return total

    def fingerprint_with_ids(self, words: Words, ids: Words) -> Fingerprint:
        """Return the fingerprint of words together with identifiers (``words`` is overwritten)."""
        _add_codes(words, ids, np.uint64(self.salts[-1]), -1, np.uint64(0))
        _mix_all(words)
        return Fingerprint.of(words)


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table whose cells a swap must not change."""

    name: str
    columns: tuple[str, ...]
    only: tuple[str, tuple[str, ...]] | None = None  # of the records with one of these levels; None: of all


@dataclass(frozen=True, slots=True)
class Verifier:
    """Take fingerprints of all kept tables, and of records with all that they must keep."""

    tables: tuple[KeptTable, ...]
    scatter: Scatter
    linked: bool  # whether linked records move along: then identifiers with all that is held are compared too

    @property
    def number(self) -> int:
        """Return the number of fingerprints of records of the swapped type."""
        return len(self.tables) + self.linked

    def reader(self, columns: Mapping[str, Column]) -> "KeptReader":
        """Prepare to read rows of these columns, or of other rows with the same codes."""
        names = [name for table in self.tables for name in table.columns]
        levels = [
            None if table.only is None else find_level_codes(columns[table.only[0]], table.only[1])
            for table in self.tables
        ]
        return KeptReader(self, self.scatter.words(columns, names), levels)


@dataclass(frozen=True, slots=True)
class KeptReader:
    """Read the kept tables from rows whose values have known words."""

    verifier: Verifier
    words: dict[str, CodeWords]
    levels: list[NDArray[np.generic] | None]  # of each kept table: codes of the records it counts; None: all

    def _read(
        self, columns: Mapping[str, Column], rows: slice
    ) -> Iterator[tuple[NDArray[np.intp] | None, Words]]:
        """Iterate over the kept tables: the rows that each counts (None for all), and a word for each row."""
        scatter = self.verifier.scatter
        for table, levels in zip(self.verifier.tables, self.levels, strict=True):
            places, number = None, rows.stop - rows.start
            if table.only is not None and levels is not None:
                places = np.flatnonzero(np.isin(columns[table.only[0]].codes[rows], levels))
                number = places.size
            codes = {name: columns[name].codes[rows] for name in table.columns}
            if places is not None:
                codes = {name: some[places] for name, some in codes.items()}
            yield places, scatter.rows(((self.words[name], some) for name, some in codes.items()), number)

    def prints(self, columns: Mapping[str, Column], rows: slice, ids: Words) -> list[Fingerprint]:
        """Return the fingerprint of each kept table and, with linked records, that of identifiers with held values.

        Of a record that takes no part its place is held too.
        """
        found: list[Fingerprint] = []
        linked = self.verifier.linked
        held = np.zeros(rows.stop - rows.start if linked else 0, np.uint64)
        for i, (places, words) in enumerate(self._read(columns, rows)):
            found.append(Fingerprint.of(words))
            if linked and i >= HELD_TABLE_INDEX:
                held[slice(None) if places is None else places] = words
        if linked:
            found.append(self.verifier.scatter.fingerprint_with_ids(held, ids))
        return found

    def cells(self, columns: Mapping[str, Column], rows: int) -> list[int]:
        """Count the non-empty cells of each kept table; for a very large table return a bound."""
        found: list[int] = []
        for table, levels in zip(self.verifier.tables, self.levels, strict=True):
            chosen = [columns[name] for name in table.columns]
            number = rows
            if table.only is not None and levels is not None:
                places = np.flatnonzero(np.isin(columns[table.only[0]].codes, levels)).astype(np.uint32)
                chosen, number = [column.take_rows(places) for column in chosen], places.size
            found.append(_count_cells(chosen, number) if chosen else 0)
        return found


def _count_cells(columns: Sequence[Column], rows: int) -> int:
    digits = pack_columns(columns)
    if rows > MAX_ROWS_COUNTED:
        return min(rows, prod(group.range for group in digits))
    return pl.DataFrame({str(i): group.numbers() for i, group in enumerate(digits)}).n_unique()


@dataclass(frozen=True, slots=True)
class MemberReader:
    """Take the fingerprint of linked records, each with the identifier of its household."""

    scatter: Scatter
    words: dict[str, CodeWords]

    @staticmethod
    def of(scatter: Scatter, group: Members) -> "MemberReader":
        """Read packed members."""
        return MemberReader(
            scatter,
            {
                digit.name: CodeWords.of_digit(
                    digit, (scatter.hasher,), holds_empty=digit.name in group.empty, nothing=scatter.empty
                )
                for digit in group.digits
            },
        )

    def prints(self, codes: Mapping[str, Codes], owners: Words) -> Fingerprint:
        """Return the fingerprint of members from their codes and the identifiers of their households."""
        variables = ((self.words[name], codes[name]) for name in self.words)
        return Fingerprint.of(self.scatter.rows(variables, owners.size, owners))


def slice_rows(rows: int, size: int = ROWS_PER_PASS) -> list[slice]:
    """Return slices that cover all rows, ``size`` rows each."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def require_kept(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks, or raise an error: a file that does not keep its invariants is not released."""
    broken = [check for check in checks if not check.kept]
    if broken:
        raise PrivacyError(
            "the swapped file does not keep its invariants; nothing was released",
            why="; ".join(check.invariant for check in broken),
            fix="this is a fault of the program or of the machine: report it with the receipt, without the data",
        )
    return tuple(checks)


# Read records before the swap: their keyed digest and the fingerprints of what the swap keeps, in one pass.

ROWS_PER_DIGEST = 1 << 16  # rows digested together: their words stay in the cache


@dataclass(frozen=True, slots=True)
class SurveyPart:
    """Digest sum and fingerprints of some records."""

    total: MultisetDigest
    prints: list[Fingerprint]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFingerprints:
    """The digest and the fingerprints of the records before the swap."""

    digest: bytes
    homes: list[Fingerprint]  # of the kept tables, and at the end of identifiers with all that is held
    people: list[Fingerprint]  # of each linked type, with the identifiers they belong to


@dataclass(frozen=True, slots=True)
class HomeSurvey:
    """Digest records of the swapped type and take their fingerprints."""

    key: Key
    columns: Mapping[str, Column]
    ids: NDArray[np.uint64]
    words: Mapping[str, CodeWords]
    kept: KeptReader

    @staticmethod
    def of(
        key: Key,
        columns: Mapping[str, Column],
        ids: NDArray[np.uint64],
        names: Sequence[str],
        kept: KeptReader,
    ) -> "HomeSurvey":
        """Prepare to read these records."""
        both = make_hashers(key)
        words = {name: CodeWords.of(columns[name], both) for name in names}
        return HomeSurvey(key, columns, ids, words, kept)

    def digest_slice(self, rows: slice) -> SurveyPart:
        """Digest a slice of the records."""
        total = self.key.multiset()
        variables = ((words, self.columns[name].codes[rows]) for name, words in self.words.items())
        total.update([self.ids[rows], *digest_words(variables, rows.stop - rows.start)])
        return SurveyPart(total, self.kept.prints(self.columns, rows, self.ids[rows]))


@dataclass(frozen=True, slots=True)
class MemberSurvey:
    """Digest linked records, each with the identifier of its household, and take their fingerprint."""

    key: Key
    words: Mapping[str, CodeWords]
    reader: MemberReader

    @staticmethod
    def of_members(key: Key, group: Members, scatter: Scatter) -> "MemberSurvey":
        """Prepare to read packed members."""
        both = make_hashers(key)
        words = {
            digit.name: CodeWords.of_digit(digit, both, holds_empty=digit.name in group.empty)
            for digit in group.digits
        }
        return MemberSurvey(key, words, MemberReader.of(scatter, group))

    @staticmethod
    def of_columns(
        key: Key, columns: Mapping[str, Column], names: Sequence[str], scatter: Scatter
    ) -> "MemberSurvey":
        """Prepare to read members as columns."""
        both = make_hashers(key)
        words = {name: CodeWords.of(columns[name], both) for name in names}
        return MemberSurvey(key, words, MemberReader(scatter, scatter.words(columns, names)))

    def digest_slice(self, codes: Mapping[str, Codes], owners: NDArray[np.uint64]) -> SurveyPart:
        """Digest some members, from their codes and the identifiers of their households."""
        total = self.key.multiset()
        if owners.size:
            variables = ((words, codes[name]) for name, words in self.words.items())
            total.update([owners, *digest_words(variables, owners.size)])
        return SurveyPart(total, [self.reader.prints(codes, owners)])


def add_parts(key: Key, parts: Iterable[SurveyPart], number: int) -> tuple[MultisetDigest, list[Fingerprint]]:
    """Add up the digests and the fingerprints of all parts."""
    whole, prints = key.multiset(), [Fingerprint() for _ in range(number)]
    for part in parts:
        whole.merge(part.total)
        prints = [a + b for a, b in zip(prints, part.prints, strict=True)]
    return whole, prints
