r"""Draw a stirring: which record receives whose swap variables, in all strata at once.

By cycles it is a Fisher–Yates shuffle with a heavier chair: record i of a stratum, in the order of identifiers, stays
with weight λ against 1 for each of the i − 1 records before it, with one of which it else exchanges its values. With
$\lambda = a/b$ a whole number below $a + b(i-1)$ decides, drawn exactly. By types the number of trades is drawn first, by
exact rejection, then who trades with whom.

All words are named by identifiers, so neither the order of rows nor parts nor threads change a draw.
"""

from collections.abc import Iterator
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from stirred.chance.uniform import multiply_words
from stirred.engine import Engine, Local
from stirred.kernels import compile_kernel
from stirred.mechanisms.stirring.law import BY_HELD, BY_PLACE, CYCLES, StratumLaws
from stirred.mechanisms.swap.moves import Moves, WordSource
from stirred.mechanisms.swap.strata import NO_STRATUM

STIR_LABEL = "stirring/stir"
TRADES_LABEL = "stirring/trades"
SELECT_LABEL = "stirring/select"
ROWS_PER_CALL = 1 << 16  # records per call of the cipher: the words stay in the second-level cache
SORTED_BY_INSERTION = 24  # records of a stratum that are sorted without a call
WORDS_AT_ONCE = 16  # records of a stratum whose words are made together for the number of trades
STRATA_AT_ONCE = 1 << 14  # strata for which they are

Rows = NDArray[np.uint32]
Words = NDArray[np.uint64]


def draw_stirring(
    words: WordSource,
    *,
    ids: Words,
    strata: Rows,
    sizes: Rows,
    laws: StratumLaws,
    held: Words | None = None,
    places: Words | None = None,
    engine: Engine | None = None,
) -> Moves:
    """Draw the moves of all strata; ``held`` and ``places`` number the types where laws are by types.

    ``strata`` are dense codes (``NO_STRATUM`` for a record that takes no part), ``ids`` are unique words. The draw is a
    function of the words and of the set of (identifier, stratum, types) alone.
    """
    place = engine or Local()
    starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    order = group_by_stratum(ids, strata, starts, place)
    grouped, kinds = order[0], laws.kinds()
    parts = [_stir(words, ids, strata, starts, order, laws, place)] if (kinds == CYCLES).any() else []
    for kind, numbers in ((BY_HELD, held), (BY_PLACE, places)):
        chosen = np.flatnonzero(kinds == kind)
        if chosen.size:
            assert numbers is not None  # a law by types needs the types
            parts.append(_trade(words, ids, starts, grouped, laws, chosen, numbers))
    receivers = np.concatenate([np.empty(0, np.uint32), *(part[0] for part in parts)])
    givers = np.concatenate([np.empty(0, np.uint32), *(part[1] for part in parts)])
    return Moves(receivers=receivers, givers=givers)


# Group the records of each stratum in the order of their identifiers.


@compile_kernel
def _group(
    ids: Words,
    strata: Rows,
    starts: NDArray[np.int64],
    cursor: NDArray[np.int64],
    last: Words,
    mixed: NDArray[np.bool_],
    grouped: Rows,
    ranks: Rows,
) -> None:
    """Group the rows by stratum in their given order, and mark the strata whose identifiers do not ascend."""
    for row in range(strata.size):
        stratum = strata[row]
        if stratum == NO_STRATUM:
            continue
        at = cursor[stratum]
        cursor[stratum] = at + 1
        grouped[at] = row
        ranks[row] = at - starts[stratum]
        if ids[row] < last[stratum]:
            mixed[stratum] = True
        last[stratum] = ids[row]


@compile_kernel
def _sort_stratum(ids: Words, grouped: Rows, ranks: Rows) -> None:
    """Order one stratum by identifier."""
    if grouped.size <= SORTED_BY_INSERTION:
        for i in range(1, grouped.size):
            row, j = grouped[i], i
            while j > 0 and ids[grouped[j - 1]] > ids[row]:
                grouped[j] = grouped[j - 1]
                j -= 1
            grouped[j] = row
    else:
        grouped[:] = grouped[np.argsort(ids[grouped])]
    for i in range(grouped.size):
        ranks[grouped[i]] = i


