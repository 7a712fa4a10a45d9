"""Read GRF-C, the public list of blocks: every area of the spine with its parent, and the place and area of a block."""

from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers import delimited

# level → how many of the four columns its code joins, cut to its length; the length tells a code with lost zeros
LEVEL_CODE_LENGTHS = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
GRF_FIELD_WIDTHS = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLK": 4}
NO_PLACE, NO_AREA = "99999", "9999"


def scan_grf(source: Source, folder: Path) -> pl.LazyFrame:
    """Return one row per area: code, parent and level, and for blocks place and American Indian area.

    A block whose codes have not their fixed widths (leading zeros were lost) has no code, and validation counts it.
    """
    table = delimited.scan_delimited(Source(files=source.files, separator="|"), folder)
    whole = pl.all_horizontal(
        pl.col(name).str.len_chars() == width for name, width in GRF_FIELD_WIDTHS.items()
    )
    state, place, area = pl.col("TABBLKST"), pl.col("PLACEFP"), pl.col("AIANNHCE")
    blocks = table.select(
        pl.when(whole).then(pl.concat_str(list(GRF_FIELD_WIDTHS))).alias("code"),
        pl.when(place != NO_PLACE).then(pl.concat_str(state, place)).alias("place"),
        pl.when(area != NO_AREA).then(area).alias("aiannh"),
    )
    parts = []
    for (above, cut), (level, length) in zip(
        [("", 0), *LEVEL_CODE_LENGTHS.items()], LEVEL_CODE_LENGTHS.items(), strict=False
    ):
        code = pl.col("code").str.slice(0, length)
        parent = code.str.slice(0, cut) if above else pl.lit(None, dtype=pl.String)
        beside = (
            [pl.col("place"), pl.col("aiannh")]
            if level == "block"
            else [pl.lit(None, dtype=pl.String).alias(name) for name in ("place", "aiannh")]
        )
        areas = blocks.select(
            code.alias("code"), parent.alias("parent"), pl.lit(level).alias("level"), *beside
        )
        # every block is a row of its own, so that one that is listed twice is noticed
        parts.append(areas if level == "block" else areas.drop_nulls("code").unique(maintain_order=True))
    return pl.concat(parts)
