"""Propose a workload from a schema, and choose its shares for stated goals, those for the worst-off among them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.schema import RecordSchema, Schema, VariableSchema
from stirred.census.synthetic import synthesise
from stirred.errors import InputError, PlanError, did_you_mean
from stirred.mechanisms.base import TunedCost, TunedError, TunedSettings
from stirred.mechanisms.proposal import Cap, Goal, Proposal, choose_variables, find_root, list_areas
from stirred.mechanisms.topdown import promise
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.promise import (
    CERTIFICATE_DELTA,
    cost_in_multiverse,
    is_determined,
    list_exact_queries,
)
from stirred.mechanisms.topdown.tree import ALIASES, Tree, list_leaves
from stirred.mechanisms.topdown.workload import Mode, Workload, read_preset
from stirred.spec import Budget, rho_squared_to_epsilon
from stirred.text_formats import parse_toml, read_plain_text, write_toml

if TYPE_CHECKING:
    from stirred.census import Census


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


# A workload that the schema of a census suggests: one axis for each variable with few listed levels.

PROPOSED_FILE = "workload.toml"
MAX_CELLS, MAX_AXES = 2_000, 4


def propose(schema: Schema) -> Proposal:
    """Measure the total, each axis and all of them crossed at every level of the geography; keep the coarsest totals.

    These are exact, so they are not measured as well: that would spend budget on what is known.
    """
    home = find_root(schema)
    levels = list_areas(schema, home)
    linked = [record for record in schema.records if record.linked_to == home.name]
    record = next((one for one in (*linked, home) if _choose_axes(schema, one)), None)
    if record is None:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts records by listed levels, and census.toml lists none",
            fix='list the levels of a variable: tenure = { levels = ["own", "rent"] }',
        )
    axes = _choose_axes(schema, record)
    whole = [variable.name for variable in axes if _find_offset(variable) is not None]
    coded = [variable.name for variable in axes if variable.name not in whole]
    return Proposal(
        settings={"workload": PROPOSED_FILE},
        reasons={
            "workload": f"{record.name} records by {', '.join(v.name for v in axes)}, the variables with few listed levels",
            "tables": f"each by {levels[-1]}, the finest area",
        },
        tables=tuple((record.name, (levels[-1], name)) for name in whole[:2]),
        undecided=tuple(_list_undecided(record, levels, coded)),
        files={PROPOSED_FILE: _write_workload(record, levels, axes)},
    )


def _choose_axes(schema: Schema, record: RecordSchema) -> list[VariableSchema]:
    found: list[VariableSchema] = []
    for variable in choose_variables(schema, record):
        sizes = [one.level_count or 0 for one in (*found, variable)]
        fits = variable.levels is not None and variable.missing.policy != "keep" and prod(sizes) <= MAX_CELLS
        if fits and len(found) < MAX_AXES:
            found.append(variable)
    return found


def _find_offset(variable: VariableSchema) -> int | None:
    """Return the first code of a variable whose codes are whole numbers without a gap."""
    codes = [code for code in variable.all_levels or () if isinstance(code, int)]
    return (
        codes[0] if codes and codes == list(range(codes[0], codes[0] + (variable.level_count or 0))) else None
    )


def _list_undecided(record: RecordSchema, levels: tuple[str, ...], coded: list[str]) -> Iterator[str]:
    yield f"ρ² = 1 and its equal shares are a start: tune them, and edit {PROPOSED_FILE}"
    yield f"the totals of {levels[0]} are exact: give a [[reason]], or take the rule out of {PROPOSED_FILE}"
    if coded:
        yield f"published as numbers 0, 1, …, which {PROPOSED_FILE} labels: " + ", ".join(
            f"{n}_level" for n in coded
        )
    if record.weight:
        yield f"{record.weight} is not used: the records of this mechanism have no weights"


def _write_workload(record: RecordSchema, levels: tuple[str, ...], axes: list[VariableSchema]) -> str:
    names = [v.name if _find_offset(v) is not None else f"{v.name}_level" for v in axes]
    queries = {"total": [], **{f"by-{name}": [name] for name in names}}
    if len(names) > 1:
        queries["all"] = names
    lines = [
        'name = "proposed"',
        'title = "Proposed from the schema of the census; no record was read"',
        f"record = {write_toml(record.name)}",
        'rho_squared = "1"',
        f"levels = {write_toml(list(levels))}",
    ]
    for name, variable in zip(names, axes, strict=True):
        found, offset = variable.all_levels or (), _find_offset(variable)
        values = write_toml([[code] for code in found])
        source = f"offset = {offset}" if offset is not None else f"values = {values}"
        lines += [
            "",
            "[[axis]]",
            f"name = {write_toml(name)}",
            f"labels = {write_toml([str(code) for code in found])}",
        ]
        lines.append(f"source = {{ column = {write_toml(variable.name)}, {source} }}")
    for name, of in queries.items():
        lines += ["", "[[query]]", f"name = {write_toml(name)}", f"of = {write_toml(of)}"]
    lines += ["", "[level_shares]", *(f'{write_toml(level)} = "1/{len(levels)}"' for level in levels)]
    for level in levels:
        lines += ["", f"[query_shares.{write_toml(level)}]"]
        measured = [name for name in queries if name != "total" or level != levels[0]]
        lines += [f'{write_toml(name)} = "1/{len(measured)}"' for name in measured]
    lines += [
        "",
        "[[rule]]",
        f"name = {write_toml(f'{levels[0]} totals')}",
        'kind = "exact"',
        'query = "total"',
    ]
    return "\n".join([*lines, f"level = {write_toml(levels[0])}", ""])


# Variances of the best linear estimate over a regular tree, in closed form, from the shares and the shape alone.
#
# With f children under every geounit of a level, all alike, the two passes of the estimate over the whole tree have the
# covariances $C = (I + VP)^{-1}V$, $V = f\,C_{child}$, upward, and $E_{child} = (1 - 1/f)\,C_{child} + E/f^2$ downward.

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TreeShape:
    """The measured levels from the root down, by the workload's names, and how many areas each has."""

    levels: tuple[str, ...]
    areas: tuple[int, ...]

    @property
    def fans(self) -> tuple[float, ...]:
        """Return the mean number of children of every level but the last, at least one."""
        pairs = zip(self.areas, self.areas[1:], strict=False)
        return tuple(max(below / above, 1.0) for above, below in pairs)


