"""Reconstruction against brute force: all histograms of tiny areas are listed, and every claim is compared with the list."""

from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stirred.assess.attack import reconstruction
from stirred.assess.attack.published_areas import (
    TableDesign,
    age_class,
    block_design,
    collect_tables,
    tabulate_blocks,
)
from stirred.assess.attack.reconstruction import (
    Effort,
    Programme,
    _full_rank,
    calibration,
    find_nearest,
    measure_variability,
    reconstruct,
    sample_solutions,
)
from stirred.census.synthetic import synthesise
from stirred.errors import InputError
from stirred.frames import frame_of

Counts = NDArray[np.int64]
LEVELS = {"sex": [1, 2], "age": [1, 2], "race": [1, 2, 3]}
TABLES = {
    "two ways": [["sex", "age"], ["race", "age"]],
    "one way": [["sex"], ["age"], ["race"]],
    "all pairs": [["sex", "age"], ["race", "age"], ["sex", "race"]],
    "saturated": [["sex", "age", "race"]],
}


def histograms(records: int, cells: int) -> Counts:
    """Every way to put records into cells."""
    ways = combinations_with_replacement(range(cells), records)
    return np.array([np.bincount(way, minlength=cells) for way in ways], dtype=np.int64)


@cache
def persons(households: int) -> pl.DataFrame:
    return frame_of(synthesise("demo", households=households).tables["person"])


EVERY = {records: histograms(records, 12) for records in (1, 2, 3, 4)}


def solutions(design: TableDesign, truth: Counts) -> Counts:
    """All histograms with the tables of the truth, by listing."""
    every = EVERY[int(truth.sum())]
    return every[(design.tabulate(every) == design.tabulate(truth[None])).all(axis=1)]


def drawn(seed: int, records: int) -> Counts:
    draws = np.random.default_rng(seed)
    return np.bincount(draws.integers(0, 12, records), minlength=12).astype(np.int64)


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("seed", range(6))
def test_uniqueness_and_variability_agree_with_a_list_of_all_histograms(tables: str, seed: int) -> None:
    design = TableDesign.of_margins(LEVELS, TABLES[tables])
    truth = drawn(seed, 1 + seed % 4)
    every = solutions(design, truth)
    programme = Programme.of(design.members, design.tabulate(truth[None])[0])
    cells = programme.cells
    assert (every[:, np.setdiff1d(np.arange(12), cells)] == 0).all()  # zeros exclude no solution
    assert (every[:, cells] >= programme.low).all()
    assert (every[:, cells] <= programme.high).all()
    status, found = programme.find_solution()
    assert status == "solved"
    assert found is not None
    assert any((found == one[cells]).all() for one in every)
    spread = measure_variability(programme, found)
    assert spread.unique is (len(every) == 1)
    furthest = max(int(np.abs(one[cells] - found).sum()) for one in every) / (2 * truth.sum())
    assert spread.low == spread.high == furthest
    if spread.unique:
        assert spread.certificate in {"bounds", "rank", "infeasible"}
    else:
        assert spread.other is not None
        assert any((spread.other == one[cells]).all() for one in every)


def test_cells_with_more_records_than_the_solution_are_encoded() -> None:
    """The overlap min(x, x*) is not linear where x may exceed x* > 0: a plain sum would claim too much."""
    design = TableDesign.of_margins({"a": [1, 2], "b": [1, 2]}, [["a"], ["b"]])
    programme = Programme.of(design.members, np.array([5, 4, 6, 3]))
    found = np.array([4, 1, 2, 2])
    assert programme.holds(found)
    spread = measure_variability(programme, found)
    others = [np.array([k, 5 - k, 6 - k, k - 2]) for k in range(2, 6)]
    assert spread.low == max(np.abs(one - found).sum() for one in others) / 18


def test_a_time_limit_is_unknown_and_never_a_certificate() -> None:
    people = persons(300)
    published = tabulate_blocks(people.with_columns(block=pl.lit("a")), "block")
    programme = Programme.of(published.design.members, published.counts[0])
    _status, found = programme.find_solution()
    assert found is not None
    spread = measure_variability(programme, found, seconds=0.0)
    assert spread.unique is None
    assert spread.certificate == ""
    assert spread.status == "unknown"
    assert spread.high >= measure_variability(programme, found).low > 0
    assert (
        programme.find_solution(cost=np.random.default_rng(1).random(programme.cells.size), seconds=0.0)[0]
        == "unknown"
    )


