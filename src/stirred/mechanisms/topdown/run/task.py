"""Define the input and result of one workload's run, digest all that it reads, and solve its levels with checkpoints.

The digest is a tree, so that it can be computed in pieces of any size: a geounit's digest is made of its code, the bounds
that hold in it and its children's digests in the order of the spine.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import pads
from stirred.chance import Key
from stirred.chance.seals import AuthenticFolder, keep_mark, read_mark
from stirred.engine import Engine, Local, Progress
from stirred.engine.base import Steps
from stirred.errors import PrivacyError
from stirred.mechanisms.release import Check
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.rules import Constraints, Record
from stirred.mechanisms.topdown.solve.levels import Cascade, Estimator
from stirred.mechanisms.topdown.solve.parent import Certificate
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Mode, SpineOptions, Workload

if TYPE_CHECKING:
    from stirred.census import Census


Ints = NDArray[np.int64]


def digest_key(key: Key) -> Key:
    """Return the key for the digest of the census; workers may hold it, as no noise is derived from it."""
    return key.bind("reader")


def digest_run(key: Key, levels: Sequence[str], names: Sequence[str], nodes: Sequence[bytes]) -> bytes:
    """Return the digest of a run from those of its highest geounits, or of all leaves if there is one level."""
    return key.digest(b"tree", repr((tuple(levels), tuple(names))).encode(), *nodes)


def digest_nodes(
    key: Key, spine: Tree, constraints: Constraints, depth: int, below: Sequence[bytes] | Sparse
) -> list[bytes]:
    """Return digests of every geounit of a level, from those of the next level or the leaves' records."""
    codes = [str(code).encode() for code in spine.codes[depth].cast(pl.String).to_list()]
    first = spine.first_child[depth].tolist()
    own = _list_bounds(constraints, depth)
    if isinstance(below, Sparse):
        families = digest_leaves(key, spine, constraints, below, first)
    else:
        families = [key.digest(b"children", *below[a:b]) for a, b in pairwise(first)]
    return [
        key.digest(b"node", code, *(bound[i].tobytes() for bound in own), family)
        for i, (code, family) in enumerate(zip(codes, families, strict=True))
    ]


def digest_leaves(
    key: Key, spine: Tree, constraints: Constraints, records: Sparse, first: Sequence[int]
) -> list[bytes]:
    """Return digests of the leaves of each parent; ``first`` is the first leaf of each parent."""
    last = len(spine.levels) - 1
    codes, begin = _join_codes(spine.codes[last])
    own = _list_bounds(constraints, last)
    lengths = np.diff(begin)  # so that different lists of codes have different bytes
    sizes = np.diff(records.first).astype(np.int64)
    result = []
    for a, b in pairwise(first):
        start, stop = records.first[a], records.first[b]
        arrays = [lengths[a:b], sizes[a:b], records.cells[start:stop], records.counts[start:stop]]
        arrays += [bound[a:b] for bound in own]
        text = codes[begin[a] : begin[b]]
        result.append(key.digest(b"leaves", text, *(array.tobytes() for array in arrays)))
    return result


def _join_codes(codes: pl.Series) -> tuple[bytes, Ints]:
    """Return all codes as one text of bytes, and where each begins in it.

    >>> _join_codes(pl.Series(["a", "äb", ""]))
    (b'a\\xc3\\xa4b', array([0, 1, 4, 4]))
    """
    column = codes.cast(pl.String)
    begin = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column.str.len_bytes().to_numpy(), out=begin[1:])
    return "".join(column.to_list()).encode(), begin


def digest_upward(
    key: Key, spine: Tree, constraints: Constraints, records: Sparse, top: int = 0
) -> list[bytes]:
    """Return digests of all geounits of level ``top``, computed from the leaves upward."""
    last = len(spine.levels) - 1
    if top == last:
        return digest_leaves(key, spine, constraints, records, [0, spine.size(last)])
    found = digest_nodes(key, spine, constraints, last - 1, records)
    for depth in range(last - 2, top - 1, -1):
        found = digest_nodes(key, spine, constraints, depth, found)
    return found


def _list_bounds(constraints: Constraints, depth: int) -> list[Ints]:
    """Return the bounds that hold at a level, as whole numbers of one width."""
    held = [one for one in constraints.held if depth < len(one.low)]
    return [np.ascontiguousarray(array[depth], np.int64) for one in held for array in (one.low, one.high)]


