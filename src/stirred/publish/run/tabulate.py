"""Products of released records: another mechanism's tables of them are post-processing, and have their promise."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import PlanError
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import MEASURE_COLUMNS, scan_records
from stirred.spec import Specification


def released_census(release: Release, census: Census) -> Census:
    """Return a census with the released records in place of its own: same schema, same areas."""
    missing = [name for name in census.schema.record_types if name not in release.microdata]
    if missing:
        raise PlanError(
            f"{release.mechanism} releases no {missing[0]} records to tabulate",
            why="a [[mechanism]] with from reads released records in the place of the census",
            fix="name a [[mechanism]] that releases all records, such as permutation-swapping",
        )
    files: dict[str, pl.LazyFrame] = {name: scan_records(data) for name, data in release.microdata.items()}
    return Census(schema=census.schema, files=files, folder=census.folder)


def tabulate_release(
    mechanism: Mechanism,
    earlier: Release,
    census: Census,
    specification: Specification,
    *,
    key: Key,
    engine: Engine,
    out: Path,
    progress: Progress,
) -> Release:
    """Return the mechanism's tables of the released records, which are public.

    An interval around a count of released records would be about these records and not about the census, so that counts
    alone are kept; so would a check of an invariant.
    """
    made = mechanism.tabulate_public(
        engine.census(released_census(earlier, census)), key=key, engine=engine, out=out, progress=progress
    )
    return replace(
        made,
        specification=specification,
        tables={name: _counts(table) for name, table in made.tables.items() if "count" in table.column_names},
        checks=(),
        ledger=None,
        notes=(),
        guards=(),
        input_digest=earlier.input_digest,
        private=earlier.private,
    )


def _counts(table: pa.Table) -> pa.Table:
    return table.select(
        [name for name in table.column_names if name == "count" or name not in MEASURE_COLUMNS]
    )
