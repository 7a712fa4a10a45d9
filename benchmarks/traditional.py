"""The traditional methods: targeted record swapping, and the cell key method beside the ONS package.

Usage: python benchmarks/traditional.py [--persons N …] [--scan N] [--rows N] [--peer PYTHON] [--recordswap FOLDER] [--json]

Targeted record swapping runs on households of 1 to 6 persons (mean 2.37) in nuts1 > nuts2 > nuts3 > lau, lau of about 500
households, k = 3 on age (18 groups) × sex × nationality (6), profiles (size, type) then (size), 5 %. n3 has three levels and
carries lau along, n4 has four. "draw" is the matching with its risks, from encoded records, which is what recordSwap's C++
core does; "release" is everything from the census to verified, ordered records in memory. Each row is a process of its own,
so that the peak of memory is its own. Where time per million persons is about equal at two sizes, the growth is linear. On a
busy machine the processor's seconds say more than the clock's; the load of the machine stands in each row.

The peer, recordSwap (sdcMicro 5.8, C++), takes 6 to 14 s (n3) and about 100 s (n4) at 1 million persons on two busy cores,
96 s (n3) at 5 million: figures of another day and of a census like this one, and the ratio to them is an order of magnitude.
With --recordswap, a folder with the sources of sdcMicro, its core is built by Debian's R and Rcpp (benchmarks/recordswap.R)
and swaps the same persons in the same run; the shares of households that move in both stand in the row. That both move as
many, across the same levels, is tested with 1,000 seeds of the peer: tests/unit/targeted/test_against_recordswap.py.

Up to --scan persons the same draw is made once more with partners found by a scan of all records, as the peer finds them,
but compiled and on flat arrays. That scan is not the peer: it is the least that any such search costs with the order and the
risks of Stirred. Both find the same partners, which is checked.

The cell key method counts 1 million rows by 840 areas × 18 × 2 and looks the noise up; with --peer, a Python that has the
ONS package cell-key-perturbation, that package perturbs the same rows with the same table in the same run.
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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.frames import arrow_of, frame_of
from stirred.kernels import compile_kernel
from stirred.mechanisms.swap.pairs import FREE, SWAPPED, Ints, Pairing, Tier
from stirred.mechanisms.swap.targeted import TargetedSwapping
from stirred.mechanisms.tables.cell_key.cells import COUNT, SUM, KeyedCells, RecordKeys, count_keyed_cells
from stirred.mechanisms.tables.cell_key.perturbation import GridTable

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


def time_recordswap(folder: str, census: Census, name: str, rounds: int) -> tuple[float, float, float]:
    """Seconds of recordSwap by the clock and of the processor, and the share of households that it moved."""
    script = Path(__file__).with_name("recordswap.R")
    flat = frame_of(census.table("person")).join(frame_of(census.table("household")), on="hid")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "people.csv")
        flat.with_columns(pl.all().cast(pl.Int64)).write_csv(file)
        words = ["Rscript", str(script), folder, str(file), name, str(rounds)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    clock, busy, moved = map(float, done.stdout.split()[-3:])
    return clock, busy, moved


def targeted(persons: int, name: str, rounds: int, scan: int, recordswap: str) -> dict[str, Any]:
    """One row: a number of persons, three or four levels."""
    first = swapping(name)
    small = people(20_000)
    first.release(small, key=Key.fresh(), engine=Local())  # compile
    census, key, mechanism = people(persons), Key.fresh(), swapping(name)
    frame = mechanism.frame(census)
    drawn = mechanism.pair_records(frame, key)
    busy = time.process_time()
    draw = timed(lambda: mechanism.pair_records(frame, key), rounds)
    busy = (time.process_time() - busy) / rounds
    of_draw = _peak()
    row: dict[str, Any] = {
        "config": name,
        "persons": persons,
        "draw_seconds": round(draw, 3),
        "draw_processor_seconds": round(busy, 3),
        "processor_seconds_per_million": round(busy / persons * 1e6, 3),
        "persons_per_second": round(persons / draw),
        "households_moved": round(float(drawn.moved_mask.mean()), 4),
    }
    if persons <= scan:
        row |= scanned(mechanism, frame, key, drawn, small)
    busy = time.process_time()
    whole = timed(lambda: mechanism.release(census, key=key, engine=Local()), 1)
    row |= {
        "release_seconds": round(whole, 2),
        "release_processor_seconds": round(time.process_time() - busy, 2),
        "peak_rss_bytes": of_draw,
        "peak_rss_bytes_of_release": _peak(),
        "load": round(os.getloadavg()[0], 1),
    }
    if recordswap:
        clock, spent, moved = time_recordswap(recordswap, census, name, rounds)
        row |= {
            "recordswap_seconds": round(clock, 3),
            "recordswap_processor_seconds": round(spent, 3),
            "recordswap_households_moved": round(moved, 4),
            "ratio_of_processor_seconds": round(spent / busy_of(row), 1),
        }
    elif (name, persons) in PEER_SECONDS:
        peer = PEER_SECONDS[name, persons]
        row |= {
            "recordswap_seconds_stored": peer,
            "ratio": round(peer / draw, 1),
            "ratio_of_processor_seconds": round(peer / busy_of(row), 1),
        }
    return row


def busy_of(row: dict[str, Any]) -> float:
    """The processor's seconds of a draw."""
    return max(float(row["draw_processor_seconds"]), 1e-9)


