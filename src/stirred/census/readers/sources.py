"""Open the files or tables of a record type: find them, refuse absurd ones, and show no value in errors."""

import errno
import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.census.schema import Source
from stirred.errors import DataError, InputError, SchemaError, did_you_mean
from stirred.frames import frame_of
from stirred.roots import ADDRESS, require_names, require_readable

# Find the files that census.toml names, sorted, so that their order does not depend on the disk.


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


# Refuse files that would exhaust the machine, by what they declare and before their records are read.
#
# The limits are far above what any census needs; a file beyond them is damaged or made to do harm.

MAX_COLUMNS = 2_000
MAX_NAME_CHARACTERS = 1_000  # characters of a column's name
MAX_HEADER_BYTES = 1 << 20  # bytes of the first line of a text file
MAX_LINE_BYTES = 1 << 24  # bytes of any line
COMPRESSION_OF_ENDING = {".gz": "gzip", ".zst": "zstd"}


def require_columns(columns: Sequence[str], file: str) -> None:
    """Refuse more columns, or longer names of columns, than a census can have.

    >>> require_columns(["n" * 5000], "a.csv")
    Traceback (most recent call last):
    ...
    stirred.errors.DataError: a.csv does not look like records
      why: a column has a name of 5,000 characters; 1,000 are allowed
      fix: write only the columns of the census, under short names
    """
    longest = max(map(len, columns), default=0)
    if len(columns) > MAX_COLUMNS:
        why = f"it has {len(columns):,} columns; {MAX_COLUMNS:,} are allowed"
    elif longest > MAX_NAME_CHARACTERS:
        why = f"a column has a name of {longest:,} characters; {MAX_NAME_CHARACTERS:,} are allowed"
    else:
        return
    raise DataError(
        f"{file} does not look like records",
        why=why,
        fix="write only the columns of the census, under short names",
    )


def require_lines(path: Path) -> None:
    """Refuse a text file whose first line, or any other line, is longer than a record can be."""
    with path.open("rb") as raw:
        plain = path.suffix not in COMPRESSION_OF_ENDING
        stream = raw if plain else pa.CompressedInputStream(raw, COMPRESSION_OF_ENDING[path.suffix])
        try:
            length = 0  # of the line that the block before ends with
            while block := stream.read(MAX_LINE_BYTES // 4):
                first = block.find(b"\n")
                if length + (len(block) if first < 0 else first) > MAX_LINE_BYTES:
                    raise make_line_error(path.name, MAX_LINE_BYTES)
                length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(b"\n")
        except OSError:
            return  # a damaged archive: the reader of the records says so


def make_line_error(file: str, limit: int) -> DataError:
    """Return the error for a line that no record has."""
    return DataError(
        f"{file} is not a text file with one record per line",
        why=f"a line is longer than {limit:,} bytes",
        fix="check its line ends and quoting; lines end with a line feed",
    )


# Replace the messages of reading libraries by our own, which show no value of a record.

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


# Read tables in memory, from any library that narwhals or the Arrow C interface supports.


def to_lazy(frame: object) -> pl.LazyFrame:
    """Return a lazy frame of a table of any supported library, a dictionary of columns, or a list of rows.

    >>> to_lazy({"size": [1, 2]}).collect().height
    2
    """
    if isinstance(frame, pl.LazyFrame):
        return frame
    try:
        converted = frame.lazy() if isinstance(frame, pl.DataFrame) else _convert_frame(frame)
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError, OverflowError):
        # the libraries' messages show the value that does not fit
        raise DataError(
            f"cannot read the columns of a {type(frame).__name__}",
            why="a column mixes types, or the columns differ in length",
            fix="give every column one type and all columns one length",
        ) from None
    _refuse_missing_of_r(converted)
    return converted


R_BRIDGE = "rpytools"  # the module that reticulate loads into the Python inside R
R_MISSING_INTEGER = -(2**31)  # how R stores a missing integer; no census counts or codes by this number


def _refuse_missing_of_r(frame: pl.LazyFrame) -> None:
    """Refuse columns in which missing values of R have become values on the way to Python (reticulate).

    A missing integer arrives as a number. A missing logical arrives as True and cannot be told from one: so inside R
    no truth values are taken.
    """
    types = frame.collect_schema()
    whole = [name for name, dtype in types.items() if dtype in (pl.Int32, pl.Int64)]
    if whole:
        least = frame.select(pl.col(whole).min()).collect().row(0)
        lost = [name for name, low in zip(whole, least, strict=True) if low == R_MISSING_INTEGER]
        if lost:
            raise DataError(
                f"missing values of R in {', '.join(lost)} have become numbers",
                why=f"R stores a missing integer as {R_MISSING_INTEGER}, and so it arrived here",
                fix="stirred_census() of the R package; or give the column as numeric, or a file: write.csv(df, na = '')",
            )
    truths = [name for name, dtype in types.items() if dtype == pl.Boolean]
    if truths and R_BRIDGE in sys.modules:
        raise DataError(
            f"truth values of R cannot be taken over: {', '.join(truths)}",
            why="on the way from R to Python a missing one becomes True, which cannot be seen here",
            fix="stirred_census() of the R package; or give the column as a factor, or a file: write.csv(df, na = '')",
        )


