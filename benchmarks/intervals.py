"""How often published intervals hold the true number, by level and size, for TopDown, for the swap and for stirring.

  python benchmarks/intervals.py [--census synthetic|hawaii] [--mechanism topdown|swap|stirring] [--releases 4]
                                [--households 10000] [--workload pl94-persons] [--mode gls] [--rate 1/20]
                                [--replicates 20] [--first 0] [--match …] [--law auto] [--level block] [--held race]

Of stirring two more rows are printed: small strata (2 to 19 records) and rare types (held values that at most two records
of a larger stratum have), from tables by match variables, place and race. ``--level`` is the finest that is swapped and
released, ``--held`` what is held: few places or few held values make a law by types.

Each release has a key of its own. Printed for nominal 90 % and 95 %: the percentage of uncertain cells whose interval
holds the truth, its Monte-Carlo standard error and the mean width, by table and size class. The standard error is that of
the mean over releases, and at least the binomial's: cells of one release are not independent.
Cells that neither the release nor a replicate has are in no published table and are left out.
"""

import argparse
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.release import Release, join_variables, require_schema
from stirred.mechanisms.stirring import Stirring
from stirred.mechanisms.swap.estimates import half_widths
from stirred.mechanisms.swap.psa import PermutationSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.estimate.uncertainty import tabulate_uncertainty

EDGES = (1, 5, 20, 100, 1000)
CLASSES = ("0", "1–4", "5–19", "20–99", "100–999", "1000+")
NOMINAL = (0.90, 0.95)
HAWAII = Path(__file__).resolve().parents[2] / "shared" / "data" / "hi2020" / "blocks.parquet"
GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
SPINE = ("state", "county", "tract", "block_group", "block")
FEW = 20  # cells below which no percentage is printed
SMALL, RARE = 20, 2  # records of a stratum, and of a held value there


def synthetic(households: int) -> Census:
    """The demo's census, smaller."""
    made = synthesise("demo", households=households, seed=3)
    return Census.of(made.schema, made.tables)


def hawaii() -> Census:
    """Hawaii 2020: persons with their block, race and an age on the right side of 18; there are no households."""
    table, parts = pl.read_parquet(HAWAII), []
    for number, group in enumerate(GROUPS):
        grown, all_ = pl.col(f"vap_{group}"), pl.col(f"pop_{group}")
        for age, count in ((30, grown), (10, all_ - grown)):
            cells = table.select(block=pl.col("geoid"), count=count).filter(pl.col("count") > 0)
            people = cells.select(pl.col("block").repeat_by("count").explode())
            own = {"race": max(number, 1), "hispanic": 2 if number == 0 else 1, "age": age}
            parts.append(people.with_columns(**{name: pl.lit(value) for name, value in own.items()}))
    ends = {"state": 2, "county": 5, "tract": 11, "block_group": 12}
    people = pl.concat(parts).with_columns(
        **{name: pl.col("block").str.slice(0, end) for name, end in ends.items()}
    )
    schema = {"geography": {"spine": list(SPINE)}, "record": {"person": {"id": "person_id"}}}
    return Census.of(schema, {"person": people.with_row_index("person_id")})


def truth(
    mechanism: TopDown | PermutationSwapping | Stirring, census: Census, wanted: list[tuple[str, list[str]]]
) -> dict[tuple[str, ...], pl.DataFrame]:
    """The tables of the census; TopDown's variables are those of its release without noise."""
    exact = None
    if isinstance(mechanism, TopDown):
        exact = mechanism.replace(rho_squared="inf", replicates=0).release(census, key=Key.for_tests(0))
    found = {}
    for kind, by in wanted:
        frame = census.scan(kind, by) if exact is None else join_variables(exact, kind, by)
        found[kind, *by] = _text(frame.group_by(by).agg(truth=pl.len().cast(pl.Int64)).collect(), by)
    return found


def tables(
    mechanism: TopDown | PermutationSwapping | Stirring, release: Release, kind: str, by: list[str]
) -> Iterator[tuple[float, pl.DataFrame]]:
    """The published table with its intervals, for each nominal level."""
    if isinstance(mechanism, TopDown):
        frame = join_variables(release, kind, by)
        for level in NOMINAL:
            found = tabulate_uncertainty(
                release, require_schema(release), by, frame, release.folder, level=level
            )
            assert found is not None
            yield level, _text(found, by)
        return
    found = _text(pl.DataFrame(pl.from_arrow(mechanism.table(release, by, record_type=kind))), by)
    yield 0.95, found
    certain = found.filter(pl.col("standard_error").is_finite())
    margin = half_widths(certain["standard_error"] ** 2, 0.90)
    low, high = (certain["estimate"] - margin).clip(0.0), (certain["estimate"] + margin).clip(0.0)
    yield 0.90, certain.with_columns(low=low, high=high)


def _text(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col(by).cast(pl.String))


def shares(
    table: pl.DataFrame, true: pl.DataFrame, by: list[str], size: str, edges: tuple[int, ...] = EDGES
) -> NDArray[np.float64]:
    """Cells, cells whose interval holds the truth, and the sum of widths (3 × size classes)."""
    cells = table.filter(pl.col("standard_error") > 0).join(true, on=by, how="left", nulls_equal=True)
    cells = cells.with_columns(pl.col("truth").fill_null(0))
    low, high, value = (cells[name].to_numpy() for name in ("low", "high", "truth"))
    place = np.digitize(cells["count" if size == "published" else "truth"].to_numpy(), edges)
    held = (low - 1e-6 <= value) & (value <= high + 1e-6)
    return np.stack(
        [np.bincount(place, what, len(edges) + 1) for what in (np.ones(len(place)), held, high - low)]
    )