def scanned(
    mechanism: TargetedSwapping, frame: Any, key: Key, drawn: Pairing, small: Census
) -> dict[str, Any]:
    """The same draw by a scan of all records, once."""
    with patch("stirred.mechanisms.swap.pairs.Buckets", Scan):
        mechanism.pair_records(mechanism.frame(small), key)  # compile
        busy = time.process_time()
        found = mechanism.pair_records(frame, key)
        busy = time.process_time() - busy
    if not np.array_equal(found.partner, drawn.partner):
        raise SystemExit("the scan and the buckets do not find the same partners")
    return {"scan_processor_seconds": round(busy, 3)}


@dataclass(frozen=True, slots=True)
class Scan:
    """Partners by a scan of all records in their order: what buckets are measured against."""

    groups: Ints
    partners: np.ndarray[Any, np.dtype[np.bool_]]
    own: Ints
    order: Ints

    @staticmethod
    def of(tiers: list[Tier], own: Ints, order: Ints) -> "Scan":
        """Nothing is prepared."""
        groups, partners = np.stack([t.groups for t in tiers]), np.stack([t.partners for t in tiers])
        return Scan(groups, partners, own, order)

    def pair(self, pairing: Pairing, seekers: Ints, *, level: int, must: bool, **quotas: Ints) -> None:
        """Swap each seeker with the first free record of another area in the first group that has one."""
        before = pairing.moved_mask
        _scan(
            seekers, self.groups, self.partners, self.own, self.order, quotas["quota_of"], quotas["quota"],
            quotas["done"], pairing.state, pairing.partner, pairing.tier, pairing.begun, pairing.failed, must,
        )  # fmt: skip
        pairing.level[pairing.moved_mask & ~before] = level


@compile_kernel
def _scan(
    seekers: Any, groups: Any, partners: Any, own: Any, order: Any, quota_of: Any, quota: Any, done: Any, state: Any,
    partner: Any, tier: Any, begun: Any, failed: Any, must: bool,
) -> None:  # fmt: skip
    for seeker in seekers:
        if state[seeker] != FREE or done[quota_of[seeker]] >= quota[quota_of[seeker]]:
            continue
        found = -1
        for t in range(groups.shape[0]):
            group = groups[t, seeker]
            if group < 0:
                continue
            for other in order:
                if (
                    state[other] == FREE
                    and groups[t, other] == group
                    and own[other] != own[seeker]
                    and partners[t, other]
                ):
                    found = other
                    tier[seeker] = tier[other] = t
                    break
            if found >= 0:
                break
        if found < 0:
            if must:
                failed[seeker], state[seeker] = True, 2
            continue
        partner[seeker], partner[found] = found, seeker
        state[seeker] = state[found] = SWAPPED
        begun[seeker] = True
        done[quota_of[seeker]] += 1


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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
        found = count_keyed_cells(Local().stream_released(data), cells)
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
    parser.add_argument("--persons", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--levels", nargs="+", choices=("n3", "n4"), default=["n3", "n4"])
    parser.add_argument("--scan", type=int, default=1_000_000, help="up to so many persons, beside a scan")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the cell key method; 0: leave it out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", default="", help="a Python that has cell-key-perturbation installed")
    parser.add_argument("--recordswap", default="", help="a folder with the sources of sdcMicro")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", action="store_true", help="one row, in this process")
    arguments = parser.parse_args()
    if arguments.here:
        persons, name = arguments.persons[0], arguments.levels[0]
        print(json.dumps(targeted(persons, name, arguments.rounds, arguments.scan, arguments.recordswap)))
        return 0
    found = []
    for persons in arguments.persons:
        for name in arguments.levels:
            words = [sys.executable, __file__, "--here", "--persons", str(persons), "--levels", name]
            words += ["--rounds", str(arguments.rounds), "--scan", str(arguments.scan)]
            words += ["--recordswap", arguments.recordswap]
            found.append(
                json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
            )
            _show(found[-1], quiet=arguments.json)
    if arguments.rows:
        found.append(cell_key(arguments.rows, arguments.rounds, arguments.peer))
        _show(found[-1], quiet=arguments.json)
    if arguments.json:
        print(json.dumps(found))
    return 0


def _show(row: dict[str, Any], *, quiet: bool) -> None:
    if not quiet:
        print("  ".join(f"{name}={value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
