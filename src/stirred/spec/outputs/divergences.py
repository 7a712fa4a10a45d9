"""Output premetrics: how the change of an output's distribution is measured, and how budgets compose in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

from stirred.errors import BudgetError, IncompatibleError, VoidError
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.numerals import parse_fraction, write_digits, write_fraction
from stirred.spec.outputs.group import scale_delta
from stirred.spec.outputs.readings import reading


class OutputPremetric:
    """A distance of distributions; subclass it (frozen) with `symbol`, `compose` and what it converts to.

    `compose` must be associative and commutative and is given the budgets of independent outputs. `converted` gives
    the constant-factor conversion of a budget into another premetric, or None where no linear one is known. A premetric
    with a number of its own that changes in sums or between units (the δ of `Approximate`) writes `composed` and `scaled`.
    """

    __slots__ = ()

    symbol: ClassVar[str] = "D"
    budget_symbol: ClassVar[str] = "ε"
    is_metric: ClassVar[bool] = False  # D(P, Q) > 0 for P ≠ Q, which Proposition 2 needs
    infinite_at_total_variation_one: ClassVar[bool] = False  # which Proposition 1 needs
    quasi_convex: ClassVar[bool] = False  # mixing does not raise it, which chaining by stability needs
    group_privacy: ClassVar[bool] = (
        False  # a promise for neighbours gives one at distance k, along a path of k neighbours
    )

    @property
    def needs_whole_distances(self) -> bool:
        """Return whether the promise can be stated only where every distance is 0 or at least 1."""
        return False

    def excludes(self, budget: Budget, distance: int | Fraction) -> bool:
        """Return whether distributions with no common outcome break this budget at that distance."""
        del distance  # the loss of such a pair is infinite at every distance, or not known
        return self.infinite_at_total_variation_one and budget.is_finite

    def compose(self, budgets: Sequence[Budget]) -> Budget:
        """Return the budget of publishing all outputs."""
        return Budget.total(budgets)

    def compose_parts(
        self, parts: "Sequence[tuple[OutputPremetric, Budget]]"
    ) -> "tuple[OutputPremetric, Budget]":
        """Compose statements; return a premetric of this kind and the budget under it."""
        budgets = []
        for premetric, budget in parts:
            found = premetric.convert(budget, self)
            if found is None:
                raise make_conversion_error(premetric, self)
            budgets.append(found)
        return self, self.compose(budgets)

    def scale(self, budget: Budget, constant: Fraction) -> "tuple[OutputPremetric, Budget]":
        """Return the statement in a unit where the old distance is at most ``constant`` times the new one."""
        return self, budget * constant

    def compute_remaining(self, limit: Budget, spent: Budget) -> Budget:
        """Return the largest budget that may still be spent below the limit."""
        return limit - spent

    def convert(self, budget: Budget, to: "OutputPremetric") -> Budget | None:
        """Return the budget in another premetric, valid at every distance, or None where no rule is known."""
        return budget if to == self else None

    def join(self, other: "OutputPremetric") -> "OutputPremetric":
        """Return the kind of premetric that accounts for outputs of both; `compose_parts` gives its numbers."""
        if self.convert(Budget.zero(), other) is not None:
            return other
        if other.convert(Budget.zero(), self) is not None:
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
    group_privacy: ClassVar[bool] = True

    def convert(self, budget: Budget, to: OutputPremetric) -> Budget | None:
        """Convert to D_nor by ρ = ε/√2 (so ρ² = ε²/2, Bun and Steinke 2016, Prop. 1.4), to D_δ unchanged."""
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
    group_privacy: ClassVar[bool] = True  # Bun and Steinke 2016, Prop. 1.9: k²ρ², hence kρ

    def compose(self, budgets: Sequence[Budget]) -> Budget:
        if len(budgets) == 1:
            return budgets[0]
        return Budget.sqrt(Budget.total(budget.square() for budget in budgets))

    def compute_remaining(self, limit: Budget, spent: Budget) -> Budget:
        return Budget.sqrt(limit.square() - spent.square())


@dataclass(frozen=True, slots=True)
class Approximate(OutputPremetric):
    r"""(ε, δ) at distance k: $P(E) \le e^{k\varepsilon} Q(E) + \delta_k$ for every event E.

    Here $\delta_k = \delta\,(e^{k\varepsilon}-1)/(e^\varepsilon-1)$, which is kδ at ε = 0. At distance 1 it is the usual
    (ε, δ) of neighbours; at distance k it is what group privacy makes of it, and it says something also where a universe
    has no neighbours. Releases together have (ε + ε', δ + δ'), because $\delta_k$ grows with ε at every whole k; another
    unit with constant c has $(c\varepsilon, \delta_c)$.

    >>> one = (Approximate("1/10"), Budget.of(1))
    >>> premetric, epsilon = one[0].compose_parts([one, one])
    >>> print(premetric, epsilon)
    D_δ(δ = 1/5) 2.0000
    """

    symbol: ClassVar[str] = "D_δ"
    budget_symbol: ClassVar[str] = "ε"
    is_metric: ClassVar[bool] = False
    # at distance k > 1 a large ε makes δ_k reach 1, so Proposition 1 holds between neighbours only: see `excludes`
    infinite_at_total_variation_one: ClassVar[bool] = False
    quasi_convex: ClassVar[bool] = True
    group_privacy: ClassVar[bool] = True

    delta: Fraction

    def __init__(self, delta: int | str | Fraction) -> None:
        number = parse_fraction(delta, "delta")
        if not 0 <= number < 1:
            raise BudgetError(
                "delta must be at least 0 and below 1",
                why="at 1 nothing is promised",
                fix='give an exact number such as "1e-10"',
            )
        object.__setattr__(self, "delta", number)

    @property
    def needs_whole_distances(self) -> bool:
        return self.delta > 0  # below distance 1 a larger ε makes δ_k smaller, so budgets would not compare

    def excludes(self, budget: Budget, distance: int | Fraction) -> bool:
        return budget.is_finite and scale_delta(budget, self.delta, Fraction(distance)) < 1

    def compose_parts(
        self, parts: Sequence[tuple[OutputPremetric, Budget]]
    ) -> tuple[OutputPremetric, Budget]:
        """Add ε and δ (Dwork and Roth 2014, Theorem 3.16); a pure statement has δ = 0."""
        budgets, total = [], Fraction(0)
        for premetric, budget in parts:
            own = premetric.delta if isinstance(premetric, Approximate) else Fraction(0)
            found = premetric.convert(budget, Approximate(own))
            if found is None:
                raise make_conversion_error(premetric, self)
            budgets.append(found)
            total += own
        if total >= 1:
            raise VoidError(
                "together these statements promise nothing",
                why=f"their δ add up to {_write_delta(total)}, and from δ = 1 on every release is allowed",
                fix="state each of them with a smaller δ, or publish fewer of them",
            )
        return Approximate(total), self.compose(budgets)

    def scale(self, budget: Budget, constant: Fraction) -> tuple[OutputPremetric, Budget]:
        """Return (cε, δ(e^{cε} − 1)/(e^ε − 1)), δ rounded up at the twelfth digit where it is no fraction.

        >>> premetric, epsilon = Approximate("1/1000").scale(Budget.log(2), Fraction(3))
        >>> print(premetric, epsilon.exact)
        D_δ(δ = 7/1000) 3*ln(2)
        """
        delta = scale_delta(budget, self.delta, constant)
        if delta >= 1:
            raise VoidError(
                "in this unit the statement promises nothing",
                why=f"a distance of 1 there is up to {write_fraction(constant)} here, and at that distance δ = "
                f"{_write_delta(self.delta)} has grown to 1 (group privacy)",
                fix="state it with a smaller δ or a smaller ε",
            )
        return Approximate(delta), budget * constant

    def convert(self, budget: Budget, to: OutputPremetric) -> Budget | None:
        """Convert to any δ that is not smaller; with δ = 0 also to pure DP."""
        if isinstance(to, Approximate):
            return budget if to.delta >= self.delta else None
        return Multiplicative().convert(budget, to) if self.delta == 0 else None

    def join(self, other: OutputPremetric) -> OutputPremetric:
        if isinstance(other, Approximate):
            return max(self, other, key=lambda premetric: premetric.delta)
        return self if isinstance(other, Multiplicative) else OutputPremetric.join(self, other)

    def __str__(self) -> str:
        return f"D_δ(δ = {_write_delta(self.delta)})"


def make_conversion_error(premetric: OutputPremetric, to: OutputPremetric) -> IncompatibleError:
    """Return the error for a premetric that cannot be restated as another."""
    if isinstance(premetric, Approximate) and isinstance(to, Approximate):
        return IncompatibleError(
            f"cannot restate {premetric} as {to}",
            why=f"its parts together have δ = {_write_delta(premetric.delta)}, and no rule makes a δ smaller",
            fix=f"ask for a δ of at least {_write_delta(premetric.delta)}",
        )
    return IncompatibleError(
        f"cannot restate {premetric} as {to}",
        why="no conversion between the two holds at every distance",
        fix="a zCDP budget can be read as (ε, δ) at one distance: stirred.spec.reading",
    )


def _write_delta(delta: Fraction) -> str:
    """Write δ as a fraction, or as a decimal where it was rounded; different δ have different texts."""
    places = len(write_digits(delta.denominator))
    if delta.numerator < 10**4 or places > 40 or 10 ** (4 * places) % delta.denominator:
        return write_fraction(delta)
    with localcontext(prec=4 * places):
        return str(Decimal(delta.numerator) / Decimal(delta.denominator))


def rho_squared_to_epsilon(
    rho_squared: "int | str | Fraction | Budget",
    delta: int | str | Fraction,
    *,
    distance: int = 1,
    tight: bool = False,
) -> Decimal:
    """Return the ε of a zCDP budget at a stated distance, rounded up at six decimals."""
    return reading(Budget.of(rho_squared), delta, distance=distance, tight=tight).epsilon