def measure_shape(census: "Census", workload: Workload) -> TreeShape:
    """Count the areas of each level, which is public or an invariant; nothing else of the census is read."""
    tree = Tree.of(list_leaves(census, workload), census.schema.spine, root=workload.levels[0])
    found = [(level, depth) for level in workload.levels if (depth := tree.depth(level)) is not None]
    return TreeShape(tuple(level for level, _ in found), tuple(tree.size(depth) for _, depth in found))


QUARTERS_AXIS = "hhgq"  # households or a type of group quarters, households first
HOMES = (
    "a leaf of households"  # a level of its own: most leaves have no group quarters, and know that exactly
)


@dataclass(frozen=True)
class LinearErrors:
    """The variance of every cell of a marginal at a level, as a function of ρ by level and query."""

    workload: Workload
    shape: TreeShape
    algebra: Algebra
    pairs: tuple[tuple[str, str], ...]  # level and query of each variable
    units: tuple[Floats, ...]  # the information of one unit of ρ for each pair
    known: dict[tuple[tuple[int, ...], ...], Floats] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(workload: Workload, shape: TreeShape, pairs: Sequence[tuple[str, str]]) -> "LinearErrors":
        """Build the errors for variables that are the ρ of these pairs."""
        algebra = Algebra.of(workload.histogram, workload.queries)
        algebra.require_fit()
        by_query = {query.name: algebra.information({query.name: 1.0}) for query in workload.queries}
        return LinearErrors(
            workload, shape, algebra, tuple(pairs), tuple(by_query[query] for _, query in pairs)
        )

    def covariances(self, rho: Floats) -> list["LevelCovariance"]:
        """Return the covariances of every level, from the root down."""
        levels, found = self.shape.levels, list[LevelCovariance]()
        exact = {
            rule.level for rule in self.workload.rules if rule.kind == "exact" and self._whole(rule.query)
        }
        one = np.eye(self.algebra.K)
        for depth in range(len(levels) - 1, -1, -1):
            P = np.zeros((self.algebra.parts, self.algebra.K, self.algebra.K))
            for place, (level, _) in enumerate(self.pairs):
                if level == levels[depth]:
                    P += rho[place] * self.units[place]
            V = found[-1].C * self.shape.fans[depth] if found else None
            H: Floats | None = None if V is None else _invert(one + V @ P)
            C: Floats = _invert(P) if V is None or H is None else H @ V
            C = 0.5 * (C + np.swapaxes(C, -1, -2))
            W = np.broadcast_to(one, C.shape).copy()
            own = C
            if any(name in exact for name in (levels[depth], *ALIASES.get(levels[depth], ()))):
                total = C[0].sum()
                W[0] -= np.outer(C[0].sum(axis=1), np.ones(self.algebra.K)) / (total if total > 0 else 1.0)
                own = W @ C
            found.append(LevelCovariance(C=own, free=C, H=H, W=W, E=own))
        found.reverse()
        for depth, fan in enumerate(self.shape.fans):
            below = found[depth + 1]
            below.E = (1 - 1 / fan) * below.C + found[depth].E / fan**2
        return found

    def _whole(self, name: str) -> bool:
        query = self.workload.query(name)
        return query.size == 1 and all(min(factor) == 0 for factor in query.factors)

    def cover_homes(self, rho: Floats) -> Floats:
        """Return the covariance of a leaf that has households alone, by its own measurements."""
        own = [(unit, part) for unit, part, (level, _) in zip(self.units, rho, self.pairs, strict=True)
               if level == self.shape.levels[-1]]  # fmt: skip
        P: Floats = np.sum([part * unit for unit, part in own], axis=0)
        shape = [self.algebra.histogram.shape[i] for i in self.algebra.matrix]
        axes = [self.algebra.histogram.axes[i].name for i in self.algebra.matrix]
        coordinates = np.unravel_index(np.arange(self.algebra.K), shape) if shape else ()
        home = np.ones(self.algebra.K, bool)
        for axis, level in zip(axes, coordinates, strict=True):
            home &= (level == 0) | (axis != QUARTERS_AXIS)
        act = np.flatnonzero(home)
        C: Floats = np.zeros(P.shape)
        C[:, act[:, None], act] = _invert(np.ascontiguousarray(P[:, act[:, None], act]))
        return C

    def variances(self, rho: Floats, tables: Sequence[tuple[str, Query]]) -> Floats:
        """Return the mean variance of a cell of each table."""
        found = {level: step.E for level, step in zip(self.shape.levels, self.covariances(rho), strict=True)}
        if any(level == HOMES for level, _ in tables):
            found[HOMES] = self.cover_homes(rho)
        return np.array([max(float((found[level] * self._weights(q)).sum()), 0.0) for level, q in tables])

    def _weights(self, query: Query) -> Floats:
        """Return the weight of every covariance entry (F × K × K) in a cell's mean variance."""
        if query.factors in self.known:
            return self.known[query.factors]
        groups = self.algebra.recode(query)
        R = (groups[None, :] == np.arange(groups.max() + 1)[:, None]).astype(float)
        kept = self.algebra.find_kept_axes(query)
        factors = np.array([self._weight(kept, f) for f in range(self.algebra.parts)])
        self.known[query.factors] = np.asarray(np.multiply.outer(factors, R.T @ R / len(R)))
        return self.known[query.factors]

    def _weight(self, kept: int, f: int) -> float:
        """$t'\\Pi_f t$ for the indicator t of a cell of the kept symmetric axes."""
        weight = 1.0
        for bit, axis in enumerate(self.algebra.symmetric):
            size = self.algebra.histogram.shape[axis]
            deviation, keeps = bool(f >> bit & 1), bool(kept >> bit & 1)
            weight *= ((1 - 1 / size) if deviation else 1 / size) if keeps else (0.0 if deviation else size)
        return weight

    def gradients(self, rho: Floats, tables: Sequence[tuple[str, Query]]) -> tuple[Floats, Floats]:
        """Return variances and their derivatives by ρ (tables × pairs), by backward passes."""
        of_homes = [place for place, (level, _) in enumerate(tables) if level == HOMES]
        if of_homes:
            return self._add_homes(rho, tables, of_homes)
        steps, levels = self.covariances(rho), self.shape.levels
        E = [np.zeros((len(tables), *step.C.shape)) for step in steps]
        for place, (level, query) in enumerate(tables):
            E[levels.index(level)][place] = self._weights(query)
        places = [levels.index(level) for level, _ in tables]
        values = np.array([float((E[d][i] * steps[d].E).sum()) for i, d in enumerate(places)])
        C = [np.zeros_like(one) for one in E]
        for depth in range(len(levels) - 1, 0, -1):
            fan = self.shape.fans[depth - 1]
            C[depth] += (1 - 1 / fan) * E[depth]
            E[depth - 1] += E[depth] / fan**2
        C[0] += E[0]
        slopes = np.zeros((len(tables), len(self.pairs)))
        for depth, step in enumerate(steps):
            back = np.swapaxes(step.W, -1, -2) @ C[depth] @ step.W
            P = -step.free @ back @ step.free
            for place, (level, _) in enumerate(self.pairs):
                if level == levels[depth]:
                    slopes[:, place] = (P * self.units[place]).sum(axis=(1, 2, 3))
            if step.H is not None:
                C[depth + 1] += self.shape.fans[depth] * (np.swapaxes(step.H, -1, -2) @ back @ step.H)
        return np.maximum(values, 0.0), slopes

    def _add_homes(
        self, rho: Floats, tables: Sequence[tuple[str, Query]], of_homes: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return variances and derivatives where some tables are of leaves that have households alone."""
        others = [place for place in range(len(tables)) if place not in of_homes]
        values, slopes = np.zeros(len(tables)), np.zeros((len(tables), len(self.pairs)))
        values[others], slopes[others] = self.gradients(rho, [tables[place] for place in others])
        C, leaf = self.cover_homes(rho), self.shape.levels[-1]
        for place in of_homes:
            weights = self._weights(tables[place][1])
            values[place] = float((C * weights).sum())
            back = C @ weights @ C
            slopes[place] = [
                -float((back * unit).sum()) if level == leaf else 0.0
                for unit, (level, _) in zip(self.units, self.pairs, strict=True)
            ]
        return np.maximum(values, 0.0), slopes


def _invert(matrices: Floats) -> Floats:
    return np.linalg.inv(matrices).astype(np.float64)


@dataclass(slots=True)
class LevelCovariance:
    """The covariances of one level: with what is below it, before an exact total, and in the whole tree."""

    C: Floats
    free: Floats
    H: Floats | None  # $(I + VP)^{-1}$, none at the leaves
    W: Floats  # the projection that an exact total makes
    E: Floats


def list_tables(workload: Workload, levels: Sequence[str]) -> Mapping[tuple[str, str], Query]:
    """Return every query of the workload at every level: the tables whose accuracy is to be kept."""
    return {(level, query.name): query for level in levels for query in workload.queries}


# The shares that reach goals at a given total: a convex problem, because a variance is convex in the parts of ρ².
#
# $\min_x \sum_t v_t(x)/v_t(x^0)$ subject to $v_g(x) \le$ the goals, $\sum x = \rho^2$, $\sum_{i \in A} x_i \le$ the
# limits, $x \ge 0$, where t runs over every query at every level and $x^0$ are the workload's own shares. Where it can
# be had, no $v_t(x)$ is above $v_t(x^0)$.

Pair = tuple[str, str]
Tables = tuple[tuple[tuple[str, Query], ...], Floats]  # tables, and the variance that each may have
MAE_PER_DEVIATION = (2 / np.pi) ** 0.5  # the mean of |z| for a standard normal z
SAFETY_FACTOR = 0.995  # of what goals and limits allow, for the rounding to exact shares
# of a goal above the leaves: where its sums are held, whole numbers and non-negativity add about 5 %
HELD_GOAL_FACTOR = 0.92
MIN_SHARE = 1e-6  # of the total: what a query that helps nobody is left with before rounding drops it
MAX_ITERATIONS = 200, 60  # of the choice, and of the smallest total that reaches the goals


@dataclass(frozen=True)
class ShareProblem:
    """The parts of ρ² to choose, the errors as a function of them, the goals and the limits."""

    workload: Workload
    errors: LinearErrors
    reference: Floats  # ρ by pair, as the workload has it; what it spends on free queries is in none of them
    goals: tuple[Goal, ...]
    asked: tuple[tuple[str, Query], ...]  # the table of each goal
    limits: tuple[tuple[Cap, NDArray[np.bool_], float], ...]  # with the pairs that count and their largest ρ²
    total: float

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Return level and query of each variable."""
        return self.errors.pairs


def build_problem(
    workload: Workload, shape: TreeShape, goals: Sequence[Goal], caps: Sequence[Cap]
) -> ShareProblem:
    """Build the problem from a workload, its tree's shape, goals and limits; new tables become queries."""
    asked: list[tuple[str, Query]] = []
    queries = list(workload.queries)
    for goal in goals:
        level, query = find_table(workload, shape, goal)
        level = HOMES if goal.group else level
        same = next((one for one in queries if one.factors == query.factors), None)
        if same is None:
            queries.append(query)
        asked.append((level, same or query))
    wide = _add_queries(workload, tuple(queries), shape)
    pairs = [
        (level, query.name)
        for level in shape.levels
        for query in wide.queries
        if not is_determined(query, [wide.query(name) for name in list_exact_queries(wide, level)])
    ]
    if all(query.size < workload.histogram.cells for query in wide.queries):
        raise InputError(
            f"workload {workload.name} has no query that keeps every axis",
            why="without it the cells cannot be told apart, and their errors have no closed form",
            fix="add one: [[query]] with all axes in of",
        )
    total = float(workload.rho_squared)
    reference = np.maximum(_list_reference(workload, shape, pairs), MIN_SHARE * total)
    limits = tuple((cap, *_build_limit(wide, pairs, cap)) for cap in caps)
    return ShareProblem(
        wide, LinearErrors.of(wide, shape, pairs), reference, tuple(goals), tuple(asked), limits, total
    )


def find_table(workload: Workload, shape: TreeShape, goal: Goal) -> tuple[str, Query]:
    """Return the level and the marginal that a goal names."""
    levels = [name for name in goal.by if name in shape.levels]
    if len(levels) != 1:
        raise InputError(
            f"the goal {goal} names no level of the geography, or several",
            why=f"its table is counted by one of {', '.join(shape.levels)}",
            fix=f'name one level: "mae {workload.histogram.axes[0].name}×{shape.levels[-1]} <= 2"',
        )
    parts = tuple(name for name in goal.by if name != levels[0])
    known = [name for axis in workload.histogram.axes for name in (axis.name, *axis.recodes)]
    for name in parts:
        if name not in known:
            raise InputError(
                f"the goal {goal} asks for {name}, which workload {workload.name} does not count",
                why="a table is made of the axes of the histogram and their recodes",
                fix=did_you_mean(name, known),
            )
    return levels[0], workload.histogram.query(" * ".join(parts) or "total", parts)


def _add_queries(workload: Workload, queries: tuple[Query, ...], shape: TreeShape) -> Workload:
    """Return the workload on the census's levels with queries that goals added; its shares are arbitrary."""
    even = Fraction(1, len(shape.levels))
    return Workload(
        name=workload.name,
        record=workload.record,
        histogram=workload.histogram,
        queries=queries,
        levels=shape.levels,
        rho_squared=workload.rho_squared,
        level_shares=dict.fromkeys(shape.levels, even),
        query_shares={level: {queries[-1].name: Fraction(1)} for level in shape.levels},
        passes={},
        rules=workload.rules,
    )


def _list_reference(workload: Workload, shape: TreeShape, pairs: Sequence[Pair]) -> Floats:
    """Return the workload's own parts of ρ²; those of missing levels go one level down."""
    found = dict.fromkeys(pairs, 0.0)
    present = [level in shape.levels for level in workload.levels]
    for i, level in enumerate(workload.levels):
        lower = [workload.levels[j] for j in range(i, len(present)) if present[j]]
        target = lower[0] if lower else shape.levels[-1]
        for query in workload.queries:
            if (target, query.name) in found:
                found[target, query.name] += float(workload.rho(level, query.name))
    return np.array([found[pair] for pair in pairs])


def _build_limit(workload: Workload, pairs: Sequence[Pair], cap: Cap) -> tuple[NDArray[np.bool_], float]:
    """Return which pairs a limit counts, and the largest ρ² with its ε."""
    axes = [axis.name for axis in workload.histogram.axes]
    if cap.what in axes:
        number = axes.index(cap.what)
        counts = np.array([workload.query(query).counts_for(number) for _, query in pairs])
    elif cap.what in workload.levels[:-1]:
        below = workload.levels[workload.levels.index(cap.what) + 1 :]
        counts = np.array([level in below for level, _ in pairs])
    else:
        raise InputError(
            f"there is no attribute or level {cap.what} to limit",
            why="ε is limited for a change of one attribute, or for a move inside an area of one level",
            fix=did_you_mean(cap.what, [*axes, *workload.levels[:-1]]),
        )
    return counts, float(find_largest_rho_squared(cap.epsilon))


def find_largest_rho_squared(epsilon: Fraction) -> Fraction:
    """Return the largest ρ², to a millionth, whose ε at the certificates' δ is at most this one."""
    low, high = 0, 10**6
    while rho_squared_to_epsilon(Fraction(high, 10**6), CERTIFICATE_DELTA, tight=True) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if rho_squared_to_epsilon(Fraction(middle, 10**6), CERTIFICATE_DELTA, tight=True) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low, 10**6)


