"""Refuse settings of TopDown that contradict themselves, before any census is seen."""

from fractions import Fraction
from pathlib import Path
from typing import get_args

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.mechanisms.topdown.workload.workload import Mode, Workload

SOLVERS = ("fast", "piqp")


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
        "solver": SOLVERS,
        "rounder": ("own", "production"),
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
