"""Find the setting at which two mechanisms meet at equal success of one attack on one census; a heuristic, and internal.

Methods whose specifications differ in more than the budget cannot be ordered by it. What remains is to ask at which ρ² or
swap rate the same attack finds as many people in both. The answer is about this attack and this census, and proves
nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy.special import stdtrit

from stirred.assess.attack import attack
from stirred.assess.attack.records import EXPOSED_GROUP, PHRASE_BY_GROUP
from stirred.assess.risk import RiskMeasure
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Release
from stirred.spec import NormalizedRenyi

HEURISTIC = "heuristic, for this attack"
RECALL = "recall of reidentification, released records"
STEPS, ROUNDS = 5, 3  # settings tried in each round, and rounds of closing in
Attack = Callable[[Release, Census], RiskMeasure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """The mean success of an attack over several runs of one mechanism, with a Student interval of all runs together."""

    setting: Fraction | None  # of the knob; None for the mechanism that is not turned
    budget: str
    value: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EquateResult:
    """Result of equating two mechanisms; ``setting`` is None where no tried setting meets the first."""

    measure: str
    about: str
    first: Success
    name: str  # of the knob of the second mechanism
    setting: Fraction | None
    low: Fraction | None  # the settings between which the intervals meet
    high: Fraction | None
    tried: tuple[Success, ...]
    because: str = ""

    @property
    def words(self) -> str:
        """Return the finding in one sentence."""
        if self.setting is None:
            return f"no {self.name} that was tried has the {self.measure} of the first method: {self.because} ({HEURISTIC})"
        return (
            f"{self.name} = {_short(self.setting)} ({_short(self.low)} to {_short(self.high)}) has the {self.measure} "
            f"of the first method, {self.first.value:.3f} ({self.first.low:.3f} to {self.first.high:.3f}); {HEURISTIC}"
        )


def exposed_recall(
    *,
    record_type: str = "",
    area: str = "",
    known: Sequence[str] | None = None,
    secret: Sequence[str] | None = None,
    seed: int = 1,
) -> Attack:
    """Return an attack that links records: recall on people unlike their area and unique on what is known."""

    def measure_risk(release: Release, census: Census) -> RiskMeasure:
        found = attack(
            release,
            census,
            record_type=record_type,
            area=area,
            known=known,
            secret=secret,
            areas=0,
            seed=seed,
        )
        for measure in found.measures:
            if measure.name == RECALL and measure.about == PHRASE_BY_GROUP[EXPOSED_GROUP]:
                return measure
        return found.measures[0]

    return measure_risk


def equate(
    first: Mechanism,
    second: Mechanism,
    census: Census,
    *,
    attack: Attack | None = None,
    runs: int = 5,
    seed: int = 1,
    progress: Progress | None = None,
) -> EquateResult:
    """Find the setting of the second mechanism at which an attack succeeds as often as on the first.

    A few settings are tried over the whole range, then more where the success passes that of the first; a curve that never
    rises is fitted to all. Every run uses a key for tests and stays in memory. The interval of the setting reaches as far as
    the two means cannot be told apart.
    """
    knobs = second.knobs()
    if not knobs or runs < 2:
        raise InputError(
            f"{second.name} cannot be turned" if runs > 1 else "one run shows no spread",
            why="it has no setting that trades budget for error" if runs > 1 else f"runs = {runs}",
            fix="name the other method second, or give it a finite budget"
            if runs > 1
            else "give runs=2 or more",
        )
    knob, trials = knobs[0], _Trials(census, attack or exposed_recall(seed=seed), runs, seed)
    settings = knob.settings
    trials.add(None, first)
    last = len(settings) - 1
    wanted = sorted({round(last * share / STEPS) for share in range(STEPS + 1)})
    for _ in range(ROUNDS):
        for index in wanted:
            trials.add(index, knob.turned(settings[index]))
            if progress:
                progress("equate", len(trials.values) - 1, STEPS + 1 + (ROUNDS - 1) * (STEPS - 1))
        low, high = trials.bracket()
        wanted = sorted(
            {round(low + (high - low) * share / STEPS) for share in range(1, STEPS)} - {*trials.values}
        )
    reach = trials.compute_half_width()
    aim = trials.mean(None)
    indices, fitted = trials.fit_isotonic()
    because, found, ends = "", None, (0.0, 0.0)
    if fitted[0] + reach < aim - reach:
        because = f"even {knob.name} = {_short(settings[0])} has less ({fitted[0]:.3f} against {aim:.3f})"
    elif fitted[-1] - reach > aim + reach:
        because = f"even {knob.name} = {_short(settings[last])} has more ({fitted[-1]:.3f} against {aim:.3f})"
    else:
        found = _passes(indices, fitted, aim)
        # both means are uncertain: their difference has an interval that is √2 times as wide
        ends = (
            _passes(indices, fitted, aim + sqrt(2) * reach),
            _passes(indices, fitted, aim - sqrt(2) * reach, after=True),
        )
    around = sorted(settings[round(end)] for end in ends)

    def success(index: int | None, mechanism: Mechanism) -> Success:
        mean = trials.mean(index)
        return Success(
            setting=None if index is None else settings[index],
            budget=_budget(mechanism, census),
            value=mean,
            low=max(0.0, mean - reach),
            high=min(1.0, mean + reach),
            runs=runs,
        )

    return EquateResult(
        measure=trials.labels[0].name,
        about=trials.labels[0].about,
        first=success(None, first),
        name=knob.name,
        setting=None if found is None else settings[round(found)],
        low=None if found is None else around[0],
        high=None if found is None else around[1],
        tried=tuple(success(index, knob.turned(settings[index])) for index in indices),
        because=because,
    )


class _Trials:
    """The success of an attack on runs of one mechanism (None) and of settings of the other, by their index."""

    def __init__(self, census: Census, measured: Attack, runs: int, seed: int) -> None:
        self.census, self.measured, self.runs, self.seed = census, measured, runs, seed
        self.values: dict[int | None, list[float]] = {}
        self.labels: list[RiskMeasure] = []

    def add(self, index: int | None, mechanism: Mechanism) -> None:
        """Run a mechanism several times, with keys for tests."""
        if index in self.values:
            return
        self.values[index] = []
        for run in range(self.runs):
            key = Key.for_tests(self.seed).bind("equate", mechanism.name, str(index), run)
            measure = self.measured(mechanism.release(self.census, key=key), self.census)
            if measure.value is None:
                raise InputError(
                    f"the attack finds nothing to measure in a release of {mechanism.name}",
                    why=measure.reason or "its measure is unknown",
                    fix="name variables that both releases have: known=…, secret=…, area=…",
                )
            self.labels.append(measure)
            self.values[index].append(measure.value)

    def mean(self, index: int | None) -> float:
        """Return the mean success of the runs."""
        return float(np.mean(self.values[index]))

    def compute_half_width(self) -> float:
        """Return half of the interval of a mean, with one spread between runs for all settings."""
        spread = float(np.mean([np.var(found, ddof=1) for found in self.values.values()]))
        degrees = len(self.values) * (self.runs - 1)
        return float(stdtrit(degrees, 0.975)) * sqrt(spread / self.runs)

    def fit_isotonic(self) -> tuple[list[int], list[float]]:
        """Fit the success of the tried settings by isotonic regression; return settings and fitted values."""
        indices = sorted(index for index in self.values if index is not None)
        blocks: list[tuple[float, int]] = []
        for index in indices:
            blocks.append((self.mean(index), 1))
            while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
                (one, many), (two, more) = blocks[-2:]
                blocks[-2:] = [((one * many + two * more) / (many + more), many + more)]
        return indices, [value for value, many in blocks for _ in range(many)]

    def bracket(self) -> tuple[int, int]:
        """Return the two tried settings between which the success passes that of the first mechanism."""
        indices, fitted = self.fit_isotonic()
        place = _passes(indices, fitted, self.mean(None))
        below = max((index for index in indices if index <= place), default=indices[0])
        above = min((index for index in indices if index > place), default=indices[-1])
        return (below, above) if below < above else (indices[-2], indices[-1])


def _passes(indices: Sequence[int], fitted: Sequence[float], aim: float, *, after: bool = False) -> float:
    """Return where falling values pass an aim, between the settings; of several places the middle or last."""
    if fitted[0] < aim:
        return float(indices[0])
    if fitted[-1] > aim:
        return float(indices[-1])
    equal = [index for index, value in zip(indices, fitted, strict=True) if value == aim]
    if equal:
        return float(equal[-1]) if after else float(equal[len(equal) // 2])
    for (one, high), (two, low) in pairwise(zip(indices, fitted, strict=True)):
        if high > aim > low:
            return one + (two - one) * (high - aim) / (high - low)
    return float(indices[-1])


def _budget(mechanism: Mechanism, census: Census) -> str:
    promised = mechanism.specification(census)
    zcdp = isinstance(promised.output_premetric, NormalizedRenyi)
    return f"ρ² = {promised.rho_squared}" if zcdp else promised.shown_budget


def _short(setting: Fraction | None) -> str:
    return "" if setting is None else f"{float(setting):.4g}"
