"""Minimum-cost flow by successive shortest paths from a near-optimal pseudo-flow, compiled.

Nodes have supplies, arcs capacities and real costs. Arcs whose reduced cost is negative under the given potentials are
saturated first; what is then out of balance is sent along shortest paths (Dijkstra with potentials; Ahuja, Magnanti
and Orlin 1993, Section 9.7). With integer supplies and capacities the optimum found is integral.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

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
