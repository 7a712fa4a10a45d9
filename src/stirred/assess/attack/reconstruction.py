"""Reconstruct records of small areas from published tables, as an integer programme over their histogram."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, coo_array, csr_array, eye_array

from stirred.assess.attack.published_areas import (
    AGE_CLASS,
    AGE_STARTS,
    HISPANIC,
    RACE,
    SEX,
    AreaCounts,
    age_class,
)
from stirred.assess.universe.bounds import find_candidates, propagate_bounds
from stirred.census.progress import Progress, silent
from stirred.closed_files import make_closed_folder, write_closed_text
from stirred.errors import InputError

# The integer programme of one area: which histograms agree with the published numbers.

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Status = Literal["solved", "infeasible", "unknown"]
STATUS_BY_CODE: dict[int, Status] = {
    0: "solved",
    2: "infeasible",
}  # of scipy.optimize.milp; a time limit is 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Programme:
    """$A x = c$ over the cells that zeros leave, with the bounds that propagation finds.

    ``cells`` are the candidates, ``low`` and ``high`` their bounds, ``free`` the places among them that are not decided,
    ``matrix`` and ``left`` the equations of those, each once.
    """

    cells: Counts
    low: Counts
    high: Counts
    free: Counts
    matrix: csr_array
    left: Counts
    possible: bool
    members: Codes = field(repr=False)
    counts: Counts = field(repr=False)

    @staticmethod
    def of(members: Codes, counts: Counts) -> "Programme":
        """Build the programme of an area with these published numbers."""
        cells = find_candidates(members, counts)
        own = np.ascontiguousarray(members[:, cells])
        low, high, possible = propagate_bounds(own, counts)
        free = np.flatnonzero(low < high) if possible else np.zeros(0, dtype=np.int64)
        rest = counts.copy()
        for table in own:
            counted = table >= 0
            np.subtract.at(rest, table[counted], low[counted])
        matrix, left = _equations(own[:, free], rest)
        return Programme(
            cells=cells,
            low=low,
            high=high,
            free=free,
            matrix=matrix,
            left=left,
            possible=possible,
            members=own,
            counts=counts,
        )

    @property
    def room(self) -> Counts:
        """Return how many records beyond its least each free cell can have."""
        return (self.high - self.low)[self.free]

    def complete_histogram(self, free: Counts) -> Counts:
        """Return the histogram over the candidates from the counts of the free cells beyond their least."""
        found = self.low.copy()
        found[self.free] += free
        return found

    def holds(self, histogram: Counts) -> bool:
        """Return whether a histogram over the candidates has exactly the published numbers; in integers."""
        if (histogram < 0).any():
            return False
        found = np.zeros_like(self.counts)
        for table in self.members:
            counted = table >= 0
            np.add.at(found, table[counted], histogram[counted])
        return bool((found == self.counts).all())

    def find_solution(
        self, *, cost: Floats | None = None, seconds: float = 10.0
    ) -> "tuple[Status, Counts | None]":
        """Find a histogram of least cost that has the published numbers; verified in integers."""
        if not self.possible:
            return "infeasible", None
        if not self.free.size:
            found = self.complete_histogram(np.zeros(0, dtype=np.int64))
            return ("solved", found) if self.holds(found) else ("infeasible", None)
        status, x, _ = solve(
            np.zeros(self.free.size) if cost is None else cost[self.free],
            self.matrix,
            self.left.astype(np.float64),
            self.left.astype(np.float64),
            high=self.room.astype(np.float64),
            seconds=seconds,
        )
        if x is None:
            return status, None
        found = self.complete_histogram(np.rint(x).astype(np.int64))
        return ("solved", found) if self.holds(found) else ("unknown", None)


def solve(
    cost: Floats,
    matrix: csr_array,
    least: Floats,
    most: Floats,
    *,
    high: Floats,
    integral: NDArray[np.int_] | None = None,
    seconds: float,
) -> tuple[Status, Floats | None, float | None]:
    """Minimise a linear cost over integers from 0 to ``high`` (HiGHS): status, best point, proved bound of the cost."""
    found = milp(
        cost,
        integrality=np.ones(cost.size, dtype=np.int_) if integral is None else integral,
        bounds=Bounds(np.zeros(cost.size), high),
        constraints=LinearConstraint(matrix, least, most),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    bound = found.get("mip_dual_bound")
    point = None if found.x is None else np.asarray(found.x, dtype=np.float64)
    return STATUS_BY_CODE.get(found.status, "unknown"), point, None if bound is None else float(bound)


def _equations(own: Codes, rest: Counts) -> tuple[csr_array, Counts]:
    """Return the equations of the free cells, each once."""
    table, cell = np.nonzero(own >= 0)
    rows, row = np.unique(own[table, cell], return_inverse=True)
    marks = np.random.default_rng(1).integers(1, 2**62, size=(own.shape[1], 2), dtype=np.int64)
    sums = np.zeros((rows.size, 2), dtype=np.int64)  # a sum of random marks tells sets of cells apart
    np.add.at(sums, row, marks[cell])
    _, first = np.unique(sums, axis=0, return_index=True)
    kept = np.zeros(rows.size, dtype=np.bool_)
    kept[first] = True
    place = np.cumsum(kept) - 1
    chosen = kept[row]
    data = np.ones(int(chosen.sum()))
    shape = (int(kept.sum()), own.shape[1])
    matrix = csr_array(coo_array((data, (place[row[chosen]], cell[chosen])), shape=shape))
    return matrix, rest[rows[kept]]


# Reconstruct from numbers that no file of records has: least absolute deviation within known bounds.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestHistogram:
    """The histogram over ``cells`` whose tables deviate least in sum; ``status`` is solved only if that is proved."""

    status: Status
    cells: Counts
    histogram: Counts | None = None
    deviation: int = 0


def find_nearest(
    members: Codes,
    counts: Counts,
    *,
    bound: int | None = None,
    zeros_kept: bool = True,
    seconds: float = 10.0,
) -> NearestHistogram:
    r"""Minimise $\sum_i |(A x)_i - c_i|$ over histograms with $|(A x)_i - c_i| \le$ ``bound``.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)  # rows and columns of a 2 × 2 table
    >>> found = find_nearest(members, np.array([3, 1, 4, 1]), bound=1)
    >>> found.deviation
    1
    """
    kept = np.arange(members.shape[1], dtype=np.int64)
    for table in members:
        row = table[kept]
        zero = (counts[row] <= 0) & zeros_kept
        none = zero if bound is None else zero | (counts[row] + bound <= 0)
        kept = kept[(row < 0) | ~none]
    own = members[:, kept]
    table, cell = np.nonzero(own >= 0)
    rows = np.flatnonzero(
        np.isin(np.arange(counts.size), members)
    )  # a number without cells deviates all the same
    row = np.searchsorted(rows, own[table, cell])
    shape = (rows.size, kept.size)
    matrix = csr_array(coo_array((np.ones(row.size), (row, cell)), shape=shape))
    published = counts[rows].astype(np.float64)
    most = float(np.abs(counts).max(initial=0) + (bound or 0)) * (1 if bound is not None else 2)
    apart = np.full(2 * rows.size, most + 1 if bound is None else float(bound))
    if zeros_kept:
        apart = np.where(np.tile(published == 0, 2), 0.0, apart)
    steps = eye_array(rows.size, format="csr")
    whole = csr_array(block_array([[matrix, steps, -steps]]))
    cost = np.concatenate([np.zeros(kept.size), np.ones(2 * rows.size)])
    high = np.concatenate([np.full(kept.size, most), apart])
    integral = np.concatenate([np.ones(kept.size), np.zeros(2 * rows.size)]).astype(np.int_)
    status, point, _ = solve(cost, whole, published, published, high=high, integral=integral, seconds=seconds)
    if point is None:
        return NearestHistogram(status=status, cells=kept)
    found = np.rint(point[: kept.size]).astype(np.int64)
    off = np.abs(matrix @ found - counts[rows])
    if bound is not None and off.max(initial=0) > bound:
        return NearestHistogram(status="unknown", cells=kept)
    return NearestHistogram(status=status, cells=kept, histogram=found, deviation=int(off.sum()))


# How far two reconstructions of one area can differ, and certificates that there is only one.

Certificate = Literal["", "bounds", "rank", "infeasible", "another solution"]
PRIME = 2_147_483_629


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variability:
    r"""$\max_x \|x - x^*\|_1 / (2 N)$ over all histograms with the published numbers (solution variability).

    ``certificate`` says what proves it: ``bounds`` (propagation leaves one value to each cell; exact integers), ``rank``
    (the equations of the free cells have full column rank modulo a prime; exact integers), ``infeasible`` (the solver proved
    that no other solution exists), ``another solution`` (``other`` has the same numbers; verified in integers). It is empty,
    and ``unique`` is None, where the time limit came first. ``low`` and ``high`` bound the share; equal if it is proved.
    """

    unique: bool | None
    certificate: Certificate
    low: float
    high: float
    status: Status
    other: Counts | None = None


def measure_variability(programme: Programme, found: Counts, *, seconds: float = 10.0) -> Variability:
    """Bound how far another solution can be from one that was found."""
    persons = int(found.sum())
    if not programme.free.size:
        return Variability(unique=True, certificate="bounds", low=0.0, high=0.0, status="infeasible")
    if _full_rank(programme.matrix):
        return Variability(unique=True, certificate="rank", low=0.0, high=0.0, status="infeasible")
    base = (found - programme.low)[programme.free]
    room = programme.room
    fixed = int(programme.low.sum())
    moving = int(base.sum())
    straight = room <= base  # the overlap of these cells is the other solution's count itself
    bent = np.flatnonzero(~straight & (base > 0))
    cells, extra = programme.free.size, bent.size
    # overlap o ≥ x − (room − base) b and o ≥ base b, with b = 1 where the other solution has at least as many
    line = np.arange(extra)
    pick = csr_array(coo_array((np.ones(extra), (line, bent)), shape=(extra, cells)))
    slope = _diagonal((room - base)[bent])
    level = _diagonal(base[bent])
    one = _diagonal(np.ones(extra, dtype=np.int64))
    cost = np.concatenate([(straight & (base > 0)).astype(np.float64), np.ones(extra), np.zeros(extra)])
    total = csr_array(cost.reshape(1, -1))
    parts = [[programme.matrix, None, None]]
    if extra:
        parts += [[pick, -one, -slope], [None, -one, level]]
    matrix = csr_array(block_array(parts)) if extra else programme.matrix
    matrix = csr_array(block_array([[matrix], [total]]))
    left = programme.left.astype(np.float64)
    least = np.concatenate([left, np.full(2 * extra + 1, -np.inf)])
    most = np.concatenate([left, np.zeros(2 * extra), [moving - 1.0]])
    high = np.concatenate([room, base[bent], np.ones(extra)]).astype(np.float64)
    integral = np.concatenate([np.ones(cells), np.zeros(extra), np.ones(extra)]).astype(np.int_)
    status, point, bound = solve(cost, matrix, least, most, high=high, integral=integral, seconds=seconds)
    if status == "infeasible":
        return Variability(unique=True, certificate="infeasible", low=0.0, high=0.0, status=status)
    least_overlap = np.ceil(bound - 1e-6) if bound is not None and np.isfinite(bound) else 0.0
    most_apart = (moving - max(0.0, float(least_overlap))) / persons
    if point is None:
        return Variability(unique=None, certificate="", low=0.0, high=most_apart, status="unknown")
    other = programme.complete_histogram(np.rint(point[:cells]).astype(np.int64))
    if not programme.holds(other) or (other == found).all():
        return Variability(
            unique=None, certificate="", low=0.0, high=(persons - fixed) / persons, status="unknown"
        )
    apart = int(np.abs(other - found).sum()) / (2 * persons)
    return Variability(
        unique=False,
        certificate="another solution",
        low=apart,
        high=apart if status == "solved" else max(apart, most_apart),
        status=status,
        other=other,
    )


def _diagonal(values: Counts) -> csr_array:
    place = np.arange(values.size)
    return csr_array(coo_array((values.astype(np.float64), (place, place)), shape=(values.size, values.size)))


def _full_rank(matrix: csr_array) -> bool:
    """Return whether the columns are independent modulo a prime, hence over the rationals."""
    rows, columns = matrix.shape
    if rows < columns:
        return False
    rest = matrix.toarray().astype(np.int64)
    for column in range(columns):
        pivot = column + int(np.argmax(rest[column:, column] != 0))
        if rest[pivot, column] == 0:
            return False
        rest[[column, pivot]] = rest[[pivot, column]]
        head = rest[column, column:] * pow(int(rest[column, column]), -1, PRIME) % PRIME
        below = column + 1 + np.flatnonzero(rest[column + 1 :, column])
        rest[below, column:] = (
            rest[below, column:] - rest[below, column : column + 1] * head % PRIME
        ) % PRIME
    return True


# How sure a reconstruction is of each record: how many of several random solutions have it.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledSolutions:
    """Random solutions of one area: ``share[j, k]`` of them have more than k records in candidate j.

    ``certain`` marks what no solution lacks, because the least count of the cell says so.
    """

    solutions: int
    share: NDArray[np.float64]
    certain: NDArray[np.bool_]


def sample_solutions(
    programme: Programme, found: Counts, *, samples: int, seed: int, seconds: float = 10.0
) -> SampledSolutions | None:
    """Solve again and again with independent Gumbel weights of the cells; None where a time limit came first."""
    draws = np.random.default_rng(seed)
    highest = int(programme.high.max(initial=0))
    hits = np.zeros((programme.cells.size, highest), dtype=np.float64)
    copy = np.arange(highest)
    times = samples if programme.free.size else 1  # one solution is all there is
    for _ in range(times):
        solution: Counts | None = found
        if programme.free.size:
            weights = -draws.gumbel(size=programme.cells.size)
            _, solution = programme.find_solution(cost=weights, seconds=seconds)
        if solution is None:
            return None
        hits += solution[:, None] > copy
    certain = programme.low[:, None] > copy
    return SampledSolutions(solutions=times, share=hits / times, certain=certain)


def mark_true(confidences: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Add ``true`` to candidate records: whether the truth has that many records of the same key and secret.

    >>> sure = pl.DataFrame({"classed": ["a", "a"], "secret": ["x", "x"], "copy": [0, 1], "confidence": [1.0, 0.5]})
    >>> mark_true(sure, pl.DataFrame({"classed": ["a"], "secret": ["x"]}))["true"].to_list()
    [True, False]
    """
    many = truth.group_by("classed", "secret").agg(pl.len().cast(pl.Int64).alias("many"))
    joined = confidences.join(many, on=["classed", "secret"], how="left", maintain_order="left")
    return joined.with_columns((pl.col("copy") < pl.col("many").fill_null(0)).alias("true")).drop("many")


