"""The prior of a parent's leaves once more, kind by kind with NumPy: nothing here is compiled."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FREEDOM, STEP, LEAST, KEPT = 4.0, 2.5, 0.02, 0.1  # as the theory states them


def prior_terms(
    units: Ints, persons: Floats, variance: Floats, phi: Floats, beta: Floats, kind: Ints, parent: Floats
) -> tuple[Floats, Floats]:
    """Each child's matrix H and vector b: the prior is ½ x'Hx − b'x, up to a constant.

    The first three are children × kinds, the next two by kind, the last two by cell.
    """
    C, n = len(units), len(parent)
    H, b = np.zeros((C, n, n)), np.zeros((C, n))
    for a in np.unique(kind[kind >= 0]):
        inside = kind == a
        means, spread, shares, trust = leaves(
            units[:, a].astype(float), persons[:, a], variance[:, a], float(beta[a]), parent[inside].sum()
        )
        size = np.floor(np.log(parent) / np.log(STEP))
        for one in np.unique(size[inside]):
            few = np.flatnonzero(inside & (size == one))
            middle = np.exp(np.log(parent[few]).mean())
            weight = np.where(shares > 0, trust / np.maximum(phi[a] * middle * shares, LEAST), 0.0)
            H[:, few, few] += weight[:, None]
            b[:, few] += (weight * shares)[:, None] * parent[few]
        # The cells alone say that the total has the variance φM; only what is known beyond that is added.
        weight = trust * (1.0 / np.maximum(spread, LEAST) - 1.0 / np.maximum(phi[a] * means, LEAST))
        weight = np.where(means > 0, np.maximum(weight, 0.0), 0.0)
        H += weight[:, None, None] * np.outer(inside, inside)
        b += np.outer(weight * means, inside)
    return H, b


def leaves(
    number: Floats, persons: Floats, noise: Floats, beta: float, total: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Prior means and variances of the leaves' persons of a kind, their shares, and how far they are trusted."""
    if not number.any():
        return (np.zeros(len(number)),) * 4
    means = total * number / number.sum()
    spread = means + beta * means**2
    apart = persons - means
    trust = np.minimum(1.0, (FREEDOM + 1.0) / (FREEDOM + apart**2 / np.maximum(spread + noise, LEAST)))
    gain = np.where(means > 0, spread / np.maximum(spread + trust * noise, LEAST), 0.0)
    drawn = np.maximum(means + gain * apart, KEPT * means)
    return means, spread, drawn / drawn.sum(), trust
