"""Borders of areas for maps: read from GeoJSON or a GeoPackage, drawn on a small grid so that a page stays small."""

import math
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stirred.census.codebook.schema import Schema
from stirred.errors import InputError, did_you_mean
from stirred.roots import require_readable
from stirred.toml_text import parse_json, read_plain_text

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

    def placed(point: Point) -> tuple[int, int]:
        return round((point[0] - left) * narrow / step), round((top - point[1]) / step)

    areas: dict[str, list[list[list[tuple[int, int]]]]] = {}
    for code, parts in found:
        rings = [[_simplify_ring([placed(p) for p in ring]) for ring in part] for part in parts]
        areas.setdefault(code, []).extend(
            [[ring for ring in part if ring] for part in rings if part and part[0]]
        )
    across, down = placed((right, bottom))
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
