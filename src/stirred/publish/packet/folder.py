"""A packet: a release on disk, in a public part that may be copied anywhere and an internal part that may not.

In a notebook it shows its title, its promise and its tables, from the public part alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.errors import InputError, StirredError, require_path
from stirred.publish.packet.checksums import PUBLIC
from stirred.spec.files import load
from stirred.spec.notebook import write_html_table
from stirred.text_formats import parse_json, read_plain_text

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from stirred.mechanisms.release import Check


NOT_PRIVATE = "NOT PRIVATE: made with a test key"


def render_packet(public: Path, receipt: Mapping[str, object], tables: Sequence[str]) -> str:
    """Return what a reader needs first, as HTML."""
    try:
        promise = str(load(public / "spec.json"))
    except StirredError as error:
        promise = error.what
    stated = receipt.get("mechanisms")
    names = (
        [str(made.get("name", "")) for made in stated if isinstance(made, Mapping)]
        if isinstance(stated, list)
        else []
    )
    rows = [
        ("promise", promise),
        ("mechanism", ", ".join(names)),
        ("tables", ", ".join(tables) or "none"),
        ("report", str(public / "report.html")),
    ]
    notes = [] if receipt.get("private") else [NOT_PRIVATE]
    return write_html_table(f"Packet: {receipt.get('title', '')}", rows, notes=notes)


def _list_read_errors() -> tuple[type[BaseException], ...]:
    """Return the error types of the reading libraries."""
    import polars as pl
    import pyarrow as pa

    return (
        pa.ArrowException,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        ValueError,
    )


@contextmanager
def replace_read_errors(name: str) -> Iterator[None]:
    """Replace errors of the reading libraries: a packet of any origin may be read before it is verified."""
    try:
        yield
    except _list_read_errors():  # evaluated when there is an error: a look-up need not load Arrow
        raise InputError(
            f"cannot read {name} of this packet",
            why="the file is damaged",
            fix="compare it with its checksums: stirred packet verify PACKET",
        ) from None


@contextmanager
def _replace_receipt_errors() -> Iterator[None]:
    """Replace errors of a receipt that states something else than a run states."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            "the receipt of this packet cannot be read",
            why="it lacks what a mechanism states, or states it in another form",
            fix="compare it with its checksums: stirred packet verify PACKET",
        ) from None


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that lies in a folder; reads only its public part unless asked."""

    folder: Path

    def __post_init__(self) -> None:
        require_path("the folder of a packet", self.folder, fix='st.Packet("packet")')
        object.__setattr__(self, "folder", Path(self.folder))

    def __repr__(self) -> str:
        return f"Packet({str(self.folder)!r})"

    def _repr_html_(self) -> str:
        """Return title, promise and tables as HTML, from the public part alone."""
        from stirred.spec.notebook import write_html_table

        try:
            return render_packet(self.public, self.receipt(), self.table_names())
        except InputError as error:
            return write_html_table(
                "Packet", [("folder", self.folder.name)], notes=[f"{error.what}: {error.why}"]
            )

    @property
    def public(self) -> Path:
        """Return the public part (a copy of it is itself a packet)."""
        return self.folder / PUBLIC if (self.folder / PUBLIC).is_dir() else self.folder

    def receipt(self) -> dict[str, object]:
        """Return the receipt: how the packet was made."""
        return self._json("receipt.json")

    def checks(self) -> "tuple[Check, ...]":
        """Return the invariants that were checked on the output."""
        from stirred.mechanisms.release import Check

        with _replace_receipt_errors():
            return tuple(
                Check(invariant=str(one["invariant"]), kept=bool(one["kept"]), numbers=int(one["numbers"]))
                for entry in self.mechanisms()
                for one in entry["invariants"]
            )

    def notes(self) -> tuple[str, ...]:
        """Return the notes of the mechanisms."""
        with _replace_receipt_errors():
            return tuple(str(note) for entry in self.mechanisms() for note in entry["notes"])

    def mechanisms(self) -> list[dict[str, Any]]:
        """Return what the receipt states of each mechanism: settings, parameters, ledger, invariants, notes."""
        stated = self.receipt().get("mechanisms")
        return stated if isinstance(stated, list) else []

    def table_names(self) -> list[str]:
        """Return the names of the published tables."""
        return sorted(path.stem for path in (self.public / "tables").glob("*.parquet"))

    def tables(self) -> dict[str, str]:
        """Return the published tables with the record type that each counts, as the receipt states them."""
        stated = self.receipt().get("tables")
        names = self.table_names()
        if not isinstance(stated, dict) or not set(names) <= set(stated):
            raise InputError(
                "the receipt does not list the tables of this packet",
                why="an earlier version of stirred wrote it, or a table was added",
                fix="make the packet again: python redo.py",
            )
        return {name: str(stated[name]) for name in names}

    def read_tables(self) -> "dict[str, pa.Table]":
        """Read all published tables."""
        return {name: self.table(name) for name in self.table_names()}

    def table(self, name: str) -> "pa.Table":
        """Read one published table."""
        import pyarrow.parquet as pq

        with replace_read_errors(f"tables/{name}.parquet"):
            return pq.read_table(self.public / "tables" / f"{name}.parquet")

    def frame(self, name: str) -> "pl.DataFrame":
        """Read one published table as a frame; load fewer libraries than :meth:`table`."""
        import polars as pl

        with replace_read_errors(f"tables/{name}.parquet"):
            return pl.read_parquet(self.public / "tables" / f"{name}.parquet")

    def has_mark(self, name: str, mark: str) -> bool:
        """Return whether the metadata of a published table carry a mark."""
        import polars as pl

        with replace_read_errors(f"tables/{name}.parquet"):
            return mark in pl.read_parquet_metadata(self.public / "tables" / f"{name}.parquet")

    def contents(self) -> dict[str, str]:
        """Return a digest of each record file and table that is independent of who wrote the files."""
        import pyarrow.dataset as pads

        from stirred.mechanisms.contents import digest

        self.receipt()
        found = {}
        for folder in [*sorted(self.public.glob("data*")), self.public / "tables"]:
            for path in sorted(folder.glob("*.parquet")):
                files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
                with replace_read_errors(f"{folder.name}/{path.name}"):
                    found[f"{folder.name}/{path.stem}"] = digest(pads.dataset([str(file) for file in files]))
        return found

    def _json(self, name: str) -> dict[str, object]:
        try:
            document = parse_json(read_plain_text(self.public / name))
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
