r"""Other trees for the same geography: the AIAN split and optimized block groups of the 2020 production spine.

**AIAN split.** Each state has at most two parts, its American Indian, Alaska Native and Native Hawaiian areas and the
remainder; every lower level is cut by that border. The parts take the state's place in the budget; the state itself
stays above them as a node that is not measured, so that *its* population is the invariant and not that of the parts.
(The production code also took bounds from the parts' exact totals; ``bounds`` does so, and states them as an invariant.)

**Optimized block groups.** Within a tract, leaves in the same off-spine entities (place, school district, …) form
groups, each cut into pieces of at most $\lfloor\sqrt n + 13\rfloor$ leaves, n the number of leaves in the tract.

Both use the leaves of the tree and the areas in which these lie, never a confidential count: the areas are public
geography, and the leaves are public or declared as an invariant (``leaves``). One option is no public geography:
which types of group quarters a block has. It is taken only from counts that a rule of the workload has made
an invariant, so that the tree is the same for every data set of the multiverse. Microdata and tables still have the
ordinary geography (``ordinary``), and every root-to-leaf path spends exactly the total (checked where the budget is
allotted).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from stirred.census.geography import area_record_types, attach_levels
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.topdown.tree.geounits import ALIASES
from stirred.mechanisms.topdown.tree.primitives import add_primitives, require_shares
from stirred.mechanisms.topdown.workload.options import (
    GROUP_SIZE_ALLOWANCE,
    OPTIMIZED_SUFFIX,
    PART_SUFFIX,
    PLACE_GEOGRAPHY,
    STRONG_SUBDIVISION_STATES,
    SpineOptions,
)
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.codebook.schema import OffSpine

NOT_AIAN = ("", "0", "9999", "99999", "false", "False")  # how files mark a block that is in no such area
QUARTERS_COLUMN = "stirred:quarters"  # which types of group quarters a leaf has, as the bits of a number


def split_tree(
    options: SpineOptions, frame: pl.DataFrame, spine: tuple[str, ...], workload: Workload
) -> tuple[pl.DataFrame, tuple[str, ...], Workload]:
    """Return the leaves with the columns of the new tree, its levels, and the workload on these levels.

    The frame has a row per leaf; its columns are the spine's levels and the entities of the options.
    """
    frame, levels, renamed = extend_frame(options, frame, spine)
    if options.primitives is not None:
        require_shares(workload)
    _refuse_rules(workload, spine, levels)
    workload = _rename_levels(workload, spine, renamed)
    return frame.select(levels), tuple(levels), add_part_bounds(workload, options)


def add_part_bounds(workload: Workload, options: SpineOptions) -> Workload:
    """Return the workload with the rule that bounds facilities by totals of parts, if asked for."""
    totals = (
        query.name for query in workload.queries if query.size == 1 and all(map(_keeps_all, query.factors))
    )
    total = next(totals, None)
    counted = any(rule.kind == "facilities" for rule in workload.rules)
    if not options.bounds or options.aian is None or total is None or not counted:
        return workload
    rule = Rule(
        name="parts", kind="parts", query=total, level=options.split_at + PART_SUFFIX, areas=options.aian
    )
    return replace(workload, rules=(*workload.rules, rule))


def _keeps_all(factor: Sequence[int]) -> bool:
    return min(factor) >= 0


def extend_frame(
    options: SpineOptions, frame: pl.DataFrame, spine: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Return the frame with the columns of the new tree, its levels, and their names by old ones."""
    levels = list(spine)
    leaf = spine[-1]
    renamed: dict[str, str] = {}
    top = spine.index(options.split_at) if options.split_at in spine else 0
    if options.aian is not None:
        if len(spine) - top < 2:
            raise InputError(
                "the AIAN split needs a level below the one that is split",
                why="each part of a split area needs areas below it",
                fix="split at a higher level, or add a level to the spine",
            )
        inside = ~pl.col(options.aian).cast(pl.String).fill_null("").is_in(NOT_AIAN)
        flag = pl.when(inside).then(pl.lit("1")).otherwise(pl.lit("0"))
        whole = spine[top]
        for level in spine[top:-1]:
            renamed[level] = level + PART_SUFFIX
            frame = frame.with_columns(pl.format("{}|{}", flag, pl.col(level)).alias(level + PART_SUFFIX))
        levels = [*spine[:top], whole, *(renamed[level] for level in spine[top:-1]), leaf]
    if options.primitives is not None:
        frame, levels = add_primitives(options.primitives, frame, levels, renamed)
    if options.has_new_block_groups:
        frame, levels = _group_leaves(options, frame, spine, levels, renamed)
    return frame, levels, renamed


