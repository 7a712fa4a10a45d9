"""Round fractional histograms to integers that keep every sum, by minimum-cost flow in compiled code."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel

Floats = NDArray[np.float64]


Index = int | np.int64
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


# Minimum-cost flow by successive shortest paths from a near-optimal pseudo-flow, compiled.
#
# Nodes have supplies, arcs capacities and real costs. Arcs whose reduced cost is negative under the given potentials
# are saturated first; what is then out of balance is sent along shortest paths (Dijkstra with potentials; Ahuja,
# Magnanti and Orlin 1993, Section 9.7). With integer supplies and capacities the optimum found is integral.

Ints = NDArray[np.int64]


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


# Round fractional histograms to integers that keep every sum (controlled rounding).
#
# Each cell is rounded down or up; the children still add up to the parent in every cell, and every child's total and
# every held sum stay within one of their fractional values, so integer bounds that held before hold after. Cell →
# aimed sum → held group → total of the child is nested and crosses the parent's cells once: a network, hence the
# linear relaxation is integral (Cox 1987) and minimum-cost flow is exact. The cost is the L1 distance, totals first.
# Aimed sums, if there are any, are rounded to a neighbouring whole number, the nearer one if possible.
#
# Ties are broken by rule: arcs are numbered child by child, cell by cell within a child, then sums from fine to
# coarse; of two ways of equal cost the search takes the one it reaches first in that order. The result does not depend
# on threads, on what else is rounded, or on which machine of the same kind is used.

Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
FREE = 1e300  # a bound that binds nothing
# a sum this near to an integer is meant to be that integer; see proof.md for why a rounding still exists
SNAP_DISTANCE = 2e-4
AIM_WEIGHT = 8.0  # aimed sums before cells, after totals
TOTAL_WEIGHT = (
    64.0  # totals before cells: more than any one exchange of cells can gain on a path of that length
)


class KeptSums(NamedTuple):
    """The sums that a rounding keeps: supplies of the cells, and sums of each child from fine to coarse."""

    supply: Ints  # the parent's counts; at the root its exact sums
    column: Ints  # the supply that each cell draws on
    groups: Groups  # the held group of each cell; one for all when nothing is held
    low: Floats  # children × groups
    high: Floats
    total_low: Floats
    total_high: Floats
    aims: Groups  # the aimed sum of each cell, inside its group; of no length where none is aimed at
    group_of: Groups  # of each aimed sum


def keep_sums(
    supply: Ints,
    groups: Groups,
    low: Floats,
    high: Floats,
    *,
    column: Ints | None = None,
    total_low: Floats | None = None,
    total_high: Floats | None = None,
) -> KeptSums:
    """Return what a rounding keeps: each cell has its own supply unless ``column`` names another; totals may be free."""
    none, free = np.zeros(0, np.int32), np.full(len(low), FREE)
    return KeptSums(
        supply=np.require(supply, np.int64, ["C", "W"]),
        column=np.arange(len(groups)) if column is None else np.require(column, np.int64, ["C", "W"]),
        groups=np.require(groups, np.int32, ["C", "W"]),
        low=np.require(low, np.float64, ["C", "W"]),
        high=np.require(high, np.float64, ["C", "W"]),
        total_low=-free if total_low is None else np.require(total_low, np.float64, ["C", "W"]),
        total_high=free if total_high is None else np.require(total_high, np.float64, ["C", "W"]),
        aims=none,
        group_of=none,
    )


def aim_at(kept: KeptSums, aims: Groups) -> KeptSums:
    """Return the same with a partition of the cells whose sums inside each group the rounding aims at, if it has any."""
    if not len(aims):
        return kept
    pairs, place = np.unique(np.stack([kept.groups, aims], axis=1), axis=0, return_inverse=True)
    return kept._replace(
        aims=place.ravel().astype(np.int32), group_of=np.ascontiguousarray(pairs[:, 0]).astype(np.int32)
    )


@compile_kernel
def _step_cost(value: float, base: float) -> float:
    return min(max(1.0 - 2.0 * (value - base), -1.0), 1.0)


@compile_kernel
def _set_potentials(potential: Floats, costs: Floats, columns: Ints, left: Ints) -> None:
    """Set column potentials at which each column takes its cheapest cells."""
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
def _add_sum_arc(
    arc: Index, node: Index, above: Index, value: float, floor: Index, low: float, high: float, snap: float, weight: float,
    tail: Ints, head: Ints, capacity: Ints, cost: Floats, supply: Ints,
) -> None:  # fmt: skip
    """Add the arc of one sum, which takes it to the whole number below or above its value, inside its bounds."""
    bottom = np.int64(max(np.floor(value + snap), low))
    top = np.int64(min(np.ceil(value - snap), high))
    tail[arc], head[arc], capacity[arc] = node, above, top - bottom
    cost[arc] = weight * _step_cost(value, np.float64(bottom))
    # The lower bound is moved into the supplies; what remains has capacity high − low.
    supply[node] -= bottom - floor
    supply[above] += bottom - floor


@compile_kernel
def _add_narrow_arcs(
    x: Floats, allowed: Bools, kept: KeptSums, aimed: bool, snap: float, arcs: Index, tail: Ints, head: Ints,
    capacity: Ints, cost: Floats, supply: Ints, potential: Floats, values: Ints,
) -> None:  # fmt: skip
    """Build arcs that take every cell to its floor or ceiling; ``values`` are the floors."""
    C, n = x.shape
    m, columns, k = kept.low.shape[1], len(kept.supply), len(kept.group_of) if aimed else 0
    left = kept.supply.copy()
    group_sum, group_floor = np.zeros((C, m)), np.zeros((C, m), np.int64)
    aim_sum, aim_floor = np.zeros((C, k)), np.zeros((C, k), np.int64)
    first_group = columns + C * k
    first_child = first_group + C * m
    sink, a = first_child + C, np.int64(0)
    for c in range(C):
        for j in range(n):
            floor, g = np.int64(np.floor(x[c, j] + 1e-9)), kept.groups[j]
            values[c, j] = floor
            left[kept.column[j]] -= floor
            group_sum[c, g] += x[c, j]
            group_floor[c, g] += floor
            if k > 0:
                aim_sum[c, kept.aims[j]] += x[c, j]
                aim_floor[c, kept.aims[j]] += floor
            if allowed[c, j]:
                tail[a], capacity[a] = kept.column[j], 1
                head[a] = columns + c * k + kept.aims[j] if k > 0 else first_group + c * m + g
                cost[a] = 1.0 - 2.0 * min(max(x[c, j] - floor, 0.0), 1.0)
                a += 1
    for j in range(columns):
        supply[j] += left[j]
        supply[sink] -= left[j]
    for c in range(C):
        for f in range(k):
            _add_sum_arc(
                a, columns + c * k + f, first_group + c * m + kept.group_of[f], aim_sum[c, f], aim_floor[c, f], -FREE, FREE,
                snap, AIM_WEIGHT, tail, head, capacity, cost, supply,
            )  # fmt: skip
            a += 1
    for c in range(C):
        for g in range(m):
            _add_sum_arc(
                a, first_group + c * m + g, first_child + c, group_sum[c, g], group_floor[c, g], kept.low[c, g],
                kept.high[c, g], snap, 1.0, tail, head, capacity, cost, supply,
            )  # fmt: skip
            a += 1
    for c in range(C):
        total, floor = pairwise_sum(group_sum[c], m), np.int64(0)
        for g in range(m):
            floor += group_floor[c, g]
        _add_sum_arc(
            a, first_child + c, sink, total, floor, kept.total_low[c], kept.total_high[c], snap, TOTAL_WEIGHT, tail, head,
            capacity, cost, supply,
        )  # fmt: skip
        a += 1
    _set_potentials(potential, cost[:arcs], tail[:arcs], left)


@compile_kernel
def _add_wide_arcs(
    x: Floats, allowed: Bools, kept: KeptSums, arcs: Index, tail: Ints, head: Ints, capacity: Ints, cost: Floats,
    supply: Ints, values: Ints,
) -> None:  # fmt: skip
    """Build arcs from zero to the parent's count with rising costs: down, the fractional step, up."""
    C, n = x.shape
    m, columns = kept.low.shape[1], len(kept.supply)
    sink, a, people = columns + C * m + C, 0, 0
    for j in range(columns):
        people += kept.supply[j]
        supply[j] = kept.supply[j]
    supply[sink] = -people
    for c in range(C):
        for j in range(n):
            values[c, j] = 0
            if allowed[c, j]:
                floor = np.int64(np.floor(x[c, j] + 1e-9))
                fraction = min(max(x[c, j] - floor, 0.0), 1.0)
                for k in range(3):
                    tail[a + k * arcs], head[a + k * arcs] = kept.column[j], columns + c * m + kept.groups[j]
                capacity[a], capacity[a + arcs] = floor, 1
                capacity[a + 2 * arcs] = kept.supply[kept.column[j]]
                cost[a], cost[a + arcs], cost[a + 2 * arcs] = -1.0, 1.0 - 2.0 * fraction, 1.0
                a += 1
    size = np.float64(people)
    for c in range(C):
        for g in range(m):
            least = np.int64(min(max(kept.low[c, g], 0.0), size))
            k = 3 * arcs + c * m + g
            tail[k], head[k] = columns + c * m + g, columns + C * m + c
            capacity[k] = np.int64(min(max(kept.high[c, g], 0.0), size)) - least
            supply[columns + c * m + g] -= least
            supply[columns + C * m + c] += least
        least = np.int64(min(max(kept.total_low[c], 0.0), size))
        k = 3 * arcs + C * m + c
        tail[k], head[k] = columns + C * m + c, sink
        capacity[k] = np.int64(min(max(kept.total_high[c], 0.0), size)) - least
        supply[columns + C * m + c] -= least
        supply[sink] += least


