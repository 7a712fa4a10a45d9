"""The compiled parts of the dual method: the best histograms for given prices, and products with its curvature.

Children run along the last axis of every array, so that all of them are processed at once. A cell counts in the rows of
the small queries through its kind (cells that no small query tells apart are of one kind) and in a few ``lines`` of its
own: the exact row first, then those of fine queries; -1 stands for none. Rows are numbered small, exact, fine.
Cells and children run in a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

Floats = NDArray[np.float64]
Index = NDArray[np.int32]
NEVER_CENTRE = -1e200  # the centre of a cell that a child may not have


@compile_kernel
def gather_prices(price: Floats, members: Index, table: Floats) -> None:
    """Sum the prices of the small rows of each kind."""
    table[:] = 0.0
    for k in range(members.shape[0]):
        for q in range(members.shape[1]):
            r = members[k, q]
            if r >= 0:
                for c in range(price.shape[1]):
                    table[k, c] += price[r, c]


@compile_kernel
def scatter_sums(table: Floats, members: Index, sums: Floats) -> None:
    """Add the sum of each kind to its small rows."""
    for k in range(members.shape[0]):
        for q in range(members.shape[1]):
            r = members[k, q]
            if r >= 0:
                for c in range(sums.shape[1]):
                    sums[r, c] += table[k, c]


@compile_kernel
def find_multiplier(v: Floats, inverse: Floats, whole: float, give: float, shift: float) -> float:
    """Return the multiplier at which max(v − shift · inverse, 0) sums to ``whole`` + give · shift.

    It is found by Newton's method on a convex function.
    """
    C = len(v)
    everyone = False
    for step in range(C + 8):
        value, slope = 0.0, give
        for c in range(C):
            if v[c] - shift * inverse[c] > 0.0 or (everyone and inverse[c] > 0.0):
                value += v[c]
                slope += inverse[c]
        if slope == 0.0:
            if everyone:
                break
            everyone = True
            continue
        everyone = False
        fresh = (value - whole) / slope
        if fresh == shift or (step > 1 and fresh < shift):
            break
        shift = fresh
    return shift


@compile_kernel
def evaluate_prices(
    price: Floats, centre: Floats, inverse: Floats, parent: Floats, give: Floats, kind: Index, members: Index,
    lines: Index, shift: Floats, X: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Compute X that minimises ½ d (x − centre)² + price · x + ½ (Σ_c x − parent)² / give, and its sums.

    The minimum is over x ≥ 0.

    Where give = 0, Σ_c x = parent; where parent has no length, children are not tied.
    """
    n, C = X.shape
    F = lines.shape[1]
    table, held = np.empty((len(members), C)), np.zeros((len(members), C))
    gather_prices(price, members, table)
    sums[:] = 0.0
    v = np.empty(C)
    tied = len(parent) > 0
    for j in range(n):
        for c in range(C):
            v[c] = table[kind[j], c]
        for f in range(F):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    v[c] += price[r, c]
        for c in range(C):
            v[c] = centre[j, c] - v[c] * inverse[j, c]
        if tied:
            shift[j] = find_multiplier(v, inverse[j], parent[j], give[j], shift[j])
        some = False
        for c in range(C):
            v[c] = max(v[c] - shift[j] * inverse[j, c], 0.0)
            X[j, c] = v[c]
            some |= v[c] > 0.0
        if some:
            for c in range(C):
                held[kind[j], c] += v[c]
            for f in range(F):
                r = lines[j, f]
                if r >= 0:
                    for c in range(C):
                        sums[r, c] += v[c]
    scatter_sums(held, members, sums)


