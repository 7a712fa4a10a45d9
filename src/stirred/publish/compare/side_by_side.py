"""Two or more packets in one report: their promises compared part by part, their numbers side by side."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

from stirred.assess.assessment import Assessment, on_same_cells
from stirred.assess.contradictions import contradictions
from stirred.errors import InputError
from stirred.extras import require
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import as_error
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.labels import read_labels
from stirred.publish.packet.lookup import MEASURES
from stirred.report import Report, Section, charts, render, sections, utility_sections
from stirred.report.charts.spatial import Ground
from stirred.report.document import Audience, Block, table
from stirred.report.first_screen import Tables, first_screen
from stirred.report.published import Labels
from stirred.report.together import together
from stirred.spec import Specification, compare
from stirred.spec.card import Card
from stirred.spec.files import load

_CONTRADICTED = ("quantity", "compared", "differ", "largest")


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
        first=first_screen(
            dict(zip(labels, specifications, strict=True)),
            tables={label: tables_of(packet) for label, packet in zip(labels, packets, strict=True)},
            together=together(dict(zip(labels, specifications, strict=True))),
        ),
        sections=(
            *comparison_sections(labels, specifications),
            _numbers(labels, packets),
            *_contradictions(labels, packets),
        ),
        levels=_shared_labels(packets),
    )
    temporary = out.with_name(out.name + ".part")
    temporary.write_text(render(report), encoding="utf-8")
    temporary.replace(out)
    return out


def _shared_labels(packets: Sequence[Packet]) -> dict[str, dict[str, str]]:
    """The labels on which all packets agree: variable → code → label."""
    first, *others = [read_labels(packet.folder) for packet in packets]
    return {
        name: {
            code: label
            for code, label in labels.items()
            if all(other.get(name, {}).get(code) == label for other in others)
        }
        for name, labels in first.items()
    }


def tables_of(packet: Packet) -> Tables:
    """The published tables of a packet with their variables."""
    return {
        name: ([column for column in table.column_names if column not in MEASURES], table)
        for name, table in packet.read_tables().items()
    }


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
    lead = "Budgets of different flavors are in different units: compare numbers only within one flavor."
    parts = [
        Section(title="The promises beside each other", lead=lead, blocks=tuple(sides), chapter="promise"),
        _exact(labels, specifications),
    ]
    for (first, a), (second, b) in combinations(zip(labels, specifications, strict=True), 2):
        parts.append(sections.comparison(first, second, compare(a, b)))
    return parts


def _exact(labels: Sequence[str], specifications: Sequence[Specification]) -> Section:
    """What each release publishes exactly."""
    number = [(label, len(list(spec.multiverse))) for label, spec in zip(labels, specifications, strict=True)]
    told = ", ".join(f"{many} of {label}" for label, many in number)
    rows = [
        [label, invariant.words()]
        for label, spec in zip(labels, specifications, strict=True)
        for invariant in spec.multiverse
    ]
    return Section(
        title="What each publishes exactly",
        lead=f"Sets of numbers that are published as counted, and so not protected: {told}.",
        blocks=(table("Exact statistics by release", ["release", "statistic"], rows),),
        chapter="exact",
    )


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
        error = as_error(float(str(worst["mean standard error"])))
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


def _contradictions(labels: Sequence[str], packets: Sequence[Packet]) -> list[Section]:
    """How often each release publishes one number with two values, where it publishes numbers twice."""
    found = {
        label: contradictions(packet.read_tables()) for label, packet in zip(labels, packets, strict=True)
    }
    if not any(found.values()):
        return []
    columns = ["release", *(Phrase(f"composed.contradiction.{name}") for name in _CONTRADICTED)]
    rows = [
        [label, Phrase(f"composed.quantity.{one.quantity.name}"), one.compared, one.differ, one.largest]
        for label, ones in found.items()
        for one in ones
    ]
    told = (
        f"{label} {sum(one.differ for one in ones):,} of {sum(one.compared for one in ones):,}"
        for label, ones in found.items()
    )
    return [
        Section(
            title=Phrase("composed.contradiction.title"),
            lead=f"Numbers that stand in two tables with two values: {'; '.join(told)}.",
            blocks=(table(Phrase("composed.contradiction.caption"), columns, rows, numeric=columns[2:]),),
            chapter="accuracy",
        )
    ]


def comparison_report(
    labels: Sequence[str],
    specifications: Sequence[Specification],
    assessments: Sequence[Assessment],
    *,
    title: str,
    subtitle: str,
    audience: Audience = "public",
    private: bool = True,
    tables: Mapping[str, Tables] | None = None,
    ground: Ground | None = None,
    words: Labels | None = None,
) -> Report:
    """Promises and errors against the truth in one report: internal, unless the truth is a public stand-in."""
    assessments = on_same_cells(assessments)
    parts = utility_sections.all_sections(assessments, ground=ground)
    promises = [
        sections.promise(spec, title=f"The promise of {label}")
        for label, spec in zip(labels, specifications, strict=True)
    ]
    return Report(
        title=title,
        subtitle=subtitle,
        audience=audience,
        private=private,
        first=first_screen(
            dict(zip(labels, specifications, strict=True)),
            tables=tables or {},
            assessments=assessments,
            labels=None if words is None else words.variables,
            together=together(dict(zip(labels, specifications, strict=True))),
        ),
        sections=(*parts, *comparison_sections(labels, specifications), *promises),
        levels={} if words is None else words.levels,
    )
