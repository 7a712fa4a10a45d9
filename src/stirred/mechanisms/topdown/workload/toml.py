"""Read a workload file: pydantic models that mirror the TOML and become plain objects at once."""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from stirred.errors import BudgetError, InputError, did_you_mean
from stirred.mechanisms.topdown.workload.histogram import AxisSource, Histogram, HistogramAxis, Recode
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.parts import AxisPart, AxisParts
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.shipped import presets, read_preset
from stirred.toml_text import TomlError, parse_toml


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
