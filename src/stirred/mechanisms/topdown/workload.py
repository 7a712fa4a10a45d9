"""Declare what is measured: queries, exact shares of the budget by level, rules and tree; read from TOML."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.languages import Phrase
from stirred.languages.phrase import catalog
from stirred.mechanisms.topdown.histogram import (
    AxisPart,
    AxisParts,
    AxisSource,
    Histogram,
    HistogramAxis,
    Query,
    Recode,
    name_column,
)
from stirred.text_formats import TomlError, parse_toml, read_plain_text

if TYPE_CHECKING:
    from stirred.census import Schema


# One constraint of a workload, as it is declared.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One constraint as declared: what is held, where, and with which right-hand side.

    ``exact``: the query's answers at the level equal the census's. ``facilities``: the answers lie between the number
    of units of each kind and ``largest`` times it. ``zero``: the listed cells are empty in any census.
    ``at-least``, ``at-most``: a public number per answer. ``parts``: the exact answers of a total bound the answers of
    facilities in the same geounits, as in the code of the 2020 production; the tree that is cut by ``areas`` has this rule.
    """

    name: str
    kind: Literal["exact", "facilities", "zero", "at-least", "at-most", "parts"]
    query: str = ""
    level: str = ""
    cells: tuple[tuple[str, tuple[int, ...]], ...] = ()
    values: tuple[int, ...] = ()
    largest: int = 99_999
    lower: tuple[int, ...] = ()  # by answer, 1 if every facility has at least one resident
    units: str = ""  # the record type of the facilities
    kinds: AxisSource | None = None  # how a unit's own columns sort it by answer
    areas: str = field(default="", metadata={"later": True})  # the geography whose border makes parts

    @property
    def unit_source(self) -> AxisSource:
        """Return how the columns of a unit sort it by answer; every rule about facilities states it."""
        if self.kinds is None:
            raise InputError(
                f"rule {self.name} does not say how {self.units or 'units'} are sorted by answer",
                why="a rule about facilities counts units of each kind",
                fix="give it kinds, the source of the kind of a unit: kinds = { column = … }",
            )
        return self.kinds


def list_occupied_answers(rule: Rule) -> tuple[int, ...]:
    """Return the answers of a facility rule whose units always hold somebody: group quarters."""
    return tuple(answer for answer, least in enumerate(rule.lower) if least > 0)


# Which tree is measured, where it is not the census's own: the AIAN split and optimized block groups.

LATER = {"later": True}  # a field that came later: at its default it is no part of what the key is bound to
PLACE_GEOGRAPHY = "place"
STRONG_SUBDIVISION_STATES = (
    "09",
    "23",
    "25",
    "26",
    "27",
    "33",
    "34",
    "36",
    "42",
    "44",
    "50",
    "55",
)  # states with strong county subdivisions
GROUP_SIZE_ALLOWANCE = 12  # the production system's allowance above √n
PART_SUFFIX = "_part"  # ends the name of a level whose areas are cut by the border of AIAN areas
OPTIMIZED_SUFFIX = "_optimized"  # ends the name of a level whose areas are made anew
NO_SPLIT = "none"  # asks for no split, also where production had one


