"""Keep the finished subtrees of a run on disk: one that is killed goes on with the parts that are left.

As of the levels above, only post-processed output is kept: the released counts of the leaves and the summary of each
grove. The file of a part belongs to a number of parts, because a run with other memory divides the tree otherwise.
"""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.engine import Engine
from stirred.engine.base import PartKernel
from stirred.mechanisms.topdown.run.levels import Checkpoint
from stirred.mechanisms.topdown.run.subtrees.rows import CELL, COUNT, KIND, LEAF, NUMBER, SHARD, frame_of
from stirred.mechanisms.topdown.run.subtrees.solved import SUMMARY, Solve
from stirred.mechanisms.topdown.run.subtrees.survey import PAYLOAD

KEPT = [KIND, SHARD, LEAF, NUMBER, COUNT, PAYLOAD]


@dataclass(frozen=True, slots=True)
class ResumedSolve:
    """The solve of a part, or what an interrupted run kept of it."""

    solve: Solve
    checkpoint: Checkpoint
    parts: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        name = f"part-{part}-of-{self.parts}"
        kept = self.checkpoint.kept()
        if kept is None:
            return self.solve(part, table)
        place = kept.finished(f"{name}.parquet")
        ours = pl.col(KIND).is_in([CELL, SUMMARY])
        schema = self.solve.schema
        if place is not None:
            rest = frame_of(table).filter(~ours & (pl.col(SHARD) >= 0))
            whole = pl.concat([rest, frame_of(pq.read_table(place))], how="diagonal")
            return whole.select(schema.names).to_arrow().cast(schema)
        solved = self.solve(part, table)
        temporary = kept.folder / f"{name}.part"
        rows = frame_of(solved).filter(ours).select(KEPT).to_arrow()
        pq.write_table(rows, temporary, compression="zstd")
        kept.adopt(f"{name}.parquet", temporary)
        return solved


def resumed(solve: Solve, checkpoint: Checkpoint, parts: int, engine: Engine) -> PartKernel:
    """The solve that keeps what it finishes, where the parts run on the machine that has the folder."""
    here = checkpoint.folder is not None and engine.name == "local"
    return ResumedSolve(solve, checkpoint, parts) if here else solve
