"""What someone guesses who knows only where a person lives: the commonest value among the others there (Francis 2022)."""

from dataclasses import dataclass

import polars as pl

from stirred.frames import collect_frame

MAX_LEVELS = 100  # of a variable that can be guessed


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityGuess:
    """The success of guessing an area's commonest value, beside that of all records, by released records.

    Each record is guessed from the others, so that an area with one record gives nothing away; absolute risk, and of a kind
    that every table by area gives.
    """

    variable: str
    area: str
    records: int
    found: float
    guess: float

    @property
    def gain(self) -> float:
        """Return the share of the misses of the guess without an area that the area turns into hits."""
        return (self.found - self.guess) / (1 - self.guess) if self.guess < 1 else 0.0


def guess_by_area(records: pl.LazyFrame, area: str, variable: str) -> MajorityGuess | None:
    """Compare the guess by area with the guess without one; None for one level or very many.

    >>> frame = pl.LazyFrame({"block": ["a", "a", "a", "b", "b", "c"], "race": [1, 1, 2, 2, 2, 1]})
    >>> found = guess_by_area(frame, "block", "race")
    >>> round(found.found, 3), round(found.guess, 3)
    (0.667, 0.5)
    """
    cells = collect_frame(records.group_by([area, variable]).agg(pl.len().cast(pl.Int64).alias("n")))
    whole = cells.group_by(variable).agg(pl.col("n").sum()).sort("n", variable, descending=[True, False])
    if not 2 <= whole.height <= MAX_LEVELS:
        return None
    total, commonest = int(whole["n"].sum()), whole[variable][0]
    # in an area with one record the guess is the one without an area
    single = pl.col("n").sum().over(area) == 1
    spared = cells.filter(single & pl.col(variable).eq_missing(pl.lit(commonest))).height
    return MajorityGuess(
        variable=variable,
        area=area,
        records=total,
        found=(_expected_hits(cells, area) + spared) / total,
        guess=int(whole["n"][0]) / total,
    )


def _expected_hits(cells: pl.DataFrame, area: str) -> float:
    """Return the expected hits of the commonest value among the others; a tie is decided by lot.

    Without the record itself its value has one less, so only records with the one commonest value can be guessed right.
    """
    ordered = pl.col("n").sort(descending=True)
    areas = cells.group_by(area).agg(
        ordered.first().alias("top"),
        ordered.slice(1, 1).sum().alias("second"),
        (pl.col("n") == ordered.slice(1, 1).sum()).sum().alias("seconds"),
    )
    top, second = pl.col("top"), pl.col("second")
    tied = top / (1 + pl.col("seconds"))
    hits = (
        pl.when(top - 1 > second).then(top).when((top - 1 == second) & (second > 0)).then(tied).otherwise(0.0)
    )
    return float(areas.select(hits.sum()).item())
