"""Define the protection loss budget: an exact number in [0, ∞], shown rounded up and never rounded down."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from stirred.errors import BudgetError
from stirred.spec.exact import (
    Exact,
    decide_sign,
    from_json,
    parse_fraction,
    round_down,
    round_up,
    to_json,
    write_words,
)

Status = Literal["proved", "published", "estimated", "unknown"]
Number = int | str | Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    r"""How far outputs may move per unit of input distance: $\varepsilon_{\mathcal D} \in [0, \infty]$, exactly.

    >>> print(Budget.log(5022308), Budget.log(5022308).exact)
    15.4295 ln(5022308)
    >>> (Budget.of("1/20") + Budget.of("0.05")).exact
    '1/10'
    """

    value: Exact | None  # None is ∞

    @staticmethod
    def of(value: "int | str | Fraction | Budget") -> "Budget":
        """Return the budget of an exact number such as 3, "1/20", "0.1" or "inf"; refuse floats."""
        if isinstance(value, Budget):
            return value
        if isinstance(value, str) and value.strip().lower() in {"inf", "infinity", "∞"}:
            return Budget.infinite()
        number = parse_fraction(value, "budget")
        if number < 0:
            raise BudgetError("a budget cannot be negative", why="it bounds a distance", fix="give 0 or more")
        return Budget(Exact.fraction(number))

    @staticmethod
    def log(q: Number) -> "Budget":
        """Return the budget ln q for a fraction q ≥ 1."""
        number = parse_fraction(q, "argument of a logarithm")
        if number < 1:
            raise BudgetError(
                "a budget cannot be negative",
                why="the logarithm of a number below 1 is negative",
                fix="give a number of at least 1",
            )
        return Budget(Exact.log(number))

    @staticmethod
    def sqrt(q: "Number | Budget") -> "Budget":
        """Return the budget √q for a fraction or another budget."""
        under = Budget.of(q)
        return under if under.value is None else Budget(Exact.root(under.value))

    @staticmethod
    def infinite() -> "Budget":
        return Budget(None)

    @staticmethod
    def zero() -> "Budget":
        return Budget(Exact(()))

    @staticmethod
    def total(budgets: "Iterable[Budget]") -> "Budget":
        """Return the exact sum of budgets, 0 for none."""
        found = Budget.zero()
        for budget in budgets:
            found = found + budget
        return found

    @property
    def is_finite(self) -> bool:
        return self.value is not None

    @property
    def is_zero(self) -> bool:
        return self.value is not None and decide_sign(self.value) == 0

    @property
    def fraction(self) -> Fraction | None:
        """Return the value as a fraction, or None where it is not one."""
        return None if self.value is None else self.value.rational

    @property
    def exact(self) -> str:
        return "∞" if self.value is None else write_words(self.value)

    def upper(self, decimals: int = 6) -> Decimal:
        """Return the smallest decimal of that many places that is not below the value."""
        return Decimal("Infinity") if self.value is None else round_up(self.value, decimals)

    def lower(self, decimals: int = 6) -> Decimal:
        """Return the largest decimal of that many places that is not above the value."""
        return Decimal("Infinity") if self.value is None else round_down(self.value, decimals)

    def square(self) -> "Budget":
        return self if self.value is None else Budget(self.value * self.value)

    def __add__(self, other: "Budget") -> "Budget":
        if not isinstance(other, Budget):
            return NotImplemented
        if self.value is None or other.value is None:
            return Budget.infinite()
        return Budget(self.value + other.value)

    def __sub__(self, other: "Budget") -> "Budget":
        """Return the difference; raise where the other budget is larger."""
        if not isinstance(other, Budget):
            return NotImplemented
        if other > self or other.value is None:
            raise BudgetError(
                "cannot subtract these budgets",
                why="the second is the larger one, and a budget cannot be negative",
                fix="subtract a budget that is at most as large",
            )
        return self if self.value is None else Budget(self.value - other.value)

    def __mul__(self, factor: "int | Fraction | Budget") -> "Budget":
        """Return the budget times a factor; 0·∞ = ∞, the convention of the paper's Appendix D."""
        if isinstance(factor, float):
            raise BudgetError(
                "a budget cannot be multiplied by a float",
                why="a float is rounded, and budgets are exact",
                fix="give an int or a Fraction",
            )
        other = Budget.of(factor)
        if self.value is None or other.value is None:
            return Budget.infinite()
        return Budget(self.value * other.value)

    __rmul__ = __mul__

    def compare(self, other: "Budget") -> int:
        """Return −1, 0 or 1 where this budget is smaller, equal or larger, decided exactly."""
        if self.value is None or other.value is None:
            return (self.value is None) - (other.value is None)
        return decide_sign(self.value - other.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.compare(other) == 0

    # Equal numbers may be written in different ways (√8, 2√2), so the hash uses only whether the budget is finite.
    def __hash__(self) -> int:
        return hash((Budget, self.is_finite))

    def __lt__(self, other: "Budget") -> bool:
        return self.compare(other) < 0

    def __le__(self, other: "Budget") -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: "Budget") -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: "Budget") -> bool:
        return self.compare(other) >= 0

    def __str__(self) -> str:
        return "∞" if self.value is None else str(self.upper(4))

    def __repr__(self) -> str:
        return f"Budget({self.exact})"

    def to_json(self) -> dict[str, object]:
        return {"kind": "infinite"} if self.value is None else to_json(self.value)

    @staticmethod
    def from_json(document: object) -> "Budget":
        if isinstance(document, dict) and document.get("kind") == "infinite":
            return Budget.infinite()
        value = from_json(document)
        if decide_sign(value) < 0:
            raise BudgetError("a budget cannot be negative", why="it bounds a distance", fix="give 0 or more")
        return Budget(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One named bound on the loss: where it comes from, and at which level it cannot be improved."""

    name: str
    budget: Budget
    status: Status = "proved"
    source: str = ""
    tight: str = ""
