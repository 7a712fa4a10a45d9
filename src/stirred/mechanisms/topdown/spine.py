"""The tree of geounits: any depth, with the exact part of the budget every geounit spends.

Where the census lacks a level of the workload, that level's part moves to the next lower level present. A geounit with
one child is bypassed: it has the same persons as its child, so its part moves down to the child, which is measured once
with both. In both cases every root-to-leaf path spends exactly the total, and that is checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.topdown.workload import Workload

Ints = NDArray[np.int64]
ALIASES: Mapping[str, tuple[str, ...]] = {"us": ("nation", "country"), "tract_subset": ("tract",)}


@dataclass(frozen=True)
class Spine:
    """Levels from the root down; nodes of a level are in the order of their parents.

    >>> frame = pl.DataFrame({"state": ["a", "a", "a"], "county": ["x", "x", "y"], "block": ["1", "2", "3"]})
    >>> spine = Spine.of(frame, ("state", "county", "block"))
    >>> [len(codes) for codes in spine.codes], spine.parent[2].tolist()
    ([1, 2, 3], [0, 0, 1])
    """

    levels: tuple[str, ...]
    codes: tuple[pl.Series, ...]
    parent: tuple[Ints, ...]

    @staticmethod
    def of(frame: pl.DataFrame, levels: Sequence[str], *, root: str = "root") -> "Spine":
        """From one row per leaf (repeats allowed) with a column per level; several tops get a common root."""
        table = frame.select(levels).unique()
        for level in levels:
            missing = table[level].null_count()
            if missing:
                raise InputError(
                    f"{missing} areas have no {level}",
                    why="a child without a parent cannot be part of the tree",
                    fix=f"complete the column {level} of the geography",
                )
        table = table.sort(levels)
        codes: list[pl.Series] = []
        parents: list[Ints] = []
        above: pl.DataFrame | None = None
        for depth, level in enumerate(levels):
            nodes = table.select(levels[: depth + 1]).unique(maintain_order=True)
            if nodes[level].n_unique() < nodes.height:
                twice = nodes.height - nodes[level].n_unique()
                raise InputError(
                    f"{twice} codes of level {level} have two parents",
                    why="an area has one parent",
                    fix="make codes unique within the level, as a GEOID is",
                )
            if above is None:
                parents.append(np.full(nodes.height, -1, np.int64))
            else:
                number = above.with_row_index("number").select(levels[depth - 1], "number")
                joined = nodes.join(number, on=levels[depth - 1], how="left", maintain_order="left")
                parents.append(joined["number"].to_numpy().astype(np.int64))
            codes.append(nodes[level])
            above = nodes
        names = list(levels)
        if len(codes[0]) > 1:
            names.insert(0, root)
            codes.insert(0, pl.Series([""]))
            parents[0] = np.zeros(len(parents[0]), np.int64)
            parents.insert(0, np.full(1, -1, np.int64))
        return Spine(tuple(names), tuple(codes), tuple(parents))

    @staticmethod
    def sorted(frame: pl.DataFrame, levels: Sequence[str], *, root: str | None = None) -> "Spine":
        """The same from distinct leaves that are sorted and checked; ``root`` adds a common root.

        >>> frame = pl.DataFrame({"county": ["x", "x", "y"], "block": ["1", "2", "3"]})
        >>> [parent.tolist() for parent in Spine.sorted(frame, ("county", "block"), root="state").parent]
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
        return Spine((*(() if root is None else (root,)), *levels), tuple(codes), tuple(parents))

    def size(self, depth: int) -> int:
        """The number of geounits of a level."""
        return len(self.codes[depth])

    @cached_property
    def first_child(self) -> tuple[Ints, ...]:
        """For every level but the last: where each node's children begin in the next level, and where the last end."""
        return tuple(
            np.searchsorted(self.parent[d + 1], np.arange(self.size(d) + 1))
            for d in range(len(self.levels) - 1)
        )

    def ancestor(self, depth: int) -> Ints:
        """For each leaf the number of its ancestor at a level."""
        node = np.arange(self.size(len(self.levels) - 1))
        for d in range(len(self.levels) - 1, depth, -1):
            node = self.parent[d][node]
        return node

    def depth(self, level: str) -> int | None:
        """The depth of a workload's level here, or None if the census does not have it."""
        for name in (level, *ALIASES.get(level, ())):
            if name in self.levels:
                return self.levels.index(name)
        return None


