"""Error metrics of a protected table against its reference, with the Census Bureau's published definitions.

Throughout, ``difference = protected − reference`` cell by cell.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number, how many cells it is computed from, and how many are left out."""

    name: str
    value: float
    cells: int
    left_out: int = 0


def mean_absolute_error(reference: Array, protected: Array) -> float:
    """Return the mean of |difference| (MAE).

    >>> mean_absolute_error(np.array([1.0, 5.0]), np.array([2.0, 2.0]))
    2.0
    """
    return float(np.abs(protected - reference).mean())


def root_mean_squared_error(reference: Array, protected: Array) -> float:
    """Return the root of the mean squared difference (RMSE).

    >>> root_mean_squared_error(np.array([0.0, 0.0]), np.array([3.0, 4.0]))
    3.5355339059327378
    """
    return float(np.sqrt(np.square(protected - reference).mean()))


def mape(reference: Array, protected: Array) -> tuple[float, int]:
    """Return the paper's MAPE as a share, over cells with a nonzero reference, and how many are left out.

    >>> mape(np.array([10.0, 0.0]), np.array([12.0, 1.0]))
    (0.2, 1)
    """
    defined = reference != 0
    left_out = int(reference.size - defined.sum())
    if not defined.any():
        return float("nan"), left_out
    return float((np.abs(protected - reference)[defined] / reference[defined]).mean()), left_out


def percent_difference(reference: Array, protected: Array) -> Array:
    """Return the Bureau's percent difference; at a zero reference 0 if d = 0, else ±200.

    >>> percent_difference(np.array([10.0, 0.0, 0.0]), np.array([12.0, 0.0, 7.0])).tolist()
    [20.0, 0.0, 200.0]
    """
    difference = protected - reference
    base = np.where(reference == 0, (reference + protected) / 2, reference)
    result: Array = np.divide(100 * difference, base, out=np.zeros_like(difference), where=base != 0)
    return result


def mape_bureau(reference: Array, protected: Array) -> float:
    """Return the Bureau's MAPE in percent: the mean of |percent difference| with its rule for zeros.

    >>> mape_bureau(np.array([10.0, 0.0]), np.array([12.0, 7.0]))
    110.0
    """
    return float(np.abs(percent_difference(reference, protected)).mean())


def malpe(reference: Array, protected: Array) -> float:
    """Return the mean algebraic percent error in percent, which shows bias (MALPE).

    >>> malpe(np.array([10.0, 10.0]), np.array([12.0, 8.0]))
    0.0
    """
    return float(percent_difference(reference, protected).mean())


def coefficient_of_variation(reference: Array, protected: Array) -> float:
    """Return 100·RMSE over the mean reference (CV).

    >>> coefficient_of_variation(np.array([2.0, 2.0]), np.array([3.0, 1.0]))
    50.0
    """
    mean = float(reference.mean())
    return 100 * root_mean_squared_error(reference, protected) / mean if mean else float("nan")


def total_variation(reference: Array, protected: Array) -> float:
    """Return half the sum of absolute differences of shares (TVD); twice it is the Bureau's TAES.

    >>> total_variation(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    0.5
    """
    a, b = reference.sum(), protected.sum()
    if a == 0 or b == 0:
        return 0.0 if a == b else 1.0
    return float(np.abs(reference / a - protected / b).sum() / 2)


def outlier_counts(reference: Array, protected: Array) -> dict[str, int]:
    """Count cells with |percent| in [2, 5], above 5 and above 10, and with |difference| above 200.

    >>> outlier_counts(np.array([100.0, 1000.0]), np.array([103.0, 1300.0]))
    {'percent 2 to 5': 1, 'percent over 5': 1, 'percent over 10': 1, 'difference over 200': 1}
    """
    percent = np.abs(percent_difference(reference, protected))
    return {
        "percent 2 to 5": int(((percent >= 2) & (percent <= 5)).sum()),
        "percent over 5": int((percent > 5).sum()),
        "percent over 10": int((percent > 10).sum()),
        "difference over 200": int((np.abs(protected - reference) > 200).sum()),
    }


def false_zeros(reference: Array, protected: Array) -> tuple[int, int]:
    """Count cells emptied (positive before, zero after) and cells filled (zero before, positive after).

    >>> false_zeros(np.array([3.0, 0.0, 1.0]), np.array([0.0, 2.0, 1.0]))
    (1, 1)
    """
    return int(((reference > 0) & (protected == 0)).sum()), int(((reference == 0) & (protected > 0)).sum())


def rank_changes(reference: Array, protected: Array, *, top: int = 10) -> tuple[float, int]:
    """Return Spearman's rank correlation, and how many of the ``top`` largest cells left the top.

    >>> rank_changes(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), top=2)
    (0.5, 1)
    """
    from scipy.stats import rankdata

    if reference.size < 2:
        return float("nan"), 0
    a, b = rankdata(reference), rankdata(protected)
    constant = np.ptp(a) == 0 or np.ptp(b) == 0
    spearman = float("nan") if constant else round(float(np.corrcoef(a, b)[0, 1]), 12)
    count = min(top, reference.size)
    before = set(np.argsort(-reference, kind="stable")[:count].tolist())
    after = set(np.argsort(-protected, kind="stable")[:count].tolist())
    return spearman, len(before - after)


_PLAIN_METRICS: dict[str, Callable[[Array, Array], float]] = {
    "MAE": mean_absolute_error,
    "RMSE": root_mean_squared_error,
    "MAPE (Bureau, %)": mape_bureau,
    "MALPE (%)": malpe,
    "CV (%)": coefficient_of_variation,
    "TVD": total_variation,
    "bias": lambda reference, protected: float((protected - reference).mean()),
}


def all_metrics(reference: Array, protected: Array) -> list[Metric]:
    """Compute every cell-wise metric, in the order in which the report shows them.

    >>> [m.name for m in all_metrics(np.array([4.0, 0.0]), np.array([5.0, 0.0]))][:3]
    ['MAE', 'RMSE', 'MAPE (Bureau, %)']
    """
    cells = int(reference.size)
    if cells == 0:
        return []
    result = [Metric(name=n, value=f(reference, protected), cells=cells) for n, f in _PLAIN_METRICS.items()]
    share, left_out = mape(reference, protected)
    emptied, filled = false_zeros(reference, protected)
    spearman, churn = rank_changes(reference, protected)
    result += [
        Metric(name="MAPE (paper)", value=share, cells=cells - left_out, left_out=left_out),
        Metric(name="cells emptied", value=emptied, cells=cells),
        Metric(name="cells filled", value=filled, cells=cells),
        Metric(name="rank correlation", value=spearman, cells=cells),
        Metric(name="left the top ten", value=churn, cells=cells),
    ]
    result += [Metric(name=n, value=v, cells=cells) for n, v in outlier_counts(reference, protected).items()]
    return result