@dataclass(frozen=True, slots=True, kw_only=True)
class SpineOptions:
    """The measured tree: ``aian`` is the geography that marks AIAN areas, ``block_groups`` the entities.

    ``strong_mcd`` names the county subdivisions that stand for places in twelve states, ``quarters`` keeps blocks with other
    types of group quarters apart, ``primitives`` are the entities whose pieces lie between county and tract. ``bounds``
    takes bounds from the exact population of each AIAN part, as the code of the production did.

    >>> SpineOptions(aian="aiannh").words()
    ('spine: states are split into AIAN areas (aiannh) and the remainder; a state itself is not measured',)
    """

    aian: str | None = None
    block_groups: tuple[str, ...] | None = None
    split_at: str = "state"
    strong_mcd: str | None = field(default=None, metadata=LATER)
    quarters: bool = field(default=False, metadata=LATER)
    primitives: tuple[str, ...] | None = field(default=None, metadata=LATER)
    bounds: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        if self.quarters and not self.has_new_block_groups:
            raise InputError(
                "types of group quarters shape optimized block groups, and none are asked for",
                why="the blocks of a tract are grouped by them",
                fix="name the geographies that block groups made anew respect as well (an empty list: none)",
            )
        if self.bounds and self.aian is None:
            raise InputError(
                "bounds of parts are asked for, and no area is split into parts",
                why="the parts are the AIAN areas of a state and the remainder",
                fix="name the geography of AIAN areas (aian), or leave out the bounds of parts",
            )
        if self.strong_mcd is not None and PLACE_GEOGRAPHY not in (self.block_groups or ()):
            raise InputError(
                f"{self.strong_mcd} stands for places in some states, and block groups do not respect places",
                why="county subdivisions take the place of places there",
                fix=f"let block groups made anew respect {PLACE_GEOGRAPHY}",
            )

    def __bool__(self) -> bool:
        return self.aian is not None or self.has_new_block_groups

    @property
    def has_new_block_groups(self) -> bool:
        """Return whether block groups are made anew."""
        return self.block_groups is not None or self.primitives is not None

    @property
    def extra_levels(self) -> tuple[str, ...]:
        """Return the levels that it may add to the census's own."""
        groups = ("block_group",) if self.has_new_block_groups else ()
        return groups if self.primitives is None else ("prim", "tract_subset_group", "tract_subset", *groups)

    def words(self) -> tuple[str, ...]:
        """Return what a specification says about the measured tree."""
        notes = []
        if self.aian is not None:
            notes.append(Phrase("topdown.spine.aian", level=self.split_at, areas=self.aian))
        if self.bounds:
            notes.append(Phrase("topdown.spine.bounds"))
        if self.primitives is not None:
            notes.append(Phrase("topdown.spine.primitives", entities=", ".join(self.primitives)))
        if self.has_new_block_groups:
            leaves = str(GROUP_SIZE_ALLOWANCE + 1)
            if self.block_groups:
                within = ", ".join(self.block_groups)
                notes.append(Phrase("topdown.spine.groups_within", within=within, leaves=leaves))
            else:
                notes.append(Phrase("topdown.spine.groups", leaves=leaves))
        if self.strong_mcd is not None:
            notes.append(
                Phrase(
                    "topdown.spine.strong_mcd",
                    areas=self.strong_mcd,
                    states=", ".join(STRONG_SUBDIVISION_STATES),
                )
            )
        if self.quarters:
            notes.append(Phrase("topdown.spine.quarters"))
        return tuple(notes)

    def document(self) -> dict[str, object]:
        """Return a canonical JSON-able form, for the parameters of a run."""
        groups = None if self.block_groups is None else list(self.block_groups)
        later: dict[str, object] = {}
        if self.strong_mcd is not None:
            later["strong_mcd"] = self.strong_mcd
        if self.quarters:
            later["quarters"] = True
        if self.primitives is not None:
            later["primitives"] = list(self.primitives)
        if self.bounds:
            later["bounds"] = True
        return {"aian": self.aian, "block_groups": groups, "split_at": self.split_at} | later

    @property
    def entities(self) -> tuple[str, ...]:
        """Return the off-spine geographies that it uses."""
        names = (self.aian, *(self.block_groups or ()), self.strong_mcd, *(self.primitives or ()))
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def count_common_levels(self, spine: tuple[str, ...]) -> int:
        """Return how many levels from the top both trees share."""
        if self.aian is not None:
            return (spine.index(self.split_at) if self.split_at in spine else 0) + 1
        if self.primitives is not None and "county" in spine:
            return spine.index("county") + 1
        return len(spine) - (2 if "block_group" in spine[-2:-1] else 1)


