"""Does a set of tables determine another? By elimination in whole numbers, on the matrix of 0 and 1."""

from collections.abc import Iterable, Sequence

from oracles.census import Record, Table


def rank(rows: Iterable[Sequence[int]]) -> int:
    """Elimination in whole numbers (Bareiss 1968: every division is exact); equal rows and columns count once."""
    once = sorted({tuple(row) for row in rows})
    columns = sorted({*zip(*once, strict=True)})
    left = [list(row) for row in zip(*columns, strict=True)]
    found, before = 0, 1
    for column in range(len(left[0]) if left else 0):
        pivot = next((i for i in range(found, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        top = left[found]
        by = top[column]
        for i in range(found + 1, len(left)):
            factor = left[i][column]
            left[i] = [(by * a - factor * b) // before for a, b in zip(left[i], top, strict=True)]
        found, before = found + 1, by
    return found


def rows(tables: Iterable[Table], names: tuple[str, ...], records: Sequence[Record]) -> list[list[int]]:
    """One row for each cell of each table: which records it counts."""
    found = []
    for table in tables:
        keys = [table.key(names, record) for record in records]
        found += [[int(key == cell) for key in keys] for cell in sorted({k for k in keys if k is not None})]
    return found


def determines(
    given: Sequence[Table], wanted: Table, names: tuple[str, ...], records: Sequence[Record]
) -> bool:
    """Whether every row of the wanted table is a combination of the given rows."""
    have = rows(given, names, records)
    return rank([*have, *rows([wanted], names, records)]) == rank(have)
