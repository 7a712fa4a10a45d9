"""Count the numbers of the first screens again, from a demo's files with polars alone.

python benchmarks/first_screen.py [DEMO] prints them, and a reader's test of twelve questions with the right answers; without
a folder it makes a demo first.

Nothing of stirred.report is imported: classes, medians, rounding and the sets of cells are written here anew. The census
of the demo is synthetic, so that errors against it may be shown.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from hashlib import sha256
from math import exp, log, prod
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

RELEASES = ("swap-5", "stirring-5", "topdown")
TABLES = {
    "hispanic-by-county": ("county", "hispanic"),
    "race-by-tract": ("tract", "race"),
    "persons-by-block": ("block",),
}
CLASSES = {"0": (0, 1), "1–9": (1, 10), "10–99": (10, 100), "100–999": (100, 1000), "1,000+": (1000, 10**9)}
IN_PER_CENT = ("100–999", "1,000+")
FAR = 1.5  # the widest interval is shown where it is so many times the middle one


def digits(value: float) -> str:
    """Two significant digits, whole numbers from 10 on."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:#.2g}" if value else "0"


def up(value: float) -> str:
    """The same, never below the value."""
    exact = Decimal(repr(value))
    unit = Decimal(1) if exact >= 10 else Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{exact.quantize(unit, ROUND_CEILING):,f}"


def count_truth(demo: Path, by: tuple[str, ...]) -> pl.DataFrame:
    """Persons of the census by some variables."""
    homes = pl.read_parquet(demo / "census/household/*.parquet").select(
        "household_id", "county", "tract", "block"
    )
    persons = pl.read_parquet(demo / "census/person/*.parquet").select("household_id", "race", "hispanic")
    counted = persons.join(homes, on="household_id").group_by(by).agg(pl.len().alias("truth"))
    return counted.with_columns(pl.col(by).cast(pl.String))


def read_table(demo: Path, release: str, name: str) -> pl.DataFrame:
    """A published table with the number to quote; its keys are text."""
    table = pl.read_csv(demo / release / "public/tables" / f"{name}.csv", infer_schema_length=None)
    number = pl.when(pl.col("quote") == "estimate").then(pl.col("estimate")).otherwise(pl.col("count"))
    return table.with_columns(pl.col(TABLES[name]).cast(pl.String), number.cast(pl.Float64).alias("number"))


def count_intervals(table: pl.DataFrame) -> dict[str, str]:
    """Class → the interval of the middle cell, and the widest where it is much wider."""
    told = {}
    for name, (low, high) in CLASSES.items():
        cells = [row for row in table.iter_rows(named=True) if low <= max(row["count"], 0) < high]
        sizes = []
        for row in cells:
            if row["standard_error"]:
                half = max(row["estimate"] - row["low"], row["high"] - row["estimate"])
                sizes.append(100 * half / max(row["estimate"], 1) if name in IN_PER_CENT else half)
        sign = "%" if name in IN_PER_CENT else ""
        if sizes:
            told[name] = f"± {digits(median(sizes))}{sign}"
            if max(sizes) >= FAR * median(sizes):
                told[name] += f" (≤ {up(max(sizes))}{sign})"
        else:
            told[name] = "exact" if cells else "–"
    return told


def count_outside(table: pl.DataFrame) -> tuple[int, int]:
    """Counts outside their own interval, and uncertain cells."""
    uncertain = [row for row in table.iter_rows(named=True) if row["standard_error"]]
    return sum(not row["low"] <= max(row["count"], 0) <= row["high"] for row in uncertain), len(uncertain)


def compare_errors(demo: Path, name: str, number: str) -> tuple[int, list[str]]:
    """Cells that are compared, and the mean absolute error of each release there.

    A cell takes part where the census or a release has a record; of a row's numbers none is of a release that is exact.
    """
    by = TABLES[name]
    cells = count_truth(demo, by)
    for release in RELEASES:
        own = read_table(demo, release, name).select(
            *by, pl.col("count").alias(f"count of {release}"), pl.col("number").alias(f"number of {release}"),
            (pl.col("standard_error") == 0).alias(f"certain in {release}"),
        )  # fmt: skip
        cells = cells.join(own, on=by, how="full", coalesce=True)
    erring = [release for release in RELEASES if not cells[f"certain in {release}"].drop_nulls().all()]
    filled = pl.any_horizontal(
        pl.col("truth").fill_null(0) > 0, *(pl.col(f"count of {r}").fill_null(0) > 0 for r in RELEASES)
    )
    certain = pl.any_horizontal(
        pl.lit(False), *(pl.col(f"certain in {release}").fill_null(False) for release in erring)
    )
    cells = cells.filter(filled & ~certain)
    told = []
    for release in RELEASES:
        error = (pl.col(f"{number} of {release}").fill_null(0) - pl.col("truth").fill_null(0)).abs().mean()
        told.append(digits(float(cells.select(error).item())) if release in erring else "exact")
    return cells.height, told


