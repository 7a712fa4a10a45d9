"""A packet: a release on disk, in a public part that may be copied anywhere and an internal part that may not."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.errors import InputError
from stirred.mechanisms.contents import digest
from stirred.publish.packet.checksums import PUBLIC


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that lies in a folder; reads only its public part unless asked."""

    folder: Path

    @property
    def public(self) -> Path:
        """The public part (a copy of it is itself a packet)."""
        return self.folder / PUBLIC if (self.folder / PUBLIC).is_dir() else self.folder

    def receipt(self) -> dict[str, object]:
        """How it was made."""
        return self._json("receipt.json")

    def table_names(self) -> list[str]:
        """The published tables."""
        return sorted(path.stem for path in (self.public / "tables").glob("*.parquet"))

    def tables(self) -> dict[str, str]:
        """The published tables with the record type each counts, as the plan states them, or else the receipt."""
        path = self.public / "plan.toml"
        if path.exists():
            try:
                plan = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise InputError(
                    "this is no packet",
                    why="plan.toml is damaged",
                    fix="give the folder stirred run wrote",
                ) from None
            stated: object = {
                item["name"]: item.get("record_type", "household") for item in plan.get("table", [])
            }
        else:
            stated = self.receipt().get("tables")
        known = stated if isinstance(stated, dict) else {}
        return {name: str(known.get(name, "household")) for name in self.table_names()}

    def read_tables(self) -> dict[str, pa.Table]:
        """The published tables themselves."""
        return {
            name: pq.read_table(self.public / "tables" / f"{name}.parquet") for name in self.table_names()
        }

    def contents(self) -> dict[str, str]:
        """What its records and tables say, each by a digest that does not see who wrote the files."""
        self.receipt()
        found = {}
        for folder in [*sorted(self.public.glob("data*")), self.public / "tables"]:
            for path in sorted(folder.glob("*.parquet")):
                files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
                found[f"{folder.name}/{path.stem}"] = digest(pads.dataset([str(file) for file in files]))
        return found

    def _json(self, name: str) -> dict[str, object]:
        try:
            document = json.loads((self.public / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(
                "this is no packet",
                why=f"{name} is missing or damaged",
                fix="give the folder stirred run wrote",
            ) from None
        if not isinstance(document, dict):
            raise InputError(
                "this is no packet",
                why=f"{name} holds something else",
                fix="give the folder stirred run wrote",
            )
        return document