# The workloads that come with Stirred, as TOML texts.

PRESET_FOLDER = resources.files("stirred.mechanisms.topdown") / "presets"


def presets() -> tuple[str, ...]:
    """Return the names of the workloads that come with Stirred.

    >>> "pl94-persons" in presets()
    True
    """
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in PRESET_FOLDER.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def read_preset(name: str) -> str:
    """Return the text of a preset."""
    return (PRESET_FOLDER / f"{name}.toml").read_text("utf8")


# Read a workload file: pydantic models that mirror the TOML and become plain objects at once.


def _parse_fraction(value: object) -> Fraction:
    if isinstance(value, float):
        raise BudgetError(
            "a budget share is a decimal number", why="floats are not exact", fix='write it as text: "1/20"'
        )
    return Fraction(str(value))


Exact = Annotated[Fraction, BeforeValidator(_parse_fraction)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)


class _Source(_Model):
    column: str = ""
    cuts: tuple[int, ...] = ()
    values: tuple[tuple[int | str, ...], ...] = ()
    offset: int = 0
    cases: tuple[dict[str, tuple[int | str, ...]], ...] = ()

    def plain(self) -> AxisSource:
        cases = tuple(tuple(case.items()) for case in self.cases)
        return AxisSource(
            column=self.column, cuts=self.cuts, values=self.values, offset=self.offset, cases=cases
        )


class _Part(_Model):
    name: str
    labels: tuple[str, ...]
    source: _Source


class _Without(_Model):
    why: str
    levels: tuple[dict[str, tuple[int, ...]], ...]


class _Axis(_Model):
    name: str
    size: int | None = None
    labels: tuple[str, ...] = ()
    recodes: dict[str, tuple[int, ...] | tuple[tuple[int, ...], ...] | dict[str, tuple[int, ...]]] = {}
    cuts: dict[str, tuple[int, ...]] = {}
    source: _Source | None = None
    part: tuple[_Part, ...] = ()
    without: tuple[_Without, ...] = ()

    def plain(self) -> HistogramAxis:
        parts = AxisParts(
            parts=tuple(
                AxisPart(name=one.name, labels=one.labels, source=one.source.plain()) for one in self.part
            ),
            without=tuple(levels for one in self.without for levels in one.levels),
        )
        labels = parts.labels if self.part else self.labels
        size = self.size or len(labels)
        recodes: dict[str, Recode] = {}
        for name, groups in self.recodes.items():
            recodes[name] = parts.recode(groups) if isinstance(groups, dict) else _build_recode(groups, size)
        for name, cuts in self.cuts.items():
            recodes[name] = tuple(sum(level >= cut for cut in cuts) for level in range(size))
        source = parts.source if self.part else self.source.plain() if self.source else None
        return HistogramAxis(name=self.name, size=size, labels=labels, recodes=recodes, source=source)


class _Query(_Model):
    name: str
    of: tuple[str, ...] = ()


class _Rule(_Model):
    name: str
    kind: Literal["exact", "facilities", "zero", "at-least", "at-most"]
    query: str = ""
    level: str = ""
    cells: dict[str, tuple[int, ...]] = {}
    values: tuple[int, ...] = ()
    largest: int = 99_999
    lower: tuple[int, ...] = ()
    units: str = ""
    kinds: _Source | None = None

    def plain(self, histogram: Histogram) -> Rule:
        fields = self.model_dump()
        fields["kinds"] = None if self.kinds is None else self.kinds.plain()
        fields["cells"] = _build_cells(self.cells, histogram)
        return Rule(**fields)


