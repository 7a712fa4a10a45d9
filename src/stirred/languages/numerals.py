"""Numbers as a language writes them: separators, percent signs, and bounds that are rounded up."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache

from stirred.languages.catalog import catalog

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

        >>> Numerals(thousands=".", decimal=",", percent=" %").written("-1,234.5")
        '−1.234,5'
        """
        swapped = self.thousands.join(part.replace(".", self.decimal) for part in plain.split(","))
        return swapped if (self.thousands, self.decimal) == (",", ".") else swapped.replace("-", "−")

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
