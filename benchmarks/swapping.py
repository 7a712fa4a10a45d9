"""How fast the Permutation Swapping Algorithm is, beside the floor that any program must pay on this machine.

    python benchmarks/swapping.py                                  1 and 10 million households, under five minutes
    python benchmarks/swapping.py --households 130000000 --strata 300 500000
    python benchmarks/swapping.py --persons                        also carry the persons along
    python benchmarks/swapping.py --json

The floor reads the released columns of the file, takes them through a random permutation and writes them, in the same
run. The kernel (sizes, selection, derangement, swap of one column) runs on one thread beside numpy's take of the two
columns, stratum and place, medians of interleaved repeats. The release goes from Parquet to Parquet through
PermutationSwapping.release; reordering for publication and carrying persons have lines of their own.
"""

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LARGEST = 4_000_000 / 130_000_000  # share of the largest stratum, California's two-person households
BLOCKS = 8_000_000


def strata_of(rng: np.random.Generator, n: int, strata: int) -> np.ndarray:
    """Uneven strata: the largest as in the United States for few strata, even ones for many."""
    if strata > 10_000:
        return rng.integers(0, strata, n, dtype=np.int32)
    shares = np.sort(rng.pareto(1.2, strata) + 0.05)
    shares /= shares.sum()
    for _ in range(50):
        shares = np.minimum(shares, LARGEST)
        shares /= shares.sum()
    edges = np.cumsum(shares)
    result = np.empty(n, np.int32)
    for start in range(0, n, 1 << 22):
        stop = min(n, start + (1 << 22))
        result[start:stop] = np.minimum(np.searchsorted(edges, rng.random(stop - start)), strata - 1)
    return result


