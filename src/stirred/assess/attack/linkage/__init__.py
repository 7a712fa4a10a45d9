"""Link released or reconstructed records to a file of an attacker, with every baseline beside it."""

from typing import TYPE_CHECKING

from stirred.on_demand import on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.linkage.attackers import ATTACKERS as ATTACKERS
    from stirred.assess.attack.linkage.attackers import COMMERCIAL as COMMERCIAL
    from stirred.assess.attack.linkage.attackers import PERFECT as PERFECT
    from stirred.assess.attack.linkage.attackers import Attacker as Attacker
    from stirred.assess.attack.linkage.attackers import attacker_file as attacker_file
    from stirred.assess.attack.linkage.attackers import attacker_named as attacker_named
    from stirred.assess.attack.linkage.guesses import majority_guess as majority_guess
    from stirred.assess.attack.linkage.guesses import modal_guess as modal_guess
    from stirred.assess.attack.linkage.guesses import proportional_guess as proportional_guess
    from stirred.assess.attack.linkage.guesses import random_draw_hits as random_draw_hits
    from stirred.assess.attack.linkage.intervals import bootstrap as bootstrap
    from stirred.assess.attack.linkage.intervals import normalised as normalised
    from stirred.assess.attack.linkage.intervals import wilson as wilson
    from stirred.assess.attack.linkage.matching import agreement as agreement
    from stirred.assess.attack.linkage.matching import linked as linked
    from stirred.assess.attack.linkage.reidentification import Reidentification as Reidentification
    from stirred.assess.attack.linkage.reidentification import reidentify as reidentify
    from stirred.assess.attack.linkage.variables import LinkVariables as LinkVariables

__all__ = [
    "ATTACKERS",
    "COMMERCIAL",
    "PERFECT",
    "Attacker",
    "LinkVariables",
    "Reidentification",
    "agreement",
    "attacker_file",
    "attacker_named",
    "bootstrap",
    "linked",
    "majority_guess",
    "modal_guess",
    "normalised",
    "proportional_guess",
    "random_draw_hits",
    "reidentify",
    "wilson",
]

__getattr__ = on_demand(
    __name__,
    {
        "attackers": ("ATTACKERS", "COMMERCIAL", "PERFECT", "Attacker", "attacker_file", "attacker_named"),
        "guesses": ("majority_guess", "modal_guess", "proportional_guess", "random_draw_hits"),
        "intervals": ("bootstrap", "normalised", "wilson"),
        "matching": ("agreement", "linked"),
        "reidentification": ("Reidentification", "reidentify"),
        "variables": ("LinkVariables",),
    },
)
