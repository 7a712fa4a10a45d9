"""The sections of a report, built from a specification, releases and assessments; each starts with a computed sentence."""

from collections.abc import Sequence

from stirred.languages import Phrase
from stirred.mechanisms.base import Check
from stirred.report.compared import Implication, NamedComparison
from stirred.report.document import Block, CardBlock, Facts, Note, Paragraphs, Section, make_table
from stirred.spec import Comparison, Specification
from stirred.spec.card import Card
from stirred.spec.card.words import describe_unit
from stirred.spec.verdict import Answer


def write_promise(specification: Specification, *, title: str = "") -> Section:
    """Write the section on the guarantee: a sentence, a card, and every bound that was computed."""
    card = Card(specification, title=Phrase("report.promise.card"))
    status = Phrase(f"card.status.{specification.evidence.status}")
    lead = Phrase(
        "report.promise.lead",
        budget=card.shown_budget(),
        change=describe_unit(specification.input_premetric),
        status=status,
    )
    if not specification.budget.is_finite:
        lead = Phrase("report.promise.none", status=status)
    return Section(
        title=title or Phrase("report.promise.title"),
        lead=lead,
        blocks=(CardBlock(card=card),),
        chapter="promise",
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
        blocks.append(make_table(Phrase("report.exact.caption"), columns, rows, numeric=columns[1:2]))
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
    lead = said.overall if said.overall.startswith((first, second)) else _capital(said.overall)
    answers = [[_capital(asked.question), _answer(asked), asked.because] for asked in said.implications]
    return Section(
        title=f"{first} beside {second}",
        lead=lead + ("" if lead.endswith(".") else "."),
        blocks=(
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
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _answer(asked: Implication) -> str:
    """Return the answer as a word: yes and no are proved, unknown is not."""
    if asked.verdict.answer is Answer.UNKNOWN:
        return "unknown"
    return "yes, proved" if asked.verdict else "no, refuted"
