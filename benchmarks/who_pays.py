"""Who pays for TopDown's noise: bias and error by kind of block, packed and cracked districts, segregation, coverage.

  python benchmarks/who_pays.py [--census segregated|integrated|demo|state|hawaii|washington|pierce|king|CENSUS.toml]
                                [--modes classic,gls,guided] [--draws 4] [--first 0] [--state whole] [--releases 0]
                                [--replicates 8] [--json FILE] [--tribal]

Averages over all areas hide who pays. Here blocks are sorted by their *true* character (a group's share at least twice
that of the block group, a majority, mostly vacant, crowded, a prison …), and for each kind of block the sum of the
errors is given in parts of the true sum, with the mean absolute error. Districts of about 5,000 and 50,000 persons
are packed (blocks in the order of a group's share among those of voting age) and cracked (blocks with many and with
none, mixed so that the group stays just below a half); a flip is a district that is on the other side of a half.
Areas that cut block groups are runs of blocks in the order of their codes, which follows the streets; no file here
has voting districts together with race. ``classic`` has the shares of 2020, the others those of pl94-stirred, at one ρ².

``segregated`` and ``integrated`` are one synthetic census: homes keep their places, and the households of every
block group are moved into them by householder's group, or at random. Hawaii is 2020, Washington (Kitsap; ``--state
whole`` adds Snohomish), Pierce and King are 2010; their vacant units are simulated (topdown_accuracy.py). The
Oregon file has neither blocks nor race. Without ``--state whole`` Hawaii is its counties but Honolulu, and the
synthetic census has 30,000 households (else 430,000).

With ``--releases`` the last table says how often 50, 90 and 95 % intervals hold the truth by kind of block, of the
blocks that are in the table, and how wide they are (in brackets, persons): what neither the release nor a replicate has
gets no interval.

``--tribal`` measures something else, alone: the error of one area beside the spine (every seventh run of blocks, made
into one tribal area of the state, ``aiannh``), where states are whole, where they are split into the area and the
remainder, as pl94 and pl94-stirred do, and where block groups are made anew for the area, too.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.release import join_variables, require_schema
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.estimate.uncertainty import tabulate_uncertainty
from stirred.mechanisms.topdown.prior import LeafUnits
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.workload import Mode, SpineOptions, load_workloads
from topdown_accuracy import chosen, drawn, hawaii_with_units, washington

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# A group is (Hispanic or not, race alone); None is any. The last column of a folded table is everybody.
GROUPS: dict[str, tuple[int | None, int | None]] = {
    "Hispanic": (1, None), "White": (0, 0), "Black": (None, 1), "American Indian": (None, 2), "Asian": (None, 3),
    "Pacific": (None, 4),
}  # fmt: skip
MINORITIES = ("Black", "Hispanic", "Asian", "American Indian")
EVERYBODY = len(GROUPS)
DISTRICTS = (5_000, 50_000)  # persons
MOST_DISTRICTS = 20  # of one kind and group
LEAST_SHARE = 0.3  # of the group in a packed district that is looked at
JUST_BELOW = 0.48  # of the group in a cracked district
AREA_PERSONS = 1_500  # of an area that cuts block groups
FEW_BLOCKS = 20  # below which a kind is not printed
NOMINAL = (0.5, 0.9, 0.95)
ALL, ADULTS = 0, 1  # sums over age, and voting age


@dataclass(frozen=True)
class Truth:
    """What is true of every block: persons (blocks × age × groups), units by type, parents, codes."""

    persons: Ints
    units: Ints
    vacant: Floats  # share of housing units
    parent: Ints
    county: Ints
    codes: NDArray[np.str_]

    @property
    def above(self) -> Ints:
        """Persons of the block group of every block."""
        sums = np.zeros((int(self.parent.max()) + 1, *self.persons.shape[1:]), np.int64)
        np.add.at(sums, self.parent, self.persons)
        return sums[self.parent]


def folded(workload: Workload, leaves: Sparse) -> Ints:
    """Persons of every block by age (all, adults) and group."""
    query = workload.histogram.query("table", ("votingage", "hispanic", "cenrace"))
    cells = sum_answers(leaves, query).reshape(-1, 2, 2, 63)
    both = np.stack([cells.sum(axis=1), cells[:, 1]], axis=1)  # blocks × (all, adults) × Hispanic × race
    columns = []
    for hispanic, race in (*GROUPS.values(), (None, None)):
        part = both[:, :, slice(None) if hispanic is None else slice(hispanic, hispanic + 1)]
        columns.append(part[..., slice(None) if race is None else slice(race, race + 1)].sum(axis=(2, 3)))
    return np.stack(columns, axis=2)


def known(census: Census, workload: Workload, above: UpperTree) -> Truth:
    """The truth of a census."""
    last = len(above.spine.levels) - 1
    units = LeafUnits.of(workload, above.constraints, last)
    assert units is not None
    codes = np.asarray(above.spine.codes[-1]).astype(str)
    found = census.scan("household", ["block", "kind"]).collect()
    empty = found.group_by(pl.col("block").cast(pl.String)).agg(n=(pl.col("kind") == 2).sum())
    vacant = pl.DataFrame({"block": codes}).join(empty, on="block", how="left", maintain_order="left")
    share = vacant["n"].fill_null(0).to_numpy() / np.maximum(units.leaf[:, 0], 1)
    parent = above.spine.parent[last]
    county = parent
    for depth in range(last - 1, 2, -1):
        county = above.spine.parent[depth][county]
    return Truth(folded(workload, above.truth[-1]), units.leaf, share, parent, county, codes)


def kinds(truth: Truth) -> Iterator[tuple[str, Bools, int, int]]:
    """Kinds of blocks, with the age and group that are summed in them."""
    here, above, homes = truth.persons, truth.above, truth.units[:, 0]
    adults, around = here[:, ADULTS, EVERYBODY], above[:, ADULTS, EVERYBODY]
    for number, name in enumerate(GROUPS):
        own = here[:, ADULTS, number]
        if name in MINORITIES:
            twice = (own > 0) & (own * around >= 2 * above[:, ADULTS, number] * adults)
            yield f"{name}: twice the block group", twice, ADULTS, number
            yield f"{name}: twice, 10 and more", twice & (own >= 10), ADULTS, number
        yield f"{name}: majority", (own > 0) & (2 * own > adults), ADULTS, number
        if name == "American Indian":
            yield "American Indian: a fifth", (own > 0) & (5 * own >= adults), ADULTS, number
    persons, quarters = here[:, ALL, EVERYBODY], truth.units[:, 1:]
    usual = above[:, ALL, EVERYBODY] / np.maximum(np.bincount(truth.parent, homes)[truth.parent], 1)
    per_unit, plain = persons / np.maximum(homes, 1), (homes > 0) & ~quarters.any(axis=1)
    yield "mostly vacant", plain & (truth.vacant > 0.5), ALL, EVERYBODY
    yield "a fifth vacant", plain & (truth.vacant > 0.2), ALL, EVERYBODY
    yield "crowded (1.5 × per unit)", plain & (per_unit >= 1.5 * usual), ALL, EVERYBODY
    yield "sparse (0.6 × per unit)", plain & (per_unit <= 0.6 * usual), ALL, EVERYBODY
    for name, kind in (("prison", 1), ("nursing home", 3), ("college", 5)):
        yield name, truth.units[:, kind] > 0, ALL, EVERYBODY
    yield "facilities only", (homes == 0) & quarters.any(axis=1), ALL, EVERYBODY
    yield "every block", np.ones(len(homes), bool), ALL, EVERYBODY


def cut(order: Ints, size: Ints, persons: int) -> list[Ints]:
    """Cut blocks in this order into runs of about so many persons; the rest is left out."""
    number = np.cumsum(size[order]) // persons
    return [order[number == i] for i in range(int(number[-1]) if len(number) else 0)]


def packed(truth: Truth, group: int, persons: int) -> list[Ints]:
    """Districts of blocks by falling share of a group, as long as the group is a large part."""
    own, adults = truth.persons[:, ADULTS, group], truth.persons[:, ADULTS, EVERYBODY]
    live = np.flatnonzero(adults > 0)
    order = live[np.argsort(-own[live] / adults[live], kind="stable")]
    found = cut(order, truth.persons[:, ALL, EVERYBODY], persons)[:MOST_DISTRICTS]
    return [one for one in found if own[one].sum() >= LEAST_SHARE * adults[one].sum()]


def cracked(truth: Truth, group: int, persons: int) -> list[Ints]:
    """Districts of blocks with many and with few of a group, mixed so that it stays just below a half."""
    own, adults = truth.persons[:, ADULTS, group], truth.persons[:, ADULTS, EVERYBODY]
    live = np.flatnonzero(adults > 0)
    order = live[np.argsort(-own[live] / adults[live], kind="stable")].tolist()
    found: list[Ints] = []
    first, last = 0, len(order) - 1
    while first <= last and len(found) < MOST_DISTRICTS:
        blocks, theirs, everybody, size = [], 0, 0, 0
        while first <= last and size < persons:
            few = theirs >= JUST_BELOW * everybody and everybody > 0
            one = order[last] if few else order[first]
            first, last = (first, last - 1) if few else (first + 1, last)
            blocks.append(one)
            theirs, everybody = theirs + int(own[one]), everybody + int(adults[one])
            size += int(truth.persons[one, ALL, EVERYBODY])
        if size < persons or theirs < 0.9 * JUST_BELOW * everybody:
            break
        found.append(np.array(blocks))
    return found


def areas(truth: Truth) -> list[Ints]:
    """Runs of blocks that begin and end inside block groups."""
    order = np.lexsort([truth.codes, truth.county])
    return cut(order, truth.persons[:, ALL, EVERYBODY], AREA_PERSONS)


def segregation(persons: Ints, group: int) -> tuple[float, float, float]:
    """Dissimilarity from everybody else, isolation, and exposure to white persons, over blocks."""
    own, whole, white = (persons[:, ALL, g].astype(float) for g in (group, EVERYBODY, 1))
    rest, safe = whole - own, np.maximum(whole, 1.0)
    share = own / max(own.sum(), 1.0)
    apart = 0.5 * np.abs(share - rest / max(rest.sum(), 1.0)).sum()
    return float(apart), float((share * own / safe).sum()), float((share * white / safe).sum())


@dataclass(frozen=True)
class Line:
    """One line of the report for one mode: numbers by draw, and how they are printed."""

    each: Floats
    form: str = "{:.3g} ± {:.2g}"

    @property
    def text(self) -> str:
        """Mean and standard error over draws."""
        spread = self.each.std(ddof=1) / len(self.each) ** 0.5 if len(self.each) > 1 else float("nan")
        return self.form.format(self.each.mean(), spread)


BIAS = "{:+.1f} ± {:.1f} %"


def measured(truth: Truth, runs: Ints) -> dict[str, dict[str, Line]]:
    """Every line of every table, of one mode; ``runs`` is draws × blocks × age × groups."""
    error = runs - truth.persons
    found: dict[str, dict[str, Line]] = {
        "bias": {}, "error": {}, "districts": {}, "areas": {}, "segregation": {}, "score": {},
    }  # fmt: skip
    for name, where, age, group in kinds(truth):
        if where.sum() >= FEW_BLOCKS or (where.any() and group == EVERYBODY and where.sum() >= 5):
            own, true = error[:, where, age, group], truth.persons[where, age, group].sum()
            label = f"{name} | {int(where.sum()):,} | {int(true):,}"
            found["bias"][label] = Line(100.0 * own.sum(axis=1) / max(int(true), 1), BIAS)
            found["error"][label] = Line(np.abs(own).mean(axis=1))
    for number, name in enumerate(GROUPS):
        if name not in MINORITIES:
            continue
        for how, way in (("packed", packed), ("cracked", cracked)):
            for persons in DISTRICTS:
                many = way(truth, number, persons)
                if not many:
                    continue
                sums = np.stack([runs[:, one, ADULTS].sum(axis=1) for one in many], axis=1)
                true = np.stack([truth.persons[one, ADULTS].sum(axis=0) for one in many])
                flips = (2 * sums[..., number] > sums[..., EVERYBODY]) != (
                    2 * true[:, number] > true[:, EVERYBODY]
                )
                off = (sums - true)[..., number]
                label = f"{name}, {how}, {persons:,} | {len(many)} | {int(true[:, number].mean()):,}"
                found["districts"][f"{label} | error"] = Line(np.abs(off).mean(axis=1))
                found["districts"][f"{label} | bias"] = Line(off.mean(axis=1), "{:+.1f} ± {:.1f}")
                found["districts"][f"{label} | flips"] = Line(flips.sum(axis=1).astype(float))
        own = np.array([segregation(run, number) for run in runs])
        true_values = segregation(truth.persons, number)
        for i, index in enumerate(("dissimilarity", "isolation", "exposure to White")):
            found["segregation"][f"{name}, {index} | {true_values[i]:.3f}"] = Line(
                own[:, i], "{:.3f} ± {:.3f}"
            )
    many = areas(truth)
    off = np.stack([error[:, one].sum(axis=1) for one in many], axis=1)  # draws × areas × age × groups
    for number, name in (
        (EVERYBODY, "everybody"),
        *((list(GROUPS).index(name), name) for name in MINORITIES),
    ):
        age = ALL if number == EVERYBODY else ADULTS
        found["areas"][f"{name} | {len(many):,}"] = Line(np.abs(off[:, :, age, number]).mean(axis=1))
    found["score"] = {
        "total by block": Line(np.abs(error[:, :, ALL, EVERYBODY]).mean(axis=1)),
        "groups of voting age by block": Line(np.abs(error[:, :, ADULTS, :EVERYBODY]).mean(axis=(1, 2))),
        "enclaves, mean absolute bias %": _joined([v for k, v in found["bias"].items() if "twice the" in k]),
        "packed districts, mean error": _joined(
            [v for k, v in found["districts"].items() if "packed" in k and k.endswith("error")]
        ),
    }
    return found


def _joined(lines: list[Line]) -> Line:
    return Line(np.abs(np.stack([line.each for line in lines])).mean(axis=0) if lines else np.full(2, np.nan))


HEADS = {
    "bias": ("bias of the sum in blocks of this kind", "blocks | persons"),
    "error": ("mean absolute error of such a block", "blocks | persons"),
    "districts": (
        "voting age of the group in districts: error, bias and flips at a half",
        "districts | persons | ",
    ),
    "areas": ("mean absolute error in areas that cut block groups", "areas"),
    "segregation": ("segregation over blocks", "true"),
    "score": ("joint score", ""),
}


def printed(how: Mapping[str, dict[str, dict[str, Line]]]) -> None:
    """Print a table for each part of the report, with one column per mode."""
    names = list(how)
    for part, (title, more) in HEADS.items():
        heads = ["", *(more.split("|") if more else []), *names]
        print(f"\n{title}\n\n| " + " | ".join(head.strip() for head in heads) + " |\n|" + "---|" * len(heads))
        for label in how[names[0]][part]:
            print(
                f"| {label} | " + " | ".join(how[name][part][label].text for name in names) + " |", flush=True
            )


def covered(
    census: Census, workload: Workload, mode: Mode, keys: range, replicates: int, truth: Truth
) -> dict[str, Line]:
    """How often intervals hold the truth, by kind of block and nominal level (of the cells a table has)."""
    mechanism = TopDown(workload=workload, mode=mode, replicates=replicates)
    held: dict[str, list[float]] = {}
    wide: dict[str, list[float]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for number in keys:
        release = mechanism.release(census, key=Key.for_tests(number).bind("coverage"))
        tables: dict[tuple[str, float], pl.DataFrame] = {}
        for name, where, age, group in kinds(truth):
            alone = list(GROUPS.values())[group] if group < EVERYBODY else (None, None)
            if None not in alone or where.sum() < FEW_BLOCKS:  # white alone is in no table of one variable
                continue
            axis, value = ("hispanic", 2) if alone[0] is not None else ("race", 1 + (alone[1] or 0))
            by = ["block"] if group == EVERYBODY else ["block", "votingage", axis]
            for nominal in NOMINAL:
                if (by[-1], nominal) not in tables:
                    records = join_variables(release, "person", by)
                    table = tabulate_uncertainty(
                        release, require_schema(release), by, records, release.folder, level=nominal
                    )
                    assert table is not None
                    tables[by[-1], nominal] = table.with_columns(pl.col(by).cast(pl.String))
                cells = tables[by[-1], nominal]
                if group < EVERYBODY:
                    cells = cells.filter((pl.col("votingage") == "1") & (pl.col(axis) == str(value)))
                true = pl.DataFrame({"block": truth.codes[where], "truth": truth.persons[where, age, group]})
                both = true.join(cells, on="block")
                inside = (both["low"] <= both["truth"]) & (both["truth"] <= both["high"])
                label = f"{name} | {100 * nominal:.0f}"
                held.setdefault(label, []).append(100.0 * float(inside.mean() or 0.0))  # type: ignore[arg-type]
                wide.setdefault(label, []).append(float((both["high"] - both["low"]).mean() or 0.0))  # type: ignore[arg-type]
                sizes[label] = (both.height, int(where.sum()))
    lines = {}
    for label, each in held.items():
        cells, blocks = sizes[label]
        share = min(max(float(np.mean(each)) / 100.0, 0.0), 1.0)
        least = (
            100.0 * (share * (1.0 - share) / max(cells * len(each), 1)) ** 0.5
        )  # binomial: one release has no other
        lines[f"{label} | {cells:,} of {blocks:,}"] = Line(
            np.array(each),
            ("{:.1f} ± {:.1f}" if len(each) > 1 else f"{{:.1f}} ± {least:.1f}")
            + f" ({np.mean(wide[label]):.1f})",
        )
    return lines


def with_tribal_area(census: Census) -> Census:
    """The census with one tribal area: every seventh run of blocks that cuts block groups."""
    homes = pl.DataFrame(census.table("household"))
    blocks = homes.select(pl.col("block").cast(pl.String)).unique().sort("block").with_row_index("number")
    inside = pl.col("number") // 25 % 7 == 3
    blocks = blocks.select("block", aiannh=pl.when(inside).then(pl.lit("0010")).otherwise(pl.lit("9999")))
    homes = homes.with_columns(pl.col("block").cast(pl.String)).join(
        blocks, on="block", maintain_order="left"
    )
    schema = {
        "geography": {"spine": list(census.schema.spine), "off_spine": {"aiannh": {"of": "block"}}},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    return Census.of(schema, {"household": homes, "person": census.table("person")})


def tribal(census: Census, workload: Workload, draws: int, first: int) -> None:
    """Print the error of the tribal area for each tree that may be measured."""
    census = with_tribal_area(census)
    homes = (
        census.scan("household", ["block", "aiannh"]).filter(pl.col("aiannh") == "0010").unique().collect()
    )
    trees = {
        "whole states": None,
        "split (pl94, pl94-stirred)": SpineOptions(aian="aiannh"),
        "split, block groups made anew": SpineOptions(aian="aiannh", block_groups=("aiannh",)),
        "block groups made anew": SpineOptions(block_groups=("aiannh",)),
    }
    print(
        "\n| tree | total | voting age | Hispanic | Asian, voting age | block, total |\n|---|---|---|---|---|---|"
    )
    for name, options in trees.items():
        off, blocks = [], []
        for number in range(first, first + draws):
            key, settings = Key.for_tests(number).bind("accuracy"), Settings(mode="gls", spine=options)
            task = Task(census=census, workload=workload, settings=settings, key=key, engine=Local())
            above = build_whole_tree(task)
            made = estimate_run(task, above, None, key)
            error = folded(workload, made.levels[-1]) - folded(workload, above.truth[-1])
            inside = np.isin(
                np.asarray(above.spine.codes[-1]).astype(str), homes["block"].cast(pl.String).to_numpy()
            )
            own = error[inside].sum(axis=0)
            off.append((own[ALL, EVERYBODY], own[ADULTS, EVERYBODY], own[ALL, 0], own[ADULTS, 4]))
            blocks.append(np.abs(error[:, ALL, EVERYBODY]).mean())
        sizes = np.abs(np.array(off, float))
        texts = [f"{Line(sizes[:, i]).text} (max {sizes[:, i].max():.0f})" for i in range(sizes.shape[1])]
        print(f"| {name} | " + " | ".join([*texts, Line(np.array(blocks)).text]) + " |", flush=True)


def sorted_homes(whole: bool, *, apart: bool) -> Census:
    """A synthetic census whose households are moved inside their block groups, by group or at random."""
    made = synthesise("state", households=None if whole else 30_000, seed=5)
    units = pl.DataFrame(pl.from_arrow(made.tables["household"])).with_row_index("_row")
    occupied = units.filter(pl.col("kind") == 1)
    group = np.where(occupied["hispanic"] == 2, 0, occupied["race"].to_numpy())
    chance = np.random.default_rng(7).random(occupied.height)
    # Sorted by group with a fifth of a stir: enclaves are clear, not pure.
    rank = np.where((chance < 0.8) & apart, group, 100.0 * chance)
    order = occupied.with_columns(_rank=pl.Series(rank), _chance=pl.Series(chance))
    moved = order.sort("block_group", "_rank", "_chance", maintain_order=True)["_row"].to_numpy()
    target = occupied.sort("block_group", "block", maintain_order=True)["_row"].to_numpy()
    text = units["block"].cast(pl.String).to_numpy().copy()
    text[moved] = text[target]
    table = units.with_columns(block=pl.Series(text, dtype=pl.String).cast(units.schema["block"])).drop(
        "_row"
    )
    return Census.of(made.schema, {"household": table, "person": made.tables["person"]})


def found(name: str, folder: Path, *, whole: bool) -> Census:
    """The census of that name."""
    if name in {"segregated", "integrated"}:
        return sorted_homes(whole, apart=name == "segregated")
    if name == "hawaii" and not whole:
        return hawaii_with_units(("15001", "15005", "15007", "15009"))
    if name in {"washington", "king"}:
        return washington(("033",) if name == "king" else ("035", "061") if whole else ("035",))
    return chosen(name, folder)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", default="segregated")
    asked.add_argument("--modes", default="classic,gls,guided")
    asked.add_argument("--draws", type=int, default=4)
    asked.add_argument(
        "--first", type=int, default=0, help="the number of the first key; for --releases 500 is added"
    )
    asked.add_argument("--state", choices=("sample", "whole"), default="sample")
    asked.add_argument("--releases", type=int, default=0)
    asked.add_argument("--replicates", type=int, default=8)
    asked.add_argument("--json", type=Path)
    asked.add_argument("--tribal", action="store_true")
    told = asked.parse_args()
    published, returned = (load_workloads(name, None)[0] for name in ("pl94-persons", "pl94-stirred-persons"))
    assert Fraction(published.rho_squared) == returned.rho_squared, "the same budget, or nothing is compared"
    rows: dict[str, tuple[Workload, Mode]] = {
        "classic": (published, "classic"), "gls": (returned, "gls"), "guided": (returned, "guided"),
    }  # fmt: skip
    print(" ".join(f"{name}={value}" for name, value in vars(told).items()))
    with tempfile.TemporaryDirectory() as folder:
        census = found(told.census, Path(folder), whole=told.state == "whole")
        if told.tribal:
            tribal(census, returned, told.draws, told.first)
            return
        how, held = {}, {}
        for name in told.modes.split(","):
            workload, mode = rows[name]
            begun = time.process_time()
            above, runs = drawn(census, workload, mode, told.draws, told.first)
            took = (time.process_time() - begun) / told.draws
            truth = known(census, workload, above)
            how[name] = measured(truth, np.stack([folded(workload, run[-1]) for run in runs]))
            how[name]["score"]["processor seconds per draw, with tabulation"] = Line(np.full(2, took))
            if told.releases:
                keys = range(500 + told.first, 500 + told.first + told.releases)
                held[name] = covered(census, workload, mode, keys, told.replicates, truth)
        printed(how)
        if held:
            print(
                "\nintervals that hold the truth, of 100 (and their mean width)\n\n| | nominal | cells | "
                + " | ".join(held)
                + " |"
            )
            print("|" + "---|" * (3 + len(held)))
            for label in next(iter(held.values())):
                texts = [
                    next(
                        (
                            v.text
                            for k, v in one.items()
                            if k.rsplit(" | ", 1)[0] == label.rsplit(" | ", 1)[0]
                        ),
                        "–",
                    )
                    for one in held.values()
                ]
                print(f"| {label} | " + " | ".join(texts) + " |")
        if told.json:
            parts = {name: list_numbers(lines) for name, lines in how.items()} | {
                "coverage": list_numbers(held)
            }
            told.json.write_text(json.dumps(parts))


def list_numbers(parts: Mapping[str, Mapping[str, Line]]) -> dict[str, dict[str, list[float]]]:
    """The numbers of every line, by draw."""
    return {
        part: {label: line.each.tolist() for label, line in lines.items()} for part, lines in parts.items()
    }


if __name__ == "__main__":
    main()
