"""What a card says: the sentence, the table, the worked example, the warning and the notes."""

from dataclasses import dataclass, field
from fractions import Fraction

from stirred.languages import Language, Phrase, recognised, spelled
from stirred.languages import unit as noun
from stirred.spec.card.odds import DELTA, Allowed, allowed
from stirred.spec.card.words import counted, decimal, measure, small, status
from stirred.spec.invariants.brief import brief
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
    """A specification with a title and all it takes to read it; ``at_least`` marks a total that leaves releases out."""

    specification: Specification
    title: str = ""  # empty: "Specification"
    subtitle: str = ""
    delta: Fraction = DELTA
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
        """The language it is written in."""
        return Language.of(self.language)

    def says(self, key: str, /, **values: str) -> str:
        """The text of a key in its language."""
        return self.speech.say(key, **values)

    def translated(self, text: str) -> str:
        """A text in its language; one that is not in the catalog stays as it is."""
        return self.speech.translated(text)

    def _known(self, text: str) -> str:
        """A text of a file as a phrase, where the catalog has it; English needs none."""
        return text if self.speech.is_english else recognised(text)

    @property
    def heading(self) -> str:
        """The title; one from the catalog is translated, one that people wrote is not."""
        return self.translated(self.title) if isinstance(self.title, Phrase) else self.title

    def allowed(self) -> Allowed:
        """What the budget allows at the smallest distance that occurs."""
        return allowed(self.specification, delta=self.delta, distance=self.distance)

    def budget(self) -> str:
        """The budget with its letter, four decimals, rounded up: ρ² for zCDP (the usual parameter), ε otherwise."""
        return self.translated(self.shown_budget())

    def shown_budget(self) -> Phrase:
        """The budget for every language."""
        spec = self.specification
        zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
        number = decimal((spec.rho_squared if zcdp else spec.budget).upper(4))
        letter = "ρ²" if zcdp else spec.output_premetric.budget_symbol
        return Phrase("card.budget", letter=letter, relation="≥" if self.at_least else "=", number=number)

    def sentence(self) -> str:
        """The specification as one sentence a data user understands."""
        spec, what = self.specification, self.allowed()
        kept = tuple(self._known(brief(invariant, spec.domain)) for invariant in spec.multiverse)
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
        return self.says(key, among=among, change=what.change, factor=_but(what.factor, what.exception))

    def rows(self) -> tuple[tuple[str, str], ...]:
        """The five parts, what they allow and how we know, as a table of two columns."""
        return tuple((self.translated(name), self.translated(text)) for name, text in self._rows())

    def _rows(self) -> tuple[tuple[str, str], ...]:
        spec, what = self.specification, self.allowed()
        exact = spec.rho_squared if isinstance(spec.output_premetric, NormalizedRenyi) else spec.budget
        odds = Phrase("card.odds.factor", factor=what.factor, distance=str(what.distance))
        if what.distance is None:
            odds = Phrase("card.odds.nothing" if what.sure else "card.odds.unknown")
        elif what.log_odds is None:
            odds = Phrase("card.odds.no_rule", measure=str(spec.output_premetric))
        elif what.exception:
            odds = Phrase("lists.comma_pair", first=odds, second=what.exception)
        kept = self.speech.listed([invariant.words() for invariant in spec.multiverse])
        exact_too = ((Phrase("card.row.untouched"), self.untouched()),) if spec.untouched else ()
        errs = what.error[:1].isdigit()
        unit, measured = (
            Phrase("lists.comma_pair", first=words, second=str(formal))
            for words, formal in (
                (counted(spec.input_premetric), spec.input_premetric),
                (measure(spec.output_premetric), spec.output_premetric),
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
                Phrase("card.budget_exactly", budget=self.shown_budget(), exact=shortened(exact.exact)),
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
        words, source = self.translated(status(self.specification.evidence.status)), self.source()
        return f"{words}: {source}".rstrip(": ")

    def source(self) -> str:
        """Where the budget is known from."""
        return self.speech.listed(self.specification.evidence.source.split("; "))

    def untouched(self) -> str:
        """The records that are released exactly."""
        return self.says("card.untouched", records=self.speech.listed(self.specification.untouched))

    def nearness(self) -> str:
        """The smallest distance between two data sets that the release tells apart, and why it is that one."""
        what = self.allowed()
        distance = Phrase("card.none") if what.distance is None else str(what.distance)
        return self.says("card.nearness", distance=distance, reason=what.reason)

    def readings(self) -> tuple[tuple[int, str, str, str], ...]:
        """(distance, δ, simple ε, tight ε) of a zCDP budget at distances 1, 2 and the smallest; else none."""
        spec = self.specification
        if not isinstance(spec.output_premetric, NormalizedRenyi) or not spec.budget.is_finite:
            return ()
        delta = self.translated(small(self.delta))
        return tuple(
            (distance, delta, self._read(distance), self._read(distance, tight=True))
            for distance in sorted({1, 2, self.allowed().distance or 1})
        )

    def _read(self, distance: int, *, tight: bool = False) -> str:
        rho_squared = self.specification.rho_squared
        epsilon = rho_squared_to_epsilon(rho_squared, self.delta, distance=distance, tight=tight)
        return self.translated(decimal(epsilon))

    def epsilon(self) -> Phrase | None:
        """The simple ε of a zCDP budget between neighbours; None where there is no such reading."""
        if not self.readings():
            return None
        return decimal(rho_squared_to_epsilon(self.specification.rho_squared, self.delta, distance=1))

    def worked(self) -> str:
        """One worked household (or person): what someone could at most believe afterwards."""
        spec, what = self.specification, self.allowed()
        if what.distance is None:
            key = "card.worked.nothing_left" if what.sure else "card.worked.unknown"
            return self.says(key, reason=what.reason)
        if what.log_odds is None:
            return self.says("card.worked.no_rule", measure=str(spec.output_premetric))
        even, rare = what.belief(Fraction(1, 2)), what.belief(Fraction(1, 1000))
        rare = Phrase("card.worked.at_most", belief=rare)
        return self.says(
            "card.worked.example", example=self._example(what), even=even, rare=_but(rare, what.exception)
        )

    def _example(self, what: Allowed) -> Phrase:
        """Two data sets at the smallest distance, and someone who does not know which of them it was."""
        counts = self.specification.input_premetric.unrestricted
        one, records = noun(what.changed, "one"), noun(what.changed, "records")
        number = spelled(what.distance or 1)
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
        """What to say above a factor of 1,000: the bound alone does not prevent near-certainty."""
        what = self.allowed()
        if what.distance is None:
            return self.says("card.warning.nothing" if what.sure else "card.warning.unknown")
        return self.says("card.warning.near_certain") if what.near_certain else ""

    def banner(self) -> str:
        """Return what stands on the first line: that an office publishes nearly the truth, with its reason; else nothing."""
        found = (recognised(note) for note in self.specification.notes)
        accepted = [note for note in found if isinstance(note, Phrase) and note.key == "effect.accepted"]
        return " ".join(self.translated(note) for note in accepted)

    def notes(self) -> tuple[str, ...]:
        """What must be read with the numbers."""
        return tuple(self.translated(note) for note in self.all_notes())

    def all_notes(self) -> tuple[str, ...]:
        """The notes for every language."""
        varies = self.specification.varies
        by_universe: tuple[str, ...] = ()
        if varies is not None:
            words, universe = self._known(varies.words), self._known(varies.universe)
            by_universe = (Phrase("card.varies", words=words, universe=universe),)
        return tuple(dict.fromkeys((*by_universe, *self.specification.notes, *self.more_notes)))


def _but(text: str, exception: str) -> str:
    """A text with the probability with which it may fail."""
    return Phrase("card.with_exception", text=text, exception=exception) if exception else text


def shortened(exact: str, most: int = 60) -> str:
    """An exact number that fits a line; spec.json has all of it."""
    return exact if len(exact) <= most else f"{exact[: most // 2]}…{exact[-most // 3 :]}"
