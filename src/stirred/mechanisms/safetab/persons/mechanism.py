"""SafeTab-P as a mechanism: count population groups, look at each with noise, publish a total or sex by age (T1, T2)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.engine.base import silent
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.arguments import check_inputs, require_inputs
from stirred.mechanisms.base import Exhibit, Knob, Mechanism, MechanismConfig, Release, totals_to_try
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.safetab.codes import CodeLists
from stirred.mechanisms.safetab.factors import SAFETAB_P_CONVERSION
from stirred.mechanisms.safetab.groups import GroupSet, Tally, count_groups
from stirred.mechanisms.safetab.mapping import make_group_maps
from stirred.mechanisms.safetab.noise import Definition
from stirred.mechanisms.safetab.persons import apportionment, arguments, output, running, statement
from stirred.mechanisms.safetab.persons.ages import SexByAge
from stirred.mechanisms.safetab.persons.apportionment import Apportionment
from stirred.mechanisms.safetab.persons.config import SafeTabPConfig
from stirred.mechanisms.safetab.persons.exhibits import make_exhibits
from stirred.mechanisms.safetab.persons.presets import find_preset
from stirred.mechanisms.safetab.persons.proposal import propose
from stirred.mechanisms.safetab.regions import (
    REGION_TYPES,
    Regions,
    RegionType,
    choose_region_types,
    find_regions,
    geographic_columns,
    set_columns,
)
from stirred.mechanisms.safetab.settings import ETHNICITY, RACES
from stirred.spec import Specification
from stirred.spec.algebra.conversions import Conversion
from stirred.spec.numbers.numerals import parse_fraction
from stirred.spec.released import Views, make_view

if TYPE_CHECKING:
    from stirred.census import Census, Schema

STATE_TYPE = "STATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeTabP(Mechanism):
    """Totals of detailed population groups (T1), and sex by age where a group is large enough (T2).

    Every field is a setting of ``SafeTabPConfig``; ``find_preset`` fills those that are not given.

    >>> SafeTabP().apportion().spent()
    Fraction(618, 125)
    """

    name: ClassVar[str] = "safetab-p"
    Config: ClassVar[type[MechanismConfig]] = SafeTabPConfig
    seconds_per_million: ClassVar[float] = 20.0
    bytes_per_record: ClassVar[int] = 200
    conversion: ClassVar[Conversion | None] = SAFETAB_P_CONVERSION

    preset: str = "ddhc-a-2020"
    codes: Path | str | None = None
    definition: Definition = "zcdp"
    budget: Mapping[str, str] | None = None
    thresholds: Mapping[str, str] | None = None
    total: Fraction | str | int | None = None
    epsilon: str | None = None
    first_stage: Fraction | str | None = None
    suppression: Fraction | str | None = None
    clamp: bool = False
    most_codes: int = 8
    neighbours: statement.NeighbourKind = "added-or-removed"
    invariants: statement.KnownInvariants = "housing-units"
    races: Sequence[str] = RACES
    ethnicity: str = ETHNICITY
    sex: str = "sex"
    sexes: Sequence[str] = ("1", "2")
    age: str = "age"
    record: str = "person"
    regions: Mapping[str, str] | None = None
    puerto_rico: str = "72"

    def __post_init__(self) -> None:
        columns = ("preset", "ethnicity", "sex", "age", "record", "puerto_rico")
        choices = ("definition", "neighbours", "invariants", "epsilon")
        arguments.require_kinds(
            codes=self.codes,
            columns={name: getattr(self, name) for name in columns},
            lists={"races": self.races, "sexes": self.sexes},
            tables={"budget": self.budget, "thresholds": self.thresholds, "regions": self.regions},
            choices={name: getattr(self, name) for name in choices},
        )
        arguments.require_sense(
            races=self.races,
            ethnicity=self.ethnicity,
            most_codes=self.most_codes,
            sexes=self.sexes,
            regions=self.regions or {},
            first_stage=self._first_stage,
            suppression=self._suppression,
        )
        self._set_amounts()

    def _set_amounts(self) -> apportionment.Amounts:
        """Return budgets and thresholds by region type and level."""
        total = None if self.total is None else parse_fraction(self.total, "total")
        return apportionment.set_amounts(
            self.budget or {}, self.thresholds or {}, find_preset(self.preset), total
        )

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return the preset, where persons have detailed codes."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """Return the record type that is counted."""
        return self.record

    @property
    def is_noiseless(self) -> bool:
        """Return whether the budget is infinite: no noise, no protection."""
        return self.epsilon == "inf"

    @property
    def lists(self) -> CodeLists:
        """Return the code lists."""
        return CodeLists.own() if self.codes is None else CodeLists.read(Path(self.codes))

    @property
    def _first_stage(self) -> Fraction:
        given = find_preset(self.preset).first_stage if self.first_stage is None else self.first_stage
        return parse_fraction(given, "first_stage")

    @property
    def _suppression(self) -> Fraction:
        given = find_preset(self.preset).suppression if self.suppression is None else self.suppression
        return parse_fraction(given, "suppression")

    def kinds(self) -> tuple[RegionType, ...]:
        """Return all region types, with the columns of the settings."""
        return tuple(set_columns(self.regions or {}).values())

    @property
    def _state(self) -> str:
        return (self.regions or {}).get(STATE_TYPE, REGION_TYPES[STATE_TYPE].column)

    def apportion(self, census: "Census | None" = None) -> Apportionment:
        """Return the measured lines and their budgets; without a census, as if it had every region type."""
        kinds = self.kinds()
        if census is not None:
            kinds = choose_region_types(census, kinds, state=self._state)
        lines = apportionment.make_lines(
            kinds, self._set_amounts(), self.lists, most_codes=self.most_codes, noiseless=self.is_noiseless
        )
        return Apportionment(
            lines=lines,
            definition=self.definition,
            first_stage=self._first_stage,
            suppression=self._suppression,
        )

    def parameters(self) -> dict[str, object]:
        """Return every setting as exact JSON; the lists by their digest, wherever they lie."""
        exact = ("total", "first_stage", "suppression")
        named = (
            "preset",
            "definition",
            "epsilon",
            "neighbours",
            "invariants",
            "ethnicity",
            "sex",
            "age",
        )
        return {
            **{
                name: None if (own := getattr(self, name)) is None else str(Fraction(str(own)))
                for name in exact
            },
            **{name: None if (own := getattr(self, name)) is None else str(own) for name in named},
            "codes": None if self.codes is None else self.lists.digest(),
            "budget": {name: str(Fraction(value)) for name, value in (self.budget or {}).items()},
            "thresholds": dict(self.thresholds or {}),
            "clamp": self.clamp,
            "most_codes": self.most_codes,
            "races": list(self.races),
            "sexes": list(self.sexes),
            "record": self.record,
            "regions": dict(self.regions or {}),
            "puerto_rico": self.puerto_rico,
        }

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]."""
        return self.parameters() | {"codes": None if self.codes is None else str(self.codes)}

    def identity(self) -> dict[str, object]:
        """Return what the key is bound to: all that decides the law of the release.

        What the promise compares and supposes is left out: it must not change the noise.
        """
        said = {name: value for name, value in self.parameters().items() if name not in ("codes", "preset")}
        lines = [(line.name, str(line.budget), line.thresholds) for line in self.apportion().lines]
        shares = (str(self._first_stage), str(self._suppression))
        return said | {
            "neighbours": "",
            "invariants": "",
            "lists": self.lists.digest(),
            "lines": lines,
            "shares": shares,
        }

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where columns are missing, where no region type has a budget, or where regions are not public."""
        self._refuse_columns(census)
        if census.schema.geography.areas is not None:
            self._regions(census, engine)

    def _refuse_columns(self, census: "Census") -> None:
        record = census.schema.record(self.record)
        known = set(census.columns(record.name))
        if record.linked_to:
            known |= set(census.columns(record.linked_to))
        for name in (*self.races, *filter(None, [self.ethnicity]), self.sex, self.age):
            if name not in known:
                raise InputError(
                    f"{self.record} records have no column {name}",
                    why="population groups are counted by detailed codes, sex and age",
                    fix='name the columns: races = […], ethnicity = "", sex = "…", age = "…"',
                )
        if not self.apportion(census).lines:
            raise InputError(
                "no table can be made of this census",
                why="it has no column for any region type that has a budget",
                fix='name the column of a region type: regions = { STATE = "…" }',
            )

    def _regions(self, census: "Census", engine: Engine | None) -> Regions:
        kinds = tuple(dict.fromkeys(line.kind for line in self.apportion(census).lines))
        return find_regions(census, kinds, state=self._state, island=self.puerto_rico, engine=engine)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the zCDP or pure DP promise for persons; no record is read for it."""
        require_inputs(census, engine)
        here = self.apportion(census)
        there = {line.kind.name for line in here.lines}
        known = geographic_columns(census)
        absent = tuple(
            dict.fromkeys(
                line.kind.name
                for line in self.apportion().lines
                if line.kind.name not in there and (not line.kind.island or self._state in known)
            )
        )
        return statement.build_specification(
            census,
            here,
            self.record,
            self.neighbours,
            absent,
            stated=self.invariants,
            released=self.views(census),
        )

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,
    ) -> Release:
        """Count, measure, publish; with ``out`` also the Bureau's files."""
        census = check_inputs(census, key, engine)
        self._refuse_columns(census)
        promise = self.specification(census)
        lists, here = self.lists, self.apportion(census)
        say = progress or silent
        say("tabulate", 0, 1)
        tally = self.tally(census, engine)
        counts = count_groups(census, tally, record_type=self.record, engine=engine)
        say("tabulate", 1, 1)
        digest = key.bind("reader").digest(*running.encode_counts(tally, counts))
        own = key.bind(self.name, json.dumps(self.identity(), sort_keys=True), digest)
        found = running.measure_sets(tally.sets, counts, here, lists, own, say)
        tables = output.make_tables(found, self.sexes, clamp=self.clamp, digest=lists.digest())
        files = output.write_files(tables, out, lists.digest()) if out is not None else ()
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables=tables,
            files=files,
            settings=self.settings(),
            checks=(running.check_agreement(tables),),
            ledger=statement.build_ledger(here, self.neighbours, promise.budget, self.name),
            notes=(Phrase("safetab.note.noiseless"),) if self.is_noiseless else (),
            input_digest=hashlib.sha256(digest).hexdigest(),
            private=key.private and not self.is_noiseless,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    def tally(self, census: "Census", engine: Engine | None = None) -> Tally:
        """Return what is counted: the groups of every region, by sex and age."""
        here, lists = self.apportion(census), self.lists
        known = self._regions(census, engine)
        maps = make_group_maps(lists, self.most_codes)
        sets = tuple(
            GroupSet(line.kind, line.level, known.of(line.kind), maps[line.level, line.kind.fine])
            for line in here.lines
            if known.of(line.kind)
        )
        cells = SexByAge(self.sex, tuple(self.sexes), self.age)
        return Tally(sets=sets, regions=known, races=tuple(self.races), ethnicity=self.ethnicity, cells=cells)

    def views(self, census: "Census") -> Views:
        """Return the codes of race and ethnicity, which every table counts; sex and age for larger groups."""
        names = (*self.races, *filter(None, [self.ethnicity]))
        return (make_view(census.domain, self.record, names),)

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:  # noqa: ARG002
        """Return the variables of T1 and T2, which are no columns of the census."""
        return {self.record: output.T2}

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return T1 or T2 with the variance, standard error and 95 % interval of every row."""
        for name, columns in (("t1", output.T1), ("t2", output.T2)):
            if set(by) == set(columns) and name in release.tables and not weight:
                return release.tables[name].select([*columns, *output.FIGURE_COLUMNS])
        return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)

    def list_own_tables(self, release: Release) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return T1 and T2 with their variables."""
        return {"t1": output.T1, "t2": output.T2}

    def details(self) -> Mapping[str, object]:
        """Return budget, noise and bounds of every region type and level."""
        here = self.apportion()
        return {
            "lines": {
                line.name: {
                    "budget": "inf" if line.budget is None else str(line.budget),
                    "sensitivity": line.sensitivity,
                    "variance": float(here.stages(line).second.variance),
                    "first_variance": float(here.stages(line).first.variance),
                    "shown_above": here.stages(line).cut,
                }
                for line in here.lines
            }
        }

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return noise and margins of error, and what decides which rows are shown."""
        here = self.apportion()
        if release is not None and release.ledger is not None:
            kinds = set(release.tables["t1"].column("region_type").to_pylist())
            here = replace(
                here, lines=tuple(line for line in here.lines if line.kind.name in kinds) or here.lines
            )
        return make_exhibits(here, {} if release is None else release.tables)

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a count is not 0, in the line with the least noise."""
        here = self.apportion(census)
        return smallest_effect({line.name: here.stages(line).second.change for line in here.lines})

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the noise of both stages of every line, as a release draws it."""
        del engine
        here = self.apportion(census)
        return here.sample_lines(key, statement.PROVED_FACTOR if self.neighbours == "changed" else 1)

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total budget."""
        start = self.apportion().total_budget()
        if start is None:
            return ()
        return (
            Knob(
                name="total",
                effect="a larger total is a larger budget and has a smaller error",
                settings=totals_to_try(start),
                turned=lambda total: replace(self, total=total),
            ),
        )
