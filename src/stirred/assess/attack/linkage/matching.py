"""Link two files one to one, without replacement: records that agree on a key are paired in random order."""

from collections.abc import Sequence

import numpy as np
import polars as pl

ROW, RANK = "row", "rank"


def link_records(left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str], *, seed: int) -> pl.DataFrame:
    """Return pairs of rows (``left``, ``right``, ``step``), linked on each key in turn among rows left over.

    Nobody is linked twice. Records of one key are interchangeable, so their order is random.

    >>> a = pl.DataFrame({"k": ["x", "x", "y"]}); b = pl.DataFrame({"k": ["x", "y", "y"]})
    >>> link_records(a, b, ["k"], seed=1).height
    2
    """
    draws = np.random.default_rng(seed)
    rest = [_shuffle_rows(left, keys, draws), _shuffle_rows(right, keys, draws)]
    found = []
    for step, key in enumerate(keys, 1):
        one, other = (
            side.filter(pl.col(key).is_not_null()).select(
                ROW, key, pl.int_range(pl.len()).over(key).alias(RANK)
            )
            for side in rest
        )
        pairs = one.join(other, on=[key, RANK], suffix="_right").select(
            pl.col(ROW).alias("left"), pl.col(f"{ROW}_right").alias("right"), pl.lit(step).alias("step")
        )
        found.append(pairs)
        rest = [
            side.join(pairs.select(pl.col(name).alias(ROW)), on=ROW, how="anti", maintain_order="left")
            for side, name in zip(rest, ("left", "right"), strict=True)
        ]
    return pl.concat(found).sort("right")


def count_agreement(left: pl.DataFrame, right: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Count by area the records of ``right`` with the same secret in ``left``: exact, and also in classes.

    Columns: area, records, exact, classed (the second counts both).
    """
    sides = [
        side.select(
            "area",
            pl.concat_str(["exact", "secret"], separator="·").alias("exact"),
            pl.concat_str(["classed", "secret"], separator="·").alias("classed"),
        )
        for side in (left, right)
    ]
    pairs = link_records(sides[0], sides[1], ["exact", "classed"], seed=seed)
    steps = pl.Series("step", np.zeros(right.height, dtype=np.int64)).scatter(
        pairs["right"].to_numpy(), pairs["step"].cast(pl.Int64)
    )
    return (
        right.select("area", steps)
        .group_by("area")
        .agg(
            pl.len().alias("records"),
            (pl.col("step") == 1).sum().alias("exact"),
            (pl.col("step") > 0).sum().alias("classed"),
        )
        .sort("area")
    )


def _shuffle_rows(frame: pl.DataFrame, keys: Sequence[str], draws: np.random.Generator) -> pl.DataFrame:
    order = draws.permutation(frame.height)
    return frame.select(keys)[order].with_columns(pl.Series(ROW, order.astype(np.int64)))
