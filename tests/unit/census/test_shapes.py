"""Borders for maps: the same areas from GeoJSON and from a GeoPackage, small, and refused with a reason."""

import json
import sqlite3
import struct
from pathlib import Path

import pytest

from stirred.census.geography import GRID_STEPS, read_borders
from stirred.census.toml import parse_schema
from stirred.errors import InputError, SchemaError

SQUARE = [[10.0, 50.0], [10.5, 50.0], [11.0, 50.0], [11.0, 51.0], [10.0, 51.0], [10.0, 50.0]]
BESIDE = [[11.0, 50.0], [12.0, 50.0], [12.0, 51.0], [11.0, 51.0], [11.0, 50.0]]


def schema(file: str, **more: str) -> object:
    return parse_schema({"geography": {"spine": ["county", "block"], "shapes": file, **more}})


def geojson(path: Path) -> None:
    shapes = [("a", {"type": "Polygon", "coordinates": [SQUARE]})]
    shapes.append(("b", {"type": "MultiPolygon", "coordinates": [[BESIDE]]}))
    features = [{"type": "Feature", "properties": {"block": c}, "geometry": g} for c, g in shapes]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def geopackage(path: Path) -> None:
    def ring(points: list[list[float]]) -> bytes:
        return struct.pack("<I", len(points)) + b"".join(struct.pack("<2d", *p) for p in points)

    one = struct.pack("<BII", 1, 3, 1) + ring(SQUARE)
    part = struct.pack("<BII", 1, 3, 1) + ring(BESIDE)
    several = struct.pack("<BII", 1, 6, 1) + part
    head = b"GP\x00" + bytes([0b00000001]) + struct.pack("<i", 4326)
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT)")
        file.execute("INSERT INTO gpkg_geometry_columns VALUES ('areas', 'geom')")
        file.execute("CREATE TABLE areas (block TEXT, geom BLOB)")
        file.executemany("INSERT INTO areas VALUES (?, ?)", [("a", head + one), ("b", head + several)])
    file.close()


def test_both_formats_give_the_same_small_areas(tmp_path: Path) -> None:
    geojson(tmp_path / "s.geojson")
    geopackage(tmp_path / "s.gpkg")
    first = read_borders(schema("s.geojson"), tmp_path)  # type: ignore[arg-type]
    second = read_borders(schema("s.gpkg"), tmp_path)  # type: ignore[arg-type]
    assert first is not None
    assert first == second
    assert first.level == "block"
    # degrees of longitude are narrower than those of latitude; the point on the straight line is gone
    assert first.width == GRID_STEPS
    assert first.height == pytest.approx(GRID_STEPS / 2 / 0.6361, rel=0.01)
    (ring,) = first.areas["a"][0]
    assert len(ring) == 5
    assert ring[0] == ring[-1]
    # neighbours share their border
    assert {p for p in ring if p[0] == max(q[0] for q in ring)} <= set(first.areas["b"][0][0])
    assert [feature["properties"] for feature in first.features()] == [{"code": "a"}, {"code": "b"}]


def test_no_shapes_no_map(tmp_path: Path) -> None:
    assert read_borders(parse_schema({"geography": {"spine": ["block"]}}), tmp_path) is None


@pytest.mark.parametrize("name", ["gone.geojson", "bad.geojson", "bad.gpkg", "gone.gpkg"])
def test_a_file_that_holds_no_polygons_is_refused(tmp_path: Path, name: str) -> None:
    if name.startswith("bad"):
        (tmp_path / name).write_bytes(
            b'{"features": [{"properties": {"block": 1}, "geometry": {"type": "Point"}}]}'
        )
    with pytest.raises(InputError, match="cannot be read"):
        read_borders(schema(name), tmp_path)  # type: ignore[arg-type]


def test_a_key_that_is_not_there_names_the_others(tmp_path: Path) -> None:
    geojson(tmp_path / "s.geojson")
    with pytest.raises(InputError, match="blok"):
        read_borders(schema("s.geojson", shapes_key="blok"), tmp_path)  # type: ignore[arg-type]


def test_the_level_is_one_of_the_spine() -> None:
    with pytest.raises(SchemaError, match="shapes_level"):
        schema("s.geojson", shapes_level="tract")
    with pytest.raises(SchemaError, match="need shapes"):
        parse_schema({"geography": {"spine": ["block"], "shapes_key": "x"}})
