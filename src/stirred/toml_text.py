"""Read TOML texts of any origin: those that would exhaust the stack or the time are refused."""

import errno
import stat
import tomllib
from pathlib import Path
from typing import Any

LONGEST = 64 << 20  # characters; the largest codebooks have a few million
DEEPEST = 50  # tables in tables
TOO_DEEP = "it is nested deeper than any file of this kind needs"


class TomlError(ValueError):
    """The text is not TOML, or not one that a person would write; says why, with the line."""


def plain_text(path: Path, *, encoding: str = "utf-8") -> str:
    """The text of a plain file; a pipe, a device or a file without end is an error of the system."""
    try:
        told = path.stat()
    except ValueError:  # a zero byte
        raise OSError(errno.ENOENT, "no file can have this name") from None
    if not stat.S_ISREG(told.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")
    if told.st_size > LONGEST:
        raise OSError(errno.EFBIG, f"it is longer than {LONGEST:,} bytes")
    return path.read_bytes().decode(encoding)


def toml_of(text: str) -> dict[str, Any]:
    """The document in a text.

    >>> toml_of("a = 1")
    {'a': 1}
    >>> toml_of("a = " + "[" * 10_000)
    Traceback (most recent call last):
    ...
    stirred.toml_text.TomlError: it is nested deeper than any file of this kind needs
    """
    if len(text) > LONGEST:
        raise TomlError(f"it is longer than {LONGEST:,} characters")
    # the time of a dotted key grows with the square of its parts
    if any(line.partition("=")[0].count(".") > DEEPEST * 4 for line in text.splitlines()):
        raise TomlError(TOO_DEEP)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except RecursionError:
        raise TomlError(TOO_DEEP) from None
