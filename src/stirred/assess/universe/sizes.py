"""Compute the size of the universe of one record type: its exact tables, its cells and its logarithm."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.universe.bounds import (
    Shown,
    find_separators,
    keep_maximal,
    propagate_bounds,
    tighten_bounds,
)
from stirred.assess.universe.counting import (
    MAX_MULTIPLICATIONS,
    MIN_SAMPLES,
    SampledCount,
    count_tables,
    log_choices,
    log_estimate,
    log_gamma,
    log_placements,
    log_range,
    mean_weight,
    sample_tables,
)
from stirred.census import Census
from stirred.errors import InputError, did_you_mean
from stirred.frames import collect_frame
from stirred.kernels import compile_kernel
from stirred.spec import Margin, Multiverse
from stirred.spec.invariants import AtLeast, Custom

# The universe of one record type in a form that can be counted: the exact tables, and the cells of a census in them.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What decides a shape before records are read: the exact tables of one record type, and the records apart from them.

    ``limited`` has the condition of the records that the tables are about; those that meet a table of ``full`` are published
    exactly with all their variables. ``wanted`` are the variables that a record consists of.
    """

    limited: Margin
    full: tuple[Margin, ...]
    tables: tuple[Shown, ...]
    wanted: tuple[str, ...]
    columns: tuple[str, ...]  # to read, MEMBERS_COLUMN among them where a table is about the members
    members: tuple[str, ...]  # the variables of members in these tables
    spine: tuple[str, ...]  # the levels among the columns
    notes: tuple[str, ...]

    @property
    def covered(self) -> Shown:
        """Return the columns that stand in some exact table."""
        return frozenset[str]().union(*self.tables) & {*self.columns}

    @property
    def shown(self) -> list[Shown]:
        """Return the tables by the columns that they show."""
        return keep_maximal([table & self.covered for table in self.tables])

    @property
    def free(self) -> list[str]:
        """Return the variables, other than areas, that stand in no exact table."""
        return [name for name in self.wanted if name not in self.covered and name not in self.spine]

    @property
    def finest(self) -> str:
        """Return the finest level of the areas that stand in no exact table, or ""."""
        return next((level for level in reversed(self.spine) if level in {*self.wanted} - self.covered), "")

    @property
    def above(self) -> str:
        """Return the finest level that stands in an exact table, or ""."""
        return next((level for level in reversed(self.spine) if level in self.covered), "")

    def counted(self) -> pl.Expr:
        """Return the expression that says whether the tables are about a record, other than those of ``full``."""
        found = _meets(self.limited)
        for margin in self.full:
            found = found & ~_meets(margin)
        return found


