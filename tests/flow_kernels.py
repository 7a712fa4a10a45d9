"""Kernels for tests of engines: executors of Spark import them by this name."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

PART = pa.field("part", pa.int64())


@dataclass(frozen=True)
class Numbered:
    """Rows with the number of their part: the remainder of a column."""

    column: str
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        number = table.column(self.column).to_numpy() % self.parts
        return table.append_column(PART, pa.array(number.astype(np.int64)))


@dataclass(frozen=True)
class Renumbered(Numbered):
    """Rows on their way to other parts."""

    def __call__(self, table: pa.Table) -> pa.Table:
        made = super().__call__(table.drop_columns(["part"]))
        return made.select(table.column_names)


@dataclass(frozen=True)
class Sorted:
    """The rows of a part in the order of a column, and the part they came in."""

    column: str

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        seen = pa.array([part] * table.num_rows, pa.uint16())
        return table.append_column("seen", seen).sort_by(self.column)


def doubled(table: pa.Table) -> pa.Table:
    """Every row twice."""
    return pa.concat_tables([table, table])


def sizes(part: int, *tables: pa.Table) -> pa.Table:
    """How many rows each flow brought to a part; a row for every part, also for an empty one."""
    counts = {f"rows{i}": [table.num_rows] for i, table in enumerate(tables)}
    return pa.table({"seen": [part], **counts})


def matched(part: int, left: pa.Table, right: pa.Table) -> pa.Table:
    """The ids of one flow that are in the other."""
    both = np.intersect1d(left.column("id").to_numpy(), right.column("id").to_numpy())
    return pa.table({"id": pa.array(both.astype(np.uint64))})


def failing(part: int, table: pa.Table) -> pa.Table:
    """Stops with a value in its words."""
    raise ValueError(f"the value {table.column('t')[0]} is secret")


def refusing(part: int, table: pa.Table) -> pa.Table:
    """Stops with words of ours."""
    from stirred.errors import DataError

    raise DataError("column t: 3 values are wrong", why="they are", fix="mend them")


@dataclass(frozen=True)
class Keyed:
    """A kernel that carries a secret, and says it aloud when asked to fail."""

    secret: bytes
    fails: bool = False

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        if self.fails:
            raise ValueError(self.secret.decode())
        return table


def slow(part: int, table: pa.Table) -> pa.Table:
    """Takes longer than anyone waits."""
    time.sleep(60)
    return table


@dataclass(frozen=True)
class KillOnce:
    """Kills the Python worker, or the executor it serves, the first time a part is worked on."""

    flag: Path
    part: int
    executor: bool = False

    def __call__(self, part: int) -> None:
        if part != self.part:
            return
        try:
            self.flag.touch(exist_ok=False)
        except FileExistsError:
            return
        victim = os.getpid()
        if self.executor:
            daemon = os.getppid()
            victim = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(victim, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class KillLater:
    """Kills the executor when some part tasks have run, once: in the middle of the job, not at its start."""

    flag: Path
    after: int

    def __call__(self, part: int) -> None:
        (self.flag / f"{os.getpid()}-{len(list(self.flag.iterdir()))}").touch()
        if len(list(self.flag.iterdir())) > self.after:
            KillOnce(self.flag.parent / "killed", part, executor=True)(part)
