"""Read the random bits that belong to one name, from any position of an AES-256 keystream."""

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from stirred.errors import InputError

# AES-256 in two forms: a keystream that starts at any block, and a batch of single blocks.
#
# Both compute the same function: block number c of the keystream is AES(key, c as 16 big-endian bytes), so a
# word of the stream can be computed alone. Every call builds its own cipher object (6 µs): an OpenSSL context may not
# be shared by threads.

BLOCK_BYTES: Final = 16
# update_into needs this many bytes beyond what it writes
SLACK_BYTES: Final = BLOCK_BYTES - 1
# keystream, zeros and results of one chunk stay in a 2 MB second-level cache
CHUNK_BYTES: Final = 1 << 17

_ZEROS: Final = bytes(CHUNK_BYTES)


class Keystream:
    """The AES-256-CTR keystream of a key, from a given block on, written into buffers of the caller.

    >>> first = bytearray(32 + SLACK_BYTES); Keystream(bytes(32), 0).fill(first, 32)
    >>> later = bytearray(16 + SLACK_BYTES); Keystream(bytes(32), 1).fill(later, 16)
    >>> first[16:32] == later[:16]
    True
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes, block: int) -> None:
        counter = (block % (1 << 128)).to_bytes(BLOCK_BYTES, "big")
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()

    def fill(self, buffer: Any, size: int) -> None:
        """Write the next ``size`` bytes; ``buffer`` needs SLACK bytes more."""
        view = memoryview(buffer).cast("B")
        for start in range(0, size, CHUNK_BYTES):
            step = min(CHUNK_BYTES, size - start)
            self._encryptor.update_into(_ZEROS if step == CHUNK_BYTES else _ZEROS[:step], view[start:])


def read_keystream(key: bytes, position: int, size: int) -> NDArray[np.uint8]:
    """Return bytes ``position … position + size - 1`` of the keystream, computed without the bytes before.

    >>> whole = read_keystream(bytes(32), 0, 100)
    >>> bool((read_keystream(bytes(32), 37, 20) == whole[37:57]).all())
    True
    """
    block, skip = divmod(position, BLOCK_BYTES)
    buffer = np.empty(skip + size + SLACK_BYTES, dtype=np.uint8)
    Keystream(key, block).fill(buffer, skip + size)
    return buffer[skip : skip + size]


class BlockCipher:
    """AES-256 of single blocks, in place, many in one call: a block is a row of two 64-bit words.

    >>> rows = np.zeros((2, 2), dtype=np.uint64); BlockCipher(bytes(32)).encrypt(rows)
    >>> bool((rows[0] == rows[1]).all() and rows.any())
    True
    """

    __slots__ = ("_encryptor", "_last")

    def __init__(self, key: bytes) -> None:
        # ECB is safe here: all inputs are different single blocks
        self._encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
        self._last = bytearray(BLOCK_BYTES + SLACK_BYTES)

    def encrypt(self, rows: NDArray[np.uint64]) -> None:
        """Replace each row (contiguous, 16 bytes) by its AES encryption."""
        view = memoryview(rows.data).cast("B")
        end = len(view) - BLOCK_BYTES
        if end > 0:
            self._encryptor.update_into(
                view[:end], view
            )  # the last row is the extra space that the call needs
        if end >= 0:
            self._encryptor.update_into(view[end:], self._last)
            view[end:] = self._last[:BLOCK_BYTES]


def write_counters(numbers: NDArray[np.uint64], blocks: NDArray[np.uint64]) -> None:
    """Write each number as a keystream counter: 16 big-endian bytes, on a little-endian machine.

    >>> rows = np.empty((1, 2), dtype=np.uint64); write_counters(np.array([258], dtype=np.uint64), rows)
    >>> rows.tobytes().hex()
    '00000000000000000000000000000102'
    """
    blocks[:, 0] = 0
    blocks[:, 1] = numbers.byteswap()


# A stream: the random bits that belong to one name, readable from any position.
#
# Layout. A stream has two AES-256 keys. The *main* keystream gives every draw its first word, at a position that can
# be computed (draw number × width). The *extension* gives every position infinitely many further bits, block after
# block: AES(extension key, position (12 bytes) ‖ level (4 bytes)). A draw reads its extension only when the first word
# cannot decide, so what one draw needs never moves another draw.

EXTENSION_BITS: Final = 8 * BLOCK_BYTES


class Stream:
    """Random bits that depend on the key and the name alone; reading moves ``position`` (in bytes).

    >>> from stirred.chance.keys import Key
    >>> stream = Key.for_tests(1).stream("doc")
    >>> a, b = stream.words32(3), stream.words32(2)
    >>> bool((stream.at(0).words32(5) == [*a, *b]).all())
    True
    """

    __slots__ = ("_extension", "_main", "position")

    def __init__(self, secret: bytes, position: int = 0) -> None:
        if len(secret) != 64:
            raise InputError(
                "a stream's secret has 64 bytes",
                why="another number of bytes was given",
                fix="make streams with key.stream(name)",
            )
        self._main, self._extension = secret[:32], secret[32:]
        self.position = position

    def __repr__(self) -> str:
        return f"Stream(position={self.position})"

    def __reduce__(self) -> tuple[type["Stream"], tuple[bytes, int]]:
        return Stream, (self._main + self._extension, self.position)

    def at(self, position: int) -> "Stream":
        """Return the same stream, read from byte ``position`` on."""
        place = index(position)
        if place < 0:
            raise InputError(
                "a stream starts at position 0",
                why="a negative position was asked for",
                fix="give a position of 0 or more",
            )
        return Stream(self._main + self._extension, place)

    def bytes(self, n: int) -> bytes:
        """Return the next ``n`` bytes."""
        return read_keystream(self._main, self.claim(n, 1), n).tobytes()

    def words32(self, n: int) -> NDArray[np.uint32]:
        """Return the next ``n`` words of 32 bits, from the next multiple of 4 bytes on."""
        start = self.claim(n, 4)
        return self._read_aligned(start, 4 * n).view(np.uint32)

    def words64(self, n: int) -> NDArray[np.uint64]:
        """Return the next ``n`` words of 64 bits, from the next multiple of 8 bytes on."""
        start = self.claim(n, 8)
        return self._read_aligned(start, 8 * n).view(np.uint64)

    def claim(self, n: int, width: int) -> int:
        """Move past the next ``n`` draws of ``width`` bytes and return where the first one starts."""
        if n < 0:  # a stream that moved back would return the same bits twice
            raise InputError(
                "the number of draws cannot be negative",
                why="a stream gives 0 draws or more",
                fix="give n of 0 or more",
            )
        start = -(-self.position // width) * width
        self.position = start + n * width
        return start

    def keystream(self, position: int) -> Keystream:
        """Return the main keystream from ``position``, a multiple of 16, for kernels that fill their own buffers."""
        return Keystream(self._main, position // BLOCK_BYTES)

    def cipher(self) -> BlockCipher:
        """Return the cipher of the main keystream's blocks, for repeated use in one thread."""
        return BlockCipher(self._main)

    def blocks(self, numbers: NDArray[np.uint64], cipher: BlockCipher | None = None) -> NDArray[np.uint64]:
        """Return single 16-byte blocks of the main keystream by number, each as two 64-bit words."""
        inputs = np.empty((len(numbers), 2), dtype=np.uint64)
        write_counters(numbers, inputs)
        (cipher or self.cipher()).encrypt(inputs)
        return inputs

    def extension(self, position: int, level: int) -> int:
        """Return 128 more bits for the draw at ``position``: block ``level`` of its own endless string."""
        block = position.to_bytes(12, "big") + level.to_bytes(4, "big")
        encryptor = Cipher(algorithms.AES256(self._extension), modes.ECB()).encryptor()
        return int.from_bytes(encryptor.update(block), "big")

    def uniform(
        self, position: int, value: int, bits: int, *, chunk: int = EXTENSION_BITS, level: int = 0
    ) -> "Uniform":
        """Return the number whose first word, ``value`` of ``bits`` bits, stood at ``position``."""
        return Uniform(partial(self.extension, position), value=value, bits=bits, chunk=chunk, level=level)

    def _read_aligned(self, start: int, size: int) -> NDArray[np.uint8]:
        skip = start % BLOCK_BYTES
        if skip == 0:
            return read_keystream(self._main, start, size)
        return read_keystream(self._main, start, size).copy()


class Uniform:
    r"""One uniform real number in [0, 1), known to as many bits as were needed so far.

    $U \in [v, v + 1) / 2^b$, the first word having fixed the leading bits; ``extend`` makes b larger with the next
    128 bits of ``more(level)``, level = 0, 1, … (fewer bits at a time only in tests).

    >>> u = Uniform(lambda level: 1 << 127, value=0, bits=8); u.extend(); u.bits, u.value == 1 << 127
    (136, True)
    """

    __slots__ = ("_chunk", "_level", "_more", "bits", "value")

    def __init__(
        self,
        more: Callable[[int], int],
        *,
        value: int,
        bits: int,
        chunk: int = EXTENSION_BITS,
        level: int = 0,
    ) -> None:
        self._more, self._chunk, self._level = more, chunk, level
        self.value, self.bits = value, bits

    def extend(self) -> None:
        """Read the next bits."""
        more = self._more(self._level) >> (EXTENSION_BITS - self._chunk)
        self.value = (self.value << self._chunk) | more
        self.bits += self._chunk
        self._level += 1
