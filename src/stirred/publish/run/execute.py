"""From plan to packet: resumable, atomic, and for the same key and census the same bytes.

Everything is built in ``OUT.part`` and renamed to ``OUT`` at the end. A step is finished when its folder has its final
name; an interrupted run starts over at the first unfinished step, and since all noise is a function of the key, the
result is the packet of an undisturbed run.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.census import Census
from stirred.census.readers.paths import far, resolve
from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.engine.choice import engine_named
from stirred.errors import BudgetError, InputError, PrivacyError
from stirred.mechanisms.base import Check, Mechanism, Release
from stirred.mechanisms.released import own_table
from stirred.publish.packet.checksums import INTERNAL, PUBLIC, seal
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.receipt import receipt, write_json
from stirred.publish.plan.description import Plan, TablePlan
from stirred.publish.run import documents
from stirred.publish.run.csv_files import write_csv
from stirred.publish.run.tables import check_variables, tabulate
from stirred.spec import NormalizedRenyi, Specification

log = logging.getLogger("stirred.run")
OWN = "mechanism"  # the folder of what a mechanism adds to the records


def promise(plan: Plan, census: Census, engine: Engine | None = None) -> Specification:
    """The specification of all that the plan publishes: the mechanisms' composed, within the plan's limit."""
    whole = [mechanism.specification(census, engine=engine) for mechanism in plan.mechanisms]
    total = whole[0]
    for specification in whole[1:]:
        total = total + specification
    zcdp = isinstance(total.output_premetric, NormalizedRenyi)
    spent, symbol = (total.rho_squared, "ρ²") if zcdp else (total.budget, "ε")
    if plan.limit is not None and not spent <= plan.limit:
        over = f", difference {spent - plan.limit}" if spent.is_finite and plan.limit.is_finite else ""
        raise BudgetError(
            "the plan spends more than its limit",
            why=f"requested {symbol} = {spent}, limit {plan.limit}{over}",
            fix="lower the rate of loss (a higher swap rate, a smaller ρ²) or have the limit raised by its owner",
        )
    return total


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan that nothing speaks against: its census, its promise and the engine it runs on."""

    census: Census
    specification: Specification
    engine: Engine


