r"""The levels of the spine of DHC between county and block group: primitive areas and subsets of tracts.

A primitive area is the piece of a county that lies in one area of each entity (county subdivision, place); a subset of a
tract is its part in one of them, and groups have at most $\\lfloor\\sqrt n + 13\\rfloor$ of the n subsets of a primitive
area. All of it is public geography.
"""

from collections.abc import Sequence

import polars as pl

from stirred.errors import InputError
from stirred.mechanisms.topdown.workload.options import GROUP_SIZE_ALLOWANCE
from stirred.mechanisms.topdown.workload.workload import Workload

PRIM, GROUP, SUBSET = "prim", "tract_subset_group", "tract_subset"


def require_shares(workload: Workload) -> None:
    """Raise an error if the workload does not measure the new levels: nothing else would say what lies where."""
    for level in (PRIM, GROUP):
        if not workload.level_shares.get(level):
            raise InputError(
                f"workload {workload.name} has no share for level {level}",
                why="a level that is not measured would be estimated from nothing",
                fix="take a workload that measures primitive areas (dhc-persons, dhc-units), or leave them out",
            )


def add_primitives(
    entities: Sequence[str], frame: pl.DataFrame, levels: list[str], renamed: dict[str, str]
) -> tuple[pl.DataFrame, list[str]]:
    """Return the frame and levels with the three levels of DHC in the place of the tract.

    The names of replaced levels are added to ``renamed``.
    """
    county, tract = (renamed.get(name, name) for name in ("county", "tract"))
    if county not in levels or levels[levels.index(county) + 1] != tract:
        raise InputError(
            "primitive areas need tracts in counties",
            why="they are the pieces of a county, and tracts are cut by them",
            fix="name county and tract in the census's spine, or leave the primitive areas out",
        )
    pieces = [pl.col(entity).cast(pl.String).fill_null("") for entity in entities]
    piece = pl.concat_str(pieces, separator="/") if pieces else pl.lit("")
    frame = frame.with_columns(
        pl.format("{}|{}", pl.col(county).cast(pl.String), piece).alias(PRIM),
        pl.format("{}|{}", pl.col(tract).cast(pl.String), piece).alias(SUBSET),
    )
    subsets = frame.select(PRIM, SUBSET).unique().sort(PRIM, SUBSET)
    size = pl.len().over(PRIM).cast(pl.Int64)
    limit = (pl.len().over(PRIM).sqrt().floor() + GROUP_SIZE_ALLOWANCE + 1).cast(pl.Int64)
    groups = (size + limit - 1) // limit  # as even as can be
    number = pl.int_range(pl.len(), dtype=pl.Int64).over(PRIM) * groups // size
    subsets = subsets.with_columns(
        pl.format("{}.{}", pl.col(PRIM), number.cast(pl.String).str.zfill(4)).alias(GROUP)
    )
    frame = frame.join(subsets, on=[PRIM, SUBSET], how="left", maintain_order="left")
    renamed["tract"] = SUBSET
    place = levels.index(tract)
    return frame, [*levels[:place], PRIM, GROUP, SUBSET, *levels[place + 1 :]]
