"""Write the sections on promise, exact numbers, method, comparison, joint cost and a mechanism's exhibits."""

from collections.abc import Mapping, Sequence
from functools import reduce

from stirred.errors import StirredError
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing, Series
from stirred.mechanisms.release import Check
from stirred.report import charts
from stirred.report.comparison import Implication, NamedComparison
from stirred.report.document import (
    Block,
    CardBlock,
    Chart,
    Facts,
    Fold,
    Note,
    Paragraphs,
    Section,
    add_exception,
    make_table,
)
from stirred.spec import Comparison, Specification
from stirred.spec.card import Card
from stirred.spec.card.words import describe_unit
from stirred.spec.verdict import Answer

# The sections of a report, built from a specification, releases and assessments; each starts with a computed sentence.


def write_promise(
    specification: Specification,
    *,
    title: str = "",
    labels: Mapping[str, str] | None = None,
    folded: bool = False,
) -> Section:
    """Write the section on the guarantee: a sentence, and the card with every computed bound, which a click opens."""
    card = Card(specification, title=Phrase("report.promise.card"), labels=labels or {})
    status = Phrase(f"card.status.{specification.evidence.status}")
    lead = Phrase(
        "report.promise.lead",
        budget=card.shown_budget(),
        change=describe_unit(specification.input_premetric),
        status=status,
    )
    if not specification.budget.is_finite:
        lead = Phrase("report.promise.none", status=status)
    blocks: list[Block] = [CardBlock(card=card)]
    if not folded:
        blocks = [
            Paragraphs(paragraphs=(card.shown_sentence(),)),
            Fold(title=Phrase("report.promise.whole"), blocks=tuple(blocks)),
        ]
    return Section(
        title=title or Phrase("report.promise.title"),
        lead=lead,
        blocks=tuple(blocks),
        chapter="promise",
        folded=folded,
    )


def write_exact(
    specification: Specification, checks: Sequence[Check], reasons: Sequence[tuple[str, str]]
) -> Section:
    """Write the section on exact numbers: how many they fix, why, and that it was verified."""
    invariants = [invariant.words() for invariant in specification.multiverse]
    lead: str = Phrase("report.exact.lead", count=len(invariants))
    if not invariants:
        lead = Phrase("report.exact.none")
    elif checks:
        compared = sum(check.numbers for check in checks)
        done = Phrase("report.exact.checked", checks=len(checks), numbers=compared)
        lead = Phrase("report.two", first=lead, second=done)
    blocks: list[Block] = []
    if checks:
        state = {True: Phrase("report.exact.verified"), False: Phrase("report.exact.broken")}
        columns = [Phrase(f"report.exact.{name}") for name in ("statistic", "numbers", "state")]
        rows = [[check.invariant, check.numbers, state[check.kept]] for check in checks]
        caption = Phrase("report.exact.caption")
        shown = make_table(caption, columns, rows, numeric=columns[1:2])
        broken = any(not check.kept for check in checks)
        blocks.append(shown if broken else Fold(title=caption, blocks=(shown,)))
    elif invariants:
        blocks.append(Paragraphs(paragraphs=tuple(invariants)))
    if reasons:
        blocks.append(Facts(rows=tuple(reasons)))
    return Section(title=Phrase("report.exact.title"), lead=lead, blocks=tuple(blocks), chapter="exact")


def write_method(rows: Sequence[tuple[str, str]]) -> Section:
    """Write the section on how the release was made and how to cite it."""
    return Section(
        title=Phrase("report.method.title"),
        lead=Phrase("report.method.lead"),
        blocks=(Facts(rows=tuple(rows)),),
        chapter="method",
    )


