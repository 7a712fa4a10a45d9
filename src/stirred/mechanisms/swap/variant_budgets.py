"""The proved budgets of the variants of the Permutation Swapping Algorithm.

Section 5 of proof.md states the laws: 1a, 1b and 1c (rates that vary), 2 (imputed records stay), 3 (no vacuous swap),
4 (near places preferred), 5 (probabilistic unit matching), 6a (noisy swap key) and 6b (noise after the swap). Section 6
proves their budgets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import exp, log1p

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.swap.bounds import bounds
from stirred.mechanisms.swap.budget import read_size, tight_budget
from stirred.mechanisms.swap.enumeration import find_loss
from stirred.mechanisms.swap.strata import Stratum, StratumTable
from stirred.spec.budgets import Bound, Budget
from stirred.spec.exact import parse_fraction
from stirred.spec.laws import (
    HALF,
    MAX_EXACT_RECORDS,
    Rate,
    SizeLaw,
    compute_odds,
    count_derangements,
    parse_rate,
)

UPPER_ONLY = "bound.tight.upper_only"  # a key of the catalog


def _check_rates(low: Rate, high: Rate) -> tuple[Fraction, Fraction]:
    least, most = parse_rate(low), parse_rate(high)
    if not 0 < least <= most < 1:
        raise InputError(
            "varying swap rates must lie strictly between 0 and 1",
            why=f"they run from {least} to {most}, and a record that never or always moves shows its place",
            fix="bound them away from 0 and 1, or leave such records out as imputed ones are",
        )
    return least, most


def read_inner_rate(rate: Rate) -> Fraction:
    """Return a swap rate strictly between 0 and 1; no law covers records that never or always move.

    >>> read_inner_rate("1/20")
    Fraction(1, 20)
    """
    return _check_rates(rate, rate)[0]


def read_rare_count(count: object) -> int:
    """Return the largest count that makes a combination rare, 1 or more.

    >>> read_rare_count(1)
    1
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(
            "rarity must use counts of at least 1",
            why="the count is a whole number of records",
            fix="counts_up_to=1 is uniqueness",
        )
    return count


def _step_ratio(n: int) -> Fraction:
    """Return d(n)/d(n−1), by which one more moved record divides a probability at most; n + 1/60 beyond 60."""
    if n <= 2:
        return Fraction(1)
    return (
        Fraction(count_derangements(n), count_derangements(n - 1))
        if n <= MAX_EXACT_RECORDS
        else n + Fraction(1, 60)
    )


def rates_by_held(n: int, low: Rate, high: Rate) -> Budget:
    r"""Law 1a in strata of at most n records: $\max\{\ln o_{\max},\ \tfrac12\ln\frac{d(n)}{d(n-2)} - \ln o_{\min}\}$.

    >>> rates_by_held(5, "1/10", "1/2").upper(4), rates_by_held(5, "1/10", "1/10") == tight_budget(5, "1/10")
    (Decimal('3.7428'), True)
    """
    least, most = _check_rates(low, high)
    return SizeLaw("by-size", least, most).at(read_size(n))


def _rate_factor(least: Fraction, most: Fraction) -> Fraction:
    """Return e^μ, how far the chance of (un)selecting one record moves when its rate does."""
    return max(most / least, (1 - least) / (1 - most))


def _redraw_factor(n: int, least: Fraction, most: Fraction) -> Fraction:
    """Return e^ν, how far the chance that nothing is redrawn moves when one record's rate does."""
    spread = _rate_factor(least, most)
    # Floats with a safety margin of a millionth: the exact power would have n digits.
    alone = Fraction(exp((n - 1) * log1p(-float(least))) * (1 + 1e-6))
    lone = alone * (1 - least) * n * compute_odds(most)
    if lone >= 1:
        return spread
    shift = (most - least) * alone * max(Fraction(1), (n - 1) * compute_odds(most)) / (1 - lone)
    return min(
        spread, Fraction(float(1 + shift) * (1 + 1e-15)).limit_denominator(10**15) + Fraction(1, 10**12)
    )


