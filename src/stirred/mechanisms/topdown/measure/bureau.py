"""The noisy measurement file with the Bureau's names: levels, folders by state, constraints and recodes.

``County.parquet/DPQuery/State=50/part-0.parquet``, as the readers of the published files expect it; the nation has no
folder by state. Columns and values stay those of ``nmf``, except that the variance has 32 bits and that a query of all cells
has the recode ``detailed`` on every axis. Codes of areas are the census's own: those of the Bureau's spine cannot be made
from them. A code of a part begins with 1 for an AIAN area and 0 for the remainder, a block's ends with its 16 digits.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.file_names import make_file_name, path_in
from stirred.mechanisms.topdown.measure.nmf import MAX_NODES_PER_WRITE, list_table_files
from stirred.mechanisms.topdown.workload.workload import Workload

LEVEL_NAMES = {
    "us": "US", "nation": "US", "root": "US", "state": "State", "county": "County", "prim": "Prim", "tract": "Tract",
    "tract_subset_group": "Tract_Subset_Group", "tract_subset": "Tract_Subset", "block_group": "Block_Group",
    "block": "Block",
}  # fmt: skip
LEVEL_SUFFIXES = ("_part", "_optimized")  # of levels of another tree
WHOLE_STATE_LEVEL = "State_Total"  # states above their parts, which are not measured
BLOCK_CODE_DIGITS = 15  # of the code of a block
PART_FLAG_PATTERN = r"^([01])\|"  # before the code of a part
RULE_NAMES = {"exact": "total", "facilities": "hhgq_total"}


def name_level(level: str, levels: tuple[str, ...]) -> str:
    """Return the Bureau's name of a level.

    >>> levels = ("state", "state_part", "block_group_optimized")
    >>> [name_level(level, levels) for level in levels]
    ['State_Total', 'State', 'Block_Group']
    """
    if f"{level}{LEVEL_SUFFIXES[0]}" in levels:
        return WHOLE_STATE_LEVEL
    plain = level
    for ending in LEVEL_SUFFIXES:
        plain = plain.removesuffix(ending)
    return LEVEL_NAMES.get(plain, level)


def rename_levels(folder: Path, levels: tuple[str, ...], workload: Workload) -> None:
    """Write every level of a noisy measurement file again under the Bureau's names, and drop the old one."""
    for level in levels:
        name = make_file_name(level)
        own = path_in(folder, name, ".parquet").rename(path_in(folder, f"own-{name}", ".parquet"))
        new = path_in(folder, make_file_name(name_level(level, levels)), ".parquet")
        for kind in ("DPQuery", "Constraint"):
            files = list_table_files(own / kind)
            (new / kind).mkdir(parents=True, exist_ok=True)
            _write(files, new / kind, level, workload)
            (own / kind).rmdir()
        own.rmdir()


def _write(files: list[Path], folder: Path, level: str, workload: Workload) -> None:
    """Move the rows of files to a folder for each state; those of the nation and of other codes stay beside them."""
    whole = LEVEL_NAMES.get(level) == "US"
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for batch in (batch for file in files for batch in _batches(file)):
            frame = _rename_rows(pl.DataFrame(pa.Table.from_batches([batch])), workload)
            state = (
                pl.lit("") if whole else pl.col("geocode").str.extract(r"^(?:[01]\|)?(\d\d)").fill_null("")
            )
            geocode = pl.col("geocode").str.replace(PART_FLAG_PATTERN, "$1")
            if level == workload.levels[-1]:
                long = pl.concat_str(
                    geocode.str.slice(0, 11), geocode.str.slice(11, 1), geocode.str.slice(11, 4)
                )
                geocode = pl.when(geocode.str.len_chars() == BLOCK_CODE_DIGITS).then(long).otherwise(geocode)
            parts = frame.with_columns(state.alias("stirred:state"), geocode.alias("geocode"))
            for part in parts.partition_by("stirred:state", maintain_order=True):
                code = str(part["stirred:state"][0])
                table = part.drop("stirred:state").to_arrow()
                if code not in writers:
                    place = folder / f"State={code}" if code else folder
                    place.mkdir(exist_ok=True)
                    writers[code] = stack.enter_context(
                        pq.ParquetWriter(place / "part-0.parquet", table.schema, compression="zstd")
                    )
                writers[code].write_table(table)


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, and delete it at the end."""
    with pq.ParquetFile(file) as open_file:
        for group in range(open_file.num_row_groups):
            yield from open_file.iter_batches(batch_size=MAX_NODES_PER_WRITE, row_groups=[group])
    file.unlink()


def _rename_rows(frame: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return the rows with the Bureau's names of constraints and recodes."""
    names: dict[str, str] = {}
    for rule in workload.rules:
        if rule.kind in RULE_NAMES:
            names |= {
                f"{rule.name}{end}_con": f"{RULE_NAMES[rule.kind]}{end}_con" for end in ("", "_lb", "_ub")
            }
    axes = [axis.name for axis in workload.histogram.axes]
    every = pl.col("query_name") == "detailed_dpq"
    return frame.with_columns(
        pl.col("query_name").replace(names),
        pl.col("variance").cast(pl.Float32),
        *(pl.when(every).then(pl.lit("detailed")).otherwise(pl.col(axis)).alias(axis) for axis in axes),
    )
