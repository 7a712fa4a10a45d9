"""Declare the settings of every swap and its presets, and decide the role that they give each variable.

A variable is matched, swapped, held or left out; settings that contradict themselves are refused before any census is seen.
What was measured of the intervals of a swapped file's tables stands at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from stirred.census.schema import MIN_RECORDS_JUDGED
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.mechanisms.config import Exact, MechanismConfig, Share, Varied
from stirred.mechanisms.effect import MeasuredCoverage

if TYPE_CHECKING:
    from stirred.census import Census


# Refuse settings of a swap that contradict themselves, before any census is seen.


def require_output(tables: Sequence[Sequence[str]], *, microdata: bool) -> None:
    """Raise an error if nothing would be released."""
    if not microdata and not tables:
        raise InputError(
            "nothing would be released",
            why="there are no tables, and microdata is off",
            fix='give tables=[["county", "tenure"]] or microdata=True',
        )


def require_reasons(columns: Mapping[str, str]) -> None:
    """Raise an error if a column is released on purpose without a reason."""
    for name, reason in columns.items():
        if not reason.strip():
            raise InputError(
                f"{name} is released as an identifier without a reason",
                why="a column that tells who a record is, is published only with a written reason",
                fix='release_identifiers={"income": "why it is published"}',
            )


def require_tables(tables: Sequence[Sequence[str]], released: Sequence[str]) -> None:
    """Raise an error if a table asks for a variable that is not released."""
    for name in (name for by in tables for name in by):
        if name not in released:
            raise InputError(
                f"a table asks for {name}",
                why="the release does not have this variable",
                fix=did_you_mean(name, released),
            )


def find_held_in_tables(tables: Sequence[Sequence[str]], others: set[str]) -> tuple[str, ...]:
    """Return the variables of the tables that are neither matched nor swapped, in their order."""
    return tuple(dict.fromkeys(name for by in tables for name in by if name not in others))


def require_inner_rate(rate: Fraction) -> None:
    """Raise an error if a rate makes some outputs impossible."""
    if rate in (0, 1):
        raise PrivacyError(
            f"a swap rate of {rate} protects nothing",
            why="with rate 0 no record moves, with rate 1 every one does: some outputs become impossible (ε = ∞)",
            fix="choose a rate strictly between 0 and 1",
        )


# Decide the role of each variable: match, swap, hold, or left out.


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The role of every column of a record type in one swap."""

    record_type: str
    match: tuple[str, ...]
    swap: tuple[str, ...]
    along: tuple[str, ...]  # levels of geography that the swap variables determine: they move too
    hold: tuple[str, ...]  # released as they are, beside the match variables
    identifier: str
    kind: str  # the column that separates occupied homes from vacant ones and group quarters, if the schema has one
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()  # linked record types with the variables they keep
    spine: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()  # read for the draw, never released
    unseen_along: tuple[tuple[str, tuple[str, ...]], ...] = ()  # the same of linked record types
    file_columns: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by record type, as its files have them

    @property
    def moving_variables(self) -> tuple[str, ...]:
        """Return all variables that move together."""
        return (*self.swap, *self.along)

    @property
    def held_variables(self) -> tuple[str, ...]:
        """Return all variables that stay with the record (the paper's V_hold)."""
        return (*self.match, *self.hold)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Return the columns that a swap reads."""
        own = [name for name in (self.identifier, self.kind) if name]
        return tuple(dict.fromkeys([*self.released_variables, *self.unseen, *own]))

    @property
    def released_variables(self) -> tuple[str, ...]:
        """Return the columns of the released records."""
        return (*self.match, *self.moving_variables, *self.hold)

    def sort_columns(self, record_type: str, names: Iterable[str]) -> list[str]:
        """Return columns in the order of the files of a record type; derived areas, which no file has, come first."""
        filed = dict(self.file_columns).get(record_type, ())
        return sorted(names, key=lambda name: filed.index(name) if name in filed else -1)


def withhold(roles: Roles, names: Sequence[str]) -> Roles:
    """Return the roles with held variables that are not released, of the records and of linked ones."""
    return replace(
        roles,
        along=tuple(name for name in roles.along if name not in names),
        hold=tuple(name for name in roles.hold if name not in names),
        members=tuple(
            (record_type, tuple(name for name in variables if name not in names))
            for record_type, variables in roles.members
        ),
    )


def _refuse_repeats(match: Sequence[str], swap: Sequence[str]) -> None:
    both = sorted(set(match) & set(swap))
    if both:
        raise InputError(
            f"{both[0]} is both a match and a swap variable",
            why="records are swapped within strata of equal match variables, so a match variable cannot move",
            fix=f"take {both[0]} out of one of the two lists",
        )
    if not swap:
        raise InputError(
            "nothing is to be swapped",
            why="no swap variable is named",
            fix="name at least one swap variable, such as county",
        )
    for names in (match, swap):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise InputError(
                f"{twice[0]} is named twice",
                why="a variable has one role: match, swap or hold",
                fix="name each variable once",
            )


def derive_roles(
    census: "Census",
    *,
    record_type: str,
    match: Sequence[str],
    swap: Sequence[str],
    hold: Sequence[str] | None,
    drop: Sequence[str],
    carry: bool,
) -> Roles:
    """Derive the roles from the schema, and refuse a choice that would undo the swap.

    A level of geography that a swap variable determines moves along with it. A held variable that determines a
    swap variable (a tract beside a swapped county) would show where the record came from.
    """
    _refuse_repeats(match, swap)
    record = census.schema.record(record_type)
    own = [name for name in census.columns(record_type) if name not in (record.id, record.household)]
    known = set(own) | (set(census.columns(record.linked_to)) if record.linked_to else set())
    along_with = [other for other in census.schema.records if other.linked_to == record_type]
    carried = {name for other in along_with for name in census.columns(other.name)}  # may be dropped too
    carried |= {off.name for off in census.schema.geography.off_spine}  # declared, even if no record has it
    for name in (*match, *swap, *(hold or ()), *drop):
        if name not in known and not (name in drop and name in carried):
            raise InputError(
                f"{record_type} records have no variable {name}",
                why="a role of the swap names it",
                fix=did_you_mean(name, known),
            )
    spine = [level for level in census.schema.spine if level in known]
    deepest = max((spine.index(name) for name in swap if name in spine), default=-1)
    shallowest = min((spine.index(name) for name in swap if name in spine), default=len(spine))
    along = tuple(
        level
        for level in spine[: deepest + 1]
        if level not in match and level not in swap and level not in drop and (hold is None or level in hold)
    )
    named = own if hold is None else list(hold)
    rest = tuple(name for name in named if name not in {*match, *swap, *along, *drop})
    revealing = [name for name in (*rest, *match) if name in spine[shallowest + 1 :] and name not in swap]
    revealing += [
        off.name for off in census.schema.geography.off_spine if off.name in rest and off.of in spine
    ]
    if revealing and shallowest < len(spine):
        raise InputError(
            f"{revealing[0]} is held while {spine[shallowest]} is swapped",
            why=f"{revealing[0]} reveals the true place of the record",
            fix=f"swap it too, or leave it out: drop={sorted(set(revealing))}",
        )
    areas = {*spine, *(off.name for off in census.schema.geography.off_spine if off.of in spine)}
    linked: list[tuple[str, tuple[str, ...]]] = []
    for other in along_with if carry else ():
        variables = tuple(
            name
            for name in census.columns(other.name)
            if name not in {other.id, other.household, *swap, *areas, *drop}
        )
        linked.append((other.name, variables))
    return Roles(
        record_type=record_type,
        match=tuple(match),
        swap=tuple(swap),
        along=along,
        hold=rest,
        identifier=record.id,
        kind=record.kinds.column if record.kinds else "",
        members=tuple(linked),
        spine=tuple(spine),
        file_columns=tuple(
            (kind.name, census.list_file_columns(kind.name)) for kind in (record, *along_with)
        ),
    )


def require_levels(
    census: "Census", record_type: str, named: Mapping[str, Sequence[str]], *, count: bool = True
) -> None:
    """Refuse settings that name a level which does not exist: they would silently apply to no record.

    The levels are those of the schema; where it lists none and ``count`` is on, those that occur, unless the file is so
    small that a level may be missing by chance. Which levels of a released variable occur is an invariant or part
    of the release.
    """
    for name, levels in named.items():
        declared = {v.name: v.all_levels for v in census.schema.record(record_type).variables}.get(name)
        if declared is None and (not count or name not in census.columns(record_type)):
            continue
        if declared is None:
            counts = census.counts(record_type, [name])
            if sum(counts["count"].to_pylist()) < MIN_RECORDS_JUDGED:
                continue
            declared = tuple(map(str, counts[name].to_pylist()))
        known = [str(level) for level in declared]
        strange = [level for level in levels if level not in known]
        if strange:
            raise InputError(
                f"{name} has no level {strange[0]}",
                why="the settings of the swap name it, and no record can have it",
                fix=did_you_mean(strange[0], known),
            )


MEASURED_COVERAGE = (
    MeasuredCoverage(
        key="swap",
        name="swap",
        levels={
            "tract": ((99.1, 99.6), (97.4, 99.1), (97.4, 98.5), (88.4, 96.3), (94.6, 96.2), (94.5, 94.5)),
            "block group": ((99.8, 99.8), (97.8, 97.8), (96.6, 96.6), (96.6, 96.6), (94.7, 94.7), (93.5, 93.5)),
            "block": ((99.2, 99.7), (96.6, 99.5), (94.3, 98.6), (93.2, 97.5), (92.1, 95.6), (94.4, 94.4)),
        },
        source="docs/explain/topdown-uncertainty.md; python benchmarks/intervals.py",
    ),
)  # fmt: skip


# The settings of the Permutation Swapping Algorithm and of its relatives.


class SwapOutputConfig(MechanismConfig):
    """What every swap publishes, whatever decides who is swapped."""

    # the draw depends on the parameters, and must not change where nothing is accepted
    listed_where_given: ClassVar[frozenset[str]] = frozenset(("release_identifiers", "accept_reversal"))

    resolution: str = Field(
        default="household",
        description="the record type that is swapped; records linked to it, such as persons, travel along",
        examples=["household"],
    )
    hold: list[str] | None = Field(
        default=None,
        description="a list of held variables to publish (default: all)",
        examples=[["tenure"]],
    )
    drop: list[str] = Field(
        default=[], description="a list of variables not to publish", examples=[["tenure"]]
    )
    tables: list[list[str]] = Field(
        default=[],
        description="tables of the swapped records, each a list of variables, that the mechanism makes itself",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    microdata: bool = Field(
        default=True,
        description="whether records are released; without them only the variables of the tables are held",
        json_schema_extra={"flag": "--tables-only", "flag_help": "publish the tables and no records"},
    )
    carry: bool = Field(
        default=True,
        description="whether linked records, such as persons, are released too",
        json_schema_extra={
            "flag": "--no-persons",
            "flag_help": "do not publish the linked records",
            "label": "publish linked records, such as persons",
        },
    )
    untouched: Literal["publish", "drop", "refuse"] = Field(
        default="publish",
        description="what becomes of vacant units and group quarters, which take no part in the swap",
        examples=["publish"],
    )
    release_identifiers: dict[str, str] = Field(
        default={},
        description="columns to publish although they tell who a record is, each with the reason",
        examples=[{"income": "public register"}],
        json_schema_extra={"label": "publish though it identifies"},
    )
    accept_reversal: list[str] = Field(
        default=[],
        description="a list of held columns to publish although they tell where a swapped record came from",
        examples=[["weight"]],
        json_schema_extra={"overrides": True, "label": "publish though it tells the place"},
    )

    @field_validator("release_identifiers", mode="before")
    @classmethod
    def _read_empty_list(cls, given: object) -> object:
        """Read an empty list, as receipts of a swap without identifiers have it, as no column."""
        return {} if given == [] else given


class MatchedConfig(MechanismConfig):
    """Which records are swapped within which strata."""

    match: list[str] = Field(
        default=[],
        description="a list of variables on which swapped records agree; they make the strata",
        examples=[["state", "size"]],
    )
    swap: list[str] = Field(
        description="a list of variables that move, together; a level of geography between them moves along",
        examples=[["county", "tract", "block_group", "block"]],
    )


class StrataConfig(MatchedConfig):
    """Which records are swapped within which strata, and how often."""

    rate: Annotated[Share, Varied("rate")] = Field(
        description='the swap rate p, an exact text strictly between 0 and 1; "1/20" is five percent',
        examples=["1/20"],
    )


class MatchedSwapConfig(SwapOutputConfig, MatchedConfig):
    """Which records are swapped within which strata, and what is released."""


class SwapConfig(MatchedSwapConfig, StrataConfig):
    """Swap a census: the Permutation Swapping Algorithm.

    Records move within strata of equal match variables; the swap variables of the selected records are deranged. What is
    held, and what is counted by match × swap variables, stays exact: these are the invariants.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = ("household", ("county", "tenure"))


