"""The arrays that all parents of a level share, and how compiled code looks things up in them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
FREE = 1e300  # as in ``problem``
DONE, TRY_AGAIN = 0, 1  # whether compiled code found the children of a parent
OWN, UPPER, LEAVES = (
    0,
    1,
    2,
)  # where linear terms come from: arrays of the batch, a level of the estimate, its leaves


class LevelArrays(NamedTuple):
    """Arrays that all parents of a level share; cells are numbered among those of the level above."""

    above: Ints  # where each parent's cells begin
    place: Ints  # number of each cell
    cells: Ints  # the histogram's cells by number
    counts: Ints
    first_child: Ints
    queries: Groups  # queries × cells: the answer each cell counts in, -1 outside
    weights: Floats  # classes × queries
    classes: Ints  # of each child
    held: Groups  # held queries × cells
    begin: Ints  # where the columns of each held query begin in low and high
    low: Ints  # children × answers of all held queries
    high: Ints
    whole: Bools  # which of them are totals
    nested: bool  # at most one is not
    tolerance: float


class Terms(NamedTuple):
    """Linear terms of the children: in a level of the estimate (by cell), in its leaves (active rows), or own arrays."""

    kind: int
    level: Floats  # nodes × positions
    position: Ints  # of each cell: in the level, or the row of the matrix axis times S plus the column
    flat: Floats
    offset: Ints
    rows: Ints
    pattern: Ints
    S: int


@compile_kernel
def gather_terms(terms: Terms, children: Ints, place: Ints, own: Floats, out: Floats) -> None:
    """Gather the linear terms of children on the parent's cells, as ``TreeEstimate.linear`` does."""
    kind, position, table, rows = terms.kind, terms.position, terms.level, terms.rows
    pattern, flat, offset, S = terms.pattern, terms.flat, terms.offset, terms.S
    for c in range(len(children)):
        node = children[c]
        for j in range(len(place)):
            if kind == OWN:
                out[c, j] = own[c * len(place) + j]
                continue
            at = position[place[j]]
            if kind == UPPER:
                out[c, j] = table[node, at]
            else:
                row = rows[pattern[node], at // S]
                out[c, j] = flat[offset[node] + row * S + at % S] if row >= 0 else 0.0


@compile_kernel
def find_live(level: LevelArrays, parent: int) -> tuple[Ints, Bools]:
    """Return the children that may hold any cell of their parent, and which cells they may hold."""
    held, begin, high = level.held, level.begin, level.high
    place = level.place[level.above[parent] : level.above[parent + 1]]
    first, last = level.first_child[parent], level.first_child[parent + 1]
    n = len(place)
    allowed, children = np.empty((last - first, n), np.bool_), np.empty(last - first, np.int64)
    size = 0
    for child in range(first, last):
        some = False
        for j in range(n):
            may = True
            for r in range(len(held)):
                g = held[r, place[j]]
                if g >= 0 and high[child, begin[r] + g] <= 0:
                    may = False
            allowed[size, j] = may
            some = some or may
        if some:
            children[size] = child
            size += 1
    return children[:size], allowed[:size]


@compile_kernel
def is_covered(allowed: Bools) -> bool:
    """Return whether some child may hold each cell."""
    for j in range(allowed.shape[1]):
        some = False
        for c in range(allowed.shape[0]):
            some = some or allowed[c, j]
        if not some:
            return False
    return True


@compile_kernel
def find_classes(level: LevelArrays, children: Ints) -> tuple[Floats, Ints]:
    """Return the weights of the classes that these children have, and the class of each."""
    number = np.full(len(level.weights), -1, np.int64)
    classes, kinds = np.empty(len(children), np.int64), 0
    for c in range(len(children)):
        k = level.classes[children[c]]
        if number[k] < 0:
            number[k] = kinds
            kinds += 1
        classes[c] = number[k]
    weights = np.empty((kinds, level.weights.shape[1]))
    for k in range(len(number)):
        if number[k] >= 0:
            for q in range(weights.shape[1]):
                weights[number[k], q] = level.weights[k, q]
    return weights, classes


@compile_kernel
def build_families(level: LevelArrays, children: Ints, place: Ints) -> tuple[Groups, Ints, Floats, Floats]:
    """Return held sums on the parent's cells: groups in order (cells outside first), sizes, bounds."""
    held, begin, whole = level.held, level.begin, level.whole
    R, n, C = len(held), len(place), len(children)
    groups, size = np.zeros((R, n), np.int32), np.ones(R, np.int64)
    number = np.full((R, level.low.shape[1] + 1), -1, np.int64)  # by answer, those outside at 0
    most = 1
    for r in range(R):
        if whole[r]:
            continue
        for j in range(n):
            number[r, held[r, place[j]] + 1] = 0
        size[r] = 0
        for g in range(number.shape[1]):
            if number[r, g] == 0:
                number[r, g] = size[r]
                size[r] += 1
        for j in range(n):
            groups[r, j] = number[r, held[r, place[j]] + 1]
        most = max(most, size[r])
    low, high = np.full((R, C, most), -FREE), np.full((R, C, most), FREE)
    for r in range(R):
        if whole[r]:
            number[r, 1] = 0
        for g in range(1, number.shape[1]):
            if number[r, g] >= 0:
                for c in range(C):
                    low[r, c, number[r, g]] = level.low[children[c], begin[r] + g - 1]
                    high[r, c, number[r, g]] = level.high[children[c], begin[r] + g - 1]
    return groups, size, low, high


@compile_kernel
def meets_bounds(level: LevelArrays, children: Ints, place: Ints, values: Ints) -> bool:
    """Return whether the integers meet every bound."""
    held, begin, low, high = level.held, level.begin, level.low, level.high
    sums = np.empty(low.shape[1], np.int64)
    for c in range(len(children)):
        for a in range(len(sums)):
            sums[a] = 0
        for j in range(len(place)):
            if values[c, j] < 0:
                return False
            for r in range(len(held)):
                g = held[r, place[j]]
                if g >= 0:
                    sums[begin[r] + g] += values[c, j]
        for a in range(len(sums)):
            if sums[a] < low[children[c], a] or sums[a] > high[children[c], a]:
                return False
    return True
