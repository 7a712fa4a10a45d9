"""How large the pages of a Parquet column become when they are unpacked, by their headers and without unpacking one.

A page header is a structure of Thrift's compact protocol: for each field a byte with the step to its number and its type,
then its value. Field 2 is the size when unpacked, field 3 the size in the file: https://github.com/apache/parquet-format.
"""

from typing import BinaryIO

import pyarrow.parquet as pq

MAX_PAGE_HEADER_BYTES = 1 << 16  # bytes of one header, with the smallest and largest value of its page
USUAL_PAGE_HEADER_BYTES = 256  # bytes that are enough for nearly every header
TRUE, FALSE, BYTE, DOUBLE, BINARY, STRUCT = 1, 2, 3, 7, 8, 12
THRIFT_INTEGER_KINDS = (4, 5, 6)
MAX_STRUCT_DEPTH = 8  # structures inside structures: a header has three


def find_pages(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return where the pages of one column of a row group begin and end in the file."""
    start = int(column.data_page_offset)
    if column.has_dictionary_page:
        start = min(start, column.dictionary_page_offset)
    return start, start + int(column.total_compressed_size)


def measure_pages(file: BinaryIO, start: int, end: int) -> tuple[int, int]:
    """Return the largest page and the sum of all pages between two places, in bytes; none raises ValueError."""
    largest = together = 0
    while start < end:
        fields, length = _read_page_header(file, start, end)
        size, stored = fields.get(2, -1), fields.get(3, -1)
        if size < 0 or stored < 0:
            raise ValueError("no page begins here")
        largest, together = max(largest, size), together + size
        start += length + stored
    return largest, together


def _read_page_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, int], int]:
    """Return the numbers of the structure that begins there, and its length."""
    for size in (USUAL_PAGE_HEADER_BYTES, MAX_PAGE_HEADER_BYTES):
        file.seek(start)
        try:
            return _read_struct(file.read(min(size, end - start)), 0, MAX_STRUCT_DEPTH)
        except IndexError:  # it is longer
            continue
    raise ValueError("a header is not complete")


def _read_struct(data: bytes, at: int, deep: int) -> tuple[dict[int, int], int]:
    if not deep:
        raise ValueError("structures are too deep")
    fields: dict[int, int] = {}
    field = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _read_signed(data, at)
        if kind in THRIFT_INTEGER_KINDS:
            fields[field], at = _read_signed(data, at)
        else:
            at = _skip_value(data, at, kind, deep)
    return fields, at + 1


def _skip_value(data: bytes, at: int, kind: int, deep: int) -> int:
    """Return the place after a value that is not asked for."""
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _read_varint(data, at)
        return at + length
    if kind == STRUCT:
        return _read_struct(data, at, deep - 1)[1]
    raise ValueError("a page header has no lists")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number is too long")


def _read_signed(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed number.

    >>> _read_signed(bytes([0xD0, 0x0F]), 0)
    (1000, 2)
    """
    value, at = _read_varint(data, at)
    return value >> 1 ^ -(value & 1), at
