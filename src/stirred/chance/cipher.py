"""AES-256 in two forms: a keystream that starts at any block, and a batch of single blocks.

Both compute the same function: block number c of the keystream is AES(key, c as 16 big-endian bytes), so a
word of the stream can be computed alone. Every call builds its own cipher object (6 µs): an OpenSSL context may not
be shared by threads.
"""

from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

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
