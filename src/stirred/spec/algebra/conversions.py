"""From records added or removed to records changed: three factors, each with the argument behind it.

The production code of SafeTab and PHSafe counts records added or removed, the paper's Table 4 records changed. A budget ρ²
of the first kind times a factor is one of the second kind. Which factors a mechanism has, it says itself
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

from stirred.spec.algebra.stated import Spec
from stirred.spec.domain import PERSON
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import NormalizedRenyi
from stirred.spec.premetrics import Hamming, SymmetricDifference
from stirred.spec.units import Link

Figure = Literal["published", "bureau", "proved"]
GIVEN = "given the guarantee of the code, which is published"
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
    """What a budget per record added or removed is multiplied by, for which unit it then holds, and why.

    ``link`` says whether a changed person may move to another household. ``theorem`` names the theorem about the mechanism
    itself that gives the factor; without one the factor follows from the promise per record added or removed alone.
    """

    times: int | Fraction
    unit: str
    because: str
    link: Link = "free"
    theorem: str = ""

    @property
    def given(self) -> str:
        """What a figure of the Bureau's own run takes for granted when it uses this factor."""
        return GIVEN_THE_MECHANISM if self.theorem else GIVEN

    @property
    def reason(self) -> str:
        """The theorem, where one is named, and the argument."""
        return f"{self.theorem}: {self.because}" if self.theorem else self.because


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The factor that was published, the one that the Bureau's arguments prove, and the one that a theorem here proves.

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
        """The factor of a figure."""
        return {"published": self.published, "bureau": self.bureau, "proved": self.proved}[figure]

    def restated(self, spec: Spec, *, figure: Figure = "proved") -> Spec:
        """A zCDP promise per record added or removed, stated per changed record by one of the factors.

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
            budget=Budget.sqrt(spec.budget.squared() * by.times),
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
        """The factors with their figures and their reasons; equal ones are said once."""
        said, argued, shown = self.published, self.bureau, self.proved
        exact = counted * said.times
        rounded = "" if printed == exact else f", printed {_decimal(printed)}"
        words = [
            f"the code counts records added or removed at ρ² = {_decimal(counted)}",
            f"published: times {said.times} per {said.unit}, {_decimal(exact)}{rounded}",
        ]
        if self.agree:
            words.append(f"this factor is proved, {shown.given} ({shown.reason})")
            return "; ".join(words)
        words[-1] += f" ({said.because})"
        if (argued.times, argued.unit) != (said.times, said.unit):
            words.append(
                f"by group privacy, {argued.given}: times {argued.times} per {argued.unit}, "
                f"{_decimal(counted * argued.times)}"
            )
        stays = " who stays in the household" if shown.link == "kept" and shown.unit == PERSON else ""
        words.append(
            f"proved, {shown.given}: times {shown.times} per {shown.unit}{stays}, "
            f"{_decimal(counted * shown.times)} ({shown.reason})"
        )
        return "; ".join(words)


def _decimal(value: Fraction) -> str:
    """A decimal figure with all its digits; every figure of the production settings has at most seven."""
    whole, rest = divmod(value * 10**7, 10**7)
    digits = f"{int(rest):07d}".rstrip("0")
    return f"{int(whole)}.{digits}" if digits else str(int(whole))
