"""Add and sort numbers in one fixed order in compiled code, so that a result does not depend on who computes it."""

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
