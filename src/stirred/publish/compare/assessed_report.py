"""Many packets held against one truth, in files and in one internal report."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from stirred.assess.assessment import align_cells
from stirred.assess.attack.measures import EXPOSED_GROUP, PHRASE_BY_GROUP
from stirred.assess.risk import RiskMeasure
from stirred.errors import InputError
from stirred.extras import find_missing
from stirred.file_names import make_file_name
from stirred.publish.compare.assessed import AssessedPacket, Doubt
from stirred.publish.run.part import write_whole
from stirred.report import Report, Section, charts, render, risk, utility_sections
from stirred.report.document import Block, make_table

HEADLINES = (  # the measures that stand for the risk of a release, the first that a release has
    ("recall of reidentification, released records", PHRASE_BY_GROUP[EXPOSED_GROUP]),
    ("recall of reidentification, records reconstructed from tables", PHRASE_BY_GROUP[EXPOSED_GROUP]),
    ("recall of cells of one", ""),
    ("alone before, and shown so", ""),
)
MAX_PACKETS_DRAWN = 5  # packets whose errors are drawn in full
LEADS: dict[Doubt, tuple[str, str]] = {
    "audit": (
        "Does it keep its promise?",
        "Losses that were computed or measured on invented records, beside the claim.",
    ),
    "attack": (
        "What attacks find",
        "What an attacker finds, always beside what someone finds who only guesses.",
    ),
    "universe": (
        "What the exact numbers give away",
        "What follows from the exact statistics alone, whatever the noise.",
    ),
}


def choose_headline(found: AssessedPacket) -> RiskMeasure | None:
    """Return the measure that stands for the risk of a release; of several tables, that with the largest share."""
    known = [one for one in found.measures.get("attack", ()) if one.value is not None]
    for name, about in HEADLINES:
        fitting = [one for one in known if one.name == name and about in ("", one.about)]
        if fitting:
            return max(fitting, key=lambda one: one.value or 0.0)
    return None


def choose_common_headline(found: Sequence[AssessedPacket]) -> list[RiskMeasure | None]:
    """Return the measure of each release that stands for its risk, the same for all where they share one."""
    for name, about in HEADLINES:
        fitting = [
            [one for one in each.measures.get("attack", ()) if one.name == name and about in ("", one.about)]
            for each in found
        ]
        if all(any(one.value is not None for one in ones) for ones in fitting):
            shared = set.intersection(*({one.about for one in ones} for ones in fitting))
            if shared:  # the table with the narrowest intervals has most of the cells that it is about
                chosen = min(
                    sorted(shared),
                    key=lambda words: _width(one for ones in fitting for one in ones if one.about == words),
                )
                return [next(one for one in ones if one.about == chosen) for ones in fitting]
    return [choose_headline(one) for one in found]


def _width(measures: Iterable[RiskMeasure]) -> float:
    ends = ((one.low, one.high) for one in measures)
    return max(1.0 if low is None or high is None else high - low for low, high in ends)


def write_assessments(found: Sequence[AssessedPacket], out: Path, *, private: bool) -> Path:
    """Write assessment.json, metrics.csv, risk.csv, their tables, and a report if charts can be drawn."""
    if os.path.lexists(out):
        raise InputError(
            f"{out.name} exists already", why="results are never overwritten", fix="choose another --out"
        )
    with write_whole(out, "assessment", closed=True) as folder:
        _write_assessments(found, folder, private=private)
    return out


def _write_assessments(found: Sequence[AssessedPacket], part: Path, *, private: bool) -> None:
    (part / "tables").mkdir()
    document = {"internal": True, "packets": [one.as_json() for one in found]}
    (part / "assessment.json").write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    metrics = [one.assessment.summary().with_columns(pl.lit(one.name).alias("packet")) for one in found]
    if any(frame.height for frame in metrics):
        pl.concat([frame for frame in metrics if frame.height]).write_csv(part / "metrics.csv")
    tabulate_risks(found).write_csv(part / "risk.csv")
    for number, one in enumerate(found, 1):
        for name, rows in one.tables.items():
            rows.write_parquet(part / "tables" / f"{number}-{make_file_name(name)}.parquet")
    if find_missing("report") is None:
        (part / "report.html").write_text(
            render(build_assessment_report(found, private=private)), encoding="utf-8"
        )


def tabulate_risks(found: Sequence[AssessedPacket]) -> pl.DataFrame:
    """Return a frame with one row for each measure of each packet."""
    rows = [
        {
            "packet": one.name,
            "doubt": doubt,
            **{
                key: value for key, value in measure.as_json().items() if key not in ("baselines", "sentence")
            },
            "baselines": "; ".join(f"{guess.name}: {guess.value:.6g}" for guess in measure.baselines),
        }
        for one in found
        for doubt, measures in one.measures.items()
        for measure in measures
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def build_assessment_report(found: Sequence[AssessedPacket], *, private: bool) -> Report:
    """Return the internal report of packets that were compared with the truth."""
    parts: list[Section] = []
    if len(found) > 1:
        parts.append(build_side_by_side(found))
    assessments = align_cells([one.assessment for one in found if one.assessment.tables])
    if assessments and len(found) <= MAX_PACKETS_DRAWN:
        parts += utility_sections.write_truth_sections(assessments)
    for doubt, (title, lead) in LEADS.items():
        rows = [(one.name, measure) for one in found for measure in one.measures.get(doubt, ())]
        if rows:
            parts.append(
                risk.write_measures(title, lead, rows, said=_verdicts(found) if doubt == "audit" else ())
            )
    told = [item for one in found for item in one.alone]
    alone = risk.write_before_and_after(told) if told else None
    return Report(
        title=" beside ".join(one.name for one in found)
        if len(found) < 4
        else f"{len(found)} packets side by side",
        subtitle="Held against the confidential data",
        audience="internal",
        private=private,
        sections=(*parts, *([] if alone is None else [alone])),
    )


def _verdicts(found: Sequence[AssessedPacket]) -> list[str]:
    """Return the verdict of each audit in a sentence, its reason and its limits, each once."""
    told = [
        text for one in found for audit in one.audits for text in (audit.sentence, audit.reason, audit.scope)
    ]
    return [text for text in dict.fromkeys(told) if text]


def build_side_by_side(found: Sequence[AssessedPacket]) -> Section:
    """Return the section with invariants, guarantee, error and risk of each release, and their chart."""
    chosen = choose_common_headline(found)
    heads = ["release", "exact sets of numbers", "guarantee", "mean absolute error", "risk", "best guess"]
    rows: list[list[object]] = []
    points = []
    for one, measure in zip(found, chosen, strict=True):
        value = None if measure is None else measure.value
        promise = one.specification
        rows.append(
            [
                one.name,
                len(list(promise.multiverse)),
                promise.shown_budget if promise.budget.is_finite else "none is finite",
                one.error,
                "–" if measure is None or value is None else risk.write_number(value, measure.unit),
                "–" if measure is None else _best(measure),
            ]
        )
        if measure is not None and value is not None and one.error is not None:
            points.append(
                charts.FrontierPoint(
                    method=one.name,
                    setting="",
                    specification=str(promise),
                    error=one.error,
                    risk=value,
                    low=measure.low,
                    high=measure.high,
                )
            )
    named = next((one for one in chosen if one is not None), None)
    words = (
        "No attack fits these packets."
        if named is None
        else f"Risk is the {named.name}, about {named.about}."
    )
    blocks: list[Block] = [
        make_table("Packets side by side", heads, rows, numeric=["mean absolute error", "risk"], digits=2)
    ]
    if points and named is not None:
        blocks.append(
            charts.frontier(
                "risk-against-error",
                "Risk against error.",
                "Lower and further left is better; dashed lines are guesses.",
                points,
                risk=named.name,
                guesses=list_guesses([one for one in chosen if one is not None]),
            )
        )
    return Section(title="Side by side", lead=words, blocks=tuple(blocks), chapter="risk")


def _best(measure: RiskMeasure) -> str:
    told = [one for one in measure.baselines if "truth" not in one.name]
    if not told:
        return "–"
    best = max(told, key=lambda one: one.value)
    return f"{risk.write_number(best.value, measure.unit)} ({best.name})"


def list_guesses(chosen: Sequence[RiskMeasure]) -> list[tuple[str, float]]:
    """Return what each guess finds at most, over the releases."""
    found: dict[str, float] = {}
    for measure in chosen:
        for one in measure.baselines:
            found[one.name] = max(found.get(one.name, 0.0), one.value)
    return sorted(found.items())
