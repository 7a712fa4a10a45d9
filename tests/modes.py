"""Who may read what was written: entries that somebody other than their owner can open."""

import stat
from pathlib import Path


def open_to_others(place: Path) -> list[str]:
    """Return the entries of a folder, or the file itself, whose mode is not 0600, or 0700 for folders."""
    found = [place, *place.rglob("*")] if place.is_dir() else [place]
    return [
        f"{path.relative_to(place.parent)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in found
        if stat.S_IMODE(path.lstat().st_mode) != (0o700 if path.is_dir() else 0o600)
    ]
