"""Kernels over solved subtrees that make published rows: records, replicates, unbiased estimates, noisy measurements."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stirred.arrow import pads
from stirred.engine.base import Parts, Steps
from stirred.mechanisms.topdown.estimate import unbiased
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.measure import nmf
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.subtrees.grove import Division, SubtreeBatch
from stirred.mechanisms.topdown.run.subtrees.solved import SubtreeSolve
from stirred.mechanisms.topdown.run.subtrees.survey import BatchMeasurements, unpack_arrays
from stirred.mechanisms.topdown.tree.counts import reorder_leaves

ROWS_PER_READ = 1 << 16  # read at a time
LIST_ROWS_PER_READ = 1 << 11  # where rows hold lists
DEPTH, TABLE = "_depth", "_table"  # which level a row is about, and which table of that level
TAG_SCHEMA = pa.schema([(DEPTH, pa.int16()), (TABLE, pa.int16())])


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """The released records of a part by area and cell: one row each, or with ``replicate`` one row for each cell."""

    division: Division
    schema: pa.Schema
    bureau: bool
    replicate: int | None = None

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        pieces = [
            piece.cast(self.schema)
            for grove in self.division.split_batches(table)
            for piece in self.of(grove)
        ]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        workload = self.division.base
        leaves = reorder_leaves(
            grove.published_tree, grove.spine, grove.published_leaves, workload.histogram.cells
        )
        if self.replicate is None:
            return output.make_microdata(workload, grove.published_tree, leaves, bureau=self.bureau)
        rows = output.tabulate_replicate(
            workload, grove.published_tree, leaves, self.replicate, bureau=self.bureau
        )
        return iter([rows])


def build_tagged_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with the level and table of each row."""
    return pa.schema([*TAG_SCHEMA, *schema])


def tag_rows(table: pa.Table, depth: int, number: int) -> pa.Table:
    """Return the rows with their level and table."""
    for place, (name, value) in enumerate(((DEPTH, depth), (TABLE, number))):
        table = table.add_column(
            place, TAG_SCHEMA.field(name), pa.array(np.full(table.num_rows, value), pa.int16())
        )
    return table


@dataclass(frozen=True, slots=True)
class UnbiasedRows:
    """The unbiased estimates of a part's geounits, for every marginal of a level."""

    solve: SubtreeSolve
    schema: pa.Schema
    bureau: bool

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        division = self.solve.measured.division
        pieces = [piece for grove in division.split_batches(table) for piece in self.of(grove)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        division = self.solve.measured.division
        told = [unpack_arrays(self.solve.tops[number]) for number in grove.numbers]
        informed = self.solve.targets(grove, told)
        if not isinstance(informed, TreeEstimate):
            return
        known = self.solve.covariances(informed, told)
        for d in range(division.depth + 1, division.last):
            cover = known[d - division.depth]
            found = unbiased.tabulate_level(
                division.workload, grove.spine, informed, d, cover, bureau=self.bureau
            )
            for number, rows in enumerate(found):
                yield tag_rows(rows, d, number).cast(self.schema)
        rows = unbiased.tabulate_leaves(
            division.workload, grove.spine, informed, known[-1], bureau=self.bureau
        )
        yield tag_rows(rows, division.last, 0).cast(self.schema)


@dataclass(frozen=True, slots=True)
class MeasurementRows:
    """The noisy measurements of a part's geounits, or the bounds that hold in them, by level and table."""

    measured: BatchMeasurements
    schema: pa.Schema
    bounds: bool = False

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        division = self.measured.division
        pieces = [piece for grove in division.split_batches(table) for piece in self.of(grove)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        division = self.measured.division
        measurements = None if self.bounds else self.measured.of(grove)
        for d in range(division.depth + 1, division.last + 1):
            if measurements is None:
                for number in nmf.list_bound_tables(grove.constraints, d):
                    rows = nmf.tabulate_bounds(grove.constraints, grove.spine, division.workload, d, number)
                    yield tag_rows(rows, d, number).cast(self.schema)
                continue
            for number in nmf.list_answer_tables(measurements, d):
                for rows in nmf.tabulate_answers(measurements, d, number):
                    yield tag_rows(rows, d, number).cast(self.schema)


def split_runs(table: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    """Yield level, table and rows of each run of neighbouring rows of one table, without their tags."""
    depth, number = (table[name].to_numpy() for name in TAG_SCHEMA.names)
    rows = table.drop_columns(TAG_SCHEMA.names)
    cuts = np.flatnonzero((np.diff(depth) != 0) | (np.diff(number) != 0)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(depth)]):
        if end > begin:
            yield int(depth[begin]), int(number[begin]), rows.slice(begin, end - begin)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of parts; with a folder they are files there, which are deleted at the end: one for each tagged table."""

    data: "pads.Dataset"
    place: Path | None
    sorted: Path | None = None  # the folder of files by level and table

    @staticmethod
    def of(rows: Parts, folder: Path | None, name: str, steps: Steps | None = None) -> "StoredRows":
        """Compute the rows and store them."""
        if folder is None:
            return StoredRows(pads.dataset(rows.gather(steps)), None)
        stored = StoredRows(rows.write(folder, name, steps), folder / f"{name}.parquet")
        if DEPTH not in stored.data.schema.names:
            return stored
        with stored:  # read once, not once for each table
            return StoredRows(stored.data, None, stored.sort_into_files(folder / f"{name}-tables"))

    def tables(self, depth: int | None = None, number: int | None = None) -> Iterator[pa.Table]:
        """Yield all rows, or those of one table of a level without its tags."""
        if self.sorted is not None and depth is not None:
            path = self.sorted / f"{depth}.{number}.parquet"
            if path.exists():
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        yield file.read_row_group(group)
            return
        names = [name for name in self.data.schema.names if name not in TAG_SCHEMA.names]
        chosen = None
        if depth is not None:
            chosen = (pc.field(DEPTH) == depth) & (pc.field(TABLE) == number)
        yield from self._batches(names, chosen)

    def sort_into_files(self, place: Path) -> Path:
        """Write the rows to one file for each level and table, in their order, and return the folder."""
        place.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            with ExitStack() as files:
                writers: dict[tuple[int, int], pq.ParquetWriter] = {}
                for table in self._batches(self.data.schema.names, None):
                    depth, number = (table[name].to_numpy() for name in TAG_SCHEMA.names)
                    rows = table.drop_columns(TAG_SCHEMA.names)
                    for tag in sorted(set(zip(depth.tolist(), number.tolist(), strict=True))):
                        if tag not in writers:
                            path = place / f"{tag[0]}.{tag[1]}.parquet"
                            writers[tag] = files.enter_context(
                                pq.ParquetWriter(path, rows.schema, compression="zstd")
                            )
                        own = (depth == tag[0]) & (number == tag[1])
                        writers[tag].write_table(rows.filter(pa.array(own)))
            stack.pop_all()
        return place

    def _batches(self, names: Sequence[str], chosen: pc.Expression | None) -> Iterator[pa.Table]:
        """Yield some rows at a time; long lists are not read ahead."""
        lists = any(pa.types.is_list(field.type) for field in self.data.schema)
        few = (
            {"batch_size": LIST_ROWS_PER_READ, "batch_readahead": 1, "fragment_readahead": 1} if lists else {}
        )
        for batch in self.data.to_batches(
            columns=names, filter=chosen, **{"batch_size": ROWS_PER_READ, **few}
        ):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    def __enter__(self) -> "StoredRows":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in (self.place, self.sorted):
            if place is not None and place.is_dir():
                shutil.rmtree(place)
            elif place is not None:
                place.unlink(missing_ok=True)
