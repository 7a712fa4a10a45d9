"""Errors, bias by size and coverage of TopDown's estimates at the same ρ²: classic, gls, returned shares, guided.

  python benchmarks/topdown_accuracy.py [--census demo|state|hawaii|washington|pierce|CENSUS.toml] [--draws 10]
                                        [--releases 0] [--replicates 12] [--shares pl94-persons] [--returned NAME]
                                        [--modes classic,gls,guided,returned,returned+guided]

``returned`` is a preset that spends nothing on the invariant total of the state; ``guided`` adds units as prior knowledge
and sums that are fitted first. Every mode sees the same censuses and, for the same shares, the same noise. With
``--releases`` the last part says how often 95 % and 90 % intervals hold the truth, by published size; ``--draws 0`` gives
that part alone. Who pays for the averages is measured by who_pays.py.

Hawaii is 2020 P.L. 94-171 (race by voting age by block) and Washington is 2010 (Kitsap and Snohomish, real households by
block). Neither file has housing units: vacant units are simulated, and on Hawaii households too, with sizes that vary
between blocks as they do in Washington. Figures for the prior on Hawaii are therefore as good as this simulation.
"""

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from intervals import NOMINAL, hawaii, line, shares
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.release import join_variables, require_schema
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.estimate.uncertainty import tabulate_uncertainty
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.workload import Mode, load_workloads

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WASHINGTON = DATA / "wa2010" / "blocks.parquet"
RHODE_ISLAND = DATA / "us2020" / "ri_blocks.parquet"
GROUPS = {"hisp": 1, "white": 1, "black": 2, "aian": 3, "asian": 4, "nhpi": 5, "other": 6, "two": 7}
SPINE = ["state", "county", "tract", "block_group", "block"]
ENDS = {"state": 2, "county": 5, "tract": 11, "block_group": 12}
EDGES = (1, 5, 20, 50, 100, 200, 500)
SIZES = ("0", "1–4", "5–19", "20–49", "50–99", "100–199", "200–499", "500+")
TABLES = ((), ("hispanic",), ("votingage",), ("hhinstlevels",), ("cenrace",))
HOUSEHOLDS = np.array([0.267, 0.328, 0.161, 0.134, 0.065, 0.027, 0.018])  # sizes 1 to 7, United States 2010
Floats = NDArray[np.float64]


def placed(frame: pl.DataFrame) -> pl.DataFrame:
    """With the areas above the block."""
    return frame.with_columns(**{name: pl.col("block").str.slice(0, end) for name, end in ENDS.items()})


def with_units(people: pl.DataFrame, units: pl.DataFrame) -> Census:
    """A census of persons (with gq_type) and units; ``units`` has block, units, vacant and quarters."""
    several = (("units", 0, 1), ("vacant", 0, 2), ("quarters", 7, 3))
    parts = [
        units.select(pl.col("block").repeat_by(name), gq_type=pl.lit(gq_type), kind=pl.lit(kind)).explode(
            "block"
        )
        for name, gq_type, kind in several
    ]
    both = placed(pl.concat(parts).drop_nulls("block")).with_row_index("household_id")
    schema = {
        "geography": {"spine": SPINE},
        "record": {"person": {"id": "person_id"}, "household": {"id": "household_id"}},
    }
    return Census.of(schema, {"person": people, "household": both})


def vacant(
    blocks: pl.Series, households: NDArray[np.int64], rng: np.random.Generator, seasonal: float = 0.0
) -> NDArray[np.int64]:
    """Simulated vacant units: a rate for every block group; in a share of them many homes are seasonal."""
    _, group = np.unique(blocks.str.slice(0, 12).to_numpy(), return_inverse=True)
    rate = rng.beta(2.0, 25.0, int(group.max()) + 1)
    empty = rng.binomial((1.1 * households).astype(np.int64), rate[group])
    if seasonal:
        more = rng.random(len(rate)) < seasonal
        empty += more[group] * rng.binomial(4 * households, rng.uniform(0.2, 0.7, len(households)))
    return empty


def hawaii_with_units(counties: tuple[str, ...] = (), seasonal: float = 0.0) -> Census:
    """Hawaii 2020 or some counties, with simulated housing units; everybody lives in a household."""
    people = pl.DataFrame(hawaii().scan("person", [*SPINE, "race", "hispanic", "age"]).collect())
    if counties:
        people = people.filter(pl.col("county").cast(pl.String).is_in(counties))
    return house(people, np.random.default_rng(2020), seasonal)