def compute_excess(asked: ShareProblem) -> float:
    """Return the factor by which the total may fall before a goal is missed; below 1 one is missed.

    Every variance is inversely proportional to the total.
    """
    return float((_limit_variances(asked) / asked.errors.variances(asked.reference, asked.asked)).min())


def keeps_limits(asked: ShareProblem) -> bool:
    """Return whether the workload's own shares keep every limit of ε."""
    return all(asked.reference[counts].sum() <= most for _, counts, most in asked.limits)


def minimise_total(asked: ShareProblem) -> Floats:
    """Return the parts of ρ² with the smallest sum that reaches goals the own shares reach."""
    scaled = asked.reference / compute_excess(asked)
    found = _minimise_from(asked, start=scaled)
    return scaled if found is None or found.sum() > scaled.sum() else found


def _minimise_from(asked: ShareProblem, *, start: Floats) -> Floats | None:
    nothing: Tables = ((), np.empty(0))
    return _minimise(asked, np.sum, lambda x: np.ones(len(x)), nothing, total=None, start=start)


def _limit_variances(asked: ShareProblem) -> Floats:
    """Return the variance that the table of each goal may have."""
    leaf = asked.errors.shape.levels[-1]
    parts = (SAFETY_FACTOR if level in {leaf, HOMES} else HELD_GOAL_FACTOR for level, _ in asked.asked)
    return np.array(
        [
            (goal.limit * part / MAE_PER_DEVIATION) ** 2 / goal.areas
            for goal, part in zip(asked.goals, parts, strict=True)
        ]
    )


