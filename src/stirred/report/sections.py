"""The sections of a report, built from a specification, releases and assessments; each starts with a computed sentence."""

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from stirred.mechanisms.base import Check
from stirred.report import charts
from stirred.report.compared import Compared, Implication
from stirred.report.document import Block, Facts, Markup, Note, Paragraphs, Section, shown, table
from stirred.spec import Comparison, Specification
from stirred.spec.card import Card
from stirred.spec.card.formats import styled_fragment
from stirred.spec.verdict import Answer


def promise(specification: Specification, *, title: str = "What is promised") -> Section:
    """The guarantee in a sentence, as a card, and every bound that was computed."""
    card = Card(specification, title="The guarantee")
    lead = (
        f"One guarantee covers every number and record of this release: {card.budget()} per changed "
        f"{specification.input_premetric.unit} record, {specification.evidence.status}. It is stated in full below, with "
        "the odds it allows."
    )
    return Section(title=title, lead=lead, blocks=(Markup(html=styled_fragment(card)),))


def exact(
    specification: Specification, checks: Sequence[Check], reasons: Sequence[tuple[str, str]]
) -> Section:
    """What is published exactly, how many numbers that fixes, why, and that it was verified."""
    invariants = [invariant.words() for invariant in specification.multiverse]
    lead = f"{len(invariants)} statistics are published exactly as counted and are therefore not protected at all."
    if checks:
        compared = sum(check.numbers for check in checks)
        lead += f" {len(checks)} checks compared {compared:,} numbers of the output with what must hold, before it left."
    blocks: list[Block] = []
    if checks:
        rows = [
            [check.invariant, check.numbers, "verified" if check.kept else "NOT KEPT"] for check in checks
        ]
        blocks.append(
            table(
                "Invariants held against the output",
                ["invariant", "numbers", "state"],
                rows,
                numeric=["numbers"],
            )
        )
    else:
        blocks.append(Paragraphs(paragraphs=tuple(invariants)))
    blocks += [Note(text=note, tone="plain") for note in specification.notes]
    if reasons:
        blocks.append(Facts(rows=tuple(reasons)))
    return Section(title="What is exact, and what that gives away", lead=lead, blocks=tuple(blocks))


def published(
    tables: Mapping[str, tuple[Sequence[str], pa.Table]],
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    most: int = 24,
) -> Section:
    """The published tables with their intervals, the largest cells drawn; ``labels`` are the words for codes."""
    labels = labels or {}
    blocks: list[Block] = []
    widest = ""
    for name, (by, data) in tables.items():
        frame = pl.DataFrame(pl.from_arrow(data))
        label = pl.concat_str(
            [
                pl.col(column).cast(pl.String).replace(dict(labels.get(column, {}))).fill_null("(missing)")
                for column in by
            ],
            separator=" · ",
        )
        if "estimate" not in frame.columns:
            top = frame.sort("count", descending=True).head(most)
            measures = [name for name in ("count", "weighted") if name in frame.columns]
            columns = [*by, *measures]
            blocks.append(
                table(
                    f"{name}: the {top.height} largest cells",
                    columns,
                    top.select(columns).rows(),
                    numeric=measures,
                )
            )
            continue
        measure = "weighted" if "weighted" in frame.columns else "count"
        uncertain = frame.filter(pl.col("standard_error") > 0)
        share = uncertain.height / max(frame.height, 1)
        top = (
            frame.sort(measure, descending=True)
            .head(most)
            .with_columns(label.alias("cell"), pl.col(measure).alias("published"))
        )
        sentence = (
            f"{uncertain.height:,} of {frame.height:,} cells are uncertain ({100 * share:.0f} %)"
            + (
                f"; the typical standard error is {shown(float(_median(uncertain['standard_error'])))}."
                if uncertain.height
                else "."
            )
            + f" Points: published {'weighted totals' if measure == 'weighted' else 'counts'}; bars: unbiased estimates with"
            " 95 % intervals, from public numbers only."
        )
        blocks.append(
            charts.intervals(
                f"table-{name}",
                f"{name}, the {top.height} largest cells.",
                sentence,
                top.rows(named=True),
                label="cell",
            )
        )
        widest = widest or sentence
    lead = (
        "Every published cell carries its uncertainty, computed from the release alone."
        if tables
        else "No tables were asked for."
    )
    return Section(title="The published numbers", lead=lead, blocks=tuple(blocks))


def _median(column: pl.Series) -> float:
    value = column.median()
    return float(value) if isinstance(value, int | float) else float("nan")


def comparison(first: str, second: str, result: Comparison) -> Section:
    """Two specifications: which promises more, in one sentence; then part by part, and whether one gives the other."""
    said = Compared(first=first, second=second, found=result)
    lead = said.overall if said.overall.startswith((first, second)) else _capital(said.overall)
    answers = [[_capital(asked.question), _answer(asked), asked.because] for asked in said.implications]
    return Section(
        title=f"{first} beside {second}",
        lead=lead + ("" if lead.endswith(".") else "."),
        blocks=(
            table(f"{first} compared with {second}, part by part", ["part", f"{first} is", "why"], said.rows),
            table(
                "Does the one promise follow from the other?",
                ["question", "answer", "why"],
                answers,
            ),
            *(Note(text=_capital(warning)) for warning in said.warnings),
        ),
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _answer(asked: Implication) -> str:
    """The answer as a word: yes and no are proved, unknown is not."""
    if asked.verdict.answer is Answer.UNKNOWN:
        return "unknown"
    return "yes, proved" if asked.verdict else "no, refuted"


def method(rows: Sequence[tuple[str, str]]) -> Section:
    """How it was made and how to cite it."""
    return Section(
        title="Method, versions, citation",
        lead="The packet that holds this report also holds the plan, the specification and a script that makes it again.",
        blocks=(Facts(rows=tuple(rows)),),
    )
