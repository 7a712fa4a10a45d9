"""The records of a workload without noise and without a solve: what TopDown would publish of a public file."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from stirred.arrow import pads
from stirred.file_names import path_in
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.release import fits_in_memory
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees, gather
from stirred.mechanisms.topdown.run.subtrees.prepare import count_faults
from stirred.mechanisms.topdown.run.subtrees.published import ReleasedRows
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import count_histograms
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.tree.leaves import list_leaves

FAULT_SCHEMA = pa.schema([("strangers", pa.int64()), ("lost", pa.int64()), ("mixed", pa.int64())])


def tabulate_records(task: Task) -> "pa.Table | pads.Dataset":
    """Tabulate the records in the layout of a release, from the tree in memory or subtrees in parts."""
    task = replace(task, workload=replace(task.workload, rules=(), given=""))
    subtrees = None if fits_in_memory(task) else gather(task)
    if subtrees is not None:
        try:
            return _tabulate_parts(task, subtrees)
        finally:
            subtrees.parts.drop()
    census, workload = task.census, task.workload
    tree = Tree.of(list_leaves(census, workload), census.schema.spine, root=workload.levels[0])
    pieces = output.make_microdata(
        workload, tree, count_histograms(census, workload, tree)[-1], bureau=task.bureau
    )
    path = None if task.out is None else path_in(task.out, workload.record, ".parquet")
    return output.collect_pieces(pieces, path)


@dataclass(frozen=True, slots=True)
class Faults:
    """A kernel that counts how often each fault occurs in a part."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        return pa.table([[int(number)] for number in count_faults(table)], schema=FAULT_SCHEMA)


def _tabulate_parts(task: Task, subtrees: Subtrees) -> "pa.Table | pads.Dataset":
    found = subtrees.parts.map(Faults(), FAULT_SCHEMA).gather()
    subtrees.refuse([np.array(list(row.values())) for row in found.to_pylist()], task.workload)
    schema = subtrees.row_schema(bureau=task.bureau)
    rows = subtrees.parts.map(ReleasedRows(subtrees.division, schema, task.bureau), schema)
    return rows.gather() if task.out is None else rows.write(task.out, task.workload.record)
