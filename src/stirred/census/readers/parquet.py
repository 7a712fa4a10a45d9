"""Scan Parquet and Arrow files: one, many, or a partitioned folder; they are never loaded as a whole."""

from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers.limits import require_parquet
from stirred.census.readers.paths import resolve

ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """A lazy frame over Parquet files; a folder with names like ``state=44`` gives its columns too."""
    paths = resolve(source.files, folder, ENDINGS)
    if paths[0].suffix in (".arrow", ".feather", ".ipc"):
        return pl.scan_ipc(paths)
    for path in paths:
        require_parquet(path)
    partitioned = any("=" in part for path in paths for part in path.relative_to(path.anchor).parts[:-1])
    # Partition values stay text: "044" must not become 44.
    return pl.scan_parquet(
        paths, hive_partitioning=partitioned, hive_schema=_text_partitions(paths), glob=False
    )


def _text_partitions(paths: list[Path]) -> dict[str, pl.DataType] | None:
    keys = {part.split("=", 1)[0] for path in paths for part in path.parts[:-1] if "=" in part}
    return {key: pl.String() for key in sorted(keys)} or None
