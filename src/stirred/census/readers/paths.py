"""Find the files that census.toml names, sorted, so that their order does not depend on the disk."""

from pathlib import Path

from stirred.errors import InputError
from stirred.roots import ADDRESS, require_names, require_readable


def resolve(files: tuple[str, ...], folder: Path, endings: tuple[str, ...] = ()) -> list[Path]:
    """Files, globs and folders as a sorted list of files; a folder means all files in it with a matching ending."""
    require_names(files, folder)
    found: list[Path] = []
    for name in files:
        path = folder / name
        if any(mark in name for mark in "*?["):
            matches = [p for p in sorted(_glob(folder, name)) if p.is_file()]
        elif path.is_dir():
            matches = sorted(p for p in path.rglob("*") if p.is_file() and _fits(p, endings))
        else:
            matches = [path] if path.is_file() else []
        if not matches:
            why = "it is a folder without such files" if path.is_dir() else "there is no file of that name"
            raise InputError(f"no file {name}", why=why, fix="check files in census.toml")
        found += map(require_readable, matches)
    return found


def far(name: str) -> bool:
    """Whether a name is an address that only an engine can read.

    >>> far("s3a://office/census.parquet"), far("/data/census.parquet")
    (True, False)
    """
    return ADDRESS.match(name) is not None


def _fits(path: Path, endings: tuple[str, ...]) -> bool:
    hidden = path.name.startswith((".", "_"))  # files such as _SUCCESS and _metadata hold no data
    return not hidden and (not endings or path.name.lower().endswith(endings))


def _glob(folder: Path, pattern: str) -> list[Path]:
    absolute = Path(pattern)
    if absolute.is_absolute():
        return list(Path(absolute.anchor).glob(str(absolute.relative_to(absolute.anchor))))
    return list(folder.glob(pattern))
