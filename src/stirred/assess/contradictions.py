"""Numbers that are published twice: the same quantity in two products, with the same value or with two.

The quantities stand here as data. Each has two sides; a side names a published table, which of its rows count, and what the
sums are by. Where two products disagree about a sum, their users have two answers to one question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from stirred.frames import frame_of

COUNT_COLUMN = "count"
ALL_ITERATIONS = "*"  # the iteration code of all persons or households


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Sums of a published table: rows where columns have one of these values, by the columns of ``by`` in their order.

    A cell that a ``complete`` table does not have is 0; elsewhere it may have been suppressed.
    """

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether the table counts released records, all of which it has."""
        return self.table.startswith(("pl-", "dhc-"))

    def sums(self, tables: Mapping[str, pa.Table]) -> pl.DataFrame | None:
        """Return the sums by ``by``, whose columns are numbered; None where a table or column is missing."""
        if self.table not in tables:
            return None
        frame = frame_of(tables[self.table])
        if not {*self.by, *self.where, COUNT_COLUMN} <= set(frame.columns):
            return None
        for name, values in self.where.items():
            frame = frame.filter(pl.col(name).cast(pl.String).is_in(list(values)))
        keys = [pl.col(name).cast(pl.String).alias(str(place)) for place, name in enumerate(self.by)]
        if not keys:
            return frame.select(pl.col(COUNT_COLUMN).sum()) if frame.height else None
        return frame.group_by(keys).agg(pl.col(COUNT_COLUMN).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One quantity that two tables of a release publish; ``name`` is a key of the catalog of words."""

    name: str
    first: Side
    second: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """How many numbers of a quantity stand in both tables, and how many of them differ."""

    quantity: Quantity
    compared: int
    differ: int
    largest: float  # the largest difference


def _area(kind: str, **more: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"region_type": (kind,), **more}


