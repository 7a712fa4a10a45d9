"""Link released or reconstructed records to a file of an attacker, with every baseline beside it."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.linkage.attackers import ATTACKERS as ATTACKERS
    from stirred.assess.attack.linkage.attackers import COMMERCIAL as COMMERCIAL
    from stirred.assess.attack.linkage.attackers import PERFECT as PERFECT
    from stirred.assess.attack.linkage.attackers import Attacker as Attacker
    from stirred.assess.attack.linkage.attackers import find_attacker as find_attacker
    from stirred.assess.attack.linkage.attackers import make_attacker_file as make_attacker_file
    from stirred.assess.attack.linkage.guesses import majority_guess as majority_guess
    from stirred.assess.attack.linkage.guesses import modal_guess as modal_guess
    from stirred.assess.attack.linkage.guesses import proportional_guess as proportional_guess
    from stirred.assess.attack.linkage.guesses import random_draw_hits as random_draw_hits
    from stirred.assess.attack.linkage.intervals import bootstrap_interval as bootstrap_interval
    from stirred.assess.attack.linkage.intervals import normalise_risk as normalise_risk
    from stirred.assess.attack.linkage.intervals import wilson_interval as wilson_interval
    from stirred.assess.attack.linkage.matching import count_agreement as count_agreement
    from stirred.assess.attack.linkage.matching import link_records as link_records
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
    "bootstrap_interval",
    "count_agreement",
    "find_attacker",
    "link_records",
    "majority_guess",
    "make_attacker_file",
    "modal_guess",
    "normalise_risk",
    "proportional_guess",
    "random_draw_hits",
    "reidentify",
    "wilson_interval",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "attackers": (
            "ATTACKERS",
            "COMMERCIAL",
            "PERFECT",
            "Attacker",
            "make_attacker_file",
            "find_attacker",
        ),
        "guesses": ("majority_guess", "modal_guess", "proportional_guess", "random_draw_hits"),
        "intervals": ("bootstrap_interval", "normalise_risk", "wilson_interval"),
        "matching": ("count_agreement", "link_records"),
        "reidentification": ("Reidentification", "reidentify"),
        "variables": ("LinkVariables",),
    },
)
