"""Compute with exact real numbers: sums of fractions, logarithms and roots, their signs, decimals and text."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, gcd, inf, isfinite, isqrt, nextafter
from numbers import Rational

from stirred.errors import BudgetError

# Read fractions from text and write them as text, with any number of digits; floats are refused.

_SHAPE = re.compile(r"\s*[+-]?(\d+(/\d+)?|\d*\.\d+|\d+\.\d*)([eE][+-]?\d+)?\s*")
_MAX_EXPONENT = 100_000  # 1e-99999999 has a hundred million digits, which would use up all memory
_CHUNK_DIGITS = 4000  # below the interpreter's limit on digits of one conversion


def parse_fraction(value: object, what: str) -> Fraction:
    """Return an int, a Fraction or text such as "1/20" and "0.05" as a Fraction; refuse floats and booleans.

    >>> parse_fraction("0.1", "rate")
    Fraction(1, 10)
    """
    if isinstance(value, bool):
        raise BudgetError(
            f"this {what} is no number", why="it is a truth value", fix='give 3, "1/20" or a Fraction'
        )
    if isinstance(value, Rational):  # int, Fraction, and the integers of numpy
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str):
        return _parse_text(value, what)
    if isinstance(value, float):
        raise BudgetError(
            f"this {what} is a float",
            why="a float is rarely the number it shows, and a promise must be exact",
            fix=f'write it as text: "{value}", or as a Fraction',
        )
    raise BudgetError(
        f"this {what} is no number", why=f"it is of type {type(value).__name__}", fix='give 3 or "1/20"'
    )


def _parse_text(text: str, what: str) -> Fraction:
    shape = _SHAPE.fullmatch(text)
    if not shape:
        raise BudgetError(
            f"cannot read this {what}: {text[:40]!r}", why="it is no fraction", fix='write "1/20" or "0.05"'
        )
    exponent = (shape[3] or "")[1:].lstrip("+-").lstrip("0")
    if len(exponent) > len(str(_MAX_EXPONENT)) or int(exponent or 0) > _MAX_EXPONENT:
        raise BudgetError(
            f"cannot read this {what}: {text[:40]!r}",
            why=f"its exponent is beyond {_MAX_EXPONENT:,}",
            fix='write "1/20" or "0.05"',
        )
    text = text.strip()
    if "/" in text:
        top, _, bottom = text.partition("/")
        denominator = parse_digits(bottom)
        if denominator == 0:
            raise BudgetError(
                f"cannot read this {what}: {text[:40]!r}",
                why="it divides by zero",
                fix="write a fraction with another denominator, such as 1/20",
            )
        sign = -1 if top.startswith("-") else 1
        return Fraction(sign * parse_digits(top.lstrip("+-")), denominator)
    if text.isdigit():
        return Fraction(parse_digits(text))
    return Fraction(text)


def parse_digits(digits: str) -> int:
    """Return digits of any length as an int."""
    if len(digits) <= _CHUNK_DIGITS:
        return int(digits)
    cut = len(digits) // 2
    shift: int = 10**cut
    return parse_digits(digits[:-cut]) * shift + parse_digits(digits[-cut:])


def write_digits(number: int) -> str:
    """Return the digits of an int of any length."""
    if number < 0:
        return "-" + write_digits(-number)
    if number.bit_length() < 3 * _CHUNK_DIGITS:
        return str(number)
    cut = number.bit_length() * 3 // 20
    high, low = divmod(number, 10**cut)
    return write_digits(high) + write_digits(low).rjust(cut, "0")


def write_fraction(value: Fraction) -> str:
    """Write a fraction as p/q, or as p alone."""
    if value.denominator == 1:
        return write_digits(value.numerator)
    return f"{write_digits(value.numerator)}/{write_digits(value.denominator)}"


def find_root(value: Fraction, degree: int) -> Fraction | None:
    """Return the root of that degree of a positive fraction, or None where it is not a fraction.

    >>> find_root(Fraction(27, 8), 3), find_root(Fraction(2), 2)
    (Fraction(3, 2), None)
    """
    top, bottom = _find_whole_root(value.numerator, degree), _find_whole_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _find_whole_root(number: int, degree: int) -> int | None:
    low, high = 1, 1 << (number.bit_length() // degree + 1)
    while low < high:  # the largest number whose power does not exceed the given one
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low if low**degree == number else None


# Enclosures of real numbers by two binary fractions, so that rounding always goes to the stated side.
#
# Addition and multiplication are exact on the endpoints before they are rounded outward; roots come from integer
# roots; only the logarithm is mpmath's, and it is widened by far more than mpmath's stated error.

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


# Exact real numbers: finite sums of fractions times logarithms and roots of fractions.
#
# An `Exact` is a polynomial in atoms: ln(q) for a fraction q > 1, or the square root of another `Exact`. Nothing is
# rounded until a decimal is asked for; then an interval encloses the value, and the end on the safe side is returned.


@dataclass(frozen=True, slots=True)
class Log:
    """The atom ln(q), q > 1."""

    of: Fraction

    def interval(self, bits: int) -> Interval:
        return _log_interval(self.of, bits)

    def order(self) -> tuple[object, ...]:
        return (0, self.of.numerator, self.of.denominator)


@dataclass(frozen=True, slots=True)
class Root:
    """The atom √e of an exact number e ≥ 0 that is not the square of a fraction."""

    of: "Exact"

    def interval(self, bits: int) -> Interval:
        return self.of.interval(2 * bits + 8).sqrt(bits + 8).round_outward(bits + 8)

    def order(self) -> tuple[object, ...]:
        return (1, self.of.order())


Atom = Log | Root
Monomial = tuple[tuple[Atom, int], ...]  # atoms with their powers, in a fixed order


@lru_cache(maxsize=4096)
def _log_interval(q: Fraction, bits: int) -> Interval:
    return Interval.log(q, bits).round_outward(bits + 8)


def _term_order(monomial: Monomial) -> tuple[object, ...]:
    """Return a sort key that puts fractions first, then atoms, whatever way a sum was built."""
    return (len(monomial), tuple((power, *atom.order()) for atom, power in monomial))


@dataclass(frozen=True, slots=True)
class Exact:
    """A sum Σ cᵢ·mᵢ of fractions times products of atoms, like terms collected.

    >>> half = Exact.fraction(Fraction(1, 2))
    >>> (Exact.root(half) * Exact.root(half)).rational
    Fraction(1, 2)
    >>> Exact.root(Exact.fraction(Fraction(9, 4))).rational
    Fraction(3, 2)
    """

    terms: tuple[tuple[Monomial, Fraction], ...]

    @staticmethod
    def collect(terms: Iterable[tuple[Monomial, Fraction]]) -> "Exact":
        found: dict[Monomial, Fraction] = {}
        for monomial, coefficient in terms:
            found[monomial] = found.get(monomial, Fraction(0)) + coefficient
        return Exact(
            tuple(sorted(((m, c) for m, c in found.items() if c), key=lambda term: _term_order(term[0])))
        )

    @staticmethod
    def fraction(value: Fraction) -> "Exact":
        return Exact((((), value),) if value else ())

    @staticmethod
    def log(q: Fraction) -> "Exact":
        if q <= 0:
            raise BudgetError(
                "cannot take this logarithm",
                why="its argument is not positive",
                fix="give a number above 0",
            )
        if q == 1:
            return Exact(())
        sign = Fraction(1 if q > 1 else -1)
        return Exact(((((Log(q if q > 1 else 1 / q), 1),), sign),))

    @staticmethod
    def root(of: "Exact") -> "Exact":
        """Return √e; the root of the square of a fraction is that fraction."""
        rational = of.rational
        if rational is not None:
            if rational < 0:
                raise BudgetError(
                    "cannot take this square root",
                    why="its argument is negative",
                    fix="give a number of at least 0",
                )
            p, q = isqrt(rational.numerator), isqrt(rational.denominator)
            if p * p == rational.numerator and q * q == rational.denominator:
                return Exact.fraction(Fraction(p, q))
        if len(of.terms) == 1 and rational is None:
            ((monomial, coefficient),) = of.terms
            if coefficient > 0 and all(power % 2 == 0 for _, power in monomial):
                # √(c·m²) = √c·m: this is how ε/√2 comes back from ε²/2
                halves = Exact(((tuple((atom, power // 2) for atom, power in monomial), Fraction(1)),))
                return halves * Exact.root(Exact.fraction(coefficient))
        return Exact(((((Root(of), 1),), Fraction(1)),))

    @property
    def rational(self) -> Fraction | None:
        """Return the value as a fraction, or None where the expression is not one."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    def order(self) -> tuple[object, ...]:
        return tuple((_term_order(m), c.numerator, c.denominator) for m, c in self.terms)

    def __add__(self, other: "Exact") -> "Exact":
        return Exact.collect((*self.terms, *other.terms))

    def __sub__(self, other: "Exact") -> "Exact":
        return self + other.scale(Fraction(-1))

    def __mul__(self, other: "Exact") -> "Exact":
        pieces = [_multiply(m, n).scale(c * d) for m, c in self.terms for n, d in other.terms]
        return Exact.collect(term for piece in pieces for term in piece.terms)

    def scale(self, factor: Fraction) -> "Exact":
        return Exact(tuple((m, c * factor) for m, c in self.terms) if factor else ())

    def interval(self, bits: int) -> Interval:
        """Return an enclosure with about ``bits`` correct bits."""
        total = Interval.point(Fraction(0))
        for monomial, coefficient in self.terms:
            product = Interval.point(coefficient)
            for atom, power in monomial:
                for _ in range(power):
                    product = (product * atom.interval(bits + 16)).round_outward(bits + 16)
            total = total + product
        return total


