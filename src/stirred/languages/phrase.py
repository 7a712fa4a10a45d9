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
    """An English text that knows its key and values, so that another language can say it too.

    >>> text = Phrase("card.status.published")
    >>> str(text), filled("fr", text.key, text.values)
    ('published by others', 'publié par des tiers')
    """

    __slots__ = ("key", "values")

    key: str
    values: Mapping[str, Value]

    def __new__(cls, key: str, /, **values: Value) -> Self:
        self = super().__new__(cls, filled("en", key, values))
        self.key, self.values = key, values
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Phrase, self.key, **self.values), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def filled(code: str, key: str, values: Mapping[str, Value]) -> str:
    """The text of a key in one language; a key that the language lacks is an error, never a text in another one."""
    texts = catalog(code)
    text = texts[key]
    if not isinstance(text, str):
        few = str(texts["numbers.one"]).split()
        text = text["one" if str(values["count"]) in few else "other"]
    return text.format_map({name: _shown(code, value) for name, value in values.items()})


def _shown(code: str, value: Value) -> str:
    if isinstance(value, Phrase):
        return filled(code, value.key, value.values)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return _listed(code, [_shown(code, one) for one in value])
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise TypeError(f"a text takes words and exact numbers, not {type(value).__name__}")
    return numerals(code).number(value)


def _listed(code: str, words: list[str]) -> str:
    """A list as a person says it."""
    if len(words) < 2:
        return "".join(words)
    texts = catalog(code)
    return f"{str(texts['lists.comma']).join(words[:-1])}{texts['lists.and']}{words[-1]}"
