"""Engines for tests of the path by subtrees: nothing fits, kernels travel, rows come in any order."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from stirred.census import Census
from stirred.engine import Local
from stirred.engine.base import Flow, PartRows, Read, Steps
from stirred.engine.local import LocalFlow, LocalParts, read_whole
from stirred.mechanisms.release import Release


def travelled(kernel: Any) -> Any:
    """The kernel as another process would get it."""
    return pickle.loads(pickle.dumps(kernel))


def turned(table: pa.Table, seed: int) -> pa.Table:
    """The same rows in another order."""
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


@dataclass(frozen=True, slots=True)
class TurnedFlow(LocalFlow):
    """Batches of a few rows, shuffled; kernels are pickled."""

    def map(self, kernel: Callable[..., pa.Table], schema: pa.Schema) -> "TurnedFlow":
        return TurnedFlow(self.batches, schema, self.workers, (*self.kernels, travelled(kernel)))

    @staticmethod
    def of(flow: LocalFlow, rows: int) -> "TurnedFlow":
        def batches() -> Any:
            table = turned(flow.gather(), 1)
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)

        return TurnedFlow(batches, flow.schema, flow.workers)


@dataclass(frozen=True, slots=True)
class TurnedParts(LocalParts):
    """Rows of a part are shuffled before each kernel; what is gathered is counted."""

    seen: tuple[list[int], ...] = ()

    def map(self, kernel: Callable[..., pa.Table], schema: pa.Schema) -> "TurnedParts":
        return replace(self, kernels=(*self.kernels, (travelled(kernel), schema)))

    def read(self, part: int) -> tuple[PartRows, ...]:
        return tuple(PartRows.of(turned(read_whole(rows), part)) for rows in LocalParts.read(self, part))

    def keep(self, steps: Steps | None = None) -> "TurnedParts":
        return TurnedParts(*_fields(LocalParts.keep(self, steps)), self.seen)

    def gather(self, steps: Steps | None = None) -> pa.Table:
        table = LocalParts.gather(self, steps)
        self.seen[0].append(table.num_rows)
        return table


def _fields(parts: LocalParts) -> tuple[Any, ...]:
    return parts.store, parts.schemas, parts.number, parts.workers, parts.room, parts.scratch, parts.kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(Local):
    """This machine with no room: everything goes by flows and ``parts`` parts."""

    parts: int = 3
    rows: int = 50
    gathered: tuple[list[int], ...] = ()

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return self.parts

    def records(self, census: Census, record_type: str, columns: Sequence[str]) -> Flow:
        flow = Local.records(self, census, record_type, columns)
        assert isinstance(flow, LocalFlow)
        return TurnedFlow.of(flow, self.rows)

    def stream_released(self, data: pa.Table | pads.Dataset) -> Flow:
        flow = Local.stream_released(self, data)
        assert isinstance(flow, LocalFlow)
        return TurnedFlow.of(flow, self.rows)

    def exchange(self, *flows: Flow, by: str, parts: int, read: Read | None = None) -> TurnedParts:
        made = LocalParts.of(flows, by, parts, self.workers, self.memory_bytes, self.scratch, read)
        return TurnedParts(*_fields(made), self.gathered or ([],))


def content(release: Release) -> dict[str, tuple[list[str], list[dict[str, object]]]]:
    """Everything that is published, as plain lists."""
    found = {}
    for name, data in [*release.microdata.items(), *release.tables.items()]:
        table = data.to_table() if isinstance(data, pads.Dataset) else data
        found[name] = (table.column_names, table.to_pylist())
    return found


def assert_same(one: Release, other: Release) -> None:
    """The same publication, promise, checks and digest."""
    first, second = content(one), content(other)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name
    assert one.checks == other.checks
    assert one.specification == other.specification
    assert one.input_digest == other.input_digest
    assert one.ledger == other.ledger
    assert one.notes == other.notes