class _Spine(_Model):
    aian: str | None = None
    optimized_block_groups: tuple[str, ...] | None = None
    split_at: str = "state"
    strong_mcd: str | None = None
    group_quarters_bits: bool = False
    primitives: tuple[str, ...] | None = None
    part_bounds: bool = False

    def plain(self) -> SpineOptions:
        return SpineOptions(
            aian=self.aian,
            block_groups=self.optimized_block_groups,
            split_at=self.split_at,
            strong_mcd=self.strong_mcd,
            quarters=self.group_quarters_bits,
            primitives=self.primitives,
            bounds=self.part_bounds,
        )


class _Workload(_Model):
    name: str
    title: str = ""
    source: str = ""
    record: str = "person"
    mode: Literal["classic", "gls", "guided"] = "gls"
    rho_squared: Exact | None = None
    levels: tuple[str, ...]
    axis: tuple[_Axis, ...]
    query: tuple[_Query, ...]
    level_shares: dict[str, Exact] = {}
    query_shares: dict[str, dict[str, Exact]] = {}
    rho: dict[str, dict[str, Exact]] = {}
    passes: dict[str, tuple[tuple[str, ...], ...]] = {}
    rule: tuple[_Rule, ...] = ()
    given: str = ""
    given_map: dict[str, str] = {}
    where: dict[str, tuple[int, ...]] = {}
    columns: dict[str, str] = {}
    spine: _Spine | None = None


def _build_recode(groups: tuple[int, ...] | tuple[tuple[int, ...], ...], size: int) -> Recode:
    """Return a recode from one group number per level, or from the levels of each group."""
    if groups and isinstance(groups[0], tuple):
        result = [-1] * size
        for number, levels in enumerate(groups):
            for level in levels:
                result[level] = number
        return tuple(result)
    return tuple(int(group) for group in groups)  # type: ignore[arg-type]


