"""What an interrupted run has finished: kept in ``OUT.part/state`` until the packet is whole.

A step is finished when its folder has its final name. All noise is a function of the key, so that a run that is taken up
gives the packet of an undisturbed one.
"""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.census import Census
from stirred.census.readers.paths import far, resolve
from stirred.chance import Key
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Check, Mechanism, Release
from stirred.publish.packet.receipt import write_json
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Ledger, OutputPremetric, Specification
from stirred.spec.files_parts import part_from_json, part_to_json
from stirred.spec.ledger import Entry

log = logging.getLogger("stirred.run")
OWN = "mechanism"  # the folder of what a mechanism adds to the records


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run in its folder ``OUT.part``."""

    part: Path

    @property
    def state(self) -> Path:
        """The folder of what is finished; it is removed when the packet is whole."""
        return self.part / "state"

    def begin(self, plan: Plan, key: Key, census: Census) -> None:
        """Make the folder, or take it up for the same plan and key, on files that did not change since."""
        identity = key.digest(b"run", plan.digest.encode(), _files(census)).hex()
        place = self.state / "run"
        if place.exists() and place.read_text() != identity:
            raise PrivacyError(
                "an interrupted run of something else lies there",
                why=f"{self.part.name} was begun with another plan or key, or the files of the census changed since",
                fix=f"finish it with what it was begun with, or delete the folder {self.part.name}",
            )
        self.state.mkdir(parents=True, exist_ok=True)
        temporary = place.with_suffix(".new")
        temporary.write_text(identity)
        temporary.replace(place)

    def finished(
        self, place: Path, mechanism: Mechanism, census: Census, specification: Specification, key: Key
    ) -> Release | None:
        """The release that was finished before, or None."""
        told = self.state / f"{place.name}.json"
        if not place.exists() or not told.exists():
            return None
        saved = json.loads(told.read_text())
        log.info("taken up: %s", place.name)
        return Release(
            mechanism=mechanism.name,
            parameters=mechanism.parameters(),
            specification=specification,
            microdata={name: pads.dataset(place / f"{name}.parquet") for name in saved["microdata"]},
            tables={name: pq.read_table(place / OWN / f"{name}.parquet") for name in saved["tables"]},
            checks=tuple(Check(**check) for check in saved["checks"]),
            ledger=_ledger_from(saved["ledger"]),
            notes=tuple(saved["notes"]),
            settings=saved["settings"],
            input_digest=saved["input_digest"],
            private=saved["private"] and key.private,
            schema=census.schema,
            folder=census.folder,
        )

    def work(self, place: Path) -> Path:
        """An empty folder for what the mechanism writes."""
        shutil.rmtree(place, ignore_errors=True)
        work = self.state / f"{place.name}.work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        return work

    def finish(self, release: Release, place: Path, work: Path) -> Release:
        """Keep a release under its final name; records that lie in ``work`` are moved, not copied."""
        final = self.state / f"{place.name}.ready"
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        for name, data in release.microdata.items():
            _move(data, final / f"{name}.parquet")
        left = sorted(work.iterdir())
        own = _store_tables(release, final, left)
        for path in left:
            path.replace(own / path.name)
        write_json(
            self.state / f"{place.name}.json",
            {
                "microdata": sorted(release.microdata),
                "tables": sorted(release.tables),
                "checks": [
                    {"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers} for c in release.checks
                ],
                "ledger": _ledger_to(release.ledger),
                "notes": list(release.notes),
                "settings": dict(release.settings),
                "input_digest": release.input_digest,
                "private": release.private,
            },
        )
        final.replace(place)
        shutil.rmtree(work, ignore_errors=True)
        return located(release, place)


def store(release: Release, folder: Path) -> None:
    """Copy a release into a folder; its files belong to whoever made it."""
    folder.mkdir()
    for name, data in release.microdata.items():
        _copy(data, folder / f"{name}.parquet")
    own = _store_tables(release, folder, release.files)
    for path in release.files:
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, own / path.name)


def _store_tables(release: Release, folder: Path, files: Sequence[Path]) -> Path:
    """Write the mechanism's own tables; returns the folder of its own files, made where there are any."""
    own = folder / OWN
    if release.tables or files:
        own.mkdir()
    for name, table in release.tables.items():
        pq.write_table(table, own / f"{name}.parquet")
    return own


def located(release: Release, folder: Path) -> Release:
    """The release with records that are read from a folder."""
    return replace(
        release, microdata={name: pads.dataset(folder / f"{name}.parquet") for name in release.microdata}
    )


def _move(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """One Parquet file for a record type, or a folder of them, moved where it is on disk."""
    if not isinstance(data, pads.Dataset):
        pq.write_table(data, path)
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
    """The same, copied: the files belong to whoever made the release."""
    if not isinstance(data, pads.Dataset):
        pq.write_table(data, path)
        return
    sources = [Path(name) for name in data.files]
    if len(sources) == 1:
        shutil.copyfile(sources[0], path)
        return
    path.mkdir()
    for index, source in enumerate(sources):
        shutil.copyfile(source, path / f"part-{index:05d}.parquet")


def _files(census: Census) -> bytes:
    """Names, sizes and times of the census's files: whether it may have changed, without reading it."""
    told = []
    for record in census.schema.records:
        near = tuple(name for name in record.source.files if not far(name))
        told += [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in resolve(near, census.folder)]
    return repr(told).encode()


def _ledger_to(ledger: Ledger | None) -> dict[str, object] | None:
    if ledger is None:
        return None
    return {
        "limit": None if ledger.limit is None else ledger.limit.to_json(),
        "output_premetric": part_to_json(ledger.output_premetric),
        "entries": [
            {
                "by": entry.by,
                "on": entry.on,
                "budget": entry.budget.to_json(),
                "delta": None if entry.delta is None else str(entry.delta),
            }
            for entry in ledger.entries
        ],
    }


def _ledger_from(document: Mapping[str, Any] | None) -> Ledger | None:
    if document is None:
        return None
    return Ledger(
        limit=None if document["limit"] is None else Budget.from_json(document["limit"]),
        output_premetric=part_from_json(document["output_premetric"], OutputPremetric),
        entries=tuple(
            Entry(
                by=entry["by"],
                on=entry["on"],
                budget=Budget.from_json(entry["budget"]),
                delta=None if entry["delta"] is None else Fraction(entry["delta"]),
            )
            for entry in document["entries"]
        ),
    )
