"""Build the tree of geounits: its leaves, its levels, and the split spines of the 2020 production."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.geography import area_record_types, attach_levels, read_ancestors
from stirred.errors import InputError, did_you_mean
from stirred.languages import Phrase, unit
from stirred.mechanisms.topdown.workload import (
    GROUP_SIZE_ALLOWANCE,
    OPTIMIZED_SUFFIX,
    PART_SUFFIX,
    PLACE_GEOGRAPHY,
    STRONG_SUBDIVISION_STATES,
    Rule,
    SpineOptions,
    Workload,
)
from stirred.spec import AtLeast, Margin

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.schema import OffSpine


# The tree of geounits, of any depth: the codes of every level and the parent of every geounit.

Ints = NDArray[np.int64]
ALIASES: Mapping[str, tuple[str, ...]] = {"us": ("nation", "country"), "tract_subset": ("tract",)}


@dataclass(frozen=True)
class Tree:
    """Levels from the root down; nodes of a level are in the order of their parents.

    >>> frame = pl.DataFrame({"state": ["a", "a", "a"], "county": ["x", "x", "y"], "block": ["1", "2", "3"]})
    >>> spine = Tree.of(frame, ("state", "county", "block"))
    >>> [len(codes) for codes in spine.codes], spine.parent[2].tolist()
    ([1, 2, 3], [0, 0, 1])
    """

    levels: tuple[str, ...]
    codes: tuple[pl.Series, ...]
    parent: tuple[Ints, ...]

    @staticmethod
    def of(frame: pl.DataFrame, levels: Sequence[str], *, root: str = "root") -> "Tree":
        """Build the tree from one row per leaf with a column per level; several tops get a common root."""
        table = frame.select(levels)
        for level in levels:
            if table[level].null_count():
                raise missing_code_error(table.unique()[level].null_count(), level)
        tree = Tree.from_sorted(
            table.sort(levels), levels, root=root if table[levels[0]].n_unique() > 1 else None
        )
        for level, codes in zip(levels, tree.codes[-len(levels) :], strict=True):
            twice = len(codes) - codes.n_unique()
            if twice:
                raise two_parents_error(twice, level)
        return tree

    @staticmethod
    def from_sorted(frame: pl.DataFrame, levels: Sequence[str], *, root: str | None = None) -> "Tree":
        """Build the tree from leaves that are sorted and checked; ``root`` adds a common root.

        >>> frame = pl.DataFrame({"county": ["x", "x", "y"], "block": ["1", "2", "3"]})
        >>> [parent.tolist() for parent in Tree.from_sorted(frame, ("county", "block"), root="state").parent]
        [[-1], [0, 0], [0, 0, 1]]
        """
        codes: list[pl.Series] = []
        parents: list[Ints] = []
        fresh = np.zeros(frame.height, bool)
        fresh[:1] = True
        number = np.full(frame.height, -1, np.int64)
        if root is not None:
            codes.append(pl.Series([""]))
            parents.append(np.full(1, -1, np.int64))
            number[:] = 0
        for level in levels:
            column = frame[level]
            fresh[1:] |= (column.slice(1) != column.slice(0, max(frame.height - 1, 0))).to_numpy()
            first = np.flatnonzero(fresh)
            parents.append(number[first])
            codes.append(column.gather(first))
            number = np.cumsum(fresh) - 1
        return Tree(
            (*(() if root is None else (choose_root_name(root, levels),)), *levels),
            tuple(codes),
            tuple(parents),
        )

    def size(self, depth: int) -> int:
        """Return the number of geounits of a level."""
        return len(self.codes[depth])

    @cached_property
    def first_child(self) -> tuple[Ints, ...]:
        """Return where each node's children begin in the next level, for every level but the last."""
        return tuple(
            np.searchsorted(self.parent[d + 1], np.arange(self.size(d) + 1))
            for d in range(len(self.levels) - 1)
        )

    def ancestor(self, depth: int) -> Ints:
        """Return, for each leaf, the number of its ancestor at a level."""
        node = np.arange(self.size(len(self.levels) - 1))
        for d in range(len(self.levels) - 1, depth, -1):
            node = self.parent[d][node]
        return node

    def depth(self, level: str) -> int | None:
        """Return the depth of a workload's level here, or None if the census does not have it."""
        for name in (level, *ALIASES.get(level, ())):
            if name in self.levels:
                return self.levels.index(name)
        return None


def require_order(levels: Sequence[str], spine: Sequence[str]) -> None:
    """Stop if the levels of a workload that the spine has are not in its order: what is below an area would be wrong.

    >>> require_order(("us", "state", "block"), ("state", "county", "block"))
    """
    own = [
        next((name for name in (level, *ALIASES.get(level, ())) if name in spine), None) for level in levels
    ]
    here = [name for name in own if name is not None]
    if here != sorted(here, key=spine.index):
        raise InputError(
            f"the workload lists its levels as {', '.join(levels)}",
            why=f"the areas of the census nest as {', '.join(spine)}, the largest first",
            fix="list the levels of the workload in that order",
        )


