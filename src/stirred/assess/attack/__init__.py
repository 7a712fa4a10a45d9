"""What can be learned from a release: reconstruct, link, count what is unique; guesses always stand beside it."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.entry import attack as attack
    from stirred.assess.attack.result import AttackResult as AttackResult
    from stirred.assess.attack.singling import count_uniques as count_uniques
    from stirred.assess.attack.singling import measure_uniques as measure_uniques

__all__ = ["AttackResult", "attack", "count_uniques", "measure_uniques"]

__getattr__ = load_on_demand(
    __name__,
    {
        "entry": ("attack",),
        "result": ("AttackResult",),
        "singling": ("count_uniques", "measure_uniques"),
    },
)