@dataclass(frozen=True)
class Allotment:
    """What every geounit spends on every query, exactly.

    ``start[d][i]`` is the highest level whose part node i of level d spends (d itself unless it also represents bypassed
    ancestors), or -1 when the node is not measured; ``rho[(a, d)]`` are the parts of ρ² of such a node by query.
    """

    spine: Spine
    workload: Workload
    start: tuple[Ints, ...]
    rho: dict[tuple[int, int], dict[str, Fraction]]
    moved: tuple[tuple[str, str], ...]  # levels the census lacks → where their part went

    @staticmethod
    def of(
        spine: Spine, workload: Workload, *, bypass: bool = True, above: Sequence[NDArray[np.bool_]] = ()
    ) -> "Allotment":
        """Assign levels, move the parts of missing levels down, bypass single children, check every path.

        ``above`` is for subtrees that include their ancestors: by level, which of these have a single child in the whole
        tree.
        """
        depths = [spine.depth(level) for level in workload.levels]
        parts: list[dict[str, Fraction]] = [{} for _ in spine.levels]
        moved = []
        for i, level in enumerate(workload.levels):
            depth = depths[i]
            if depth is None:
                lower = [d for d in depths[i + 1 :] if d is not None]
                upper = [d for d in depths[:i] if d is not None]
                if not lower and not upper:
                    raise InputError(
                        f"the census has none of the levels of workload {workload.name}",
                        why=f"the workload has {', '.join(workload.levels)}; the census {', '.join(spine.levels)}",
                        fix="name the levels of the spine in census.toml as the workload does",
                    )
                depth = lower[0] if lower else upper[-1]
                moved.append((level, spine.levels[depth]))
            for query in workload.queries:
                part = workload.rho(level, query.name)
                if part:
                    parts[depth][query.name] = parts[depth].get(query.name, Fraction(0)) + part
        starts: list[Ints] = []
        top = np.zeros(spine.size(0), np.int64)
        for d in range(len(spine.levels)):
            last = d == len(spine.levels) - 1
            single = np.zeros(spine.size(d), bool)
            if bypass and d < len(above):
                single = above[d]
            elif bypass and not last:
                single = np.diff(spine.first_child[d]) == 1
            starts.append(np.where(single, -1, top))
            if not last:
                parent = spine.parent[d + 1]
                top = np.where(single[parent], top[parent], d + 1)
        rho: dict[tuple[int, int], dict[str, Fraction]] = {}
        for d, start in enumerate(starts):
            for a in np.unique(start[start >= 0]):
                total: dict[str, Fraction] = {}
                for depth in range(int(a), d + 1):
                    for name, part in parts[depth].items():
                        total[name] = total.get(name, Fraction(0)) + part
                if total:
                    rho[int(a), d] = total
                else:  # a level without a part, as the state above its AIAN split: not measured
                    starts[d] = np.where(starts[d] == a, -1, starts[d])
        result = Allotment(spine, workload, tuple(starts), rho, tuple(moved))
        result.check_paths()
        return result

    def check_paths(self) -> None:
        """Every path from the root to a leaf spends exactly the total, or BudgetError."""
        depth = len(self.spine.levels)
        signature = np.stack([self.start[d][self.spine.ancestor(d)] for d in range(depth)], axis=1)
        for row in np.unique(signature, axis=0) if len(signature) else ():
            spent = sum(
                (sum(self.rho[int(a), d].values(), Fraction(0)) for d, a in enumerate(row) if a >= 0),
                Fraction(0),
            )
            if spent != self.workload.rho_squared:
                raise BudgetError(
                    f"a path of the spine spends ρ² = {spent}, not {self.workload.rho_squared}",
                    why="every path from the root to a leaf spends the total ρ² of the workload",
                    fix="give every level of the workload a share, and let them sum to 1",
                )

    def holder(self, depth: int, nodes: Ints) -> tuple[Ints, Ints]:
        """For each node the level and number of the geounit whose measurement represents it."""
        level = np.full(len(nodes), depth, np.int64)
        node = nodes.copy()
        for d in range(depth, len(self.spine.levels) - 1):
            bypassed = (level == d) & (self.start[d][np.where(level == d, node, 0)] < 0)
            if not bypassed.any():
                break
            node[bypassed] = self.spine.first_child[d][node[bypassed]]
            level[bypassed] = d + 1
        return level, node
