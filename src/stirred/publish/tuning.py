"""Choose settings from utility: search on a stand-in, tune shares in closed form, rehearse the plan."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.utility import Replicate, TablePair, mape, mean_absolute_error, replicate_errors
from stirred.census import Census
from stirred.chance import Key
from stirred.closed_files import closed_file
from stirred.engine import Local, Progress
from stirred.errors import InputError, PlanError
from stirred.frames import arrow_of, collect_frame
from stirred.mechanisms.base import Mechanism, TunedSettings
from stirred.mechanisms.proposal import Cap, Goal
from stirred.mechanisms.release import Release, count
from stirred.publish.check import check_variables
from stirred.publish.plan.description import Plan, TablePlan
from stirred.publish.plan.proposal import ProposedPlan
from stirred.spec import Budget, NormalizedRenyi
from stirred.text_formats import write_toml

# Start from utility: the smallest loss that reaches a target, found on a stand-in and never on the confidential file.

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
    turn: str = "",
    runs: int = 5,
    seed: int = 1,
    progress: Progress | None = None,
) -> Tuning:
    """Find by bisection the setting with the smallest budget whose mean error stays within the target.

    ``turn`` names the setting that is turned where a mechanism has several, the others stay as they are; without it, its
    first. Replicates use test keys bound to their number, so no two share a stream.
    """
    knobs = mechanism.knobs()
    if not knobs:
        raise InputError(
            f"{mechanism.name} cannot be tuned as it is",
            why="it has no setting that trades budget for error",
            fix="tune another mechanism, or give it a finite budget",
        )
    by_name = {knob.name: knob for knob in knobs}
    if turn and turn not in by_name:
        raise InputError(
            f"{mechanism.name} has no setting {turn[:40]!r} to turn",
            why=f"what trades budget for error there: {', '.join(by_name)}",
            fix=f"give one of them: --turn {knobs[0].name}",
        )
    knob, tried = by_name[turn] if turn else knobs[0], dict[int, Trial]()

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


# Tune a plan from goals where its mechanism knows its errors in closed form: no stand-in, no runs, another plan file.

TUNED_PREFIX = "tuned-"  # begins the names of a tuned plan and of its files, where no other name is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedPlan:
    """The plan with other settings, and what they buy."""

    plan: ProposedPlan
    found: TunedSettings


def tune_shares(
    plan: Plan, goals: Sequence[Goal], caps: Sequence[Cap] = (), *, stem: str | None = None
) -> TunedPlan:
    """Return the plan whose first mechanism reaches the goals at its budget, or at less if they are met.

    ``stem`` begins the names of its files, so that several tuned plans can lie beside each other.
    """
    mechanism = plan.mechanisms[0]
    found = mechanism.tune(plan.census(), goals, caps)
    if found is None:
        raise InputError(
            f"{mechanism.name} has no closed form for goals",
            why="it does not know the error of a table before it runs",
            fix='try one setting on a stand-in instead: --target "mae county <= 3"',
        )
    if stem is not None:
        found = _rename_files(found, stem)
    text = replace_settings(plan.text, found.settings)
    return TunedPlan(
        plan=ProposedPlan(text=text, files=dict(found.files), choices=(found.sentence,), undecided=()),
        found=found,
    )


def _rename_files(found: TunedSettings, stem: str) -> TunedSettings:
    names = {name: f"{stem}-{name.removeprefix(TUNED_PREFIX)}" for name in found.files}
    return replace(
        found,
        settings={key: names.get(value, value) for key, value in found.settings.items()},
        files={names[name]: text for name, text in found.files.items()},
    )


def replace_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a plan's text with other values in its first [[mechanism]].

    >>> print(replace_settings('[[mechanism]]\\nname = "a"\\nworkload = "b"\\n[assess]\\n', {"workload": "c.toml"}))
    [[mechanism]]
    name = "a"
    workload = "c.toml"
    [assess]
    <BLANKLINE>
    """
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("[[mechanism]]"))
    end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    for name, value in settings.items():
        line = f"{name} = {write_toml(value)}"
        place = next((i for i in range(start + 1, end) if re.match(rf"\s*{name}\s*=", lines[i])), None)
        if place is None:
            lines.insert(start + 1, line)
            end += 1
        else:
            lines[place] = line
    return "\n".join(lines) + "\n"


