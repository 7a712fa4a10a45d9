"""The papers of a packet: specification, card, registry entry, script and the two reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from stirred.assess.assessment import Assessment
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.extras import find_missing, missing_extra
from stirred.languages import Language, Phrase
from stirred.mechanisms.base import Release
from stirred.publish.before.promise import PlanPromise
from stirred.publish.compare.answers import assess_questions
from stirred.publish.compare.products import build_product_exhibits
from stirred.publish.compare.risk_chapter import internal_risk, public_risk
from stirred.publish.export.registry import About, registry_entry, to_yaml
from stirred.publish.export.script import SCRIPT
from stirred.publish.packet.receipt import list_versions
from stirred.publish.papers.ground import ground_of, labels_of
from stirred.publish.plan.description import Plan, Reason
from stirred.report import Report, Section, render, sections, utility_sections
from stirred.report.charts.spatial import Ground
from stirred.report.exhibits import draw_exhibit
from stirred.report.first_screen import first_screen
from stirred.report.html import card_in_words
from stirred.report.published import write_published
from stirred.report.texts import label_codes
from stirred.spec import Specification
from stirred.spec.card import Card
from stirred.spec.files import save

Shown = Mapping[str, tuple[Sequence[str], pa.Table]]  # name → variables, table


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketDocuments:
    """Documents of a release; the internal report contains the sections of the public one, built once."""

    plan: Plan
    specification: Specification
    report: Report
    tables: Shown
    ground: Ground

    @classmethod
    def build(
        cls,
        plan: Plan,
        schema: Schema,
        specification: Specification,
        releases: Sequence[Release],
        tables: Shown,
        engine: Engine,
        language: Language | None = None,
        promise: PlanPromise | None = None,
    ) -> "PacketDocuments":
        """Build everything that is computed from the releases alone."""
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
        text, page = card.markdown(), _mark_card(card, private=self.report.private)
        levels = self.report.levels
        (folder / "card.md").write_text(mark + label_codes(text, levels), encoding="utf-8")
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
        found = assess_questions(self.plan, truth, releases, tables, engine)
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
                *_build_comparison(found, self.ground),
                *internal_risk(truth, releases, engine),
                *self.report.sections,
            ),
        )
        (folder / "report.html").write_text(render(report), encoding="utf-8")


INTERNAL = "Comparison with the confidential data"
ENGLISH = "Internal reports are in English; the card and the public report are in the language of the plan."


def _build_comparison(found: Assessment, ground: Ground) -> Sequence[Section]:
    """Return the sections that compare with the truth, where charts can be drawn."""
    return (
        utility_sections.write_truth_sections([found], ground=ground)
        if find_missing("report") is None
        else ()
    )


def _explain_no_charts(module: str) -> Section:
    """Return the section that a report without charts has in their place."""
    error = missing_extra(module, "report", why="the charts and tables of a report are drawn with it")
    return Section(
        title="No charts were drawn",
        lead=f"{error.what}: {error.why}. Run {error.fix} and then the plan again.",
    )


def _mark_card(card: Card, *, private: bool) -> str:
    """Return the card, with a mark where the release was made with a test key."""
    html = card.html()
    if private:
        return html
    style = "border:3px solid #b00;color:#b00;padding:.5rem;font:700 1rem sans-serif"
    mark = f'<p style="{style}">{card.says("card.not_private")}</p>'
    return html.replace("<body>", f"<body>{mark}", 1) if "<body>" in html else mark + html


def _registry(plan: Plan, card: Card) -> str:
    """Return a draft entry for the deployments registry; mark what the plan's [about] leaves open."""
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
    """Return the sections of the public report, in reading order."""
    checks = [check for release in releases for check in release.checks]
    parts = [
        sections.write_promise(specification),
        sections.write_exact(specification, checks, [_reason(reason) for reason in plan.reasons]),
    ]
    if promise is not None and len(plan.steps) > 1:
        parts += [
            draw_exhibit(exhibit)
            for exhibit in build_product_exhibits(plan, promise, {n: t for n, (_, t) in tables.items()})
        ]
    if (module := find_missing("report")) is not None:
        return [*parts, _explain_no_charts(module), sections.write_method(_method(plan))]
    parts += public_risk(plan, schema, specification, releases, tables, engine, labels_of(schema).variables)
    for number, (step, release) in enumerate(zip(plan.steps, releases, strict=True), 1):
        shown_of = () if step.source is not None else step.mechanism.exhibits(release, engine=engine)
        parts += [draw_exhibit(exhibit, mark=f"-{number}" if number > 1 else "") for exhibit in shown_of]
    parts.append(write_published(tables, labels=labels_of(schema), ground=ground))
    parts.append(sections.write_method(_method(plan)))
    return parts


def _reason(reason: Reason) -> tuple[str, str]:
    source = f" ({reason.citation})" if reason.citation else ""
    return Phrase("report.exact.why", statistic=reason.invariant), f"{reason.kind}: {reason.text}{source}"


def _method(plan: Plan) -> list[tuple[str, str]]:
    def named(name: str) -> str:
        return Phrase(f"report.method.{name}")

    rows = [(named("mechanism"), f"{m.name}: {_parameters(m.parameters())}") for m in plan.mechanisms]
    rows += [(named("owner"), plan.owner or named("unnamed")), (named("plan"), plan.digest)]
    rows.append(
        (named("versions"), ", ".join(f"{name} {number}" for name, number in list_versions().items()))
    )
    rows.append((named("cite"), Phrase("report.method.citation", title=plan.title)))
    return rows


def _parameters(values: Mapping[str, object]) -> str:
    told = {name: value for name, value in values.items() if value not in (None, [], {}, "")}
    return "; ".join(f"{name} {_setting(value)}" for name, value in told.items())


def _setting(value: object) -> str:
    """Write a setting as people do: lists with commas, nested lists with ×, digests by what they are of.

    >>> _setting([["size", "tenure"], ["size"]]), _setting(True), _setting({"small": "0f" * 32, "rare": "1/5"})
    ('size × tenure, size', 'yes', 'small, rare 1/5')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            name if _is_digest(one) else f"{name} {_setting(one)}" for name, one in value.items()
        )
    if isinstance(value, list):
        return ", ".join(" × ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - {*"0123456789abcdef"}
