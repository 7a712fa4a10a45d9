"""Turn the columns of a file into the variables of the schema: one form, one type, and the domain they span."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

import polars as pl

from stirred.census.schema import (
    Area,
    Kind,
    Levels,
    Missing,
    RecordSchema,
    Schema,
    VariableSchema,
    band_names,
)
from stirred.errors import DataError, SchemaError, did_you_mean
from stirred.frames import collect_frame
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable

# Turn the columns of a file into the variables of the schema: rename them, convert types, treat missing values.

NO_HEADER_FIX = "check header and separator; without a header: header = false and columns = [...]"
INTEGER_TYPE, NUMBER_TYPE = pl.Int64(), pl.Float64()
SCIENTIFIC_PATTERN = (
    r"^-?[1-9]([.,][0-9]{1,15})?e\+[0-9]{2}$"  # 1e+05, as write.csv of R writes 100000; 1,2e+07 of write.csv2
)
MAX_EXACT_FLOAT = 2.0**53  # whole decimals below it are exact
TYPES_BY_BITS: dict[int, pl.DataType] = {
    8: pl.Int8(),
    16: pl.Int16(),
    32: pl.Int32(),
    64: pl.Int64(),
}  # by bits


def list_variables(schema: Schema, record: RecordSchema, columns: pl.Schema) -> tuple[VariableSchema, ...]:
    """Return every column of the record type, special ones included; all columns where none is declared."""
    geography = {level.name for level in schema.geography.spine if _is_derivable(level, columns)}
    stated: dict[str, Kind] = {"integer": "integer", "text": "category"}  # a category is always text
    open_kind = stated.get(schema.geography.typed_as, "text")
    declared = {variable.name: variable for variable in record.variables}
    rest = {} if declared else {name: _find_kind(dtype) for name, dtype in columns.items()}
    # the schema says nothing about these columns, so an empty field is a value like any other
    found = {
        name: VariableSchema(name=name, kind=kind, missing=Missing(policy="keep"))
        for name, kind in rest.items()
        if name not in record.leave_out
    }
    special: dict[str, VariableSchema] = {}
    for name in filter(None, (record.id, record.household)):
        special[name] = VariableSchema(name=name)
    for level in schema.geography.spine:
        if level.name in geography:
            special[level.name] = VariableSchema(name=level.name, kind=open_kind, label=level.label)
    for off in schema.geography.off_spine:
        source = off.column or off.name
        if not off.files and source in columns:
            # land may lie outside every place, so an empty code is allowed
            outside = Missing(policy="keep")
            special[off.name] = VariableSchema(name=off.name, column=source, label=off.label, missing=outside)
    if record.size:
        special[record.size] = VariableSchema(name=record.size, kind="integer")
    if record.weight:
        special[record.weight] = VariableSchema(name=record.weight, kind="number")
    if record.kinds is not None:
        whole = all(isinstance(code, int) for code in record.kinds.all_levels)
        special[record.kinds.column] = VariableSchema(
            name=record.kinds.column, kind="integer" if whole else "text"
        )
    for variable in record.variables:
        if variable.imputed:
            special.setdefault(variable.imputed, VariableSchema(name=variable.imputed))
    for name, _ in record.where:
        special.setdefault(name, VariableSchema(name=name, kind=_find_kind(columns.get(name, pl.String()))))
    return tuple({**found, **special, **declared}.values())


def list_absent(schema: Schema, record: RecordSchema, columns: pl.Schema) -> list[str]:
    """Return the columns that the schema names and the file does not have."""
    wanted = list_variables(schema, record, columns)
    derived = {level.name for level in schema.geography.spine if _is_derivable(level, columns)}
    return [v.source for v in wanted if v.name not in derived and v.source not in columns]


def select_raw(schema: Schema, record: RecordSchema, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the variables under their own names with the types of the file; empty text counts as missing."""
    columns = frame.collect_schema()
    missing = list_absent(schema, record, columns)
    if missing:
        known = columns.names()
        fix = f"{missing[0]}: {did_you_mean(missing[0], known)}"
        if len(missing) == len(list_variables(schema, record, pl.Schema())):
            # without a header the names would be the values of a record: only one that is nearly the same is shown
            known = get_close_matches(missing[0], known, n=1, cutoff=0.75)
            fix = f"{missing[0]}: {did_you_mean(missing[0], known)}" if known else NO_HEADER_FIX
        raise SchemaError(
            f"the {record.name} file lacks " + ", ".join(missing), why="census.toml names it", fix=fix
        )
    return select_present(schema, record, frame)


