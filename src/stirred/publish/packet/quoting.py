"""Which number of a published table to quote; tables as they are published, with no negative estimate."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Literal

import polars as pl

from stirred.assess.coverage import CLASSES, MEASURED, NOMINAL, TRUE_SIZE, as_range

if TYPE_CHECKING:
    import pyarrow as pa  # a look-up, which makes no table, need not load it

QUOTE = "quote"  # the column of a published table that names the number to quote
RULE = "Quote the estimate with its interval; counts are for adding up."
WHY = (
    "A count is the number of released records, so counts add up over tables and areas; but a method that moves or adds "
    "records pulls counts towards the average. The estimate takes this pull back, and the interval is around the "
    "estimate: a count may lie outside it."
)
METHOD_NAMES = {
    "topdown": "TopDown, by replicates",
    "unbiased": "TopDown, unbiased",
    "swap": "swap",
}
INTERVALS = f"""The intervals are made to hold the true number of {
    NOMINAL
} in 100 cells that are published alike. Measured, of 100, by method, level
and published number (the lowest and the highest of several tables):

{"":<36}{"".join(f"{name:>10}" for name in CLASSES)}
{
    chr(10).join(
        f"{f'{METHOD_NAMES[method]}: {level}':<36}" + "".join(f"{as_range(one):>10}" for one in row)
        for method, rows in MEASURED.items()
        for level, row in rows.items()
    )
}

Of cells whose true number is 1 to 19, whatever was published for them, {TRUE_SIZE[0]} to {
    TRUE_SIZE[1]
} of 100 lie in their interval.
"""
COLUMNS = f"""{RULE}

{WHY}

count            released records in the cell
weighted         the sum of their weights, in tables that have weights
estimate         the true number, estimated; never below 0
standard_error   of the estimate; 0: the number is exact; inf: nothing certain is known beyond the margins
variance         of the noise on the count, in tables that state it
low, high        95 % interval of the true number; empty where the number is exact
{QUOTE}            the column to quote: estimate, or count (weighted) where it is exact or nothing else is known; neither

{INTERVALS}"""  # what tables/README.txt says
WIDE = 20  # intervals at least this wide are shown in whole numbers: tenths would be false precision
Quoted = Literal["count", "weighted", "estimate", "neither"]


def quoted(
    *, estimate: float | None, standard_error: float | None, measure: Literal["count", "weighted"] = "count"
) -> Quoted:
    """The column to quote of one cell: exact numbers as they are, uncertain ones as estimates.

    >>> quoted(estimate=12.3, standard_error=1.5), quoted(estimate=12.0, standard_error=0.0)
    ('estimate', 'count')
    """
    if estimate is None or standard_error is None or standard_error == 0:
        return measure
    return "neither" if standard_error == float("inf") else "estimate"


def which_number(
    *,
    count: float,
    estimate: float | None,
    standard_error: float | None,
    low: float | None = None,
    high: float | None = None,
    measure: Literal["count", "weighted"] = "count",
) -> str:
    """Which number of a cell to quote, and why, in one or two sentences; ``count`` is the number in column ``measure``.

    >>> which_number(count=8, estimate=8.0, standard_error=0.0)
    'Quote 8: it is exact.'
    >>> print(which_number(count=30, estimate=21.4, standard_error=3.0, low=15.5, high=27.3))
    Quote the estimate, 21.4 (15.5 to 27.3). The published count, 30, is for adding up; it lies outside the interval \
because the method pulls counts towards the average.
    >>> print(which_number(count=80, estimate=74.38, standard_error=9.0, low=56.2, high=92.1))
    Quote the estimate, 74 (56 to 93). The published count, 80, is for adding up.
    """
    choice = quoted(estimate=estimate, standard_error=standard_error, measure=measure)
    name, number = ("count", f"{count:,.0f}") if measure == "count" else ("total", f"{count:,.1f}")
    if choice == "neither":
        return f"Quote no number for this cell alone; the published {name}, {number}, is for adding up."
    if choice != "estimate":
        if standard_error is None:
            return f"Quote {number}; how certain it is, the release does not say."
        return f"Quote {number}: it is exact."
    first = (
        f"Quote the estimate, {_told(estimate, low, high)}. The published {name}, {number}, is for adding up"
    )
    if low is None or high is None or low <= max(count, 0) <= high:
        return f"{first}."
    return f"{first}; it lies outside the interval because the method pulls {name}s towards the average."


def _told(estimate: float | None, low: float | None, high: float | None) -> str:
    """An estimate with its interval, whole numbers where that is wide; the ends are rounded outwards."""
    wide = low is not None and high is not None and high - low >= WIDE

    def shown(number: float | None, rounding: str) -> str:
        return f"{Decimal(repr(number)).quantize(Decimal(1 if wide else '0.1'), rounding):,}"

    told = shown(estimate, ROUND_HALF_EVEN)
    if low is None or high is None:
        return told
    return f"{told} ({shown(low, ROUND_FLOOR)} to {shown(high, ROUND_CEILING)})"


def which_numbers(table: "pa.Table") -> str:
    """Which number of a whole table to quote, with how many of its counts lie outside their own interval."""
    frame = pl.DataFrame(pl.from_arrow(table))
    if "standard_error" not in frame.columns or frame["standard_error"].null_count() == frame.height > 0:
        return "Quote the counts; how certain they are, the release does not say."
    measure = "weighted" if "weighted" in frame.columns else "count"
    uncertain = frame.filter(pl.col("standard_error") > 0)
    if uncertain.is_empty():
        return "Every number of this table is exact."
    outside = uncertain.filter(~pl.col(measure).clip(lower_bound=0).is_between("low", "high")).height
    if not outside:
        return RULE
    share = f"{outside:,} of {uncertain.height:,} uncertain cells"
    return f"{RULE} In {share} the count lies outside the interval of the estimate."


def publishable(table: "pa.Table") -> "pa.Table":
    """A table as it is published: estimates and intervals at or above 0, no interval where exact, the column ``quote``.

    >>> import pyarrow as pa
    >>> made = pa.table({"count": [0, 5], "estimate": [-0.2, 5.0], "standard_error": [0.1, 0.0],
    ...                  "low": [-0.4, 5.0], "high": [0.1, 5.0]})
    >>> publishable(made).to_pylist()[0]["estimate"], publishable(made).to_pylist()[1]["low"]
    (0.0, None)
    >>> publishable(made)["quote"].to_pylist()
    ['estimate', 'count']
    """
    measure = "weighted" if "weighted" in table.column_names else "count"
    if not {"estimate", "standard_error", "low", "high"} <= set(table.column_names):
        import pyarrow as pa

        said = pa.array([measure] * table.num_rows, pa.string())
        return _described(table.append_column(QUOTE, said))
    frame = pl.DataFrame(pl.from_arrow(table))
    error = pl.col("standard_error")
    exact = error.fill_null(float("nan")) == 0
    frame = frame.with_columns(pl.col("estimate", "low", "high").clip(lower_bound=0.0))
    frame = frame.with_columns(
        pl.when(~exact).then(pl.col("low", "high")),
        pl.when(exact | error.is_null())
        .then(pl.lit(measure))
        .when(error.is_infinite())
        .then(pl.lit("neither"))
        .otherwise(pl.lit("estimate"))
        .alias(QUOTE),
    )
    made = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return _described(made.replace_schema_metadata(table.schema.metadata))


def _described(table: "pa.Table") -> "pa.Table":
    """The table with the rule in the metadata of its Parquet file."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), "stirred.quote": f"{RULE} {WHY}"})