def rates_by_place(n: int, low: Rate, high: Rate) -> Budget:
    r"""Law 1b in a stratum of exactly n: $\max\{\ln o_{\max}, \ln\tfrac{d(n)}{d(n-1)} - \ln o_{\min}, \mu\} + \nu$.

    μ bounds a record's change of rate, ν that of the redraw's normaliser, which no longer cancels; ν falls with n, so
    that a small stratum may lose more than a large one.

    >>> rates_by_place(5, "1/10", "1/5").upper(4)
    Decimal('4.0078')
    """
    least, most = _check_rates(low, high)
    if read_size(n) <= 1:
        return Budget.zero()
    return Budget.log(_place_factor(n, least, most))


def _place_factor(n: int, least: Fraction, most: Fraction, others: int = 0) -> Fraction:
    """Return e^ε of law 1b, or of law 1c if a move changes the rates of ``others`` more records."""
    spread, again = _rate_factor(least, most), _redraw_factor(n, least, most)
    return (
        max(compute_odds(most), _step_ratio(n) / compute_odds(least), spread)
        * again
        * (spread * again) ** others
    )


def rates_by_rarity(n: int, low: Rate, high: Rate, *, counts_up_to: int = 1) -> Budget:
    r"""Law 1c in a stratum of exactly n: law 1b's budget plus $2c(\mu + \nu)$.

    A record's move changes the rate of at most 2c others.

    >>> rates_by_rarity(5, "1/10", "1/10") == rates_by_place(5, "1/10", "1/10")
    True
    """
    read_rare_count(counts_up_to)
    least, most = _check_rates(low, high)
    if read_size(n) <= 1:
        return Budget.zero()
    return Budget.log(_place_factor(n, least, most, 2 * counts_up_to))


def no_vacuous(n: int, rate: Rate) -> Budget:
    r"""Law 3: $\text{tight}(n, p) + n\ln\frac1{1-p} - \tfrac12\ln(1+o^2)$: finite, and linear in n because it must be.

    From x the table of x is only released when no record is selected, with probability near $(1-p)^n$.

    >>> no_vacuous(4, "1/2").upper(4)
    Decimal('3.5247')
    """
    p = parse_rate(rate)
    base = tight_budget(n, p)
    if read_size(n) <= 1 or not base.is_finite:
        return base
    o = compute_odds(p)
    return base + Budget.log(1 / (1 - p)) * n - Budget.log(1 + o * o) * HALF


def near_places(n: int, rate: Rate, preference: Rate) -> Budget:
    r"""Law 4: $\text{tight}(n, p) + \ln\Lambda$.

    >>> near_places(264331, "1/20", 3).exact
    'ln(3) + 1/2*ln(25223291376391)'
    """
    weight = parse_fraction(preference, "preference for near places")
    if weight < 1:
        raise InputError(
            "the preference for near places must be at least 1", why="1 prefers none", fix="give 2 or 3"
        )
    base = tight_budget(n, rate)
    return base if n <= 3 else base + Budget.log(weight)  # with three records no pair can be exchanged


def unit_matching_rates(rate: Rate, alpha: Rate) -> tuple[Fraction, Fraction]:
    """Return law 5's two swap rates: αp in the pools, (1−α)p in the strata.

    >>> unit_matching_rates("1/10", "1/5")
    (Fraction(1, 50), Fraction(2, 25))
    """
    p, share = parse_rate(rate), parse_rate(alpha)
    if not 0 < share < 1:
        raise InputError(
            "the share of households that leave their stratum lies strictly between 0 and 1",
            why="at 0 none would leave, and at 1 none could stay",
            fix='give a share such as "1/10"',
        )
    return share * p, (1 - share) * p


def _proved_bound(name: str, budget: Budget, theorem: str, tight_at: str = UPPER_ONLY) -> Bound:
    source = Phrase("bound.source.theorem", letter=theorem)
    return Bound(name=name, budget=budget, source=source, tight=Phrase(tight_at))


def _unknown_bound(name: str, why: str) -> Bound:
    none = Phrase("bound.tight.unknown")
    return Bound(name=name, budget=Budget.infinite(), status="unknown", source=why, tight=none)


