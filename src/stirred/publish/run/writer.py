"""Write the files of a packet: records, tables, CSV copies and documents; every packet is written here."""

import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from stirred._support import make_file_name, make_file_names, pads, path_in, pc
from stirred.census import Census, Schema
from stirred.engine import Engine, Progress
from stirred.engine.tables import write_released
from stirred.languages import Language
from stirred.mechanisms.release import Release, find_own_table, scan_records
from stirred.publish.check import require_kept
from stirred.publish.composition import PlanPromise, build_account
from stirred.publish.documents import PacketDocuments
from stirred.publish.packet.checksums import INTERNAL, PUBLIC, seal
from stirred.publish.packet.guide import DATA_PACKAGE, describe_package, write_guide
from stirred.publish.packet.lookup import describe_tables, prepare_table, write_labels
from stirred.publish.packet.receipt import build_receipt, write_json
from stirred.publish.plan.description import Plan, TablePlan
from stirred.spec import Specification

# Records and tables as CSV, batch by batch: a file of any size needs the memory of a few batches.

ROWS_PER_BATCH = 65_536  # in a batch
FORMULA_PATTERN = "^[=+\\-@\\t\\r]"  # the first characters of what a spreadsheet computes
NUMBER_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def write_csv(data: "pa.Table | pads.Dataset", path: Path, *, escape: bool = True) -> None:
    """Write the rows in their order, codes as the texts that they stand for.

    With ``escape`` texts that a spreadsheet would compute, such as ``=1+1``, begin with an apostrophe; numbers do not.
    """
    schema = pa.schema(
        [(_escape_name(field.name) if escape else field.name, _plain(field.type)) for field in data.schema]
    )
    with pa.csv.CSVWriter(str(path), schema) as file:
        for batch in _batches(data):
            columns = [column.cast(_plain(column.type)) for column in batch.columns]
            columns = [_escape_column(column) for column in columns] if escape else columns
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _escape_column(column: pa.Array) -> pa.Array:
    """Prefix an apostrophe to texts that a spreadsheet would compute (OWASP, CSV injection)."""
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    computed = pc.and_(
        pc.match_substring_regex(column, FORMULA_PATTERN),
        pc.invert(pc.match_substring_regex(column, NUMBER_PATTERN)),
    )
    if not pc.any(computed).as_py():
        return column
    mark, nothing = (
        pa.scalar("'", column.type),
        pa.scalar("", column.type),
    )  # pyarrow joins texts of one type only
    return pc.if_else(computed, pc.binary_join_element_wise(mark, column, nothing), column)


def _escape_name(name: str) -> str:
    """Escape a name of a column as a text; written out, because Arrow loads pandas to make an array of it."""
    computed = re.search(FORMULA_PATTERN, name) and not re.search(NUMBER_PATTERN, name)
    return f"'{name}" if computed else name


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _batches(data: "pa.Table | pads.Dataset") -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table):
        yield from data.to_batches(max_chunksize=ROWS_PER_BATCH)
        return
    for name in data.files:
        # one row group at a time: a scan of the whole file reads ahead and keeps what it read
        with pq.ParquetFile(name, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(batch_size=ROWS_PER_BATCH, row_groups=[group], use_threads=False)


# The files of a release in a packet: records by type, and what the mechanism adds of itself.

MECHANISM_FOLDER = "mechanism"  # the folder of what a mechanism adds to the records


def store(release: Release, folder: Path) -> None:
    """Copy a release into a folder; its files belong to whoever made it."""
    folder.mkdir()
    for name, data in release.microdata.items():
        _copy(data, path_in(folder, name, ".parquet"))
    own = _store_tables(release, folder, release.files)
    for path in release.files:
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, own / path.name)


def move(release: Release, folder: Path, work: Path) -> None:
    """Move a release into a folder; all that is left in ``work`` is the mechanism's own."""
    folder.mkdir()
    for name, data in release.microdata.items():
        _move(data, path_in(folder, name, ".parquet"))
    left = sorted(work.iterdir())
    own = _store_tables(release, folder, left)
    for path in left:
        path.replace(own / path.name)


def _store_tables(release: Release, folder: Path, files: Sequence[Path]) -> Path:
    """Write the mechanism's own tables; returns the folder of its own files, made where there are any."""
    own = folder / MECHANISM_FOLDER
    if release.tables or files:
        own.mkdir()
    names = make_file_names(release.tables)
    for name, table in release.tables.items():
        write_released(table, path_in(own, names[name], ".parquet"))
    return own


