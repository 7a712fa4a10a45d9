"""The microdata detail file: the released records with the columns and codes of the Bureau's files, as text between bars.

Columns after the layouts of the 2020 redistricting file and the person file of DHC. The layouts do not say what number a
person has or which build a file is of: persons are numbered within their block, and the build is Stirred's.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.workload import Workload

BUILD = "stirred-1"
GEOGRAPHY = {
    "TABBLKST": (0, 2),
    "TABBLKCOU": (2, 3),
    "TABTRACTCE": (5, 6),
    "TABBLKGRPCE": (11, 1),
    "TABBLK": (11, 4),
}
DIGITS = 15  # of the code of a block
QUARTERS = (101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602, 701, 801, 802,
            900, 901, 997)  # fmt: skip
RESIDENT = 18  # the first relationship that is a type of group quarters
INSTITUTIONAL = 15  # of the types, the first are institutions
OPENING = ("SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *GEOGRAPHY)
LAYOUTS = {
    "GQTYPE_PL": ("MPD", (*OPENING, "EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")),
    "HH_STATUS": ("MUD", (*OPENING, "RTYPE", "HH_STATUS")),
    "RELSHIP": (
        "MPD",
        (*OPENING, "EPNUM", "RTYPE", "GQTYPE", "RELSHIP", "QSEX", "QAGE", "CENHISP", "CENRACE", "LIVE_ALONE"),
    ),
}


def layout(workload: Workload) -> str | None:
    """The column that tells which layout a workload's records have; None where there is none."""
    return next((name for _, name in workload.columns if name in LAYOUTS), None)


def rows(found: str, records: pl.DataFrame, before: tuple[str, int] = ("", 0)) -> pl.DataFrame:
    """Released records with the Bureau's names as rows of the layout; ``before``: the last block so far, its persons."""
    kind, columns = LAYOUTS[found]
    block = pl.col("block").cast(pl.String)
    frame = records.with_columns(
        SCHEMA_TYPE_CODE=pl.lit(kind),
        SCHEMA_BUILD_ID=pl.lit(BUILD),
        **{name: block.str.slice(start, size) for name, (start, size) in GEOGRAPHY.items()},
    )
    if found == "HH_STATUS":
        # Housing units: 1 occupied, 2 vacant; facilities have rows of their own.
        frame = frame.with_columns(
            RTYPE=pl.lit("2"), HH_STATUS=pl.when(pl.col("HH_STATUS") == 1).then(1).otherwise(2)
        )
        return frame.select(pl.col(name).cast(pl.String) for name in columns)
    again = pl.when(block == before[0]).then(before[1]).otherwise(0)
    frame = frame.with_columns(
        EPNUM=pl.int_range(1, pl.len() + 1).over("block") + again,
        CENRACE=pl.col("CENRACE").cast(pl.String).str.zfill(2),
    )
    if found == "GQTYPE_PL":
        frame = frame.with_columns(RTYPE=pl.when(pl.col("GQTYPE_PL") == 0).then(3).otherwise(5))
    else:
        relationship = pl.col("RELSHIP").cast(pl.Int64)
        resident = relationship >= RESIDENT
        codes = {RESIDENT + i: code for i, code in enumerate(QUARTERS)}
        frame = frame.with_columns(
            RTYPE=pl.when(resident).then(5).otherwise(3),
            GQTYPE=relationship.replace_strict(codes, default=0).cast(pl.String).str.zfill(3),
            RELSHIP=pl.when(relationship >= RESIDENT + INSTITUTIONAL)
            .then(38)
            .when(resident)
            .then(37)
            .otherwise(pl.max_horizontal(relationship, 1) + 19),
            LIVE_ALONE=pl.when(relationship == 0).then(1).when(relationship == 1).then(2).otherwise(9),
        )
    return frame.select(pl.col(name).cast(pl.String) for name in columns)


def facilities(counts: pl.DataFrame) -> pl.DataFrame:
    """The rows of group-quarters facilities in the file of units: record type 4, status 0, one row for each facility.

    >>> facilities(pl.DataFrame({"block": ["390599771001000"], "count": [2]})).select("TABBLK", "RTYPE", "HH_STATUS").rows()
    [('1000', '4', '0'), ('1000', '4', '0')]
    """
    frame = counts.select(pl.col("block").cast(pl.String).repeat_by("count")).explode("block").drop_nulls()
    block = pl.col("block")
    return frame.select(
        SCHEMA_TYPE_CODE=pl.lit("MUD"),
        SCHEMA_BUILD_ID=pl.lit(BUILD),
        **{name: block.str.slice(start, size) for name, (start, size) in GEOGRAPHY.items()},
        RTYPE=pl.lit("4"),
        HH_STATUS=pl.lit("0"),
    )


def counted(workload: Workload, beside: Sequence[Workload]) -> tuple[Workload, Rule] | None:
    """The rule of another workload of the release that counts the facilities among these units; None where there is none."""
    if layout(workload) != "HH_STATUS":
        return None
    found = ((one, rule) for one in beside for rule in one.rules if rule.kind == "facilities")
    return next(((one, rule) for one, rule in found if rule.units == workload.record), None)


def write(
    workload: Workload, records: "pa.Table | pads.Dataset", folder: Path, quarters: pl.DataFrame | None = None
) -> Path | None:
    """Write ``mdf-RECORD.txt`` beside the records; None where there is no layout or blocks have other codes.

    ``quarters`` (block, count) are facilities, which have rows after those of the records.
    """
    found = layout(workload)
    if found is None or "block" not in records.schema.names:
        return None
    place = folder / f"mdf-{workload.record}.txt"
    before, first = ("", 0), True
    with place.open("wb") as file:
        for part in _parts(records):
            block = part["block"].cast(pl.String)
            if not (block.str.len_chars() == DIGITS).all():
                place.unlink()
                return None
            made = rows(found, part, before)
            made.write_csv(file, separator="|", include_header=first)
            first = False
            if "EPNUM" in made.columns and made.height:
                before = (str(block[-1]), int(made["EPNUM"][-1]))
        if quarters is not None:
            facilities(quarters).write_csv(file, separator="|", include_header=first)
    return place


def _parts(records: "pa.Table | pads.Dataset") -> Iterator[pl.DataFrame]:
    if isinstance(records, pa.Table):
        yield pl.DataFrame(records)
        return
    for batch in records.to_batches():
        if batch.num_rows:
            yield pl.DataFrame(pa.Table.from_batches([batch]))
