"""The key: 256 secret bits from which all randomness of a run comes.

Everything is derived by HMAC-SHA-512 or HMAC-SHA-256 of a purpose and an injective encoding of a name, so neither
order, thread, process nor engine decides a bit. A run binds the key to its mechanism, parameters and census first
(:meth:`Key.bind`): the same key with anything changed gives independent noise.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.cipher import BLOCK_BYTES, CHUNK_BYTES, BlockCipher
from stirred.chance.multiset import Column, MultisetDigest
from stirred.chance.names import Part, encode_name
from stirred.chance.stream import Stream
from stirred.errors import InputError, PrivacyError, require_kind, require_path
from stirred.toml_text import read_plain_text

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
        place = Path(path)
        try:
            text = read_plain_text(place, encoding="ascii")
            mode = place.stat().st_mode
        except FileNotFoundError:
            raise InputError(
                f"no key file at {place}",
                why="the path does not exist",
                fix="make one: Key.fresh().save(path)",
            ) from None
        except (OSError, UnicodeDecodeError):
            raise _make_key_error(place) from None
        if os.name == "posix" and mode & 0o077:
            raise PrivacyError(
                f"others may read {place}",
                why="whoever has the key can compute the noise of a release",
                fix="chmod 600 the file, or make a new key",
            )
        kind, _, digits = text.strip().removeprefix(KEY_HEADER).partition(" ")
        try:
            secret = bytes.fromhex(digits)
        except ValueError:
            raise _make_key_error(place) from None
        if not text.startswith(KEY_HEADER) or kind not in {"private", "tests"} or len(secret) != 32:
            raise _make_key_error(place)
        if kind == "private" and any(_make_test_secret(seed) == secret for seed in TEST_SEEDS):
            raise PrivacyError(
                f"{place} holds a key for tests that is called private",
                why="anyone can guess it, and with it the noise of a release",
                fix="make a key: Key.fresh().save(path); for a rehearsal save Key.for_tests(1) as it is",
            )
        return cls(secret, private=kind == "private")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner may read."""
        place = Path(path)
        try:
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise PrivacyError(
                f"{place} exists",
                why="an overwritten key is lost, and releases made with it cannot be repeated",
                fix="choose another file",
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot write a key to {place}",
                why=error.strerror or "the system gives no reason",
                fix="choose a folder that exists",
            ) from None
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(f"{KEY_HEADER}{'private' if self.private else 'tests'} {self._secret.hex()}\n")
        except OSError:  # a full disk: half a key would be taken for the key of an earlier run
            place.unlink(missing_ok=True)
            raise

    def bind(self, *context: Part) -> "Key":
        """Derive the key of one run from mechanism, parameters and census digest, so that noise is never reused."""
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


def _make_key_error(place: Path) -> InputError:
    return InputError(
        f"{place} is not a key file",
        why="it was not written by Key.save, or is damaged",
        fix="use the file that Key.save wrote, or a backup of it",
    )
