"""What a budget allows, in words: how far odds may move, and how rarely the best test must err.

Two data sets x, x' of one universe at distance k are two hypotheses; the release is the evidence. Everything here
is an upper bound on what the release can reveal (a lower bound on errors), rounded to the unfavourable side.
"""

from decimal import Decimal
from fractions import Fraction

from mpmath import iv, mp, mpf

from stirred.languages import Phrase

NEAR_CERTAINTY_FACTOR = 1000  # above this factor on the odds a bound alone no longer prevents near-certainty
_DECIMAL_DIGITS = 60
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def write_significant(value: mpf, digits: int, *, up: bool) -> Phrase:
    """Write a number with the given significant digits, rounded up or down as asked.

    >>> write_significant(mpf("1234.5"), 3, up=True), write_significant(mpf("25179000000000"), 3, up=True)
    ('1,240', '2.52 × 10¹³')
    """
    if value == 0:
        return Phrase("numbers.plain", number=0)
    with mp.workdps(_DECIMAL_DIGITS):
        exponent = int(mp.floor(mp.log10(value)))
        scaled = value * mpf(10) ** (digits - 1 - exponent)
        whole = int(mp.ceil(scaled)) if up else int(mp.floor(scaled))
    if whole >= 10**digits:  # 9.996 rounded up to 10.00
        whole, exponent = whole // 10, exponent + 1
    if -4 <= exponent < 6:
        places = max(0, digits - 1 - exponent)
        number = Decimal(whole).scaleb(exponent - digits + 1).quantize(Decimal(1).scaleb(-places))
        return Phrase("numbers.plain", number=number)
    mantissa = Decimal(whole).scaleb(1 - digits)
    return Phrase("numbers.power", mantissa=mantissa, power=str(exponent).translate(_SUPERSCRIPTS))


def bound_power_of_e(exponent: Decimal) -> mpf:
    """Return an upper bound of e to the exponent, by interval arithmetic."""
    with mp.workdps(_DECIMAL_DIGITS):
        iv.dps = _DECIMAL_DIGITS
        return mpf(iv.exp(iv.mpf(str(exponent))).b)


def write_factor(log_odds: Decimal) -> Phrase:
    """Write the largest factor by which odds may move when their logarithm moves by at most this much.

    >>> write_factor(Decimal("30.859")), write_factor(Decimal("0.6932"))
    ('2.53 × 10¹³', '2.01')
    """
    return write_significant(bound_power_of_e(log_odds), 3, up=True)


def bound_posterior(prior: Fraction, log_odds: Decimal) -> mpf:
    r"""The largest belief Bayes' rule allows after the release: $\pi f/(\pi f + 1 - \pi)$, $f$ the factor on the odds.

    >>> round(float(bound_posterior(Fraction(1, 2), Decimal(3).ln())), 3)
    0.75
    """
    with mp.workdps(_DECIMAL_DIGITS):
        odds = bound_power_of_e(log_odds) * prior.numerator / (prior.denominator - prior.numerator)
        return odds / (1 + odds)


def write_chance(probability: mpf) -> Phrase:
    """Write an upper bound of a probability for readers; near 1, write how much is missing to certainty.

    >>> write_chance(mpf("0.7311")), write_chance(bound_posterior(Fraction(1, 2), Decimal(10)))
    ('73.2 %', 'certainty but for 1 in 22,028')
    """
    with mp.workdps(_DECIMAL_DIGITS):
        rest = 1 - probability
        if rest <= 0:
            return Phrase("card.chance.certain")
        if rest < mpf("0.001"):
            return Phrase("card.chance.but_for", number=write_one_in(rest))
        return Phrase("card.chance.percent", number=write_significant(100 * probability, 3, up=True))


def write_one_in(probability: mpf) -> Phrase:
    """Write the N of "1 in N" for a lower bound of a probability; N is rounded up."""
    with mp.workdps(_DECIMAL_DIGITS):
        # the tiny subtraction keeps 1/(1/N) from being pushed to the next number by the last binary digit
        inverse = 1 / probability * (1 - mpf(10) ** -12)
        if inverse < 10**9:
            return Phrase("numbers.plain", number=int(mp.ceil(inverse)))
        return write_significant(inverse, 3, up=True)


def write_at_least(probability: mpf) -> Phrase:
    """Write a lower bound of a probability, rounded down: a share, or "1 in N" below one per cent.

    >>> write_at_least(mpf("0.40319")), write_at_least(mpf("0.000125"))
    ('40.3 %', '1 in 8,000')
    """
    with mp.workdps(_DECIMAL_DIGITS):
        if probability >= mpf("0.01"):
            return Phrase("card.chance.percent", number=write_significant(100 * probability, 3, up=False))
        return Phrase("card.chance.one_in", number=write_one_in(probability))


def bound_pure_error(log_odds: Decimal) -> mpf:
    r"""The smallest error rate a test can have on both sides at once under $D_{mult}$: $1/(1+e^{k\varepsilon})$.

    A test with false-alarm rate α finds the truth with probability at most min(e^E α, 1 − e^{−E}(1 − α)),
    E = kε (Kairouz, Oh and Viswanath 2015, with δ = 0); both bounds meet at α = 1/(1 + e^E).

    >>> round(float(bound_pure_error(Decimal(3).ln())), 3)
    0.25
    """
    with mp.workdps(_DECIMAL_DIGITS):
        return 1 / (1 + bound_power_of_e(log_odds))


def bound_approximate_error(log_odds: Decimal, delta: Fraction) -> mpf:
    r"""The same under (E, Δ): $(1-\Delta)/(1+e^E)$ (Kairouz, Oh and Viswanath 2015, Theorem 2.1 with its corollary).

    Error rates α and β satisfy α + e^E β ≥ 1 − Δ and e^E α + β ≥ 1 − Δ; the two meet at α = β.

    >>> round(float(bound_approximate_error(Decimal(3).ln(), Fraction(1, 5))), 3)
    0.2
    """
    with mp.workdps(_DECIMAL_DIGITS):
        return (delta.denominator - delta.numerator) * bound_pure_error(log_odds) / delta.denominator


def bound_concentrated_error(rho_squared: Decimal) -> mpf:
    r"""Return a lower bound of the mean of the two error rates of any test under zCDP.

    The Kullback–Leibler divergence is at most ρ² (α → 1), so the total variation is at most $\sqrt{\rho^2/2}$
    (Pinsker) and at most $\sqrt{1-e^{-\rho^2}}$ (Bretagnolle and Huber 1979); the mean error is (1 − TV)/2.

    >>> round(float(bound_concentrated_error(Decimal("0.02"))), 3)
    0.45
    """
    with mp.workdps(_DECIMAL_DIGITS):
        kl = mpf(str(rho_squared))
        # 1 − √(1−x) = x/(1+√(1−x)) keeps its digits when x is tiny
        x = mp.exp(-kl)
        huber = x / (1 + mp.sqrt(1 - x)) / 2
        pinsker = (1 - mp.sqrt(kl / 2)) / 2
        return max(huber, pinsker)
