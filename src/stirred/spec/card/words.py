"""The five parts of a specification in plain words, for people who publish or use tables."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from mpmath import mpf

from stirred.languages import Phrase, spell_number, unit
from stirred.spec.card.factors import write_significant
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.numerals import write_digits
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.outputs.group import round_up_digits
from stirred.spec.premetrics import InputPremetric, SymmetricDifference

_SUPERSCRIPT_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def describe_status(name: str) -> Phrase:
    """Return in words how a budget is known."""
    return Phrase(f"card.status.{name}")


def write_decimal(value: Decimal) -> Phrase:
    """Write a number with four decimals, rounded up; from 10⁹ on with five significant digits.

    >>> write_decimal(Decimal("52.825422")), write_decimal(Decimal("272938796980.7720"))
    ('52.8255', '2.7294 × 10¹¹')
    """
    if value.is_infinite():
        return Phrase("numbers.plain", number="∞")
    if value >= 10**9:
        return write_significant(mpf(str(value)), 5, up=True)
    # more digits than any budget has, so that rounding to four decimals is the only rounding
    shown = value.quantize(Decimal("0.0001"), rounding=ROUND_CEILING, context=Context(prec=400))
    return Phrase("numbers.plain", number=shown)


def write_small(value: Fraction) -> Phrase:
    """Write a small probability such as δ; one of many digits is rounded up.

    >>> write_small(Fraction(1, 10**10)), write_small(Fraction(3, 100)), write_small(Fraction(371829, 10**12))
    ('10⁻¹⁰', '3/100', '3.72 × 10⁻⁷')
    """
    exponent = len(write_digits(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**exponent and exponent > 2:
        return Phrase("numbers.plain", number=f"10⁻{str(exponent).translate(_SUPERSCRIPT_DIGITS)}")
    if value.numerator >= 1000:
        shown = round_up_digits(value, 3)
        if shown.adjusted() >= -4:
            return Phrase("numbers.plain", number=shown)
        power = f"⁻{str(-shown.adjusted()).translate(_SUPERSCRIPT_DIGITS)}"
        return Phrase("numbers.power", mantissa=shown.scaleb(-shown.adjusted()), power=power)
    return Phrase(
        "numbers.plain", number=f"{write_digits(value.numerator)}/{write_digits(value.denominator)}"
    )


def describe_change(
    named: str, distance: int | None, premetric: InputPremetric, *, occurs: str = ""
) -> Phrase:
    """Describe the change at that distance, as the subject of a sentence.

    >>> from stirred.spec.premetrics import Hamming
    >>> describe_change("household", 4, Hamming("household"))
    'a change of four household records (the smallest that can occur)'
    """
    if isinstance(premetric, Neighbours):
        return describe_change(named, distance, premetric.inner, occurs=occurs)
    if distance is None:
        return Phrase("card.change.none")
    occurs = occurs or Phrase("distance.can_occur")
    records, number = unit(named, "records"), spell_number(distance)
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


def describe_measure(premetric: OutputPremetric) -> str:
    """Describe in words how a change of the output is measured."""
    if isinstance(premetric, Multiplicative):
        return Phrase("card.measure.pure")
    if isinstance(premetric, NormalizedRenyi):
        return Phrase("card.measure.zcdp")
    if isinstance(premetric, Approximate):
        return Phrase("card.measure.approximate", delta=write_small(premetric.delta))
    words = (type(premetric).__doc__ or str(premetric)).strip().splitlines()[0].rstrip(".")
    return words[:1].lower() + words[1:]


def describe_unit(premetric: InputPremetric) -> Phrase:
    """Describe in words what counts as one change."""
    if isinstance(premetric, Neighbours):
        return Phrase("card.counted.neighbours", change=describe_unit(premetric.inner))
    record = unit(premetric.unit, "one_record")
    if isinstance(premetric, SymmetricDifference):
        return Phrase("card.counted.added", one_record=record)
    copies = getattr(premetric, "copies", 1)
    if copies > 1:
        return Phrase("card.counted.copied", one_record=record, copies=str(copies))
    return Phrase("card.counted.changed", one_record=record)
