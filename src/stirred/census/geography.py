"""Read geography from its own files: levels above the finest, and geographies beside the spine."""

from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Schema, Source
from stirred.census.readers import open_source
from stirred.errors import SchemaError, did_you_mean


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