def house(people: pl.DataFrame, rng: np.random.Generator, seasonal: float) -> Census:
    """Put persons with a block into simulated households, and add vacant units."""
    counts = people.group_by("block").len().sort("block")
    households = np.zeros(counts.height, np.int64)
    for i, (persons, factor) in enumerate(
        zip(counts["len"], np.exp(rng.normal(0, 0.14, counts.height)), strict=True)
    ):
        sizes = np.maximum(1, np.rint(rng.choice(7, size=int(persons), p=HOUSEHOLDS) * factor + 1))
        households[i] = int(np.searchsorted(np.cumsum(sizes), persons)) + 1
    empty = vacant(counts["block"], households, rng, seasonal)
    units = counts.select("block", units=pl.Series(households), vacant=pl.Series(empty), quarters=pl.lit(0))
    return with_units(people.with_columns(gq_type=pl.lit(0)).with_row_index("person_id"), units)


def rhode_island() -> Census:
    """Rhode Island 2020: real totals of blocks; race, origin, age and housing units are drawn at random."""
    blocks = pl.read_parquet(RHODE_ISLAND).filter(pl.col("pop") > 0).sort("geoid")
    rows = blocks.select(block=pl.col("geoid").repeat_by("pop")).explode("block")
    rng = np.random.default_rng(44)
    people = placed(rows).with_columns(
        race=pl.Series(
            rng.choice(np.arange(1, 8), rows.height, p=(0.71, 0.06, 0.01, 0.04, 0.01, 0.09, 0.08))
        ),
        hispanic=pl.Series(rng.choice((1, 2), rows.height, p=(0.83, 0.17))),
        age=pl.Series(rng.choice((10, 30), rows.height, p=(0.19, 0.81))),
    )
    return house(people, rng, 0.0)


def washington(counties: tuple[str, ...] = ("035", "061"), seasonal: float = 0.0) -> Census:
    """Counties of Washington 2010: real persons and households by block, simulated vacant units."""
    blocks = pl.read_parquet(WASHINGTON).filter(pl.col("county").is_in(counties))
    blocks = blocks.drop("block").rename({"geoid": "block"})
    parts = []
    for group, race in GROUPS.items():
        grown = pl.col(f"vap_{group}")
        for age, count in ((30, grown), (10, pl.col(f"pop_{group}") - grown)):
            own = {"race": race, "hispanic": 2 if group == "hisp" else 1, "age": age}
            cells = blocks.select(
                "block", gq_type=pl.when(pl.col("households") > 0).then(0).otherwise(7), n=count
            )
            rows = (
                cells.filter(pl.col("n") > 0)
                .select(pl.exclude("n").repeat_by("n"))
                .explode("block", "gq_type")
            )
            parts.append(rows.with_columns(**{name: pl.lit(value) for name, value in own.items()}))
    rng = np.random.default_rng(2010)
    households = blocks["households"].to_numpy().astype(np.int64)
    units = blocks.select(
        "block", units=pl.Series(households), vacant=pl.Series(vacant(blocks["block"], households, rng, seasonal)),
        quarters=((pl.col("households") == 0) & (pl.col("pop") > 0)).cast(pl.Int64),
    )  # fmt: skip
    return with_units(placed(pl.concat(parts)).with_row_index("person_id"), units)


def chosen(name: str, folder: Path) -> Census:
    """The census of that name, or the file."""
    if name in {"demo", "state"}:
        write_preset(name, folder / name)
        return read(folder / name / "census.toml")
    return (
        {"hawaii": hawaii_with_units, "washington": washington, "pierce": lambda: washington(("053",))}[
            name
        ]()
        if "." not in name
        else read(Path(name))
    )


def drawn(
    census: Census, workload: Workload, mode: Mode, draws: int, first: int
) -> tuple[UpperTree, list[list[Sparse]]]:
    """Releases in memory, with everything that they are compared to."""
    runs, above = [], None
    for number in range(first, first + draws):
        key = Key.for_tests(number).bind("accuracy")
        task = Task(census=census, workload=workload, settings=Settings(mode=mode), key=key, engine=Local())
        above = above or build_whole_tree(task)
        runs.append(estimate_run(task, above, None, key).levels)
    assert above is not None
    return above, runs


def errors(workload: Workload, above: UpperTree, runs: list[list[Sparse]]) -> dict[tuple[str, str], Floats]:
    """Signed errors (draws × geounits × answers) by level and table."""
    found = {}
    known = {name for axis in workload.histogram.axes for name in (axis.name, *axis.recodes)}
    for parts in (parts for parts in TABLES if set(parts) <= known):
        query = workload.histogram.query("table", parts)
        for depth, level in enumerate(above.spine.levels):
            true = sum_answers(above.truth[depth], query)
            found[level, " × ".join(parts) or "total"] = np.stack(
                [(sum_answers(run[depth], query) - true).astype(float) for run in runs]
            )
    return found