def outline_shape(
    multiverse: Multiverse, census: Census, record_type: str, *, variables: Iterable[str] | None = None
) -> Outline:
    """Find the outline of the shape of a census in a multiverse; no record is read.

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
    return Outline(
        limited=limited,
        full=tuple(full),
        tables=tuple(tables),
        wanted=tuple(wanted),
        columns=tuple(
            dict.fromkeys([*wanted, *spine, *(v for m in (*full, limited) for v in m.conditions())])
        ),
        members=tuple(members),
        spine=tuple(spine),
        notes=tuple(notes),
    )


def build_shape(
    multiverse: Multiverse, census: Census, record_type: str, *, variables: Iterable[str] | None = None
) -> Shape:
    """Build the shape of a census in a multiverse; ``variables`` are by default those of the tables."""
    outline = outline_shape(multiverse, census, record_type, variables=variables)
    frame = _records(census, record_type, outline.columns, outline.members)
    if outline.limited.conditions():
        frame = frame.filter(_meets(outline.limited))
    before = frame.height
    if outline.full:
        frame = frame.filter(outline.counted())
    return _count_cells(census, outline, frame, before - frame.height)


def _count_cells(census: Census, outline: Outline, frame: pl.DataFrame, fixed: int) -> Shape:
    limited, spine = outline.limited, outline.spine
    choices, finest, above = pl.lit(1.0), outline.finest, outline.above
    if finest:
        unique = frame.select([name for name in (above, finest) if name]).unique()
        if above:
            frame = frame.join(unique.group_by(above).len("areas"), on=above, how="left", nulls_equal=True)
        else:
            frame = frame.with_columns(pl.lit(unique.height).alias("areas"))
        choices = pl.col("areas").cast(pl.Float64)
    for name in outline.free:
        choices = choices * _levels(census, limited, name, frame)
    by = sorted(outline.covered)
    cells = frame.with_columns(choices.alias(CHOICES_COLUMN))
    cells = (
        cells.group_by(by)
        .agg(pl.len().cast(pl.Int64).alias(COUNT_COLUMN), pl.col(CHOICES_COLUMN).first())
        .sort(by)
        if by
        else cells.select(pl.len().cast(pl.Int64).alias(COUNT_COLUMN), pl.col(CHOICES_COLUMN).max())
    )
    combinations = 1.0
    for name in outline.wanted:
        if name not in spine:
            combinations *= _levels(census, limited, name, frame)
    placed = [level for level in outline.wanted if level in spine]
    if placed:
        combinations *= frame[max(placed, key=spine.index)].n_unique()
    shown = outline.shown
    shared = find_separators(shown)
    return Shape(
        record_type=limited.record_type,
        tables=tuple(shown),
        shared=None if shared is None else tuple(shared),
        cells=cells,
        fixed=fixed,
        combinations=combinations,
        notes=outline.notes,
    )


def _close_variables(census: Census, record_type: str, names: Iterable[str]) -> Shown:
    """Return the variables of a table with those they determine, such as the county of a block."""
    return census.domain.closure(record_type, frozenset(names))


def _levels(census: Census, limited: Margin, name: str, frame: pl.DataFrame) -> float:
    """Return how many levels a variable has: of the common restriction, of the schema, or of the data."""
    known = count_known_levels(census, limited, name)
    return float(max(frame[name].n_unique(), 1)) if known is None else known


def count_known_levels(census: Census, limited: Margin, name: str) -> float | None:
    """Return how many levels a variable has by the common restriction or the schema; None where the data tell."""
    if name in limited.conditions():
        return float(len(limited.conditions()[name]))
    for known in census.schema.records:
        if known.name == limited.record_type and name in known.names and known.variable(name).level_count:
            return float(known.variable(name).level_count or 1)
    return None


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
        del people, each  # of a census as large as this reads, they take more than the records
        frame = frame.join(together, on=record.id, how="left")
        parts += [f"sum {number}", f"people {number}"]
    told = pl.struct(pl.col(parts).fill_null(0)).hash(seed=0) if parts else pl.lit(0, pl.UInt64)
    return frame.with_columns(told.alias(MEMBERS_COLUMN)).drop(record.id, *parts)


# How many tables of counts have three or more given margins: exactly where that is quick, else by sampling.
#
# Cells are filled one after another. Counting exactly, fillings that leave the same margins are counted together.
# Sampling (sequential importance sampling, Chen, Dinwoodie and Sullivant 2006), a cell gets the count x with probability
# proportional to $\prod_t \binom{r_t - x + m_t - 2}{m_t - 2}$ over its margins, of which $r_t$ records in $m_t$ cells
# are left: as many ways as the rest of each margin by itself could be filled. Counts outside the bounds that the margins
# imply have none. A filling that cannot be completed weighs 0, so that the mean of 1 / probability is unbiased.

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
MAX_STRATUM_CELLS = 600  # of one stratum
MAX_CANDIDATES = 200_000  # cells of all strata together
MAX_PARTIAL_MARGINS = 20_000  # margins that are left, held at once in exact counting


def count_several(members: Codes, margins: Counts, *, states: int = MAX_PARTIAL_MARGINS) -> int | None:
    """Count the tables with these margins; None where more than ``states`` partial margins would be held.

    ``members[t, j]`` is the place in ``margins`` of the number of table t that counts cell j.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)
    >>> count_several(members, np.array([2, 2, 2, 2]))
    3
    """
    last = {int(row): cell for cell in range(members.shape[1]) for row in members[:, cell]}
    found: dict[tuple[int, ...], int] = {tuple(int(one) for one in margins): 1}
    for cell in range(members.shape[1]):
        rows = [int(row) for row in members[:, cell]]
        closing = [row for row in rows if last[row] == cell]
        ahead: dict[tuple[int, ...], int] = {}
        for left, ways in found.items():
            most = min(left[row] for row in rows)
            forced = {left[row] for row in closing}
            counts = range(most + 1) if not forced else (x for x in forced if len(forced) == 1 and x <= most)
            for count in counts:
                rest = list(left)
                for row in rows:
                    rest[row] -= count
                key = tuple(rest)
                ahead[key] = ahead.get(key, 0) + ways
        if len(ahead) > states:
            return None
        found = ahead
    return sum(ways for left, ways in found.items() if not any(left))


def sample_several(
    members: Codes, margins: Counts, *, samples: int = 400, seed: int = 1
) -> SampledCount | None:
    """Estimate the logarithm of the number of tables with these margins; None where too few fillings are completed.

    >>> cells = np.indices((3, 3, 3)).reshape(3, -1)
    >>> pairs = [cells[0] * 3 + cells[1], 9 + cells[1] * 3 + cells[2], 18 + cells[0] * 3 + cells[2]]
    >>> found = sample_several(np.array(pairs, dtype=np.int32), np.full(27, 2))
    >>> exact = count_several(np.array(pairs, dtype=np.int32), np.full(27, 2))
    >>> bool(abs(found.log_count - log(exact)) < 4 * found.error)
    True
    """
    low, high, possible = propagate_bounds(members, margins)
    if not possible:
        return None
    if (low == high).all():
        return SampledCount(log_count=0.0, error=0.0, samples=0)
    draws = np.random.default_rng(seed).random((samples, members.shape[1]))
    own = np.ascontiguousarray(members)
    tables = log_gamma(np.arange(int(margins.max()) + members.shape[1] + 2, dtype=np.float64) + 1)
    weights = [float(_fill_cells(own, margins, low.copy(), high.copy(), row, tables)) for row in draws]
    if sum(np.isfinite(weights)) < MIN_SAMPLES:
        return None
    value, error = mean_weight(weights)
    return SampledCount(log_count=value, error=error, samples=samples)


@compile_kernel
def _fill_cells(
    members: Codes, margins: Counts, low: Counts, high: Counts, uniform: Floats, factorials: Floats
) -> float:
    """Fill the cells, and return the logarithm of 1 / probability; −∞ where the filling cannot be completed."""
    tables, cells = members.shape
    left = margins.copy()
    many = np.zeros(margins.size, dtype=np.int64)
    for table in range(tables):
        for cell in range(cells):
            many[members[table, cell]] += 1
    lost = 0.0
    for cell in range(cells):
        if low[cell] < high[cell]:
            size = high[cell] - low[cell] + 1
            weights = np.zeros(size)
            for place in range(size):
                for table in range(tables):
                    row = members[table, cell]
                    rest, other = left[row] - low[cell] - place, many[row] - 2
                    if other > 0:
                        weights[place] += factorials[rest + other] - factorials[rest] - factorials[other]
            weights = np.exp(weights - weights.max())
            weights /= weights.sum()
            reached, chosen = 0.0, size - 1
            for place in range(size):
                reached += weights[place]
                if reached >= uniform[cell]:
                    chosen = place
                    break
            lost += np.log(weights[chosen])
            low[cell] += chosen
            high[cell] = low[cell]
            if not tighten_bounds(members, margins, low, high):
                return -np.inf
        for table in range(tables):
            left[members[table, cell]] -= low[cell]
            many[members[table, cell]] -= 1
    return -lost


def count_many_margins(
    shape: Shape, *, samples: int = 400, seed: int = 1
) -> tuple[float, float, tuple[str, ...]] | None:
    """Return the log number of tables with three or more margins, its standard error, and the methods.

    The variables that all margins share make strata, which are counted by themselves. None where one has too many cells.
    """
    shown = [
        shape.margin(table).rename({COUNT_COLUMN: f"{COUNT_COLUMN}{i}"})
        for i, table in enumerate(shape.tables)
    ]
    cells = shown[0]
    for other in shown[1:]:
        on = [name for name in other.columns if name in cells.columns]
        cells = cells.join(other, on=on, nulls_equal=True) if on else cells.join(other, how="cross")
        if cells.height > MAX_CANDIDATES:
            return None
    common = sorted(frozenset[str].intersection(*shape.tables))
    strata = cells.partition_by(common, maintain_order=True) if common else [cells]
    total, spread, methods = 0.0, 0.0, set[str]()
    for number, part in enumerate(strata):
        if part.height > MAX_STRATUM_CELLS:
            return None
        members, margins = _encode_cells(part, shape)
        exact = count_several(members, margins)
        if exact is not None:
            total += log(exact)
            methods.add("exact")
            continue
        found = sample_several(members, margins, samples=samples, seed=seed + number)
        if found is None:
            return None
        total, spread = total + found.log_count, spread + found.error**2
        methods.add("sampled")
    return total, spread**0.5, tuple(sorted(methods))


def _encode_cells(part: pl.DataFrame, shape: Shape) -> tuple[Codes, Counts]:
    """Return the cells of a stratum as places in one vector of all margins."""
    members, margins, start = [], [], 0
    ordered = part.sort(sorted(frozenset[str]().union(*shape.tables)))
    for number, table in enumerate(shape.tables):
        codes = ordered.select(pl.struct(sorted(table)).rank("dense").cast(pl.Int64) - 1).to_series()
        counts = np.zeros(int(codes.n_unique()), np.int64)
        counts[codes.to_numpy()] = ordered[f"{COUNT_COLUMN}{number}"].to_numpy()
        members.append(codes.to_numpy() + start)
        margins.append(counts)
        start += counts.size
    return np.array(members, dtype=np.int32), np.concatenate(margins)


# The size of a universe: its logarithm for labelled and for unlabelled data sets, with an interval, stratum by stratum.

ROWS, COLUMNS = "rows", "columns"
LOG_TOLERANCE = 0.02  # of the logarithm of a stratum's number of tables


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSize:
    """The natural logarithm of a number of data sets, between ``low`` and ``high``; equal where it is exact."""

    value: float
    low: float
    high: float
    methods: tuple[str, ...]  # "closed form", "exact", "sampled", "bounds"


def log_labelled(shape: Shape) -> LogSize | None:
    r"""$\sum_C \ln\frac{n!}{\prod n_C!} - \sum_S \ln\frac{n!}{\prod n_S!}$ for decomposable tables.

    Records are told apart, and a data set gives each of them a value of every variable; those of no table add n ln K.
    None where the tables are not decomposable: no closed form is known then.
    """
    if shape.shared is None:
        return None
    total = sum(_multinomial(shape, shown) for shown in shape.tables)
    total -= sum(_multinomial(shape, shown) for shown in shape.shared)
    cells = shape.cells
    total += float((cells[COUNT_COLUMN] * cells[CHOICES_COLUMN].log()).sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def log_places(shape: Shape, strata: pl.DataFrame) -> LogSize | None:
    r"""$\sum_m (\ln n_m! - \sum_s \ln n_{ms}!)$: records are told apart, and only their places are unknown."""
    if len(shape.tables) != 2:
        return None
    total = float(strata["log_places"].sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def _multinomial(shape: Shape, shown: Shown) -> float:
    return log_placements(shape.margin(shown)[COUNT_COLUMN].to_numpy())


def log_unlabelled(
    shape: Shape,
    strata: pl.DataFrame | None,
    confidence: float = 0.95,
    *,
    samples: int = 400,
    seed: int = 1,
) -> LogSize | None:
    """Return the log number of tables of counts in the universe; None where it cannot be counted."""
    if len(shape.tables) == 1:
        total = float(
            log_choices(shape.cells[COUNT_COLUMN].to_numpy(), shape.cells[CHOICES_COLUMN].to_numpy()).sum()
        )
        return LogSize(value=total, low=total, high=total, methods=("closed form",))
    if strata is None:
        found = count_many_margins(shape, samples=samples, seed=seed)
        if found is None:
            return None
        value, error, methods = found
        reach = NormalDist().inv_cdf(0.5 + confidence / 2) * error
        return LogSize(value=value, low=max(value - reach, 0.0), high=value + reach, methods=methods)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * sqrt(float((strata["error"] ** 2).sum()))
    methods = tuple(sorted(strata["method"].unique().to_list()))
    return LogSize(
        value=float(strata["log_tables"].sum()),
        low=float(strata["low"].sum()) - reach,
        high=float(strata["high"].sum()) + reach,
        methods=methods,
    )


def size_strata(
    shape: Shape,
    *,
    areas: Sequence[str] = (),
    samples: int = 200,
    seed: int = 1,
    work: int = 3 * MAX_MULTIPLICATIONS,
    exactly: int = 20_000,
) -> pl.DataFrame | None:
    """Return one row for each stratum of two exact tables: size, types, logarithms and methods.

    The columns are the table that shows more ``areas``: its values are exchanged. ``exactly`` are the steps of exact
    counting for one stratum, ``work`` the multiplications of all sampling together.
    """
    if len(shape.tables) != 2 or shape.shared is None:
        return None
    (stratum,) = shape.shared
    first, second = shape.tables
    if len(first & {*areas}) > len(second & {*areas}):
        first, second = second, first
    by = sorted(stratum)
    both = [
        shape.margin(shown).group_by(by, maintain_order=True).agg(pl.col(COUNT_COLUMN).sort().alias(name))
        if by
        else pl.DataFrame({name: [sorted(shape.margin(shown)[COUNT_COLUMN].to_list())]})
        for shown, name in ((first, ROWS), (second, COLUMNS))
    ]
    joined = both[0].join(both[1], on=by, nulls_equal=True) if by else pl.concat(both, how="horizontal")
    profiles = list(zip(joined[ROWS].to_list(), joined[COLUMNS].to_list(), strict=True))
    unique = {(tuple(r), tuple(c)) for r, c in profiles}
    found = _count_profiles(
        sorted(unique, key=lambda margins: (sum(margins[0]), margins)), samples, seed, work, exactly
    )
    answers = [found[tuple(r), tuple(c)] for r, c in profiles]
    return joined.select(
        *by,
        pl.col(COLUMNS).list.sum().alias("records"),
        pl.col(ROWS).list.len().alias("held_types"),
        pl.col(COLUMNS).list.len().alias("places"),
        pl.Series("log_places", [log_placements(c) for _, c in profiles], pl.Float64),
        pl.Series("log_tables", [a[0] for a in answers], pl.Float64),
        pl.Series("low", [a[1] for a in answers], pl.Float64),
        pl.Series("high", [a[2] for a in answers], pl.Float64),
        pl.Series("error", [a[3] for a in answers], pl.Float64),
        pl.Series("method", [a[4] for a in answers], pl.String),
    ).with_columns(
        # one type or one place: nothing can be exchanged
        ((pl.col("held_types") == 1) | (pl.col("places") == 1)).alias("single")
    )


Margins = tuple[tuple[int, ...], tuple[int, ...]]
Answer = tuple[float, float, float, float, str]  # value, low, high, standard error, method


def _count_profiles(
    profiles: list[Margins], samples: int, seed: int, work: int, exactly: int
) -> dict[Margins, Answer]:
    """Count each set of margins once: small ones exactly, then by sampling, then by bounds."""
    found: dict[Margins, Answer] = {}
    for rows, columns in profiles:
        low, high = log_range(rows, columns)
        if high == low:
            found[rows, columns] = (low, low, high, 0.0, "closed form")
            continue
        exact = count_tables(rows, columns, states=exactly) if len(rows) * len(columns) <= 400 else None
        if exact is not None:
            found[rows, columns] = (log(exact), log(exact), log(exact), 0.0, "exact")
            continue
        share = min(work, MAX_MULTIPLICATIONS)
        sampled = _sample_profile(rows, columns, samples, seed, share) if share > 0 else None
        if sampled is None:
            found[rows, columns] = (log_estimate(rows, columns), low, high, 0.0, "bounds")
            continue
        work -= sampled.work
        value = float(np.clip(sampled.log_count, low, high))
        found[rows, columns] = (value, value, value, sampled.error, "sampled")
    return found


def _sample_profile(
    rows: tuple[int, ...], columns: tuple[int, ...], samples: int, seed: int, work: int
) -> SampledCount | None:
    return sample_tables(rows, columns, samples=samples, seed=seed, work=work, tolerance=LOG_TOLERANCE)


def bits_per_record(size: float, records: int) -> float:
    """Convert a natural logarithm to bits per record.

    >>> bits_per_record(log(2), 1)
    1.0
    """
    return size / log(2) / max(records, 1)