def _group_leaves(
    options: SpineOptions,
    frame: pl.DataFrame,
    spine: tuple[str, ...],
    levels: list[str],
    renamed: dict[str, str],
) -> tuple[pl.DataFrame, list[str]]:
    """Put groups of leaves in the place of the block groups, or below the lowest level where there are none."""
    leaf = spine[-1]
    above = levels[:-2] if "block_group" in spine[-2:-1] else levels[:-1]
    if not above:
        raise InputError(
            "optimized block groups need a level above them",
            why="they are made from the blocks of one tract",
            fix="name the tract in the census's spine",
        )
    tract, name = above[-1], "block_group" + OPTIMIZED_SUFFIX
    renamed["block_group"] = name
    entities = [*(options.block_groups or ())]
    if options.quarters and QUARTERS_COLUMN in frame.columns:
        entities.append(QUARTERS_COLUMN)
    keys = [f"entity {entity}" for entity in entities]
    table = frame.with_columns(
        _place_entity(options, spine, entity).alias(key) for entity, key in zip(entities, keys, strict=True)
    ).sort([tract, *keys, leaf])
    table = table.with_columns(
        limit=(pl.len().over(tract).sqrt().floor() + GROUP_SIZE_ALLOWANCE + 1).cast(pl.Int64),
        size=pl.len().over(tract, *keys).cast(pl.Int64),
        place=pl.int_range(pl.len(), dtype=pl.Int64).over(tract, *keys),
    )
    pieces = (pl.col("size") + pl.col("limit") - 1) // pl.col("limit")  # as even as can be
    table = table.with_columns(piece=pl.col("place") * pieces // pl.col("size"))
    number = pl.struct(*keys, "piece").rank("dense").over(tract).cast(pl.String).str.zfill(4)
    return table.with_columns(pl.format("{}.{}", pl.col(tract), number).alias(name)), [*above, name, leaf]


def _place_entity(options: SpineOptions, spine: tuple[str, ...], name: str) -> pl.Expr:
    """Return the area of an entity that a leaf lies in; in some states a subdivision replaces the place."""
    own = pl.col(name).cast(pl.String).fill_null("")
    if name != PLACE_GEOGRAPHY or options.strong_mcd is None:
        return own
    if options.split_at not in spine:
        raise InputError(
            f"the census has no level {options.split_at}",
            why="in some states county subdivisions stand for places",
            fix="leave out the county subdivisions, or name the state in the census's spine",
        )
    strong = pl.col(options.split_at).cast(pl.String).str.zfill(2).is_in(STRONG_SUBDIVISION_STATES)
    return pl.when(strong).then(pl.col(options.strong_mcd).cast(pl.String).fill_null("")).otherwise(own)


def find_off_spine(census: "Census", name: str) -> "OffSpine":
    """Return an off-spine geography that may shape the tree: each leaf lies in one public area of it."""
    schema = census.schema
    known = {off.name: off for off in schema.geography.off_spine}
    if name not in known:
        raise InputError(
            f"{name} is not a geography beside the spine",
            why="only public geography may shape the tree, and the census declares what is geography",
            fix=f"declare it under [geography.off_spine.{name}]; {did_you_mean(name, known)}",
        )
    off = known[name]
    if not off.of:
        raise InputError(
            f"{name} cuts through the areas of the spine",
            why="each leaf must lie in one area of it",
            fix=f'state the level that decides it: [geography.off_spine.{name}] of = "…"',
        )
    if not off.files and schema.geography.areas is not None:
        raise InputError(
            f"{name} needs a file of its own",
            why="the tree lists all areas, and without a file only records say where these are: the tree would "
            "show which areas have records",
            fix=f"give [geography.off_spine.{name}] its files",
        )
    return off


def add_entities(census: "Census", leaves: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Add the named off-spine geographies to the leaves; each leaf lies in one area of each."""
    schema = census.schema
    for name in dict.fromkeys(names):
        off = find_off_spine(census, name)
        if off.files:
            leaves = attach_levels(schema, leaves.lazy(), [name], census.folder).collect()
            continue
        holders = [record for record in area_record_types(census.schema) if name in census.columns(record)]
        if not holders:
            raise InputError(
                f"no record type has the column {name}",
                why="[geography.off_spine] names it, and it has no file",
                fix=f"add the column {name} to the records, or give [geography.off_spine.{name}] its files",
            )
        # every type that has the column is read: an area may have group quarters and no household
        codes = pl.col(off.of).cast(leaves.schema[off.of]), pl.col(name).cast(pl.String)
        frames = [census.scan(record, [off.of, name]).select(codes) for record in holders]
        table = pl.concat(frames).unique().collect()
        if table[off.of].n_unique() < table.height:
            raise mixed_areas_error(name, off.of)
        leaves = leaves.join(table, on=off.of, how="left", maintain_order="left")
    return leaves


def mixed_areas_error(name: str, of: str) -> InputError:
    """Return the error for areas that lie in several off-spine areas."""
    return InputError(
        f"some areas of level {of} lie in several areas of {name}",
        why="each area must lie in one area beside the spine",
        fix=f'correct the column {name}, or give [geography.off_spine.{name}] another "of"',
    )


def _name_level(name: str, spine: tuple[str, ...]) -> str:
    """Return the census's own name of a workload's level."""
    return next((own for own in (name, *ALIASES.get(name, ())) if own in spine), name)


def _refuse_rules(workload: Workload, spine: tuple[str, ...], levels: list[str]) -> None:
    """Refuse a rule about whole areas (counties) that the tree has only in parts."""
    for rule in workload.rules:
        if (
            rule.kind != "zero"
            and _name_level(rule.level, spine) in spine
            and _name_level(rule.level, spine) not in levels
        ):
            raise InputError(
                f"rule {rule.name} names level {rule.level}, which this spine cuts into parts",
                why="fixing the parts would make more numbers exact than the rule says",
                fix="state the rule at the lowest level or above the split, or use the ordinary spine",
            )


def _rename_levels(workload: Workload, spine: tuple[str, ...], names: Mapping[str, str]) -> Workload:
    """Return the workload with the same budget on the new levels; rules keep their own."""

    def new(level: str) -> str:
        return names.get(_name_level(level, spine), level)

    return replace(
        workload,
        levels=tuple(new(level) for level in workload.levels),
        level_shares={new(level): share for level, share in workload.level_shares.items()},
        query_shares={new(level): shares for level, shares in workload.query_shares.items()},
        passes={new(level): passes for level, passes in workload.passes.items()},
    )
