"""Describe a synthetic census as census.toml, and write it to files piece by piece."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census.progress import Progress, silent
from stirred.census.synthetic import plans
from stirred.census.synthetic.households import (
    CODE_LABELS,
    CODE_VALUES,
    GQ_CODES,
    MAX_FACILITY_PERSONS,
    NOT_HISPANIC_CODE,
)
from stirred.census.synthetic.plans import PopulationPlan, find_plan
from stirred.census.synthetic.states import (
    SPINE_LEVELS,
    DrawnState,
    draw_states,
    make_areas_table,
    make_geography_table,
)
from stirred.chance import Key
from stirred.errors import InputError
from stirred.text_formats import write_toml, write_toml_key

# Describe a synthetic census as census.toml: its variables with labels, and the edit rules that all records keep.

Document = dict[str, object]

# TopDown's structural zeros: relationship by age (children-in-law and grandchildren are never very old, …).
_STRUCTURAL_ZEROS: tuple[tuple[str, str, tuple[int, ...], str], ...] = (
    ("no young householder", "householders, spouses and partners", (0, 1, 2, 3, 4, 5), "0..14"),
    ("no old child", "children of the householder", (6, 7, 8), "90..115"),
    ("no young parent", "parents and parents-in-law", (10, 12), "0..29"),
    ("no old grandchild", "grandchildren", (11,), "75..115"),
    ("no young child-in-law", "children-in-law", (13,), "0..14"),
    ("no old child-in-law", "children-in-law", (13,), "90..115"),
    ("no old foster child", "foster children", (16,), "21..115"),
    ("no child in prison", "residents of 101-105", (18, 19, 20, 21, 22), "0..14"),
    ("no child in barracks", "residents of 106, 404, 601, 602", (23, 31, 34, 35), "0..16"),
    ("no pensioner in barracks", "residents of 106, 404, 601, 602", (23, 31, 34, 35), "66..115"),
    ("no adult in juvenile facilities", "residents of 201-203", (24, 25, 26), "26..115"),
    ("no child in nursing homes", "residents of 301", (27,), "0..19"),
    ("no infant in residential schools", "residents of 405", (32,), "0..2"),
    ("no adult in residential schools", "residents of 405", (32,), "31..115"),
    ("no child in college", "residents of 501", (33,), "0..15"),
    ("no pensioner in college", "residents of 501", (33,), "66..115"),
    ("no child in group homes", "residents of 801, 802", (37, 38), "0..15"),
    ("no child at sea", "residents of 900", (39,), "0..15"),
    ("no one over 75 at sea", "residents of 900", (39,), "76..115"),
)


def list_edit_rules() -> list[Document]:
    """Return the edit rules, as census.toml writes them.

    >>> list_edit_rules()[0]["forbid"]
    {'relationship': [0, 1, 2, 3, 4, 5], 'age': '0..14'}
    """
    return [
        {"name": name, "record": "person", "forbid": {"relationship": list(codes), "age": ages}}
        for name, _, codes, ages in _STRUCTURAL_ZEROS
    ]


def _coded_variable(name: str, label: str, *, zero: bool = True) -> Document:
    words = {code: text for code, text in CODE_LABELS[name].items() if zero or code}
    return {
        "label": label,
        "levels": list(words),
        "labels": {str(code): text for code, text in words.items()},
    }


def _describe_variables() -> tuple[Document, Document]:
    codes = sorted({0, *CODE_VALUES[:6].ravel().tolist()})
    origins = sorted({NOT_HISPANIC_CODE, *CODE_VALUES[6].ravel().tolist()})
    household: Document = {
        "kind": _coded_variable("kind", "occupied, vacant or group quarters"),
        "size": {"label": "persons living there", "type": "integer", "range": f"0..{MAX_FACILITY_PERSONS}"},
        "tenure": _coded_variable("tenure", "tenure"),
        "type": _coded_variable("type", "household type"),
        "couple": _coded_variable("couple", "householder's couple"),
        "children": _coded_variable("children", "householder's own children under 18"),
        "multigenerational": _coded_variable("multigenerational", "three or more generations of relatives"),
        "elderly": _coded_variable("elderly", "age of the oldest person"),
        "relatives": _coded_variable("relatives", "relatives of the householder"),
        "minors": _coded_variable(
            "minors", "ages under 18 of all but the householder and the spouse or partner"
        ),
        "young": _coded_variable("young", "anybody under 18"),
        "sex": _coded_variable("sex", "householder's sex"),
        "age": {"label": "householder's age (0: no householder)", "type": "integer", "range": "0..115"},
        "race": _coded_variable("race", "householder's race"),
        "hispanic": _coded_variable("hispanic", "householder's Hispanic origin"),
        # these apply to vacant units or to group quarters; all others to occupied units, as the kinds say
        "vacancy": {**_coded_variable("vacancy", "why the unit is vacant"), "not_applicable": [0]},
        "gq_type": {**_coded_variable("gq_type", "type of group quarters"), "not_applicable": [0]},
        "gq_code": {
            "label": "detailed code of group quarters (0: none)",
            "levels": [0, *GQ_CODES],
            "not_applicable": [0],
        },
    }
    person: Document = {
        "relationship": _coded_variable("relationship", "relationship to the householder, or group quarters"),
        "sex": _coded_variable("sex", "sex", zero=False),
        "age": {"label": "age", "type": "integer", "range": "0..115"},
        "race": _coded_variable("race", "race", zero=False),
        "hispanic": _coded_variable("hispanic", "Hispanic origin", zero=False),
        **{f"race_code_{k}": {"label": f"detailed race {k} (0: none)", "levels": codes} for k in range(1, 9)},
        "ethnicity_code": {"label": "detailed ethnicity", "levels": origins},
    }
    return household, person


def describe_census(plan: PopulationPlan, *, files: bool = True) -> Document:
    """Return the schema of a census with households and persons; in memory it names no files."""
    household, person = _describe_variables()
    geography: Document = {"spine": list(SPINE_LEVELS), "type": "integer" if plan.integer_codes else "text"}
    if files:
        place = {
            "label": "place (0: outside any)",
            "of": "block",
            "files": ["geography.parquet"],
            "key": "block",
        }
        geography["off_spine"] = {"place": place}
    if files and not plan.integer_codes:
        geography["areas"] = {"files": ["areas.parquet"], "level": "level"}
    return {
        "name": plan.name,
        "label": plan.title,
        "largest_household": MAX_FACILITY_PERSONS,
        "geography": geography,
        "record": {
            "household": {
                **({"files": ["household/*.parquet"]} if files else {}),
                "id": "household_id",
                "size": "size",
                "kind": {"column": "kind", "occupied": [1], "vacant": [2], "group_quarters": [3]},
                "variables": household,
            },
            "person": {
                **({"files": ["person/*.parquet"]} if files else {}),
                "id": "person_id",
                "household": "household_id",
                "of": "household",
                "variables": person,
            },
        },
        "rule": list_edit_rules(),
    }


def write_document(document: Mapping[str, object], path: tuple[str, ...] = ()) -> str:
    """Return a dictionary of text, integers, lists and dictionaries as TOML.

    >>> print(write_document({"name": "demo", "geography": {"spine": ["state", "county"]}}), end="")
    name = "demo"
    <BLANKLINE>
    [geography]
    spine = ["state", "county"]
    """
    flat = path[-1:] == ("variables",)  # one line per variable
    lines = [
        f"{write_toml_key(key)} = {write_toml(value, padding='')}"
        for key, value in document.items()
        if flat or not _has_heading(key, value)
    ]
    text = "\n".join(lines) + "\n" if lines else ""
    for key, value in document.items():
        here = (*path, write_toml_key(key))
        if flat or not _has_heading(key, value):
            continue
        if isinstance(value, Mapping):
            own = key == "variables" or any(not _has_heading(k, v) for k, v in value.items())
            text += (f"\n[{'.'.join(here)}]\n" if own else "") + write_document(value, here)
        elif isinstance(value, list):
            text += "".join(f"\n[[{'.'.join(here)}]]\n{write_document(item, here)}" for item in value)
    return text


def _has_heading(key: str, value: object) -> bool:
    """Return whether a value gets its own heading; kinds and forbidden combinations stay on one line."""
    if isinstance(value, Mapping):
        return key not in ("kind", "forbid")
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


# Write a preset to files: states in parallel, each piece by piece, so that memory does not grow with the census.

STATE_WORKERS = 2
RISING_COLUMNS = (
    "household_id",
    "person_id",
    "tract",
    "block_group",
    "block",
    "geoid",
)  # integers that grow: deltas are small


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticCensus:
    """A synthetic census in memory: records by type, their schema in the shape of census.toml, and all blocks."""

    tables: dict[str, pa.Table]
    schema: dict[str, object]
    geography: pa.Table | None = None


def synthesise(preset: str, households: int | None = None, seed: int = 1) -> SyntheticCensus:
    """Return a synthetic census in memory.

    >>> census = synthesise("demo", households=300)
    >>> sum(kind == 1 for kind in census.tables["household"]["kind"].to_pylist())
    300
    """
    key = Key.for_tests(seed)
    if preset == "massachusetts-1940":
        return SyntheticCensus(
            tables=plans.make_massachusetts(key, households),
            schema=plans.massachusetts_schema(files=False),
        )
    census = find_plan(preset, households)
    if census.households > 5_000_000:
        raise InputError(
            "this census is too large for memory",
            why=f"it has {census.households:,} households",
            fix="write it with write_preset, then use read",
        )
    made: dict[str, list[pa.Table]] = {"household": [], "person": [], "geography": []}
    for one in draw_states(census, key):
        codes = one.geography(integer_codes=census.integer_codes)
        made["geography"].append(make_geography_table(one, codes, key, integer_codes=census.integer_codes))
        for piece in one.make_pieces(codes):
            made["household"].append(piece["household"])
            made["person"].append(piece["person"])
    joined = {name: pa.concat_tables(parts).unify_dictionaries() for name, parts in made.items()}
    geography = joined.pop("geography")
    return SyntheticCensus(tables=joined, schema=describe_census(census, files=False), geography=geography)


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a Parquet file whose growing integers are stored as differences and all else as dictionaries."""
    growing = [
        field.name for field in schema if field.name in RISING_COLUMNS and pa.types.is_integer(field.type)
    ]
    plain = [field.name for field in schema if pa.types.is_floating(field.type)]
    path.parent.mkdir(parents=True, exist_ok=True)
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[field.name for field in schema if field.name not in {*growing, *plain}],
        column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
    )


