"""The areas of a stand-in: from the public file of areas, or a tree of as many areas as are asked for."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from stirred.census.codebook.schema import Schema
from stirred.census.geography import read_ancestors
from stirred.errors import InputError, did_you_mean
from stirred.frames import collect_frame

FIRST, CHILDREN = 3, 5  # areas of the highest level, and of each area, where no number is given


def make_leaf_areas(
    schema: Schema, numbers: Mapping[str, int], rng: np.random.Generator, folder: Path
) -> pl.DataFrame:
    """Return one row for each area of the finest level, with the codes of all levels above it.

    >>> from stirred.census.codebook.schema import Area, Geography
    >>> schema = Schema(name="toy", geography=Geography(spine=(Area(name="region"), Area(name="district"))))
    >>> make_leaf_areas(schema, {"region": 2, "district": 3}, np.random.default_rng(1), Path())["region"].n_unique()
    2
    """
    unknown = [name for name in numbers if name not in schema.spine]
    if unknown:
        raise InputError(
            f"{unknown[0]} is not a level of the spine",
            why="a number of areas was given for it",
            fix=did_you_mean(unknown[0], schema.spine or ("(the census has no geography)",)),
        )
    whole = schema.geography.typed_as == "integer"
    if schema.geography.areas is not None and not numbers:
        found = collect_frame(read_ancestors(schema, folder)).select(schema.spine).unique().sort(schema.spine)
        children = set(found[schema.spine[-1]])
        parents = {code for name in schema.spine[:-1] for code in found[name]}
        found = found.filter(pl.col(schema.spine[-1]).is_in(sorted(children - parents)))
        return found.cast(pl.Int64) if whole else found
    return _make_tree(schema.spine, _area_numbers(schema.spine, numbers), rng, whole=whole)


def _area_numbers(spine: tuple[str, ...], given: Mapping[str, int]) -> list[int]:
    numbers: list[int] = []
    for name in spine:
        before = numbers[-1] if numbers else 0
        number = given.get(name, before * CHILDREN if before else FIRST)
        if number < max(before, 1):
            raise InputError(
                f"{number} areas of the level {name} are too few",
                why=f"every one of the {before} areas above has at least one"
                if before
                else "there is at least one",
                fix=f"give at least {max(before, 1)}",
            )
        numbers.append(number)
    return numbers


def _make_tree(
    spine: tuple[str, ...], numbers: list[int], rng: np.random.Generator, *, whole: bool
) -> pl.DataFrame:
    """Return areas numbered from 1 in their level, so that a code alone names an area."""
    lines: list[
        np.ndarray[tuple[int], np.dtype[np.int64]]
    ] = []  # the area of each level above each finest area
    for number in numbers:
        if not lines:
            lines.append(np.arange(number))
            continue
        above = int(lines[-1].max()) + 1
        parent = np.sort(np.concatenate([np.arange(above), rng.integers(0, above, number - above)]))
        first = np.searchsorted(lines[-1], np.arange(above))
        lines = [line[first][parent] for line in lines] + [np.arange(number)]
    columns = {}
    for name, line, number in zip(spine, lines, numbers, strict=True):
        codes = pl.Series(line + 1)
        columns[name] = codes if whole else codes.cast(pl.String).str.zfill(len(str(number)))
    return pl.DataFrame(columns)
