"""The decision record: two pages for an ethics or legal file, without legal conclusions."""

from stirred.publish.before.check import Explanation, find_reason, same_invariant
from stirred.publish.plan.description import Plan
from stirred.spec.card import Card


def decision_record(plan: Plan, explanation: Explanation) -> str:
    """Write the decision record as Markdown: what is protected, what is exact and why, what else was tried."""
    spec = explanation.specification
    card = Card(spec, title=plan.title)
    lines = [
        f"# Decision record: {plan.title}",
        "",
        "This record states what a release promises and what was decided. It draws no legal conclusion.",
        "",
        "## What is released",
        "",
        *[f"- {m.name} with {_settings(m.parameters())}" for m in plan.mechanisms],
        *[
            f"- table {t.name}: {t.record_type} records by {', '.join(t.by)}"
            + (f", weighted by {t.weight}" if t.weight else "")
            for t in plan.tables
        ],
        f"- microdata: {'yes' if plan.microdata else 'no'}",
        "",
        "## Whom the promise protects, and how far",
        "",
        card.sentence(),
        "",
        *([card.warning(), ""] if card.warning() else []),
        card.write_example(),
        "",
        f"- unit of protection: {spec.input_premetric}",
        f"- budget: {card.budget()} ({spec.evidence.status}; {spec.evidence.source})",
        f"- owner of the budget: {plan.owner or 'NOT NAMED: name one under [budget] in the plan'}",
        f"- limit set for the budget: {plan.limit if plan.limit is not None else 'none'}",
        "",
        "## What is exact, and why",
        "",
        "| invariant | numbers fixed | reason |",
        "|---|---|---|",
    ]
    for kept in explanation.kept:
        found = find_reason(kept.words, plan.reasons)
        why = (
            "NO REASON GIVEN"
            if found is None
            else f"{found.kind}: {found.text}" + (f" ({found.citation})" if found.citation else "")
        )
        lines.append(
            f"| {kept.words} | {'all' if kept.numbers is None else format(kept.numbers, ',')} | {why} |"
        )
    others = [
        reason
        for reason in plan.reasons
        if not any(same_invariant(reason.invariant, kept.words) for kept in explanation.kept)
    ]
    if others:
        lines += ["", "Reasons given for the invariants together:", ""]
        lines += [
            f"- {r.invariant}: {r.kind}, {r.text}" + (f" ({r.citation})" if r.citation else "")
            for r in others
        ]
    lines += [
        "",
        "## What is not protected",
        "",
        "- Every invariant above: it is published as counted, and anything that follows from it alone follows for anyone.",
        *[f"- {note}" for note in spec.notes],
        "- What is true of the population at large, whoever takes part.",
        "",
        "## Alternatives considered",
        "",
        *(
            [f"- {text}" for text in plan.alternatives]
            or ["- none recorded: list them under alternatives in the plan"]
        ),
        "",
        "## Sign-off",
        "",
        "| role | name | date |",
        "|---|---|---|",
        f"| owner of the budget | {plan.owner} | |",
        "| methodologist | | |",
        "| disclosure review | | |",
        "",
        f"Plan SHA-256: `{plan.digest}`",
        "",
    ]
    return "\n".join(lines)


def _settings(parameters: dict[str, object]) -> str:
    told = {name: value for name, value in parameters.items() if value not in (None, [], {}, "")}
    return "; ".join(f"{n} {', '.join(map(str, v)) if isinstance(v, list) else v}" for n, v in told.items())
