"""Propose the settings of a swap from the schema of a census; who is at risk stays the office's decision."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from stirred.census.schema import RecordSchema, Schema
from stirred.errors import PlanError
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_areas, list_variables
from stirred.mechanisms.swap.config import SwapConfig

# A swap that the schema of a census suggests: which variables are matched, swapped, held and left out.

PROPOSED_RATE = "1/20"
TABLES_PER_RECORD_TYPE = 2  # for each record type


def propose_swap(schema: Schema, config: type[MechanismConfig], *, carry: bool = True) -> Proposal:
    """Match the coarsest area and the size, swap the finer areas, hold categories, leave out what would tell the place.

    >>> from stirred.census.toml import parse_schema
    >>> kinds = {"size": "1..6", "tenure": {"levels": ["own", "rent"]}, "region": {}, "ea": {}}
    >>> homes = {"household": {"size": "size", "variables": kinds}}
    >>> schema = parse_schema({"geography": {"spine": ["region", "ea"]}, "record": homes})
    >>> from stirred.mechanisms.swap.config import SwapConfig
    >>> found = propose_swap(schema, SwapConfig).settings
    >>> found["match"], found["swap"], found["hold"]
    (['region', 'size'], ['ea'], ['tenure'])
    """
    record = find_root(schema)
    levels = list_areas(schema, record)
    linked = [other for other in schema.records if carry and other.linked_to == record.name]
    matched = list(levels[:1]) if len(levels) > 1 else []
    if record.size in record.names:
        matched.append(record.size)
    swapped = list(levels[1:] or levels)
    left_out = dict(pair for one in (record, *linked) for pair in _list_left_out(schema, one))
    held = [v for v in list_variables(schema, record) if v.name not in {*matched, *left_out}]
    tables = tuple(
        (one.name, (swapped[0], variable.name))
        for one in (record, *linked)
        for variable in [v for v in choose_variables(schema, one) if v.name not in left_out][
            :TABLES_PER_RECORD_TYPE
        ]
    )
    settings: dict[str, object] = {"match": matched, "swap": swapped, "rate": PROPOSED_RATE}
    reasons = {
        "match": _explain_match(record, matched, levels),
        "swap": _explain_swap(levels),
        "rate": "a start, not a choice: tune it on a stand-in with stirred plan tune",
        "hold": "categories that stay with their record and are published"
        + _explain_left_out(schema, record),
        "tables": f"each by {swapped[0]}, the coarsest area that moves" if tables else "no category to count",
    }
    if record.name != "household":
        settings["resolution"] = record.name
        reasons["resolution"] = "the records that no other record type holds together"
    # a column that hold names is released on purpose; without it guards judge the columns whose values are not listed
    if all(variable.levels is not None for variable in held):
        settings["hold"] = [variable.name for variable in held]
    else:
        left_out |= dict.fromkeys(_off_spine_areas(schema, record), "an area that would tell the place")
    if not carry:
        settings["carry"] = False
        reasons["carry"] = "this mechanism cannot move linked records"
    if left_out:
        settings["drop"] = list(left_out)
        reasons["drop"] = "; ".join(f"{name}: {why}" for name, why in left_out.items())
    own = [by for kind, by in tables if kind == record.name]
    for key, value, why in _propose_variant_settings(schema, record, config, matched, own):
        settings[key], reasons[key] = value, why
    if "sigma_squared" in settings:
        tables = tuple((record.name, by) for by in own)
    return Proposal(
        settings=settings,
        reasons=reasons,
        tables=tables,
        undecided=tuple(_list_undecided(schema, record, linked, matched, levels)),
    )


def count_held_kinds(schema: Schema) -> int | None:
    """Return how many kinds of records a proposed swap can hold apart, or None where they have no listed number.

    Records with linked ones, such as households with persons, are taken to differ all.

    >>> from stirred.census.toml import parse_schema
    >>> homes = {"household": {"variables": {"tenure": ["own", "rent"], "region": {}, "ea": {}}}}
    >>> count_held_kinds(parse_schema({"geography": {"spine": ["region", "ea"]}, "record": homes}))
    2
    """
    record = find_root(schema)
    if any(other.linked_to == record.name for other in schema.records):
        return None
    counts = [v.level_count for v in list_variables(schema, record) if v.name != record.size]
    return None if None in counts else prod(count for count in counts if count is not None)


def _explain_match(record: RecordSchema, matched: list[str], levels: tuple[str, ...]) -> str:
    told = []
    if len(levels) > 1:
        told.append(f"records stay within their {levels[0]}")
    if record.size in matched:
        told.append("records that change places have equally many persons")
    return " and ".join(told) + ", so counts by these stay exact" if told else "nothing that could be matched"


def _explain_swap(levels: tuple[str, ...]) -> str:
    if len(levels) == 1:
        return "the only level of the geography"
    return f"the levels of the geography below {levels[0]}, which move together"


def _explain_left_out(schema: Schema, record: RecordSchema) -> str:
    beside = _off_spine_areas(schema, record)
    return f"; not {', '.join(beside)}, which would tell the place" if beside else ""


def _off_spine_areas(schema: Schema, record: RecordSchema) -> list[str]:
    """Return the areas beside the spine that are variables of the records."""
    return [off.name for off in schema.geography.off_spine if off.name in record.names]


def _list_left_out(schema: Schema, record: RecordSchema) -> Iterator[tuple[str, str]]:
    """Iterate over variables that are not published, each with its reason, without identifiers and links."""
    beside = {off.name for off in schema.geography.off_spine}
    for variable in record.variables:
        if variable.name in (record.id, record.household, record.household_from):
            continue
        if variable.name == record.weight:
            yield (
                variable.name,
                "a weight that is constant within areas would undo the swap; [weights] makes new ones",
            )
        elif variable.name in beside and record.linked_to:
            yield variable.name, "an area that tells where the record came from"
        elif variable.kind == "number" and variable.name not in schema.spine:
            yield (
                variable.name,
                'a number with many values tells who is who; bands = "1-2-5" in census.toml publishes it',
            )


def _propose_variant_settings(
    schema: Schema,
    record: RecordSchema,
    config: type[MechanismConfig],
    matched: list[str],
    tables: Sequence[tuple[str, ...]],
) -> Iterator[tuple[str, object, str]]:
    """Iterate over the settings that a variant has beside the swap's own, each with value and reason."""
    asked = set(config.model_fields)
    fixed: Mapping[str, tuple[object, str]] = {
        "preference": ("3", "a start: the nearer of two arrangements is three times as likely"),
        "alpha": ("1/2", "a start: half of the rate is spent in the pools"),
        "change": ("1/4", "a start"),
        "sigma_squared": ("4", "a start: a standard deviation of two records"),
    }
    yield from ((key, *found) for key, found in fixed.items() if key in asked)
    for key in ("loose", "noisy"):
        if key in asked:
            if not matched:
                raise _schema_error(f"{key} names a match variable", 'name the size: size = "…"')
            value: object = matched[-1] if key == "noisy" else matched[-1:]
            yield key, value, "the finest match variable"
    if "sigma_squared" in asked:
        if not tables:
            raise _schema_error("it publishes tables of categories", "list the levels of a variable")
        yield "tables", [list(by) for by in tables], "the tables that are published with noise"
    listed = [v for v in choose_variables(schema, record) if v.levels is not None]
    if "rates" in asked:
        if not listed:
            raise _schema_error(
                "its rates differ by the levels of a variable", "list the levels of a variable"
            )
        yield "by", listed[0].name, "a variable with listed levels"
        yield "rates", {str((listed[0].levels or ("",))[-1]): "1/10"}, "a start: say which records move more"
    if "imputed" in asked:
        marks = {v.imputed for v in record.variables if v.imputed}
        mark = next((v for v in record.variables if v.name in marks and v.levels is not None), None)
        if mark is None or not mark.levels:
            raise _schema_error(
                "a variable marks imputed records",
                'name the mark and list its levels: tenure = { …, imputed = "tenure_flag" }',
            )
        yield "imputed", mark.name, "the mark of imputed values"
        yield "levels", [str(mark.levels[-1])], "its last level: say which levels mean imputed"


