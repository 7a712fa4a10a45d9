"""Verify the invariants on the output before it is released."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Check
from stirred.mechanisms.swapping.records.columns import Column, Digits, words

COUNTED = 1 << 22  # rows up to which the cells of a margin are counted one by one
MODULUS = 1 << 64


@compiled
def _mixed(word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64: a bijection of words that scatters them."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def fold(mixed: NDArray[np.uint64], numbers: NDArray[np.uint64], salt: np.uint64) -> None:
    for i in range(numbers.size):
        mixed[i] = _mixed(mixed[i] ^ _mixed(numbers[i] + salt))


@compiled
def _sum(mixed: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    first, second = np.uint64(0), np.uint64(0)
    for word in mixed:
        first += word
        second += _mixed(word + np.uint64(0x9E3779B97F4A7C15))
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
    def of(mixed: NDArray[np.uint64]) -> "Fingerprint":
        """The fingerprint of rows already scattered."""
        first, second = _sum(mixed)
        return Fingerprint(mixed.size, int(first), int(second))


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A table whose cells must not change: compares multisets of rows without sorting them.

    Salts are fresh random words, so no data set can be made to collide; unequal multisets agree with
    probability about 2⁻⁶⁴.
    """

    name: str
    digits: tuple[Digits, ...]
    salts: NDArray[np.uint64]
    only: tuple[Column, NDArray[Any]] | None = None  # of the records with these codes; None: of all

    @classmethod
    def of(
        cls, name: str, columns: Sequence[Column], *, only: tuple[Column, NDArray[Any]] | None = None
    ) -> "Margin":
        """A margin over the given columns."""
        digits = words(columns)
        salts = np.frombuffer(secrets.token_bytes(8 * len(digits)), np.uint64)
        return cls(name=name, digits=digits, salts=salts, only=only)

    def places(self, columns: Mapping[str, Column], rows: slice) -> NDArray[np.intp]:
        """Which of some rows a restricted margin counts, from 0."""
        assert self.only is not None
        column, codes = self.only
        return np.flatnonzero(np.isin(columns[column.name].codes[rows], codes))

    def scattered(self, columns: Mapping[str, Column], rows: slice) -> NDArray[np.uint64]:
        """One word for each of some rows that the margin counts, equal for equal values."""
        if self.only is not None:
            chosen = (self.places(columns, rows) + rows.start).astype(np.uint32)
            columns = {
                c.name: columns[c.name].taken(chosen) for digits in self.digits for c in digits.columns
            }
            rows = slice(0, chosen.size)
        mixed = np.zeros(rows.stop - rows.start, np.uint64)
        for digits, salt in zip(self.digits, self.salts, strict=True):
            fold(mixed, digits.on(columns).numbers(rows), salt)
        return mixed

    def cells(self) -> int:
        """How many cells are not empty; for large files a bound on that number."""
        rows = self.digits[0].columns[0].codes.size if self.digits else 0
        if self.only is not None:
            own = {self.only[0].name: self.only[0]}
            chosen = self.places(own, slice(0, rows)).astype(np.uint32)
            parts = tuple(
                replace(d, columns=tuple(column.taken(chosen) for column in d.columns)) for d in self.digits
            )
            return replace(self, digits=parts, only=None).cells()
        if not self.digits or not rows:
            return min(rows, 1)
        if rows > COUNTED:
            product = 1
            for digits in self.digits:
                product *= digits.range
            return min(rows, product)
        numbers = pl.DataFrame({str(i): digits.numbers() for i, digits in enumerate(self.digits)})
        return numbers.n_unique()

    def check(self, before: Fingerprint, after: Fingerprint) -> Check:
        """The verdict for the release."""
        return Check(invariant=self.name, kept=before == after, numbers=self.cells())


def joined(owners: NDArray[np.uint64], packed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One word for each member from its owner's word and its own packed words."""
    mixed = owners.copy()
    for w in range(packed.shape[1]):
        fold(mixed, np.ascontiguousarray(packed[:, w]), np.uint64(w + 1))
    return mixed


def all_kept(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks, or raise an error: a file that does not keep its invariants is not released."""
    broken = [check for check in checks if not check.kept]
    if broken:
        raise PrivacyError(
            "the swapped file does not keep its invariants; nothing was released",
            why="; ".join(check.invariant for check in broken),
            fix="this is a fault of the program or of the machine: report it with the receipt, without the data",
        )
    return tuple(checks)
