"""State the rules that each record keeps or breaks by itself, count them in one streaming pass, and report them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from stirred.census.records import CensusFiles
from stirred.census.schema import Area, EditRule, Levels, RecordSchema, Schema, VariableSchema
from stirred.census.variables import (
    apply_policy,
    cast_loosely,
    comparable_codes,
    largest_household,
    list_variables,
    select_present,
    target_type,
)
from stirred.errors import DataError
from stirred.frames import collect_frame


@dataclass(frozen=True, slots=True)
class RecordRule:
    """A rule that each record keeps or breaks by itself; ``broken`` is true where a record breaks it."""

    column: str
    rule: str
    broken: pl.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One rule that some records break, and how many."""

    record_type: str
    column: str
    rule: str
    count: int
    of: str = "records"  # what is counted
    fix: str = ""

    def __str__(self) -> str:
        between = ", " if self.of == "files" else "."  # a file is not a column
        where = between.join(filter(None, (self.record_type, self.column)))
        unit = self.of[:-1] if self.count == 1 and self.of.endswith("s") else self.of
        return f"{where}: {self.rule} ({self.count:,} {unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """All problems found, and how many records were checked.

    >>> print(Problems(problems=(Problem(record_type="household", column="size", rule="not a listed level", count=2),)))
    1 rule is broken
      household.size: not a listed level (2 records)
    >>> bool(Problems())
    False
    """

    problems: tuple[Problem, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __str__(self) -> str:
        if not self.problems:
            return "no problems in " + _describe_checked(self.checked)
        number = len(self.problems)
        head = "1 rule is broken" if number == 1 else f"{number} rules are broken"
        return "\n".join([head, *(f"  {problem}" for problem in self.problems)])

    def raise_if_any(self) -> None:
        """Raise a DataError that lists every problem."""
        if self.problems:
            fixes = list(dict.fromkeys(problem.fix for problem in self.problems if problem.fix))
            raise DataError(
                "the records break the schema",
                why="; ".join(map(str, self.problems)),
                fix="; ".join(fixes) or "correct the records, or the rule in census.toml",
            )

    def worst(self, number: int = 3) -> tuple[Problem, ...]:
        """Return the gravest problems: files and columns that cannot be read, then those of the most records.

        >>> few, many = (Problem(record_type="person", column="age", rule="negative values", count=n) for n in (2, 9))
        >>> [problem.count for problem in Problems(problems=(few, many)).worst(1)]
        [9]
        """
        unread = ("files", "columns")
        ranked = sorted(self.problems, key=lambda problem: (problem.of not in unread, -problem.count))
        return tuple(ranked[:number])

    def require_none(self) -> None:
        """Raise one DataError with the number of problems and the three that weigh most."""
        if self.problems:
            number, shown = len(self.problems), self.worst()
            rest = f"; and {number - len(shown)} more" if number > len(shown) else ""
            raise DataError(
                "the records break 1 rule of the schema"
                if number == 1
                else f"the records break {number} rules of the schema",
                why="; ".join(map(str, shown)) + rest,
                fix="see all of them with: stirred data check census.toml, or validate(census) in Python",
            )

    def to_json(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        return {
            "ok": not self.problems,
            "checked": dict(self.checked),
            "problems": [
                {
                    "record_type": problem.record_type,
                    "column": problem.column,
                    "rule": problem.rule,
                    "count": problem.count,
                    "of": problem.of,
                    "fix": problem.fix,
                }
                for problem in self.problems
            ],
        }


def _describe_checked(checked: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name} records" for name, count in checked.items()) or "no records"


# The rules of every single column: types, missing values and levels.


def column_rules(
    variable: VariableSchema, dtype: pl.DataType, record: RecordSchema, there: pl.Expr
) -> Iterator[RecordRule]:
    """Yield the rules of a variable whose file has this type; ``there`` says whether a field is filled."""
    name, missing = variable.name, variable.missing
    value = pl.col(name)
    target = target_type(variable, dtype)
    now = dtype if target is None else target
    if target is not None:
        kind = "whole numbers" if target.is_integer() else "numbers" if target.is_numeric() else "codes"
        yield RecordRule(name, f"values that are not {kind}", there & value.is_null())
    if missing.policy == "error" or (missing.policy == "level" and missing.empty_as is None):
        rule = "missing values" if missing.policy == "error" else "empty fields, and no level stands for them"
        yield RecordRule(name, rule, ~there)
    codes = comparable_codes(variable)
    if missing.policy == "error" and codes:
        yield RecordRule(name, "missing codes, which the policy makes errors", value.is_in(codes))
    levels = variable.all_levels
    if levels is not None:
        outside = ~is_within(value, levels, now)
        if codes and missing.policy != "level":
            outside &= ~value.is_in(codes)
        yield RecordRule(name, "values outside the listed levels", value.is_not_null() & outside)
    if variable.kind == "number" and now.is_float():
        yield RecordRule(name, "values that are not finite", value.is_nan() | value.is_infinite())
    if name in (record.weight, record.size):
        yield RecordRule(name, "negative values", value < 0)


def is_within(value: pl.Expr, levels: Levels, dtype: pl.DataType) -> pl.Expr:
    """Return whether values of this type are among the levels."""
    if isinstance(levels, range):
        return value.is_between(levels.start, levels.stop - 1)
    if levels and isinstance(levels[0], str) and dtype != pl.String:
        value = value.cast(pl.String)
    return value.is_in(list(levels))


# Edit constraints, structural zeros, and what size and kind of a unit allow: rules that hold for every census.

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


CountLinked = Callable[[CensusFiles, RecordSchema, Sequence[RecordRule]], Sequence[int]]


def count_linked(census: CensusFiles, record: RecordSchema, rules: Sequence[RecordRule]) -> Sequence[int]:
    """Return how many records break each rule across a link, in one streaming pass."""
    frame = census.scan(record.name, list_linked_columns(census, record))
    return collect_frame(sum_broken(frame, rules), streaming=True).row(0)


def sum_broken(frame: pl.LazyFrame, rules: Sequence[RecordRule]) -> pl.LazyFrame:
    """Return one row with the number of records that break each rule."""
    return frame.select(rule.broken.sum().cast(pl.Int64).alias(str(i)) for i, rule in enumerate(rules))


def check_linked_rules(
    census: CensusFiles, count: CountLinked, *, unlinked: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield the rules across links; those of a record type in one pass.

    Rules that need variables of an ``unlinked`` record type are skipped, because its identifiers are not unique.
    """
    for record in census.schema.records:
        rules = [] if record.linked_to in unlinked else linked_rules(census, record)
        for rule, number in zip(rules, count(census, record, rules) if rules else (), strict=True):
            if number:
                yield Problem(record_type=record.name, column=rule.column, rule=rule.rule, count=int(number))


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


