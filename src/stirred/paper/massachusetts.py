"""The paper's demonstration (Section 3.4): owners and renters in the counties of Massachusetts, 1940, before and after.

The full count itself is not public; the synthetic census has the paper's county × tenure table and its largest
stratum. A user's own IPUMS extract takes its place with ``--ipums``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.census.synthetic.plans import TABLE_1
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.stirring.law import Asked, LawName, StratumShape, StratumShapes, choose_laws
from stirred.mechanisms.stirring.moves import draw_stirring
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.budget import theorem_1, tight_budget
from stirred.mechanisms.swap.estimates import mean_table
from stirred.mechanisms.swap.moves import draw_moves
from stirred.paper.documents import DRAWN, compare_number, state_number

TENURES: Final = ("owned", "rented")
# Table 1 of the paper, last columns: one draw at p = 50 %
PAPER_SWAPPED: Final = {
    "Barnstable": (5907, 5379),
    "Berkshire": (13770, 19383),
    "Bristol": (35537, 62141),
    "Dukes": (946, 795),
    "Essex": (52631, 82605),
    "Franklin": (6337, 7538),
    "Hampden": (32267, 56496),
    "Hampshire": (8145, 9912),
    "Middlesex": (100372, 151459),
    "Nantucket": (471, 554),
    "Norfolk": (38566, 46604),
    "Plymouth": (21549, 27190),
    "Suffolk": (67357, 158852),
    "Worcester": (51950, 79711),
}
# Table 1 of the paper, first columns: the synthetic census is made with them, an IPUMS extract is compared with them
PAPER_BEFORE: Final = TABLE_1
RATES: Final = tuple(Fraction(r, 100) for r in (1, 2, 5, 10, 20, 30, 40, 50))
PAPER_RATES: Final = {
    Fraction(1, 100): "17.08",
    Fraction(1, 20): "15.43",
    Fraction(1, 10): "14.68",
    Fraction(1, 2): "12.48",
}
SYNTHETIC: Final = "synthetic massachusetts-1940 (the paper's Table 1 margins)"


def swapping(rate: Fraction) -> PermutationSwapping:
    """Return the paper's mechanism: swap counties within household size × state, publish county × tenure."""
    return PermutationSwapping(
        match=["state", "size"], swap=["county"], rate=rate, tables=[["county", "tenure"]], microdata=False
    )


def census_1940(ipums: Path | None = None) -> tuple[Census, str]:
    """Return the synthetic census, or the households of an IPUMS extract, with the name of the source."""
    if ipums is not None:
        return read_ipums(ipums), "IPUMS 1940 full count, the user's own extract"
    made = synthesise("massachusetts-1940")
    return Census.of(made.schema, made.tables), SYNTHETIC


def read_ipums(path: Path) -> Census:
    """Read households of Massachusetts from a person or household extract of IPUMS (CSV or Parquet).

    Needs STATEFIP, COUNTYICP, OWNERSHP and SERIAL, and NUMPREC or one row per person. COUNTYICP is ten times the
    county's FIPS code in Massachusetts, whose odd codes 1 to 27 name the fourteen counties in alphabetical order.
    Homes with no tenure (group quarters) are left out, as in the paper's table.
    """
    frame = pl.scan_parquet(path) if path.suffix == ".parquet" else pl.scan_csv(path)
    names = frame.collect_schema().names()
    needed = ["STATEFIP", "COUNTYICP", "OWNERSHP", "SERIAL"]
    lacking = [name for name in needed if name not in names]
    if lacking:
        raise InputError(
            f"the extract lacks {', '.join(lacking)}",
            why="the paper's tables are computed from these variables",
            fix="select these variables in the extract and download it again",
        )
    size = pl.col("NUMPREC").first() if "NUMPREC" in names else pl.len()
    counties = dict(zip(range(10, 280, 20), sorted(PAPER_SWAPPED), strict=True))
    homes = (
        frame.filter((pl.col("STATEFIP") == 25) & pl.col("OWNERSHP").is_in([1, 2]))
        .group_by("SERIAL")
        .agg(pl.col("COUNTYICP").first(), pl.col("OWNERSHP").first(), size.cast(pl.Int16).alias("size"))
        .select(
            pl.col("SERIAL").alias("household_id"),
            pl.lit("Massachusetts").alias("state"),
            pl.col("COUNTYICP")
            .replace_strict(counties, return_dtype=pl.String, default=None)
            .alias("county"),
            "size",
            pl.col("OWNERSHP")
            .replace_strict({1: "owned", 2: "rented"}, return_dtype=pl.String)
            .alias("tenure"),
        )
        .filter(pl.col("county").is_not_null())
        .collect()
    )
    schema = {
        "name": "massachusetts-1940",
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"id": "household_id"}},
    }
    return Census.of(schema, {"household": homes})


