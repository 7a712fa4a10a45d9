"""What a release asks of the records, wherever they lie, and of the mechanism, whatever its law."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from stirred.arrow import pads
from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.guards.checks import GuardSettings
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import ColumnsAndLog, OutputFingerprints
from stirred.mechanisms.swapping.pipeline.survey import InputFingerprints
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Stay
from stirred.mechanisms.swapping.roles import Roles, SwapChoice
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census

Microdata = Mapping[str, "pa.Table | pads.Dataset"]


class SwapLaw(SwapChoice, GuardSettings, Protocol):
    """What the pipeline asks of a swapping mechanism."""

    @property
    def name(self) -> str:
        """Return the name of the mechanism."""
        ...

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the variables for which the draw needs all levels that occur in the census."""
        ...

    def parameters(self) -> dict[str, object]:
        """Return the parameters of a run, in JSON."""
        ...

    def roles(self, census: "Census") -> Roles:
        """Return the role of every variable."""
        ...

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame as this law uses it."""
        ...

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the columns to partition by; a draw is independent across their values."""
        ...

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap."""
        ...

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns after the swap and the confidential log of the draw."""
        ...

    def build_specification(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """Build the specification for these strata."""
        ...

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the expected share of records that change places in strata of these shapes."""
        ...

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """Return warnings for the release that follow from its strata."""
        ...

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return the contingency table to publish, from the non-empty cells of the swapped records."""
        ...

    def digest_key(self, key: Key) -> Key:
        """Return the key for the digest of the census."""
        ...

    def run_key(self, key: Key, digest: bytes) -> Key:
        """Return the key of this run on this census."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataSummary:
    """All strata of the census, counted once; the promise follows from them."""

    frame: Frame  # roles and records that stay; without records where these lie in parts
    shapes: Shapes
    cells: tuple[int, ...]  # of each kept table; none where nothing is verified


class SwappedRecords(Protocol):
    """The records after the draw."""

    @property
    def after(self) -> OutputFingerprints:
        """Return the fingerprints of what is published."""
        ...

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """Return the contingency table of some variables, sorted."""
        ...

    def write_records(self) -> Microdata:
        """Write the records if that is not done yet, and return them by record type."""
        ...

    @property
    def internal(self) -> Mapping[str, pa.Table]:
        """Return the confidential log of the draw, written to packet/internal only."""
        ...


class RecordSource(Protocol):
    """The records of one release: one part in memory, or parts on an engine."""

    def survey(self, reader: Key) -> InputFingerprints:
        """Read all records once and return their digest and fingerprints."""
        ...

    def count_strata(self, *, cells: bool) -> StrataSummary:
        """Count the strata, and the ``cells`` of the kept tables where they will be verified."""
        ...

    def draw_swap(
        self, run: Key, before: InputFingerprints, out: Path | None
    ) -> AbstractContextManager[SwappedRecords]:
        """Draw, and publish in ``out`` (None: in memory); what was written is deleted if an error occurs in the block."""
        ...
