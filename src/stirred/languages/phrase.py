"""A text that can be said in every language: a key of the catalog with its values."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Self, TypeAlias

from stirred.languages.catalog import catalog
from stirred.languages.numerals import numerals

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