def test_each_certificate_where_the_weaker_ones_do_not_reach() -> None:
    sums = np.array([[0, 0, -1], [-1, 1, 1], [2, -1, 2]], dtype=np.int32)  # of three cells, in pairs
    programme = Programme.of(sums, np.array([2, 2, 2]))
    spread = measure_variability(programme, np.array([1, 1, 1]))
    assert (spread.unique, spread.certificate) == (True, "rank")
    # x1 + x2 = x1 + x3 = x2 + x3 + x4 = 2, x4 + x5 = 1: (1, 1, 1, 0, 1), and (1.5, .5, .5, 1, 0), which is no histogram
    members = np.array(
        [[0, 0, -1, -1, -1], [1, -1, 1, -1, -1], [-1, 2, 2, 2, -1], [-1, -1, -1, 3, 3]], dtype=np.int32
    )
    programme = Programme.of(members, np.array([2, 2, 2, 1]))
    assert programme.free.size == 5
    assert not _full_rank(programme.matrix)
    spread = measure_variability(programme, np.array([1, 1, 1, 0, 1]))
    assert (spread.unique, spread.certificate, spread.status) == (True, "infeasible", "infeasible")


def test_full_rank_is_decided_exactly() -> None:
    assert _full_rank(csr_array(np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])))  # determinant 2
    assert not _full_rank(csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])))


def test_contradicting_numbers_are_infeasible() -> None:
    design = TableDesign.of_margins(LEVELS, TABLES["one way"])
    counts = design.tabulate(drawn(1, 4)[None])[0]
    counts[0] += 1
    assert Programme.of(design.members, counts).find_solution()[0] == "infeasible"


def test_block_tables_count_what_their_names_say() -> None:
    people = persons(120).with_columns(block=pl.lit("b"))
    published = tabulate_blocks(people, "block")
    design = block_design()
    table = {
        one.name: published.counts[0][start : start + one.rows]
        for one, start in zip(design.coverings, design.offsets, strict=False)
    }
    women_22_to_24 = people.filter(pl.col("sex") == 2, pl.col("age").is_between(22, 24))
    assert table["P12"][23 + 7] == women_22_to_24.height
    assert table["P12H"][23 + 7] == women_22_to_24.filter(pl.col("hispanic") == 2).height
    alone = women_22_to_24.filter(pl.col("race") == 1)
    assert table["P12A–G"][23 + 7] == alone.height
    assert table["P12I"][23 + 7] == alone.filter(pl.col("hispanic") == 1).height
    assert table["P12A–G"].reshape(7, 46)[6].sum() == people.filter(pl.col("race") > 6).height
    assert table["P8"].tolist() == [people.filter(pl.col("race") == code).height for code in range(1, 64)]
    adults = people.filter(pl.col("age") >= 18)
    assert table["P10"].sum() == table["P11"].sum() == adults.height
    assert table["P11"][0] == adults.filter(pl.col("hispanic") == 2).height
    assert table["P9"][1] == people.filter(pl.col("hispanic") == 1, pl.col("race") == 1).height
    assert table["P14"][20 + 7] == people.filter(pl.col("sex") == 2, pl.col("age") == 7).height
    assert table["P14"].sum() == people.filter(pl.col("age") < 20).height
    some_white = people.filter(
        pl.col("race").is_in([1, 7, 8, 9, 10, 11]) | pl.col("race").is_in(range(22, 32))
    )
    assert table["P6 1"][0] >= some_white.height
    assert table["P7 1"].sum() == table["P6 1"][0]
    assert sum(table[f"P6 {race}"][0] for race in range(1, 7)) >= people.height