# The rules that each record decides by itself, all of them in one streaming pass over a record type.

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
    keys = [name for name in dict.fromkeys((records.record.id, records.record.household)) if name]
    # Each key has a pass of its own: beside the rules, Polars would keep all that one of them is ahead of the other.
    order = {key: _find_order(records.frame, key) for key in keys}
    found = collect_frame(
        records.frame.select(pl.len().alias("rows"), *sum_rules(records, stages)), streaming=True
    )
    rows, *broken = found.row(0)
    made = count_pass(records, stages, int(rows), broken)
    return replace(
        made,
        rising=frozenset(key for key, least in order.items() if least >= EQUAL),
        unique=order.get(records.record.id) == RISES,
    )


def sum_rules(records: SingleRecords, stages: Sequence[str] = RULE_STAGES) -> list[pl.Expr]:
    """Return how many records break each rule of these stages, one after the other."""
    return [
        rule.broken.sum().cast(pl.Int64).alias(f"{stage} {i}")
        for stage in stages
        for i, rule in enumerate(records.rules[stage])
    ]


def count_pass(
    records: SingleRecords, stages: Sequence[str], rows: int, broken: Sequence[int | None]
) -> PassCounts:
    """Return the problems of one pass from its sums, which are in the order of ``sum_rules``."""
    named = [(stage, rule) for stage in stages for rule in records.rules[stage]]
    problems: dict[str, list[Problem]] = {stage: [] for stage in stages}
    for (stage, rule), count in zip(named, broken, strict=True):
        if count:
            name = records.record.name
            problems[stage].append(
                Problem(record_type=name, column=rule.column, rule=rule.rule, count=int(count))
            )
    return PassCounts(rows=rows, problems={stage: tuple(some) for stage, some in problems.items()})


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


# Read a census leniently: values that do not fit their type become empty, so that all other rules can be checked.


def loosen_census(census: CensusFiles, records: Mapping[str, SingleRecords]) -> CensusFiles:
    """Return the census with unfit values empty, columns renamed and codes composed."""
    files = {name: some.select_variables() for name, some in records.items()}
    kept = {name: frozenset(some.names) for name, some in records.items()}
    settled = tuple(
        _settle_record(record, kept[record.name]) for record in census.schema.records if record.name in files
    )
    geography = census.schema.geography
    schema: Schema = replace(
        census.schema,
        records=settled,
        largest_household=largest_household(census.schema),
        geography=replace(
            geography,
            spine=tuple(Area(name=level.name, label=level.label) for level in geography.spine),
            off_spine=tuple(off if off.files else replace(off, column="") for off in geography.off_spine),
        ),
    )
    return CensusFiles(schema=schema, files=files, folder=census.folder, _forms={name: {} for name in files})


def _open_levels(variable: VariableSchema) -> VariableSchema:
    """Return the variable without integer levels, because a value outside them may need a wider type."""
    whole = variable.levels is not None and isinstance(variable.levels[0], int)
    kept = replace(variable, column="", imputed="")
    return replace(kept, kind="integer", levels=None) if whole else kept


def _settle_record(record: RecordSchema, kept: frozenset[str]) -> RecordSchema:
    """Return the record type after this step: without renaming, restriction or absent columns."""
    return replace(
        record,
        variables=tuple(_open_levels(v) for v in record.variables if v.name in kept),
        id=record.id if record.id in kept else "",
        household=record.household if record.household in kept else "",
        linked_to=record.linked_to if record.household in kept else "",
        size=record.size if record.size in kept else "",
        weight=record.weight if record.weight in kept else "",
        kinds=record.kinds if record.kinds is not None and record.kinds.column in kept else None,
        where=(),
    )
