"""Read privacy-protected microdata and microdata detail files (PPMF, MDF): delimited text with a header, codes as text."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers import delimited, parquet
from stirred.census.readers.paths import resolve_files
from stirred.errors import DataError

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
