"""Input and result of one workload's run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from stirred.arrow import pads
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.engine.base import Steps
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run.levels import Checkpoint
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.workload import Mode, Workload

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the estimate; none of them changes the promise, except the noise."""

    mode: Mode | None = None
    bypass: bool = True
    noiseless: bool = False
    solver: str = "fast"
    rounder: str = "own"
    emphasis: int = 1
    spine: SpineOptions | None = None  # the tree that is measured; None: the census's own


def no_approval(checks: tuple[Check, ...], record: Record) -> None:
    """Accept every run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One workload to run; ``approve`` is called before any record is written, and may raise an error."""

    census: "Census"
    workload: Workload
    settings: Settings
    key: Key
    engine: Engine
    approve: Callable[[tuple[Check, ...], Record], None] = no_approval
    progress: Progress | None = None
    resume: Path | None = None
    given: Path | None = None
    out: Path | None = None
    bureau: bool = False  # columns named as the published files name them
    replicates: int = 0
    keep_nmf: bool = False
    beside: tuple[
        Workload, ...
    ] = ()  # all workloads of the same release, whose invariants hold for it as well

    @property
    def mode(self) -> Mode:
        """Return the estimation mode."""
        return self.settings.mode or self.workload.mode

    def report_progress(self, step: str, done: int, total: int) -> None:
        """Report progress of a step."""
        if self.progress is not None:
            self.progress(f"{self.workload.name}: {step}", done, total)

    def steps(self, step: str) -> Steps:
        """Return a function that reports the finished parts of a step."""
        return lambda done, total: self.report_progress(step, done, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Microdata, tables and checks of one workload."""

    microdata: "pa.Table | pads.Dataset"
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    input_digest: str
    checkpoint: Checkpoint
