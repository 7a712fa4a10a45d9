"""Tabulate the records of an earlier release instead of the census: its promise holds for the tables, as post-processing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.errors import InputError
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import join_variables
from stirred.spec import Specification
from stirred.spec.files import load

if TYPE_CHECKING:
    from stirred.census import Census


def find_public_part(packet: Path) -> Path:
    """Return the public part of a packet, or the folder itself where a plan continues its own release."""
    return packet / "public" if (packet / "public").is_dir() else packet


def read_promise(packet: Path) -> Specification:
    """Return the promise of the earlier release, unchanged: tables of its records cost nothing more."""
    path = find_public_part(packet) / "spec.json"
    if not path.is_file():
        raise InputError(
            "the given packet has no specification",
            why=f"{path.name} is not there",
            fix="name a packet that stirred run or stirred swap wrote",
        )
    return load(path)


def read_records(packet: Path, census: "Census", record: str, columns: Sequence[str]) -> pa.Table:
    """Return the released records with the variables of a table, persons with their household's."""
    data = find_public_part(packet) / "data"
    found = {
        name: pads.dataset(data / f"{name}.parquet", format="parquet")
        for name in census.schema.record_types
        if (data / f"{name}.parquet").exists()
    }
    release = Release(
        mechanism="", parameters={}, specification=read_promise(packet), microdata=found,
        schema=census.schema, folder=census.folder,
    )  # fmt: skip
    return arrow_of(
        collect_frame(join_variables(release, record, columns).select(list(columns)), streaming=True)
    )


def count_earlier(packet: Path, census: "Census", record: str, by: Sequence[str]) -> pl.DataFrame:
    """Return how many released records each cell has, with text as text."""
    if not by:
        anything = read_records(packet, census, record, [*census.columns(record)][:1])
        return pl.DataFrame({"count": [anything.num_rows]})
    frame = frame_of(read_records(packet, census, record, by))
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.group_by(list(by)).agg(pl.len().cast(pl.Int64).alias("count"))
