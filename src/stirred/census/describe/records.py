"""Write what was guessed about one record type and its variables as its part of census.toml, with comments."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stirred.census.codebook.typed import normalise_digits
from stirred.census.describe.guess.facts import MAX_CATEGORY_VALUES, ColumnFacts, Sheet, read_values
from stirred.census.describe.guess.names import AGE_NAMES, AMOUNT, CODED, COORDINATE, ID_NAMES, WEIGHT_NAMES
from stirred.census.describe.guess.roles import UNIQUE_REASON, ColumnRoles
from stirred.census.singled import MAX_FEW_VALUES, singles_out
from stirred.frames import collect_frame

Document = dict[str, object]
LIST_LEVELS_COMMENT = "few values: list what may occur"
MANY_VALUES_COMMENT = "many values, so a number and not a category; it is not proposed for release"
MANY_TEXTS_COMMENT = (
    "text with many values, as names and notes have; not decided: list its levels to make it a variable"
)
SINGLES = (
    "some of its values are of one record alone, so it would tell who is who; not decided: list its levels"
)
BANDED = "a number: round limits, the same for every file; never released by its value"
AGED = 'ages in years; range = "0..120" releases single years'
CONSTANT = "one value: no table is proposed by it"
MAX_CODE_TEXTS = 10  # so few texts are codes, however few fields are filled
AGE_RANGE = range(121)  # a public range, which does not depend on the records
NEARLY_UNIQUE_COMMENT = "not decided: nearly every record has another value, so it tells who is who"
DOES_NOT_APPLY_PATTERN = re.compile(
    r"(n/?a|niu|not applicable|not in universe)\b", re.IGNORECASE
)  # labels that begin so
ROLE_COMMENTS = {
    "id": "is the identifier",
    "household": "is the household of a record",
    "household_from": "tells the households apart",
    "size": "is the number of persons",
    "weight": "is the weight",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGuess:
    """One record type: the file it is read from and the roles of its columns."""

    sheet: Sheet
    roles: ColumnRoles
    of: str = ""  # the record type it belongs to

    @property
    def name(self) -> str:
        """Return the name of the record type."""
        return self.sheet.name


def write_record(
    part: RecordGuess,
    areas: Mapping[str, str],
    guesses: list[str],
    *,
    confidential: bool,
    banded: bool = False,
) -> Document:
    """Return the table of a record type; ``areas`` maps the columns of the geography to their names."""
    sheet, roles = part.sheet, part.roles
    record: Document = {}
    if sheet.source is not None:
        source = sheet.source
        record["files"] = list(source.files)
        for key in ("format", "table", "sheet", "header_row", "ddi", "encoding", "decimal"):
            if getattr(source, key) not in ("", "utf8", ".", 1):
                record[key] = getattr(source, key)
    for key, words in ROLE_COMMENTS.items():
        column = getattr(roles, key)
        if column:
            record[key] = list(sheet.keys[column]) if column in sheet.keys else column
            why = roles.why.get(key, "")
            if why:
                record[f"#{key}"] = why
            told = " and ".join(sheet.keys.get(column, (column,)))
            guesses.append(f"{part.name}: {told} {words}" + (f" ({why})" if why else ""))
    if part.of and part.of != "household":
        record["of"] = part.of
    for column, facts in sheet.columns.items():
        if column not in areas and column not in roles.special_columns and has_many_texts(sheet, facts):
            roles.leave_out[column] = MANY_TEXTS_COMMENT
    if banded:
        for column in [name for name, why in roles.leave_out.items() if why.startswith(UNIQUE_REASON)]:
            if is_amount(sheet, sheet.columns[column]):
                del roles.leave_out[column]
        for column, facts in sheet.columns.items():
            free = column not in areas and column not in roles.special_columns
            if free and not is_amount(sheet, facts) and singled_out(sheet, facts):
                roles.leave_out[column] = SINGLES
    if roles.leave_out:
        record["leave_out"] = list(roles.leave_out)
        for column, why in roles.leave_out.items():
            guesses.append(f"{part.name}: {column or 'a column'} is left out ({why})")
        record["#leave_out"] = "; ".join(
            f"{column}: {why}" if column else why for column, why in roles.leave_out.items()
        )
    if confidential:
        record["#"] = f"{sheet.rows:,} records"
    variables: Document = {}
    open_categories, numbers, coarse = [], [], []
    # columns with one value come last: nobody wants the first tables of a plan by them
    for column, facts in sorted(
        sheet.columns.items(), key=lambda pair: sheet.has_enough_rows and pair[1].distinct == 1
    ):
        if column in areas or column in roles.special_columns:
            continue
        described = write_variable(sheet, facts, confidential=confidential, banded=banded)
        if "bands" in described:
            coarse.append(f"{column} ({described['bands']})")
        elif described.get("type") == "number":
            numbers.append(column)
        if banded and sheet.has_enough_rows and facts.distinct == 1 and column != roles.size:
            described |= {"tabulate": False, "#": CONSTANT}
        if described.get("#") == NEARLY_UNIQUE_COMMENT:
            guesses.append(f"{part.name}: {column}: {NEARLY_UNIQUE_COMMENT}")
        elif "type" in described and is_category_like(facts):
            open_categories.append(column)
        name = _choose_name(column, {*areas.values(), *variables, *(set(sheet.columns) - {column})})
        variables[name] = {"column": column, **described} if name != column else described
    if open_categories:
        named = ", ".join(open_categories)
        guesses.append(f"{part.name}: not decided: what may occur in {named} (few values; list them)")
    if coarse:
        guesses.append(f"{part.name}: numbers that are released by bands: {', '.join(coarse)}")
    if numbers:
        named = ", ".join(numbers)
        guesses.append(
            f"{part.name}: numbers that are not proposed for release: {named} (declare bands to publish them)"
        )
    if not sheet.has_enough_rows:
        guesses.append(f"{part.name}: not decided: which columns are identifiers (too few records to tell)")
    record["variables"] = variables
    return record


def _choose_name(column: str, taken: set[str]) -> str:
    """Return the name of a variable: its column, or another name where a level or tables use it."""
    name = f"{column}_name" if column in taken else "count_value" if column == "count" else column
    while name in taken:
        name += "_"
    return name


def _write_not_applicable(codes: Sequence[str | int], labels: Sequence[str]) -> Document:
    """Return the codes whose label says that the variable does not apply, as codebooks write it.

    >>> _write_not_applicable([0, 1, 2], ["N/A (vacant)", "owned", "rented"])
    {'not_applicable': [0]}
    """
    found = [code for code, label in zip(codes, labels, strict=True) if DOES_NOT_APPLY_PATTERN.match(label)]
    return {"not_applicable": found} if found and len(found) < len(codes) else {}


def write_variable(sheet: Sheet, facts: ColumnFacts, *, confidential: bool, banded: bool = False) -> Document:
    """Return the entry of a column under ``variables``; the key ``#`` holds a comment."""
    labels = sheet.labels.get(facts.name, {})
    if labels:
        one_type = len({type(code) for code in labels}) == 1
        codes = list(labels) if one_type else [str(code) for code in labels]
        return {
            "levels": codes,
            **_write_not_applicable(codes, list(labels.values())),
            "labels": {str(code): label for code, label in labels.items()},
            **_write_missing(facts, confidential=confidential),
        }
    if isinstance(facts.dtype, pl.Enum):
        return {
            "levels": facts.dtype.categories.to_list(),
            **_write_missing(facts, confidential=confidential),
        }
    if facts.shape == "truth":
        named = {"levels": ["0", "1"], "labels": {"0": "false", "1": "true"}}
        return {**named, **_write_missing(facts, confidential=confidential)}
    if is_age(facts):
        told = _write_missing(facts, confidential=confidential)
        if banded:
            return {"bands": "5-years", **told, "#": AGED}
        return {"range": f"{AGE_RANGE[0]}..{AGE_RANGE[-1]}", **told}
    if banded and is_amount(sheet, facts):
        return {"bands": "1-2-5", **_write_missing(facts, confidential=confidential), "#": BANDED}
    result: Document = {"type": {"whole": "integer", "decimal": "number"}.get(facts.shape, "text")}
    result |= _write_missing(facts, confidential=confidential)
    category = is_category_like(facts)
    if sheet.has_enough_rows and facts.shape == "whole" and not category and facts.distinct:
        result |= {"type": "number", "#": MANY_VALUES_COMMENT}
    if is_nearly_unique(sheet, facts):
        result["#"] = NEARLY_UNIQUE_COMMENT
    elif facts.marks and facts.shape == "text":
        result["#"] = f"not decided: {' and '.join(facts.marks)} may mean an empty field"
    if not confidential:
        return {**result, "#": LIST_LEVELS_COMMENT} if category and "#" not in result else result
    values = _list_values(sheet, facts) if category else []
    if not values or len(values) > MAX_CATEGORY_VALUES:
        return result
    del result["type"]
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values) > 2 and numbers[-1] - numbers[0] < 2 * len(numbers):
        return {"range": f"{numbers[0]}..{numbers[-1]}", **result}
    return {"levels": values, **result}