def _convert_frame(frame: object) -> pl.LazyFrame:
    if isinstance(frame, Mapping):
        return pl.DataFrame(dict(frame)).lazy()
    if isinstance(frame, list | tuple) and _is_rows(frame):
        names = dict.fromkeys(name for row in frame for name in row)
        return pl.DataFrame({name: [row.get(name) for row in frame] for name in names}).lazy()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return _from_arrow(frame)
    import narwhals as nw  # here, because it takes a tenth of a second, and files need none of it

    try:
        native = nw.from_native(frame)  # type: ignore[call-overload]
    except TypeError:
        if hasattr(frame, "__arrow_c_stream__"):
            return _from_arrow(pa.table(frame))
        raise InputError(
            f"cannot read a table from {type(frame).__name__}",
            why="neither narwhals nor the Arrow interface supports it",
            fix="give an Arrow table: pa.table(...)",
        ) from None
    if isinstance(native, nw.LazyFrame):
        native = native.collect("pyarrow")
    return _from_arrow(native.to_arrow())


def is_table(value: object) -> bool:
    """Return whether a value is a table: a frame, a dictionary of columns, or a list of rows.

    >>> is_table({"size": [1, 2]}), is_table([{"size": 1}]), is_table([1, 2]), is_table(pl.Series([1]))
    (True, True, False, False)
    """
    if isinstance(value, pl.LazyFrame | pl.DataFrame | pa.Table | pa.RecordBatch | Mapping) or _is_rows(
        value
    ):
        return True
    import narwhals as nw

    native = nw.from_native(value, pass_through=True)
    return isinstance(native, nw.LazyFrame | nw.DataFrame)


def _is_rows(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _from_arrow(table: pa.Table) -> pl.LazyFrame:
    frame = frame_of(table)
    return frame.lazy()


# Choose the reader of a file by its format.

# format → module of stirred.census and its function (source, folder) -> LazyFrame; loaded only when used
FORMATS: dict[str, tuple[str, str]] = {
    "parquet": ("readers.parquet", "scan_parquet"),
    "arrow": ("readers.parquet", "scan_parquet"),
    "csv": ("readers.delimited", "scan_delimited"),
    "stat": ("readers.statistical", "scan_stat"),
    "duckdb": ("readers.database", "scan_database"),
    "xlsx": ("readers.workbook", "scan_workbook"),
    "ipums": ("readers.statistical", "scan_ipums"),
    "pl94": ("public_files", "scan_pl94"),
    "ppmf": ("public_files", "scan_ppmf"),
    "grf-c": ("bureau", "scan_grf"),
    "phsafe-units": ("bureau", "scan_phsafe"),
    "phsafe-persons": ("bureau", "scan_phsafe"),
    "mdf-units": ("bureau", "scan_mdf"),
    "mdf-persons": ("bureau", "scan_mdf"),
}
FORMAT_OF_ENDING: dict[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".gz": "csv",
    ".zst": "csv",
    ".sav": "stat",
    ".zsav": "stat",
    ".por": "stat",
    ".dta": "stat",
    ".sas7bdat": "stat",
    ".xpt": "stat",
    ".duckdb": "duckdb",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".pl": "pl94",
    ".zip": "pl94",
    ".dat": "ipums",
}


def find_format(source: Source, folder: Path) -> str:
    """Return the format a source is written in."""
    if source.format:
        if source.format not in FORMATS:
            raise SchemaError(
                f"Stirred cannot read the format {source.format}",
                why="this format is asked for",
                fix=did_you_mean(source.format, FORMATS),
            )
        return source.format
    if source.ddi:
        return "ipums"
    first = source.files[0]
    require_names(source.files, folder)
    path = folder / first
    if path.is_dir():
        return _find_folder_format(path)
    suffix = ".dat" if first.lower().endswith(".dat.gz") else Path(first).suffix.lower()
    if suffix not in FORMAT_OF_ENDING:
        raise SchemaError(
            f"cannot tell the format of {first}",
            why="its name has no known ending",
            fix=f"say its format (format in census.toml, --format of data describe): {', '.join(sorted(FORMATS))}",
        )
    return FORMAT_OF_ENDING[suffix]


def _find_folder_format(path: Path) -> str:
    for inner in sorted(path.rglob("*")):
        if (
            inner.is_file()
            and not inner.name.startswith((".", "_"))
            and inner.suffix.lower() in FORMAT_OF_ENDING
        ):
            return FORMAT_OF_ENDING[inner.suffix.lower()]
    return "parquet"


def open_source(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame over a record type's files."""
    if not source.files:
        raise SchemaError(
            "a record type has no files",
            why="its records are read from files",
            fix='add files = ["…"] to it, or use Census.of for tables in memory',
        )
    module, function = FORMATS[find_format(source, folder)]
    frame: pl.LazyFrame = getattr(importlib.import_module(f"stirred.census.{module}"), function)(
        source, folder
    )
    require_columns(frame.collect_schema().names(), source.files[0])
    return frame
