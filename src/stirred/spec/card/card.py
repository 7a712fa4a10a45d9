"""Write the card of a specification: as text, as Markdown and as one self-contained HTML page."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from stirred.languages import Language, Phrase, recognise, spell_number
from stirred.languages import unit as noun
from stirred.spec.card.words import (
    DEFAULT_DELTA,
    OddsBound,
    bound_odds,
    describe_measure,
    describe_status,
    describe_unit,
    insert_labels,
    label_products,
    write_decimal,
    write_small,
)
from stirred.spec.compare import Comparison
from stirred.spec.input_premetrics import Exchanges, SymmetricDifference
from stirred.spec.invariants import abbreviate
from stirred.spec.output_premetrics import NormalizedRenyi, rho_squared_to_epsilon
from stirred.spec.specification import Specification

if TYPE_CHECKING:
    from jinja2 import Environment

# What a card says: the sentence, the table, the worked example, the warning and the notes.


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalPart:
    """One part of a total: what it is, per which unit, at which budget, and how it was counted."""

    name: str
    unit: str
    budget: str
    constant: str  # its distance is at most this times the distance of the total
    counted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The same release under another assumption: what changes, and the budget and the odds it then has."""

    words: str
    budget: str
    odds: str


@dataclass(frozen=True, slots=True)
class CardContents:
    """A specification with a title and all that a reader needs; ``at_least`` marks an incomplete total."""

    specification: Specification
    title: str = ""  # empty: "Specification"
    subtitle: str = ""
    delta: Fraction = DEFAULT_DELTA
    distance: int | None = None  # the smallest distance, where no rule can know it
    at_least: bool = False
    pieces: tuple[TotalPart, ...] = ()
    variants: tuple[Variant, ...] = ()
    more_notes: tuple[str, ...] = field(default=())
    language: str = "en"
    labels: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)  # words for variables
    signature: tuple[
        tuple[str, str], ...
    ] = ()  # who answers for the release; an empty value is filled in by hand
    _odds: OddsBound | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "language", Language.of(self.language).code)
        if not self.title:
            object.__setattr__(self, "title", self.says("card.title"))

    @property
    def speech(self) -> Language:
        """Return the language the card is written in."""
        return Language.of(self.language)

    def says(self, key: str, /, **values: str) -> str:
        """Return the text of a catalog key in the language of the card."""
        return self.speech.say(key, **values)

    def translate(self, text: str) -> str:
        """Return a text in the language of the card; a text that is not in the catalog stays as it is."""
        return self.speech.translate(text)

    def _find_phrase(self, text: str) -> str:
        """Return a text from a file as a catalog phrase where the catalog has it; English text stays as it is."""
        return text if self.speech.is_english else recognise(text)

    @property
    def heading(self) -> str:
        """Return the title, translated if it comes from the catalog."""
        return self.translate(self.title) if isinstance(self.title, Phrase) else self.title

    def bound_odds(self) -> OddsBound:
        """Return how far the budget lets odds move at the smallest distance that occurs; it is computed once."""
        if self._odds is None:
            found = bound_odds(self.specification, delta=self.delta, distance=self.distance)
            object.__setattr__(self, "_odds", found)
            return found
        return self._odds

    def budget(self) -> str:
        """Return the budget with its letter and four decimals, rounded up: ρ² for zCDP, ε otherwise."""
        return self.translate(self.shown_budget())

    def shown_budget(self) -> Phrase:
        """Return the budget as a phrase that can be written in every language."""
        spec = self.specification
        zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
        number = write_decimal((spec.rho_squared if zcdp else spec.budget).upper(4))
        letter = "ρ²" if zcdp else spec.output_premetric.budget_symbol
        return Phrase("card.budget", letter=letter, relation="≥" if self.at_least else "=", number=number)

    def sentence(self) -> str:
        """Return the specification in sentences for data users."""
        return self.translate(self.shown_sentence())

    def shown_sentence(self) -> Phrase:
        """Return the sentences as a phrase that can be written in every language."""
        spec, what = self.specification, self.bound_odds()
        among = Phrase("card.sentence.among" if list(spec.multiverse) else "card.sentence.any_data")
        if what.distance is None:
            key = "card.sentence.single" if what.sure else "card.sentence.unknown"
            return Phrase(key, among=among, reason=what.reason)
        if what.log_odds is not None and what.log_odds.is_infinite():
            return Phrase("card.sentence.no_limit", among=among, change=what.change)
        if what.log_odds is None:
            measured, budget = str(spec.output_premetric), self.shown_budget()
            return Phrase(
                "card.sentence.moves", among=among, change=what.change, budget=budget, measure=measured
            )
        key = "card.sentence.known_bounds" if self.at_least else "card.sentence.odds"
        return Phrase(
            key, among=among, change=what.change, factor=_add_exception(what.factor, what.exception)
        )

    def list_exact(self) -> list[str]:
        """Return what is published exactly, with labels instead of column names."""
        kept = (
            abbreviate(invariant, self.specification.domain) for invariant in self.specification.multiverse
        )
        return [self._label(self.translate(self._find_phrase(words))) for words in kept]

    def _label(self, text: str) -> str:
        """Return a text in the card's language with labels for variables, and words for ×."""
        listed = label_products(text, self.labels, self.speech) if self.labels else text
        return insert_labels(listed, self.labels)

    def rows(self, *, formal: bool = True) -> tuple[tuple[str, str], ...]:
        """Return a table of two columns: the five parts, what they allow and how the budget is known.

        Without ``formal`` the symbols of the two premetrics are left out, for readers who do not know them.
        """
        return tuple((self.translate(name), self.translate(text)) for name, text in self._rows(formal))

    def notation(self) -> tuple[str, ...]:
        """Return the two premetrics and the budget as the paper writes them."""
        spec = self.specification
        zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
        exact = (spec.rho_squared if zcdp else spec.budget).exact
        symbol = "ρ²" if zcdp else spec.output_premetric.budget_symbol
        return str(spec.input_premetric), str(spec.output_premetric), f"{symbol} = {shorten(exact)}"

    def _rows(self, formal: bool) -> tuple[tuple[str, str], ...]:
        spec, what = self.specification, self.bound_odds()
        exact = spec.rho_squared if isinstance(spec.output_premetric, NormalizedRenyi) else spec.budget
        odds = Phrase("card.odds.factor", factor=what.factor, distance=str(what.distance))
        if what.distance is None:
            odds = Phrase("card.odds.nothing" if what.sure else "card.odds.unknown")
        elif what.log_odds is None:
            odds = Phrase("card.odds.no_rule", measure=str(spec.output_premetric))
        elif what.exception:
            odds = Phrase("lists.comma_pair", first=odds, second=what.exception)
        kept = self.says("lists.semicolon").join(
            self._label(self.translate(invariant.words())) for invariant in spec.multiverse
        )
        exact_too = ((Phrase("card.row.untouched"), self.describe_untouched()),) if spec.untouched else ()
        errs = what.error[:1].isdigit()
        unit, measured = (
            Phrase("lists.comma_pair", first=words, second=str(symbol)) if formal else words
            for words, symbol in (
                (describe_unit(spec.input_premetric), spec.input_premetric),
                (describe_measure(spec.output_premetric), spec.output_premetric),
            )
        )
        return (
            (Phrase("card.row.domain"), spec.domain.label or spec.domain.name),
            (Phrase("card.row.invariants"), kept or Phrase("card.none")),
            *exact_too,
            (Phrase("card.row.unit"), unit),
            (Phrase("card.row.measure"), measured),
            (
                Phrase("card.row.budget"),
                Phrase("card.budget_exactly", budget=self.shown_budget(), exact=shorten(exact.exact)),
            ),
            (Phrase("card.row.distance"), self.nearness()),
            (Phrase("card.row.odds"), odds),
            (
                Phrase("card.row.test"),
                Phrase("card.error.errs", share=what.error) if errs else what.error_words,
            ),
            (Phrase("card.row.evidence"), self._evidence()),
        )

    def _evidence(self) -> str:
        words, source = self.translate(describe_status(self.specification.evidence.status)), self.source()
        return f"{words}: {source}".rstrip(": ")

    def source(self) -> str:
        """Return the source from which the budget is known."""
        return self.speech.join_list(self.specification.evidence.source.split("; "))

    def describe_untouched(self) -> str:
        """Return in words which records are released exactly."""
        return self.says("card.untouched", records=self.speech.join_list(self.specification.untouched))

    def nearness(self) -> str:
        """Return the smallest distance between two data sets that the release tells apart, and the reason for it."""
        what = self.bound_odds()
        distance = Phrase("card.none") if what.distance is None else str(what.distance)
        return self.says("card.nearness", distance=distance, reason=what.reason)

    def readings(self) -> tuple[tuple[int, str, str, str], ...]:
        """Return (distance, δ, simple ε, tight ε) of a zCDP budget at distances 1, 2 and the smallest, or nothing."""
        spec = self.specification
        if not isinstance(spec.output_premetric, NormalizedRenyi) or not spec.budget.is_finite:
            return ()
        delta = self.translate(write_small(self.delta))
        return tuple(
            (distance, delta, self._read(distance), self._read(distance, tight=True))
            for distance in sorted({1, 2, self.bound_odds().distance or 1})
        )

    def _read(self, distance: int, *, tight: bool = False) -> str:
        rho_squared = self.specification.rho_squared
        epsilon = rho_squared_to_epsilon(rho_squared, self.delta, distance=distance, tight=tight)
        return self.translate(write_decimal(epsilon))

    def epsilon(self) -> Phrase | None:
        """Return the simple ε of a zCDP budget between neighbours, or None where there is no such reading."""
        if not self.readings():
            return None
        return write_decimal(rho_squared_to_epsilon(self.specification.rho_squared, self.delta, distance=1))

    def write_example(self) -> str:
        """Write a worked example of one household or person: the largest belief that is possible afterwards."""
        spec, what = self.specification, self.bound_odds()
        if what.distance is None:
            key = "card.worked.nothing_left" if what.sure else "card.worked.unknown"
            return self.says(key, reason=what.reason)
        if what.log_odds is None:
            return self.says("card.worked.no_rule", measure=str(spec.output_premetric))
        even, rare = (_describe_belief(what, prior) for prior in (Fraction(1, 2), Fraction(1, 1000)))
        return self.says(
            "card.worked.example",
            example=self._describe_example(what),
            even=even,
            rare=_add_exception(rare, what.exception),
        )

    def _describe_example(self, what: OddsBound) -> Phrase:
        """Describe two data sets at the smallest distance, for the worked example."""
        counts = self.specification.input_premetric.unrestricted
        one, records = noun(what.changed, "one"), noun(what.changed, "records")
        # an exchange changes two records
        changed = (what.distance or 1) * (2 if isinstance(counts, Exchanges) else 1)
        number = spell_number(changed)
        if isinstance(counts, SymmetricDifference):
            if what.distance == 1:
                return Phrase("card.worked.in_or_out", one=one)
            if what.distance == 2:
                return Phrase("card.worked.another", one=one)
            return Phrase("card.worked.two_files", number=number, records=records)
        if changed == 1:
            return Phrase("card.worked.two_answers", one=one)
        if changed == 2 and len(what.moved) == 2:
            first, second = what.moved
            two = noun(what.changed, "two_differ")
            return Phrase("card.worked.which_goes_with", two_differ=two, first=first, second=second)
        return Phrase("card.worked.arranged", number=number, records=records)

    def warning(self) -> str:
        """Return the warning for a factor above 1,000 or where no limit is known, or an empty text."""
        what = self.bound_odds()
        if what.distance is None:
            return self.says("card.warning.nothing" if what.sure else "card.warning.unknown")
        return self.says("card.warning.near_certain") if what.near_certain else ""

    def banner(self) -> str:
        """Return the first line, that an office publishes nearly the truth and why, or an empty text."""
        found = (recognise(note) for note in self.specification.notes)
        accepted = [note for note in found if isinstance(note, Phrase) and note.key == "effect.accepted"]
        return " ".join(self.translate(note) for note in accepted)

    def notes(self) -> tuple[str, ...]:
        """Return the notes that must be read with the numbers, in the language of the card."""
        return tuple(self.translate(note) for note in self.all_notes())

    def all_notes(self) -> tuple[str, ...]:
        """Return the notes as phrases that can be written in every language."""
        varies = self.specification.varies
        by_universe: tuple[str, ...] = ()
        if varies is not None:
            words, universe = self._find_phrase(varies.words), self._find_phrase(varies.universe)
            by_universe = (Phrase("card.varies", words=words, universe=universe),)
        notes = map(self._label_note, (*by_universe, *self.specification.notes, *self.more_notes))
        return tuple(dict.fromkeys(notes))

    def _label_note(self, note: str) -> str:
        """Return a note with labels where it lists variables."""
        known = recognise(note) if self.labels else note
        if not isinstance(known, Phrase) or known.key != "swap.note.held":
            return note
        names = str(known.values["variables"]).split(", ")
        return Phrase(known.key, variables="; ".join(self.labels.get(name, name) for name in names))


