r"""The shares that reach goals at a given total: a convex problem, because a variance is convex in the parts of ρ².

$\min_x \sum_t v_t(x)/v_t(x^0)$ subject to $v_g(x) \le$ the goals, $\sum x = \rho^2$, $\sum_{i \in A} x_i \le$ the limits,
$x \ge 0$, where t runs over every query at every level and $x^0$ are the workload's own shares. Where it can be had, no
$v_t(x)$ is above $v_t(x^0)$.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.proposal import Cap, Goal
from stirred.mechanisms.topdown.accounting import CERTIFICATE_DELTA
from stirred.mechanisms.topdown.inside import is_determined, list_exact_queries
from stirred.mechanisms.topdown.tuning.shape import LinearErrors, TreeShape, list_tables
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec import rho_squared_to_epsilon

Floats = NDArray[np.float64]
Pair = tuple[str, str]
Tables = tuple[tuple[tuple[str, Query], ...], Floats]  # tables, and the variance that each may have
MAE_PER_DEVIATION = (2 / np.pi) ** 0.5  # the mean of |z| for a standard normal z
SAFETY_FACTOR = 0.995  # of what goals and limits allow, for the rounding to exact shares
HELD_GOAL_FACTOR = 0.92  # of a goal above the leaves: where its sums are held, whole numbers and non-negativity add about 5 %
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
    parts = (SAFETY_FACTOR if level == leaf else HELD_GOAL_FACTOR for level, _ in asked.asked)
    return np.array(
        [(goal.limit * part / MAE_PER_DEVIATION) ** 2 for goal, part in zip(asked.goals, parts, strict=True)]
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
