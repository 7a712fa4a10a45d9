"""Workloads by name: presets, files, and families of persons and units together."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import BudgetError
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.shipped import presets
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Schema

FAMILIES = {
    "pl94": ("pl94-persons", "pl94-units"),
    "pl94-pr": ("pl94-pr-persons", "pl94-pr-units"),
    "dhc": ("dhc-persons", "dhc-units"),
    "dhc-pr": ("dhc-pr-persons", "dhc-pr-units"),
    "dhc-light": ("dhc-light-persons", "dhc-light-units"),
    "pl94-stirred": ("pl94-stirred-persons", "pl94-stirred-units"),
}
PRODUCTION_PRESETS = ("pl94-persons", "pl94-units", "dhc-persons", "dhc-units")
AIAN_GEOGRAPHY = "aiannh"  # the geography of AIAN areas in the Bureau's files


def load_workloads(
    workload: str | Path | Workload, rho_squared: Fraction | str | int | None
) -> tuple[Workload, ...]:
    """Return the workloads of that name, file or object; a given total is shared out as theirs is."""
    if isinstance(workload, Workload):
        found: tuple[Workload, ...] = (workload,)
    elif str(workload) in FAMILIES:
        found = tuple(Workload.preset(name) for name in FAMILIES[str(workload)])
    elif str(workload) in presets() or not Path(workload).suffix:
        found = (Workload.preset(str(workload)),)
    else:
        found = (Workload.load(workload),)
    if rho_squared is None:
        return found
    total = sum((w.rho_squared for w in found), Fraction(0))
    wanted = Fraction(str(rho_squared))
    if wanted <= 0:
        raise BudgetError(
            "rho_squared must be positive",
            why="with a budget of 0 nothing can be measured",
            fix='rho_squared="2.63", or "inf" for no noise',
        )
    return tuple(w.with_rho_squared(w.rho_squared * wanted / total) for w in found)


def production_tree(workload: Workload, schema: "Schema") -> SpineOptions | None:
    """Return production's split of states, where the census says which blocks are in AIAN areas."""
    if workload.name not in PRODUCTION_PRESETS or "state" not in schema.spine[:-1]:
        return None
    public = schema.geography.areas is not None
    known = [
        one
        for one in schema.geography.off_spine
        if one.name == AIAN_GEOGRAPHY and one.of and (one.files or not public)
    ]
    return SpineOptions(aian=AIAN_GEOGRAPHY) if known else None