# A reader's test: twelve questions that someone with nothing but the packet of the swap answers, and the right answers.


def evaluate(budget: dict[str, Any]) -> float:
    """The number that an exact budget of spec.json stands for."""
    if budget["kind"] == "log":
        return log(Fraction(budget["of"]))
    if budget["kind"] == "product":
        return prod(evaluate(one) for one in budget["of"])
    return float(Fraction(budget["of"]))


def ask(demo: Path) -> list[tuple[str, str]]:
    """Questions and answers, each computed from the files of the packet alone."""
    public = demo / "swap-5/public"
    counties, tracts, blocks = (read_table(demo, "swap-5", name) for name in TABLES)
    county = counties.sort("count").row(0, named=True)
    near = tracts.filter(
        (pl.col("quote") == "count") & (pl.col("standard_error") > 0) & (pl.col("count") > 20)
    )
    tract = near.sort("tract", "race").row(0, named=True)
    block = blocks.sort("block").row(0, named=True)
    inside = county["low"] <= county["count"] <= county["high"]
    plan = tomllib.loads((public / "plan.toml").read_text(encoding="utf-8"))["mechanism"][0]
    stay = 100 * (1 - float(Fraction(plan["rate"])))
    budget = json.loads((public / "spec.json").read_text(encoding="utf-8"))["budget"]
    factor = exp(2 * evaluate(budget))  # an exchange of two households is two changes
    sealed = [line.split(maxsplit=1) for line in (public / "checksums.txt").read_text().splitlines()]
    whole = all(sha256((public / name).read_bytes()).hexdigest() == digest for digest, name in sealed)
    exact = [name for name in TABLES if not count_outside(read_table(demo, "swap-5", name))[1]]
    shown = {name: count_intervals(read_table(demo, "swap-5", name)) for name in TABLES}
    out = {name: count_outside(read_table(demo, "swap-5", name)) for name in TABLES}
    area = f"county {county['county']}, Hispanic origin {county['hispanic']}"
    return [
        (f"Which number do you quote for {area}?", f"{county['number']:,.0f} (the {county['quote']})"),
        ("With which 95% interval?", f"{county['low']:,.0f} to {county['high']:,.0f}"),
        (f"Its count is {county['count']:,}. Does it lie in this interval?", "yes" if inside else "no"),
        (
            f"Which number do you quote for tract {tract['tract']}, race {tract['race']}, and with which interval?",
            f"{tract['number']:.0f} (the {tract['quote']}), {tract['low']:.1f} to {tract['high']:.1f}",
        ),
        (
            f"How many persons live in block {block['block']}, and how certain is it?",
            f"{block['count']:,}, exact"
            if block["standard_error"] == 0
            else f"{block['number']:.0f}, not exact",
        ),
        ("Which tables are exact in every cell?", ", ".join(exact)),
        (
            "How many counts of race-by-tract lie outside their own interval?",
            "{} of {:,}".format(*out["race-by-tract"]),
        ),
        ("In which table do all of them?", ", ".join(name for name, (n, of) in out.items() if n and n == of)),
        (
            "How far does the interval of a middle cell of race-by-tract published as 1 to 9 reach, and how far at most?",
            shown["race-by-tract"]["1–9"],
        ),
        (
            "Of 100 households how many are shown where they live, and can anybody tell which?",
            f"{stay:.0f}; nobody, but for fewer than 1 of 100",
        ),
        (
            "Does the guarantee rule out that someone becomes almost certain that two households traded places?",
            f"{'no' if factor > 1000 else 'yes'}: odds may move {factor:.3g} times",
        ),
        (
            "How do you check without Stirred that no file was changed, and what comes out?",
            f"sha256sum -c checksums.txt: {'all files are as they were' if whole else 'a file was changed'}",
        ),
    ]


def main(demo: Path) -> None:
    """Print every number of the first screens that follows from tables and census."""
    print("| demo | cells |", " | ".join(RELEASES), "| counts instead |")
    for name in TABLES:
        height, errors = compare_errors(demo, name, "number")
        print(
            "|",
            name,
            "|",
            height,
            "|",
            " | ".join(errors),
            "|",
            " / ".join(compare_errors(demo, name, "count")[1]),
            "|",
        )
    for release in RELEASES:
        print(f"\n| {release} |", " | ".join(CLASSES), "| counts outside |")
        for name in TABLES:
            table = read_table(demo, release, name)
            outside, cells = count_outside(table)
            print("|", name, "|", " | ".join(count_intervals(table).values()), f"| {outside} of {cells:,} |")
    print()
    for number, (question, answer) in enumerate(ask(demo), 1):
        print(f"{number}. {question}\n   {answer}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "stirred", "demo", "--out", folder], check=True)
            main(Path(folder))
