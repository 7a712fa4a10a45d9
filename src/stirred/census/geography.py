"""Read the areas of a census from their own files: levels, geographies beside the spine, borders for maps."""

import math
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stirred.census.readers import open_source
from stirred.census.schema import Schema, Source
from stirred.errors import InputError, SchemaError, did_you_mean
from stirred.roots import require_readable
from stirred.text_formats import parse_json, read_plain_text

# Read geography from its own files: levels above the finest, and geographies beside the spine.


def attach_levels(schema: Schema, frame: pl.LazyFrame, lacking: list[str], folder: Path) -> pl.LazyFrame:
    """Add missing geographic columns, looked up by the code of the level that determines them."""
    there = frame.collect_schema().names()
    geography = schema.geography
    finest = schema.spine[-1] if schema.spine else ""
    levels = [name for name in lacking if name in schema.spine]
    levels += [
        off.of for off in geography.off_spine if off.name in lacking and off.of and off.of not in there
    ]
    if levels and geography.areas is not None and finest in there:
        parents = read_ancestors(schema, folder)
        frame = _look_up(
            frame, finest, parents, [name for name in dict.fromkeys(levels) if name not in there]
        )
    for off in geography.off_spine:
        if off.name in lacking and off.files:
            table = read_crosswalk(schema, off.name, folder)
            frame = _look_up(frame, off.of, table, [off.name])
    return frame


def read_crosswalk(schema: Schema, name: str, folder: Path) -> pl.LazyFrame:
    """Return the file that says which off-spine area each area of the spine lies in: columns (level, name)."""
    off = next(off for off in schema.geography.off_spine if off.name == name)
    table = open_source(Source(files=off.files, format=off.format), folder)
    columns = table.collect_schema().names()
    source = off.column or off.name
    for column in (off.key, source):
        if column not in columns:
            raise SchemaError(
                f"the file of {name} has no column {column}",
                why="census.toml names this column",
                fix=did_you_mean(column, columns),
            )
    return table.select(pl.col(off.key).alias(off.of), pl.col(source).alias(off.name))


def read_areas(schema: Schema, folder: Path) -> pl.LazyFrame:
    """Return the file of areas as text columns code, parent (null at the top) and level (null if absent)."""
    areas = schema.geography.areas
    if areas is None:
        raise SchemaError(
            "the geography has no file of areas",
            why="the areas and their parents are listed there",
            fix="add [geography.areas] to census.toml",
        )
    table = open_source(Source(files=areas.files, format=areas.format), folder)
    columns = table.collect_schema().names()
    for column in filter(None, (areas.code, areas.parent, areas.level)):
        if column not in columns:
            raise SchemaError(
                f"the file of areas has no column {column}",
                why="census.toml names this column",
                fix=did_you_mean(column, columns),
            )
    parent = pl.col(areas.parent).cast(pl.String)
    return table.select(
        pl.col(areas.code).cast(pl.String).alias("code"),
        pl.when(parent != "").then(parent).alias("parent"),
        (pl.col(areas.level).cast(pl.String) if areas.level else pl.lit(None, dtype=pl.String)).alias(
            "level"
        ),
    )


def area_record_types(schema: Schema) -> tuple[str, ...]:
    """Return the record types whose records decide which areas exist; none where a public file lists them.

    A linked record has no effect: a person is where its household is.

    >>> from stirred.census import Census
    >>> toy = {"geography": {"spine": ["county"]}, "record": {"household": {"id": "h"}, "person": {"household": "h"}}}
    >>> home = {"h": [1], "county": ["a"]}
    >>> area_record_types(Census.of(toy, {"household": home, "person": {"h": [1]}, "group quarters": home}).schema)
    ('household', 'group quarters')
    """
    if schema.geography.areas is not None:
        return ()
    return tuple(record.name for record in schema.records if not record.linked_to)