def _schema_error(why: str, fix: str) -> PlanError:
    return PlanError(
        "this mechanism cannot be proposed for this census",
        why=f"{why}, and census.toml has none",
        fix=f"{fix}; or choose another --mechanism",
    )


def _list_undecided(
    schema: Schema,
    record: RecordSchema,
    linked: list[RecordSchema],
    matched: list[str],
    levels: tuple[str, ...],
) -> Iterator[str]:
    if record.size not in matched:
        yield (
            f"census.toml names no size of {record.name} records: with one, records of equal size would be swapped"
        )
    if len(levels) == 1:
        yield f"{levels[0]} is the only level, so records may move anywhere"
    if not list(list_variables(schema, record)):
        yield f"{record.name} records have no category to hold: list the variables in census.toml"
    for one in (record, *linked):
        open_ones = [
            v.name for v in list_variables(schema, one) if v.levels is None and v.name != record.size
        ]
        if open_ones:
            named = ", ".join(open_ones)
            yield (
                f"{one.name} variables without listed levels: {named}; they are held unless a guard refuses one that tells "
                "who is who: list what may occur in census.toml, or drop them"
            )
    if any(record.weight for record in (record, *linked)):
        yield 'new weights after the swap: [weights] recalibrate_to = ["totals.csv"], files of public totals'


