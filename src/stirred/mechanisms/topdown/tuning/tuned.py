"""A workload with chosen shares: exact fractions, its TOML text, and what was bought at what cost."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stirred.errors import InputError
from stirred.mechanisms.base import TunedCost, TunedError, TunedSettings
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.proposal import Cap, Goal
from stirred.mechanisms.topdown import accounting
from stirred.mechanisms.topdown.inside import cost_in_multiverse
from stirred.mechanisms.topdown.tuning.shape import measure_shape
from stirred.mechanisms.topdown.tuning.shares import (
    MAE_PER_DEVIATION,
    Floats,
    ShareProblem,
    build_problem,
    choose_shares,
    compute_excess,
    keeps_limits,
    minimise_total,
)
from stirred.mechanisms.topdown.workload.shipped import read_preset
from stirred.mechanisms.topdown.workload.workload import Mode, Workload
from stirred.spec import Budget
from stirred.toml_text import parse_toml, read_plain_text

if TYPE_CHECKING:
    from stirred.census import Census

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
    asked = build_problem(workload, measure_shape(census, workload), goals, caps)
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
        read="of the census only the number of areas of each level was read, which is public or an invariant",
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
    return [float(MAE_PER_DEVIATION * variance**0.5) for variance in asked.errors.variances(rho, asked.asked)]


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
    lines = {axis.name: accounting.cost_of_attribute(made, axis.name) for axis in made.histogram.axes}
    lines |= {level: accounting.cost_within(made, level) for level in made.levels[:-1]}
    if accounting.epsilon(lines[cap.what]) > Decimal(cap.epsilon.numerator) / cap.epsilon.denominator:
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
        "mode": "guided" if workload.mode == "gls" else workload.mode,
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
    old, new = accounting.list_semantics(before), accounting.list_semantics(after)
    lines = [
        TunedCost(what=str(name), before=old[name][1], after=new[name][1]) for name in old if name in new
    ]
    found = cost_in_multiverse(before)
    if found.saving:
        inner = (
            accounting.epsilon(found.rho_squared),
            accounting.epsilon(cost_in_multiverse(after).rho_squared),
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
        f"; in return the ε of {dearest.what} rises from {_format_epsilon(dearest.before)} to {_format_epsilon(dearest.after)}"
        if dearest.after > dearest.before
        else "; no ε rises"
    )
    return f"At the same ρ² = {Budget.of(workload.rho_squared)} the expected error (linear estimate){told}{paid}."


def _describe_estimate(workload: Workload, mode: Mode) -> str:
    """Describe what the released estimate adds to the predicted errors."""
    leaf = f"{workload.levels[-1]}s"
    return (
        f" The counts that are released (mode guided) were about 5 % further off above {leaf} when this was"
        f" measured, which the goals allow for, and nearer in {leaf}, because no count is negative. Mode guided draws {leaf}"
        f" to the mix of the areas above them and erases enclaves; for voting-rights use ask for mode gls."
        if mode == "guided"
        else f" The plan is estimated in mode {mode}, which does not hold the sums of the goals: released counts above"
        f" {leaf} may be further off. Mode guided holds them."
    )
