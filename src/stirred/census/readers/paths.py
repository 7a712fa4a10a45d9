"""Find the files that census.toml names, sorted, so that their order does not depend on the disk."""

from pathlib import Path

from stirred.errors import InputError
from stirred.roots import ADDRESS, require_names, require_readable


def resolve_files(files: tuple[str, ...], folder: Path, endings: tuple[str, ...] = ()) -> list[Path]:
    """Return the files of names, globs and folders (matching endings); each entry's files are sorted."""
    require_names(files, folder)
    found: list[Path] = []
    for name in files:
        path = folder / name
        if any(mark in name for mark in "*?["):
            matches = [p for p in sorted(_expand_glob(folder, name)) if p.is_file()]
        elif path.is_dir():
            matches = sorted(p for p in path.rglob("*") if p.is_file() and _has_ending(p, endings))
        else:
            matches = [path] if path.is_file() else []
        if not matches:
            why = "it is a folder without such files" if path.is_dir() else "there is no file of that name"
            raise InputError(f"no file {name}", why=why, fix="check files in census.toml")
        found += map(require_readable, matches)
    return found


def is_remote(name: str) -> bool:
    """Return whether a name is an address that only an engine can read.

    >>> is_remote("s3a://office/census.parquet"), is_remote("/data/census.parquet")
    (True, False)
    """
    return ADDRESS.match(name) is not None


def _has_ending(path: Path, endings: tuple[str, ...]) -> bool:
    hidden = path.name.startswith((".", "_"))  # files such as _SUCCESS and _metadata hold no data
    return not hidden and (not endings or path.name.lower().endswith(endings))


def _expand_glob(folder: Path, pattern: str) -> list[Path]:
    absolute = Path(pattern)
    if absolute.is_absolute():
        return list(Path(absolute.anchor).glob(str(absolute.relative_to(absolute.anchor))))
    return list(folder.glob(pattern))
