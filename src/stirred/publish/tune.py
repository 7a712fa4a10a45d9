"""Start from utility: the smallest loss that reaches a target, found on a stand-in and never on the confidential file."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stirred.assess.utility.metrics import mape, mean_absolute_error
from stirred.assess.utility.tables import Pair
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.swapping import PermutationSwapping
from stirred.publish.plan import TablePlan
from stirred.publish.tables import tabulate
from stirred.spec import Budget

_TARGET = re.compile(r"^\s*(mape|mae)\s+(.+?)\s*(<=|≤)\s*([0-9.]+)\s*(%?)\s*$", re.IGNORECASE)
STEPS = 400  # swap rates are tried in steps of 1/400


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
    """One rate that was tried: its budget and its mean error over replicate runs."""

    rate: Fraction
    budget: Budget
    error: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The rate found, and all that was tried on the way."""

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
            tried[step] = _trial(stand_in, psa, Fraction(step, STEPS), target, runs, seed)
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
    return Tuning(target=target, best=tried[low], trials=tuple(tried[step] for step in sorted(tried)))


def _trial(
    census: Census, psa: PermutationSwapping, rate: Fraction, target: Target, runs: int, seed: int
) -> Trial:
    mechanism = PermutationSwapping(**{**psa.parameters(), "rate": rate})  # type: ignore[arg-type]
    table = TablePlan(name="target", record_type=psa.resolution, by=target.by)
    truth = census.counts(psa.resolution, list(target.by))
    errors = []
    for index in range(runs):
        release = mechanism.release(census, key=Key.for_tests(seed).bind("tune", str(rate), index))
        made = tabulate(release, census.schema, table, mechanism, folder=census.folder)
        reference, protected = Pair.align(truth, made.select([*target.by, "count"]), by=target.by).arrays()
        errors.append(
            mape(reference, protected)[0]
            if target.metric == "mape"
            else mean_absolute_error(reference, protected)
        )
    budget = mechanism.specification(census).budget
    return Trial(rate=rate, budget=budget, error=float(np.mean(errors)), spread=float(np.std(errors)))
