"""What the reading libraries say, told again without any value of a record."""

import re

from stirred.errors import DataError

# (what the library's message contains, what we say, what to do); the library's own words may hold values
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"parquet|file out of specification|thrift|magic|footer",
        "the file is no complete Parquet file",
        "copy or write it again",
    ),
    (r"ipc|flatbuffer|arrow file", "the file is no complete Arrow file", "copy or write it again"),
    (
        r"found more fields|ragged|too many fields|number of fields",
        "a line has more fields than the header",
        "check the separator and quoting",
    ),
    (r"invalid utf-?8|utf8", "the file is not UTF-8 text", 'set encoding = "latin1" for the record type'),
    (r"no such file|not found|os error 2", "a file is missing", "check files in census.toml"),
    (r"permission", "a file may not be opened", "check the permissions"),
    (r"empty csv|no data", "the file is empty", "check files in census.toml"),
    (
        r"schemaerror|extra columns|schema mismatch|dtype|data type mismatch",
        "the files differ in their columns or types",
        "give all files of a record type the same columns",
    ),
)
_OURS = re.compile(
    r"column (?P<column>[^:\n]+): (?P<bad>\d+) values of a batch are not (?P<kind>a number|text)"
)


def reason(error: BaseException) -> tuple[str, str]:
    """Why a file could not be read and what to do, from a fixed list."""
    message = f"{type(error).__name__} {error}"
    ours = _OURS.search(message)
    if ours:
        return (
            f"column {ours['column']} holds values that are not {ours['kind']}",
            "see: stirred data check census.toml",
        )
    for pattern, why, fix in _KNOWN:
        if re.search(pattern, message, flags=re.IGNORECASE):
            return why, fix
    return f"the reading library gave up ({type(error).__name__})", "see: stirred data check census.toml"


def explain(error: BaseException, record_type: str) -> DataError:
    """The error to raise in its place."""
    why, fix = reason(error)
    return DataError(f"cannot read the {record_type} records", why=why, fix=fix)