def _everyone(kind: str, **more: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return _area(kind, iteration=(ALL_ITERATIONS,), **more)


def _tenure(name: str, levels: tuple[str, ...], cell: str) -> Quantity:
    return Quantity(
        name=name,
        first=Side(table="dhc-units-by-state", by=("state",), where={"tenvac": levels}),
        second=Side(table="ph8_denom", by=("region",), where=_everyone("STATE", ph8_denom_cell=(cell,))),
    )


def _age(name: str, level: str, cell: str) -> Quantity:
    where = {"gq_type": ("0",), "votingage": (level,)}
    return Quantity(
        name=name,
        first=Side(table="pl-persons-by-state", by=("state",), where=where),
        second=Side(table="ph1_num", by=("region",), where=_everyone("STATE", ph1_num_cell=(cell,))),
    )


def _nation(name: str, table: str, *by: str) -> Quantity:
    """Return the quantity of the nation and the sum of the states."""
    total = {f"{table}_cell": ("0",)} if table in ("t3", "t4") else {}
    return Quantity(
        name=name,
        first=Side(table=table, by=by, where={"region_type": ("USA",), **total}),
        second=Side(table=table, by=by, where={"region_type": ("STATE",), **total}),
    )


_GROUP_COLUMNS = ("region_type", "region", "iteration")
OCCUPIED_CODES = ("0", "1", "2")  # of tenvac
QUANTITIES = (
    Quantity(
        name="persons_by_state",
        first=Side(table="pl-persons-by-state", by=("state",)),
        second=Side(table="dhc-persons-by-state", by=("state",)),
    ),
    Quantity(
        name="persons_by_county_and_race",
        first=Side(table="pl-persons-by-county", by=("county", "hispanic", "race")),
        second=Side(table="dhc-persons-by-county", by=("county", "hispanic", "race")),
    ),
    Quantity(
        name="occupied_units_by_county",
        first=Side(table="pl-units-by-county", by=("county",), where={"h1": ("1",)}),
        second=Side(table="dhc-units-by-county", by=("county",), where={"tenvac": OCCUPIED_CODES}),
    ),
    Quantity(
        name="households_by_state",
        first=Side(table="dhc-units-by-state", by=("state",), where={"tenvac": OCCUPIED_CODES}),
        second=Side(table="ph1_denom", by=("region",), where=_everyone("STATE")),
    ),
    _tenure("owners_by_state", ("0", "1"), "2"),
    _tenure("renters_by_state", ("2",), "3"),
    _age("minors_in_households", "0", "2"),
    _age("adults_in_households", "1", "3"),
    Quantity(
        name="persons_in_households",
        first=Side(table="ph1_num", by=_GROUP_COLUMNS),
        second=Side(table="ph7", by=_GROUP_COLUMNS),
    ),
    Quantity(
        name="persons_by_couple",
        first=Side(table="ph2", by=("region_type", "region")),
        second=Side(table="ph1_num", by=("region_type", "region"), where={"iteration": (ALL_ITERATIONS,)}),
    ),
    Quantity(
        name="minors_by_relationship",
        first=Side(table="ph3", by=("region_type", "region"), where={"iteration": (ALL_ITERATIONS,)}),
        second=Side(
            table="ph1_num",
            by=("region_type", "region"),
            where={"iteration": (ALL_ITERATIONS,), "ph1_num_cell": ("2",)},
        ),
    ),
    Quantity(
        name="households_by_tenure",
        first=Side(table="ph1_denom", by=_GROUP_COLUMNS),
        second=Side(table="ph8_denom", by=_GROUP_COLUMNS),
    ),
    Quantity(
        name="household_groups",
        first=Side(table="t3", by=_GROUP_COLUMNS, where={"t3_cell": ("0",)}),
        second=Side(table="t4", by=_GROUP_COLUMNS, where={"t4_cell": ("0",)}),
    ),
    Quantity(
        name="groups_and_their_parts",
        first=Side(table="t1", by=_GROUP_COLUMNS),
        second=Side(table="t2", by=_GROUP_COLUMNS, where={"sex": ("1", "2"), "age_start": ("*",)}),
    ),
    _nation("groups_of_the_nation", "t1", "iteration"),
    _nation("household_types_of_the_nation", "t3", "iteration"),
    _nation("tenures_of_the_nation", "t4", "iteration"),
    _nation("persons_of_the_nation", "ph1_num", "iteration", "ph1_num_cell"),
)


def find_contradictions(
    tables: Mapping[str, pa.Table], quantities: Sequence[Quantity] = QUANTITIES
) -> tuple[Contradiction, ...]:
    """Return every quantity that two tables publish, with how many of its numbers have two values.

    >>> one = pa.table({"state": ["1", "2"], "count": [5, 6]})
    >>> two = pa.table({"state": ["1", "2"], "count": [5, 7]})
    >>> persons = Quantity(name="p", first=Side(table="a", by=("state",)), second=Side(table="b", by=("state",)))
    >>> [(found.compared, found.differ) for found in find_contradictions({"a": one, "b": two}, [persons])]
    [(2, 1)]
    """
    found = []
    for quantity in quantities:
        first, second = quantity.first.sums(tables), quantity.second.sums(tables)
        if first is None or second is None:
            continue
        keys = [name for name in first.columns if name != COUNT_COLUMN]
        both = _pair_numbers(first, second, keys, quantity)
        if both.is_empty():
            continue
        apart = (both[COUNT_COLUMN].cast(pl.Float64) - both[f"{COUNT_COLUMN}_"].cast(pl.Float64)).abs()
        found.append(
            Contradiction(
                quantity=quantity,
                compared=both.height,
                differ=int((apart > 0).sum()),
                largest=float(str(apart.max())),
            )
        )
    return tuple(found)


def _pair_numbers(
    first: pl.DataFrame, second: pl.DataFrame, keys: Sequence[str], quantity: Quantity
) -> pl.DataFrame:
    """Return the numbers that stand on both sides."""
    other = f"{COUNT_COLUMN}_"
    if not keys:
        return pl.concat([first, second.rename({COUNT_COLUMN: other})], how="horizontal")
    both = first.join(second, on=keys, how="full", suffix="_", coalesce=True)
    for name, side in ((COUNT_COLUMN, quantity.first), (other, quantity.second)):
        if side.complete:
            both = both.with_columns(pl.col(name).fill_null(0))
    return both.drop_nulls()
