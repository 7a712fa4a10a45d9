r"""The best linear estimates of the answers to queries with few answers, which the fit below a parent then keeps to.

The published sums have noise of their own, and the children must repeat it. A linear estimate spreads what the two disagree
by over all answers, those of cells that nobody or nearly nobody is in included: some of these become negative. A histogram
cannot follow there. If it was fitted to the noisy answers in one step, the answers of all queries would share what is left
over as if all were equally worth keeping. So the linear estimates come first, from all noisy answers in their measured
weights, and then the fit keeps to them, the more so the fewer answers a query has.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.agreed import kernels
from stirred.mechanisms.topdown.solve.agreed.system import PricedRows

Floats = NDArray[np.float64]
PRIOR_WEIGHT_SHARE = 1e-3  # of the weight of an answer: how little is known about a cell before


def estimate_linearly(rows: PricedRows, times: Floats) -> Floats:
    """Return the best linear estimates of the small rows, rows × children.

    Exact sums are kept, and children sum to their parent.

    The rows count ``times`` as much as they were measured; the estimates are made in measured weights.
    """
    small, kept, C = rows.small, rows.small + rows.exact, rows.target.shape[1]
    if not small:
        return np.zeros((0, C))
    soft = rows.soft[:kept].copy()
    soft[:small] *= times[:, None]
    # Cells that neither the small queries nor the exact sums tell apart are one cell; all children have the same ones, so
    # that what they lack of their parent can be shared without breaking a sum.
    label = rows.lines[:, 0].astype(np.int64) * len(rows.members) + rows.kind
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    parent = np.bincount(place, rows.parent).astype(np.float64)
    loose = np.maximum(parent, 1.0) * float(soft[:small].min()) / PRIOR_WEIGHT_SHARE
    inverse = np.repeat(loose[:, None], C, axis=1)
    kind, lines = np.ascontiguousarray(rows.kind[first]), np.ascontiguousarray(rows.lines[first][:, :1])
    exact = rows.target[lines[:, 0]]
    share = exact / np.maximum(exact.sum(axis=1, keepdims=True), 1.0)
    structure = (kind, rows.members, lines)

    def summed(x: Floats) -> Floats:
        sums = np.empty((kept, x.shape[1]))
        kernels.sum_rows(x, *structure, sums)
        return sums

    pair = kernels.number_pairs(*structure, small, rows.exact)
    diagonal, held = np.empty((kept, C)), np.empty((len(rows.members), C))
    cross, block = np.empty((int(pair.max(initial=-1)) + 1, C)), np.empty((C, small, small))
    every, untied = np.arange(len(first)), np.zeros(len(first))
    kernels.assemble_matrix(*structure, pair, every, inverse, untied, diagonal, cross, held)
    diagonal += soft
    kernels.factor_matrix(rows.members, pair, diagonal, cross, held, block)
    price = np.empty((kept, C))
    off = summed(parent[:, None] * share) - rows.target[:kept]
    kernels.precondition(off, pair, diagonal, cross, block, price)
    own = rows.target[:small] + soft[:small] * price[:small]
    # What they lack of their parent's sums is shared in the proportion of their variances.
    lack = summed(parent[:, None])[:small, 0] - own.sum(axis=1)
    return np.asarray(own + soft[:small] * (lack / soft[:small].sum(axis=1))[:, None])
