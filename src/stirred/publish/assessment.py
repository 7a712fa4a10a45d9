"""Hold packets against the truth: utility, audit, attack and universe; write internal reports and noisy metrics."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from stirred._support import find_missing, make_file_name
from stirred.assess.assessment import Assessment, align_cells, assess_tables
from stirred.assess.attack import attack
from stirred.assess.attack.inversion import invert_swap
from stirred.assess.attack.records import EXPOSED_GROUP, PHRASE_BY_GROUP, rebuild_from_tables
from stirred.assess.attack.uniqueness import (
    Uniqueness,
    compare_with_census,
    measure_singletons,
    measure_uniqueness,
)
from stirred.assess.audit import AuditResult, audit
from stirred.assess.audit.result import Outcome
from stirred.assess.risk import AttackResult, RiskMeasure
from stirred.assess.utility import TablePair
from stirred.census import Census
from stirred.chance import Key, discrete_laplace
from stirred.closed_files import closed_file
from stirred.engine import Local, Progress, silent
from stirred.errors import ClusterError, IncompatibleError, InputError, MissingExtraError, StirredError
from stirred.frames import frame_of
from stirred.mechanisms.release import Release, scan_records
from stirred.publish.packet.checksums import seal
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.lookup import MEASURES
from stirred.publish.packet.receipt import read_releases, write_json
from stirred.publish.plan.description import Plan, PlannedMechanism, parse
from stirred.publish.run.part import write_whole
from stirred.report import Report, Section, charts, render, risk, utility
from stirred.report.document import Block, make_table
from stirred.spec import Budget, Evidence, Exchanges, Hamming, Multiplicative, Specification
from stirred.spec.algebra import count_changes
from stirred.spec.files import load, save
from stirred.text_formats import read_plain_text

if TYPE_CHECKING:
    from stirred.assess.universe import UniverseResult


# One packet held against the truth: utility, audit, attack and universe, as measures with baselines. Internal.

Doubt = Literal["utility", "audit", "attack", "universe"]
HOUSEHOLD = "household"
DOUBTS: tuple[Doubt, ...] = ("utility", "audit", "attack", "universe")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtSettings:
    """How a packet is attacked and audited: what an attacker knows and wants, and how much effort is spent."""

    record_type: str = ""
    area: str = ""
    tracts: str = ""  # a larger area whose tables are joined to those of the smallest, in reconstruction
    known: tuple[str, ...] | None = None
    secret: tuple[str, ...] | None = None
    attacker: str = "perfect"
    areas: int | None = 200  # that are reconstructed; None: all
    bound: int | None = 0  # how far published numbers are off at most, for a reconstruction from tables
    runs: int = 20_000  # releases of each data set of an audit
    seconds: float = 60.0  # of each audit
    seed: int = 1
    folder: Path | None = None  # that files named in plans are relative to; the packet's own if none is named


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedPacket:
    """Findings about one packet: ``measures`` by doubt, and the ``tables`` behind them."""

    name: str
    specification: Specification
    assessment: Assessment
    alone: tuple[Uniqueness, ...] = ()
    audits: tuple[AuditResult, ...] = ()
    measures: Mapping[Doubt, tuple[RiskMeasure, ...]] = field(default_factory=dict)
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def error(self) -> float | None:
        """Return the absolute error of all tables that are not exact, per cell with a record in the census."""
        pairs = [item.pair.arrays() for item in self.assessment.tables if not item.exact]
        cells = sum(int((before > 0).sum()) for before, _ in pairs)
        if not self.assessment.tables:
            return None
        return sum(float(abs(after - before).sum()) for before, after in pairs) / cells if cells else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the measures as plain values."""
        budget = self.specification.budget
        return {
            "name": self.name,
            "flavor": str(self.specification),
            "budget": float(budget.upper(6)) if budget.is_finite else "inf",
            "error": self.error,
            "exact_tables": list(self.assessment.exact_tables()),
            "audits": [one.as_json() for one in self.audits],
            "measures": {doubt: [one.as_json() for one in found] for doubt, found in self.measures.items()},
        }