# Settings of pairwise swaps that the schema of a census suggests; who is at risk stays the office's decision.

REASON_PLACEHOLDER = "to be written: why these records are published without a finite budget"
UNDECIDED_SETTINGS = (
    "which variables make a record risky: nobody has to be swapped until they are named",
    "whether to publish without a finite budget, or to swap by permutation-swapping, which has one",
)


def propose_targeted(schema: Schema) -> Proposal:
    """Propose that partners agree on what a permutation swap would match, and that the finer areas move."""
    plain = propose_swap(schema, SwapConfig)
    matched = list(_read_names(plain, "match")) or list(_read_names(plain, "hold"))[:1]
    if not matched:
        raise _pairwise_schema_error(
            "partners must agree on a variable", 'name the size of households: size = "…"'
        )
    own = {
        "hierarchy": (_read_names(plain, "swap"), str(plain.reasons["swap"])),
        "similar": ([matched], "partners agree on these, so counts by them stay exact in every area"),
        "swaprate": ("1/20", "a start, not a choice"),
    }
    return _add_own_settings(plain, own)


def propose_2010(schema: Schema) -> Proposal:
    """Propose that no household leaves the coarsest area and that partners agree on one variable."""
    plain = propose_swap(schema, SwapConfig)
    state, *rest = [*_read_names(plain, "match"), *_read_names(plain, "hold")][:2] or [""]
    if state not in schema.spine or not rest:
        raise _pairwise_schema_error(
            "no household leaves the coarsest area, and partners agree on a variable",
            'name two levels of areas and the size of households: spine = ["region", "district"], size = "…"',
        )
    own = {
        "swap": (_read_names(plain, "swap"), str(plain.reasons["swap"])),
        "state": (state, "the coarsest area, with a number of swaps of its own"),
        "equal": (rest, "partners agree on it"),
        "rate": ("3/100", "within the 2 to 4 percent that the Bureau has named"),
    }
    return _add_own_settings(plain, own)


def _add_own_settings(plain: Proposal, own: Mapping[str, tuple[object, str]]) -> Proposal:
    """Join the settings that every swap has with those of a pairwise swap."""
    shared = {name: value for name, value in plain.settings.items() if name in ("resolution", "hold", "drop")}
    mine = {name: value for name, (value, _) in own.items()}
    reasons = {name: why for name, (_, why) in own.items()}
    return Proposal(
        settings={**mine, **shared, "without_guarantee": REASON_PLACEHOLDER},
        reasons={
            **{name: why for name, why in plain.reasons.items() if name in (*shared, "tables")},
            **reasons,
            "without_guarantee": "no budget is finite",
        },
        tables=plain.tables,
        undecided=(*UNDECIDED_SETTINGS, *plain.undecided),
    )


def _read_names(plain: Proposal, setting: str) -> list[str]:
    found = plain.settings.get(setting)
    return [str(name) for name in found] if isinstance(found, list) else []


def _pairwise_schema_error(why: str, fix: str) -> PlanError:
    return PlanError(
        "this mechanism cannot be proposed for this census",
        why=f"{why}, and census.toml has none",
        fix=f"{fix}; or choose another --mechanism",
    )
