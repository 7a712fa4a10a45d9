"""Targeted record swapping as a mechanism: risky households change places, in pairs, with similar ones elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError, PrivacyError, did_you_mean, require_kind
from stirred.languages import Phrase
from stirred.mechanisms.base import Exhibit, MechanismConfig, Release
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.swapping.arguments import refuse_text
from stirred.mechanisms.swapping.budget.by_size import Rate
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.records.size import estimate_size
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.targeted.config import TargetedConfig
from stirred.mechanisms.targeted.donors import Pairing
from stirred.mechanisms.targeted.draw import draw_pairs
from stirred.mechanisms.targeted.pairwise import PairwiseSwapping
from stirred.mechanisms.targeted.proposal import propose_targeted
from stirred.mechanisms.targeted.risk import (
    add_unseen,
    find_level_areas,
    find_risk_levels,
    measure_rarity,
    memory_error,
    number_combinations,
    read_risks,
)
from stirred.mechanisms.targeted.witnesses import (
    list_witnesses,
    witness_by_cycle,
    witness_by_number,
    witness_by_risk,
)
from stirred.spec.numbers.numerals import parse_fraction

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, slots=True, init=False)
class TargetedSwapping(PairwiseSwapping):
    """Swap risky households with similar ones across areas where they are risky, and others up to a rate.

    ``similar`` is a list of similarity profiles: partners agree on all variables of one of them, the first that has a
    partner left. What is in all profiles, by place, stays exact.

    >>> TargetedSwapping(hierarchy=["county"], similar=[["size"]], k_anonymity=0).match
    ('size',)
    """

    name: ClassVar[str] = "targeted-swapping"
    Config: ClassVar[type[MechanismConfig]] = TargetedConfig

    hierarchy: tuple[str, ...]
    similar: tuple[tuple[str, ...], ...]
    k_anonymity: int
    risk_variables: tuple[str, ...]
    risk: tuple[str, ...]
    risk_threshold: Fraction
    carry_along: tuple[str, ...]

    def __init__(
        self,
        *,
        hierarchy: Sequence[str],
        similar: Sequence[str] | Sequence[Sequence[str]],
        swaprate: Rate = "1/20",
        k_anonymity: int | None = None,
        risk_variables: Sequence[str] = (),
        risk: Sequence[str] = (),
        risk_threshold: Rate = 0,
        carry_along: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        lists = {"hierarchy": hierarchy, "similar": similar, "risk_variables": risk_variables, "risk": risk}
        for label, value in (lists | {"carry_along": carry_along}).items():
            refuse_text(label, value)
        profiles = _read_profiles(similar)
        common = [name for name in profiles[0] if all(name in profile for profile in profiles)]
        PairwiseSwapping.__init__(
            self, match=common, swap=[*hierarchy, *carry_along], rate=swaprate, **settings
        )
        k_anonymity = (DEFAULT_K_ANONYMITY if risk_variables else 0) if k_anonymity is None else k_anonymity
        _require_risk(k_anonymity, risk_variables, risk, hierarchy)
        moving = {*hierarchy, *carry_along}
        for name in (name for profile in profiles for name in profile if name in moving):
            raise InputError(
                f"{name} is in a similarity profile and moves",
                why="partners that agree on a place would exchange nothing",
                fix=f"take {name} out of similar, or out of hierarchy and carry_along",
            )
        own: dict[str, object] = {
            "hierarchy": tuple(hierarchy),
            "similar": profiles,
            "k_anonymity": k_anonymity,
            "risk_variables": tuple(risk_variables),
            "risk": tuple(risk),
            "risk_threshold": parse_fraction(risk_threshold, "risk threshold"),
            "carry_along": tuple(carry_along),
        }
        for label, setting in own.items():
            object.__setattr__(self, label, setting)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Propose what a swap would match and move; the office decides who is at risk."""
        return propose_targeted(schema)

    def parameters(self) -> dict[str, object]:
        """Return the parameters of a run, in JSON."""
        common = {
            name: value
            for name, value in PairwiseSwapping.parameters(self).items()
            if name not in DERIVED_SETTINGS
        }
        return {
            "hierarchy": list(self.hierarchy),
            "similar": [list(profile) for profile in self.similar],
            "swaprate": str(self.rate),
            "k_anonymity": self.k_anonymity,
            "risk_variables": list(self.risk_variables),
            "risk": list(self.risk),
            "risk_threshold": str(self.risk_threshold),
            "carry_along": list(self.carry_along),
            **common,
        }

    def roles(self, census: "Census") -> Roles:
        """Return the role of every variable; given risks are read and not released."""
        known = census.columns(self.resolution)
        for name in (name for profile in self.similar for name in profile):
            if name not in known:
                raise InputError(
                    f"{self.resolution} records have no variable {name}",
                    why="similarity profiles are variables of the records that are swapped",
                    fix=did_you_mean(name, known),
                )
        found = self.derive_swap_roles(
            census, drop=(*self.drop, *(name for name in self.risk if name in known))
        )
        found = add_unseen(found, [name for name in self.risk if name not in known])
        needed = {name for profile in self.similar for name in profile}
        needed |= {name for name in self.risk_variables if name in known}
        own = [name for name in self.risk if name in known]
        unseen = [name for name in (*own, *sorted(needed)) if name not in found.released_variables]
        found = replace(found, unseen=tuple(dict.fromkeys(unseen)))
        persons = {name for _, names in found.members for name in names}
        for name in self.risk_variables:
            if name not in known and name not in persons:
                raise InputError(
                    f"the risk cannot depend on {name}",
                    why="risk variables are variables of the records that are swapped, or of linked records that are "
                    "published with them",
                    fix=did_you_mean(name, {*known, *persons}),
                )
        return found

    def refuse_degenerate(self) -> None:
        """Raise an error if nobody would ever be swapped."""
        if not self.rate and not self.risk and not (self.k_anonymity > 1 and self.risk_variables):
            raise PrivacyError(
                "a swap rate of 0 without risks swaps nobody",
                why="the file would be published as it is",
                fix="give a swaprate, or k_anonymity and risk_variables",
            )

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop also where the risk of persons would have to be counted in parts."""
        PairwiseSwapping.refuse(self, census, engine)
        self._require_memory(census, engine or Local())

    def _require_memory(self, census: "Census", engine: Engine) -> None:
        found = self.roles(census)
        known = census.columns(self.resolution)
        beyond = [name for name in (*self.risk_variables, *self.risk) if name not in known]
        if beyond and not engine.fits(estimate_size(engine.census(census), found).memory):
            raise memory_error(beyond[0])

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Swap, order, write and verify."""
        if engine is not None:
            self._require_memory(census, engine)
        return PairwiseSwapping.release(
            self, census, key=key, engine=engine, out=out, state=state, progress=progress
        )

    def pair_records(self, frame: Frame, run: Key) -> Pairing:
        """Draw who changes places with whom."""
        part = frame.strata.codes != NO_STRATUM
        areas = find_level_areas(frame, self.hierarchy)
        if self.risk:
            risks, threshold = read_risks(frame, self.risk), float(self.risk_threshold)
        else:
            risks = measure_rarity(frame, areas, self.risk_variables)
            threshold = 1 / self.k_anonymity if self.k_anonymity and self.risk_variables else 2.0
        return draw_pairs(
            run,
            ids=frame.ids,
            taking_part=part,
            areas=areas,
            profiles=[number_combinations(frame.of(profile), frame.rows) for profile in self.similar],
            risks=risks,
            must=find_risk_levels(risks, threshold),
            rate=self.rate,
            cycle=self.cycle,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """Return each similarity profile in words."""
        return tuple(" × ".join(profile) or "anyone" for profile in self.similar)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels that swaps cross."""
        return self.hierarchy

    def details(self) -> Mapping[str, object]:
        """Return pairs of data sets that show why no budget is finite."""
        certain = witness_by_number(self.rate, self.cycle) if self.rate else witness_by_risk(self.k_anonymity)
        return list_witnesses(certain, witness_by_cycle(self.cycle))

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return what the guards found, and what the method does not promise."""
        own = Exhibit(
            title=Phrase("targeted.exhibit.title"),
            finding=Phrase("targeted.exhibit.finding"),
            note=Phrase("targeted.exhibit.note", match=" × ".join(self.match) or "–"),
            chapter="method",
        )
        return (*PairwiseSwapping.exhibits(self, release, engine=engine), own)


DEFAULT_K_ANONYMITY = 3  # of recordSwap
DERIVED_SETTINGS = (
    "match",
    "swap",
    "rate",
)  # settings of the swap that the hierarchy and the profiles decide


def _read_profiles(similar: Sequence[str] | Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return a list of profiles; a list of names is one profile."""
    texts = [name for name in similar if isinstance(name, str)]
    if len(texts) == len(similar):
        return (tuple(texts),)
    if texts:
        raise InputError(
            "similar mixes names and lists",
            why="it is one profile, or a list of profiles",
            fix='similar=[["size", "tenure"], ["size"]]',
        )
    return tuple(tuple(profile) for profile in similar)


def _require_risk(k: int, variables: Sequence[str], risk: Sequence[str], hierarchy: Sequence[str]) -> None:
    require_kind("k_anonymity", k, int, wanted="a whole number", fix="k_anonymity=3")
    if k < 0:
        raise InputError("k_anonymity is negative", why="it is a number of persons", fix="k_anonymity=3")
    if risk and len(risk) != len(hierarchy):
        raise InputError(
            f"{len(risk)} columns of risks are given for {len(hierarchy)} levels",
            why="each level of the hierarchy has a risk of its own",
            fix="name one column for each level, from coarse to fine",
        )
    if risk and variables:
        raise InputError(
            "both risk and risk_variables are given",
            why="the risk is given, or it is counted",
            fix="leave one of them out",
        )
    if k and not variables and not risk:
        raise InputError(
            "k_anonymity has nothing to count",
            why="no risk_variables are named",
            fix='risk_variables=["age", "sex"], or k_anonymity=0 for a swap at random',
        )