def write_comparison(first: str, second: str, result: Comparison) -> Section:
    """Write the section on two specifications: which promises more, part by part, and implications."""
    said = NamedComparison(first=first, second=second, found=result)
    whole = said.overall if said.overall.startswith((first, second)) else _capital(said.overall)
    lead, _, why = whole.partition(":")  # reasons may hold formulas: they stand once, among the details
    answers = [[_capital(asked.question), _answer(asked), asked.because] for asked in said.implications]
    return Section(
        title=f"{first} beside {second}",
        lead=lead + ("" if lead.endswith(".") else "."),
        blocks=(
            *(
                [Paragraphs(paragraphs=(_capital(why.strip()) + ("" if why.endswith(".") else "."),))]
                if why
                else []
            ),
            make_table(
                f"{first} compared with {second}, part by part", ["part", f"{first} is", "why"], said.rows
            ),
            make_table(
                "Does the one promise follow from the other?",
                ["question", "answer", "why"],
                answers,
            ),
            *(Note(text=_capital(warning)) for warning in said.warnings),
        ),
        chapter="promise",
        folded=True,
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _answer(asked: Implication) -> str:
    """Return the answer as a word: yes and no are proved, unknown is not."""
    if asked.verdict.answer is Answer.UNKNOWN:
        return "unknown"
    return "yes, proved" if asked.verdict else "no, refuted"


# What publishing several releases of the same data costs together.


def write_joint_cost(specifications: Mapping[str, Specification]) -> str:
    """Return a sentence: the budget and the odds of all releases, or of those one promise can cover.

    Losses add up; releases whose promises are in different units stay apart, and the sentence says so.
    """
    if len(specifications) < 2:
        return ""
    groups: list[tuple[list[str], Specification]] = []
    for name, specification in specifications.items():
        for place, (names, whole) in enumerate(groups):
            both = _sum(whole, specification)
            if both is not None:
                groups[place] = ([*names, name], both)
                break
        else:
            groups.append(([name], specification))
    if len(groups) == 1:
        return _cost(*groups[0])
    costs = [_cost(names, whole) for names, whole in groups if len(names) > 1]
    alone = tuple(name for names, _ in groups if len(names) == 1 for name in names)
    apart = Phrase("report.together.apart", names=alone) if costs else Phrase("report.together.none")
    said: list[str] = [*costs, apart]
    return reduce(lambda first, second: Phrase("report.two", first=first, second=second), said)


def _sum(first: Specification, second: Specification) -> Specification | None:
    try:
        return first + second
    except StirredError:
        return None


def _cost(names: list[str], whole: Specification) -> str:
    card = Card(whole)
    what = card.bound_odds()
    if what.log_odds is None or what.log_odds.is_infinite():
        return Phrase("report.together.unlimited", names=tuple(names))
    cost = Phrase("report.together.cost", names=tuple(names), budget=card.shown_budget(), factor=what.factor)
    change = Phrase("report.first.protected.short", change=what.change)
    return add_exception(Phrase("report.two", first=cost, second=change), what)


# Draws what a mechanism shows of itself: any exhibit becomes a section of the report.


def draw_exhibit(exhibit: Exhibit, *, mark: str = "") -> Section:
    """Return the section of an exhibit; ``mark`` keeps the charts of two mechanisms apart.

    >>> draw_exhibit(Exhibit(title="Noise", finding="Its variance is 4.")).lead
    'Its variance is 4.'
    """
    blocks: list[Block] = [
        make_table(part.caption, part.columns, part.rows, numeric=part.numeric)
        if isinstance(part, Listing)
        else _chart(part, mark)
        for part in exhibit.parts
    ]
    if exhibit.note:
        blocks.append(Note(text=exhibit.note, tone="plain"))
    return Section(title=exhibit.title, lead=exhibit.finding, blocks=tuple(blocks), chapter=exhibit.chapter)


def _chart(series: Series, mark: str) -> Chart:
    named = (series.name + mark, series.title, series.sentence, list(series.rows))
    if series.kind == "line":
        return charts.lines(*named, x=series.x, y=series.y, group=series.group, log_x=series.log_x)
    return charts.dots(*named, category=series.x, value=series.y, group=series.group or series.x)
