r"""Draw from laws that are too wide for a table: a coarse table, a uniform step, and a coin that nearly always accepts.

For weights $e^{-\varphi(|k|)}$ and a stride m write $|X| = mY + Z$ with $0 \le Z < m$. Draw Y with weights
$e^{-\varphi(mY)}$ from a table, Z uniformly, a sign, and accept with probability $e^{-x}$,
$x = \varphi(mY + Z) - \varphi(mY)$; of the two signs of 0 only one counts. An accepted draw has exactly the
stated law, and with a coarse deviation of 2,000 an attempt fails twice in 10,000. The kernel accepts when the first word is
below $1 - x$, which is below $e^{-x}$; every other case is decided with more bits (proof.md, Section 7).
"""

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.cells import UNDECIDED, AddressableLaw
from stirred.chance.samplers.enclosure import is_below_exp
from stirred.chance.samplers.integers import multiply_words, settle_floor
from stirred.chance.samplers.laws import FallingLaw
from stirred.chance.samplers.table import TabledLaw
from stirred.chance.stream import EXTENSION_BITS, Stream, Uniform
from stirred.compiled import compile_kernel


class CoarseLaw(AddressableLaw):
    """A mirrored falling law with a stride: 16 bytes of keystream per draw.

    >>> from fractions import Fraction
    >>> from stirred.chance.key import Key
    >>> wide = CoarseLaw(FallingLaw(Fraction(1, 2 * 10**12), Fraction(0), mirrored=True), stride=500)
    >>> wide.draw(Key.for_tests(1).stream("wide"), 1000).std() > 500_000
    np.True_
    """

    width = 16

    def __init__(
        self, law: FallingLaw, *, stride: int, word_bits: int = 32, extension_bits: int = EXTENSION_BITS
    ) -> None:
        self.law, self.stride = law, stride
        self.word_bits, self.extension_bits = word_bits, extension_bits
        self.table = TabledLaw(
            FallingLaw(law.square * stride**2, law.linear * stride, mirrored=False),
            word_bits=word_bits,
            extension_bits=extension_bits,
        )
        # x ≤ slope · Y · f + level with f = (Z + 1) / m, rounded up, at 31 bits
        self._slope = np.uint64(-(-2 * law.square * stride**2 * (1 << 31) // 1))
        self._level = np.uint64(-(-(law.square * stride**2 + law.linear * stride) * (1 << 31) // 1) + 1)

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        self.table._decide(words[::4].copy(), out)
        return _accept_first(words, np.uint64(self.stride), self._slope, self._level, out)

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        found = self._attempt(stream, position, 0, [int(word) for word in words])
        attempt = 0
        while found is None:
            attempt += 1
            block = stream.extension(position + 12, attempt)
            found = self._attempt(
                stream, position, attempt, [(block >> s) & 0xFFFFFFFF for s in (0, 32, 64, 96)]
            )
        return found

    def _attempt(self, stream: Stream, position: int, attempt: int, words: list[int]) -> int | None:
        """Make one exact attempt; each of its three uniform numbers has its own extension."""

        def uniform(offset: int, value: int, bits: int) -> Uniform:
            level = attempt << 16
            return stream.uniform(position + offset, value, bits, chunk=self.extension_bits, level=level)

        y = self.table.settle(uniform(0, words[0] >> (32 - self.word_bits), self.word_bits))
        z = settle_floor(uniform(8, words[2] | words[3] << 32, 64), self.stride)
        size = self.stride * y + z
        negative = bool(words[1] & 1)
        if negative and size == 0:
            return None
        if not is_below_exp(uniform(4, words[1] >> 1, 31), self.law.rise(self.stride * y, z)):
            return None
        return -size if negative else size


@compile_kernel
def _accept_first(
    words: NDArray[np.uint32], stride: np.uint64, slope: np.uint64, level: np.uint64, out: NDArray[np.int64]
) -> int:
    """Finish the first attempt where the first words show that it succeeds: word 1 for coin and sign, 2 and 3 for Z."""
    undecided = 0
    one = np.uint64(1)
    for j in range(len(out)):
        y = out[j]
        coin = np.uint64(words[4 * j + 1])
        place = np.uint64(words[4 * j + 2]) | np.uint64(words[4 * j + 3]) << np.uint64(32)
        z, rest = multiply_words(place, stride)
        inside = (place >> np.uint64(48)) + one  # more than 2^16 Z / m
        x = ((slope * np.uint64(max(y, 0)) * inside) >> np.uint64(16)) + one + level
        size = np.int64(stride) * y + np.int64(z)
        negative = coin & one
        whole = rest <= np.uint64(0) - stride  # Z does not depend on further bits
        sure = (coin >> one) + one + x <= np.uint64(1 << 31)
        if y == UNDECIDED or not whole or not sure or (negative and size == 0):
            out[j] = UNDECIDED
            undecided += 1
        else:
            out[j] = -size if negative else size
    return undecided