# Solve level by level from the top, and keep finished levels on disk: an interrupted run ends with the same bytes.
#
# What is kept is post-processed output, never a measurement or a confidential count; a checkpoint is used only by a
# run with the same key, parameters and census.


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder of finished levels; ``None`` as folder keeps nothing."""

    folder: Path | None = None
    identity: str = ""
    key: Key | None = None

    def begin(self) -> None:
        """Make the folder, or check that an existing one belongs to this run."""
        if self.folder is None:
            return
        shutil.rmtree(self._discard_path(self.folder), ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = self.folder / "run"
        if read_mark(mark) not in (None, self.identity.encode()):
            raise PrivacyError(
                "the folder holds an interrupted run of another key, census or workload",
                why=f"the folder {self.folder.name} was begun with something else",
                fix="finish that run with its own settings, or delete the folder",
            )
        keep_mark(mark, self.identity)

    def open_folder(self) -> AuthenticFolder | None:
        """Return the folder with the key that seals its files; None where nothing is kept."""
        if self.folder is None or self.key is None:
            return None
        return AuthenticFolder(self.folder, self.key, self.identity.encode())

    def save(self, depth: int, level: Sparse, certificate: Certificate) -> None:
        """Keep a finished level; the file is written completely or not at all."""
        kept = self.open_folder()
        if kept is None:
            return
        table = pa.table({"node": level.nodes, "cell": level.cells, "count": level.counts})
        numbers = ",".join(str(getattr(certificate, name)) for name in Certificate.__slots__)
        table = table.replace_schema_metadata({"certificate": numbers, "nodes": str(len(level.first) - 1)})
        temporary = kept.folder / f"level-{depth}.part"
        pq.write_table(table, temporary, compression="zstd")
        kept.adopt(f"level-{depth}.parquet", temporary)

    def load(self, depth: int) -> tuple[Sparse, Certificate] | None:
        """Return a level finished before, or None; refuse one that this run did not write."""
        kept = self.open_folder()
        place = None if kept is None else kept.find_finished(f"level-{depth}.parquet")
        if place is None:
            return None
        table = pq.read_table(place)
        metadata = table.schema.metadata
        node = table["node"].to_numpy()
        first = np.searchsorted(node, np.arange(int(metadata[b"nodes"]) + 1))
        name, *numbers = metadata[b"certificate"].decode().split(",")
        kinds = (int, float, float, int, int, int)
        values = [kind(number) for kind, number in zip(kinds, numbers, strict=True)]
        certificate = Certificate(name, *values)
        return Sparse(first, table["cell"].to_numpy(), table["count"].to_numpy()), certificate

    def finish(self) -> None:
        """Delete the levels, which are no longer needed after the release."""
        if self.folder is not None and self.folder.is_dir():
            # it loses its name first: a run that is killed here would find half of the levels, and take them for forged ones
            gone = self._discard_path(self.folder)
            shutil.rmtree(gone, ignore_errors=True)
            shutil.rmtree(self.folder.replace(gone), ignore_errors=True)

    @staticmethod
    def _discard_path(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}.gone")


NOTHING_KEPT = Checkpoint()


def count_threads(engine: Engine) -> int:
    """Return how many threads an engine runs in this process."""
    return engine.workers if isinstance(engine, Local) else Local().workers


def wait_for_nothing(depth: int) -> None:
    """Return at once: all linear terms are there."""


def solve_levels(
    estimator: Estimator,
    above: Sequence[Sparse],
    last: int,
    engine: Engine,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint = NOTHING_KEPT,
    ready: Callable[[int], None] = wait_for_nothing,
) -> tuple[list[Sparse], list[Certificate]]:
    """Solve every level down to ``last``, after those given; finished levels are used again.

    ``ready`` returns when the linear terms of a level are there.
    """
    levels = list(above)
    certificates: list[Certificate] = []
    for depth in range(len(levels), last + 1):
        done = checkpoint.load(depth)
        if done is None:
            break
        levels.append(done[0])
        certificates.append(done[1])

    def keep_level(depth: int, level: Sparse, certificate: Certificate) -> None:
        checkpoint.save(depth, level, certificate)
        certificates.append(certificate)

    cascade = Cascade(
        estimator,
        levels,
        last,
        workers=count_threads(engine),
        ready=ready,
        finished=keep_level,
        progress=progress,
    )
    return cascade.run(), certificates


# Input and result of one workload's run.


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the estimate; none of them changes the promise, except the noise."""

    mode: Mode | None = None
    bypass: bool = True
    noiseless: bool = False
    emphasis: int = 1
    spine: SpineOptions | None = None  # the tree that is measured; None: the census's own


def no_approval(checks: tuple[Check, ...], record: Record) -> None:
    """Accept every run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One workload to run; ``approve`` is called before any record is written, and may raise an error."""

    census: "Census"
    workload: Workload
    settings: Settings
    key: Key
    engine: Engine
    approve: Callable[[tuple[Check, ...], Record], None] = no_approval
    progress: Progress | None = None
    resume: Path | None = None
    given: Path | None = None
    out: Path | None = None
    bureau: bool = False  # columns named as the published files name them
    replicates: int = 0
    keep_nmf: bool = False
    beside: tuple[
        Workload, ...
    ] = ()  # all workloads of the same release, whose invariants hold for it as well

    @property
    def mode(self) -> Mode:
        """Return the estimation mode."""
        return self.settings.mode or self.workload.mode

    def report_progress(self, step: str, done: int, total: int) -> None:
        """Report progress of a step."""
        if self.progress is not None:
            self.progress(f"{self.workload.name}: {step}", done, total)

    def steps(self, step: str) -> Steps:
        """Return a function that reports the finished parts of a step."""
        return lambda done, total: self.report_progress(step, done, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Microdata, tables and checks of one workload."""

    microdata: "pa.Table | pads.Dataset"
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    input_digest: str
    checkpoint: Checkpoint
