"""What a report knows of places and codes: how areas nest, their borders, and the words for codes; all of it public."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stirred.census import Schema
from stirred.census.shapes import read_borders
from stirred.frames import collect_frame
from stirred.mechanisms.base import Release
from stirred.mechanisms.released import scan_records
from stirred.report.charts.spatial import Ground
from stirred.report.published import Labels

MAX_AREAS = 100_000  # areas of a level whose nesting is not kept: a picture holds far fewer


def labels_of(schema: Schema) -> Labels:
    """Return the labels of variables and levels, from the schema."""
    variables = [variable for record in schema.records for variable in record.variables]
    return Labels(
        variables={v.name: v.label for v in variables if v.label},
        levels={v.name: dict(v.labels) for v in variables},
    )


def ground_of(schema: Schema, census_file: Path, releases: Sequence[Release]) -> Ground:
    """Return the nesting of areas in the released records, and the borders that census.toml names."""
    above: dict[str, dict[str, tuple[str, ...]]] = {}
    for release in releases:
        for data in release.microdata.values():
            frame = scan_records(data)
            spine = [level for level in schema.spine if level in frame.collect_schema().names()]
            for place, level in enumerate(spine[1:], 1):
                if level not in above:
                    areas = collect_frame(frame.select(spine[: place + 1]).unique())
                    if (
                        areas.height > MAX_AREAS
                    ):  # nor are the levels below drawn; a nation has millions of blocks
                        break
                    rows = areas.select(pl.all().cast(pl.String)).rows()
                    above[level] = {row[-1]: tuple(map(str, row[:-1])) for row in rows if row[-1] is not None}
    return Ground(
        levels=schema.spine,
        ancestors=above,
        borders=read_borders(schema, census_file.parent),
        labels=labels_of(schema).levels,
    )
