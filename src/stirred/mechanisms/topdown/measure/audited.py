"""The noise of a run, from its noisy measurement file and that of a run without noise; for audits on invented censuses."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.topdown.measure.nmf import list_table_files

if TYPE_CHECKING:
    from stirred.census import Census


def measure_noise(
    noisy: Mechanism,
    exact: Mechanism,
    census: "Census",
    workloads: Sequence[str],
    *,
    key: Key,
    engine: Engine | None,
) -> list[MeasuredNoise]:
    """Run with and without noise, both with their noisy measurement files, and take the difference."""
    with TemporaryDirectory() as folder:
        places = [Path(folder) / "noisy", Path(folder) / "exact"]
        for one, place in zip((noisy, exact), places, strict=True):
            place.mkdir()
            one.release(census, key=key, engine=engine, out=place)
        return [
            one
            for name in workloads
            for one in _subtract_answers(places[0] / f"nmf-{name}", places[1] / f"nmf-{name}", name)
        ]


def _subtract_answers(noisy: Path, exact: Path, workload: str) -> Iterator[MeasuredNoise]:
    """Yield published answers minus exact ones, by level and query, and by the part of ρ² of each.

    A geounit with one child also spends the child's part, so a query may have several parts at one level.
    """
    for folder in sorted(noisy.glob("*.parquet/DPQuery")):
        files = list_table_files(folder)
        if not files:
            continue
        measured = pa.concat_tables([pq.read_table(file) for file in files])
        true = pa.concat_tables([pq.read_table(exact / file.relative_to(noisy)) for file in files])
        level = folder.parent.stem
        names = measured["query_name"].to_pylist()
        parts = measured["plb"].to_pylist()
        answers, truths = measured["value"].to_pylist(), true["value"].to_pylist()
        found: dict[tuple[str, str], list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
        for name, part, answer, truth in zip(names, parts, answers, truths, strict=True):
            difference = np.array(answer, np.int64) - np.array(truth, np.int64)
            found.setdefault((name, part), []).append(difference)
        for (name, part), noise in sorted(found.items()):
            spent = Fraction(part)
            yield MeasuredNoise(
                name=f"{workload} {level} {name.removesuffix('_dpq')}",
                noise=np.concatenate(noise),
                kind="gaussian",
                parameter=1 / spent,
                loss=spent,
            )
