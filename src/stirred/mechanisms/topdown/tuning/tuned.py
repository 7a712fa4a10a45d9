"""A workload with chosen shares: exact fractions, its TOML text, and what was bought at what cost."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stirred.errors import InputError
from stirred.mechanisms.base import TunedCost, TunedError, TunedSettings
from stirred.mechanisms.config import toml
from stirred.mechanisms.proposal import Cap, Goal
from stirred.mechanisms.topdown import accounting
from stirred.mechanisms.topdown.inside import inside
from stirred.mechanisms.topdown.tuning.shape import shape
from stirred.mechanisms.topdown.tuning.shares import (
    MAE,
    Floats,
    ShareProblem,
    chosen,
    excess,
    keeps_limits,
    problem,
    smallest,
)
from stirred.mechanisms.topdown.workload.shipped import preset_text
from stirred.mechanisms.topdown.workload.workload import Mode, Workload
from stirred.spec import Budget
from stirred.toml_text import plain_text, toml_of

if TYPE_CHECKING:
    from stirred.census import Census

PARTS = 100_000  # the shares are whole numbers of these parts of the total
FILE = "tuned-workload.toml"
STEP = 1.001  # from one total to the next, where the rounding of shares misses a goal
NOTABLE = 1.02  # how many times larger an error must get to be named


def tuned_workload(
    census: "Census",
    workload: Workload,
    source: str | Path | Workload,
    goals: Sequence[Goal],
    caps: Sequence[Cap],
    mode: Mode | None = None,
) -> TunedSettings:
    """The workload that reaches the goals, with its file; only the number of areas is read.

    Goals that its own shares miss are reached at its own total; goals that they meet at the smallest total that is found.
    ``mode`` is the estimate that the plan asks for, where it does not leave that to the workload.
    """
    if isinstance(source, Workload):
        raise InputError(
            "a workload made in Python cannot be tuned from a plan",
            why="the shares are written into the text of its file",
            fix="name a preset or a TOML file as the workload",
        )
    asked = problem(workload, shape(census, workload), goals, caps)
    met = excess(asked) >= 1 and keeps_limits(asked)
    rho_squared, parts = _fewest(asked) if met else (workload.rho_squared, rounded(asked, chosen(asked)))
    text = written(workload, _text(source), asked, parts, goals, rho_squared=rho_squared)
    made = Workload.parse(text)
    for cap in caps:
        _require(made, cap)
    rho = _in_floats(asked, rho_squared, parts)
    errors = tuple(
        TunedError(table=str(goal), limit=goal.limit, before=before, after=after)
        for goal, before, after in zip(
            goals, _errors(asked, asked.reference), _errors(asked, rho), strict=True
        )
    )
    costs = _costs(workload, made)
    return TunedSettings(
        settings={"workload": FILE},
        files={FILE: text},
        errors=errors,
        costs=costs,
        sentence=_bought(workload, made, asked, errors, costs)
        + _worse(asked, rho)
        + _released(workload, mode or made.mode),
        read="of the census only the number of areas of each level was read, which is public or an invariant",
    )


def other_tree(workload: Workload) -> InputError:
    """The error for a workload that is measured on a tree of its own."""
    return InputError(
        "shares are tuned for the census's own tree",
        why=f"workload {workload.name} measures another one, whose areas are not those of the tables",
        fix='aian = "none" in the plan, and no [spine] in the workload',
    )


def rounded(asked: ShareProblem, rho: Floats) -> dict[tuple[str, str], int]:
    """The parts of the total by level and query, whole numbers that sum to all of it."""
    floors = np.floor(rho / rho.sum() * PARTS + 1e-9).astype(int)
    floors[np.argmax(floors)] += PARTS - floors.sum()
    return {pair: int(number) for pair, number in zip(asked.pairs, floors, strict=True) if number}


def _fewest(asked: ShareProblem) -> tuple[Fraction, dict[tuple[str, str], int]]:
    """The smallest total that was found, rounded up to an exact fraction, and its parts: predicted to reach the goals."""
    rho = smallest(asked)
    parts, limits = rounded(asked, rho), [goal.limit for goal in asked.goals]
    total = Fraction(_readable(float(rho.sum())))
    while any(
        error > limit
        for error, limit in zip(_errors(asked, _in_floats(asked, total, parts)), limits, strict=True)
    ):
        total = Fraction(_readable(float(total) * STEP))
    # what is rounded must not cost more than the plan has
    total = min(total, asked.workload.rho_squared)
    return total, parts


def _readable(number: float) -> Decimal:
    """A number rounded up to four digits.

    >>> _readable(0.123412), _readable(2.0)
    (Decimal('0.1235'), Decimal('2.000'))
    """
    exact = Decimal(number)
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), rounding=ROUND_CEILING)


def _in_floats(asked: ShareProblem, total: Fraction, parts: Mapping[tuple[str, str], int]) -> Floats:
    """ρ² by pair, for predictions."""
    return np.array([float(total) * parts.get(pair, 0) / PARTS for pair in asked.pairs])


def _errors(asked: ShareProblem, rho: Floats) -> list[float]:
    return [float(MAE * variance**0.5) for variance in asked.errors.variances(rho, asked.asked)]


def _worse(asked: ShareProblem, rho: Floats) -> str:
    """The table among the measured ones whose expected error rises most in proportion, in words; empty if none does."""
    pairs = [(level, asked.workload.query(name)) for level, name in asked.pairs]
    before, after = (np.sqrt(asked.errors.variances(r, pairs)) for r in (asked.reference, rho))
    ratio = after / np.maximum(before, 1e-12)
    most = int(np.argmax(ratio))
    if ratio[most] < NOTABLE:
        return ""
    level, query = pairs[most]
    table = " × ".join((*query.parts, level)) if query.parts else f"total × {level}"
    return f" Most is lost in {table}: from {MAE * before[most]:.2f} to {MAE * after[most]:.2f}."


def _text(source: str | Path) -> str:
    return plain_text(Path(source)) if Path(source).suffix else preset_text(str(source))


def _require(made: Workload, cap: Cap) -> None:
    """Hold an exact limit against the exact shares."""
    lines = {axis.name: accounting.attribute(made, axis.name) for axis in made.histogram.axes}
    lines |= {level: accounting.within(made, level) for level in made.levels[:-1]}
    if accounting.epsilon(lines[cap.what]) > Decimal(cap.epsilon.numerator) / cap.epsilon.denominator:
        raise InputError(
            f"the shares that were found exceed the limit of {cap.what}",
            why="they were rounded to exact fractions",
            fix="allow a slightly larger ε, or a slightly larger error",
        )


def written(
    workload: Workload,
    text: str,
    asked: ShareProblem,
    parts: Mapping[tuple[str, str], int],
    goals: Sequence[Goal],
    *,
    rho_squared: Fraction | None = None,
) -> str:
    """The text of the workload with other shares, and another total where one is given; all else is as it was."""
    document = dict(toml_of(text))
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
    lines = [f"{name} = {toml(value)}" for name, value in (head | plain).items()]
    lines += [f"{name} = {toml(value)}" for name, value in tables.items()]
    for title, entries in (("axis", axes), ("query", queries), ("rule", rules)):
        for entry in entries:
            lines += ["", f"[[{title}]]", *(f"{name} = {toml(value)}" for name, value in entry.items())]
    totals = {level: sum(n for (own, _), n in parts.items() if own == level) for level in levels}
    lines += ["", "[level_shares]", *(f'{toml(level)} = "{n}/{PARTS}"' for level, n in totals.items())]
    for level in (level for level in levels if totals[level]):
        shares = {query: n for (own, query), n in parts.items() if own == level}
        lines += ["", f"[query_shares.{toml(level)}]"]
        lines += [f'{toml(query)} = "{n}/{totals[level]}"' for query, n in shares.items()]
    lines += [
        "",
        "[passes]",
        *(f"{toml(level)} = {toml(_passes(workload, level, parts, asked))}" for level in levels),
    ]
    return "\n".join([*lines, ""])


def _passes(
    workload: Workload, level: str, parts: Mapping[tuple[str, str], int], asked: ShareProblem
) -> list[list[str]]:
    """The passes of a level: what is still measured, and first the tables that goals ask for there or below it.

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


