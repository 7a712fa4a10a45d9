"""What a run reads, by content: the schema, the files of records, of areas and of geographies beside the spine."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from stirred.census import Census
from stirred.census.readers.sources import is_remote, resolve_files
from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.errors import PrivacyError, StirredError

Stamps = tuple[
    tuple[str, int, int, int, int], ...
]  # of files: path, number, size, and both times of their last change


def input_identity(
    census: Census, key: Key, more: Iterable[Path] = (), engine: Engine | None = None
) -> bytes:
    """Return a keyed digest of all that a run reads; files that only an engine reaches count by address.

    The engine reads the files. The digest is computed when a run begins and again before the packet is sealed, so that
    files that change in between, or between an interruption and the run that takes it up, are noticed whatever their size
    and time say.
    """
    files = [(f"{name} {path.resolve()}", path.resolve()) for name, path in input_files(census)]
    files += [(path.name, path.resolve()) for path in more]
    found = (engine or Local()).digest_files([path for _, path in files])
    told = [f"{name} {digest.hex()}" for (name, _), digest in zip(files, found, strict=True)]
    told += [
        f"{record.name} {name}"
        for record in census.schema.records
        for name in record.source.files
        if is_remote(name)
    ]
    # census.toml and the files of codes are in the schema
    return key.digest(b"input", repr(census.schema).encode(), "\n".join(told).encode())


def input_stamps(census: Census) -> Stamps:
    """Return path, number, size and times of every input file, without reading the files."""
    found = []
    with suppress(StirredError, OSError):  # a file that is not there is told by the check of the records
        for _, path in input_files(census):
            told = path.stat()
            found.append((str(path), told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns))
    return tuple(found)


def require_unchanged(stamps: Stamps, census: Census) -> None:
    """Refuse files that were cut, replaced or written to since their stamps were taken."""
    if input_stamps(census) != stamps:
        raise changed_input()


def changed_input() -> PrivacyError:
    """Return the error for files that are not those that were checked."""
    return PrivacyError(
        "the files of the census changed during the run",
        why="what was released and what would be described are not the same records",
        fix="nothing was released; start again when no other program writes to the files",
    )


def input_files(census: Census) -> Iterator[tuple[str, Path]]:
    """Yield every file on this machine that holds records, areas, or descriptions of a record's layout."""
    schema, folder = census.schema, census.folder
    groups = {record.name: record.source.files for record in schema.records}
    groups |= {f"{record.name} ddi": (record.source.ddi,) for record in schema.records if record.source.ddi}
    groups |= {off.name: off.files for off in schema.geography.off_spine}
    if schema.geography.areas is not None:
        groups["areas"] = schema.geography.areas.files
    for name, files in groups.items():
        near = tuple(file for file in files if not is_remote(file))
        for path in resolve_files(near, folder) if near and folder is not None else ():
            yield name, path
