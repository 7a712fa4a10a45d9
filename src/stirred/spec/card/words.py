"""Say in plain words what a specification allows: how far odds may move, and how often a test must err."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred._support import ModuleOnDemand
from stirred.languages import Language, Phrase, spell_number, unit
from stirred.spec.exact import write_digits
from stirred.spec.input_premetrics import Exchanges, InputPremetric, Neighbours, SymmetricDifference
from stirred.spec.nearest import Distance, smallest_distance
from stirred.spec.output_premetrics import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    rho_squared_to_epsilon,
    round_up_digits,
    scale_delta,
)
from stirred.spec.specification import Specification

if TYPE_CHECKING:
    from mpmath import mpf

mpmath: Any = ModuleOnDemand("mpmath")  # it takes longer to load than all of this

# What a budget allows, in words: how far odds may move, and how rarely the best test must err.
#
# Two data sets x, x' of one universe at distance k are two hypotheses; the release is the evidence. Everything here
# is an upper bound on what the release can reveal (a lower bound on errors), rounded to the unfavourable side.

NEAR_CERTAINTY_FACTOR = 1000  # above this factor on the odds a bound alone no longer prevents near-certainty
_DECIMAL_DIGITS = 60
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def write_significant(value: "mpf", digits: int, *, up: bool) -> Phrase:
    """Write a number with the given significant digits, rounded up or down as asked.

    >>> write_significant(mpmath.mpf("1234.5"), 3, up=True), write_significant(mpmath.mpf("25179000000000"), 3, up=True)
    ('1,240', '2.52 × 10¹³')
    """
    if value == 0:
        return Phrase("numbers.plain", number=0)
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        exponent = int(mpmath.mp.floor(mpmath.mp.log10(value)))
        scaled = value * mpmath.mpf(10) ** (digits - 1 - exponent)
        whole = int(mpmath.mp.ceil(scaled)) if up else int(mpmath.mp.floor(scaled))
    if whole >= 10**digits:  # 9.996 rounded up to 10.00
        whole, exponent = whole // 10, exponent + 1
    if -4 <= exponent < 6:
        places = max(0, digits - 1 - exponent)
        number = Decimal(whole).scaleb(exponent - digits + 1).quantize(Decimal(1).scaleb(-places))
        return Phrase("numbers.plain", number=number)
    mantissa = Decimal(whole).scaleb(1 - digits)
    return Phrase("numbers.power", mantissa=mantissa, power=str(exponent).translate(_SUPERSCRIPTS))


def bound_power_of_e(exponent: Decimal) -> "mpf":
    """Return an upper bound of e to the exponent, by interval arithmetic."""
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        mpmath.iv.dps = _DECIMAL_DIGITS
        return mpmath.mpf(mpmath.iv.exp(mpmath.iv.mpf(str(exponent))).b)


def write_factor(log_odds: Decimal) -> Phrase:
    """Write the largest factor by which odds may move when their logarithm moves by at most this much.

    >>> write_factor(Decimal("30.859")), write_factor(Decimal("0.6932"))
    ('2.53 × 10¹³', '2.01')
    """
    return write_significant(bound_power_of_e(log_odds), 3, up=True)


def bound_posterior(prior: Fraction, log_odds: Decimal) -> "mpf":
    r"""The largest belief Bayes' rule allows after the release: $\pi f/(\pi f + 1 - \pi)$, $f$ the factor on the odds.

    >>> round(float(bound_posterior(Fraction(1, 2), Decimal(3).ln())), 3)
    0.75
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        odds = bound_power_of_e(log_odds) * prior.numerator / (prior.denominator - prior.numerator)
        return odds / (1 + odds)


