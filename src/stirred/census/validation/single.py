"""The rules that each record decides by itself, all of them in one streaming pass over a record type."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from stirred.census.codebook.schema import RecordSchema, Schema, VariableSchema
from stirred.census.codebook.typed import (
    apply_policy,
    cast_loosely,
    list_variables,
    select_present,
    target_type,
)
from stirred.census.files import CensusFiles
from stirred.census.validation.columns import column_rules
from stirred.census.validation.problems import Problem, RecordRule
from stirred.census.validation.rules import own_rules, size_rules
from stirred.frames import collect_frame

FILLED_PREFIX = "\x00filled "  # whether a field is filled, whose value may not fit its type
RULE_STAGES = ("columns", "links", "rules")
RISES, EQUAL = 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRecords:
    """The records of one type with values that do not fit made empty, and the rules each of them keeps or breaks."""

    record: RecordSchema
    names: tuple[str, ...]
    frame: pl.LazyFrame
    rules: Mapping[str, tuple[RecordRule, ...]]  # by the stage of the report

    @property
    def breaks_rule(self) -> pl.Expr:
        """Return whether a record breaks any of the rules."""
        tests = [rule.broken.fill_null(value=False) for rules in self.rules.values() for rule in rules]
        return pl.any_horizontal(tests) if tests else pl.lit(value=False)

    def select_variables(self) -> pl.LazyFrame:
        """Return only the variables."""
        return self.frame.select(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCounts:
    """What one pass over a record type found."""

    rows: int = 0
    problems: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)  # by stage
    rising: frozenset[str] = frozenset()  # columns without an empty field whose values never fall
    unique: bool = False  # the identifiers rise, so that none occurs twice


def rule_records(census: CensusFiles, record: RecordSchema) -> SingleRecords:
    """Return the records of one type, leniently typed and restricted as the schema says, with their rules."""
    return rule_file(census.schema, record, census.file(record.name))


def rule_file(
    schema: Schema, record: RecordSchema, file: pl.LazyFrame, beside: Sequence[str] = ()
) -> SingleRecords:
    """Return the records of a file, leniently typed, with their rules and the columns ``beside`` them."""
    shaped = select_present(schema, record, file, beside=beside)
    types = shaped.collect_schema()
    columns = file.drop(beside).collect_schema()
    known = [variable for variable in list_variables(schema, record, columns) if variable.name in types]
    names = tuple(variable.name for variable in known)
    frame = shaped.select(*_cast_leniently(known, types), *beside)
    for name, codes in record.where:
        if name in names:
            frame = frame.filter(pl.col(name).is_in(list(codes)))
    values = {variable.name: apply_policy(variable, pl.col(variable.name)) for variable in known}
    settled = _drop_absent_roles(record, names)
    return SingleRecords(
        record=settled,
        names=names,
        frame=frame,
        rules={
            "columns": tuple(
                rule
                for v in known
                for rule in column_rules(v, types[v.name], record, _is_filled(v, types[v.name]))
            ),
            "links": tuple(size_rules(schema, settled, values.__getitem__)),
            "rules": tuple(own_rules(schema, record, names, values.__getitem__)),
        },
    )


def count_broken(records: SingleRecords, stages: Sequence[str] = RULE_STAGES) -> PassCounts:
    """Count in streaming passes how many records break each rule of these stages, and whether identifiers rise."""
    rules = {(stage, i): rule for stage in stages for i, rule in enumerate(records.rules[stage])}
    record = records.record
    keys = [name for name in dict.fromkeys((record.id, record.household)) if name]
    # Each key has a pass of its own: beside the rules, Polars would keep all that one of them is ahead of the other.
    order = {key: _find_order(records.frame, key) for key in keys}
    found = collect_frame(
        records.frame.select(
            pl.len().alias("rows"),
            *(rule.broken.sum().alias(f"{stage} {i}") for (stage, i), rule in rules.items()),
        ),
        streaming=True,
    ).row(0, named=True)
    broken: dict[str, list[Problem]] = {stage: [] for stage in stages}
    for (stage, i), rule in rules.items():
        if count := found[f"{stage} {i}"]:
            problem = Problem(record_type=record.name, column=rule.column, rule=rule.rule, count=int(count))
            broken[stage].append(problem)
    return PassCounts(
        rows=int(found["rows"]),
        problems={stage: tuple(problems) for stage, problems in broken.items()},
        rising=frozenset(key for key, least in order.items() if least >= EQUAL),
        unique=order.get(record.id) == RISES,
    )


def _find_order(frame: pl.LazyFrame, key: str) -> int:
    """Return how a column proceeds at worst: RISES, EQUAL, or 0 where it falls or is empty."""
    value, before = pl.col(key), pl.col(key).shift()
    begins = (
        value.is_not_null() & before.is_null()
    )  # the first row, for an empty field before counts as 0 itself
    step = pl.when((value > before) | begins).then(RISES).when(value == before).then(EQUAL).otherwise(0)
    least = collect_frame(frame.select(step.min()), streaming=True).item()
    return RISES if least is None else int(least)


def _cast_leniently(known: Sequence[VariableSchema], types: pl.Schema) -> Iterator[pl.Expr]:
    for variable in known:
        name, dtype = variable.name, types[variable.name]
        target = target_type(variable, dtype)
        if target is None:
            yield pl.col(name)
        else:
            yield cast_loosely(pl.col(name), dtype, target).alias(name)
            yield pl.col(name).is_not_null().alias(FILLED_PREFIX + name)


def _is_filled(variable: VariableSchema, dtype: pl.DataType) -> pl.Expr:
    name = variable.name
    return (
        pl.col(name).is_not_null() if target_type(variable, dtype) is None else pl.col(FILLED_PREFIX + name)
    )


def _drop_absent_roles(record: RecordSchema, names: Sequence[str]) -> RecordSchema:
    """Return the record type without roles whose columns the file does not have."""
    return replace(
        record,
        id=record.id if record.id in names else "",
        household=record.household if record.household in names else "",
        size=record.size if record.size in names else "",
        kinds=record.kinds if record.kinds is not None and record.kinds.column in names else None,
    )