def missing_code_error(missing: int, level: str) -> InputError:
    """Return the error for areas without a code."""
    return InputError(
        f"{missing} areas have no {level}",
        why="a child without a parent cannot be part of the tree",
        fix=f"complete the column {level} of the geography",
    )


def two_parents_error(twice: int, level: str) -> InputError:
    """Return the error for codes with two parents."""
    return InputError(
        f"{twice} codes of level {level} have two parents",
        why="an area has one parent",
        fix="make codes unique within the level, as a GEOID is",
    )


def choose_root_name(wanted: str, levels: Sequence[str]) -> str:
    """Return a name for the common root that no level has, so that it takes no level's shares or rules.

    >>> choose_root_name("us", ["state", "county"]), choose_root_name("state", ["state", "county"])
    ('us', 'root')
    """
    return "root" if wanted in levels else wanted


# Decide which areas the tree has: those of a public file of areas, or else those of the records with a home.
#
# A tree made from records shows in which areas there are records, of every type that was used. Each of these types
# is therefore an invariant. All engines take the types from ``area_record_types``, so that every tree is declared.


def tree_invariants(census: "Census") -> tuple[AtLeast, ...]:
    r"""What a tree made from records reveals: $1[n_R(\ell) \ge 1]$ for every leaf $\ell$ and every deciding record type R.

    The levels above a leaf and the areas beside the spine that it lies in are public: the domain says that the leaf
    determines them, for every data set in the same way.
    """
    if not census.schema.spine:
        return ()
    leaf = census.schema.spine[-1]
    return tuple(
        AtLeast(
            Margin(record, (leaf,)),
            1,
            Phrase("topdown.areas", level=leaf, a_record=unit(record, "a_record")),
        )
        for record in area_record_types(census.schema)
    )


def require_spine(census: "Census") -> tuple[str, ...]:
    """Return the levels of the census's geography; raise an error if it has none."""
    if not census.schema.spine:
        raise InputError(
            "the census has no geography",
            why="TopDown works from the top of a spine down to its leaves",
            fix="name its spine in census.toml: [geography] spine = […]",
        )
    return census.schema.spine


def list_leaves(census: "Census", workload: "Workload") -> pl.DataFrame:
    """Return one row per leaf with its areas: from the public file, else from records with a home."""
    spine = list(require_spine(census))
    if census.schema.geography.areas is not None:
        areas = read_ancestors(census.schema, census.folder).select(spine).collect()
        # a linked record has the codes of its home
        home = census.schema.record(workload.record).linked_to or workload.record
        types = census.scan(home, spine).collect_schema()
        return areas.select(pl.col(name).cast(types[name]) for name in spine)
    frames = [census.scan(record, spine).unique() for record in area_record_types(census.schema)]
    return pl.concat(frames).unique().collect(engine="streaming")


# The levels of the spine of DHC between county and block group: primitive areas and subsets of tracts.
#
# A primitive area is the piece of a county that lies in one area of each entity (county subdivision, place); a subset
# of a tract is its part in one of them, and groups have at most $\\lfloor\\sqrt n + 13\\rfloor$ of the n subsets of a
# primitive area. All of it is public geography.

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


# Other trees for the same geography: the AIAN split and optimized block groups of the 2020 production spine.
#
# **AIAN split.** Each state has at most two parts, its American Indian, Alaska Native and Native Hawaiian areas and the
# remainder; every lower level is cut by that border. The parts take the state's place in the budget; the state itself
# stays above them as a node that is not measured, so that *its* population is the invariant and not that of the parts.
# (The production code also took bounds from the parts' exact totals; ``bounds`` does so, and states them as an invariant.)
#
# **Optimized block groups.** Within a tract, leaves in the same off-spine entities (place, school district, …) form
# groups, each cut into pieces of at most $\lfloor\sqrt n + 13\rfloor$ leaves, n the number of leaves in the tract.
#
# Both use the leaves of the tree and the areas in which these lie, never a confidential count: the areas are public
# geography, and the leaves are public or declared as an invariant (``tree_invariants``). One option is no public
# geography: which types of group quarters a block has. It is taken only from counts that a rule of the workload has made
# an invariant, so that the tree is the same for every data set of the multiverse. Microdata and tables still have the
# ordinary geography, and every root-to-leaf path spends exactly the total (checked where the budget is allotted).

OUTSIDE = ("", "0", "9999", "99999", "false", "False")  # how files mark a block that is in no such area
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
        inside = ~pl.col(options.aian).cast(pl.String).fill_null("").is_in(OUTSIDE)
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
    limit = (pl.len().over(tract).sqrt().floor() + GROUP_SIZE_ALLOWANCE + 1).cast(pl.Int64)
    size = pl.len().over(tract, *keys).cast(pl.Int64)
    row = pl.int_range(pl.len(), dtype=pl.Int64).over(tract, *keys)
    pieces = (size + limit - 1) // limit  # as even as can be
    table = table.with_columns(
        (row * pieces // size).alias("entity piece")
    )  # a geography may be named place or size
    number = pl.struct(*keys, "entity piece").rank("dense").over(tract).cast(pl.String).str.zfill(4)
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
