"""The universe of one record type in a form that can be counted: the exact tables, and the cells of a census in them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from stirred.assess.universe.bounds import Shown, find_separators, keep_maximal
from stirred.census import Census
from stirred.errors import InputError, did_you_mean
from stirred.frames import collect_frame
from stirred.spec import Margin, Multiverse
from stirred.spec.multiverse import AtLeast, Custom

MEMBERS_COLUMN = "the members"  # stands for all that is recorded about the members of a household
COUNT_COLUMN = "count"
CHOICES_COLUMN = "choices"  # in how many ways the variables that no table shows can be filled in


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The exact tables of one record type, by the variables they show, and the cells that occur in a census.

    ``fixed`` records are published exactly with all their variables, and are left out of the cells. ``shared`` is None where
    the tables are not decomposable. ``combinations`` is the number of values that a record could have if nothing were exact.
    """

    record_type: str
    tables: tuple[Shown, ...]
    shared: tuple[Shown, ...] | None
    cells: pl.DataFrame  # the variables of the tables, COUNT and CHOICES
    fixed: int
    combinations: float
    notes: tuple[str, ...]

    @property
    def records(self) -> int:
        """Return how many records the cells count."""
        return int(self.cells[COUNT_COLUMN].sum())

    @property
    def has_free_variables(self) -> bool:
        """Return whether some variable stands in no exact table."""
        return bool((self.cells[CHOICES_COLUMN] > 1).any())

    def margin(self, shown: Shown) -> pl.DataFrame:
        """Return the counts by some of the variables."""
        if not shown:
            return self.cells.select(pl.col(COUNT_COLUMN).sum())
        return self.cells.group_by(sorted(shown)).agg(pl.col(COUNT_COLUMN).sum()).sort(sorted(shown))


def build_shape(
    multiverse: Multiverse, census: Census, record_type: str, *, variables: Iterable[str] | None = None
) -> Shape:
    """Build the shape of a census in a multiverse; ``variables`` are by default those of the tables.

    Inequalities and tables of a part of the records are left out, so that the universe is counted as too large, never as too
    small; the notes say so.
    """
    record = census.schema.record(record_type)
    margins, notes, members = list[Margin](), list[str](), list[str]()
    for invariant in multiverse:
        if isinstance(invariant, AtLeast):
            notes.append(f"left out (an inequality): {invariant}")
        for margin in invariant.needs() if not isinstance(invariant, AtLeast) else ():
            if margin.record_type != record_type:
                continue
            own = Margin(record_type, [v for v in margin.by if v != record.id], margin.where)
            if isinstance(invariant, Custom) and record.id in margin.by:
                linked = [m for m in invariant.needs() if m.record_type != record_type]
                members = [v for m in linked for v in m.by] or members
                own = Margin(record_type, (*own.by, MEMBERS_COLUMN), margin.where)
            margins.append(own)
    known = {*census.columns(record_type), MEMBERS_COLUMN}
    if record.linked_to:
        known |= {*census.columns(record.linked_to)}
    lacking = sorted({name for m in margins for name in (*m.by, *m.conditions())} - known)
    if lacking:
        raise InputError(
            f"the census has no {record_type} variable {lacking[0]}",
            why="an invariant is a table of it",
            fix=did_you_mean(lacking[0], known),
        )
    limits = {m.where for m in margins}
    if margins and len(limits) == 1 and None not in limits:
        (only,) = limits  # all that is known is about one part of the records
        margins = [Margin(record_type, m.by) for m in margins]
    else:
        only = None
    limited = Margin(record_type, (), only)
    whole = [m for m in margins if m.where is None]
    spine = [level for level in census.schema.spine if level in known]
    named = {*(v for m in whole for v in m.by)}
    wanted = sorted({*named, *(v for v in variables or () if v in known)} or {*spine[-1:]})
    tables = keep_maximal([_close_variables(census, record_type, m.by) for m in whole] or [frozenset()])
    partial = [m for m in margins if m.where is not None]
    full = [
        m
        for m in partial
        if {*wanted} - {MEMBERS_COLUMN} <= _close_variables(census, record_type, (*m.by, *m.conditions()))
    ]
    notes += [f"left out (it counts a part of the records): {m}" for m in partial if m not in full]
    frame = _records(
        census,
        record_type,
        [*wanted, *spine, *(v for m in (*full, limited) for v in m.conditions())],
        members,
    )
    if only is not None:
        frame = frame.filter(_meets(limited))
    before = frame.height
    for margin in full:
        frame = frame.filter(~_meets(margin))
    return _count_cells(census, limited, frame, tables, wanted, before - frame.height, notes)


