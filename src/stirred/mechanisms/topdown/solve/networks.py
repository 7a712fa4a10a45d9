"""Round many parents in compiled code, by minimum-cost flow on a network of cells and children."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel

# Minimum-cost flow by successive shortest paths from a near-optimal pseudo-flow, compiled.
#
# Nodes have supplies, arcs capacities and real costs. Arcs whose reduced cost is negative under the given potentials
# are
# saturated first; what is then out of balance is sent along shortest paths (Dijkstra with potentials; Ahuja, Magnanti
# and Orlin 1993, Section 9.7). With integer supplies and capacities the optimum found is integral.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@compile_kernel
def _push(heap: Floats, items: Ints, size: int, value: float, item: int) -> int:
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= value:
            break
        heap[i] = heap[up]
        items[i] = items[up]
        i = up
    heap[i] = value
    items[i] = item
    return size + 1


@compile_kernel
def _pop(heap: Floats, items: Ints, size: int) -> int:
    """Remove the least; it is left at position ``size - 1``."""
    size -= 1
    least = heap[0]
    least_item = items[0]
    value = heap[size]
    item = items[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i] = heap[child]
        items[i] = items[child]
        i = child
    heap[i] = value
    items[i] = item
    heap[size] = least
    items[size] = least_item
    return size


@compile_kernel
def solve_flow(
    tail: Ints, head: Ints, capacity: Ints, cost: Floats, supply: Ints, potential: Floats
) -> tuple[Ints, bool]:
    """Return the flow on each arc, and whether every supply could be placed."""
    m = len(tail)
    n = len(supply)
    flow = np.zeros(m, np.int64)
    excess = supply.copy()
    for a in range(m):
        if cost[a] - potential[tail[a]] + potential[head[a]] < 0.0:
            flow[a] = capacity[a]
            excess[tail[a]] -= capacity[a]
            excess[head[a]] += capacity[a]
    # Adjacency of the residual graph: arc a is 2a forward, 2a + 1 backward.
    first = np.zeros(n + 1, np.int64)
    for a in range(m):
        first[tail[a] + 1] += 1
        first[head[a] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    place = first[:n].copy()
    arcs = np.empty(2 * m, np.int64)
    for a in range(m):
        arcs[place[tail[a]]] = 2 * a
        place[tail[a]] += 1
        arcs[place[head[a]]] = 2 * a + 1
        place[head[a]] += 1
    heap = np.empty(2 * m + n + 1)
    items = np.empty(2 * m + n + 1, np.int64)
    distance = np.empty(n)
    done = np.empty(n, np.bool_)
    came = np.empty(n, np.int64)
    while True:
        size = 0
        distance[:] = np.inf
        done[:] = False
        came[:] = -1
        any_excess = False
        for v in range(n):
            if excess[v] > 0:
                any_excess = True
                distance[v] = 0.0
                size = _push(heap, items, size, 0.0, v)
        if not any_excess:
            break
        goal = -1
        while size > 0:
            size = _pop(heap, items, size)
            u = items[size]
            if done[u]:
                continue
            done[u] = True
            if excess[u] < 0:
                goal = u
                break
            for i in range(first[u], first[u + 1]):
                a = arcs[i] >> 1
                if arcs[i] & 1 == 0:
                    if flow[a] >= capacity[a]:
                        continue
                    v = head[a]
                    reduced = cost[a] - potential[u] + potential[v]
                else:
                    if flow[a] <= 0:
                        continue
                    v = tail[a]
                    reduced = -cost[a] - potential[u] + potential[v]
                reach = distance[u] + max(reduced, 0.0)
                if reach < distance[v]:
                    distance[v] = reach
                    came[v] = arcs[i]
                    size = _push(heap, items, size, reach, v)
        if goal < 0:
            return flow, False
        far = distance[goal]
        for v in range(n):
            potential[v] -= min(distance[v], far)
        amount = -excess[goal]
        v = goal
        while came[v] >= 0:
            a = came[v] >> 1
            if came[v] & 1 == 0:
                amount = min(amount, capacity[a] - flow[a])
                v = tail[a]
            else:
                amount = min(amount, flow[a])
                v = head[a]
        amount = min(amount, excess[v])
        excess[v] -= amount
        excess[goal] += amount
        v = goal
        while came[v] >= 0:
            a = came[v] >> 1
            if came[v] & 1 == 0:
                flow[a] += amount
                v = tail[a]
            else:
                flow[a] -= amount
                v = head[a]
    balanced = True
    for v in range(n):
        if excess[v] != 0:
            balanced = False
    return flow, balanced


# The arrays that all parents of a level share, and how compiled code looks things up in them.

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


# The rounding network of ``rounding``, built and solved in compiled code: the same arcs in the same order.
#
# Sums that decide ties run in the order in which NumPy adds them in ``rounding.network`` (``pairwise_sum``).

Index = int | np.int64
TOTAL_WEIGHT = 64.0  # as in ``rounding``
NUMBERS_PER_BLOCK = 128  # numbers that NumPy adds with eight sums side by side before it halves


@compile_kernel
def _sum_block(a: Floats, first: Index, n: int) -> float:
    """Return the sum of at most NUMBERS_PER_BLOCK numbers."""
    total: float = 0.0
    if n < 8:
        for k in range(n):
            total += a[first + k]
        return total
    r0, r1, r2, r3 = a[first], a[first + 1], a[first + 2], a[first + 3]
    r4, r5, r6, r7 = a[first + 4], a[first + 5], a[first + 6], a[first + 7]
    i: Index = first + 8
    last = first + n - n % 8
    while i < last:
        r0 += a[i]
        r1 += a[i + 1]
        r2 += a[i + 2]
        r3 += a[i + 3]
        r4 += a[i + 4]
        r5 += a[i + 5]
        r6 += a[i + 6]
        r7 += a[i + 7]
        i += 8
    total += ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    while i < first + n:
        total += a[i]
        i += 1
    return float(total)


@compile_kernel
def pairwise_sum(a: Floats, n: int) -> float:
    """Return the sum of the first n numbers, in the order of ``np.add.reduce`` on a contiguous axis.

    >>> float(pairwise_sum(np.arange(300.0), 300))
    44850.0
    """
    if n <= NUMBERS_PER_BLOCK:
        return _sum_block(a, np.int64(0), n)  # a literal would be compiled for again
    # NumPy halves again and again (the first half a multiple of eight), so sums are added as in a tree.
    first, size, done = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    sums = np.empty(64)
    depth, result = 0, 0.0
    first[0], size[0], done[0] = 0, n, 0
    while depth >= 0:
        if size[depth] <= NUMBERS_PER_BLOCK:
            result = _sum_block(a, first[depth], size[depth])
        elif done[depth] < 2:
            half = size[depth] // 2
            half -= half % 8
            if done[depth] == 0:
                first[depth + 1], size[depth + 1] = first[depth], half
            else:
                sums[depth] = result
                first[depth + 1], size[depth + 1] = first[depth] + half, size[depth] - half
            done[depth] += 1
            done[depth + 1] = 0
            depth += 1
            continue
        else:
            result = sums[depth] + result
        depth -= 1
    return result


@compile_kernel
def sort_part(a: Floats, first: Index, last: Index) -> None:
    """Sort a part of an array in place (Shell 1959)."""
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            value, k = a[i], i
            while k >= first + gap and a[k - gap] > value:
                a[k] = a[k - gap]
                k -= gap
            a[k] = value
        gap //= 3


@compile_kernel
def _step_cost(value: float, base: float) -> float:
    return min(max(1.0 - 2.0 * (value - base), -1.0), 1.0)


@compile_kernel
def _set_potentials(potential: Floats, costs: Floats, columns: Ints, left: Ints) -> None:
    """Set column potentials at which each column takes its cheapest cells, as in ``rounding``."""
    n = len(left)
    number = np.zeros(n + 1, np.int64)
    for j in columns:
        number[j + 1] += 1
    for j in range(n):
        number[j + 1] += number[j]
    place = number[:n].copy()
    own = np.empty(len(columns))
    for k in range(len(columns)):
        own[place[columns[k]]] = costs[k]
        place[columns[k]] += 1
    for j in range(n):
        begin, end = number[j], number[j + 1]
        if end == begin:
            continue
        sort_part(own, begin, end)
        if left[j] <= 0:
            potential[j] = own[begin] - 1.0
        elif left[j] >= end - begin:
            potential[j] = own[end - 1] + 1.0
        else:
            potential[j] = 0.5 * (own[begin + left[j] - 1] + own[begin + left[j]])


@compile_kernel
def _add_narrow_arcs(
    x: Floats, parent: Ints, allowed: Bools, groups: Groups, low: Floats, high: Floats, total_low: Floats,
    total_high: Floats, snap: float, arcs: Index, tail: Ints, head: Ints, capacity: Ints, cost: Floats, supply: Ints,
    potential: Floats, values: Ints,
) -> None:  # fmt: skip
    """Build arcs that take every cell to its floor or ceiling; ``values`` are the floors."""
    C, n = x.shape
    m = low.shape[1]
    left = parent.copy()
    group_sum, group_floor = np.zeros((C, m)), np.zeros((C, m), np.int64)
    first_child, sink, a = n + C * m, n + C * m + C, 0
    for c in range(C):
        for j in range(n):
            floor = np.int64(np.floor(x[c, j] + 1e-9))
            values[c, j] = floor
            left[j] -= floor
            group_sum[c, groups[j]] += x[c, j]
            group_floor[c, groups[j]] += floor
            if allowed[c, j]:
                tail[a], head[a], capacity[a] = j, n + c * m + groups[j], 1
                cost[a] = 1.0 - 2.0 * min(max(x[c, j] - floor, 0.0), 1.0)
                a += 1
    for j in range(n):
        supply[j] = left[j]
        supply[sink] -= left[j]
    for c in range(C):
        total, total_floor = pairwise_sum(group_sum[c], m), 0
        for g in range(m):
            least = np.int64(max(np.floor(group_sum[c, g] + snap), low[c, g])) - group_floor[c, g]
            most = np.int64(min(np.ceil(group_sum[c, g] - snap), high[c, g])) - group_floor[c, g]
            k = arcs + c * m + g
            tail[k], head[k], capacity[k] = n + c * m + g, first_child + c, most - least
            cost[k] = _step_cost(group_sum[c, g], np.float64(least + group_floor[c, g]))
            supply[n + c * m + g] -= least
            supply[first_child + c] += least
            total_floor += group_floor[c, g]
        least = np.int64(max(np.floor(total + snap), total_low[c])) - total_floor
        most = np.int64(min(np.ceil(total - snap), total_high[c])) - total_floor
        k = arcs + C * m + c
        tail[k], head[k], capacity[k] = first_child + c, sink, most - least
        cost[k] = TOTAL_WEIGHT * _step_cost(total, np.float64(least + total_floor))
        supply[first_child + c] -= least
        supply[sink] += least
    _set_potentials(potential, cost[:arcs], tail[:arcs], left)


@compile_kernel
def _add_wide_arcs(
    x: Floats, parent: Ints, allowed: Bools, groups: Groups, low: Floats, high: Floats, total_low: Floats,
    total_high: Floats, arcs: Index, tail: Ints, head: Ints, capacity: Ints, cost: Floats, supply: Ints, values: Ints,
) -> None:  # fmt: skip
    """Build arcs from zero to the parent's count with rising costs: down, the fractional step, up."""
    C, n = x.shape
    m = low.shape[1]
    sink, a, people = n + C * m + C, 0, 0
    for j in range(n):
        people += parent[j]
        supply[j] = parent[j]
    supply[sink] = -people
    for c in range(C):
        for j in range(n):
            values[c, j] = 0
            if allowed[c, j]:
                floor = np.int64(np.floor(x[c, j] + 1e-9))
                fraction = min(max(x[c, j] - floor, 0.0), 1.0)
                for k in range(3):
                    tail[a + k * arcs], head[a + k * arcs] = j, n + c * m + groups[j]
                capacity[a], capacity[a + arcs], capacity[a + 2 * arcs] = floor, 1, parent[j]
                cost[a], cost[a + arcs], cost[a + 2 * arcs] = -1.0, 1.0 - 2.0 * fraction, 1.0
                a += 1
    size = np.float64(people)
    for c in range(C):
        for g in range(m):
            least = np.int64(min(max(low[c, g], 0.0), size))
            k = 3 * arcs + c * m + g
            tail[k], head[k] = n + c * m + g, n + C * m + c
            capacity[k] = np.int64(min(max(high[c, g], 0.0), size)) - least
            supply[n + c * m + g] -= least
            supply[n + C * m + c] += least
        least = np.int64(min(max(total_low[c], 0.0), size))
        k = 3 * arcs + C * m + c
        tail[k], head[k] = n + C * m + c, sink
        capacity[k] = np.int64(min(max(total_high[c], 0.0), size)) - least
        supply[n + C * m + c] -= least
        supply[sink] += least


