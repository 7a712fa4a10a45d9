"""SafeTab-P on the synthetic state: seconds by step, peak memory, cost per million persons and per million groups.

  python benchmarks/safetab.py [CENSUS.toml] [--codes FOLDER] [--households N]

The floor is one scan that reads the same columns of the same records and adds up a hash of each.
"""

import argparse
import json
import os
import resource
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
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.census or folder)
        if arguments.census is None:
            write_preset("state", path, households=arguments.households)
        print(json.dumps(measured(path, arguments.codes), indent=1))


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
