"""One swap on three footings: this machine in memory, this machine in parts, and Spark; the same bytes each time.

    python benchmarks/engines.py                                   1, 5 and 20 million households
    python benchmarks/engines.py --households 1000000 --persons    persons travel along
    python benchmarks/engines.py --nation                          130 million households within 8 GB, local engine only
    python benchmarks/engines.py --master spark://host:7077        a cluster that sees this folder (--folder)
    python benchmarks/engines.py --whole                           a plan to its written packet, of several mechanisms

Every run is a process of its own: reading, swapping, reordering, verifying and writing Parquet, with the peak memory of
the process and all its children (for Spark: driver, Java, Python workers), and what Spark wrote to exchange rows. The
floor reads the columns, takes them through a permutation and writes them, in memory, in the same script. Spark's start
(about 10 seconds) is told apart, and so is Spark's own floor: it reads, shuffles twice and writes, without Python, after the
release and in the same session. What Spark does that the others do not is to survive the loss of a machine.

With --whole a plan runs to its packet, the check of the records, the report and the comparison with the census included,
in a session that has run the same plan on a small census before. Core-seconds are those of Spark's tasks; gathered is what
the driver was sent; its memory is the peak of its Python process. The census has 8 columns of households and 4 of persons
(2 a household), and nearly every record is alone with its values.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from swapping import make_files, measure_floor

MATCH, SWAP, RATE = ["stratum"], ["block"], "1/20"
PLANS = {
    "permutation-swapping": 'match = ["state", "size"]\nswap = ["county", "tract"]\nrate = "1/20"',
    "topdown": 'workload = "workload.toml"\nmode = "gls"\nreplicates = 0',
    "cell-key": 'tables = [["tract", "tenure"], ["county", "rooms"]]\nD = 3\nV = "2"\nwithout_guarantee = "a benchmark"',
    "gaussian-tables": 'tables = [["county"], ["tract"]]\nrho_squared = "1/2"\nshares = ["3/4", "1/4"]',
}
CENSUS = """name = "whole"
[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.household.variables]
size = {type = "integer", range = "1..3"}
tenure = {levels = ["own", "rent"]}
rooms = {type = "integer", range = "1..9"}
built = {type = "integer", range = "1900..2020"}
[record.person]
files = ["person.parquet"]
household = "hid"
of = "household"
[record.person.variables]
age = {type = "integer", range = "0..99"}
sex = {levels = ["f", "m"]}
job = {type = "integer", range = "1..150"}
"""
WORKLOAD = """name = "whole"
title = "Voting age"
source = "made for this benchmark"
record = "person"
rho_squared = "2"
levels = ["state", "county", "tract"]
[[axis]]
name = "votingage"
labels = ["under 18", "18 and over"]
source = { column = "age", cuts = [18] }
[[query]]
name = "total"
[[query]]
name = "ages"
of = ["votingage"]
[level_shares]
state = "1/2"
county = "1/4"
tract = "1/4"
[query_shares.state]
total = "1/2"
ages = "1/2"
[query_shares.county]
total = "1/2"
ages = "1/2"
[query_shares.tract]
total = "1/2"
ages = "1/2"
[passes]
state = [["*"]]
county = [["*"]]
tract = [["*"]]
[[rule]]
name = "state population"
kind = "exact"
query = "total"
level = "state"
"""
FEW = 2_000  # households of the census on which a session is warmed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--households", type=int, nargs="+")
    parser.add_argument("--strata", type=int, default=300)
    parser.add_argument("--persons", action="store_true")
    parser.add_argument(
        "--nation", action="store_true", help="130 million households, local engine, --memory"
    )
    parser.add_argument("--memory", default="8 GB", help="the bound of the run in parts (and of --nation)")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--skip", nargs="*", default=[], choices=["memory", "parts", "spark"])
    parser.add_argument(
        "--folder", type=Path, help="where the files lie (default: the system's temporary folder)"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--whole", action="store_true", help="a plan to its packet; 0.1 million households by default"
    )
    parser.add_argument(
        "--mechanisms", nargs="+", default=list(PLANS), choices=list(PLANS), help="of --whole"
    )
    arguments = parser.parse_args()
    if arguments.whole:
        measure_whole(arguments)
        return
    sizes = [130_000_000] if arguments.nation else arguments.households or [1_000_000, 5_000_000, 20_000_000]
    results = []
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            make_files(Path(folder), n, arguments.strata, persons=arguments.persons)
            result: dict[str, Any] = {
                "households": n,
                "strata": arguments.strata,
                "persons": arguments.persons,
            }
            result |= _apart(measure_floor, Path(folder))
            for name in ("memory", "parts", "spark"):
                if name in arguments.skip or (arguments.nation and name == "spark"):
                    continue
                result[name] = _apart(_release, Path(folder), name, arguments.memory, arguments.master)
                if not arguments.json:
                    _print_one(n, name, result)
            digests = {result[name]["contents"] for name in ("memory", "parts", "spark") if name in result}
            result["same_bytes"] = len(digests) == 1
            results.append(result)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print()
    for result in results:
        same = "the same bytes" if result["same_bytes"] else "DIFFERENT BYTES"
        print(f"{result['households']:>12,} households: floor {result['floor_s']:.1f} s; {same}")


def _print_one(n: int, name: str, result: dict[str, Any]) -> None:
    run = result[name]
    shuffle = f", exchanged {run['exchanged_bytes'] / 1e9:.2f} GB" if run["exchanged_bytes"] else ""
    start = f", start {run['start_s']:.1f} s" if run["start_s"] > 1 else ""
    if run["spark_alone_s"]:
        start += f"; Spark alone {run['spark_alone_s']:.1f} s"
    print(
        f"{n:>12,} households, {name:>6}: {run['seconds']:7.1f} s ({run['seconds'] / result['floor_s']:5.1f} × floor), "
        f"peak {run['peak_bytes'] / 1e9:.2f} GB{shuffle}{start}",
        flush=True,
    )


def _release(folder: Path, how: str, memory: str, master: str) -> dict[str, Any]:
    from stirred.census import read
    from stirred.chance import Key
    from stirred.engine import Local
    from stirred.mechanisms.contents import digest
    from stirred.mechanisms.swap import PermutationSwapping

    begun = time.perf_counter()
    engine: Any
    if how == "spark":
        from stirred.engine.spark import Spark

        engine = Spark(master=master, scratch=folder)
    elif how == "parts":
        engine = _in_parts()(memory=memory, scratch=folder)
    else:
        engine = Local(memory=memory, scratch=folder)
    mechanism = PermutationSwapping(match=MATCH, swap=SWAP, rate=RATE)
    _warm_up(mechanism)
    out = folder / how
    out.mkdir()
    started, processor = time.perf_counter(), time.process_time()
    release = mechanism.release(read(folder), key=Key.for_tests(1), engine=engine, out=out)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    exchanged = engine.count_shuffled_bytes() if how == "spark" else 0
    alone = _spark_alone(engine, folder) if how == "spark" else 0.0
    told = {name: digest(data) for name, data in sorted(release.microdata.items())}
    if how == "spark":
        engine.stop()
    return {
        "seconds": seconds,
        "processor_seconds": processor,  # of this process: on Spark, of the driver
        "start_s": started - begun,
        "exchanged_bytes": exchanged,
        "spark_alone_s": alone,
        "contents": json.dumps(told),
    }


def _spark_alone(engine: Any, folder: Path) -> float:
    """Spark's own floor, warm: read the columns, shuffle them twice, write them; no Python, no kernel, no check."""
    from pyspark.sql import functions as sf

    parts = engine.parts_for(0)
    started = time.perf_counter()
    frame = engine.session.read.parquet(str(folder / "household.parquet"))
    frame = frame.repartition(parts, "stratum").repartition(parts, sf.xxhash64("household_id"))
    frame.write.parquet(str(folder / "spark-alone"))
    return time.perf_counter() - started


