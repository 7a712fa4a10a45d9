r"""Draw exact binomial counts by table: $P(X = k) = \binom{m}{k} p^k (1 - p)^{m - k}$.

There is one table per number of trials. A draw depends only on its position, not on how draws are grouped.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.bernoulli import to_probability
from stirred.chance.samplers.laws import BinomialLaw
from stirred.chance.samplers.table import TabledLaw
from stirred.chance.stream import EXTENSION_BITS, Stream
from stirred.errors import InputError

# a table has about 20 standard deviations of entries and a guide for 65,536 buckets
_MAX_TABLED_VARIANCE: Final = 1 << 22


def binomial(
    stream: Stream,
    trials: int | NDArray[np.int64],
    p: Fraction,
    n: int | None = None,
    *,
    word_bits: int = 32,
    extension_bits: int = EXTENSION_BITS,
) -> NDArray[np.int64]:
    """Draw the number of successes among ``trials`` coins: ``n`` times, or once for each entry of an array of trials.

    >>> from stirred.chance.key import Key
    >>> binomial(Key.for_tests(1).stream("doc"), np.array([0, 5, 9]), Fraction(1))
    array([0, 5, 9])
    """
    p = to_probability(p)
    size = n if n is not None else 1
    counts = np.asarray(trials) if np.ndim(trials) else np.full(size, trials, dtype=np.int64)
    if counts.dtype.kind not in "iu" or (counts < 0).any() or (n is not None and len(counts) != n):
        raise InputError(
            "trials are whole numbers from 0 on, one for each draw",
            why="the array holds other values, or its length is not n",
            fix="give an array of n integers from 0 on",
        )
    start = stream.claim(len(counts), TabledLaw.width) // TabledLaw.width
    result = np.zeros(len(counts), dtype=np.int64)
    if p in (0, 1):
        return result if p == 0 else counts.astype(np.int64)
    values, groups = np.unique(counts, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(values) + 1))
    for i, value in enumerate(values.tolist()):
        where = order[bounds[i] : bounds[i + 1]]
        if value:
            table = _tabled_binomial(value, p, word_bits, extension_bits)
            result[where] = table.at_positions(stream, (where + start).astype(np.uint64))
    return result


@lru_cache(maxsize=256)
def _tabled_binomial(trials: int, p: Fraction, word_bits: int, extension_bits: int) -> TabledLaw:
    if trials * p * (1 - p) > _MAX_TABLED_VARIANCE:
        raise InputError(
            f"a binomial count of {trials} trials is too wide for a table",
            why="its variance exceeds 4,194,304",
            fix="split the trials: sums of independent binomial counts are binomial",
        )
    return TabledLaw(BinomialLaw(trials, p), word_bits=word_bits, extension_bits=extension_bits)
