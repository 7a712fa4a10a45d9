"""TopDown on the synthetic state: seconds by level, peak memory, and the same solves through the generic solver.

  python benchmarks/topdown.py [CENSUS.toml] [--workload pl94-persons] [--generic 1000] [--unreduced 3] [--mode gls]
  python benchmarks/topdown.py [CENSUS.toml] --cores 1,2 [--repeat 3]

``--cores 1,2`` runs everything in processes that may use one core and two cores (polars and BLAS too), some repeats each in
turns, and says what the second core gains. The floor beside it is what the machine itself gives: two runs on one
core each, at the same time, divided by two. Virtual cores that share one real core do not reach a half. Steps
overlap: ``by_step`` says from when to when each ran, and ``cores_used`` is processor seconds by seconds.
``compiled_share`` is the part of the processor seconds that compiled kernels take, without the interpreter's lock;
polars and NumPy are not counted in it.

``--generic N`` solves up to N parents of each level (all, where there are fewer) again with PIQP, centred, on the same
reduced support: its ``solve`` alone, with its setup (the model's matrices kept), and with building them. Both run in
turns on one thread and processor time is compared, so a busy machine slows both. ``--unreduced K`` gives PIQP all cells
of the histogram for K parents of each level, from the smallest to the median. Limits of time are checked between
parents; what was left out is said.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import piqp
from numpy.typing import NDArray

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Local
from stirred.kernels import Kernel
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate.whole_tree import DownwardPass, TreeEstimate
from stirred.mechanisms.topdown.prior import Guidance
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import build_whole_tree
from stirred.mechanisms.topdown.solve import crossing
from stirred.mechanisms.topdown.solve.batch import (
    Family,
    LevelSolver,
    build_family_arrays,
    build_shared_arrays,
)
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.parent import (
    Certificate,
    ParentProblem,
    build_problem,
    merge_equal_queries,
    solve,
)
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Mode, Workload

T = TypeVar("T")
Parent = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]
EPS = 1e-9  # of PIQP, as in the fallback
BLOCKS, BLOCK_GROUPS, TRACTS, COUNTIES = 8_132_968, 239_780, 84_414, 3_143


def main() -> None:
    """Run and print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "census", nargs="?", help="census.toml (default: a synthetic state, made for the run)"
    )
    parser.add_argument("--workload", default="pl94-persons")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--generic", type=int, default=1000, help="parents of each level solved again with PIQP (0: none)"
    )
    parser.add_argument("--seconds", type=float, default=60, help="for that, at most, per level")
    parser.add_argument(
        "--unreduced", type=int, default=3, help="parents of each level, solved on all cells too"
    )
    parser.add_argument("--unreduced-seconds", type=float, default=20, help="for that, at most, per level")
    parser.add_argument(
        "--unreduced-cells",
        type=int,
        default=16_000,
        help="cells of all children from which that is not tried",
    )
    parser.add_argument("--mode", default="gls", choices=["gls", "classic", "guided"])
    parser.add_argument("--classic", action="store_const", const="classic", dest="mode")
    parser.add_argument("--cores", help="numbers of cores to compare, such as 1,2 (Linux)")
    parser.add_argument("--repeat", type=int, default=3, help="runs for each number of cores")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.census is None:
            write_preset("state", Path(folder) / "census")
            arguments.census = str(Path(folder) / "census" / "census.toml")
        if arguments.cores:
            print(json.dumps(_side_by_side(arguments), indent=2))
            return
        engine = Local(workers=arguments.workers)
        _warm_up(arguments.workload, arguments.mode)
        print(json.dumps(measured(Path(arguments.census), arguments, engine), indent=2))