def make_files(folder: Path, n: int, strata: int, *, persons: bool) -> None:
    """A file of households as an office would have it: sorted by place, numbered in that order."""
    rng = np.random.default_rng(1)
    columns = {
        "household_id": np.arange(1, n + 1, dtype=np.int64),
        "stratum": strata_of(rng, n, strata),
        "block": np.sort(rng.integers(0, BLOCKS, n, dtype=np.int32)),
        "tenure": rng.integers(1, 5, n, dtype=np.int8),
    }
    pq.write_table(pa.table(columns), folder / "household.parquet", row_group_size=1 << 20)
    toml = '[geography]\nspine = ["block"]\n[record.household]\nfiles = ["household.parquet"]\nid = "household_id"\n'
    if persons:
        schema = pa.schema(
            [
                ("household_id", pa.int64()),
                ("age", pa.int8()),
                ("sex", pa.int8()),
                ("relationship", pa.int8()),
            ]
        )
        with pq.ParquetWriter(folder / "person.parquet", schema) as writer:
            for start in range(1, n + 1, 1 << 20):
                ids = np.arange(start, min(start + (1 << 20), n + 1), dtype=np.int64)
                owners = np.repeat(ids, rng.integers(1, 5, ids.size))
                size = owners.size
                part = [
                    owners,
                    rng.integers(0, 100, size),
                    rng.integers(1, 3, size),
                    rng.integers(0, 18, size),
                ]
                arrays = [pa.array(a, f.type) for a, f in zip(part, schema, strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        toml += '[record.person]\nfiles = ["person.parquet"]\nhousehold = "household_id"\nof = "household"\n'
    (folder / "census.toml").write_text(toml)


def clock() -> float:
    return time.perf_counter()


def measure_kernel(folder: Path, repeats: int) -> dict[str, float]:
    """One thread: numpy's take of both columns, and the whole swap of the place column, interleaved."""
    from stirred.chance import Key
    from stirred.engine import Local
    from stirred.mechanisms.swap.moves import draw_moves
    from stirred.mechanisms.swap.strata import count_sizes

    table = pq.read_table(folder / "household.parquet")
    ids = table["household_id"].to_numpy().view(np.uint64)
    strata, block = table["stratum"].to_numpy().astype(np.uint32), table["block"].to_numpy()
    del table
    order = np.random.default_rng(2).permutation(block.size)
    key, one = Key.for_tests(1), Local(workers=1)
    rate = Fraction(1, 20)
    draw_moves(key, ids=ids[:1000], strata=strata[:1000] % 7, rate=rate, engine=one)
    takes, single, swaps = [], [], []
    for _ in range(repeats):
        start = clock()
        block[order]
        single.append(clock() - start)
        start = clock()
        block[order], strata[order]
        takes.append(clock() - start)
        start = clock()
        moves = draw_moves(key, ids=ids, strata=strata, rate=rate, sizes=count_sizes(strata), engine=one)
        moves.apply(block)
        swaps.append(clock() - start)
    return {
        "take_one_column_s": statistics.median(single),
        "take_two_columns_s": statistics.median(takes),
        "kernel_s": statistics.median(swaps),
    }


def measure_floor(folder: Path) -> dict[str, float]:
    """Read, take, write the released columns."""
    start = clock()
    table = pq.read_table(folder / "household.parquet", columns=["stratum", "block", "tenure"])
    columns = {name: table[name].to_numpy() for name in table.column_names}
    read = clock() - start
    order = np.random.default_rng(3).permutation(table.num_rows)
    del table
    start = clock()
    taken = {name: column[order] for name, column in columns.items()}
    take = clock() - start
    start = clock()
    pq.write_table(pa.table(taken), folder / "floor.parquet", row_group_size=1 << 20)
    write = clock() - start
    (folder / "floor.parquet").unlink()
    return {"read_s": read, "take_s": take, "write_s": write, "floor_s": read + take + write}


def measure_release(folder: Path, *, persons: bool) -> dict[str, object]:
    """The mechanism from file to file; time is booked on the step that runs when the next one begins."""
    from stirred.census import Census, read
    from stirred.chance import Key
    from stirred.mechanisms.swap import PermutationSwapping

    census = read(folder / "census.toml")
    # invented strata have no listed levels, and small files have rare places: the guards ask for a reason
    psa = PermutationSwapping(
        match=["stratum"],
        swap=["block"],
        rate="1/20",
        carry=persons,
        release_identifiers=dict.fromkeys(("stratum", "block"), "a benchmark"),
        accept_reversal=["stratum"],
    )
    # a first run on a hundred records loads libraries and compiled kernels, so that they are not timed
    few = {name: census.scan(name).limit(100).collect() for name in census.schema.record_types}
    if persons:
        few["person"] = few["person"].filter(few["person"]["household_id"] <= 100)
    psa.release(Census.of(census.schema, few), key=Key.for_tests(1), out=Path(tempfile.mkdtemp(dir=folder)))
    steps: dict[str, float] = {}
    state = {"step": "start", "at": clock()}

    def progress(step: str, *_: int) -> None:
        now = clock()
        steps[str(state["step"])] = steps.get(str(state["step"]), 0.0) + now - float(state["at"])
        state.update(step=step, at=now)

    state.update(step="start", at=clock())
    out = folder / "out"
    out.mkdir(exist_ok=True)
    start, processor = clock(), time.process_time()
    release = psa.release(census, key=Key.for_tests(1), out=out, progress=progress)
    total, processor = clock() - start, time.process_time() - processor
    progress("end", 1, 1)
    assert all(check.kept for check in release.checks)
    reorder = steps.get("order", 0.0) + steps.get("reorder", 0.0)
    return {
        "total_s": total,
        "processor_s": processor,
        "reorder_s": reorder,
        "persons_s": sum(seconds for step, seconds in steps.items() if "person" in step),
        "without_reorder_s": total - reorder,
        "steps": {step: round(seconds, 3) for step, seconds in steps.items()},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _in_child(
    connection: object, function: object, arguments: tuple[object, ...], options: dict[str, object]
) -> None:
    connection.send(function(*arguments, **options))  # type: ignore[attr-defined, operator]


def alone(function: object, *arguments: object, **options: object) -> dict[str, object]:
    """Run in a process of its own, so that peaks of memory do not mix."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(there, function, arguments, options))
    child.start()
    there.close()
    result: dict[str, object] = here.recv()
    child.join()
    return result


def measure(n: int, strata: int, *, persons: bool, repeats: int, folder: Path) -> dict[str, object]:
    alone(make_files, folder, n, strata, persons=persons)
    kernel = alone(measure_kernel, folder, repeats)
    floor = alone(measure_floor, folder)
    alone(
        measure_release, folder, persons=False
    ) if n <= 1_000_000 else None  # compile before the first timing
    release = alone(measure_release, folder, persons=False)
    # on a shared machine the quieter of two floors, before and after, is the honest one
    floor = min(floor, alone(measure_floor, folder), key=lambda found: found["floor_s"])
    result: dict[str, object] = {
        "households": n,
        "strata": strata,
        "kernel": kernel,
        "floor": floor,
        "release": release,
    }
    if persons:
        result["with_persons"] = alone(measure_release, folder, persons=True)
    result["ratios"] = {
        "kernel_over_take_two_columns": kernel["kernel_s"] / kernel["take_two_columns_s"],
        "kernel_over_take_one_column": kernel["kernel_s"] / kernel["take_one_column_s"],
        "release_without_reorder_over_floor": release["without_reorder_s"] / floor["floor_s"],
        "release_over_floor": release["total_s"] / floor["floor_s"],
        "bytes_per_household_above_0.4_GB": (release["peak_bytes"] - 0.4e9) / n,
        "kernel_households_per_second": n / kernel["kernel_s"],
        "release_households_per_second": n / release["total_s"],
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--households", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--strata", type=int, nargs="+", default=[300, 500_000])
    parser.add_argument("--persons", action="store_true", help="also carry persons along, 2.5 a household")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the files go (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    for n in arguments.households:
        for strata in arguments.strata:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
                result = measure(
                    n, strata, persons=arguments.persons, repeats=arguments.repeats, folder=Path(place)
                )
            results.append(result)
            if not arguments.json:
                report(result)
    if arguments.json:
        print(json.dumps({"cores": os.cpu_count(), "results": results}, indent=2))


def report(result: dict[str, object]) -> None:
    """One block of lines for people."""
    ratios, release, floor = result["ratios"], result["release"], result["floor"]
    print(f"{result['households']:,} households, {result['strata']:,} strata")  # type: ignore[str-bytes-safe]
    for part in ("kernel", "floor"):
        print("  ", part, {k: round(v, 3) for k, v in result[part].items()})  # type: ignore[attr-defined]
    print("   release", {k: round(v, 3) for k, v in release.items() if isinstance(v, float)})  # type: ignore[attr-defined]
    print("   steps  ", release["steps"])  # type: ignore[index]
    if "with_persons" in result:
        more = result["with_persons"]
        print("   persons", {k: v if isinstance(v, dict) else round(v, 3) for k, v in more.items()})  # type: ignore[attr-defined]
    print("   ratios ", {k: round(v, 2) for k, v in ratios.items()}, flush=True)  # type: ignore[attr-defined]
    del floor


if __name__ == "__main__":
    main()