def _build_cells(
    cells: dict[str, tuple[int, ...]], histogram: Histogram
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return levels by axis; groups of a recode become levels, and several recodes of an axis intersect."""
    found: dict[str, tuple[int, ...]] = {}
    for name, groups in cells.items():
        own = any(axis.name == name for axis in histogram.axes)
        of = None if own else next((axis for axis in histogram.axes if name in axis.recodes), None)
        axis, levels = name, groups
        if of is not None:
            axis, levels = of.name, tuple(i for i, group in enumerate(of.recodes[name]) if group in groups)
        found[axis] = tuple(level for level in found[axis] if level in levels) if axis in found else levels
    return tuple(found.items())


def _read_document(text: str) -> dict[str, Any]:
    """Return the keys of a workload; missing keys come whole from the preset that it is ``like``."""
    try:
        document = dict(parse_toml(text))
    except TomlError as error:
        raise InputError(
            "the workload is not valid TOML", why=str(error), fix="correct the line that the reason names"
        ) from None
    like = document.pop("like", None)
    if like is None:
        return document
    if like not in presets():
        raise InputError(
            f"the workload is like {like}, and no preset has this name",
            why="it takes from a preset what it does not say itself",
            fix=did_you_mean(str(like), presets()),
        )
    return _read_document(read_preset(like)) | document


def _copy_dicts(value: Any) -> Any:
    """Return equal nested dictionaries, so that nobody changes those of another workload."""
    return {key: _copy_dicts(one) for key, one in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=32)  # a run asks for its workload a dozen times
def parse_fields(text: str) -> dict[str, Any]:
    """Return the fields of a workload written in TOML; unknown keys are refused."""
    document = _read_document(text)
    try:
        model = _Workload.model_validate(document)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)
        )
        raise InputError(
            "the workload file is not valid",
            why=problems,
            fix="correct these lines of the workload file",
        ) from None
    histogram = Histogram(axes=tuple(axis.plain() for axis in model.axis))
    queries = tuple(histogram.query(q.name, q.of) for q in model.query)
    total, level_shares, query_shares = _compute_shares(model)
    every = tuple(q.name for q in model.query)
    return {
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "record": model.record,
        "mode": model.mode,
        "histogram": histogram,
        "queries": queries,
        "levels": model.levels,
        "rho_squared": total,
        "level_shares": level_shares,
        "query_shares": query_shares,
        "passes": {level: model.passes.get(level, (every,)) for level in model.levels},
        "rules": tuple(rule.plain(histogram) for rule in model.rule),
        "given": model.given,
        "given_map": tuple(model.given_map.items()),
        "where": tuple(model.where.items()),
        "columns": tuple(model.columns.items()),
        "spine": None if model.spine is None else model.spine.plain(),
    }


def _compute_shares(model: _Workload) -> tuple[Fraction, dict[str, Fraction], dict[str, dict[str, Fraction]]]:
    """Return shares of the total, whether the file gives shares or absolute parts of ρ²."""
    if not model.rho:
        if model.rho_squared is None:
            raise BudgetError(
                f"workload {model.name} names no budget",
                why="every workload states its total ρ²",
                fix='rho_squared = "…" and shares, or [rho.LEVEL]',
            )
        return (
            model.rho_squared,
            dict(model.level_shares),
            {k: dict(v) for k, v in model.query_shares.items()},
        )
    by_level = {level: sum(parts.values(), Fraction(0)) for level, parts in model.rho.items()}
    total = sum(by_level.values(), Fraction(0))
    if model.rho_squared not in (None, total):
        raise BudgetError(
            f"the parts of ρ² of workload {model.name} sum to {total}, not to {model.rho_squared}",
            why="the parts are the shares of one total",
            fix="correct a part or the total; both are stated exactly",
        )
    shares = {
        level: {q: part / by_level[level] for q, part in parts.items()} for level, parts in model.rho.items()
    }
    return total, {level: part / total for level, part in by_level.items()}, shares


# The workload of a TopDown run: histogram, queries, exact budget shares by level, constraints; written in TOML.

Mode = Literal["classic", "gls", "guided"]
WHOLE_TREE_MODES: tuple[Mode, ...] = ("gls", "guided")  # the modes that estimate over the whole tree
NOUNS: dict[type, str] = {HistogramAxis: "Axis", AxisSource: "Source"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Histogram, queries, and for each level its share of ρ² and its queries' shares of that.

    >>> w = Workload.preset("small")
    >>> w.histogram.cells, w.levels[-1], w.rho_squared
    (16, 'block', Fraction(293764, 114921))
    """

    name: str
    record: str
    histogram: Histogram
    queries: tuple[Query, ...]
    levels: tuple[str, ...]
    rho_squared: Fraction
    level_shares: dict[str, Fraction]
    query_shares: dict[str, dict[str, Fraction]]
    passes: dict[str, tuple[tuple[str, ...], ...]]
    rules: tuple[Rule, ...] = ()
    mode: Mode = "gls"
    title: str = ""
    source: str = ""
    given: str = ""  # the workload whose published microdata this one must agree with
    given_map: tuple[tuple[str, str], ...] = ()  # its axis → the recode here that it equals
    where: tuple[tuple[str, tuple[int, ...]], ...] = ()  # which records are counted
    columns: tuple[tuple[str, str], ...] = ()  # axis → the column of the microdata
    spine: SpineOptions | None = None  # another tree than the census's own

    def __post_init__(self) -> None:
        _require_one(sum(self.level_shares.values(), Fraction(0)), f"the level shares of {self.name}")
        for level in self.levels:
            if self.level_shares.get(level, Fraction(0)) > 0:
                shares = self.query_shares.get(level, {})
                _require_one(
                    sum(shares.values(), Fraction(0)), f"the query shares of {self.name} at level {level}"
                )
                names = [query.name for query in self.queries]
                for name in shares:
                    if name not in names:
                        raise InputError(
                            f"level {level} gives a share to query {name}, which is not declared",
                            why="only a declared query can be measured",
                            fix=did_you_mean(name, names),
                        )

    def query(self, name: str) -> Query:
        """Return the query of that name."""
        for query in self.queries:
            if query.name == name:
                return query
        raise InputError(
            f"no query {name} in workload {self.name}",
            why="a query is asked for by its name",
            fix=did_you_mean(name, [q.name for q in self.queries]),
        )

    def rho(self, level: str, query: str) -> Fraction:
        """Return the part of ρ² one geounit of the level spends on the query."""
        share = self.query_shares.get(level, {}).get(query, Fraction(0))
        return self.rho_squared * self.level_shares.get(level, Fraction(0)) * share

    def with_rho_squared(self, rho_squared: Fraction) -> "Workload":
        """Return the same shares of another total."""
        return replace(self, rho_squared=rho_squared)

    @classmethod
    def preset(cls, name: str) -> "Workload":
        """Return one of the workloads that come with Stirred."""
        require_kind(
            "the name of a workload", name, str, wanted="a text", fix='Workload.preset("pl94-persons")'
        )
        known = presets()
        if name not in known:
            raise InputError(
                f"there is no workload {name}",
                why="a workload is asked for by its name, or by a TOML file",
                fix=did_you_mean(name, known) + ", or give a TOML file",
            )
        return cls.parse(read_preset(name))

    @classmethod
    def load(cls, path: str | Path) -> "Workload":
        """Read a workload from a TOML file."""
        try:
            text = read_plain_text(Path(path))
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"cannot read the workload {Path(path).name}",
                why="it is not a plain file of UTF-8 text",
                fix="give the path of a TOML file, or the name of a workload",
            ) from None
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> "Workload":
        """Parse a workload from TOML text; unknown keys are refused."""
        return cls(**_copy_dicts(parse_fields(text)))