def _side_by_side(arguments: argparse.Namespace) -> dict[str, object]:
    """The same run on several numbers of cores, each in a process that may use no others, and the machine's floor."""
    result: dict[str, object] = {}
    known = sorted(os.sched_getaffinity(0))
    counts = [int(cores) for cores in arguments.cores.split(",")]
    runs: dict[int, list[dict[str, Any]]] = {cores: [] for cores in counts}
    beside: dict[int, list[float]] = {cores: [] for cores in counts}
    for _ in range(arguments.repeat):  # in turns, because a host's other guests come and go
        for cores in counts:
            runs[cores] += _together(arguments, [known[:cores]])
            pair = _together(arguments, [[core] for core in known[:cores]]) if cores > 1 else runs[cores][-1:]
            beside[cores].append(max(run["seconds"] for run in pair))
    for cores, made in runs.items():
        result[f"cores_{cores}"] = min(made, key=lambda run: run["seconds"])
    seconds = {cores: [float(run["seconds"]) for run in made] for cores, made in runs.items()}
    result |= {"seconds": seconds, "seconds_of_runs_side_by_side": beside}
    for name, typical in (("best", min), ("median", statistics.median)):
        walls = [typical(seconds[cores]) for cores in counts]
        floors = [typical(beside[cores]) / cores for cores in counts]
        result[name] = {
            "seconds": [round(wall, 2) for wall in walls],
            "to_the_first": [round(wall / walls[0], 3) for wall in walls],
            "floor_to_the_first": [round(floor / walls[0], 3) for floor in floors],
            "to_the_floor": [round(wall / floor, 2) for wall, floor in zip(walls, floors, strict=True)],
        }
    return result


def _together(arguments: argparse.Namespace, cores: list[list[int]]) -> list[dict[str, Any]]:
    """Runs of their own processes at the same time, each on the cores that are named for it."""
    started = []
    for own in cores:
        command = ["taskset", "-c", ",".join(map(str, own)), sys.executable, __file__, arguments.census]
        command += ["--workload", arguments.workload, "--workers", str(len(own)), "--generic", "0"]
        command += ["--mode", arguments.mode]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    printed = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError("a run in a process of its own failed; run it without --cores to see why")
    return [json.loads(text) for text in printed]


def measured(path: Path, arguments: argparse.Namespace, engine: Local) -> dict[str, object]:
    """One run as a release makes it: seconds by step, memory, and the parents of each level through PIQP."""
    compiled, watch = _compiled_seconds(), _Watch()
    clock = _Clock()
    task = Task(
        census=read(path), workload=Workload.preset(arguments.workload), settings=Settings(mode=cast(Mode, arguments.mode)),
        key=Key.for_tests(1).bind("benchmark"), engine=engine,
    )  # fmt: skip
    above = build_whole_tree(task)
    clock.lap("tabulate")
    with watch.watching():
        made = estimate_run(task, above, None, task.key)
    clock.lap("estimate")
    wall, processor = (sum(lap[i] for lap in clock.laps.values()) for i in range(2))
    spine = above.spine
    steps = {"tabulate": clock.laps["tabulate"][1], **{name: own[0] for name, own in watch.steps.items()}}
    document: dict[str, object] = {
        "workload": task.workload.name,
        "mode": task.mode,
        "workers": arguments.workers,
        "geounits": [spine.size(d) for d in range(len(spine.levels))],
        "seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "cores_used": round(processor / wall, 2),
        "by_step": {
            "tabulate": {"processor": round(steps["tabulate"], 2), "from": 0.0, "to": round(clock.laps["tabulate"][0], 2)},
            **watch.document(clock.laps["tabulate"][0]),
        },
        "compiled_share": round(compiled[0] / processor, 3),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "certificates": [{n: getattr(c, n) for n in Certificate.__slots__} for c in made.certificates],
        "nation_extrapolated_minutes": _nation(steps, wall / processor, spine),
    }  # fmt: skip
    if arguments.generic:
        estimator = Estimator.of(made.targets, above.constraints)
        beside = [_generic(estimator, d, made.levels[d - 1], arguments) for d in range(1, len(made.levels))]
        document["generic"] = beside
        document["same_run"] = _same_run(beside, processor)
    return document