@compile_kernel
def solve_network(
    x: Floats, parent: Ints, allowed: Bools, groups: Groups, low: Floats, high: Floats, total_low: Floats,
    total_high: Floats, snap: float, wide: bool, values: Ints,
) -> bool:  # fmt: skip
    """Write a rounding that keeps every sum into ``values``; return whether there is one."""
    C, n = x.shape
    m = low.shape[1]
    arcs, copies = np.int64(0), 3 if wide else 1
    for c in range(C):
        for j in range(n):
            arcs += allowed[c, j]
    size = copies * arcs + C * m + C
    tail, head, capacity = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    cost, potential = np.zeros(size), np.zeros(n + C * m + C + 1)
    supply = np.zeros(len(potential), np.int64)
    if wide:
        _add_wide_arcs(
            x, parent, allowed, groups, low, high, total_low, total_high, arcs, tail, head, capacity, cost, supply,
            values,
        )  # fmt: skip
    else:
        _add_narrow_arcs(
            x, parent, allowed, groups, low, high, total_low, total_high, snap, arcs, tail, head, capacity, cost,
            supply, potential, values,
        )  # fmt: skip
    for k in range(size):
        if capacity[k] < 0:
            return False
    flow, balanced = solve_flow(tail, head, capacity, cost, supply, potential)
    if not balanced:
        return False
    a = 0
    for c in range(C):
        for j in range(n):
            if allowed[c, j]:
                for k in range(copies):
                    values[c, j] += flow[a + k * arcs]
                a += 1
    return True