class VaryingRatesConfig(SwapConfig):
    """Swap with rates that vary: by a variable, or by the rarity of a record.

    Give either ``by`` and ``rates``, or ``rarity`` and ``rare``; all other records have the rate ``rate``.
    """

    by: str = Field(
        default="", description="the variable that decides the rate of a record", examples=["tenure"]
    )
    rates: dict[str, Share] | None = Field(
        default=None,
        description="the rate for each level of that variable; other levels have the common rate",
        examples=[{"rent": "1/10"}],
        json_schema_extra={"levels_of": "by"},
    )
    rarity: list[str] = Field(
        default=[],
        description="a list of variables; a record whose combination of them is rare has a rate of its own",
        examples=[["race", "block"]],
    )
    rare: Share | None = Field(default=None, description="the rate of rare records", examples=["1/2"])
    counts_up_to: int = Field(
        default=1, ge=1, description="the largest number of records that is still rare", examples=[1]
    )

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, the rates by level."""
        rates = {level: str(Fraction(rate)) for level, rate in sorted((self.rates or {}).items())}
        return {**super().settings(), "rates": rates}


class ImputedStayConfig(SwapConfig):
    """Swap, but leave imputed records where they are."""

    imputed: str = Field(description="the held variable that marks imputed records", examples=["allocated"])
    levels: list[str] = Field(
        description="a list of the levels of that variable that mean imputed",
        examples=[["1"]],
        json_schema_extra={"levels_of": "imputed"},
    )


class NoVacuousConfig(SwapConfig):
    """Swap without vacuous draws: a draw that moves records and changes no table is thrown away."""


class NearPlacesConfig(SwapConfig):
    """Swap with a preference for near places."""

    preference: Exact = Field(
        description="how much the nearer of two arrangements is preferred, an exact text of at least 1",
        examples=["3"],
    )


class UnitMatchingConfig(SwapConfig):
    """Swap twice: first in coarser pools, then in the strata."""

    loose: list[str] = Field(
        description="a list of the match variables that the pools forget", examples=[["size"]]
    )
    alpha: Share = Field(
        description="the part of the swap rate that is spent in the pools, an exact text", examples=["1/2"]
    )


class NoisyKeyConfig(SwapConfig):
    """Swap with a noisy match variable; no finite bound is known, so a plan with it alone is refused."""

    noisy: str = Field(
        description="the match variable that is drawn again before matching", examples=["size"]
    )
    change: Share = Field(
        description="the probability that it is drawn again, an exact text", examples=["1/4"]
    )


class NoisyTablesConfig(SwapConfig):
    """Swap, then publish tables with noise in every cell, and no records."""

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    microdata: Literal[False] = Field(default=False, description="no records are released")
    sigma_squared: Exact = Field(
        description="the variance of the noise in a cell, an exact text above 0", examples=["4"]
    )


# The settings of targeted record swapping, and what every traditional swap has in common.


class PairwiseConfig(SwapOutputConfig):
    """What every pairwise swap has, beside what every swap publishes."""

    cycle: int = Field(
        default=2,
        ge=2,
        description="how many records change places together: 2 are pairs, with more each takes the place of the next; a "
        "cycle is shorter where no more partners are left",
        examples=[3],
    )
    without_guarantee: str = Field(
        default="",
        description="why the records are published though no protection loss budget is finite; it stands in the report",
        examples=["the method of the last census"],
    )

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know: those of its own first, then what every swap has.

        The draw depends on them and must not change: an empty list stands for no identifiers, and pairs are not named.
        """
        own = self.settings()
        common = {name: own.pop(name) for name in SwapOutputConfig.model_fields}
        reason, cycle = own.pop("without_guarantee"), own.pop("cycle")
        common["release_identifiers"] = common["release_identifiers"] or []
        return {**own, **common, "without_guarantee": reason, **({} if cycle == 2 else {"cycle": cycle})}


