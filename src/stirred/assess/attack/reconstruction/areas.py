"""Reconstruct many areas, a few at a time in threads; finished pieces are kept, so that an interrupted run is taken up.

HiGHS runs without Python's lock, so threads use all cores.
"""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.confidence import sample_solutions
from stirred.assess.attack.reconstruction.noisy import find_nearest
from stirred.assess.attack.reconstruction.programme import Programme
from stirred.assess.attack.reconstruction.published import AreaCounts
from stirred.assess.attack.reconstruction.variability import measure_variability
from stirred.census.progress import Progress, silent
from stirred.closed_files import make_closed_folder, write_closed_text
from stirred.errors import InputError

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
