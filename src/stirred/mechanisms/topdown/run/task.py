"""Input and result of one workload run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run.checkpoint import Checkpoint
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.tree.geounits import Tree
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
    emphasis: int = 1
    spine: SpineOptions | None = None  # the tree that is measured; None: the census's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One workload to run; ``approve`` is called before any record is written, and raises an error if it must not be."""

    census: "Census"
    workload: Workload
    settings: Settings
    key: Key
    engine: Engine
    approve: Callable[[tuple[Check, ...], Record], None]
    progress: Progress | None = None
    resume: Path | None = None
    given: Path | None = None
    out: Path | None = None
    bureau: bool = False  # columns named as the published files name them

    @property
    def mode(self) -> Mode:
        """The estimation mode."""
        return self.settings.mode or self.workload.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All results of a workload's run."""

    spine: Tree
    levels: list[Sparse]
    certificates: list[Certificate]
    constraints: Constraints
    measurements: Measurements
    informed: Informed | None
    checks: tuple[Check, ...]
    checkpoint: Checkpoint
    input_digest: str
    published: Tree  # the ordinary geography of the release; the same leaves in its own order


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Microdata and tables of one workload, with its checks."""

    microdata: pa.Table | pads.Dataset
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    input_digest: str
    checkpoint: Checkpoint