def assess_packet(
    packet: Packet,
    truth: Census,
    *,
    only: Sequence[Doubt] = DOUBTS,
    settings: DoubtSettings | None = None,
    name: str = "",
    progress: Progress | None = None,
    state: Path | None = None,
) -> AssessedPacket:
    """Hold a packet against the truth; the doubts that are left out cost nothing."""
    say, how = progress or silent, settings or DoubtSettings()
    releases = read_releases(packet, truth)
    title = name or str(packet.receipt().get("title", packet.folder.name))
    found = AssessedPacket(
        name=title,
        specification=load(packet.public / "spec.json"),
        assessment=_tables(packet, truth, title) if "utility" in only else Assessment(name=title, tables=()),
    )
    measures: dict[Doubt, tuple[RiskMeasure, ...]] = {}
    tables: dict[str, pl.DataFrame] = {}
    if "attack" in only:
        say("attack", 0, 1)
        alone = [
            one
            for r in releases
            for one in compare_with_census(measure_uniqueness(r, Local(), most=None), r, truth, Local())
        ]
        attacked = _attack_releases(releases, truth, how, state, say)
        rebuilt = _rebuild_households(packet, truth, how, say)
        undone = _undo_swaps(releases, truth)
        tables |= attacked[1] | dict(rebuilt.tables) | undone[1]
        single = [one for item in _tables(packet, truth, title).tables for one in measure_singletons(item)]
        measures["attack"] = (
            *attacked[0],
            *rebuilt.measures,
            *undone[0],
            *single,
            *(m for one in alone for m in one.measures()),
        )
        found = replace(found, alone=tuple(alone))
        say("attack", 1, 1)
    if "universe" in only:
        say("universe", 0, 1)
        given = _measure_universe(found.specification, releases, truth)
        measures["universe"] = given.measures
        tables |= given.tables
        say("universe", 1, 1)
    if "audit" in only:
        say("audit", 0, 1)
        audits = _audit_mechanisms(packet, truth, how)
        measures["audit"] = tuple(measure for one in audits for measure in one.measures)
        found = replace(found, audits=audits)
        say("audit", 1, 1)
    return replace(found, measures=measures, tables=tables)


def _tables(packet: Packet, truth: Census, name: str) -> Assessment:
    tables = {}
    for table, record_type in packet.tables().items():
        read = packet.table(table)
        by = [column for column in read.column_names if column not in MEASURES]
        tables[table] = (record_type, by, read)
    return assess_tables(name, truth, tables)


def _attack_releases(
    releases: Sequence[Release], truth: Census, how: DoubtSettings, state: Path | None, say: Progress
) -> tuple[tuple[RiskMeasure, ...], dict[str, pl.DataFrame]]:
    """Attack every release of a packet; return the measures and the tables behind them."""
    measures: list[RiskMeasure] = []
    tables: dict[str, pl.DataFrame] = {}
    for number, release in enumerate(releases, 1):
        try:
            found = attack(
                release, truth, record_type=how.record_type, area=how.area, known=how.known, secret=how.secret,
                attacker=how.attacker, areas=how.areas, tracts=how.tracts if release.microdata else "",
                bound=how.bound, seed=how.seed, state=state, progress=say,
            )  # fmt: skip
        except ClusterError:  # the run is taken up: no report says that this is unknown
            raise
        except StirredError as error:
            measures.append(_make_unknown_measure("attack", str(error.args[0] if error.args else error)))
            continue
        measures += found.measures
        mark = f" {number}" if len(releases) > 1 else ""
        tables |= {f"{name}{mark}": table for name, table in found.tables.items()}
    return tuple(measures), tables


