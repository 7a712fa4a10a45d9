"""The paper's figure for a stratum of one's own: the budget of a swap against its rate, and the two rates of a budget."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.swapping.budget.by_size import (
    parse_rate,
    rates_for,
    read_size,
    smallest_budget,
    theorem_1,
    tight_budget,
)
from stirred.spec.card.factors import write_factor
from stirred.spec.numbers.budget import Budget
from stirred.web.calculators.chart import ChartAxis, ChartLine, line_chart, ticks_up_to

STRATUM_SIZES = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)  # the curves of the paper's Figure 2
RATE_GRID = tuple(Fraction(k, 1000) for k in (1, 2, 5, *range(10, 991, 10), 995, 998, 999))
SMALLEST_DISTANCE = 2  # two data sets with the same invariants differ by an exchange of two records
MAX_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapCurve:
    """The budget of one rate in one stratum, the best there is, and the rates that reach a budget."""

    b: int
    rate: Fraction
    epsilon: Budget  # Theorem 1
    largest_loss: Budget  # Theorem B, the exact largest loss of this size
    least: Budget
    least_at: Fraction
    between: tuple[Fraction, Fraction] | None = None  # swap rates that reach the budget asked for
    unreached: BudgetError | None = None

    @property
    def odds(self) -> str:
        """Return the factor by which odds may move at the smallest distance, rounded up."""
        if not self.largest_loss.is_finite:
            return "any number"
        least = min(self.epsilon, self.largest_loss)
        return str(write_factor((least * SMALLEST_DISTANCE).upper(6)))


def parse_count(text: str, name: str) -> int:
    """Parse a number of records as somebody typed it.

    >>> parse_count("264,331", "b")
    264331
    """
    digits = text.strip().replace(",", "").replace(" ", "")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > MAX_DIGITS:
        raise InputError(
            f"{name} is not a number of records",
            why="it counts records, with at most 12 digits",
            fix="write a whole number",
        )
    return read_size(int(digits))


def swap_curve(b: str, rate: str, epsilon: str = "") -> SwapCurve:
    """Return the budget of a stratum of b records at a swap rate, by the paper's theorem and exactly.

    >>> found = swap_curve("264331", "1/2")
    >>> found.epsilon.upper(4), found.epsilon == theorem_1(264331, "1/2")
    (Decimal('12.4850'), True)
    >>> [float(rate) for rate in swap_curve("10", "1/2", "3").between]
    [0.353863, 0.952574]
    """
    size, share = parse_count(b, "b"), parse_rate(rate.strip())
    least, at = smallest_budget(size)
    between, unreached = None, None
    if epsilon.strip():
        try:
            between = rates_for(size, epsilon.strip())
        except BudgetError as error:
            unreached = error
    return SwapCurve(
        b=size,
        rate=share,
        epsilon=theorem_1(size, share),
        largest_loss=tight_budget(size, share),
        least=least,
        least_at=at,
        between=between,
        unreached=unreached,
    )


def draw_curve(found: SwapCurve) -> str:
    """Draw the paper's curves with this stratum among them and a mark at its rate."""
    sizes = sorted({*STRATUM_SIZES, found.b} - {0, 1})
    lines = [_line(b, strong=b == found.b) for b in sizes]
    high = max(point[1] for line in lines for point in line.points)
    here = (100 * float(found.rate), float(found.epsilon.upper(6))) if found.epsilon.is_finite else None
    return line_chart(
        f"Budget ε against the swap rate for strata of {', '.join(f'{b:,}' for b in sizes)} records; "
        "a diamond stands at the smallest budget of each",
        ChartAxis(title="swap rate, per cent", low=0, high=100, ticks=(0, 20, 40, 60, 80, 100)),
        ChartAxis(title="ε", low=0, high=high, ticks=ticks_up_to(high)),
        lines,
        here,
    )


@lru_cache(maxsize=64)
def _line(b: int, *, strong: bool) -> ChartLine:
    least, at = smallest_budget(b)
    return ChartLine(
        name=f"b = {b:,}",
        points=[(100 * float(rate), float(theorem_1(b, rate).upper(5))) for rate in RATE_GRID],
        marked=(100 * float(at), float(least.upper(5))),
        strong=strong,
    )
