"""Link released or reconstructed records to a file of an attacker, with every baseline beside it."""

from stirred.assess.attack.linkage.attackers import (
    ATTACKERS,
    COMMERCIAL,
    PERFECT,
    Attacker,
    attacker_file,
    attacker_named,
)
from stirred.assess.attack.linkage.guesses import (
    majority_guess,
    modal_guess,
    proportional_guess,
    random_draw_hits,
)
from stirred.assess.attack.linkage.intervals import bootstrap, normalised, wilson
from stirred.assess.attack.linkage.matching import agreement, linked
from stirred.assess.attack.linkage.reidentification import Reidentification, reidentify
from stirred.assess.attack.linkage.variables import LinkVariables

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
