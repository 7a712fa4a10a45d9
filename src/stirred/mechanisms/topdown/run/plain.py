"""The records of a workload without noise and without a solve: what TopDown would publish of a public file."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from stirred.arrow import pads
from stirred.file_names import path_in
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.tree.counts import histograms
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.tree.leaves import leaf_table
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census


def plain(
    census: "Census", workload: Workload, *, out: Path | None, bureau: bool
) -> "pa.Table | pads.Dataset":
    """One row per record with the columns and the order of a release."""
    tree = Tree.of(leaf_table(census, workload), census.schema.spine, root=workload.levels[0])
    pieces = output.microdata(workload, tree, histograms(census, workload, tree)[-1], bureau=bureau)
    return output.collected(pieces, None if out is None else path_in(out, workload.record, ".parquet"))
