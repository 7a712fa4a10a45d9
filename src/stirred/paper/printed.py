"""Numbers of the paper beside the computed ones: the difference, and where it comes from."""

from decimal import Decimal
from typing import Any, Final

ROUNDED: Final = "the paper prints {places}"
DRAWN: Final = "random: another draw of the same law"
NOT_PRINTED: Final = "the paper draws it and prints no number"
UNEXPLAINED: Final = "not explained"


def compare_number(computed: float | Decimal, paper: str, *, reason: str = "") -> dict[str, Any]:
    """Compare a computed number with the printed one; half the last printed digit counts as rounding.

    >>> compare_number(Decimal("17.080082"), "17.08")
    {'computed': 17.080082, 'paper': 17.08, 'difference': 8.2e-05, 'reason': 'the paper prints 2 decimals'}
    >>> compare_number(13.48, "13.47")["reason"]
    'not explained'
    """
    printed = Decimal(paper.replace(",", ""))
    exact = Decimal(str(computed))
    difference = exact - printed
    digits = -int(printed.as_tuple().exponent)
    if not difference:
        reason = ""
    elif abs(difference) <= Decimal(1).scaleb(-digits) / 2:
        places = "whole numbers" if not digits else f"{digits} decimal{'s' if digits > 1 else ''}"
        reason = ROUNDED.format(places=places)
    return {
        "computed": _number(exact),
        "paper": _number(printed),
        "difference": _number(difference),
        "reason": reason or (UNEXPLAINED if difference else ""),
    }


def state_number(computed: float | Decimal, reason: str = NOT_PRINTED) -> dict[str, Any]:
    """Return a computed number that the paper does not print, with the reason."""
    return {"computed": _number(Decimal(str(computed))), "paper": None, "difference": None, "reason": reason}


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