def _rebuild_households(packet: Packet, truth: Census, how: DoubtSettings, say: Progress) -> AttackResult:
    """Rebuild households from the packet's tables of households, where two of them share an area."""
    tables = {}
    for name, record_type in packet.tables().items():
        if record_type == HOUSEHOLD:
            read = frame_of(packet.table(name))
            tables[name] = read.select(c for c in read.columns if c not in MEASURES or c == "count")
    try:
        return rebuild_from_tables(
            tables, truth, HOUSEHOLD, areas=how.areas, bound=how.bound, seed=how.seed, progress=say
        )
    except ClusterError:
        raise
    except StirredError as error:
        reason = str(error.args[0] if error.args else error)
        return AttackResult(measures=(_make_unknown_measure("records rebuilt from tables", reason),))


def _undo_swaps(
    releases: Sequence[Release], truth: Census
) -> tuple[tuple[RiskMeasure, ...], dict[str, pl.DataFrame]]:
    """Compute the best undo of every swap whose law is public; return nothing for other releases."""
    measures: list[RiskMeasure] = []
    tables: dict[str, pl.DataFrame] = {}
    for release in releases:
        if not release.microdata:
            continue
        try:
            found = invert_swap(release, truth)
        except ClusterError:
            raise
        except StirredError:
            continue  # a mechanism of another package that is not installed here
        known = [one for one in found.measures if one.value is not None]
        measures += known
        tables |= found.tables if known else {}
    return tuple(measures), tables


def _audit_mechanisms(packet: Packet, truth: Census, how: DoubtSettings) -> tuple[AuditResult, ...]:
    """Audit every mechanism of a packet on records invented from the schema."""
    plan = parse(read_plain_text(packet.public / "plan.toml"), folder=how.folder or packet.public)
    return tuple(
        audit(step.mechanism, truth, runs=how.runs, seconds=how.seconds, seed=how.seed)
        for step in plan.steps
        if step.source is None and step.earlier is None
    )


def _measure_universe(
    specification: Specification, releases: Sequence[Release], truth: Census
) -> "UniverseResult":
    """Measure what the exact numbers alone reveal of the released variables; unknown if not describable."""
    from stirred.assess.universe import UniverseResult, measure_universe

    released: dict[str, list[str]] = {}
    for release in releases:
        for record_type, data in release.microdata.items():
            record = truth.schema.record(record_type)
            known = [*truth.columns(record_type), *truth.schema.spine]
            columns = scan_records(data).collect_schema().names()
            named = [name for name in columns if name in known and name not in (record.id, record.household)]
            released[record_type] = list(dict.fromkeys([*released.get(record_type, []), *named]))
    try:
        return measure_universe(specification, truth, variables=released)
    except ClusterError:
        raise
    except StirredError as error:
        reason = str(error.args[0] if error.args else error)
        return UniverseResult(measures=(_make_unknown_measure("universe", reason),), tables={})


def _make_unknown_measure(name: str, reason: str) -> RiskMeasure:
    return RiskMeasure(
        name=name, about="all records", kind="absolute", value=None, unit="share", reason=reason
    )


def distinct_names(packets: Sequence[Packet]) -> list[str]:
    """Return the titles of packets, with the name of the folder where two titles are equal."""
    titles = [str(packet.receipt().get("title", packet.folder.name)) for packet in packets]
    if len(set(titles)) == len(titles):
        return titles
    return [f"{title} ({packet.folder.name})" for title, packet in zip(titles, packets, strict=True)]


# Many packets held against one truth, in files and in one internal report.

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
        parts += utility.write_truth_sections(assessments)
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


# Metrics of a packet against the truth, in the layout of the Bureau's Detailed Summary Metrics. Internal.


def metrics_of(packet: Packet, truth: Census) -> pl.DataFrame:
    """Return all metrics of all published tables, one row per table and size class; exact ones without error."""
    tables = {}
    for name, record_type in packet.tables().items():
        table = pq.read_table(packet.public / "tables" / f"{name}.parquet")
        by = [column for column in table.column_names if column not in MEASURES]
        tables[name] = (record_type, by, table)
    return assess_tables(str(packet.receipt().get("title", "")), truth, tables).summary()


