"""From a plan's [[mechanism]] to the mechanism itself."""

from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import PlanError
from stirred.mechanisms.base import Mechanism
from stirred.publish import models

if TYPE_CHECKING:
    from stirred.mechanisms.topdown.spine_options import SpineOptions


def fraction(text: str, *, key: str) -> Fraction:
    """An exact number from a plan.

    >>> fraction("1/20", key="rate")
    Fraction(1, 20)
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise PlanError(
            f"the plan's {key} is no exact number",
            why=f"{text!r} is neither p/q nor a decimal",
            fix=f'{key} = "1/20"',
        ) from None


def _spine(config: models.TopDownConfig) -> "SpineOptions | None":
    from stirred.mechanisms.topdown.spine_options import SpineOptions

    groups = config.optimized_block_groups
    if config.aian is None and groups is None:
        return None
    return SpineOptions(aian=config.aian, block_groups=None if groups is None else tuple(groups))


def build(config: models.SwapConfig | models.TopDownConfig) -> Mechanism:
    """The mechanism a plan describes; heavy rooms are loaded only when they are needed."""
    if isinstance(config, models.SwapConfig):
        from stirred.mechanisms.swapping import PermutationSwapping

        rate = fraction(config.rate, key="rate")
        if not 0 <= rate <= 1:
            raise PlanError(
                "the plan's rate is no probability",
                why=f"{config.rate} lies outside 0 to 1",
                fix='write a share: rate = "1/20" for five percent',
            )
        return PermutationSwapping(
            match=config.match,
            swap=config.swap,
            rate=rate,
            resolution=config.resolution,
            hold=config.hold,
            drop=config.drop,
            untouched=config.untouched,
        )
    from stirred.mechanisms.topdown import TopDown

    if config.rho_squared is not None:
        fraction(config.rho_squared, key="rho_squared")
    return TopDown(
        workload=config.workload,
        mode=config.mode,
        rho_squared=config.rho_squared,
        keep_nmf=config.keep_nmf,
        replicates=config.replicates,
        spine=_spine(config),
    )
