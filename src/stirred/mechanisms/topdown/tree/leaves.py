"""Decide which areas the tree has: those of a public file of areas, or else those of the records with a home.

A tree made from records shows in which areas there are records, of every type that was used. Each of these types
is therefore an invariant. All engines take the types from ``area_record_types``, so that every tree is declared.
"""

from typing import TYPE_CHECKING

import polars as pl

from stirred.census.geography import area_record_types, read_ancestors
from stirred.errors import InputError
from stirred.languages import Phrase, unit
from stirred.spec import AtLeast, Margin

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.mechanisms.topdown.workload.workload import Workload


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
