"""Which number of a swapped table lies nearest to the truth: the count, the estimate, or a combination of the two.

  python benchmarks/quoting.py [--census demo,oregon,guernsey] [--rates 1/20,1/2] [--draws 200]

Printed for every table and size class of the *true* number (0, 1–9, 10–99, 100 and more), never pooled: mean absolute error
and root mean square error of the count, of the estimate (at or above 0), of the number that the column ``quote`` names, and
of a shrunken combination, estimate − λ (estimate − count) with the best λ that released numbers give. Every draw has a key
of its own; cells that are exact, or not certain beyond their margins, are left out.

demo: the synthetic census of the demo, 10,000 households. oregon: Census 2000 sample of two areas, households with their
persons (tests/data). guernsey: synthetic persons by tract and block group, made by their authors from 2010 SF1 tables.
"""

import argparse
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.mechanisms.swap.psa import PermutationSwapping
from stirred.publish.packet.lookup import prepare_table

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
CLASSES = ("0", "1–9", "10–99", "100+")
EDGES = (1, 10, 100)
NUMBERS = ("count", "estimate", "quoted", "shrunken")
Case = tuple[Census, dict[str, object], list[tuple[str, list[str]]]]


def demo() -> Case:
    """The demo's census, smaller, and its swap."""
    made = synthesise("demo", households=10_000, seed=3)
    swap = {"match": ["state", "size"], "swap": ["county", "tract", "block_group", "block"]}
    tables = [
        ("household", ["county", "tenure"]), ("household", ["tract", "tenure"]), ("person", ["county", "hispanic"]),
        ("person", ["county", "race"]), ("person", ["tract", "race"]), ("person", ["tract", "sex"]),
    ]  # fmt: skip
    return Census.of(made.schema, made.tables), swap, tables


def oregon() -> Case:
    """Households of two areas with income classes; persons with age classes and work."""
    homes = pl.read_parquet(DATA / "oregon_households.parquet").filter(pl.col("PERSONS") > 0)
    homes = homes.select(
        household_id="SERIALNO", area="PUMA5", size=pl.col("PERSONS").clip(1, 7), building="BLDGSZ",
        income=pl.col("HINC").clip(0, 199_999) // 20_000,
    )  # fmt: skip
    people = pl.read_parquet(DATA / "oregon_persons.parquet").rename({"SERIALNO": "household_id"})
    people = people.join(homes.select("household_id"), on="household_id").select(
        "household_id", age=pl.col("AGE") // 10, work=pl.col("WRKLYR").fill_null(0)
    )
    schema = {
        "geography": {"spine": ["area"]},
        "record": {
            "household": {"id": "household_id"},
            "person": {"id": "person_id", "household": "household_id", "of": "household"},
        },
    }
    census = Census.of(schema, {"household": homes, "person": people.with_row_index("person_id")})
    tables = [
        ("household", ["area", "building"]), ("household", ["area", "income"]), ("person", ["area", "age"]),
        ("person", ["area", "work"]),
    ]  # fmt: skip
    return census, {"match": ["size"], "swap": ["area"]}, tables


def guernsey() -> Case:
    """Persons of two tracts by block group and block; each swaps alone, within voting age."""
    people = pl.read_parquet(DATA / "guernsey_synthetic_ppmf.parquet")
    people = people.select(
        tract="TABTRACTCE", block_group=pl.concat_str("TABTRACTCE", "TABBLKGRPCE"), adult="VOTING_AGE",
        race="CENRACE", hispanic="CENHISP",
    ).cast(pl.String).with_row_index("id")  # fmt: skip
    schema = {"geography": {"spine": ["tract", "block_group"]}, "record": {"household": {"id": "id"}}}
    tables = [
        ("household", ["tract", "race"]),
        ("household", ["block_group", "race"]),
        ("household", ["block_group", "hispanic"]),
    ]
    return (
        Census.of(schema, {"household": people}),
        {"match": ["adult"], "swap": ["tract", "block_group"]},
        tables,
    )