def store_internal(release: Release, folder: Path) -> None:
    """Write what only the office may see of a release; a release without it leaves no folder."""
    names = make_file_names(release.internal)
    for name, table in release.internal.items():
        folder.mkdir(parents=True, exist_ok=True)
        write_released(table, path_in(folder, names[name], ".parquet"))


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(content: bytes) -> pa.Table:
    """Return the table that was written as bytes."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def locate_release(release: Release, folder: Path) -> Release:
    """Return the release with records that are read from a folder."""
    return replace(
        release,
        microdata={name: pads.dataset(path_in(folder, name, ".parquet")) for name in release.microdata},
    )


def _move(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """Move the Parquet file or folder of a record type."""
    if isinstance(data, pa.Table):
        write_released(data, path)
        return
    sources = [Path(name) for name in data.files]
    if len(sources) == 1:
        sources[0].replace(path)
    else:
        path.mkdir()
        for index, source in enumerate(sources):
            source.replace(path / f"part-{index:05d}.parquet")
    for folder in {source.parent for source in sources if source.parent.suffix == ".parquet"}:
        shutil.rmtree(folder)  # of a data set in several files: it is not the mechanism's own


def _copy(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """Copy the Parquet file or folder of a record type, which belongs to whoever made the release."""
    if isinstance(data, pa.Table):
        write_released(data, path)
        return
    sources = [Path(name) for name in data.files]
    if len(sources) == 1:
        shutil.copyfile(sources[0], path)
        return
    path.mkdir()
    for index, source in enumerate(sources):
        shutil.copyfile(source, path / f"part-{index:05d}.parquet")


# The one writer of packets: a plan and its releases become the files of a packet, whichever way they were made.


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketContent:
    """Content of a packet: the releases of a plan's mechanisms, and the promise of the whole."""

    plan: Plan
    schema: Schema
    specification: Specification
    releases: tuple[Release, ...]
    engine: Engine
    promise: PlanPromise | None = None  # of a plan with several mechanisms: what each of them adds


def data_folder(plan: Plan, number: int) -> str:
    """Return the folder of a mechanism's records in the public part."""
    return "data" if len(plan.steps) == 1 else f"data-{number + 1}"


def write_packet(
    content: PacketContent,
    part: Path,
    *,
    progress: Progress,
    truth: Census | None = None,
    internal: bool = False,
) -> None:
    """Write the public part; the records lie in it already.

    The internal part has the comparison with the ``truth``, and where it is wanted (``internal``) what the mechanisms
    tell the office alone.
    """
    require_kept(content.releases)
    plan, public = content.plan, part / PUBLIC
    tables = list_tables(content)
    made = _tables(content, tables, public, progress)
    if not plan.microdata:
        for folder in public.glob("data*"):
            # it loses its name first: a run that is killed here would find half of it, and take it for a forged one
            gone = folder.replace(part / f"{folder.name}.gone")
            shutil.rmtree(gone)
        content = replace(content, releases=tuple(replace(r, microdata={}) for r in content.releases))
    elif "csv" in plan.formats:
        for number, release in enumerate(content.releases):
            for name, data in release.microdata.items():
                write_csv(data, path_in(public / data_folder(plan, number), name, ".csv"))
    progress("report", 0, 1)
    counted = {table.name: table.record_type for table, _ in tables}
    write_json(
        public / "receipt.json",
        build_receipt(
            plan,
            content.releases,
            tables=counted,
            engine=content.engine.name,
            open_network=getattr(content.engine, "open_network", ""),
            account=build_account(plan, content.promise),
        ),
    )
    (public / "plan.toml").write_text(plan.text, encoding="utf-8")
    write_labels(public, content.schema, [release.labels for release in content.releases])
    write_json(public / DATA_PACKAGE, _describe_columns(content, tables, made))
    shown = {table.name: (table.by, made[table.name]) for table, _ in tables}
    papers = PacketDocuments.build(
        plan,
        content.schema,
        content.specification,
        content.releases,
        shown,
        content.engine,
        promise=content.promise,
    )
    papers.write_public(public)
    private = all(release.private for release in content.releases)
    write_guide(public, title=plan.title, language=Language.of(plan.language), private=private)
    seal(public, content.engine.digest_files)
    told = internal and any(release.internal for release in content.releases)
    if truth is not None or told:
        inside = part / INTERNAL
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir(mode=0o700)
        if truth is not None:
            papers.write_internal(truth, content.releases, made, inside, content.engine)
        for number, release in enumerate(content.releases) if told else ():
            store_internal(release, inside / data_folder(plan, number))
        seal(inside, content.engine.digest_files)
    progress("report", 1, 1)