class _Watch:
    """Processor seconds of each step, and from when to when it ran: steps overlap."""

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {}
        self.start = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while a run goes on."""
        self.start = time.perf_counter()
        patched = [
            self._patch(TreeEstimate, "estimate_upward", lambda *_: "noise and upward estimate"),
            self._patch(TreeEstimate, "of", lambda *_: "noise and tree estimate"),
            self._patch(DownwardPass, "_run_level", lambda *_: "downward estimate"),
            self._patch(Guidance, "of", lambda *_: "guide"),
            self._patch(Estimator, "root", lambda one: one.allotment.spine.levels[0]),
            self._patch(LevelSolver, "solve", lambda one, _: one.estimator.allotment.spine.levels[one.depth]),
        ]
        try:
            yield
        finally:
            for owner, name, old in patched:
                setattr(owner, name, old)

    def _patch(self, owner: type, name: str, label: Callable[..., str]) -> tuple[type, str, object]:
        old = owner.__dict__[name]
        bound = isinstance(old, classmethod | staticmethod)
        call = old.__func__ if bound else old
        # what a step hands to other threads is counted where it has none beside it
        alone = (
            label(None, None) in {"noise and upward estimate", "noise and tree estimate"} if bound else False
        )

        def timed(*arguments: object, **named: object) -> object:
            clock = time.process_time if alone else time.thread_time
            began, cpu = time.perf_counter(), clock()
            try:
                return call(*arguments, **named)
            finally:
                own = self.steps.setdefault(label(*arguments), [0.0, began, began])
                own[0] += clock() - cpu
                own[1:] = [min(own[1], began), max(own[2], time.perf_counter())]

        setattr(owner, name, type(old)(timed) if bound else timed)
        return owner, name, old

    def document(self, before: float) -> dict[str, dict[str, float]]:
        """Every step in the order of its beginning."""
        return {
            name: {
                "processor": round(cpu, 2),
                "from": round(before + first - self.start, 2),
                "to": round(before + last - self.start, 2),
            }
            for name, (cpu, first, last) in sorted(self.steps.items(), key=lambda step: step[1][1])
        }


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, tuple[float, float]] = {}
        self.last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> None:
        now = (time.perf_counter(), time.process_time())
        self.laps[name] = (now[0] - self.last[0], now[1] - self.last[1])
        self.last = now


def _warm_up(workload: str, mode: str) -> None:
    """Compile (or load from the cache) before the clock runs."""
    one = np.ones
    groups = np.array([[0, 0], [0, 1]], np.int32)
    problem = build_problem(
        one(2), one((2, 2)), one((2, 2), bool), groups, one((1, 2)), np.zeros(2, np.int32)
    )
    solve(problem)
    crossing.solve_piqp(problem)
    # The batches and the tree passes, on the same types of arrays.
    with tempfile.TemporaryDirectory() as folder:
        write_preset("demo", Path(folder) / "census", households=2000)
        task = Task(
            census=read(Path(folder) / "census" / "census.toml"), workload=Workload.preset(workload),
            settings=Settings(mode=cast(Mode, mode)), key=Key.for_tests(1).bind("warm"), engine=Local(workers=1),
        )  # fmt: skip
        estimate_run(task, build_whole_tree(task), None, task.key)


def _compiled_seconds() -> list[float]:
    """Processor seconds that compiled kernels will take from now on, whichever thread calls them."""
    spent = [0.0]
    call = Kernel.__call__

    def timed(kernel: Kernel, *arguments: object) -> object:
        start = time.thread_time()
        try:
            return call(kernel, *arguments)
        finally:
            spent[0] += time.thread_time() - start

    Kernel.__call__ = timed  # type: ignore[method-assign]
    return spent


def _nation(steps: dict[str, float], share: float, spine: Tree) -> float:
    """Minutes on the cores of this run: its processor seconds per geounit of each level times the nation's geounits.

    ``share`` are the seconds of the clock for one processor second, so a core that gains nothing counts so.
    """
    counts = {"block": BLOCKS, "block_group": BLOCK_GROUPS, "tract": TRACTS, "county": COUNTIES, "state": 51}
    leaf = spine.size(len(spine.levels) - 1)
    seconds = sum(cpu for name, cpu in steps.items() if name not in spine.levels) * BLOCKS / leaf
    for depth, level in enumerate(spine.levels):
        seconds += steps[level] / spine.size(depth) * counts.get(level, 1)
    return round(seconds * share / 60, 1)


def _clocked(call: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def _generic(
    estimator: Estimator, depth: int, above: Sparse, arguments: argparse.Namespace
) -> dict[str, object]:
    """The same parents through the fast path and through PIQP, in turns, one thread, processor time."""
    spine = estimator.allotment.spine
    level = spine.levels[depth]
    parents = np.flatnonzero(np.diff(above.first) > 0)
    known = {int(p): _children(estimator, depth, int(p), above) for p in parents}
    shared = [p for p, (children, *_) in known.items() if len(children) > 1]
    order = np.random.default_rng(1).permutation(shared)[: arguments.generic]
    rows: list[tuple[float, ...]] = []
    began = told = time.monotonic()
    for done, parent in enumerate(order):
        if time.monotonic() - began > arguments.seconds:
            break
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{level}: {done} of {len(order)} parents through both", file=sys.stderr)
        children, cells, counts, allowed = known[int(parent)]
        problem = _problem(estimator, depth, int(parent), cells, counts, children, allowed)
        ours, fast = _clocked(lambda: estimator._solve(problem))  # noqa: B023
        parts, build = _clocked(lambda: crossing.build_structure(problem))  # noqa: B023
        (solver, _), setup = _clocked(lambda: crossing.set_up_piqp(problem, parts, eps=EPS))  # noqa: B023
        _, alone = _clocked(solver.solve)
        theirs = crossing.solve_piqp(problem, parts, eps=EPS)  # not timed: the answer, with its retries
        if np.abs(ours.x - theirs.x).max() > 5e-3:  # then it matters which of the two is off
            theirs = crossing.solve_piqp(problem, parts, eps=EPS / 100)
        rows.append(
            (fast, build, setup, alone, float(np.abs(ours.x - theirs.x).max()), excess(problem, ours.x, theirs.x))
        )  # fmt: skip
    times = np.array(rows)
    fast, build, setup, alone = times[:, :4].sum(axis=0)
    scale = len(shared) / len(rows)
    return {
        "level": level, "parents": len(shared), "parents_solved_by_both": len(rows),
        "parents_with_one_child": len(parents) - len(shared),
        "whole_level_is": "measured" if len(rows) == len(shared) else "extrapolated: mean of the sample × parents",
        "fast_seconds": round(fast, 3), "piqp_solve_seconds": round(alone, 3), "piqp_setup_seconds": round(setup, 3),
        "piqp_build_seconds": round(build, 3),
        "ratio_solve_only": round(alone / fast, 1), "ratio_with_setup": round((alone + setup) / fast, 1),
        "ratio_with_build": round((alone + setup + build) / fast, 1),
        "whole_level_fast_seconds": round(fast * scale, 2),
        "whole_level_piqp_seconds": [round(x * scale, 2) for x in (alone, alone + setup, alone + setup + build)],
        "largest_difference_in_a_cell": times[:, 4].max(), "largest_excess_of_the_objective": times[:, 5].max(),
        "unreduced": _unreduced(estimator, depth, known, shared, arguments),
    }  # fmt: skip


def _children(estimator: Estimator, depth: int, parent: int, above: Sparse) -> Parent:
    """Children that may hold anybody, the parent's cells and counts, and which child may hold which cell."""
    cells, counts = above.at(parent)
    first, last = estimator.allotment.spine.first_child[depth - 1][parent : parent + 2]
    children = np.arange(first, last)
    allowed = estimator.constraints.find_allowed(depth, children, cells)
    live = np.flatnonzero(allowed.any(axis=1))
    return children[live], cells, counts, allowed[live]


