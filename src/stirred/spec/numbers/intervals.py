"""Enclosures of real numbers by two binary fractions, so that rounding always goes to the stated side.

Addition and multiplication are exact on the endpoints before they are rounded outward; roots come from integer roots;
only the logarithm is mpmath's, and it is widened by far more than mpmath's stated error.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

# Guard bits between the precision mpmath works at and the width we claim.
GUARD_BITS = 32


@dataclass(frozen=True, slots=True)
class Interval:
    """An enclosure of a real number: low ≤ value ≤ high.

    >>> box = Interval.log(Fraction(2), 8)
    >>> box.low < Fraction(693147180559945309417232121, 10**27) < box.high
    True
    """

    low: Fraction
    high: Fraction

    @staticmethod
    def point(value: Fraction) -> "Interval":
        return Interval(value, value)

    @staticmethod
    def log(q: Fraction, bits: int) -> "Interval":
        """Return an enclosure of ln q for q > 1, of width about 2^-bits relative to ln q.

        ln q is computed as ln p − ln r from the two integers, which stay cheap however many digits they have; close
        to 1, where that would cancel, by the series 2(t + t³/3 + …) with t = (p − r)/(p + r).
        """
        # mpmath takes half a second to import, and most budgets are never rounded
        from mpmath.libmp import from_rational, mpf_log, mpf_sub, round_nearest, to_rational

        p, r = q.numerator, q.denominator
        if (p - r) << 16 < r:
            return _log_near_one(q, bits)
        work = bits + GUARD_BITS + 32 + max(p.bit_length(), r.bit_length()).bit_length()
        numerator = mpf_log(from_rational(p, 1, work + GUARD_BITS, round_nearest), work, round_nearest)
        denominator = mpf_log(from_rational(r, 1, work + GUARD_BITS, round_nearest), work, round_nearest)
        middle = Fraction(*to_rational(mpf_sub(numerator, denominator)))
        # each logarithm is off by less than 2^(magnitude − work + 2); both magnitudes are below 2^size
        size = max(p.bit_length(), r.bit_length()).bit_length() + 1
        slack = Fraction(1, 1 << (work - size - 8))
        return Interval(max(Fraction(0), middle - slack), middle + slack)

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        corners = (self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high)
        return Interval(min(corners), max(corners))

    def scale(self, factor: Fraction) -> "Interval":
        ends = (self.low * factor, self.high * factor)
        return Interval(min(ends), max(ends))

    def sqrt(self, bits: int) -> "Interval":
        return Interval(
            _root_below(max(self.low, Fraction(0)), bits), _root_above(max(self.high, Fraction(0)), bits)
        )

    def exp(self, bits: int) -> "Interval":
        """Return an enclosure of e to the power of this interval."""
        # the argument carries a relative error of 2^-(bits+48), which exp turns into |argument| times as much
        slack = Fraction(2 + int(max(abs(self.low), abs(self.high))), 1 << (bits + GUARD_BITS))
        low, high = (_exp(end, bits + GUARD_BITS + 16) for end in (self.low, self.high))
        return Interval(low * (1 - slack), high * (1 + slack)).round_outward(bits)

    def round_outward(self, bits: int) -> "Interval":
        """Return the enclosure rounded outward to short endpoints, so that long sums stay cheap."""
        return Interval(_shorten(self.low, bits, up=False), _shorten(self.high, bits, up=True))


def _exp(value: Fraction, work: int) -> Fraction:
    # libmp's functions take their precision as an argument, so that one thread cannot change it for another
    from mpmath.libmp import from_rational, mpf_exp, round_nearest, to_rational

    power = mpf_exp(
        from_rational(value.numerator, value.denominator, work, round_nearest), work, round_nearest
    )
    return Fraction(*to_rational(power))


def _log_near_one(q: Fraction, bits: int) -> Interval:
    """Return an enclosure of ln q = 2·artanh t; omitted terms are below the last one kept, since t < 2^-17."""
    t = Interval.point(Fraction(q.numerator - q.denominator, q.numerator + q.denominator)).round_outward(
        bits + GUARD_BITS
    )
    square = (t * t).round_outward(bits + GUARD_BITS)
    power, total, n = t, t, 1
    for _ in range(bits // 32 + 2):
        power, n = (power * square).round_outward(bits + GUARD_BITS), n + 2
        total = total + power.scale(Fraction(1, n))
    return Interval(2 * total.low, 2 * (total.high + power.high)).round_outward(bits + GUARD_BITS)


def _scale_bits(value: Fraction, bits: int) -> int:
    """Return the shift after which the integer part carries at least ``bits`` significant bits."""
    return max(0, bits - value.numerator.bit_length() + value.denominator.bit_length()) if value else 0


def _shorten(value: Fraction, bits: int, *, up: bool) -> Fraction:
    shift = _scale_bits(abs(value), bits)
    whole, rest = divmod(value.numerator << shift, value.denominator)
    return Fraction(whole + (1 if up and rest else 0), 1 << shift)


def _root_below(value: Fraction, bits: int) -> Fraction:
    shift = _scale_bits(value, 2 * bits + 4)
    shift += shift % 2
    return Fraction(isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))


def _root_above(value: Fraction, bits: int) -> Fraction:
    shift = _scale_bits(value, 2 * bits + 4)
    shift += shift % 2
    whole = -((-value.numerator << shift) // value.denominator)
    root = isqrt(whole)
    return Fraction(root + (root * root < whole), 1 << (shift // 2))
