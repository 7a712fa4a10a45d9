"""SafeTab-P on the synthetic state: seconds by step, peak memory, cost per million persons and per million groups.

  python benchmarks/safetab.py [CENSUS.toml] [--codes FOLDER] [--households N]
  python benchmarks/safetab.py --toy

``--toy`` runs the command on about ten persons as a whole process, first without compiled kernels, then with them.

The floor is one scan that reads the same columns of the same records and adds up a hash of each.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.safetab.groups import group_counts
from stirred.mechanisms.safetab.persons import SafeTabP


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
    arguments = parser.parse_args()
    if arguments.toy:
        print(json.dumps(toy(), indent=1))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.census or folder)
        if arguments.census is None:
            write_preset("state", path, households=arguments.households)
        print(json.dumps(measured(path, arguments.codes), indent=1))


def toy() -> dict[str, object]:
    """Wall and processor seconds of three runs of the command; a busy machine lengthens the first, less the second."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_preset("demo", Path(folder) / "census", households=5)
        environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/kernels"}
        for number, name in enumerate(("first run", "with kernels", "again")):
            words = ["safetab-p", f"{folder}/census", "--out", f"{folder}/packet{number}", "--json"]
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "stirred", *words], env=environment, check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[name] = {"wall": time.perf_counter() - start, "processor": processor}
    return {"seconds": found, "load": os.getloadavg()[0]}


def measured(path: Path, codes: str | None) -> dict[str, object]:
    """All figures of one census."""
    mechanism, key = SafeTabP(codes=codes), Key.for_tests(1)
    census = read(path)
    start = time.perf_counter()
    checked = census.checked()
    checking = time.perf_counter() - start
    tally = mechanism.tally(checked)
    start = time.perf_counter()
    scan = census.scan("person", list(tally.columns), ordered=False)
    scan.select(pl.struct(pl.all()).hash().sum()).collect(engine="streaming")
    floor = time.perf_counter() - start
    start = time.perf_counter()
    group_counts(checked, tally)
    counting = time.perf_counter() - start
    start = time.perf_counter()
    release = mechanism.release(checked, key=key)
    whole = time.perf_counter() - start
    persons, groups = census.count("person"), sum(item.number for item in tally.sets)
    return {
        "persons": persons,
        "groups": groups,
        "rows": {name: table.num_rows for name, table in release.tables.items()},
        "seconds": {
            "check": checking,
            "read columns (floor)": floor,
            "count groups": counting,
            "release": whole,
        },
        "ratio to the floor": whole / floor,
        "seconds per million persons": whole / persons * 1e6,
        "seconds per million groups, beyond counting": (whole - counting) / groups * 1e6,
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cores": os.cpu_count(),
        "load at the end": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
