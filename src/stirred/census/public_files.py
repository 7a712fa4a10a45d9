"""Read the Census Bureau's public files as a census, and turn tables of counts into records."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.census.census import Census
from stirred.census.readers import redistricting as layout
from stirred.census.readers import to_lazy
from stirred.census.toml import parse_schema
from stirred.errors import DataError, InputError, did_you_mean

# Schemas of public file formats: the Bureau's redistricting files and its microdata.

_US_FROM_MICRODATA: dict[str, object] = {
    "spine": ["state", "county", "tract", "block_group", "block"],
    "level": {
        "state": {"columns": ["TABBLKST"]},
        "county": {"columns": ["TABBLKST", "TABBLKCOU"]},
        "tract": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE"]},
        "block_group": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE"]},
        "block": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"]},
    },
}
GQ_TYPES = {
    "0": "not in group quarters",
    "1": "correctional facilities for adults",
    "2": "juvenile facilities",
    "3": "nursing facilities",
    "4": "other institutional facilities",
    "5": "college or university student housing",
    "6": "military quarters",
    "7": "other noninstitutional facilities",
}
RACES = [f"{code:02d}" for code in range(1, 64)]


def pl94(folder: str | Path, *, summary_level: str = "750") -> Census:
    """Return the areas of one summary level of PL 94-171 legacy files, with all cells of P1 to P5 and H1."""
    names = [name for segment in layout.SEGMENT_TABLES for name in layout.list_cells(segment)]
    counts: dict[str, object] = dict.fromkeys([*names, "POP100", "HU100"], "integer")
    levels = {"040": 1, "050": 2, "140": 3, "150": 4, "750": 5}
    spine = ["state", "county", "tract", "block_group", "block"][: levels.get(summary_level, 5)]
    document = {
        "name": "PL 94-171",
        "geography": {
            "preset": "us",
            "spine": spine,
            "code": "GEOCODE",
            "off_spine": {
                "place": {"column": "PLACE", "of": spine[-1], "nests_in": "state", "label": "places"},
                "voting_district": {
                    "column": "VTD",
                    "of": spine[-1],
                    "nests_in": spine[min(1, len(spine) - 1)],
                },
            },
        },
        "record": {
            "area": {
                "files": [str(Path(folder).resolve())],
                "format": "pl94",
                "table": summary_level,
                "id": "LOGRECNO",
                "variables": {"NAME": {"type": "text", "missing": "keep"}, **counts},
            }
        },
        "rule": [
            {
                "name": "P1 and P2 count the same persons",
                "record": "area",
                "total": "P0010001",
                "parts": ["P0020001"],
            },
            {"name": "adults are persons", "record": "area", "at_most": ["P0030001", "P0010001"]},
            {
                "name": "persons in group quarters are persons",
                "record": "area",
                "at_most": ["P0050001", "P0010001"],
            },
            {
                "name": "housing units are occupied or vacant",
                "record": "area",
                "total": "H0010001",
                "parts": ["H0010002", "H0010003"],
            },
        ],
    }
    return Census(schema=parse_schema(document))


def ppmf(path: str | Path) -> Census:
    """Return the persons of a privacy-protected microdata file with the redistricting variables."""
    document = {
        "name": "PPMF",
        "geography": _US_FROM_MICRODATA,
        "record": {
            "person": {
                "files": [str(Path(path).resolve())],
                "format": "ppmf",
                "variables": {
                    "RTYPE": {
                        "levels": ["3", "5"],
                        "labels": {"3": "in a housing unit", "5": "in group quarters"},
                    },
                    "GQTYPE_PL": {"levels": list(GQ_TYPES), "labels": GQ_TYPES},
                    "VOTING_AGE": {"levels": ["1", "2"], "labels": {"1": "under 18", "2": "18 and over"}},
                    "CENHISP": {"levels": ["1", "2"], "labels": {"1": "not Hispanic", "2": "Hispanic"}},
                    "CENRACE": {"levels": RACES, "label": "race, 63 combinations"},
                },
            }
        },
        "rule": [
            {
                "name": "persons in housing units are in no group quarters",
                "record": "person",
                "forbid": {"RTYPE": ["3"], "GQTYPE_PL": [code for code in GQ_TYPES if code != "0"]},
            },
            {
                "name": "nobody under 18 lives in a nursing facility",
                "record": "person",
                "forbid": {"GQTYPE_PL": ["3"], "VOTING_AGE": ["1"]},
            },
        ],
    }
    return Census(schema=parse_schema(document))


# Turn a table of counts by area into one record per household or person.


def expand(
    table: object,
    counts: Mapping[str, Mapping[str, str | int]],
    *,
    keep: Sequence[str] = (),
    number: str = "",
) -> pa.Table:
    """Return one record for each unit that a table counts, in the order of rows, then of count columns.

    ``counts`` says what a count column counts: ``{"hh1": {"size": 1}, "hh2": {"size": 2}}`` gives ``hh1`` records of
    size 1 and so on; ``keep`` names the columns a record takes from its row; ``number`` adds a column 1, 2, …

    >>> expand({"block": ["a", "b"], "hh1": [1, 0], "hh2": [1, 2]},
    ...        {"hh1": {"size": 1}, "hh2": {"size": 2}}, keep=["block"]).to_pydict()
    {'block': ['a', 'a', 'b', 'b'], 'size': [1, 2, 2, 2]}
    """
    lazy = to_lazy(table)
    known = lazy.collect_schema()
    for name in (*keep, *counts):
        if name not in known:
            raise InputError(
                f"the table has no column {name}",
                why="it is named in keep or counts",
                fix=did_you_mean(name, known.names()),
            )
    variables = list(next(iter(counts.values()))) if counts else []
    if any(list(values) != variables for values in counts.values()):
        raise InputError(
            "every count column must set the same variables, in the same order",
            why="the records made from all of them form one table",
            fix="give each count column the same variables, in one order",
        )
    frame = lazy.select(*keep, *(name for name in counts if name not in keep)).collect()
    matrix = _read_counts(frame, list(counts))
    times = matrix.reshape(-1)
    rows = np.repeat(np.repeat(np.arange(frame.height), len(counts)), times)
    cells = np.repeat(np.tile(np.arange(len(counts)), frame.height), times)
    columns = [frame[name].gather(rows) for name in keep]
    for variable in variables:
        levels = pl.Series(variable, [values[variable] for values in counts.values()])
        columns.append(levels.gather(cells))
    result = pl.DataFrame(columns)
    if number:
        result = result.insert_column(0, pl.Series(number, np.arange(1, len(rows) + 1, dtype=np.int64)))
    return result.to_arrow(compat_level=pl.CompatLevel.oldest())


def _read_counts(frame: pl.DataFrame, names: list[str]) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    for name in names:
        column = frame[name]
        if not column.dtype.is_integer():
            raise DataError(
                f"column {name} does not hold integers",
                why="counts are whole numbers",
                fix="cast the column to an integer type",
            )
        bad = column.null_count() + int((column < 0).sum())
        if bad:
            raise DataError(
                f"column {name}: {bad} counts are empty or negative",
                why="a count is a whole number from 0 on",
                fix="replace the empty and negative counts",
            )
    return np.column_stack([frame[name].to_numpy().astype(np.int64) for name in names]).reshape(
        frame.height, len(names)
    )
