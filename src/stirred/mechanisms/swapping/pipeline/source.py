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
from stirred.mechanisms.swapping.guards.checks import Accepting
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import After, Logged
from stirred.mechanisms.swapping.pipeline.survey import Before
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Stay
from stirred.mechanisms.swapping.roles import Roles, SwapChoice
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census

Microdata = Mapping[str, "pa.Table | pads.Dataset"]


class SwapLaw(SwapChoice, Accepting, Protocol):
    """The part of a swapping mechanism that a release calls."""

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        ...

    @property
    def whole(self) -> tuple[str, ...]:
        """Variables for which the draw needs all levels that occur in the census."""
        ...

    def parameters(self) -> dict[str, object]:
        """The parameters of a run, in JSON."""
        ...

    def roles(self, census: "Census") -> Roles:
        """The role of every variable."""
        ...

    def adapted(self, frame: Frame) -> Frame:
        """The records as this law uses them."""
        ...

    def meeting(self, frame: Frame) -> tuple[str, ...]:
        """Variables by which records are grouped: records that differ in one of them never affect each other."""
        ...

    def swapped(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """The columns after one draw."""
        ...

    def logged(self, frame: Frame, run: Key, engine: Engine) -> Logged:
        """The columns after one draw, and what the office alone may know of it."""
        ...

    def promised(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """The promise for these strata."""
        ...

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the expected share of records that change places in strata of these shapes."""
        ...

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """Warnings for the release that follow from its strata."""
        ...

    def made_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """The contingency table to publish, from the non-empty cells of the swapped records."""
        ...

    def reader(self, key: Key) -> Key:
        """The key for the digest of the census."""
        ...

    def bound(self, key: Key, digest: bytes) -> Key:
        """The key of this run on this census."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedStrata:
    """All strata of the census: what is promised follows from it, and it is counted once."""

    frame: Frame  # roles and records that stay; without records where these lie in parts
    shapes: Shapes
    cells: tuple[int, ...]  # of each kept table; none where nothing is verified


class SwappedRecords(Protocol):
    """The records after the draw."""

    @property
    def after(self) -> After:
        """The fingerprints of what is published."""
        ...

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """The contingency table of some variables, sorted."""
        ...

    def written(self) -> Microdata:
        """The published records by record type."""
        ...

    @property
    def internal(self) -> Mapping[str, pa.Table]:
        """What the office alone may know of the draw."""
        ...


class RecordSource(Protocol):
    """The records of one release: one part in memory, or parts on an engine."""

    def survey(self, reader: Key) -> Before:
        """Read all records once: their digest and fingerprints."""
        ...

    def stated(self, *, cells: bool) -> StatedStrata:
        """Count the strata, and the ``cells`` of the kept tables where they will be verified."""
        ...

    def swapped(self, run: Key, before: Before, out: Path | None) -> AbstractContextManager[SwappedRecords]:
        """Draw, and publish in ``out`` (None: in memory); what was written is deleted if an error occurs in the block."""
        ...
