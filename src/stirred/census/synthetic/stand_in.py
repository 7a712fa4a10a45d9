"""Make a stand-in for any census from its codebook and public figures, never from its records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.census.geography import read_ancestors
from stirred.census.schema import EditRule, Kind, RecordSchema, Schema, VariableSchema
from stirred.census.synthetic.writing import write_document
from stirred.census.toml import load_schema, parse_schema
from stirred.errors import InputError, did_you_mean
from stirred.frames import arrow_of, collect_frame
from stirred.text_formats import parse_toml, read_plain_text

# The areas of a stand-in: from the public file of areas, or a tree of as many areas as are asked for.

FIRST, CHILDREN = 3, 5  # areas of the highest level, and of each area, where no number is given


def make_leaf_areas(
    schema: Schema, numbers: Mapping[str, int], rng: np.random.Generator, folder: Path
) -> pl.DataFrame:
    """Return one row for each area of the finest level, with the codes of all levels above it.

    >>> from stirred.census.schema import Area, Geography
    >>> schema = Schema(name="toy", geography=Geography(spine=(Area(name="region"), Area(name="district"))))
    >>> make_leaf_areas(schema, {"region": 2, "district": 3}, np.random.default_rng(1), Path())["region"].n_unique()
    2
    """
    unknown = [name for name in numbers if name not in schema.spine]
    if unknown:
        raise InputError(
            f"{unknown[0]} is not a level of the spine",
            why="a number of areas was given for it",
            fix=did_you_mean(unknown[0], schema.spine or ("(the census has no geography)",)),
        )
    whole = schema.geography.typed_as == "integer"
    if schema.geography.areas is not None and not numbers:
        found = collect_frame(read_ancestors(schema, folder)).select(schema.spine).unique().sort(schema.spine)
        children = set(found[schema.spine[-1]])
        parents = {code for name in schema.spine[:-1] for code in found[name]}
        found = found.filter(pl.col(schema.spine[-1]).is_in(sorted(children - parents)))
        return found.cast(pl.Int64) if whole else found
    return _make_tree(schema.spine, _area_numbers(schema.spine, numbers), rng, whole=whole)


def _area_numbers(spine: tuple[str, ...], given: Mapping[str, int]) -> list[int]:
    numbers: list[int] = []
    for name in spine:
        before = numbers[-1] if numbers else 0
        number = given.get(name, before * CHILDREN if before else FIRST)
        if number < max(before, 1):
            raise InputError(
                f"{number} areas of the level {name} are too few",
                why=f"every one of the {before} areas above has at least one"
                if before
                else "there is at least one",
                fix=f"give at least {max(before, 1)}",
            )
        numbers.append(number)
    return numbers


def _make_tree(
    spine: tuple[str, ...], numbers: list[int], rng: np.random.Generator, *, whole: bool
) -> pl.DataFrame:
    """Return areas numbered from 1 in their level, so that a code alone names an area."""
    lines: list[
        np.ndarray[tuple[int], np.dtype[np.int64]]
    ] = []  # the area of each level above each finest area
    for number in numbers:
        if not lines:
            lines.append(np.arange(number))
            continue
        above = int(lines[-1].max()) + 1
        parent = np.sort(np.concatenate([np.arange(above), rng.integers(0, above, number - above)]))
        first = np.searchsorted(lines[-1], np.arange(above))
        lines = [line[first][parent] for line in lines] + [np.arange(number)]
    columns = {}
    for name, line, number in zip(spine, lines, numbers, strict=True):
        codes = pl.Series(line + 1)
        columns[name] = codes if whole else codes.cast(pl.String).str.zfill(len(str(number)))
    return pl.DataFrame(columns)


# Draw the values of a stand-in: from public tables where there are some, else from uneven shares that differ by area.

SHARE_LOG_SD = 0.6  # standard deviation of the logarithm of a level's share between areas
OPEN_LEVELS = 20  # values of a variable whose codebook lists none
ROWS_PER_DRAW = 1 << 16  # records drawn together
MEAN_HOUSEHOLD_PERSONS = 2.4  # persons of a household, where nothing is known


def list_values(variable: VariableSchema, number: int | None = None) -> pl.Series:
    """Return the values a variable may take: its levels, or made-up ones where the codebook lists none.

    >>> list_values(VariableSchema(name="tenure", kind="category", levels=("own", "rent"))).to_list()
    ['own', 'rent']
    """
    levels = variable.all_levels
    if levels is not None and number is None:
        return pl.Series(variable.name, list(levels))
    count = number or OPEN_LEVELS
    if variable.kind == "integer":
        return pl.Series(variable.name, range(count))
    if variable.kind == "number":
        return pl.Series(variable.name, [round(10 * 1.3**k, 2) for k in range(count)])
    return pl.Series(variable.name, [f"{variable.name}-{k + 1}" for k in range(count)])


def level_shares(variable: VariableSchema, number: int, *, persons: bool) -> NDArray[np.float64]:
    """Return the share of each level before areas differ: sizes as households have them, else fewer and fewer."""
    levels = variable.all_levels
    if persons and levels is not None and all(isinstance(level, int) for level in levels):
        sizes = [max(int(level), 0) for level in levels]
        weights = [
            math.exp(s * math.log(MEAN_HOUSEHOLD_PERSONS) - math.lgamma(s + 1)) if s else 0.0 for s in sizes
        ]
        if sum(weights):
            return np.array(weights) / sum(weights)
    steps = np.arange(1, number + 1, dtype=np.float64)
    falling = 1.0 - 0.8 * (steps - 1) / number if isinstance(levels, range) else steps**-0.8
    return np.asarray(falling / falling.sum(), np.float64)


def draw_by_area(
    base: NDArray[np.float64], area: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a level for each record; every area has shares of its own around the common ones."""
    areas = int(area.max(initial=0)) + 1
    own = base * np.exp(rng.normal(0, SHARE_LOG_SD, (areas, base.size)))
    edges = np.cumsum(own / own.sum(axis=1, keepdims=True), axis=1)
    found = np.empty(area.size, np.int64)
    for start in range(0, area.size, ROWS_PER_DRAW):
        some = slice(start, start + ROWS_PER_DRAW)
        drawn = rng.random(area[some].size)[:, None]
        found[some] = (edges[area[some]] < drawn).sum(axis=1)
    return np.minimum(found, base.size - 1)


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A published table of counts: some variables and a column ``count``."""

    cells: pl.DataFrame

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables of the table."""
        return tuple(name for name in self.cells.columns if name != "count")

    def draw(
        self, name: str, known: pl.DataFrame, given: Sequence[str], rng: np.random.Generator
    ) -> tuple[pl.Series, NDArray[np.bool_]]:
        """Return a value of one variable per record given the other columns, and which records have one."""
        keys = [pl.col(key).cast(pl.String) for key in given]
        cells = (
            self.cells.group_by(*given, name)
            .agg(pl.col("count").sum())
            .filter(pl.col("count") > 0)
            .with_columns(pl.concat_str([pl.lit(""), *keys], separator="\x1f").alias("\x00group"))
            .sort("\x00group", name)
        )
        edges = cells["count"].cast(pl.Float64).cum_sum().to_numpy()
        groups = (
            cells.with_columns(pl.Series("\x00edge", edges))
            .group_by("\x00group")
            .agg(stop=pl.col("\x00edge").max(), amount=pl.col("count").sum().cast(pl.Float64))
        )
        asked = known.select(pl.concat_str([pl.lit(""), *keys], separator="\x1f").alias("\x00group"))
        met = asked.join(groups, on="\x00group", how="left", maintain_order="left")
        there = met["stop"].is_not_null().to_numpy()
        start = (met["stop"] - met["amount"]).fill_null(0).to_numpy()
        drawn = start + rng.random(known.height) * met["amount"].fill_null(0).to_numpy()
        place = np.minimum(np.searchsorted(edges, drawn, side="right"), max(cells.height - 1, 0))
        return cells[name][place.astype(np.int64)], there