def is_amount(sheet: Sheet, facts: ColumnFacts) -> bool:
    """Whether a column is a number that may be released by round bands: no code, no identifier, no weight, no coordinate.

    A whole number in which nearly every record has another value may be an identifier, unless it is named like an amount.
    """
    if not sheet.has_enough_rows or facts.name in sheet.labels or facts.shape not in ("whole", "decimal"):
        return False
    if (
        any(pattern.search(facts.name) for pattern in (WEIGHT_NAMES, COORDINATE, CODED, ID_NAMES))
        or not facts.distinct
    ):
        return False
    if facts.shape == "decimal" or AMOUNT.search(facts.name):
        return facts.shape == "decimal" or not is_category_like(facts) or singled_out(sheet, facts)
    return not is_nearly_unique(sheet, facts) and (not is_category_like(facts) or singled_out(sheet, facts))


def singled_out(sheet: Sheet, facts: ColumnFacts) -> bool:
    """Whether more values of a column are of one record alone than the guards of a release let pass."""
    if not is_category_like(facts) or facts.name in sheet.labels or facts.distinct <= MAX_FEW_VALUES // 2:
        return False
    counts = sheet.frame.select(read_values(facts).alias("value")).drop_nulls().group_by("value").len()
    asked = counts.select(
        pl.len(), pl.col("len").sum().alias("filled"), (pl.col("len") == 1).sum().alias("unique")
    )
    values, filled, unique = collect_frame(asked, streaming=True).row(0)
    return singles_out(filled=int(filled), values=int(values), unique=int(unique))