@pytest.mark.parametrize("seed", range(12))
def test_small_blocks_agree_with_a_list_of_all_that_their_18_tables_allow(seed: int) -> None:
    """Men of two age classes with races that the tables mix up: several of these blocks have more than one solution."""
    draws = np.random.default_rng(seed)
    ages, races = draws.choice([32, 37, 19], 4), draws.choice([1, 2, 7, 8, 12], 4)
    people = pl.DataFrame(
        {"block": ["b"] * 4, "sex": [1] * 4, "age": ages, "race": races, "hispanic": draws.integers(1, 3, 4)}
    )
    published = tabulate_blocks(people, "block")
    programme = Programme.of(published.design.members, published.counts[0])
    ways = np.array(list(combinations_with_replacement(range(programme.cells.size), 4)))
    place = np.repeat(np.arange(len(ways)), 4)
    tables = published.design.tabulate_records(place, programme.cells[ways.reshape(-1)], len(ways))
    right = ways[(tables == published.counts[0]).all(axis=1)]
    every = np.array([np.bincount(way, minlength=programme.cells.size) for way in right])
    found = programme.find_solution()[1]
    assert found is not None
    spread = measure_variability(programme, found)
    assert spread.unique is (len(every) == 1)
    assert spread.low == spread.high == max(int(np.abs(one - found).sum()) for one in every) / 8


def test_sex_and_age_class_have_no_error_and_blocks_are_certified() -> None:
    """Blocks of the sizes of the study; exact where the certificate says that there is one solution only."""
    people = persons(700)
    sizes = [5, 5, 30, 30, 75, 150, 350, 800]
    block = np.repeat([f"{i:02d}" for i in range(len(sizes))], sizes)
    people = people.head(sum(sizes)).with_columns(block=pl.Series(block))
    made = reconstruct(tabulate_blocks(people, "block"))
    assert made.areas["status"].to_list() == ["solved"] * len(sizes)
    assert made.areas["records"].to_list() == sizes
    assert made.areas["unique"].null_count() == 0
    assert made.areas["unique"][0]
    assert made.areas["unique"][1]
    assert (made.areas["solvar_low"] == made.areas["solvar_high"]).all()
    found = made.records()
    truth = people.select(pl.col("block").alias("area"), "sex", age_class_of(people), "race", "hispanic")
    for names in (["area", "sex", "age_class"], ["area", "race", "hispanic"]):
        counts = [
            frame.cast(dict.fromkeys(names[1:], pl.Int64)).group_by(names).len().sort(names)
            for frame in (found, truth)
        ]
        assert counts[0].equals(counts[1])
    for area, solvar, unique in made.areas.select("area", "solvar_low", "unique").rows():
        names = ["sex", "age_class", "race", "hispanic"]
        one, other = (
            frame.filter(pl.col("area") == area).cast(dict.fromkeys(names, pl.Int64)).group_by(names).len()
            for frame in (found, truth)
        )
        both = one.join(other, on=names, how="full", coalesce=True).fill_null(0)
        apart = int((both["len"] - both["len_right"].cast(pl.Int64)).abs().sum()) if both.height else 0
        size = sizes[int(area)]
        assert apart / (2 * size) <= solvar + 1e-9  # the truth is one of the solutions
        assert not unique or apart == 0


def age_class_of(people: pl.DataFrame) -> pl.Series:
    return people.select(age_class(pl.col("age")).alias("age_class")).to_series()


def test_numbers_that_no_file_has_are_met_as_nearly_as_possible() -> None:
    design = TableDesign.of_margins(LEVELS, TABLES["all pairs"])
    draws = np.random.default_rng(3)
    every = np.concatenate([EVERY[n] for n in (1, 2, 3, 4)])
    tables = design.tabulate(every)
    for seed in range(5):
        truth = design.tabulate(drawn(seed, 3)[None])[0]
        noisy = np.maximum(truth + draws.integers(-1, 2, truth.size), 0)
        found = find_nearest(design.members, noisy, bound=1, zeros_kept=False)
        off = np.abs(tables - noisy)
        within = off.max(axis=1) <= 1
        assert found.status == "solved"
        assert found.histogram is not None
        assert found.deviation == off[within].sum(axis=1).min()
        assert np.abs(design.tabulate(found.histogram[None])[0] - noisy).max() <= 1