DEFAULT_K_ANONYMITY = 3  # of recordSwap


class TargetedConfig(PairwiseConfig):
    """Targeted record swapping: risky households change places with similar ones elsewhere, in pairs.

    It has no finite protection loss budget: who is risky is swapped with certainty, and the number of swaps is fixed. The
    setting without_guarantee says why it is published all the same.
    """

    hierarchy: list[str] = Field(
        description="a list of areas from coarse to fine; they move together",
        examples=[["county", "tract"]],
    )
    similar: list[list[str]] = Field(
        description="similarity profiles, each a list of variables on which partners agree; a later one is tried where "
        "no partner is left in an earlier one",
        examples=[[["size", "tenure"], ["size"]]],
    )
    swaprate: Annotated[Share, Varied("rate")] = Field(
        default="1/20",
        description="the share of households that move at least, an exact text",
        examples=["1/20"],
    )
    k_anonymity: int | None = Field(
        default=None,
        ge=0,
        description="a household with a member that fewer than this many persons of an area are like is swapped out of "
        "the area; 0: nobody has to be (default: 3 where risk_variables are named)",
        examples=[3],
    )
    risk_variables: list[str] = Field(
        default=[],
        description="the variables, of persons or of households, whose combinations are counted in each area",
        examples=[["age", "sex"]],
    )
    risk: list[str] = Field(
        default=[],
        description="variables of households or of persons with a given risk for each area of the hierarchy, instead of "
        "counts; a household has the largest of its members; they are not published",
        examples=[["risk_county", "risk_tract"]],
    )
    risk_threshold: Exact = Field(
        default="0",
        description="a household whose given risk is above this is swapped, an exact text",
        examples=["1/3"],
    )
    carry_along: list[str] = Field(
        default=[],
        description="more variables of the place that move with it, such as finer codes",
        examples=[["block"]],
    )

    @field_validator("similar", mode="before")
    @classmethod
    def _read_one_profile(cls, given: object) -> object:
        """Read a list of names as one profile."""
        names = isinstance(given, list) and all(isinstance(name, str) for name in given)
        return [given] if names else given

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, with the k that is used."""
        return {**super().settings(), "k_anonymity": self.least_alike}

    @property
    def least_alike(self) -> int:
        """Return k, by default 3 as in recordSwap where risk variables are named."""
        if self.k_anonymity is None:
            return DEFAULT_K_ANONYMITY if self.risk_variables else 0
        return self.k_anonymity


# The settings of the 2010 swap, and its presets.

Preference = Literal["selected", "near", "risky"]
DEFAULT_SETTINGS: dict[str, object] = {
    "rate": "3/100",  # within the 2 to 4 percent that the Bureau has named
    "equal": ["adults", "minors", "tenure"],
    "noisy": "",
    "block_size_power": 1,
    "prefer": ["selected", "near", "risky"],
}
_STUDY_SETTINGS: dict[str, object] = {
    "equal": ["size"],
    "noisy": "size",
    "block_size_power": 0,
    "prefer": ["near"],
}
PRESETS: dict[str, dict[str, object]] = {
    "": DEFAULT_SETTINGS,
    "2010": DEFAULT_SETTINGS,
    "study-5": _STUDY_SETTINGS | {"rate": "1/20"},
    "study-50": _STUDY_SETTINGS | {"rate": "1/2"},
}

FIRST_PARAMETERS_2010 = (
    "preset", "state", "equal", "noisy", "block_size_power", "race", "race_factor", "imputed", "imputed_levels",
    "totally_imputed", "imputation_power", "unique", "unique_in", "prefer", "cap", "synthetic", "synthetic_by",
)  # fmt: skip


class Swapping2010Config(PairwiseConfig):
    """Swapping as for the 2010 census, after what is public of it: select at-risk households, pair them, swap their places.

    It has no finite protection loss budget: unique households are always selected, and the number of swaps of a state is
    fixed. The setting without_guarantee says why it is published all the same.
    """

    swap: list[str] = Field(
        description="a list of areas from coarse to fine that move together; the last is the block",
        examples=[["county", "tract", "block"]],
    )
    state: str = Field(
        default="state",
        description="the area that no household leaves, with its own number of swaps",
        examples=["state"],
    )
    preset: Literal["", "2010", "study-5", "study-50"] = Field(
        default="",
        description="where rate, equal, noisy, block_size_power and prefer come from unless they are given: 2010, or the "
        "experiments of the reconstruction study, without targeting, with a noisy size",
        examples=["study-5"],
    )
    rate: Annotated[Share | None, Varied("rate")] = Field(
        default=None,
        description="the share of the households of each state that are selected, an exact text",
        examples=["3/100"],
    )
    equal: list[str] | None = Field(
        default=None,
        description="a list of variables on which partners are equal, beside the state",
        examples=[["adults", "minors", "tenure"]],
    )
    noisy: str | None = Field(
        default=None,
        description="one of these variables, to which −1, 0 or 1 is added with probability 1/4, 1/2, 1/4 for the pairing",
        examples=["size"],
    )
    block_size_power: int | None = Field(
        default=None,
        ge=0,
        le=4,
        description="a household is selected in proportion to the size of its block to this power, inverted",
        examples=[1],
    )
    race: list[str] = Field(
        default=[],
        description="the variables of race: who is unique in the block is selected more often",
        examples=[["race"]],
    )
    race_factor: Exact = Field(
        default="3", description="how much more often, an exact text of at least 1", examples=["3"]
    )
    imputed: str = Field(
        default="", description="the variable that says what was imputed", examples=["allocated"]
    )
    imputed_levels: list[str] = Field(
        default=[],
        description="its levels that mean imputed; households of blocks with many are selected less often",
        examples=[["part", "all"]],
        json_schema_extra={"levels_of": "imputed"},
    )
    totally_imputed: list[str] = Field(
        default=[],
        description="its levels that mean totally imputed; these households are never selected",
        examples=[["all"]],
        json_schema_extra={"levels_of": "imputed"},
    )
    imputation_power: int = Field(
        default=1,
        ge=0,
        le=4,
        description="a household is selected in proportion to the share of its block that was not imputed to this power",
        examples=[1],
    )
    unique: list[str] = Field(
        default=[],
        description="the variables on which a unique household is always selected",
        examples=[["race", "tenure"]],
    )
    unique_in: str = Field(
        default="",
        description="the area in which it is unique (default: the block)",
        examples=["county"],
    )
    cap: Share | None = Field(
        default=None,
        description="the largest share of the households of a state that moves, unique ones included, an exact text "
        "(default: unique households may exceed the rate)",
        examples=["1/20"],
    )
    synthetic: dict[str, Literal["multinomial", "poisson"]] = Field(
        default={},
        description="variables of persons in group quarters that are drawn anew in this order, each from a model of these "
        "persons: multinomial for levels, poisson for counts; without any guarantee",
        examples=[{"race": "multinomial", "age": "poisson"}],
    )
    synthetic_by: list[str] = Field(
        default=[],
        description="variables of these persons or of their record on which the models depend, beside the kind of group "
        "quarters and the variables drawn before",
        examples=[["sex", "county"]],
    )
    prefer: list[Preference] | None = Field(
        default=None,
        description="what makes a better partner, the most important first: selected too, near, risky",
        examples=[["selected", "near", "risky"]],
    )

    def fill_from_preset(self) -> "Swapping2010Config":
        """Return the same settings, with those of the preset where none are given."""
        given = PRESETS[self.preset]
        return self.model_copy(
            update={name: value for name, value in given.items() if getattr(self, name) is None}
        )

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, with what a preset decided."""
        return PairwiseConfig.settings(self.fill_from_preset())

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know; the later ones only where they are used."""
        found = super().parameters()
        later = ("cap", "synthetic", "synthetic_by")
        return {
            name: found[name]
            for name in dict.fromkeys((*FIRST_PARAMETERS_2010, *found))
            if found[name] or name not in later
        }
