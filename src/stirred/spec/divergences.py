"""Output premetrics: how the change of an output's distribution is measured, and how budgets compose in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from stirred.errors import BudgetError, IncompatibleError
from stirred.spec.budget import Budget
from stirred.spec.numerals import fraction_of, text_of


class OutputPremetric:
    """A distance of distributions; subclass it (frozen) with `symbol`, `compose` and what it converts to.

    `compose` must be associative and commutative and is given the budgets of independent outputs. `converted` gives
    the constant-factor conversion of a budget into another premetric, or None where no linear one is known.
    """

    __slots__ = ()

    symbol: ClassVar[str] = "D"
    budget_symbol: ClassVar[str] = "ε"
    is_metric: ClassVar[bool] = False  # D(P, Q) > 0 for P ≠ Q, which Proposition 2 needs
    infinite_at_total_variation_one: ClassVar[bool] = False  # which Proposition 1 needs
    quasi_convex: ClassVar[bool] = False  # mixing does not raise it, which chaining by stability needs

    def compose(self, budgets: Sequence[Budget]) -> Budget:
        """The budget of publishing all of them."""
        return Budget.total(budgets)

    def left(self, limit: Budget, spent: Budget) -> Budget:
        """What may still be spent below the limit."""
        return limit - spent

    def converted(self, budget: Budget, to: "OutputPremetric") -> Budget | None:
        """The budget in another premetric, valid at every distance; None where there is no such rule."""
        return budget if to == self else None

    def joined(self, other: "OutputPremetric") -> "OutputPremetric":
        """The premetric in which outputs of both kinds are accounted together."""
        if self.converted(Budget.zero(), other) is not None:
            return other
        if other.converted(Budget.zero(), self) is not None:
            return self
        raise IncompatibleError(
            "cannot compose these specifications",
            why=f"no rule converts {self} into {other} or back at every distance",
            fix="state both under one output premetric",
        )

    def __str__(self) -> str:
        return self.symbol


@dataclass(frozen=True, slots=True)
class Multiplicative(OutputPremetric):
    r"""Pure DP: $D_{mult}(P, Q) = \sup_E |\ln P(E)/Q(E)|$ (Equation 6). Budgets add.

    >>> str(Multiplicative().compose([Budget.of(1), Budget.of("1/2")]))
    '1.5000'
    """

    symbol: ClassVar[str] = "D_mult"
    budget_symbol: ClassVar[str] = "ε"
    is_metric: ClassVar[bool] = True
    infinite_at_total_variation_one: ClassVar[bool] = True
    quasi_convex: ClassVar[bool] = True

    def converted(self, budget: Budget, to: OutputPremetric) -> Budget | None:
        """Into D_nor by ρ = ε/√2 (so ρ² = ε²/2, Bun and Steinke 2016, Prop. 1.4); into D_δ unchanged."""
        if isinstance(to, NormalizedRenyi):
            return budget * Budget.sqrt("1/2")
        return budget if isinstance(to, Multiplicative | Approximate) else None


@dataclass(frozen=True, slots=True)
class NormalizedRenyi(OutputPremetric):
    r"""zCDP: $D_{nor} = \sup_{\alpha>1} \alpha^{-1/2} \max\{\sqrt{D_\alpha(P\|Q)}, \sqrt{D_\alpha(Q\|P)}\}$ (Appendix G).

    Its budget is ρ, the root of the usual zCDP parameter; the squares add.

    >>> NormalizedRenyi().compose([Budget.sqrt(2), Budget.sqrt("1/2")]).squared().exact
    '5/2'
    """

    symbol: ClassVar[str] = "D_nor"
    budget_symbol: ClassVar[str] = "ρ"
    is_metric: ClassVar[bool] = True
    infinite_at_total_variation_one: ClassVar[bool] = True
    quasi_convex: ClassVar[bool] = True

    def compose(self, budgets: Sequence[Budget]) -> Budget:
        if len(budgets) == 1:
            return budgets[0]
        return Budget.sqrt(Budget.total(budget.squared() for budget in budgets))

    def left(self, limit: Budget, spent: Budget) -> Budget:
        return Budget.sqrt(limit.squared() - spent.squared())


@dataclass(frozen=True, slots=True)
class Approximate(OutputPremetric):
    r"""(ε, δ): $D_\delta(P, Q) = \inf\{\varepsilon : P(E) \le e^\varepsilon Q(E) + \delta\ \forall E, \text{and back}\}$.

    Both ε and δ add: outputs under D_δ and D_δ' together are accounted under D_{δ+δ'}.

    >>> print(Approximate("1/10").joined(Approximate("1/5")))
    D_δ(δ = 3/10)
    """

    symbol: ClassVar[str] = "D_δ"
    budget_symbol: ClassVar[str] = "ε"
    is_metric: ClassVar[bool] = False
    infinite_at_total_variation_one: ClassVar[bool] = True
    quasi_convex: ClassVar[bool] = True

    delta: Fraction

    def __init__(self, delta: int | str | Fraction) -> None:
        number = fraction_of(delta, "delta")
        if not 0 <= number < 1:
            raise BudgetError("delta must be at least 0 and below 1", why="at 1 nothing is promised")
        object.__setattr__(self, "delta", number)

    def converted(self, budget: Budget, to: OutputPremetric) -> Budget | None:
        return budget if isinstance(to, Approximate) and to.delta >= self.delta else None

    def joined(self, other: OutputPremetric) -> OutputPremetric:
        if isinstance(other, Approximate):
            return Approximate(self.delta + other.delta)
        return OutputPremetric.joined(self, other)

    def __str__(self) -> str:
        return f"D_δ(δ = {text_of(self.delta)})"


def rho_squared_to_epsilon(
    rho_squared: "int | str | Fraction | Budget",
    delta: int | str | Fraction,
    *,
    distance: int = 1,
    tight: bool = False,
) -> Decimal:
    """ε of a zCDP budget read at a stated distance, rounded up at six decimals."""
    from stirred.spec.readings import reading

    return reading(Budget.of(rho_squared), delta, distance=distance, tight=tight).epsilon
