"""The example outside the United States: what it shows, and that its generator writes exactly its files."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

from stirred.census import read, validate

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "nuts"


def test_the_files_are_what_the_generator_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_nuts", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    module.main()
    for name in ("areas.csv", "households.csv", "persons.csv"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_the_census_is_sound_and_its_regions_are_looked_up() -> None:
    census = read(FOLDER)
    assert not validate(census)
    assert census.count("household") == 60 + 25 + 35 + 90 + 12 + 40
    counts = census.counts("household", ["nuts3"]).to_pydict()
    assert dict(zip(counts["nuts3"], counts["count"], strict=True)) == {
        "XX111": 85,
        "XX112": 35,
        "XX121": 102,
        "XX211": 40,
    }
    assert census.domain.closure("person", ["lau"]) >= {"nuts0", "nuts1", "nuts2", "nuts3"}
    assert census.domain.variable("household", "nuts2").name == "nuts2"


def test_grid_cells_overlap_municipalities() -> None:
    census = read(FOLDER)
    pairs = pl.from_arrow(census.counts("household", ["grid", "lau"]))
    assert isinstance(pairs, pl.DataFrame)
    assert pairs.group_by("grid").len().filter(pl.col("len") > 1).height > 0
    assert "lau" not in census.domain.closure("household", ["grid"])
    assert "grid" not in census.domain.closure("household", ["lau"])


def test_a_missing_code_is_a_level_of_its_own() -> None:
    census = read(FOLDER)
    assert census.domain.levels("household", "tenure") == ("0", "1", "2", "9")
    assert "9" in census.counts("household", ["tenure"])["tenure"].to_pylist()
