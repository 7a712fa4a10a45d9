"""Numbers and names inside sentences: few digits, and labels for codes."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal

import polars as pl

from stirred.languages import Phrase, Value
from stirred.mechanisms.exhibits import round_digits as round_digits
from stirred.spec.card import OddsBound

LN2 = Decimal(2).ln()


def percent(share: float, digits: int = 2) -> Decimal:
    """Return a share in per cent with few digits."""
    return round_digits(100 * share, digits)


def count_tosses(log_odds: Decimal) -> int:
    """Return the number of consecutive correct coin calls with the same log-odds.

    >>> count_tosses(Decimal("2.0")), count_tosses(Decimal("0.7"))
    (3, 2)
    """
    return math.ceil(log_odds / LN2)


def relabel(text: str, labels: Mapping[str, str]) -> str:
    """Replace names of variables by labels; only names with an underscore, which are no words.

    >>> relabel("households by block_group × gq_type", {"gq_type": "type of group quarters"})
    'households by block group × type of group quarters'
    """
    if isinstance(text, Phrase):
        return Phrase(
            text.key, **{name: _relabel_value(value, labels) for name, value in text.values.items()}
        )

    def word(found: re.Match[str]) -> str:
        return labels.get(found[0]) or found[0].replace("_", " ")

    return re.sub(r"[A-Za-z]\w*_\w+", word, text)


Levels = Mapping[str, Mapping[str, str]]  # variable → code → label
_CONDITION = re.compile(r"\b(\w+) = (\w+(?: (?:or|oder|ou|o) \w+)*)")


def label_codes(text: str, levels: Levels) -> str:
    """Replace the codes of conditions in a text by labels, where the codebook has them.

    >>> label_codes("homes (kind = 2 or 3), b = 3", {"kind": {"2": "vacant", "3": "group quarters"}})
    'homes (kind = vacant or group quarters), b = 3'
    """

    def told(found: re.Match[str]) -> str:
        labels = levels.get(found[1], {})
        parts = found[2].split(" ")
        return f"{found[1]} = " + " ".join(
            labels.get(part, part) if place % 2 == 0 else part for place, part in enumerate(parts)
        )

    return _CONDITION.sub(told, text) if levels else text


def _relabel_value(value: Value, labels: Mapping[str, str]) -> Value:
    if isinstance(value, tuple):
        return tuple(_relabel_value(one, labels) for one in value)
    return relabel(value, labels) if isinstance(value, str) else value


def interval_reach() -> pl.Expr:
    """Return how far the truth can be from the estimate inside the interval, on the wider side."""
    below, above = pl.col("estimate") - pl.col("low"), pl.col("high") - pl.col("estimate")
    return pl.max_horizontal(below, above).alias("reach")


def add_exception(words: str, what: OddsBound) -> str:
    """Add to a sentence about odds the probability that they are exceeded, where there is one."""
    if not what.exception:
        return words
    rarely = Phrase("report.first.learn.exception", exception=what.exception)
    return Phrase("report.two", first=words, second=rarely)
