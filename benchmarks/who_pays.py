"""Who pays for TopDown's noise: bias and error by kind of block, districts, areas, segregation and coverage.

  python benchmarks/who_pays.py [--census segregated,integrated,demo,state,hawaii,kitsap,pierce,king,snohomish,
                                rhode-island,pierce-season,CENSUS.toml]
                                [--rows pl94:classic,pl94-stirred:gls,…] [--draws 10] [--first 100]
                                [--state sample] [--releases 0] [--replicates 8] [--processes 1] [--json FILE]
                                [--goal "mae … <= …"] [--areas]
  python benchmarks/who_pays_tables.py FILE… [--page docs/benchmarks/who-pays.md]

Averages over all areas hide who pays. Here blocks are sorted by their *true* character (a group's share at least twice
that of the block group, a majority, mostly vacant, crowded, a prison …), and for each kind of block the sum of the
errors is given in parts of the true sum, with the mean absolute error. Districts of about 5,000 and 50,000 persons
are packed (blocks in the order of a group's share among those of voting age) and cracked (blocks with many and with
none, mixed so that the group stays just below a half); a flip is a district that is on the other side of a half.
Areas are runs of blocks in the order of their codes, which follows the streets; each begins at a random block and has a
random size (500 to 10,000 persons, seeded, the same for every row), and those that do not cut a block group are left
out. A row is a preset (its shares of one ρ²) with a mode; every row sees the same censuses, and rows with the same
shares see the same noise. What is printed is the mean over draws ± its standard error.

``segregated`` and ``integrated`` are one synthetic census: homes keep their places, and the households of every
block group are moved into them by householder's group, or at random. Hawaii is 2020, the counties of Washington (Kitsap,
Pierce, King, Snohomish) are 2010. Their vacant units are simulated (topdown_accuracy.py), and so are seasonal homes: in
one block group of twenty-five half of the units and more stand empty. ``rhode-island`` has real totals of 2020
and voting districts by block; race and age are drawn at random there, so its totals alone say anything. ``…-season`` is
one of the real censuses with a season: half of the blocks of a tenth of the block groups have three empty homes more for
each of their own. Without
``--state whole`` Hawaii is its counties but Honolulu, and the synthetic census has 30,000 households (else 430,000).
The Oregon file has neither blocks nor race.

With ``--releases`` the last table says how often 50, 90 and 95 % intervals hold the truth by kind of block, of the
blocks that are in the table, and how wide they are (in brackets, persons): what neither the release nor a replicate has
gets no interval. Beside it stands the coverage of 95 % intervals by level and published size, and of blocks by group
also by the kinds that a look-up knows: they are made of published numbers alone.

``--goal`` (one or several, of one census) adds a row: the shares that ``stirred plan tune`` finds for the goals, from
the preset of the first row, with what was predicted of them.

``--areas`` measures something else, alone: the error of the totals of areas beside the spine (places, school districts
and tribal areas, runs of blocks that cut block groups), where a plan names none of them, one kind, or all three as
areas of interest, beside what a check predicts and from how many measured areas it builds one.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.effect import CLASS_NAMES, find_kind, find_size_class
from stirred.mechanisms.proposal import Goal
from stirred.mechanisms.release import Release, join_variables, require_schema
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.estimate.uncertainty import tabulate_uncertainty
from stirred.mechanisms.topdown.interest import predict_areas
from stirred.mechanisms.topdown.prior import LeafUnits
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.workload import Mode, load_workloads
from topdown_accuracy import RHODE_ISLAND, SPINE, chosen, hawaii_with_units, rhode_island, washington

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
AREAS = 300  # drawn, that cut block groups
AREA_PERSONS = (500, 10_000)  # the least and the most of such an area
SEASONAL = 0.04  # of block groups, with many empty homes
FEW_BLOCKS = 20  # below which a kind is not printed
NOMINAL = (0.5, 0.9, 0.95)
ALL, ADULTS = 0, 1  # sums over age, and voting age
SIZE_STARTS = (1, 5, 20, 100, 1_000)  # of published numbers, as in the measured coverage of the program
SIZED = tuple((level, *more) for level in SPINE[2:] for more in ((), ("hispanic",), ("race",)))
PRESETS = ("pl94", "pl94-stirred")
MODES: tuple[Mode, ...] = ("classic", "gls", "guided")
ROWS = tuple(f"{preset}:{mode}" for preset in PRESETS for mode in MODES)
CODES = {"votingage": (0, 2), "hispanic": (1, 2), "race": (1, 63)}  # the first code, and how many
KIND_TABLES = (("hispanic",), ("race",), ("votingage", "hispanic"), ("votingage", "race"))  # by block
AREA_KINDS = {"place": "places", "school": "school districts", "aiannh": "tribal areas"}
COUNTIES = {"kitsap": "035", "pierce": "053", "king": "033", "snohomish": "061"}


@dataclass(frozen=True)
class Truth:
    """What is true of every block: persons (blocks × age × groups), units by type, parents, codes."""

    persons: Ints
    units: Ints
    vacant: Floats  # share of housing units
    parent: Ints
    county: Ints
    codes: NDArray[np.str_]
    districts: tuple[Ints, ...] = ()  # voting districts: the blocks of each

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
    """Return runs of blocks with a random beginning and a random size that begin or end inside a block group."""
    order = np.lexsort([truth.codes, truth.county])
    size, county, parent = truth.persons[order, ALL, EVERYBODY], truth.county[order], truth.parent[order]
    before = np.concatenate([[0], np.cumsum(size)])
    rng = np.random.default_rng(42)
    least, most = AREA_PERSONS
    starts = rng.choice(np.flatnonzero(size > 0), AREAS)
    sizes = np.exp(rng.uniform(np.log(least), np.log(most), AREAS))
    found = []
    for first, persons in zip(starts, sizes, strict=True):
        last = int(np.searchsorted(before, before[first] + persons))  # the first block after the area
        if last >= len(order) or county[last - 1] != county[first]:
            continue
        if (first and parent[first] == parent[first - 1]) or parent[last] == parent[last - 1]:
            found.append(order[first:last])
    return found


def segregation(persons: Ints, group: int) -> tuple[float, float, float]:
    """Dissimilarity from everybody else, isolation, and exposure to white persons, over blocks."""
    own, whole, white = (persons[:, ALL, g].astype(float) for g in (group, EVERYBODY, 1))
    rest, safe = whole - own, np.maximum(whole, 1.0)
    share = own / max(own.sum(), 1.0)
    apart = 0.5 * np.abs(share - rest / max(rest.sum(), 1.0)).sum()
    return float(apart), float((share * own / safe).sum()), float((share * white / safe).sum())


@dataclass(frozen=True)
class Line:
    """One line of the report for one row: numbers by draw, how they are printed, and what they are about."""

    each: Floats
    form: str = "{:.3g} ± {:.2g}"
    about: tuple[str, ...] = ()  # numbers of blocks, persons, districts, the true index …

    @property
    def text(self) -> str:
        """Mean and standard error over draws."""
        spread = self.each.std(ddof=1) / len(self.each) ** 0.5 if len(self.each) > 1 else float("nan")
        return self.form.format(self.each.mean(), spread)


BIAS = "{:+.1f} ± {:.1f} %"


def measured(truth: Truth, runs: Ints) -> dict[str, dict[str, Line]]:
    """Every line of every table, of one row; ``runs`` is draws × blocks × age × groups."""
    error = runs - truth.persons
    found: dict[str, dict[str, Line]] = {part: {} for part in HEADS}
    for name, where, age, group in kinds(truth):
        if where.sum() >= FEW_BLOCKS or (where.any() and group == EVERYBODY and where.sum() >= 5):
            own, true = error[:, where, age, group], truth.persons[where, age, group].sum()
            about = (f"{int(where.sum()):,}", f"{int(true):,}")
            found["bias"][name] = Line(100.0 * own.sum(axis=1) / max(int(true), 1), BIAS, about)
            found["error"][name] = Line(np.abs(own).mean(axis=1), about=about)
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
                label, about = (
                    f"{name}, {how}, {persons:,}",
                    (f"{len(many)}", f"{int(true[:, number].mean()):,}"),
                )
                found["districts"][f"{label}: error"] = Line(np.abs(off).mean(axis=1), about=about)
                found["districts"][f"{label}: bias"] = Line(off.mean(axis=1), "{:+.1f} ± {:.1f}", about)
                found["districts"][f"{label}: flips"] = Line(flips.sum(axis=1).astype(float), about=about)
        own = np.array([segregation(run, number) for run in runs])
        true_values = segregation(truth.persons, number)
        for i, index in enumerate(("dissimilarity", "isolation", "exposure to White")):
            found["segregation"][f"{name}, {index}"] = Line(
                own[:, i], "{:.3f} ± {:.3f}", (f"{true_values[i]:.3f}",)
            )
    summed = (
        (EVERYBODY, "everybody"),
        *((list(GROUPS).index(name), name) for name in MINORITIES),
    )
    for title, many in (("random areas", areas(truth)), ("voting districts", truth.districts)):
        for number, name in summed if many else ():
            off = np.stack([error[:, one].sum(axis=1) for one in many], axis=1)
            age = ALL if number == EVERYBODY else ADULTS
            if title == "random areas" or number == EVERYBODY:  # districts have no races of their own
                found["areas"][f"{title}: {name}"] = Line(
                    np.abs(off[:, :, age, number]).mean(axis=1), about=(f"{len(many):,}",)
                )
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
        "districts | persons",
    ),
    "areas": ("mean absolute error in areas that cut block groups", "areas"),
    "segregation": ("segregation over blocks", "true"),
    "score": ("joint score", ""),
}
COVERAGE_HEADS = {
    "coverage": ("intervals that hold the truth, of 100 (and their mean width)", "cells"),
    "sizes": ("95 % intervals that hold the truth, of 100, by published size", ""),
    "kinds": (
        "95 % intervals of blocks by group that hold the truth, of 100, by published kind and size",
        "cells",
    ),
}


def join_score(parts: Mapping[str, float], beside: Mapping[str, float]) -> float:
    """Return the joint score: the geometric mean of the ratios to another row; below 1 is better.

    The parts are the four of "joint score". A part that a census does not have is left out.

    >>> join_score({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0})
    1.0
    """
    ratios = [
        value / beside[name] for name, value in parts.items() if value == value and beside.get(name, 0.0) > 0
    ]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def printed(
    how: Mapping[str, Mapping[str, Mapping[str, Line]]], heads: Mapping[str, tuple[str, str]]
) -> None:
    """Print a table for each part of the report, with one column per row of presets and modes."""
    names = list(how)
    for part, (title, more) in heads.items():
        shown = ["", *(more.split("|") if more else []), *names]
        print(f"\n{title}\n\n| " + " | ".join(head.strip() for head in shown) + " |\n|" + "---|" * len(shown))
        for label, line in how[names[0]].get(part, {}).items():
            texts = [own.text if (own := how[name][part].get(label)) else "–" for name in names]
            print("| " + " | ".join([label, *line.about, *texts]) + " |", flush=True)


def list_truth(workload: Workload, above: UpperTree, by: tuple[str, ...]) -> pl.DataFrame:
    """The true table of one level by origin or race, with the codes of a release, as text."""
    level, *more = by
    depth = above.spine.levels.index(level)
    query = workload.histogram.query("table", tuple("cenrace" if name == "race" else name for name in more))
    counts = sum_answers(above.truth[depth], query).reshape(above.spine.size(depth), -1)
    codes = np.repeat(np.asarray(above.spine.codes[depth]).astype(str), counts.shape[1])
    numbers = np.indices([CODES[name][1] for name in more]).reshape(len(more), counts.shape[1])
    values = {
        name: np.tile((CODES[name][0] + own).astype(str), counts.shape[0])
        for name, own in zip(more, numbers, strict=True)
    }
    return pl.DataFrame({level: codes, **values, "truth": counts.ravel()})


@dataclass(frozen=True)
class Held:
    """How often the intervals of one release held: shares of 100, widths, cells of blocks."""

    share: float
    width: float
    cells: int
    blocks: int


def covered(
    census: Census,
    workload: Workload,
    mode: Mode,
    number: int,
    replicates: int,
    above: UpperTree,
    truth: Truth,
) -> dict[str, dict[str, Held]]:
    """How often intervals of one release hold the truth: by kind of block and nominal level, and by published size."""
    mechanism = TopDown(workload=workload, mode=mode, replicates=replicates)
    release = mechanism.release(census, key=Key.for_tests(number).bind("coverage"))

    @cache
    def tabulate(by: tuple[str, ...], nominal: float) -> pl.DataFrame:
        records = join_variables(release, "person", by)
        schema = require_schema(release)
        table = tabulate_uncertainty(release, schema, by, records, release.folder, level=nominal)
        assert table is not None
        return table.with_columns(pl.col(by).cast(pl.String))

    found: dict[str, dict[str, Held]] = {"coverage": {}, "sizes": {}, "kinds": {}}
    for name, where, age, group in kinds(truth):
        alone = list(GROUPS.values())[group] if group < EVERYBODY else (None, None)
        if None not in alone or where.sum() < FEW_BLOCKS:  # white alone is in no table of one variable
            continue
        axis, value = ("hispanic", 2) if alone[0] is not None else ("race", 1 + (alone[1] or 0))
        by = ("block",) if group == EVERYBODY else ("block", "votingage", axis)
        true = pl.DataFrame({"block": truth.codes[where], "truth": truth.persons[where, age, group]})
        for nominal in NOMINAL:
            cells = tabulate(by, nominal)
            if group < EVERYBODY:
                cells = cells.filter((pl.col("votingage") == "1") & (pl.col(axis) == str(value)))
            both = true.join(cells, on="block")
            inside = (both["low"] <= both["truth"]) & (both["truth"] <= both["high"])
            found["coverage"][f"{name} | {100 * nominal:.0f}"] = Held(
                100.0 * float(cast(float, inside.mean() or 0.0)),
                float(cast(float, (both["high"] - both["low"]).mean() or 0.0)),
                both.height,
                int(where.sum()),
            )
    for by in SIZED:
        true = list_truth(workload, above, by)
        both = tabulate(by, 0.95).join(true, on=by, how="left").with_columns(pl.col("truth").fill_null(0))
        both = both.filter(pl.col("standard_error") > 0)
        size = np.digitize(both["count"].to_numpy(), SIZE_STARTS)
        inside = ((both["low"] <= both["truth"]) & (both["truth"] <= both["high"])).to_numpy()
        wide = (both["high"] - both["low"]).to_numpy()
        for one in range(len(SIZE_STARTS) + 1):
            if (size == one).any():
                own = size == one
                found["sizes"][f"{' × '.join(by)} | {one}"] = Held(
                    100.0 * float(inside[own].mean()), float(wide[own].mean()), int(own.sum()), int(own.sum())
                )
    found["kinds"] = cover_kinds(release, workload, above, tabulate)
    return found


def cover_kinds(
    release: Release,
    workload: Workload,
    above: UpperTree,
    tabulate: Callable[[tuple[str, ...], float], pl.DataFrame],
) -> dict[str, Held]:
    """How often 95 % intervals of blocks hold the truth by kind of cell, from published numbers, and published size."""
    records = pl.DataFrame(pl.from_arrow(release.microdata["person"])).cast(pl.String)
    seen: dict[tuple[str, int], list[tuple[bool, float]]] = {}
    for more in KIND_TABLES:
        by = ("block", *more)
        people = records.lazy()
        if not set(more) <= set(records.columns):
            people = join_variables(release, "person", ("block_group", *by)).lazy()
        people = people.select(pl.col("block_group", *by).cast(pl.String))
        areas = people.group_by("block").agg(pl.len().alias("area"), pl.col("block_group").first()).collect()
        around = people.group_by("block_group").agg(pl.len().alias("area_above")).collect()
        cells = people.group_by("block_group", *more).agg(pl.len().alias("cell_above")).collect()
        table = tabulate(by, 0.95).join(list_truth(workload, above, by), on=by, how="left")
        table = table.with_columns(pl.col("truth").fill_null(0)).join(areas, on="block")
        table = table.join(around, on="block_group").join(cells, on=("block_group", *more), how="left")
        table = table.filter(pl.col("standard_error") > 0).with_columns(pl.col("cell_above").fill_null(0))
        inside = (table["low"] <= table["truth"]) & (table["truth"] <= table["high"])
        columns = (table[name].to_list() for name in ("count", "area", "cell_above", "area_above"))
        for *four, held, wide in zip(*columns, inside, table["high"] - table["low"], strict=True):
            seen.setdefault((find_kind(*four), find_size_class(four[0])), []).append((held, wide))
    return {
        f"{kind} | {CLASS_NAMES[size]}": Held(
            100.0 * float(np.mean([held for held, _ in own])), float(np.mean([wide for _, wide in own])),
            len(own), len(own),
        )
        for (kind, size), own in sorted(seen.items())
    }  # fmt: skip


def join_held(releases: Sequence[Mapping[str, Held]]) -> dict[str, Line]:
    """Join what several releases held to lines; one release alone has the standard error of a binomial."""
    lines = {}
    for label in dict.fromkeys(label for one in releases for label in one):
        own = [one[label] for one in releases if label in one]
        each, cells = np.array([held.share for held in own]), sum(held.cells for held in own)
        share = min(max(float(each.mean()) / 100.0, 0.0), 1.0)
        least = 100.0 * (share * (1.0 - share) / max(cells, 1)) ** 0.5
        spread = "{:.1f}" if len(own) > 1 else f"{least:.1f}"
        form = f"{{:.1f}} ± {spread} ({np.mean([held.width for held in own]):.1f})"
        about = (
            (f"{cells // len(own):,} of {own[0].blocks:,}",)
            if own[0].cells != own[0].blocks
            else (f"{cells // len(own):,}",)
        )
        lines[label] = Line(each, form, about)
    return lines


def with_areas(census: Census) -> Census:
    """Return the census with areas beside the spine: runs of blocks in the order of their codes, which cut block groups.

    Places are every second of runs of 10 to 150 blocks, school districts runs of 150 to 600 that leave nothing out, and
    tribal areas runs of 60, one in fifteen; the lengths are seeded.
    """
    homes = pl.DataFrame(census.table("household"))
    blocks = homes.select(pl.col("block").cast(pl.String)).unique().sort("block")["block"].to_numpy()
    rng = np.random.default_rng(11)

    def cut_runs(least: int, most: int) -> Ints:
        lengths = np.exp(rng.uniform(np.log(least), np.log(most + 1), len(blocks) // least + 2)).astype(
            np.int64
        )
        return np.repeat(np.arange(len(lengths)), lengths)[: len(blocks)]

    run, district, tribe = cut_runs(10, 150), cut_runs(150, 600), np.arange(len(blocks)) // 60
    codes = {
        "place": ["9" * 5 if one % 2 else f"{one:05}" for one in run],
        "school": [f"{one:04}" for one in district],
        "aiannh": [f"{one:04}" if one % 15 == 7 else "9999" for one in tribe],
    }
    homes = homes.with_columns(pl.col("block").cast(pl.String)).join(
        pl.DataFrame({"block": blocks} | codes), on="block", maintain_order="left"
    )
    people = census.table("person")
    links = "household_id" in people.column_names
    schema = {
        "geography": {
            "spine": list(census.schema.spine), "off_spine": {name: {"of": "block"} for name in AREA_KINDS},
        },
        "record": {
            "household": {"id": "household_id"},
            "person": {"household": "household_id"} if links else {"id": "person_id"},
        },
    }  # fmt: skip
    return Census.of(schema, {"household": homes, "person": people})


def measure_areas(census: Census, draws: int, first: int) -> None:
    """Print measured and predicted error of areas beside the spine, with none, one kind, and all of them named in a plan."""
    census = with_areas(census)
    where = census.scan("household", ["block", *AREA_KINDS]).unique().collect().cast(pl.String)
    columns = [f"{name}: units, predicted, measured | largest" for name in AREA_KINDS.values()]
    print(f"\n| named | {' | '.join(columns)} | block |\n|{'---|' * (len(columns) + 2)}", flush=True)
    for named in ((), *((name,) for name in AREA_KINDS), tuple(AREA_KINDS)):
        mechanism = TopDown(
            workload="pl94-stirred-persons", mode="gls", aian=None if "aiannh" in named else "none",
            areas_of_interest=list(named) or None,
        )  # fmt: skip
        workload = mechanism.workloads[0]
        options = mechanism.tree(workload, census.schema)
        predicted = {one.name: one for one in predict_areas(census, workload, options, list(AREA_KINDS))}
        off: dict[str, list[Floats]] = {name: [] for name in AREA_KINDS}
        blocks = []
        for number in range(first, first + draws):
            key, settings = Key.for_tests(number).bind("accuracy"), Settings(mode="gls", spine=options)
            task = Task(census=census, workload=workload, settings=settings, key=key, engine=Local(workers=1))
            above = build_whole_tree(task)
            levels = estimate_run(task, above, None, key).levels
            error = levels[-1].totals.astype(np.int64) - above.truth[-1].totals
            blocks.append(np.abs(error).mean())
            table = pl.DataFrame({"block": np.asarray(above.spine.codes[-1]).astype(str), "error": error})
            joined = table.join(where, on="block")
            for name in AREA_KINDS:
                sums = (
                    joined.filter(~pl.col(name).is_in(["9999", "99999"]))
                    .group_by(name)
                    .agg(pl.col("error").sum())
                )
                off[name].append(np.abs(sums["error"].to_numpy()))
        texts = []
        for name in AREA_KINDS:
            one, each = predicted[name], np.stack([sums.mean() for sums in off[name]])
            most = max(float(sums.max()) for sums in off[name])
            texts.append(f"{one.areas} of {one.units:.1f}: {one.error:.1f}, {Line(each).text} | {most:.0f}")
        print(
            f"| {', '.join(named) or 'none'} | {' | '.join([*texts, Line(np.array(blocks)).text])} |",
            flush=True,
        )


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
    if name.endswith("-season"):
        return with_season(found(name.removesuffix("-season"), folder, whole=whole))
    if name in {"segregated", "integrated"}:
        return sorted_homes(whole, apart=name == "segregated")
    if name == "hawaii":
        return hawaii_with_units(() if whole else ("15001", "15005", "15007", "15009"), seasonal=SEASONAL)
    if name in COUNTIES:
        return washington((COUNTIES[name],), seasonal=SEASONAL)
    return rhode_island() if name == "rhode-island" else chosen(name, folder)


def with_season(census: Census) -> Census:
    """The census with a season: in a tenth of the block groups, half of the blocks get three empty units for each home."""
    units = pl.DataFrame(census.table("household"))
    rng = np.random.default_rng(7)
    groups, blocks = (units[level].cast(pl.String).unique().sort() for level in ("block_group", "block"))
    here = (
        pl.col("block_group")
        .cast(pl.String)
        .is_in(groups.filter(pl.Series(rng.random(len(groups)) < 0.1)).to_list())
    )
    half = (
        pl.col("block")
        .cast(pl.String)
        .is_in(blocks.filter(pl.Series(rng.random(len(blocks)) < 0.5)).to_list())
    )
    own = units.filter(here & half & (pl.col("gq_type") == 0)).with_columns(
        kind=pl.lit(2).cast(units.schema["kind"])
    )
    last = pl.lit(units["household_id"].to_numpy().max())
    more = pl.concat([own] * 3).with_columns(
        household_id=(last + 1 + pl.int_range(pl.len())).cast(units.schema["household_id"])
    )
    return Census.of(
        {
            "geography": {"spine": list(census.schema.spine)},
            "record": {"person": {"id": "person_id"}, "household": {"id": "household_id"}},
        },
        {"household": pl.concat([units, more]), "person": census.table("person")},
    )


def list_districts(name: str, codes: NDArray[np.str_]) -> tuple[Ints, ...]:
    """The blocks of every voting district, where a file says which they are."""
    if name != "rhode-island":
        return ()
    table = pl.read_csv(RHODE_ISLAND.with_name("ri_block_vtd.csv"), infer_schema=False)
    both = pl.DataFrame({"geoid": codes}).join(table, on="geoid", how="left", maintain_order="left")
    district = both["vtd"].fill_null("").to_numpy()
    return tuple(np.flatnonzero(district == one) for one in np.unique(district) if one and "ZZZ" not in one)


def load_row(row: str) -> tuple[Workload, Mode]:
    """The workload of persons and the mode of ``preset:mode`` or of ``FILE.toml:mode``."""
    preset, mode = row.split(":")
    source = preset if preset.endswith(".toml") else f"{preset}-persons"
    return load_workloads(source, None)[0], cast(Mode, mode)


def tune(census: Census, goals: Sequence[str], preset: str) -> str:
    """Write the shares that reach these goals, print what is predicted, and return the row that measures them."""
    mechanism = TopDown(workload=f"{preset}-persons", mode="gls", aian="none")
    found = mechanism.tune(census, [Goal.parse(goal) for goal in goals])
    assert found is not None
    print("\n| goal | limit | predicted before | predicted after |\n|---|---|---|---|")
    for one in found.errors:
        print(f"| {one.table} | {one.limit:g} | {one.before:.1f} | {one.after:.1f} |")
    print("\n| change | ε before | ε after |\n|---|---|---|")
    for cost in found.costs:
        print(f"| {cost.what} | {cost.before} | {cost.after} |", flush=True)
    file = Path(tempfile.mkdtemp()) / "tuned.toml"
    file.write_text(next(iter(found.files.values())))
    return f"{file}:gls"


@lru_cache(maxsize=1)
def _open(name: str, whole: bool) -> Census:
    with tempfile.TemporaryDirectory() as folder:
        return found(name, Path(folder), whole=whole)


@lru_cache(maxsize=4)
def _tabulated(name: str, whole: bool, preset: str) -> tuple[UpperTree, Truth]:
    workload, mode = load_row(f"{preset}:gls")
    key = Key.for_tests(0).bind("accuracy")
    task = Task(
        census=_open(name, whole),
        workload=workload,
        settings=Settings(mode=mode),
        key=key,
        engine=Local(workers=1),
    )
    above = build_whole_tree(task)
    truth = known(task.census, workload, above)
    return above, replace(truth, districts=list_districts(name, truth.codes))


def draw(name: str, whole: bool, row: str, number: int) -> tuple[Ints, float]:
    """One release in memory: persons of every block by age and group, and the processor seconds of the estimate."""
    workload, mode = load_row(row)
    above, _ = _tabulated(name, whole, row.split(":")[0])
    key = Key.for_tests(number).bind("accuracy")
    task = Task(
        census=_open(name, whole),
        workload=workload,
        settings=Settings(mode=mode),
        key=key,
        engine=Local(workers=1),
    )
    begun = time.process_time()
    levels = estimate_run(task, above, None, key).levels
    return folded(workload, levels[-1]).astype(np.int32), time.process_time() - begun


def cover(name: str, whole: bool, row: str, number: int, replicates: int) -> dict[str, dict[str, Held]]:
    """The coverage of one release."""
    workload, mode = load_row(row)
    above, truth = _tabulated(name, whole, row.split(":")[0])
    return covered(_open(name, whole), workload, mode, number, replicates, above, truth)


def list_numbers(parts: Mapping[str, Mapping[str, Line]]) -> dict[str, dict[str, list[object]]]:
    """The numbers of every line by draw, rounded to six digits, and what it is about."""
    return {
        part: {
            label: [[float(f"{one:.6g}") for one in line.each], line.form, list(line.about)]
            for label, line in lines.items()
        }
        for part, lines in parts.items()
    }


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", default="segregated", help="one or several, with commas")
    asked.add_argument("--rows", default=",".join(ROWS), help="presets and modes, with commas")
    asked.add_argument("--named", default="", help="what to add to the name of a row, such as «before»")
    asked.add_argument("--draws", type=int, default=10)
    asked.add_argument(
        "--first", type=int, default=100, help="the number of the first key; for --releases 500 is added"
    )
    asked.add_argument("--state", choices=("sample", "whole"), default="sample")
    asked.add_argument("--releases", type=int, default=0)
    asked.add_argument("--replicates", type=int, default=8)
    asked.add_argument("--processes", type=int, default=1, help="draws at the same time, each on one core")
    asked.add_argument("--json", type=Path, help="a file to which each census adds one line")
    asked.add_argument(
        "--goal", action="append", default=[], help="also measure the shares that plan tune finds for it"
    )
    asked.add_argument("--areas", action="store_true", help="the error of areas that a plan names")
    told = asked.parse_args()
    rows, whole = told.rows.split(","), told.state == "whole"
    if told.goal:
        rows.append(tune(_open(told.census, whole), told.goal, rows[0].split(":")[0]))
    budgets = {Fraction(load_row(row)[0].rho_squared) for row in rows}
    assert len(budgets) == 1, "the same budget, or nothing is compared"
    print(" ".join(f"{name}={value}" for name, value in vars(told).items()), flush=True)
    if told.areas:
        for name in told.census.split(","):
            print(f"\n{name}, {told.state}", flush=True)
            measure_areas(_open(name, whole), told.draws, told.first)
        return
    if told.processes > 1:  # read by the processes that are started now
        os.environ |= {"POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(told.processes, mp_context=context) as pool:
        waiting = []
        for name in told.census.split(","):
            numbers = range(told.first, told.first + told.draws)
            drawn = {row: [pool.submit(draw, name, whole, row, number) for number in numbers] for row in rows}
            keys = range(500 + told.first, 500 + told.first + told.releases)
            held = {
                row: [pool.submit(cover, name, whole, row, number, told.replicates) for number in keys]
                for row in rows
            }
            waiting.append((name, drawn, held))
        for name, drawn, held in waiting:
            how = {}
            _, truth = _tabulated(name, whole, rows[0].split(":")[0])
            for row in rows:
                results = [one.result() for one in drawn[row]]
                lines = measured(truth, np.stack([run.astype(np.int64) for run, _ in results]))
                lines["score"]["processor seconds per estimate"] = Line(
                    np.array([took for _, took in results])
                )
                releases = [one.result() for one in held[row]]
                for part in COVERAGE_HEADS if releases else ():
                    lines[part] = join_held([release[part] for release in releases])
                how[row + told.named] = lines
            print(f"\n{name}, {told.state}: {len(truth.codes):,} blocks", flush=True)
            printed(how, HEADS | (COVERAGE_HEADS if told.releases else {}))
            if told.json:
                about = {"census": name, "state": told.state, "blocks": len(truth.codes)}
                rounded = {row: list_numbers(lines) for row, lines in how.items()}
                with told.json.open("a") as file:
                    file.write(
                        json.dumps(about | {"asked": vars(told) | {"json": ""}, "rows": rounded}) + "\n"
                    )


if __name__ == "__main__":
    main()
