"""The one writer of packets: a plan and its releases become the files of a packet, whichever way they were made."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from stirred.census import Census, Schema
from stirred.engine import Engine, Progress
from stirred.engine.local.released import write_released
from stirred.file_names import make_file_name, path_in
from stirred.mechanisms.base import Release
from stirred.mechanisms.released import find_own_table, scan_records
from stirred.publish.before.account import build_account
from stirred.publish.before.promise import PlanPromise
from stirred.publish.before.refusals import require_kept
from stirred.publish.packet.checksums import INTERNAL, PUBLIC, seal
from stirred.publish.packet.labels import write_labels
from stirred.publish.packet.quoting import COLUMNS, prepare_table
from stirred.publish.packet.receipt import build_receipt, write_json
from stirred.publish.papers.documents import PacketDocuments
from stirred.publish.plan.description import Plan, TablePlan
from stirred.publish.run.csv_files import write_csv
from stirred.publish.run.files import store_internal
from stirred.spec import Specification


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
            account=build_account(plan, content.promise),
        ),
    )
    (public / "plan.toml").write_text(plan.text, encoding="utf-8")
    write_labels(public, content.schema, [release.labels for release in content.releases])
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
    seal(public)
    told = internal and any(release.internal for release in content.releases)
    if truth is not None or told:
        inside = part / INTERNAL
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir(mode=0o700)
        if truth is not None:
            papers.write_internal(truth, content.releases, made, inside, content.engine)
        for number, release in enumerate(content.releases) if told else ():
            store_internal(release, inside / data_folder(plan, number))
        seal(inside)
    progress("report", 1, 1)


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
        for name in dict.fromkeys(("parquet", *content.plan.formats)):
            writers[name](made[table.name], path_in(folder, table.name, f".{name}"))
    if tables:
        (folder / "README.txt").write_text(COLUMNS, encoding="utf-8")
    progress("tables", len(tables), len(tables))
    return made
