"""Start from utility: the smallest loss that reaches a target, found on a stand-in and never on the confidential file."""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from stirred.assess.utility.metrics import mape, mean_absolute_error
from stirred.assess.utility.tables import TablePair
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local, Progress
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import count
from stirred.spec import Budget, NormalizedRenyi

_TARGET = re.compile(r"^\s*(mape|mae)\s+(.+?)\s*(<=|≤)\s*([0-9.]+)\s*(%?)\s*$", re.IGNORECASE)


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
    """One setting that was tried: its budget (ρ² for zCDP) and its mean error over replicate runs."""

    setting: Fraction
    budget: Budget
    symbol: str
    error: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The setting found, and all that was tried on the way; ``name`` is the plan's key for it."""

    name: str
    effect: str
    target: Target
    best: Trial
    trials: tuple[Trial, ...]


def tune(
    stand_in: Census,
    mechanism: Mechanism,
    target: Target,
    *,
    runs: int = 5,
    seed: int = 1,
    progress: Progress | None = None,
) -> Tuning:
    """Find by bisection the setting with the smallest budget whose mean error stays within the target.

    Replicates use test keys bound to their number, so no two share a stream.
    """
    knobs = mechanism.knobs()
    if not knobs:
        raise InputError(
            f"{mechanism.name} cannot be tuned as it is",
            why="it has no setting that trades budget for error",
            fix="tune another mechanism, or give it a finite budget",
        )
    knob, tried = knobs[0], dict[int, Trial]()

    def within(index: int) -> bool:
        if index not in tried:
            setting = knob.settings[index]
            tried[index] = _trial(stand_in, knob.turned(setting), setting, target, runs, seed)
            if progress:
                progress("tune", len(tried), 9)
        return tried[index].error <= target.limit

    low, high = 0, len(knob.settings) - 1
    if not within(low):
        raise InputError(
            f"no {knob.name} that was tried reaches the target",
            why=f"even {knob.name} = {knob.settings[low]} gives {target.metric} {tried[low].error:.4f}",
            fix="allow a larger error or a coarser table",
        )
    if within(high):
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    trials = tuple(sorted(tried.values(), key=lambda trial: trial.setting))
    return Tuning(name=knob.name, effect=knob.effect, target=target, best=tried[low], trials=trials)


def _count_release(mechanism: Mechanism, release: Release, by: tuple[str, ...]) -> pa.Table:
    """Return the released counts: of the records, or of the tables where no records are released."""
    if mechanism.record_type in release.microdata:
        return count(release, by, record_type=mechanism.record_type, engine=Local())
    return mechanism.table(release, by, record_type=mechanism.record_type)


def _trial(
    census: Census, mechanism: Mechanism, setting: Fraction, target: Target, runs: int, seed: int
) -> Trial:
    truth = census.counts(mechanism.record_type, list(target.by))
    errors = []
    for index in range(runs):
        release = mechanism.release(census, key=Key.for_tests(seed).bind("tune", str(setting), index))
        made = _count_release(mechanism, release, target.by)
        reference, protected = TablePair.align(
            truth, made.select([*target.by, "count"]), by=target.by
        ).arrays()
        errors.append(
            mape(reference, protected)[0]
            if target.metric == "mape"
            else mean_absolute_error(reference, protected)
        )
    promised = mechanism.specification(census)
    zcdp = isinstance(promised.output_premetric, NormalizedRenyi)
    return Trial(
        setting=setting,
        budget=promised.rho_squared if zcdp else promised.budget,
        symbol="ρ²" if zcdp else "ε",
        error=float(np.mean(errors)),
        spread=float(np.std(errors)),
    )