@compile_kernel
def _sort_strata(
    ids: Words,
    starts: NDArray[np.int64],
    mixed: NDArray[np.bool_],
    first: int,
    last: int,
    grouped: Rows,
    ranks: Rows,
) -> None:
    """Order the marked strata from ``first`` to ``last`` by identifier; most files are in this order already."""
    for s in range(first, last):
        if mixed[s]:
            _sort_stratum(ids, grouped[starts[s] : starts[s + 1]], ranks)


def group_by_stratum(
    ids: Words, strata: Rows, starts: NDArray[np.int64], engine: Engine
) -> tuple[Rows, Rows, bool]:
    """Return the records of all strata, one after the other, each in the order of its identifiers; and their ranks.

    The last value says whether the rows of every stratum were in this order.

    >>> ids, strata = np.array([9, 4, 7], np.uint64), np.array([1, 0, 1], np.uint32)
    >>> group_by_stratum(ids, strata, np.array([0, 1, 3]), Local())
    (array([1, 2, 0], dtype=uint32), array([1, 0, 0], dtype=uint32), False)
    """
    number = starts.size - 1
    grouped, ranks = np.empty(int(starts[-1]), np.uint32), np.zeros(strata.size, np.uint32)
    mixed = np.zeros(number, np.bool_)
    _group(ids, strata, starts, starts[:-1].copy(), np.zeros(number, np.uint64), mixed, grouped, ranks)
    if not mixed.any():
        return grouped, ranks, True
    edges = np.searchsorted(starts, np.linspace(0, starts[-1], 17)).astype(np.int64)
    edges[0], edges[-1] = 0, number

    def sort(k: int) -> None:
        _sort_strata(ids, starts, mixed, edges[k], edges[k + 1], grouped, ranks)

    for _ in engine.map(sort, range(16)):
        pass
    return grouped, ranks, False


# By cycles.


@compile_kernel
def _draw_below(word: np.uint64, bound: np.uint64) -> tuple[np.uint64, bool]:
    """Return a number below the bound, and whether the word allows all of them evenly (Lemire 2019)."""
    high, low = multiply_words(word, bound)
    return high, bool(low >= bound or low >= (np.uint64(0) - bound) % bound)