def measure_whole(arguments: argparse.Namespace) -> None:
    """Measure plans to their packets, in memory and on Spark, and print a line for each."""
    results = []
    for n in arguments.households or [100_000]:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for name, size in (("census", n), ("few", FEW)):
                write_whole_census(Path(folder) / name, size)
            for mechanism in arguments.mechanisms:
                memory = _apart(_run_whole, Path(folder), "memory", mechanism, arguments.master)
                spark = _apart(_run_whole, Path(folder), "spark", mechanism, arguments.master)
                same = memory.pop("contents") == spark.pop("contents")
                result = {"households": n, "mechanism": mechanism, "same_contents": same}
                results.append({**result, "memory": memory, "spark": spark})
                if not arguments.json:
                    _print_whole(results[-1])
    if arguments.json:
        print(json.dumps(results, indent=2))


def _print_whole(result: dict[str, Any]) -> None:
    memory, spark = result["memory"], result["spark"]
    same = "same contents" if result["same_contents"] else "DIFFERENT CONTENTS"
    print(
        f"{result['households']:>10,} {result['mechanism']}: memory {memory['seconds']:.1f} s; "
        f"Spark {spark['seconds']:.1f} s, "
        f"{spark['core_s']:.1f} core-s, {spark['seconds'] / spark['spark_alone_s']:.1f} × Spark alone "
        f"({spark['spark_alone_s']:.1f} s), exchanged {spark['exchanged_bytes'] / 1e6:.1f} MB, gathered "
        f"{spark['gathered_rows']:,} rows, {spark['gathered_bytes'] / 1e3:.1f} kB ({spark['share_rows']:.3%}, "
        f"{spark['share_bytes']:.3%}), driver {spark['driver_peak_bytes'] / 1e9:.2f} GB; {same}",
        flush=True,
    )