def _costs(before: Workload, after: Workload) -> tuple[TunedCost, ...]:
    """ε by attribute and area, as it was and as it is; and inside the multiverse, where that was smaller."""
    old, new = accounting.semantics(before), accounting.semantics(after)
    lines = [
        TunedCost(what=str(name), before=old[name][1], after=new[name][1]) for name in old if name in new
    ]
    found = inside(before)
    if found.saved:
        inner = accounting.epsilon(found.rho_squared), accounting.epsilon(inside(after).rho_squared)
        lines.insert(
            1, TunedCost(what="all, inside the multiverse (proved)", before=inner[0], after=inner[1])
        )
    return tuple(lines)


def _shown(epsilon: Decimal) -> str:
    """An ε as everywhere: rounded up at the fourth digit."""
    return str(Budget.of(str(epsilon)))


def _bought(
    workload: Workload,
    made: Workload,
    asked: ShareProblem,
    errors: Sequence[TunedError],
    costs: Sequence[TunedCost],
) -> str:
    """What was bought and who pays for it, in words."""
    if made.rho_squared < workload.rho_squared:
        own = Fraction(_readable(float(workload.rho_squared) / excess(asked)))
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
        f"; in return the ε of {dearest.what} rises from {_shown(dearest.before)} to {_shown(dearest.after)}"
        if dearest.after > dearest.before
        else "; no ε rises"
    )
    return f"At the same ρ² = {Budget.of(workload.rho_squared)} the expected error (linear estimate){told}{paid}."


def _released(workload: Workload, mode: Mode) -> str:
    """What the estimate that will be released adds to the predicted errors, in words."""
    leaf = f"{workload.levels[-1]}s"
    return (
        f" The counts that are released (mode guided) were about 5 % further off above {leaf} when this was"
        f" measured, which the goals allow for, and nearer in {leaf}, because no count is negative."
        if mode == "guided"
        else f" The plan is estimated in mode {mode}, which does not hold the sums of the goals: released counts above"
        f" {leaf} may be further off. Mode guided holds them."
    )
