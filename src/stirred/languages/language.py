"""Define a language: its texts by key, its numbers and lists; and find the phrase of an English text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache, reduce
from string import Formatter

from stirred.errors import InputError, did_you_mean
from stirred.languages.phrase import CODES, Amount, Numerals, Phrase, Value, catalog, fill_text, numerals

# Find the phrase of an English text, so that texts of files can be said in other languages too.
#
# Specifications, notes and checks are kept in files as English text. A text that is exactly what a text of the catalog
# gives for some values is that phrase; any other text stays as it is.

_MIN_LETTERS = 8  # letters that a text must have around its values, and a space: a single word may be a label of the census
_OWN = (
    "about.",
    "numbers.",
    "lists.",
    "unit.",
)  # parts of other texts, recognised by the name of their place
_WHOLE = re.compile(r"\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"-?\d{1,3}(,?\d{3})*\.\d+")

_CLASS = re.compile(
    r"(\d{1,3}(?:,\d{3})*)(?:–(\d{1,3}(?:,\d{3})*)|(\+|\u00A0?%))"
)  # a class of sizes, or a share

_CONDITION = re.compile(r"(?P<variable>\w+) = (?P<values>[^=]+)")


@lru_cache(maxsize=4096)
def recognise(text: str) -> str:
    """Return the phrase of an English text of two or more words, or the text itself.

    >>> recognise("published by others").key
    'card.status.published'
    >>> recognise("words of another package")
    'words of another package'
    >>> [recognise(text).key for text in ("57\u00a0%", "57%", "1,000–9,999", "10,000+")]
    ['guard.share', 'guard.share', 'numbers.span', 'numbers.above']
    """
    if isinstance(text, Phrase):
        return text
    if found := _CLASS.fullmatch(text):
        return _class(*(_whole(part) for part in found.groups()[:2]), sign=found[3])
    if " " not in text:
        return text
    for pattern, key in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            values = {name: _value(name, value) for name, value in found.groupdict().items()}
            if str(phrase := Phrase(key, **values)) == text:
                return phrase
    return text


def _value(name: str, text: str) -> Value:
    """Return a value of a phrase, from its English text and the name of its place."""
    if name == "count" or _WHOLE.fullmatch(text):
        return int(text.replace(",", "")) if text.replace(",", "").isdecimal() else text
    if _DECIMAL.fullmatch(text):
        return Decimal(text.replace(",", ""))
    if name in ("moved", "kept"):
        return tuple(re.split(r", | and ", text))
    if name == "condition" and (told := _CONDITION.fullmatch(text)):
        values = reduce(_either, told["values"].split(" or "))
        return Phrase("invariant.condition", variable=told["variable"], values=values)
    noun = _nouns().get((name, text))
    return Phrase(noun) if noun else recognise(text)


def _whole(text: str | None) -> int:
    return int((text or "0").replace(",", ""))


def _class(low: int, high: int, *, sign: str | None) -> Phrase:
    """Return a class of sizes or a share as a phrase, so that each language writes its numbers."""
    if sign is None:
        return Phrase("numbers.span", low=low, high=high)
    return Phrase("guard.share" if sign.endswith("%") else "numbers.above", number=low)


def _either(first: str, second: str) -> str:
    return Phrase("lists.either", first=first, second=second)


@cache
def _nouns() -> dict[tuple[str, str], str]:
    """Return the key of each form of a unit or number word, by the name of its place and its English text."""
    found = {}
    for key, text in catalog("en").items():
        if key.startswith("unit.") and not key.startswith("unit.other."):
            form = key.rpartition(".")[2]
            found[form, str(text)] = key
            if form in ("ones", "records"):
                found["subject", str(text)] = key
        elif key.startswith("lists.words."):
            found["number", str(text)] = key
    return found


def _forms(place: str) -> list[str]:
    """Return the English nouns that may stand in a place that is named after a form of a unit."""
    return sorted(
        (text for name, text in _nouns() if name == place and place != "number"), key=len, reverse=True
    )


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the texts of the catalog as patterns, those with most letters first."""
    found: list[tuple[int, str, str]] = []
    for key, entry in catalog("en").items():
        if key.startswith(_OWN):
            continue
        for text in [entry] if isinstance(entry, str) else [entry["one"], entry["other"]]:
            letters, pattern = 0, ""
            named: set[str] = set()
            for literal, name, _, _ in Formatter().parse(text):
                letters += sum(map(str.isalpha, literal))
                pattern += re.escape(literal)
                if name in named:
                    pattern += f"(?P={name})"
                elif name is not None:
                    nouns = _forms(name)
                    letters += min(map(len, nouns), default=0)
                    inside = "|".join(map(re.escape, nouns)) if nouns else ".+?"
                    pattern += f"(?P<{name}>{inside})"
                    named.add(name)
            if letters >= _MIN_LETTERS:
                found.append((letters, pattern, key))
    return tuple((re.compile(pattern, re.DOTALL), key) for _, pattern, key in sorted(found, reverse=True))


# A language: its texts by key, its numbers, its lists.


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

    def write_cell(self, text: str) -> str:
        """Write a cell of a column of numbers: a phrase translated, a plain number in this language's notation."""
        known = isinstance(text, Phrase) if self.is_english else self.knows(text)
        return self.translate(text) if known else self.write_number(text)

    def write_number(self, plain: str) -> str:
        """Convert a number in English notation to this language's notation."""
        return self.numerals.localise(plain)
