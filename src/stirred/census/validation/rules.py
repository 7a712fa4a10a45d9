"""Check edit constraints and structural zeros, which hold for every census."""

from collections.abc import Collection, Iterator

import polars as pl

from stirred.census.codebook.schema import EditRule
from stirred.census.files import CensusFiles
from stirred.census.validation.problems import Problem
from stirred.frames import collected


def check_rules(census: CensusFiles, *, unlinked: Collection[str] = ()) -> Iterator[Problem]:
    """Every rule of the schema; the rules of a record type share one streaming pass.

    Rules that need variables of an ``unlinked`` record type are skipped, because its identifiers are not unique.
    """
    for record in census.schema.records:
        rules = [rule for rule in census.schema.rules if rule.record_type == record.name]
        there = {*census.columns(record.name)}
        own = [rule for rule in rules if set(rule.variables) <= there]
        linked = [rule for rule in rules if rule not in own and _reachable(census, record.name, rule)]
        for group in (own, [] if record.linked_to in unlinked else linked):
            if not group:
                continue
            columns = list(dict.fromkeys(name for rule in group for name in rule.variables))
            frame = census.scan(record.name, columns)
            result = frame.select(_broken(rule).sum().alias(str(i)) for i, rule in enumerate(group))
            counted = collected(result, streaming=True)
            for rule, count in zip(group, counted.row(0), strict=True):
                if count:
                    column = ", ".join(rule.variables if len(rule.variables) <= 4 else rule.variables[:1])
                    text = f"against the rule: {rule.name}"
                    yield Problem(record_type=record.name, column=column, rule=text, count=int(count))


def _reachable(census: CensusFiles, record_type: str, rule: EditRule) -> bool:
    record = census.schema.record(record_type)
    known = {*census.columns(record_type)}
    if record.linked_to in census.schema.record_types:
        known |= {*census.columns(record.linked_to)}
    return set(rule.variables) <= known


def _broken(rule: EditRule) -> pl.Expr:
    if rule.at_most is not None:
        return pl.col(rule.at_most[0]) > pl.col(rule.at_most[1])
    if rule.total:
        return pl.sum_horizontal([pl.col(name).cast(pl.Int64) for name in rule.parts]) != pl.col(rule.total)
    tests = []
    for name, levels in rule.forbid:
        value = pl.col(name)
        if isinstance(levels, range):
            tests.append(value.is_between(levels.start, levels.stop - 1))
        elif levels and isinstance(levels[0], str):
            tests.append(value.cast(pl.String).is_in(list(levels)))
        else:
            tests.append(value.is_in(list(levels)))
    return pl.all_horizontal(tests)
