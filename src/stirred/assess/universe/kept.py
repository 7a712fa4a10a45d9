"""Which of a list of candidate invariants hold between two files or tables: what a release kept, and what it broke."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from stirred.errors import InputError
from stirred.frames import arrow_of, frame_of
from stirred.spec.multiverse import Invariant, SupportsCounts

COUNT_COLUMN = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate: whether all its numbers agree, how many differ, and by how much altogether (None: not numbers)."""

    invariant: Invariant
    numbers: int
    differ: int
    total: int | None

    @property
    def holds(self) -> bool:
        """Return whether every number agrees, as an invariant must in each release."""
        return self.differ == 0


def check_candidates(
    candidates: Iterable[Invariant], truth: SupportsCounts, released: SupportsCounts
) -> tuple[Candidate, ...]:
    """Hold each candidate against the truth and a release: a difference shows that it is no invariant of the release.

    >>> from stirred.spec import Margin
    >>> truth = CountTables.of(("person", {"block": ["a", "b"], "count": [3, 2]}))
    >>> other = CountTables.of(("person", {"block": ["a", "b"], "count": [4, 1]}))
    >>> [found.differ for found in check_candidates([Margin("person"), Margin("person", ("block",))], truth, other)]
    [0, 2]
    """
    return tuple(_check_candidate(candidate, truth, released) for candidate in candidates)


def _check_candidate(candidate: Invariant, truth: SupportsCounts, released: SupportsCounts) -> Candidate:
    first, second = (_as_text(candidate.tabulate(source)) for source in (truth, released))
    by = [name for name in first.columns if name != COUNT_COLUMN]
    if COUNT_COLUMN not in first.columns:  # a list of areas for which an inequality holds
        differ = first.join(second, on=by, how="anti", nulls_equal=True).height
        differ += second.join(first, on=by, how="anti", nulls_equal=True).height
        listed = pl.concat([first.select(by), second.select(by)]).unique().height
        return Candidate(invariant=candidate, numbers=listed, differ=differ, total=None)
    if not by:
        gap = int(first[COUNT_COLUMN].sum()) - int(second[COUNT_COLUMN].sum())
        return Candidate(invariant=candidate, numbers=1, differ=int(gap != 0), total=abs(gap))
    both = first.join(second, on=by, how="full", coalesce=True, nulls_equal=True, suffix="_released")
    gaps = both.select(
        (pl.col(COUNT_COLUMN).fill_null(0) - pl.col(f"{COUNT_COLUMN}_released").fill_null(0))
        .abs()
        .alias("gap")
    )["gap"]
    return Candidate(
        invariant=candidate, numbers=both.height, differ=int((gaps != 0).sum()), total=int(gaps.sum())
    )


def _as_text(table: pa.Table) -> pl.DataFrame:
    """Return values as text, because two files may code the same areas differently."""
    frame = frame_of(table)
    return frame.with_columns(
        pl.col(COUNT_COLUMN).cast(pl.Int64) if name == COUNT_COLUMN else pl.col(name).cast(pl.String)
        for name in frame.columns
    )


@dataclass(frozen=True, slots=True)
class CountTables:
    """Published tables of counts that answer for every margin they contain, as a census does.

    Areas that a finer area determines are given as columns of the table, as in a file of blocks with their county.
    """

    tables: tuple[tuple[str, pl.DataFrame], ...]  # the record type, and columns with their count

    @staticmethod
    def of(*tables: "tuple[str, pl.DataFrame | Mapping[str, Sequence[object]]]") -> "CountTables":
        """Build count tables, each with the record type that it counts."""
        found = []
        for record_type, given in tables:
            frame = given if isinstance(given, pl.DataFrame) else pl.DataFrame(dict(given))
            if COUNT_COLUMN not in frame.columns:
                raise InputError(
                    "a table of counts has no column count",
                    why=f"its columns are {', '.join(frame.columns)}",
                    fix='rename the column of numbers: frame.rename({"P0010001": "count"})',
                )
            found.append((record_type, frame))
        return CountTables(tuple(found))

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        """Return the counts by variables, from the smallest table that has them, without cells of zero."""
        needed = {*by, *(where or {})}
        for kind, frame in sorted(self.tables, key=lambda item: item[1].width):
            if kind == record_type and needed <= {*frame.columns}:
                break
        else:
            raise InputError(
                f"no published table counts {record_type} records by {', '.join(sorted(needed)) or 'nothing'}",
                why="each question is answered from one table",
                fix="give a table that has all these variables",
            )
        for name, values in (where or {}).items():
            frame = frame.filter(pl.col(name).cast(pl.String).is_in([str(value) for value in values]))
        total = pl.col(COUNT_COLUMN).sum().cast(pl.Int64)
        if not by:
            return arrow_of(frame.select(total))
        found = frame.group_by(list(by)).agg(total).filter(pl.col(COUNT_COLUMN) != 0).sort(list(by))
        return arrow_of(found)