def choose_shares(asked: ShareProblem) -> Floats:
    """Return the parts of ρ² by pair; raise an error that says what is missing if goals cannot be reached."""
    nothing: Tables = ((), np.empty(0))
    least = _minimise_from(asked, start=4 * asked.reference)
    if least is None:
        raise InputError(
            "the goals cannot be reached within the limits of ε",
            why=f"no total ρ² reaches {_describe_goals(asked.goals)} while ε is limited for "
            + ", ".join(cap.what for cap, _, _ in asked.limits),
            fix="allow larger errors, or a larger ε for what the tables show",
        )
    if least.sum() > asked.total:
        needed = np.ceil(least.sum() * 1000) / 1000
        raise InputError(
            f"the goals need a total ρ² of about {needed:.3f}; the plan has {asked.total:.3f}",
            why=f"{_describe_goals(asked.goals)} cannot be had together for less, even if nothing else is measured well",
            fix=f'allow larger errors, fewer or coarser tables, or rho_squared = "{needed:.3f}"',
        )
    tables = list_tables(asked.workload, asked.errors.shape.levels)
    every = [(level, query) for (level, _), query in tables.items()]
    now = asked.errors.variances(asked.reference, every)
    counted = [place for place, value in enumerate(now) if value > 1e-9]
    kept: Tables = (tuple(every[place] for place in counted), now[counted])

    def value(x: Floats) -> float:
        return float((asked.errors.variances(x, kept[0]) / kept[1]).mean())

    def slope(x: Floats) -> Floats:
        return np.asarray((asked.errors.gradients(x, kept[0])[1] / kept[1][:, None]).mean(axis=0))

    # what the goals need, or what is there where that is more, and the rest in proportion
    start = np.maximum(least, asked.reference)
    start = start * asked.total / start.sum()
    for held in (kept, nothing):
        found = _minimise(asked, value, slope, held, total=asked.total, start=start)
        if found is not None:
            return found
    return np.asarray(least * asked.total / least.sum())


