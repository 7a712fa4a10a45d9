"""Draw which record receives whose swap variables: Algorithm 1 of the paper over all strata at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.bernoulli import threshold
from stirred.engine import Engine, Local, Progress
from stirred.mechanisms.swapping.draw.derangement import derange, group_rows, sort_groups, spread_givers
from stirred.mechanisms.swapping.draw.selection import Selection, WordSource, select
from stirred.mechanisms.swapping.draw.strata import count_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Record ``receivers[i]`` takes the swap variables of record ``givers[i]``; all others keep their own."""

    receivers: NDArray[np.uint32]
    givers: NDArray[np.uint32]
    attempts: int = 1  # selections drawn, counting the strata that had to be selected again

    def apply(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the column after the swap.

        >>> both = np.array([0, 2], np.uint32)
        >>> Moves(receivers=both, givers=both[::-1]).apply(np.array([7, 8, 9]))
        array([9, 8, 7])
        """
        swapped = column.copy()
        swapped[self.receivers] = column[self.givers]
        return swapped


def draw_moves(
    words: WordSource,
    *,
    ids: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    rate: Fraction | Sequence[Fraction],
    classes: NDArray[np.uint16] | None = None,
    sizes: NDArray[np.uint32] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Moves:
    """Draw the Permutation Swapping Algorithm once; ``strata`` are dense codes, ``ids`` are unique words.

    A record takes no part when its stratum is ``strata.OUT``. The draw is a function of the words and of the set
    of (identifier, stratum) pairs alone. With ``classes`` there is a rate for each class of records, strictly
    between 0 and 1.
    """
    place = engine or Local()
    if sizes is None:
        sizes = count_sizes(strata)
    report = progress or (lambda *_: None)
    report("select", 0, 2)
    rates = (rate,) if isinstance(rate, Fraction) else tuple(rate)
    selection = Selection(
        words=words, ids=ids, strata=strata, thresholds=tuple(map(threshold, rates)), classes=classes
    )
    rows, second, counts, attempts = select(selection, sizes, place)
    report("derange", 1, 2)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    grouped_rows, grouped_words = np.empty(rows.size, np.uint32), np.empty(rows.size, np.uint64)
    group_rows(strata, rows, second, starts[:-1].copy(), grouped_rows, grouped_words)
    del rows, second
    sort_groups(ids, starts, grouped_rows, grouped_words)
    images = derange(words, ids, starts, grouped_rows, grouped_words)
    givers = np.empty(grouped_rows.size, np.uint32)
    spread_givers(starts, grouped_rows, images, givers)
    report("derange", 2, 2)
    return Moves(receivers=grouped_rows, givers=givers, attempts=attempts)
