"""What can be learned from a release: reconstruct, link, count what is unique; guesses always stand beside it."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand
from stirred.assess.risk import AttackResult

if TYPE_CHECKING:
    from stirred.assess.attack.records import attack as attack
    from stirred.assess.attack.uniqueness import count_uniques as count_uniques
    from stirred.assess.attack.uniqueness import measure_uniques as measure_uniques

__all__ = ["AttackResult", "attack", "count_uniques", "measure_uniques"]

__getattr__ = load_on_demand(
    __name__,
    {
        "records": ("attack",),
        "uniqueness": (
            "count_uniques",
            "measure_uniques",
        ),
    },
)