@compile_kernel
def round_network(
    x: Floats, allowed: Bools, kept: KeptSums, aimed: bool, snap: float, wide: bool, values: Ints
) -> bool:
    """Write a rounding that keeps every sum into ``values``; return whether there is one.

    A ``wide`` network lets a cell move further than to its floor or ceiling, at the same cost per step: it exists
    whenever the sums agree at all.
    """
    C, n = x.shape
    m, k = kept.low.shape[1], len(kept.group_of) if aimed else 0
    arcs, copies = np.int64(0), 3 if wide else 1
    for c in range(C):
        for j in range(n):
            arcs += allowed[c, j]
    size = copies * arcs + C * k + C * m + C
    tail, head, capacity = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    cost, potential = np.zeros(size), np.zeros(len(kept.supply) + C * k + C * m + C + 1)
    supply = np.zeros(len(potential), np.int64)
    if wide:
        _add_wide_arcs(x, allowed, kept, arcs, tail, head, capacity, cost, supply, values)
    else:
        _add_narrow_arcs(
            x, allowed, kept, aimed, snap, arcs, tail, head, capacity, cost, supply, potential, values
        )
    for a in range(size):
        if capacity[a] < 0:
            return False
    flow, balanced = solve_flow(tail, head, capacity, cost, supply, potential)
    if not balanced:
        return False
    a = 0
    for c in range(C):
        for j in range(n):
            if allowed[c, j]:
                for i in range(copies):
                    values[c, j] += flow[a + i * arcs]
                a += 1
    return True


