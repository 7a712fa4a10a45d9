"""What can be learned from a release: reconstruct, link, count what is unique; guesses always stand beside it."""

from typing import TYPE_CHECKING

from stirred.on_demand import on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.entry import attack as attack
    from stirred.assess.attack.result import AttackResult as AttackResult
    from stirred.assess.attack.singling import unique_counts as unique_counts
    from stirred.assess.attack.singling import uniques as uniques

__all__ = ["AttackResult", "attack", "unique_counts", "uniques"]

__getattr__ = on_demand(
    __name__,
    {
        "entry": ("attack",),
        "result": ("AttackResult",),
        "singling": ("unique_counts", "uniques"),
    },
)
