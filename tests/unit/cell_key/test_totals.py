"""Weights and magnitudes: sums are exact whatever the batches, noise follows the largest contributor and stays secret."""

import random
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import CellKey
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import DataError, InputError
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.tables.cell_key.cells import (
    COUNT,
    LEAST,
    STEP,
    RecordKeys,
    TotalCells,
    join_steps,
    read_largest,
)
from stirred.mechanisms.tables.cell_key.perturbation import Flex

N = 500
RNG = np.random.default_rng(4)
FRAME = pl.DataFrame(
    {
        "hid": np.arange(N),
        "county": RNG.choice(["a", "b", "c"], N),
        "tenure": RNG.choice(["own", "rent"], N),
        "income": RNG.lognormal(8, 1, N).round(2),
        "weight": RNG.choice([1.25, 2.0, 10.5], N),
        "change": RNG.normal(0, 1, N),
    }
)
BY = ["county", "tenure"]
TRUE = FRAME.group_by(BY).agg(
    n=pl.len(),
    w=pl.col("weight").sum(),
    x=pl.col("income").sum(),
    wx=(pl.col("income") * pl.col("weight")).sum(),
    top=(pl.col("income") * pl.col("weight")).max(),
)


def census(frame: pl.DataFrame = FRAME) -> Census:
    return Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {"id": "hid"}}}, {"household": frame}
    )


def cell_key(**settings: Any) -> CellKey:
    chosen: dict[str, Any] = {"tables": [BY, []], "D": 3, "V": "2"} | settings
    return CellKey(**chosen)


def released(mechanism: CellKey, engine: Local | None = None) -> dict[str, pl.DataFrame]:
    release = mechanism.release(census(), key=Key.for_tests(5), engine=engine)
    return {name: frame_of(table) for name, table in release.tables.items()}


def test_a_weighted_count_is_the_count_times_the_mean_weight_rounded() -> None:
    made = released(cell_key(weight="weight"))
    said = {own: cell_key(weight=own).specification(census()).notes for own in ("weight", None)}
    assert any("mean weight" in note for note in said["weight"])  # it is shown to within half a base
    assert not any("mean weight" in note for note in said[None])
    both = made["weight-of-tenure-by-county"].join(TRUE, on=BY)
    exact = (both["count"] * both["w"] / both["n"]).to_numpy()
    assert (both["weighted"].to_numpy() == np.floor(exact / 10 + 0.5) * 10).all()
    plain = released(cell_key())["tenure-by-county"]
    assert made["tenure-by-county"].equals(plain)  # the noise is that of the table without weights
    assert made["weight-of-tenure-by-county"].select(*BY, "count").equals(plain)


def test_the_noise_of_a_total_follows_its_largest_contributor() -> None:
    """At most D units of p · the largest contribution; the interval, from published numbers alone, holds every total."""
    mechanism = cell_key(weight="weight", magnitudes=["income"], p_large="0.05")
    found = released(mechanism)["income-of-tenure-by-county"].join(TRUE, on=BY)
    noise = np.abs((found["weighted"] - found["wx"]).to_numpy())
    assert (noise <= 3 * 0.05 * found["top"].to_numpy() + 1e-3 * found["n"].to_numpy()).all()
    assert noise.max() > 1
    assert ((found["low"] <= found["wx"]) & (found["wx"] <= found["high"])).all()


def test_the_published_error_does_not_show_the_largest_contributor() -> None:
    """It is a function of the published total: two cells with one published total have one standard error."""
    mechanism = cell_key(magnitudes=["income"], epsilon=["1", "0.5"], fp="1000", p_small="0.2")
    found = released(mechanism)["income-of-tenure-by-county"]
    ratio = (found["standard_error"] / found["weighted"]).to_numpy()
    assert ratio == pytest.approx(ratio[0])


def test_the_largest_contributors_are_the_largest() -> None:
    """Of two batches too: three of each cell, weighted, the largest first."""
    kernel = TotalCells(
        by=("county",),
        keys=RecordKeys(Key.for_tests(1), "hid", 10**8),
        weight="weight",
        magnitudes=("income",),
        contributors=3,
    )
    batches = [kernel(arrow_of(FRAME[:200])), kernel(arrow_of(FRAME[200:]))]
    found = kernel.merge(pl.concat([frame_of(batch) for batch in batches]))
    value = (pl.col("income") * pl.col("weight")).sort(descending=True).head(3).alias("top")
    wanted = FRAME.group_by("county").agg(value).sort("county")["top"].to_list()
    assert read_largest(found, kernel.largest(0)).tolist() == [pytest.approx(top, abs=1e-3) for top in wanted]


