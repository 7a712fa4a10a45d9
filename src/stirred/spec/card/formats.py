"""The card in its written forms: plain text, Markdown, and HTML from the templates beside this module."""

import hashlib
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from stirred.languages import Language, Phrase
from stirred.spec.card.compiling import TemplateCache
from stirred.spec.card.contents import CardContents, TotalPart, Variant, shorten
from stirred.spec.card.odds import OddsBound
from stirred.spec.card.words import describe_measure, describe_status, describe_unit, write_decimal
from stirred.spec.compare import Comparison
from stirred.spec.outputs.divergences import NormalizedRenyi

_SCALE_WIDTH = 620  # the width of the drawn scale, in its own units
_SCALE_LEFT = 10


def _template(name: str) -> str:
    return (files("stirred.spec.card") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_template),
        bytecode_cache=TemplateCache(__file__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_text(card: CardContents) -> str:
    """Write the card for a terminal: sentence, table, warning, notes."""
    rows, say = card.rows(), card.says
    width = max(len(name) for name, _ in rows)
    first = [card.banner(), ""] if card.banner() else []
    lines = [*first, card.heading, "=" * len(card.heading), "", card.sentence(), ""]
    lines += [f"{name:<{width}}  {value}" for name, value in rows]
    lines += ["", card.write_example()]
    if card.warning():
        lines += ["", card.warning()]
    if card.readings():
        lines += ["", _write_head(card, "card.readings.title")]
        for k, delta, simple, tight in card.readings():
            line = say("card.readings.line", distance=str(k), delta=delta, simple=simple, tight=tight)
            lines.append(f"  {line}")
    if card.specification.bounds:
        lines += ["", _write_head(card, "card.bounds.title")]
        lines += [
            f"  {name}: {budget} ({known}; {source})" for name, budget, known, _, source in _bounds(card)
        ]
    if card.pieces:
        lines += ["", _write_head(card, "card.pieces.title")]
        for p in _pieces(card):
            line = say(
                "card.pieces.line", unit=p.unit, budget=p.budget, constant=p.constant, counted=p.counted
            )
            lines.append(f"  {p.name}, {line}")
    if card.variants:
        lines += ["", _write_head(card, "card.variants.title")]
        lines += [f"  {v.words}: {v.budget}; {v.odds}" for v in _variants(card)]
    lines += ["", *(f"- {note}" for note in card.notes())] if card.notes() else []
    return "\n".join(lines) + "\n"


def _write_head(card: CardContents, key: str) -> str:
    return card.says("lists.heading", text=card.says(key))


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged: no link, image, HTML or control character.

    >>> escape_markdown("[a](javascript:b) <script> `c`")
    '\\\\[a\\\\](javascript:b) &lt;script> \\\\`c\\\\`'
    """
    safe = "".join(c if c.isprintable() else " " for c in text).replace("<", "&lt;")
    return re.sub(r"([\[\]`])", r"\\\1", safe)


def _escape_cell(value: str) -> str:
    return escape_markdown(value).replace("|", "\\|")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_escape_cell(value) for value in row) + " |" for row in rows]


def write_markdown(card: CardContents) -> str:
    """Write the card as Markdown, for a README or a wiki."""

    def heads(*keys: str) -> list[str]:
        return [card.says(key) for key in keys]

    lines = [
        *([f"> **{escape_markdown(card.banner())}**", ""] if card.banner() else []),
        f"## {escape_markdown(card.heading)}",
        "",
        escape_markdown(card.sentence()),
        "",
        *_markdown_table(heads("card.head.part", "card.head.this"), card.rows()),
    ]
    lines += ["", escape_markdown(card.write_example())]
    if card.warning():
        lines += ["", f"> **{card.says('card.warning.title')}** {escape_markdown(card.warning())}"]
    if card.readings():
        head = [
            card.says("card.head.at_distance"),
            "δ",
            card.says("card.head.simple_by"),
            card.says("card.head.tight"),
        ]
        lines += ["", *_markdown_table(head, [[str(value) for value in row] for row in card.readings()])]
    if card.specification.bounds:
        head = heads(
            "card.head.bound",
            "card.head.budget",
            "card.head.status",
            "card.head.tight_for",
            "card.head.source",
        )
        lines += ["", *_markdown_table(head, _bounds(card))]
    if card.pieces:
        pieces = [(p.name, p.unit, p.budget, p.constant, p.counted) for p in _pieces(card)]
        head = heads(
            "card.head.part",
            "card.head.its_unit",
            "card.head.its_budget",
            "card.head.constant",
            "card.head.counted_as",
        )
        lines += ["", *_markdown_table(head, pieces)]
    if card.variants:
        variants = [(v.words, v.budget, v.odds) for v in _variants(card)]
        lines += ["", *_markdown_table(heads("card.head.if", "card.head.budget", "card.row.odds"), variants)]
    if card.notes():
        lines += ["", *(f"- {escape_markdown(note)}" for note in card.notes())]
    return "\n".join(lines) + "\n"


def _bounds(card: CardContents) -> list[tuple[str, str, str, str, str]]:
    said = card.translate
    return [
        (
            said(b.name),
            said(write_decimal(b.budget.upper(4))),
            said(describe_status(b.status)),
            said(b.tight),
            said(b.source),
        )
        for b in card.specification.bounds
    ]


def _pieces(card: CardContents) -> list[TotalPart]:
    said = card.translate
    return [
        TotalPart(
            name=said(p.name),
            unit=said(p.unit),
            budget=said(p.budget),
            constant=said(p.constant),
            counted=said(p.counted),
        )
        for p in card.pieces
    ]


def _variants(card: CardContents) -> list[Variant]:
    said = card.translate
    return [Variant(words=said(v.words), budget=said(v.budget), odds=said(v.odds)) for v in card.variants]


def write_fragment(card: CardContents, *, level: int = 2) -> Markup:
    """Write the card as an HTML element without its style; its title is a heading of that level."""
    template = _environment().get_template("card.html.j2")
    return Markup(template.render(card=_build_view(card), level=level, say=card.says))


def write_styled_fragment(card: CardContents) -> str:
    """Write the card as HTML with its style, for a notebook."""
    return f"<style>{_template('card.css')}</style>{write_fragment(card)}"


def render_page(
    cards: Sequence[CardContents],
    *,
    heading: str,
    lead: Sequence[str],
    comparison: Comparison | None,
    language: Language,
) -> str:
    """Write one self-contained HTML page of cards, with their comparison."""
    view: dict[str, object] | None = None
    if comparison is not None:
        rows = [
            {
                "part": language.translate(part),
                "verdict": language.translate(finding.relation.value),
                "because": _mark_language(language, finding.because),
            }
            for part, finding in comparison.parts.items()
        ]
        against = f" {language.say('card.comparison.against')} "
        view = {
            "title": against.join(card.heading for card in cards),
            "overall": _mark_language(language, _sentence(comparison.sentence)),
            "rows": rows,
            "warnings": [_mark_language(language, _sentence(warning)) for warning in comparison.warnings],
        }
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=heading or " · ".join(card.heading for card in cards),
            heading=heading,
            lead=lead,
            cards=[write_fragment(card, level=2 if heading else 1) for card in cards],
            comparison=view,
            card_css=Markup(_template("card.css")),
            page_css=Markup(_template("page.css")),
            language=language.code,
            say=language.say,
        )
    )


def _mark_language(language: Language, text: str) -> Markup:
    """Return a text in that language, or marked as English where the catalog lacks it."""
    if language.knows(text):
        return escape(language.translate(text))
    return Markup('<span lang="en">{}</span>').format(text)


def _build_view(card: CardContents) -> dict[str, object]:
    """Return everything that the template shows, as text."""
    spec, what, say, said = card.specification, card.bound_odds(), card.says, card.translate
    zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
    exact = (spec.rho_squared if zcdp else spec.budget).exact
    marked = partial(_mark_language, card.speech)
    kept = [marked(invariant.words()) for invariant in spec.multiverse]
    untouched = [_build_line(say("card.part.untouched"), card.describe_untouched())] if spec.untouched else []
    return {
        "anchor": "card-" + hashlib.sha256(f"{card.title}{spec}".encode()).hexdigest()[:10],
        "banner": card.banner(),
        "title": card.heading,
        "subtitle": card.subtitle,
        "sentence": card.sentence(),
        "parts": [
            _build_line(say("card.part.domain"), spec.domain.label or spec.domain.name),
            _build_line(say("card.part.invariants"), say("card.nothing"), items=kept),
            *untouched,
            _build_line(
                say("card.part.unit"),
                said(describe_unit(spec.input_premetric)),
                formal=str(spec.input_premetric),
            ),
            _build_line(
                say("card.part.measure"),
                marked(describe_measure(spec.output_premetric)),
                formal=str(spec.output_premetric),
            ),
            _build_line(
                say("card.part.budget"),
                say("card.per_change_squared" if zcdp else "card.per_change"),
                strong=card.budget(),
                formal=f"{'ρ²' if zcdp else spec.output_premetric.budget_symbol} = {shorten(exact)}",
            ),
            _build_line(say("card.part.distance"), card.nearness()),
        ],
        "status": spec.evidence.status,
        "status_words": said(describe_status(spec.evidence.status)),
        "source": Markup(card.says("lists.semicolon")).join(
            marked(source) for source in spec.evidence.source.split("; ")
        ),
        "figures": [
            {
                "value": f"× {said(what.factor)}" if what.log_odds is not None else said(what.factor),
                "words": said(_describe_factor(what)),
            },
            {"value": said(what.error), "words": said(what.error_words)},
            {"value": said(what.belief(_half())), "words": say("card.figure.belief")},
        ],
        "scale": _draw_scale(card),
        "worked": card.write_example(),
        "warning": card.warning(),
        "readings": [
            dict(zip(("distance", "delta", "simple", "tight"), row, strict=True)) for row in card.readings()
        ],
        "bounds": [
            {
                "name": marked(b.name),
                "budget": said(write_decimal(b.budget.upper(4))),
                "status": b.status,
                "status_words": said(describe_status(b.status)),
                "tight": marked(b.tight),
                "source": marked(b.source),
            }
            for b in spec.bounds
        ],
        "pieces": _pieces(card),
        "variants": _variants(card),
        "notes": [marked(note) for note in card.all_notes()],
    }


def _describe_factor(what: OddsBound) -> Phrase:
    """Describe the distance at which the factor on the odds holds, with its formula."""
    if what.distance is None:
        return Phrase("card.figure.unlimited", reason=what.reason)
    told = Phrase("card.figure.most", distance=str(what.distance), occurs=what.occurs)
    if what.exception:
        told = Phrase("lists.comma_pair", first=told, second=what.exception)
    return Phrase("card.figure.formula", text=told, formula=what.formula) if what.formula else told


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def _build_line(
    name: str, words: str, *, items: Sequence[str] = (), strong: str = "", formal: str = ""
) -> dict[str, object]:
    return {"name": name, "words": words, "items": items, "strong": strong, "formal": formal}


def _half() -> Fraction:
    return Fraction(1, 2)


def _draw_scale(card: CardContents) -> dict[str, object] | None:
    """Return the bar of the factor on a logarithmic scale with the mark at 1,000, or None where there is none."""
    what = card.bound_odds()
    if what.log_odds is None or what.log_odds.is_infinite():
        return None
    reached = float(what.log_odds) / math.log(10)
    end = max(9, math.ceil(reached / 3) * 3)
    step = max(3, math.ceil(end / 6 / 3) * 3)
    x = {power: round(_SCALE_LEFT + _SCALE_WIDTH * power / end, 1) for power in range(end + 1)}
    under = min(reached, 3.0)
    over = max(reached - 3.0, 0.0)
    powers = [0, *range(step, end + 1, step)]
    return {
        "words": card.says("card.scale.words", factor=what.factor),
        "caption": card.says("card.scale.caption"),
        "under": round(_SCALE_WIDTH * under / end, 1),
        "over": round(_SCALE_WIDTH * over / end, 1),
        "threshold": x[3],
        "ticks": [
            {
                "x": x[power],
                "label": "1"
                if power == 0
                else "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")),
                "anchor": "start" if power == 0 else "end" if power == end else "middle",
            }
            for power in powers
        ],
    }