def write_chance(probability: "mpf") -> Phrase:
    """Write an upper bound of a probability for readers; near 1, write how much is missing to certainty.

    >>> write_chance(mpmath.mpf("0.7311")), write_chance(bound_posterior(Fraction(1, 2), Decimal(10)))
    ('73.2%', 'near-certainty (all but 1 in 22,028)')
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        rest = 1 - probability
        if rest <= 0:
            return Phrase("card.chance.certain")
        if rest < mpmath.mpf("0.001"):
            return Phrase("card.chance.but_for", number=write_one_in(rest))
        return Phrase("card.chance.percent", number=write_significant(100 * probability, 3, up=True))


def write_one_in(probability: "mpf") -> Phrase:
    """Write the N of "1 in N" for a lower bound of a probability; N is rounded up."""
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        # the tiny subtraction keeps 1/(1/N) from being pushed to the next number by the last binary digit
        inverse = 1 / probability * (1 - mpmath.mpf(10) ** -12)
        if inverse < 10**9:
            return Phrase("numbers.plain", number=int(mpmath.mp.ceil(inverse)))
        return write_significant(inverse, 3, up=True)


def write_at_least(probability: "mpf") -> Phrase:
    """Write a lower bound of a probability, rounded down: a share, or "1 in N" below one per cent.

    >>> write_at_least(mpmath.mpf("0.40319")), write_at_least(mpmath.mpf("0.000125"))
    ('40.3%', '1 in 8,000')
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        if probability >= mpmath.mpf("0.01"):
            return Phrase("card.chance.percent", number=write_significant(100 * probability, 3, up=False))
        return Phrase("card.chance.one_in", number=write_one_in(probability))


def bound_pure_error(log_odds: Decimal) -> "mpf":
    r"""The smallest error rate a test can have on both sides at once under $D_{mult}$: $1/(1+e^{k\varepsilon})$.

    A test with false-alarm rate α finds the truth with probability at most min(e^E α, 1 − e^{−E}(1 − α)),
    E = kε (Kairouz, Oh and Viswanath 2015, with δ = 0); both bounds meet at α = 1/(1 + e^E).

    >>> round(float(bound_pure_error(Decimal(3).ln())), 3)
    0.25
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        return 1 / (1 + bound_power_of_e(log_odds))


def bound_approximate_error(log_odds: Decimal, delta: Fraction) -> "mpf":
    r"""The same under (E, Δ): $(1-\Delta)/(1+e^E)$ (Kairouz, Oh and Viswanath 2015, Theorem 2.1 with its corollary).

    Error rates α and β satisfy α + e^E β ≥ 1 − Δ and e^E α + β ≥ 1 − Δ; the two meet at α = β.

    >>> round(float(bound_approximate_error(Decimal(3).ln(), Fraction(1, 5))), 3)
    0.2
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        return (delta.denominator - delta.numerator) * bound_pure_error(log_odds) / delta.denominator


def bound_concentrated_error(rho_squared: Decimal) -> "mpf":
    r"""Return a lower bound of the mean of the two error rates of any test under zCDP.

    The Kullback–Leibler divergence is at most ρ² (α → 1), so the total variation is at most $\sqrt{\rho^2/2}$
    (Pinsker) and at most $\sqrt{1-e^{-\rho^2}}$ (Bretagnolle and Huber 1979); the mean error is (1 − TV)/2.

    >>> round(float(bound_concentrated_error(Decimal("0.02"))), 3)
    0.45
    """
    with mpmath.mp.workdps(_DECIMAL_DIGITS):
        kl = mpmath.mpf(str(rho_squared))
        # 1 − √(1−x) = x/(1+√(1−x)) keeps its digits when x is tiny
        x = mpmath.mp.exp(-kl)
        huber = x / (1 + mpmath.mp.sqrt(1 - x)) / 2
        pinsker = (1 - mpmath.mp.sqrt(kl / 2)) / 2
        return max(huber, pinsker)


# The five parts of a specification in plain words, for people who publish or use tables.

_SUPERSCRIPT_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def describe_status(name: str) -> Phrase:
    """Return in words how a budget is known."""
    return Phrase(f"card.status.{name}")


