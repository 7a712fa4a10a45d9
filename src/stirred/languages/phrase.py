"""Write phrases, numbers and units in every language, from one catalog file for each language.

A *language* has its texts by key, its numbers and lists; the phrase of an English text is found by its words.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial, reduce
from importlib.resources import files
from string import Formatter
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from stirred.errors import InputError, did_you_mean

# The catalog files: one TOML file per language, read once, its tables joined to dotted keys.

CODES = ("en", "de", "fr", "es")
FORMS = {"one", "other"}  # the forms of a text that counts something

Entry = str | dict[str, str]
Catalog = MappingProxyType[str, Entry]


@cache
def catalog(code: str) -> Catalog:
    """Return all texts of a language by dotted key; a text that counts has the forms ``one`` and ``other``.

    >>> catalog("de")["about.name"]
    'Deutsch'
    """
    text = (files("stirred.languages") / f"{code}.toml").read_text(encoding="utf-8")
    return MappingProxyType(dict(_flat(tomllib.loads(text), "")))


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Entry]]:
    for name, value in table.items():
        if isinstance(value, dict) and set(value) != FORMS:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


# Numbers as a language writes them: separators, percent signs, and bounds that are rounded up.

_EXACT = Context(prec=400)  # more digits than any budget has, so that one rounding is the only one
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

Amount = int | float | Decimal | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerals:
    """The separators of a language; ``percent`` is what stands after a number of per cent."""

    thousands: str
    decimal: str
    percent: str

    def localise(self, plain: str) -> str:
        """Convert a number with commas and a point to this language's notation.

        >>> Numerals(thousands=".", decimal=",", percent=" %").localise("-1,234.5")
        '−1.234,5'
        """
        swapped = self.thousands.join(part.replace(".", self.decimal) for part in plain.split(","))
        return re.sub(r"-(?=[\d∞])", "−", swapped)

    def number(self, value: Amount, decimals: int | None = None) -> str:
        """Write a number with that many decimals, rounded to nearest; by default with the digits it has."""
        if isinstance(value, float) and decimals is None:
            value = Decimal(repr(value))
        return self.localise(_plain(value, decimals, ROUND_HALF_EVEN))

    def upper(self, value: Amount, decimals: int = 4) -> str:
        """Write a bound, rounded up; from 10⁹ on with five significant digits."""
        exact = _decimal(value, decimals, ROUND_CEILING)
        if exact.is_finite() and exact >= 10**9:
            return self.scientific(exact, 5)
        return self.localise(_plain(value, decimals, ROUND_CEILING))

    def scientific(self, value: Decimal, digits: int) -> str:
        """Write a large bound as mantissa and power of ten, rounded up to that many digits."""
        rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(value)
        power = str(rounded.adjusted()).translate(_RAISED)
        return f"{self.localise(str(rounded.scaleb(-rounded.adjusted())))} × 10{power}"

    def share(self, value: Amount, decimals: int = 0) -> str:
        """Write a share between 0 and 1 in per cent."""
        hundred = value * 100 if isinstance(value, int | Fraction) else Decimal(str(value)) * 100
        return self.number(hundred, decimals) + self.percent


@cache
def numerals(code: str) -> Numerals:
    """Return how a language writes numbers, from its catalog."""
    texts = catalog(code)
    return Numerals(
        thousands=str(texts["numbers.thousands"]),
        decimal=str(texts["numbers.decimal"]),
        percent=str(texts["numbers.percent"]),
    )


def _decimal(value: Amount, decimals: int, rounding: str) -> Decimal:
    """Return the value with that many decimals, rounded once."""
    if isinstance(value, Fraction):
        scaled = value * 10**decimals
        up = rounding == ROUND_CEILING
        whole = -((-scaled.numerator) // scaled.denominator) if up else round(scaled)
        return _EXACT.scaleb(Decimal(whole), -decimals)
    exact = Decimal(value)
    return exact.quantize(Decimal(1).scaleb(-decimals), rounding, _EXACT) if exact.is_finite() else exact


def _plain(value: Amount, decimals: int | None, rounding: str) -> str:
    """Write the value with commas and a point."""
    if decimals is not None:
        shown = _decimal(value, decimals, rounding)
    elif isinstance(value, Fraction):
        below = f"/{value.denominator:,}" if value.denominator > 1 else ""
        return f"{value.numerator:,}{below}"
    else:
        shown = Decimal(value)
    if not shown.is_finite():
        return "–" if shown.is_nan() else "∞" if shown > 0 else "-∞"
    return f"{shown:,f}"


# A text that can be said in every language: a key of the catalog with its values.

# phrases are translated, integers grouped, decimals and fractions shown with all their digits, tuples listed with "and"
Value: TypeAlias = "str | int | Decimal | Fraction | tuple[Value, ...]"


class Phrase(str):
    """An English text with its key and values, so that it can be translated.

    >>> text = Phrase("card.status.published")
    >>> str(text), fill_text("fr", text.key, text.values)
    ('published by others', 'publié par des tiers')
    """

    __slots__ = ("key", "values")

    key: str
    values: Mapping[str, Value]

    def __new__(cls, key: str, /, **values: Value) -> Self:
        self = super().__new__(cls, fill_text("en", key, values))
        self.key, self.values = key, values
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Phrase, self.key, **self.values), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def fill_text(code: str, key: str, values: Mapping[str, Value]) -> str:
    """Return the text of a key in one language; raise an error where the language lacks the key."""
    texts = catalog(code)
    text = texts[key]
    if not isinstance(text, str):
        few = str(texts["numbers.one"]).split()
        text = text["one" if str(values["count"]) in few else "other"]
    return text.format_map({name: _write_value(code, value) for name, value in values.items()})


def _write_value(code: str, value: Value) -> str:
    if isinstance(value, Phrase):
        return fill_text(code, value.key, value.values)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return _join_words(code, [_write_value(code, one) for one in value])
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise TypeError(f"a text takes words and exact numbers, not {type(value).__name__}")
    return numerals(code).number(value)


def _join_words(code: str, words: list[str]) -> str:
    """Join words to a list, as a person says it."""
    if len(words) < 2:
        return "".join(words)
    texts = catalog(code)
    return f"{str(texts['lists.comma']).join(words[:-1])}{texts['lists.and']}{words[-1]}"


# What is protected, as nouns: a household, two persons, a household record, in every language.

MAX_SPELLED_NUMBER = 10  # numbers up to here are written as words


def unit(name: str, form: str) -> Phrase:
    """Return a form of the noun for a unit or record type; an unknown name stays as it is.

    >>> unit("household", "records"), unit("firm", "records")
    ('household records', 'firm records')
    """
    key = f"unit.{name}.{form}"
    if key in catalog("en"):
        return Phrase(key)
    return Phrase(f"unit.other.{form}", unit=name, units=name if name.endswith("s") else name + "s")


def spell_number(number: int) -> Value:
    """Return a small number as a word, a larger one in digits.

    >>> spell_number(4), spell_number(16)
    ('four', '16')
    """
    return Phrase(f"lists.words.{number}") if 0 <= number <= MAX_SPELLED_NUMBER else str(number)


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