def _run_whole(folder: Path, how: str, mechanism: str, master: str) -> dict[str, Any]:
    """Run a plan to its packet, after the same plan on a small census."""
    import pyarrow.parquet as pq

    from stirred import Key, Local, load, run

    engine: Any = Local()
    if how == "spark":
        from stirred.engine.spark import Spark

        engine = Spark(master=master, scratch=folder)
    seconds, before, exchanged, gathered = 0.0, 0.0, 0, (0, 0)
    for name in ("few", "census"):
        place = folder / name
        text = f'title = "whole"\ncensus = "census.toml"\n[[mechanism]]\nname = "{mechanism}"\n{PLANS[mechanism]}\n'
        (place / "plan.toml").write_text(text + "[assess]\nutility = true\n")
        if how == "spark":
            before, exchanged = _task_seconds(engine), engine.count_shuffled_bytes()
            gathered = engine.gathered_rows, engine.gathered_bytes
        started = time.perf_counter()
        packet = run(
            load(place / "plan.toml"), place / f"{how}-{mechanism}", key=Key.for_tests(1), engine=engine
        )
        seconds = time.perf_counter() - started
    peak = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )  # before contents are read to compare them
    found: dict[str, Any] = {"seconds": seconds, "contents": json.dumps(packet.contents(), default=str)}
    if how == "spark":
        tables = [pq.read_table(folder / "census" / f"{name}.parquet") for name in ("household", "person")]
        rows, size = engine.gathered_rows - gathered[0], engine.gathered_bytes - gathered[1]
        found |= {
            "core_s": _task_seconds(engine) - before,
            "exchanged_bytes": engine.count_shuffled_bytes() - exchanged,
            "gathered_rows": rows,
            "gathered_bytes": size,
            "share_rows": rows / sum(table.num_rows for table in tables),
            "share_bytes": size / sum(table.nbytes for table in tables),
            "driver_peak_bytes": peak,
            "spark_alone_s": measure_spark_alone(engine, folder, mechanism),
        }
        engine.stop()
    return found


def _task_seconds(engine: Any) -> float:
    """Return how many seconds Spark's tasks have run so far."""
    spark = engine.context._jsc.sc()
    spark.listenerBus().waitUntilEmpty(10_000)
    executors = spark.statusStore().executorList(False)
    return float(sum(executors.apply(i).totalDuration() for i in range(executors.size())) / 1000)


