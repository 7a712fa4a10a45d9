"""The settings of a swap that tuning and sliders turn."""

from collections.abc import Callable
from fractions import Fraction

from stirred.mechanisms.base import Knob, Mechanism

RATE_STEPS = 400  # swap rates are tuned in steps of 1/400


def make_rate_knob(turned: Callable[[Fraction], Mechanism]) -> Knob:
    """Return the knob of the swap rate, up to one half."""
    return Knob(
        name="rate",
        effect="a higher swap rate has a smaller budget and a larger error",
        settings=tuple(Fraction(step, RATE_STEPS) for step in range(1, RATE_STEPS // 2 + 1)),
        turned=turned,
    )
