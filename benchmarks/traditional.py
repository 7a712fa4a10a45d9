"""The traditional methods: targeted record swapping, and the cell key method beside the ONS package.

Usage: python benchmarks/traditional.py [--persons N …] [--rows N] [--peer PYTHON] [--json]

Targeted record swapping runs on households of 1 to 6 persons (mean 2.37) in nuts1 > nuts2 > nuts3 > lau, lau of about 500
households, k = 3 on age (18 groups) × sex × nationality (6), profiles (size, type) then (size), 5 %. n3 has three levels and
carries lau along, n4 has four. "draw" is the matching with its risks, from encoded records, which is what recordSwap's C++
core does; "release" is everything from the census to verified, ordered records in memory. Where time per million persons is
about equal at two sizes, the growth is linear. On a busy machine the processor's seconds say more than the clock's.

What the peer does that this does not: recordSwap (sdcMicro 5.8, C++) takes 6 to 14 s (n3) and about 100 s (n4) at 1 million
persons on two busy cores, 96 s (n3) at 5 million; it is not run here, it needs R. These figures are of another day and of a
census like this one; the ratio to them is an order of magnitude.

The cell key method counts 1 million rows by 840 areas × 18 × 2 and looks the noise up; with --peer, a Python that has the
ONS package cell-key-perturbation, that package perturbs the same rows with the same table in the same run.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.frames import arrow_of
from stirred.mechanisms.cell_key.perturbation import GridTable
from stirred.mechanisms.cell_key.tabulate import COUNT, SUM, KeyedCells, RecordKeys, counted
from stirred.mechanisms.targeted import TargetedSwapping

LEVELS = ["nuts1", "nuts2", "nuts3", "lau"]
SHARES = [0.34, 0.29, 0.15, 0.13, 0.06, 0.03]  # of sizes 1 to 6: mean 2.37
PEER_SECONDS = {("n3", 1_000_000): 7.5, ("n4", 1_000_000): 100.0, ("n3", 5_000_000): 95.9}
PEER = """
import sys, time
import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
rows, table = pd.read_parquet(sys.argv[1]), pd.read_csv(sys.argv[2])
best, busy = [], time.process_time()
for _ in range(3):
    start = time.perf_counter()
    made = create_perturbed_table(rows, table, geog=["area"], tab_vars=["age", "sex"], record_key="key", threshold=0)
    best.append(time.perf_counter() - start)
print((time.process_time() - busy) / 3, sorted(best)[1], int(made["count"].sum()))
"""


def people(persons: int, seed: int = 4) -> Census:
    """Households with a place, a type and a tenure; persons with age, sex and nationality."""
    rng = np.random.default_rng(seed)
    homes = round(persons / 2.37)
    areas = max(homes // 500, 8)
    size = rng.choice(np.arange(1, 7, dtype=np.int8), homes, p=SHARES)
    drawn = rng.lognormal(0, 0.6, areas)
    lau = rng.choice(areas, homes, p=drawn / drawn.sum()).astype(np.int32)
    owner = np.repeat(np.arange(homes, dtype=np.int64), size)
    age = np.minimum(rng.gamma(3.2, 2.4, owner.size), 17).astype(np.int8)
    nation = rng.choice(np.arange(6, dtype=np.int8), owner.size, p=[0.85, 0.06, 0.04, 0.03, 0.015, 0.005])
    nuts3 = lau // 10
    household = pl.DataFrame(
        {
            "hid": np.arange(homes, dtype=np.int64),
            "nuts1": nuts3 // 12,
            "nuts2": nuts3 // 4,
            "nuts3": nuts3,
            "lau": lau,
            "hs": size,
            "ht": rng.integers(0, 8, homes).astype(np.int8),
            "tenure": rng.integers(0, 3, homes).astype(np.int8),
        }
    )
    person = pl.DataFrame(
        {"hid": owner, "age": age, "sex": rng.integers(0, 2, owner.size).astype(np.int8), "nat": nation}
    )
    schema = {
        "geography": {"spine": LEVELS},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
    }
    return Census.of(schema, {"household": household, "person": person})


def swapping(name: str) -> TargetedSwapping:
    """n3 or n4 of the facts."""
    return TargetedSwapping(
        hierarchy=LEVELS[:3] if name == "n3" else LEVELS,
        carry_along=["lau"] if name == "n3" else [],
        similar=[["hs", "ht"], ["hs"]],
        swaprate="1/20",
        k_anonymity=3,
        risk_variables=["age", "sex", "nat"],
        without_guarantee="a benchmark",
    )


def timed(work: Callable[[], object], rounds: int) -> float:
    """The median of some runs, in seconds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return median(found)


