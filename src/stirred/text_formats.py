"""Read TOML, JSON and CSV texts of any origin, and write TOML.

Texts that would exhaust the stack, the memory or the time are refused.

A text is bounded by what its parser would make of it, not by how its lines look: before it is parsed, its structure is
walked through once, in the parser's own terms (strings and comments are skipped as the parser skips them).
"""

import csv
import errno
import json
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from stirred.errors import InputError
from stirred.roots import require_possible, require_readable

MAX_TEXT_CHARACTERS = 64 << 20  # characters; the largest codebooks have a few million
MAX_TOML_DEPTH = 50  # tables in tables
MAX_JSON_DEPTH = 200  # lists and objects in each other; the largest specifications have about thirty
MAX_VALUES = 2_000_000  # keys and values of a text; each takes up to a kilobyte of memory while it is parsed
MAX_KEY_PARTS = (
    500_000  # parts of dotted keys and of headers of a TOML text, where each may be a table of its own
)
MAX_CSV_COLUMNS = 2_000  # of a CSV text
MAX_LINE_CHARACTERS = 1 << 20  # characters of a line of a CSV text
TOO_DEEP = "it is nested deeper than any file of this kind needs"
TOO_MANY = f"it has more than {MAX_VALUES:,} keys and values, or {MAX_KEY_PARTS:,} parts of keys"

