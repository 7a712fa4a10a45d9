"""Targeted record swapping as a mechanism, and in one call for a flat person file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from stirred.census import Census
from stirred.census.readers.sources import to_lazy
from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.frames import collect_frame
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap.config import Roles, TargetedConfig, withhold
from stirred.mechanisms.swap.frame import Frame, estimate_size
from stirred.mechanisms.swap.pairs import Pairing, draw_pairs
from stirred.mechanisms.swap.pairwise import (
    PairwiseSwapping,
    add_unseen,
    find_level_areas,
    find_risk_levels,
    list_witnesses,
    measure_rarity,
    memory_error,
    number_combinations,
    read_risks,
    witness_by_cycle,
    witness_by_number,
    witness_by_risk,
)
from stirred.mechanisms.swap.proposal import propose_targeted
from stirred.mechanisms.swap.strata import NO_STRATUM
from stirred.spec.laws import Rate

if TYPE_CHECKING:
    from stirred.census import Schema


# Targeted record swapping as a mechanism: risky households change places, in pairs, with similar ones elsewhere.


class TargetedSwapping(PairwiseSwapping):
    """Swap risky households with similar ones across areas where they are risky, and others up to a rate.

    ``similar`` is a list of similarity profiles: partners agree on all variables of one of them, the first that has a
    partner left. What is in all profiles, by place, stays exact.

    >>> TargetedSwapping(hierarchy=["county"], similar=[["size"]], k_anonymity=0).match
    ('size',)
    """

    name: ClassVar[str] = "targeted-swapping"
    config: TargetedConfig

    def check_settings(self) -> None:
        """Refuse places that partners agree on, and risks that nothing decides or two things do."""
        PairwiseSwapping.check_settings(self)
        config = self.config
        _require_risk(config.least_alike, config.risk_variables, config.risk, config.hierarchy)
        for name in (name for profile in config.similar for name in profile if name in self.swap):
            raise InputError(
                f"{name} is in a similarity profile and moves",
                why="partners that agree on a place would exchange nothing",
                fix=f"take {name} out of similar, or out of hierarchy and carry_along",
            )

    @property
    def match(self) -> tuple[str, ...]:
        """Return the variables of all similarity profiles: partners agree on them in any case."""
        first, *others = self.config.similar
        return tuple(name for name in first if all(name in profile for profile in others))

    @property
    def swap(self) -> tuple[str, ...]:
        """Return the areas, and what moves with them."""
        return (*self.config.hierarchy, *self.config.carry_along)

    @property
    def rate(self) -> Fraction:
        """Return the share of households that move at least."""
        return Fraction(self.config.swaprate)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Propose what a swap would match and move; the office decides who is at risk."""
        return propose_targeted(schema)

    def adjust_roles(self, roles: Roles, census: "Census") -> Roles:
        """Return the roles with what the risk depends on; given risks are read and not released."""
        known = census.columns(self.resolution)
        for name in (name for profile in self.config.similar for name in profile):
            if name not in known:
                raise InputError(
                    f"{self.resolution} records have no variable {name}",
                    why="similarity profiles are variables of the records that are swapped",
                    fix=did_you_mean(name, known),
                )
        found = withhold(roles, [name for name in self.config.risk if name in known])
        found = add_unseen(found, [name for name in self.config.risk if name not in known])
        needed = {name for profile in self.config.similar for name in profile}
        needed |= {name for name in self.config.risk_variables if name in known}
        own = [name for name in self.config.risk if name in known]
        unseen = [name for name in (*own, *sorted(needed)) if name not in found.released_variables]
        found = replace(found, unseen=tuple(dict.fromkeys(unseen)))
        persons = {name for _, names in found.members for name in names}
        for name in self.config.risk_variables:
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
        if (
            not self.rate
            and not self.config.risk
            and not (self.config.least_alike > 1 and self.config.risk_variables)
        ):
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
        beyond = [name for name in (*self.config.risk_variables, *self.config.risk) if name not in known]
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
        areas = find_level_areas(frame, self.config.hierarchy)
        if self.config.risk:
            risks, threshold = (
                read_risks(frame, self.config.risk),
                float(Fraction(self.config.risk_threshold)),
            )
        else:
            risks = measure_rarity(frame, areas, self.config.risk_variables)
            threshold = (
                1 / self.config.least_alike if self.config.least_alike and self.config.risk_variables else 2.0
            )
        return draw_pairs(
            run,
            ids=frame.ids,
            taking_part=part,
            areas=areas,
            profiles=[
                number_combinations(frame.of(tuple(profile)), frame.rows) for profile in self.config.similar
            ],
            risks=risks,
            must=find_risk_levels(risks, threshold),
            rate=self.rate,
            cycle=self.config.cycle,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """Return each similarity profile in words."""
        return tuple(" × ".join(profile) or "anyone" for profile in self.config.similar)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels that swaps cross."""
        return tuple(self.config.hierarchy)

    def details(self) -> Mapping[str, object]:
        """Return pairs of data sets that show why no budget is finite."""
        certain = (
            witness_by_number(self.rate, self.config.cycle)
            if self.rate
            else witness_by_risk(self.config.least_alike)
        )
        return list_witnesses(certain, witness_by_cycle(self.config.cycle))

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return what the guards found, and what the method does not promise."""
        own = Exhibit(
            title=Phrase("targeted.exhibit.title"),
            finding=Phrase("targeted.exhibit.finding"),
            note=Phrase("targeted.exhibit.note", match=" × ".join(self.match) or "–"),
            chapter="method",
        )
        return (*PairwiseSwapping.exhibits(self, release, engine=engine), own)


def _require_risk(k: int, variables: Sequence[str], risk: Sequence[str], hierarchy: Sequence[str]) -> None:
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


# Targeted record swapping of a flat person file in one call, with the parameters of recordSwap.


def flat_census(data: object, *, hid: str, hierarchy: Sequence[str]) -> Census:
    """Make households and persons of a person file; columns constant in all households are the household's."""
    schema = {
        "geography": {"spine": list(hierarchy)},
        "record": {"household": {"household_from": hid}, "person": {"household": hid, "of": "household"}},
    }
    return Census.of(schema, {"person": data})


def add_risks(data: object, risk: object, hierarchy: Sequence[str]) -> tuple[object, Sequence[str]]:
    """Add a matrix of risks to the file as columns, and return it with the names of the risks.

    >>> add_risks({"hid": [1, 2]}, [[0.5], [0.1]], ["lau"])[1]
    ['risk_lau']
    """
    if isinstance(risk, list | tuple) and all(isinstance(name, str) for name in risk):
        return data, list(risk)
    people = collect_frame(to_lazy(data))
    rows = isinstance(risk, list | tuple | np.ndarray)
    matrix = pl.DataFrame(np.asarray(risk, np.float64)) if rows else collect_frame(to_lazy(risk))
    if set(matrix.columns) == set(hierarchy):
        matrix = matrix.select(hierarchy)
    if matrix.shape != (people.height, len(hierarchy)):
        raise InputError(
            "the risks do not fit the file",
            why=f"they have {matrix.height:,} rows and {matrix.width} columns, the file has {people.height:,} rows and the "
            f"hierarchy {len(hierarchy)} levels",
            fix="give a risk for each row of the file and each level of the hierarchy, from coarse to fine",
        )
    names = [f"risk_{level}" for level in hierarchy]
    while set(names) & set(people.columns):
        names = [f"{name}_" for name in names]
    given = {name: matrix.to_series(i) for i, name in enumerate(names)}
    return people.with_columns(**given), names


def record_swap(
    data: object,
    *,
    hid: str,
    hierarchy: Sequence[str],
    similar: Sequence[str] | Sequence[Sequence[str]],
    key: Key,
    swaprate: Rate = "1/20",
    risk: object = (),
    **settings: Any,
) -> pl.DataFrame:
    """Return the swapped persons with their household's columns, in random order and with new numbers.

    Settings are those of TargetedSwapping: risk_variables, k_anonymity, risk_threshold, carry_along and the rest. ``risk``
    names a column of the file for each level, or is a matrix: a row for each row of the file, a column for each level.

    >>> people = {"hid": [1, 1, 2, 3, 4], "lau": ["a", "a", "a", "b", "b"], "hs": [2, 2, 1, 1, 1], "age": [40, 8, 3, 50, 7]}
    >>> made = record_swap(people, hid="hid", hierarchy=["lau"], similar=["hs"], key=Key.for_tests(1), swaprate="1/2")
    >>> sorted(made.group_by("lau").agg(pl.col("hs").sum()).rows())
    [('a', 5), ('b', 2)]
    """
    data, names = add_risks(data, risk, hierarchy)
    census = flat_census(data, hid=hid, hierarchy=hierarchy)
    mechanism = TargetedSwapping(
        hierarchy=hierarchy, similar=similar, swaprate=swaprate, risk=names, **settings
    )
    release = mechanism.release(census, key=key)
    homes, persons = release.to_polars("household"), release.to_polars("person")
    beside = [name for name in homes.columns if name == hid or name not in persons.columns]
    return persons.join(homes.select(beside), on=hid, how="left", maintain_order="left")
