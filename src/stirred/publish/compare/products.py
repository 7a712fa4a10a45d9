"""What the report of several mechanisms shows: how their budgets add up, and where their tables contradict each other."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from stirred.assess.contradictions import Contradiction, find_contradictions
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.publish.before.composition import FIGURES, convert_comparable
from stirred.publish.before.promise import PlanPromise
from stirred.publish.plan.description import Plan
from stirred.spec import NormalizedRenyi


def build_product_exhibits(plan: Plan, promise: PlanPromise, tables: Mapping[str, pa.Table]) -> list[Exhibit]:
    """Return the budget by product where several spend one, and contradictions between two tables."""
    found = [tabulate_budgets(plan, promise)] if len(promise.shares) > 1 or plan.retabulations else []
    counted = find_contradictions(tables)
    return found + ([tabulate_contradictions(counted)] if counted else [])


def tabulate_budgets(plan: Plan, promise: PlanPromise) -> Exhibit:
    """Return a table with one row per product: its unit, its factors, and its cost by each of them."""
    whole, published = promise.whole, promise.published
    symbol = "ρ²" if isinstance(whole.output_premetric, NormalizedRenyi) else "ε"
    columns = [
        Phrase("composed.product"),
        Phrase("composed.unit"),
        Phrase("composed.counted", symbol=symbol),
        Phrase("composed.published_factor"),
        Phrase("composed.published", symbol=symbol),
        Phrase("composed.bureau_factor"),
        Phrase("composed.bureau", symbol=symbol),
        Phrase("composed.proved_factor"),
        Phrase("composed.proved", symbol=symbol),
    ]
    rows: list[tuple[object, ...]] = [
        (
            share.label,
            share.unit,
            str(share.counted),
            *(
                text
                for figure, budget in zip(FIGURES, (share.published, share.bureau, share.proved), strict=True)
                for text in (
                    "1" if share.conversion is None else str(share.conversion.factor(figure).times),
                    str(budget),
                )
            ),
        )
        for share in promise.shares
    ]
    free = [
        *((step.label, plan.steps[step.source].label) for step in plan.steps if step.source is not None),
        *((item.name, plan.steps[item.source].label) for item in plan.retabulations),
    ]
    rows += [
        (name, Phrase("composed.from", name=source), "0", "", "0", "", "0", "", "0") for name, source in free
    ]
    rows.append(
        (
            Phrase("composed.together"),
            str(whole.input_premetric),
            "",
            "",
            str(convert_comparable(published)),
            "",
            str(convert_comparable(promise.bureau)),
            "",
            str(convert_comparable(whole)),
        )
    )
    return Exhibit(
        title=Phrase("composed.title"),
        finding=Phrase(
            "composed.finding",
            budget=whole.shown_budget,
            unit=str(whole.input_premetric),
            published=published.shown_budget,
        ),
        parts=(Listing(caption=Phrase("composed.caption"), columns=columns, rows=rows, numeric=columns[2:]),),
        note=Phrase("composed.later"),
    )


def tabulate_contradictions(found: Sequence[Contradiction]) -> Exhibit:
    """Return a table of how many numbers stand in two tables with two values."""
    columns = [
        Phrase("composed.contradiction.quantity"),
        Phrase("composed.contradiction.tables"),
        Phrase("composed.contradiction.compared"),
        Phrase("composed.contradiction.differ"),
        Phrase("composed.contradiction.largest"),
    ]
    rows = [
        (
            Phrase(f"composed.quantity.{one.quantity.name}"),
            f"{one.quantity.first.table}, {one.quantity.second.table}",
            one.compared,
            one.differ,
            one.largest,
        )
        for one in found
    ]
    compared_, differ = sum(one.compared for one in found), sum(one.differ for one in found)
    finding = (
        Phrase("composed.contradiction.finding", differ=differ, compared=compared_)
        if differ
        else Phrase("composed.contradiction.none", compared=compared_)
    )
    return Exhibit(
        title=Phrase("composed.contradiction.title"),
        finding=finding,
        parts=(
            Listing(
                caption=Phrase("composed.contradiction.caption"),
                columns=columns,
                rows=rows,
                numeric=columns[2:],
            ),
        ),
        chapter="accuracy",
    )
