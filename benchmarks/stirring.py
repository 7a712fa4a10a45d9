"""How fast stirring is beside the Permutation Swapping Algorithm: the same files, the same share, in one run.

    python benchmarks/stirring.py                                  1 and 10 million households
    python benchmarks/stirring.py --households 130000000 --strata 300
    python benchmarks/stirring.py --json
    python benchmarks/stirring.py --compare                        what both lose, change and leave to an attacker

The draw (grouping, words, moves, one column) runs on one thread, medians of interleaved repeats, with identifiers in the
order of the file and in another one. The release goes from Parquet to Parquet, each in a process of its own.

With ``--compare`` a synthetic state of 1.1 million persons and Massachusetts 1940 are swapped and stirred at equal shares:
the loss of one exchange by the sharpest proved bound, the paper's MAPE in two tables, and the attack that inverts the swap:
how many households are in place, and how many that are unique on what is held were found at home.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from swapping import alone, clock, make_files

RATE = "1/20"


def measure_draw(folder: Path, repeats: int) -> dict[str, float]:
    """One thread: both draws of the place column, interleaved."""
    from stirred.chance import Key
    from stirred.engine import Local
    from stirred.mechanisms.stirring.law import Asked, StratumShape, StratumShapes, choose_laws
    from stirred.mechanisms.stirring.moves import draw_stirring
    from stirred.mechanisms.swap.moves import draw_moves
    from stirred.mechanisms.swap.strata import count_sizes

    table = pq.read_table(folder / "household.parquet")
    ids = table["household_id"].to_numpy().view(np.uint64)
    mixed = np.random.default_rng(2).permutation(ids)
    strata, block = table["stratum"].to_numpy().astype(np.uint32), table["block"].to_numpy()
    del table
    key, one, rate = Key.for_tests(1), Local(workers=1), Fraction(RATE)

    def swap(ids: np.ndarray, rows: int) -> None:
        some = strata[:rows]
        draw_moves(key, ids=ids[:rows], strata=some, rate=rate, sizes=count_sizes(some), engine=one).apply(
            block[:rows]
        )

    def stir(ids: np.ndarray, rows: int) -> None:
        some = strata[:rows]
        sizes = count_sizes(some)
        shapes = StratumShapes.of(StratumShape(n, None, None) for n in sizes.tolist())  # all records differ
        laws = choose_laws(shapes, Asked.of(rate=rate))
        draw_stirring(key, ids=ids[:rows], strata=some, sizes=sizes, laws=laws, engine=one).apply(
            block[:rows]
        )

    found: dict[str, list[float]] = {}
    for number in range(repeats + 1):
        for name, draw, own in (
            ("swap", swap, ids),
            ("stirring", stir, ids),
            ("swap_mixed", swap, mixed),
            ("stirring_mixed", stir, mixed),
        ):
            start = clock()
            draw(own, block.size if number else 1_000)  # the first compiles
            if number:
                found.setdefault(f"{name}_s", []).append(clock() - start)
    return {name: statistics.median(times) for name, times in found.items()}


def measure_release(folder: Path, name: str) -> dict[str, float]:
    """Release the census from file to file."""
    from stirred.census import Census, read
    from stirred.chance import Key
    from stirred.mechanisms.registry import find_mechanism

    census = read(folder / "census.toml")
    named = dict.fromkeys(("stratum", "block"), "a benchmark")
    mechanism = find_mechanism(name)(
        match=["stratum"], swap=["block"], rate=RATE, release_identifiers=named, accept_reversal=["stratum"]
    )
    # a first run on a hundred records loads libraries and compiled kernels, so that they are not timed
    few = {kind: census.scan(kind).limit(100).collect() for kind in census.schema.record_types}
    mechanism.release(
        Census.of(census.schema, few), key=Key.for_tests(1), out=Path(tempfile.mkdtemp(dir=folder))
    )
    out = Path(tempfile.mkdtemp(dir=folder))
    start = clock()
    release = mechanism.release(census, key=Key.for_tests(1), out=out)
    seconds = clock() - start
    assert all(check.kept for check in release.checks)
    return {"s": seconds, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


def measure(n: int, strata: int, *, repeats: int, folder: Path) -> dict[str, object]:
    """Return the seconds and gigabytes of both, and the ratios."""
    alone(make_files, folder, n, strata, persons=False)
    draw = alone(measure_draw, folder, repeats)
    swap, stirring = (alone(measure_release, folder, name) for name in ("permutation-swapping", "stirring"))
    return {
        "households": n,
        "strata": strata,
        "draw": draw,
        "swap": swap,
        "stirring": stirring,
        "ratios": {
            "draw": draw["stirring_s"] / draw["swap_s"],  # type: ignore[operator]
            "draw_mixed": draw["stirring_mixed_s"] / draw["swap_mixed_s"],  # type: ignore[operator]
            "release": stirring["s"] / swap["s"],  # type: ignore[operator]
            "memory": stirring["peak_gb"] / swap["peak_gb"],  # type: ignore[operator]
        },
    }


def compare(preset: str, rates: Sequence[str]) -> list[dict[str, object]]:
    """Release a synthetic census by both methods at each share, and return loss, change and success of the attack."""
    from stirred.assess.attack.inversion import FOUND, IN_PLACE, invert_swap
    from stirred.census import Census
    from stirred.census.synthetic import synthesise
    from stirred.chance import Key
    from stirred.mechanisms.registry import find_mechanism
    from stirred.paper.massachusetts import mape
    from stirred.spec import Exchanges

    made = synthesise(preset)
    census = Census.of(made.schema, made.tables)
    spine = list(census.schema.spine)
    tables = {"county × tenure": ["county", "tenure"]}
    if preset == "state":
        tables["tract × race"] = ["tract", "race"]
    truth = {name: _count(census, by) for name, by in tables.items()}
    rows: list[dict[str, object]] = []
    for rate in rates:
        for name in ("permutation-swapping", "stirring"):
            mechanism = find_mechanism(name)(
                match=["state", "size"],
                swap=spine[1:],
                rate=rate,
                release_identifiers={"size": "the paper matches it"},
            )
            release = mechanism.release(census, key=Key.for_tests(1))
            own = release.specification
            loss = own if isinstance(own.input_premetric, Exchanges) else own.per(Exchanges("household"))
            found = invert_swap(release, census, mechanism=mechanism)
            shown = Census.of(census.schema, release.microdata)
            rows.append(
                {
                    "census": preset,
                    "share": rate,
                    "method": name,
                    "loss": float(loss.budget.upper(2)),
                    **{
                        f"MAPE {table}": _change(truth[table], _count(shown, by), mape)
                        for table, by in tables.items()
                    },
                    "in place": found.measure(IN_PLACE).value,
                    "unique, found": found.measure(FOUND).value,
                }
            )
            print(
                {
                    key: round(value, 5) if isinstance(value, float) else value
                    for key, value in rows[-1].items()
                },
                flush=True,
            )
    return rows


def _count(census: Any, by: list[str]) -> pl.DataFrame:
    return pl.DataFrame(census.counts("household", by).to_pylist()).with_columns(pl.col(by).cast(pl.String))


def _change(before: pl.DataFrame, after: pl.DataFrame, mape: Any) -> float:
    """Return the paper's MAPE over the cells that are not empty in truth."""
    by = [name for name in before.columns if name != "count"]
    both = before.filter(pl.col("count") > 0).join(after, on=by, how="left", suffix="_after").fill_null(0)
    return mape(both["count"].to_numpy().astype(float), both["count_after"].to_numpy().astype(float))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--households", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--strata", type=int, nargs="+", default=[300, 500_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files go (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--compare", action="store_true", help="losses, changes and attacks instead of seconds"
    )
    arguments = parser.parse_args()
    if arguments.compare:
        for preset in ("state", "massachusetts-1940"):
            compare(preset, ["1/100", "1/20", "1/10", "1/2"])
        return
    results = []
    for n in arguments.households:
        for strata in arguments.strata:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
                result = measure(n, strata, repeats=arguments.repeats, folder=Path(place))
            results.append(result)
            if not arguments.json:
                print(f"{n:,} households, {strata:,} strata")
                for part in ("draw", "swap", "stirring", "ratios"):
                    numbers = {name: round(value, 2) for name, value in result[part].items()}  # type: ignore[attr-defined]
                    print("  ", part, numbers, flush=True)
    if arguments.json:
        print(json.dumps({"cores": os.cpu_count(), "results": results}, indent=2))


if __name__ == "__main__":
    main()
