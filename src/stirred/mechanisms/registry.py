"""Finds mechanisms by name: those of Stirred, and those that other packages announce as entry points.

A package announces a mechanism in its metadata: group ``stirred.mechanisms``, the mechanism's name, ``module:Class``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from stirred.errors import InputError, StirredError, did_you_mean

if TYPE_CHECKING:
    from stirred.mechanisms.base import Mechanism
    from stirred.mechanisms.config import MechanismConfig
    from stirred.mechanisms.effect import MeasuredCoverage
    from stirred.mechanisms.release import Release

ENTRY_POINT_GROUP = "stirred.mechanisms"
_SWAPPING, _VARIANTS = "stirred.mechanisms.swap.psa", "stirred.mechanisms.swap.variants"
_SETTINGS = "stirred.mechanisms.swap.config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Where a mechanism is found, and what a list of mechanisms says about it; nothing is imported for that."""

    name: str
    target: str  # module:Class
    summary: str
    label: str = ""  # for people who choose a method
    verb: str = ""  # the command, where that is not the name
    settings: str = ""  # module:Config, where that can be imported without the mechanism
    family: str = ""  # the command of which it is one method, such as swap
    method: str = ""  # its name there: stirred swap --method targeted
    coverage: str = ""  # module:NAME of what was measured of its intervals, where it was
    compared: bool = False  # whether other swaps state what this one would lose in their place

    @property
    def title(self) -> str:
        """Return what a list of methods calls it: its label, or its name."""
        return self.label or self.name

    @property
    def command(self) -> str:
        """Return the words of its command, such as ``topdown`` or ``swap --method targeted``."""
        own = self.verb or self.name
        return own if self.family in ("", own) else f"{self.family} --method {self.method}"

    @property
    def Config(self) -> "type[MechanismConfig]":  # noqa: N802 - as the mechanism calls it
        """Return the settings class, without importing the mechanism where that is possible."""
        if not self.settings:
            return self.load().Config
        module, _, attribute = self.settings.partition(":")
        found: type[MechanismConfig] = getattr(import_module(module), attribute)
        return found

    @property
    def measured_coverage(self) -> "tuple[MeasuredCoverage, ...]":
        """Return what was measured of its intervals; a subclass does not inherit what was measured of another."""
        if not self.coverage:
            return () if self in OWN_REGISTRATIONS else vars(self.load()).get("measured_coverage", ())
        module, _, attribute = self.coverage.partition(":")
        found: tuple[MeasuredCoverage, ...] = getattr(import_module(module), attribute)
        return found

    def load(self) -> "type[Mechanism]":
        """Import the mechanism's module and return its class."""
        from stirred.mechanisms.base import Mechanism  # heavy, and a list of names does not need it

        module, _, attribute = self.target.partition(":")
        try:
            kind = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"mechanism {self.name} cannot be loaded",
                why=f"{self.target}: {type(error).__name__}",
                fix="install its package again, or correct its entry point",
            ) from None
        if not (isinstance(kind, type) and issubclass(kind, Mechanism)) or kind.name != self.name:
            raise InputError(
                f"mechanism {self.name} does not keep the contract",
                why=f"{self.target} is no subclass of stirred.mechanisms.base.Mechanism with this name",
                fix="see docs/how-to/extend.md",
            )
        return kind