_MARK = re.compile(r"""["'#.\[\]{}=,\n]""")
_BASIC = re.compile(r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"')
_LONG_BASIC = re.compile(r'[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"{3,5}', re.DOTALL)
_LITERAL = re.compile(r"[^'\n]*+'")
_LONG_LITERAL = re.compile(r"[^']*+(?:'(?!'')[^']*+)*+'{3,5}")
_JSON_MARK = re.compile(r'["\[\]{},:]')
_JSON_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class TomlError(ValueError):
    """The text is not TOML, or not one that a person would write; says why, with the line."""


def read_plain_text(path: Path, *, encoding: str = "utf-8") -> str:
    """Return the text of a plain file; a pipe, a device or a file without end is an error of the system."""
    require_plain(path)
    return path.read_bytes().decode(encoding)


def require_plain(path: Path) -> None:
    """Refuse what is no plain file, and one that is longer than any text of this kind, as an error of the system."""
    try:
        require_possible(path)
    except InputError as error:  # whoever reads the file says which setting named it
        raise OSError(errno.ENOENT, error.why) from None
    found = require_readable(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")
    if found.st_size > MAX_TEXT_CHARACTERS:
        raise OSError(errno.EFBIG, f"it is longer than {MAX_TEXT_CHARACTERS:,} bytes")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document in a text.

    >>> parse_toml("a = 1")
    {'a': 1}
    >>> parse_toml("a = " + "[" * 10_000)
    Traceback (most recent call last):
    ...
    stirred.text_formats.TomlError: it is nested deeper than any file of this kind needs
    >>> parse_toml('"="' + ".a" * 10_000 + " = 1")
    Traceback (most recent call last):
    ...
    stirred.text_formats.TomlError: it is nested deeper than any file of this kind needs
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise TomlError(f"it is longer than {MAX_TEXT_CHARACTERS:,} characters")
    # the parser sees a carriage return before a line feed as one line end
    _require_modest_toml(text)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except RecursionError:
        raise TomlError(TOO_DEEP) from None
    except ValueError:  # a whole number of thousands of digits
        raise TomlError("it has a number that is too long") from None
    _require_modest_depth(document)
    return document


def _require_modest_toml(text: str) -> None:
    """Refuse deep nesting, long dotted keys and too many values; a text that is no TOML is left to the parser."""
    dots = depth = values = parts = at = 0
    while found := _MARK.search(text, at):
        at, mark = found.end(), found[0]
        if mark == ".":
            dots += 1
            parts += 1
        elif mark in "\"'":
            ended = _string_end(text, at - 1, mark)
            if ended < 0:
                return
            at = ended
        elif mark == "#":
            at = text.find("\n", at)
            if at < 0:
                return
        else:
            dots = 0
            depth += (mark in "[{") - (mark in "]}")
            values += mark in "=,[{"
        if dots > MAX_TOML_DEPTH or depth > MAX_TOML_DEPTH:
            raise TomlError(TOO_DEEP)
        if values > MAX_VALUES or parts > MAX_KEY_PARTS:
            raise TomlError(TOO_MANY)


def _string_end(text: str, start: int, quote: str) -> int:
    """Return where the string that begins there ends; -1 where it does not, which is no TOML."""
    long = text.startswith(quote * 3, start)
    kinds = (_LONG_BASIC, _BASIC) if quote == '"' else (_LONG_LITERAL, _LITERAL)
    found = kinds[0].match(text, start + 3) if long else kinds[1].match(text, start + 1)
    return -1 if found is None else found.end()


def _require_modest_depth(document: object) -> None:
    """Refuse tables in tables that headers, dotted keys and inline tables make together."""
    layer = [document]
    for _ in range(MAX_TOML_DEPTH + 2):
        layer = [
            inner
            for value in layer
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not layer:
            return
    raise TomlError(TOO_DEEP)


def write_toml(value: object, *, padding: str = " ") -> str:
    """Return a value as TOML text, in one line; ``padding`` stands inside the braces of a table.

    >>> write_toml({"rent": "1/10"}), write_toml([["county"]]), write_toml(True), write_toml("two\\nlines")
    ('{ rent = "1/10" }', '[["county"]]', 'true', '"two\\\\nlines"')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (
            f"{write_toml_key(str(name))} = {write_toml(item, padding=padding)}"
            for name, item in value.items()
        )
        return f"{{{padding}{', '.join(pairs)}{padding}}}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(write_toml(item, padding=padding) for item in value)}]"
    return str(value)


def write_toml_key(name: str) -> str:
    """Return a key as TOML text, in quotation marks where it needs them.

    >>> write_toml_key("age"), write_toml_key("age of head")
    ('age', '"age of head"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else write_toml(name)


def parse_json(text: str, *, longest: int = MAX_TEXT_CHARACTERS, most_values: int = MAX_VALUES) -> Any:
    """Return the document in a JSON text; one that no file of this kind has is a ValueError.

    >>> parse_json('{"a": [1, "[["]}')
    {'a': [1, '[[']}
    >>> parse_json("[" * 300)
    Traceback (most recent call last):
    ...
    ValueError: it is nested deeper than any file of this kind needs
    """
    if len(text) > longest:
        raise ValueError(f"it is longer than {longest:,} characters")
    depth = values = at = 0
    while found := _JSON_MARK.search(text, at):
        at, mark = found.end(), found[0]
        if mark == '"':
            string = _JSON_STRING.match(text, at)
            if string is None:
                break
            at = string.end()
        else:
            depth += (mark in "[{") - (mark in "]}")
            values += mark not in "]}"
        if depth > MAX_JSON_DEPTH:
            raise ValueError(TOO_DEEP)
        if values > most_values:
            raise ValueError(f"it has more than {most_values:,} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


class CsvTable:
    """A CSV text with a header; more columns, or longer lines, than any table of codes has are a csv.Error.

    >>> import io
    >>> list(CsvTable(io.StringIO("a,b\\n1,2\\n")).rows())
    [{'a': '1', 'b': '2'}]
    """

    def __init__(
        self, lines: IO[str], *, delimiter: str = ",", quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL
    ) -> None:
        self._fields = csv.reader(_modest_lines(lines), delimiter=delimiter, quoting=quoting)
        self.header = next((row for row in self._fields if row), [])
        if len(self.header) > MAX_CSV_COLUMNS:
            raise csv.Error(f"it has {len(self.header):,} columns; {MAX_CSV_COLUMNS:,} are allowed")

    def rows(self) -> Iterator[dict[str | None, Any]]:
        """Yield each row by the names of the header; fields beyond it stand under None, missing ones are None."""
        for fields in self._fields:
            if fields:
                row: dict[str | None, Any] = dict(zip(self.header, fields, strict=False))
                row |= dict.fromkeys(self.header[len(fields) :])
                if len(fields) > len(self.header):
                    row[None] = fields[len(self.header) :]
                yield row


def _modest_lines(lines: IO[str]) -> Iterator[str]:
    """Yield the lines of a text, each of a bounded length."""
    while line := lines.readline(MAX_LINE_CHARACTERS + 1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise csv.Error(f"a line is longer than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def split_quoted(line: str, separator: str) -> list[str]:
    """Return the fields of one line of bounded length, some of which may stand between quotation marks.

    >>> split_quoted('"a, b",c', ",")
    ['a, b', 'c']
    """
    try:
        return next(csv.reader([line], delimiter=separator), [""])
    except csv.Error:
        return line.split(separator)
