"""What a killed process left behind: who may read it, and whether a confidential value can be read in it."""

import contextlib
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from slow.kills.jobs import MARK

NOISE = 0.98  # a sealed file is not smaller than this share of itself when it is compressed


def faults(folder: Path, out: Path, scratch: Path) -> Iterator[str]:
    """Everything that somebody who finds the disk could read, or that another user could open."""
    part = out.with_name(out.name + ".part")
    if part.exists():
        yield from _open(part, part.name)
    for name in (".log", ".lock", ".key"):
        beside = out.with_name(out.name + name)
        if beside.exists():
            yield from _open(beside, beside.name)
    for path in scratch.rglob("*"):
        yield from _open(path, f"scratch/{path.relative_to(scratch)}")
        if path.suffix == ".sealed":
            content = path.read_bytes()
            if len(content) > 4096 and len(zlib.compress(content, 1)) < NOISE * len(content):
                yield f"{path.name} in scratch is no noise"
    census = {folder / f"{name}.{kind}" for name in ("household", "person") for kind in ("csv", "parquet")}
    for path in (*folder.rglob("*"), *scratch.rglob("*")):
        if path.is_file() and not path.is_symlink() and path not in census:
            yield from _readable(path)


def on_spark(written: list[Path]) -> Iterator[str]:
    """The same for what Spark keeps between tasks, and for its logs."""
    for path in written:
        yield from _readable(path)
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes() if path.suffix == ".data" or path.name.startswith("rdd_") else b""
            if len(content) > 4096 and len(zlib.compress(content, 1)) < NOISE * len(content):
                yield f"{path.name} of Spark is no noise"


def _open(path: Path, name: str) -> Iterator[str]:
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & 0o077:
        yield f"{name} has mode {mode:o}"


def _readable(path: Path) -> Iterator[str]:
    """The marker as it stands in the file, or in the columns of a Parquet file, which may be compressed."""
    with contextlib.suppress(FileNotFoundError):
        if MARK.encode() in path.read_bytes():
            yield f"{path.name} shows an identifier"
    if ".parquet" in path.name or path.suffix == ".part":
        with contextlib.suppress(pa.ArrowException, OSError):
            table = pq.read_table(path)
            if any(MARK in str(column.unique().to_pylist()) for column in table.columns):
                yield f"{path.name} holds an identifier in a column"
