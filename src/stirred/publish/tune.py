"""Start from utility: the smallest loss that reaches a target, found on a stand-in and never on the confidential file."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from stirred.assess.utility.metrics import mape, mean_absolute_error
from stirred.assess.utility.tables import Pair
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.swapping import PermutationSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.publish.plan import TablePlan
from stirred.publish.tables import counted
from stirred.spec import Budget

_TARGET = re.compile(r"^\s*(mape|mae)\s+(.+?)\s*(<=|≤)\s*([0-9.]+)\s*(%?)\s*$", re.IGNORECASE)
STEPS = 400  # swap rates are tried in steps of 1/400
QUARTERS = (
    Fraction(1),
    Fraction(6, 5),
    Fraction(7, 5),
    Fraction(5, 3),
)  # about powers of the fourth root of 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An error a table may have: ``mape county×tenure <= 2%``."""

    metric: str
    by: tuple[str, ...]
    limit: float

    @staticmethod
    def parse(text: str) -> "Target":
        """Read a target as a person writes it.

        >>> Target.parse("mape county×tenure <= 2%")
        Target(metric='mape', by=('county', 'tenure'), limit=0.02)
        """
        found = _TARGET.match(text)
        if not found:
            raise InputError(
                "the target cannot be read",
                why=f"{text!r}",
                fix='write for instance "mape county×tenure <= 2%"',
            )
        metric, variables, _, number, percent = found.groups()
        by = tuple(name.strip() for name in re.split(r"[×x*,]\s*|\s+by\s+", variables) if name.strip())
        return Target(metric=metric.lower(), by=by, limit=float(number) / (100 if percent else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One setting that was tried (a swap rate, or ρ²): its budget and its mean error over replicate runs."""

    setting: Fraction
    budget: Budget
    error: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The setting found, and all that was tried on the way; ``name`` is the plan's key for it."""

    name: str

    target: Target
    best: Trial
    trials: tuple[Trial, ...]


def tune_swap(
    stand_in: Census,
    psa: PermutationSwapping,
    target: Target,
    *,
    runs: int = 5,
    seed: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Tuning:
    """The highest swap rate up to one half, hence the smallest budget, whose mean error stays within the target.

    Replicates use test keys bound to their number, so no two share a stream.
    """
    tried: dict[int, Trial] = {}

    def trial(step: int) -> Trial:
        if step not in tried:
            rate = Fraction(step, STEPS)
            changed = PermutationSwapping(**{**psa.parameters(), "rate": rate})  # type: ignore[arg-type]
            tried[step] = _trial(stand_in, changed, rate, target, runs, seed)
            if progress:
                progress("tune", len(tried), 9)
        return tried[step]

    low, high = 1, STEPS // 2
    if trial(low).error > target.limit:
        raise InputError(
            "no swap rate reaches the target",
            why=f"even a rate of {Fraction(low, STEPS)} gives {target.metric} {trial(low).error:.4f}",
            fix="allow a larger error, a coarser table, or more match variables",
        )
    if trial(high).error <= target.limit:
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        if trial(middle).error <= target.limit:
            low = middle
        else:
            high = middle
    return Tuning(
        name="rate", target=target, best=tried[low], trials=tuple(tried[step] for step in sorted(tried))
    )


def tune_topdown(
    stand_in: Census,
    topdown: TopDown,
    target: Target,
    *,
    runs: int = 3,
    seed: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Tuning:
    """The smallest ρ², in steps of a quarter of a doubling, whose mean error stays within the target."""
    start = topdown.rho_squared_spent
    if start is None:
        raise InputError("a plan without noise cannot be tuned", fix="give rho_squared a finite value")
    tried: dict[int, Trial] = {}

    def trial(step: int) -> Trial:
        if step not in tried:
            rho = Fraction(
                f"{float(start * Fraction(2) ** (step // 4) * QUARTERS[step % 4]):.4g}"
            )  # a number people can read
            tried[step] = _trial(
                stand_in, replace(topdown, rho_squared=rho, replicates=0), rho, target, runs, seed
            )
            if progress:
                progress("tune", len(tried), 9)
        return tried[step]

    low, high = -32, 32
    if trial(high).error > target.limit:
        raise InputError(
            "no budget tried reaches the target",
            why=f"even ρ² = {float(tried[high].setting):.0f} gives {target.metric} {tried[high].error:.4f}",
            fix="allow a larger error or a coarser table",
        )
    while high - low > 1:
        middle = (low + high) // 2
        if trial(middle).error <= target.limit:
            high = middle
        else:
            low = middle
    found = tuple(tried[step] for step in sorted(tried))
    return Tuning(name="rho_squared", target=target, best=tried[high], trials=found)


def _trial(
    census: Census, mechanism: Mechanism, setting: Fraction, target: Target, runs: int, seed: int
) -> Trial:
    record_type = mechanism.resolution if isinstance(mechanism, PermutationSwapping) else "person"
    table = TablePlan(name="target", record_type=record_type, by=target.by)
    truth = census.counts(record_type, list(target.by))
    errors = []
    for index in range(runs):
        release = mechanism.release(census, key=Key.for_tests(seed).bind("tune", str(setting), index))
        made = counted(release, census.schema, table, folder=census.folder)
        reference, protected = Pair.align(truth, made, by=target.by).arrays()
        errors.append(
            mape(reference, protected)[0]
            if target.metric == "mape"
            else mean_absolute_error(reference, protected)
        )
    budget = mechanism.specification(census).budget
    return Trial(setting=setting, budget=budget, error=float(np.mean(errors)), spread=float(np.std(errors)))