def _describe_belief(what: OddsBound, prior: Fraction) -> Phrase:
    """Return what someone with that prior probability may come to believe, as the end of a sentence."""
    belief = what.belief(prior)
    if isinstance(belief, Phrase) and belief.key in ("card.chance.but_for", "card.chance.certain"):
        return Phrase("card.worked.almost")
    return Phrase("card.worked.reach", belief=belief)


def _add_exception(text: str, exception: str) -> str:
    """Add to a text the probability with which the statement may fail."""
    return Phrase("card.with_exception", text=text, exception=exception) if exception else text


def shorten(exact: str, most: int = 60) -> str:
    """Shorten an exact number so that it fits a line; spec.json has all of it."""
    return exact if len(exact) <= most else f"{exact[: most // 2]}…{exact[-most // 3 :]}"


# The card in its written forms: plain text, Markdown, and HTML from the templates beside this module.

_SCALE_WIDTH = 620  # the width of the drawn scale, in its own units
_SCALE_LEFT = 10


def _template(name: str) -> str:
    return (files("stirred.spec.card") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    # imported here: most commands write no page, and these templates take a third of their start
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from stirred.spec.card.template_cache import TemplateCache

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
        *_markdown_table(heads("card.head.part", "card.head.this"), card.rows(formal=False)),
    ]
    if card.signature:
        shown = [(name, value or "…") for name, value in card.signature]
        lines += ["", *_markdown_table(heads("card.sign.title", "card.head.this"), shown)]
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
    symbols = f"{card.says('card.notation')} {', '.join(f'`{one}`' for one in card.notation())}"
    lines += ["", *(f"- {escape_markdown(note)}" for note in card.notes()), f"- {symbols}"]
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