def write_table(path: Path, table: pa.Table) -> int:
    """Write one table; returns its bytes."""
    with open_writer(path, table.schema) as out:
        out.write_table(table)
    return path.stat().st_size


def _write_state(
    one: DrawnState, out: Path, tick: Callable[[int], None], *, integer_codes: bool
) -> dict[str, int]:
    codes = one.geography(integer_codes=integer_codes)
    name = f"{one.state.spine.plan.code:02d}.parquet"
    writers: dict[str, pq.ParquetWriter] = {}
    rows = {"household": 0, "person": 0, "occupied": 0, "vacant": 0, "group_quarters": 0}
    try:
        for piece in one.make_pieces(codes):
            for kind, table in piece.items():
                if kind not in writers:
                    writers[kind] = open_writer(out / kind / name, table.schema)
                writers[kind].write_table(table, row_group_size=table.num_rows or 1)
                rows[kind] += table.num_rows
            kinds = np.bincount(piece["household"]["kind"].combine_chunks().to_numpy(), minlength=4)
            for what, count in zip(
                ("occupied", "vacant", "group_quarters"), kinds[1:4].tolist(), strict=True
            ):
                rows[what] += count
            tick(piece["household"].num_rows)
    finally:
        for open_ in writers.values():
            open_.close()
    return rows


