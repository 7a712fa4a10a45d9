"""Rows made from subtrees, on disk in the folder of the release or held in memory, in the order of the spine."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from stirred.engine.base import Parts
from stirred.mechanisms.topdown.run.subtrees.published import DEPTH, TABLE, TAGS

ROWS = 1 << 16  # read at a time


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of parts; with a folder they are files there, which are deleted at the end."""

    data: pads.Dataset
    place: Path | None

    @staticmethod
    def of(rows: Parts, folder: Path | None, name: str) -> "Stored":
        """Compute the rows and store them."""
        if folder is None:
            return Stored(pads.dataset(rows.gathered()), None)
        return Stored(rows.write(folder, name), folder / f"{name}.parquet")

    def tables(self, depth: int | None = None, number: int | None = None) -> Iterator[pa.Table]:
        """All rows, or those of one table of a level without its tags."""
        names = [name for name in self.data.schema.names if name not in TAGS.names]
        chosen = None
        if depth is not None:
            chosen = (pc.field(DEPTH) == depth) & (pc.field(TABLE) == number)
        for batch in self.data.to_batches(columns=names, filter=chosen, batch_size=ROWS):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    def __enter__(self) -> "Stored":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.place is not None and self.place.is_dir():
            shutil.rmtree(self.place)
        elif self.place is not None:
            self.place.unlink(missing_ok=True)
