"""DHC on a synthetic census: errors of the measured marginals against best linear estimates, certificates, seconds.

  python benchmarks/dhc.py [--census FOLDER/census.toml] [--preset demo] [--products persons units] [--draws 1] [--tables 3]

For every query with few answers and every level: the mean absolute error of the noisy answers, of the best linear
estimate from the geounit's own measurements, of the best linear estimate that also keeps the published PL sums, of one that
keeps all exact sums (PL by type of facility, for persons), of the same as far as a histogram can reach it, of the same
rounded to whole numbers, and of the released integers. PL is published first, with its own noise, and the estimates differ
by its error. A linear estimate may have negative cells. Where it comes nearer to the truth than any histogram does that has
none and keeps all exact sums, be it the nearest of all (a linear programme that knows the truth), it is out of reach: the
column `reached` has that histogram's error there, set of tied answers by set.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityQuery
from stirred.mechanisms.topdown.dhc_given_pl.parents import MAX_FIRST_ANSWERS, choose_estimator
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.measure import ClassicTargets, Measurements
from stirred.mechanisms.topdown.run.task import Settings, Task, solve_levels
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.workload import Workload
from stirred.spec.files import save

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Errors = dict[tuple[str, str], Floats]
EXACT = 1e4  # the weight of a sum that is kept


def designs(above: UpperTree, queries: Sequence[Query], held: Query) -> tuple[Floats, Floats, Ints]:
    """What the queries and the kept sums see: answers × coarse cells, kept sums × coarse cells, and PL group → kept sum."""
    cells = np.arange(above.allotment.workload.histogram.cells)
    cells = cells[above.constraints.possible(cells)]
    if isinstance(held, FacilityQuery):  # its last answer holds the cells that nobody can be in
        cells = cells[held.of(cells) < held.size - 1]
    label = np.zeros(len(cells), np.int64)
    for query in queries:
        label = np.unique(label * (query.size + 1) + query.of(cells) + 1, return_inverse=True)[1].ravel()
    group = held.of(cells)
    pairs = np.unique(group * (label.max() + 1) + label)
    # PL groups that no query tells apart (they hold the same coarse cells) are one kept sum.
    kinds: dict[bytes, int] = {}
    merged = np.full(held.size, -1, np.int64)
    owner, begin = np.unique(pairs // (label.max() + 1), return_index=True)
    for one, inside in zip(owner, np.split(pairs % (label.max() + 1), begin[1:]), strict=True):
        merged[one] = kinds.setdefault(inside.tobytes(), len(kinds))
    _, first, coarse = np.unique(
        merged[group] * (label.max() + 1) + label, return_index=True, return_inverse=True
    )
    size = len(first)
    A = np.zeros((sum(query.size for query in queries), size))
    at = 0
    for query in queries:
        own = query.of(cells[first])
        A[at + own[own >= 0], np.flatnonzero(own >= 0)] = 1.0
        at += query.size
    E = np.zeros((len(kinds), size))
    E[merged[group[first]], np.arange(size)] = 1.0
    del coarse
    return A, E, merged


def linear(A: Floats, E: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The best linear estimates of the answers: a matrix for the answers alone, one for answers and kept sums."""
    own = np.sqrt(weights)[:, None]
    free = A @ np.linalg.pinv(own * A, rcond=1e-10)
    both = A @ np.linalg.pinv(np.concatenate([own * A, EXACT * E]), rcond=1e-12)
    return free, both


def tied(B: Floats, E: Floats) -> list[Ints]:
    """The sets of answers that share kept sums: what one of them gets, another of its set lacks."""
    both = B @ E.T
    graph = np.block([[np.zeros((len(B), len(B))), both], [both.T, np.zeros((len(E), len(E)))]])
    count, label = connected_components(graph)
    return [own for one in range(count) if len(own := np.flatnonzero(label[: len(B)] == one))]


def nearest(B: Floats, E: Floats, kept: Floats, truth: Floats) -> float:
    """The least error of answers ``B @ x`` that any histogram without negative cells and with the kept sums has."""
    few, cells = B.shape
    one = sparse.eye_array(few)
    rows: Any = [[sparse.csr_array(E), None, None], [sparse.csr_array(B), -one, one]]
    sums: Any = sparse.block_array(
        rows, format="csr"
    )  # cells, then what an answer is short by and exceeds by
    cost = np.concatenate([np.zeros(cells), np.ones(2 * few)])
    found = linprog(cost, A_eq=sums, b_eq=np.concatenate([kept, truth]), method="highs")
    if found.fun is None:
        raise RuntimeError(f"no histogram keeps the sums: {found.message}")
    return float(found.fun)


def reached(B: Floats, E: Floats, kept: Floats, truth: Floats, error: Floats) -> float:
    """The mean absolute error of linear estimates, or of the nearest histograms where these are farther from the truth."""
    total = 0.0
    for own in tied(B, E):
        for sums, known, off in zip(kept, truth[:, own], np.abs(error[:, own]).sum(axis=1), strict=True):
            total += max(float(off), nearest(B[own], E, sums, known))
    return total / truth.size


