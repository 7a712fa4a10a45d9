"""Time, peak memory and bytes of the synthetic censuses.

.venv/bin/python benchmarks/synth.py [--preset demo state massachusetts-1940] [--households N] [--out DIR] [--json]
.venv/bin/python benchmarks/synth.py --likeness ../shared/data [--images docs/images]

Each preset is written in a process of its own (compiled kernels come from numba's cache, or are compiled first and
reported as such). The nation needs 1.5 GB of disk and runs only when asked for: --preset nation --out DIR keeps it.
The second form holds the state preset against Hawaii 2020 and Washington 2010, in numbers and in pictures.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from polars import selectors as cs

GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
COLORS = {
    "Hawaii 2020": "#4c78a8",
    "Washington 2010": "#54a24b",
    "synthetic state": "#e45756",
    "Rhode Island 2020": "#9d755d",
}
LEVELS = {"tract": 11, "block group": 12, "block": 15}


def measure(preset: str, out: Path, households: int | None) -> dict[str, object]:
    """Write one preset here and now."""
    from stirred.census.synthetic import synthesise, write_preset

    begin = time.perf_counter()
    synthesise("demo", households=500)
    compiled = time.perf_counter()
    made = write_preset(preset, out, households=households)
    end = time.perf_counter()
    return {
        **made,
        "census": "",
        "compile_seconds": round(compiled - begin, 2),
        "seconds": round(end - compiled, 2),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def census_blocks() -> pl.DataFrame:
    """The state preset as the published tables have it: one row per block, persons by group, households by size."""
    from stirred.census.synthetic import synthesise
    from stirred.census.synthetic.likeness import code_eight_groups, count_by_area

    made = synthesise("state")
    household, person = made.tables["household"], made.tables["person"]
    geoid = made.geography["block"].cast("string").to_pylist()
    position = {code: place for place, code in enumerate(geoid)}
    codes = household["block"].combine_chunks()
    where = np.array([position[code] for code in codes.dictionary.to_pylist()])[codes.indices.to_numpy()]
    sizes, kind = household["size"].to_numpy(), household["kind"].to_numpy()
    groups = code_eight_groups(person["race"].to_numpy(), person["hispanic"].to_numpy())
    persons = count_by_area(np.repeat(where, sizes), groups, len(geoid))
    homes = count_by_area(
        where[kind == 1], np.minimum(sizes[kind == 1], 7).astype(np.int64) - 1, len(geoid), 7
    )
    return pl.DataFrame(
        {
            "geoid": geoid,
            "pop": persons.sum(axis=1),
            **{f"pop_{name}": persons[:, k] for k, name in enumerate(GROUPS)},
            "households": homes.sum(axis=1),
            **{f"hh{k + 1}": homes[:, k] for k in range(7)},
        }
    )


def likeness(data: Path, images: Path | None) -> None:
    """Print the comparison as Markdown tables, and draw it."""
    from stirred.census.synthetic.likeness import dissimilarity, entropy_index

    states = {
        "Hawaii 2020": pl.read_parquet(data / "hi2020" / "blocks.parquet"),
        "Washington 2010": pl.read_parquet(data / "wa2010" / "blocks.parquet"),
        "synthetic state": census_blocks(),
    }
    apart, spread, sizes = [], [], []
    print("| | level | H | " + " | ".join(GROUPS) + " |\n|---|---|---|" + "---|" * 8)
    for (level, cut), (name, blocks) in product(LEVELS.items(), states.items()):
        areas = blocks.group_by(pl.col("geoid").str.slice(0, cut)).agg(cs.numeric().sum())
        counts = areas.select(f"pop_{group}" for group in GROUPS).to_numpy()
        index = dissimilarity(counts)
        print(
            f"| {name} | {level} | {entropy_index(counts):.3f} | "
            + " | ".join(f"{d:.2f}" for d in index)
            + " |"
        )
        apart += [
            {"state": name, "level": level, "group": g, "index": d}
            for g, d in zip(GROUPS, index, strict=True)
        ]
        if "hh1" in areas.columns:
            kept = areas.filter(pl.col("households") > 0)
            weight, one = kept["households"].to_numpy(), kept["hh1"].to_numpy()
            share = one / weight
            mean = np.average(share, weights=weight)
            deviation = np.sqrt(np.average((share - mean) ** 2, weights=weight))
            sizes.append((name, level, mean, deviation, dissimilarity(np.c_[one, weight - one])[0]))
    print(
        "\n| | level | share of one-person homes | standard deviation over areas | dissimilarity |\n|---|---|---|---|---|"
    )
    for name, level, mean, deviation, index in sizes:
        print(f"| {name} | {level} | {mean:.3f} | {deviation:.3f} | {index:.3f} |")
    print("\n| | empty blocks | 10 % | 25 % | median | 75 % | 90 % | 99 % | mean |\n|" + "---|" * 9)
    more = {"Rhode Island 2020": pl.read_parquet(data / "us2020" / "ri_blocks.parquet")}
    for name, blocks in {**more, **states}.items():
        pop = blocks["pop"].to_numpy()
        full = pop[pop > 0]
        marks = np.quantile(full, [0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
        print(
            f"| {name} | {np.mean(pop == 0):.3f} | "
            + " | ".join(f"{m:.0f}" for m in marks)
            + f" | {full.mean():.0f} |"
        )
        grid = np.unique(np.round(np.geomspace(1, full.max(), 60)))
        spread += [{"state": name, "persons": float(x), "share": float(np.mean(full >= x))} for x in grid]
    shares = [
        {
            "state": name,
            "size": str(k) if k < 7 else "7+",
            "share": blocks[f"hh{k}"].sum() / blocks["households"].sum(),
        }
        for name, blocks in states.items()
        if "hh1" in blocks.columns
        for k in range(1, 8)
    ]
    if images is not None:
        draw(apart, spread, shares, images)


def draw(
    apart: list[dict[str, object]],
    spread: list[dict[str, object]],
    shares: list[dict[str, object]],
    images: Path,
) -> None:
    """Three small pictures."""
    import altair as alt

    images.mkdir(parents=True, exist_ok=True)

    def color(*names: str) -> alt.Color:
        return alt.Color(
            "state:N", title=None, scale=alt.Scale(domain=names, range=[COLORS[name] for name in names])
        )

    three = ("Hawaii 2020", "Washington 2010", "synthetic state")
    shape = alt.Shape("state:N", title=None, scale=alt.Scale(domain=three))
    dots = (
        alt.Chart(alt.Data(values=apart))
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("index:Q", title="dissimilarity"),
            y=alt.Y("group:N", sort=None, title=None),
            color=color(*three),
            shape=shape,
        )
        .properties(width=210, height=170)
        .facet(column=alt.Column("level:N", sort=list(LEVELS), title=None))
    )
    x = alt.X("persons:Q", scale=alt.Scale(type="log"), title="persons in the block, at least")
    y = alt.Y("share:Q", scale=alt.Scale(type="log"), title="share of blocks with anyone")
    tail = (
        alt.Chart(alt.Data(values=spread))
        .mark_line()
        .encode(x=x, y=y, color=color(*COLORS))
        .properties(width=420, height=220)
    )
    bars = (
        alt.Chart(alt.Data(values=shares))
        .mark_bar()
        .encode(
            x=alt.X("size:N", title="persons in the household"),
            y=alt.Y("share:Q", title="share"),
            color=color(*three[1:]),
            xOffset=alt.XOffset("state:N", sort=None),
        )
        .properties(width=420, height=200)
    )
    for name, chart in (("segregation", dots), ("block-sizes", tail), ("household-sizes", bars)):
        chart.save(images / f"synthetic-{name}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = ["demo", "state", "massachusetts-1940"]
    parser.add_argument("--preset", nargs="+", action="extend", help="presets to write (all but the nation)")
    parser.add_argument("--households", type=int)
    parser.add_argument("--out", type=Path, help="keep the censuses in this folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--likeness", type=Path, help="the folder of public data to compare with")
    parser.add_argument("--images", type=Path, help="draw the comparison there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.likeness:
        likeness(arguments.likeness, arguments.images)
        return
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.out, arguments.households)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for preset in arguments.preset or default:
            out = (arguments.out or Path(folder)) / preset
            command = [sys.executable, __file__, "--child", preset, "--out", str(out)]
            if arguments.households:
                command += ["--households", str(arguments.households)]
            rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'preset':20} {'units':>12} {'persons':>12} {'seconds':>8} {'peak RSS':>9} {'bytes':>14}")
    for row in rows:
        count = row["rows"]
        print(
            f"{row['preset']:20} {count['household']:12,} {count.get('person', 0):12,} {row['seconds']:8.1f} "
            f"{row['peak_rss_bytes'] / 1e9:6.2f} GB {row['bytes']:14,}"
        )


if __name__ == "__main__":
    main()