def write_decimal(value: Decimal) -> Phrase:
    """Write a number with four decimals, rounded up; from 10⁹ on with five significant digits.

    >>> write_decimal(Decimal("52.825422")), write_decimal(Decimal("272938796980.7720"))
    ('52.8255', '2.7294 × 10¹¹')
    """
    if value.is_infinite():
        return Phrase("numbers.plain", number="∞")
    if value >= 10**9:
        return write_significant(mpmath.mpf(str(value)), 5, up=True)
    # more digits than any budget has, so that rounding to four decimals is the only rounding
    shown = value.quantize(Decimal("0.0001"), rounding=ROUND_CEILING, context=Context(prec=400))
    return Phrase("numbers.plain", number=shown)


def insert_labels(text: str, labels: Mapping[str, str]) -> str:
    """Replace names of variables by labels; only names with an underscore, which are no words.

    >>> insert_labels("households by block_group × gq_type", {"gq_type": "type of group quarters"})
    'households by block group × type of group quarters'
    """

    def word(found: re.Match[str]) -> str:
        return labels.get(found[0]) or found[0].replace("_", " ")

    return re.sub(r"[A-Za-z]\w*_\w+", word, text)


def label_products(text: str, labels: Mapping[str, str], language: Language) -> str:
    """Write variables that are joined by × as a list of their labels.

    >>> label_products("homes by state × size (only a × b)", {"size": "persons living there"}, Language.of("en"))
    'homes by state and persons living there (only a and b)'
    """

    def write_list(part: str) -> str:
        names = part.split(" × ")
        if len(names) < 2:
            return part
        start, _, first = names[0].rpartition(" ")
        last, space, end = names[-1].partition(" ")
        listed = [labels.get(name, name) for name in (first, *names[1:-1], last)]
        joined = language.say("lists.comma").join(listed[:-1]) + language.say("lists.and") + listed[-1]
        return (f"{start} " if start else "") + joined + space + end

    return "".join(write_list(part) for part in re.split(r"([;()])", text))


def write_small(value: Fraction) -> Phrase:
    """Write a small probability such as δ; one of many digits is rounded up.

    >>> write_small(Fraction(1, 10**10)), write_small(Fraction(3, 100)), write_small(Fraction(371829, 10**12))
    ('10⁻¹⁰', '3/100', '3.72 × 10⁻⁷')
    """
    exponent = len(write_digits(value.denominator)) - 1
    if value.numerator == 1 and value.denominator == 10**exponent and exponent > 2:
        return Phrase("numbers.plain", number=f"10⁻{str(exponent).translate(_SUPERSCRIPT_DIGITS)}")
    if value.numerator >= 1000:
        shown = round_up_digits(value, 3)
        if shown.adjusted() >= -4:
            return Phrase("numbers.plain", number=shown)
        power = f"⁻{str(-shown.adjusted()).translate(_SUPERSCRIPT_DIGITS)}"
        return Phrase("numbers.power", mantissa=shown.scaleb(-shown.adjusted()), power=power)
    return Phrase(
        "numbers.plain", number=f"{write_digits(value.numerator)}/{write_digits(value.denominator)}"
    )


