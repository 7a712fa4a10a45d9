"""What can be learned from a release: reconstruct, link, count what is unique; guesses always stand beside it."""

from stirred.assess.attack.entry import attack
from stirred.assess.attack.result import AttackResult
from stirred.assess.attack.singling import unique_counts, uniques

__all__ = ["AttackResult", "attack", "unique_counts", "uniques"]
