"""A language: its texts by key, its numbers, its lists."""

from collections.abc import Iterable
from dataclasses import dataclass

from stirred.errors import InputError, did_you_mean
from stirred.languages.catalog import CODES
from stirred.languages.numerals import Amount, Numerals, numerals
from stirred.languages.phrase import Phrase, Value, fill_text
from stirred.languages.recognition import recognise


@dataclass(frozen=True, slots=True)
class Language:
    """One of the languages that cards and reports are written in.

    >>> Language.of("de").number(1234.5, decimals=1)
    '1.234,5'
    >>> Language.of("de").say("card.status.proved")
    'bewiesen'
    """

    code: str

    @staticmethod
    def of(code: "str | Language") -> "Language":
        """Return the language of that code; refuse an unknown code."""
        if isinstance(code, Language):
            return code
        if code not in CODES:
            raise InputError(
                f"there is no language {code!r}",
                why=f"cards and reports are written in {', '.join(CODES)}",
                fix=did_you_mean(str(code), CODES),
            )
        return Language(code)

    @property
    def name(self) -> str:
        """Return the language's own name for itself."""
        return self.say("about.name")

    @property
    def is_english(self) -> bool:
        """Return whether plain texts, which are English, are in this language."""
        return self.code == "en"

    @property
    def numerals(self) -> Numerals:
        """Return how the language writes numbers."""
        return numerals(self.code)

    def say(self, key: str, /, **values: Value) -> str:
        """Return the text of a key with its values: phrases translated, integers grouped, tuples listed."""
        return fill_text(self.code, key, values)

    def translate(self, text: str) -> str:
        """Return a phrase in this language, also one read from a file; any other text stays as it is."""
        known = text if self.is_english else recognise(text)
        return fill_text(self.code, known.key, known.values) if isinstance(known, Phrase) else str(text)

    def knows(self, text: str) -> bool:
        """Return whether ``translate`` gives that text in this language."""
        return self.is_english or not text or isinstance(recognise(text), Phrase)

    def join_list(self, texts: Iterable[str]) -> str:
        """Join several texts in this language to one line."""
        return self.say("lists.semicolon").join(self.translate(text) for text in texts)

    def number(self, value: Amount, decimals: int | None = None) -> str:
        """Write a number for people, rounded to nearest."""
        return self.numerals.number(value, decimals)

    def upper(self, value: Amount, decimals: int = 4) -> str:
        """Write a budget or another upper bound for people; never rounded down."""
        return self.numerals.upper(value, decimals)

    def percent(self, share: Amount, decimals: int = 0) -> str:
        """Write a share in per cent: 0.05 is "5 %"."""
        return self.numerals.share(share, decimals)

    def write_number(self, plain: str) -> str:
        """Convert a number in English notation to this language's notation."""
        return self.numerals.localise(plain)