def write_metrics(metrics: pl.DataFrame, out: Path) -> None:
    """Write CSV or XLSX by the name of the file, whole or not at all."""
    if out.suffix not in (".csv", ".xlsx"):
        raise InputError(
            f"metrics cannot be written to {out.name}",
            why="the ending of its name is neither .csv nor .xlsx",
            fix="name the file .csv or .xlsx",
        )
    with closed_file(out) as place:
        if out.suffix == ".csv":
            metrics.write_csv(place)
            return
        try:
            metrics.write_excel(place, worksheet="Detailed Summary Metrics")
        except ModuleNotFoundError:
            raise MissingExtraError(
                "a workbook cannot be written",
                why="it needs a package that is not installed",
                fix="pip install 'stirred[xlsx]'",
            ) from None


# Accuracy published: a metric against the truth is itself a release (the paper's Remark 6), so it gets noise and a price.
#
# For a table of counts $t(x)$ and its published version $z$, the total error is $e(x) = \sum_c |z_c - t_c(x)|$.
# Changing one unit's record moves at most $m$ records out of one set of cells and into another, so $e$ moves by at
# most $2m$ ($m = 1$ when the table counts the units themselves, the largest household when it counts persons). With
# two-sided geometric noise of scale $2m/\varepsilon$ the published total is $\varepsilon$-DP in $D_{mult}$ per
# $d_{Ham}$, whatever the invariants, and adds $\varepsilon$ to the budget of the release.


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The noisy total and mean absolute error of one published table."""

    table: str
    cells: int
    total: int
    scale: Fraction

    def document(self) -> dict[str, object]:
        """Return plain values for programs; the mean is over the cells of the published table."""
        return {
            "table": self.table,
            "cells": self.cells,
            "total_absolute_error": self.total,
            "mean_absolute_error": max(self.total, 0) / self.cells,
            "noise_scale": str(self.scale),
        }


def published_specification(base: Specification, epsilon: Fraction, tables: int) -> Specification:
    """Return the release's promise composed with that of the noisy metrics, ε for each table and changed record."""
    counted = base.input_premetric
    if not isinstance(base.output_premetric, Multiplicative) or not isinstance(counted, Hamming | Exchanges):
        raise IncompatibleError(
            "accuracy cannot be published beside this release",
            why=f"its flavor is {counted}, {base.output_premetric}; the metrics are pure DP per changed record",
            fix="keep the metrics internal, or compute them on a stand-in",
        )
    noise = Specification(
        domain=base.domain,
        multiverse=base.multiverse,
        input_premetric=count_changes(counted),
        output_premetric=Multiplicative(),
        budget=Budget.of(epsilon * tables),
        evidence=Evidence(
            status="proved", source="publish/accuracy.py: total absolute error moves by at most 2m"
        ),
    )
    return base + noise.per(counted)


def price_metrics(packet: Packet, truth: Census, epsilon: Fraction) -> Specification:
    """Return the composed promise of the release and its noisy errors; refuse what cannot be priced."""
    if epsilon <= 0:
        raise InputError(
            "a budget must be positive",
            why="with a budget of 0 the noise is infinite",
            fix='--epsilon "1/10"',
        )
    base, tables = load(packet.public / "spec.json"), packet.tables()
    for record_type in tables.values():
        _records_per_unit(truth, base.input_premetric.unit, record_type)
    return published_specification(base, epsilon, len(tables))