@compile_kernel
def sum_rows(x: Floats, kind: Index, members: Index, lines: Index, sums: Floats) -> None:
    """Compute the sums of all rows."""
    sums[:] = 0.0
    held = np.zeros((len(members), x.shape[1]))
    for j in range(len(x)):
        for c in range(x.shape[1]):
            held[kind[j], c] += x[j, c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(x.shape[1]):
                    sums[r, c] += x[j, c]
    scatter_sums(held, members, sums)


@compile_kernel
def find_active(X: Floats, inverse: Floats, give: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the cells that can move, 1/d where a child's count is positive (else 0), and the ties."""
    n, C = X.shape
    tied = len(give) > 0
    kept = np.zeros(n, np.bool_)
    total = 0
    for j in range(n):
        count = 0
        for c in range(C):
            count += X[j, c] > 0.0
        kept[j] = count >= (2 if tied and give[j] == 0.0 else 1)
        total += kept[j]
    cell, slack, tie = np.empty(total, np.int64), np.empty((total, C)), np.zeros(total)
    k = 0
    for j in range(n):
        if kept[j]:
            s = give[j] if tied else 0.0
            for c in range(C):
                slack[k, c] = inverse[j, c] if X[j, c] > 0.0 else 0.0
                s += slack[k, c]
            cell[k], tie[k] = j, 1.0 / s if tied else 0.0
            k += 1
    return cell, slack, tie


@compile_kernel
def apply_curvature(
    P: Floats, kind: Index, members: Index, lines: Index, cell: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats,
    loose: Floats, lump: Floats, out: Floats,
) -> None:  # fmt: skip
    """Compute out = (B V B' + soft − loose loose' · lump) P on the cells that can move."""
    C = P.shape[1]
    table, held = np.empty((len(members), C)), np.zeros((len(members), C))
    gather_prices(P, members, table)
    out[:] = 0.0
    a = np.empty(C)
    for k in range(len(cell)):
        j = cell[k]
        for c in range(C):
            a[c] = table[kind[j], c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    a[c] += P[r, c]
        mean = 0.0
        for c in range(C):
            a[c] *= slack[k, c]
            mean += a[c]
        mean *= tie[k]
        for c in range(C):
            a[c] -= mean * slack[k, c]
            held[kind[j], c] += a[c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    out[r, c] += a[c]
    scatter_sums(held, members, out)
    for r in range(len(P)):
        mean = 0.0
        for c in range(C):
            out[r, c] += soft[r, c] * P[r, c]
            mean += loose[r, c] * P[r, c]
        mean *= lump[r]
        for c in range(C):
            out[r, c] -= mean * loose[r, c]


@compile_kernel
def number_pairs(kind: Index, members: Index, lines: Index, small: int, exact: int) -> Index:
    """Number every pair of an exact row and a small row that share a cell, -1 for the others."""
    pair = np.full((exact, small), -1, np.int32)
    for j in range(len(kind)):
        g = lines[j, 0] - small
        for q in range(members.shape[1]):
            r = members[kind[j], q]
            if r >= 0:
                pair[g, r] = 0
    count = 0
    for g in range(exact):
        for r in range(small):
            if pair[g, r] == 0:
                pair[g, r] = count
                count += 1
    return pair


@compile_kernel
def assemble_matrix(
    kind: Index, members: Index, lines: Index, pair: Index, cell: NDArray[np.int64], slack: Floats, tie: Floats,
    diagonal: Floats, cross: Floats, held: Floats,
) -> None:  # fmt: skip
    """Assemble the matrix, children untied, without ``soft``: diagonal, exact × small rows, kind parts."""
    C = slack.shape[1]
    small = pair.shape[1]
    w = np.empty(C)
    diagonal[:] = 0.0
    cross[:] = 0.0
    held[:] = 0.0
    for k in range(len(cell)):
        j = cell[k]
        for c in range(C):
            w[c] = slack[k, c] * (1.0 - slack[k, c] * tie[k])
            held[kind[j], c] += w[c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    diagonal[r, c] += w[c]
        g = lines[j, 0] - small
        for q in range(members.shape[1]):
            r = members[kind[j], q]
            if r >= 0:
                p = pair[g, r]
                for c in range(C):
                    cross[p, c] += w[c]
    scatter_sums(held, members, diagonal)


@compile_kernel
def factor_matrix(
    members: Index, pair: Index, diagonal: Floats, cross: Floats, held: Floats, block: Floats
) -> None:
    """Eliminate the exact rows, which share no cell, then factor U'U of the small ones by child.

    1 / pivot is stored in the pivot's place.
    """
    exact, small = pair.shape
    begin = np.zeros(exact + 1, np.int64)
    at = np.empty(len(cross), np.int64)
    for g in range(exact):
        begin[g + 1] = begin[g]
        for r in range(small):
            if pair[g, r] >= 0:
                at[pair[g, r]] = r
                begin[g + 1] += 1
    own = np.empty(len(cross))
    for c in range(len(block)):
        U = block[c]
        U[:] = 0.0
        for k in range(len(members)):
            for q in range(members.shape[1]):
                a = members[k, q]
                if a >= 0:
                    for p in range(members.shape[1]):
                        if members[k, p] > a:
                            U[a, members[k, p]] += held[k, c]
        for r in range(small):
            U[r, r] = diagonal[r, c]
        for p in range(len(own)):
            own[p] = cross[p, c]
        for g in range(exact):
            for p in range(begin[g], begin[g + 1]):
                w = own[p] / diagonal[small + g, c]
                if w != 0.0:
                    row = U[at[p]]
                    for b in range(p, begin[g + 1]):
                        row[at[b]] -= w * own[b]
        for j in range(small):
            row = U[j]
            pivot = 1.0 / np.sqrt(max(row[j], 1e-12 * diagonal[j, c]))
            row[j] = pivot
            for k in range(j + 1, small):
                row[k] *= pivot
            for i in range(j + 1, small):
                w = row[i]
                if w != 0.0:
                    below = U[i]
                    for k in range(i, small):
                        below[k] -= w * row[k]


@compile_kernel
def precondition(R: Floats, pair: Index, diagonal: Floats, cross: Floats, block: Floats, Z: Floats) -> None:
    """Apply the inverse of the factored matrix to R, into Z; fine rows are only scaled."""
    exact, small = pair.shape
    C = R.shape[1]
    for r in range(len(R)):
        for c in range(C):
            Z[r, c] = R[r, c] if r < small else R[r, c] / diagonal[r, c]
    for g in range(exact):
        for r in range(small):
            p = pair[g, r]
            if p >= 0:
                for c in range(C):
                    Z[r, c] -= cross[p, c] * Z[small + g, c]
    v = np.empty(small)
    for c in range(C):
        U = block[c]
        for i in range(small):
            v[i] = Z[i, c]
        for i in range(small):
            row = U[i]
            v[i] *= row[i]
            for k in range(i + 1, small):
                v[k] -= row[k] * v[i]
        for i in range(small - 1, -1, -1):
            row = U[i]
            s = v[i]
            for k in range(i + 1, small):
                s -= row[k] * v[k]
            v[i] = s * row[i]
        for i in range(small):
            Z[i, c] = v[i]
    for g in range(exact):
        for r in range(small):
            p = pair[g, r]
            if p >= 0:
                for c in range(C):
                    Z[small + g, c] -= cross[p, c] * Z[r, c] / diagonal[small + g, c]


@compile_kernel
def project_moves(Z: Floats, keep: Floats, share: Floats) -> None:
    """Remove what moves every child alike: where children are tied, that changes no histogram."""
    for r in range(len(Z)):
        mean = 0.0
        for c in range(Z.shape[1]):
            Z[r, c] *= keep[r, c]
            mean += Z[r, c]
        mean *= share[r]
        for c in range(Z.shape[1]):
            Z[r, c] -= mean * keep[r, c]


@compile_kernel
def inner_product(A: Floats, B: Floats) -> float:
    """Return the sum of all A · B, row by row."""
    total = 0.0
    for r in range(len(A)):
        own = 0.0
        for c in range(A.shape[1]):
            own += A[r, c] * B[r, c]
        total += own
    return total


@compile_kernel
def take_cg_step(by: float, p: Floats, out: Floats, move: Floats, r: Floats) -> None:
    """Take one step of conjugate gradients: move by p, and update the residual."""
    for i in range(len(p)):
        for c in range(p.shape[1]):
            move[i, c] += by * p[i, c]
            r[i, c] -= by * out[i, c]


@compile_kernel
def turn_direction(by: float, z: Floats, p: Floats) -> None:
    """Compute the next direction from z and the last one."""
    for i in range(len(p)):
        for c in range(p.shape[1]):
            p[i, c] = z[i, c] + by * p[i, c]