def _describe_goals(goals: Sequence[Goal]) -> str:
    return "; ".join(f"{goal} within {goal.limit:g}" for goal in goals)


def _minimise(
    asked: ShareProblem,
    value: Callable[[Floats], float],
    slope: Callable[[Floats], Floats],
    held: Tables,
    *,
    total: float | None,
    start: Floats,
) -> Floats | None:
    """Minimise under the goals, the limits and the held tables' variances; None if what was found does not keep them."""
    from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

    scale = asked.total / 100
    leaf = asked.errors.shape.levels[-1]
    allowed = np.array([*_limit_variances(asked), *held[1]])
    tables = (*asked.asked, *held[0])

    def slack(z: Floats) -> Floats:
        return np.asarray(allowed / asked.errors.variances(z * scale, tables) - 1)

    def slack_slope(z: Floats) -> Floats:
        found, moved = asked.errors.gradients(z * scale, tables)
        return np.asarray(-(allowed / found**2)[:, None] * moved * scale)

    limits: list[LinearConstraint | NonlinearConstraint] = []
    if tables:
        limits.append(NonlinearConstraint(slack, 0.0, np.inf, jac=slack_slope))
    for _, counts, most in asked.limits:
        limits.append(LinearConstraint(counts.astype(float)[None] * scale / most, -np.inf, SAFETY_FACTOR))
    if total is not None:
        limits.append(LinearConstraint(np.full((1, len(start)), scale / total), 1.0, 1.0))
    lowest: Floats = np.full(len(start), 100 * MIN_SHARE)
    for place, (level, query) in enumerate(asked.pairs):
        if level == leaf and asked.workload.query(query).size == asked.workload.histogram.cells:
            # what no query distinguishes has no estimate
            lowest[place] = 0.1 * min(asked.reference[place], start[place]) / scale
    made = minimize(  # type: ignore[call-overload]
        lambda z: value(z * scale),
        np.maximum(start / scale, lowest),
        jac=lambda z: slope(z * scale) * scale,
        method="SLSQP",
        bounds=Bounds(lowest, np.full(len(start), np.inf)),
        constraints=limits,
        options={"maxiter": MAX_ITERATIONS[total is None], "ftol": 1e-7},
    )
    x = np.maximum(np.asarray(made.x, np.float64), lowest) * scale
    if total is not None:
        x *= total / x.sum()
    kept = not tables or slack(x / scale).min() > SAFETY_FACTOR**2 - 1
    return x if kept and all(x[counts].sum() <= most for _, counts, most in asked.limits) else None


