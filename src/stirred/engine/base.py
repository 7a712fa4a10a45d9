"""The protocol of an engine: what a mechanism needs from the place where it runs.

Small jobs are mapped over tasks in memory (``map``). Larger jobs are written as flows: rows that are stored
somewhere (files, a cluster) in batches of no particular order, mapped batch by batch, exchanged into numbered parts
so that rows that belong together are in one part, and mapped part by part. Kernels are picklable and pure: their
result depends only on their arguments and on the values they were built with, so a task may run twice.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from stirred._support import pads
from stirred.census import Census
from stirred.census.progress import Progress as Progress
from stirred.census.progress import silent as silent

CLUSTER_BYTES = 1 << 26  # bytes from which a file is worth a task of its own


class FileDigest(NamedTuple):
    """The SHA-256 of a file, with the size and the time of the last change that it had when it was read."""

    sha256: bytes
    size: int
    changed: int


def digest_plain(path: Path | str) -> bytes:
    """Return the SHA-256 of a plain file, read in pieces; do not follow a link or block on a pipe."""
    return digest_open(path).sha256


def digest_open(path: Path | str) -> FileDigest:
    """Return the SHA-256 of a plain file with what the system says of it."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        told = os.fstat(file.fileno())
        return FileDigest(hashlib.file_digest(file, "sha256").digest(), told.st_size, told.st_mtime_ns)


def digest_there(path: str) -> FileDigest | None:
    """Return the digest of a file as this machine sees it, or None where it cannot be read here."""
    try:
        return digest_open(path)
    except OSError:
        return None


def same_file(path: Path, found: FileDigest | None) -> bool:
    """Return whether what another machine read is the file that is here: its size and its last change are equal."""
    told = path.lstat()
    return found is not None and (found.size, found.changed) == (told.st_size, told.st_mtime_ns)


def choose_large(paths: Sequence[Path]) -> list[int]:
    """Return the places of the files that are worth tasks of their own; one alone is not."""
    large = [place for place, path in enumerate(paths) if path.lstat().st_size >= CLUSTER_BYTES]
    return large if len(large) > 1 else []


T = TypeVar("T")
R = TypeVar("R")

BatchKernel = Callable[[pa.Table], pa.Table]
PartKernel = Callable[..., pa.Table]  # (part, one table for each exchanged flow) -> table
Steps = Callable[[int, int], None]  # called with the number of finished parts and of all parts
Read = Callable[[int], None]  # called with the number of rows of a batch


class Flow(Protocol):
    """Rows in batches of no particular size or order; nothing is computed until rows are asked for."""

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of every batch."""
        ...

    def map(self, kernel: BatchKernel, schema: pa.Schema) -> "Flow":
        """Return the kernel's output for every batch; it must not depend on how rows are divided into batches."""
        ...

    def gather(self) -> pa.Table:
        """Collect all rows in this process, in no particular order: for small results, never for records."""
        ...


@dataclass(frozen=True, slots=True)
class PartRows:
    """The rows of one flow in one part, to be read more than once and some at a time."""

    schema: pa.Schema
    number: int
    read: Callable[[], Iterator[pa.Table]]

    @staticmethod
    def of(table: pa.Table) -> "PartRows":
        """Return the rows of a table.

        >>> PartRows.of(pa.table({"a": [1, 2]})).number
        2
        """
        return PartRows(table.schema, table.num_rows, lambda: iter([table]))


@runtime_checkable
class PiecewiseKernel(Protocol):
    """A kernel over parts that reads its part and returns its rows some at a time, so that neither is held whole."""

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        """Return all rows of a part that is given whole."""
        ...

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the same rows in the same order; the first piece when all of the part has been read."""
        ...

    def weigh(self, *flows: PartRows) -> int:
        """Return the most bytes that it holds of a part, from the number and the types of the rows."""
        ...


class Parts(Protocol):
    """Rows in numbered parts; all rows of a part are seen by one call of a kernel, in no particular order."""

    @property
    def number(self) -> int:
        """Return how many parts there are; some may be empty."""
        ...

    def map(self, kernel: PartKernel, schema: pa.Schema) -> "Parts":
        """Return the kernel's output for every part: ``kernel(part, table, …)``, one table per exchanged flow."""
        ...

    def keep(self, steps: Steps | None = None) -> "Parts":
        """Compute the parts now and keep them (on disk), so that they can be mapped more than once."""
        ...

    def flow(self) -> Flow:
        """Return the rows of all parts, to be exchanged again."""
        ...

    def gather(self, steps: Steps | None = None) -> pa.Table:
        """Collect all rows in this process, in the order of the parts: for small results, never for records."""
        ...

    def write(
        self, folder: Path, name: str, steps: Steps | None = None, *, ascending: Sequence[str] = ()
    ) -> "pads.Dataset":
        """Write the rows as Parquet to ``folder/name.parquet`` (a file, or a folder of files in the order of the parts).

        ``ascending`` names columns of growing numbers: their steps take less room than the numbers.
        """
        ...

    def stream(self, folder: Path, name: str, steps: Steps | None = None) -> Iterator[pa.Table]:
        """Return the rows in the order of the parts, some at a time; ``folder`` may hold them meanwhile."""
        ...

    def drop(self) -> None:
        """Delete what was kept, so that nothing of the census stays on disk."""
        ...


class Runner(Protocol):
    """Does tasks of this process side by side."""

    def map(self, kernel: Callable[[T], None], tasks: Iterable[T]) -> Iterator[None]:
        """Run the tasks, which return nothing."""
        ...


class Engine(Protocol):
    """Runs pure kernels over independent groups (a stratum, a geounit, a parent), in any order."""

    name: ClassVar[str]

    def map(self, kernel: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Run the tasks in this process, the first while later ones are made; results are in the order of the tasks."""
        ...

    def digest_files(self, paths: Sequence[Path]) -> list[bytes]:
        """Return the SHA-256 of plain files in their order, several at a time; no link is followed."""
        ...

    def fits(self, size: int) -> bool:
        """Return whether a job may hold that many bytes in this process; if not, it uses flows and parts."""
        ...

    def parts_for(self, size: int) -> int:
        """Return the best number of parts for that many bytes."""
        ...

    def read(self, path: str | Path) -> Census:
        """Return the census that a census.toml describes, counted by this engine."""
        ...

    def census(self, census: Census) -> Census:
        """Return the same census, counted by this engine."""
        ...

    def records(self, census: Census, record_type: str, columns: Sequence[str]) -> Flow:
        """Return a flow of records, as ``Census.table`` gives them but without dictionaries."""
        ...

    def stream_released(self, data: "pa.Table | pads.Dataset") -> Flow:
        """Return a flow of released records, without dictionaries."""
        ...

    def exchange(self, *flows: Flow, by: str, parts: int, read: Read | None = None) -> Parts:
        """Divide rows into parts: the integer in column ``by`` (0 to parts - 1) is the part of a row.

        ``read`` is called with the number of rows of each batch, if this process reads them; a cluster reports in ``kept``.
        """
        ...
