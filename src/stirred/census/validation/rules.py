"""Edit constraints, structural zeros, and what size and kind of a unit allow: rules that hold for every census."""

from collections.abc import Callable, Collection, Iterator

import polars as pl

from stirred.census.codebook.domain import largest_household
from stirred.census.codebook.schema import EditRule, RecordSchema, Schema
from stirred.census.files import CensusFiles
from stirred.census.validation.problems import Problem, RecordRule
from stirred.frames import collect_frame

Value = Callable[[str], pl.Expr]  # a variable after its missing policy


def own_rules(
    schema: Schema, record: RecordSchema, there: Collection[str], value: Value
) -> Iterator[RecordRule]:
    """Yield the rules that the record type's own columns decide."""
    for rule in schema.rules:
        if rule.record_type == record.name and set(rule.variables) <= set(there):
            yield _make_rule(rule, value)


def linked_rules(census: CensusFiles, record: RecordSchema) -> list[RecordRule]:
    """Return the rules that need variables of the linked record too."""
    if record.linked_to not in census.schema.record_types:
        return []
    there = {*census.columns(record.name)}
    reached = there | {*census.columns(record.linked_to)}
    return [
        _make_rule(rule, pl.col)
        for rule in census.schema.rules
        if rule.record_type == record.name
        and not set(rule.variables) <= there
        and set(rule.variables) <= reached
    ]


def list_linked_columns(census: CensusFiles, record: RecordSchema) -> list[str]:
    """Return the variables of the rules across a link."""
    found = [rule.broken.meta.root_names() for rule in linked_rules(census, record)]
    return list(dict.fromkeys(name for names in found for name in names))


def check_linked_rules(census: CensusFiles, *, unlinked: Collection[str] = ()) -> Iterator[Problem]:
    """Yield the rules across links; those of a record type in one streaming pass.

    Rules that need variables of an ``unlinked`` record type are skipped, because its identifiers are not unique.
    """
    for record in census.schema.records:
        rules = [] if record.linked_to in unlinked else linked_rules(census, record)
        if not rules:
            continue
        frame = census.scan(record.name, list_linked_columns(census, record))
        result = frame.select(rule.broken.sum().alias(str(i)) for i, rule in enumerate(rules))
        counted = collect_frame(result, streaming=True)
        for rule, count in zip(rules, counted.row(0), strict=True):
            if count:
                yield Problem(record_type=record.name, column=rule.column, rule=rule.rule, count=int(count))


def _make_rule(rule: EditRule, value: Value) -> RecordRule:
    named = rule.variables if len(rule.variables) <= 4 else rule.variables[:1]
    return RecordRule(", ".join(named), f"against the rule: {rule.name}", _breaks_edit_rule(rule, value))


def _breaks_edit_rule(rule: EditRule, value: Value) -> pl.Expr:
    if rule.at_most is not None:
        return value(rule.at_most[0]) > value(rule.at_most[1])
    if rule.total:
        return pl.sum_horizontal([value(name).cast(pl.Int64) for name in rule.parts]) != value(rule.total)
    tests = []
    for name, levels in rule.forbid:
        if isinstance(levels, range):
            tests.append(value(name).is_between(levels.start, levels.stop - 1))
        elif levels and isinstance(levels[0], str):
            tests.append(value(name).cast(pl.String).is_in(list(levels)))
        else:
            tests.append(value(name).is_in(list(levels)))
    return pl.all_horizontal(tests)


def size_rules(schema: Schema, record: RecordSchema, value: Value) -> Iterator[RecordRule]:
    """Yield the rules on vacant and occupied units, unlisted kinds, and the largest household."""
    if not record.size:
        return
    size = value(record.size)
    largest = largest_household(schema)
    ordinary = pl.lit(value=True)
    kinds = record.kinds
    if kinds is not None:
        kind = value(kinds.column)
        if kinds.group_quarters:
            ordinary = ~kind.is_in(list(kinds.group_quarters))
        if kinds.vacant:
            empty = kind.is_in(list(kinds.vacant)) & (size > 0)
            yield RecordRule(record.size, "vacant units with persons", empty)
        if kinds.occupied:
            alone = kind.is_in(list(kinds.occupied)) & (size == 0)
            yield RecordRule(record.size, "occupied units without persons", alone)
        unknown = ~kind.is_in(list(kinds.all_levels))
        yield RecordRule(record.size, f"{kinds.column} names no kind of unit", unknown)
    if largest is not None:
        yield RecordRule(record.size, "more persons than the largest household", ordinary & (size > largest))
