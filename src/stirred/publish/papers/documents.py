"""The papers of a packet: specification, card, registry entry, script and the two reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from stirred.assess.assessment import Assessment
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.extras import absent, missing
from stirred.languages import Language, Phrase
from stirred.mechanisms.base import Release
from stirred.publish.before.promise import PlanPromise
from stirred.publish.compare.answers import assessment
from stirred.publish.compare.products import together
from stirred.publish.compare.risk_chapter import internal_risk, public_risk
from stirred.publish.export.registry import About, registry_entry, to_yaml
from stirred.publish.export.script import SCRIPT
from stirred.publish.packet.receipt import versions
from stirred.publish.papers.ground import ground_of, labels_of
from stirred.publish.plan.description import Plan, Reason
from stirred.report import Report, Section, render, sections, utility_sections
from stirred.report.charts.spatial import Ground
from stirred.report.exhibits import exhibited
from stirred.report.first_screen import first_screen
from stirred.report.html import card_in_words
from stirred.report.published import published
from stirred.report.texts import in_words
from stirred.spec import Specification
from stirred.spec.card import Card
from stirred.spec.files import save

Shown = Mapping[str, tuple[Sequence[str], pa.Table]]  # name → variables, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Papers:
    """What is written about a release; the sections of the public report are built once and are part of the internal one."""

    plan: Plan
    specification: Specification
    report: Report
    tables: Shown
    ground: Ground

    @classmethod
    def of(
        cls,
        plan: Plan,
        schema: Schema,
        specification: Specification,
        releases: Sequence[Release],
        tables: Shown,
        engine: Engine,
        language: Language | None = None,
        promise: PlanPromise | None = None,
    ) -> "Papers":
        """Everything that is computed from the releases alone."""
        ground = ground_of(schema, plan.folder / plan.census_file, releases)
        report = Report(
            title=plan.title,
            subtitle=Phrase("report.subtitle"),
            audience="public",
            private=all(release.private for release in releases),
            sections=tuple(
                public_sections(plan, schema, specification, releases, tables, engine, ground, promise)
            ),
            first=first_screen({"": specification}, tables={"": tables}, labels=labels_of(schema).variables),
            language=language or Language.of(plan.language),
            levels=labels_of(schema).levels,
        )
        return cls(plan=plan, specification=specification, report=report, tables=tables, ground=ground)

    def write_public(self, folder: Path) -> None:
        """Write specification, card, registry entry, script and the public report."""
        save(self.specification, folder / "spec.json")
        card = Card(self.specification, title=self.plan.title, language=self.plan.language)
        mark = "" if self.report.private else f"**{card.says('card.not_private')}**\n\n"
        text, page = card.markdown(), _marked(card, private=self.report.private)
        levels = self.report.levels
        (folder / "card.md").write_text(mark + in_words(text, levels), encoding="utf-8")
        (folder / "card.html").write_text(card_in_words(page, levels), encoding="utf-8")
        if self.specification.budget.is_finite:  # the registry lists differentially private releases alone
            entry = _registry(self.plan, replace(card, language="en"))
            (folder / "registry.yaml").write_text(entry, encoding="utf-8")
        (folder / "redo.py").write_text(SCRIPT, encoding="utf-8")
        (folder / "report.html").write_text(render(self.report), encoding="utf-8")

    def write_internal(
        self,
        truth: Census,
        releases: Sequence[Release],
        tables: Mapping[str, pa.Table],
        folder: Path,
        engine: Engine,
    ) -> None:
        """Write the comparison with the truth, watermarked, before all sections of the public report; in English alone."""
        found = assessment(self.plan, truth, releases, tables, engine)
        found.summary().write_csv(folder / "metrics.csv")
        report = replace(
            self.report,
            subtitle=INTERNAL if self.plan.language == "en" else f"{INTERNAL}. {ENGLISH}",
            language=Language.of("en"),
            audience="internal",
            first=first_screen(
                {"": self.specification},
                tables={"": self.tables},
                assessments=[found],
                labels=labels_of(truth.schema).variables,
            ),
            sections=(
                *_compared(found, self.ground),
                *internal_risk(truth, releases, engine),
                *self.report.sections,
            ),
        )
        (folder / "report.html").write_text(render(report), encoding="utf-8")


INTERNAL = "Comparison with the confidential data"
ENGLISH = "Internal reports are in English; the card and the public report are in the language of the plan."


def _compared(found: Assessment, ground: Ground) -> Sequence[Section]:
    """The sections that compare with the truth, where charts can be drawn."""
    return utility_sections.all_sections([found], ground=ground) if absent("report") is None else ()


def _undrawn(module: str) -> Section:
    """What a report without charts says instead of them."""
    error = missing(module, "report", why="the charts and tables of a report are drawn with it")
    return Section(
        title="No charts were drawn",
        lead=f"{error.what}: {error.why}. Run {error.fix} and then the plan again.",
    )


def _marked(card: Card, *, private: bool) -> str:
    """A card of a release that was made with a test key says so."""
    html = card.html()
    if private:
        return html
    style = "border:3px solid #b00;color:#b00;padding:.5rem;font:700 1rem sans-serif"
    mark = f'<p style="{style}">{card.says("card.not_private")}</p>'
    return html.replace("<body>", f"<body>{mark}", 1) if "<body>" in html else mark + html


def _registry(plan: Plan, card: Card) -> str:
    """A draft entry for the deployments registry; what the plan's [about] leaves open is marked."""
    about = About.of(
        {
            "name": plan.title,
            "data_product_type": "Dataset" if plan.microdata else "Summary statistics",
            "mechanisms": "; ".join(mechanism.name for mechanism in plan.mechanisms),
            **plan.about,
        }
    )
    return to_yaml(registry_entry(card, about))


