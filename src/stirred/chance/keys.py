"""Derive all randomness of a run from one key of 256 secret bits: names, streams and keyed digests."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isqrt
from operator import index
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.streams import BLOCK_BYTES, CHUNK_BYTES, BlockCipher, Stream
from stirred.errors import InputError, PrivacyError, require_kind, require_path
from stirred.kernels import compile_kernel
from stirred.text_formats import read_plain_text

# Encode names of streams as bytes, one to one, so that different names never share bits.

Part = str | bytes | int


def encode_name(parts: tuple[Part, ...]) -> bytes:
    """Write a name so that it can be read back: each part is a letter for its type, its length, its bytes.

    Self-delimiting parts make the concatenation injective, so ``("a", "b")`` and ``("ab",)`` differ.

    >>> len({encode_name(name) for name in [("a", "b"), ("ab",), ("a", 1), ("a1",), ("a", "1")]})
    5
    """
    pieces: list[bytes] = []
    for part in parts:
        if type(part) is bytes:  # digests of a census have many of them
            pieces += (b"b", len(part).to_bytes(8, "big"), part)
        else:
            pieces.append(_encode_part(part))
    return b"".join(pieces)


def _encode_part(part: Part) -> bytes:
    if isinstance(part, str):
        return _frame_part(b"s", part.encode())
    if isinstance(part, bytes):
        return _frame_part(b"b", part)
    if isinstance(part, bool):
        raise _make_part_error(part)
    try:
        number = index(part)
    except TypeError:
        raise _make_part_error(part) from None
    # the encoding need not be the shortest; it must depend on the number alone
    return _frame_part(b"i", number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _frame_part(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(8, "big") + body


def _make_part_error(part: object) -> InputError:
    return InputError(
        f"a {type(part).__name__} cannot be part of a stream's name",
        why="names are made of strings, bytes and integers, so that equal names mean equal bits",
        fix="write it as a string, e.g. str(fraction)",
    )


# A keyed digest of a table's rows that does not depend on their order, computed batch by batch in one pass.
#
# Each row is folded by CBC-MAC under AES-256 (fixed number of columns, hence a pseudorandom function of the row); the
# 16-byte results are added modulo 2^128 (MSet-Add-Hash, Clarke et al. 2003); the sum, the number of rows and of
# columns go through HMAC. The collision argument is in proof.md.

Column = NDArray[np.integer[Any]] | NDArray[np.bool_]
_ROWS_PER_CHUNK: Final = CHUNK_BYTES // BLOCK_BYTES
_MODULUS: Final = 1 << 128


class MultisetDigest:
    """Feed columns of integers with :meth:`update`; :meth:`value` is the digest of all rows so far.

    >>> from stirred.chance.keys import Key
    >>> a, b = Key.for_tests(1).multiset(), Key.for_tests(1).multiset()
    >>> a.update([np.array([1, 2, 2]), np.array([7, 8, 8])])
    >>> b.update([np.array([2]), np.array([8])]); b.update([np.array([2, 1]), np.array([8, 7])])
    >>> a.value() == b.value()
    True
    """

    __slots__ = ("_key", "_sum", "_width", "rows")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sum = 0
        self._width: int | None = None
        self.rows = 0

    def __repr__(self) -> str:
        return f"MultisetDigest(rows={self.rows})"

    def update(self, columns: Sequence[Column]) -> None:
        """Add a batch of rows: one array per column, all of one length, always the same number of columns."""
        self._add([_column_words(column) for column in columns])

    def _add(self, words: list[NDArray[np.uint64]]) -> None:
        if not words or len({len(word) for word in words}) != 1:
            raise InputError(
                "a batch of rows needs columns of one length",
                why=f"{len(words)} columns were given, of different lengths or none at all",
                fix="give columns of one length",
            )
        if self._width not in (None, len(words)):
            raise InputError(
                "batches of one table have the same columns",
                why=f"the first batch has {self._width} columns, this one {len(words)}",
                fix="give every batch the same columns",
            )
        self._width = len(words)
        cipher = BlockCipher(hmac.digest(self._key, b"rows of " + self._encode_shape(len(words)), "sha256"))
        nothing = np.zeros(1, dtype=np.uint64)
        n = len(words[0])
        state = np.empty((min(n, _ROWS_PER_CHUNK), 2), dtype=np.uint64)
        for start in range(0, n, _ROWS_PER_CHUNK):
            stop = min(n, start + _ROWS_PER_CHUNK)
            part = state[: stop - start]
            part[:] = 0
            for i in range(0, len(words), 2):
                second = words[i + 1][start:stop] if i + 1 < len(words) else nothing
                _fold_words(part, words[i][start:stop], second)
                cipher.encrypt(part)
            high, low = _add_rows(part)
            self._sum = (self._sum + (int(high) << 64) + int(low)) % _MODULUS
        self.rows += n

    def merge(self, other: "MultisetDigest") -> None:
        """Add the rows another worker has digested under the same key."""
        if other._width is None:
            return
        if self._width not in (None, other._width) or not hmac.compare_digest(self._key, other._key):
            raise InputError(
                "only digests of one table under one key are merged",
                why="their columns or their keys differ",
                fix="merge digests that were made from the same columns with the same key",
            )
        self._width = other._width
        self._sum = (self._sum + other._sum) % _MODULUS
        self.rows += other.rows

    def part(self) -> bytes:
        """Return the sum so far, for :meth:`merge_part` in another process; without the key it reveals nothing."""
        return self._sum.to_bytes(16, "big")

    def merge_part(self, part: bytes, *, rows: int, width: int) -> None:
        """Add the sum of a worker that digested this many rows of ``width`` words under the same key.

        >>> from stirred.chance.keys import Key
        >>> here, there = Key.for_tests(1).multiset(), Key.for_tests(1).multiset()
        >>> there.update([np.array([4, 5])])
        >>> here.merge_part(there.part(), rows=2, width=1)
        >>> here.value() == there.value()
        True
        """
        other = MultisetDigest(self._key)
        other._sum, other._width, other.rows = int.from_bytes(part, "big"), width if rows else None, rows
        self.merge(other)

    def value(self) -> bytes:
        """Return the 32-byte digest of the rows so far."""
        message = (
            self._sum.to_bytes(16, "big")
            + self.rows.to_bytes(16, "big")
            + self._encode_shape(self._width or 0)
        )
        return hmac.digest(self._key, b"value" + message, "sha256")

    def _encode_shape(self, width: int) -> bytes:
        return encode_name((width,))


def _column_words(column: Column) -> NDArray[np.uint64]:
    array = np.asarray(column)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise InputError(
            "the digest of rows takes one-dimensional columns of integers",
            why=f"a column of {array.ndim} dimensions and type {array.dtype} was given",
            fix="give integer codes, and digest their labels separately",
        )
    if array.dtype == np.uint64:
        return np.asarray(array)
    return np.asarray(array.astype(np.int64, copy=False).view(np.uint64))


@compile_kernel
def _fold_words(state: NDArray[np.uint64], first: NDArray[np.uint64], second: NDArray[np.uint64]) -> None:
    paired = len(second) == len(first)
    for i in range(len(state)):
        state[i, 0] ^= first[i]
        if paired:
            state[i, 1] ^= second[i]


@compile_kernel
def _add_rows(state: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    high, low = np.uint64(0), np.uint64(0)
    for i in range(len(state)):
        word = state[i, 0]
        low += word
        if low < word:
            high += np.uint64(1)
        high += state[i, 1]
    return high, low


# SHA-512 (FIPS 180-4) from a state in the middle, which hashlib cannot begin with: so another process computes the inner
# hash of HMAC (RFC 2104) without the key, and only the owner of the key can make the digest from it.

_HASHED_BYTES: Final = 128  # of a block
_INNER_PAD, _OUTER_PAD = 0x36, 0x5C
_WORD_MASK: Final = (1 << 64) - 1


@cache
def _list_constants() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the state that SHA-512 begins with, and its round constants: roots of the first primes, after the point.

    >>> first, rounds = _list_constants()
    >>> hex(int(first[0])), hex(int(rounds[0]))
    ('0x6a09e667f3bcc908', '0x428a2f98d728ae22')
    """
    primes = [n for n in range(2, 410) if all(n % k for k in range(2, isqrt(n) + 1))]
    squares = [isqrt(p << 128) & _WORD_MASK for p in primes[:8]]
    cubes = [_cube_root(p << 192) & _WORD_MASK for p in primes[:80]]
    return np.array(squares, np.uint64), np.array(cubes, np.uint64)