def _describe_columns(
    content: PacketContent, tables: Sequence[tuple[TablePlan, int]], made: Mapping[str, pa.Table]
) -> dict[str, object]:
    """Return the document of all released columns; it names the CSV copy of a file where there is one."""
    kind = "csv" if "csv" in content.plan.formats else "parquet"
    records = (
        (f"{data_folder(content.plan, number)}/{name}.{kind}", name, data.schema)
        for number, release in enumerate(content.releases)
        for name, data in sorted(release.microdata.items())  # a run that is taken up reads them in this order
    )
    counted = (
        (f"tables/{table.name}.{kind}", table.record_type, made[table.name].schema) for table, _ in tables
    )
    return describe_package(
        content.schema, title=content.plan.title, resources=itertools.chain(records, counted)
    )


def list_tables(content: PacketContent) -> list[tuple[TablePlan, int]]:
    """Return the plan's tables and those of the mechanisms, each with the number of its mechanism."""
    found = [
        (table, _choose_source(content.releases, table) if table.source is None else table.source)
        for table in content.plan.tables
    ]
    names = {table.name for table in content.plan.tables}
    stated = {frozenset(table.by) for table in content.plan.tables if table.source is None}
    for number, (step, release) in enumerate(zip(content.plan.steps, content.releases, strict=True)):
        for name, by in step.mechanism.list_own_tables(release).items():
            own = step.source is not None or "standard_error" in release.tables[name].column_names
            if frozenset(by) in stated and not own:
                continue
            file = make_file_name(name)
            called = file if file not in names else make_file_name(f"{step.label}-{name}")
            if called not in names:
                record_type = step.mechanism.record_type
                found.append(
                    (TablePlan(name=called, record_type=record_type, by=by, own=name if own else ""), number)
                )
                names.add(called)
    return found


def _choose_source(releases: Sequence[Release], table: TablePlan) -> int:
    """Choose the release a plan table is computed from."""
    numbers = range(len(releases))
    whole = (n for n in numbers if _columns(releases[n], table) >= set(table.variables))
    some = (n for n in numbers if table.record_type in releases[n].microdata)
    own = (n for n in numbers if find_own_table(releases[n], table.by) is not None)
    return next((n for found in (whole, own, some) for n in found), 0)


def _columns(release: Release, table: TablePlan) -> set[str]:
    """Return the columns of the released records that a table may count by."""
    record = None if release.schema is None else release.schema.record(table.record_type)
    if table.record_type not in release.microdata or record is None:
        return set()
    types = (table.record_type, record.linked_to)
    return {
        name
        for kind in types
        if kind and kind in release.microdata
        for name in scan_records(release.microdata[kind]).collect_schema().names()
    }


MAX_CSV_ROWS = 1_000_000  # a table has a CSV file too, unless it is so long that a plan must ask for it


def _tables(
    content: PacketContent, tables: Sequence[tuple[TablePlan, int]], public: Path, progress: Progress
) -> dict[str, pa.Table]:
    folder = public / "tables"
    folder.mkdir(exist_ok=True)
    made: dict[str, pa.Table] = {}
    writers: dict[str, Callable[[pa.Table, Path], None]] = {"parquet": write_released, "csv": write_csv}
    for index, (table, source) in enumerate(tables):
        progress("tables", index, len(tables))
        mechanism, release = content.plan.mechanisms[source], content.releases[source]
        made[table.name] = prepare_table(table.tabulate(release, mechanism, engine=content.engine))
        usual = ("parquet", "csv") if made[table.name].num_rows <= MAX_CSV_ROWS else ("parquet",)
        for name in dict.fromkeys((*usual, *content.plan.formats)):
            writers[name](made[table.name], path_in(folder, table.name, f".{name}"))
    if tables:
        methods = [mechanism.name for mechanism in content.plan.mechanisms]
        words = describe_tables(Language.of(content.plan.language), methods)
        (folder / "README.txt").write_text(words, encoding="utf-8")
    progress("tables", len(tables), len(tables))
    return made