def prepare(plan: Plan, out: Path, engine: Engine | None = None) -> Prepared:
    """Everything that can be refused is refused here, before a key is drawn or a byte is written."""
    if out.exists():
        raise InputError(
            f"{out.name} exists already",
            why="a packet is never overwritten",
            fix="choose another --out, or move the old packet away",
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(
            f"cannot write beside {out.name}",
            why="its folder does not exist or may not be written to",
            fix="make the folder first, or choose another --out",
        )
    place = engine or engine_named(plan.engine)
    census = plan.census(place)
    for table in plan.tables:
        check_variables(census, table)
    for mechanism in plan.mechanisms:
        mechanism.refuse(census, place)
    specification = promise(plan, census, place)
    if not specification.budget.is_finite:
        raise PrivacyError(
            "the plan protects nothing",
            why="its protection loss budget is infinite",
            fix="a swap rate lies strictly between 0 and 1, and ρ² is finite",
        )
    return Prepared(census, specification, place)


def run(
    plan: Plan,
    out: str | Path,
    *,
    key: Key,
    engine: Engine | None = None,
    progress: Progress | None = None,
    internal: bool = True,
    prepared: Prepared | None = None,
) -> Packet:
    """Run a plan and leave a sealed packet at ``out``; ``prepared`` spares looking at the plan a second time."""
    out = Path(out)
    say: Progress = progress or silent
    say("promise", 0, 1)
    ready = prepared or prepare(plan, out, engine)
    census, specification, place = ready.census, ready.specification, ready.engine
    say("promise", 1, 1)
    part = out.with_name(out.name + ".part")
    (part / "state").mkdir(parents=True, exist_ok=True)
    _same_run(part, plan, key, census)
    public = part / PUBLIC
    public.mkdir(exist_ok=True)
    releases: list[Release] = []
    for index, mechanism in enumerate(plan.mechanisms):
        folder = public / "data" if len(plan.mechanisms) == 1 else public / f"data-{index + 1}"
        releases.append(_release(mechanism, census, key, place, part, folder, say))
    for release in releases:
        broken = [check.invariant for check in release.checks if not check.kept]
        if broken:
            raise PrivacyError(
                "an invariant was not kept", why=broken[0], fix="nothing was released; report this"
            )
    tables = _tables(plan, releases, public, place, say)
    if not plan.microdata:
        for folder in public.glob("data*"):
            shutil.rmtree(folder)
        releases = [replace(release, microdata={}) for release in releases]
    elif "csv" in plan.formats:
        _microdata_csv(releases, public)
    say("report", 0, 1)
    made = receipt(plan.title, releases, plan_sha256=plan.digest, engine=place.name)
    write_json(public / "receipt.json", made)
    (public / "plan.toml").write_text(plan.text, encoding="utf-8")
    documents.write_public(plan, census.schema, specification, releases, tables, public, place)
    seal(public)
    if internal and plan.utility:
        inside = part / INTERNAL
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        documents.write_internal(plan, census, specification, releases, tables, inside, place)
        seal(inside)
    say("report", 1, 1)
    shutil.rmtree(part / "state")
    part.replace(out)
    return Packet(out)


def _same_run(part: Path, plan: Plan, key: Key, census: Census) -> None:
    """A half-finished run may only be resumed by the same plan and key, on files that did not change since."""
    identity = key.digest(b"run", plan.digest.encode(), _files(census)).hex()
    place = part / "state" / "run"
    if place.exists() and place.read_text() != identity:
        raise PrivacyError(
            "an interrupted run of something else lies there",
            why=f"{part.name} was begun with another plan or key, or the files of the census changed since",
            fix=f"finish it with what it was begun with, or delete the folder {part.name}",
        )
    temporary = place.with_suffix(".new")
    temporary.write_text(identity)
    temporary.replace(place)


def _files(census: Census) -> bytes:
    """Names, sizes and times of the census's files: whether it may have changed, without reading it."""
    told = []
    for record in census.schema.records:
        near = tuple(name for name in record.source.files if not far(name))
        told += [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in resolve(near, census.folder)]
    return repr(told).encode()


def _release(
    mechanism: Mechanism,
    census: Census,
    key: Key,
    engine: Engine,
    part: Path,
    place: Path,
    progress: Progress,
) -> Release:
    """Run one mechanism, or take up what it finished before."""
    state = part / "state" / f"{place.name}.json"
    if place.exists() and state.exists():
        saved = json.loads(state.read_text())
        log.info("taken up: %s", place.name)
        return Release(
            mechanism=mechanism.name,
            parameters=mechanism.parameters(),
            specification=mechanism.specification(census, engine=engine),
            microdata={name: pads.dataset(place / f"{name}.parquet") for name in saved["microdata"]},
            tables={name: pq.read_table(place / OWN / f"{name}.parquet") for name in saved["tables"]},
            checks=tuple(Check(**check) for check in saved["checks"]),
            notes=tuple(saved["notes"]),
            input_digest=saved["input_digest"],
            private=key.private,
            schema=census.schema,
            folder=census.folder,
        )
    shutil.rmtree(place, ignore_errors=True)
    work = part / "state" / f"{place.name}.work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    levels = part / "state" / f"{place.name}.levels"  # what the mechanism finished, and takes up again
    release = mechanism.release(census, key=key, engine=engine, out=work, state=levels, progress=progress)
    final = part / "state" / f"{place.name}.ready"
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir()
    for name, data in release.microdata.items():
        _store(data, final / f"{name}.parquet")
    # what the mechanism adds of itself: its tables, and files such as noisy measurements
    left = sorted(work.iterdir())
    if release.tables or left:
        (final / OWN).mkdir()
    for name, table in release.tables.items():
        pq.write_table(table, final / OWN / f"{name}.parquet")
    for path in left:
        path.replace(final / OWN / path.name)
    write_json(
        state,
        {
            "microdata": sorted(release.microdata),
            "tables": sorted(release.tables),
            "checks": [
                {"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers} for c in release.checks
            ],
            "notes": list(release.notes),
            "input_digest": release.input_digest,
        },
    )
    final.replace(place)
    shutil.rmtree(work, ignore_errors=True)
    return replace(
        release,
        microdata={name: pads.dataset(place / f"{name}.parquet") for name in release.microdata},
        schema=census.schema,
        folder=census.folder,
    )


def _store(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """One Parquet file for a record type, or a folder of them, moved rather than copied where it is on disk."""
    if isinstance(data, pads.Dataset):
        sources = [Path(name) for name in data.files]
        if len(sources) == 1:
            sources[0].replace(path)
        else:
            path.mkdir()
            for index, source in enumerate(sources):
                source.replace(path / f"part-{index:05d}.parquet")
        for folder in {source.parent for source in sources if source.parent.suffix == ".parquet"}:
            shutil.rmtree(folder)  # of a data set in several files: it is not the mechanism's own
        return
    pq.write_table(data, path)


def _tables(
    plan: Plan, releases: list[Release], public: Path, engine: Engine, progress: Progress
) -> dict[str, pa.Table]:
    folder = public / "tables"
    folder.mkdir(exist_ok=True)
    made: dict[str, pa.Table] = {}
    writers: dict[str, Callable[[pa.Table, Path], None]] = {"parquet": pq.write_table, "csv": write_csv}
    for index, table in enumerate(plan.tables):
        progress("tables", index, len(plan.tables))
        source = next((i for i, release in enumerate(releases) if _has(release, table)), 0)
        made[table.name] = tabulate(releases[source], table, plan.mechanisms[source], engine=engine)
        for name in dict.fromkeys(("parquet", *plan.formats)):
            writers[name](made[table.name], folder / f"{table.name}.{name}")
    progress("tables", len(plan.tables), len(plan.tables))
    return made


def _has(release: Release, table: TablePlan) -> bool:
    """Whether a release has the records that a table counts, or the table itself."""
    return table.record_type in release.microdata or own_table(release, table.by) is not None


def _microdata_csv(releases: list[Release], public: Path) -> None:
    for index, release in enumerate(releases):
        folder = public / ("data" if len(releases) == 1 else f"data-{index + 1}")
        for name, data in release.microdata.items():
            write_csv(data, folder / f"{name}.csv")