def _cube_root(number: int) -> int:
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low


@compile_kernel
def _turn_right(word: np.uint64, steps: int) -> np.uint64:
    return (word >> np.uint64(steps)) | (word << np.uint64(64 - steps))


@compile_kernel
def _compress_blocks(
    state: NDArray[np.uint64], words: NDArray[np.uint64], rounds: NDArray[np.uint64]
) -> None:
    w = np.empty(80, np.uint64)
    for start in range(0, len(words), 16):
        w[:16] = words[start : start + 16]
        for i in range(16, 80):
            x, y = w[i - 15], w[i - 2]
            low = _turn_right(x, 1) ^ _turn_right(x, 8) ^ (x >> np.uint64(7))
            high = _turn_right(y, 19) ^ _turn_right(y, 61) ^ (y >> np.uint64(6))
            w[i] = w[i - 16] + low + w[i - 7] + high
        a, b, c, d = state[0], state[1], state[2], state[3]
        e, f, g, h = state[4], state[5], state[6], state[7]
        for i in range(80):
            high = _turn_right(e, 14) ^ _turn_right(e, 18) ^ _turn_right(e, 41)
            first = h + high + ((e & f) ^ (~e & g)) + rounds[i] + w[i]
            low = _turn_right(a, 28) ^ _turn_right(a, 34) ^ _turn_right(a, 39)
            second = low + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e = g, f, e, d + first
            d, c, b, a = c, b, a, first + second
        for i, word in enumerate((a, b, c, d, e, f, g, h)):
            state[i] += word


