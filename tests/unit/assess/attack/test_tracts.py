"""Blocks joined to their tract: against a list of all joint solutions, and on a synthetic census."""

from itertools import product

import numpy as np
import polars as pl
import pytest

from stirred.assess.attack import attack
from stirred.assess.attack.published_areas import TableDesign, tabulate_blocks
from stirred.assess.attack.reconstruction import (
    join_programme,
    measure_variability,
    reconstruct_joined,
    tabulate_tracts,
)
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.errors import InputError
from stirred.frames import frame_of
from stirred.mechanisms.swap import PermutationSwapping

DESIGN = TableDesign.of_margins({"sex": [1, 2], "race": [1, 2, 3]}, [["sex"], ["race"]])
COUPLING = np.arange(6) // 2  # pairs of cells add up in the tract


@pytest.mark.parametrize("seed", range(6))
def test_joint_solutions_are_those_of_a_list(seed: int) -> None:
    draws = np.random.default_rng(seed)
    truth = np.array([np.bincount(draws.integers(0, 6, 3), minlength=6) for _ in range(2)])
    totals = np.bincount(COUPLING, truth.sum(axis=0)).astype(np.int64)
    counts = DESIGN.tabulate(truth)
    every = [np.array(one) for one in product(range(4), repeat=6) if sum(one) == 3]
    fitting = [
        [one for one in every if (DESIGN.tabulate(one[None])[0] == counts[block]).all()] for block in range(2)
    ]
    solutions = [
        pair for pair in product(*fitting) if (np.bincount(COUPLING, pair[0] + pair[1]) == totals).all()
    ]
    programme, block, cell = join_programme(DESIGN.members, counts, COUPLING, totals)
    status, found = programme.find_solution()
    assert status == "solved"
    assert found is not None
    whole = np.zeros((2, 6), np.int64)
    whole[block, cell] = found
    assert any((whole == np.array(pair)).all() for pair in solutions)
    assert measure_variability(programme, found, seconds=5).unique == (len(solutions) == 1)


def test_tracts_show_single_years_and_settle_races() -> None:
    made = synthesise("demo", households=400)
    census = Census.of(made.schema, made.tables)
    people = frame_of(census.table("person", ["block", "tract", "sex", "age", "race", "hispanic"]))
    years = tabulate_tracts(people, "tract")
    inside = people.select(pl.col("block").alias("area"), "tract").unique()
    found = reconstruct_joined(tabulate_blocks(people, "block"), inside, years)
    assert found.tracts["joined"].all()
    again = found.records.join(inside.with_columns(pl.all().cast(pl.String)), on="area")
    assert tabulate_tracts(again, "tract").equals(years)  # every published number of the tracts is met
    block = tabulate_blocks(found.records, "area")
    assert (block.counts == tabulate_blocks(people, "block").counts).all()  # and of the blocks
    sure = found.records.filter("certain").group_by("area", "sex", "age").len("many")
    truth = people.group_by(pl.col("block").cast(pl.String).alias("area"), "sex", "age").len("true")
    held = sure.join(
        truth.with_columns(pl.col("sex", "age").cast(pl.Int64)), on=["area", "sex", "age"], how="left"
    )
    assert (held["true"].fill_null(0) > 0).mean() > 0.9  # certain given race and origin, which may be wrong


def test_an_attack_joins_tracts_where_it_is_asked_to() -> None:
    made = synthesise("demo", households=120)
    census = Census.of(made.schema, made.tables)
    psa = PermutationSwapping(match=["state", "size"], swap=["county", "tract", "block"], rate="1/20")
    release = psa.release(census, key=Key.for_tests(1))
    found = attack(release, census, areas=1, tracts="tract")
    assert found.tables["reconstructed tracts"].height == 1  # whole tracts are drawn
    name = "agreement with the truth, records reconstructed from tables"
    about = [measure.about for measure in found.measures if measure.name == name]
    assert about == ["all records", "all records, ages in classes"]
    with pytest.raises(InputError):
        attack(release, census, areas=1, tracts="nowhere")
