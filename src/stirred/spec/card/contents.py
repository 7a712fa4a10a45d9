"""What a card says: the sentence, the table, the worked example, the warning and the notes."""

from dataclasses import dataclass, field
from fractions import Fraction

from stirred.languages import Language, Phrase, recognise, spell_number
from stirred.languages import unit as noun
from stirred.spec.card.odds import DEFAULT_DELTA, OddsBound, bound_odds
from stirred.spec.card.words import (
    describe_measure,
    describe_status,
    describe_unit,
    write_decimal,
    write_small,
)
from stirred.spec.invariants.brief import abbreviate
from stirred.spec.outputs.divergences import NormalizedRenyi, rho_squared_to_epsilon
from stirred.spec.premetrics import SymmetricDifference
from stirred.spec.specification import Specification


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
        """Return how far the budget lets odds move at the smallest distance that occurs."""
        return bound_odds(self.specification, delta=self.delta, distance=self.distance)

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
        """Return the specification as one sentence for data users."""
        spec, what = self.specification, self.bound_odds()
        kept = tuple(self._find_phrase(abbreviate(invariant, spec.domain)) for invariant in spec.multiverse)
        among = Phrase("card.sentence.among", kept=kept) if kept else Phrase("card.sentence.any_data")
        if what.distance is None:
            key = "card.sentence.single" if what.sure else "card.sentence.unknown"
            return self.says(key, among=among, reason=what.reason)
        if what.log_odds is not None and what.log_odds.is_infinite():
            return self.says("card.sentence.no_limit", among=among, change=what.change)
        if what.log_odds is None:
            measured, budget = str(spec.output_premetric), self.shown_budget()
            return self.says(
                "card.sentence.moves", among=among, change=what.change, budget=budget, measure=measured
            )
        key = "card.sentence.known_bounds" if self.at_least else "card.sentence.odds"
        return self.says(
            key, among=among, change=what.change, factor=_add_exception(what.factor, what.exception)
        )

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return a table of two columns: the five parts, what they allow and how the budget is known."""
        return tuple((self.translate(name), self.translate(text)) for name, text in self._rows())

    def _rows(self) -> tuple[tuple[str, str], ...]:
        spec, what = self.specification, self.bound_odds()
        exact = spec.rho_squared if isinstance(spec.output_premetric, NormalizedRenyi) else spec.budget
        odds = Phrase("card.odds.factor", factor=what.factor, distance=str(what.distance))
        if what.distance is None:
            odds = Phrase("card.odds.nothing" if what.sure else "card.odds.unknown")
        elif what.log_odds is None:
            odds = Phrase("card.odds.no_rule", measure=str(spec.output_premetric))
        elif what.exception:
            odds = Phrase("lists.comma_pair", first=odds, second=what.exception)
        kept = self.speech.join_list([invariant.words() for invariant in spec.multiverse])
        exact_too = ((Phrase("card.row.untouched"), self.describe_untouched()),) if spec.untouched else ()
        errs = what.error[:1].isdigit()
        unit, measured = (
            Phrase("lists.comma_pair", first=words, second=str(formal))
            for words, formal in (
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
        even, rare = what.belief(Fraction(1, 2)), what.belief(Fraction(1, 1000))
        rare = Phrase("card.worked.at_most", belief=rare)
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
        number = spell_number(what.distance or 1)
        if isinstance(counts, SymmetricDifference):
            if what.distance == 1:
                return Phrase("card.worked.in_or_out", one=one)
            if what.distance == 2:
                return Phrase("card.worked.another", one=one)
            return Phrase("card.worked.two_files", number=number, records=records)
        if what.distance == 1:
            return Phrase("card.worked.two_answers", one=one)
        if what.distance == 2 and len(what.moved) == 2:
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
        return tuple(dict.fromkeys((*by_universe, *self.specification.notes, *self.more_notes)))


def _add_exception(text: str, exception: str) -> str:
    """Add to a text the probability with which the statement may fail."""
    return Phrase("card.with_exception", text=text, exception=exception) if exception else text


def shorten(exact: str, most: int = 60) -> str:
    """Shorten an exact number so that it fits a line; spec.json has all of it."""
    return exact if len(exact) <= most else f"{exact[: most // 2]}…{exact[-most // 3 :]}"