@compile_kernel
def _choose_partners(
    words: NDArray[np.uint64],
    strata: Rows,
    ranks: Rows,
    starts: NDArray[np.int64],
    numerators: Words,
    denominators: Words,
    movers: NDArray[np.int64],
    partners: NDArray[np.int64],
    uneven: NDArray[np.int64],
) -> tuple[int, int]:
    """Choose for a run of rows who exchanges values with which record before it in its stratum, by their positions.

    Returns how many do, and how many need another word. The first record of a stratum has nobody to exchange with; a
    stratum with another law has the numerator 0.
    """
    found = 0
    failed = 0
    for k in range(strata.size):
        rank = ranks[k]
        if rank == 0:
            continue
        stratum = strata[k]
        stay, each = numerators[stratum], denominators[stratum]
        if stay == 0:
            continue
        bound = stay + each * np.uint64(rank)
        drawn, even = _draw_below(words[k, 0], bound)
        if not even:
            drawn, even = _draw_below(words[k, 1], bound)
        if not even:
            uneven[failed] = k
            failed += 1
        elif drawn >= stay:
            movers[found] = starts[stratum] + rank
            partners[found] = starts[stratum] + np.int64((drawn - stay) // each)
            found += 1
    return found, failed


@compile_kernel
def _exchange(movers: NDArray[np.int64], partners: NDArray[np.int64], images: Rows) -> None:
    """Exchange the values of each mover and its partner, in order."""
    for k in range(movers.size):
        i, j = movers[k], partners[k]
        images[i], images[j] = images[j], images[i]


@compile_kernel
def _list_moves(grouped: Rows, images: Rows, receivers: Rows, givers: Rows) -> int:
    """Write the records whose values come from another record, and these; returns how many."""
    found = 0
    for i in range(images.size):
        if images[i] != i:
            receivers[found] = grouped[i]
            givers[found] = grouped[images[i]]
            found += 1
    return found


def _stir(
    words: WordSource,
    ids: Words,
    strata: Rows,
    starts: NDArray[np.int64],
    order: tuple[Rows, Rows, bool],
    laws: StratumLaws,
    engine: Engine,
) -> tuple[Rows, Rows]:
    grouped, ranks, ascending = order
    numerators, denominators = laws.fractions()

    def choose(first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        part = slice(first, first + ROWS_PER_CALL)
        drawn = words.blocks(STIR_LABEL, ids[part])
        movers, partners, uneven = (np.empty(drawn.shape[0], np.int64) for _ in range(3))
        found, failed = _choose_partners(
            drawn, strata[part], ranks[part], starts, numerators, denominators, movers, partners, uneven
        )
        movers, partners = movers[:found].copy(), partners[:found].copy()
        if failed:
            rows = (first + uneven[:failed]).tolist()
            at = starts[strata[rows]] + ranks[rows]
            more = [
                _choose_again(words, ids[row], int(i), starts, laws) for row, i in zip(rows, at, strict=True)
            ]
            kept = [k for k, partner in enumerate(more) if partner is not None]
            movers = np.concatenate((movers, at[kept]))
            partners = np.concatenate((partners, np.array([more[k] for k in kept], np.int64)))
            by_place = np.argsort(movers)
            movers, partners = movers[by_place], partners[by_place]
        return movers, partners

    images = np.arange(grouped.size, dtype=np.uint32)
    kept: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    number = 0
    for movers, partners in engine.map(choose, range(0, strata.size, ROWS_PER_CALL)):
        number += movers.size
        if ascending:
            _exchange(movers, partners, images)
        else:
            kept.append((movers, partners))
    if kept:
        # a step is taken after those of all records before it
        movers, partners = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        by_place = np.argsort(movers)
        _exchange(movers[by_place], partners[by_place], images)
    receivers, givers = np.empty(2 * number, np.uint32), np.empty(2 * number, np.uint32)
    found = _list_moves(grouped, images, receivers, givers)
    return receivers[:found].copy(), givers[:found].copy()


def _choose_again(
    words: WordSource, identifier: np.uint64, at: int, starts: NDArray[np.int64], laws: StratumLaws
) -> int | None:
    """Choose the partner of a position whose first two words were uneven; None if it stays."""
    stratum = int(np.searchsorted(starts, at, side="right")) - 1
    start, weight = int(starts[stratum]), laws[stratum].weight
    bound = weight.numerator + weight.denominator * (at - start)
    own = np.array([identifier], np.uint64)
    source = _generate_words(words, STIR_LABEL, own, counter=1)
    drawn = _draw_whole(source, bound)
    return None if drawn < weight.numerator else start + (drawn - weight.numerator) // weight.denominator


# By types: the number of trades, then the traders.


def _generate_words(
    words: WordSource, label: str, ids: Words, *, counter: int = 0, ready: Words | None = None
) -> Iterator[int]:
    """Yield random words without end: two for each identifier, then again with the next counter.

    ``ready`` are the words of the first identifiers, where they were made together with those of other strata.
    """
    first = 0
    if ready is not None:
        yield from ready.ravel().tolist()
        first = ready.shape[0]
    while True:
        for start in range(first, ids.size, WORDS_AT_ONCE):
            block = words.blocks(label, ids[start : start + WORDS_AT_ONCE], counter=counter)
            yield from block.ravel().tolist()
        first, counter = 0, counter + 1


def _draw_whole(source: Iterator[int], bound: int) -> int:
    """Return a whole number below the bound, all equally likely."""
    while True:
        high, low = divmod(next(source) * bound, 1 << 64)
        if low >= bound or low >= (1 << 64) % bound:
            return high


def _toss(source: Iterator[int], numerator: int, denominator: int) -> bool:
    """Return true with probability exactly numerator/denominator, by comparing digits to the base 2⁶⁴."""
    if numerator >= denominator:
        return True
    while numerator:
        digit, numerator = divmod(numerator << 64, denominator)
        word = next(source)
        if word != digit:
            return word < digit
    return False


class TradeCount:
    r"""The number of trades as a law to draw from: $P(t) \propto \binom{n_1}{t}\binom{n_2}{t}(b/a)^t$ with $\lambda = a/b$.

    Its ratios $R_t = P(t+1)/P(t)$ fall in t, so P lies below a flat top around its mode and two geometric tails; a
    candidate from these is accepted by one exact coin for each step from the mode (proof.md, Section 7).
    """

    def __init__(self, n1: int, n2: int, numerator: int, denominator: int) -> None:
        self.n1, self.n2, self.a, self.b = n1, n2, numerator, denominator
        self.last = min(n1, n2)
        self.mode = self._find_mode()
        t = max(self.mode, 1)
        left, right = max(n1 - t, 1), max(n2 - t, 1)
        width = 1 + isqrt(t * left * right // (2 * left * right + t * (left + right)))
        self.low, self.high = max(0, self.mode - width), min(self.last, self.mode + width)
        # P of the next value on each side, as a part of the one before; 0 where there is none
        self.up, self.down = self._step_up(self.high), self._step_down(self.low)
        flat = (self.high - self.low + 1) * (self.up[1] - self.up[0]) * (self.down[1] - self.down[0])
        above = self.up[0] * (self.down[1] - self.down[0])
        below = self.down[0] * (self.up[1] - self.up[0])
        self.masses = flat, above, below

    def _step_up(self, t: int) -> tuple[int, int]:
        """Return P(t+1)/P(t) as two whole numbers."""
        return (self.n1 - t) * (self.n2 - t) * self.b, (t + 1) * (t + 1) * self.a

    def _step_down(self, t: int) -> tuple[int, int]:
        """Return P(t−1)/P(t) as two whole numbers."""
        return t * t * self.a, (self.n1 - t + 1) * (self.n2 - t + 1) * self.b

    def _find_mode(self) -> int:
        """Return the first t whose next value is not more probable."""
        low, high = 0, self.last
        while low < high:
            middle = (low + high) // 2
            part, whole = self._step_up(middle)
            if part <= whole:
                high = middle
            else:
                low = middle + 1
        return low

    def draw(self, source: Iterator[int]) -> int:
        """Return a number of trades."""
        while True:
            t = self._propose(source)
            if self._accept(source, t):
                return t

    def _propose(self, source: Iterator[int]) -> int:
        flat, above, below = self.masses
        if _toss(source, flat, flat + above + below):
            return self.low + _draw_whole(source, self.high - self.low + 1)
        t, step, by = (
            (self.high, self.up, 1) if _toss(source, above, above + below) else (self.low, self.down, -1)
        )
        t += by
        while _toss(source, *step):
            t += by
        return t

    def _accept(self, source: Iterator[int], t: int) -> bool:
        if not 0 <= t <= self.last:
            return False
        for i in range(self.mode, t):
            part, whole = self._step_up(i)
            if i >= self.high:
                part, whole = part * self.up[1], whole * self.up[0]
            if not _toss(source, part, whole):
                return False
        for i in range(self.mode, t, -1):
            part, whole = self._step_down(i)
            if i <= self.low:
                part, whole = part * self.down[1], whole * self.down[0]
            if not _toss(source, part, whole):
                return False
        return True


@compile_kernel
def _split_types(
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    grouped: Rows,
    numbers: Words,
    places: NDArray[np.int64],
    split: Rows,
    firsts: NDArray[np.int64],
) -> None:
    """Write the records of each chosen stratum, those of the first record's type before the others; count the former."""
    for c in range(chosen.size):
        start, stop, place = starts[chosen[c]], starts[chosen[c] + 1], places[c]
        for wanted in (True, False):
            for i in range(start, stop):
                if (numbers[grouped[i]] == numbers[grouped[start]]) == wanted:
                    split[place] = grouped[i]
                    place += 1
            if wanted:
                firsts[c] = place - places[c]


@compile_kernel
def _list_traders(
    places: NDArray[np.int64],
    firsts: NDArray[np.int64],
    trades: NDArray[np.int64],
    ends: NDArray[np.int64],
    split: Rows,
    rows: Rows,
) -> None:
    """Write the records that stand first in the lists of both types, as many of each as there are trades."""
    for c in range(places.size):
        at = ends[c]
        for k in range(trades[c]):
            rows[at + k] = split[places[c] + k]
            rows[at + trades[c] + k] = split[places[c] + firsts[c] + k]


@compile_kernel
def _select_traders(
    pending: NDArray[np.int64],
    places: NDArray[np.int64],
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    trades: NDArray[np.int64],
    words: Words,
    word_places: NDArray[np.int64],
    split: Rows,
    failed: NDArray[np.int64],
) -> int:
    """Bring a random choice of each type to the front of its list, in random order; list strata with an uneven word."""
    found = 0
    for p in range(pending.size):
        c = pending[p]
        good = True
        for side in range(2):
            start = places[c] + side * firsts[c]
            size = firsts[c] if side == 0 else sizes[c] - firsts[c]
            for k in range(trades[c]):
                drawn, even = _draw_below(words[word_places[p] + side * trades[c] + k], np.uint64(size - k))
                good = good and even
                i, j = start + k, start + k + np.int64(drawn)
                split[i], split[j] = split[j], split[i]
        if not good:
            failed[found] = c
            found += 1
    return found


def _draw_trades(
    words: WordSource,
    ids: Words,
    starts: NDArray[np.int64],
    grouped: Rows,
    laws: StratumLaws,
    chosen: NDArray[np.int64],
    firsts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw the number of trades of each chosen stratum, from words that its records name."""
    trades = np.empty(chosen.size, np.int64)
    counts: dict[tuple[int, int, int], TradeCount] = {}
    for begin in range(0, chosen.size, STRATA_AT_ONCE):
        some = chosen[begin : begin + STRATA_AT_ONCE]
        known = [grouped[starts[s] : min(starts[s + 1], starts[s] + WORDS_AT_ONCE)] for s in some]
        ready = words.blocks(TRADES_LABEL, ids[np.concatenate(known)])
        at = 0
        for c, stratum in enumerate(some.tolist(), begin):
            start, stop = starts[stratum], starts[stratum + 1]
            n, n1, number = int(stop - start), int(firsts[c]), int(laws.numbers[stratum])
            law = counts.get((n1, n, number))
            if law is None:
                weight = laws.laws[number].weight
                law = counts[n1, n, number] = TradeCount(n1, n - n1, weight.numerator, weight.denominator)
            first = known[c - begin].size
            source = _generate_words(
                words, TRADES_LABEL, ids[grouped[start:stop]], ready=ready[at : at + first]
            )
            trades[c] = law.draw(source)
            at += first
    return trades


def _trade(
    words: WordSource,
    ids: Words,
    starts: NDArray[np.int64],
    grouped: Rows,
    laws: StratumLaws,
    chosen: NDArray[np.int64],
    numbers: Words,
) -> tuple[Rows, Rows]:
    sizes = np.diff(starts)[chosen]
    places = np.cumsum(sizes) - sizes
    split, firsts = np.empty(int(sizes.sum()), np.uint32), np.empty(chosen.size, np.int64)
    _split_types(starts, chosen, grouped, numbers, places, split, firsts)
    trades = _draw_trades(words, ids, starts, grouped, laws, chosen, firsts)
    ends = np.cumsum(2 * trades) - 2 * trades
    traders = np.empty(int(2 * trades.sum()), np.uint32)
    _list_traders(places, firsts, trades, ends, split, traders)
    names = ids[traders]
    pending, counter = np.arange(chosen.size, dtype=np.int64), 0
    while pending.size:
        lengths = 2 * trades[pending]
        word_places = np.cumsum(lengths) - lengths
        named = (
            names
            if not counter
            else np.concatenate([names[ends[c] : ends[c] + 2 * trades[c]] for c in pending])
        )
        fresh = np.ascontiguousarray(words.blocks(SELECT_LABEL, named, counter=counter)[:, 0])
        failed = np.empty(pending.size, np.int64)
        pending = failed[
            : _select_traders(pending, places, firsts, sizes, trades, fresh, word_places, split, failed)
        ]
        counter += 1
    receivers, givers = np.empty(traders.size, np.uint32), np.empty(traders.size, np.uint32)
    _list_traders(places, firsts, trades, ends, split, receivers)
    _pair_traders(trades, ends, receivers, givers)
    return receivers, givers


@compile_kernel
def _pair_traders(trades: NDArray[np.int64], ends: NDArray[np.int64], receivers: Rows, givers: Rows) -> None:
    """Write the record with which each trader changes places."""
    for c in range(trades.size):
        at = ends[c]
        for k in range(trades[c]):
            givers[at + k] = receivers[at + trades[c] + k]
            givers[at + trades[c] + k] = receivers[at + k]
