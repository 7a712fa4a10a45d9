"""Check the settings of a TopDown run, and state what its receipt and its key know of them."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self, get_args

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.topdown.workload import (
    NO_SPLIT,
    Mode,
    SpineOptions,
    Workload,
    load_workloads,
    production_tree,
    write_canonical,
)

if TYPE_CHECKING:
    from stirred.census import Schema


# Refuse settings of TopDown that contradict themselves, before any census is seen.


def require_settings(
    *,
    workload: object,
    rho_squared: object,
    given: object,
    emphasis: int,
    replicates: int,
    **choices: str | None,
) -> None:
    """Check that every setting has its type and names something that exists."""
    require_kind(
        "workload",
        workload,
        (str, Path, Workload),
        wanted="a workload",
        fix='workload="pl94-persons", a TOML file, or a Workload',
    )
    if given is not None:
        require_kind("given", given, Path, wanted="the path of a packet", fix='given=Path("packet")')
    require_kind("emphasis", emphasis, int, wanted="a whole number", fix="emphasis=1")
    require_kind("replicates", replicates, int, wanted="a whole number", fix="replicates=20")
    _require_budget(rho_squared)
    known = {
        "names": ("own", "bureau"),
        "mode": (*get_args(Mode), None),
    }
    for name, value in choices.items():
        if value not in known[name]:
            words = [word for word in known[name] if word is not None]
            raise InputError(
                f"{name} of TopDown is unknown",
                why=f"it is one of {', '.join(words)}",
                fix=did_you_mean(str(value), words),
            )
    if emphasis < 1:
        raise InputError(
            "emphasis is at least 1",
            why="below 1 the totals would count less than they were measured",
            fix="emphasis=1 weighs totals as they were measured",
        )
    if replicates < 0 or replicates == 1:
        raise InputError(
            "the number of replicates is 0, or at least two",
            why="one run shows no spread",
            fix="replicates=20",
        )


def _require_budget(rho_squared: object) -> None:
    if isinstance(rho_squared, float):
        raise BudgetError("rho_squared is a float", why="floats are not exact", fix='rho_squared="2.63"')
    if rho_squared is None or rho_squared == "inf":
        return
    require_kind(
        "rho_squared",
        rho_squared,
        (str, int, Fraction),
        wanted="an exact number",
        fix='rho_squared="2.63"',
        error=BudgetError,
    )
    try:
        Fraction(str(rho_squared))
    except (ValueError, ZeroDivisionError):
        raise BudgetError(
            "rho_squared is not an exact number",
            why="it is neither a fraction nor a decimal",
            fix='rho_squared="2.63"',
        ) from None


# The settings of a TopDown run: its workloads and budget, and what the receipt and the key know of them.

TREE_SETTINGS = (
    "aian", "part_bounds", "optimized_block_groups", "primitives", "strong_mcd", "group_quarters_bits",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TopDownSettings(Mechanism):
    """The settings of a TopDown run; the mechanism inherits them and adds its methods."""

    workload: str | Path | Workload = "pl94-persons"
    mode: Mode | None = None
    rho_squared: Fraction | str | int | None = None
    keep_nmf: bool = False
    bypass: bool = True
    given: Path | None = None
    names: str = "own"  # or "bureau": the columns of the published microdata files
    emphasis: int = 1  # on the totals of leaves: less bias from non-negativity, more error (mode gls)
    spine: SpineOptions | None = None  # the tree that is measured, where it is not the census's own
    replicates: int = 0  # runs on its own output, for the uncertainty of tables; no privacy cost

    def __post_init__(self) -> None:
        require_settings(
            workload=self.workload,
            rho_squared=self.rho_squared,
            given=self.given,
            emphasis=self.emphasis,
            replicates=self.replicates,
            names=self.names,
            mode=self.mode,
        )

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """Build the mechanism with these settings; some of them describe the tree."""
        settings = {name: getattr(config, name) for name in type(config).model_fields}
        settings["mode"] = None if settings["mode"] == "workload" else settings["mode"]
        aian, part_bounds, groups, primitives, mcd, bits = (settings.pop(name) for name in TREE_SETTINGS)
        if any(one is not None for one in (aian, groups, primitives, mcd)) or bits or part_bounds:
            settings["spine"] = SpineOptions(
                aian=None if aian == NO_SPLIT else aian,
                block_groups=None if groups is None else tuple(groups),
                strong_mcd=mcd,
                quarters=bits,
                primitives=None if primitives is None else tuple(primitives),
                bounds=part_bounds,
            )
        if settings["given"] is not None:
            settings["given"] = Path(settings["given"])
        return cls(**settings)

    @property
    def record_type(self) -> str:
        """Return the record type of the first workload."""
        return self.workloads[0].record

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Return the workloads of the run, with their budgets."""
        return load_workloads(self.workload, None if self.is_noiseless else self.rho_squared)

    @property
    def is_noiseless(self) -> bool:
        """Return whether the budget is infinite: no noise, no protection."""
        return str(self.rho_squared) == "inf"

    @property
    def rho_squared_spent(self) -> Fraction | None:
        """Return the total ρ² of all workloads, None when infinite."""
        return None if self.is_noiseless else sum((w.rho_squared for w in self.workloads), Fraction(0))

    def parameters(self) -> dict[str, object]:
        """Return every setting, for the receipt."""
        return (
            {"spine": None}
            | self.identity()
            | {
                "names": self.names,
                "solver": "fast",  # the only one; receipts have always named it
                "replicates": self.replicates,
                "keep_nmf": self.keep_nmf,
            }
        )

    def tree(self, workload: Workload, schema: "Schema") -> SpineOptions | None:
        """Return the measured tree: the one asked for, the workload's, or that of production."""
        if self.spine is not None:
            return self.spine or workload.spine
        return workload.spine or production_tree(workload, schema)

    def identity(self, tree: SpineOptions | None = None) -> dict[str, object]:
        """Return the settings that the key is bound to, in canonical JSON.

        The other settings must not change the noise.

        ``tree`` is the one that a run measures, where settings leave it to the census.
        """
        chosen = self.spine or tree
        own: dict[str, object] = {"spine": chosen.document()} if chosen else {}
        return own | {
            "workloads": {
                w.name: hashlib.sha256(write_canonical(w).encode()).hexdigest() for w in self.workloads
            },
            "mode": self.mode or "of each workload",
            "rho_squared": "inf" if self.is_noiseless else str(self.rho_squared_spent),
            "bypass": self.bypass,
            "emphasis": self.emphasis,
            "given": self.given is not None,
        }

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]; a workload made in Python is only named."""
        named = self.workload.name if isinstance(self.workload, Workload) else str(self.workload)
        groups = self.spine.block_groups if self.spine else None
        primitives = self.spine.primitives if self.spine else None
        return {
            "workload": named,
            "mode": self.mode or "workload",
            "rho_squared": None if self.rho_squared is None else str(self.rho_squared),
            "replicates": self.replicates,
            "keep_nmf": self.keep_nmf,
            "given": None if self.given is None else str(self.given),
            "names": self.names,
            "emphasis": self.emphasis,
            "aian": None if self.spine is None else self.spine.aian or (None if self.spine else NO_SPLIT),
            "part_bounds": bool(self.spine and self.spine.bounds),
            "optimized_block_groups": None if groups is None else list(groups),
            "strong_mcd": self.spine.strong_mcd if self.spine else None,
            "group_quarters_bits": bool(self.spine and self.spine.quarters),
            "primitives": None if primitives is None else list(primitives),
            "bypass": self.bypass,
        }
