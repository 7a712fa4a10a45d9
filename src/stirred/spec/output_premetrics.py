"""Define output premetrics: distances of output distributions, their composition, conversions and readings."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm
from typing import ClassVar

from stirred.errors import BudgetError, IncompatibleError, VoidError
from stirred.spec.budgets import Budget
from stirred.spec.exact import Exact, Log, find_root, parse_fraction, round_up, write_digits, write_fraction
from stirred.spec.exact import write_digits as written

# The two conversions of zCDP to (ε, δ): the simple formula, and the tight one as a rigorous upper bound.


def compute_simple_epsilon(rho_squared: Budget, delta: Fraction) -> Budget:
    """Return ρ² + 2√(ρ²·(−ln δ)) exactly."""
    return rho_squared + Budget.sqrt(rho_squared * Budget.log(1 / delta)) * 2


@lru_cache(maxsize=512)  # a card reads the same budget several times
def compute_tight_epsilon(rho_squared: Budget, delta: Fraction, decimals: int) -> Decimal:
    r"""$\inf_\alpha\, \alpha\rho^2 + \frac{\ln(1/\delta) + (\alpha-1)\ln(1-1/\alpha) - \ln\alpha}{\alpha-1}$, rounded up.

    Every α > 1 gives a valid ε, so the minimiser is looked for in floating point, made a fraction, and the formula is
    evaluated exactly there.
    """
    assert rho_squared.value is not None
    if rho_squared.is_zero:
        return Decimal(0).scaleb(-decimals)
    alpha = _find_best_order(rho_squared, delta)
    value = round_up(compute_epsilon_at(rho_squared.value, delta, alpha), decimals)
    # below 0 the conversion says that (0, δ) holds
    return max(
        min(value, compute_simple_epsilon(rho_squared, delta).upper(decimals)), Decimal(0).scaleb(-decimals)
    )


def compute_epsilon_at(rho_squared: Exact, delta: Fraction, alpha: Fraction) -> Exact:
    """Return the conversion at one order α, exactly."""
    gap = alpha - 1
    logs = Exact.log(1 / delta) - Exact.log(alpha)
    return rho_squared.scale(alpha) + logs.scale(1 / gap) + Exact.log(1 - 1 / alpha)


def _find_best_order(rho_squared: Budget, delta: Fraction) -> Fraction:
    r"""The α where the derivative vanishes: with $g = \alpha - 1$ that is $\rho^2 g^2 + \ln(1 + g) = \ln(1/\delta)$.

    In ln g the left side is increasing and convex, so Newton's method from the right meets the root from above.
    """
    import mpmath

    with mpmath.workdps(40):
        rho = mpmath.mpf(str(rho_squared.upper(30)))
        weight = mpmath.log(mpmath.mpf(delta.denominator)) - mpmath.log(mpmath.mpf(delta.numerator))
        at = min(mpmath.log(weight / rho) / 2, mpmath.mpf(60))
        for _ in range(200):
            gap = mpmath.exp(at)
            quadratic = rho * gap * gap
            step = (quadratic + mpmath.log1p(gap) - weight) / (2 * quadratic + gap / (1 + gap))
            at -= step
            if abs(step) < mpmath.mpf(10) ** -13:
                break
        gap = mpmath.exp(max(at, mpmath.mpf(-60)))
        # twelve good digits of α − 1, as a short fraction
        scale = 10 ** max(0, 14 - int(mpmath.floor(mpmath.log10(gap))))
        return 1 + Fraction(ceil(int(gap * scale)) or 1, scale)


# (ε, δ) readings of a zCDP budget at a stated distance, rounded up.
#
# Definition 1 must hold at every distance, but the conversion is not linear in the distance: at distance k it is
# k²ρ² + 2kρ√(−ln δ), more than k times its value at 1. So a reading is a fact about pairs at one distance and
# never a specification.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """ε at one distance and one δ, by one formula; not a specification."""

    epsilon: Decimal
    delta: Fraction
    distance: int
    formula: str

    def __str__(self) -> str:
        return f"(ε, δ) = ({self.epsilon}, {float(self.delta):.3g}) at distance {self.distance}"


SIMPLE_FORMULA = "k²ρ² + 2kρ√(−ln δ) (Bun and Steinke 2016, Prop. 1.3)"
TIGHT_FORMULA = "inf over α of the Rényi conversion (Canonne, Kamath and Steinke 2020, Prop. 12)"


def reading(
    rho_squared: Budget,
    delta: int | str | Fraction,
    *,
    distance: int = 1,
    tight: bool = False,
    decimals: int = 6,
) -> Reading:
    """Return the ε of ρ²-zCDP at distance k, rounded up.

    >>> reading(Budget.of("293764/114921"), "1e-10", decimals=4).epsilon
    Decimal('17.9002')
    >>> reading(Budget.of("293764/114921"), "1e-10", tight=True, decimals=2).epsilon
    Decimal('17.15')
    """
    number = parse_fraction(delta, "delta")
    if not 0 < number < 1:
        raise BudgetError(
            "delta must lie between 0 and 1",
            why="at 0 the conversion is infinite, at 1 it is void",
            fix="write 1e-10 or 1/1000000",
        )
    if isinstance(distance, bool) or distance < 1:
        raise BudgetError(
            f"{distance} is no distance",
            why="a reading is taken at a whole distance of at least 1",
            fix="give 1, 2, …",
        )
    scaled = rho_squared * (distance * distance)
    if not scaled.is_finite:
        epsilon = Decimal("Infinity")
    elif tight:
        epsilon = compute_tight_epsilon(scaled, number, decimals)
    else:
        epsilon = compute_simple_epsilon(scaled, number).upper(decimals)
    return Reading(
        epsilon=epsilon, delta=number, distance=distance, formula=TIGHT_FORMULA if tight else SIMPLE_FORMULA
    )


# Group privacy of (ε, δ): the one place where δ at another distance or for another unit is computed.
#
# Between data sets k neighbours apart, (ε, δ) becomes $(k\varepsilon, \delta_k)$ with
# $\delta_k = \delta\,(e^{k\varepsilon} - 1)/(e^\varepsilon - 1)$, which is
# $\delta(1 + e^\varepsilon + \dots + e^{(k-1)\varepsilon})$ for whole k and kδ at ε = 0 (Vadhan 2017, Lemma 2.2). The
# same formula with a constant c instead of k restates the promise for another unit.

DELTA_DIGITS = 12  # significant digits of a δ that is no fraction
_MAX_BITS = 1 << 13
_MAX_POWER_BITS = 1 << 16  # bits of a power that is still computed exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """(kε, δₖ) between data sets k neighbours apart; δₖ is rounded up."""

    epsilon: Budget
    delta: Decimal
    distance: int | Fraction


def at_distance(
    epsilon: Budget, delta: int | str | Fraction, *, distance: int | Fraction, digits: int = 6
) -> GroupReading:
    r"""(ε, δ) for neighbours, read at distance k: $(k\varepsilon,\ \delta (e^{k\varepsilon}-1)/(e^\varepsilon-1))$.

    The chain x = x₀, …, x_k of neighbours gives P₀(E) ≤ e^{kε}P_k(E) + δ(1 + e^ε + … + e^{(k−1)ε}); the sum is k only
    at ε = 0.

    >>> at_distance(Budget.of(1), "1/100", distance=2).delta  # not 0.02
    Decimal('0.0371829')
    """
    number = parse_fraction(delta, "delta")
    if isinstance(distance, bool | float) or distance <= 0:
        raise BudgetError(
            f"{distance} is no distance",
            why="group privacy is read at an exact distance above 0",
            fix="give 1, 2, … or a Fraction",
        )
    found = Fraction(1) if not epsilon.is_finite else _bound_delta(epsilon, number, Fraction(distance))[0]
    return GroupReading(epsilon=epsilon * distance, delta=round_up_digits(found, digits), distance=distance)


def scale_delta(epsilon: Budget, delta: Fraction, constant: Fraction) -> Fraction:
    """Return the δ of the promise where distances are at most ``constant`` times as large, rounded up.

    It is at most 1, from where on nothing is promised. An infinite ε promises nothing either: δ is returned as it is.

    >>> scale_delta(Budget.log(2), Fraction(1, 1000), Fraction(3))  # 1 + 2 + 4
    Fraction(7, 1000)
    >>> scale_delta(Budget.log(4), Fraction(3, 10), Fraction(1, 2))  # (2 − 1)/(4 − 1)
    Fraction(1, 10)
    """
    if not epsilon.is_finite:
        return delta
    found, exact = _bound_delta(epsilon, delta, constant)
    if exact or found == 1:
        return found
    return min(Fraction(round_up_digits(found, DELTA_DIGITS)), Fraction(1))


def _bound_delta(epsilon: Budget, delta: Fraction, steps: Fraction) -> tuple[Fraction, bool]:
    """Return δ·(e^{kε} − 1)/(e^ε − 1), at most 1, from above, and whether it is exact."""
    value = epsilon.value
    if value is None or delta >= 1:
        return Fraction(1), True
    if delta == 0 or steps in (0, 1):
        return delta * steps, True
    if epsilon.is_zero:
        return min(delta * steps, Fraction(1)), True
    # δₖ ≥ δ·e^{(k−1)ε}: no power is computed where this alone exceeds 1
    if steps > 1 and (epsilon * (steps - 1)).lower(6) > Budget.log(1 / delta).upper(6):
        return Fraction(1), True
    one, all_steps = _find_rational_power(value, Fraction(1)), _find_rational_power(value, steps)
    if one is not None and all_steps is not None:
        return min(delta * (all_steps - 1) / (one - 1), Fraction(1)), True
    return min(delta * _bound_ratio(value, steps), Fraction(1)), False


def _bound_ratio(value: Exact, steps: Fraction) -> Fraction:
    """Return (e^{kε} − 1)/(e^ε − 1) rounded up to 15 digits."""
    bits = 128
    while bits <= _MAX_BITS:
        box = value.interval(bits)
        one, many = box.exp(bits), box.scale(steps).exp(bits)
        if one.low > 1 and many.low > 1:
            high, low = (many.high - 1) / (one.low - 1), (many.low - 1) / (one.high - 1)
            if high - low < low / 10**15:
                return high
        bits *= 2
    # ε is below all precision: x^k − 1 ≤ k·x^{k−1}(x − 1) for k ≥ 1, and ≤ k(x − 1) for k < 1
    return steps if steps < 1 else steps * value.scale(steps - 1).interval(128).exp(128).high


def _find_rational_power(value: Exact, steps: Fraction) -> Fraction | None:
    """Return e^{kε} as a fraction where ε is a sum of logarithms of fractions, or None."""
    exponents: list[tuple[Fraction, Fraction]] = []
    for monomial, coefficient in value.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Log):
            return None
        exponents.append((monomial[0][0].of, coefficient * steps))
    root = lcm(*(exponent.denominator for _, exponent in exponents))
    size = sum(abs(e * root) * (q.numerator.bit_length() + q.denominator.bit_length()) for q, e in exponents)
    if size > _MAX_POWER_BITS:
        return None
    power = Fraction(1)
    for q, exponent in exponents:
        power *= q ** int(exponent * root)
    return find_root(power, root)


def round_up_digits(value: Fraction, digits: int) -> Decimal:
    """Round a positive number up to that many significant digits.

    >>> round_up_digits(Fraction(1, 3), 3), round_up_digits(Fraction(9999, 10000), 3)
    (Decimal('0.334'), Decimal('1.00'))
    """
    if value == 0:
        return Decimal(0)
    places = digits - len(written(value.numerator)) + len(written(value.denominator))
    shifted = value * Fraction(10) ** places
    if shifted >= 10**digits:
        places, shifted = places - 1, shifted / 10
    whole = ceil(shifted)
    if whole == 10**digits:
        places, whole = places - 1, whole // 10
    with localcontext(prec=digits + 2):
        return Decimal(whole).scaleb(-places)


# Output premetrics: how the change of an output's distribution is measured, and how budgets compose in it.


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

    >>> NormalizedRenyi().compose([Budget.sqrt(2), Budget.sqrt("1/2")]).square().exact
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
