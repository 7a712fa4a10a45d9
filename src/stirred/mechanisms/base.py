"""The contract every mechanism keeps, and what it hands over."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.dataset as pads

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.spec import Ledger, Specification

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant held against the output: its name in words, whether it is kept, how many numbers it fixes."""

    invariant: str
    kept: bool
    numbers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What may be published, with its specification and the record of how it was made.

    ``tables`` are small (an Arrow table each); ``microdata`` may be larger than memory (an Arrow table, or a Parquet
    dataset on disk), by record type. Rows stand in an order that does not depend on the confidential file.
    """

    mechanism: str
    parameters: Mapping[str, object]
    specification: Specification
    microdata: Mapping[str, pa.Table | pads.Dataset] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    ledger: Ledger | None = None
    notes: tuple[str, ...] = ()
    input_digest: str = ""  # keyed with the run's own key: equal only for the same run on the same input
    private: bool = True  # False when made with Key.for_tests


@runtime_checkable
class Mechanism(Protocol):
    """An algorithm from a census to a release that states its specification first."""

    name: ClassVar[str]

    def parameters(self) -> dict[str, object]:
        """JSON-able and canonical: what goes into the receipt and into the names of the streams."""
        ...

    def specification(self, census: "Census") -> Specification:
        """The promise, before anything is released; reads at most counts that are invariants."""
        ...

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Run; with ``out`` the microdata are streamed to Parquet there instead of being held in memory."""
        ...


def stated(mechanism: Mechanism, census: "Census", engine: Engine | None = None) -> Specification:
    """The mechanism's promise; the engine goes to those whose promise reads more than a few counts."""
    if engine is not None and "engine" in inspect.signature(mechanism.specification).parameters:
        return mechanism.specification(census, engine=engine)  # type: ignore[call-arg]
    return mechanism.specification(census)
