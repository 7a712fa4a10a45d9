"""Three ways to publish one table with all its row and column totals exact: the paper's Example 1, computed.

The PSA swaps the rows of all records and matches on nothing, so exactly the two margins are invariant. ``ExactMargins``
adds noise on the lattice of tables with zero margins. ``TopDown`` measures the cells of every row and fits integers under
two exact rules, row totals and the table's column totals. All three keep the same universes. The PSA's promise is pure
DP (D_mult, ε) and that of the others zCDP (D_nor, ρ²): the budgets are in different units, and nothing here ranks them.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.synthetic.plans import TABLE_1
from stirred.chance import Key
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.estimates import deshrink
from stirred.mechanisms.tables.exact_margins import ExactMargins
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.paper.documents import state_number
from stirred.spec import Specification

Ints = NDArray[np.int64]

SWAP_RATES: Final = tuple(Fraction(r, 100) for r in (1, 10, 50))
RHO_SQUARED: Final = (Fraction(1, 100), Fraction(1, 2), Fraction(4))
WORKLOAD: Final = """
name = "one-table"
record = "household"
rho_squared = 1
levels = ["state", "county"]
axis = [{{ name = "tenure", size = {columns}, source = {{ column = "tenure" }} }}]
query = [{{ name = "row total" }}, {{ name = "cells", of = ["tenure"] }}]
level_shares = {{ county = 1 }}
query_shares = {{ county = {{ cells = 1 }} }}
rule = [
    {{ name = "row totals", kind = "exact", query = "row total", level = "county" }},
    {{ name = "column totals", kind = "exact", query = "cells", level = "state" }},
]
"""


def workload(columns: int) -> Workload:
    """Return a workload that measures every cell of every row with the whole budget; both margins are exact."""
    return Workload.parse(WORKLOAD.format(columns=columns))


def one_table(counts: Mapping[str, Sequence[int]]) -> Census:
    """Make records with that table: rows are counties of one state, columns the codes 0, 1, … of tenure.

    >>> one_table({"a": (2, 1), "b": (0, 3)}).count("household")
    6
    """
    cells = np.array([list(row) for row in counts.values()], np.int64)
    row, column = (
        np.repeat(index.ravel(), cells.ravel()).astype(np.int16) for index in np.indices(cells.shape)
    )
    frame = pa.table(
        {
            "household_id": np.arange(1, row.size + 1),
            "state": pa.DictionaryArray.from_arrays(np.zeros(row.size, np.int16), ["the table"]),
            "county": pa.DictionaryArray.from_arrays(row, list(counts)),
            "tenure": column,
        }
    )
    schema = {
        "name": "one-table",
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"id": "household_id"}},
    }
    return Census.of(schema, {"household": frame})


def read_table(release: Release, rows: Sequence[str], columns: int) -> Ints:
    """Return the county × tenure table of a release, from its table of counts or from its microdata."""
    found = next((t for t in release.tables.values() if {"county", "tenure"} <= set(t.column_names)), None)
    made = release.microdata["household"] if found is None else found
    frame = pl.DataFrame(pl.from_arrow(made)).with_columns(pl.col("county").cast(pl.String))
    counts = frame.group_by("county", "tenure").agg(pl.len() if found is None else pl.col("count").sum())
    table = np.zeros((len(rows), columns), np.int64)
    for county, tenure, count in counts.iter_rows():
        table[rows.index(county), int(tenure)] = count
    return table


def list_ways(columns: int) -> Iterator[tuple[str, Mechanism, Fraction | None]]:
    """Name, mechanism, and the swap rate to correct for, at several budgets."""
    for rate in SWAP_RATES:
        swap = PermutationSwapping(swap=["county"], rate=rate, tables=[["county", "tenure"]], microdata=False)
        yield f"PSA, p = {rate}", swap, rate
    for rho_squared in RHO_SQUARED:
        yield "ExactMargins", ExactMargins(rows="county", columns="tenure", rho_squared=rho_squared), None
    for rho_squared in RHO_SQUARED:
        yield (
            "TopDown",
            TopDown(workload=workload(columns), rho_squared=rho_squared, mode="gls", replicates=0),
            None,
        )


def summarise_errors(name: str, promise: Specification, apart: NDArray[np.float64]) -> dict[str, object]:
    """Return one row of the comparison from the errors of all runs (runs × rows × columns)."""
    zcdp = str(promise.output_premetric) == "D_nor"
    budget = promise.rho_squared if zcdp else promise.budget
    by_row = np.sqrt((apart**2).mean(axis=(0, 2)))
    return {
        "mechanism": name,
        "flavor": f"{promise.input_premetric}, {promise.output_premetric}",
        "unit": "ρ²" if zcdp else "ε",
        "budget": str(budget),
        "exact": budget.exact,
        "mean_absolute_error": round(float(np.abs(apart).mean()), 2),
        "rmse": round(float(np.sqrt((apart**2).mean())), 2),
        "worst_row_rmse": round(float(by_row.max()), 2),
        **state_number(
            round(float(np.abs(apart).mean()), 2), "the paper states the example and runs no mechanism on it"
        ),
    }


def exact_margins(
    *, counts: Mapping[str, Sequence[int]] = TABLE_1, seed: int = 1, runs: int = 3
) -> dict[str, object]:
    """Compute errors per cell of the three mechanisms at several budgets, and check both margins.

    A second row of each PSA corrects its table for the known pull to independence, which costs no privacy.
    """
    census = one_table(counts)
    truth = np.array([list(row) for row in counts.values()], np.int64)
    rows = []
    for name, mechanism, rate in list_ways(truth.shape[1]):
        tables = []
        for run in range(runs):
            made = mechanism.release(census, key=Key.for_tests(seed).bind("exact-margins", name, run))
            tables.append(read_table(made, list(counts), truth.shape[1]))
            promise = made.specification
        for table in tables:
            if any((table.sum(axis=a) != truth.sum(axis=a)).any() for a in (0, 1)):
                raise PrivacyError(
                    f"{name} did not keep both margins",
                    why="its counts differ from the exact margins",
                    fix="this is a fault of Stirred: please report it",
                )
        rows.append(summarise_errors(name, promise, np.array(tables, np.float64) - truth))
        if rate is not None and rate < 1:
            corrected = np.array([deshrink(table, rate) for table in tables])
            rows.append(summarise_errors(f"{name}, corrected", promise, corrected - truth))
    return {
        "name": "exact-margins",
        "title": "Example 1: one table with exact margins, published in three ways",
        "source": "the paper's Table 1, first columns",
        "inputs": {"runs": runs, "seed": seed},
        "invariants": "both margins",
        "cells": truth.size,
        "runs": runs,
        "units": "ε (pure DP) and ρ² (zCDP) are different units: no ranking",
        "rows": rows,
    }
