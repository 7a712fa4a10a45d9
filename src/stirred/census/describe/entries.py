"""Write what was guessed about record types, variables and areas as the entries of census.toml."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from stirred.census import schema
from stirred.census.describe.columns import (
    AGE_NAMES,
    AMOUNT,
    COARSE_NAMES,
    CODED,
    COORDINATE,
    GEO_CODE_NAMES,
    ID_NAMES,
    LABEL_NAMES,
    MAX_CATEGORY_VALUES,
    MEASURE_NAMES,
    PLACE_NAMES,
    UNIQUE_REASON,
    WEIGHT_NAMES,
    ColumnFacts,
    ColumnRoles,
    Sheet,
    empty_to_null,
    read_values,
)
from stirred.census.schema import MAX_FEW_VALUES, singles_out
from stirred.census.variables import normalise_digits
from stirred.frames import collect_frame

# Write what was guessed about one record type and its variables as its part of census.toml, with comments.

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


# Find the geography of records by nesting: columns in which each finer code lies in exactly one coarser code.

MAX_ROWS_COMPARED = 2_000_000  # records that are compared; data check holds all records against the result
MAX_COLUMNS_COMPARED = 40  # columns that are compared with each other
MAX_LOG10_CHANCE = (
    -6.0
)  # a nesting counts when chance would give it with a probability below 10 to this power
KNOWN_LEVEL_DEPTHS = {level: depth for spine in schema.SPINES.values() for depth, level in enumerate(spine)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nesting:
    """The chain of areas, coarsest first, and what else the finest ones decide."""

    chain: tuple[str, ...] = ()
    named: bool = False  # some column of the chain is named like a place
    beside: Mapping[str, str] = field(default_factory=dict)  # column → the coarsest level that decides it
    loose: tuple[str, ...] = ()  # columns named like places that do not nest
    finer: tuple[
        str, ...
    ] = ()  # columns not named like places whose values each lie in one area of the chain
    weak: tuple[str, ...] = ()  # levels that nest in so few records that chance would give it


def find_nesting(sheet: Sheet, columns: Sequence[str], *, watched: Sequence[str] = ()) -> Nesting:
    """Return the best chain of areas among ``columns``, and the ``watched`` columns that areas decide.

    Columns nest by chance when there are few records: that a code of f lies in one code of c for all n records has
    probability $q^{n - |f|}$ with $q = \\sum_k p_k^2$ if both are independent, and must be below $10^{-6}$. Columns that
    are named like places are taken without such evidence, and named in ``weak``. Where some columns are named like places
    no other column is a level: the number of an enterprise lies in one region too.
    """
    chosen = _list_candidates(sheet, columns)
    codes = _encode_columns(sheet, [*chosen, *watched])
    rows = codes.height
    distinct = {name: codes[name].n_unique() for name in codes.columns}
    chosen = [
        name
        for name in chosen
        if 2 <= distinct[name] <= rows * 0.7
        or (_is_place(name) and (distinct[name] > 1 or name.lower() in KNOWN_LEVEL_DEPTHS))
    ]
    same = {name: _pair_probability(codes[name]) for name in codes.columns}
    decided: dict[str, set[str]] = {}
    sure: dict[str, set[str]] = {}
    for fine in chosen:
        others = [name for name in codes.columns if name != fine and distinct[name] <= distinct[fine]]
        whole = _list_constant(codes, fine, others)
        free = rows - distinct[fine]
        sure[fine] = {name for name in whole if free * _log10(same[name]) < MAX_LOG10_CHANCE}
        decided[fine] = sure[fine] | {
            name for name in whole if _is_place(name) and _is_place(fine) and name in chosen
        }
    places = [name for name in chosen if _is_place(name)]
    chain = _choose_chain(places or chosen, distinct, decided)
    beside = {
        name: next(level for level in chain if name in decided[level])
        for name in codes.columns
        if name not in chain and any(name in decided[level] for level in chain)
    }
    return Nesting(
        chain=chain,
        named=any(map(_is_place, chain)),
        beside=beside,
        loose=tuple(name for name in places if name not in chain and name not in beside),
        finer=tuple(
            name
            for name in chosen
            if chain and name not in {*chain, *places, *beside} and sure[name] & {chain[-1]}
        ),
        weak=tuple(
            fine
            for coarse, fine in itertools.pairwise(chain)
            if distinct[coarse] > 1 and coarse not in sure[fine]
        ),
    )


def _is_place(name: str) -> bool:
    return name.lower() in KNOWN_LEVEL_DEPTHS or bool(PLACE_NAMES.search(name))


def _list_candidates(sheet: Sheet, columns: Sequence[str]) -> list[str]:
    """Return the columns that may be areas: codes with few empty fields, not too many columns."""
    able = [
        sheet.columns[name]
        for name in columns
        if sheet.columns[name].may_be_code
        and not (sheet.columns[name].unique and sheet.has_enough_rows)
        and sheet.columns[name].empty <= sheet.rows // 20
        and (_is_place(name) or not MEASURE_NAMES.search(name))
    ]
    able.sort(key=lambda facts: (not _is_place(facts.name), -facts.distinct))
    return [facts.name for facts in able[:MAX_COLUMNS_COMPARED]]


def _encode_columns(sheet: Sheet, columns: Sequence[str]) -> pl.DataFrame:
    """Return the columns as small integers; equal values have equal integers."""
    dtypes = {name: sheet.columns[name].dtype for name in columns}
    some = sheet.frame.select(empty_to_null(pl.col(name), dtypes[name]) for name in columns).head(
        MAX_ROWS_COMPARED
    )
    frame = collect_frame(some, streaming=True)
    return frame.select(pl.col(name).rank("dense").fill_null(0).cast(pl.UInt32) for name in columns)


def _pair_probability(codes: pl.Series) -> float:
    """Return the probability that two records drawn with replacement have the same code."""
    counts = codes.value_counts()["count"]
    total = int(counts.sum() or 0)
    return float((counts.cast(pl.Float64) / total).pow(2).sum()) if total else 1.0


def _log10(probability: float) -> float:
    return math.log10(min(probability, 1.0)) if probability > 0 else -math.inf


def _list_constant(codes: pl.DataFrame, fine: str, others: Sequence[str]) -> list[str]:
    """Return the columns of which each code of ``fine`` has only one value."""
    if not others:
        return []
    spread = codes.lazy().group_by(fine).agg((pl.col(name).min() != pl.col(name).max()) for name in others)
    broken = collect_frame(spread.select(pl.col(name).sum() for name in others)).row(0, named=True)
    return [name for name in others if not broken[name]]


def _choose_chain(
    columns: Sequence[str], distinct: Mapping[str, int], decided: Mapping[str, set[str]]
) -> tuple[str, ...]:
    """Return the chain with the most columns named like places, then the longest, then the finest.

    Of several columns that do not nest, the one named like a large area is taken: codes of small ones may start again.
    """

    def worth(chain: tuple[str, ...]) -> tuple[int, int, bool, int]:
        large = len(chain) == 1 and bool(COARSE_NAMES.search(chain[0]))
        return sum(map(_is_place, chain)), len(chain), large, distinct[chain[-1]]

    best: dict[str, tuple[str, ...]] = {}
    order = sorted(
        columns,
        key=lambda name: (distinct[name], KNOWN_LEVEL_DEPTHS.get(name.lower(), 0), _holds_area_names(name)),
    )
    for fine in order:
        above = [
            (*chain, fine)
            for coarse, chain in best.items()
            if all(level in decided[fine] for level in chain) and _is_coarser(coarse, fine, distinct)
        ]
        best[fine] = max([(fine,), *above], key=worth)
    chains = [chain for chain in best.values() if len(chain) > 1 or _is_place(chain[0])]
    return max(chains, key=worth, default=())


def _is_coarser(coarse: str, fine: str, distinct: Mapping[str, int]) -> bool:
    """Return whether a column has fewer codes, or is the coarser level of a known spine."""
    if distinct[coarse] != distinct[fine]:
        return distinct[coarse] < distinct[fine]
    known = KNOWN_LEVEL_DEPTHS.get(coarse.lower()), KNOWN_LEVEL_DEPTHS.get(fine.lower())
    return known[0] is not None and known[1] is not None and known[0] < known[1]


def _holds_area_names(name: str) -> bool:
    """Return whether the column holds the names of areas, which stand beside their codes."""
    return bool(LABEL_NAMES.search(name))


# Write what was guessed about areas as the geography of census.toml.

UNDECIDED_GUESS = (
    "geography: not decided: no column nests in another, and none is named like a place; without areas tables with noise "
    "or cell keys can be published, and no swap"
)


def write_geography(parts: Sequence[RecordGuess], guesses: list[str]) -> tuple[Document, dict[str, str]]:
    """Return the geography, and its columns with the names of their levels; persons inherit it."""
    homes = [part for part in parts if not part.of]
    for part in homes:
        code = next((facts.name for facts in part.sheet.match_names(GEO_CODE_NAMES)), "")
        levels = {name.lower() for name in part.sheet.columns} & set(schema.SPINES["us"])
        if code and len(levels) < 3:
            guesses.append(f"geography: {code} holds the whole code (named like one)")
            _clear_identifier(part, code)
            taken = {code: code, **{f"\x00{level}": level for level in schema.SPINES["us"]}}
            return {"preset": "us", "code": code}, taken
    found = [(part, _find_part_nesting(part)) for part in homes]
    best = max(found, key=lambda pair: (pair[1].named, len(pair[1].chain)), default=None)
    if best is None or not best[1].chain:
        guesses.append(UNDECIDED_GUESS)
        _omit_loose_places(found)
        return {}, {}
    part, nesting = best
    named = {
        column: column.lower() if column.lower() in KNOWN_LEVEL_DEPTHS else column for column in nesting.chain
    }
    document: Document = {"spine": list(named.values())}
    document["#spine"] = _explain_nesting(nesting)
    guesses.append(f"geography: {' > '.join(named.values())} ({_explain_nesting(nesting)})")
    guesses += [
        f"geography: not decided: whether each {named[column]} lies in one area above it (too few records to tell)"
        for column in nesting.weak
    ]
    for column in nesting.finer:
        part.roles.leave_out.setdefault(
            column,
            f"each value lies in one {named[nesting.chain[-1]]}, so it tells the place; not decided: if it is an area, "
            f"add it to the spine: spine = [{', '.join(f'{chr(34)}{name}{chr(34)}' for name in (*named.values(), column))}]",
        )
    renamed = {level: {"column": column} for column, level in named.items() if level != column}
    if renamed:
        document["level"] = renamed
    areas = dict(named)
    beside: Document = {}
    for column, level in nesting.beside.items():
        tells = f"constant within each {named[level]}, so it tells the {named[level]} when it is published"
        if column == part.roles.weight:
            part.roles.why["weight"] = f"{part.roles.why['weight']}; {tells}"
        elif part.sheet.columns[column].shape == "decimal":
            part.roles.leave_out[column] = f'{tells}; not decided: if it is a weight, set weight = "{column}"'
        else:
            areas[column] = column
            beside[column] = {"of": named[level], "#": f"constant within each {named[level]}"}
            guesses.append(f"geography: {column} lies beside the spine (constant within each {named[level]})")
    if beside:
        document["off_spine"] = beside
    _omit_loose_places([(part, nesting)])
    return document, areas


def _find_part_nesting(part: RecordGuess) -> Nesting:
    roles, sheet = part.roles, part.sheet
    columns = [name for name in sheet.columns if name not in {*roles.special_columns, roles.size}]
    watched = [
        name for name, facts in sheet.columns.items() if facts.shape == "decimal" or name == roles.weight
    ]
    return find_nesting(sheet, columns, watched=watched[:MAX_COLUMNS_COMPARED])


def _explain_nesting(nesting: Nesting) -> str:
    if len(nesting.chain) == 1:
        return "named like a place; nothing else nests"
    nests = "each code lies in one code of the level before"
    return nests if nesting.named else f"{nests}; not decided whether these are places"


def _omit_loose_places(found: Sequence[tuple[RecordGuess, Nesting]]) -> None:
    """Leave out columns named like places that do not nest, because they would tell where a record is."""
    for part, nesting in found:
        above = list(nesting.chain)
        for column in sorted(nesting.loose, key=lambda name: KNOWN_LEVEL_DEPTHS.get(name.lower(), 0)):
            known = column.lower() in KNOWN_LEVEL_DEPTHS
            joined = ", ".join(f'"{name}"' for name in (*above, column))
            part.roles.leave_out[column] = (
                "named like a place, does not nest; not decided: if its codes start again in each area, "
                f"set [geography.level.{column}] columns = [{joined}]"
            )
            above += [column] if known else []  # the order of levels that many censuses share


def _clear_identifier(part: RecordGuess, column: str) -> None:
    """Remove a column of areas from the identifiers and from the columns that are left out."""
    part.roles.leave_out.pop(column, None)
    if part.roles.id == column:
        part.roles.id = ""
