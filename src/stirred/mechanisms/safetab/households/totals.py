"""Read the published totals of SafeTab-P (T1): a packet, a table of one, or a file in the Bureau's format; all public."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.census.failures import redact_errors
from stirred.census.readers.delimited import guess_separator, read_header
from stirred.errors import DataError, InputError
from stirred.frames import collect_frame
from stirred.mechanisms.safetab.regions import REGION_TYPES
from stirred.roots import require_readable

Ints = NDArray[np.int64]
LISTS_KEY = b"stirred:code lists"  # the key of the code lists' digest in the metadata of a T1 table
LISTS_FILE = "t1.lists"  # the file with this digest that lies beside a T1 in text
COLUMN_NAMES = {
    "REGION_ID": "region",
    "REGION_TYPE": "region_type",
    "ITERATION_CODE": "iteration",
    "COUNT": "count",
}
TOTALS_PATHS = (
    "data*/mechanism/t1.parquet",
    "tables/t1.parquet",
    "t1.parquet",
    "t1/*.csv",
    "t1.csv",
    "t1.txt",
    "pop-group-totals.txt",
)


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """The published total of every group that SafeTab-P published, and the digest of the code lists it was made with."""

    frame: pl.DataFrame  # region_type, region, iteration (text), count
    lists: str = ""

    def of(self, kind: str, iterations: tuple[str, ...]) -> tuple[tuple[str, ...], Ints, Ints]:
        """Return the regions of a type, the keys region · I + iteration of its groups, and their totals.

        Groups whose iteration is not one of ``iterations`` are left out.
        """
        number = pl.DataFrame({"iteration": iterations, "place": np.arange(len(iterations), dtype=np.int64)},
                              schema={"iteration": pl.String, "place": pl.Int64})  # fmt: skip
        rows = self.frame.filter(pl.col("region_type") == kind).join(number, on="iteration", how="inner")
        regions = tuple(rows["region"].unique().sort())
        region = pl.DataFrame({"region": regions, "number": np.arange(len(regions), dtype=np.int64)},
                              schema={"region": pl.String, "number": pl.Int64})  # fmt: skip
        key = (pl.col("number") * len(iterations) + pl.col("place")).alias("key")
        found = rows.join(region, on="region", how="inner").select(key, "count").sort("key")
        return regions, found["key"].to_numpy(), found["count"].to_numpy()

    def digest(self) -> str:
        """Return the SHA-256 of the totals, whatever order they were given in."""
        rows = self.frame.sort("region_type", "region", "iteration")
        return sha256(rows.write_csv(separator="|").encode()).hexdigest()


def require_there(path: Path) -> None:
    """Raise an error if there is nothing at the path; what is there may still be made."""
    if not path.exists():
        raise InputError(
            "the totals are not there",
            why=f"there is no {path.name}",
            fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
        )


def is_made(path: Path) -> bool:
    """Return whether a path leads to totals already; in a plan an earlier [[mechanism]] makes them."""
    return path.is_file() or bool(_find_files(path))


def read_totals(path: Path) -> GroupTotals:
    """Return the totals at a path."""
    require_there(path)
    files = [path] if path.is_file() else _find_files(path)
    if not files:
        raise InputError(
            "the totals are not there",
            why=f"{path.name} holds no table t1",
            fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
        )
    with redact_errors("totals"):
        frame = pl.concat([_read_rows(require_readable(file)) for file in files])
    _check_rows(frame)
    return GroupTotals(frame, _read_digest(files[0]))


def _find_files(folder: Path) -> list[Path]:
    public = folder / "public" if (folder / "public").is_dir() else folder
    for place in TOTALS_PATHS:
        found = sorted(file for file in public.glob(place) if file.name != "headers.csv")
        if found:
            several = len(found) > 1 and place.endswith(".parquet")
            if several:
                raise InputError(
                    "the packet has several tables t1",
                    why=f"{len(found)} of its mechanisms made one",
                    fix="--totals the table itself: " + str(found[0].relative_to(folder)),
                )
            return found
    return []


def _read_rows(file: Path) -> pl.DataFrame:
    if file.suffix.lower() in (".parquet", ".pq"):
        frame = pl.scan_parquet(file)
    else:
        separator = guess_separator(file)
        named = set(read_header(file, separator)) & {*COLUMN_NAMES, *COLUMN_NAMES.values()}
        header = _read_header(file) if not named else None
        frame = pl.scan_csv(
            file, separator=separator, infer_schema=False, has_header=header is None, new_columns=header
        )
    there = frame.collect_schema().names()
    frame = frame.rename(
        {name: own for name, own in COLUMN_NAMES.items() if name in there and own not in there}
    )
    lacking = [name for name in COLUMN_NAMES.values() if name not in frame.collect_schema().names()]
    if lacking:
        raise DataError(
            f"the totals lack {', '.join(lacking)}",
            why=f"{file.name} must have the columns of SafeTab-P's T1",
            fix=f"first line: {'|'.join(COLUMN_NAMES)}",
        )
    text = [pl.col(name).cast(pl.String) for name in ("region_type", "region", "iteration")]
    return collect_frame(frame.select(*text, pl.col("count").cast(pl.Int64, strict=False)))


def _read_header(file: Path) -> list[str]:
    """Return the names of the columns where a program wrote them to a file of their own."""
    beside = file.with_name("headers.csv")
    return read_header(beside, "|") if beside.is_file() else list(COLUMN_NAMES)


def _check_rows(frame: pl.DataFrame) -> None:
    problems = {
        "have no whole number as their count": int(frame["count"].null_count()),
        "have an unknown region type": int((~frame["region_type"].is_in(list(REGION_TYPES))).sum()),
        "lack a region or an iteration": int(
            frame.select(pl.any_horizontal(pl.col("region", "iteration").fill_null("") == "").sum()).item()
        ),
        "stand there twice": frame.height
        - frame.select("region_type", "region", "iteration").unique().height,
    }
    for words, number in problems.items():
        if number:
            raise DataError(
                f"{number:,} of the totals {words}",
                why="every population group has one total",
                fix=f"give the T1 that SafeTab-P wrote; region types are {', '.join(REGION_TYPES)}",
            )


def _read_digest(file: Path) -> str:
    """Return the digest of the code lists that a T1 carries, empty where it carries none."""
    if file.suffix.lower() in (".parquet", ".pq"):
        return str((pq.read_schema(file).metadata or {}).get(LISTS_KEY, b"").decode())
    for side in (file.with_name(LISTS_FILE), file.parent.parent / LISTS_FILE):
        if side.is_file():
            words = side.read_text(encoding="utf-8").split()
            return words[0] if words else ""
    return ""