@compile_kernel
def round_by_group(
    x: Floats, parent: Ints, allowed: Bools, groups: Groups, exact: Floats, values: Ints
) -> bool:
    """Round each exact group separately, as a small transport problem between cells and children."""
    C, n = x.shape
    for c in range(C):
        for j in range(n):
            values[c, j] = 0
    for g in range(exact.shape[1]):
        rows, columns = np.empty(C, np.int64), np.empty(n, np.int64)
        size, width = 0, 0
        for c in range(C):
            if exact[c, g] > 0:
                rows[size] = c
                size += 1
        for j in range(n):
            if groups[j] == g:
                columns[width] = j
                width += 1
        if size == 0:
            continue
        part, may = np.empty((size, width)), np.empty((size, width), np.bool_)
        bound, one = np.empty((size, 1)), np.empty(width, np.int64)
        for i in range(size):
            bound[i, 0] = exact[rows[i], g]
            for k in range(width):
                part[i, k], may[i, k] = x[rows[i], columns[k]], allowed[rows[i], columns[k]]
        for k in range(width):
            one[k] = parent[columns[k]]
        zero, found = np.zeros(width, np.int32), np.empty((size, width), np.int64)
        below, above = np.full(size, -FREE), np.full(size, FREE)
        rounded = False
        for attempt in range(2):
            rounded = solve_network(
                part, one, may, zero, bound, bound, below, above, 2e-4, attempt == 1, found
            )
            if rounded:
                break
        if not rounded:
            return False
        for i in range(size):
            for k in range(width):
                values[rows[i], columns[k]] = found[i, k]
    return True