def line(parts: list[NDArray[np.float64]]) -> str:
    """Percentage, standard error and mean width by class, and of all."""
    each = np.stack([np.column_stack([part, part.sum(axis=1)]) for part in parts])
    number, held, width = each.sum(axis=0)
    texts = []
    for i in range(len(number)):
        if number[i] < FEW:
            texts.append("–")
            continue
        share = held[i] / number[i]
        seen = each[each[:, 0, i] > 0, :, i]
        apart = np.std(seen[:, 1] / seen[:, 0], ddof=1) / np.sqrt(len(seen)) if len(seen) > 1 else 0.0
        error = max(float(apart), float(np.sqrt(share * (1 - share) / number[i])))
        texts.append(f"{100 * share:.1f} ± {100 * error:.1f} ({width[i] / number[i]:.1f})")
    return " | ".join([texts[-1], *texts[:-1]])


def select(table: pl.DataFrame, match: list[str], row: str) -> pl.DataFrame:
    """Return the cells of small strata, or of rare types; both are counted in the table itself, where they are exact."""
    if not row:
        return table
    many = pl.col("count").sum()
    if row == "small strata":
        return table.filter(many.over(match).is_between(2, SMALL - 1))
    return table.filter(many.over(*match, "race").is_between(1, RARE) & (many.over(match) >= SMALL))


def make_swap(
    told: argparse.Namespace, kind: str, match: tuple[str, ...], columns: list[str]
) -> PermutationSwapping | Stirring:
    """Return the swap or the stirring that is measured."""
    finest = SPINE.index(told.level)
    shared = {"resolution": kind, "match": match, "swap": SPINE[1 : finest + 1], "rate": Fraction(told.rate)}
    if told.mechanism == "swap":
        return PermutationSwapping(**shared)
    if told.held:
        shared |= {"hold": told.held, "carry": False}
    elif finest + 1 < len(SPINE):
        shared["drop"] = [name for name in SPINE[finest + 1 :] if name in columns]
    return Stirring(**shared, law=told.law)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", choices=("synthetic", "hawaii"), default="synthetic")
    asked.add_argument("--mechanism", choices=("topdown", "swap", "stirring"), default="topdown")
    asked.add_argument("--releases", type=int, default=4)
    asked.add_argument("--households", type=int, default=10_000)
    asked.add_argument("--workload", default="pl94-persons")
    asked.add_argument("--mode", default="gls")
    asked.add_argument("--rate", default="1/20")
    asked.add_argument("--replicates", type=int, default=20)
    asked.add_argument("--first", type=int, default=0, help="the number of the first key")
    asked.add_argument(
        "--match", nargs="*", default=[], help="match variables; many of them make small strata"
    )
    asked.add_argument("--law", default="auto", help="of stirring")
    asked.add_argument("--level", choices=SPINE[1:], default="block", help="the finest one that is swapped")
    asked.add_argument(
        "--held", nargs="*", default=[], help="what stirring holds; without it, all and the persons"
    )
    told = asked.parse_args()
    census = hawaii() if told.census == "hawaii" else synthetic(told.households)
    mechanism: TopDown | PermutationSwapping | Stirring
    kinds = ["household"] if told.census == "synthetic" and told.mechanism != "topdown" else ["person"]
    match = tuple(told.match) or (("state", "size") if told.census == "synthetic" else ("state", "age"))
    if told.mechanism == "topdown":
        mechanism = TopDown(workload=told.workload, mode=told.mode, replicates=told.replicates)
    else:
        mechanism = make_swap(told, kinds[0], match, list(census.columns(kinds[0])))
        kinds += ["person"] if told.census == "synthetic" and not told.held else []
    levels = SPINE[1 : SPINE.index(told.level) + 1]
    wanted = [(kind, "", [level, *more]) for kind in kinds for level in levels for more in ([], ["race"])]
    if told.mechanism == "stirring":
        wanted += [(kinds[0], row, [*match, levels[0], "race"]) for row in ("small strata", "rare types")]
    true = truth(mechanism, census, [(kind, by) for kind, _, by in wanted])
    found: dict[tuple[str, str, str, float], list[NDArray[np.float64]]] = {}
    for number in range(told.first, told.first + told.releases):
        release = mechanism.release(
            census, key=Key.for_tests(number).bind("coverage"), engine=Local(workers=1)
        )
        for kind, row, by in wanted:
            for level, table in tables(mechanism, release, kind, by):
                for size in ("published", "true"):
                    part = shares(select(table, list(match), row), true[kind, *by], by, size)
                    found.setdefault((size, kind, row or " × ".join(by), level), []).append(part)
    print(" ".join(f"{name}={value}" for name, value in vars(told).items()))
    print("percentage ± standard error (mean width)")
    print("| size | records | table | nominal | all | " + " | ".join(CLASSES) + " |")
    for (size, kind, asked_for, level), parts in sorted(found.items(), key=lambda item: item[0][0]):
        if sum(part[0].sum() for part in parts) >= FEW:
            print(f"| {size} | {kind} | {asked_for} | {100 * level:.0f} | {line(parts)} |", flush=True)


if __name__ == "__main__":
    main()