def publish_accuracy(
    packet: Packet, truth: Census, out: Path, *, epsilon: Fraction, key: Key
) -> tuple[list[Accuracy], Specification]:
    """Write noisy errors of every published table, with the composed specification, to a folder of their own."""
    whole, tables = price_metrics(packet, truth, epsilon), packet.tables()
    unit = whole.input_premetric.unit
    checksums = (packet.public / "checksums.txt").read_bytes()
    found = []
    for name, record_type in tables.items():
        frame = pl.read_parquet(packet.public / "tables" / f"{name}.parquet")
        by = [column for column in frame.columns if column not in MEASURES]
        pair = TablePair.align(truth.counts(record_type, by), frame.select(*by, "count").to_arrow(), by=by)
        reference, protected = pair.arrays()
        error = int(np.abs(protected - reference).sum())
        scale = 2 * _records_per_unit(truth, unit, record_type) / epsilon
        # the input enters the name: a changed truth gets independent noise
        run = key.bind(
            "accuracy", checksums, name, str(epsilon), key.digest(reference.tobytes(), protected.tobytes())
        )
        noise = int(discrete_laplace(run.stream("total error"), scale, 1)[0])
        found.append(Accuracy(table=name, cells=frame.height, total=error + noise, scale=scale))
    with write_whole(out, "accuracy", closed=False) as folder:  # it has noise, and may be published
        write_json(
            folder / "accuracy.json",
            {"epsilon_per_table": str(epsilon), "tables": [a.document() for a in found]},
        )
        save(whole, folder / "spec.json")
        seal(folder)
    return found, whole


def _records_per_unit(truth: Census, unit: str, record_type: str) -> int:
    if record_type == unit:
        return 1
    largest = truth.domain.largest_household
    if largest is None:
        raise InputError(
            f"a table of {record_type} records cannot be priced per {unit}",
            why="the schema does not say how large a household may be",
            fix="add largest_household = … to census.toml",
        )
    return int(largest)


# Audit every mechanism of a plan on invented records, and combine the verdicts.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAudit:
    """Audits of a plan's mechanisms, in their order."""

    labels: tuple[str, ...]
    results: tuple[AuditResult, ...]

    @property
    def verdict(self) -> Outcome:
        """Return fail where one audit fails, pass where all pass, else unknown."""
        found = {result.verdict for result in self.results}
        if "fail" in found:
            return "fail"
        return "pass" if found == {"pass"} else "unknown"

    def as_json(self) -> dict[str, object]:
        """Return the combined verdict, the numbers of a plan with one mechanism, and all by mechanism."""
        numbers = ("claimed", "observed_lower", "exact")
        alone = self.results[0].as_json() if len(self.results) == 1 else {}
        return {
            **{name: alone.get(name) for name in numbers},
            "verdict": self.verdict,
            "mechanisms": [
                {"label": label, **result.as_json()}
                for label, result in zip(self.labels, self.results, strict=True)
            ],
        }


def audit_plan(
    plan: Plan,
    census: Census,
    *,
    runs: int,
    confidence: float,
    records: int,
    seconds: float | None,
    methods: Sequence[str],
    on_records: bool = False,
    progress: Progress | None = None,
) -> PlanAudit:
    """Audit each mechanism by itself; budgets of several add up as the plan's promise says."""
    results = []
    for step in plan.steps:
        reason = _beyond(step)
        if reason:
            results.append(_make_unknown_audit(step, reason, confidence))
            continue
        results.append(
            audit(
                step.mechanism,
                census,
                runs=runs,
                confidence=confidence,
                records=records,
                seconds=seconds,
                methods=methods,
                on_records=on_records,
                progress=progress,
            )
        )
    return PlanAudit(labels=tuple(step.label for step in plan.steps), results=tuple(results))


def _beyond(step: PlannedMechanism) -> str:
    if step.source is not None:
        return "it tabulates the records of another release and adds no loss: audit that one"
    if step.earlier is not None:
        return "it continues another release, which an audit does not make: audit that one"
    return ""


def _make_unknown_audit(step: PlannedMechanism, reason: str, confidence: float) -> AuditResult:
    return AuditResult(
        mechanism=step.mechanism.name,
        unit="epsilon",
        claimed=None,
        observed_lower=None,
        exact=None,
        verdict="unknown",
        reason=reason,
        confidence=confidence,
    )
