"""Accuracy on real data: Hawaii 2020, 14,732 blocks, race by voting age, 10 draws; goals from the facts' S1 setting.

Blocks without people are known to be empty (31 % of them), the state's population is exact, no bypassing, the production
budget. Run as a script it prints the tables of docs/benchmarks/topdown.md.
"""

import sys

import numpy as np
import polars as pl
import pytest

from shared_data import shared
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.run.task import Settings
from unit.topdown.runs import Outcome, run

GROUPS = ["hisp", "white", "black", "aian", "asian", "nhpi", "other", "two"]
BINS = {
    "block": [1, 5, 20, 50, 100, 200, 500],
    "block_group": [1, 300],
    "tract": [1, 500, 1500],
    "county": [1],
}


def hawaii() -> Census:
    """Persons with their block, race and an age on the right side of 18."""
    table = pl.read_parquet(shared("hi2020", "blocks.parquet"))
    parts = []
    for number, group in enumerate(GROUPS):
        for age, count in (
            (30, pl.col(f"vap_{group}")),
            (10, pl.col(f"pop_{group}") - pl.col(f"vap_{group}")),
        ):
            cells = table.select(block=pl.col("geoid"), count=count).filter(pl.col("count") > 0)
            people = cells.select(pl.col("block").repeat_by("count").explode())
            hispanic = 2 if number == 0 else 1
            parts.append(
                people.with_columns(race=pl.lit(max(number, 1)), hispanic=pl.lit(hispanic), age=pl.lit(age))
            )
    people = pl.concat(parts).with_columns(
        state=pl.col("block").str.slice(0, 2),
        county=pl.col("block").str.slice(0, 5),
        tract=pl.col("block").str.slice(0, 11),
        block_group=pl.col("block").str.slice(0, 12),
    )
    schema = {
        "geography": {"spine": ["state", "county", "tract", "block_group", "block"]},
        "record": {"person": {}},
    }
    return Census.of(schema, {"person": people})


def difference(truth: Sparse, made: Sparse, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of totals by node, and absolute cell errors summed by node."""
    nodes = len(truth.first) - 1
    apart = Sparse.of(
        np.r_[made.nodes, truth.nodes],
        np.r_[made.cells, truth.cells],
        np.r_[made.counts, -truth.counts],
        nodes,
        size,
    )
    cells = np.zeros(nodes)
    np.add.at(cells, apart.nodes, np.abs(apart.counts))
    return made.totals - truth.totals, cells


def errors(census: Census, mode: str, draws: int, **settings) -> dict[str, dict[str, object]]:
    """Mean absolute error of totals and cells, and bias by size, at every level below the state."""
    workload = Workload.preset("small")
    result: dict[str, dict[str, object]] = {}
    for draw in range(draws):
        key = Key.for_tests(100 + draw).bind("hawaii")
        made: Outcome = run(
            census, workload, Settings(mode=mode, bypass=False, **settings), key=key, engine=Local()
        )
        for d, level in enumerate(made.spine.levels[1:], 1):
            truth = made.measurements.truth[d]
            off, cells = difference(truth, made.levels[d], workload.histogram.cells)
            here = result.setdefault(level, {"total": [], "cell": [], "bias": []})
            here["total"].append(np.abs(off).mean())
            here["cell"].append(cells.mean() / workload.histogram.cells)
            place = np.digitize(truth.totals, BINS[level])
            here["bias"].append([off[place == i].mean() for i in range(1, len(BINS[level]) + 1)])
    return {
        level: {
            "total": float(np.mean(v["total"])),
            "cell": float(np.mean(v["cell"])),
            "bias": np.mean(v["bias"], axis=0),
        }
        for level, v in result.items()
    }


@pytest.mark.slow
def test_gls_on_hawaii_is_as_accurate_as_the_prototype():
    """Ten draws; the facts' figures ± 5 % (30 % for the five counties). By the spread of the draws (standard error of
    the mean about 0.6 % at tracts, 0.3 % at blocks, 10 % at counties) a right program fails with a chance below 1e-6 at
    tract, block group and block, and about 1e-3 for counties; the keys are fixed, so it passes always or never."""
    census = hawaii()
    gls, classic = errors(census, "gls", 10), errors(census, "classic", 10)
    assert gls["tract"]["total"] <= 1.05 * 1.29
    assert gls["block_group"]["total"] <= 1.05 * 1.14
    assert gls["block"]["total"] <= 1.05 * 6.36
    assert gls["county"]["total"] <= 1.3 * 1.32
    # classic is the production estimator: about half as much error again at tracts
    assert 1.05 * 1.92 > classic["tract"]["total"] > 0.95 * 1.92
    assert gls["tract"]["total"] / classic["tract"]["total"] < 0.75


if __name__ == "__main__":
    data = hawaii()
    for how in ("classic", "gls"):
        for area, values in errors(data, how, int(sys.argv[1])).items():
            print(how, area, f"{values['total']:.3f} {values['cell']:.3f}", np.round(values["bias"], 2))
