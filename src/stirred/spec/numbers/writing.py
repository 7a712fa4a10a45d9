"""Write exact numbers as text and as JSON, and read them back without loss."""

from collections.abc import Mapping
from fractions import Fraction

from stirred.errors import BudgetError
from stirred.spec.numbers.exact import Exact, Log, Monomial
from stirred.spec.numbers.numerals import parse_fraction, write_fraction


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
