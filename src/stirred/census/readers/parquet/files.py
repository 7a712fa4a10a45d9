"""Scan Parquet and Arrow files: one, many, or a partitioned folder; they are never loaded as a whole."""

import os
from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers.parquet.limits import MAX_BYTES_ALL_PAGES_READ, require_parquet
from stirred.census.readers.parquet.slices import SLICED_GROUP_BYTES, scan_slices
from stirred.census.readers.paths import resolve_files

# row groups that Polars holds at once, beside those it decodes; otherwise twice as many as there are threads
os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "2")
PARQUET_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def scan_parquet(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame over Parquet files; a folder with names like ``state=44`` gives its columns too."""
    paths = resolve_files(source.files, folder, PARQUET_ENDINGS)
    if paths[0].suffix in (".arrow", ".feather", ".ipc"):
        return pl.scan_ipc(paths)
    largest = max(map(require_parquet, paths))
    # pyarrow tells damage as an error; Polars may end the process, and what it reads best are large files
    small = sum(path.stat().st_size for path in paths) <= MAX_BYTES_ALL_PAGES_READ
    partitioned = any("=" in part for path in paths for part in path.relative_to(path.anchor).parts[:-1])
    # Partition values stay text: "044" must not become 44.
    whole = pl.scan_parquet(
        paths, hive_partitioning=partitioned, hive_schema=_partition_types(paths), glob=False
    )
    return scan_slices(paths, whole.collect_schema()) if small or largest > SLICED_GROUP_BYTES else whole


def _partition_types(paths: list[Path]) -> dict[str, pl.DataType] | None:
    keys = {part.split("=", 1)[0] for path in paths for part in path.parts[:-1] if "=" in part}
    return {key: pl.String() for key in sorted(keys)} or None
