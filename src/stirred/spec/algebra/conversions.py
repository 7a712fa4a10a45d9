"""From records added or removed to records changed: the factors of SafeTab and PHSafe, published and proved.

The production code counts records added or removed, the paper's Table 4 records changed. A budget ρ² of the first kind
times a factor is one of the second kind. Two arguments give a factor:

group privacy: changing one record is removing one and adding one. ρ doubles, ρ² is multiplied by 4. This holds for every
mechanism.

disjoint cells: one record counts once in each of at most s cells. Adding or removing it moves the counts by at most √s,
changing it lowers at most s cells and raises at most s by 1: √(2s). Gaussian noise costs ρ² = Δ²/(2σ²), so ρ² is
multiplied by 2.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from stirred.spec.algebra.stated import Spec
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import NormalizedRenyi
from stirred.spec.premetrics import Hamming, SymmetricDifference

Figure = Literal["published", "proved"]
GIVEN = "given the guarantee of the code, which is published"
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
    """What a budget per record added or removed is multiplied by, for which unit it then holds, and why."""

    times: int
    unit: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The factor that was published and the factor that has a proof.

    >>> Conversion(
    ...     published=Factor(times=2, unit="household", because="as printed"),
    ...     proved=Factor(times=4, unit="person", because="group privacy"),
    ... ).agree
    False
    """

    published: Factor
    proved: Factor

    @property
    def agree(self) -> bool:
        return (self.published.times, self.published.unit) == (self.proved.times, self.proved.unit)

    def factor(self, figure: Figure) -> Factor:
        """The factor of a figure."""
        return self.proved if figure == "proved" else self.published

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
                        f"ρ² per changed {by.unit} is {by.times} times ρ² per record added or removed: {by.because}",
                    }
                )
            ),
        )

    def words(self, counted: Fraction, printed: Fraction) -> str:
        """Both factors with their figures and their reasons."""
        said, shown = self.published, self.proved
        exact = counted * said.times
        rounded = "" if printed == exact else f", printed {_decimal(printed)}"
        start = (
            f"the code counts records added or removed at ρ² = {_decimal(counted)}; "
            f"published: times {said.times} per {said.unit}, {_decimal(exact)}{rounded}"
        )
        if self.agree:
            return f"{start}; this factor is proved, {GIVEN} ({shown.because})"
        return (
            f"{start} ({said.because}); "
            f"proved, {GIVEN}: times {shown.times} per {shown.unit}, {_decimal(counted * shown.times)} ({shown.because})"
        )


SAFETAB_P = Conversion(
    published=Factor(times=4, unit="person", because=GROUP_PRIVACY),
    proved=Factor(times=4, unit="person", because=GROUP_PRIVACY),
)
SAFETAB_H = Conversion(
    published=Factor(times=2, unit="household", because=DISJOINT_CELLS),
    proved=Factor(times=2, unit="household", because=DISJOINT_CELLS),
)
PHSAFE = Conversion(
    published=Factor(
        times=2,
        unit="household",
        because="published without a proof: PHSafe counts persons joined to their households, and one person can move "
        "many counts, all of them in one cell, so the argument for disjoint cells does not apply as it stands",
    ),
    # the code's neighbours differ by one person (and by the record of that person's household): two steps are one
    # changed person, also one who moves, while a changed household is as many steps as it has persons
    proved=Factor(times=4, unit="person", because=f"{GROUP_PRIVACY}; the code counts persons"),
)


def _decimal(value: Fraction) -> str:
    """A decimal figure with all its digits; every figure of the production settings has at most six."""
    whole, rest = divmod(value * 10**6, 10**6)
    digits = f"{int(rest):06d}".rstrip("0")
    return f"{int(whole)}.{digits}" if digits else str(int(whole))
