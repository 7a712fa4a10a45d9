"""Tabulate the records of an earlier release instead of the census: its promise holds for the tables, as post-processing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.errors import InputError
from stirred.frames import arrow_of, collected, frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import with_variables
from stirred.spec import Specification
from stirred.spec.files import load

if TYPE_CHECKING:
    from stirred.census import Census


def public_part(packet: Path) -> Path:
    """The public part of a packet, or the folder itself where a plan continues its own earlier release."""
    return packet / "public" if (packet / "public").is_dir() else packet


def earlier_promise(packet: Path) -> Specification:
    """The promise of the earlier release, unchanged: tables of its records cost nothing more."""
    path = public_part(packet) / "spec.json"
    if not path.is_file():
        raise InputError(
            "the given packet has no specification",
            why=f"{path.name} is not there",
            fix="name a packet that stirred run or stirred swap wrote",
        )
    return load(path)


def earlier_records(packet: Path, census: "Census", record: str, columns: Sequence[str]) -> pa.Table:
    """The released records with the variables of a table; those of persons come with their household's."""
    data = public_part(packet) / "data"
    found = {
        name: pads.dataset(data / f"{name}.parquet", format="parquet")
        for name in census.schema.record_types
        if (data / f"{name}.parquet").exists()
    }
    release = Release(
        mechanism="", parameters={}, specification=earlier_promise(packet), microdata=found,
        schema=census.schema, folder=census.folder,
    )  # fmt: skip
    return arrow_of(collected(with_variables(release, record, columns).select(list(columns)), streaming=True))


def earlier_counts(packet: Path, census: "Census", record: str, by: Sequence[str]) -> pl.DataFrame:
    """How many released records each cell has; text as text."""
    if not by:
        anything = earlier_records(packet, census, record, [*census.columns(record)][:1])
        return pl.DataFrame({"count": [anything.num_rows]})
    frame = frame_of(earlier_records(packet, census, record, by))
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.group_by(list(by)).agg(pl.len().cast(pl.Int64).alias("count"))
