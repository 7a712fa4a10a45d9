"""The five parts of a specification in plain words, for people who publish or use tables."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from mpmath import mpf

from stirred.languages import Phrase
from stirred.spec.card.factors import significant
from stirred.spec.nearest.distance import spelled
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.numerals import digits
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.outputs.group import rounded_up
from stirred.spec.premetrics import InputPremetric, SymmetricDifference

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
STATUS = {
    status: Phrase(f"card.status.{status}") for status in ("proved", "published", "estimated", "unknown")
}


def decimal(value: Decimal) -> str:
    """A number for people: four decimals, rounded up; from 10⁹ on five significant digits.

    >>> decimal(Decimal("52.825422")), decimal(Decimal("272938796980.7720"))
    ('52.8255', '2.7294 × 10¹¹')
    """
    if value.is_infinite():
        return "∞"
    if value >= 10**9:
        return significant(mpf(str(value)), 5, up=True)
    # more digits than any budget has, so that rounding to four decimals is the only rounding
    return f"{value.quantize(Decimal('0.0001'), rounding=ROUND_CEILING, context=Context(prec=400)):,}"


def small(value: Fraction) -> str:
    """A small probability such as δ; one of many digits is rounded up.

    >>> small(Fraction(1, 10**10)), small(Fraction(3, 100)), small(Fraction(371829, 10**12))
    ('10⁻¹⁰', '3/100', '3.72 × 10⁻⁷')
    """
    exponent = len(digits(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**exponent and exponent > 2:
        return f"10⁻{str(exponent).translate(_RAISED)}"
    if value.numerator >= 1000:
        shown = rounded_up(value, 3)
        if shown.adjusted() >= -4:
            return f"{shown:f}"
        return f"{shown.scaleb(-shown.adjusted())} × 10⁻{str(-shown.adjusted()).translate(_RAISED)}"
    return f"{digits(value.numerator)}/{digits(value.denominator)}"


def change(
    unit: str, distance: int | None, premetric: InputPremetric, *, occurs: str = "that can occur"
) -> str:
    """What happens at that distance, as the subject of a sentence.

    >>> from stirred.spec.premetrics import Hamming
    >>> change("household", 4, Hamming("household"))
    'a change of four household records (the smallest that can occur)'
    """
    if isinstance(premetric, Neighbours):
        return change(unit, distance, premetric.inner, occurs=occurs)
    if distance is None:
        return "no change at all"
    if isinstance(premetric, SymmetricDifference):
        if distance <= 2:
            one = distance == 1
            return (
                f"the presence or absence of one {unit}"
                if one
                else f"the replacement of one {unit} by another"
            )
        return f"a change in which {spelled(distance)} {unit} records come or go (the smallest {occurs})"
    if distance == 1:
        return f"a change of one {unit}'s record"
    if distance == 2:
        return f"an exchange between two {unit}s (the smallest change {occurs})"
    return f"a change of {spelled(distance)} {unit} records (the smallest {occurs})"


def measure(premetric: OutputPremetric) -> str:
    """How a change of the output is measured, in words."""
    if isinstance(premetric, Multiplicative):
        return "the largest ratio between the probabilities of any result (pure differential privacy)"
    if isinstance(premetric, NormalizedRenyi):
        return "the normalized Rényi distance (zero-concentrated differential privacy, zCDP)"
    if isinstance(premetric, Approximate):
        return (
            f"the ratio of probabilities, but for a part of δ = {small(premetric.delta)} between neighbours, and more at "
            "larger distances (approximate differential privacy)"
        )
    words = (type(premetric).__doc__ or str(premetric)).strip().splitlines()[0].rstrip(".")
    return words[:1].lower() + words[1:]


def counted(premetric: InputPremetric) -> str:
    """What counts as one change, in words."""
    if isinstance(premetric, Neighbours):
        return f"{counted(premetric.inner)}, and no other change"
    unit = premetric.unit
    if isinstance(premetric, SymmetricDifference):
        return f"one {unit} record added or removed"
    copies = getattr(premetric, "copies", 1)
    text = f"one {unit} record changed"
    if copies > 1:
        text += f", for a contributor whose answers were copied into up to {copies} records by imputation"
    return text
