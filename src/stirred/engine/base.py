"""What a mechanism asks of the place where it runs.

Small jobs are mapped over tasks in memory (``map``). Jobs that do not fit are written as flows: rows that lie
somewhere (files, a cluster) in batches of no particular order, mapped batch by batch, exchanged into numbered parts so
that rows that belong together meet, and mapped part by part. Kernels are picklable and pure: what they return depends
on nothing but their arguments and what they were built with, so a task that runs twice changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import pyarrow as pa
import pyarrow.dataset as pads

if TYPE_CHECKING:
    from stirred.census import Census

T = TypeVar("T")
R = TypeVar("R")

BatchKernel = Callable[[pa.Table], pa.Table]
PartKernel = Callable[..., pa.Table]  # (part, one table for each exchanged flow) -> table
Steps = Callable[[int, int], None]  # told how many parts are done, of how many


class Progress(Protocol):
    """Receives how far a named step is; the same events feed the terminal, the web page and the log."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Progress that is told to nobody.

    >>> silent("read", 0, 1)
    """


class Flow(Protocol):
    """Rows in batches of no particular size or order; nothing happens until something is asked for."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        ...

    def map(self, kernel: BatchKernel, schema: pa.Schema) -> "Flow":
        """The kernel's output for every batch; it must not depend on where batches are cut."""
        ...

    def gathered(self) -> pa.Table:
        """All rows here, in no particular order: for small results, never for records."""
        ...


class Parts(Protocol):
    """Rows in numbered parts; all rows of a part are seen by one call of a kernel, in no particular order."""

    @property
    def number(self) -> int:
        """How many parts there are; some may be empty."""
        ...

    def map(self, kernel: PartKernel, schema: pa.Schema) -> "Parts":
        """The kernel's output for every part: ``kernel(part, table, …)``, a table for each flow that was exchanged."""
        ...

    def kept(self, steps: Steps | None = None) -> "Parts":
        """The same parts, made now and held (on disk), so that they can be mapped more than once."""
        ...

    def flow(self) -> Flow:
        """The rows of all parts, to be exchanged again."""
        ...

    def gathered(self, steps: Steps | None = None) -> pa.Table:
        """All rows here, in the order of the parts: for small results, never for records."""
        ...

    def write(self, folder: Path, name: str, steps: Steps | None = None) -> pads.Dataset:
        """The rows as Parquet at ``folder/name.parquet`` (a file, or a folder of files in the order of the parts)."""
        ...

    def drop(self) -> None:
        """Forget what was held; nothing of the census stays behind."""
        ...


class Engine(Protocol):
    """Runs pure kernels over independent groups (a stratum, a geounit, a parent), in any order."""

    name: ClassVar[str]

    def map(self, kernel: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Results in the order of the tasks, whatever ran first; in this process."""
        ...

    def fits(self, size: int) -> bool:
        """Whether a job may hold that many bytes in this process; if not, it goes by flows and parts."""
        ...

    def parts_for(self, size: int) -> int:
        """Into how many parts that many bytes are best cut."""
        ...

    def read(self, path: str | Path) -> "Census":
        """The census that a census.toml describes, counted by this engine."""
        ...

    def census(self, census: "Census") -> "Census":
        """The same census, whose counting is done by this engine."""
        ...

    def records(self, census: "Census", record_type: str, columns: Sequence[str]) -> Flow:
        """Records where they lie, as ``census.table`` gives them but without dictionaries."""
        ...

    def released(self, data: pa.Table | pads.Dataset) -> Flow:
        """Released records where they lie, without dictionaries."""
        ...

    def exchange(self, *flows: Flow, by: str, parts: int) -> Parts:
        """Bring rows together: the whole number in column ``by`` (0 to parts - 1) names the part of a row."""
        ...
