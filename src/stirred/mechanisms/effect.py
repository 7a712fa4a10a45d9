"""State how far a release is expected to differ from the records, before a key exists, and when that is too little.

A budget bounds what a release may reveal from above; it does not say that anything happens at all. A swap of one record
in a million, or noise that is nearly always 0, has a finite budget and publishes the truth. The expected effect is computed
from settings and invariants alone, so that a refusal reveals nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import exp
from typing import Literal

from stirred.errors import PrivacyError
from stirred.languages import Phrase

MIN_SHARE_OF_RECORDS = Fraction(1, 200)  # that change places; the paper's smallest swap rate is 1/100
MIN_RECORDS = 1  # that change places in expectation
MIN_SHARE_OF_CELLS = Fraction(1, 20)  # whose published count differs from the true one
ACCEPT_KEY = "accept_small_effect"  # the key of a plan that holds the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEffect:
    """Hold the expected share of records that change places, or of cells whose count changes.

    ``records`` is how many records there are, where the share is about records; ``where`` names the table or level with the
    smallest effect, where a release has several. ``losses`` has the ε of one exchange of two records by mechanism, the
    release's own first: what each would lose at most if it moved this share.

    >>> ExpectedEffect(kind="records", share=0.05, records=1_000).too_small
    False
    >>> ExpectedEffect(kind="records", share=0.05, records=10).too_small
    True
    """

    kind: Literal["records", "cells"]
    share: float
    records: int = 0
    where: str = ""
    losses: Mapping[str, str] = field(default_factory=dict)

    @property
    def too_small(self) -> bool:
        """Say whether the release would be the truth, or nearly."""
        if self.kind == "cells":
            return self.share < MIN_SHARE_OF_CELLS
        # a census without a record of this type has nothing to move, and nothing to publish
        return bool(self.records) and (
            self.share < MIN_SHARE_OF_RECORDS or self.share * self.records < MIN_RECORDS
        )

    def words(self) -> Phrase:
        """Return the effect as a sentence for the plan's check and the card."""
        share = _percent(self.share)
        if self.kind == "records":
            number = Decimal(f"{self.share * self.records:.1f}")
            return Phrase("effect.records", share=share, number=number, all=self.records)
        if self.where:
            return Phrase("effect.cells_of", share=share, where=self.where)
        return Phrase("effect.cells", share=share)

    def compare_losses(self, key: str = "effect.losses") -> Phrase | None:
        """Return in a phrase what swaps would lose at this share, or None where nothing is compared."""
        if len(self.losses) < 2:
            return None
        told = tuple(
            Phrase("effect.loss", mechanism=name, loss=loss if loss == "∞" else Decimal(loss))
            for name, loss in self.losses.items()
        )
        return Phrase(key, losses=told)

    def floor(self) -> str:
        """Return what is asked at least, in words."""
        if self.kind == "cells":
            return f"at least {_percent(float(MIN_SHARE_OF_CELLS))}% of the counts must be expected to change"
        return (
            f"at least {_percent(float(MIN_SHARE_OF_RECORDS))}% of the records, and {MIN_RECORDS} record, must be "
            "expected to change places"
        )

    def remedy(self) -> str:
        """Return what would make the effect larger."""
        if self.kind == "cells":
            return "choose a smaller budget, a larger variance of the noise or a coarser rounding"
        return "choose a higher swap rate, or fewer and coarser match variables"


def require_effect(effect: ExpectedEffect | None, reason: str, *, mechanism: str) -> tuple[Phrase, ...]:
    """Refuse a release that is expected to be nearly the truth; return the note of one that an office accepts."""
    if effect is None or not effect.too_small:
        return ()
    if not reason.strip():
        raise PrivacyError(
            f"{mechanism} would publish nearly the truth",
            why=f"{effect.words()}; {effect.floor()}",
            fix=f"{effect.remedy()}; or "
            f'accept it with a reason, which stands on the first line of the card: {ACCEPT_KEY} = "why" in the plan, or '
            f"--{ACCEPT_KEY.replace('_', '-')} on the command line",
        )
    return (Phrase("effect.accepted", effect=effect.words(), reason=reason.strip()),)


def smallest_effect(shares: Mapping[str, float]) -> ExpectedEffect | None:
    """Return the effect of the table, line or level that changes least; None where there is none.

    >>> smallest_effect({"county": 0.9, "block": 0.2}).where
    'block'
    """
    if not shares:
        return None
    where = min(shares, key=lambda name: shares[name])
    return ExpectedEffect(kind="cells", share=shares[where], where=where if len(shares) > 1 else "")


def gaussian_change(sigma_squared: Fraction | float) -> float:
    r"""Return the chance that discrete Gaussian noise is not 0: $1 - 1/\sum_k e^{-k^2/2\sigma^2}$.

    >>> round(gaussian_change(Fraction(1)), 4), gaussian_change(Fraction(1, 10**6))
    (0.6011, 0.0)
    """
    variance = float(sigma_squared)
    if variance <= 0:
        return 0.0
    beyond = 0.0
    for k in range(1, int(12 * variance**0.5) + 12):
        term = 2 * exp(-k * k / (2 * variance))
        if not term:
            break
        beyond += term
        if beyond > 1e6:  # a wider law is never 0 in practice
            break
    return beyond / (1 + beyond)


def geometric_change(scale: float) -> float:
    r"""Return the chance that two-sided geometric noise of this scale is not 0: $2q/(1+q)$ with $q = e^{-1/s}$.

    >>> round(geometric_change(1.0), 4)
    0.5379
    """
    if scale <= 0:
        return 0.0
    q = exp(-1 / scale)
    return 2 * q / (1 + q)


def _percent(share: float) -> Decimal:
    """Return a share in percent; something above 0 is never shown as 0.

    >>> _percent(0.05), _percent(0.000123)
    (Decimal('5.0'), Decimal('0.01'))
    """
    percent = 100 * share
    return (
        Decimal(f"{percent:.1f}")
        if percent >= 0.05 or percent <= 0
        else Decimal(f"{Decimal(f'{percent:.1g}'):f}")
    )
