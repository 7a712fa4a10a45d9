"""Read the Census Bureau's public files as a census (P.L. 94-171 and PPMF), and turn tables of counts into records."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.census.census import Census
from stirred.census.readers import delimited, parquet, to_lazy
from stirred.census.readers.delimited import scan_blocks
from stirred.census.readers.sources import resolve_files
from stirred.census.schema import Source
from stirred.census.toml import parse_schema
from stirred.errors import DataError, InputError, did_you_mean

# Read the Census Bureau's P.L. 94-171 files in the 2020 legacy layout: a geographic header and three segments of tables.
#
# Fields are separated by ``|``, without a header line; the files join on LOGRECNO. They are in a folder, or in the zip
# archive that the Bureau distributes (``ri2020.pl.zip``), which is read without unpacking it. U.S. Census Bureau,
# "2020 Census State Redistricting Data (Public Law 94-171) Summary File: Technical Documentation" (2021), chapter 6.

_GEO_TEXT = """
FILEID STUSAB SUMLEV GEOVAR GEOCOMP CHARITER CIFSN LOGRECNO GEOID GEOCODE REGION DIVISION STATE STATENS COUNTY
COUNTYCC COUNTYNS COUSUB COUSUBCC COUSUBNS SUBMCD SUBMCDCC SUBMCDNS ESTATE ESTATECC ESTATENS CONCIT CONCITCC CONCITNS
PLACE PLACECC PLACENS TRACT BLKGRP BLOCK AIANHH AIHHTLI AIANHHFP AIANHHCC AIANHHNS AITS AITSFP AITSCC AITSNS TTRACT
TBLKGRP ANRC ANRCCC ANRCNS CBSA MEMI CSA METDIV NECTA NMEMI CNECTA NECTADIV CBSAPCI NECTAPCI UA UATYPE UR CD116 CD118
CD119 CD120 CD121 SLDU18 SLDU22 SLDU24 SLDU26 SLDU28 SLDL18 SLDL22 SLDL24 SLDL26 SLDL28 VTD VTDI ZCTA SDELM SDSEC SDUNI
PUMA AREALAND AREAWATR BASENAME NAME FUNCSTAT GCUNI POP100 HU100 INTPTLAT INTPTLON LSADC PARTFLAG UGA
"""
GEO_COLUMNS = _GEO_TEXT.split()
# tables of each segment with their number of cells
SEGMENT_TABLES: dict[str, tuple[tuple[str, int], ...]] = {
    "01": (("P001", 71), ("P002", 73)),
    "02": (("P003", 71), ("P004", 73), ("H001", 3)),
    "03": (("P005", 10),),
}
LINK_COLUMNS = ["FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO"]
PL94_ENDINGS = (".pl", ".zip")
COUNTS_IN_HEADER = ("AREALAND", "AREAWATR", "POP100", "HU100")


def list_cells(segment: str) -> list[str]:
    """Return the names of a segment's cells.

    >>> list_cells("03")[0], list_cells("03")[-1], len(list_cells("01")), len(list_cells("02"))
    ('P0050001', 'P0050010', 144, 147)
    """
    return [f"{table}{cell:04d}" for table, size in SEGMENT_TABLES[segment] for cell in range(1, size + 1)]


def scan_pl94(source: Source, folder: Path) -> pl.LazyFrame:
    """Return header and tables side by side, one row per area; ``table`` selects a summary level."""
    files = [
        file
        for path in resolve_files(source.files, folder, PL94_ENDINGS)
        for file in _list_segment_files(path)
    ]
    if len(files) == 1 and not files[0].member:
        files = [SegmentFile(path) for path in sorted(files[0].path.parent.glob("*.pl"))]
    header = _find_segment(files, "geo")
    frame = _scan_segment(header, GEO_COLUMNS, COUNTS_IN_HEADER)
    if source.table:
        frame = frame.filter(pl.col("SUMLEV") == source.table)
    for segment in SEGMENT_TABLES:
        part = _scan_segment(
            _find_segment(files, f"000{segment}"),
            [*LINK_COLUMNS, *list_cells(segment)],
            tuple(list_cells(segment)),
        )
        frame = frame.join(
            part.drop("FILEID", "STUSAB", "CHARITER", "CIFSN"),
            on="LOGRECNO",
            how="left",
            maintain_order="left",
        )
    return frame


class SegmentFile(NamedTuple):
    """A .pl file on disk, or a member of a zip archive."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """Return the name of the file itself."""
        return Path(self.member).name or self.path.name

    def open(self) -> IO[bytes]:
        """Open the bytes for reading from the start."""
        return zipfile.ZipFile(self.path).open(self.member) if self.member else self.path.open("rb")


def _list_segment_files(path: Path) -> list[SegmentFile]:
    if path.suffix.lower() != ".zip":
        return [SegmentFile(path)] if path.suffix == ".pl" else []
    try:
        with zipfile.ZipFile(path) as archive:
            return [SegmentFile(path, name) for name in sorted(archive.namelist()) if name.endswith(".pl")]
    except (zipfile.BadZipFile, OSError):
        raise DataError(
            f"{path.name} is not a complete zip archive", why="it is damaged", fix="copy it again"
        ) from None


def _find_segment(files: list[SegmentFile], mark: str) -> SegmentFile:
    found = [file for file in files if file.name[2:].startswith(mark)]
    if len(found) != 1:
        raise DataError(
            f"expected one PL 94-171 file …{mark}….pl, found {len(found)}",
            why="the files of one state are read together",
            fix="put the header and the three segments of one state in one folder or zip archive",
        )
    return found[0]


def _scan_segment(file: SegmentFile, names: list[str], counts: tuple[str, ...]) -> pl.LazyFrame:
    with file.open() as stream:
        fields = stream.readline(1 << 20).count(b"|") + 1
    if fields != len(names):
        raise DataError(
            f"{file.name} has {fields} fields instead of {len(names)}",
            why="the file has the layout of another year, or its separator is not |",
            fix="use the 2020 files of the Bureau, unchanged",
        )
    if file.member:
        frame = scan_blocks([file.open], names, separator="|", header=False, encoding="utf-8", quote=None)
    else:
        frame = pl.scan_csv(
            file.path, separator="|", has_header=False, quote_char=None, infer_schema=False, new_columns=names,
            encoding="utf8-lossy", glob=False,
        )  # fmt: skip
    # LOGRECNO is zero-padded in some vintages and not in others
    number = pl.col("LOGRECNO").str.strip_chars_start("0")
    # a field that is not a number stays empty here and is reported by validation as missing
    return frame.with_columns(number, pl.col(counts).cast(pl.Int64, strict=False))


# Read privacy-protected microdata and microdata detail files (PPMF, MDF): delimited text with a header, codes as text.

PPMF_GEOGRAPHY_COLUMNS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")


def scan_ppmf(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame of the microdata with all codes as text, in any of the formats it is stored in."""
    paths = resolve_files(source.files, folder)
    if paths[0].suffix == ".parquet":
        frame = parquet.scan_parquet(source, folder)
    else:
        comments = _has_comment_lines(paths[0])
        if comments:
            frame = pl.scan_csv(
                paths, separator=source.separator or "|", infer_schema=False, comment_prefix="#", glob=False
            )
        else:
            frame = delimited.scan_delimited(replace(source, separator=source.separator), folder)
    columns = frame.collect_schema().names()
    lacking = [name for name in PPMF_GEOGRAPHY_COLUMNS if name not in columns]
    if lacking:
        raise DataError(
            f"{paths[0].name} is not a PPMF",
            why="it lacks " + ", ".join(lacking),
            fix="use a Privacy-Protected Microdata File of 2020, with its header line",
        )
    return frame


def _has_comment_lines(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(1) == b"#"


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
    names = [name for segment in SEGMENT_TABLES for name in list_cells(segment)]
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
