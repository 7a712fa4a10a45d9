"""Two or more packets in one report: their promises compared part by part, their numbers side by side."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

from stirred.assess.assessment import Assessment, on_same_cells
from stirred.errors import InputError
from stirred.extras import require
from stirred.publish.packet.folder import Packet
from stirred.report import Report, Section, charts, render, sections, utility_sections
from stirred.report.document import Audience, Block, shown, table
from stirred.spec import Specification, compare
from stirred.spec.card import Card
from stirred.spec.files import load


def write_comparison(folders: Sequence[Path], out: Path, *, names: Sequence[str] = ()) -> Path:
    """Compare the public parts of packets; nothing confidential is read."""
    require("report", why="the comparison is a report, whose charts are drawn with it")
    packets = [Packet(folder) for folder in folders]
    if len(packets) < 2:
        raise InputError(
            "one packet cannot be compared", why="a comparison needs two", fix="give two or more packets"
        )
    labels = list(names) or [str(packet.receipt().get("title", packet.folder.name)) for packet in packets]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({packet.folder.name})" for label, packet in zip(labels, packets, strict=True)]
    specifications = [load(packet.public / "spec.json") for packet in packets]
    report = Report(
        title=" beside ".join(labels),
        subtitle="Packets compared by their promises and their published numbers",
        audience="public",
        private=all(bool(packet.receipt().get("private", False)) for packet in packets),
        sections=(*comparison_sections(labels, specifications), _numbers(labels, packets)),
    )
    temporary = out.with_name(out.name + ".part")
    temporary.write_text(render(report), encoding="utf-8")
    temporary.replace(out)
    return out


def comparison_sections(labels: Sequence[str], specifications: Sequence[Specification]) -> list[Section]:
    """The promises beside each other, then every pair part by part."""
    rows = []
    for label, spec in zip(labels, specifications, strict=True):
        card = Card(spec, title=label)
        rows.append(
            [
                label,
                str(spec.input_premetric),
                str(spec.output_premetric),
                card.budget(),
                card.allowed().factor,
                spec.evidence.status,
            ]
        )
    columns = ["release", "input premetric", "output premetric", "budget", "odds may move by", "status"]
    sides: list[Block] = [table("Promises beside each other", columns, rows)]
    invariants = [
        [label, invariant.words()]
        for label, spec in zip(labels, specifications, strict=True)
        for invariant in spec.multiverse
    ]
    sides.append(table("What each publishes exactly", ["release", "invariant"], invariants))
    lead = "Budgets of different flavors are in different units: compare numbers only within one flavor."
    parts = [Section(title="The promises beside each other", lead=lead, blocks=tuple(sides))]
    for (first, a), (second, b) in combinations(zip(labels, specifications, strict=True), 2):
        parts.append(sections.comparison(first, second, compare(a, b)))
    return parts


def _numbers(labels: Sequence[str], packets: Sequence[Packet]) -> Section:
    """Standard errors of the tables that all packets publish."""
    common = set.intersection(*(set(packet.table_names()) for packet in packets))
    rows = []
    for name in sorted(common):
        for label, packet in zip(labels, packets, strict=True):
            frame = pl.read_parquet(packet.public / "tables" / f"{name}.parquet")
            if "standard_error" not in frame.columns:
                continue
            errors = frame.filter(pl.col("standard_error").is_finite())["standard_error"]
            rows.append(
                {"table": name, "mean standard error": float(str(errors.mean() or 0.0)), "release": label}
            )
    blocks: list[Block] = []
    lead = "The packets publish no table in common."
    if rows:
        worst = max(rows, key=lambda row: float(str(row["mean standard error"])))
        error = shown(worst["mean standard error"])
        lead = f"The largest mean standard error is {error}, in {worst['table']} of {worst['release']}."
        blocks.append(
            charts.bars(
                "errors",
                "Mean standard error by table.",
                "Computed from the public parts alone.",
                rows,
                category="table",
                value="mean standard error",
                group="release",
            )
        )
    return Section(title="Published numbers side by side", lead=lead, blocks=tuple(blocks))


def comparison_report(
    labels: Sequence[str],
    specifications: Sequence[Specification],
    assessments: Sequence[Assessment],
    *,
    title: str,
    subtitle: str,
    audience: Audience = "public",
    private: bool = True,
) -> Report:
    """Promises and errors against the truth in one report: internal, unless the truth is a public stand-in."""
    parts = utility_sections.all_sections(on_same_cells(assessments))
    promises = [
        sections.promise(spec, title=f"The promise of {label}")
        for label, spec in zip(labels, specifications, strict=True)
    ]
    return Report(
        title=title,
        subtitle=subtitle,
        audience=audience,
        private=private,
        sections=(*parts, *comparison_sections(labels, specifications), *promises),
    )