def test_contradicting_areas_fall_back_to_the_nearest_histogram() -> None:
    tables = {
        "sex": pl.DataFrame({"block": ["a", "a"], "sex": ["m", "f"], "count": [3, 2]}),
        "race": pl.DataFrame({"block": ["a", "a"], "race": ["x", "y"], "count": [4, 2]}),
    }
    row = reconstruct(collect_tables(tables, "block")).areas.row(0, named=True)
    assert row["status"] == "solved"
    assert row["deviation"] == 1
    assert row["unique"] is None
    with pytest.raises(InputError, match="no table counts by tract"):
        collect_tables(tables, "tract")


def test_confidence_is_the_share_of_random_solutions_and_certain_where_bounds_say_so() -> None:
    people = pl.DataFrame({"block": ["a"] * 4, "sex": [1, 1, 2, 2], "race": ["x", "x", "x", "y"]})
    published = collect_tables(
        {name: people.group_by("block", name).agg(pl.len().alias("count")) for name in ("sex", "race")},
        "block",
    )
    programme = Programme.of(published.design.members, published.counts[0])
    found = programme.find_solution()[1]
    assert found is not None
    many = sample_solutions(programme, found, samples=200, seed=1)
    assert many is not None
    assert (many.share[many.certain] == 1).all()
    either = dict(
        zip(
            published.design.cells.with_row_index().filter(pl.col("race") == "y")["index"],
            (0, 1),
            strict=True,
        )
    )
    shares = [many.share[list(programme.cells).index(cell), 0] for cell in either]
    assert sum(shares) == pytest.approx(1)
    assert all(0.35 < share < 0.65 for share in shares)  # the two solutions are equally likely


def test_calibration_and_precision_curve() -> None:
    people = persons(260)
    block = np.arange(people.height) // 40
    people = people.with_columns(block=pl.Series(block).cast(pl.String))
    made = reconstruct(tabulate_blocks(people, "block"), effort=Effort(samples=6, variability=False))
    names = ["area", "sex", "age_class", "race", "hispanic"]
    truth = people.select(pl.col("block").alias("area"), "sex", age_class_of(people), "race", "hispanic")
    many = truth.cast(dict.fromkeys(names[1:], pl.Int64)).group_by(names).len()
    sure = made.confidences().join(many, on=names, how="left")
    sure = sure.with_columns((pl.col("copy") < pl.col("len").fill_null(0)).alias("true"))
    curve = calibration(sure)
    assert sure["confidence"].sum() == pytest.approx(people.height)
    top = curve.filter(pl.col("class") == 10)
    assert top["precision"][0] > 0.97
    low = curve.filter(pl.col("class") <= 5)
    assert low["precision"].mean() < 0.7


def test_an_interrupted_run_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(1)
    people = pl.DataFrame(
        {
            "block": [f"{i // 3:03d}" for i in range(90)],
            "sex": draws.integers(0, 2, 90),
            "race": draws.integers(0, 3, 90),
        }
    )
    published = collect_tables(
        {name: people.group_by("block", name).agg(pl.len().alias("count")) for name in ("sex", "race")},
        "block",
    )
    monkeypatch.setattr(reconstruction, "AREAS_PER_PIECE", 10)
    whole = reconstruct(published, workers=2)

    def stop(step: str, done: int, total: int) -> None:
        assert (step, total) == ("reconstruct", 30)
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reconstruct(published, state=tmp_path, progress=stop)
    worked: list[str] = []
    area = reconstruction._reconstruct_area
    monkeypatch.setattr(
        reconstruction, "_reconstruct_area", lambda name, *rest: (worked.append(name), area(name, *rest))[1]
    )
    again = reconstruct(published, state=tmp_path)
    assert sorted(worked) == published.areas.to_list()[20:]
    assert again.areas.drop("seconds").equals(whole.areas.drop("seconds"))
    with pytest.raises(InputError, match="belongs to another reconstruction"):
        reconstruct(published, state=tmp_path, effort=Effort(samples=2))


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(InputError, match="combinations of levels"):
        TableDesign.of_margins({name: list(range(200)) for name in "abc"}, [["a"]])
    with pytest.raises(InputError, match="no levels are given for b"):
        TableDesign.of_margins({"a": [1]}, [["b"]])
