"""Write a preset to files: states in parallel, each piece by piece, so that memory does not grow with the census."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census.progress import Progress, silent
from stirred.census.synthetic import massachusetts
from stirred.census.synthetic.description import describe_census, write_toml
from stirred.census.synthetic.drawing import DrawnState, draw_states, make_areas_table, make_geography_table
from stirred.census.synthetic.plans import PopulationPlan, find_plan
from stirred.chance import Key
from stirred.errors import InputError

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
            tables=massachusetts.make_massachusetts(key, households),
            schema=massachusetts.massachusetts_schema(files=False),
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
            massachusetts.massachusetts_schema(),
        )
    else:
        census = find_plan(preset, households)
        rows, schema = _write_states(census, out, key, progress or silent), describe_census(census)
    note = f"# Synthetic: preset {preset}, seed {seed}. No record describes anyone.\n"
    (out / "census.toml").write_text(note + write_toml(schema), encoding="utf-8")
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
