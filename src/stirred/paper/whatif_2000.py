"""The paper's Table 5 for the census of 2000: its largest strata counted from published tables that the user names."""

from pathlib import Path
from typing import Any, Final

import polars as pl

from stirred.catalog.published import WHAT_IF_RATES
from stirred.errors import InputError
from stirred.mechanisms.swapping.budget.by_size import theorem_1, tight_budget
from stirred.paper.printed import state_number

SIZES: Final = tuple(f"hh{size}" for size in range(1, 8))
LEVELS: Final = {  # strata → the file, its columns, what is swapped
    "state": ("tracts.parquet", ("state",), "county"),
    "county": ("tracts.parquet", ("state", "county"), "tract"),
    "block group": ("block_groups.parquet", ("state", "county", "tract", "block_group"), "block"),
}
NO_DATA: Final = "household size by tract and block group of the 2000 census"


def table_whatif_2000(*, data: Path | None = None) -> dict[str, Any]:
    """Count the largest strata of 2000 and compute ε by Theorem 1; needs ``--data DIR``."""
    if data is None:
        raise InputError(
            "table-whatif-2000 needs the tables of the 2000 census",
            why="they are not part of Stirred",
            fix=f"stirred reproduce table-whatif-2000 --data DIR, with {NO_DATA} in tracts.parquet and block_groups.parquet",
        )
    rows = []
    for name, (file, columns, swap) in LEVELS.items():
        frame = _read(data, file, columns)
        totals = frame.group_by(columns).agg(pl.col(*SIZES).sum())
        whole = totals.select(*columns, pl.sum_horizontal(*SIZES).alias("b"))
        sizes = totals.unpivot(SIZES, index=list(columns), variable_name="size", value_name="b")
        for match, strata in ((name, whole), (f"{name} × household size", sizes)):
            largest = strata.sort("b", *columns, descending=[True, *(False for _ in columns)]).row(
                0, named=True
            )
            where = "".join(str(largest[column]) for column in columns)
            persons = largest.get("size", "")[2:]
            words = f", {persons} person{'s' if persons != '1' else ''}" if persons else ""
            b = int(largest["b"])
            rows += [
                {
                    "match": match,
                    "swap": swap,
                    "b": b,
                    "where": f"{where}{words}",
                    "rate": str(rate),
                    **state_number(theorem_1(b, rate).upper(6), "the paper's table is about 2020"),
                    "tight": float(tight_budget(b, rate).upper(6)),
                }
                for rate in WHAT_IF_RATES
            ]
    return {
        "name": "table-whatif-2000",
        "title": "Table 5 for the census of 2000: what if it had swapped",
        "source": f"{NO_DATA} (published tables, already swapped by the Bureau)",
        "inputs": {"files": list(dict.fromkeys(file for file, _, _ in LEVELS.values()))},
        "rows": rows,
    }


def _read(data: Path, file: str, columns: tuple[str, ...]) -> pl.DataFrame:
    path = data / file
    if not path.is_file() and (data / "census2000" / file).is_file():
        path = data / "census2000" / file
    if not path.is_file():
        raise InputError(
            f"{file} is not in the folder of --data",
            why=f"the strata are counted from {NO_DATA}",
            fix=f"name the folder that holds {file}",
        )
    lacking = [name for name in (*columns, *SIZES) if name not in pl.read_parquet_schema(path)]
    if lacking:
        raise InputError(
            f"{file} lacks {', '.join(lacking)}",
            why="areas and households by size (hh1 to hh7) are needed",
            fix="name the folder that holds the tables of 2000",
        )
    return pl.read_parquet(path, columns=[*columns, *SIZES])
