"""The tree of geounits, of any depth: the codes of every level and the parent of every geounit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError

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
        >>> [parent.tolist() for parent in Tree.sorted(frame, ("county", "block"), root="state").parent]
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
