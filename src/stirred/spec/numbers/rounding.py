"""Decimals rounded to the safe side of an exact number, and exact signs."""

from decimal import Context, Decimal
from math import ceil, floor, inf, isfinite, nextafter

from stirred.errors import BudgetError
from stirred.spec.numbers.exact import Exact
from stirred.spec.numbers.normal import vanishes

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
