"""TopDown on the synthetic state: seconds by level, peak memory, and the same solves through the generic solver.

  python benchmarks/topdown.py [CENSUS.toml] [--workload pl94-persons] [--generic 200] [--classic]

``--generic N`` solves N parents of each level again with PIQP: on the same reduced support with the model's structure
built once (solve only, and with building), and for a few parents on the unreduced support.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import generic
from stirred.mechanisms.topdown.certificate import Certificate
from stirred.mechanisms.topdown.constraints import compiled_rules
from stirred.mechanisms.topdown.estimate import Estimator
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.solve import solve
from stirred.mechanisms.topdown.spine import Allotment, Spine
from stirred.mechanisms.topdown.tabulate import histograms, leaf_table
from stirred.mechanisms.topdown.targets import Informed, Raw
from stirred.mechanisms.topdown.workload import Workload

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
        "--generic", type=int, default=0, help="parents of each level solved again with PIQP (minutes)"
    )
    parser.add_argument("--classic", action="store_true")
    arguments = parser.parse_args()
    engine = Local(workers=arguments.workers)
    _warm_up()
    if arguments.census is not None:
        print(json.dumps(measured(Path(arguments.census), arguments, engine, arguments.generic), indent=2))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_preset("state", Path(folder) / "census")
        path = Path(folder) / "census" / "census.toml"
        print(json.dumps(measured(path, arguments, engine, arguments.generic), indent=2))


def measured(
    path: Path, arguments: argparse.Namespace, engine: Local, generic_parents: int
) -> dict[str, object]:
    """One run: seconds by step, memory, and some parents of each level through PIQP."""
    census, workload = read(path), Workload.preset(arguments.workload)
    clock = _Clock()
    spine = Spine.of(leaf_table(census, workload), census.schema.spine, root=workload.levels[0])
    truth = histograms(census, workload, spine)
    allotment = Allotment.of(spine, workload)
    constraints = compiled_rules(census, workload, spine, truth)
    clock.lap("tabulate")
    measurements = Measurements(allotment, truth, Key.for_tests(1).bind("benchmark"))
    targets = Raw(measurements) if arguments.classic else Informed.of(measurements, constraints, engine)
    clock.lap("noise and tree estimate")
    weights = {pair: measurements.weights(*pair) for pair in allotment.rho}
    estimator = Estimator(allotment, constraints, targets, weights)
    levels, certificates = [], []
    for depth, level in enumerate(spine.levels):
        result, certificate = estimator.root() if depth == 0 else estimator.level(depth, levels[-1], engine)
        levels.append(result)
        certificates.append(certificate)
        clock.lap(level)
    document: dict[str, object] = {
        "workload": workload.name,
        "mode": "classic" if arguments.classic else "gls",
        "workers": arguments.workers,
        "geounits": [spine.size(d) for d in range(len(spine.levels))],
        "seconds": round(sum(wall for wall, _ in clock.laps.values()), 2),
        "processor_seconds": round(sum(cpu for _, cpu in clock.laps.values()), 2),
        "by_step": {
            name: {"wall": round(wall, 2), "processor": round(cpu, 2)}
            for name, (wall, cpu) in clock.laps.items()
        },
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "certificates": [{n: getattr(c, n) for n in Certificate.__slots__} for c in certificates],
        "nation_extrapolated_minutes": _nation(clock.laps, spine, arguments.workers),
    }
    if generic_parents:
        document["generic"] = [
            _generic(estimator, d, levels[d - 1], generic_parents) for d in range(1, len(levels))
        ]
    return document


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, tuple[float, float]] = {}
        self.last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> None:
        now = (time.perf_counter(), time.process_time())
        self.laps[name] = (now[0] - self.last[0], now[1] - self.last[1])
        self.last = now


def _warm_up() -> None:
    """Compile (or load from the cache) before the clock runs."""
    from stirred.mechanisms.topdown.solve import Problem

    one = np.ones
    solve(
        Problem(
            one(2),
            one((2, 2)),
            one((2, 2), bool),
            np.array([[0, 0], [0, 1]], np.int32),
            one((1, 2)),
            np.zeros(2, np.int32),
        )
    )


def _nation(laps: dict[str, tuple[float, float]], spine: Spine, workers: int) -> float:
    """Minutes on as many cores: cost per geounit of each level times the nation's geounits; the state level by 51 states."""
    counts = {"block": BLOCKS, "block_group": BLOCK_GROUPS, "tract": TRACTS, "county": COUNTIES, "state": 51}
    leaf = spine.size(len(spine.levels) - 1)
    seconds = sum(laps[name][1] for name in ("tabulate", "noise and tree estimate")) * BLOCKS / leaf
    for depth, level in enumerate(spine.levels):
        seconds += laps[level][1] / spine.size(depth) * counts.get(level, 1)
    return round(seconds / workers / 60, 1)


