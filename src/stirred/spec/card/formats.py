"""The card in its written forms: plain text, Markdown, and HTML from the templates beside this module."""

import hashlib
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from stirred.spec.card.contents import NOT_TOUCHED, CardContents, shortened
from stirred.spec.card.odds import Allowed
from stirred.spec.card.words import STATUS, counted, decimal, measure
from stirred.spec.compare import Comparison
from stirred.spec.outputs.divergences import NormalizedRenyi

_FOOTER = "Made with Stirred. Numbers are rounded up; the exact budget stands in spec.json."
_SCALE = 620  # the width of the drawn scale, in its own units
_LEFT = 10


def _template(name: str) -> str:
    return (files("stirred.spec.card") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def text(card: CardContents) -> str:
    """The card for a terminal: sentence, table, warning, notes."""
    rows = card.rows()
    width = max(len(name) for name, _ in rows)
    lines = [card.title, "=" * len(card.title), "", card.sentence(), ""]
    lines += [f"{name:<{width}}  {value}" for name, value in rows]
    lines += ["", card.worked()]
    if card.warning():
        lines += ["", card.warning()]
    if card.readings():
        lines += ["", "Read as (ε, δ):"]
        lines += [
            f"  at distance {k}, δ = {d}: ε = {simple} (tight {tight})"
            for k, d, simple, tight in card.readings()
        ]
    if card.specification.bounds:
        lines += ["", "All bounds known for it:"]
        lines += [
            f"  {name}: {budget} ({status}; {source})" for name, budget, status, _, source in _bounds(card)
        ]
    if card.pieces:
        lines += ["", "Put together from:"]
        lines += [
            f"  {p.name}, {p.unit}: {p.budget}, constant {p.constant}, counted as {p.counted}"
            for p in card.pieces
        ]
    if card.variants:
        lines += ["", "Under other assumptions:"]
        lines += [f"  {v.words}: {v.budget}; {v.odds}" for v in card.variants]
    lines += ["", *(f"- {note}" for note in card.notes())] if card.notes() else []
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is: no link, no image, no HTML, no control character.

    >>> escaped("[a](javascript:b) <script> `c`")
    '\\\\[a\\\\](javascript:b) &lt;script> \\\\`c\\\\`'
    """
    safe = "".join(c if c.isprintable() else " " for c in text).replace("<", "&lt;")
    return re.sub(r"([\[\]`])", r"\\\1", safe)


def _cell(value: str) -> str:
    return escaped(value).replace("|", "\\|")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]


def markdown(card: CardContents) -> str:
    """The card as Markdown, for a README or a wiki."""
    lines = [
        f"## {escaped(card.title)}",
        "",
        escaped(card.sentence()),
        "",
        *_markdown_table(["part", "this specification"], card.rows()),
    ]
    lines += ["", escaped(card.worked())]
    if card.warning():
        lines += ["", f"> **Read this.** {escaped(card.warning())}"]
    if card.readings():
        head = ["at distance", "δ", "ε by ρ² + 2ρ√(−ln δ)", "ε, tight"]
        lines += ["", *_markdown_table(head, [[str(value) for value in row] for row in card.readings()])]
    if card.specification.bounds:
        lines += ["", *_markdown_table(["bound", "budget", "status", "tight for", "source"], _bounds(card))]
    if card.pieces:
        pieces = [(p.name, p.unit, p.budget, p.constant, p.counted) for p in card.pieces]
        lines += [
            "",
            *_markdown_table(["part", "its unit", "its budget", "constant", "counted here as"], pieces),
        ]
    if card.variants:
        variants = [(v.words, v.budget, v.odds) for v in card.variants]
        lines += ["", *_markdown_table(["if", "budget", "odds it allows"], variants)]
    if card.notes():
        lines += ["", *(f"- {escaped(note)}" for note in card.notes())]
    return "\n".join(lines) + "\n"


def _bounds(card: CardContents) -> list[tuple[str, str, str, str, str]]:
    bounds = card.specification.bounds
    return [(b.name, decimal(b.budget.upper(4)), STATUS[b.status], b.tight, b.source) for b in bounds]


def fragment(card: CardContents, *, level: int = 2) -> Markup:
    """The card as an HTML element without its style; its title is a heading of that level."""
    return Markup(_environment().get_template("card.html.j2").render(card=_view(card), level=level))


def styled_fragment(card: CardContents) -> str:
    """The card with its style, for a notebook."""
    return f"<style>{_template('card.css')}</style>{fragment(card)}"


def render_page(
    cards: Sequence[CardContents], *, heading: str, lead: Sequence[str], comparison: Comparison | None
) -> str:
    """A page of its own."""
    view: dict[str, object] | None = None
    if comparison is not None:
        rows = [
            {"part": part, "verdict": finding.relation.value, "because": finding.because}
            for part, finding in comparison.parts.items()
        ]
        view = {
            "title": " against ".join(card.title for card in cards),
            "overall": _sentence(comparison.sentence),
            "rows": rows,
            "warnings": [_sentence(warning) for warning in comparison.warnings],
        }
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=heading or " · ".join(card.title for card in cards),
            heading=heading,
            lead=lead,
            cards=[fragment(card, level=2 if heading else 1) for card in cards],
            comparison=view,
            card_css=Markup(_template("card.css")),
            page_css=Markup(_template("page.css")),
            footer=_FOOTER,
        )
    )


def _view(card: CardContents) -> dict[str, object]:
    """Everything the template shows, as text."""
    spec, what = card.specification, card.allowed()
    zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
    exact = (spec.rho_squared if zcdp else spec.budget).exact
    kept = [invariant.words() for invariant in spec.multiverse]
    exact_too = f"{NOT_TOUCHED} {'; '.join(spec.untouched)}"
    untouched = [_line("Not touched", exact_too)] if spec.untouched else []
    return {
        "anchor": "card-" + hashlib.sha256(f"{card.title}{spec}".encode()).hexdigest()[:10],
        "title": card.title,
        "subtitle": card.subtitle,
        "sentence": card.sentence(),
        "parts": [
            _line("Domain", spec.domain.label or spec.domain.name),
            _line("Published exactly", "nothing", items=kept),
            *untouched,
            _line("One change", counted(spec.input_premetric), formal=str(spec.input_premetric)),
            _line("Measured by", measure(spec.output_premetric), formal=str(spec.output_premetric)),
            _line(
                "Budget",
                "per change" + (" (ρ² is the square of the budget ρ)" if zcdp else ""),
                strong=card.budget(),
                formal=f"{'ρ²' if zcdp else spec.output_premetric.budget_symbol} = {shortened(exact)}",
            ),
            _line("Smallest distance", card.nearness()),
        ],
        "status": spec.evidence.status,
        "status_words": STATUS[spec.evidence.status],
        "source": spec.evidence.source,
        "figures": [
            {
                "value": f"× {what.factor}" if what.log_odds is not None else what.factor,
                "words": _most(what),
            },
            {"value": what.error, "words": what.error_words},
            {
                "value": what.belief(_half()),
                "words": "is the most someone at even odds may believe after the release",
            },
        ],
        "scale": _scale(card),
        "worked": card.worked(),
        "warning": card.warning(),
        "readings": [
            dict(zip(("distance", "delta", "simple", "tight"), row, strict=True)) for row in card.readings()
        ],
        "bounds": [
            {"name": n, "budget": b, "status": s.status, "status_words": w, "tight": t, "source": o}
            for (n, b, w, t, o), s in zip(_bounds(card), spec.bounds, strict=True)
        ],
        "pieces": card.pieces,
        "variants": card.variants,
        "notes": card.notes(),
    }


def _most(what: Allowed) -> str:
    """What the factor on the odds is, and at which distance."""
    if what.distance is None:
        return f"is how far odds may move: {what.reason}"
    caveat = f", {what.exception}" if what.exception else ""
    formula = f": {what.formula}" if what.formula else ""
    return f"is the most by which odds may move at distance {what.distance}, the smallest {what.occurs}{caveat}{formula}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def _line(
    name: str, words: str, *, items: Sequence[str] = (), strong: str = "", formal: str = ""
) -> dict[str, object]:
    return {"name": name, "words": words, "items": items, "strong": strong, "formal": formal}


def _half() -> Fraction:
    return Fraction(1, 2)


def _scale(card: CardContents) -> dict[str, object] | None:
    """A bar on a logarithmic scale of the factor on the odds, with the mark at 1,000."""
    what = card.allowed()
    if what.log_odds is None or what.log_odds.is_infinite():
        return None
    reached = float(what.log_odds) / math.log(10)
    end = max(9, math.ceil(reached / 3) * 3)
    step = max(3, math.ceil(end / 6 / 3) * 3)
    x = {power: round(_LEFT + _SCALE * power / end, 1) for power in range(end + 1)}
    under = min(reached, 3.0)
    over = max(reached - 3.0, 0.0)
    powers = [0, *range(step, end + 1, step)]
    return {
        "words": f"On a logarithmic scale the odds may move by a factor of {what.factor}; near-certainty begins at 1,000.",
        "caption": "The factor on the odds, on a logarithmic scale; the dashed line is a factor of 1,000.",
        "under": round(_SCALE * under / end, 1),
        "over": round(_SCALE * over / end, 1),
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
