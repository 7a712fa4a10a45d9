"""Is an exact number zero? Decided by writing it in numbers known to be independent over the rationals.

Logarithms of pairwise coprime integers > 1 are linearly independent over ℚ (unique factorisation), and so are the
square roots of distinct products of pairwise coprime non-squares (Besicovitch). Rewriting every logarithm and root in
such a common base makes equal sums equal term by term.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, isqrt

from stirred.spec.exact import Exact, Log, Root


def coprime_base(numbers: Iterable[int]) -> list[int]:
    """Pairwise coprime integers > 1, none a square, of which every given number is a product of powers.

    >>> coprime_base([12, 18])
    [2, 3]
    """
    base: list[int] = []
    todo = [n for n in numbers if n > 1]
    while todo:
        n = todo.pop()
        root = isqrt(n)
        while n > 1 and root * root == n:
            n, root = root, isqrt(root)
        if n == 1:
            continue
        for i, b in enumerate(base):
            common = gcd(n, b)
            if common > 1:
                del base[i]
                todo += [x for x in (common, n // common, b // common) if x > 1]
                break
        else:
            base.append(n)
    return sorted(set(base))


def _powers(n: int, base: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for b in base:
        while n % b == 0:
            n //= b
            found[b] = found.get(b, 0) + 1
    assert n == 1
    return found


def _integers(value: Exact) -> Iterable[int]:
    for monomial, _ in value.terms:
        for atom, _ in monomial:
            if isinstance(atom, Log):
                yield from (atom.of.numerator, atom.of.denominator)
            elif (rational := atom.of.rational) is not None:
                yield from (rational.numerator, rational.denominator)
            else:
                yield from _integers(atom.of)


def rewritten(value: Exact, base: list[int]) -> Exact:
    """The same number with every logarithm and root in the common base."""
    total = Exact(())
    for monomial, coefficient in value.terms:
        product = Exact.fraction(coefficient)
        for atom, power in monomial:
            for _ in range(power):
                product = product * (_log(atom, base) if isinstance(atom, Log) else _root(atom, base))
        total = total + product
    return total


def _log(atom: Log, base: list[int]) -> Exact:
    up, down = _powers(atom.of.numerator, base), _powers(atom.of.denominator, base)
    total = Exact(())
    for b in base:
        exponent = up.get(b, 0) - down.get(b, 0)
        if exponent:
            total = total + Exact.log(Fraction(b)).scaled(Fraction(exponent))
    return total


def _root(atom: Root, base: list[int]) -> Exact:
    rational = atom.of.rational
    if rational is None:
        return Exact.root(rewritten(atom.of, base))
    outside, inside = 1, 1
    for b, exponent in _powers(rational.numerator * rational.denominator, base).items():
        outside *= b ** (exponent // 2)
        inside *= b ** (exponent % 2)
    scale = Fraction(outside, rational.denominator)
    return Exact.root(Exact.fraction(Fraction(inside))).scaled(scale)


def vanishes(value: Exact) -> bool:
    """True where the number is shown to be zero.

    >>> two, eight = (Exact.root(Exact.fraction(Fraction(n))) for n in (2, 8))
    >>> vanishes(eight - two - two)
    True
    """
    if not value.terms:
        return True
    plain = rewritten(value, coprime_base(set(_integers(value))))
    if not plain.terms:
        return True
    # √A − √B: both sides are positive, so it is enough that the squares agree
    if len(plain.terms) == 2:
        (m, c), (n, d) = plain.terms
        if c * d < 0:
            left, right = Exact(((m, c),)), Exact(((n, d),))
            difference = left * left - right * right
            return not rewritten(difference, coprime_base(set(_integers(difference)))).terms
    return False