def public_sections(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Shown,
    engine: Engine,
    ground: Ground,
    promise: PlanPromise | None = None,
) -> list[Section]:
    """The sections of the public report, in reading order."""
    checks = [check for release in releases for check in release.checks]
    parts = [
        sections.promise(specification),
        sections.exact(specification, checks, [_reason(reason) for reason in plan.reasons]),
    ]
    if promise is not None and len(plan.steps) > 1:
        parts += [
            exhibited(exhibit) for exhibit in together(plan, promise, {n: t for n, (_, t) in tables.items()})
        ]
    if (module := absent("report")) is not None:
        return [*parts, _undrawn(module), sections.method(_method(plan))]
    parts += public_risk(plan, schema, specification, releases, tables, engine, labels_of(schema).variables)
    for number, (step, release) in enumerate(zip(plan.steps, releases, strict=True), 1):
        shown_of = () if step.source is not None else step.mechanism.exhibits(release, engine=engine)
        parts += [exhibited(exhibit, mark=f"-{number}" if number > 1 else "") for exhibit in shown_of]
    parts.append(published(tables, labels=labels_of(schema), ground=ground))
    parts.append(sections.method(_method(plan)))
    return parts


def _reason(reason: Reason) -> tuple[str, str]:
    source = f" ({reason.citation})" if reason.citation else ""
    return Phrase("report.exact.why", statistic=reason.invariant), f"{reason.kind}: {reason.text}{source}"


def _method(plan: Plan) -> list[tuple[str, str]]:
    def named(name: str) -> str:
        return Phrase(f"report.method.{name}")

    rows = [(named("mechanism"), f"{m.name}: {_parameters(m.parameters())}") for m in plan.mechanisms]
    rows += [(named("owner"), plan.owner or named("unnamed")), (named("plan"), plan.digest)]
    rows.append((named("versions"), ", ".join(f"{name} {number}" for name, number in versions().items())))
    rows.append((named("cite"), Phrase("report.method.citation", title=plan.title)))
    return rows


def _parameters(values: Mapping[str, object]) -> str:
    told = {name: value for name, value in values.items() if value not in (None, [], {}, "")}
    return "; ".join(f"{name} {_setting(value)}" for name, value in told.items())


def _setting(value: object) -> str:
    """A setting as people write it: lists with commas, lists inside them with ×, of digests only what they are of.

    >>> _setting([["size", "tenure"], ["size"]]), _setting(True), _setting({"small": "0f" * 32, "rare": "1/5"})
    ('size × tenure, size', 'yes', 'small, rare 1/5')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(name if _digest(one) else f"{name} {_setting(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(" × ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def _digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - {*"0123456789abcdef"}
