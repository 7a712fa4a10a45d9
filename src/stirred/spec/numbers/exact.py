"""Exact real numbers: finite sums of fractions times logarithms and roots of fractions.

An `Exact` is a polynomial in atoms: ln(q) for a fraction q > 1, or the square root of another `Exact`. Nothing is
rounded until a decimal is asked for; then an interval encloses the value, and the end on the safe side is returned.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from stirred.errors import BudgetError
from stirred.spec.numbers.intervals import Interval


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