def county_table(counts: object) -> dict[str, tuple[int, int]]:
    """Return owned and rented by county from a table of counts."""
    frame = pl.DataFrame(pl.from_arrow(counts)).with_columns(pl.col("county", "tenure").cast(pl.String))
    found: dict[str, list[int]] = {}
    for county, tenure, count in frame.select("county", "tenure", "count").iter_rows():
        found.setdefault(county, [0, 0])[TENURES.index(tenure)] = count
    return {county: (row[0], row[1]) for county, row in sorted(found.items())}


def mape(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Return the mean over cells of |n − n′|/n, the paper's measure of what a swap changes.

    >>> mape(np.array([10.0, 20.0]), np.array([11.0, 20.0]))
    0.05
    """
    return float(np.mean(np.abs(before - after) / before))


def table_1940(
    *, rate: Fraction = Fraction(1, 2), seed: int = 1, ipums: Path | None = None
) -> dict[str, object]:
    """Compute Table 1: county × tenure before and after one run of the PSA on household records."""
    census, source = census_1940(ipums)
    mechanism = swapping(rate)
    release = mechanism.release(census, key=Key.for_tests(seed))
    before = county_table(census.counts("household", ["county", "tenure"]))
    after = county_table(release.tables["county × tenure"])
    b = mechanism.frame(census).shapes().b
    cells = [
        np.array([row for pair in sorted(table.items()) for row in pair[1]], float)
        for table in (before, after)
    ]
    rows = [
        {
            "county": county,
            "owned": before[county][0],
            "rented": before[county][1],
            "total": sum(before[county]),
            "owned_swapped": after[county][0],
            "rented_swapped": after[county][1],
            "total_swapped": sum(after[county]),
            "paper_owned_swapped": PAPER_SWAPPED[county][0],
            "paper_rented_swapped": PAPER_SWAPPED[county][1],
            **_beside_the_paper(before[county], after[county], county),
        }
        for county in before
    ]
    return {
        "name": "table-1940",
        "title": "Table 1: counties of Massachusetts, 1940, before and after a swap",
        "source": source,
        "inputs": {"rate": str(rate), "seed": seed},
        "rate": str(rate),
        "b": b,
        "epsilon": float(theorem_1(b, rate).upper(6)),
        "epsilon_tight": float(tight_budget(b, rate).upper(6)),
        "mape": round(mape(cells[0], cells[1]), 6),
        "rows": rows,
    }


def _beside_the_paper(
    before: tuple[int, int], after: tuple[int, int], county: str
) -> dict[str, dict[str, int] | str]:
    """Return every number of a row of Table 1 beside the printed one."""
    names = ("owned", "rented", "total", "owned_swapped", "rented_swapped", "total_swapped")
    computed = dict(zip(names, (*before, sum(before), *after, sum(after)), strict=True))
    printed_before, printed_after = PAPER_BEFORE[county], PAPER_SWAPPED[county]
    paper = dict(
        zip(
            names,
            (*printed_before, sum(printed_before), *printed_after, sum(printed_after)),
            strict=True,
        )
    )
    difference = {name: computed[name] - paper[name] for name in names}
    return {
        "computed": computed,
        "paper": paper,
        "difference": difference,
        "reason": DRAWN if any(difference.values()) else "",
    }


@dataclass(frozen=True, slots=True)
class Runs:
    """Many runs on one loaded census: county × tenure as counts of cells."""

    ids: NDArray[np.uint64]
    strata: NDArray[np.uint32]
    sizes: NDArray[np.uint32]
    county: NDArray[np.int64]
    tenure: NDArray[np.int64]

    @classmethod
    def of(cls, census: Census) -> "Runs":
        """Load the census once."""
        frame = swapping(Fraction(1, 2)).frame(census)
        county, tenure = (
            frame.columns[name].codes.astype(np.int64) - frame.columns[name].low
            for name in ("county", "tenure")
        )
        return cls(frame.ids, frame.strata.codes, frame.strata.sizes, county, tenure)

    def table(self, county: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the counts of cells as county × tenure."""
        counts = np.bincount(county * 2 + self.tenure, minlength=2 * (int(self.county.max()) + 1))
        return counts.reshape(-1, 2).astype(np.float64)

    def swap(self, rate: Fraction, key: Key) -> NDArray[np.float64]:
        """Return county × tenure after one draw of the PSA."""
        moves = draw_moves(key, ids=self.ids, strata=self.strata, sizes=self.sizes, rate=rate)
        return self.table(moves.apply(self.county).astype(np.int64))

    def stir(self, rate: Fraction, key: Key, law: LawName) -> NDArray[np.float64]:
        """Return county × tenure after one stirring that moves the same share; types are the tenures."""
        first = np.bincount(self.strata, self.tenure == 0, minlength=self.sizes.size).astype(int).tolist()
        shapes = StratumShapes.of(
            StratumShape(
                n, tuple(filter(None, (owned, n - owned))), None
            )  # None: more counties than a law counts
            for n, owned in zip(self.sizes.tolist(), first, strict=True)
        )
        moves = draw_stirring(
            key,
            ids=self.ids,
            strata=self.strata,
            sizes=self.sizes,
            laws=choose_laws(shapes, Asked.of(rate=rate, law=law)),
            held=self.tenure.astype(np.uint64),
        )
        return self.table(moves.apply(self.county).astype(np.int64))

    def runs(
        self, rate: Fraction, count: int, seed: int, law: LawName | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield county × tenure after independent draws of the PSA, or of stirring by a law."""
        for run in range(count):
            key = Key.for_tests(seed).bind("1940", str(rate), run)
            yield self.swap(rate, key) if law is None else self.stir(rate, key.bind(law), law)

    def mean(self, rate: Fraction) -> NDArray[np.float64]:
        """Return the closed form of the expected table."""
        size = int(self.sizes.size)
        cells = (self.strata.astype(np.int64) * 2 + self.tenure) * (int(self.county.max()) + 1) + self.county
        joint = np.bincount(cells, minlength=size * 2 * (int(self.county.max()) + 1))
        expected: NDArray[np.float64] = mean_table(joint.reshape(size, 2, -1), rate).sum(axis=0).T
        return expected


def figure_mape(*, seed: int = 1, runs: int = 20, ipums: Path | None = None) -> dict[str, object]:
    """Compute Figure 1: the table at eight swap rates, twenty runs each, and its expectation."""
    census, source = census_1940(ipums)
    loaded = Runs.of(census)
    before = loaded.table(loaded.county)
    rows = [
        {
            "rate": str(rate),
            "percent": float(100 * rate),
            "run": run + 1,
            "mape": round(mape(before, after), 6),
            **state_number(round(mape(before, after), 6)),
        }
        for rate in RATES
        for run, after in enumerate(loaded.runs(rate, runs, seed))
    ]
    expected = [
        {"rate": str(rate), "mape_of_the_mean": round(mape(before, loaded.mean(rate)), 6)} for rate in RATES
    ]
    return {
        "name": "figure-mape",
        "title": "Figure 1: what swapping changes",
        "source": source,
        "inputs": {"runs": runs, "seed": seed, "rates": [str(rate) for rate in RATES]},
        "runs": runs,
        "rows": rows,
        "closed_form": expected,
    }


def table_rates(*, ipums: Path | None = None) -> dict[str, object]:
    """Compute Table 2: ε of the demonstration at four swap rates, with the sharper bounds."""
    census, source = census_1940(ipums)
    rows = []
    for rate, printed in PAPER_RATES.items():
        promise = swapping(rate).specification(census)
        bounds = {bound.name: float(bound.budget.upper(6)) for bound in promise.bounds}
        rows.append(
            {
                "rate": str(rate),
                "epsilon": bounds["Theorem 1"],
                "paper_epsilon": printed,
                "bounds": bounds,
                **compare_number(bounds["Theorem 1"], printed),
            }
        )
    b = swapping(Fraction(1, 2)).frame(census).shapes().b
    return {
        "name": "table-rates",
        "title": "Table 2: ε at four swap rates",
        "source": source,
        "inputs": {"b": b, "rates": [str(rate) for rate in PAPER_RATES]},
        "b": b,
        "rows": rows,
    }
