"""Write the noisy measurement file, in Stirred's or the Bureau's names, and read its noise for an audit."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import make_file_name, path_in
from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.measure import Measurements, variance
from stirred.mechanisms.topdown.rules import Constraints, HeldQuery
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census


# The noisy measurement file: every noisy answer as Parquet, rows of geounit × query, in the public layout.
#
# ``<Level>.parquet/DPQuery`` and ``<Level>.parquet/Constraint`` hold geocode, query_name (``…_dpq`` or ``…_con``),
# query_shape, value, variance, plb (the part of ρ² spent, as an exact fraction), sign, and one column per attribute
# with the recode used. Each query of a level has a file of its own, so that rows are written as soon as they are drawn.

MIN_NODES_PER_WRITE, MAX_NODES_PER_WRITE = 512, 1 << 16  # geounits written at a time
ANSWERS_PER_WRITE = 1 << 20  # about as many answers are written at a time


def count_nodes_per_write(query: Query) -> int:
    """Return how many geounits are written at a time; the same for every division of a census."""
    return min(max(ANSWERS_PER_WRITE // query.size, MIN_NODES_PER_WRITE), MAX_NODES_PER_WRITE)


def list_answer_tables(measurements: Measurements, depth: int) -> list[int]:
    """Return the numbers of a level's tables of noisy answers, one per class and query."""
    allotment = measurements.allotment
    queries = allotment.workload.queries
    starts = np.unique(allotment.start[depth][allotment.start[depth] >= 0])
    return [
        int(start) * len(queries) + number
        for start in starts
        for number, query in enumerate(queries)
        if query.name in allotment.rho[int(start), depth]
    ]


def tabulate_answers(measurements: Measurements, depth: int, number: int) -> Iterator[pa.Table]:
    """Yield the noisy answers of one table, some geounits at a time."""
    allotment = measurements.allotment
    workload, spine = allotment.workload, allotment.spine
    start, query = divmod(number, len(workload.queries))
    asked = workload.queries[query]
    rho = allotment.rho[start, depth][asked.name]
    spread = 0.0 if measurements.key is None else variance(1 / rho)
    codes = spine.codes[depth].cast(pl.String)
    members = np.flatnonzero(allotment.start[depth] == start)
    step = count_nodes_per_write(asked)
    for at in range(0, len(members), step):
        nodes = members[at : at + step]
        value = measurements.answers(depth, start, asked, nodes, np.arange(asked.size))
        yield _rows(codes, nodes, f"{asked.name}_dpq", asked, value, workload, spread, str(rho), "")


def list_bound_tables(constraints: Constraints, depth: int) -> list[int]:
    """Return the numbers, all below zero, of a level's tables of bounds: two for each constraint."""
    return [
        -(1 + 2 * i + side)
        for i, held in enumerate(constraints.held)
        if depth < len(held.low)
        for side in (0, 1)
    ]


def tabulate_bounds(
    constraints: Constraints, spine: Tree, workload: Workload, depth: int, number: int
) -> pa.Table:
    """Return the lower or upper bounds of one constraint in the geounits of a level, without its name."""
    i, side = divmod(-1 - number, 2)
    held = constraints.held[i]
    value = held.query.arrange_answers((held.low, held.high)[side][depth])
    nodes = np.arange(len(value))
    return _rows(spine.codes[depth].cast(pl.String), nodes, "", held.query, value, workload, 0.0, "0", "=")


class MeasurementFiles:
    """The files of a noisy measurement file: one for each table of a level, written while its rows arrive."""

    def __init__(
        self,
        folder: Path,
        levels: Sequence[str],
        workload: Workload,
        held: Sequence[HeldQuery],
        equal: NDArray[np.bool_],
    ) -> None:
        self.workload, self.held, self.equal = workload, held, equal
        self.places = [path_in(folder, make_file_name(level), ".parquet") for level in levels]
        self.writers: dict[tuple[int, int], pq.ParquetWriter] = {}
        self.waiting: dict[tuple[int, int], list[pa.Table]] = {}
        for place in self.places:
            for kind in ("DPQuery", "Constraint"):
                (place / kind).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "MeasurementFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for (depth, number), tables in self.waiting.items():
            if kind is None and any(one.num_rows for one in tables):
                self._write(depth, number, pa.concat_tables(tables))
        for writer in self.writers.values():
            writer.close()

    def add(self, depth: int, number: int, rows: pa.Table) -> None:
        """Add rows of one table, in their order, and write every complete row group."""
        if number < 0:
            named = self._name_bounds(rows, depth, number)
            if named is None:
                return
            rows = named
            step = MAX_NODES_PER_WRITE
        else:
            step = count_nodes_per_write(self.workload.queries[number % len(self.workload.queries)])
        waiting = self.waiting.setdefault((depth, number), [])
        waiting.append(rows)
        count = sum(one.num_rows for one in waiting)
        if count < step:
            return
        whole = pa.concat_tables(waiting)
        for at in range(0, count - step + 1, step):
            self._write(depth, number, whole.slice(at, step))
        self.waiting[depth, number] = [whole.slice(count - count % step)]

    def _write(self, depth: int, number: int, rows: pa.Table) -> None:
        """Write one row group."""
        rows = rows.combine_chunks()
        writer = self.writers.get((depth, number))
        if writer is None:
            folder, place = ("DPQuery", number) if number >= 0 else ("Constraint", -1 - number)
            path = self.places[depth] / folder / f"part-{place}.parquet"
            writer = self.writers[depth, number] = pq.ParquetWriter(path, rows.schema, compression="zstd")
        writer.write_table(rows)

    def _name_bounds(self, rows: pa.Table, depth: int, number: int) -> pa.Table | None:
        """Return the bounds with their name and sign; None for the second table of an equality."""
        i, side = divmod(-1 - number, 2)
        if self.equal[i, depth]:
            if side:
                return None
            sign, suffix = "=", ""
        else:
            sign, suffix = ((">=", "_lb"), ("<=", "_ub"))[side]
        for column, text in (("query_name", f"{self.held[i].name}{suffix}_con"), ("sign", sign)):
            place = rows.schema.get_field_index(column)
            rows = rows.set_column(place, column, pa.repeat(text, rows.num_rows))
        return rows


