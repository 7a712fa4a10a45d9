"""Numbers and names inside sentences: few digits, and labels for codes."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal

import polars as pl

from stirred.languages import Phrase, Value
from stirred.mechanisms.exhibits import rounded as rounded
from stirred.spec.card import Allowed

LN2 = Decimal(2).ln()


def percent(share: float, digits: int = 2) -> Decimal:
    """A share in per cent with few digits."""
    return rounded(100 * share, digits)


def tosses(log_odds: Decimal) -> int:
    """As many coin tosses called right in a row move the odds as far.

    >>> tosses(Decimal("2.0")), tosses(Decimal("0.7"))
    (3, 2)
    """
    return math.ceil(log_odds / LN2)


def relabelled(text: str, labels: Mapping[str, str]) -> str:
    """A text with labels for the names of variables; only names with an underscore, which are no words of a language.

    >>> relabelled("households by block_group × gq_type", {"gq_type": "type of group quarters"})
    'households by block group × type of group quarters'
    """
    if isinstance(text, Phrase):
        return Phrase(text.key, **{name: _relabelled(value, labels) for name, value in text.values.items()})

    def word(found: re.Match[str]) -> str:
        return labels.get(found[0]) or found[0].replace("_", " ")

    return re.sub(r"[A-Za-z]\w*_\w+", word, text)


Levels = Mapping[str, Mapping[str, str]]  # variable → code → label
_CONDITION = re.compile(r"\b(\w+) = (\w+(?: (?:or|oder|ou|o) \w+)*)")


def in_words(text: str, levels: Levels) -> str:
    """A text with labels for the codes of its conditions, where the codebook has them.

    >>> in_words("homes (kind = 2 or 3), b = 3", {"kind": {"2": "vacant", "3": "group quarters"}})
    'homes (kind = vacant or group quarters), b = 3'
    """

    def told(found: re.Match[str]) -> str:
        labels = levels.get(found[1], {})
        parts = found[2].split(" ")
        return f"{found[1]} = " + " ".join(
            labels.get(part, part) if place % 2 == 0 else part for place, part in enumerate(parts)
        )

    return _CONDITION.sub(told, text) if levels else text


def _relabelled(value: Value, labels: Mapping[str, str]) -> Value:
    if isinstance(value, tuple):
        return tuple(_relabelled(one, labels) for one in value)
    return relabelled(value, labels) if isinstance(value, str) else value


def reach() -> pl.Expr:
    """How far the truth can be from the estimate inside the stated interval, on the wider side."""
    below, above = pl.col("estimate") - pl.col("low"), pl.col("high") - pl.col("estimate")
    return pl.max_horizontal(below, above).alias("reach")


def excepted(words: str, what: Allowed) -> str:
    """A sentence about odds, followed by the probability with which they may be exceeded, where there is one."""
    if not what.exception:
        return words
    rarely = Phrase("report.first.learn.exception", exception=what.exception)
    return Phrase("report.two", first=words, second=rarely)
