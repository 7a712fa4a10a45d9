"""Run one workload in memory, and make its release."""

import pyarrow as pa

from stirred.errors import InputError
from stirred.mechanisms.topdown import nmf, output, uncertainty
from stirred.mechanisms.topdown.made import Made, Task
from stirred.mechanisms.topdown.run import run
from stirred.mechanisms.topdown.spine_options import ordinary, upward


def in_memory(task: Task, *, keep_nmf: bool = False, replicates: int = 0) -> Made:
    """Run level by level; the microdata go to the task's folder, or stay in memory."""
    workload, out, bureau = task.workload, task.out, task.bureau
    outcome = run(
        task.census, workload, task.settings, key=task.key, engine=task.engine,
        progress=task.progress, resume=task.resume, given=task.given,
    )  # fmt: skip
    task.approve(outcome.checks, outcome.constraints.record)
    cells = workload.histogram.cells
    spine, levels = outcome.published, outcome.levels
    if spine is not outcome.spine:
        levels = upward(spine, ordinary(spine, outcome.spine, levels[-1], cells), cells)
    pieces = output.microdata(workload, spine, levels[-1], bureau=bureau)
    microdata = output.collected(pieces, None if out is None else out / f"{workload.record}.parquet")
    tables: dict[str, pa.Table] = {
        f"{workload.name}-totals": output.totals(spine, levels),
        f"{workload.name}-solves": output.certificates(outcome.certificates),
    }
    if outcome.informed is not None:
        tables[f"{workload.name}-estimates"] = output.estimates(outcome.spine, outcome.informed)
    if replicates:
        tables |= uncertainty.tables(
            workload, outcome, task.settings, key=task.key, count=replicates,
            engine=task.engine, bureau=bureau, progress=task.progress,
        )  # fmt: skip
    if keep_nmf:
        if out is None:
            raise InputError(
                "the noisy measurement file needs a folder",
                why="it is written to disk",
                fix="release(…, out=Path(…))",
            )
        nmf.write(out / f"nmf-{workload.name}", outcome.measurements, outcome.constraints)
    return Made(
        microdata=microdata,
        tables=tables,
        checks=outcome.checks,
        input_digest=outcome.input_digest,
        checkpoint=outcome.checkpoint,
    )