def list_table_files(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their tables."""
    return sorted(folder.glob("part-*.parquet"), key=lambda path: int(path.stem.removeprefix("part-")))


def build_schema(workload: Workload, value: pa.DataType) -> pa.Schema:
    """Return the columns of a table: int32 for noisy answers, int64 for bounds."""
    return pa.schema([
        ("geocode", pa.string()), ("query_name", pa.string()), ("query_shape", pa.list_(pa.int32())),
        ("value", pa.list_(value)), ("variance", pa.float64()), ("plb", pa.string()), ("sign", pa.string()),
        *((axis.name, pa.string()) for axis in workload.histogram.axes),
    ])  # fmt: skip


def _rows(
    codes: pl.Series, nodes: np.ndarray, name: str, query: Query, value: np.ndarray, workload: Workload,
    spread: float, plb: str, sign: str,
) -> pa.Table:  # fmt: skip
    count, size = len(nodes), len(query.shape)
    flat = pa.array(value.ravel(), pa.int64() if sign else pa.int32())
    offsets = pa.array(np.arange(count + 1) * value.shape[1], pa.int32())
    shapes = pa.array(np.tile(np.array(query.shape, np.int32), count))
    columns = {
        "geocode": codes.gather(nodes).to_arrow().cast(pa.string()),
        "query_name": pa.repeat(name, count),
        "query_shape": pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * size, pa.int32()), shapes),
        "value": pa.ListArray.from_arrays(offsets, flat),
        "variance": pa.repeat(spread, count),
        "plb": pa.repeat(plb, count),
        "sign": pa.repeat(sign, count),
    }
    for i, axis in enumerate(workload.histogram.axes):
        used = next((part for part in query.parts if part == axis.name or part in axis.recodes), "*")
        columns[axis.name] = pa.repeat(used if query.kept[i] else "*", count)
    return pa.table(columns)


# The noisy measurement file with the Bureau's names: levels, folders by state, constraints and recodes.
#
# ``County.parquet/DPQuery/State=50/part-0.parquet``, as the readers of the published files expect it; the nation has
# no folder by state. Columns and values stay those of ``nmf``, except that the variance has 32 bits and that a query
# of all cells has the recode ``detailed`` on every axis. Codes of areas are the census's own: those of the Bureau's
# spine cannot be made from them. A code of a part begins with 1 for an AIAN area and 0 for the remainder, a block's
# ends with its 16 digits.

LEVEL_NAMES = {
    "us": "US", "nation": "US", "root": "US", "state": "State", "county": "County", "prim": "Prim", "tract": "Tract",
    "tract_subset_group": "Tract_Subset_Group", "tract_subset": "Tract_Subset", "block_group": "Block_Group",
    "block": "Block",
}  # fmt: skip
LEVEL_SUFFIXES = ("_part", "_optimized")  # of levels of another tree
WHOLE_STATE_LEVEL = "State_Total"  # states above their parts, which are not measured
BLOCK_CODE_DIGITS = 15  # of the code of a block
PART_FLAG_PATTERN = r"^([01])\|"  # before the code of a part
RULE_NAMES = {"exact": "total", "facilities": "hhgq_total"}


def name_level(level: str, levels: tuple[str, ...]) -> str:
    """Return the Bureau's name of a level.

    >>> levels = ("state", "state_part", "block_group_optimized")
    >>> [name_level(level, levels) for level in levels]
    ['State_Total', 'State', 'Block_Group']
    """
    if f"{level}{LEVEL_SUFFIXES[0]}" in levels:
        return WHOLE_STATE_LEVEL
    plain = level
    for ending in LEVEL_SUFFIXES:
        plain = plain.removesuffix(ending)
    return LEVEL_NAMES.get(plain, level)


def rename_levels(folder: Path, levels: tuple[str, ...], workload: Workload) -> None:
    """Write every level of a noisy measurement file again under the Bureau's names, and drop the old one."""
    for level in levels:
        name = make_file_name(level)
        own = path_in(folder, name, ".parquet").rename(path_in(folder, f"own-{name}", ".parquet"))
        new = path_in(folder, make_file_name(name_level(level, levels)), ".parquet")
        for kind in ("DPQuery", "Constraint"):
            files = list_table_files(own / kind)
            (new / kind).mkdir(parents=True, exist_ok=True)
            _write(files, new / kind, level, workload)
            (own / kind).rmdir()
        own.rmdir()


def _write(files: list[Path], folder: Path, level: str, workload: Workload) -> None:
    """Move the rows of files to a folder for each state; those of the nation and of other codes stay beside them."""
    whole = LEVEL_NAMES.get(level) == "US"
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for batch in (batch for file in files for batch in _batches(file)):
            frame = _rename_rows(pl.DataFrame(pa.Table.from_batches([batch])), workload)
            state = (
                pl.lit("") if whole else pl.col("geocode").str.extract(r"^(?:[01]\|)?(\d\d)").fill_null("")
            )
            geocode = pl.col("geocode").str.replace(PART_FLAG_PATTERN, "$1")
            if level == workload.levels[-1]:
                long = pl.concat_str(
                    geocode.str.slice(0, 11), geocode.str.slice(11, 1), geocode.str.slice(11, 4)
                )
                geocode = pl.when(geocode.str.len_chars() == BLOCK_CODE_DIGITS).then(long).otherwise(geocode)
            parts = frame.with_columns(state.alias("stirred:state"), geocode.alias("geocode"))
            for part in parts.partition_by("stirred:state", maintain_order=True):
                code = str(part["stirred:state"][0])
                table = part.drop("stirred:state").to_arrow()
                if code not in writers:
                    place = folder / f"State={code}" if code else folder
                    place.mkdir(exist_ok=True)
                    writers[code] = stack.enter_context(
                        pq.ParquetWriter(place / "part-0.parquet", table.schema, compression="zstd")
                    )
                writers[code].write_table(table)


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, and delete it at the end."""
    with pq.ParquetFile(file) as open_file:
        for group in range(open_file.num_row_groups):
            yield from open_file.iter_batches(batch_size=MAX_NODES_PER_WRITE, row_groups=[group])
    file.unlink()


def _rename_rows(frame: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return the rows with the Bureau's names of constraints and recodes."""
    names: dict[str, str] = {}
    for rule in workload.rules:
        if rule.kind in RULE_NAMES:
            names |= {
                f"{rule.name}{end}_con": f"{RULE_NAMES[rule.kind]}{end}_con" for end in ("", "_lb", "_ub")
            }
    axes = [axis.name for axis in workload.histogram.axes]
    every = pl.col("query_name") == "detailed_dpq"
    return frame.with_columns(
        pl.col("query_name").replace(names),
        pl.col("variance").cast(pl.Float32),
        *(pl.when(every).then(pl.lit("detailed")).otherwise(pl.col(axis)).alias(axis) for axis in axes),
    )


# The noise of a run, from its noisy measurement file and that of a run without noise; for audits on invented censuses.


def measure_noise(
    noisy: Mechanism,
    exact: Mechanism,
    census: "Census",
    workloads: Sequence[str],
    *,
    key: Key,
    engine: Engine | None,
) -> list[MeasuredNoise]:
    """Run with and without noise, both with their noisy measurement files, and take the difference."""
    with TemporaryDirectory() as folder:
        places = [Path(folder) / "noisy", Path(folder) / "exact"]
        for one, place in zip((noisy, exact), places, strict=True):
            place.mkdir()
            one.release(census, key=key, engine=engine, out=place)
        return [
            one
            for name in workloads
            for one in _subtract_answers(places[0] / f"nmf-{name}", places[1] / f"nmf-{name}", name)
        ]


def _subtract_answers(noisy: Path, exact: Path, workload: str) -> Iterator[MeasuredNoise]:
    """Yield published answers minus exact ones, by level and query, and by the part of ρ² of each.

    A geounit with one child also spends the child's part, so a query may have several parts at one level.
    """
    for folder in sorted(noisy.glob("*.parquet/DPQuery")):
        files = list_table_files(folder)
        if not files:
            continue
        measured = pa.concat_tables([pq.read_table(file) for file in files])
        true = pa.concat_tables([pq.read_table(exact / file.relative_to(noisy)) for file in files])
        level = folder.parent.stem
        names = measured["query_name"].to_pylist()
        parts = measured["plb"].to_pylist()
        answers, truths = measured["value"].to_pylist(), true["value"].to_pylist()
        found: dict[tuple[str, str], list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
        for name, part, answer, truth in zip(names, parts, answers, truths, strict=True):
            difference = np.array(answer, np.int64) - np.array(truth, np.int64)
            found.setdefault((name, part), []).append(difference)
        for (name, part), noise in sorted(found.items()):
            spent = Fraction(part)
            yield MeasuredNoise(
                name=f"{workload} {level} {name.removesuffix('_dpq')}",
                noise=np.concatenate(noise),
                kind="gaussian",
                parameter=1 / spent,
                loss=spent,
            )