def describe_change(
    named: str, distance: int | None, premetric: InputPremetric, *, occurs: str = ""
) -> Phrase:
    """Describe the change at that distance, as the subject of a sentence.

    >>> from stirred.spec.input_premetrics import Hamming
    >>> describe_change("household", 4, Hamming("household"))
    'a change of four household records (the smallest that can occur)'
    """
    if isinstance(premetric, Neighbours):
        return describe_change(named, distance, premetric.inner, occurs=occurs)
    if distance is None:
        return Phrase("card.change.none")
    occurs = occurs or Phrase("distance.can_occur")
    records, number = unit(named, "records"), spell_number(distance)
    if isinstance(premetric, Exchanges):
        if distance == 1:
            return Phrase("card.change.traded", two_differ=unit(named, "two_differ"), occurs=occurs)
        return Phrase("card.change.exchanges", number=number, records=records, occurs=occurs)
    if isinstance(premetric, SymmetricDifference):
        if distance == 1:
            return Phrase("card.change.presence", of_one=unit(named, "of_one"))
        if distance == 2:
            return Phrase("card.change.replacement", of_one=unit(named, "of_one"))
        return Phrase("card.change.come_or_go", number=number, records=records, occurs=occurs)
    if distance == 1:
        return Phrase("card.change.one", its_record=unit(named, "its_record"))
    if distance == 2:
        return Phrase("card.change.exchange", two=unit(named, "two"), occurs=occurs)
    return Phrase("card.change.several", number=number, records=records, occurs=occurs)


def describe_measure(premetric: OutputPremetric) -> str:
    """Describe in words how a change of the output is measured."""
    if isinstance(premetric, Multiplicative):
        return Phrase("card.measure.pure")
    if isinstance(premetric, NormalizedRenyi):
        return Phrase("card.measure.zcdp")
    if isinstance(premetric, Approximate):
        return Phrase("card.measure.approximate", delta=write_small(premetric.delta))
    words = (type(premetric).__doc__ or str(premetric)).strip().splitlines()[0].rstrip(".")
    return words[:1].lower() + words[1:]


def describe_unit(premetric: InputPremetric) -> Phrase:
    """Describe in words what counts as one change."""
    if isinstance(premetric, Neighbours):
        return Phrase("card.counted.neighbours", change=describe_unit(premetric.inner))
    record = unit(premetric.unit, "one_record")
    if isinstance(premetric, SymmetricDifference):
        return Phrase("card.counted.added", one_record=record)
    if isinstance(premetric, Exchanges):
        return Phrase("card.counted.exchanged", two_differ=unit(premetric.unit, "two_differ"))
    copies = getattr(premetric, "copies", 1)
    if copies > 1:
        return Phrase("card.counted.copied", one_record=record, copies=str(copies))
    return Phrase("card.counted.changed", one_record=record)


# What the budget of one specification allows at the smallest distance that occurs in its universes.

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
        return "∞" if self.log_odds.is_infinite() else write_factor(self.log_odds)

    @property
    def near_certain(self) -> bool:
        """Return whether the factor is above 1,000, so that the bound alone does not prevent near-certainty."""
        return self.log_odds is not None and (
            self.log_odds.is_infinite() or bound_power_of_e(self.log_odds) > NEAR_CERTAINTY_FACTOR
        )

    def belief(self, prior: Fraction) -> str:
        """Return the largest belief after the release of someone who starts with this prior probability."""
        if self.log_odds is None:
            return Phrase("card.not_known")
        if self.log_odds.is_infinite():
            return Phrase("card.chance.certain")
        return write_chance(bound_posterior(prior, self.log_odds))


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
        error = write_at_least(bound_pure_error(log_odds))
        error_words = Phrase("card.error.both_sides")
    elif isinstance(measure, NormalizedRenyi):
        rho_squared = specification.rho_squared
        log_odds = rho_squared_to_epsilon(rho_squared, delta, distance=smallest)
        formula = f"e^({steps and steps + '²'}ρ² + 2·{steps and steps + '·'}ρ√(−ln δ))"
        exception = Phrase("card.except", probability=write_small(delta))
        mean = bound_concentrated_error((rho_squared * smallest**2).upper(9))
        error = write_at_least(mean)
        error_words = Phrase("card.error.on_average")
    elif isinstance(measure, Approximate):
        log_odds = (specification.budget * smallest).upper(6)
        formula = f"e^({steps}ε)"
        beyond = scale_delta(specification.budget, measure.delta, Fraction(smallest))
        exception = Phrase("card.except", probability=write_small(beyond)) if beyond else ""
        error = write_at_least(bound_approximate_error(log_odds, beyond))
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