def measure_spark_alone(engine: Any, folder: Path, mechanism: str) -> float:
    """Return the seconds of Spark's own floor: read both files, shuffle each twice, write them; no Python, no kernel.

    The small census goes first here too: tasks of Stirred read Parquet without Java, so Java's reader is cold after a run.
    """
    seconds = 0.0
    for place in (folder / "few", folder / "census"):
        parts = engine.parts_for(0)
        started = time.perf_counter()
        for name, first in (("household", "size"), ("person", "age")):
            frame = engine.session.read.parquet(str(place / f"{name}.parquet"))
            frame = frame.repartition(parts, first).repartition(parts, "hid")
            frame.write.parquet(str(place / f"alone-{mechanism}-{name}"))
        seconds = time.perf_counter() - started
    return seconds


def write_whole_census(folder: Path, households: int) -> None:
    """Write households and persons of a census whose records are nearly all different."""
    import numpy as np
    import polars as pl

    rng, place = np.random.default_rng(households), np.arange(households)
    tract, size = place % 240, 1 + place // 240 % 3
    columns: dict[str, Any] = {
        "hid": 7 * place + 3,
        "state": [str(t // 120) for t in range(240)],
        "county": [f"{t // 12:02d}" for t in range(240)],
        "tract": [f"{t:03d}" for t in range(240)],
        "size": size,
        "tenure": rng.choice(["own", "rent"], households),
        "rooms": rng.integers(1, 10, households),
        "built": rng.integers(1900, 2021, households),
    }
    for level in ("state", "county", "tract"):
        columns[level] = pl.Series(columns[level]).gather(tract)
    homes = pl.DataFrame(columns)
    owner = np.repeat(homes["hid"].to_numpy(), size)
    persons = pl.DataFrame(
        {
            "hid": owner,
            "age": rng.integers(0, 100, owner.size),
            "sex": rng.choice(["f", "m"], owner.size),
            "job": rng.integers(1, 151, owner.size),
        }
    )
    folder.mkdir()
    homes.write_parquet(folder / "household.parquet", row_group_size=1 << 18)
    persons.write_parquet(folder / "person.parquet", row_group_size=1 << 18)
    (folder / "census.toml").write_text(CENSUS)
    (folder / "workload.toml").write_text(WORKLOAD)


def _in_parts() -> Any:
    from dataclasses import dataclass

    from stirred.engine import Local

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Parts(Local):
        """The local engine on which nothing fits, so that every job goes by parts within the same bound."""

        def fits(self, size: int) -> bool:  # noqa: ARG002
            return False

    return Parts


def _warm_up(mechanism: Any) -> None:
    """Compile (or load from the cache) before the clock runs; persons have kernels of their own."""
    import pyarrow as pa

    from stirred.census import Census
    from stirred.chance import Key

    few = {
        "household_id": range(40),
        "stratum": [i % 3 for i in range(40)],
        "block": [i % 8 for i in range(40)],
    }
    person = {"household_id": range(40), "age": range(40)}
    schema = {
        "geography": {"spine": ["block"]},
        "record": {
            "household": {"id": "household_id"},
            "person": {"household": "household_id", "of": "household"},
        },
    }
    census = Census.of(schema, {"household": pa.table(few), "person": pa.table(person)})
    mechanism.release(census, key=Key.for_tests(1))


def _apart(work: Any, *arguments: Any) -> dict[str, Any]:
    """Run in a process of its own and watch the memory of it and all its children."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(there, work, arguments))
    process.start()
    peak = [0]
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peak, over), daemon=True)
    watcher.start()
    result: dict[str, Any] = here.recv()
    process.join()
    over.set()
    watcher.join()
    return {**result, "peak_bytes": peak[0]}


def _child(pipe: Any, work: Any, arguments: tuple[Any, ...]) -> None:
    pipe.send(work(*arguments))
    pipe.close()


def _watch(pid: int | None, peak: list[int], over: threading.Event) -> None:
    """The largest sum of private memory (proportional set size) over the process tree, ten times a second."""
    while not over.wait(0.1):
        peak[0] = max(peak[0], sum(_memory(one) for one in _tree(pid or os.getpid())))


def _tree(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for one in found:
        found += [pid for pid, parent in parents.items() if parent == one]
    return found


def _memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
