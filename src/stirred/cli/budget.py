"""The protection loss budget of the Permutation Swapping Algorithm, before anything is swapped.

A budget depends on the swap rate and on the largest stratum in which two different hold values and two different
swap values occur (the paper's b). It is an exact number; what is printed is rounded up, so no printed budget is
smaller than the proved one. It is per changed record, under the swapping invariants, and the smallest change that can
occur is an exchange of two records: odds may move by e^(2ε), which is printed beside it.

  stirred budget --stratum 264331 --rate 1/100 1/20 1/10 1/2     the budget at four swap rates
  stirred budget --stratum 10 --epsilon 3                        the swap rates that reach a budget
  stirred budget --margins 163885 100446 --rate 1/2              a stratum with two hold (or two swap) types
  stirred budget --margins 3 1 1 --rate 9/10                     a small stratum with three or more

Rates are fractions or decimals (1/20, 0.05). Rates 0 and 1 cost ∞: some outputs then exclude some inputs.
"""

import argparse
import re
from typing import Final, TypedDict

from stirred.cli.output import console, print_json, table
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.swap.budget import (
    CHECKED_THEOREMS,
    SHARPNESS,
    rates_for,
    read_size,
    smallest_budget,
    theorem_1,
    tight_budget,
)
from stirred.spec.budgets import Budget
from stirred.spec.card import words as odds
from stirred.spec.exact import write_digits, write_fraction
from stirred.spec.laws import TIGHT_SIZE, TIGHT_THEOREM_1, parse_rate


class Flavor(TypedDict):
    """The flavor that is printed beside every number."""

    invariants: str
    input_premetric: str
    output_premetric: str
    distance: int  # the smallest that occurs
    status: str


# What every budget here is a budget of: Theorem 1 and the proofs beside the mechanism.
FLAVOR: Final = Flavor(
    invariants="the swapping invariants: every table without a swap variable, and the strata by swap variables",
    input_premetric="d_Ham",
    output_premetric="D_mult",
    distance=2,
    status="proved",
)


MAX_DIGITS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``stirred budget``."""
    parser.add_argument(
        "--stratum", metavar="B", help="records in the largest stratum (with two hold and two swap values)"
    )
    parser.add_argument(
        "--margins",
        nargs="+",
        metavar="N",
        help="records of each hold (or swap) type: two types, or more in a stratum of up to 40 records",
    )
    parser.add_argument("--rate", nargs="+", action="extend", metavar="P", help="swap rates: 1/20 or 0.05")
    parser.add_argument("--epsilon", metavar="E", help="a budget to reach; prints the two swap rates")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Print the budget of each swap rate, or the swap rates that reach a budget."""
    if (arguments.stratum is None) == (arguments.margins is None):
        raise InputError(
            "give either --stratum or --margins",
            why="the budget follows from the size of a stratum, or from the numbers of each type in it",
            fix="stirred budget --stratum 264331 --rate 1/20",
        )
    if arguments.epsilon is not None:
        if arguments.stratum is None or arguments.rate:
            raise InputError(
                "--epsilon goes with --stratum and without --rate",
                why="it asks for the rates that reach a budget",
                fix="stirred budget --stratum 10 --epsilon 3",
            )
        return _rates(_count(arguments.stratum), arguments.epsilon, as_json=arguments.json)
    if not arguments.rate:
        raise InputError(
            "give swap rates, or a budget to reach",
            why="neither --rate nor --epsilon is given",
            fix="--rate 1/100 1/20, or --epsilon 3",
        )
    if arguments.margins is not None:
        if len(arguments.margins) < 2:
            raise InputError(
                "give a number for each type, two or more",
                why="with one type nothing can move",
                fix="--margins 163885 100446",
            )
        margins = [_count(word) for word in arguments.margins]
        return _margins(margins, arguments.rate, as_json=arguments.json)
    return _stratum(_count(arguments.stratum), arguments.rate, as_json=arguments.json)


