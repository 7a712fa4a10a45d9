"""Write phrases, numbers and units in every language, from one catalog file for each language."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Self, TypeAlias

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
