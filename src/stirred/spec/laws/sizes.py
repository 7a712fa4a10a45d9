r"""A budget as a law of b, the size of the largest stratum: the budgets of swaps, for every universe at once.

A swap selects records with odds $o = p/(1-p)$ and deranges them: k of n records move with probability
$c\,w(k)$, $w(k) = o^k/d(k)$. A universe whose largest stratum has b records loses at most

$$\varepsilon(b) = \max\{\ln o_{\max},\ \ln g(b) - \ln o_{\min}\} \quad (b \ge 2), \qquad \varepsilon(0) = 0,$$

with $g(b) = b + 1$ (the paper's Theorem 1) or $g(b)^2 = d(b)/d(b-2)$ (by size). Both grow with b without bound.
Proofs: mechanisms/swapping/proof.md, Sections 1 and 2 (one rate) and Theorem F (rates that vary by held variables).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from stirred.errors import InputError, SpecificationError
from stirred.languages import Phrase
from stirred.spec.laws.derangements import bound_step_ratio, count_derangements
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.numerals import parse_fraction, write_fraction

Rate = Fraction | int | str
Kind = Literal["theorem-1", "by-size"]
HALF = Fraction(1, 2)
# at which level each law cannot be improved
TIGHT_THEOREM_1 = "bound.tight.theorem_1"  # keys of the catalog
TIGHT_SIZE = "bound.tight.size"

_FORMS = {
    "theorem-1": "max{{ln {most}, ln(b + 1) − ln {least}}}",
    "by-size": "max{{ln {most}, ½ ln(d(b)/d(b − 2)) − ln {least}}}",
}
_NAMES = {"theorem-1": "Theorem 1", "by-size": "largest loss by size"}


def parse_rate(rate: Rate) -> Fraction:
    """Return a swap rate as an exact number in [0, 1]; refuse floats.

    >>> parse_rate("1/20")
    Fraction(1, 20)
    """
    p = parse_fraction(rate, "swap rate")
    if not 0 <= p <= 1:
        raise InputError(
            f"the swap rate {str(rate)[:40]} is outside [0, 1]", why="it is a probability", fix='write "1/20"'
        )
    return p


def compute_odds(p: Fraction) -> Fraction:
    """Return the odds o = p/(1−p).

    >>> compute_odds(Fraction(1, 100))
    Fraction(1, 99)
    """
    return p / (1 - p)


@dataclass(frozen=True, slots=True, init=False)
class SizeLaw:
    """ε as a function of b, for one swap rate or for rates between ``rate`` and ``highest``.

    >>> law = SizeLaw("theorem-1", "1/20")
    >>> print(law)
    max{ln o, ln(b + 1) − ln o} at swap rate 1/20 (o = 1/19)
    >>> law.at(264331).exact, SizeLaw("by-size", "1/2").at(3).exact, law.at(0).exact
    ('ln(5022308)', '1/2*ln(2)', '0')
    """

    kind: Kind
    rate: Fraction
    highest: Fraction

    def __init__(self, kind: Kind, rate: Rate, highest: Rate | None = None) -> None:
        if kind not in _FORMS:
            raise SpecificationError(
                f"unknown law of b: {str(kind)[:40]!r}",
                why="the budget of a swap is known as a function of b for some laws only",
                fix=f"give one of: {', '.join(_FORMS)}",
            )
        least = parse_rate(rate)
        most = least if highest is None else parse_rate(highest)
        if most < least:
            raise SpecificationError(
                "the highest swap rate is below the lowest",
                why=f"{most} is less than {least}",
                fix="give the smaller rate first",
            )
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "rate", least)
        object.__setattr__(self, "highest", most)

    @property
    def is_finite(self) -> bool:
        """Return whether the budget is finite for b ≥ 2: every record may move and may stay."""
        return self.rate > 0 and self.highest < 1

    def at(self, b: int) -> Budget:
        """Return the exact budget of every universe whose largest stratum has b records."""
        if isinstance(b, bool) or not isinstance(b, int) or b < 0:
            raise SpecificationError(
                f"b = {b} is no number of records",
                why="b counts the records of a stratum",
                fix="give a whole number of at least 0",
            )
        # a stratum of one record never differs inside a universe, so b = 1 does not occur
        return Budget.zero() if b <= 1 else _compute_budget(self, b)

    def power(self, b: int) -> Fraction:
        """Return e^(6ε) for b ≥ 2 and rates inside (0, 1): a rational number, which compares exactly and fast."""
        above, below = compute_odds(self.highest), compute_odds(self.rate)
        if self.kind == "by-size" and b == 3 and above == below:
            return max(sixth for sixth, _ in _list_three_losses(above))
        return max(above * above, _square_growth(self.kind, b) / (below * below)) ** 3

    def describe_rates(self) -> str:
        """Describe the swap rates."""
        if self.rate == self.highest:
            return Phrase("law.rate", rate=write_fraction(self.rate))
        return Phrase("law.rates", least=write_fraction(self.rate), most=write_fraction(self.highest))

    def describe_law(self) -> str:
        """Describe the swap rates and the kind of law."""
        return f"{self.describe_rates()} ({_NAMES[self.kind]})"

    def words(self) -> str:
        """Return the formula of the law with its parameters."""
        if not self.is_finite:
            return Phrase("law.infinite", rates=self.describe_rates())
        if self.rate == self.highest:
            letters, told = {"least": "o", "most": "o"}, f"(o = {write_fraction(compute_odds(self.rate))})"
        else:
            letters = {"least": "o₁", "most": "o₂"}
            told = f"(o₁ = {write_fraction(compute_odds(self.rate))}, o₂ = {write_fraction(compute_odds(self.highest))})"
        return Phrase(
            "law.at", formula=_FORMS[self.kind].format(**letters), rates=self.describe_rates(), odds=told
        )

    def __str__(self) -> str:
        return self.words()


def _square_growth(kind: Kind, b: int) -> Fraction:
    """Return g(b)²; at b = 3 the value of b = 4, because d(1) = 0 and a law may not decrease."""
    if kind == "theorem-1":
        return Fraction((b + 1) ** 2)
    return bound_step_ratio(4 if b == 3 else b)


def generate_losses(n: int, o: Fraction) -> Iterator[tuple[Fraction, int]]:
    r"""Every $w(k)/w(k') \ge 1$ of a stratum of n records with the smallest distance Δ at which it can occur.

    >>> sorted(generate_losses(2, Fraction(3)))
    [(Fraction(1, 1), 2), (Fraction(1, 1), 2), (Fraction(9, 1), 2)]
    """
    moved = [0, *range(2, n + 1)]
    for k in moved:
        for other in moved:
            ratio = o ** (k - other) * Fraction(count_derangements(other), count_derangements(k))
            if ratio >= 1:
                yield ratio, max(2, abs(k - other))


def _list_three_losses(o: Fraction) -> list[tuple[Fraction, Budget]]:
    """Return the losses of three records, where the formula fails (d(1) = 0), as sixth powers and as budgets."""
    return [
        (ratio ** (6 // apart), Budget.log(ratio) * Fraction(1, apart))
        for ratio, apart in generate_losses(3, o)
    ]


@lru_cache(maxsize=8192)
def _compute_budget(law: SizeLaw, b: int) -> Budget:
    if not law.is_finite:
        return Budget.infinite()
    above, below = compute_odds(law.highest), compute_odds(law.rate)
    if law.kind == "theorem-1":
        return Budget.log(max(above, (b + 1) / below))
    if b == 3 and above == below:
        return max(_list_three_losses(above), key=lambda loss: loss[0])[1]
    # For b ≥ 4 and b = 2 the largest loss stands at (b−2, b) or (2, 0) moved records: proof.md, Theorem B.
    return Budget.log(max(above * above, _square_growth(law.kind, b) / (below * below))) * HALF