def tables(how: dict[str, dict[tuple[str, str], Floats]], above: UpperTree) -> None:
    """Mean absolute errors with their standard errors, sums of errors at the root, and blocks by size."""
    names = list(how)
    print(
        "\nmean absolute error ± its standard error over draws\n\n| level | table | "
        + " | ".join(names)
        + " |"
    )
    print("|" + "---|" * (len(names) + 2))
    for level, table in how[names[0]]:
        texts = []
        for name in names:
            each = np.abs(how[name][level, table]).mean(axis=(1, 2))
            texts.append(f"{each.mean():.3g} ± {each.std(ddof=1) / len(each) ** 0.5:.2g}")
        print(f"| {level} | {table} | " + " | ".join(texts) + " |")
    root = above.spine.levels[0]
    print("\nbias at the root (mean error ± standard error)\n")
    for name in names:
        for (level, table), error in how[name].items():
            if level == root and table not in {"total", "cenrace"}:
                mean, spread = error[:, 0].mean(axis=0), error[:, 0].std(axis=0, ddof=1) / len(error) ** 0.5
                print(
                    f"- {name}, {table}: "
                    + ", ".join(f"{m:+.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True))
                )
    size = np.digitize(above.truth[-1].totals, EDGES)
    held = [i for i in range(len(SIZES)) if (size == i).any()]
    print("\ntotals of blocks by true size: bias, mean absolute error\n")
    print("| | " + " | ".join(f"{SIZES[i]} ({int((size == i).sum())})" for i in held) + " |")
    print("|" + "---|" * (len(held) + 1))
    for name in names:
        error = how[name][above.spine.levels[-1], "total"][:, :, 0]
        texts = [f"{error[:, size == i].mean():+.2f}, {np.abs(error[:, size == i]).mean():.2f}" for i in held]
        print(f"| {name} | " + " | ".join(texts) + " |", flush=True)


def coverage(census: Census, workload: Workload, mode: Mode, keys: range, replicates: int, name: str) -> None:
    """How often intervals hold the truth, by nominal level and published size."""
    mechanism = TopDown(workload=workload, mode=mode, replicates=replicates)
    exact = mechanism.replace(rho_squared="inf", replicates=0).release(census, key=Key.for_tests(0))
    wanted = [[level, *more] for level in SPINE[1:] for more in ([], ["hispanic"], ["votingage"], ["race"])]
    found: dict[tuple[str, float], list[Floats]] = {}
    for number in keys:
        release = mechanism.release(census, key=Key.for_tests(number).bind("coverage"))
        for by in wanted:
            frame = join_variables(exact, "person", by).group_by(by).agg(truth=pl.len().cast(pl.Int64))
            text = pl.col(by).cast(pl.String)
            true = frame.collect().with_columns(text)
            for nominal in NOMINAL:
                records = join_variables(release, "person", by)
                table = tabulate_uncertainty(
                    release, require_schema(release), by, records, release.folder, level=nominal
                )
                if table is not None:
                    part = shares(table.with_columns(text), true, by, "published", EDGES)
                    found.setdefault((" × ".join(by), nominal), []).append(part)
    for (by_text, nominal), parts in found.items():
        print(f"| {name} | {by_text} | {100 * nominal:.0f} | {line(parts)} |", flush=True)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", default="demo")
    asked.add_argument("--draws", type=int, default=10)
    asked.add_argument(
        "--first", type=int, default=0, help="the number of the first key; for --releases 500 is added"
    )
    asked.add_argument(
        "--releases", type=int, default=0, help="releases with replicates, for the coverage of intervals"
    )
    asked.add_argument("--replicates", type=int, default=12)
    asked.add_argument("--shares", default="pl94-persons")
    asked.add_argument("--returned", default="pl94-stirred-persons", help="a preset or a TOML file")
    asked.add_argument("--modes", default="classic,gls,guided,returned,returned+guided")
    told = asked.parse_args()
    published, returned = (load_workloads(name, None)[0] for name in (told.shares, told.returned))
    assert Fraction(published.rho_squared) == returned.rho_squared, "the same budget, or nothing is compared"
    rows: list[tuple[str, Workload, Mode]] = [
        ("classic", published, "classic"), ("gls", published, "gls"), ("guided", published, "guided"),
        ("returned", returned, "gls"), ("returned+guided", returned, "guided"),
    ]  # fmt: skip
    rows = [row for row in rows if row[0] in told.modes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        census = chosen(told.census, Path(folder))
        print(" ".join(f"{name}={value}" for name, value in vars(told).items()))
        how, above = {}, None
        for name, workload, mode in rows if told.draws else ():
            above, runs = drawn(census, workload, mode, told.draws, told.first)
            how[name] = errors(workload, above, runs)
        if above is not None:
            tables(how, above)
        if told.releases:
            print("\ncoverage by published size ± standard error (mean width)\n")
            print("| | table | nominal | all | " + " | ".join(SIZES) + " |")
            print("|" + "---|" * (len(SIZES) + 4))
            for name, workload, mode in rows:
                keys = range(500 + told.first, 500 + told.first + told.releases)
                coverage(census, workload, mode, keys, told.replicates, name)


if __name__ == "__main__":
    main()