def write_canonical(value: object) -> str:
    """Return a text that only equal workloads share; the key of a run is bound to it.

    It is the ``repr`` of a workload with two nouns that never change, whatever the classes are called: a changed text would
    change the noise of every release.

    >>> write_canonical(HistogramAxis(name="sex", size=2))
    "Axis(name='sex', size=2, labels=(), recodes={}, source=None)"
    """
    if is_dataclass(value):
        bound = (
            f for f in fields(value) if not f.metadata.get("later") or getattr(value, f.name) != f.default
        )
        inner = (f"{f.name}={write_canonical(getattr(value, f.name))}" for f in bound)
        return f"{NOUNS.get(type(value), type(value).__name__)}({', '.join(inner)})"
    if isinstance(value, tuple):
        return f"({', '.join(write_canonical(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{write_canonical(k)}: {write_canonical(v)}' for k, v in value.items())}}}"
    return repr(value)


def find_quarters_rule(workload: Workload) -> Rule | None:
    """Return the rule that counts group quarters by type in every leaf; None where no rule does."""
    return next(
        (rule for rule in workload.rules if rule.kind == "facilities" and list_occupied_answers(rule)), None
    )


def _require_one(total: Fraction, what: str) -> None:
    if total != 1:
        raise BudgetError(
            f"{what} sum to {total}, not to 1",
            why="every root-to-leaf path must spend exactly the total",
            fix="write the shares as exact fractions of one denominator",
        )


# Workloads by name: presets, files, and families of persons and units together.

FAMILIES = {
    "pl94": ("pl94-persons", "pl94-units"),
    "pl94-pr": ("pl94-pr-persons", "pl94-pr-units"),
    "dhc": ("dhc-persons", "dhc-units"),
    "dhc-pr": ("dhc-pr-persons", "dhc-pr-units"),
    "dhc-light": ("dhc-light-persons", "dhc-light-units"),
    "pl94-stirred": ("pl94-stirred-persons", "pl94-stirred-units"),
}
# measured in AIAN areas and the remainder of each state, as in production, where a census has the areas
SPLIT_PRESETS = frozenset(name for family in ("pl94", "dhc", "pl94-stirred") for name in FAMILIES[family])
AIAN_GEOGRAPHY = "aiannh"  # the geography of AIAN areas in the Bureau's files