def targeted(persons: int, rounds: int) -> list[dict[str, Any]]:
    """A row for three and one for four levels."""
    census, key, rows = people(persons), Key.fresh(), []
    for name in ("n3", "n4"):
        mechanism = swapping(name)
        frame = mechanism.frame(census)
        moved = float(mechanism.pairs(frame, key).moved.mean())
        busy = time.process_time()
        draw = timed(lambda: mechanism.pairs(frame, key), rounds)  # noqa: B023
        busy = (time.process_time() - busy) / rounds
        whole = timed(lambda: mechanism.release(census, key=key, engine=Local()), 1)  # noqa: B023
        peer = PEER_SECONDS.get((name, persons))
        rows.append(
            {
                "config": name,
                "persons": persons,
                "draw_seconds": round(draw, 3),
                "draw_processor_seconds": round(busy, 3),
                "release_seconds": round(whole, 2),
                "persons_per_second": round(persons / draw),
                "households_moved": round(moved, 4),
                "recordswap_seconds_stored": peer,
                "ratio": round(peer / draw, 1) if peer else None,
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    return rows


def cell_key(number: int, rounds: int, peer: str) -> dict[str, Any]:
    """Rows per second of counting and perturbing, beside the ONS package where it is there."""
    rng = np.random.default_rng(2)
    rows = pl.DataFrame(
        {
            "area": rng.integers(0, 840, number).astype(np.int32),
            "age": rng.integers(0, 18, number).astype(np.int8),
            "sex": rng.integers(0, 2, number).astype(np.int8),
            "key": rng.integers(0, 256, number),
        }
    )
    grid = rng.integers(-2, 3, (750, 256))
    table, data = GridTable(grid), arrow_of(rows)
    cells = KeyedCells(
        ("area", "age", "sex"), RecordKeys(Key.for_tests(1), "key", table.modulus, permanent=True)
    )

    def perturbed() -> int:
        found = counted(Local().released(data), cells)
        count = found[COUNT].to_numpy()
        return int((count + table.noise(count, found[SUM].to_numpy())).sum())

    total, busy = perturbed(), time.process_time()
    seconds = timed(perturbed, rounds)
    busy = (time.process_time() - busy) / rounds
    row: dict[str, Any] = {"config": "cell key", "rows": number, "rows_per_second": round(number / seconds)}
    row["processor_seconds"] = round(busy, 3)
    if peer:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            rows.write_parquet(place / "rows.parquet")
            pcv, keys = np.divmod(np.arange(grid.size), 256)
            pl.DataFrame({"pcv": pcv + 1, "ckey": keys, "pvalue": grid.ravel()}).write_csv(
                place / "table.csv"
            )
            words = [peer, "-c", PEER, str(place / "rows.parquet"), str(place / "table.csv")]
            told = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        if int(told[-1]) != total:
            raise SystemExit("the two methods do not show the same counts")
        row |= {
            "ons_rows_per_second": round(number / float(told[-2])),
            "ratio": round(float(told[-2]) / seconds, 1),
            "ons_processor_seconds": round(float(told[-3]), 3),
            "ratio_of_processor_seconds": round(float(told[-3]) / busy, 1),
        }
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", default="", help="a Python that has cell-key-perturbation installed")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    targeted(20_000, 1)  # compile
    found = [row for persons in arguments.persons for row in targeted(persons, arguments.rounds)]
    found.append(cell_key(arguments.rows, arguments.rounds, arguments.peer))
    if arguments.json:
        print(json.dumps(found))
        return 0
    for row in found:
        print("  ".join(f"{name}={value}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
