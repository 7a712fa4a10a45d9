"""Stirring by definition: every permutation, every data set of a universe, every pair, in fractions.

Nothing of the product is used but the law that is tested: exchanges are counted by search, losses by enumeration.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import exp

Permutation = tuple[int, ...]
Law = Mapping[Permutation, Fraction]
DataSet = tuple[tuple[int, int], ...]  # the sorted pairs (held value, place) of one stratum


def ewens(n: int, weight: Fraction) -> dict[Permutation, Fraction]:
    """Return the law by cycles from its definition, without its normaliser's closed form."""
    weights = {s: weight ** _count_cycles(s) for s in permutations(range(n))}
    whole = sum(weights.values())
    return {s: value / whole for s, value in weights.items()}


def _count_cycles(s: Permutation) -> int:
    left, found = set(range(len(s))), 0
    while left:
        i, found = left.pop(), found + 1
        while (i := s[i]) in left:
            left.remove(i)
    return found


def by_changed_slots(types: Sequence[int], theta: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Return the law of the arrangements of types that weighs each by θ to the number of slots whose type changed."""
    weights = {
        shown: theta ** sum(a != b for a, b in zip(types, shown, strict=True))
        for shown in sorted(set(permutations(types)))
    }
    whole = sum(weights.values())
    return {shown: value / whole for shown, value in weights.items()}


def universe(held: Sequence[int], places: Sequence[int]) -> list[DataSet]:
    """Return all data sets with these held values and places."""
    return sorted({tuple(sorted(zip(held, order, strict=True))) for order in permutations(places)})


def published(data: DataSet, law: Callable[[DataSet], Law]) -> dict[DataSet, Fraction]:
    """Return the law of what is published: record i is published at the place of record s(i)."""
    found: dict[DataSet, Fraction] = {}
    for s, chance in law(data).items():
        out = tuple(sorted((data[i][0], data[j][1]) for i, j in enumerate(s)))
        found[out] = found.get(out, Fraction(0)) + chance
    return found


def neighbours(data: DataSet) -> Iterator[DataSet]:
    """Yield the data sets after one exchange of two records."""
    for i, j in combinations(range(len(data)), 2):
        (held, place), (other, far) = data[i], data[j]
        if held != other and place != far:
            rest = [pair for k, pair in enumerate(data) if k not in (i, j)]
            yield tuple(sorted([*rest, (held, far), (other, place)]))


def exchanges_from(data: DataSet) -> dict[DataSet, int]:
    """Return the least number of exchanges to every data set of the universe, by breadth-first search."""
    found, front = {data: 0}, [data]
    while front:
        after = []
        for one in front:
            for other in neighbours(one):
                if other not in found:
                    found[other] = found[one] + 1
                    after.append(other)
        front = after
    return found


def hamming(one: DataSet, other: DataSet) -> int:
    """Return the number of records that differ: half the distance of the counts."""
    left = list(other)
    for pair in one:
        if pair in left:
            left.remove(pair)
    return len(left)


def worst_ratio(here: Mapping[DataSet, Fraction], there: Mapping[DataSet, Fraction]) -> Fraction:
    """Return the largest ratio of the two laws, either way; both have the same support."""
    assert here.keys() == there.keys()
    return max(max(here[y] / there[y], there[y] / here[y]) for y in here)


def least_moved_share(n: int, loss: float) -> float:
    """Return the smallest share that any law on the permutations of n moves at this loss per exchange."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    every = list(permutations(range(n)))
    at = {s: i for i, s in enumerate(every)}
    rows, cols, data = [], [], []
    for s in every:
        for i, j in combinations(range(n), 2):
            t = list(s)
            t[i], t[j] = t[j], t[i]
            rows += [len(rows) // 2] * 2
            cols += [at[s], at[tuple(t)]]
            data += [1.0, -exp(loss)]
    matrix = coo_matrix((data, (rows, cols))).tocsr()
    cost = np.array([sum(i != a for i, a in enumerate(s)) / n for s in every])
    found = linprog(
        cost,
        A_ub=matrix,
        b_ub=np.zeros(matrix.shape[0]),
        A_eq=np.ones((1, len(every))),
        b_eq=[1],
        method="highs",
    )
    return float(found.fun)


def least_changed_slots(types: Sequence[int], loss: float) -> float:
    """Return the smallest expected share of slots whose type changes, over all mechanisms with this loss."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    every = sorted(set(permutations(types)))
    size, at = len(every), {x: i for i, x in enumerate(every)}
    rows, cols, data = [], [], []
    for x in every:
        for i, j in combinations(range(len(x)), 2):
            if x[i] == x[j]:
                continue
            z = list(x)
            z[i], z[j] = z[j], z[i]
            for y in range(size):
                rows += [len(rows) // 2] * 2
                cols += [at[x] * size + y, at[tuple(z)] * size + y]
                data += [1.0, -exp(loss)]
    matrix = coo_matrix((data, (rows, cols)), shape=(len(rows) // 2, size * size)).tocsr()
    each = coo_matrix((np.ones(size * size), (np.repeat(range(size), size), range(size * size)))).tocsr()
    cost = np.array([sum(p != q for p, q in zip(x, y, strict=True)) for x in every for y in every])
    found = linprog(
        cost / len(types) / size,
        A_ub=matrix,
        b_ub=np.zeros(matrix.shape[0]),
        A_eq=each,
        b_eq=np.ones(size),
        method="highs",
    )
    return float(found.fun)