# A workload with chosen shares: exact fractions, its TOML text, and what was bought at what cost.

PARTS_OF_TOTAL = 100_000  # the shares are whole numbers of these parts of the total
TUNED_FILE = "tuned-workload.toml"
TOTAL_STEP_FACTOR = 1.001  # from one total to the next, where the rounding of shares misses a goal
MIN_NOTABLE_RATIO = 1.02  # how many times larger an error must get to be named


def tune_workload(
    census: "Census",
    workload: Workload,
    source: str | Path | Workload,
    goals: Sequence[Goal],
    caps: Sequence[Cap],
    mode: Mode | None = None,
) -> TunedSettings:
    """Return the workload that reaches the goals, with its file; only the number of areas is read.

    Goals that its own shares miss are reached at its own total; goals that they meet at the smallest total that is found.
    ``mode`` is the estimate that the plan asks for, where it does not leave that to the workload.
    """
    if isinstance(source, Workload):
        raise InputError(
            "a workload made in Python cannot be tuned from a plan",
            why="the shares are written into the text of its file",
            fix="name a preset or a TOML file as the workload",
        )
    shape = measure_shape(census, workload)
    goals = read_goals(workload, shape.levels[-1], goals)
    asked = build_problem(workload, shape, goals, caps)
    met = compute_excess(asked) >= 1 and keeps_limits(asked)
    rho_squared, parts = (
        _find_smallest_total(asked)
        if met
        else (workload.rho_squared, round_shares(asked, choose_shares(asked)))
    )
    text = write_workload(workload, _read_source(source), asked, parts, goals, rho_squared=rho_squared)
    made = Workload.parse(text)
    for cap in caps:
        _require_cap(made, cap)
    rho = _compute_rho(asked, rho_squared, parts)
    errors = tuple(
        TunedError(table=str(goal), limit=goal.limit, before=before, after=after)
        for goal, before, after in zip(
            goals, _predict_errors(asked, asked.reference), _predict_errors(asked, rho), strict=True
        )
    )
    costs = _compare_costs(workload, made)
    return TunedSettings(
        settings={"workload": TUNED_FILE},
        files={TUNED_FILE: text},
        errors=errors,
        costs=costs,
        sentence=_describe_trade(workload, made, asked, errors, costs)
        + _describe_worst(asked, rho)
        + _describe_estimate(workload, mode or made.mode),
        read="of the census only the number of areas of each level was read, which is public or an invariant"
        + "".join(
            f"; {goal}: {goal.areas} areas of level {shape.levels[-1]} each in a synthetic census, before non-negativity"
            for goal in goals
            if goal.group
        ),
    )