def load_workloads(
    workload: str | Path | Workload, rho_squared: Fraction | str | int | None
) -> tuple[Workload, ...]:
    """Return the workloads of that name, file or object; a given total is shared out as theirs is."""
    if isinstance(workload, Workload):
        found: tuple[Workload, ...] = (workload,)
    elif str(workload) in FAMILIES:
        found = tuple(Workload.preset(name) for name in FAMILIES[str(workload)])
    elif str(workload) in presets() or not Path(workload).suffix:
        found = (Workload.preset(str(workload)),)
    else:
        found = (Workload.load(workload),)
    if rho_squared is None:
        return found
    total = sum((w.rho_squared for w in found), Fraction(0))
    wanted = Fraction(str(rho_squared))
    if wanted <= 0:
        raise BudgetError(
            "rho_squared must be positive",
            why="with a budget of 0 nothing can be measured",
            fix='rho_squared="2.63", or "inf" for no noise',
        )
    return tuple(w.with_rho_squared(w.rho_squared * wanted / total) for w in found)


def production_tree(workload: Workload, schema: "Schema") -> SpineOptions | None:
    """Return production's split of states, where the census says which blocks are in AIAN areas."""
    if workload.name not in SPLIT_PRESETS or "state" not in schema.spine[:-1]:
        return None
    public = schema.geography.areas is not None
    known = [
        one
        for one in schema.geography.off_spine
        if one.name == AIAN_GEOGRAPHY and one.of and (one.files or not public)
    ]
    return SpineOptions(aian=AIAN_GEOGRAPHY) if known else None


# Words for the parts of a query, in every language, where a preset uses the short names of the Bureau.


def describe_axis(name: str) -> str:
    """Return an axis or a recode in words; a name that no preset uses stays as it is.

    >>> describe_axis("hhgq"), describe_axis("canton")
    ('type of quarters', 'canton')
    """
    key = f"topdown.axis.{name}"
    return Phrase(key) if key in catalog("en") else name


def describe_query(workload: Workload, name: str) -> str:
    """Return in words what a query counts by: its axes, crossed.

    >>> preset = Workload.preset("pl94-persons")
    >>> describe_query(preset, "votingage * hispanic"), describe_query(preset, "detailed"), describe_query(preset, "total")
    ('voting age × Hispanic origin', 'all variables', 'total')
    """
    axes = workload.histogram.axes
    parts = workload.query(name).parts
    if not parts:
        return Phrase("topdown.axis.total")
    if len(parts) > 1 and set(parts) == {axis.name for axis in axes}:
        return Phrase("topdown.axis.detailed")
    return reduce(_cross_words, (_describe_part(workload, part) for part in parts))


def label_levels(workload: Workload, names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the labels of each published column, by code; ``names`` are the Bureau's, if asked for.

    >>> label_levels(Workload.preset("small"), {})["votingage"]
    {'0': 'under 18', '1': '18 and over'}
    """
    found = {}
    for axis in workload.histogram.axes:
        name, first = name_column(axis, dict(names))
        if axis.labels:
            found[name] = {str(first + level): label for level, label in enumerate(axis.labels)}
    return found


def _describe_part(workload: Workload, part: str) -> str:
    """Return one part of a query in words; a recode without words says how many groups it has."""
    axis = next(axis for axis in workload.histogram.axes if part == axis.name or part in axis.recodes)
    said = describe_axis(part)
    if part == axis.name or isinstance(said, Phrase) or not isinstance(describe_axis(axis.name), Phrase):
        return said
    return Phrase("topdown.exhibit.grouped", axis=describe_axis(axis.name), number=axis.groups(part))


def _cross_words(first: str, second: str) -> str:
    return Phrase("topdown.exhibit.crossed", first=first, second=second)