def _count_cells(
    census: Census,
    limited: Margin,
    frame: pl.DataFrame,
    tables: Sequence[Shown],
    wanted: Sequence[str],
    fixed: int,
    notes: Sequence[str],
) -> Shape:
    covered = frozenset[str]().union(*tables) & {*frame.columns}
    open_ = [name for name in wanted if name not in covered]
    choices = pl.lit(1.0)
    spine = [level for level in census.schema.spine if level in frame.columns]
    areas = [level for level in spine if level in open_]
    if areas:
        finest, above = areas[-1], [level for level in spine if level in covered]
        unique = frame.select([*above[-1:], finest]).unique()
        if above:
            frame = frame.join(
                unique.group_by(above[-1]).len("areas"), on=above[-1], how="left", nulls_equal=True
            )
        else:
            frame = frame.with_columns(pl.lit(unique.height).alias("areas"))
        choices = pl.col("areas").cast(pl.Float64)
    for name in open_:
        if name not in areas:
            choices = choices * _levels(census, limited, name, frame)
    by = sorted(covered)
    cells = frame.with_columns(choices.alias(CHOICES_COLUMN))
    cells = (
        cells.group_by(by)
        .agg(pl.len().cast(pl.Int64).alias(COUNT_COLUMN), pl.col(CHOICES_COLUMN).first())
        .sort(by)
        if by
        else cells.select(pl.len().cast(pl.Int64).alias(COUNT_COLUMN), pl.col(CHOICES_COLUMN).max())
    )
    combinations = 1.0
    for name in wanted:
        if name not in spine:
            combinations *= _levels(census, limited, name, frame)
    placed = [level for level in wanted if level in spine]
    if placed:
        combinations *= frame[max(placed, key=spine.index)].n_unique()
    shown = keep_maximal([table & covered for table in tables])
    shared = find_separators(shown)
    return Shape(
        record_type=limited.record_type,
        tables=tuple(shown),
        shared=None if shared is None else tuple(shared),
        cells=cells,
        fixed=fixed,
        combinations=combinations,
        notes=tuple(notes),
    )


def _close_variables(census: Census, record_type: str, names: Iterable[str]) -> Shown:
    """Return the variables of a table with those they determine, such as the county of a block."""
    return census.domain.closure(record_type, frozenset(names))


def _levels(census: Census, limited: Margin, name: str, frame: pl.DataFrame) -> float:
    """Return how many levels a variable has: of the common restriction, of the schema, or of the data."""
    if name in limited.conditions():
        return float(len(limited.conditions()[name]))
    record_type = limited.record_type
    for known in census.schema.records:
        if known.name == record_type and name in known.names and known.variable(name).level_count:
            return float(known.variable(name).level_count or 1)
    return float(max(frame[name].n_unique(), 1))


def _meets(margin: Margin) -> pl.Expr:
    found = pl.lit(True)
    for name, values in margin.conditions().items():
        found = found & pl.col(name).cast(pl.String).is_in(list(values)).fill_null(False)
    return found


def _records(
    census: Census, record_type: str, columns: Sequence[str], members: Sequence[str]
) -> pl.DataFrame:
    """Return the records with the columns of the tables, and a hash of their members where a table needs it."""
    record = census.schema.record(record_type)
    wanted = [name for name in dict.fromkeys(columns) if name != MEMBERS_COLUMN]
    if MEMBERS_COLUMN not in columns:
        return collect_frame(census.scan(record_type, wanted))
    frame = collect_frame(census.scan(record_type, [record.id, *wanted]))
    linked = [r for r in census.schema.records if r.linked_to == record_type]
    parts = []
    for number, other in enumerate(linked):
        own = [
            name
            for name in census.columns(other.name)
            if name in members and name not in (other.id, other.household)
        ]
        people = collect_frame(census.scan(other.name, [other.household, *own]))
        # a sum of hashes does not depend on the order of the people of a home; sums wrap around, as hashes may
        each = people.select(
            pl.col(other.household).alias(record.id),
            (pl.struct(own).hash(seed=0) if own else pl.lit(1, pl.UInt64))
            .reinterpret(signed=True)
            .alias("person"),
        )
        together = each.group_by(record.id).agg(
            pl.col("person").sum().alias(f"sum {number}"), pl.len().alias(f"people {number}")
        )
        frame = frame.join(together, on=record.id, how="left")
        parts += [f"sum {number}", f"people {number}"]
    told = pl.struct(pl.col(parts).fill_null(0)).hash(seed=0) if parts else pl.lit(0, pl.UInt64)
    return frame.with_columns(told.alias(MEMBERS_COLUMN)).drop(record.id, *parts)
