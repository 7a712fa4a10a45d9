"""Reconstruction of blocks from the 18 tables of 2010: seconds a block, by size, and memory; and the linkage of a file.

Usage: python benchmarks/attack.py [--blocks 1000] [--workers N] [--json]

A synthetic census is tabulated; every block is reconstructed and its variability proved. Seconds by size are of CPU,
so that other work on the machine does not count; those of the whole run are also by the clock. The floor is HiGHS alone: the
same integer programmes, already built, solved once more on a sample of the blocks, without propagation, certificates or
records. No peer is timed: the Bureau's programme needs Gurobi, and reports 3 days on 30 machines for 6,207,027 blocks with
their tracts, and 14 days on 25 machines for the variability.
"""

import argparse
import json
import resource
import sys
import time
from typing import Any

import numpy as np
import polars as pl

from stirred.assess.attack.linkage import PERFECT, LinkVariables, make_attacker_file, reidentify
from stirred.assess.attack.published_areas import tabulate_blocks
from stirred.assess.attack.reconstruction import Programme, reconstruct, solve
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.frames import frame_of

SIZES = (1, 10, 50, 100, 250, 500)
SAMPLE = 200
NAMES = ["block", "block_group", "sex", "age", "race", "hispanic"]


def people(blocks: int) -> pl.DataFrame:
    """The persons of a synthetic census with at least so many blocks; the first ones are kept."""
    made = synthesise("demo", households=blocks * 31)
    census = Census.of(made.schema, made.tables)
    persons = frame_of(census.table("person", NAMES))
    kept = persons["block"].cast(pl.String).unique().sort().head(blocks)
    return persons.filter(pl.col("block").cast(pl.String).is_in(kept.implode()))


def floor(published: Any) -> tuple[float, list[int]]:
    """Seconds of HiGHS alone for a sample of blocks, and the sample."""
    members = published.design.members
    chosen = np.linspace(0, len(published.areas) - 1, min(SAMPLE, len(published.areas))).astype(int)
    spent = 0.0
    for place in chosen:
        programme = Programme.of(members, published.counts[place])
        if not programme.free.size:
            continue
        left = programme.left.astype(np.float64)
        start = time.thread_time()
        solve(
            np.zeros(programme.free.size),
            programme.matrix,
            left,
            left,
            high=programme.room.astype(float),
            seconds=10,
        )
        spent += time.thread_time() - start
    return spent, chosen.tolist()


def measured(blocks: int, workers: int | None) -> dict[str, Any]:
    """All figures of one run."""
    persons = people(blocks)
    start = time.perf_counter()
    published = tabulate_blocks(persons, "block")
    tabulated = time.perf_counter() - start
    reconstruct(published.select(np.arange(min(20, len(published.areas)))))  # compiles
    start, spent = time.perf_counter(), time.process_time()
    made = reconstruct(published, workers=workers, progress=told)
    wall, cpu = time.perf_counter() - start, time.process_time() - spent
    bare, sample = floor(published)
    areas = made.areas
    classes = np.searchsorted(SIZES, areas["records"].fill_null(1).to_numpy(), side="right") - 1
    shown = areas.with_columns(pl.Series("least", np.asarray(SIZES)[classes]))
    by_size = shown.group_by("least").agg(
        pl.len().alias("blocks"),
        pl.col("records").mean().alias("persons"),
        pl.col("free").mean(),
        pl.col("seconds").mean(),
        pl.col("unique").mean().alias("unique"),
        pl.col("solvar_high").mean().alias("solvar"),
        (pl.col("status") == "solved").mean().alias("solved"),
        (pl.col("solvar_low") == pl.col("solvar_high")).mean().alias("proved"),
    )
    variables = LinkVariables(area="block", parent="block_group")
    truth = variables.add_keys(persons.with_row_index("person"), also=["person"])
    listed = make_attacker_file(persons.with_row_index("person"), PERFECT, area="block", seed=1)
    start = time.perf_counter()
    reidentify(truth, truth, variables.add_keys(listed, also=["person"]), seed=1)
    linkage = time.perf_counter() - start
    return {
        "blocks": areas.height,
        "persons": persons.height,
        "seconds": round(wall, 1),
        "cpu_seconds_a_block": round(cpu / areas.height, 4),
        "seconds_a_block": round(wall / areas.height, 4),
        "tabulation_seconds": round(tabulated, 2),
        "ratio_to_bare_solver": round(float(areas["seconds"].gather(sample).sum()) / bare, 2)
        if bare
        else None,
        "linkage_seconds_per_million": round(linkage / persons.height * 1e6, 1),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "by_size": by_size.sort("least").to_dicts(),
    }


def told(step: str, done: int, total: int) -> None:
    """Progress on the terminal alone."""
    if sys.stderr.isatty():
        print(f"\r{step} {done:,} of {total:,}", end="" if done < total else "\n", file=sys.stderr)


def main() -> None:
    """Print the figures as text or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=1_000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = measured(chosen.blocks, chosen.workers)
    if chosen.json:
        print(json.dumps(found))
        return
    print(f"{found['blocks']:,} blocks, {found['persons']:,} persons: {found['seconds']} s", end="")
    print(
        f" ({found['seconds_a_block']} s a block, {found['cpu_seconds_a_block']} s of CPU), {found['memory_mb']:,} MB"
    )
    print(
        f"times the bare solver: {found['ratio_to_bare_solver']} (solution and variability against one bare solution)"
    )
    print(f"linkage: {found['linkage_seconds_per_million']} s a million persons, five methods")
    print("persons at least   blocks  mean size  free cells  CPU a block  one solution  solvar  proved")
    for row in found["by_size"]:
        print(
            f"{row['least']:16,} {row['blocks']:8,} {row['persons']:10.1f} {row['free']:11.1f} {row['seconds']:10.4f}"
            f" {row['unique']:13.3f} {row['solvar']:7.3f} {row['proved']:7.3f}"
        )


if __name__ == "__main__":
    main()
