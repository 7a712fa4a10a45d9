"""Scan Parquet and Arrow files: one, many, or a partitioned folder; they are never loaded as a whole."""

import os
from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers.parquet.limits import SMALL, require_parquet
from stirred.census.readers.parquet.slices import LARGE, in_slices
from stirred.census.readers.paths import resolve

# row groups that Polars holds at once, beside those it decodes; otherwise twice as many as there are threads
os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "2")
ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """A lazy frame over Parquet files; a folder with names like ``state=44`` gives its columns too."""
    paths = resolve(source.files, folder, ENDINGS)
    if paths[0].suffix in (".arrow", ".feather", ".ipc"):
        return pl.scan_ipc(paths)
    largest = max(map(require_parquet, paths))
    # pyarrow tells damage as an error; Polars may end the process, and what it reads best are large files
    small = sum(path.stat().st_size for path in paths) <= SMALL
    partitioned = any("=" in part for path in paths for part in path.relative_to(path.anchor).parts[:-1])
    # Partition values stay text: "044" must not become 44.
    whole = pl.scan_parquet(
        paths, hive_partitioning=partitioned, hive_schema=_text_partitions(paths), glob=False
    )
    return in_slices(paths, whole.collect_schema()) if small or largest > LARGE else whole


def _text_partitions(paths: list[Path]) -> dict[str, pl.DataType] | None:
    keys = {part.split("=", 1)[0] for path in paths for part in path.parts[:-1] if "=" in part}
    return {key: pl.String() for key in sorted(keys)} or None