def _pad_secret(secret: bytes, pad: int) -> bytes:
    return bytes(byte ^ pad for byte in secret.ljust(_HASHED_BYTES, b"\0"))


@dataclass(frozen=True, slots=True)
class DigestStart:
    """The state of the inner hash of HMAC-SHA-512 after the key: it can be sent to tasks, unlike the key."""

    state: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> "DigestStart":
        """Return the state after a secret."""
        first, rounds = _list_constants()
        state = first.copy()
        _compress_blocks(state, _to_big_words(_pad_secret(secret, _INNER_PAD)), rounds)
        return cls(tuple(int(word) for word in state))

    def hash_parts(self, parts: Iterable[Sequence[bytes | memoryview]]) -> bytes:
        """Return the inner hash of the parts of a digest, each of them given in pieces, one after the other."""
        state, rounds = np.array(self.state, np.uint64), _list_constants()[1]
        waiting, size = _encode_purpose("digest"), _HASHED_BYTES
        size += len(waiting)
        for part in parts:
            head = b"b" + sum(len(piece) for piece in part).to_bytes(8, "big")
            for piece in (head, *part):
                size += len(piece)
                held = waiting + bytes(piece)
                whole = len(held) - len(held) % _HASHED_BYTES
                _compress_blocks(state, _to_big_words(held[:whole]), rounds)
                waiting = held[whole:]
        zeros = bytes((_HASHED_BYTES - 17 - len(waiting)) % _HASHED_BYTES)
        last = waiting + b"\x80" + zeros + (8 * size).to_bytes(16, "big")
        _compress_blocks(state, _to_big_words(last), rounds)
        return state.astype(">u8").tobytes()


