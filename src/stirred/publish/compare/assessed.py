"""One packet held against the truth: utility, audit, attack and universe, as measures with baselines. Internal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from stirred.assess.assessment import Assessment, assess_tables
from stirred.assess.attack import AttackResult, attack
from stirred.assess.attack.inference import invert_swap
from stirred.assess.attack.rebuilding import rebuild_from_tables
from stirred.assess.audit import AuditResult, audit
from stirred.assess.risk import RiskMeasure
from stirred.assess.singletons import measure_singletons
from stirred.assess.uniqueness import Uniqueness, compare_with_census, measure_uniqueness
from stirred.census import Census
from stirred.engine import Local, Progress, silent
from stirred.errors import StirredError
from stirred.frames import frame_of
from stirred.mechanisms.base import Release
from stirred.mechanisms.released import scan_records
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.lookup import MEASURES
from stirred.publish.packet.released import read_releases
from stirred.publish.plan.reading import parse
from stirred.spec import Specification
from stirred.spec.files import load
from stirred.toml_text import read_plain_text

if TYPE_CHECKING:
    from stirred.assess.universe import UniverseResult

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