def marked_english(language: Language, source: str, shown: str) -> Markup:
    """Return a translated text, marked as English where the catalog lacks its source."""
    return escape(shown) if language.knows(source) else Markup('<span lang="en">{}</span>').format(shown)


def _build_view(card: CardContents) -> dict[str, object]:
    """Return everything that the template shows, as text."""
    spec, what, say, said = card.specification, card.bound_odds(), card.says, card.translate
    zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
    marked = partial(_mark_language, card.speech)
    untouched = [_build_line(say("card.part.untouched"), card.describe_untouched())] if spec.untouched else []
    return {
        "anchor": "card-" + hashlib.sha256(f"{card.title}{spec}".encode()).hexdigest()[:10],
        "banner": card.banner(),
        "title": card.heading,
        "subtitle": card.subtitle,
        "sentence": card.sentence(),
        "exact": [
            marked_english(card.speech, invariant.words(), shown)
            for invariant, shown in zip(spec.multiverse, card.list_exact(), strict=True)
        ],
        "signature": card.signature,
        "parts": [
            _build_line(say("card.part.domain"), spec.domain.label or spec.domain.name),
            *(
                []
                if list(spec.multiverse)
                else [_build_line(say("card.part.invariants"), say("card.nothing"))]
            ),
            *untouched,
            _build_line(
                say("card.part.unit"),
                said(describe_unit(spec.input_premetric)),
            ),
            _build_line(
                say("card.part.measure"),
                marked(describe_measure(spec.output_premetric)),
            ),
            _build_line(
                say("card.part.budget"),
                say("card.per_change_squared" if zcdp else "card.per_change"),
                strong=card.budget(),
            ),
            _build_line(say("card.part.distance"), card.nearness()),
        ],
        "notation": card.notation(),
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


def _build_line(name: str, words: str, *, items: Sequence[str] = (), strong: str = "") -> dict[str, object]:
    return {"name": name, "words": words, "items": items, "strong": strong}


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


# The card of a specification: as text, as Markdown and as one self-contained HTML page.


@dataclass(frozen=True, slots=True)
class Card(CardContents):
    """A specification with a title and all that a reader needs; ``at_least`` marks an incomplete total.

    ``language`` is "en", "de", "fr" or "es"; names and labels of the census stay as they are.
    """

    def text(self) -> str:
        """Return the card as text for a terminal."""
        return write_text(self)

    def markdown(self) -> str:
        """Return the card as Markdown."""
        return write_markdown(self)

    def html(self) -> str:
        """Return the card as one self-contained HTML page without scripts or outside files."""
        return page([self])

    def _repr_html_(self) -> str:
        return write_styled_fragment(self)


def page(
    cards: Sequence[Card],
    *,
    heading: str = "",
    lead: Sequence[str] = (),
    comparison: Comparison | None = None,
    language: str = "",
) -> str:
    """Return cards as one self-contained HTML page, with their comparison, in the language of the first card."""
    spoken = Language.of(language or (cards[0].language if cards else "en"))
    return render_page(cards, heading=heading, lead=lead, comparison=comparison, language=spoken)