def _to_big_words(blocks: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(blocks, ">u8").astype(np.uint64)


# The key: 256 secret bits from which all randomness of a run comes.
#
# Everything is derived by HMAC-SHA-512 or HMAC-SHA-256 of a purpose and an injective encoding of a name, so neither
# order, thread, process nor engine decides a bit. A mechanism binds the key to what its noise may depend on first
# (:meth:`Key.bind`; most: its name, parameters and a digest of the census): with any of it changed, noise is independent.

KEY_HEADER: Final = "stirred-key-1 "
MIN_DISTINCT_BYTES: Final = (
    8  # different ones in a secret; 32 random bytes have fewer with probability below 1e-35
)
TEST_SEEDS: Final = range(-100, 10_000)  # of keys for tests that are told from private ones


class Key:
    """A secret of 256 bits; the name of a stream, not the order of calls, decides its bits.

    >>> key = Key.for_tests(1)
    >>> key
    Key(for tests, not private)
    >>> run = key.bind("swapping", '{"rate": "1/20"}', b"census digest")
    >>> bool((run.stream("swap", 7).words32(4) == run.stream("swap", 7).words32(4)).all())
    True
    """

    __slots__ = ("_bound", "_secret", "private")

    def __init__(self, secret: bytes, *, private: bool = True, bound: bool = False) -> None:
        require_kind(
            "the secret of a key", secret, bytes, wanted="32 bytes", fix="Key.fresh(), or Key.load(path)"
        )
        if len(secret) != 32:
            raise InputError("a key has 32 bytes", why=f"{len(secret)} were given", fix="Key.fresh()")
        if private and len(set(secret)) < MIN_DISTINCT_BYTES:
            raise PrivacyError(
                "this key is no secret",
                why=f"its 32 bytes have only {len(set(secret))} different values: it was written by hand, or is empty",
                fix="Key.fresh() draws one from the operating system",
            )
        self._secret = secret
        self._bound = bound
        self.private = private

    @classmethod
    def fresh(cls) -> "Key":
        """Return a new key from the operating system."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def for_tests(cls, seed: int) -> "Key":
        """Return a key that anyone can guess; releases made with it are marked as not private."""
        require_kind("the seed of a test key", seed, int, wanted="a whole number", fix="Key.for_tests(1)")
        return cls(_make_test_secret(seed), private=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Key":
        """Read a key from a file that :meth:`save` wrote; refused when others may read the file."""
        require_path("a key file", path, fix='Key.load("office.key")')
        key_file = Path(path)
        try:
            text = read_plain_text(key_file, encoding="ascii")
            mode = key_file.stat().st_mode
        except FileNotFoundError:
            raise InputError(
                f"no key file at {key_file}",
                why="the path does not exist",
                fix="make one: Key.fresh().save(path)",
            ) from None
        except (OSError, UnicodeDecodeError):
            raise _make_key_error(key_file) from None
        if os.name == "posix" and mode & 0o077:
            raise PrivacyError(
                f"others may read {key_file}",
                why="whoever has the key can compute the noise of a release",
                fix="chmod 600 the file, or make a new key",
            )
        kind, _, digits = text.strip().removeprefix(KEY_HEADER).partition(" ")
        try:
            secret = bytes.fromhex(digits)
        except ValueError:
            raise _make_key_error(key_file) from None
        if not text.startswith(KEY_HEADER) or kind not in {"private", "tests"} or len(secret) != 32:
            raise _make_key_error(key_file)
        if kind == "private" and any(_make_test_secret(seed) == secret for seed in TEST_SEEDS):
            raise PrivacyError(
                f"{key_file} holds a key for tests that is called private",
                why="anyone can guess it, and with it the noise of a release",
                fix="make a key: Key.fresh().save(path); for a rehearsal save Key.for_tests(1) as it is",
            )
        return cls(secret, private=kind == "private")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner may read."""
        key_file = Path(path)
        try:
            descriptor = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise PrivacyError(
                f"{key_file} exists",
                why="an overwritten key is lost, and releases made with it cannot be repeated",
                fix="choose another file",
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot write a key to {key_file}",
                why=error.strerror or "the system gives no reason",
                fix="choose a folder that exists",
            ) from None
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(f"{KEY_HEADER}{'private' if self.private else 'tests'} {self._secret.hex()}\n")
        except OSError:  # a full disk: half a key would be taken for the key of an earlier run
            key_file.unlink(missing_ok=True)
            raise

    def bind(self, *context: Part) -> "Key":
        """Derive a key from this context: a mechanism's name, parameters and census digest, so that no noise is reused."""
        return Key(self._derive("bind", context)[:32], private=self.private, bound=True)

    def stream(self, *name: Part) -> Stream:
        """Return the stream of this name."""
        return Stream(self._derive("stream", name))

    def digest(self, *parts: bytes) -> bytes:
        """Return a keyed digest of 32 bytes; the parts are kept apart."""
        return self._derive("digest", parts)[:32]

    @property
    def fingerprint(self) -> str:
        """Return sixteen hexadecimal digits that distinguish keys and reveal nothing about them."""
        return self._derive("fingerprint", ())[:8].hex()

    def blocks(
        self,
        label: Part | tuple[Part, ...],
        ids: NDArray[np.uint64],
        *,
        counter: int = 0,
        out: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.uint64]:
        """Return sixteen random bytes for each id, as two 64-bit words: AES(subkey of the label, id ‖ counter).

        >>> key = Key.for_tests(1)
        >>> both = key.blocks("household", np.array([5, 9], dtype=np.uint64))
        >>> bool((key.blocks("household", np.array([9], dtype=np.uint64)) == both[1]).all())
        True
        """
        ids = to_words(ids)
        rows = np.empty((len(ids), 2), dtype=np.uint64) if out is None else out
        if rows.shape != (len(ids), 2) or rows.dtype != np.uint64 or not rows.flags.c_contiguous:
            raise InputError(
                "blocks need room for two 64-bit words per id",
                why="out has another shape or type",
                fix="np.empty((n, 2), dtype=np.uint64)",
            )
        cipher = BlockCipher(self._label("blocks", label))
        step = CHUNK_BYTES // BLOCK_BYTES
        for start in range(0, len(ids), step):
            part = rows[start : start + step]
            part[:, 0] = ids[start : start + step]
            part[:, 1] = counter
            cipher.encrypt(part)
        return rows

    def begin_digest(self) -> "DigestStart":
        """Return what another process needs to compute most of :meth:`digest`; neither key nor digests follow from it."""
        return DigestStart.of(self._secret)

    def end_digest(self, inner: bytes) -> bytes:
        """Return the digest of the parts whose inner hash another process computed.

        >>> key = Key.for_tests(1)
        >>> key.end_digest(key.begin_digest().hash_parts([[b"a", b"b"], [b"c"]])) == key.digest(b"ab", b"c")
        True
        """
        return hashlib.sha512(_pad_secret(self._secret, _OUTER_PAD) + inner).digest()[:32]

    def multiset(self) -> MultisetDigest:
        """Return a digest of rows that does not depend on their order, fed batch by batch."""
        return MultisetDigest(self._derive("multiset", ())[:32])

    def multiset_digest(self, columns: Sequence[Column]) -> bytes:
        """Return the order-free keyed digest (32 bytes) of a table given as columns of integers."""
        digest = self.multiset()
        digest.update(columns)
        return digest.value()

    def _label(self, purpose: str, label: Part | tuple[Part, ...]) -> bytes:
        return self._derive(purpose, label if isinstance(label, tuple) else (label,))[:32]

    def _derive(self, purpose: str, name: tuple[Part, ...]) -> bytes:
        return hmac.digest(self._secret, _encode_purpose(purpose) + encode_name(name), "sha512")

    def __repr__(self) -> str:
        return "Key(private)" if self.private else "Key(for tests, not private)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        """Let only the key of one run be sent to workers; the key of all runs stays in its process."""
        if self.private and not self._bound:
            raise PrivacyError(
                "this key is not sent to other processes",
                why="it gives access to every release made with it",
                fix="bind it to the run first: key.bind(mechanism, parameters, census digest)",
            )
        return _rebuild_key, (self._secret, self.private, self._bound)


def to_words(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Convert identifiers or draw numbers to unsigned words; values that could collide are refused.

    >>> to_words(np.array([3, 5]))
    array([3, 5], dtype=uint64)
    """
    array = np.asarray(ids)
    if len(array) == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "i" and array.min() < 0):
        raise InputError(
            "identifiers of draws are whole numbers from 0 on",
            why=f"the array has type {array.dtype}" if array.dtype.kind not in "iu" else "some are negative",
            fix="number the records or cells first: equal numbers mean equal noise",
        )
    return array.astype(np.uint64, copy=False)


def _make_test_secret(seed: int) -> bytes:
    return hashlib.sha256(b"stirred test key" + encode_name((seed,))).digest()


@cache
def _encode_purpose(name: str) -> bytes:
    """Return the first part of every derived name; a digest of a census asks for it once for each area."""
    return encode_name(("stirred", name))


def _rebuild_key(secret: bytes, private: bool, bound: bool) -> Key:
    return Key(secret, private=private, bound=bound)


def _make_key_error(key_file: Path) -> InputError:
    return InputError(
        f"{key_file} is not a key file",
        why="it was not written by Key.save, or is damaged",
        fix="use the file that Key.save wrote, or a backup of it",
    )
