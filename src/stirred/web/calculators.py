"""Compute without data: the budget of a swap, readings of zCDP, the products of 2020, strata that are typed."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from html import escape

from stirred.catalog.products import PRODUCTS, Product
from stirred.catalog.releases import total
from stirred.errors import BudgetError, InputError
from stirred.mechanisms.swap.bounds import bounds, claim
from stirred.mechanisms.swap.budget import rates_for, read_size, smallest_budget, theorem_1, tight_budget
from stirred.mechanisms.swap.strata import Stratum
from stirred.spec import Specification
from stirred.spec.budgets import Bound, Budget
from stirred.spec.card.words import DEFAULT_DELTA, write_factor
from stirred.spec.exact import parse_fraction
from stirred.spec.laws import parse_rate
from stirred.spec.output_premetrics import reading

# A line chart as SVG text: attributes only, because the pages allow no style inside themselves.

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 46

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """A curve with its name, and the point on it that is marked."""

    name: str
    points: Sequence[Point]
    marked: Point | None = None
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """An axis: its title, its ends, and where its ticks stand."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]

    def place(self, value: float, start: float, end: float) -> float:
        """Return where a value stands between two coordinates.

        >>> ChartAxis(title="", low=0, high=10, ticks=()).place(5, 0, 100)
        50.0
        """
        share = (value - self.low) / (self.high - self.low)
        return start + share * (end - start)


def ticks_up_to(high: float, most: int = 6) -> tuple[float, ...]:
    """Round numbers from 0 to a largest one.

    >>> ticks_up_to(23)
    (0.0, 5.0, 10.0, 15.0, 20.0)
    """
    rough = high / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    return tuple(step * number for number in range(int(high / step + 1e-9) + 1))


def line_chart(title: str, x: ChartAxis, y: ChartAxis, lines: Sequence[ChartLine], here: Point | None) -> str:
    """Draw curves, their marked points, and where the reader stands."""

    def at(point: Point) -> tuple[float, float]:
        return (
            x.place(point[0], LEFT, WIDTH - RIGHT),
            y.place(min(point[1], y.high), HEIGHT - BOTTOM, TOP),
        )

    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">',
        *_ticks(x, y),
    ]
    for number, line in enumerate(lines):
        parts += _draw_line(line, number, at)
    parts += [_label_line(line, number, at) for number, line in enumerate(lines)]  # above all lines
    if here is not None:
        across, down = at(here)
        parts.append(
            f'<line class="here" x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
        parts.append(f'<circle class="here" cx="{across:.1f}" cy="{down:.1f}" r="6"/>')
    return "".join([*parts, "</svg>"])


def _ticks(x: ChartAxis, y: ChartAxis) -> list[str]:
    parts = []
    for tick in x.ticks:
        place = x.place(tick, LEFT, WIDTH - RIGHT)
        parts.append(
            f'<text class="tick" x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'
        )
    for tick in y.ticks:
        place = y.place(tick, HEIGHT - BOTTOM, TOP)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>'
            f'<text class="tick" x="{LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x.title)}</text>"
        f'<text class="axis" x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(y.title)}</text>"
    )
    return parts