def _multiply(left: Monomial, right: Monomial) -> Exact:
    """Return the product of two monomials; √a·√a becomes a and √a·√b becomes √(ab) for fractions."""
    powers: dict[Atom, int] = {}
    for atom, power in (*left, *right):
        powers[atom] = powers.get(atom, 0) + power
    outside = Exact.fraction(Fraction(1))
    under = Fraction(1)
    kept: list[tuple[Atom, int]] = []
    for atom, power in powers.items():
        if isinstance(atom, Log):
            kept.append((atom, power))
            continue
        for _ in range(power // 2):
            outside = outside * atom.of
        if power % 2:
            rational = atom.of.rational
            if rational is None:
                kept.append((atom, 1))
            else:
                under *= rational
    if under != 1:
        root = Exact.root(Exact.fraction(under))
        rational = root.rational
        if rational is not None:
            outside = outside.scale(rational)
        else:
            kept.append(root.terms[0][0][0])
            outside = outside.scale(root.terms[0][1])
    kept.sort(key=lambda pair: (pair[1], *pair[0].order()))
    core = Exact(((tuple(kept), Fraction(1)),))
    return core if outside.rational == 1 else _distribute(core, outside)


def _distribute(core: Exact, outside: Exact) -> Exact:
    if not core.terms[0][0]:
        return outside
    rational = outside.rational
    return core.scale(rational) if rational is not None else core * outside


# Decide whether an exact number is zero, by writing it in numbers that are independent over the rationals.
#
# Logarithms of pairwise coprime integers > 1 are linearly independent over ℚ (unique factorisation), and so are the
# square roots of distinct products of pairwise coprime non-squares (Besicovitch). Rewriting every logarithm and root
# in such a common base makes equal sums equal term by term.


def find_coprime_base(numbers: Iterable[int]) -> list[int]:
    """Return coprime integers > 1, none a square, such that every number is a product of their powers.

    >>> find_coprime_base([12, 18])
    [2, 3]
    """
    base: list[int] = []
    todo = [n for n in numbers if n > 1]
    while todo:
        n = _take_square_roots(todo.pop())
        for i, b in enumerate(base):
            common = gcd(n, b)
            if common == 1:
                continue
            if common == b:
                todo.append(_divide_out(n, b)[0])
            else:
                del base[i]
                todo += [common, b // common, n]
            break
        else:
            if n > 1:
                base.append(n)
    return sorted(base)


def _take_square_roots(n: int) -> int:
    while n > 1 and isqrt(n) ** 2 == n:
        n = isqrt(n)
    return n


def _divide_out(n: int, b: int) -> tuple[int, int]:
    """Return n without its factors b and their number, found by squaring because there may be thousands."""
    if n % b:
        return n, 0
    rest, count = _divide_out(n // b, b * b)
    count = 2 * count + 1
    return (rest // b, count + 1) if rest % b == 0 else (rest, count)


def _find_powers(n: int, base: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for b in base:
        n, count = _divide_out(n, b)
        if count:
            found[b] = count
    return found


def _list_integers(value: Exact) -> Iterable[int]:
    for monomial, _ in value.terms:
        for atom, _ in monomial:
            if isinstance(atom, Log):
                yield from (atom.of.numerator, atom.of.denominator)
            elif (rational := atom.of.rational) is not None:
                yield from (rational.numerator, rational.denominator)
            else:
                yield from _list_integers(atom.of)


def rewrite(value: Exact, base: list[int]) -> Exact:
    """Rewrite a number with every logarithm and root in the common base."""
    total = Exact(())
    for monomial, coefficient in value.terms:
        product = Exact.fraction(coefficient)
        for atom, power in monomial:
            for _ in range(power):
                product = product * (
                    _rewrite_log(atom, base) if isinstance(atom, Log) else _rewrite_root(atom, base)
                )
        total = total + product
    return total


def _rewrite_log(atom: Log, base: list[int]) -> Exact:
    up, down = _find_powers(atom.of.numerator, base), _find_powers(atom.of.denominator, base)
    total = Exact(())
    for b in base:
        exponent = up.get(b, 0) - down.get(b, 0)
        if exponent:
            total = total + Exact.log(Fraction(b)).scale(Fraction(exponent))
    return total


def _rewrite_root(atom: Root, base: list[int]) -> Exact:
    rational = atom.of.rational
    if rational is None:
        return Exact.root(rewrite(atom.of, base))
    outside, inside = 1, 1
    for b, exponent in _find_powers(rational.numerator * rational.denominator, base).items():
        outside *= b ** (exponent // 2)
        inside *= b ** (exponent % 2)
    scale = Fraction(outside, rational.denominator)
    return Exact.root(Exact.fraction(Fraction(inside))).scale(scale)


def vanishes(value: Exact) -> bool:
    """Return True where the number is proved to be zero.

    >>> two, eight = (Exact.root(Exact.fraction(Fraction(n))) for n in (2, 8))
    >>> vanishes(eight - two - two)
    True
    """
    if not value.terms:
        return True
    plain = rewrite(value, find_coprime_base(set(_list_integers(value))))
    if not plain.terms:
        return True
    # S + R with S the terms under nested roots: S² = R² and S ≠ R show that S = −R
    nested = Exact(tuple(term for term in plain.terms if _is_nested(term[0])))
    rest = plain - nested
    if not 1 <= len(nested.terms) <= 2:
        return False
    if not rest.terms:
        if len(nested.terms) == 1:
            return False
        nested, rest = Exact(nested.terms[:1]), Exact(nested.terms[1:])
    box = (nested - rest).interval(96)
    if box.low <= 0 <= box.high:
        return False
    return vanishes(nested * nested - rest * rest)


def _is_nested(monomial: Monomial) -> bool:
    return any(isinstance(atom, Root) and atom.of.rational is None for atom, _ in monomial)


# Decimals rounded to the safe side of an exact number, and exact signs.

MAX_BITS = 1 << 15  # two numbers that agree to this many bits are reported as undecided, not as equal


def _make_decimal(scaled: int, decimals: int) -> Decimal:
    # at least as many digits as the number has: nothing is rounded here
    prec = max(28, scaled.bit_length() * 302 // 1000 + 3)
    return Decimal(scaled).scaleb(-decimals, Context(prec=prec))


def _round(value: Exact, decimals: int, *, up: bool) -> Decimal:
    step = 10**decimals
    rational = value.rational
    if rational is not None:
        return _make_decimal(ceil(rational * step) if up else floor(rational * step), decimals)
    bits = 64 + 4 * decimals
    while True:
        box = value.interval(bits)
        low, high = (
            (ceil(box.low * step), ceil(box.high * step))
            if up
            else (floor(box.low * step), floor(box.high * step))
        )
        if low == high or bits > 1 << 12:
            # past that many bits the value is a decimal in all likelihood; the outer end is safe in any case
            return _make_decimal(high if up else low, decimals)
        bits *= 2


def round_up(value: Exact, decimals: int) -> Decimal:
    """Return the smallest decimal with that many places that is not below the value.

    >>> from fractions import Fraction
    >>> round_up(Exact.log(Fraction(2)), 3)
    Decimal('0.694')
    """
    return _round(value, decimals, up=True)


def round_down(value: Exact, decimals: int) -> Decimal:
    """Return the largest decimal with that many places that is not above the value.

    >>> from fractions import Fraction
    >>> round_down(Exact.log(Fraction(2)), 3)
    Decimal('0.693')
    """
    return _round(value, decimals, up=False)


def decide_sign(value: Exact) -> int:
    """Return the sign of an exact number: −1, 0 or 1.

    >>> from fractions import Fraction
    >>> decide_sign(Exact.log(Fraction(9)) - Exact.log(Fraction(3)).scale(Fraction(2)))
    0
    """
    rational = value.rational
    if rational is not None:
        return (rational > 0) - (rational < 0)
    bits = 64
    looked = False
    while bits <= MAX_BITS:
        box = value.interval(bits)
        if box.low > 0:
            return 1
        if box.high < 0:
            return -1
        if not looked and bits >= 128:
            looked = True
            if vanishes(value):
                return 0
        bits *= 2
    raise BudgetError(
        "cannot decide which of these budgets is larger",
        why=f"they agree to {MAX_BITS} bits and no rule shows that they are equal",
        fix='raise one of them a little, for instance by Budget.of("1e-100")',
    )


def to_json_number(value: Decimal) -> float | None:
    """Return a rounded-up decimal as a JSON number that is not smaller; ∞ becomes null.

    >>> to_json_number(Decimal("17.080082")), to_json_number(Decimal("272938796980.772001"))
    (17.080082, 272938796980.77203)
    """
    found = float(value)
    if isfinite(found) and Decimal(repr(found)) < value:
        found = nextafter(found, inf)  # more digits than a double has: the nearest one may lie below
    return found if isfinite(found) else None


# Write exact numbers as text and as JSON, and read them back without loss.


def write_words(value: Exact) -> str:
    """Write the number as tables show it.

    >>> write_words(Exact.log(Fraction(3)).scale(Fraction(1, 2)) + Exact.fraction(Fraction(2)))
    '2 + 1/2*ln(3)'
    """
    if not value.terms:
        return "0"
    text = " + ".join(_write_term(m, c) for m, c in value.terms)
    return text.replace(" + -", " - ")


def _write_term(monomial: Monomial, coefficient: Fraction) -> str:
    if not monomial:
        return write_fraction(coefficient)
    factors: list[str] = [] if abs(coefficient) == 1 else [write_fraction(abs(coefficient))]
    for atom, power in monomial:
        name = f"ln({write_fraction(atom.of)})" if isinstance(atom, Log) else f"sqrt({write_words(atom.of)})"
        factors.append(name if power == 1 else f"{name}^{power}")
    return ("-" if coefficient < 0 else "") + "*".join(factors)


def to_json(value: Exact) -> dict[str, object]:
    """Return {"kind": "fraction" | "log" | "sqrt", "of": "p/q"}, or a sum or product of such objects.

    >>> to_json(Exact.log(Fraction(5, 2)))
    {'kind': 'log', 'of': '5/2'}
    """
    if len(value.terms) == 1:
        return _write_term_json(*value.terms[0])
    if not value.terms:
        return {"kind": "fraction", "of": "0"}
    return {"kind": "sum", "of": [_write_term_json(m, c) for m, c in value.terms]}


def _write_term_json(monomial: Monomial, coefficient: Fraction) -> dict[str, object]:
    factors: list[dict[str, object]] = []
    if coefficient != 1 or not monomial:
        factors.append({"kind": "fraction", "of": write_fraction(coefficient)})
    for atom, power in monomial:
        if isinstance(atom, Log):
            factors += [{"kind": "log", "of": write_fraction(atom.of)}] * power
        else:
            rational = atom.of.rational
            under: object = to_json(atom.of) if rational is None else write_fraction(rational)
            factors += [{"kind": "sqrt", "of": under}] * power
    return factors[0] if len(factors) == 1 else {"kind": "product", "of": factors}


def from_json(document: object) -> Exact:
    """Read an exact number from its JSON form."""
    if not isinstance(document, Mapping) or set(document) != {"kind", "of"}:
        raise BudgetError(
            "cannot read this budget",
            why='it is no {"kind": …, "of": …}',
            fix='write it as {"kind": "fraction", "of": "1/20"}',
        )
    kind, of = document["kind"], document["of"]
    if kind == "fraction" and isinstance(of, str):
        return Exact.fraction(parse_fraction(of, "budget"))
    if kind == "log" and isinstance(of, str):
        return Exact.log(parse_fraction(of, "argument of a logarithm"))
    if kind == "sqrt":
        return Exact.root(
            Exact.fraction(parse_fraction(of, "radicand")) if isinstance(of, str) else from_json(of)
        )
    if kind in {"sum", "product"} and isinstance(of, list):
        total = Exact.fraction(Fraction(0 if kind == "sum" else 1))
        for part in of:
            total = total + from_json(part) if kind == "sum" else total * from_json(part)
        return total
    raise BudgetError(
        "cannot read this budget",
        why="its kind is unknown, or its value does not fit the kind",
        fix="kinds: fraction, log, sqrt, sum, product, infinite",
    )
