"""Estimate the memory of a swap from counts and types, before records are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from stirred.engine import Engine
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census import Census

OVERHEAD_BYTES = (
    32  # bytes a record in memory beside its own columns: identifiers, strata, order, swapped columns
)
TEXT_BYTES = 16  # bytes of a text when it is exchanged
TEXT_ID_BYTES = 64  # bytes more in memory where identifiers are texts, all of them different
MAX_RECORDS_PER_PART = 1 << 25  # records of a part: Arrow counts the bytes of a column of text in 32 bits
CODE_BYTES = 4  # bytes of a text in memory, where it is a position in a list of values


@dataclass(frozen=True, slots=True)
class Size:
    """The bytes of all records in memory, and of records and linked records in an exchange, with working space."""

    memory: int
    homes: int
    people: int
    rows: int  # of the record type that has most
    widths: tuple[
        int, ...
    ]  # bytes of one record when it is exchanged, of the swapped type and of each linked one

    def count_parts(self, engine: Engine, size: int) -> int:
        """Return the number of parts for that many bytes, enough that text columns do not overflow."""
        return max(engine.parts_for(size), -(-self.rows // MAX_RECORDS_PER_PART))

    def count_published_parts(self, engine: Engine, released: Sequence[int]) -> int:
        """Return the number of parts of released records, from their numbers, which are invariants."""
        size = sum(width * rows for width, rows in zip(self.widths, released, strict=True))
        return max(engine.parts_for(size), -(-max(released) // MAX_RECORDS_PER_PART))


def estimate_size(census: "Census", roles: Roles) -> Size:
    """Estimate the size from the number of records and the width of their columns."""
    rows = census.count(roles.record_type)
    kind = census.scan(roles.record_type).collect_schema().get(roles.identifier)
    named = TEXT_ID_BYTES if kind == pl.String else 0
    homes = rows * (
        _row_bytes(census, roles.record_type, roles.columns_read, CODE_BYTES) + OVERHEAD_BYTES + named
    )
    widths = [_row_bytes(census, roles.record_type, roles.columns_read, TEXT_BYTES) + OVERHEAD_BYTES]
    along, people, most = 0, 0, rows
    for record_type, variables in roles.members:
        names = [census.schema.record(record_type).household, *variables]
        members = census.count(record_type)
        most = max(most, members)
        # members lie in memory in whole words
        along += members * (
            8 * (-(-_row_bytes(census, record_type, variables, CODE_BYTES) // 8)) + CODE_BYTES
        )
        widths.append(_row_bytes(census, record_type, names, TEXT_BYTES) + OVERHEAD_BYTES)
        people += members * widths[-1]
    return Size(memory=homes + along, homes=rows * widths[0], people=people, rows=most, widths=tuple(widths))


def _row_bytes(census: "Census", record_type: str, names: Sequence[str], text: int) -> int:
    kinds = census.scan(record_type).collect_schema()
    return sum(_value_bytes(kinds.get(name), text) for name in names)


def _value_bytes(kind: pl.DataType | None, text: int) -> int:
    if kind is None:
        return 8  # a column of another record type, not looked up for this
    if kind.is_integer():
        return {8: 1, 16: 2, 32: 4}.get(int("".join(filter(str.isdigit, str(kind)))), 8)
    return text if kind in (pl.String, pl.Categorical, pl.Enum) else 8
