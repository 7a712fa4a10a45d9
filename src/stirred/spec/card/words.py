"""The five parts of a specification in plain words, for people who publish or use tables."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from mpmath import mpf

from stirred.languages import Phrase, spelled, unit
from stirred.spec.card.factors import significant
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.numerals import digits
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.outputs.group import rounded_up
from stirred.spec.premetrics import InputPremetric, SymmetricDifference

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def status(name: str) -> Phrase:
    """How a budget is known, in words."""
    return Phrase(f"card.status.{name}")


def decimal(value: Decimal) -> Phrase:
    """A number for people: four decimals, rounded up; from 10⁹ on five significant digits.

    >>> decimal(Decimal("52.825422")), decimal(Decimal("272938796980.7720"))
    ('52.8255', '2.7294 × 10¹¹')
    """
    if value.is_infinite():
        return Phrase("numbers.plain", number="∞")
    if value >= 10**9:
        return significant(mpf(str(value)), 5, up=True)
    # more digits than any budget has, so that rounding to four decimals is the only rounding
    shown = value.quantize(Decimal("0.0001"), rounding=ROUND_CEILING, context=Context(prec=400))
    return Phrase("numbers.plain", number=shown)


def small(value: Fraction) -> Phrase:
    """A small probability such as δ; one of many digits is rounded up.

    >>> small(Fraction(1, 10**10)), small(Fraction(3, 100)), small(Fraction(371829, 10**12))
    ('10⁻¹⁰', '3/100', '3.72 × 10⁻⁷')
    """
    exponent = len(digits(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**exponent and exponent > 2:
        return Phrase("numbers.plain", number=f"10⁻{str(exponent).translate(_RAISED)}")
    if value.numerator >= 1000:
        shown = rounded_up(value, 3)
        if shown.adjusted() >= -4:
            return Phrase("numbers.plain", number=shown)
        power = f"⁻{str(-shown.adjusted()).translate(_RAISED)}"
        return Phrase("numbers.power", mantissa=shown.scaleb(-shown.adjusted()), power=power)
    return Phrase("numbers.plain", number=f"{digits(value.numerator)}/{digits(value.denominator)}")


def change(named: str, distance: int | None, premetric: InputPremetric, *, occurs: str = "") -> Phrase:
    """What happens at that distance, as the subject of a sentence.

    >>> from stirred.spec.premetrics import Hamming
    >>> change("household", 4, Hamming("household"))
    'a change of four household records (the smallest that can occur)'
    """
    if isinstance(premetric, Neighbours):
        return change(named, distance, premetric.inner, occurs=occurs)
    if distance is None:
        return Phrase("card.change.none")
    occurs = occurs or Phrase("distance.can_occur")
    records, number = unit(named, "records"), spelled(distance)
    if isinstance(premetric, SymmetricDifference):
        if distance == 1:
            return Phrase("card.change.presence", of_one=unit(named, "of_one"))
        if distance == 2:
            return Phrase("card.change.replacement", of_one=unit(named, "of_one"))
        return Phrase("card.change.come_or_go", number=number, records=records, occurs=occurs)
    if distance == 1:
        return Phrase("card.change.one", its_record=unit(named, "its_record"))
    if distance == 2:
        return Phrase("card.change.exchange", two=unit(named, "two"), occurs=occurs)
    return Phrase("card.change.several", number=number, records=records, occurs=occurs)


def measure(premetric: OutputPremetric) -> str:
    """How a change of the output is measured, in words."""
    if isinstance(premetric, Multiplicative):
        return Phrase("card.measure.pure")
    if isinstance(premetric, NormalizedRenyi):
        return Phrase("card.measure.zcdp")
    if isinstance(premetric, Approximate):
        return Phrase("card.measure.approximate", delta=small(premetric.delta))
    words = (type(premetric).__doc__ or str(premetric)).strip().splitlines()[0].rstrip(".")
    return words[:1].lower() + words[1:]


def counted(premetric: InputPremetric) -> Phrase:
    """What counts as one change, in words."""
    if isinstance(premetric, Neighbours):
        return Phrase("card.counted.neighbours", change=counted(premetric.inner))
    record = unit(premetric.unit, "one_record")
    if isinstance(premetric, SymmetricDifference):
        return Phrase("card.counted.added", one_record=record)
    copies = getattr(premetric, "copies", 1)
    if copies > 1:
        return Phrase("card.counted.copied", one_record=record, copies=str(copies))
    return Phrase("card.counted.changed", one_record=record)
