"""A language: its texts by key, its numbers, its lists."""

from collections.abc import Iterable
from dataclasses import dataclass

from stirred.errors import InputError, did_you_mean
from stirred.languages.catalog import CODES
from stirred.languages.numerals import Amount, Numerals, numerals
from stirred.languages.phrase import Phrase, Value, filled
from stirred.languages.recognition import recognised


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
        """The language of that code; an unknown code is refused."""
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
        """Its own name for itself."""
        return self.say("about.name")

    @property
    def is_english(self) -> bool:
        """Whether plain texts, which are English, are in this language."""
        return self.code == "en"

    @property
    def numerals(self) -> Numerals:
        """How it writes numbers."""
        return numerals(self.code)

    def say(self, key: str, /, **values: Value) -> str:
        """The text of a key with its values; phrases among them are translated, integers grouped, tuples listed."""
        return filled(self.code, key, values)

    def translated(self, text: str) -> str:
        """A phrase in this language, also one that was read from a file; any other text as it is."""
        known = text if self.is_english else recognised(text)
        return filled(self.code, known.key, known.values) if isinstance(known, Phrase) else str(text)

    def knows(self, text: str) -> bool:
        """Whether ``translated`` gives that text in this language."""
        return self.is_english or not text or isinstance(recognised(text), Phrase)

    def listed(self, texts: Iterable[str]) -> str:
        """Several texts in this language, in one line."""
        return self.say("lists.semicolon").join(self.translated(text) for text in texts)

    def number(self, value: Amount, decimals: int | None = None) -> str:
        """A number for people, rounded to nearest."""
        return self.numerals.number(value, decimals)

    def upper(self, value: Amount, decimals: int = 4) -> str:
        """A budget or another upper bound for people: never rounded down."""
        return self.numerals.upper(value, decimals)

    def percent(self, share: Amount, decimals: int = 0) -> str:
        """A share in per cent: 0.05 is "5 %"."""
        return self.numerals.share(share, decimals)

    def written(self, plain: str) -> str:
        """A number that is already written the English way, as this language writes it."""
        return self.numerals.written(plain)
