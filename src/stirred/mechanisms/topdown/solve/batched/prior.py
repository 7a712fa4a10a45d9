r"""The prior knowledge of a parent's leaves as linear terms, queries and weights: one kernel, for batches and alone.

With M the prior mean of a leaf's persons of a kind, $V = M + \beta M^2$ its variance, y the unbiased estimate with
variance s² and t the trust, T is $M + V / (V + t s^2) (y - M)$, and no less than a part of M. The leaf's share p of
all T gives the cell with the parent's count x the mean $p x$ and the variance $\varphi p x$. Cells of about the same
count share one weight, because each weight is one more query of the solve. Why it is so stands in ``guide.prior``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.topdown.solve.batched.networks import pairwise_sum

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
DEGREES_OF_FREEDOM = 4.0  # of Student's t, by which outliers weigh less
WEIGHT_STEP_FACTOR = 2.5  # cells whose parent's counts differ by less than this factor share one weight
MIN_VARIANCE_PERSONS = 0.02  # no variance of a cell is below this, in persons
MIN_SHARE_RATIO = 0.1  # no share is below this part of the share by units


class LeafPrior(NamedTuple):
    """Prior knowledge of all leaves, by kind of their units, and the kind of each cell."""

    units: Ints  # leaves × kinds
    persons: Floats  # leaves × kinds: unbiased estimates
    variance: Floats  # leaves × kinds: of these estimates
    cells: Floats  # φ by kind: the variance of a cell is so many times its mean
    totals: (
        Floats  # β by kind: the variance of a leaf's persons beyond their mean is so many times its square
    )
    kind: Ints  # of each cell, -1 outside


def build_no_prior() -> LeafPrior:
    """Return a prior that knows nothing of any cell."""
    none = np.zeros(0)
    table = np.zeros((0, 0))
    return LeafPrior(np.zeros((0, 0), np.int64), table, table, none, none, np.zeros(0, np.int64))


@compile_kernel
def compute_leaf_shares(prior: LeafPrior, children: Ints, a: int, total: float) -> Floats:
    """Return prior means, variances, shares and trust of the leaves' persons of a kind."""
    C = len(children)
    found, units = np.zeros((4, C)), 0
    means, variances, shares, trust = found[0], found[1], found[2], found[3]
    for c in range(C):
        units += prior.units[children[c], a]
    if units == 0 or total == 0.0:
        return found
    for c in range(C):
        mean = total * np.float64(prior.units[children[c], a]) / np.float64(units)
        variance, noise = mean + prior.totals[a] * (mean * mean), prior.variance[children[c], a]
        apart = prior.persons[children[c], a] - mean
        odd = apart * apart / max(variance + noise, MIN_VARIANCE_PERSONS)
        means[c], variances[c], trust[c] = (
            mean,
            variance,
            min(1.0, (DEGREES_OF_FREEDOM + 1.0) / (DEGREES_OF_FREEDOM + odd)),
        )
        gain = variance / max(variance + trust[c] * noise, MIN_VARIANCE_PERSONS) if mean > 0.0 else 0.0
        shares[c] = max(mean + gain * apart, MIN_SHARE_RATIO * mean)
    whole = pairwise_sum(shares, C)
    for c in range(C):
        shares[c] /= whole
    return found


@compile_kernel
def add_prior(
    prior: LeafPrior, children: Ints, place: Ints, parent: Floats, allowed: Bools, linear: Floats, groups: Groups,
    weights: Floats, classes: Ints,
) -> tuple[Floats, Groups, Floats]:  # fmt: skip
    """Return linear terms, queries and each child's weights, with those of the prior at the end.

    ``place`` says where in ``prior.kind`` the parent's cells are.
    """
    C, n = linear.shape
    Q, kinds = len(groups), prior.units.shape[1]
    size, kind, logarithm, top = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), 0
    for j in range(n):
        kind[j], logarithm[j] = prior.kind[place[j]], np.log(max(parent[j], 1.0))
        size[j] = np.int64(np.floor(logarithm[j] / np.log(WEIGHT_STEP_FACTOR)))
        top = max(top, size[j])
    # Queries of the prior: for each kind that occurs its cells by size, then its total.
    row = np.full((kinds, top + 2), -1, np.int64)
    for j in range(n):
        if kind[j] >= 0:
            row[kind[j], size[j]] = row[kind[j], top + 1] = 0
    rows = Q
    for a in range(kinds):
        for s in range(top + 2):
            if row[a, s] == 0:
                row[a, s] = rows
                rows += 1
    terms, queries, own = np.empty((C, n)), np.empty((rows, n), np.int32), np.zeros((C, rows))
    for q in range(rows):
        for j in range(n):
            queries[q, j] = groups[q, j] if q < Q else -1
    for c in range(C):
        for q in range(Q):
            own[c, q] = weights[classes[c], q]
        for j in range(n):
            terms[c, j] = linear[c, j]
    few, at = np.empty(n), np.empty(n, np.int64)
    for a in range(kinds):
        if row[a, top + 1] < 0:
            continue
        total = 0.0
        for j in range(n):
            if kind[j] == a:
                total += parent[j]
        phi, known = prior.cells[a], compute_leaf_shares(prior, children, a, total)
        means, variances, shares, trust = known[0], known[1], known[2], known[3]
        for s in range(top + 1):
            q = row[a, s]
            if q < 0:
                continue
            many = 0
            for j in range(n):
                if kind[j] == a and size[j] == s:
                    few[many], at[many], queries[q, j] = logarithm[j], j, many
                    many += 1
            middle = np.exp(pairwise_sum(few, many) / many)
            for c in range(C):
                if shares[c] > 0.0:
                    own[c, q] = trust[c] / max(phi * middle * shares[c], MIN_VARIANCE_PERSONS)
                    for k in range(many):
                        if allowed[c, at[k]]:
                            terms[c, at[k]] += own[c, q] * shares[c] * parent[at[k]]
        q = row[a, top + 1]
        for j in range(n):
            if kind[j] == a:
                queries[q, j] = 0
        for c in range(C):
            if means[c] > 0.0:
                # Independent cells already say that the total has variance φM; where it is known better, that is added.
                own[c, q] = max(
                    trust[c] / max(variances[c], MIN_VARIANCE_PERSONS)
                    - trust[c] / max(phi * means[c], MIN_VARIANCE_PERSONS),
                    0.0,
                )
                for j in range(n):
                    if kind[j] == a and allowed[c, j]:
                        terms[c, j] += own[c, q] * means[c]
    return terms, queries, own