def other_tree_error(workload: Workload) -> InputError:
    """Return the error for a workload that is measured on a tree of its own."""
    return InputError(
        "shares are tuned for the census's own tree",
        why=f"workload {workload.name} measures another one, whose areas are not those of the tables",
        fix='aian = "none" in the plan, and no [spine] in the workload',
    )


def round_shares(asked: ShareProblem, rho: Floats) -> dict[tuple[str, str], int]:
    """Return the parts of the total by level and query, as whole numbers that sum to the total."""
    floors = np.floor(rho / rho.sum() * PARTS_OF_TOTAL + 1e-9).astype(int)
    floors[np.argmax(floors)] += PARTS_OF_TOTAL - floors.sum()
    return {pair: int(number) for pair, number in zip(asked.pairs, floors, strict=True) if number}


def _find_smallest_total(asked: ShareProblem) -> tuple[Fraction, dict[tuple[str, str], int]]:
    """Return the smallest total found, rounded up to an exact fraction, and its parts."""
    rho = minimise_total(asked)
    parts, limits = round_shares(asked, rho), [goal.limit for goal in asked.goals]
    total = Fraction(_round_up(float(rho.sum())))
    while any(
        error > limit
        for error, limit in zip(
            _predict_errors(asked, _compute_rho(asked, total, parts)), limits, strict=True
        )
    ):
        total = Fraction(_round_up(float(total) * TOTAL_STEP_FACTOR))
    # what is rounded must not cost more than the plan has
    total = min(total, asked.workload.rho_squared)
    return total, parts


def _round_up(number: float) -> Decimal:
    """Return a number rounded up to four digits.

    >>> _round_up(0.123412), _round_up(2.0)
    (Decimal('0.1235'), Decimal('2.000'))
    """
    exact = Decimal(number)
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), rounding=ROUND_CEILING)


def _compute_rho(asked: ShareProblem, total: Fraction, parts: Mapping[tuple[str, str], int]) -> Floats:
    """Return ρ² by pair, for predictions."""
    return np.array([float(total) * parts.get(pair, 0) / PARTS_OF_TOTAL for pair in asked.pairs])


def _predict_errors(asked: ShareProblem, rho: Floats) -> list[float]:
    variances = asked.errors.variances(rho, asked.asked).tolist()
    return [
        float(MAE_PER_DEVIATION * (goal.areas * variance) ** 0.5)
        for goal, variance in zip(asked.goals, variances, strict=True)
    ]


def _describe_worst(asked: ShareProblem, rho: Floats) -> str:
    """Describe the measured table whose expected error rises most in proportion; empty if none does."""
    pairs = [(level, asked.workload.query(name)) for level, name in asked.pairs]
    before, after = (np.sqrt(asked.errors.variances(r, pairs)) for r in (asked.reference, rho))
    ratio = after / np.maximum(before, 1e-12)
    most = int(np.argmax(ratio))
    if ratio[most] < MIN_NOTABLE_RATIO:
        return ""
    level, query = pairs[most]
    table = " × ".join((*query.parts, level)) if query.parts else f"total × {level}"
    return f" Most is lost in {table}: from {MAE_PER_DEVIATION * before[most]:.2f} to {MAE_PER_DEVIATION * after[most]:.2f}."


def _read_source(source: str | Path) -> str:
    return read_plain_text(Path(source)) if Path(source).suffix else read_preset(str(source))


def _require_cap(made: Workload, cap: Cap) -> None:
    """Check an exact limit of ε against the exact shares."""
    lines = {axis.name: promise.cost_of_attribute(made, axis.name) for axis in made.histogram.axes}
    lines |= {level: promise.cost_within(made, level) for level in made.levels[:-1]}
    if promise.epsilon(lines[cap.what]) > Decimal(cap.epsilon.numerator) / cap.epsilon.denominator:
        raise InputError(
            f"the shares that were found exceed the limit of {cap.what}",
            why="they were rounded to exact fractions",
            fix="allow a slightly larger ε, or a slightly larger error",
        )


def write_workload(
    workload: Workload,
    text: str,
    asked: ShareProblem,
    parts: Mapping[tuple[str, str], int],
    goals: Sequence[Goal],
    *,
    rho_squared: Fraction | None = None,
) -> str:
    """Return the text of the workload with other shares, and another total where one is given."""
    document = dict(parse_toml(text))
    levels = list(asked.errors.shape.levels)
    new = [query for query in asked.workload.queries if query.name not in {q.name for q in workload.queries}]
    queries = [*document.pop("query"), *({"name": q.name, "of": list(q.parts)} for q in new)]
    axes, rules = document.pop("axis"), document.pop("rule", [])
    for name in (
        "level_shares", "query_shares", "rho", "passes", "rho_squared", "levels", "name", "source", "mode"
    ):  # fmt: skip
        document.pop(name, None)
    told = "; ".join(f"{goal} within {goal.limit:g}" for goal in goals)
    head = {
        "name": f"{workload.name}-tuned",
        "source": f"shares of {workload.name} chosen for: {told}",
        "mode": workload.mode,
        "rho_squared": str(workload.rho_squared if rho_squared is None else rho_squared),
        "levels": levels,
    }
    plain = {name: value for name, value in document.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in document.items() if isinstance(value, dict)}
    lines = [f"{name} = {write_toml(value)}" for name, value in (head | plain).items()]
    lines += [f"{name} = {write_toml(value)}" for name, value in tables.items()]
    for title, entries in (("axis", axes), ("query", queries), ("rule", rules)):
        for entry in entries:
            lines += ["", f"[[{title}]]", *(f"{name} = {write_toml(value)}" for name, value in entry.items())]
    totals = {level: sum(n for (own, _), n in parts.items() if own == level) for level in levels}
    lines += [
        "",
        "[level_shares]",
        *(f'{write_toml(level)} = "{n}/{PARTS_OF_TOTAL}"' for level, n in totals.items()),
    ]
    for level in (level for level in levels if totals[level]):
        shares = {query: n for (own, query), n in parts.items() if own == level}
        lines += ["", f"[query_shares.{write_toml(level)}]"]
        lines += [f'{write_toml(query)} = "{n}/{totals[level]}"' for query, n in shares.items()]
    lines += [
        "",
        "[passes]",
        *(
            f"{write_toml(level)} = {write_toml(_list_passes(workload, level, parts, asked))}"
            for level in levels
        ),
    ]
    return "\n".join([*lines, ""])