def read_ancestors(schema: Schema, folder: Path) -> pl.LazyFrame:
    """Return one row per finest area with the code of every level above it, read when needed."""
    table = read_areas(schema, folder).select("code", "parent")
    levels = dict.fromkeys(reversed(schema.spine), pl.String)
    areas = table.unique(subset="code", keep="first", maintain_order=True)
    return areas.map_batches(
        lambda frame: _climb_levels(frame, list(levels)),
        schema=pl.Schema(levels),
        # filters and columns of the levels do not apply to the file, which has codes and parents
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _climb_levels(areas: pl.DataFrame, levels: list[str]) -> pl.DataFrame:
    """Return areas as one column per level, the finest first; areas below no top are left out.

    >>> _climb_levels(pl.DataFrame({"code": ["a", "b"], "parent": [None, "a"]}), ["town", "region"]).rows()
    [('b', 'a')]
    """
    known = pl.col("code").is_not_null()
    code, parent = areas["code"], areas.select(pl.when(known).then("parent").alias("parent"))
    rows = pl.DataFrame({"parent": code, "row": pl.int_range(len(code), eager=True)})
    # the row of each area's parent, null where the file does not list the parent
    above = parent.join(rows, on="parent", how="left", maintain_order="left")["row"]
    columns, row = {levels[0]: code}, rows["row"]
    for level in levels[1:]:
        columns[level], row = parent["parent"].gather(row), above.gather(row)
    result = pl.DataFrame(columns)
    return result.filter(pl.col(levels[-1]).is_not_null()) if len(levels) > 1 else result


def _look_up(frame: pl.LazyFrame, key: str, table: pl.LazyFrame, names: list[str]) -> pl.LazyFrame:
    here = frame.collect_schema()[key]
    table = table.select(pl.col(key).cast(here, strict=False), *names).unique(
        subset=key, keep="first", maintain_order=True
    )
    return frame.join(table, on=key, how="left", maintain_order="left")


# Borders of areas for maps: read from GeoJSON or a GeoPackage, drawn on a small grid so that a page stays small.

Point = tuple[float, float]
Polygon = list[list[Point]]  # the outer ring, then holes
MAX_COORDINATES = 20_000_000  # coordinates and their lists in a file of polygons
GRID_STEPS = 700  # steps of the longer side: about the pixels of a map on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class BorderLines:
    """The areas of one level as polygons on a grid: (0, 0) is the upper left corner."""

    level: str
    areas: dict[str, list[list[list[tuple[int, int]]]]]  # code → polygons → rings → points
    width: int
    height: int

    def features(self) -> list[dict[str, object]]:
        """Return one GeoJSON feature an area, its code in the properties."""
        return [
            {
                "type": "Feature",
                "properties": {"code": code},
                "geometry": {"type": "MultiPolygon", "coordinates": polygons},
            }
            for code, polygons in self.areas.items()
        ]


def read_borders(schema: Schema, folder: Path | None) -> BorderLines | None:
    """Return the borders that census.toml names, or None where it names none."""
    named = schema.geography.shapes
    if named is None or folder is None:
        return None
    path = folder / named.file
    try:
        found = list(
            _read_geopackage(path, named.key) if path.suffix == ".gpkg" else _read_geojson(path, named.key)
        )
    except (OSError, ValueError, KeyError, TypeError, struct.error, sqlite3.Error, RecursionError):
        raise InputError(
            f"the shapes in {path.name} cannot be read",
            why="it is not a file of polygons in GeoJSON or GeoPackage",
            fix="check shapes in the [geography] of census.toml, or leave it out",
        ) from None
    return _snap_to_grid(named.level, found)


def _require_key(names: Iterable[str], key: str, file: str) -> None:
    there = list(names)
    if key not in there:
        raise InputError(
            f"the shapes in {file} have no {key}",
            why="shapes_key in census.toml names the property that holds the code of an area",
            fix=did_you_mean(key, there or ["(none)"]),
        )


def _read_geojson(path: Path, key: str) -> Iterator[tuple[str, list[Polygon]]]:
    document = parse_json(read_plain_text(path), most_values=MAX_COORDINATES)
    for feature in document["features"]:
        properties = feature["properties"] or {}
        _require_key(properties, key, path.name)
        shape = feature["geometry"]
        if not shape:
            continue
        if shape["type"] not in ("Polygon", "MultiPolygon"):
            raise ValueError
        parts = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
        yield (
            str(properties[key]),
            [[[(float(p[0]), float(p[1])) for p in ring] for ring in part] for part in parts],
        )


def _read_geopackage(path: Path, key: str) -> Iterator[tuple[str, list[Polygon]]]:
    if not require_readable(path).is_file():
        raise OSError
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        table, column = connection.execute(
            "SELECT table_name, column_name FROM gpkg_geometry_columns ORDER BY table_name"
        ).fetchone()
        _require_key(
            [row[1] for row in connection.execute(f"PRAGMA table_info({_quote_name(table)})")], key, path.name
        )
        rows = connection.execute(
            f"SELECT {_quote_name(key)}, {_quote_name(column)} FROM {_quote_name(table)}"
        )
        for code, blob in rows:
            if blob is not None:
                yield str(code), list(_read_polygons(blob, _find_geometry_start(blob)))
    finally:
        connection.close()


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _find_geometry_start(blob: bytes) -> int:
    """Return where the well-known binary begins: after "GP", version, flags, reference system and envelope."""
    if blob[:2] != b"GP":
        raise ValueError
    return 8 + {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}[(blob[3] >> 1) & 7]


def _read_polygons(blob: bytes, start: int) -> Iterator[Polygon]:
    found, _ = _read_geometry(blob, start)
    return iter(found)


def _read_geometry(blob: bytes, at: int) -> tuple[list[Polygon], int]:
    """Return polygons of a well-known binary geometry, and where it ends; heights and measures are left out."""
    order = "<" if blob[at] == 1 else ">"
    (kind,) = struct.unpack_from(order + "I", blob, at + 1)
    base, dimensions = kind % 1000, 2 + (0, 1, 1, 2)[kind // 1000 % 4]
    (number,) = struct.unpack_from(order + "I", blob, at + 5)
    at += 9
    if base == 6:
        several: list[Polygon] = []
        for _ in range(number):
            part, at = _read_geometry(blob, at)
            several += part
        return several, at
    if base != 3:
        raise ValueError
    rings: Polygon = []
    for _ in range(number):
        (points,) = struct.unpack_from(order + "I", blob, at)
        values = struct.unpack_from(f"{order}{points * dimensions}d", blob, at + 4)
        at += 4 + 8 * points * dimensions
        rings.append(list(zip(values[::dimensions], values[1::dimensions], strict=True)))
    return [rings], at


def _snap_to_grid(level: str, found: list[tuple[str, list[Polygon]]]) -> BorderLines:
    """Snap all points to one grid and drop repeated points and those on a straight line: neighbours stay neighbours."""
    points = [point for _, parts in found for part in parts for ring in part for point in ring]
    if not points:
        return BorderLines(level=level, areas={}, width=1, height=1)
    left, right = min(p[0] for p in points), max(p[0] for p in points)
    bottom, top = min(p[1] for p in points), max(p[1] for p in points)
    degrees = left >= -180 and right <= 180 and bottom >= -90 and top <= 90
    narrow = math.cos(math.radians((bottom + top) / 2)) if degrees else 1.0
    size = max((right - left) * narrow, top - bottom) or 1.0
    step = size / GRID_STEPS

    def place(point: Point) -> tuple[int, int]:
        return round((point[0] - left) * narrow / step), round((top - point[1]) / step)

    areas: dict[str, list[list[list[tuple[int, int]]]]] = {}
    for code, parts in found:
        rings = [[_simplify_ring([place(p) for p in ring]) for ring in part] for part in parts]
        areas.setdefault(code, []).extend(
            [[ring for ring in part if ring] for part in rings if part and part[0]]
        )
    across, down = place((right, bottom))
    return BorderLines(
        level=level, areas={code: parts for code, parts in areas.items() if parts}, width=across, height=down
    )


def _simplify_ring(ring: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a closed ring without repeated or straight points; empty when it has no area on the grid.

    >>> _simplify_ring([(0, 0), (1, 0), (2, 0), (2, 2), (2, 2), (0, 2), (0, 0)])
    [(0, 0), (2, 0), (2, 2), (0, 2), (0, 0)]
    """
    kept: list[tuple[int, int]] = []
    for point in ring:
        if kept and point == kept[-1]:
            continue
        while len(kept) > 1 and _is_straight(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    if len(kept) < 4:
        return []
    return kept if kept[0] == kept[-1] else [*kept, kept[0]]


def _is_straight(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) == (b[1] - a[1]) * (c[0] - a[0])