def _count(word: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", word):
        raise InputError(
            f"cannot read this stratum size: {word[:40]!r}",
            why="it counts records",
            fix="write a whole number",
        )
    if len(word) > MAX_DIGITS:
        raise InputError(
            "no stratum has that many records", why=f"it has {len(word)} digits", fix="check the number"
        )
    return read_size(int(word))


def write_number(budget: Budget) -> float | str:
    """Return a budget as a JSON number with six decimals, rounded up; "inf" where it is infinite.

    >>> write_number(Budget.log(3)), write_number(Budget.infinite())
    (1.098613, 'inf')
    """
    return float(budget.upper(6)) if budget.is_finite else "inf"


def _stratum(b: int, rates: list[str], *, as_json: bool) -> int:
    rows = [(word, theorem_1(b, parse_rate(word)), tight_budget(b, parse_rate(word))) for word in rates]
    levels = {"epsilon": str(Phrase(TIGHT_THEOREM_1)), "epsilon_tight": str(Phrase(TIGHT_SIZE))}
    if as_json:
        found = [
            {
                "rate": write_fraction(parse_rate(word)),
                "epsilon": write_number(paper),
                "epsilon_tight": write_number(least),
                "exact": paper.exact,
            }
            for word, paper, least in rows
        ]
        checked = {"epsilon": CHECKED_THEOREMS["A"], "epsilon_tight": CHECKED_THEOREMS["B"]}
        print_json(
            {
                "stratum": b,
                "rows": found,
                "flavor": FLAVOR,
                "tight_at": levels,
                "machine_checked": checked,
                "note": SHARPNESS,
            }
        )
        return 0
    out = console()
    shown = [
        [
            write_fraction(parse_rate(word)),
            _format_budget(paper),
            paper.exact,
            _format_budget(least),
            _odds(min(paper, least)),
        ]
        for word, paper, least in rows
    ]
    out.print(
        table(
            f"Budget of a stratum of {write_digits(b)} records",
            ["swap rate", "ε, Theorem 1", "exactly", "ε, largest loss", "odds may move by"],
            shown,
        )
    )
    _say_flavor()
    out.print(
        f"ε, Theorem 1: proved, machine-checked: {CHECKED_THEOREMS['A']}; tight at the level of {levels['epsilon']}."
    )
    out.print(
        f"ε, largest loss: proved, machine-checked: {CHECKED_THEOREMS['B']}; "
        f"tight at the level of {levels['epsilon_tight']}."
    )
    out.print(
        f"Sharpness: {SHARPNESS}. A stratum with two hold or two swap types needs about half: --margins N1 N2."
    )
    return 0


def _format_budget(budget: Budget) -> str:
    return str(budget.upper(6)) if budget.is_finite else "∞"


def _odds(budget: Budget) -> str:
    """Format the factor on the odds at the smallest distance, rounded up."""
    return (
        f"× {odds.write_factor((budget * FLAVOR['distance']).upper(6))}" if budget.is_finite else "any factor"
    )


def _say_flavor() -> None:
    console().print(
        f"Proved, per changed record ({FLAVOR['input_premetric']}), in {FLAVOR['output_premetric']}, among data sets that "
        f"agree on {FLAVOR['invariants']}. They differ by {FLAVOR['distance']} records at least, so odds move by at most "
        "e^(2ε)."
    )


def _rates(b: int, epsilon: str, *, as_json: bool) -> int:
    target = Budget.of(epsilon)
    low, high = rates_for(b, target)
    if as_json:
        print_json({"stratum": b, "epsilon": epsilon.strip(), "rates": [float(low), float(high)]})
        return 0
    least, at = smallest_budget(b)
    out = console()
    rows = [
        [name, f"{float(rate):.6f}", write_fraction(rate)]
        for name, rate in (("lowest", low), ("highest", high))
    ]
    out.print(
        table(
            f"Swap rates that give a stratum of {write_digits(b)} records ε ≤ {epsilon.strip()}",
            ["", "rate", "exactly"],
            rows,
        )
    )
    out.print(
        f"Every rate between them does. The smallest ε of this stratum is {least}, at rate {float(at):.6f}."
    )
    _say_flavor()
    return 0


def _types(number: int) -> str:
    return "two" if number == 2 else str(number)


def _margins(given: list[int], rates: list[str], *, as_json: bool) -> int:
    # Compiled kernels take a second to load; the other questions do not need them.
    from stirred.mechanisms.swap.bounds import bounds, claim
    from stirred.mechanisms.swap.strata import Stratum

    n = sum(given)
    margins = tuple(margin for margin in given if margin > 0)
    # The other side may have any number of types: the bounds hold for all.
    stratum = Stratum(n=n, hold_types=len(margins), swap_types=max(n, 1), hold_margins=margins)
    found = [(write_fraction(parse_rate(word)), bounds([stratum], word)) for word in rates]
    if as_json:
        rows = [
            {
                "rate": rate,
                "epsilon": write_number(claim(all_).budget),
                "claimed": claim(all_).name,
                "bounds": [
                    {
                        "name": bound.name,
                        "epsilon": write_number(bound.budget),
                        "exact": bound.budget.exact,
                        "status": bound.status,
                        "source": bound.source,
                        "tight": bound.tight,
                    }
                    for bound in all_
                ],
            }
            for rate, all_ in found
        ]
        print_json({"margins": given, "stratum": n, "rows": rows, "flavor": FLAVOR})
        return 0
    out = console()
    body = [
        [
            rate,
            bound.name,
            _format_budget(bound.budget),
            _odds(bound.budget),
            "claimed" if bound is claim(all_) else "",
        ]
        for rate, all_ in found
        for bound in all_
    ]
    out.print(
        table(
            f"Budget of a stratum with {_types(len(given))} types: {', '.join(map(write_digits, given[:-1]))} and "
            f"{write_digits(given[-1])} records",
            ["swap rate", "bound", "ε", "odds may move by", ""],
            body,
        )
    )
    _say_flavor()
    seen = {bound.name: bound.tight for _, all_ in found for bound in all_}
    for name, level in seen.items():
        out.print(f"{name}: tight at the level of {level}.")
    return 0