def _list_passes(
    workload: Workload, level: str, parts: Mapping[tuple[str, str], int], asked: ShareProblem
) -> list[list[str]]:
    """Return the passes of a level: first the tables of goals there or below, then what is measured.

    Non-negativity and rounding move sums that nothing holds, and a goal is about the linear estimate of its sums.
    """
    found = [
        [query for query in group if query == "*" or (level, query) in parts]
        for group in workload.passes.get(level, ())
    ]
    found = [group for group in found if group] or [["*"]]
    levels = asked.errors.shape.levels
    above = levels[levels.index(level) : -1]
    wanted = [query.name for own, query in asked.asked if own in above and query.size > 1]
    if not wanted or level == levels[-1]:
        return found
    first = [] if "*" in found[0] or len(found) == 1 else found.pop(0)
    return [list(dict.fromkeys([*first, *wanted])), *found]


def _compare_costs(before: Workload, after: Workload) -> tuple[TunedCost, ...]:
    """Return ε by attribute and area before and after, and inside the multiverse if that was smaller."""
    old, new = promise.list_semantics(before), promise.list_semantics(after)
    lines = [
        TunedCost(what=str(name), before=old[name][1], after=new[name][1]) for name in old if name in new
    ]
    found = cost_in_multiverse(before)
    if found.saving:
        inner = (
            promise.epsilon(found.rho_squared),
            promise.epsilon(cost_in_multiverse(after).rho_squared),
        )
        lines.insert(
            1, TunedCost(what="all, inside the multiverse (proved)", before=inner[0], after=inner[1])
        )
    return tuple(lines)


def _format_epsilon(epsilon: Decimal) -> str:
    """Return an ε rounded up at the fourth digit."""
    return str(Budget.of(str(epsilon)))


def _describe_trade(
    workload: Workload,
    made: Workload,
    asked: ShareProblem,
    errors: Sequence[TunedError],
    costs: Sequence[TunedCost],
) -> str:
    """Describe what was gained and which tables or people pay for it."""
    if made.rho_squared < workload.rho_squared:
        own = Fraction(_round_up(float(workload.rho_squared) / compute_excess(asked)))
        met = ", ".join(f"{one.table} {one.before:.2f} of {one.limit:g} allowed" for one in errors)
        return (
            f"The goals are met already at ρ² = {Budget.of(workload.rho_squared)} ({met}). The smallest ρ² that was found "
            f"to meet them is {Budget.of(made.rho_squared)} (exactly {made.rho_squared}), with the shares written here; "
            f"with the shares as they are it is {Budget.of(own)}."
        )
    falls = [one for one in errors if f"{one.after:.2f}" != f"{one.before:.2f}"]
    same = ", ".join(one.table for one in errors if one not in falls)
    bought = ", ".join(f"{one.table} from {one.before:.2f} to {one.after:.2f}" for one in falls)
    told = f" changes: {bought}" if bought else " stays as it is"
    told += f"; {same} stays as it is" if bought and same else ""
    told = told.replace(" changes:", " falls:") if all(one.after < one.before for one in falls) else told
    dearest = max(costs[1:], key=lambda one: one.after - one.before)
    paid = (
        f"; in return the ε of {dearest.what} rises from {_format_epsilon(dearest.before)} "
        f"to {_format_epsilon(dearest.after)}"
        if dearest.after > dearest.before
        else "; no ε rises"
    )
    return f"At the same ρ² = {Budget.of(workload.rho_squared)} the expected error (linear estimate){told}{paid}."


def _describe_estimate(workload: Workload, mode: Mode) -> str:
    """Describe what the released estimate adds to the predicted errors."""
    leaf = f"{workload.levels[-1]}s"
    if mode == "guided":
        return (
            f" The counts that are released (mode guided) were about 5% further off above {leaf} when this was measured,"
            f" which the goals allow for, and nearer in {leaf}, because no count is negative."
        )
    return (
        f" The plan is estimated in mode {mode}, which does not hold the sums of the goals: released counts above {leaf} may"
        " be further off. Mode guided holds them."
    )
