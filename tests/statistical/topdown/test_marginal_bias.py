"""Marginals at the root and above blocks have no bias in mode guided, where sums are fitted first; gls alone has one.

One county of a few blocks, 2,016 cells, many draws. A held sum of the root is its best linear unbiased estimate rounded
to a whole number, so its mean error over n draws is normal with the exact standard deviation √(v/n), v known from
the budget; the largest remainder moves it by less than one person. A right program fails with a chance below 1e-6.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.counts import sum_answers
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import build_whole_tree
from unit.topdown.test_guided import PL94

SPINE = ["state", "county", "tract", "block_group", "block"]
FAR = 5.6  # standard deviations: beyond them lies 2.2e-8 of a normal number on both sides; at most 12 sums are looked at


def small_tree() -> Census:
    """Two block groups of three blocks: 2,400 persons in households, 20 adults in each of 7 kinds of group quarters."""
    rng = np.random.default_rng(11)
    blocks = np.array([f"9000100010{g}{g}00{b}" for g in (1, 2) for b in range(3)])
    homes = rng.choice(blocks, 2_400, p=[0.3, 0.2, 0.05, 0.25, 0.15, 0.05])
    people = pl.DataFrame({
        "block": np.r_[homes, np.repeat(blocks[0], 140)],
        "gq_type": np.r_[np.zeros(2_400, np.int64), np.repeat(np.arange(1, 8), 20)],
        "age": np.r_[rng.choice([10, 40], 2_400), np.full(140, 20)],
        "race": rng.choice([1, 2, 4, 7], 2_540, p=[0.6, 0.2, 0.15, 0.05]),
        "hispanic": rng.choice([1, 2], 2_540, p=[0.75, 0.25]),
    })  # fmt: skip
    units = pl.DataFrame(
        {"block": np.r_[rng.choice(homes, 1_000), blocks, np.repeat(blocks[0], 7)]}
    ).with_columns(gq_type=pl.Series([*([0] * 1_006), *range(1, 8)]))
    ends = {"state": 2, "county": 5, "tract": 10, "block_group": 11}
    above = {name: pl.col("block").str.slice(0, end) for name, end in ends.items()}
    schema = {
        "geography": {"spine": SPINE},
        "record": {"person": {"id": "person_id"}, "household": {"id": "household_id"}},
    }
    tables = {"person": people.with_columns(**above), "household": units.with_columns(**above)}
    return Census.of(schema, {name: table.with_row_index(f"{name}_id") for name, table in tables.items()})


def root_errors(workload: Workload, mode: str, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the held sums at the root by draw, and their exact variances in the tree estimate."""
    census, query = small_tree(), workload.query("held")
    found, variance, above = [], np.zeros(query.size), None
    for number in range(draws):
        key = Key.for_tests(number).bind("bias")
        task = Task(
            census=census, workload=workload, settings=Settings(mode=mode), key=key, engine=Local(workers=1)
        )
        above = above or build_whole_tree(task)
        made = estimate_run(task, replace(above, depth=0), None, key)  # the root alone is solved
        found.append(sum_answers(made.levels[0], query)[0] - sum_answers(above.truth[0], query)[0])
        if not number:
            algebra, informed = made.targets.algebra, made.targets
            by_row = whole_tree.variances(
                algebra, informed.levels[0].C, algebra.recode(query), algebra.find_kept_axes(query)
            )[0]
            index = query.of(algebra.layout.ravel()).reshape(algebra.K, algebra.S)
            for k, row in enumerate(algebra.recode(query)):
                variance[index[k]] = by_row[row]
    return np.array(found), variance


@pytest.mark.slow
def test_sums_that_are_fitted_first_have_no_bias():
    draws = 60
    guided, variance = root_errors(PL94, "guided", draws)
    plain, _ = root_errors(PL94, "gls", draws)
    homes = [0, 1]  # household × Hispanic: far from zero, so that nothing is cut off
    assert (np.abs(guided.mean(axis=0)[homes]) < FAR * np.sqrt(variance[homes] / draws) + 1.0).all()
    # The same noise without the first pass: households lose to near-empty cells of group quarters, by its own spread.
    lost = plain[:, homes].sum(axis=1)
    assert lost.mean() < -FAR * lost.std(ddof=1) / np.sqrt(draws)


def test_a_held_sum_of_the_root_is_its_unbiased_estimate():
    """Three draws: the released sum is the estimate rounded, up to what cut-off sums of group quarters cost."""
    census, query, key = small_tree(), PL94.query("held"), Key.for_tests(3).bind("bias")
    task = Task(
        census=census, workload=PL94, settings=Settings(mode="guided"), key=key, engine=Local(workers=1)
    )
    above = build_whole_tree(task)
    made = estimate_run(task, replace(above, depth=0), None, key)
    algebra, e = made.targets.algebra, made.targets.levels[0].e[0]
    best = np.bincount(query.of(algebra.layout.ravel()), e.ravel(), query.size)
    expected = np.maximum(best, 0.0) * best.sum() / np.maximum(best, 0.0).sum()
    assert np.abs(sum_answers(made.levels[0], query)[0] - expected).max() < 1.0
