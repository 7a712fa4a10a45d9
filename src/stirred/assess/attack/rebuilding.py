"""Records of any type rebuilt from the published tables of a packet, such as households from their sizes and tenures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from stirred.assess.attack.linkage.intervals import wilson_interval
from stirred.assess.attack.measures import reconstruction_measures
from stirred.assess.attack.reconstruction import Effort, collect_tables, reconstruct
from stirred.assess.attack.result import AttackResult
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.census import Census
from stirred.census.progress import Progress, silent
from stirred.frames import frame_of
from stirred.spec.multiverse import pluralize

COUNT_COLUMN = "count"
LIST_COLUMNS = ("cells", "counts", "candidates", "copies", "confidences")


def rebuild_from_tables(
    tables: Mapping[str, pl.DataFrame],
    census: Census,
    record_type: str,
    *,
    area: str = "",
    areas: int | None = 200,
    bound: int | None = 0,
    effort: Effort | None = None,
    seed: int = 1,
    workers: int | None = None,
    state: Path | None = None,
    progress: Progress = silent,
) -> AttackResult:
    """Rebuild the records of areas from tables that share them, and compare with the census.

    The area is the smallest that two tables share, unless one is named. ``bound`` is how far published numbers are off at
    most (None: not known). Without two such tables there is nothing to rebuild, and the result is empty.
    """
    usable = {name: table for name, table in tables.items() if _is_usable(table, census, record_type)}
    place = area or _smallest_shared_area(usable, census.schema.spine)
    sharing = {
        name: table for name, table in usable.items() if place in table.columns and len(table.columns) > 2
    }
    if not place or len(sharing) < 2:
        return AttackResult(measures=())
    published = collect_tables(sharing, place, bound=bound, zeros_kept=bound == 0)
    whole = areas is None or areas >= len(published.areas)
    if areas is not None and not whole:
        chosen = np.random.default_rng(seed).choice(len(published.areas), areas, replace=False)
        published = published.select(np.sort(chosen))
    made = reconstruct(published, effort=effort, workers=workers, state=state, progress=progress)
    by = [name for name in made.cells.columns if name != place]
    rebuilt = made.records().rename({"area": place})
    counts = frame_of(census.counts(record_type, [place, *by])).with_columns(
        pl.col(place, *by).cast(pl.String)
    )
    truth = counts.filter(pl.col(place).is_in(published.areas.implode()))
    about = name_measure("about.areas_of", records=pluralize(record_type))
    measures = [replace(one, about=about) for one in reconstruction_measures(made.areas, whole=whole)]
    measures.append(_measure_overlap(rebuilt, truth, place, by, record_type, seed))
    return AttackResult(
        measures=tuple(measures), tables={f"rebuilt {pluralize(record_type)}": made.areas.drop(LIST_COLUMNS)}
    )


def _is_usable(table: pl.DataFrame, census: Census, record_type: str) -> bool:
    """Return whether a table counts records by variables that the census has."""
    known = {*census.columns(record_type), *census.schema.spine, COUNT_COLUMN}
    return COUNT_COLUMN in table.columns and set(table.columns) <= known


def _smallest_shared_area(tables: Mapping[str, pl.DataFrame], spine: Sequence[str]) -> str:
    """Return the smallest area that two tables share."""
    for level in reversed(spine):
        if sum(level in table.columns and len(table.columns) > 2 for table in tables.values()) > 1:
            return level
    return ""


def _measure_overlap(
    rebuilt: pl.DataFrame, truth: pl.DataFrame, area: str, by: Sequence[str], record_type: str, seed: int
) -> RiskMeasure:
    """Measure how many census records have an equal record among those rebuilt, each used once."""
    draws = np.random.default_rng(seed)
    total = int(truth[COUNT_COLUMN].sum())
    hits = _count_overlap(rebuilt, truth, [area, *by])
    # the same one-way numbers of every area, put together at random
    shuffled = rebuilt.sort(area)
    for name in by:
        order = pl.Series("order", draws.random(shuffled.height))
        column = shuffled.select(area, name).with_columns(order).sort(area, "order")[name]
        shuffled = shuffled.with_columns(column)
    guessed = _count_overlap(shuffled, truth, [area, *by])
    low, high = wilson_interval(hits, total)
    about = f"{pluralize(record_type)} by {', '.join(by)}"
    return RiskMeasure(
        name=name_measure("agreement", source=name_measure("source.rebuilt")),
        about=about,
        kind="absolute",
        value=hits / total if total else None,
        low=low if total else None,
        high=high if total else None,
        unit="share",
        baselines=(Baseline(name="one-way numbers put together at random", value=guessed / max(total, 1)),),
        reason="" if total else "the areas have no records",
    )


def _count_overlap(records: pl.DataFrame, truth: pl.DataFrame, by: Sequence[str]) -> int:
    counted = records.with_columns(pl.col(list(by)).cast(pl.String)).group_by(by).agg(pl.len().alias("made"))
    both = truth.join(counted, on=list(by), nulls_equal=True)
    return int(both.select(pl.min_horizontal(pl.col(COUNT_COLUMN), pl.col("made")).sum()).item() or 0)