# Make the records of a stand-in: areas, households, and the persons who live in them.

MAX_REDRAWS = 20  # times that records against a rule are drawn again


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInFigures:
    """What a stand-in is made of beside the codebook; all of it is public or invented."""

    households: int = 10_000
    areas: Mapping[str, int] = field(default_factory=dict)  # number of areas by level of the spine
    levels: Mapping[str, int] = field(
        default_factory=dict
    )  # number of values of variables without listed levels
    tables: tuple[PublicTable, ...] = ()
    seed: int = 1

    def __post_init__(self) -> None:
        if self.households < 1:
            raise InputError(
                f"{self.households} households are too few",
                why="a stand-in has at least one",
                fix="--households 10000",
            )


def make_stand_in(
    schema: Schema, figures: StandInFigures, folder: Path | None = None
) -> dict[str, pl.DataFrame]:
    """Return records by type from schema and figures alone; ``folder`` holds a public file of areas.

    >>> from stirred.census.toml import parse_schema
    >>> schema = parse_schema({"geography": {"spine": ["region", "district"]}, "record": {
    ...     "household": {"id": "hid", "size": "size", "variables": {"size": "1..6", "roof": ["tin", "grass"]}},
    ...     "person": {"household": "hid", "variables": {"sex": ["f", "m"]}}}})
    >>> made = make_stand_in(schema, StandInFigures(households=100))
    >>> made["household"].height, made["person"].height == made["household"]["size"].sum()
    (100, True)
    """
    rng = np.random.default_rng(figures.seed)
    homes = next((record for record in schema.records if not record.linked_to), None)
    if homes is None:
        raise InputError(
            "the census has no record type of its own",
            why="every record type is linked to another one",
            fix="declare the households in census.toml",
        )
    leaves = (
        make_leaf_areas(schema, figures.areas, rng, folder or Path())
        if schema.spine
        else pl.DataFrame({"": [0]})
    )
    made: dict[str, pl.DataFrame] = {}
    for record in schema.records:
        if record.linked_to:
            continue
        weights = rng.gamma(1.5, 1.0, leaves.height) + 0.05
        area = np.sort(rng.choice(leaves.height, figures.households, p=weights / weights.sum()))
        known = leaves[area] if schema.spine else pl.DataFrame({"": area}).select([])
        made[record.name] = _draw_variables(schema, record, known, area, figures, rng)
    for record in schema.records:
        if record.linked_to:
            made[record.name] = _draw_persons(schema, record, made[record.linked_to], figures, rng)
    return made