@compile_kernel
def round_batch(
    level: LevelArrays, parents: Ints, found: Floats, begin: Ints, status: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Round all parents; return nodes, cells and counts of children, and where each parent's end.

    The first network that exists is taken, as ``Estimator`` tries them; a parent that none rounds is marked in ``status``.
    """
    room = 0
    for p in parents:
        room += (level.above[p + 1] - level.above[p]) * (level.first_child[p + 1] - level.first_child[p])
    node, cell, count = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    ends, size = np.empty(len(parents), np.int64), 0
    for i in range(len(parents)):
        first, last = level.above[parents[i]], level.above[parents[i] + 1]
        place, counts, n = level.place[first:last], level.counts[first:last], last - first
        if status[i] != DONE:
            ends[i] = size
            continue
        if begin[i + 1] == begin[i]:  # a single child
            for j in range(n):
                node[size], cell[size] = level.first_child[parents[i]], level.cells[place[j]]
                count[size] = counts[j]
                size += 1
            ends[i] = size
            continue
        children, allowed = find_live(level, parents[i])
        C = len(children)
        x = found[begin[i] : begin[i] + C * n].reshape(C, n)
        held, sizes, low, high = build_families(level, children, place)
        partition, m, last_held = np.zeros(n, np.int32), 1, -1
        total_low, total_high = np.full(C, -FREE), np.full(C, FREE)
        for r in range(len(held)):
            if level.whole[r]:
                for c in range(C):
                    total_low[c], total_high[c] = low[r, c, 0], high[r, c, 0]
            else:
                partition, m, last_held = held[r], sizes[r], r
        least, most = np.full((C, m), -FREE), np.full((C, m), FREE)
        exact = m > 1
        for c in range(C):
            for g in range(m):
                if last_held >= 0:
                    least[c, g], most[c, g] = low[last_held, c, g], high[last_held, c, g]
                exact = exact and least[c, g] == most[c, g]
        values = np.empty((C, n), np.int64)
        if exact:
            rounded = round_by_group(x, counts, allowed, partition, least, values)
        else:
            rounded = False
            for attempt in range(4 if level.nested else 3):
                snap = 2e-4 if attempt == 0 else (1e-2 if attempt == 1 else 0.0)
                rounded = solve_network(
                    x,
                    counts,
                    allowed,
                    partition,
                    least,
                    most,
                    total_low,
                    total_high,
                    snap,
                    attempt == 3,
                    values,
                )
                if rounded:
                    break
        if rounded and meets_bounds(level, children, place, values):
            for c in range(C):
                for j in range(n):
                    if values[c, j] != 0:
                        node[size], cell[size], count[size] = children[c], level.cells[place[j]], values[c, j]
                        size += 1
        else:
            status[i] = TRY_AGAIN
        ends[i] = size
    return node[:size].copy(), cell[:size].copy(), count[:size].copy(), ends
