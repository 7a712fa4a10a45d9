"""Decide whether an exact number is zero, by writing it in numbers that are independent over the rationals.

Logarithms of pairwise coprime integers > 1 are linearly independent over ℚ (unique factorisation), and so are the
square roots of distinct products of pairwise coprime non-squares (Besicovitch). Rewriting every logarithm and root in
such a common base makes equal sums equal term by term.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, isqrt

from stirred.spec.numbers.exact import Exact, Log, Monomial, Root


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
