"""Read fractions from text and write them as text, with any number of digits; floats are refused."""

import re
from fractions import Fraction
from numbers import Rational

from stirred.errors import BudgetError

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
