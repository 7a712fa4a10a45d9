"""The files of a release in a packet: records by type, and what the mechanism adds of itself."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from stirred.arrow import pads
from stirred.engine.local.released import write_released
from stirred.file_names import make_file_names, path_in
from stirred.mechanisms.base import Release

MECHANISM_FOLDER = "mechanism"  # the folder of what a mechanism adds to the records


def store(release: Release, folder: Path) -> None:
    """Copy a release into a folder; its files belong to whoever made it."""
    folder.mkdir()
    for name, data in release.microdata.items():
        _copy(data, path_in(folder, name, ".parquet"))
    own = _store_tables(release, folder, release.files)
    for path in release.files:
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, own / path.name)


def move(release: Release, folder: Path, work: Path) -> None:
    """Move a release into a folder; all that is left in ``work`` is the mechanism's own."""
    folder.mkdir()
    for name, data in release.microdata.items():
        _move(data, path_in(folder, name, ".parquet"))
    left = sorted(work.iterdir())
    own = _store_tables(release, folder, left)
    for path in left:
        path.replace(own / path.name)


def _store_tables(release: Release, folder: Path, files: Sequence[Path]) -> Path:
    """Write the mechanism's own tables; returns the folder of its own files, made where there are any."""
    own = folder / MECHANISM_FOLDER
    if release.tables or files:
        own.mkdir()
    names = make_file_names(release.tables)
    for name, table in release.tables.items():
        write_released(table, path_in(own, names[name], ".parquet"))
    return own


def store_internal(release: Release, folder: Path) -> None:
    """Write what only the office may see of a release; a release without it leaves no folder."""
    names = make_file_names(release.internal)
    for name, table in release.internal.items():
        folder.mkdir(parents=True, exist_ok=True)
        write_released(table, path_in(folder, names[name], ".parquet"))


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(content: bytes) -> pa.Table:
    """Return the table that was written as bytes."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def locate_release(release: Release, folder: Path) -> Release:
    """Return the release with records that are read from a folder."""
    return replace(
        release,
        microdata={name: pads.dataset(path_in(folder, name, ".parquet")) for name in release.microdata},
    )


def _move(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """Move the Parquet file or folder of a record type."""
    if isinstance(data, pa.Table):
        write_released(data, path)
        return
    sources = [Path(name) for name in data.files]
    if len(sources) == 1:
        sources[0].replace(path)
    else:
        path.mkdir()
        for index, source in enumerate(sources):
            source.replace(path / f"part-{index:05d}.parquet")
    for folder in {source.parent for source in sources if source.parent.suffix == ".parquet"}:
        shutil.rmtree(folder)  # of a data set in several files: it is not the mechanism's own


def _copy(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """Copy the Parquet file or folder of a record type, which belongs to whoever made the release."""
    if isinstance(data, pa.Table):
        write_released(data, path)
        return
    sources = [Path(name) for name in data.files]
    if len(sources) == 1:
        shutil.copyfile(sources[0], path)
        return
    path.mkdir()
    for index, source in enumerate(sources):
        shutil.copyfile(source, path / f"part-{index:05d}.parquet")