def select_present(
    schema: Schema, record: RecordSchema, frame: pl.LazyFrame, *, beside: Sequence[str] = ()
) -> pl.LazyFrame:
    """Return the variables whose columns exist, with the types of the file, and the columns ``beside`` them."""
    columns = frame.drop(beside).collect_schema()
    levels = {level.name: level for level in schema.geography.spine if _is_derivable(level, columns)}
    chosen = []
    for variable in list_variables(schema, record, columns):
        if variable.name in levels:
            chosen.append(compose_code(levels[variable.name], columns).alias(variable.name))
        elif variable.source in columns:
            value = pl.col(variable.source)
            if variable.bands:
                value = assign_bands(variable, columns[variable.source], decimal=record.source.decimal)
            elif columns[variable.source] == pl.String:
                marks = text_marks(variable)
                value = pl.when((value != "") & ~value.is_in(marks) if marks else value != "").then(value)
                if variable.kind == "number" and record.source.decimal == ",":
                    # a point would be read as a decimal point, which the file does not have
                    value = value.str.replace_many([".", ","], ["\x00", "."])
            chosen.append(value.alias(variable.name))
    if not chosen and record.leave_out:
        raise SchemaError(
            f"the {record.name} records have no variable",
            why="every column of the file is left out",
            fix=f"take a column out of leave_out: {', '.join(record.leave_out)}",
        )
    return frame.select(*chosen, *beside)


def assign_bands(variable: VariableSchema, dtype: pl.DataType, *, decimal: str = ".") -> pl.Expr:
    """Return the band of each number of a column; what is no number stays as it is, and breaks the list of levels.

    Codes of missing values stay too, so that their policy sees them.

    >>> rent = VariableSchema(name="rent", bands=(0, 500), missing=Missing(policy="keep", codes=("NA",)))
    >>> frame = pl.DataFrame({"rent": ["-3", "0", "499.5", "500", "NA", "x", ""]})
    >>> frame.select(assign_bands(rent, pl.String()))["rent"].to_list()
    ['<0', '0-<500', '0-<500', '>=500', 'NA', 'x', None]
    """
    value = pl.col(variable.source)
    text = value if dtype == pl.String else value.cast(pl.String)
    text = pl.when(text != "").then(text)
    number = text.str.strip_chars() if dtype == pl.String else value
    if dtype == pl.String and decimal == ",":
        number = number.str.replace_many([".", ","], ["\x00", "."])
    number = number.cast(NUMBER_TYPE, strict=False)
    names = band_names(variable.bands)
    band = pl.lit(names[0])
    for limit, name in zip(variable.bands, names[1:], strict=True):
        band = pl.when(number >= limit).then(pl.lit(name)).otherwise(band)
    codes = [str(code) for code in variable.missing.codes]
    kept = number.is_finite().fill_null(value=False) & ~text.is_in(codes).fill_null(value=False)
    return pl.when(kept).then(band).otherwise(text).alias(variable.name)


