"""Binomial counts, exact, by table."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred.chance.bernoulli import probability
from stirred.chance.laws import Binomial
from stirred.chance.stream import Stream
from stirred.chance.table import Table


@lru_cache(maxsize=256)
def _binomial(trials: int, p: Fraction) -> Table:
    return Table(Binomial(trials, p))


def binomial(
    stream: Stream, trials: int | NDArray[np.int64], p: Fraction, n: int | None = None
) -> NDArray[np.int64]:
    p = probability(p)
    counts = (
        np.full(1 if n is None else n, trials, dtype=np.int64) if np.ndim(trials) == 0 else np.asarray(trials)
    )
    start = stream.claim(len(counts), 4) // 4
    result = np.zeros(len(counts), dtype=np.int64)
    if p == 1:
        return counts.copy()
    if p == 0:
        return result
    for value in np.unique(counts):
        where = np.flatnonzero(counts == value)
        if value > 0:
            result[where] = _binomial(int(value), p).at_positions(stream, (where + start).astype(np.uint64))
    return result