def variant_bounds(
    law: str, strata: StratumTable | Iterable[Stratum], rate: Rate, **parameters: object
) -> tuple[Bound, ...]:
    """Return every bound of a variant, by the number of its law ("1a" … "6b") and the law's parameters.

    1a, 1b, 1c: ``rate`` is the smallest and ``highest`` the largest rate; 1c also ``counts_up_to``. 2: strata without
    imputed records. 4: ``preference``. 5: strata are the *pools*, and ``alpha``. 6a: ``change``. 6b: nothing more.

    >>> [b.name for b in variant_bounds("4", [Stratum(n=9, hold_types=3, swap_types=4)], "1/20", preference=2)]
    ['near places preferred', 'near places preferred, largest loss found']
    """
    columns = StratumTable.of(strata)
    kinds = columns.kinds()
    if law not in LAWS:
        raise InputError(
            f"there is no law {law[:10]!r} of swapping",
            why="the law decides how ε is computed",
            fix="known: " + ", ".join(LAWS),
        )
    if not len(kinds):
        return bounds(columns, rate)
    extremes = {parse_rate(rate), parse_fraction(parameters.get("highest", parse_rate(rate)), "highest")}
    if extremes & {0, 1}:
        never, some = Phrase("bound.source.never"), Phrase("bound.tight.some")
        return (Bound(name=_name_law(law), budget=Budget.infinite(), source=never, tight=some),)
    upper = _upper_bounds(law, columns, kinds, rate, parameters)
    numbers = {
        name: parse_fraction(value, name) for name, value in parameters.items() if name != "counts_up_to"
    }
    lower = Bound(
        name=Phrase("bound.found", law=_name_law(law)),
        budget=find_loss(law, parse_rate(rate), tuple(sorted(numbers.items()))).budget,
        status="estimated",
        source=Phrase("bound.source.keys", probability=numbers.get("change", HALF))
        if law == "6a"
        else Phrase("bound.source.enumeration"),
        tight=Phrase("bound.tight.lower"),
    )
    return (*upper, lower) if law in ENUMERATED_LAWS and (kinds[:, 0] >= 4).any() else upper


def _upper_bounds(
    law: str, columns: StratumTable, kinds: NDArray[np.int64], rate: Rate, parameters: Mapping[str, object]
) -> tuple[Bound, ...]:
    n = int(kinds[:, 0].max())
    if law in {"1a", "1b", "1c"}:
        highest = _read_number(parameters, "highest")
        if law == "1a":
            return (
                _proved_bound(
                    _name_law(law),
                    rates_by_held(n, rate, highest),
                    "F",
                    "bound.tight.rates_agree",
                ),
            )
        others = 2 * read_rare_count(parameters.get("counts_up_to", 1)) if law == "1c" else 0
        least, most = _check_rates(rate, highest)
        # Small strata may lose more than large ones, so every size is evaluated; rarity also depends on other strata.
        sizes = [int(size) for size in np.unique(kinds[:, 0])]
        own = max(_place_factor(size, least, most) for size in sizes)
        again = max(_redraw_factor(size, least, most) for size in sizes) if others else Fraction(1)
        worst = Budget.log(own) + Budget.log(_rate_factor(least, most) * again) * others
        return (_proved_bound(_name_law(law), worst, "H" if others else "G"),)
    if law in {"2", "6b"}:
        return tuple(
            replace(bound, source=_add_theorem(bound.source, THEOREM_LETTERS[law]))
            for bound in bounds(columns, rate)
        )
    if law == "3":
        return (
            _proved_bound(
                _name_law(law),
                no_vacuous(n, rate),
                "J",
                "bound.tight.all_differ",
            ),
        )
    if law == "4":
        return (
            _proved_bound(_name_law(law), near_places(n, rate, _read_number(parameters, "preference")), "K"),
        )
    if law == "5":
        pooled, _ = unit_matching_rates(rate, _read_number(parameters, "alpha"))
        return tuple(
            replace(bound, source=_add_theorem(bound.source, "L")) for bound in bounds(columns, pooled)
        )
    return (_unknown_bound(_name_law(law), Phrase("bound.source.no_finite")),)


def _read_number(parameters: Mapping[str, object], name: str) -> Fraction:
    if name not in parameters:
        raise InputError(f"this law of swapping needs {name}", why="ε is computed from it", fix=f"{name}=…")
    return parse_fraction(parameters[name], name)


def _name_law(law: str) -> Phrase:
    return Phrase(f"bound.law.{law}")


def _add_theorem(source: str, letter: str) -> Phrase:
    theorem = Phrase("bound.source.theorem", letter=letter)
    return Phrase("lists.semicolon_pair", first=source, second=theorem)


LAWS = ("1a", "1b", "1c", "2", "3", "4", "5", "6a", "6b")
ENUMERATED_LAWS = {"1b", "1c", "3", "4", "5", "6a"}
THEOREM_LETTERS = {"2": "I", "6b": "M"}
