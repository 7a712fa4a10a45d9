"""SafeTab-P and SafeTab-H on the synthetic state: seconds by step, peak memory, cost per million records and groups.

  python benchmarks/safetab.py [CENSUS.toml] [--codes FOLDER] [--households N]
  python benchmarks/safetab.py --toy

The state has 1.1 million persons; with the code lists of the production of 2020 as FOLDER this is the whole measurement:

  python benchmarks/safetab.py --codes ../shared/data/safetab/p_production_NMFv7-2020

Each product runs in a process of its own, so that its peak memory is its own; kernels are warm if the benchmark ran before.
``--toy`` runs the commands on about ten persons as whole processes, first without compiled kernels, then with them.

The floor is one scan that reads the same columns of the same records and adds up a hash of each. Processor seconds are those
of all threads: a busy machine lengthens the wall time, and them little.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.census2020.safetab.groups import count_groups
from stirred.mechanisms.census2020.safetab.households import SafeTabH
from stirred.mechanisms.census2020.safetab.persons import SafeTabP
from stirred.publish import save

KEY = Key.for_tests(1)
TOYS = {
    "safetab-p": ["safetab-p", "{place}/census"],
    "safetab-h": ["safetab-h", "{place}/census", "--totals", "{place}/safetab-p-0"],
    "phsafe": ["phsafe", "{place}/census"],
}


def main() -> None:
    """Run and print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "census", nargs="?", help="census.toml (default: a synthetic state, made for the run)"
    )
    parser.add_argument("--codes", help="a folder of code lists (default: the invented ones)")
    parser.add_argument("--households", type=int, help="of the synthetic state")
    parser.add_argument("--toy", action="store_true", help="whole processes on about ten persons")
    parser.add_argument("--one", choices=["safetab-p", "safetab-h"], help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.toy:
        print(json.dumps(toy(), indent=1))
        return
    if arguments.one:
        measure = persons if arguments.one == "safetab-p" else households
        print(json.dumps(measure(Path(arguments.census), arguments.codes, arguments.work)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.census or f"{folder}/census")
        if arguments.census is None:
            made = [sys.executable, "-m", "stirred", "data", "synth", "state", "--out", str(path)]
            some = [] if arguments.households is None else ["--households", str(arguments.households)]
            subprocess.run([*made, *some], check=True, capture_output=True)
        words = [str(path), "--work", folder, *(["--codes", arguments.codes] if arguments.codes else [])]
        found = {}
        for product in ("safetab-p", "safetab-h"):  # the second reads the totals of the first
            run = [sys.executable, __file__, *words, "--one", product]
            found[product] = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    found["cores"], found["load at the end"] = os.cpu_count(), os.getloadavg()[0]
    print(json.dumps(found, indent=1))


def toy() -> dict[str, object]:
    """Wall and processor seconds of three runs of each command; a busy machine lengthens the first, less the second."""
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_preset("demo", Path(folder) / "census", households=5)
        environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/kernels"}
        for name, words in TOYS.items():
            for number, when in enumerate(("first run", "second", "third")):
                asked = [word.format(place=folder) for word in words]
                before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                run = [
                    sys.executable,
                    "-m",
                    "stirred",
                    *asked,
                    "--out",
                    f"{folder}/{name}-{number}",
                    "--json",
                ]
                subprocess.run(run, env=environment, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                seconds = {"wall": time.perf_counter() - start, "processor": processor}
                found.setdefault(name, {})[when] = seconds
    return {"seconds": found, "load": os.getloadavg()[0]}


def timed(seconds: dict[str, dict[str, float]], step: str, work: Callable[[], Any]) -> Any:
    """What the work returns; how long it took is written down."""
    start, processor = time.perf_counter(), time.process_time()
    found = work()
    seconds[step] = {"wall": time.perf_counter() - start, "processor": time.process_time() - processor}
    return found


def figures(
    seconds: dict[str, dict[str, float]], records: int, groups: int, rows: dict[str, int]
) -> dict[str, object]:
    """What a run cost, whole and per million."""
    whole = seconds["release"]["processor"]
    return {
        "records": records,
        "groups": groups,
        "rows": rows,
        "seconds": seconds,
        "ratio to the floor, processor": whole / seconds["read columns (floor)"]["processor"],
        "processor seconds per million records": whole / records * 1e6,
        "processor seconds per million groups": whole / max(groups, 1) * 1e6,
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def persons(path: Path, codes: str | None, work: Path) -> dict[str, object]:
    """SafeTab-P of one census; its packet is kept for SafeTab-H."""
    mechanism, census = SafeTabP(codes=codes), read(path)
    seconds: dict[str, dict[str, float]] = {}
    checked = timed(seconds, "check", census.check)
    tally = mechanism.tally(checked)
    scan = census.scan("person", list(tally.columns), ordered=False).select(pl.struct(pl.all()).hash().sum())
    timed(seconds, "read columns (floor)", lambda: scan.collect(engine="streaming"))
    timed(seconds, "count groups", lambda: count_groups(checked, tally))
    release = timed(seconds, "release", lambda: mechanism.release(checked, key=KEY))
    rows = {name: table.num_rows for name, table in release.tables.items()}
    found = figures(seconds, census.count("person"), sum(item.number for item in tally.sets), rows)
    save(release, work / "persons")
    return found


def households(path: Path, codes: str | None, work: Path) -> dict[str, object]:
    """SafeTab-H of one census, with the totals that SafeTab-P left."""
    census = read(path)
    mechanism = SafeTabH(totals=work / "persons", codes=None if codes is None else Path(codes))
    seconds: dict[str, dict[str, float]] = {}
    checked = timed(seconds, "check", census.check)
    scan = census.scan("household", ordered=False).select(pl.struct(pl.all()).hash().sum())
    timed(seconds, "read columns (floor)", lambda: scan.collect(engine="streaming"))
    release = timed(seconds, "release", lambda: mechanism.release(checked, key=KEY))
    rows = {name: table.num_rows for name, table in release.tables.items()}
    groups = (
        release.tables["t3"]
        .select(["region_type", "region", "iteration"])
        .group_by(
            [
                "region_type",
                "region",
                "iteration",
            ]
        )
    )
    return figures(seconds, census.count("household"), groups.aggregate([]).num_rows, rows)


if __name__ == "__main__":
    main()
