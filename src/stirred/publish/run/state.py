"""What an interrupted run has finished: kept in ``OUT.part/state`` until the packet is whole.

A step is finished when its folder has its final name. All noise is a function of the key, so that a run that is taken up
gives the packet of an undisturbed one.
"""

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred._support import make_file_names, pads, path_in
from stirred.census import Census
from stirred.chance import Key
from stirred.chance.seals import AuthenticFolder, make_forged_error
from stirred.chance.streams import read_keystream
from stirred.closed_files import make_closed_folder
from stirred.engine import Engine, Local
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.release import Check, Guard, Release
from stirred.publish.packet.checksums import PUBLIC, FolderEntry, list_entries
from stirred.publish.packet.receipt import guard_lines, json_bytes
from stirred.publish.plan.description import Plan
from stirred.publish.run.inputs import changed_input, input_identity
from stirred.publish.run.part import PartFolder, delete
from stirred.publish.run.writer import MECHANISM_FOLDER, locate_release, move, table_bytes, table_of
from stirred.spec import Budget, Ledger, OutputPremetric, Specification
from stirred.spec.algebra import Entry
from stirred.spec.files.document import part_from_json, part_to_json

log = logging.getLogger("stirred.run")


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run in its folder ``OUT.part``, which carries the identity of the run as its mark; an engine digests its files."""

    folder: PartFolder
    engine: Engine = field(default_factory=Local)

    @property
    def part(self) -> Path:
        """Return the folder of all that the run makes."""
        return self.folder.path

    @property
    def state(self) -> Path:
        """Return the folder of what is finished; it is removed when the packet is whole."""
        return self.part / "state"

    def remove(self) -> None:
        """Delete everything, so that the corrected run starts anew after a refusal."""
        with contextlib.suppress(OSError):
            self._forget()
        self.folder.remove()

    def _forget(self) -> None:
        """Delete the state; it loses its name first, because half a state would look like a forged one."""
        gone = self.part / "gone"
        delete(gone)
        if self.state.is_dir():
            self.state.replace(gone)
        delete(gone)

    def begin(self, plan: Plan, key: Key, census: Census) -> None:
        """Make the folder, or take it up for the same plan and key, on files that did not change since."""
        self.folder.begin(_identity(plan, key, census, self.engine))
        if os.path.lexists(self.state) and (self.state.is_symlink() or not self.state.is_dir()):
            raise make_forged_error(self.part)
        make_closed_folder(self.state)

    def require_same_input(self, plan: Plan, key: Key, census: Census) -> None:
        """Refuse a packet of files that changed since the run began."""
        identity = _identity(plan, key, census, self.engine)
        if self.folder.mark() != identity.encode():
            raise changed_input()

    def clear_except(self, finished: Iterable[str]) -> None:
        """Delete all but what mechanisms finished: only files that this run writes are sealed."""
        keep = set(finished)
        self.folder.clear(self.state.name, PUBLIC)
        public = self.part / PUBLIC
        if public.is_symlink() or not public.is_dir():
            delete(public)
            public.mkdir()
        for path in public.iterdir():
            if path.name not in keep or path.is_symlink() or not path.is_dir():
                delete(path)

    def complete(self) -> None:
        """Give the packet its name: its public part is open as the system's mask says, its internal part is not."""
        self._forget()
        self.folder.complete()

    def _open_state(self, key: Key) -> AuthenticFolder:
        """Return the authenticated folder of what is finished, which only this run can have written."""
        return AuthenticFolder(self.state, key, self.folder.mark())

    def load_finished(
        self, place: Path, mechanism: Mechanism, census: Census, specification: Specification, key: Key
    ) -> Release | None:
        """Return the release that was finished before, or None."""
        told = self._open_state(key).read(f"{place.name}.json")
        if told is None or not place.is_dir():
            return None
        saved = json.loads(told)
        if not {"parameters", "labels", "effect"} <= saved.keys():
            return None  # an earlier version kept less of a release: it is made again
        _only_own(place, saved["files"], self.engine)
        log.info("taken up: %s", place.name)
        return Release(
            mechanism=mechanism.name,
            parameters=saved["parameters"],
            specification=specification,
            microdata={name: pads.dataset(path_in(place, name, ".parquet")) for name in saved["microdata"]},
            tables={
                name: pq.read_table(path_in(place / MECHANISM_FOLDER, file, ".parquet"))
                for name, file in make_file_names(saved["tables"]).items()
            },
            checks=tuple(Check(**check) for check in saved["checks"]),
            ledger=_ledger_from(saved["ledger"]),
            notes=tuple(saved["notes"]),
            guards=tuple(
                Guard(**{**guard, "rows": tuple(map(tuple, guard["rows"]))}) for guard in saved["guards"]
            ),
            settings=saved["settings"],
            input_digest=saved["input_digest"],
            private=saved["private"] and key.private,
            internal={
                name: self._read_internal(file, key)
                for name, file in _internal_files(place, saved["internal"]).items()
            },
            schema=census.schema,
            folder=census.folder,
            labels=saved["labels"],
            effect=None if saved["effect"] is None else ExpectedEffect(**saved["effect"]),
        )

    def _read_internal(self, file: str, key: Key) -> pa.Table:
        """Read the confidential log of a release that was finished before."""
        found = self._open_state(key).read(file)
        if found is None:
            raise make_forged_error(self.state)
        return table_of(_encrypt(found, key, file, self.folder.mark()))

    def work(self, place: Path) -> Path:
        """Return an empty folder for what the mechanism writes."""
        shutil.rmtree(place, ignore_errors=True)
        work = self.state / f"{place.name}.work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        return work

    def finish(self, release: Release, place: Path, work: Path, key: Key) -> Release:
        """Keep a release under its final name; records that lie in ``work`` are moved, not copied."""
        final = self.state / f"{place.name}.ready"
        shutil.rmtree(final, ignore_errors=True)
        move(release, final, work)
        for name, file in _internal_files(place, release.internal).items():
            content = table_bytes(release.internal[name])
            self._open_state(key).keep(file, _encrypt(content, key, file, self.folder.mark()))
        self._open_state(key).keep(
            f"{place.name}.json",
            json_bytes(
                {
                    "files": _digest_entries(list(list_entries(final)), self.engine),
                    "parameters": dict(release.parameters),
                    "labels": release.labels,
                    "microdata": sorted(release.microdata),
                    "tables": list(release.tables),
                    "checks": [
                        {"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers}
                        for c in release.checks
                    ],
                    "ledger": _ledger_to(release.ledger),
                    "notes": list(release.notes),
                    "guards": guard_lines(release.guards),
                    "settings": dict(release.settings),
                    "input_digest": release.input_digest,
                    "private": release.private,
                    "internal": list(release.internal),
                    "effect": None if release.effect is None else asdict(release.effect),
                }
            ),
        )
        final.replace(place)
        shutil.rmtree(work, ignore_errors=True)
        return locate_release(release, place)


def _internal_files(place: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{place.name}.{file}.internal" for name, file in make_file_names(names).items()}


def _encrypt(content: bytes, key: Key, name: str, run: bytes) -> bytes:
    """Encrypt content for the time of a run; the key stream depends on the run and on the name."""
    secret = key.digest(b"internal", run, name.encode())
    mask = read_keystream(secret, 0, len(content))
    return (np.frombuffer(content, np.uint8) ^ mask).tobytes()


def _identity(plan: Plan, key: Key, census: Census, engine: Engine) -> str:
    """Return the identity of a run: its plan and all that it reads, by content."""
    totals = () if plan.weights is None else plan.weights.recalibrate_to
    read = input_identity(census, key, [plan.folder / name for name in totals], engine)
    return key.digest(b"run", plan.digest.encode(), read).hex()


def _digest_entries(entries: Sequence[FolderEntry], engine: Engine) -> dict[str, str]:
    """Return the SHA-256 of every plain file of these entries."""
    plain = [entry for entry in entries if not entry.fault]
    found = engine.digest_files([entry.path for entry in plain])
    return {entry.name: digest.hex() for entry, digest in zip(plain, found, strict=True)}


def _only_own(place: Path, files: Mapping[str, str], engine: Engine) -> None:
    """Refuse files that are not as the run wrote them, and delete those that it did not write."""
    entries = list(list_entries(place))
    for entry in entries:
        if entry.name not in files:
            entry.path.unlink()
    own = [entry for entry in entries if entry.name in files]
    if any(entry.fault for entry in own) or _digest_entries(own, engine).items() != files.items():
        raise make_forged_error(place.parent.parent)


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
