"""Tables of larger areas joined to those of blocks: PCT12 and PCT12A–O of 2010, which show single years of age.

The blocks of a tract are one integer programme: each block has its own tables, and sex × age class × race group × Hispanic
origin add up to the tract's. Then the single years of each such group are dealt out to its records; the tables say no more.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.block_tables import (
    AGE_CLASS,
    AGE_STARTS,
    HISPANIC,
    RACE,
    SEX,
    age_class,
)
from stirred.assess.attack.reconstruction.programme import Programme
from stirred.assess.attack.reconstruction.propagation import find_candidates
from stirred.assess.attack.reconstruction.published import AreaCounts
from stirred.census.progress import Progress, silent

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
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

    def worked(number: int) -> tuple[dict[str, object], pl.DataFrame]:
        tract, places = tracts.row(number)
        own = supply.get((tract,), years.head(0))
        chosen = np.array(places, np.int64)
        return _reconstruct_tract(str(tract), published, chosen, cells, coupling, own, seconds, seed + number)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, (row, part) in enumerate(pool.map(worked, range(total)), 1):
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