def test_totals_do_not_depend_on_batches() -> None:
    class Parts(Local):
        def fits(self, size: int) -> bool:
            return False

    mechanism = cell_key(weight="weight", magnitudes=["income"], epsilon=["1", "0.5", "0.25"])
    first, second = released(mechanism), released(mechanism, Parts())
    assert first.keys() == second.keys() == {
        "tenure-by-county", "weight-of-tenure-by-county", "income-of-tenure-by-county",
        "total", "weight-of-total", "income-of-total",
    }  # fmt: skip
    assert all(first[name].equals(second[name]) for name in first)


def test_a_cell_that_is_not_shown_has_no_total() -> None:
    made = released(cell_key(magnitudes=["income"], threshold=80))
    counts, totals = made["tenure-by-county"], made["income-of-tenure-by-county"]
    assert 0 < counts.height < 6
    assert counts.select(*BY, "count").equals(totals.select(*BY, "count"))


def test_extra_noise_is_for_small_cells() -> None:
    plain, more = (
        released(cell_key(magnitudes=["income"], mu_c="1", sensitive_below=few)) for few in (0, 1000)
    )
    name = "income-of-tenure-by-county"
    assert not plain[name]["weighted"].equals(more[name]["weighted"])


def test_tables_of_a_plan_have_weights_and_totals() -> None:
    mechanism = cell_key(weight="weight", magnitudes=["income"])
    release = mechanism.release(census(), key=Key.for_tests(5))
    for weight in ("weight", "income"):
        mechanism.require_weight(weight, record_type="household", census=census())
        found = frame_of(mechanism.table(release, ["tenure", "county"], weight=weight))
        assert found.columns[2:] == ["count", "weighted", "estimate", "standard_error", "low", "high"]
    with pytest.raises(InputError, match="weighted by change"):
        mechanism.require_weight("change", record_type="household", census=census())
    assert set(CellKey.of(mechanism.Config(**mechanism.settings())).settings()) == set(mechanism.settings())


def test_what_cannot_be_added_up_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="below 0"):
        cell_key(magnitudes=["change"]).release(census(), key=Key.for_tests(1))
    with pytest.raises(DataError, match="cannot be added up"):
        cell_key(magnitudes=["tenure"]).release(census(), key=Key.for_tests(1))
    huge = FRAME.with_columns(income=pl.col("income") * 1e15)
    with pytest.raises(DataError, match="too large"):
        cell_key(magnitudes=["income"]).release(census(huge), key=Key.for_tests(1))
    grid = tmp_path / "grid.csv"
    grid.write_text("pcv,ckey,pvalue\n" + "\n".join(f"1,{k},0" for k in range(256)))
    with pytest.raises(InputError, match="keys with decimals"):
        cell_key(magnitudes=["income"], ptable=grid, period=1).refuse(census())
    with pytest.raises(InputError, match="grid of the ONS"):
        cell_key(magnitudes=["income"], magnitude_ptable=grid).refuse(census())
    with pytest.raises(InputError, match="and a magnitude"):
        cell_key(magnitudes=["weight"], weight="weight")
    with pytest.raises(InputError, match="largest contributors"):
        cell_key(magnitudes=["income"], epsilon=["0"]).refuse(census())


@pytest.mark.parametrize("q", [1.0, 1.5, 3.0, 10.0])
def test_the_largest_multiplier(q: float) -> None:
    flex = Flex(fp=100.0, small=0.2, large=0.05, q=q)
    tried = float(flex.of(np.geomspace(1, 1e9, 20_001)).max())
    assert tried <= flex.most + 1e-12
    assert tried == pytest.approx(flex.most, rel=1e-4)


def test_the_step_of_weights_does_not_depend_on_parts() -> None:
    """All differences of all weights, by hand; the smallest weight of a part stands for its batches."""
    rng = random.Random(5)
    for unit in (1, 6, 250):
        weights = [[unit * rng.randrange(1, 40) + 7 for _ in range(4)] for _ in range(9)]
        everything = sorted(one for batch in weights for one in batch)
        wanted = gcd(*(one - everything[0] for one in everything))
        batches = pl.DataFrame(
            [(len(batch), min(batch), gcd(*(one - min(batch) for one in batch))) for batch in weights],
            schema=[COUNT, LEAST, STEP],
            orient="row",
        )
        parts = [join_steps(batches[i::4]) for i in range(4)]
        joined = pl.DataFrame([(1, *one) for one in parts], schema=[COUNT, LEAST, STEP], orient="row")
        assert join_steps(batches) == join_steps(joined) == (everything[0], wanted)
