"""Workloads by name: presets, files, and families of persons and units together."""

from fractions import Fraction
from pathlib import Path

from stirred.errors import BudgetError
from stirred.mechanisms.topdown.workload.workload import Workload, presets

FAMILIES = {
    "pl94": ("pl94-persons", "pl94-units"),
    "dhc": ("dhc-persons", "dhc-units"),
    "dhc-light": ("dhc-light-persons", "dhc-light-units"),
}


def asked(workload: str | Path | Workload, rho_squared: Fraction | str | int | None) -> tuple[Workload, ...]:
    """The workloads of that name, file or object; a total replaces theirs and is shared out as they share theirs."""
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
