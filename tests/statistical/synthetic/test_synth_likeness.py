"""A synthetic state lives apart, and in blocks and households of sizes, much as Hawaii and Washington do.

The bands are around indices of the two states' published blocks. The seed is fixed, so there is no
false alarm; the indices of seeds 1 to 5 all lie within the bands.
"""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from shared_data import shared
from stirred.census.synthetic import synthesise
from stirred.census.synthetic.likeness import code_eight_groups, count_by_area, dissimilarity, entropy_index
from stirred.chance import Key, permutation
from stirred.frames import frame_of

GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
CUTS = {"tract": 11, "block_group": 12, "block": 15}


# Indices of all blocks of Hawaii 2020 and of four counties of Washington 2010, as docs/benchmarks/synthetic-censuses.md
# states them; the slow test computes them again from the blocks.
ENTROPY = {"tract": (0.117, 0.100), "block_group": (0.135, 0.120), "block": (0.191, 0.215)}
DISSIMILARITY = {  # of Hispanics, whites, blacks and Asians: the other groups are few, and their index is mostly chance
    "tract": ((0.18, 0.39, 0.43, 0.38), (0.27, 0.31, 0.43, 0.35)),
    "block_group": ((0.20, 0.41, 0.46, 0.40), (0.30, 0.33, 0.46, 0.38)),
}
LARGE = (0, 1, 2, 4)
ONE_PERSON = {
    "tract": 0.127,
    "block_group": 0.145,
    "block": 0.190,
}  # spread of their share over areas, Washington
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99)
PERSONS = {"hi2020": (30, 74, 154, 336, 1158), "wa2010": (23, 47, 88, 183, 636)}  # in a block with anybody


@pytest.fixture(scope="module")
def persons() -> dict[str, NDArray[np.int64]]:
    made = synthesise("state")
    household, person = made.tables["household"], made.tables["person"]
    sizes = household["size"].to_numpy()
    areas = {
        level: np.repeat(
            household[level].combine_chunks().cast("string").dictionary_encode().indices.to_numpy(), sizes
        )
        for level in CUTS
    }
    return {**areas, "group": code_eight_groups(person["race"].to_numpy(), person["hispanic"].to_numpy())}


def table(persons: dict[str, NDArray[np.int64]], level: str) -> NDArray[np.int64]:
    return count_by_area(persons[level].astype(np.int64), persons["group"], int(persons[level].max()) + 1)


@pytest.mark.parametrize(("level", "slack"), [("tract", 0.02), ("block_group", 0.02), ("block", 0.025)])
def test_entropy_index_lies_between_the_two_states(
    persons: dict[str, NDArray[np.int64]], level: str, slack: float
) -> None:
    found = ENTROPY[level]
    assert min(found) - slack < entropy_index(table(persons, level)) < max(found) + slack


@pytest.mark.parametrize("level", ["tract", "block_group"])
def test_large_groups_live_apart_as_they_do(persons: dict[str, NDArray[np.int64]], level: str) -> None:
    ours = dissimilarity(table(persons, level))
    theirs = np.array(DISSIMILARITY[level])
    for place, group in enumerate(LARGE):
        assert theirs[:, place].min() - 0.1 < ours[group] < theirs[:, place].max() + 0.1


def test_people_shuffled_over_homes_would_be_noticed(persons: dict[str, NDArray[np.int64]]) -> None:
    """The mutant: the same people without segregation."""
    order = permutation(Key.for_tests(9).stream("mutant"), persons["group"].size)
    mixed = {**persons, "group": persons["group"][order]}
    assert entropy_index(table(mixed, "tract")) < min(ENTROPY["tract"]) - 0.05


@pytest.mark.slow
def test_indices_are_those_of_the_published_blocks() -> None:
    for place, state in enumerate(("hi2020", "wa2010")):
        blocks = pl.read_parquet(shared(state, "blocks.parquet"))
        for level, cut in CUTS.items():
            areas = blocks.group_by(pl.col("geoid").str.slice(0, cut))
            sums = areas.agg(pl.col(f"pop_{group}").sum() for group in GROUPS).drop("geoid")
            counts = sums.to_numpy().astype(np.int64)
            assert round(entropy_index(counts), 3) == ENTROPY[level][place]
            if level in DISSIMILARITY:
                found = tuple(np.round(dissimilarity(counts)[list(LARGE)], 2).tolist())
                assert found == DISSIMILARITY[level][place]
            if state == "wa2010":
                homes = areas.agg(pl.col("hh1").sum().alias("one"), pl.col("households").sum().alias("all"))
                assert round(_spread(homes), 3) == ONE_PERSON[level]
        inhabited = blocks.filter(pl.col("pop") > 0)["pop"].to_numpy()
        assert tuple(np.rint(np.quantile(inhabited, QUANTILES)).tolist()) == PERSONS[state]


def test_household_sizes_vary_over_areas_as_in_washington() -> None:
    homes = frame_of(synthesise("state").tables["household"].select(["kind", "size", *CUTS]))
    homes = homes.filter(pl.col("kind") == 1).with_columns(pl.col(level).cast(pl.String) for level in CUTS)
    for level, theirs in ONE_PERSON.items():
        ours = homes.group_by(level).agg((pl.col("size") == 1).sum().alias("one"), pl.len().alias("all"))
        assert abs(_spread(ours) - theirs) < 0.02, level


def _spread(frame: pl.DataFrame) -> float:
    kept = frame.filter(pl.col("all") > 0)
    weights = kept["all"].to_numpy().astype(float)
    share = kept["one"].to_numpy() / weights
    mean = np.average(share, weights=weights)
    return float(np.sqrt(np.average((share - mean) ** 2, weights=weights)))


def test_blocks_are_empty_and_heavy_tailed_as_they_are() -> None:
    made = synthesise("state")
    assert made.geography is not None
    household = made.tables["household"]
    codes = household["block"].combine_chunks().cast("string").dictionary_encode()
    ours = np.bincount(np.repeat(codes.indices.to_numpy(), household["size"].to_numpy()))
    empty = 1 - np.count_nonzero(ours) / made.geography.num_rows
    assert 0.166 - 0.03 < empty < 0.328 + 0.03  # Rhode Island 2020 and Washington 2010
    for state, low, high in (("hi2020", 0.2, 1.2), ("wa2010", 0.4, 1.4)):
        for quantile, theirs in zip(QUANTILES, PERSONS[state], strict=True):
            ratio = np.quantile(ours[ours > 0], quantile) / theirs
            assert low < ratio < high, (state, quantile)


def test_massachusetts_sizes_know_neither_county_nor_tenure() -> None:
    """Chi-square of 28 cells by 12 sizes, 297 degrees of freedom: above 430 with probability 6e-7 under independence."""
    household = synthesise("massachusetts-1940").tables["household"]
    county = household["county"].combine_chunks().indices.to_numpy().astype(np.int64)
    tenure = household["tenure"].combine_chunks().indices.to_numpy().astype(np.int64)
    counts = count_by_area(2 * county + tenure, household["size"].to_numpy().astype(np.int64) - 1, 28, 12)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < 430
