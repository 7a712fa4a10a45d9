"""Read goals for the worst-off: the error of a group in packed or cracked districts, by their blocks in a stand-in."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import polars as pl

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.errors import InputError
from stirred.mechanisms.proposal import Goal
from stirred.mechanisms.topdown.workload import Workload

# A packed district is made of the blocks with the largest shares of a group, from many block groups; a cracked one of
# such blocks and of those with the smallest shares, so that the group stays just below a half. Its error in the
# linear estimate is the root of its number of blocks times that of one of them, as if they were independent: a closed
# form, with one number of a synthetic census. Nothing of the census is read. The released error is larger where
# non-negativity takes persons out of such blocks (benchmarks/who_pays.py). The bias of enclaves cannot be a goal of
# this kind: the linear estimate has none, it comes from non-negativity alone.

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
MIN_PACKED_SHARE = 0.3  # of the group among adults, in a packed district that is looked at
CRACKED_SHARE = 0.48  # of the group among adults, where a cracked district takes blocks without the group
MIN_CRACKED_SHARE = 0.9 * CRACKED_SHARE  # in a cracked district that is looked at


def read_goals(workload: Workload, leaf: str, goals: Sequence[Goal]) -> list[Goal]:
    """Return the goals with the table and the number of blocks of those for the worst-off; the others as they are."""
    return [goal if not goal.group else _read_goal(workload, leaf, goal) for goal in goals]


def _read_goal(workload: Workload, leaf: str, goal: Goal) -> Goal:
    adults = goal.group.endswith(ADULT_WORDS)
    name = goal.group.removesuffix(ADULT_WORDS).strip()
    if name not in GROUPS or goal.districts not in COUNTED:
        raise InputError(
            f"the goal {goal} is not understood",
            why=f"groups are {', '.join(GROUPS)}, each alone or of voting age; districts are packed or cracked",
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
    return replace(goal, by=(*wanted, leaf), areas=count_blocks(variable, code, goal.persons, goal.districts))


@cache
def count_blocks(variable: str, code: int, persons: int, districts: str = "packed") -> int:
    """Return the largest number of blocks in such a district of so many persons, in the stand-in."""
    made = synthesise("state", households=STAND_IN_HOUSEHOLDS, seed=5)
    census = Census.of(made.schema, made.tables)
    people = census.scan("person", ["block", "age", variable]).collect()
    adult = pl.col("age") >= VOTING_AGE
    blocks = people.group_by(pl.col("block").cast(pl.String)).agg(
        persons=pl.len().cast(pl.Int64),
        adults=adult.sum().cast(pl.Int64),
        own=(adult & (pl.col(variable) == code)).sum().cast(pl.Int64),
    )
    order = blocks.filter(pl.col("adults") > 0).sort(
        pl.col("own") / pl.col("adults"), "block", descending=[True, False]
    )
    if order["persons"].sum() < persons:
        raise InputError(
            f"districts of {persons:,} persons are larger than the stand-in",
            why=f"its blocks have {order['persons'].sum():,} persons",
            fix="ask for smaller districts",
        )
    return COUNTED[districts](order, persons)


def _count_packed(order: pl.DataFrame, persons: int) -> int:
    """Cut the blocks into districts in their order."""
    number = (pl.col("persons").cum_sum() - 1) // persons
    found = order.group_by(number.alias("district")).agg(
        blocks=pl.len(), share=pl.col("own").sum() / pl.col("adults").sum()
    )
    whole = found.filter(pl.col("district") < order["persons"].sum() // persons)
    packed = whole.filter((pl.col("share") >= MIN_PACKED_SHARE) | (pl.col("district") == 0))
    return int(packed["blocks"].to_numpy().max())


def _count_cracked(order: pl.DataFrame, persons: int) -> int:
    """Take blocks from the front while the group is below its share, else from the back, until a district is full."""
    rows = order.select("own", "adults", "persons").rows()
    first, last, most = 0, len(rows), 0
    while True:
        own = adults = size = blocks = 0
        while first < last and size < persons:
            if adults and own >= CRACKED_SHARE * adults:
                last -= 1
                taken = rows[last]
            else:
                taken = rows[first]
                first += 1
            own, adults, size, blocks = own + taken[0], adults + taken[1], size + taken[2], blocks + 1
        if size < persons or own < MIN_CRACKED_SHARE * adults:
            break
        most = max(most, blocks)
    if not most:
        raise InputError(
            f"the stand-in has no cracked district of {persons:,} persons",
            why=f"the group is nowhere {MIN_CRACKED_SHARE:.0%} of the adults of so many persons",
            fix="ask for smaller districts, or for packed ones",
        )
    return most


COUNTED = {"packed": _count_packed, "cracked": _count_cracked}
