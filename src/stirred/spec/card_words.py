"""The five parts of a specification in plain words, for people who publish or use tables."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from mpmath import mpf

from stirred.spec.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.domain import Domain
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.numerals import digits
from stirred.spec.odds import significant
from stirred.spec.premetrics import PERSON, Hamming, InputPremetric, SymmetricDifference

STATUS = {
    "proved": "proved",
    "published": "published by others",
    "estimated": "estimated",
    "unknown": "not known",
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
    """A small probability such as δ.

    >>> small(Fraction(1, 10**10)), small(Fraction(3, 100))
    ('10⁻¹⁰', '3/100')
    """
    exponent = len(digits(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**exponent and exponent > 2:
        return "10⁻" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits(value.numerator)}/{digits(value.denominator)}"


def smallest_distance(domain: Domain, multiverse: Multiverse, premetric: InputPremetric) -> tuple[int, str]:
    """The smallest distance between two data sets of one universe that the release can tell apart, and why.

    A changed value moves the counts of every exact table that reads it (Lemma 5: under swapping, distance 1 is
    impossible). So one record can change alone only in a variable that no such table reads or determines. Identifiers,
    and areas finer than any exact table, say nothing. Two exact tables of the unit of which neither determines the
    other are the mark of a swap, which publishes nothing else: whatever it leaves out cannot be told apart either.
    Where in doubt the larger distance is taken, which never understates the odds.
    """
    unit = premetric.unit
    margins = [
        inv for inv in multiverse if isinstance(inv, Margin) and inv.record_type == unit and inv.where is None
    ]
    if isinstance(premetric, SymmetricDifference):
        if margins:
            return 2, f"the number of {unit} records is fixed, so a record can only be replaced"
        return 1, f"one {unit} record can be added or removed"
    if unit == PERSON and domain.has("household"):
        # a person's record is part of a household's: where no household can change alone, no person can
        homes, why = smallest_distance(domain, multiverse, Hamming("household"))
        if homes > 1:
            return homes, f"{why}, nor a person's"
    known = [domain.closure(unit, margin.by) for margin in margins]
    fixed = frozenset[str]().union(*known)
    variables = domain.record_type(unit).names() if domain.has(unit) else frozenset()
    telling = variables - _finer_areas(domain, fixed) - domain.identifiers(unit)
    if telling and telling <= fixed:
        return 2, f"every variable of a {unit} record is in an exact table, so no record can change alone"
    if any(not (a <= b or b <= a) for a in known for b in known):
        return (
            2,
            f"two exact tables tie the variables of a {unit} record, so no record can change alone in them",
        )
    return 1, f"one {unit} record can change alone"


def _finer_areas(domain: Domain, fixed: frozenset[str]) -> frozenset[str]:
    """The levels of the spine below the finest one that is fixed."""
    named = [place for place, level in enumerate(domain.spine) if level in fixed]
    return frozenset(domain.spine[named[-1] + 1 :]) if named else frozenset()


def change(unit: str, distance: int, premetric: InputPremetric) -> str:
    """What happens at that distance, as the subject of a sentence."""
    if isinstance(premetric, SymmetricDifference):
        return (
            f"the presence or absence of one {unit}"
            if distance == 1
            else f"the replacement of one {unit} by another"
        )
    if distance == 1:
        return f"a change of one {unit}'s record"
    if distance == 2:
        return f"an exchange between two {unit}s (the smallest change that can occur)"
    return f"a change of {distance} {unit} records"


def measure(premetric: OutputPremetric) -> str:
    """How a change of the output is measured, in words."""
    if isinstance(premetric, Multiplicative):
        return "the largest ratio between the probabilities of any result (pure differential privacy)"
    if isinstance(premetric, NormalizedRenyi):
        return "the normalized Rényi distance (zero-concentrated differential privacy, zCDP)"
    if isinstance(premetric, Approximate):
        return f"the ratio of probabilities, but for a part δ = {small(premetric.delta)} (approximate differential privacy)"
    words = (type(premetric).__doc__ or str(premetric)).strip().splitlines()[0].rstrip(".")
    return words[:1].lower() + words[1:]


def counted(premetric: InputPremetric) -> str:
    """What counts as one change, in words."""
    unit = premetric.unit
    if isinstance(premetric, SymmetricDifference):
        return f"one {unit} record added or removed"
    copies = getattr(premetric, "copies", 1)
    text = f"one {unit} record changed"
    if copies > 1:
        text += f", for a contributor whose answers were copied into up to {copies} records by imputation"
    return text