def calibration(confidences: pl.DataFrame, *, bins: int = 10) -> pl.DataFrame:
    """Return the precision of candidate records by class of confidence.

    ``confidences`` has columns ``confidence`` and ``true``.

    >>> sure = pl.DataFrame({"confidence": [1.0, 1.0, 0.5, 0.5], "true": [True, True, True, False]})
    >>> calibration(sure)["precision"].to_list()
    [0.5, 1.0]
    """
    grouped = confidences.with_columns((pl.col("confidence") * bins).round().cast(pl.Int64).alias("class"))
    return (
        grouped.group_by("class")
        .agg(
            pl.len().alias("candidates"),
            pl.col("confidence").mean(),
            pl.col("true").mean().alias("precision"),
        )
        .sort("class")
    )


# Reconstruct many areas, a few at a time in threads; finished pieces are kept, so that an interrupted run is taken up.
#
# HiGHS runs without Python's lock, so threads use all cores.

AREA_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "area": pl.String,
    "records": pl.Int64,
    "status": pl.String,  # solved, infeasible, unknown
    "unique": pl.Boolean,  # null where it is not known
    "certificate": pl.String,
    "solver": pl.String,  # the status of the search for another solution
    "solvar_low": pl.Float64,
    "solvar_high": pl.Float64,
    "deviation": pl.Int64,  # summed over the published numbers; 0 unless these contradict each other
    "free": pl.Int64,
    "seconds": pl.Float64,  # of CPU
    "cells": pl.List(pl.Int64),
    "counts": pl.List(pl.Int64),
    "candidates": pl.List(pl.Int64),
    "copies": pl.List(pl.Int64),
    "confidences": pl.List(pl.Float64),
}
AREAS_PER_PIECE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search an area: seconds for each programme, random solutions for confidence, whether to bound others."""

    seconds: float = 10.0
    samples: int = 0
    variability: bool = True
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReconstructedAreas:
    """The reconstruction of each area, with what is proved of it; one row of ``areas`` each."""

    cells: pl.DataFrame
    areas: pl.DataFrame

    def records(self) -> pl.DataFrame:
        """Return the reconstructed records: area, and the variables of their cell."""
        lists = self.areas.select("area", "cells", "counts").explode("cells", "counts", empty_as_null=False)
        each = lists.select(pl.col("area", "cells").repeat_by("counts").list.explode())
        numbered = self.cells.with_row_index("cells").with_columns(pl.col("cells").cast(pl.Int64))
        return each.join(numbered, on="cells", how="left", maintain_order="left").drop("cells")

    def confidences(self) -> pl.DataFrame:
        """Return candidate records with the share of random solutions that have them."""
        names = ["candidates", "copies", "confidences"]
        lists = self.areas.select("area", *names).explode(names, empty_as_null=False)
        numbered = self.cells.with_row_index("candidates").with_columns(pl.col("candidates").cast(pl.Int64))
        joined = lists.join(numbered, on="candidates", how="left", maintain_order="left")
        return joined.drop("candidates").rename({"copies": "copy", "confidences": "confidence"})


def reconstruct(
    published: AreaCounts,
    *,
    effort: Effort | None = None,
    workers: int | None = None,
    state: Path | None = None,
    progress: Progress = silent,
) -> ReconstructedAreas:
    """Reconstruct every area; with ``state`` a run that was interrupted goes on where it stopped."""
    effort = effort or Effort()
    members = published.design.members
    pieces = list(range(0, len(published.areas), AREAS_PER_PIECE))
    kept = _open_state(state, published, effort) if state is not None else None
    found: dict[int, pl.DataFrame] = {}
    missing = []
    for start in pieces:
        path = None if kept is None else kept / f"piece-{start:08d}.parquet"
        if path is not None and path.exists():
            found[start] = pl.read_parquet(path)
        else:
            missing.append(start)
    total, done = len(published.areas), len(published.areas)
    done -= sum(min(AREAS_PER_PIECE, total - start) for start in missing)
    progress("reconstruct", done, total)
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for start, piece in _work_pieces(pool, published, members, missing, effort):
            if kept is not None:
                part = kept / f"piece-{start:08d}.part"
                piece.write_parquet(part)
                part.replace(kept / f"piece-{start:08d}.parquet")
            found[start] = piece
            done += piece.height
            progress("reconstruct", done, total)
    frames = [found[start] for start in pieces]
    areas = pl.concat(frames) if frames else pl.DataFrame(schema=AREA_SCHEMA)
    return ReconstructedAreas(cells=published.design.cells, areas=areas)


def _work_pieces(
    pool: ThreadPoolExecutor,
    published: AreaCounts,
    members: NDArray[np.int32],
    missing: list[int],
    effort: Effort,
) -> Iterator[tuple[int, pl.DataFrame]]:
    names = published.areas.to_list()
    for start in missing:
        chosen = range(start, min(start + AREAS_PER_PIECE, len(names)))
        rows = pool.map(
            lambda place: _reconstruct_area(names[place], published, members, place, effort), chosen
        )
        yield start, pl.DataFrame(list(rows), schema=AREA_SCHEMA, orient="row")


def _open_state(state: Path, published: AreaCounts, effort: Effort) -> Path:
    """Open the folder of finished pieces; refuse one that belongs to other numbers or another effort."""
    make_closed_folder(state)
    asked = {"published": published.digest, "piece": AREAS_PER_PIECE, **asdict(effort)}
    marked = state / "reconstruction.json"
    if marked.exists() and json.loads(marked.read_text(encoding="utf-8")) != asked:
        raise InputError(
            "the folder of finished areas belongs to another reconstruction",
            why="its published numbers or its effort are not those asked for now",
            fix="name another folder, or remove this one",
        )
    write_closed_text(marked, json.dumps(asked))
    return state


def _reconstruct_area(
    name: str, published: AreaCounts, members: NDArray[np.int32], place: int, effort: Effort
) -> dict[str, object]:
    """Reconstruct one area; return its histogram, its certificate and the confidence of each candidate."""
    start = time.thread_time()
    counts = published.counts[place]
    row: dict[str, object] = {"area": name, "certificate": "", "solver": "", "deviation": 0, "free": 0}
    found, cells, programme = None, np.zeros(0, dtype=np.int64), None
    if published.bound == 0:
        programme = Programme.of(members, counts)
        row["free"] = int(programme.free.size)
        row["status"], found = programme.find_solution(seconds=effort.seconds)
        cells = programme.cells
    if found is None and (published.bound != 0 or row["status"] == "infeasible"):
        bound, programme = published.bound or None, None
        near = find_nearest(
            members, counts, bound=bound, zeros_kept=published.zeros_kept, seconds=effort.seconds
        )
        row["status"], row["deviation"], cells, found = (
            near.status,
            near.deviation,
            near.cells,
            near.histogram,
        )
    if found is None:
        return {**row, "records": None, "seconds": time.thread_time() - start}
    held = found > 0
    row |= {"records": int(found.sum()), "cells": cells[held].tolist(), "counts": found[held].tolist()}
    if programme is not None and effort.variability:
        spread = measure_variability(programme, found, seconds=effort.seconds)
        row |= {"unique": spread.unique, "certificate": spread.certificate, "solver": spread.status}
        row |= {"solvar_low": spread.low, "solvar_high": spread.high}
    if programme is not None and effort.samples:
        random = sample_solutions(
            programme, found, samples=effort.samples, seed=effort.seed + place, seconds=effort.seconds
        )
        if random is not None:
            which, copy = np.nonzero(random.share)
            row |= {"candidates": cells[which].tolist(), "copies": copy.tolist()}
            row["confidences"] = random.share[which, copy].tolist()
    return {**row, "seconds": time.thread_time() - start}


# Tables of larger areas joined to those of blocks: PCT12 and PCT12A–O of 2010, which show single years of age.
#
# The blocks of a tract are one integer programme: each block has its own tables, and sex × age class × race group ×
# Hispanic origin add up to the tract's. Then the single years of each such group are dealt out to its records; the
# tables say no more.

GROUP_COLUMN = "race_group"
KEY_COLUMNS = (SEX, AGE_CLASS, GROUP_COLUMN, HISPANIC)
RACE_GROUPS = 7  # the six races alone, then two or more: PCT12A–G, and PCT12I–O of those who are not Hispanic
LAST_CLASS_STARTS = (100, 105, 110)  # where the classes above 99 begin


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedBlocks:
    """Blocks reconstructed with their tracts: records with a single year of age, and what was found of each tract.

    ``certain`` marks a year that the tables leave no choice of, given the rest of the record.
    """

    records: pl.DataFrame  # area, sex, age, race, hispanic, certain
    tracts: pl.DataFrame  # tract, blocks, records, status, joined, free, seconds


def tabulate_tracts(records: pl.DataFrame, tract: str) -> pl.DataFrame:
    """Tabulate PCT12 and PCT12A–O as one table by tract, sex, single year, race group and Hispanic origin.

    >>> people = pl.DataFrame({"t": ["x"], "sex": [1], "age": [103], "race": [9], "hispanic": [2]})
    >>> tabulate_tracts(people, "t").rows()
    [('x', 1, 37, 7, 2, 100, 1)]
    """
    year = pl.col("age").cast(pl.Int64)
    for start in LAST_CLASS_STARTS:
        year = pl.when(pl.col("age") >= start).then(start).otherwise(year)
    made = records.select(
        pl.col(tract).cast(pl.String).alias("tract"),
        pl.col(SEX).cast(pl.Int64),
        age_class(pl.col("age")).alias(AGE_CLASS),
        _race_group().alias(GROUP_COLUMN),
        pl.col(HISPANIC).cast(pl.Int64),
        year.cast(pl.Int64).alias("age"),
    )
    by = ["tract", *KEY_COLUMNS, "age"]
    return made.group_by(by).agg(pl.len().cast(pl.Int64).alias("count")).sort(by)


def join_programme(
    members: Codes, counts: Counts, coupling: Counts, totals: Counts
) -> tuple[Programme, Counts, Counts]:
    """Build one programme of several blocks, with the block and the cell of each candidate.

    ``counts`` has a row for each block; ``coupling[j]`` is the number among ``totals`` that counts cell j over all blocks.

    >>> members = np.array([[0, 0, 1, 1]], dtype=np.int32)
    >>> found, block, cell = join_programme(members, np.array([[1, 0], [0, 1]]), np.array([0, 1, 0, 1]), np.array([2, 0]))
    >>> found.find_solution()[1].tolist(), block.tolist(), cell.tolist()
    ([1, 1], [0, 1], [0, 2])
    """
    blocks, numbers = counts.shape
    parts = [find_candidates(members, counts[block]) for block in range(blocks)]
    cell = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    block = np.repeat(np.arange(blocks), [part.size for part in parts])
    own = members[:, cell]
    own = np.where(own >= 0, own + block * numbers, -1)
    joint = np.vstack([own, coupling[cell] + blocks * numbers]).astype(np.int32)
    programme = Programme.of(joint, np.concatenate([counts.ravel(), totals]))
    return programme, block[programme.cells], cell[programme.cells]


def reconstruct_joined(
    published: AreaCounts,
    tract_of: pl.DataFrame,
    years: pl.DataFrame,
    *,
    seconds: float = 60.0,
    seed: int = 1,
    workers: int | None = None,
    progress: Progress = silent,
) -> JoinedBlocks:
    """Reconstruct the blocks of ``published`` with the tables of their tracts (``tabulate_tracts``).

    ``tract_of`` says which tract each area lies in (``area``, ``tract``). A tract whose tables contradict those of its
    blocks, or that takes longer than ``seconds``, is reconstructed block by block, and only its years are taken.
    """
    placed = pl.DataFrame({"area": published.areas, "place": np.arange(len(published.areas))})
    inside = placed.join(tract_of.with_columns(pl.all().cast(pl.String)), on="area", how="left")
    tracts = inside.sort("tract", "place").group_by("tract", maintain_order=True).agg("place")
    cells = published.design.cells.with_columns(_race_group().alias(GROUP_COLUMN))
    coupling = _encode_groups(cells)
    supply = years.partition_by("tract", as_dict=True)
    rows: list[dict[str, object]] = []
    parts: list[pl.DataFrame] = []
    total = tracts.height
    progress("reconstruct tracts", 0, total)

    def solve_area(number: int) -> tuple[dict[str, object], pl.DataFrame]:
        tract, places = tracts.row(number)
        own = supply.get((tract,), years.head(0))
        chosen = np.array(places, np.int64)
        return _reconstruct_tract(str(tract), published, chosen, cells, coupling, own, seconds, seed + number)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, (row, part) in enumerate(pool.map(solve_area, range(total)), 1):
            rows.append(row)
            parts.append(part)
            progress("reconstruct tracts", done, total)
    return JoinedBlocks(records=pl.concat(parts) if parts else pl.DataFrame(), tracts=pl.DataFrame(rows))


def _reconstruct_tract(
    name: str,
    published: AreaCounts,
    places: Counts,
    cells: pl.DataFrame,
    coupling: Counts,
    years: pl.DataFrame,
    seconds: float,
    seed: int,
) -> tuple[dict[str, object], pl.DataFrame]:
    start = time.thread_time()
    members, counts = published.design.members, published.counts[places]
    totals = np.zeros(int(coupling.max()) + 1, np.int64)
    np.add.at(totals, _encode_groups(years), years["count"].to_numpy())
    programme, block, cell = join_programme(members, counts, coupling, totals)
    status, found = programme.find_solution(seconds=seconds)
    if found is None:
        block, cell, found = _solve_apart(members, counts, seconds)
    held = np.flatnonzero(found)
    many = found[held]
    rebuilt = cells[np.repeat(cell[held], many)].with_columns(
        pl.Series("area", published.areas.gather(places[np.repeat(block[held], many)])),
    )
    dealt = _assign_years(rebuilt, years, seed)
    row = {
        "tract": name,
        "blocks": places.size,
        "records": dealt.height,
        "status": status,
        "joined": status == "solved",
        "free": int(programme.free.size),
        "seconds": time.thread_time() - start,
    }
    return row, dealt


def _solve_apart(members: Codes, counts: Counts, seconds: float) -> tuple[Counts, Counts, Counts]:
    """Solve each block by itself; one without a solution has no records."""
    block, cell, found = list[Counts](), list[Counts](), list[Counts]()
    for number, own in enumerate(counts):
        programme = Programme.of(members, own)
        _, x = programme.find_solution(seconds=seconds)
        if x is not None:
            block.append(np.full(x.size, number, np.int64))
            cell.append(programme.cells)
            found.append(x)
    if not block:
        return (np.zeros(0, np.int64),) * 3
    return np.concatenate(block), np.concatenate(cell), np.concatenate(found)


def _assign_years(records: pl.DataFrame, years: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Assign the years of each group to its records in random order, the rest by sex and age class."""
    draws = np.random.default_rng(seed)
    stock = years.select(pl.col(*KEY_COLUMNS, "age").repeat_by("count").list.explode())
    choices = (
        years.filter(pl.col("count") > 0).group_by(KEY_COLUMNS).agg(pl.col("age").n_unique().alias("years"))
    )
    left = records[draws.permutation(records.height)]
    stock = stock[draws.permutation(stock.height)]
    parts = []
    for keys in (KEY_COLUMNS, (SEX, AGE_CLASS)):
        order = pl.int_range(pl.len()).over(keys).alias("order")
        one, other = left.with_columns(order), stock.with_columns(order)
        on = [*keys, "order"]
        parts.append(one.join(other.select(*on, "age"), on=on))
        left = one.join(other, on=on, how="anti").drop("order")
        stock = other.join(one, on=on, how="anti").drop("order")
    lacking = left.with_columns(
        pl.col(AGE_CLASS).replace_strict(dict(enumerate(AGE_STARTS)), return_dtype=pl.Int64).alias("age")
    )
    dealt = pl.concat([*(part.drop("order") for part in parts), lacking])
    joint = dealt.join(choices, on=KEY_COLUMNS, how="left")
    return joint.select(
        "area",
        SEX,
        pl.col("age").cast(pl.Int64),
        RACE,
        HISPANIC,
        (pl.col("years") == 1).fill_null(value=False).alias("certain"),
    )


def _race_group() -> pl.Expr:
    return pl.min_horizontal(pl.col(RACE).cast(pl.Int64), pl.lit(RACE_GROUPS))


def _encode_groups(frame: pl.DataFrame) -> Counts:
    """Return the place of each row among all combinations of sex, age class, race group and Hispanic origin."""
    code = pl.lit(0, pl.Int64)
    for name, first, many in (
        (SEX, 1, 2),
        (AGE_CLASS, 0, len(AGE_STARTS)),
        (GROUP_COLUMN, 1, RACE_GROUPS),
        (HISPANIC, 1, 2),
    ):
        code = code * many + pl.col(name).cast(pl.Int64) - first
    return frame.select(code.alias("code")).to_series().to_numpy().astype(np.int64)