OWN_REGISTRATIONS = (
    Registration(
        name="permutation-swapping",
        target=f"{_SWAPPING}:PermutationSwapping",
        summary="swap records within strata: the Permutation Swapping Algorithm",
        label="Swap households",
        verb="swap",
        settings=f"{_SETTINGS}:SwapConfig",
        family="swap",
        method="psa",
        coverage="stirred.mechanisms.swap.config:MEASURED_COVERAGE",
        compared=True,
    ),
    Registration(
        name="stirring",
        target="stirred.mechanisms.stirring.mechanism:Stirring",
        summary="swap records within strata by the law that loses least",
        label="Stir households",
        settings="stirred.mechanisms.stirring.config:StirringConfig",
        coverage="stirred.mechanisms.stirring.config:MEASURED_COVERAGE",
        compared=True,
    ),
    Registration(
        name="topdown",
        target="stirred.mechanisms.topdown.mechanism:TopDown",
        summary="noisy measurements, then microdata that keep the invariants",
        label="TopDown",
        settings="stirred.mechanisms.topdown.config:TopDownConfig",
        coverage="stirred.mechanisms.topdown.config:MEASURED_COVERAGE",
    ),
    Registration(
        name="exact-margins",
        target="stirred.mechanisms.tables.exact_margins:ExactMargins",
        summary="one noisy table whose margins are exact",
        label="One noisy table with exact margins",
        settings="stirred.mechanisms.tables.config:ExactMarginsConfig",
    ),
    Registration(
        name="safetab-p",
        target="stirred.mechanisms.census2020.safetab.persons.mechanism:SafeTabP",
        summary="totals, and sex by age, of detailed population groups: SafeTab-P",
        label="Detailed groups of persons",
        settings="stirred.mechanisms.census2020.config:SafeTabPConfig",
    ),
    Registration(
        name="safetab-h",
        target="stirred.mechanisms.census2020.safetab.households.mechanism:SafeTabH",
        summary="households of detailed groups by type and tenure: SafeTab-H",
        label="Detailed groups of households",
        settings="stirred.mechanisms.census2020.config:SafeTabHConfig",
    ),
    Registration(
        name="phsafe",
        target="stirred.mechanisms.census2020.phsafe.mechanism:PHSafe",
        summary="noisy counts of persons by household: the tables PH1 to PH8",
        label="Persons by household",
        settings="stirred.mechanisms.census2020.config:PHSafeConfig",
    ),
    Registration(
        name="cell-key",
        target="stirred.mechanisms.tables.cell_key.mechanism:CellKey",
        summary="tables with bounded noise that follows their records (no finite bound)",
        label="Cell keys",
        verb="cellkey",
        settings="stirred.mechanisms.tables.config:CellKeyConfig",
    ),
    Registration(
        name="gaussian-tables",
        target="stirred.mechanisms.tables.gaussian:GaussianTables",
        summary="tables with independent discrete Gaussian noise in every cell",
        label="Noise in every cell",
        settings="stirred.mechanisms.tables.config:GaussianTablesConfig",
    ),
    Registration(
        name="special-tabulations",
        target="stirred.mechanisms.tables.special:SpecialTabulations",
        summary="tables with small counts left out and counts rounded (no guarantee)",
        label="Leave out and round",
        settings="stirred.mechanisms.tables.config:SpecialTabulationsConfig",
    ),
    Registration(
        name="targeted-swapping",
        target="stirred.mechanisms.swap.targeted:TargetedSwapping",
        summary="swap risky households in pairs, by the method of recordSwap (no finite bound)",
        label="Swap risky households",
        settings="stirred.mechanisms.swap.config:TargetedConfig",
        family="swap",
        method="targeted",
    ),
    Registration(
        name="swapping-2010",
        target="stirred.mechanisms.swap.swapping_2010:Swapping2010",
        summary="swap at-risk households in pairs, as for the 2010 census (no finite bound)",
        label="Swap as in 2010",
        settings="stirred.mechanisms.swap.config:Swapping2010Config",
        family="swap",
        method="2010",
    ),
    Registration(
        name="swapping-varying-rates",
        target=f"{_VARIANTS}:VaryingRates",
        summary="a swap whose rate depends on a variable or on rarity",
        label="Swap at several rates",
        settings=f"{_SETTINGS}:VaryingRatesConfig",
        family="swap",
        method="varying-rates",
    ),
    Registration(
        name="swapping-imputed-stay",
        target=f"{_VARIANTS}:ImputedStay",
        summary="a swap that leaves imputed records where they are",
        label="Swap, imputed records stay",
        settings=f"{_SETTINGS}:ImputedStayConfig",
        family="swap",
        method="imputed-stay",
    ),
    Registration(
        name="swapping-no-vacuous",
        target=f"{_VARIANTS}:NoVacuous",
        summary="a swap without draws that change no table",
        label="Swap, no draw without effect",
        settings=f"{_SETTINGS}:NoVacuousConfig",
        family="swap",
        method="no-vacuous",
    ),
    Registration(
        name="swapping-near-places",
        target=f"{_VARIANTS}:NearPlaces",
        summary="a swap that prefers near places",
        label="Swap between near places",
        settings=f"{_SETTINGS}:NearPlacesConfig",
        family="swap",
        method="near-places",
    ),
    Registration(
        name="swapping-unit-matching",
        target=f"{_VARIANTS}:UnitMatching",
        summary="two swaps: one in coarser pools, one in the strata",
        label="Swap twice",
        settings=f"{_SETTINGS}:UnitMatchingConfig",
        family="swap",
        method="unit-matching",
    ),
    Registration(
        name="swapping-noisy-key",
        target=f"{_VARIANTS}:NoisyKey",
        summary="a swap with a noisy match variable (no finite bound is known)",
        label="Swap with a noisy match",
        settings=f"{_SETTINGS}:NoisyKeyConfig",
        family="swap",
        method="noisy-key",
    ),
    Registration(
        name="swapping-noisy-tables",
        target=f"{_VARIANTS}:NoisyTables",
        summary="tables of a swapped file, each cell with noise",
        label="Swap, then noise in every cell",
        settings=f"{_SETTINGS}:NoisyTablesConfig",
        family="swap",
        method="noisy-tables",
    ),
)


