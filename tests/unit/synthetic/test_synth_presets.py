"""Every preset has the areas and households it says, the same for a seed, however it is cut."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stirred.census import read, validate
from stirred.census.synthetic import PRESETS, synthesise, write_preset, writing
from stirred.census.synthetic.plans import TABLE_1, find_plan
from stirred.census.synthetic.states import draw_states
from stirred.census.synthetic.writing import write_document
from stirred.chance import Key
from stirred.errors import InputError

LEVELS = ("county", "tract", "block_group", "block")


@pytest.mark.parametrize(
    ("preset", "households", "areas"),
    [("demo", 60_000, (3, 36, 110, 3_000)), ("state", 430_000, (5, 250, 800, 25_000))],
)
def test_presets_have_their_areas_and_households(
    preset: str, households: int, areas: tuple[int, ...]
) -> None:
    made = synthesise(preset)
    geography = made.geography
    assert geography is not None
    assert tuple(len(geography[level].unique()) for level in LEVELS) == areas
    kinds = np.bincount(made.tables["household"]["kind"].to_numpy())
    assert kinds[1] == households
    assert 0.05 < kinds[2] / kinds[1:3].sum() < 0.15
    types = set(made.tables["household"]["gq_type"].unique().to_pylist())
    assert types <= set(range(8))
    if preset == "state":
        assert types == set(range(8))


def test_the_nation_has_the_areas_of_2020() -> None:
    nation = find_plan("nation")
    totals = [
        sum(getattr(state, name) for state in nation.states)
        for name in ("counties", "tracts", "block_groups", "blocks")
    ]
    assert len(nation.states) == 51
    assert totals == [3_143, 84_414, 239_780, 8_132_968]
    assert nation.households == 130_000_000


def test_a_small_nation_is_read_and_valid(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []

    def progress(step: str, done: int, total: int) -> None:
        assert step == "write"
        calls.append((done, total))

    made = write_preset("nation", tmp_path / "n", households=60_000, progress=progress)
    assert len(calls) >= 51
    assert calls[-1][0] == calls[-1][1]
    census = read(tmp_path / "n" / "census.toml")
    validate(census).raise_if_any()
    rows = made["rows"]
    assert isinstance(rows, dict)
    assert rows["occupied"] == 60_000
    assert census.count("person") == rows["person"]
    geography = pq.read_table(tmp_path / "n" / "geography.parquet")
    for level in (*LEVELS, "state"):  # dense, along the spine
        codes = geography[level].to_numpy()
        assert np.all(np.diff(codes.astype(np.int64)) >= 0)
        assert np.array_equal(np.unique(codes), np.arange(codes.max() + 1))
    geoid = geography["geoid"].to_numpy()
    assert np.all(np.diff(geoid) > 0)
    assert len(np.unique(geoid // 1000)) == geography["block_group"].to_numpy().max() + 1


def test_same_seed_same_bytes_whatever_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_preset("nation", tmp_path / "two", households=20_000, seed=5)
    monkeypatch.setattr(writing, "STATE_WORKERS", 1)
    write_preset("nation", tmp_path / "one", households=20_000, seed=5)
    write_preset("nation", tmp_path / "other", households=20_000, seed=6)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.parquet"))
    assert len(files) == 103
    assert all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files
    )
    state = Path("person") / "06.parquet"
    assert (tmp_path / "one" / state).read_bytes() != (tmp_path / "other" / state).read_bytes()


def test_pieces_may_be_cut_anywhere() -> None:
    (one,) = draw_states(find_plan("demo", 5_000), Key.for_tests(2))
    groups = one.state.spine.plan.block_groups
    whole = one.state.make_piece(0, groups)
    parts = [one.state.make_piece(begin, end) for begin, end in one.state.cut_pieces(700)]
    assert len(parts) > 3
    for name in ("units", "people", "codes"):
        assert np.array_equal(
            getattr(whole, name), np.concatenate([getattr(part, name) for part in parts], axis=1)
        )
    for name in ("block", "sizes", "facility"):
        assert np.array_equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]))


def test_massachusetts_is_the_papers_table() -> None:
    table = synthesise("massachusetts-1940").tables["household"]
    counts = table.group_by(["county", "tenure"]).aggregate([([], "count_all")]).to_pylist()
    cells = {(row["county"], row["tenure"]): row["count_all"] for row in counts}
    assert cells["Suffolk", "rented"] == 176_553  # the paper, Table 1
    assert cells["Nantucket", "owned"] == 593
    assert {county: (cells[county, "owned"], cells[county, "rented"]) for county in TABLE_1} == TABLE_1
    assert sum(owned for owned, _ in TABLE_1.values()) == 435_805
    assert table.num_rows == 1_144_424
    sizes = np.bincount(table["size"].to_numpy())
    assert sizes.max() == sizes[2] == 264_331  # b of the paper's Table 2


def test_written_massachusetts_is_valid(tmp_path: Path) -> None:
    write_preset("massachusetts-1940", tmp_path)
    census = read(tmp_path / "census.toml")
    validate(census).raise_if_any()
    assert census.count("household") == 1_144_424


@pytest.mark.parametrize("households", [1, 2, 7])
def test_tiny_censuses(households: int) -> None:
    made = synthesise("demo", households=households)
    assert np.bincount(made.tables["household"]["kind"].to_numpy())[1] == households


def test_mistakes_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean state"):
        synthesise("sate")
    with pytest.raises(InputError, match="at least one household"):
        synthesise("demo", households=0)
    with pytest.raises(InputError, match="is too large for memory"):
        synthesise("nation")
    with pytest.raises(InputError, match="1,144,424"):
        synthesise("massachusetts-1940", households=10)
    (tmp_path / "census.toml").write_text("")
    with pytest.raises(InputError, match="holds a census already"):
        write_preset("demo", tmp_path)
    assert PRESETS == ("demo", "state", "nation", "massachusetts-1940")


def test_toml_quotes_what_needs_it() -> None:
    import tomllib

    document = {
        "name": 'a "b" \\ c',
        "record": {"group quarters": {"variables": {"size": {"levels": [1, 2]}}}},
    }
    assert tomllib.loads(write_document(document)) == document


def test_nothing_is_left_of_a_census_that_was_refused(tmp_path: Path) -> None:
    for preset, households in (("demo", 0), ("massachusetts-1940", 10), ("demmo", None)):
        with pytest.raises(InputError):
            write_preset(preset, tmp_path / "new", households=households)
        assert not (tmp_path / "new").exists()


def test_files_of_an_earlier_census_never_join_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "household").mkdir()  # an interrupted run: files, and no census.toml yet
    with pytest.raises(InputError, match="holds a census already"):
        write_preset("demo", tmp_path, households=10)