def compare(above: UpperTree, measurements: Measurements, levels: Sequence[Sparse], depths: range) -> Errors:
    """The mean absolute errors by level and query: raw, best linear, with PL, with all sums, reached, rounded, released."""
    found: Errors = {}
    workload = above.allotment.workload
    shares = {name for own in above.allotment.rho.values() for name in own}
    queries = [
        query for query in workload.queries if query.size <= MAX_FIRST_ANSWERS and query.name in shares
    ]
    held = above.constraints.held[0]
    pl94 = Query(name="pl94", factors=held.query.factors, kept=held.query.kept, parts=held.query.parts)
    kinds = [designs(above, queries, one) for one in (pl94, held.query)]
    for depth in depths:
        start = int(above.allotment.start[depth][0])
        own = measurements.weights(start, depth)
        weights = np.concatenate([np.full(query.size, own[query.name]) for query in queries])
        nodes = np.flatnonzero(above.allotment.start[depth] == start)
        y = np.concatenate(
            [measurements.answers(depth, start, q, nodes, np.arange(q.size)) for q in queries], axis=1
        ).astype(float)
        known = held.low[depth][nodes]
        agreed: list[Floats] = []
        for (A, E, merged), sums in zip(kinds, (held.query.arrange_answers(known), known), strict=True):
            free, both = linear(A, E, weights)
            kept = np.zeros((len(nodes), len(E)))
            np.add.at(kept.T, merged[merged >= 0], sums[:, merged >= 0].T)
            agreed = agreed or [(np.sqrt(weights) * y) @ free.T]
            agreed.append(np.concatenate([np.sqrt(weights) * y, EXACT * kept], axis=1) @ both.T)
        at = 0
        for query in queries:
            part = slice(at, at + query.size)
            truth = sum_answers(above.truth[depth], query)[nodes].astype(float)
            out = sum_answers(levels[depth], query)[nodes]
            shown = (y[:, part], *(one[:, part] for one in agreed), np.rint(agreed[-1][:, part]), out)
            error = [float(np.abs(one - truth).mean()) for one in shown]
            error.insert(4, reached(A[part], E, kept, truth, agreed[-1][:, part] - truth))
            found[above.spine.levels[depth], query.name] = np.array(error)
            at += query.size
    return found


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--census", type=Path)
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--pl", default="pl94", help="the workload that PL is published with")
    parser.add_argument("--mode", default="workload", help="the mode that PL is published with")
    parser.add_argument("--products", nargs="+", default=["persons", "units"])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--first", type=int, default=5)
    parser.add_argument("--tables", type=int, default=3, help="levels from the top in the table")
    parser.add_argument("--levels", type=int, default=99, help="levels that are solved")
    options = parser.parse_args()
    total: dict[tuple[str, str, str], list[Floats]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if options.census is None:
            write_preset(options.preset, place / "census")
        census = read(options.census or place / "census" / "census.toml")
        for draw in range(options.first, options.first + options.draws):
            key = Key.for_tests(draw)
            data = place / f"pl{draw}" / "public" / "data"
            data.mkdir(parents=True)
            release = TopDown(workload=options.pl, mode=options.mode, replicates=0).release(
                census, key=key, out=data
            )
            save(release.specification, data.parent / "spec.json")
            for product in options.products:
                workload = Workload.preset(f"dhc-{product}")
                task = Task(
                    census=census, workload=workload, settings=Settings(mode="classic"), key=key, engine=Local(),
                    given=data.parent.parent,
                )  # fmt: skip
                above = build_whole_tree(task)
                measurements = Measurements(above.allotment, above.truth, key, 1, above.place)
                estimator = choose_estimator(Estimator.of(ClassicTargets(measurements), above.constraints))
                levels: list[Sparse] = []
                print(f"\n{workload.name}, key {draw}")
                for depth, level in enumerate(above.spine.levels[: options.levels]):
                    wall, cpu = time.perf_counter(), time.process_time()
                    levels, found = solve_levels(estimator, levels, depth, Local())
                    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
                    one = found[-1]
                    print(
                        f"{level:12s} {one.parents:6d} parents, sums off {one.violation:.1e}, distance {one.distance:.2f}, "
                        f"{one.iterations} products, {time.perf_counter() - wall:.1f} s, {time.process_time() - cpu:.1f} s "
                        f"of processors, {memory:.2f} GB",
                        flush=True,
                    )
                shown = compare(above, measurements, levels, range(min(options.tables, len(levels))))
                for name, error in shown.items():
                    total.setdefault((product, *name), []).append(error)
    columns = ["raw", "BLUE", "BLUE,PL", "BLUE,all", "reached", "rounded", "out"]
    beside = columns[2:-1]
    heads = [*(f"{name:>8s}" for name in columns), *(f"{'out/' + name:>14s}" for name in beside)]
    print(f"\n{'level':12s} {'query':34s}", *heads, f" with standard errors of {options.draws} draws")
    for (_, level, query), errors in total.items():
        draws = np.array(errors)
        numbers = " ".join(f"{one:8.3f}" for one in draws.mean(axis=0))
        ratios = " ".join(f"{quotient(draws[:, -1], draws[:, k]):>14s}" for k in map(columns.index, beside))
        print(f"{level:12s} {query:34s} {numbers} {ratios}")


def quotient(one: Floats, other: Floats) -> str:
    """A ratio of means over draws with its standard error: the spread of what each draw adds beyond its share."""
    ratio = one.mean() / other.mean()
    if len(one) < 2:
        return f"{ratio:.2f}"
    return f"{ratio:.3f} ± {(one - ratio * other).std(ddof=1) / len(one) ** 0.5 / other.mean():.3f}"


if __name__ == "__main__":
    main()