def choose_path(plan: Path, out: str | None) -> Path:
    """Return the path of the tuned plan: beside the plan, so that relative paths stay valid."""
    path = Path(out) if out else plan.with_name(f"{TUNED_PREFIX}{plan.name}")
    if path.parent.resolve() != plan.parent.resolve():
        raise InputError(
            "the tuned plan is written beside the plan",
            why="the paths in it start at its folder",
            fix=f"--out {plan.parent / path.name}",
        )
    return path


# A rehearsal: the plan run many times on a public stand-in, to see its bias, spread and the coverage of its intervals.


def rehearse(
    plan: Plan, stand_in: Census, *, runs: int = 20, seed: int = 1, progress: Progress | None = None
) -> pl.DataFrame:
    """Return errors by table and size class over ``runs`` replicates, each with streams of its own.

    Tables with weights that are made after a release are left out: their totals are met by construction.
    """
    tables = [table for table in plan.tables if not table.calibrated]
    if not tables:
        raise PlanError("there is nothing to rehearse", why="the plan has no [[table]]", fix="add one")
    for table in tables:
        check_variables(stand_in, table)
    mechanism = plan.mechanisms[0]
    truths = {table.name: _truth(stand_in, table) for table in tables}
    found: dict[str, list[pl.DataFrame]] = {table.name: [] for table in tables}
    for index in range(runs):
        if progress:
            progress("rehearse", index, runs)
        release = mechanism.release(stand_in, key=Key.for_tests(seed).bind("rehearse", index))
        for table in tables:
            made = table.tabulate(release, mechanism)
            found[table.name].append(_align_cells(truths[table.name], made, table))
    if progress:
        progress("rehearse", runs, runs)
    frames = [replicate_errors(_replicates(found[table.name], table), table=table.name) for table in tables]
    return pl.concat(frames)


def _truth(stand_in: Census, table: TablePlan) -> pa.Table:
    """Return the counts of the stand-in, or its weighted totals."""
    if not table.weight:
        return stand_in.counts(table.record_type, list(table.by))
    by, weight = list(table.by), pl.col(table.weight).cast(pl.Float64)
    summed = stand_in.scan(table.record_type, table.variables).group_by(by).agg(weight.sum().alias("count"))
    return arrow_of(collect_frame(summed, streaming=True))


def _align_cells(truth: pa.Table, made: pa.Table, table: TablePlan) -> pl.DataFrame:
    """Join truth and run on the same cells, with the intervals of the run."""
    by = list(table.by)
    measure = "weighted" if table.weight else "count"
    shown = made.select([*by, measure]).rename_columns([*by, "count"])
    pair = TablePair.align(truth, shown, by=by).frame
    extra = [name for name in ("low", "high") if name in made.column_names]
    if not extra:
        return pair
    limits = pl.DataFrame(pl.from_arrow(made.select([*by, *extra]))).with_columns(pl.col(by).cast(pl.String))
    return pair.join(limits, on=by, how="left", nulls_equal=True).with_columns(pl.col(extra).fill_null(0.0))


def _replicates(frames: Sequence[pl.DataFrame], table: TablePlan) -> list[Replicate]:
    """Return all runs on the union of their cells; a cell absent from a run counts zero there."""
    by = list(table.by)
    cells = pl.concat([frame.select(by) for frame in frames]).unique().sort(by, nulls_last=False)
    truth = (
        pl.concat([frame.select(*by, "reference") for frame in frames])
        .group_by(by)
        .agg(pl.col("reference").max())
    )
    cells = cells.join(truth, on=by, how="left", nulls_equal=True).sort(by, nulls_last=False)
    runs = []
    for frame in frames:
        whole = cells.join(frame.drop("reference"), on=by, how="left", nulls_equal=True).fill_null(0)
        whole = whole.sort(by, nulls_last=False)
        values = {name: whole[name].to_numpy().astype(float) for name in whole.columns if name not in by}
        runs.append(
            Replicate(
                reference=values["reference"],
                protected=values["protected"],
                low=values.get("low"),
                high=values.get("high"),
            )
        )
    return runs


def write_rehearsal(frame: pl.DataFrame, out: Path) -> None:
    """Write errors as CSV, whole or not at all; closed to others, because the stand-in may be the census itself."""
    with closed_file(out) as place:
        frame.write_csv(place)
