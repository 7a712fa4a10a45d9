"""What a report knows of places and codes: how areas nest, their borders, and the words for codes; all of it public."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stirred.census import Schema
from stirred.census.shapes import border_lines
from stirred.frames import collected
from stirred.mechanisms.base import Release
from stirred.mechanisms.released import lazy
from stirred.report.charts.spatial import Ground
from stirred.report.published import Labels

MANY = 100_000  # areas of a level whose nesting is not kept: a picture holds far fewer


def labels_of(schema: Schema) -> Labels:
    """The labels of variables and levels, from the schema."""
    variables = [variable for record in schema.records for variable in record.variables]
    return Labels(
        variables={v.name: v.label for v in variables if v.label},
        levels={v.name: dict(v.labels) for v in variables},
    )


def ground_of(schema: Schema, census_file: Path, releases: Sequence[Release]) -> Ground:
    """The nesting of areas as the released records show it, and the borders that census.toml names."""
    above: dict[str, dict[str, tuple[str, ...]]] = {}
    for release in releases:
        for data in release.microdata.values():
            frame = lazy(data)
            spine = [level for level in schema.spine if level in frame.collect_schema().names()]
            for place, level in enumerate(spine[1:], 1):
                if level not in above:
                    areas = collected(frame.select(spine[: place + 1]).unique())
                    if areas.height > MANY:  # nor are the levels below drawn; a nation has millions of blocks
                        break
                    rows = areas.select(pl.all().cast(pl.String)).rows()
                    above[level] = {row[-1]: tuple(map(str, row[:-1])) for row in rows if row[-1] is not None}
    return Ground(
        levels=schema.spine,
        ancestors=above,
        borders=border_lines(schema, census_file.parent),
        labels=labels_of(schema).levels,
    )
