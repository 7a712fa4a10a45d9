"""Targeted record swapping: risky households change places, in pairs. What it promises is in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.targeted.flat import flat_census as flat_census
    from stirred.mechanisms.targeted.flat import record_swap as record_swap
    from stirred.mechanisms.targeted.log import SwapLog as SwapLog
    from stirred.mechanisms.targeted.mechanism import TargetedSwapping as TargetedSwapping
    from stirred.mechanisms.targeted.pairwise import swap_log as swap_log

__all__ = ["SwapLog", "TargetedSwapping", "flat_census", "record_swap", "swap_log"]

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("TargetedSwapping",),
        "log": ("SwapLog",),
        "pairwise": ("swap_log",),
        "flat": ("flat_census", "record_swap"),
    },
)
