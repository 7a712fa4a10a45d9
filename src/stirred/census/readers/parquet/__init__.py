"""Parquet and Arrow files: scanned by Polars, in slices where row groups are large, and refused where they are absurd."""

from stirred.census.readers.parquet.files import PARQUET_ENDINGS, scan_parquet

__all__ = ["PARQUET_ENDINGS", "scan_parquet"]
