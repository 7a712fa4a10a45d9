"""Inequality invariants: whether a table reaches a number, or another table, in each area."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stirred.errors import SpecificationError
from stirred.languages import Phrase
from stirred.spec.invariants.margins import Invariant, Margin, SupportsCounts

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class AtLeast(Invariant):
    r"""Whether one linear statistic reaches another in each area: $c(x) = 1[f(x) \le 0]$, $f$ = than − statistic.

    >>> print(AtLeast(Margin("household", ("block",)), 1))
    whether households by block are at least 1
    """

    statistic: Margin
    than: Margin | int = 1
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.than, bool) or (isinstance(self.than, int) and self.than < 1):
            raise SpecificationError(
                f"than={self.than} is no threshold",
                why="every count is at least 0, so nothing is decided below 1",
                fix="give than=1 or more",
            )
        if isinstance(self.than, Margin) and self.than.by != self.statistic.by:
            raise SpecificationError(
                "the two sides of an inequality invariant differ in their areas",
                why=f"{self.statistic.by} against {self.than.by}",
                fix="give both margins the same by=",
            )

    def needs(self) -> tuple[Margin, ...]:
        return (self.statistic, self.than) if isinstance(self.than, Margin) else (self.statistic,)

    def words(self) -> str:
        than = self.than.words() if isinstance(self.than, Margin) else self.than
        return self.label or Phrase("invariant.at_least", table=self.statistic.words(), than=than)

    def identity(self) -> str:
        than = self.than.identity() if isinstance(self.than, Margin) else self.than
        return f"AtLeast:{self.statistic.identity()}>={than}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        return tabulate_inequality(self, counts)

    def __str__(self) -> str:
        return self.words()


def tabulate_inequality(invariant: AtLeast, counts: SupportsCounts) -> "pa.Table":
    """Return the answers to the inequality by area; areas with the usual answer are left out.

    Compared with a number, an area without records fails, so the areas that reach the number are listed. Compared with a
    margin, an area without records holds, so the areas that fail are listed. The table says nothing else about the counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    by = list(invariant.statistic.by)
    left = _decode_columns(
        counts.counts(invariant.statistic.record_type, by, invariant.statistic.conditions() or None)
    )
    if not by:
        reached = _sum_counts(left) >= _read_threshold(invariant, counts)
        return pa.table({"holds": pa.array([reached])})
    if not isinstance(invariant.than, Margin):
        chosen = left.filter(pc.greater_equal(left["count"].cast(pa.int64()), invariant.than))
        return _list_areas(chosen, by, holds=True)
    right = _decode_columns(
        counts.counts(invariant.than.record_type, by, invariant.than.conditions() or None)
    )
    both = right.rename_columns([*by, "than"]).join(left, keys=by, join_type="left outer")
    missing = pc.less(pc.fill_null(both["count"].cast(pa.int64()), 0), both["than"].cast(pa.int64()))
    return _list_areas(both.filter(missing), by, holds=False)


def _decode_columns(table: "pa.Table") -> "pa.Table":
    """Return the table with dictionary columns decoded, because two files may code the same areas differently."""
    import pyarrow as pa

    columns = {
        name: table[name].cast(table.schema.field(name).type.value_type)
        if pa.types.is_dictionary(table.schema.field(name).type)
        else table[name]
        for name in table.column_names
    }
    return pa.table(columns)


def _sum_counts(table: "pa.Table") -> int:
    return sum(table["count"].to_pylist())


def _read_threshold(invariant: AtLeast, counts: SupportsCounts) -> int:
    if not isinstance(invariant.than, Margin):
        return invariant.than
    return _sum_counts(counts.counts(invariant.than.record_type, (), invariant.than.conditions() or None))


def _list_areas(table: "pa.Table", by: list[str], *, holds: bool) -> "pa.Table":
    import pyarrow as pa

    chosen = table.select(by).sort_by([(name, "ascending") for name in by])
    return chosen.append_column("holds", pa.array([holds] * chosen.num_rows, pa.bool_()))
