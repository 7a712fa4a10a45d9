"""The exact part of the budget that every geounit spends on every query.

Where the census lacks a level of the workload, that level's part moves to the next lower level present. A geounit with
one child is bypassed: it has the same persons as its child, so its part moves down to the child, which is measured once
with both. In both cases every root-to-leaf path spends exactly the total, and that is checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.topdown.tree.geounits import Tree, require_order
from stirred.mechanisms.topdown.workload.workload import Workload

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Allotment:
    """The exact part of the budget that every geounit spends on every query.

    ``start[d][i]`` is the highest level whose part node i of level d spends (d itself unless it also represents bypassed
    ancestors), or -1 when the node is not measured; ``rho[(a, d)]`` are the parts of ρ² of such a node by query.
    """

    spine: Tree
    workload: Workload
    start: tuple[Ints, ...]
    rho: dict[tuple[int, int], dict[str, Fraction]]
    moved: tuple[tuple[str, str], ...]  # levels the census lacks → where their part went

    @staticmethod
    def of(
        spine: Tree, workload: Workload, *, bypass: bool = True, above: Sequence[NDArray[np.bool_]] = ()
    ) -> "Allotment":
        """Assign levels, move the parts of missing levels down, bypass single children, check every path.

        ``above`` is for subtrees that include their ancestors: by level, which of these have a single child in the whole
        tree.
        """
        require_order(workload.levels, spine.levels)
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
        """Check that every path from the root to a leaf spends exactly the total; raise BudgetError if not."""
        depth = len(self.spine.levels)
        node = np.arange(self.spine.size(depth - 1))
        label = np.zeros(len(node), np.int64)  # which kinds of geounits a path has, from -1 to its depth each
        for d in range(depth - 1, -1, -1):
            label = label * (depth + 1) + self.start[d][node] + 1
            node = self.spine.parent[d][node]
        for path in np.unique(label).tolist():
            spent = Fraction(0)
            for d in range(depth):
                path, a = divmod(path, depth + 1)
                spent += sum(self.rho[a - 1, d].values(), Fraction(0)) if a else 0
            if spent != self.workload.rho_squared:
                raise BudgetError(
                    f"a path of the spine spends ρ² = {spent}, not {self.workload.rho_squared}",
                    why="every path from the root to a leaf spends the total ρ² of the workload",
                    fix="give every level of the workload a share, and let them sum to 1",
                )

    def list_deviations(self, depths: range) -> list[tuple[int, str, str, float, int]]:
        r"""Depth, level, query, standard deviation $\sigma = 1/\sqrt{\rho}$ of its noise, and how many geounits have it."""
        found = []
        for d in depths:
            starts, numbers = np.unique(self.start[d][self.start[d] >= 0], return_counts=True)
            for a, number in zip(starts.tolist(), numbers.tolist(), strict=True):
                for query, rho in self.rho[a, d].items():
                    found.append((d, self.spine.levels[d], query, float(1 / rho) ** 0.5, number))
        return found

    def find_holders(self, depth: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Return, for each node, the level and number of the geounit whose measurement represents it."""
        level = np.full(len(nodes), depth, np.int64)
        node = nodes.copy()
        for d in range(depth, len(self.spine.levels) - 1):
            bypassed = (level == d) & (self.start[d][np.where(level == d, node, 0)] < 0)
            if not bypassed.any():
                break
            node[bypassed] = self.spine.first_child[d][node[bypassed]]
            level[bypassed] = d + 1
        return level, node
