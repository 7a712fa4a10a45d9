r"""Draw a stirring: which record receives whose swap variables, in all strata at once.

By cycles it is a Fisher–Yates shuffle with a heavier chair: record i of a stratum, in the order of identifiers, stays
with weight λ against 1 for each of the i − 1 records before it, with one of which it else exchanges its values. With
$\lambda = a/b$ a whole number below $a + b(i-1)$ decides, drawn exactly. By types it is drawn first how many records of each
type are free, by exact rejection, then which ones, and these change places: one with one of the other type where there are
two types, by an even shuffle where there are more.

All words are named by identifiers, so neither the order of rows nor parts nor threads change a draw.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.chance.uniform import multiply_words, threshold
from stirred.engine import Engine, Local
from stirred.kernels import compile_kernel
from stirred.mechanisms.stirring.free_slots import MAX_TYPES, envelop, step_free
from stirred.mechanisms.stirring.law import BY_HELD, BY_PLACE, CYCLES, StratumLaw, StratumLaws
from stirred.mechanisms.swap.moves import Moves, WordSource, break_tie
from stirred.mechanisms.swap.strata import NO_STRATUM

STIR_LABEL = "stirring/stir"
FREE_LABEL = "stirring/free"
TIE_LABEL = "stirring/tie"
SELECT_LABEL = "stirring/select"
ROWS_PER_CALL = 1 << 16  # records per call of the cipher: the words stay in the second-level cache
SORTED_BY_INSERTION = 48  # records of a stratum that are sorted without a call
BLOCKS_AT_ONCE = 1 << 18  # blocks of words for numbers of free records that are made together

Floats = NDArray[np.float64]
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
    grouped, names = group_by_stratum(ids, strata, starts, place)
    kinds = laws.kinds()
    parts = [_stir(words, names, starts, grouped, laws, place)] if (kinds == CYCLES).any() else []
    for kind, numbers in ((BY_HELD, held), (BY_PLACE, places)):
        chosen = np.flatnonzero(kinds == kind)
        if chosen.size:
            assert numbers is not None  # a law by types needs the types
            parts.append(_exchange_free(words, ids, starts, grouped, laws, chosen, numbers, place))
    receivers = np.concatenate([np.empty(0, np.uint32), *(part[0] for part in parts)])
    givers = np.concatenate([np.empty(0, np.uint32), *(part[1] for part in parts)])
    return Moves(receivers=receivers, givers=givers)


# Group the records of each stratum in the order of their identifiers.


@compile_kernel
def _group(
    ids: Words,
    strata: Rows,
    cursor: NDArray[np.int64],
    last: Words,
    mixed: NDArray[np.bool_],
    grouped: Rows,
    names: Words,
) -> None:
    """Group the rows and their identifiers by stratum in their given order; mark strata whose identifiers do not ascend."""
    for row in range(strata.size):
        stratum = strata[row]
        if stratum == NO_STRATUM:
            continue
        at, own = cursor[stratum], ids[row]
        cursor[stratum] = at + 1
        grouped[at] = row
        names[at] = own
        if own < last[stratum]:
            mixed[stratum] = True
        last[stratum] = own


@compile_kernel
def _sort_small_strata(
    starts: NDArray[np.int64],
    mixed: NDArray[np.bool_],
    first: int,
    last: int,
    grouped: Rows,
    names: Words,
) -> None:
    """Order the small marked strata from ``first`` to ``last`` by identifier."""
    for s in range(first, last):
        start, stop = starts[s], starts[s + 1]
        if not mixed[s] or stop - start > SORTED_BY_INSERTION:
            continue
        for i in range(start + 1, stop):
            row, name, j = grouped[i], names[i], i
            while j > start and names[j - 1] > name:
                grouped[j], names[j] = grouped[j - 1], names[j - 1]
                j -= 1
            grouped[j], names[j] = row, name


def group_by_stratum(
    ids: Words, strata: Rows, starts: NDArray[np.int64], engine: Engine
) -> tuple[Rows, Words]:
    """Return the records of all strata, one after the other, each in the order of its identifiers; and these.

    >>> ids, strata = np.array([9, 4, 7], np.uint64), np.array([1, 0, 1], np.uint32)
    >>> group_by_stratum(ids, strata, np.array([0, 1, 3]), Local())
    (array([1, 2, 0], dtype=uint32), array([4, 7, 9], dtype=uint64))
    """
    number, size = starts.size - 1, int(starts[-1])
    grouped, names = np.empty(size, np.uint32), np.empty(size, np.uint64)
    mixed = np.zeros(number, np.bool_)
    _group(ids, strata, starts[:-1].copy(), np.zeros(number, np.uint64), mixed, grouped, names)
    if not mixed.any():
        return grouped, names
    edges = np.searchsorted(starts, np.linspace(0, starts[-1], 17)).astype(np.int64)
    edges[0], edges[-1] = 0, number

    def sort(k: int) -> None:
        first, last = edges[k], edges[k + 1]
        _sort_small_strata(starts, mixed, first, last, grouped, names)
        large = np.diff(starts[first : last + 1]) > SORTED_BY_INSERTION
        for s in (first + np.flatnonzero(large & mixed[first:last])).tolist():
            own = slice(starts[s], starts[s + 1])
            order = np.argsort(names[own])  # NumPy's sort is several times faster than a compiled loop
            grouped[own], names[own] = grouped[own][order], names[own][order]

    for _ in engine.map(sort, range(16)):
        pass
    return grouped, names


# By cycles.


@compile_kernel
def _draw_below(word: np.uint64, bound: np.uint64) -> tuple[np.uint64, bool]:
    """Return a number below the bound, and whether the word allows all of them evenly (Lemire 2019)."""
    high, low = multiply_words(word, bound)
    return high, bool(low >= bound or low >= (np.uint64(0) - bound) % bound)


@compile_kernel
def _choose_partners(
    words: NDArray[np.uint64],
    first: int,
    stratum: int,
    starts: NDArray[np.int64],
    numerators: Words,
    denominators: Words,
    movers: NDArray[np.int64],
    partners: NDArray[np.int64],
    uneven: NDArray[np.int64],
) -> tuple[int, int]:
    """Choose for a run of positions from ``first`` on who exchanges values with which record before it in its stratum.

    Returns how many do, and how many need another word. The first record of a stratum has nobody to exchange with; a
    stratum with another law has the numerator 0.
    """
    found = 0
    failed = 0
    last = first + words.shape[0]
    while stratum < starts.size - 1 and starts[stratum] < last:
        start, stay, each = starts[stratum], numerators[stratum], denominators[stratum]
        stop = min(starts[stratum + 1], last)
        stratum += 1
        if stay == 0:
            continue
        for at in range(max(start + 1, first), stop):
            rank, k = at - start, at - first
            bound = stay + each * np.uint64(rank)
            drawn, even = _draw_below(words[k, 0], bound)
            if not even:
                drawn, even = _draw_below(words[k, 1], bound)
            if not even:
                uneven[failed] = at
                failed += 1
            elif drawn >= stay:
                movers[found] = at
                partners[found] = start + np.int64((drawn - stay) // each)
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
    names: Words,
    starts: NDArray[np.int64],
    grouped: Rows,
    laws: StratumLaws,
    engine: Engine,
) -> tuple[Rows, Rows]:
    numerators, denominators = laws.fractions()

    def choose(first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        drawn = words.blocks(STIR_LABEL, names[first : first + ROWS_PER_CALL])
        stratum = int(np.searchsorted(starts, first, side="right")) - 1
        movers, partners, uneven = (np.empty(drawn.shape[0], np.int64) for _ in range(3))
        found, failed = _choose_partners(
            drawn, first, stratum, starts, numerators, denominators, movers, partners, uneven
        )
        movers, partners = movers[:found].copy(), partners[:found].copy()
        if failed:
            at = uneven[:failed]
            more = [_choose_again(words, names[i], i, starts, laws) for i in at.tolist()]
            kept = [k for k, partner in enumerate(more) if partner is not None]
            movers = np.concatenate((movers, at[kept]))
            partners = np.concatenate((partners, np.array([more[k] for k in kept], np.int64)))
            by_place = np.argsort(movers)
            movers, partners = movers[by_place], partners[by_place]
        return movers, partners

    images = np.arange(grouped.size, dtype=np.uint32)
    number = 0
    for movers, partners in engine.map(choose, range(0, grouped.size, ROWS_PER_CALL)):
        number += movers.size
        _exchange(movers, partners, images)
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
    while True:
        drawn, low = divmod(next(source) * bound, 1 << 64)
        if low >= (1 << 64) % bound:
            break
    return None if drawn < weight.numerator else start + (drawn - weight.numerator) // weight.denominator


def _generate_words(words: WordSource, label: str, own: Words, *, counter: int = 0) -> Iterator[int]:
    """Yield random words without end that one identifier names."""
    while True:
        yield from words.blocks(label, own, counter=counter).ravel().tolist()
        counter += 1


# By types: how many records of each type are free.
#
# A number t has a law with falling ratios P(t+1)/P(t). From its mode blocks of equal length go up and down, so long that P
# halves from one to the next; a candidate lies in block j with chance 2⁻ʲ⁻¹ and is accepted with chance 2ʲ P(t)/P(mode). A
# coin is tossed by a word against the chance in double precision, which is known up to few roundings. Where these could
# decide, the fraction itself decides (proof.md, Section 7).

ROUNDING = 2.0**-50  # relative error of one step of a chance, at most; six roundings of 2⁻⁵³ are below it
HEADROOM = (
    1.0 + 2.0**-30
)  # the envelope is so much higher than the mode, so that no rounding lets it be too low
NEXT, UNDECIDED, STATUS, TYPE, NUMBER, BLOCK = range(6)  # what the state of a draw holds
NEEDS_WORDS, NEEDS_ANSWER = 1, 2  # why a draw stopped
JOINT = -1  # the type of a coin for all types together

State = NDArray[np.int64]


@compile_kernel
def _take_word(words: Words, state: State) -> np.uint64:
    """Return the next word; where there is none left, the draw stops."""
    word = np.uint64(1) << np.uint64(63)
    if state[NEXT] < words.size:
        word = words[state[NEXT]]
        state[NEXT] += 1
    else:
        state[STATUS] = NEEDS_WORDS
    return word


@compile_kernel
def _toss(
    words: Words, state: State, answers: NDArray[np.bool_], chance: float, steps: float, rounding: float
) -> bool:
    """Toss a coin whose chance was computed in so many steps; an answer that doubles cannot give is asked for."""
    value, error = float(_take_word(words, state)) * 2.0**-64, rounding * (steps + 8.0)
    if value + 2.0**-52 < chance * (1.0 - error):
        return True
    if value - 2.0**-52 > chance * (1.0 + error):
        return False
    state[UNDECIDED] += 1
    if state[UNDECIDED] <= answers.size:
        return bool(answers[state[UNDECIDED] - 1])
    if not state[STATUS]:
        state[STATUS] = NEEDS_ANSWER
    return False


@compile_kernel
def _step(n1: float, n2: float, odds: float, t: float) -> float:
    """Return P(t+1)/P(t): of the trades of two types, or with n2 = 0 of the envelope of one of more types."""
    if n2 > 0.0:
        return (n1 - t) * (n2 - t) * odds / ((t + 1.0) * (t + 1.0))
    return step_free(n1, odds, t)


@compile_kernel
def lay_blocks(n1: float, n2: float, odds: float) -> tuple[float, float, float]:
    """Return the mode of such a law and the lengths of the blocks above and below it."""
    last = min(n1, n2) if n2 > 0.0 else n1
    mode, high = 0.0, last
    while mode < high:
        middle = np.floor((mode + high) / 2.0)
        if _step(n1, n2, odds, middle) <= 1.0:
            high = middle
        else:
            mode = middle + 1.0
    half = 0.5 * (1.0 - 1e-9)
    up, part = 0.0, 1.0
    while part > half:
        part *= _step(n1, n2, odds, mode + up) if mode + up < last else 0.0
        up += 1.0
    down, part = 0.0, 1.0
    while part > half and down < mode:
        down += 1.0
        part /= _step(n1, n2, odds, mode - down)
    return mode, up, down


@compile_kernel
def _draw_number(
    words: Words,
    state: State,
    answers: NDArray[np.bool_],
    law: tuple[float, float, float],
    mode: float,
    up: float,
    down: float,
    rounding: float,
) -> float:
    """Draw a number by a law of ``_step``, whose mode and blocks are known."""
    n1, n2, odds = law
    last = min(n1, n2) if n2 > 0.0 else n1
    while True:
        place, even = np.uint64(0), False
        while not even:
            place, even = _draw_below(_take_word(words, state), np.uint64(up + down))
            even = even or state[STATUS] != 0
        block, word = 0.0, _take_word(words, state)
        while word == 0:
            block += 64.0
            word = _take_word(words, state)
        while word >> np.uint64(63) == 0:
            word <<= np.uint64(1)
            block += 1.0
        at = float(place)
        t = mode + block * up + at if at < up else mode - 1.0 - block * down - (at - up)
        if state[STATUS]:
            return 0.0
        if t < 0.0 or t > last:
            continue
        chance, k = 1.0 / HEADROOM, 0.0
        while k < block:
            chance *= 2.0
            k += 1.0
        k = mode
        while k < t:
            chance *= _step(n1, n2, odds, k)
            k += 1.0
        while k > t:
            k -= 1.0
            chance /= _step(n1, n2, odds, k)
        state[NUMBER], state[BLOCK] = np.int64(t), np.int64(block)
        if _toss(words, state, answers, chance, abs(t - mode), rounding) or state[STATUS]:
            return t


@compile_kernel
def _accept_together(
    words: Words,
    state: State,
    answers: NDArray[np.bool_],
    start: tuple[float, float],
    around: Floats,
    odds: Floats,
    found: NDArray[np.int64],
    rounding: float,
) -> bool:
    r"""Accept numbers of free records by the chance $F!\prod_h (r/x_h)^{f_h}/(f_h!\,\delta_{f_h})$, known at one point."""
    r, chance = start
    whole, steps = 0.0, 0.0
    for h in range(around.size):
        whole += around[h]
    for h in range(around.size):
        f = around[h]
        while f < found[h]:
            whole += 1.0
            chance *= whole * r / odds[h] * (16.0 * f + 13.0) / ((f + 1.0) * (16.0 * f + 5.0))
            f += 1.0
            steps += 1.0
        while f > found[h]:
            f -= 1.0
            chance *= odds[h] / r * (f + 1.0) * (16.0 * f + 5.0) / ((16.0 * f + 13.0) * whole)
            whole -= 1.0
            steps += 1.0
    state[TYPE] = JOINT
    return _toss(words, state, answers, chance, 2.0 * steps, rounding)


@compile_kernel
def _draw_free(
    words: Words,
    answers: NDArray[np.bool_],
    counts: NDArray[np.int64],
    scale: float,
    state: State,
    free: NDArray[np.int64],
    rounding: float,
) -> None:
    """Draw how many records of each type are free; ``scale`` is 1/λ for two types, μ − 1 for more."""
    for k in range(state.size):
        state[k] = 0
    two, sizes = counts.size == 2, counts.astype(np.float64)
    odds, around, blocks = np.empty(counts.size), np.empty(counts.size), np.empty((counts.size, 3))
    if two:
        odds[0] = scale
    start = (1.0 / scale, 1.0 if two else envelop(sizes, scale, odds, around))
    numbers = 1 if two else counts.size
    others = sizes[1] if two else 0.0
    for h in range(numbers):
        blocks[h, 0], blocks[h, 1], blocks[h, 2] = lay_blocks(sizes[h], others, odds[h])
    accepted = False
    while not accepted:
        for h in range(numbers):
            state[TYPE] = h
            law, mode, up, down = (sizes[h], others, odds[h]), blocks[h, 0], blocks[h, 1], blocks[h, 2]
            free[h] = np.int64(_draw_number(words, state, answers, law, mode, up, down, rounding))
            if state[STATUS]:
                return
        if two:
            free[1] = free[0]
        accepted = two or _accept_together(words, state, answers, start, around, odds, free, rounding)
        if state[STATUS]:
            return


@compile_kernel
def _draw_all_free(
    pending: NDArray[np.int64],
    words: Words,
    word_starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    types: NDArray[np.int64],
    scales: Floats,
    free: NDArray[np.int64],
    statuses: NDArray[np.int64],
    rounding: float,
) -> None:
    """Draw the numbers of free records of the pending strata."""
    state, answers = np.zeros(6, np.int64), np.zeros(0, np.bool_)
    for p in range(pending.size):
        c = pending[p]
        own = words[word_starts[p] : word_starts[p + 1]]
        _draw_free(own, answers, counts[c, : types[c]], scales[c], state, free[c, : types[c]], rounding)
        statuses[p] = state[STATUS]


def find_chance(
    counts: NDArray[np.int64], law: StratumLaw, state: State, free: NDArray[np.int64]
) -> Fraction:
    """Return the chance of the coin at which a draw stopped, as a fraction."""
    scale = 1 / law.weight if counts.size == 2 else law.root - 1
    sizes, odds, around = counts.astype(np.float64), np.empty(counts.size), np.empty(counts.size)
    start = envelop(sizes, float(scale), odds, around) if counts.size > 2 else 1.0
    if state[TYPE] == JOINT:
        chance, whole = Fraction(start), int(around.sum())
        for h, own in enumerate(free.tolist()):
            f = int(around[h])
            for k in range(min(f, own), max(f, own)):
                step = Fraction(16 * k + 13, (k + 1) * (16 * k + 5)) / (scale * Fraction(odds[h]))
                chance, whole = (
                    (chance * step * (whole + 1), whole + 1)
                    if own > f
                    else (chance / step / whole, whole - 1)
                )
        return chance
    h = int(state[TYPE])
    about = (sizes[0], sizes[1], float(scale)) if counts.size == 2 else (sizes[h], 0.0, odds[h])
    mode, t = int(lay_blocks(*about)[0]), int(state[NUMBER])
    chance = Fraction(1 << int(state[BLOCK])) / Fraction(HEADROOM)
    for k in range(min(mode, t), max(mode, t)):
        if counts.size == 2:
            step = Fraction(int(counts[0] - k) * int(counts[1] - k), (k + 1) ** 2) * scale
        else:
            step = (int(counts[h]) - k) * Fraction(odds[h]) * Fraction(16 * k + 5, (k + 1) * (16 * k + 13))
        chance = chance * step if t > mode else chance / step
    return chance


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeDraw:
    """The draw of the numbers of free records in strata with a law by types."""

    words: WordSource
    ids: Words
    starts: NDArray[np.int64]
    grouped: Rows
    laws: StratumLaws
    chosen: NDArray[np.int64]  # strata
    counts: NDArray[np.int64]  # of each type, for each of them
    types: NDArray[np.int64]  # how many types they have

    def draw(self, engine: Engine) -> NDArray[np.int64]:
        """Return the numbers of free records of each type."""
        free = np.zeros_like(self.counts)
        numbers = self.laws.numbers[self.chosen]
        trades = np.array([float(1 / law.weight) for law in self.laws.laws])
        above = np.array([float(law.root - 1) for law in self.laws.laws])
        scales = np.where(self.types == 2, trades[numbers], above[numbers])
        for _ in engine.map(lambda some: self._draw_some(some, scales, free), self._list_batches()):
            pass
        return free

    def _list_batches(self) -> list[NDArray[np.int64]]:
        """Return strata of equally many types whose words are made together."""
        found = []
        for types in np.unique(self.types).tolist():
            own = np.flatnonzero(self.types == types)
            most = max(1, BLOCKS_AT_ONCE // _count_first_blocks(types))
            found += [own[begin : begin + most] for begin in range(0, own.size, most)]
        return found

    def _draw_some(self, pending: NDArray[np.int64], scales: Floats, free: NDArray[np.int64]) -> None:
        blocks = _count_first_blocks(int(self.types[pending[0]]))
        while pending.size:
            own, statuses = self._name_words(pending, blocks), np.empty(pending.size, np.int64)
            word_starts = 2 * blocks * np.arange(pending.size + 1)
            _draw_all_free(
                pending, own, word_starts, self.counts, self.types, scales, free, statuses, ROUNDING
            )
            for c in pending[statuses == NEEDS_ANSWER].tolist():
                self._settle(c, float(scales[c]), free[c, : self.types[c]])
            pending, blocks = pending[statuses == NEEDS_WORDS], 2 * blocks

    def _name_words(self, some: NDArray[np.int64], blocks: int) -> Words:
        """Return words that the records of each stratum name: two by each of them, then again with the next counter."""
        first = self.starts[self.chosen[some], None]
        sizes = self.starts[self.chosen[some] + 1, None] - first
        counters, ranks = np.divmod(np.arange(blocks)[None], sizes)
        names, counters = self.ids[self.grouped[first + ranks]].ravel(), counters.ravel()
        found = np.empty((names.size, 2), np.uint64)
        order = np.argsort(counters, kind="stable")
        edges = np.cumsum(np.bincount(counters, minlength=1))
        for counter, own in enumerate(np.split(order, edges[:-1])):
            found[own] = self.words.blocks(FREE_LABEL, names[own], counter=counter)
        return found.ravel()

    def _settle(self, c: int, scale: float, free: NDArray[np.int64]) -> None:
        """Draw one stratum, where some coin was too close for doubles, by fractions at that coin."""
        counts, law = self.counts[c, : self.types[c]], self.laws[int(self.chosen[c])]
        name = self.ids[self.grouped[self.starts[self.chosen[c]]]]
        answers: list[bool] = []
        state, blocks = np.zeros(6, np.int64), _count_first_blocks(counts.size)
        while True:
            own = self._name_words(np.array([c]), blocks)
            _draw_free(own, np.array(answers, np.bool_), counts, scale, state, free, ROUNDING)
            if state[STATUS] == NEEDS_WORDS:
                blocks *= 2
            elif state[STATUS] == NEEDS_ANSWER:
                coin, word = threshold(find_chance(counts, law, state, free)), int(own[state[NEXT] - 1])
                tied = word == coin.first
                answers.append(
                    break_tie(self.words, TIE_LABEL, name, int(state[NEXT]), coin)
                    if tied
                    else word < coin.first
                )
            else:
                return


def _count_first_blocks(types: int) -> int:
    """Return how many blocks of words a stratum gets at first; where they are too few, twice as many, and so on."""
    return 4 if types == 2 else int(4 * types * 2 ** ((types - 1) / 2))


# Who is free, and who takes whose place.


@compile_kernel
def _split_types(
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    grouped: Rows,
    numbers: Words,
    places: NDArray[np.int64],
    split: Rows,
    counts: NDArray[np.int64],
    types: NDArray[np.int64],
) -> None:
    """Write the records of each chosen stratum type by type, in the order in which types occur; count both."""
    seen, cursor = np.empty(MAX_TYPES, np.uint64), np.empty(MAX_TYPES, np.int64)
    types_of = np.empty(np.max(starts[chosen + 1] - starts[chosen]), np.uint8)
    for c in range(chosen.size):
        start, stop = starts[chosen[c]], starts[chosen[c] + 1]
        for i in range(start, stop):
            number, h = numbers[grouped[i]], 0
            while h < types[c] and seen[h] != number:
                h += 1
            if h == types[c]:
                seen[h] = number
                types[c] += 1
            counts[c, h] += 1
            types_of[i - start] = h
        at = places[c]
        for h in range(types[c]):
            cursor[h] = at
            at += counts[c, h]
        for i in range(start, stop):
            h = types_of[i - start]
            split[cursor[h]] = grouped[i]
            cursor[h] += 1


@compile_kernel
def _list_first(
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
    free: NDArray[np.int64],
    types: NDArray[np.int64],
    ends: NDArray[np.int64],
    split: Rows,
    rows: Rows,
) -> None:
    """Write the records that stand first in the list of each type, as many as are free."""
    for c in range(places.size):
        at, start = ends[c], places[c]
        for h in range(types[c]):
            for k in range(free[c, h]):
                rows[at] = split[start + k]
                at += 1
            start += counts[c, h]


@compile_kernel
def _select_free(
    pending: NDArray[np.int64],
    places: NDArray[np.int64],
    counts: NDArray[np.int64],
    free: NDArray[np.int64],
    types: NDArray[np.int64],
    ends: NDArray[np.int64],
    words: NDArray[np.uint64],
    word_places: NDArray[np.int64],
    split: Rows,
    receivers: Rows,
    givers: Rows,
    failed: NDArray[np.int64],
) -> int:
    """Choose the free records of each type evenly, and whose place each takes; list strata with an uneven word."""
    found = 0
    for p in range(pending.size):
        c, good = pending[p], True
        word, at, start = word_places[p], ends[c], places[c]
        for h in range(types[c]):
            for k in range(free[c, h]):
                drawn, even = _draw_below(words[word, 0], np.uint64(counts[c, h] - k))
                good = good and even
                i, j = start + k, start + k + np.int64(drawn)
                split[i], split[j] = split[j], split[i]
                receivers[at] = split[i]
                word += 1
                at += 1
            start += counts[c, h]
        total, begin = at - ends[c], ends[c]
        if types[c] == 2:
            half = total // 2
            for k in range(half):
                givers[begin + k], givers[begin + half + k] = (
                    receivers[begin + half + k],
                    receivers[begin + k],
                )
        else:
            for k in range(begin, at):
                givers[k] = receivers[k]
            for k in range(total - 1, 0, -1):
                drawn, even = _draw_below(words[word_places[p] + k, 1], np.uint64(k + 1))
                good = good and even
                i, j = begin + k, begin + np.int64(drawn)
                givers[i], givers[j] = givers[j], givers[i]
        if not good:
            failed[found] = c
            found += 1
    return found


def _exchange_free(
    words: WordSource,
    ids: Words,
    starts: NDArray[np.int64],
    grouped: Rows,
    laws: StratumLaws,
    chosen: NDArray[np.int64],
    numbers: Words,
    engine: Engine,
) -> tuple[Rows, Rows]:
    sizes = np.diff(starts)[chosen]
    places = np.cumsum(sizes) - sizes
    split = np.empty(int(sizes.sum()), np.uint32)
    counts, types = np.zeros((chosen.size, MAX_TYPES), np.int64), np.zeros(chosen.size, np.int64)
    edges = np.searchsorted(places, np.linspace(0, split.size, 17)).astype(np.int64)
    edges[-1] = chosen.size

    def sort(k: int) -> None:
        some = slice(edges[k], edges[k + 1])
        _split_types(starts, chosen[some], grouped, numbers, places[some], split, counts[some], types[some])

    for _ in engine.map(sort, [k for k in range(16) if edges[k] < edges[k + 1]]):
        pass
    free = FreeDraw(
        words=words,
        ids=ids,
        starts=starts,
        grouped=grouped,
        laws=laws,
        chosen=chosen,
        counts=counts,
        types=types,
    ).draw(engine)
    many = free.sum(axis=1)
    ends = np.cumsum(many) - many
    receivers, givers = np.empty(int(many.sum()), np.uint32), np.empty(int(many.sum()), np.uint32)
    _list_first(places, counts, free, types, ends, split, receivers)
    names = ids[receivers]  # of the words, before any record is chosen
    pending, counter = np.arange(chosen.size, dtype=np.int64), 0
    while pending.size:
        word_places = np.cumsum(many[pending]) - many[pending]
        named = (
            names if not counter else np.concatenate([names[ends[c] : ends[c] + many[c]] for c in pending])
        )
        failed = np.empty(pending.size, np.int64)
        number = _select_free(
            pending,
            places,
            counts,
            free,
            types,
            ends,
            words.blocks(SELECT_LABEL, named, counter=counter),
            word_places,
            split,
            receivers,
            givers,
            failed,
        )
        pending, counter = failed[:number], counter + 1
    return receivers, givers
