"""How large the pages of a Parquet column become when they are unpacked, by their headers and without unpacking one.

A page header is a structure of Thrift's compact protocol: for each field a byte with the step to its number and its type,
then its value. Field 2 is the size when unpacked, field 3 the size in the file: https://github.com/apache/parquet-format.
"""

from typing import BinaryIO

import pyarrow.parquet as pq

HEADER = 1 << 16  # bytes of one header, with the smallest and largest value of its page
USUAL = 256  # bytes that are enough for nearly every header
TRUE, FALSE, BYTE, DOUBLE, BINARY, STRUCT = 1, 2, 3, 7, 8, 12
INTEGERS = (4, 5, 6)
DEEP = 8  # structures inside structures: a header has three


def place(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where the pages of one column of a row group begin and end in the file."""
    start = int(column.data_page_offset)
    if column.has_dictionary_page:
        start = min(start, column.dictionary_page_offset)
    return start, start + int(column.total_compressed_size)


def unpacked(file: BinaryIO, start: int, end: int) -> tuple[int, int]:
    """The largest page between two places of a file, and all of them together, in bytes; ValueError where there are none."""
    largest = together = 0
    while start < end:
        fields, length = _header(file, start, end)
        size, stored = fields.get(2, -1), fields.get(3, -1)
        if size < 0 or stored < 0:
            raise ValueError("no page begins here")
        largest, together = max(largest, size), together + size
        start += length + stored
    return largest, together


def _header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, int], int]:
    """The numbers of the structure that begins there, and its length."""
    for size in (USUAL, HEADER):
        file.seek(start)
        try:
            return _struct(file.read(min(size, end - start)), 0, DEEP)
        except IndexError:  # it is longer
            continue
    raise ValueError("a header is not complete")


def _struct(data: bytes, at: int, deep: int) -> tuple[dict[int, int], int]:
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
            field, at = _number(data, at)
        if kind in INTEGERS:
            fields[field], at = _number(data, at)
        else:
            at = _after(data, at, kind, deep)
    return fields, at + 1


def _after(data: bytes, at: int, kind: int, deep: int) -> int:
    """The place after a value that is not asked for."""
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == STRUCT:
        return _struct(data, at, deep - 1)[1]
    raise ValueError("a page header has no lists")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number is too long")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A signed number.

    >>> _number(bytes([0xD0, 0x0F]), 0)
    (1000, 2)
    """
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at
