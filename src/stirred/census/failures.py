"""Replace the messages of reading libraries by our own, which show no value of a record."""

import errno
import os
import re

import polars as pl
import pyarrow as pa

from stirred.errors import DataError

# (pattern of the library's message, our reason, our fix); the library's own message may show values.
# The first match is used, so patterns that occur in many messages (a path with "parquet" in it) come last.
_KNOWN_FAILURES: tuple[tuple[str, str, str], ...] = (
    (r"no such file|not found|os error 2\b", "a file is missing", "check files in census.toml"),
    (r"permission", "a file may not be opened", "check the permissions"),
    (
        r"csv malformed|invalid csv|properly escaped",
        "a quoted field is not closed, or lines break inside fields",
        "check the quoting",
    ),
    (
        r"found more fields|ragged|too many fields|number of fields",
        "a line has more fields than the header",
        "check the separator and quoting",
    ),
    (
        r"unexpected end of file|deflate|inflate|compressed stream|gzip|zstd|unknown frame|bad crc|bad magic number",
        "the compressed file is damaged",
        "copy it again",
    ),
    (r"invalid utf-?8|utf8", "the file is not UTF-8 text", 'set encoding = "latin1" for the record type'),
    (r"empty csv|no data", "the file is empty", "check files in census.toml"),
    (
        r"schemaerror|extra column|schema mismatch|dtype|data type mismatch",
        "the files differ in their columns or types",
        "give all files of a record type the same columns",
    ),
    (
        r"ipc|flatbuffer|arrow file|invalidfooter",
        "the file is not a complete Arrow file",
        "copy or write it again",
    ),
    (r"^PanicException", "the file is damaged", "copy or write it again"),
    (
        r"parquet|file out of specification|thrift|magic|footer",
        "the file is not a complete Parquet file",
        "copy or write it again",
    ),
)
# what the machine lacks is no fault of a file: the command ends with another exit code, and a run can be taken up
_SYSTEM_ERRNOS = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ESTALE,
    errno.ETIMEDOUT,
}
# an error of Stirred that was raised inside a query is returned as text, with text of the library around it
_STIRRED_ERROR = re.compile(
    r"^(?:\w*Error:? ?)*(?P<what>[^\n]+)\n  why: (?P<why>[^\n]+)\n  fix: (?P<fix>[^\n]+)"
)


def find_reason(error: BaseException) -> tuple[str, str]:
    """Find in a fixed list why a file could not be read and how to fix it.

    >>> find_reason(OSError("corrupt deflate stream"))
    ('the compressed file is damaged', 'copy it again')
    """
    message = f"{type(error).__name__} {error}"
    for pattern, why, fix in _KNOWN_FAILURES:
        if re.search(pattern, message, flags=re.IGNORECASE):
            return why, fix
    return f"the reading library failed ({type(error).__name__})", "see: stirred data check census.toml"


def replace_error(error: BaseException, record_type: str) -> DataError:
    """Return the error to raise instead: Stirred's own restored, a library's without its message."""
    ours = _STIRRED_ERROR.match(str(error))
    if ours:
        return DataError(ours["what"], why=ours["why"], fix=ours["fix"])
    why, fix = find_reason(error)
    return DataError(f"cannot read the {record_type} records", why=why, fix=fix)


def find_system_error(error: BaseException) -> OSError | MemoryError | None:
    """Return the system's error without its path, where a library failed because the machine lacks something.

    >>> find_system_error(OSError("Too many open files (os error 24): /census/household.csv"))
    OSError(24, 'Too many open files')
    """
    if isinstance(error, MemoryError):
        return MemoryError()
    told = re.search(r"os error (\d+)|errno (\d+)", str(error), flags=re.IGNORECASE)
    number = error.errno if isinstance(error, OSError) else None
    number = number or (int(told[1] or told[2]) if told else 0)
    return OSError(number, os.strerror(number)) if number in _SYSTEM_ERRNOS else None


class redact_errors:  # noqa: N801 — used as a function in a with statement
    """Replace errors of the reading library inside the block by errors that show no value."""

    def __init__(self, record_type: str) -> None:
        self.record_type = record_type

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # an error of Stirred that is raised inside a query is returned as one long text
        flattened = isinstance(error, DataError) and "\n" in error.what
        library = isinstance(error, pl.exceptions.PolarsError | pa.ArrowException | OSError)
        # no Exception: a library that stops itself on a damaged file raises it
        library |= isinstance(error, pl.exceptions.PanicException)
        if error is not None and library and (system := find_system_error(error)) is not None:
            raise system from None
        if error is not None and (flattened or library):
            raise replace_error(error, self.record_type) from None