def measured(case: Case, rate: Fraction, draws: int) -> dict[tuple[str, int, str], list[float]]:
    """Sums of |error| and error² and the number of cells, by table, class of the true number and kind of number."""
    census, swap, tables = case
    mechanism = PermutationSwapping(rate=rate, **swap)  # type: ignore[arg-type]
    truth = {
        tuple(by): census.scan(kind, by).group_by(by).agg(truth=pl.len().cast(pl.Int64)).collect()
        .with_columns(pl.col(by).cast(pl.String))
        for kind, by in tables
    }  # fmt: skip
    sums: dict[tuple[str, int, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for number in range(draws):
        release = mechanism.release(census, key=Key.for_tests(number).bind("quoting"))
        for kind, by in tables:
            made = mechanism.table(release, by, record_type=kind)
            frame = pl.DataFrame(pl.from_arrow(made)).with_columns(
                quote=pl.Series(prepare_table(made)["quote"].to_pylist())
            )
            both = frame.with_columns(pl.col(by).cast(pl.String)).join(
                truth[tuple(by)], on=by, how="left", nulls_equal=True
            )
            both = both.with_columns(pl.col("truth").fill_null(0)).filter(
                (pl.col("standard_error") > 0) & pl.col("standard_error").is_finite()
            )
            where = np.digitize(both["truth"].to_numpy(), EDGES)
            for name, values in numbers(both, float(rate)).items():
                off = np.abs(np.maximum(values, 0) - both["truth"].to_numpy())
                for one in range(len(CLASSES)):
                    here, entry = where == one, sums[" × ".join(by), one, name]
                    entry[0] += off[here].sum()
                    entry[1] += (off[here] ** 2).sum()
                    entry[2] += here.sum()
    return sums


def numbers(table: pl.DataFrame, moved: float) -> dict[str, np.ndarray]:
    """The candidates for each cell; the λ of the shrunken one is best for the cells of its published size class."""
    count, guess = table["count"].to_numpy().astype(float), table["estimate"].to_numpy()
    apart, variance, shrunken = guess - count, table["standard_error"].to_numpy() ** 2, guess.copy()
    size = np.digitize(count, EDGES)
    for one in range(len(CLASSES)):
        here = size == one
        if (apart[here] ** 2).sum() > 0:
            best = min(1.0, moved * variance[here].sum() / (apart[here] ** 2).sum())
            shrunken[here] -= best * apart[here]
    quoted = np.where((table["quote"] == "count").to_numpy(), count, guess)
    return dict(zip(NUMBERS, (count, guess, quoted, shrunken), strict=True))


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", default="demo,oregon,guernsey")
    asked.add_argument("--rates", default="1/20,1/2")
    asked.add_argument("--draws", type=int, default=200)
    told = asked.parse_args()
    for name in told.census.split(","):
        case = {"demo": demo, "oregon": oregon, "guernsey": guernsey}[name]()
        for rate in told.rates.split(","):
            sums = measured(case, Fraction(rate), told.draws)
            print(f"\n{name}, rate {rate}, {told.draws} draws: mean absolute error, root mean square error\n")
            print(
                "| table | true number | cells | "
                + " | ".join(NUMBERS)
                + " |\n"
                + "|---" * (3 + len(NUMBERS))
                + "|"
            )
            for table, one in dict.fromkeys((table, one) for table, one, _ in sums):
                cells = sums[table, one, "count"][2]
                if cells:
                    texts = [
                        f"{total / cells:.2f}, {(squares / cells) ** 0.5:.2f}"
                        for total, squares, _ in (sums[table, one, number] for number in NUMBERS)
                    ]
                    size = f"{cells / told.draws:.0f}"
                    print(f"| {table} | {CLASSES[one]} | {size} | " + " | ".join(texts) + " |", flush=True)


if __name__ == "__main__":
    main()