def convert_frame(schema: Schema, record: RecordSchema, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the variables with the types of the schema; a value that does not fit raises without being shown."""
    columns = frame.collect_schema()
    shaped = select_raw(schema, record, frame)
    types = shaped.collect_schema()
    chosen = [
        convert_column(variable, types[variable.name]) for variable in list_variables(schema, record, columns)
    ]
    result = shaped.select(chosen)
    for name, codes in record.where:
        result = result.filter(pl.col(name).is_in(list(codes)))
    return result


def convert_column(variable: VariableSchema, dtype: pl.DataType) -> pl.Expr:
    """Return the expression that types one variable and applies its missing policy."""
    value = pl.col(variable.name)
    target = target_type(variable, dtype)
    width = fixed_type(variable, dtype if target is None else target)
    changed = apply_policy(variable, value, target)
    if changed is value:
        return _cast_strictly(value, variable.name, dtype, width or target).alias(variable.name)
    changed = apply_policy(variable, _cast_strictly(value, variable.name, dtype, target), target)
    return _cast_strictly(changed, variable.name, None, width).alias(variable.name)


def apply_policy(variable: VariableSchema, value: pl.Expr, target: pl.DataType | None = None) -> pl.Expr:
    """Return the value after the missing policy: empty fields become a level, missing codes become empty."""
    missing = variable.missing
    if missing.policy == "level" and missing.empty_as is not None:
        value = value.fill_null(pl.lit(missing.empty_as, dtype=target))
    codes = comparable_codes(variable)
    if missing.policy == "keep" and codes:
        value = pl.when(~value.is_in(codes)).then(value)
    return value


def fixed_type(variable: VariableSchema, dtype: pl.DataType) -> pl.DataType | None:
    """Return the type of numbers from any file: as wide as the levels need, or 64 bits without levels.

    >>> fixed_type(VariableSchema(name="size", kind="integer", levels=range(1, 8)), pl.Int64())
    Int8
    >>> fixed_type(VariableSchema(name="rooms", kind="integer"), pl.Int8())
    Int64
    """
    if dtype.is_float() or (variable.kind == "number" and dtype.is_numeric()):
        return NUMBER_TYPE
    if not dtype.is_integer():
        return None
    levels = variable.all_levels
    if levels and isinstance(levels[0], int):
        ends = (levels[0], levels[-1]) if isinstance(levels, range) else levels
        largest = max(max(-1 - int(level), int(level)) for level in ends)
        return next((width for bits, width in TYPES_BY_BITS.items() if largest >> (bits - 1) == 0), None)
    # an identifier may be any number of 64 bits; the form of its column says whether the sign is needed
    return None if dtype in (pl.UInt64, pl.Int128, pl.UInt128) and variable.kind == "text" else INTEGER_TYPE


def text_marks(variable: VariableSchema) -> list[str]:
    """Return texts that stand for an empty field in a column of numbers, as NA does in files of R.

    >>> text_marks(VariableSchema(name="income", kind="number", missing=Missing(policy="keep", codes=("NA",))))
    ['NA']
    """
    if not _is_numeric(variable) or variable.missing.policy != "keep":
        return []
    return [code for code in variable.missing.codes if isinstance(code, str)]


def comparable_codes(variable: VariableSchema) -> list[str | int]:
    """Return the missing codes that a value of the variable's type can have."""
    numeric = _is_numeric(variable)
    return [code for code in variable.missing.codes if not (numeric and isinstance(code, str))]


def _is_numeric(variable: VariableSchema) -> bool:
    whole = variable.levels is not None and isinstance(variable.levels[0], int)
    return whole or variable.kind in ("integer", "number")


def target_type(variable: VariableSchema, dtype: pl.DataType) -> pl.DataType | None:
    """Return the type to convert to, or None when the file's type is kept."""
    textual = dtype in (pl.String, pl.Categorical, pl.Enum) or isinstance(dtype, pl.Enum | pl.Categorical)
    if _is_numeric(variable) and variable.kind != "number":
        return None if dtype.is_integer() else INTEGER_TYPE
    if variable.kind == "number":
        return None if dtype.is_numeric() else NUMBER_TYPE
    if variable.kind == "category":
        return None if textual else pl.String()
    return pl.String() if dtype.is_float() else None  # open codes keep text or integers; 1.0 means 1


def cast_loosely(value: pl.Expr, dtype: pl.DataType, target: pl.DataType) -> pl.Expr:
    """Convert values to another type, with null where one does not fit; a float must be a whole number."""
    if dtype.is_float() and not target.is_float():
        value = pl.when(value == value.floor()).then(value).cast(INTEGER_TYPE, strict=False)
    if (
        dtype.is_temporal() and target.is_numeric()
    ):  # dates are not numbers, although some formats store days or seconds
        return pl.when(pl.lit(value=False)).then(value.cast(target, strict=False))
    if dtype == pl.Boolean and target == pl.String:
        value = value.cast(pl.Int8)
    if dtype == pl.String and target.is_numeric():
        value = value.str.strip_chars()
        value = normalise_digits(value) if target.is_integer() else value
    return value.cast(target, strict=False)


def normalise_digits(value: pl.Expr) -> pl.Expr:
    """Return whole numbers in digits where a program wrote powers of ten or ".0".

    >>> written = pl.Series(["1e+05", "1,2e+07", "1.5e+00", "1e5", "57.0", "1.5"])
    >>> written.to_frame("n").select(normalise_digits(pl.col("n")))["n"].to_list()
    ['100000', '12000000', '1.5e+00', '1e5', '57', '1.5']
    """
    written = value.str.contains("e+", literal=True) & value.str.contains(SCIENTIFIC_PATTERN)
    number = pl.when(written).then(value.str.replace(",", ".", literal=True)).cast(NUMBER_TYPE, strict=False)
    whole = (number == number.floor()) & (number.abs() < MAX_EXACT_FLOAT)
    digits = pl.when(whole).then(number).cast(INTEGER_TYPE, strict=False).cast(pl.String)
    return pl.coalesce(digits, value.str.strip_suffix(".0"))


def _cast_strictly(
    value: pl.Expr, name: str, dtype: pl.DataType | None, target: pl.DataType | None
) -> pl.Expr:
    """Convert a column whose values have a type, or one that is not known."""
    if target is None or dtype == target:
        return value
    if dtype == pl.Float32 and target == NUMBER_TYPE:
        return value.cast(pl.String).cast(NUMBER_TYPE)  # 0.1 stays 0.1, as a text file has it
    if (
        dtype is not None
        and dtype.is_integer()
        and target.is_integer()
        and _count_bits(dtype) <= _count_bits(target)
    ):
        return value.cast(target)
    return value.map_batches(_Cast(name, target), return_dtype=target, is_elementwise=True)


def _count_bits(dtype: pl.DataType) -> int:
    """Return how many bits the largest whole number of a type has.

    >>> _count_bits(pl.Int8()), _count_bits(pl.UInt8()), _count_bits(pl.Int16())
    (7, 8, 15)
    """
    return int("".join(filter(str.isdigit, str(dtype)))) - int(dtype.is_signed_integer())


class _Cast:
    """A conversion that counts what does not fit instead of showing it."""

    def __init__(self, column: str, target: pl.DataType) -> None:
        self.column = column
        self.target = target

    def __call__(self, values: pl.Series) -> pl.Series:
        frame = values.to_frame("value")
        result = (
            frame.select(cast_loosely(pl.col("value"), values.dtype, self.target))
            .to_series()
            .rename(values.name)
        )
        bad = result.null_count() - values.null_count()
        if bad:
            kind = "not a number" if self.target.is_numeric() else "not text"
            kind = "outside the listed levels" if values.dtype.is_integer() else kind
            raise DataError(
                f"column {self.column}: {bad} values of a batch are {kind}",
                why="the values do not fit the type in census.toml",
                fix="see all problems with: stirred data check census.toml",
            )
        return result


def compose_code(level: Area, columns: pl.Schema) -> pl.Expr:
    """Return the code of an area: its column, or several columns joined and shortened."""
    sources = level.columns or (level.name,)
    if not level.is_derived:
        value = pl.col(sources[0])
        return pl.when(value != "").then(value) if columns[sources[0]] == pl.String else value
    joined = pl.concat_str([pl.col(name).cast(pl.String) for name in sources])
    return joined if level.first is None else joined.str.slice(0, level.first)


def list_sources(schema: Schema, record: RecordSchema, columns: pl.Schema) -> list[str]:
    """Return the columns of the file that the variables of a record type are read from."""
    levels = {level.name: level.columns or (level.name,) for level in schema.geography.spine}
    wanted = [
        column
        for variable in list_variables(schema, record, columns)
        for column in levels.get(variable.name, (variable.source,))
    ]
    return [column for column in dict.fromkeys(wanted) if column in columns]


def _is_derivable(level: Area, columns: pl.Schema) -> bool:
    return all(name in columns for name in (level.columns or (level.name,)))


def _find_kind(dtype: pl.DataType) -> Kind:
    if dtype.is_integer():
        return "integer"
    return "number" if dtype.is_numeric() else "text"


# Give every value one form, whatever file it comes from: the number 7 is the same in CSV, Parquet, SPSS and pandas.
#
# A text file has no types, SPSS has no whole numbers, and pandas turns whole numbers with gaps into decimals. The form
# of a column decides the draw and the released bytes. The schema states it; where the schema leaves it open, the
# column is read once:
#
# - in a text file, whole numbers as they are usually written (7, never 07 or +7; 1e+05 as R does, 7.0) are whole
#   numbers, and other numbers are numbers, unless the column holds identifiers or codes; a format with types keeps its
#   text;
# - decimals that are all whole become whole numbers; NaN is an empty value;
# - truth values become the words true and false; dates become text as in 2020-04-01.

WHOLE_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"
NUMBER_PATTERN = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"
TRUTH_LEVELS = ("true", "false")
MAX_INT64 = 2**63 - 1

Forms = Mapping[str, str]  # column → the form it takes


def open_columns(
    schema: Schema, record: RecordSchema, columns: pl.Schema
) -> tuple[list[str], frozenset[str]]:
    """Return the columns whose type the schema leaves open, and which of them hold identifiers or codes."""
    closed = {
        v.source
        for v in record.variables
        if v.kind in ("integer", "number")
        or (v.levels is not None and not _has_truth_levels(v.levels, columns.get(v.source)))
    }
    closed |= {name for name in (record.size, record.weight) if name}
    geography = schema.geography
    spine = {name for level in geography.spine for name in (level.columns or (level.name,))}
    closed |= spine if geography.typed_as else set()
    closed |= {record.kinds.column} if record.kinds is not None else set()
    parts = {name for _, names in record.keys for name in names}  # a key is made of values in their one form
    codes = {record.id, record.household, *parts, *spine}
    codes |= {off.column or off.name for off in geography.off_spine}
    return [name for name in columns.names() if name not in closed or name in parts], frozenset(codes)


def add_keys(schema: Schema, record: RecordSchema, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the frame with one text column for each key of several columns; equal texts mean equal keys.

    The columns of a key are then dropped, unless the schema names one for something else. A key with an empty part is
    empty. A column that is there already was made before.

    >>> from stirred.census.toml import parse_schema
    >>> schema = parse_schema({"record": {"household": {"id": ["dwelling", "number"]}}})
    >>> homes = pl.LazyFrame({"dwelling": ["a", "a|1", None], "number": [1, 2, 3]})
    >>> add_keys(schema, schema.record("household"), homes).collect().to_series().to_list()
    ['a|1', 'a~11|2', None]
    """
    columns = frame.collect_schema()
    made = {name: parts for name, parts in record.keys if name not in columns}
    if not made:
        return frame
    for name, parts in made.items():
        for part in parts:
            if part not in columns:
                raise SchemaError(
                    f"the {record.name} file lacks {part}",
                    why=f"the key {name} is made of it",
                    fix=f"{part}: {did_you_mean(part, columns.names())}",
                )
    named = _named_beside_keys(schema, record)
    done = {part for parts in made.values() for part in parts} - named
    keys = [
        join_texts(pl.col(part).cast(pl.String) for part in parts).alias(name) for name, parts in made.items()
    ]
    return frame.with_columns(keys).drop(done)


def join_texts(parts: Iterable[pl.Expr]) -> pl.Expr:
    """Return texts as one text that is equal only where all of them are equal; empty where one of them is."""
    texts = list(parts)
    filled = pl.all_horizontal((text != "").fill_null(value=False) for text in texts)
    # the mark between parts is written in another way inside them, so that no two keys become one
    safe = [
        text.str.replace_all("~", "~0", literal=True).str.replace_all("|", "~1", literal=True)
        for text in texts
    ]
    return pl.when(filled).then(pl.concat_str(safe, separator="|"))


def _named_beside_keys(schema: Schema, record: RecordSchema) -> set[str]:
    """Return the columns that the schema uses for something else than keys of several columns."""
    geography = schema.geography
    named = {column for level in geography.spine for column in (level.columns or (level.name,))}
    named |= {off.column or off.name for off in geography.off_spine}
    named |= {name for variable in record.variables for name in (variable.source, variable.imputed)}
    named |= {name for name, _ in record.where}
    named |= {record.id, record.household, record.household_from, record.size, record.weight}
    return named | ({record.kinds.column} if record.kinds is not None else set())


def _has_truth_levels(levels: Levels, dtype: pl.DataType | None) -> bool:
    """Return whether a column may hold truth values and has the levels true and false."""
    return dtype in (pl.Boolean, pl.String) and set(TRUTH_LEVELS) <= set(levels)


def find_forms(
    frame: pl.LazyFrame, asked: Collection[str], codes: Collection[str], *, untyped: bool
) -> dict[str, str]:
    """Return the form of each open column, found in one pass over those whose type does not tell it.

    >>> frame = pl.LazyFrame({"id": ["1", "20"], "zip": ["01", "20"], "rent": ["1.5", ""], "n": [1.0, float("nan")]})
    >>> find_forms(frame, ["id", "zip", "rent", "n"], ["id", "zip"], untyped=True)
    {'id': 'whole', 'rent': 'number', 'n': 'whole'}
    """
    types = frame.collect_schema()
    found: dict[str, str] = {}
    tests: dict[tuple[str, str], pl.Expr] = {}
    for name in asked:
        dtype, value = types[name], pl.col(name)
        if dtype == pl.Boolean:
            found[name] = "truth"
        elif dtype == pl.Date or dtype == pl.Time:
            found[name] = "text"
        elif isinstance(dtype, pl.Datetime):
            found[name] = "moment"
            tests[name, "day"] = value.dt.date().cast(pl.Datetime("us")) == value.dt.replace_time_zone(
                None
            ).cast(pl.Datetime("us"))
        elif isinstance(dtype, pl.Decimal):
            found[name] = "number"
        elif dtype.is_float():
            tests[name, "whole"] = (
                value.is_nan() | ((value == value.floor()) & (value.abs() < MAX_EXACT_FLOAT))
            ).fill_null(value=True)
        elif dtype in (pl.UInt64, pl.Int128, pl.UInt128):
            tests[name, "whole"] = value.is_between(-(2**63), MAX_INT64).fill_null(value=True)
        elif dtype == pl.String and untyped:
            empty = (value == "").fill_null(value=True)
            tests[name, "whole"] = normalise_digits(value).str.contains(WHOLE_PATTERN) | empty
            tests[name, "truth"] = value.str.to_lowercase().is_in(TRUTH_LEVELS) | empty
            if name not in codes:
                tests[name, "number"] = value.str.contains(NUMBER_PATTERN) | empty
            tests[name, "filled"] = empty  # a column without any value stays text
    if not tests:
        return found
    likely = _find_true(frame.head(1000), tests)
    sure = _find_true(frame, {key: tests[key] for key in likely}) if likely else set()
    for name in asked:
        for form in ("whole", "number", "truth", "day"):
            if (name, form) in sure and (name, "filled") not in sure:
                found[name] = form
                break
    return {name: found[name] for name in asked if name in found}


def _find_true(frame: pl.LazyFrame, tests: Mapping[tuple[str, str], pl.Expr]) -> set[tuple[str, str]]:
    """Return the tests that hold in every row."""
    asked = [test.all().alias(str(i)) for i, test in enumerate(tests.values())]
    row = collect_frame(frame.select(asked), streaming=True).row(0)
    return {key for key, holds in zip(tests, row, strict=True) if holds}


def apply_forms(frame: pl.LazyFrame, forms: Forms) -> pl.LazyFrame:
    """Return the frame with its open columns in their forms, and NaN as empty values."""
    types = frame.collect_schema()
    changed = [_apply_form(name, types[name], forms.get(name, "")) for name in types.names()]
    return frame.with_columns([value for value in changed if value is not None])


def _apply_form(name: str, dtype: pl.DataType, form: str) -> pl.Expr | None:
    value = pl.col(name)
    if form == "kept":
        return None
    if isinstance(dtype, pl.List | pl.Struct | pl.Array | pl.Duration) or dtype in (pl.Binary, pl.Object):
        raise DataError(
            f"column {name} holds values of type {dtype.base_type()}",
            why="a census variable holds text, numbers or dates",
            fix="cast the column to text, or leave it out of the file",
        )
    if dtype.is_float():
        value = value.fill_nan(None)
        return value.cast(pl.Int64) if form == "whole" else value
    if form in ("whole", "number"):
        target = pl.Int64() if form == "whole" else pl.Float64()
        return (
            value.cast(target)
            if dtype != pl.String
            else pl.when(value != "").then(normalise_digits(value)).cast(target).alias(name)
        )
    if form == "truth":
        return value.cast(pl.String).str.to_lowercase()
    if form == "day":
        return value.dt.date().cast(pl.String)
    if form == "moment":
        return value.dt.replace_time_zone(None).dt.to_string("%Y-%m-%d %H:%M:%S%.f")
    if form == "text" or dtype == pl.Null:
        return value.cast(pl.String)
    return None


# Build the domain of a specification from a schema, without reading any record.


def build_domain(schema: Schema, columns: Callable[[str], pl.Schema]) -> Domain:
    """Record types with their levels, functional dependencies from geography and links, edit constraints.

    ``columns`` gives the columns of a record type's files.

    >>> from stirred.census import Census
    >>> census = Census.of({"geography": {"spine": ["state", "county"]}, "record": {"household": {"size": "size"}}},
    ...                    {"household": {"state": ["a"], "county": ["a1"], "size": [2]}})
    >>> sorted(census.domain.closure("household", ["county"]))
    ['county', 'state']
    """
    own = {record.name: _list_variables(schema, record, columns(record.name)) for record in schema.records}
    types = []
    for record in schema.records:
        variables = dict(own[record.name])
        if record.linked_to:
            variables = {**own[record.linked_to], **variables}
        known = tuple(_make_variable(variable) for variable in variables.values())
        types.append(RecordType(name=record.name, variables=known))
    return Domain(
        name=schema.name,
        label=schema.label,
        record_types=tuple(types),
        spine=schema.spine,
        dependencies=tuple(_list_dependencies(schema, own)),
        constraints=tuple(_list_constraints(schema)),
        copies=schema.copies,
        largest_household=largest_household(schema),
        size_variable=next((record.size for record in schema.records if record.size), ""),
    )


def largest_household(schema: Schema) -> int | None:
    """Return the declared bound on persons in a household: stated, or the largest level of the size variable."""
    if schema.largest_household is not None:
        return schema.largest_household
    for record in schema.records:
        if record.size and record.size in record.names:
            levels = record.variable(record.size).levels
            if levels is not None and all(isinstance(level, int) for level in levels):
                return max(1, *(int(level) for level in levels), 1)
    return None


def _list_variables(schema: Schema, record: RecordSchema, columns: pl.Schema) -> dict[str, VariableSchema]:
    found = {variable.name: variable for variable in list_variables(schema, record, columns)}
    geography = schema.geography
    if geography.areas is not None and geography.names and geography.names[-1] in found:
        above = {level.name: VariableSchema(name=level.name, label=level.label) for level in geography.spine}
        found = {**above, **found}
    for off in geography.off_spine:
        if off.files and off.of in found:
            found[off.name] = VariableSchema(name=off.name, label=off.label)
    return found


def _make_variable(variable: VariableSchema) -> Variable:
    levels = variable.all_levels
    named = None if levels is None else tuple(str(level) for level in levels)
    return Variable(name=variable.name, levels=named, label=variable.label)


def _list_dependencies(schema: Schema, own: dict[str, dict[str, VariableSchema]]) -> Iterator[Dependency]:
    for off in schema.geography.off_spine:
        if off.of:
            yield Dependency(of=(off.of,), determines=(off.name,))
        if off.nests_in:
            yield Dependency(of=(off.name,), determines=(off.nests_in,))
    for record in schema.records:
        if record.id:
            rest = tuple(name for name in own[record.name] if name != record.id)
            if rest:
                yield Dependency(record_type=record.name, of=(record.id,), determines=rest, fixed=False)
        if record.household and record.linked_to:
            reached = tuple(name for name in own[record.linked_to] if name != record.household)
            if reached:
                yield Dependency(
                    record_type=record.name, of=(record.household,), determines=reached, fixed=False
                )


def _list_constraints(schema: Schema) -> Iterator[Constraint]:
    for rule in schema.rules:
        yield Constraint(
            words=rule.name,
            record_type=rule.record_type,
            variables=rule.variables,
            kind="structural zero" if rule.forbid else "edit",
        )
    largest = largest_household(schema)
    if largest is None:
        return
    for record in schema.records:
        # it limits the size of a household's record, and which household a person's record names
        about = record.size or (record.household if record.linked_to else "")
        if about:
            words = f"a household has at most {largest} persons"
            yield Constraint(words=words, record_type=record.name, variables=(about,), kind="size")
