"""Write the noisy measurement file of a run: measurements from here, then those of the subtrees, level by level."""

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa

from stirred.mechanisms.topdown.measure import nmf
from stirred.mechanisms.topdown.run.estimation import Estimation
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.published import MeasurementRows, tagged_schema
from stirred.mechanisms.topdown.run.subtrees.stored import Stored
from stirred.mechanisms.topdown.run.task import Task


def write(task: Task, made: Estimation, counted: Subtrees | None) -> None:
    """Write it to the task's folder."""
    if task.out is None:
        return
    above, measurements = made.above, made.targets.measurements
    workload = above.allotment.workload
    with ExitStack() as stack:
        below: Stored | None = None
        if counted is not None and made.solve is not None:
            schema = tagged_schema(nmf.schema(workload, pa.int64()))
            kernel = MeasurementRows(made.solve.measured, schema)
            name = f"{workload.name}-measurements"
            below = stack.enter_context(Stored.of(counted.parts.map(kernel, schema), task.out, name))

        def rows(depth: int, number: int) -> Iterator[pa.Table]:
            if depth > above.depth and below is not None:
                columns = nmf.schema(workload, pa.int64() if number < 0 else pa.int32())
                return (table.cast(columns) for table in below.tables(depth, number))
            if number < 0:
                return iter([nmf.bounds(above.constraints, above.spine, workload, depth, number)])
            known = number in nmf.measured_tables(measurements, depth)
            return nmf.answers(measurements, depth, number) if known else iter(())

        folder = task.out / f"nmf-{workload.name}"
        held = above.constraints.held
        nmf.write(folder, above.spine.levels, workload, held, above.equal, rows)