def _label_line(line: ChartLine, number: int, at: Callable[[Point], tuple[float, float]]) -> str:
    kind = "strong" if line.strong else f"line-{number % 8}"
    across, down = at(line.points[len(line.points) // (2 if line.strong else 8)])
    return f'<text class="{kind} name" x="{across + 4:.1f}" y="{down - 5:.1f}">{escape(line.name)}</text>'


def _draw_line(line: ChartLine, number: int, at: Callable[[Point], tuple[float, float]]) -> list[str]:
    kind = "strong" if line.strong else f"line-{number % 8}"
    shown = " ".join(f"{across:.1f},{down:.1f}" for across, down in map(at, line.points))
    parts = [f'<polyline class="{kind}" points="{shown}"><title>{escape(line.name)}</title></polyline>']
    if line.marked is not None:
        across, down = at(line.marked)
        diamond = f"{across:.1f},{down - 6:.1f} {across + 6:.1f},{down:.1f} {across:.1f},{down + 6:.1f}"
        parts.append(f'<polygon class="{kind} least" points="{diamond} {across - 6:.1f},{down:.1f}"/>')
    return parts


# The paper's figure for a stratum of one's own: the budget of a swap against its rate, and the two rates of a budget.

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


# What if: the budget of a swap whose strata somebody types, by every bound that applies.

MAX_LINES = 2_000
EXAMPLE = "264331 = 163885 100446 / 14\n52000 = 2 / 5\n40 = 3 / 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataBudget:
    """The strata as they were understood, every bound, and the smallest proved one."""

    strata: Sequence[Stratum]
    rate: Fraction
    bounds: Sequence[Bound]
    claim: Bound

    @property
    def moving(self) -> int:
        """Return how many strata have two hold values and two swap values, so that records can move."""
        return sum(one.n >= 2 and min(one.hold_types, one.swap_types) >= 2 for one in self.strata)

    @property
    def largest(self) -> int:
        """Return the size of the largest stratum that can move, the paper's b."""
        sizes = [one.n for one in self.strata if one.n >= 2 and min(one.hold_types, one.swap_types) >= 2]
        return max(sizes, default=0)

    @property
    def odds(self) -> str:
        """Return the factor by which odds may move at the smallest distance, rounded up."""
        if not self.claim.budget.is_finite:
            return "any number"
        return str(write_factor((self.claim.budget * SMALLEST_DISTANCE).upper(6)))


def strata_budget(text: str, rate: str) -> StrataBudget:
    """Return the budget of typed strata, a line each: ``records = hold / swap``, as types or counts.

    >>> found = strata_budget("10 = 4 / 4", "1/2")
    >>> found.largest, str(found.claim.budget)
    (10, '2.2500')
    """
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines or len(lines) > MAX_LINES:
        raise InputError(
            "there are no strata" if not lines else f"there are more than {MAX_LINES:,} strata",
            why="a budget follows from the sizes of strata and the types in them",
            fix="write a line for each, such as 10 = 4 / 4",
        )
    strata = [_stratum(line) for line in lines]
    found = bounds(strata, rate.strip())
    return StrataBudget(strata=strata, rate=parse_rate(rate.strip()), bounds=found, claim=claim(found))


def _stratum(line: str) -> Stratum:
    size, equals, sides = line.partition("=")
    hold, slash, swap = sides.partition("/")
    if not (equals and slash):
        raise InputError(
            "a stratum is not written as records = hold / swap",
            why="its budget depends on how many hold and swap types it has",
            fix="write 10 = 4 / 4, or 264331 = 163885 100446 / 14",
        )
    n = parse_count(size, "the size of a stratum")
    holds, swaps = _side(hold), _side(swap)
    return Stratum(
        n=n,
        hold_types=_types(holds),
        swap_types=_types(swaps),
        hold_margins=tuple(holds) if len(holds) > 1 else None,
        swap_margins=tuple(swaps) if len(swaps) > 1 else None,
    )


def _side(text: str) -> list[int]:
    words = text.split()
    if not words:
        raise InputError(
            "a side of a stratum is empty",
            why="it has a number of types, or a count for each type",
            fix="write 10 = 4 / 4",
        )
    return [parse_count(word, "a number of types or records") for word in words]


def _types(side: Sequence[int]) -> int:
    """Return the number of types: one number is the number itself, several are the records of each type."""
    return side[0] if len(side) == 1 else len(side)


# zCDP and pure DP read in other ways: ρ² as (ε, δ) at each distance, and ε as ρ².

DISTANCES = (1, 2, 5, 10)
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonReading:
    """ε at one distance and δ, by the simple formula and as small as it is proved."""

    distance: int
    simple: Decimal
    tight: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversions:
    """A budget as ρ², where it came from, and its readings."""

    rho_squared: Budget
    delta: Fraction
    readings: Sequence[EpsilonReading]
    epsilon: Budget | None = None  # where a pure budget was given


def convert_budget(amount: str, delta: str, kind: str = "zcdp") -> Conversions:
    """Read a budget: ``kind`` is zcdp (ρ²) or pure (ε, which is ε²/2 in ρ²).

    >>> convert_budget("293764/114921", "1e-10").readings[0].tight
    Decimal('17.1436')
    >>> convert_budget("2", "1e-6", "pure").rho_squared.exact
    '2'
    """
    number = parse_fraction(amount.strip(), "the budget")
    if number < 0:
        raise BudgetError("a budget is not negative", why="it bounds a distance", fix="write 0 or more")
    pure = kind == "pure"
    rho_squared = Budget.of(number * number * HALF if pure else number)
    share = parse_fraction(delta.strip(), "delta")
    return Conversions(
        rho_squared=rho_squared,
        delta=share,
        readings=[
            EpsilonReading(
                distance=distance,
                simple=reading(rho_squared, share, distance=distance, decimals=4).epsilon,
                tight=reading(rho_squared, share, distance=distance, tight=True, decimals=4).epsilon,
            )
            for distance in DISTANCES
        ],
        epsilon=Budget.of(number) if pure else None,
    )


# The products of the 2020 census with switches: what publishing some of them together costs.

FIGURES: dict[str, Callable[[Product], Product]] = {
    "published": lambda product: product,
    "proved": Product.as_proved,
    "group-privacy": Product.by_group_privacy,
    "printed": Product.as_printed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedProduct:
    """One product, its figure, and whether it is counted."""

    product: Product
    key: str  # its name among the published ones, whatever figure is meant
    on: bool

    @property
    def rho_squared(self) -> Decimal:
        """Return ρ² of this product alone, rounded up."""
        return Budget.of(self.product.rho_squared).upper(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedProducts:
    """All switches, and the promise of those that are on; nothing where none is."""

    switches: Sequence[SwitchedProduct]
    figure: str
    specification: Specification | None

    @property
    def readings(self) -> tuple[Decimal, Decimal] | None:
        """Return ε at δ = 10⁻¹⁰ and distance 1, simple and tight; None where no product is chosen."""
        if self.specification is None:
            return None
        rho_squared = self.specification.rho_squared
        simple = reading(rho_squared, DEFAULT_DELTA, decimals=4).epsilon
        return simple, reading(rho_squared, DEFAULT_DELTA, tight=True, decimals=4).epsilon


def compose_products(chosen: Collection[str] | None, figure: str = "published") -> ComposedProducts:
    """Compose the chosen products, all of them where nothing was chosen yet.

    >>> compose_products(None).specification.rho_squared.upper(5)
    Decimal('55.37504')
    >>> compose_products(None, "proved").specification.rho_squared.upper(5)
    Decimal('43.60112')
    >>> compose_products(None, "group-privacy").specification.rho_squared.upper(5)
    Decimal('57.88960')
    >>> compose_products(None, "printed").specification.rho_squared.upper(3)
    Decimal('55.371')
    >>> compose_products({"pl-persons-2020"}).specification.rho_squared.upper(4)
    Decimal('2.5563')
    """
    known = figure if figure in FIGURES else "published"
    switches = [
        SwitchedProduct(
            product=FIGURES[known](product), key=product.name, on=chosen is None or product.name in chosen
        )
        for product in PRODUCTS
    ]
    on = [switch.product for switch in switches if switch.on]
    words = "the chosen products, composed"
    return ComposedProducts(switches=switches, figure=known, specification=total(on, words) if on else None)
