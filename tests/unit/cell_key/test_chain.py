"""A swap and then the cell key method in one plan: the tables are of swapped records, and the swap's guarantee holds."""

from pathlib import Path

import numpy as np
import polars as pl

from stirred import load, run
from stirred.chance import Key
from stirred.spec.files import load as load_spec

CENSUS = """name = "small"
[geography]
spine = ["county", "tract"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.household.variables]
tenure = { levels = ["own", "rent"] }
size = { levels = [1, 2, 3] }
"""

PLAN = """title = "Swapped, then perturbed"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
label = "swap"
match = ["county", "size"]
swap = ["tract"]
rate = "1/5"
[[mechanism]]
name = "cell-key"
tables = [["tract", "tenure"]]
D = 3
V = "2"
given = "swap"
[assess]
utility = false
"""


def test_a_swap_and_then_cell_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 600
    tract = rng.integers(0, 6, n)
    pl.DataFrame(
        {
            "hid": np.arange(n),
            "county": [f"c{t // 3}" for t in tract],
            "tract": [f"t{t}" for t in tract],
            "tenure": rng.choice(["own", "rent"], n),
            "size": rng.integers(1, 4, n),
        }
    ).write_parquet(tmp_path / "household.parquet")
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "plan.toml").write_text(PLAN)
    run(load(tmp_path / "plan.toml"), tmp_path / "packet", key=Key.for_tests(3))
    public = tmp_path / "packet" / "public"
    promise = load_spec(public / "spec.json")
    assert promise.budget.is_finite
    text = pl.col("tract", "tenure").cast(pl.String)
    swapped = pl.read_parquet(public / "data-1" / "household.parquet").group_by(text).len()
    shown = pl.read_parquet(public / "tables" / "tenure-by-tract.parquet").with_columns(text)
    change = shown.join(swapped, on=["tract", "tenure"])
    noise = (change["count"].cast(pl.Int64) - change["len"].cast(pl.Int64)).to_numpy()
    assert np.abs(noise).max() <= 3
    assert noise.any()
