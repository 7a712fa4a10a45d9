"""Write a stand-in as files with their own census.toml, and say what it was made of."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from stirred.census.codebook.parse import load_schema, parse_schema
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.synthetic.description import write_toml
from stirred.census.synthetic.like.draws import PublicTable
from stirred.census.synthetic.like.population import StandInFigures, make_stand_in
from stirred.errors import InputError, did_you_mean
from stirred.frames import arrow_of
from stirred.toml_text import parse_toml, read_plain_text

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
    (out / "census.toml").write_text(note + write_toml(document), encoding="utf-8")
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