@cache
def list_mechanisms() -> dict[str, Registration]:
    """Return all mechanisms by name; another package cannot take a name of Stirred's own.

    >>> list(list_mechanisms())[:2]
    ['permutation-swapping', 'stirring']
    """
    from importlib.metadata import (
        entry_points,
    )  # slow to import, and a command of Stirred's own does not need it

    found = {item.name: item for item in OWN_REGISTRATIONS}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        package = point.dist.name if point.dist is not None else point.module
        other = Registration(
            name=point.name, target=point.value, summary=f"a mechanism of the package {package}"
        )
        if found.setdefault(point.name, other).target != point.value:
            raise InputError(
                f"two mechanisms are called {point.name}",
                why=f"the package {package} announces a name that is taken",
                fix="uninstall one of the packages, or rename its mechanism",
            )
    return found


@cache
def list_measured_coverage(name: str = "") -> "tuple[MeasuredCoverage, ...]":
    """Return what was measured of the intervals of a mechanism, which may be nothing; without a name, of all of Stirred's.

    >>> [one.key for one in list_measured_coverage()]
    ['topdown', 'unbiased', 'stirring', 'swap']
    >>> list_measured_coverage("gaussian-tables")
    ()
    """
    if name and name not in list_mechanisms():
        return ()
    known = [find_registration(name)] if name else OWN_REGISTRATIONS
    found = (one for item in known for one in item.measured_coverage)
    return tuple(sorted(found, key=lambda one: one.name))


def list_coverage_of(names: Sequence[str]) -> "tuple[MeasuredCoverage, ...]":
    """Return what was measured of the intervals of these mechanisms; without names, of all of Stirred's.

    >>> [one.key for one in list_coverage_of(["permutation-swapping", "stirring"])]
    ['swap', 'stirring']
    """
    found = {one.key: one for name in names or [""] for one in list_measured_coverage(name)}
    return tuple(found.values())


def default_mechanism(spine: Sequence[str]) -> str:
    """Return the name of the mechanism to propose by default: a swap, or tables where there are no areas.

    >>> default_mechanism(["region", "district"]), default_mechanism([])
    ('permutation-swapping', 'gaussian-tables')
    """
    return OWN_REGISTRATIONS[0].name if spine else "gaussian-tables"


def list_compared() -> "list[type[Mechanism]]":
    """Return the swaps of which every swap states what they would lose in its place.

    >>> [kind.name for kind in list_compared()]
    ['permutation-swapping', 'stirring']
    """
    return [registration.load() for registration in OWN_REGISTRATIONS if registration.compared]


def find_mechanism(name: str) -> "type[Mechanism]":
    """Return the mechanism class of that name.

    >>> find_mechanism("topdown").name
    'topdown'
    """
    return find_registration(name).load()


def find_registration(name: str) -> Registration:
    """Return the registration of the mechanism of that name."""
    known = list_mechanisms()
    if name not in known:
        raise InputError(
            f"there is no mechanism {name!r}",
            why="neither Stirred nor an installed package has it",
            fix=did_you_mean(name, known),
        )
    return known[name]


def rebuild_mechanism(release: "Release") -> "Mechanism":
    """Return the mechanism with the settings of a release, or refuse settings made in Python."""
    from stirred.mechanisms.config import parse_settings

    kind = find_mechanism(release.mechanism)
    settings = release.settings or {
        name: value for name, value in release.parameters.items() if name in kind.Config.model_fields
    }
    try:
        return kind.of(parse_settings(kind.Config, settings))
    except StirredError:
        raise InputError(
            f"the {release.mechanism} of this release cannot be made again",
            why="a setting was made in Python, or a file that a setting names is not here",
            fix="give the mechanism beside the release",
        ) from None


def list_methods(family: str) -> dict[str, str]:
    """Return the methods of a command, by their names there.

    >>> list_methods("swap")["psa"]
    'permutation-swapping'
    """
    return {
        item.method: item.name for item in list_mechanisms().values() if item.method and item.family == family
    }
