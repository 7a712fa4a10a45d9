"""A census of several states and a workload that begins at the state: states are measured and exact, not their sum."""

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import TopDown, Workload

WORKLOAD = """name = "two levels"
record = "household"
rho_squared = 1
levels = ["state", "county"]
axis = [{ name = "tenure", size = 2, source = { column = "tenure" } }]
query = [{ name = "total" }, { name = "cells", of = ["tenure"] }]
level_shares = { state = "1/2", county = "1/2" }
query_shares = { state = { total = 1 }, county = { cells = 1 } }
rule = [{ name = "state totals", kind = "exact", query = "total", level = "state" }]
"""
ONE_LEVEL = """name = "one level"
record = "household"
rho_squared = 1
levels = ["county"]
axis = [{ name = "tenure", size = 2, source = { column = "tenure" } }]
query = [{ name = "total" }, { name = "cells", of = ["tenure"] }]
level_shares = { county = 1 }
query_shares = { county = { cells = 1 } }
"""


def census(spine: list[str]) -> Census:
    draws = np.random.default_rng(1)
    state = draws.integers(0, 3, 600)
    county = state * 10 + draws.integers(0, 4, 600)
    places = {"state": state.astype(str), "county": county.astype(str)}
    columns = {"h": range(600), "tenure": draws.integers(0, 2, 600), **{name: places[name] for name in spine}}
    schema = {"name": "x", "geography": {"spine": spine}, "record": {"household": {"id": "h"}}}
    return Census.of(schema, {"household": pl.DataFrame(columns)})


@pytest.mark.parametrize("parts", [0, 2])
def test_every_state_is_measured_and_exact(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if parts:
        monkeypatch.setattr(Local, "fits", lambda self, size: False)
        monkeypatch.setattr(Local, "parts_for", lambda self, size: parts)
    truth = census(["state", "county"])
    release = TopDown(workload=Workload.parse(WORKLOAD), replicates=0).release(truth, key=Key.for_tests(1))
    counts = release.to_polars("household").group_by("state").len().sort("state")["len"].to_list()
    assert counts == truth.counts("household", ["state"])["count"].to_pylist()
    noise = next(table for name, table in release.tables.items() if name.endswith("noise")).to_pydict()
    assert dict(zip(noise["level"], noise["geounits"], strict=True)) == {"state": 3, "county": 12}


def test_a_workload_of_one_level_measures_every_area_of_it() -> None:
    release = TopDown(workload=Workload.parse(ONE_LEVEL), replicates=0).release(
        census(["county"]), key=Key.for_tests(1)
    )
    noise = next(table for name, table in release.tables.items() if name.endswith("noise")).to_pydict()
    assert dict(zip(noise["level"], noise["geounits"], strict=True)) == {"county": 12}
