"""Digest files without following links; on a cluster each large file is one task, where the executors see the same file."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CLUSTER_BYTES = 1 << 26  # bytes from which a file is worth a task of its own


class FileDigest(NamedTuple):
    """The SHA-256 of a file, with the size and the time of the last change that it had when it was read."""

    sha256: bytes
    size: int
    changed: int


def digest_plain(path: Path | str) -> bytes:
    """Return the SHA-256 of a plain file, read in pieces; do not follow a link or block on a pipe."""
    return digest_open(path).sha256


def digest_open(path: Path | str) -> FileDigest:
    """Return the SHA-256 of a plain file with what the system says of it."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        told = os.fstat(file.fileno())
        return FileDigest(hashlib.file_digest(file, "sha256").digest(), told.st_size, told.st_mtime_ns)


def digest_there(path: str) -> FileDigest | None:
    """Return the digest of a file as this machine sees it, or None where it cannot be read here."""
    try:
        return digest_open(path)
    except OSError:
        return None


def same_file(path: Path, found: FileDigest | None) -> bool:
    """Return whether what another machine read is the file that is here: its size and its last change are equal."""
    told = path.lstat()
    return found is not None and (found.size, found.changed) == (told.st_size, told.st_mtime_ns)


def choose_large(paths: Sequence[Path]) -> list[int]:
    """Return the places of the files that are worth tasks of their own; one alone is not."""
    large = [place for place, path in enumerate(paths) if path.lstat().st_size >= CLUSTER_BYTES]
    return large if len(large) > 1 else []
