"""Read goals for the worst-off: the error of a group in packed districts, by the blocks of such a district in a stand-in."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import polars as pl

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.errors import InputError
from stirred.mechanisms.proposal import Goal
from stirred.mechanisms.topdown.workload import Workload

# A packed district is made of the blocks with the largest shares of a group, from many block groups. Its error in the
# linear estimate is the root of its number of blocks times that of one of them, as if they were independent: a closed
# form, with one number of a synthetic census. Nothing of the census is read. The released error is larger where
# non-negativity takes persons out of such blocks (benchmarks/who_pays.py).

ADULT_WORDS = " voting age"
GROUPS = {
    "hispanic": ("hispanic", 2),
    "white": ("race", 1),
    "black": ("race", 2),
    "american indian": ("race", 3),
    "asian": ("race", 4),
    "pacific": ("race", 5),
}  # the variable of the stand-in, and its code
AXES = {"race": ("cenrace", "race"), "hispanic": ("hispanic",)}  # how workloads call the variable
VOTING_AGE = 18  # years
STAND_IN_HOUSEHOLDS = 20_000
MIN_PACKED_SHARE = 0.3  # of the group among adults, in a district that is looked at


def read_goals(workload: Workload, leaf: str, goals: Sequence[Goal]) -> list[Goal]:
    """Return the goals with the table and the number of blocks of those for the worst-off; the others as they are."""
    return [goal if not goal.group else _read_goal(workload, leaf, goal) for goal in goals]


def _read_goal(workload: Workload, leaf: str, goal: Goal) -> Goal:
    adults = goal.group.endswith(ADULT_WORDS)
    name = goal.group.removesuffix(ADULT_WORDS).strip()
    if name not in GROUPS or goal.districts != "packed":
        raise InputError(
            f"the goal {goal} is not understood",
            why=f"groups are {', '.join(GROUPS)}, each alone or of voting age; districts are packed",
            fix='write for instance "mae black voting age in packed districts of 5000 <= 40"',
        )
    variable, code = GROUPS[name]
    axes = [axis.name for axis in workload.histogram.axes]
    wanted = [next((axis for axis in AXES[variable] if axis in axes), "")]
    wanted += ["votingage"] if adults else []
    if not set(wanted) <= set(axes):
        raise InputError(
            f"the goal {goal} asks for numbers that workload {workload.name} does not count",
            why=f"it counts by {', '.join(axes)}",
            fix="name another group, or a workload that counts race, Hispanic origin and voting age (pl94-persons)",
        )
    return replace(goal, by=(*wanted, leaf), areas=count_blocks(variable, code, goal.persons))


@cache
def count_blocks(variable: str, code: int, persons: int) -> int:
    """Return the largest number of blocks in a packed district of so many persons, in the stand-in."""
    made = synthesise("state", households=STAND_IN_HOUSEHOLDS, seed=5)
    census = Census.of(made.schema, made.tables)
    people = census.scan("person", ["block", "age", variable]).collect()
    adult = pl.col("age") >= VOTING_AGE
    blocks = people.group_by(pl.col("block").cast(pl.String)).agg(
        persons=pl.len(), adults=adult.sum(), own=(adult & (pl.col(variable) == code)).sum()
    )
    order = blocks.filter(pl.col("adults") > 0).sort(
        pl.col("own") / pl.col("adults"), "block", descending=[True, False]
    )
    number = (pl.col("persons").cum_sum().cast(pl.Int64) - 1) // persons
    found = order.group_by(number.alias("district")).agg(
        blocks=pl.len(), share=pl.col("own").sum() / pl.col("adults").sum()
    )
    whole = found.filter(pl.col("district") < order["persons"].sum() // persons)
    if whole.is_empty():
        raise InputError(
            f"districts of {persons:,} persons are larger than the stand-in",
            why=f"its blocks have {order['persons'].sum():,} persons",
            fix="ask for smaller districts",
        )
    packed = whole.filter((pl.col("share") >= MIN_PACKED_SHARE) | (pl.col("district") == 0))
    return int(packed["blocks"].to_numpy().max())
