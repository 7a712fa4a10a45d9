"""Stirred: formally private official statistics that keep some numbers exact."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    __version__: str
    from stirred.catalog import catalog as catalog
    from stirred.catalog import compare as compare
    from stirred.census import Census as Census
    from stirred.census import read as read
    from stirred.chance import Key as Key
    from stirred.engine import Local as Local
    from stirred.engine import Spark as Spark
    from stirred.errors import ClusterError as ClusterError
    from stirred.errors import InfeasibleError as InfeasibleError
    from stirred.errors import InputError as InputError
    from stirred.errors import MissingExtraError as MissingExtraError
    from stirred.errors import PrivacyError as PrivacyError
    from stirred.errors import SpecificationError as SpecificationError
    from stirred.errors import StirredError as StirredError
    from stirred.mechanisms.base import Mechanism as Mechanism
    from stirred.mechanisms.census2020.phsafe.mechanism import PHSafe as PHSafe
    from stirred.mechanisms.census2020.safetab.households import SafeTabH as SafeTabH
    from stirred.mechanisms.census2020.safetab.persons import SafeTabP as SafeTabP
    from stirred.mechanisms.release import Release as Release
    from stirred.mechanisms.stirring import Stirring as Stirring
    from stirred.mechanisms.swap import ImputedStay as ImputedStay
    from stirred.mechanisms.swap import NearPlaces as NearPlaces
    from stirred.mechanisms.swap import NoisyKey as NoisyKey
    from stirred.mechanisms.swap import NoisyTables as NoisyTables
    from stirred.mechanisms.swap import NoVacuous as NoVacuous
    from stirred.mechanisms.swap import PermutationSwapping as PermutationSwapping
    from stirred.mechanisms.swap import UnitMatching as UnitMatching
    from stirred.mechanisms.swap import VaryingRates as VaryingRates
    from stirred.mechanisms.tables.cell_key.mechanism import CellKey as CellKey
    from stirred.mechanisms.tables.exact_margins import ExactMargins as ExactMargins
    from stirred.mechanisms.tables.gaussian import GaussianTables as GaussianTables
    from stirred.mechanisms.tables.special import SpecialTabulations as SpecialTabulations
    from stirred.mechanisms.topdown import TopDown as TopDown
    from stirred.mechanisms.topdown import Workload as Workload
    from stirred.publish import Packet as Packet
    from stirred.publish import Plan as Plan
    from stirred.publish import load as load
    from stirred.publish import run as run
    from stirred.publish import save as save
    from stirred.spec import Approximate as Approximate
    from stirred.spec import AtLeast as AtLeast
    from stirred.spec import Budget as Budget
    from stirred.spec import Custom as Custom
    from stirred.spec import Domain as Domain
    from stirred.spec import Exchanges as Exchanges
    from stirred.spec import Hamming as Hamming
    from stirred.spec import Invariant as Invariant
    from stirred.spec import Ledger as Ledger
    from stirred.spec import Margin as Margin
    from stirred.spec import Multiplicative as Multiplicative
    from stirred.spec import Multiverse as Multiverse
    from stirred.spec import Neighbours as Neighbours
    from stirred.spec import NormalizedRenyi as NormalizedRenyi
    from stirred.spec import Specification as Specification
    from stirred.spec import SymmetricDifference as SymmetricDifference
    from stirred.spec import Verdict as Verdict
    from stirred.spec.card import Card as Card

# name → room: nothing heavy is imported before it is used
_HOMES: dict[str, str] = {
    "Approximate": "stirred.spec",
    "AtLeast": "stirred.spec",
    "Budget": "stirred.spec",
    "Card": "stirred.spec.card",
    "CellKey": "stirred.mechanisms.tables.cell_key.mechanism",
    "Census": "stirred.census",
    "ClusterError": "stirred.errors",
    "Custom": "stirred.spec",
    "Domain": "stirred.spec",
    "ExactMargins": "stirred.mechanisms.tables.exact_margins",
    "Exchanges": "stirred.spec",
    "GaussianTables": "stirred.mechanisms.tables.gaussian",
    "Hamming": "stirred.spec",
    "ImputedStay": "stirred.mechanisms.swap",
    "InfeasibleError": "stirred.errors",
    "InputError": "stirred.errors",
    "Invariant": "stirred.spec",
    "Key": "stirred.chance",
    "Ledger": "stirred.spec",
    "Local": "stirred.engine",
    "Margin": "stirred.spec",
    "Mechanism": "stirred.mechanisms.base",
    "MissingExtraError": "stirred.errors",
    "Multiplicative": "stirred.spec",
    "Multiverse": "stirred.spec",
    "NearPlaces": "stirred.mechanisms.swap",
    "Neighbours": "stirred.spec",
    "NoVacuous": "stirred.mechanisms.swap",
    "NoisyKey": "stirred.mechanisms.swap",
    "NoisyTables": "stirred.mechanisms.swap",
    "NormalizedRenyi": "stirred.spec",
    "PHSafe": "stirred.mechanisms.census2020.phsafe.mechanism",
    "Packet": "stirred.publish",
    "PermutationSwapping": "stirred.mechanisms.swap",
    "Plan": "stirred.publish",
    "PrivacyError": "stirred.errors",
    "Release": "stirred.mechanisms.base",
    "SafeTabH": "stirred.mechanisms.census2020.safetab.households",
    "SafeTabP": "stirred.mechanisms.census2020.safetab.persons",
    "Spark": "stirred.engine",
    "SpecialTabulations": "stirred.mechanisms.tables.special",
    "Specification": "stirred.spec",
    "SpecificationError": "stirred.errors",
    "StirredError": "stirred.errors",
    "Stirring": "stirred.mechanisms.stirring",
    "SymmetricDifference": "stirred.spec",
    "TopDown": "stirred.mechanisms.topdown",
    "UnitMatching": "stirred.mechanisms.swap",
    "VaryingRates": "stirred.mechanisms.swap",
    "Verdict": "stirred.spec",
    "Workload": "stirred.mechanisms.topdown",
    "catalog": "stirred.catalog",
    "compare": "stirred.catalog",
    "load": "stirred.publish",
    "read": "stirred.census",
    "run": "stirred.publish",
    "save": "stirred.publish",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'stirred' has no attribute {name!r}")


def _version() -> str:
    """The version that the installed package states; a source tree that was never installed has none."""
    from importlib import metadata

    try:
        return metadata.version("stirred")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return list(__all__)