def _draw_variables(
    schema: Schema,
    record: RecordSchema,
    known: pl.DataFrame,
    area: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return the own variables of some records, beside what is known of them."""
    rows = area.size
    groups = _group_areas(known, schema.spine, area)
    variables = [v for v in _list_drawn_variables(record) if v.name not in known.columns]
    frame = known
    for variable in variables:
        frame = frame.with_columns(_draw_variable(variable, record, frame, groups, figures, rng))
    frame = _apply_rules(schema, record, frame, variables, groups, figures, rng)
    if record.id and record.id not in frame.columns:
        frame = frame.with_columns(pl.Series(record.id, np.arange(1, rows + 1)))
    if record.weight and record.weight not in frame.columns:
        frame = frame.with_columns(pl.lit(1.0).alias(record.weight))
    return frame


def _list_drawn_variables(record: RecordSchema) -> list[VariableSchema]:
    """Return the variables to draw: those declared, the size, and the kind of home; never an identifier."""
    special = {record.id, record.household, record.weight}
    found = {v.name: v for v in record.variables if v.name not in special}
    if record.size and record.size not in found:
        found[record.size] = VariableSchema(name=record.size, kind="integer", levels=range(1, 8))
    if record.kinds is not None:
        column, occupied = record.kinds.column, record.kinds.occupied or record.kinds.housing_units
        whole = all(isinstance(code, int) for code in occupied)
        kind: Kind = "integer" if whole else "text"
        if occupied:  # a stand-in has occupied homes, unless a public table says otherwise
            levels = tuple(occupied)
            found[column] = VariableSchema(name=column, kind=kind, levels=levels)  # type: ignore[arg-type]
    imputed = {v.imputed for v in record.variables if v.imputed} - set(found)
    found |= {name: VariableSchema(name=name, kind="integer", levels=(0,)) for name in imputed}
    return list(found.values())


def _draw_variable(
    variable: VariableSchema,
    record: RecordSchema,
    known: pl.DataFrame,
    groups: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.Series:
    values = list_values(variable, figures.levels.get(variable.name))
    base = level_shares(variable, values.len(), persons=variable.name == record.size)
    drawn = values[draw_by_area(base, groups, rng)]
    tables = [table for table in figures.tables if variable.name in table.variables]
    if not tables:
        return drawn
    table = max(tables, key=lambda one: len(set(one.variables) & set(known.columns)))
    given = [name for name in table.variables if name in known.columns]
    public, there = table.draw(variable.name, known, given, rng)
    return pl.select(
        pl.when(pl.Series(there))
        .then(public.cast(values.dtype, strict=False))
        .otherwise(drawn)
        .alias(variable.name)
    ).to_series()


def _draw_persons(
    schema: Schema,
    record: RecordSchema,
    homes: pl.DataFrame,
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return the persons of each household, drawn given the household's variables."""
    home = schema.record(record.linked_to)
    invented = 1 + rng.poisson(MEAN_HOUSEHOLD_PERSONS - 1, homes.height)
    sizes = homes[home.size].cast(pl.Int64).to_numpy() if home.size else invented
    place = np.repeat(np.arange(homes.height), sizes)
    own = {variable.name for variable in record.variables}
    known = homes.drop([name for name in homes.columns if name in own and name != home.id])[place]
    frame = _draw_variables(schema, record, known.drop(home.id), place, figures, rng)
    drawn = [name for name in frame.columns if name not in homes.columns or name in own or name == record.id]
    link = homes[home.id][place].alias(record.household)
    return frame.select(drawn).with_columns(link)


def _group_areas(known: pl.DataFrame, spine: Sequence[str], area: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the areas between which shares differ: those of the last level but one."""
    level = next((name for name in (*spine[-2:-1], *spine[:1]) if name in known.columns), None)
    if level is None:
        return np.zeros(area.size, np.int64)
    return known[level].rank("dense").cast(pl.Int64).to_numpy() - 1


def _apply_rules(
    schema: Schema,
    record: RecordSchema,
    frame: pl.DataFrame,
    variables: Sequence[VariableSchema],
    groups: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return records that keep the edit rules: sums set, parts cut, forbidden combinations drawn again."""
    own = {variable.name: variable for variable in variables}
    rules = [
        r for r in schema.rules if r.record_type == record.name and set(r.variables) <= set(frame.columns)
    ]
    for rule in rules:
        if rule.total:
            parts = pl.sum_horizontal([pl.col(name).cast(pl.Int64) for name in rule.parts])
            frame = frame.with_columns(parts.alias(rule.total))
        elif rule.at_most is not None:
            small, large = rule.at_most
            frame = frame.with_columns(pl.min_horizontal(small, large).alias(small))
    forbidding = [rule for rule in rules if rule.forbid]
    for attempt in range(MAX_REDRAWS):
        broken = 0
        for rule in forbidding:
            against = frame.select(_breaks_rule(rule)).to_series()
            names = [name for name, _ in rule.forbid if name in own]
            if not against.any() or not names:
                continue
            broken += int(against.sum())
            variable = own[names[attempt % len(names)]]
            again = _draw_variable(variable, record, frame.drop(variable.name), groups, figures, rng)
            frame = frame.with_columns(
                pl.when(against).then(again).otherwise(variable.name).alias(variable.name)
            )
        if not broken:
            return frame
    return frame.filter(~pl.any_horizontal([_breaks_rule(rule) for rule in forbidding]))


def _breaks_rule(rule: EditRule) -> pl.Expr:
    tests = [
        pl.col(name).cast(pl.String).is_in([str(level) for level in levels]) for name, levels in rule.forbid
    ]
    return pl.all_horizontal(tests).fill_null(value=False)


# Write a stand-in as files with their own census.toml, and say what it was made of.

READING_KEYS = ("files", "format", "separator", "header", "encoding", "table", "ddi", "columns", "where")


def write_stand_in(
    census: Path,
    out: Path,
    *,
    households: int = 10_000,
    areas: Mapping[str, int] | None = None,
    levels: Mapping[str, int] | None = None,
    tables: Sequence[Path] = (),
    seed: int = 1,
) -> dict[str, object]:
    """Write the stand-in of a census.toml into a folder; no file of records is opened."""
    census = census / "census.toml" if census.is_dir() else census
    out = Path(out)
    if (out / "census.toml").exists():
        raise InputError(
            f"{out.name} holds a census already",
            why="its files would be replaced",
            fix="choose another folder, or empty it first",
        )
    schema = load_schema(census)
    figures = StandInFigures(
        households=households,
        areas=areas or {},
        levels=levels or {},
        tables=tuple(read_public_table(path, schema) for path in tables),
        seed=seed,
    )
    made = make_stand_in(schema, figures, census.parent)
    document = _write_document(parse_toml(read_plain_text(census)), schema)
    parse_schema(document, folder=out)
    out.mkdir(parents=True, exist_ok=True)
    for name, frame in made.items():
        pq.write_table(arrow_of(frame), out / f"{name}.parquet")
    used = _list_sources(census, figures, tables)
    note = "".join(f"# {line}\n" for line in used)
    (out / "census.toml").write_text(note + write_document(document), encoding="utf-8")
    return {
        "census": str(out / "census.toml"),
        "rows": {name: frame.height for name, frame in made.items()},
        "made of": "; ".join(used[1:]),
    }


# What tables of a packet have beside their counts.
EXTRA_TABLE_COLUMNS = ("weighted", "estimate", "standard_error", "low", "high", "quote")


def read_public_table(path: Path, schema: Schema) -> PublicTable:
    """Read a published table of counts from a CSV or Parquet file."""
    try:
        frame = (
            pl.read_parquet(path)
            if path.suffix == ".parquet"
            else pl.read_csv(path, infer_schema_length=None)
        )
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(
            f"cannot read the table {path.name}",
            why="it cannot be read as CSV or Parquet",
            fix="check the path; a table has one column for each variable and a column count",
        ) from None
    known = {v.name for record in schema.records for v in record.variables} | set(schema.spine)
    known |= {record.size for record in schema.records} | {r.kinds.column for r in schema.records if r.kinds}
    frame = frame.drop([name for name in EXTRA_TABLE_COLUMNS if name in frame.columns and name not in known])
    strange = [name for name in frame.columns if name not in known and name != "count"]
    if "count" not in frame.columns or strange:
        raise InputError(
            f"the table {path.name} cannot be used",
            why="it has no column count" if not strange else f"the census has no variable {strange[0]}",
            fix="name the column with the counts count"
            if not strange
            else did_you_mean(strange[0], sorted(known)),
        )
    return PublicTable(frame)


def _write_document(original: dict[str, object], schema: Schema) -> dict[str, object]:
    """Return the census.toml of the stand-in: the same variables under their own names, in files of its own."""
    geography = dict(original.get("geography", {}))  # type: ignore[call-overload]
    for key in ("level", "code", "preset", "areas"):
        geography.pop(key, None)
    beside = {
        name: {**off, "files": [str(Path(file).name) for file in off.get("files", [])]}
        for name, off in geography.pop("off_spine", {}).items()
        if not off.get("files") and not off.get("column")
    }
    geography = {**geography, "spine": list(schema.spine), **({"off_spine": beside} if beside else {})}
    document = {key: value for key, value in original.items() if key not in {"geography", "record"}}
    if schema.spine:
        document["geography"] = geography
    records: dict[str, object] = {}
    given: dict[str, dict[str, object]] = original.get("record", {})  # type: ignore[assignment]
    for record in schema.records:
        kept = {
            key: value for key, value in given[record.name].items() if key not in (*READING_KEYS, "variables")
        }
        variables = {v.name: _write_variable(given[record.name], v.name, record) for v in record.variables}
        records[record.name] = {
            "files": [f"{record.name}.parquet"],
            **kept,
            **({"variables": variables} if variables else {}),
        }
    document["record"] = records
    return document


def _write_variable(given: Mapping[str, object], name: str, record: RecordSchema) -> object:
    """Return a variable as written, without its column and with levels in place of a file of codes."""
    written = given["variables"][name]  # type: ignore[index]
    if not isinstance(written, dict):
        return written
    kept = {key: value for key, value in written.items() if key not in {"column", "codes_from"}}
    levels = record.variable(name).levels
    if "codes_from" in written and levels is not None:
        kept["levels"] = list(levels)
    return kept


def _list_sources(census: Path, figures: StandInFigures, tables: Sequence[Path]) -> list[str]:
    """Return what the stand-in was made of, in sentences."""
    found = [
        "A stand-in: no record describes anyone, and no file of records was opened to make it.",
        f"codebook {census.name}",
        f"{figures.households:,} households, seed {figures.seed}",
    ]
    found += [f"{number:,} areas of the level {name}" for name, number in figures.areas.items()]
    found += [f"{number:,} values of {name}" for name, number in figures.levels.items()]
    found += [f"published table {path.name}" for path in tables]
    return found
