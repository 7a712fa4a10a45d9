"""What the budget of one specification allows at the smallest distance that occurs in its universes."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from stirred.languages import Phrase
from stirred.spec.card import factors as odds
from stirred.spec.card.words import describe_change, write_small
from stirred.spec.nearest.distance import Distance, smallest_distance
from stirred.spec.neighbours import Neighbours
from stirred.spec.outputs.divergences import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    rho_squared_to_epsilon,
)
from stirred.spec.outputs.group import scale_delta
from stirred.spec.specification import Specification

DEFAULT_DELTA = Fraction(1, 10**10)


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsBound:
    """The bound on how far odds between two data sets may move, and how often the best test must err.

    ``log_odds`` is None where no rule turns the output premetric into odds, and infinite where nothing is promised.
    """

    distance: int | None  # None: no change of what is released is known, and nothing is known to be protected
    sure: bool = True  # with distance None: there is no such change
    occurs: str  # how sure it is that no smaller distance occurs, as the end of "the smallest"
    reason: str  # why this is the smallest distance that occurs
    change: str  # what happens at that distance
    changed: str  # the records that change: the unit, or the homes of persons who live alone
    moved: tuple[str, ...] = ()  # the variables that records exchange at that distance
    log_odds: Decimal | None
    formula: str  # e^{kε} or what stands for it
    exception: str  # "" or the probability with which the bound may fail
    error: str  # how often the best test must err at least
    error_words: str

    @property
    def factor(self) -> str:
        """Return the factor on the odds as text, rounded up."""
        if self.log_odds is None:
            return Phrase("card.not_known")
        return "∞" if self.log_odds.is_infinite() else odds.write_factor(self.log_odds)

    @property
    def near_certain(self) -> bool:
        """Return whether the factor is above 1,000, so that the bound alone does not prevent near-certainty."""
        return self.log_odds is not None and (
            self.log_odds.is_infinite() or odds.bound_power_of_e(self.log_odds) > odds.NEAR_CERTAINTY_FACTOR
        )

    def belief(self, prior: Fraction) -> str:
        """Return the largest belief after the release of someone who starts with this prior probability."""
        if self.log_odds is None:
            return Phrase("card.not_known")
        if self.log_odds.is_infinite():
            return Phrase("card.chance.certain")
        return odds.write_chance(odds.bound_posterior(prior, self.log_odds))


def _has_promise(specification: Specification, distance: int) -> bool:
    """Return whether the specification promises anything between data sets at that distance."""
    budget, measure = specification.budget, specification.output_premetric
    if not budget.is_finite or (isinstance(specification.input_premetric, Neighbours) and distance > 1):
        return False
    # from δₖ = 1 on every release is allowed at distance k
    return not isinstance(measure, Approximate) or measure.excludes(budget, distance)


def bound_odds(
    specification: Specification, *, delta: Fraction = DEFAULT_DELTA, distance: int | None = None
) -> OddsBound:
    """Return how far a specification lets odds move, at the smallest distance or at the given one.

    Under (ε, δ) the factor holds except with probability δₖ in this sense: at distance k the release can be drawn from
    one that shows everything with probability δₖ and else moves odds by at most e^{kε} (Kairouz, Oh and Viswanath 2015).
    """
    premetric, measure = specification.input_premetric, specification.output_premetric
    counted_by = premetric.unrestricted
    near = smallest_distance(specification.domain, specification.multiverse, counted_by, specification.views)
    if distance is not None:
        exact = near.value == distance and near.exact
        near = Distance(distance, exact, Phrase("card.distance.asked"), changed=near.changed)
    changed = near.changed or premetric.unit
    if near.value is None:
        return _make_unbounded(near, changed)
    smallest, reason = near.value, near.because
    log_odds: Decimal | None = None
    formula, exception, error, error_words = "", "", "", ""
    steps = "" if smallest == 1 else str(smallest)
    if isinstance(premetric, Neighbours) and smallest > 1:
        reason = Phrase("card.distance.neighbours_only", reason=reason)
    if not _has_promise(specification, smallest):
        log_odds, error, error_words = (
            Decimal("Infinity"),
            Phrase("card.error.never"),
            Phrase("card.error.nothing"),
        )
    elif isinstance(measure, Multiplicative):
        log_odds = (specification.budget * smallest).upper(6)
        formula = f"e^({steps}ε)"
        error = odds.write_at_least(odds.bound_pure_error(log_odds))
        error_words = Phrase("card.error.both_sides")
    elif isinstance(measure, NormalizedRenyi):
        rho_squared = specification.rho_squared
        log_odds = rho_squared_to_epsilon(rho_squared, delta, distance=smallest)
        formula = f"e^({steps and steps + '²'}ρ² + 2·{steps and steps + '·'}ρ√(−ln δ))"
        exception = Phrase("card.except", probability=write_small(delta))
        mean = odds.bound_concentrated_error((rho_squared * smallest**2).upper(9))
        error = odds.write_at_least(mean)
        error_words = Phrase("card.error.on_average")
    elif isinstance(measure, Approximate):
        log_odds = (specification.budget * smallest).upper(6)
        formula = f"e^({steps}ε)"
        beyond = scale_delta(specification.budget, measure.delta, Fraction(smallest))
        exception = Phrase("card.except", probability=write_small(beyond)) if beyond else ""
        error = odds.write_at_least(odds.bound_approximate_error(log_odds, beyond))
        error_words = Phrase("card.error.both_sides")
    else:
        # a premetric from outside the package may say itself what it means for odds
        rule = getattr(measure, "log_odds", None)
        log_odds = rule(specification.budget, smallest) if rule is not None else None
        error = Phrase("card.not_known")
        error_words = Phrase("card.error.no_rule", measure=str(measure))
    return OddsBound(
        distance=smallest,
        occurs=near.occurs,
        reason=reason,
        change=describe_change(changed, smallest, premetric, occurs=near.occurs),
        changed=changed,
        moved=near.moved,
        log_odds=log_odds,
        formula=formula,
        exception=exception,
        error=error,
        error_words=error_words,
    )


def _make_unbounded(near: Distance, changed: str) -> OddsBound:
    """Return the bound where no change of what is released is known: no limit holds, at any budget."""
    return OddsBound(
        distance=None,
        occurs=near.occurs,
        reason=near.because,
        sure=near.exact,
        change=Phrase("card.change.none"),
        changed=changed,
        log_odds=Decimal("Infinity"),
        formula="",
        exception="",
        error=Phrase("card.error.never"),
        error_words=Phrase("card.error.all_told" if near.exact else "card.error.unknown"),
    )
