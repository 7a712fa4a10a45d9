"""Compare what swaps would lose at one exchange of two records if each moved the same share of a census's records."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.registry import list_compared
from stirred.mechanisms.swap.estimates import effective_rate
from stirred.mechanisms.swap.frame import StrataSummary
from stirred.mechanisms.swap.strata import Shapes
from stirred.spec import Budget

LEAST_GAIN = Fraction(999, 1000)  # of a loss: less is the rounding of the share
SHARE_DIGITS = 4  # of the share at which swaps are compared
MAX_STEPS = 60  # of the search for a rate


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAtShare:
    """What one exchange of two records loses at most by a swap, named with the settings that matter."""

    mechanism: str
    loss: Budget


def compare_losses(
    effect: ExpectedEffect, strata: StrataSummary, *, name: str, loss: Budget, moved: float | None
) -> ExpectedEffect:
    """Return the effect of a swap with its own loss and what the compared swaps would lose at its share of moved records.

    Sizes of strata and their numbers of held types and places are read, and nothing else. They are functions of match × swap
    and match × held, the invariants of every swap, so the comparison may be published wherever the budget may.
    ``moved`` is the share of the records that can move, where the effect does not say it.
    """
    share = _find_share(strata.shapes, effect, moved)
    if share is None:
        return effect
    losses = {name: loss}
    for kind in list_compared():
        found: LossAtShare | None = kind.lose_at_share(strata, share)  # type: ignore[attr-defined]
        # of the mechanism itself only what other settings of it would gain
        if found is not None and (kind.name != name or found.loss < loss * LEAST_GAIN):
            losses.setdefault(found.mechanism, found.loss)
    told = {each: str(lost.upper(4)) if lost.is_finite else "∞" for each, lost in losses.items()}
    return replace(effect, losses=told)


def _find_share(shapes: Shapes, effect: ExpectedEffect, moved: float | None) -> Fraction | None:
    """Return the share that moves of the records that can, or None where none can or where all do."""
    records = int((shapes.n * shapes.strata)[_find_movable(shapes)].sum())
    if not records:
        return None
    share = effect.share * effect.records / records if moved is None else moved
    rounded = Fraction(f"{share:.{SHARE_DIGITS}g}")  # to four digits a share just below 1 is 1
    return rounded if 0 < rounded < 1 else None


def _find_movable(shapes: Shapes) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return (shapes.swap_types >= 2) & (shapes.hold_types >= 2)


def find_rate(shapes: Shapes, share: Fraction) -> Fraction | None:
    """Return the swap rate at which this share of the records that can move is expected to move, or None.

    In small strata it is not the rate itself, because nobody moves alone: a draw of one record is drawn again.
    """
    movable = _find_movable(shapes)
    records = (shapes.n * shapes.strata)[movable].astype(np.float64)
    sizes, wanted = shapes.n[movable], float(share) * records.sum()

    def moves(rate: float) -> float:
        return float((effective_rate(sizes, Fraction(rate)) * records).sum())

    if abs(moves(float(share)) - wanted) <= wanted * 10.0**-SHARE_DIGITS:
        return share
    low, high = 0.0, 1.0
    for _ in range(MAX_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if moves(middle) < wanted else (low, middle)
    found = Fraction(f"{high:.{SHARE_DIGITS}g}")
    return found if 0 < found < 1 else None
