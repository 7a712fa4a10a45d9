"""From records added or removed to records changed: three factors, each with the argument behind it.

The production code of SafeTab and PHSafe counts records added or removed, the paper's Table 4 records changed. A budget
ρ² of the first kind times a factor is one of the second kind. Which factors a mechanism has, it says itself
(``Mechanism.conversion``). Two arguments give a factor for many mechanisms:

group privacy: changing one record is removing one and adding one. ρ doubles, ρ² is multiplied by 4. This holds for every
mechanism.

disjoint cells: one record counts once in each of at most s cells. Adding or removing it moves the counts by at most √s,
changing it lowers at most s cells and raises at most s by 1: √(2s). Gaussian noise costs ρ² = Δ²/(2σ²), so ρ² is
multiplied by 2.

A theorem about one mechanism may give a smaller one than either.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from stirred.spec.budgets import Budget
from stirred.spec.domain import PERSON
from stirred.spec.input_premetrics import Hamming, Link, SymmetricDifference
from stirred.spec.output_premetrics import NormalizedRenyi
from stirred.spec.statement import Spec

Figure = Literal["published", "bureau", "proved"]
GIVEN_THE_CODE = "given the guarantee of the code, which is published"
GIVEN_THE_MECHANISM = "given that the production code counts and adds noise as it is documented"
GROUP_PRIVACY = (
    "group privacy: changing one record is removing one and adding one, which doubles ρ and multiplies ρ² by 4, "
    "whatever the tables are"
)
DISJOINT_CELLS = (
    "disjoint cells under Gaussian noise: a household counts once in each of at most s cells, so its change lowers at "
    "most s cells and raises at most s by 1, twice the squared distance of its removal"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A factor for a budget per record added or removed, with the unit for which it holds and the reason.

    ``link`` says whether a changed person may move to another household. ``theorem`` names the theorem about the mechanism
    itself that gives the factor; without one the factor follows from the promise per record added or removed alone.
    """

    times: int | Fraction
    unit: str
    because: str
    link: Link = "free"
    theorem: str = ""

    @property
    def assumption(self) -> str:
        """Return the assumption that a figure of the Bureau's own run makes when it uses this factor."""
        return GIVEN_THE_MECHANISM if self.theorem else GIVEN_THE_CODE

    @property
    def reason(self) -> str:
        """Return the argument for the factor, preceded by its theorem where one is named."""
        return f"{self.theorem}: {self.because}" if self.theorem else self.because


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The factor that was published, the one the Bureau's arguments prove, and the one a theorem proves.

    ``bureau`` is the published factor where an argument for it is known, and group privacy where there is none.

    >>> Conversion(
    ...     published=Factor(times=2, unit="household", because="as printed"),
    ...     bureau=Factor(times=4, unit="person", because="group privacy"),
    ...     proved=Factor(times=Fraction(1, 2), unit="person", because="one household", link="kept", theorem="Theorem 2"),
    ... ).agree
    False
    """

    published: Factor
    bureau: Factor
    proved: Factor

    @property
    def agree(self) -> bool:
        return (self.published.times, self.published.unit) == (self.proved.times, self.proved.unit)

    def factor(self, figure: Figure) -> Factor:
        """Return the factor that belongs to a figure."""
        return {"published": self.published, "bureau": self.bureau, "proved": self.proved}[figure]

    def restate(self, spec: Spec, *, figure: Figure = "proved") -> Spec:
        """Return a zCDP promise per record added or removed, restated per changed record by one of the factors.

        A promise in another premetric is returned as it is: composition restates it by group privacy, which is what both
        arguments give for pure DP.
        """
        counted, by = spec.input_premetric, self.factor(figure)
        if not isinstance(counted, SymmetricDifference) or not isinstance(
            spec.output_premetric, NormalizedRenyi
        ):
            return spec
        return replace(
            spec,
            input_premetric=Hamming(by.unit, copies=counted.copies),
            budget=Budget.sqrt(spec.budget.square() * by.times),
            bounds=(),
            parts=(),
            evidence=replace(spec.evidence, status="published") if figure == "published" else spec.evidence,
            notes=tuple(
                sorted(
                    {
                        *spec.notes,
                        f"ρ² per changed {by.unit} is {by.times} times ρ² per record added or removed: {by.reason}",
                    }
                )
            ),
        )

    def words(self, counted: Fraction, printed: Fraction) -> str:
        """Return the factors with their figures and reasons in words; equal factors are named once."""
        said, argued, shown = self.published, self.bureau, self.proved
        exact = counted * said.times
        rounded = "" if printed == exact else f", printed {_write_decimal(printed)}"
        words = [
            f"the code counts records added or removed at ρ² = {_write_decimal(counted)}",
            f"published: times {said.times} per {said.unit}, {_write_decimal(exact)}{rounded}",
        ]
        if self.agree:
            words.append(f"this factor is proved, {shown.assumption} ({shown.reason})")
            return "; ".join(words)
        words[-1] += f" ({said.because})"
        if (argued.times, argued.unit) != (said.times, said.unit):
            words.append(
                f"by group privacy, {argued.assumption}: times {argued.times} per {argued.unit}, "
                f"{_write_decimal(counted * argued.times)}"
            )
        stays = " who stays in the household" if shown.link == "kept" and shown.unit == PERSON else ""
        words.append(
            f"proved, {shown.assumption}: times {shown.times} per {shown.unit}{stays}, "
            f"{_write_decimal(counted * shown.times)} ({shown.reason})"
        )
        return "; ".join(words)


def _write_decimal(value: Fraction) -> str:
    """Write a decimal figure with all its digits; figures of the production settings have at most seven."""
    whole, rest = divmod(value * 10**7, 10**7)
    digits = f"{int(rest):07d}".rstrip("0")
    return f"{int(whole)}.{digits}" if digits else str(int(whole))