def _generic(estimator: Estimator, depth: int, above: object, most: int) -> dict[str, object]:
    """The same parents through the fast path and through PIQP, one thread."""
    spine = estimator.allotment.spine
    rng = np.random.default_rng(1)
    parents = np.flatnonzero(np.diff(above.first) > 0)  # type: ignore[attr-defined]
    chosen = np.sort(rng.choice(parents, min(most, len(parents)), replace=False))
    fast = solve_only = build = unreduced = 0.0
    done = compared = 0
    worst, relative = 0.0, -np.inf
    for parent in chosen:
        cells, counts = above.at(int(parent))  # type: ignore[attr-defined]
        first, last = spine.first_child[depth - 1][parent : parent + 2]
        children = np.arange(first, last)
        allowed = estimator.constraints.allowed(depth, children, cells)
        live = np.flatnonzero(allowed.any(axis=1))
        if len(live) < 2 or len(live) * len(cells) > 12_000:
            continue
        problem, *_ = estimator.problem(depth, children[live], cells, counts, allowed[live])
        t0 = time.process_time()
        ours = estimator._solve(problem)
        t1 = time.process_time()
        parts = generic.structure(problem)
        t2 = time.process_time()
        theirs = generic.piqp_solve(problem, parts)
        t3 = time.process_time()
        fast += t1 - t0
        build += t2 - t1
        solve_only += t3 - t2
        done += 1
        worst = max(worst, float(np.abs(ours.x - theirs.x).max()))
        ours_f, theirs_f = generic.least_squares(problem, ours.x), generic.least_squares(problem, theirs.x)
        relative = max(relative, (ours_f - theirs_f) / max(1.0, abs(theirs_f)))
        if compared < 3 and len(live) <= 12:  # wider ones take minutes each without the reduction
            unreduced += _unreduced(estimator, depth, children[live], cells, counts)
            compared += 1
    return {
        "level": spine.levels[depth], "parents": done, "fast_seconds": round(fast, 3),
        "piqp_solve_seconds": round(solve_only, 3), "piqp_build_seconds": round(build, 3),
        "ratio_solve_only": round(solve_only / max(fast, 1e-9), 1),
        "ratio_with_build": round((solve_only + build) / max(fast, 1e-9), 1),
        "unreduced_seconds_per_parent": round(unreduced / max(compared, 1), 3),
        "largest_difference_in_a_cell": worst, "largest_relative_excess": relative,
    }  # fmt: skip


def _unreduced(
    estimator: Estimator, depth: int, children: np.ndarray, cells: np.ndarray, counts: np.ndarray
) -> float:
    """PIQP on all cells of the histogram, as a solver that does not drop the parent's empty cells must."""
    whole = np.arange(estimator.allotment.workload.histogram.cells)
    parent = np.zeros(len(whole), np.int64)
    parent[cells] = counts
    allowed = np.ones((len(children), len(whole)), bool)
    problem, *_ = estimator.problem(depth, children, whole, parent, allowed)
    start = time.process_time()
    generic.piqp_solve(problem, eps=1e-6)
    return time.process_time() - start


if __name__ == "__main__":
    main()