def write_preset(
    preset: str, out: Path, households: int | None = None, seed: int = 1, progress: Progress | None = None
) -> dict[str, object]:
    """Write a preset's Parquet files and census.toml into a folder; returns what was written.

    The same preset, households and seed give the same records, whatever the machine's threads.
    """
    out = Path(out)
    if (out / "census.toml").exists() or (out / "household").exists():
        # files of an earlier census would be read as part of this one
        raise InputError(
            f"{out.name} holds a census already",
            why="its files would be replaced",
            fix="choose another folder, or empty it first",
        )
    key = Key.for_tests(seed)
    if preset == "massachusetts-1940":
        table = synthesise(preset, households, seed).tables["household"]
        write_table(out / "household" / "25.parquet", table)
        rows, schema = (
            {"household": table.num_rows, "occupied": table.num_rows},
            plans.massachusetts_schema(),
        )
    else:
        census = find_plan(preset, households)
        rows, schema = _write_states(census, out, key, progress or silent), describe_census(census)
    note = f"# Synthetic: preset {preset}, seed {seed}. No record describes anyone.\n"
    (out / "census.toml").write_text(note + write_document(schema), encoding="utf-8")
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        "preset": preset,
        "seed": seed,
        "census": str(out / "census.toml"),
        "rows": rows,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }


def _write_states(census: PopulationPlan, out: Path, key: Key, progress: Progress) -> dict[str, int]:
    drawn = draw_states(census, key)
    total, done = sum(one.state.units for one in drawn), 0
    integer_codes = census.integer_codes
    one_at_a_time = Lock()

    def tick(units: int) -> None:
        nonlocal done
        with one_at_a_time:
            done += units
            progress("write", done, total)

    geography: pq.ParquetWriter | None = None
    try:
        for one in drawn:
            codes = one.geography(integer_codes=integer_codes)
            table = make_geography_table(one, codes, key, integer_codes=integer_codes)
            geography = geography or open_writer(out / "geography.parquet", table.schema)
            geography.write_table(table)
            if not integer_codes:
                write_table(out / "areas.parquet", make_areas_table(table))
    finally:
        if geography is not None:
            geography.close()
    rows: dict[str, int] = {}
    largest_first = sorted(drawn, key=lambda one: -one.state.units)
    with ThreadPoolExecutor(STATE_WORKERS) as pool:
        jobs = [
            pool.submit(_write_state, one, out, tick, integer_codes=integer_codes) for one in largest_first
        ]
        for job in jobs:
            for name, count in job.result().items():
                rows[name] = rows.get(name, 0) + count
    return rows
