"""Two or more packets in one report: their promises compared part by part, their numbers side by side."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from stirred._support import require_extra
from stirred.assess.assessment import Assessment, align_cells
from stirred.assess.contradictions import find_contradictions
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.publish.named_plans import list_quantities
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.lookup import MEASURES, read_labels
from stirred.report import Report, Section, render, sections, utility
from stirred.report.accuracy import Tables, compare_intervals
from stirred.report.charts import Ground
from stirred.report.document import Audience, Block, Fold, make_table, relabel
from stirred.report.first_screen import first_screen
from stirred.report.risk import PlainRisk
from stirred.report.sections import write_joint_cost
from stirred.report.uncertainty import Labels
from stirred.spec import Specification, compare
from stirred.spec.card import Card
from stirred.spec.files import load

_CONTRADICTED = ("quantity", "compared", "differ", "largest")


def write_comparison(folders: Sequence[Path], out: Path, *, names: Sequence[str] = ()) -> Path:
    """Compare the public parts of packets; nothing confidential is read."""
    require_extra("report", why="the comparison is a report, whose charts are drawn with it")
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
            together=write_joint_cost(dict(zip(labels, specifications, strict=True))),
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
    """Return the labels on which all packets agree: variable → code → label."""
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
    """Return the published tables of a packet with their variables."""
    return {
        name: ([column for column in table.column_names if column not in MEASURES], table)
        for name, table in packet.read_tables().items()
    }


def comparison_sections(labels: Sequence[str], specifications: Sequence[Specification]) -> list[Section]:
    """Return the sections that compare promises: all beside each other, then every pair part by part."""
    rows = []
    for label, spec in zip(labels, specifications, strict=True):
        card = Card(spec, title=label)
        rows.append(
            [
                label,
                str(spec.input_premetric),
                str(spec.output_premetric),
                card.budget(),
                card.bound_odds().factor,
                spec.evidence.status,
            ]
        )
    columns = ["release", "input premetric", "output premetric", "budget", "odds may move by", "status"]
    sides: list[Block] = [make_table("Promises beside each other", columns, rows)]
    lead = "Budgets of different flavors are in different units: compare numbers only within one flavor."
    parts = [
        Section(title="The promises beside each other", lead=lead, blocks=tuple(sides), chapter="promise"),
        _exact(labels, specifications),
    ]
    pairs = [
        sections.write_comparison(first, second, compare(a, b))
        for (first, a), (second, b) in combinations(zip(labels, specifications, strict=True), 2)
    ]
    if len(pairs) > 1:
        lead = "Part by part: which of two promises more, and why."
        pairs = [Section(title="Two by two", lead=lead, blocks=_fold(pairs), chapter="promise")]
    return [*parts, *pairs]


def _fold(found: Sequence[Section]) -> tuple[Fold, ...]:
    """Return sections as blocks that a click opens, each under its finding."""
    return tuple(
        Fold(
            title=Phrase("report.two", first=Phrase("lists.heading", text=one.title), second=one.lead),
            blocks=one.blocks,
        )
        for one in found
    )


def _exact(labels: Sequence[str], specifications: Sequence[Specification]) -> Section:
    """Return the section on what each release publishes exactly."""
    number = [(label, len(list(spec.multiverse))) for label, spec in zip(labels, specifications, strict=True)]
    told = ", ".join(f"{many} of {label}" for label, many in number)
    rows = [
        [label, relabel(invariant.words(), {})]  # block group, not block_group
        for label, spec in zip(labels, specifications, strict=True)
        for invariant in spec.multiverse
    ]
    return Section(
        title="What each publishes exactly",
        lead=f"Sets of numbers that are published as counted, and so not protected: {told}.",
        folded=True,
        blocks=(make_table("Exact statistics by release", ["release", "statistic"], rows),),
        chapter="exact",
    )


def _numbers(labels: Sequence[str], packets: Sequence[Packet]) -> Section:
    """Return the section on the intervals of tables that several packets publish."""
    shown = compare_intervals(
        {label: tables_of(packet) for label, packet in zip(labels, packets, strict=True)}
    )
    if shown is None:
        lead = "The packets publish no table in common that states its errors."
    else:
        lead = Phrase("report.accuracy.note.compared_intervals")
    return Section(
        title="Published numbers side by side", lead=lead, blocks=() if shown is None else (shown,)
    )


def _contradictions(labels: Sequence[str], packets: Sequence[Packet]) -> list[Section]:
    """Return how often each release publishes one number with two values, where it publishes numbers twice."""
    found = {
        label: find_contradictions(packet.read_tables(), list_quantities())
        for label, packet in zip(labels, packets, strict=True)
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
            blocks=(
                make_table(Phrase("composed.contradiction.caption"), columns, rows, numeric=columns[2:]),
            ),
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
    risks: Mapping[str, PlainRisk] | None = None,
) -> Report:
    """Return one report of promises and errors against the truth; internal, unless the truth is public."""
    assessments = align_cells(assessments)
    parts = utility.write_truth_sections(assessments, ground=ground, tables=tables)
    promises = tuple(
        Fold(
            title=label,
            blocks=sections.write_promise(
                spec, labels=None if words is None else words.variables, folded=True
            ).blocks,
        )
        for label, spec in zip(labels, specifications, strict=True)
    )
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
            risks=risks,
            together=write_joint_cost(dict(zip(labels, specifications, strict=True))),
        ),
        sections=(
            *parts,
            *comparison_sections(labels, specifications),
            Section(
                title="The guarantees in full",
                lead="Each covers every number and record of its release.",
                blocks=promises,
                chapter="promise",
            ),
        ),
        levels={} if words is None else words.levels,
    )