def _problem(
    estimator: Estimator, depth: int, parent: int, cells: NDArray[np.int64], counts: NDArray[np.int64],
    children: NDArray[np.int64], allowed: NDArray[np.bool_],
) -> ParentProblem:  # fmt: skip
    """The problem of one parent on these cells."""
    family = Family(parent, Sparse(np.array([0, len(cells)]), cells, counts))
    shared = build_shared_arrays(estimator, depth)
    return estimator.problem(depth, build_family_arrays(estimator, depth, shared, family), children, allowed)


def _unreduced(
    estimator: Estimator,
    depth: int,
    known: dict[int, Parent],
    shared: list[int],
    arguments: argparse.Namespace,
) -> list[dict[str, object]]:
    """PIQP on all cells, as a solver that does not drop the parent's empty cells must: parents up to the median size.

    Twice: without anything dropped, and without the cells that a child cannot hold (structural zeros).
    """
    whole = np.arange(estimator.allotment.workload.histogram.cells)
    by_size = sorted(shared, key=lambda p: (len(known[p][0]), len(known[p][1])))
    asked = np.unique(np.linspace(0, len(by_size) // 2, arguments.unreduced).astype(int))
    result: list[dict[str, object]] = []
    began = time.monotonic()
    for parent in (by_size[k] for k in asked):
        if time.monotonic() - began > arguments.unreduced_seconds:
            result.append({"left_out_for_lack_of_time": len(asked) - len(result)})
            break
        children, cells, counts, allowed = known[parent]
        problem = _problem(estimator, depth, int(parent), cells, counts, children, allowed)
        everywhere = np.zeros(len(whole), np.int64)
        everywhere[cells] = counts
        possible = estimator.constraints.find_allowed(depth, children, whole)
        fast = min(_clocked(lambda: estimator._solve(problem))[1] for _ in range(3))  # noqa: B023
        row: dict[str, object] = {"children": len(children), "fast_seconds": round(fast, 5)}
        row["reduced"] = _once(problem)
        for name, cells_of in (("all_cells", np.ones_like(possible)), ("structural_zeros_dropped", possible)):
            if cells_of.sum() > arguments.unreduced_cells:
                row[name] = {"not_tried": f"{cells_of.sum()} cells"}
                continue
            print(f"{estimator.allotment.spine.levels[depth]}: {name}, {cells_of.sum()}", file=sys.stderr)
            row[name] = _once(_problem(estimator, depth, parent, whole, everywhere, children, cells_of))
        result.append(row)
    return result


def excess(problem: ParentProblem, X: NDArray[np.float64], Y: NDArray[np.float64]) -> float:
    """How much higher the objective is at X than at Y, from the gradients at both, because values would lose digits."""
    parts = dict(zip(("gid", "w", "diag"), merge_equal_queries(problem.groups, problem.weights), strict=True))
    middle = crossing.multiply_hessian((X + Y) / 2, problem, parts) - problem.linear
    return float((middle * (X - Y)).sum())


def _once(problem: ParentProblem) -> dict[str, object]:
    """PIQP at the looser tolerance at which it also ends on unreduced problems, everything counted."""
    parts, build = _clocked(lambda: crossing.build_structure(problem))
    (solver, _), setup = _clocked(lambda: crossing.set_up_piqp(problem, parts, eps=1e-6))
    status, alone = _clocked(solver.solve)
    return {
        "variables": parts["A"].shape[1],
        "seconds": round(build + setup + alone, 4),
        "solved": status == piqp.PIQP_SOLVED,
    }


def _same_run(levels: list[dict[str, Any]], processor: float) -> dict[str, object]:
    """All levels below the root together: the solves, and the run with PIQP's solves in place of ours."""
    fast = sum(level["whole_level_fast_seconds"] for level in levels)
    alone, cached, built = (sum(level["whole_level_piqp_seconds"][k] for level in levels) for k in range(3))
    exact = all(level["whole_level_is"] == "measured" for level in levels)
    return {
        "solves_are": "measured" if exact else "partly extrapolated", "fast_seconds": round(fast, 2),
        "piqp_solve_only_seconds": round(alone, 2), "piqp_structure_cached_seconds": round(cached, 2),
        "piqp_with_build_seconds": round(built, 2), "ratio_solve_only": round(alone / fast, 1),
        "ratio_structure_cached": round(cached / fast, 1), "ratio_with_build": round(built / fast, 1),
        "run_processor_seconds": round(processor, 2),
        "run_processor_seconds_with_piqp_computed": round(processor - fast + cached, 2),
    }  # fmt: skip


if __name__ == "__main__":
    main()
