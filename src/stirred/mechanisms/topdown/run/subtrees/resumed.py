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
from stirred.mechanisms.topdown.run.subtrees.rows import CELL, COUNT, KIND, LEAF, NUMBER, SHARD, to_frame
from stirred.mechanisms.topdown.run.subtrees.solved import SUMMARY_KIND, SubtreeSolve
from stirred.mechanisms.topdown.run.subtrees.survey import PAYLOAD_COLUMN

KEPT_COLUMNS = [KIND, SHARD, LEAF, NUMBER, COUNT, PAYLOAD_COLUMN]


@dataclass(frozen=True, slots=True)
class ResumedSolve:
    """The solve of a part, or what an interrupted run kept of it."""

    solve: SubtreeSolve
    checkpoint: Checkpoint
    parts: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        name = f"part-{part}-of-{self.parts}"
        kept = self.checkpoint.open_folder()
        if kept is None:
            return self.solve(part, table)
        place = kept.find_finished(f"{name}.parquet")
        ours = pl.col(KIND).is_in([CELL, SUMMARY_KIND])
        schema = self.solve.schema
        if place is not None:
            rest = to_frame(table).filter(~ours & (pl.col(SHARD) >= 0))
            whole = pl.concat([rest, to_frame(pq.read_table(place))], how="diagonal")
            return whole.select(schema.names).to_arrow().cast(schema)
        solved = self.solve(part, table)
        temporary = kept.folder / f"{name}.part"
        rows = to_frame(solved).filter(ours).select(KEPT_COLUMNS).to_arrow()
        pq.write_table(rows, temporary, compression="zstd")
        kept.adopt(f"{name}.parquet", temporary)
        return solved


def resume_solve(solve: SubtreeSolve, checkpoint: Checkpoint, parts: int, engine: Engine) -> PartKernel:
    """Return a solve that keeps what it finishes, if the parts run on the machine that has the folder."""
    here = checkpoint.folder is not None and engine.name == "local"
    return ResumedSolve(solve, checkpoint, parts) if here else solve