@compile_kernel
def is_exact(kept: KeptSums) -> bool:
    """Return whether there are several held groups, and the sums of all of them are known."""
    C, m = kept.low.shape
    for c in range(C):
        for g in range(m):
            if kept.low[c, g] != kept.high[c, g]:
                return False
    return bool(m > 1)


@compile_kernel
def round_by_group(x: Floats, allowed: Bools, kept: KeptSums, values: Ints) -> bool:
    """Round each exact group separately, as a small transport problem between cells and children."""
    C, n = x.shape
    for c in range(C):
        for j in range(n):
            values[c, j] = 0
    for g in range(kept.low.shape[1]):
        rows, columns = np.empty(C, np.int64), np.empty(n, np.int64)
        size, width = 0, 0
        for c in range(C):
            if kept.low[c, g] > 0:
                rows[size] = c
                size += 1
        for j in range(n):
            if kept.groups[j] == g:
                columns[width] = j
                width += 1
        if size == 0:
            continue
        part, may = np.empty((size, width)), np.empty((size, width), np.bool_)
        bound, counts = np.empty((size, 1)), np.empty(width, np.int64)
        for i in range(size):
            bound[i, 0] = kept.low[rows[i], g]
            for k in range(width):
                part[i, k], may[i, k] = x[rows[i], columns[k]], allowed[rows[i], columns[k]]
        for k in range(width):
            counts[k] = kept.supply[columns[k]]
        one, free, found = np.zeros(width, np.int32), np.full(size, FREE), np.empty((size, width), np.int64)
        none = np.zeros(0, np.int32)
        own = KeptSums(counts, np.arange(width), one, bound, bound, -free, free, none, none)
        rounded = False
        for attempt in range(2):
            # a literal would be compiled for again
            rounded = rounded or round_network(
                part, may, own, attempt > 1, SNAP_DISTANCE, attempt == 1, found
            )
        if not rounded:
            return False
        for i in range(size):
            for k in range(width):
                values[rows[i], columns[k]] = found[i, k]
    return True


@compile_kernel
def round_children(x: Floats, allowed: Bools, kept: KeptSums, nested: bool, values: Ints) -> bool:
    """Write the integers of a parent's children into ``values``; return whether a network rounds them.

    Aimed sums are given up first, then exactness about sums next to an integer; ``nested`` says that the held sums do
    not cross, so that cells may move further in the end.
    """
    if is_exact(kept):
        return round_by_group(x, allowed, kept, values)
    for attempt in range(5):
        aimed, wide = attempt == 0, attempt == 4
        if (aimed and len(kept.group_of) == 0) or (wide and not nested):
            continue
        snap = SNAP_DISTANCE if attempt < 2 else (1e-2 if attempt == 2 else 0.0)
        if round_network(x, allowed, kept, aimed, snap, wide, values):
            return True
    return False
