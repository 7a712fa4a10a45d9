"""Files that are uploaded: written to the folder of the workbench while they arrive, and never more than is allowed."""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from stirred._support import is_file_name
from stirred.web.security import RequestRefused, Session

ENDINGS = (
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".toml",
    ".xml",
    ".gz",
    ".sav",
    ".xlsx",
    ".dta",
    ".json",
    ".geojson",
    ".dat",
    ".duckdb",
)
MAX_FILES = 200
MAX_FIELD_BYTES = 4096  # bytes of a field that is no file


@dataclass(slots=True)
class Upload:
    """A form with files that is being read; the token comes first, before any byte is written."""

    folder: Path
    session: Session
    most: int
    admitted: bool = False
    written: int = 0
    files: dict[str, Path] = field(default_factory=dict)  # where each one lies until it gets its name
    _header: bytearray = field(default_factory=bytearray)
    _value: bytearray = field(default_factory=bytearray)
    _headers: dict[str, bytes] = field(default_factory=dict)
    _text: bytearray = field(default_factory=bytearray)
    _name: str = ""
    _file: int | None = None

    async def read(self, request: Request) -> dict[str, Path]:
        """Read the whole form; return where the files lie by the names they shall get. Nothing is left after an error."""
        said = request.headers.get("content-length", "")
        if said.isdigit() and int(said) > self.most + MAX_FIELD_BYTES:
            raise self._too_large()
        _, options = parse_options_header(request.headers.get("content-type", ""))
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise RequestRefused(400, "This form cannot be read.")
        parser = MultipartParser(boundary, self._callbacks())  # type: ignore[arg-type]
        taken = 0
        try:
            async for chunk in request.stream():
                taken += len(chunk)
                if taken > self.most + MAX_FIELD_BYTES * 4:
                    raise self._too_large()
                parser.write(chunk)
            parser.finalize()
        except FormParserError:
            self.undo()
            raise RequestRefused(400, "This form cannot be read.") from None
        except BaseException:
            self.undo()
            raise
        return self.files

    def _too_large(self) -> RequestRefused:
        return RequestRefused(
            413,
            f"These files have more than {self.most:,} bytes: name their folder instead, "
            "or start with --max-upload.",
        )

    def _callbacks(self) -> Mapping[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._header.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self._end,
        }

    def _begin(self) -> None:
        self._headers.clear()
        self._text.clear()
        self._name = ""

    def _header_end(self) -> None:
        self._headers[bytes(self._header).decode("latin-1").lower()] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            return
        if not self.admitted:
            raise RequestRefused(
                403, "This form is not one of this workbench, or it is too old: load the page again."
            )
        given = options[b"filename"].decode("utf-8", "replace")
        if not given:
            return  # no file was chosen
        name = file_name(given)
        if len(self.files) >= MAX_FILES or name in self.files:
            raise RequestRefused(400, "There are too many files, or two have the same name.")
        place = self.folder / f".{secrets.token_hex(8)}.part"  # no other tab has this name
        self._file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self.files[name] = place

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self.written += end - start
            if self.written > self.most:
                raise self._too_large()
            view = memoryview(data)[start:end]
            while view:
                view = view[os.write(self._file, view) :]
        else:
            self._text += data[start:end]
            if len(self._text) > MAX_FIELD_BYTES:
                raise RequestRefused(413, "A field of this form is too long.")

    def _end(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        elif self._name == "csrf":
            self.admitted = self.session.is_form(self._text.decode("utf-8", "replace"))

    def undo(self) -> None:
        """Delete the files that have no name yet."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        for place in self.files.values():
            place.unlink(missing_ok=True)


def file_name(given: str) -> str:
    """Return the last part of a name that a browser sent, if a file may have it; ignore its folder.

    >>> file_name("C:\\\\data\\\\household.csv")
    'household.csv'
    """
    name = re.split(r"[/\\]", given)[-1]
    plain = all(is_file_name(part) for part in name.split("."))
    if not plain or not name.lower().endswith(ENDINGS):
        raise RequestRefused(
            400, "A file has a name that is not taken here: use letters, digits, hyphens, and a known ending."
        )
    return name