def is_age(facts: ColumnFacts) -> bool:
    """Return whether a column is named like an age and holds nothing else."""
    if facts.shape != "whole" or facts.lowest is None or facts.highest is None:
        return False
    return (
        bool(AGE_NAMES.search(facts.name)) and AGE_RANGE[0] <= facts.lowest and facts.highest <= AGE_RANGE[-1]
    )


def has_many_texts(sheet: Sheet, facts: ColumnFacts) -> bool:
    """Return whether a column holds texts that differ from record to record, as names and notes do."""
    if (
        not sheet.has_enough_rows
        or facts.shape != "text"
        or facts.name in sheet.labels
        or isinstance(facts.dtype, pl.Enum)
    ):
        return False
    filled = sheet.rows - facts.empty
    return not is_category_like(facts) or (facts.distinct > MAX_CODE_TEXTS and facts.distinct > filled // 4)


def is_nearly_unique(sheet: Sheet, facts: ColumnFacts) -> bool:
    """Return whether the values tell most records apart, though some of them agree."""
    return sheet.has_enough_rows and facts.distinct > 0.9 * sheet.rows


def is_category_like(facts: ColumnFacts) -> bool:
    """Return whether a column has few values; the number of distinct values is an estimate."""
    return facts.may_be_code and 0 < facts.distinct <= MAX_CATEGORY_VALUES + MAX_CATEGORY_VALUES // 10


def _write_missing(facts: ColumnFacts, *, confidential: bool) -> Document:
    if not facts.empty:
        return {}
    comment = {"#": f"{facts.empty:,} empty"} if confidential else {"#": "some fields are empty"}
    marks = list(facts.marks) if facts.shape != "text" else []
    return {"missing": {"policy": "keep", "codes": marks} if marks else "keep", **comment}


def _list_values(sheet: Sheet, facts: ColumnFacts) -> list[str | int]:
    value = read_values(facts)
    if facts.shape == "text":
        value = value.cast(pl.String)
    elif not facts.dtype.is_integer():
        value = (normalise_digits(value) if facts.dtype == pl.String else value).cast(pl.Int64)
    found = collect_frame(sheet.frame.select(value.drop_nulls().unique().sort()), streaming=True)
    return found.to_series().to_list()
