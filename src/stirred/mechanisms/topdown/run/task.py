"""Define the input and result of one workload's run, and solve its levels with checkpoints."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred._support import pads
from stirred.chance import Key
from stirred.chance.seals import AuthenticFolder, keep_mark, read_mark
from stirred.engine import Engine, Local, Progress
from stirred.engine.base import Steps
from stirred.errors import PrivacyError
from stirred.mechanisms.release import Check
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.rules import Record
from stirred.mechanisms.topdown.solve.levels import Cascade, Estimator
from stirred.mechanisms.topdown.solve.parent import Certificate
from stirred.mechanisms.topdown.workload import Mode, SpineOptions, Workload

if TYPE_CHECKING:
    from stirred.census import Census


# Solve level by level from the top, and keep finished levels on disk: an interrupted run ends with the same bytes.
#
# What is kept is post-processed output, never a measurement or a confidential count; a checkpoint is used only by a
# run with the same key, parameters and census.


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder of finished levels; ``None`` as folder keeps nothing."""

    folder: Path | None = None
    identity: str = ""
    key: Key | None = None

    def begin(self) -> None:
        """Make the folder, or check that an existing one belongs to this run."""
        if self.folder is None:
            return
        shutil.rmtree(self._discard_path(self.folder), ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = self.folder / "run"
        if read_mark(mark) not in (None, self.identity.encode()):
            raise PrivacyError(
                "the folder holds an interrupted run of another key, census or workload",
                why=f"the folder {self.folder.name} was begun with something else",
                fix="finish that run with its own settings, or delete the folder",
            )
        keep_mark(mark, self.identity)

    def open_folder(self) -> AuthenticFolder | None:
        """Return the folder with the key that seals its files; None where nothing is kept."""
        if self.folder is None or self.key is None:
            return None
        return AuthenticFolder(self.folder, self.key, self.identity.encode())

    def save(self, depth: int, level: Sparse, certificate: Certificate) -> None:
        """Keep a finished level; the file is written completely or not at all."""
        kept = self.open_folder()
        if kept is None:
            return
        table = pa.table({"node": level.nodes, "cell": level.cells, "count": level.counts})
        numbers = ",".join(str(getattr(certificate, name)) for name in Certificate.__slots__)
        table = table.replace_schema_metadata({"certificate": numbers, "nodes": str(len(level.first) - 1)})
        temporary = kept.folder / f"level-{depth}.part"
        pq.write_table(table, temporary, compression="zstd")
        kept.adopt(f"level-{depth}.parquet", temporary)

    def load(self, depth: int) -> tuple[Sparse, Certificate] | None:
        """Return a level finished before, or None; refuse one that this run did not write."""
        kept = self.open_folder()
        place = None if kept is None else kept.find_finished(f"level-{depth}.parquet")
        if place is None:
            return None
        table = pq.read_table(place)
        metadata = table.schema.metadata
        node = table["node"].to_numpy()
        first = np.searchsorted(node, np.arange(int(metadata[b"nodes"]) + 1))
        name, *numbers = metadata[b"certificate"].decode().split(",")
        kinds = (int, float, float, int, int, int)
        values = [kind(number) for kind, number in zip(kinds, numbers, strict=True)]
        certificate = Certificate(name, *values)
        return Sparse(first, table["cell"].to_numpy(), table["count"].to_numpy()), certificate

    def finish(self) -> None:
        """Delete the levels, which are no longer needed after the release."""
        if self.folder is not None and self.folder.is_dir():
            # it loses its name first: a run that is killed here would find half of the levels, and take them for forged ones
            gone = self._discard_path(self.folder)
            shutil.rmtree(gone, ignore_errors=True)
            shutil.rmtree(self.folder.replace(gone), ignore_errors=True)

    @staticmethod
    def _discard_path(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}.gone")


NOTHING_KEPT = Checkpoint()


def count_threads(engine: Engine) -> int:
    """Return how many threads an engine runs in this process."""
    return engine.workers if isinstance(engine, Local) else Local().workers


def wait_for_nothing(depth: int) -> None:
    """Return at once: all linear terms are there."""


def solve_levels(
    estimator: Estimator,
    above: Sequence[Sparse],
    last: int,
    engine: Engine,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint = NOTHING_KEPT,
    ready: Callable[[int], None] = wait_for_nothing,
) -> tuple[list[Sparse], list[Certificate]]:
    """Solve every level down to ``last``, after those given; finished levels are used again.

    ``ready`` returns when the linear terms of a level are there.
    """
    levels = list(above)
    certificates: list[Certificate] = []
    for depth in range(len(levels), last + 1):
        done = checkpoint.load(depth)
        if done is None:
            break
        levels.append(done[0])
        certificates.append(done[1])

    def keep_level(depth: int, level: Sparse, certificate: Certificate) -> None:
        checkpoint.save(depth, level, certificate)
        certificates.append(certificate)

    cascade = Cascade(
        estimator,
        levels,
        last,
        workers=count_threads(engine),
        ready=ready,
        finished=keep_level,
        progress=progress,
    )
    return cascade.run(), certificates


# Input and result of one workload's run.


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the estimate; none of them changes the promise, except the noise."""

    mode: Mode | None = None
    bypass: bool = True
    noiseless: bool = False
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
