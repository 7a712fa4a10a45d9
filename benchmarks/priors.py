"""Priors of who lives in a block, tried as post-processing of one noisy answer: what they gain and who pays.

  python benchmarks/priors.py [--census kitsap,segregated,pierce,hawaii,integrated] [--draws 4] [--first 40] [--all]

A release of ``pl94-stirred-persons`` in mode ``gls`` gives the unbiased estimates of every block (twelve groups of
voting age: Hispanic or not, by five races alone and the rest) with their variances, its own whole numbers of voting
age by block, and of groups by block group. Every candidate turns an estimate and its variance into a posterior mean
and variance; then one fit for all (least squares with these variances, nothing below zero) meets the block's persons
and the block group's groups. ``none`` is the fit of the estimates themselves, so the candidates differ in the prior
alone. The prior mean is the mix of the block group, m, unless said:

- one: variance φm, one φ for the state from second moments (the former prior of mode guided)
- tree: m + βm², β by group and block group from second moments, drawn to that of the tract, and this to the county's
- tree t, tree horseshoe: the same, times a squared scale with the law of Student's t (3 degrees) or half-Cauchy
- shares: no m; the law of a group's share in the blocks of a county as a nonparametric mixture (EM on a grid)
- shares by mix: the same by county and quarter of the block groups, sorted by the group's share

Each has one strength: what the variance is multiplied with, or how much of the posterior's move is made (shares).

The rule. Five parts: mean absolute bias of the sum of a minority in blocks with twice the block group's share (Black,
Hispanic, Asian, American Indian); mean absolute error in these blocks; of six groups in all blocks; of the group in
packed districts of 5,000 persons; of the four groups in 200 areas with a random start and 500 to 5,000 persons, which
cut block groups. The score is the geometric mean of the ratios to ``none``. The strength of each candidate has the
least score on Kitsap and the segregated census (mean of both) such that no ratio of the parts *bias of enclaves* and
*packed* is above 1.02 there, else the weakest; the name in the first column ends with it. The others are tested with
it. ± is the standard error over draws of the ratio in one draw. ``gls`` and ``guided`` are the releases themselves,
beside ``none`` and ``gls``. ``--all`` prints every strength.

``--vacant`` tries priors of how many persons live in a block instead (block groups without group quarters), on the
censuses as they are and with a season: in a tenth of the block groups half of the blocks get three empty units for
each of their own. κ is the variance of a block's persons in parts of their mean M, β that beyond it in parts of M².

- now: κ = 4, one β for the state from second moments, Student's t (4 degrees), as mode guided had it when these were tried
- κ = 16, κ = 64: weaker
- lower tail: four times the variance where the estimate is below the mean
- β by block group: from its own moments, drawn to the state's
- mixture: a twentieth of the blocks may have any number from 0 to M
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.estimate.whole_tree import (
    TreeEstimate,
    covariances,
    estimate_leaves_answers,
)
from stirred.mechanisms.topdown.run.release import estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.workload import Mode, Workload, load_workloads
from who_pays import ADULTS, ALL, EVERYBODY, GROUPS, MINORITIES, Truth, cut, found, known, packed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
CENSUSES = {"kitsap": "washington", "segregated": "segregated", "pierce": "pierce", "hawaii": "hawaii",
            "integrated": "integrated"}  # fmt: skip
TUNED = ("kitsap", "segregated")
MODES: tuple[Mode, ...] = ("gls", "guided")
PARTS = ("bias of enclaves", "error of enclaves", "groups by block", "packed", "random areas")
SAFE = (0, 3)  # the parts that a candidate may not make worse where it is tuned
HARM = 1.02
RACES = 5  # alone; the sixth column of a Hispanic origin is the rest
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # times the variance of a prior
MOVES = (1.0, 0.7, 0.4, 0.2, 0.1, 0.05)  # of the posterior's move
SHARES = np.array(
    [0.0, 0.003, 0.01, 0.02, 0.035, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.38, 0.47, 0.57, 0.68, 0.8, 0.9, 1.0]
)
EM_STEPS = 60
INFORMATION = 10.0  # of the area above in a β: two over it is a variance
MAX_SWEEPS, PRECISE = 40, 0.05  # of the fit; persons by which a sum of a block group may be off
AREAS, AREA_SEED = 200, 42


@dataclass(frozen=True)
class Noted:
    """What one release says about voting age by block: estimates, variances, and the sums that are kept."""

    y: Floats  # blocks × 12
    v: Floats
    adults: Floats  # of the release, by block
    above: Floats  # of the release, block groups × 12
    parent: Ints
    tract: Ints  # of block groups
    county: Ints
    released: Ints  # blocks × 12
    persons: Floats  # estimates of everybody by block
    persons_v: Floats
    persons_above: Floats  # of the release, by block group

    @property
    def mean(self) -> Floats:
        """The mix of the block group times the block's voting age."""
        whole = np.bincount(self.parent, self.adults, len(self.above))
        return np.asarray(
            self.above[self.parent] * (self.adults / np.maximum(whole[self.parent], 1.0))[:, None]
        )


def twelve(cells: Floats) -> Floats:
    """Twelve groups of (Hispanic or not) × 63 combinations of races, on the last two axes."""
    alone, rest = cells[..., :RACES], cells[..., RACES:].sum(axis=-1, keepdims=True)
    return np.concatenate([alone, rest], axis=-1).reshape(*cells.shape[:-2], 2 * (RACES + 1))


def six(x: Floats) -> Floats:
    """The groups of who_pays.py from twelve."""
    both = x.reshape(len(x), 2, RACES + 1)
    columns = [
        both[
            :, slice(None) if h is None else slice(h, h + 1), slice(None) if r is None else slice(r, r + 1)
        ].sum(axis=(1, 2))
        for h, r in GROUPS.values()
    ]
    return np.stack(columns, axis=1)


def note(
    census: Census, workload: Workload, number: int, folded_by: Callable[[Sparse], Ints]
) -> tuple[Noted, Ints, UpperTree]:
    """Release in modes gls and guided with one key; return what gls says, guided's twelve groups, and the tree."""
    query = workload.histogram.query("table", ("votingage", "hispanic", "cenrace"))
    kept, above = {}, None
    for mode in MODES:
        key = Key.for_tests(number).bind("accuracy")
        task = Task(census=census, workload=workload, settings=Settings(mode=mode), key=key, engine=Local())
        above = above or build_whole_tree(task)
        made = estimate_run(task, above, None, key)
        kept[mode] = folded_by(made.levels[-1])
        if mode == "gls":
            informed = made.targets
            assert isinstance(informed, TreeEstimate)
            cover = covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
            value, variance = estimate_leaves_answers(informed, cover[-1], query)
            total = workload.histogram.query("total", ())
            persons, persons_v = (one[:, 0] for one in estimate_leaves_answers(informed, cover[-1], total))
            shape = (-1, 2, 2, 63)
            y, v = (twelve(one.reshape(shape)[:, 1]) for one in (value, variance))
            spine, last = above.spine, len(above.spine.levels) - 1
            parent, tract = spine.parent[last], spine.parent[last - 1]
            noted = Noted(
                y, np.maximum(v, 1e-9), kept["gls"].sum(axis=1).astype(float), folded_by(made.levels[-2]).astype(float),
                parent, tract, spine.parent[last - 2][tract], kept["gls"],
                persons, np.maximum(persons_v, 1e-9), made.levels[-2].totals.astype(float),
            )  # fmt: skip
    assert above is not None
    return noted, kept["guided"], above


def fit(noted: Noted, mean: Floats, variance: Floats) -> Floats:
    """The nearest counts with the block's persons and the block group's groups."""
    able = (noted.adults[:, None] > 0) & (noted.above[noted.parent] > 0)
    first = np.searchsorted(noted.parent, np.arange(len(noted.above) + 1))
    v, best = np.where(able, variance, 0.0), np.where(able, mean, 0.0)
    return np.asarray(_fit(first, noted.adults, noted.above, best, v))


@compile_kernel
def _fit(first: Ints, adults: Floats, above: Floats, best: Floats, v: Floats) -> Floats:
    """Solve every block group by Newton's steps on the prices of its rows and columns, in turns."""
    x, G = np.zeros(best.shape), best.shape[1]
    for p in range(len(first) - 1):
        low, high = first[p], first[p + 1]
        row, column = np.zeros(high - low), np.zeros(G)
        for _ in range(MAX_SWEEPS):
            worst = 0.0
            for c in range(low, high):
                for _ in range(2):
                    total, live = 0.0, 0.0
                    for g in range(G):
                        one = best[c, g] - v[c, g] * (row[c - low] + column[g])
                        if one > 0.0:
                            total += one
                            live += v[c, g]
                    if live == 0.0:
                        for g in range(G):
                            live = max(live, v[c, g])
                    if live > 0.0:
                        row[c - low] += (total - adults[c]) / live
            for g in range(G):
                for step in range(2):
                    total, live = 0.0, 0.0
                    for c in range(low, high):
                        one = best[c, g] - v[c, g] * (row[c - low] + column[g])
                        if one > 0.0:
                            total += one
                            live += v[c, g]
                    if live == 0.0:
                        for c in range(low, high):
                            live = max(live, v[c, g])
                    if live > 0.0:
                        column[g] += (total - above[p, g]) / live
                        if step == 0:
                            worst = max(worst, abs(total - above[p, g]))
            if worst < PRECISE:
                break
        for c in range(low, high):
            total = 0.0
            for g in range(G):
                x[c, g] = max(best[c, g] - v[c, g] * (row[c - low] + column[g]), 0.0)
                total += x[c, g]
            for g in range(G):
                x[c, g] *= adults[c] / total if total > 0.0 else 0.0
    return x


def combine(noted: Noted, m: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and variance with a normal prior."""
    spread = np.maximum(spread, 0.02)
    gain = spread / (spread + noted.v)
    return m + gain * (noted.y - m), gain * noted.v


def moments(noted: Noted, m: Floats) -> tuple[Floats, Floats]:
    """Numerators and denominators of β of every cell: squared differences beyond noise and m, on squared means."""
    squared, spread = (noted.y - m) ** 2, noted.v + m
    used = (m > 0) & (squared <= 16.0 * (spread + m**2))
    weight = np.where(used, m**2 / (spread + 0.2 * m**2) ** 2, 0.0)
    return weight * (squared - spread), weight * m**2


def spread_over_tree(noted: Noted, m: Floats) -> Floats:
    """β of every block and group: of its block group, drawn to the tract's, which is drawn to the county's."""
    over, under = moments(noted, m)
    groups = m.shape[1]

    def up(x: Floats, parent: Ints) -> Floats:
        return np.stack([np.bincount(parent, x[:, g]) for g in range(groups)], axis=1)

    fine = up(over, noted.parent), up(under, noted.parent)
    tract = tuple(up(one, noted.tract) for one in fine)
    of_tract = np.zeros(len(tract[0]), np.int64)
    of_tract[noted.tract] = noted.county
    county = tuple(up(one, of_tract) for one in tract)
    state = (county[0].sum(axis=0) + 1.0) / (county[1].sum(axis=0) + 1.0)
    beta = (county[0] + INFORMATION * state) / (county[1] + INFORMATION)
    beta = (tract[0] + INFORMATION * np.maximum(beta, 0.0)[of_tract]) / (tract[1] + INFORMATION)
    beta = (fine[0] + INFORMATION * np.maximum(beta, 0.0)[noted.tract]) / (fine[1] + INFORMATION)
    return np.clip(beta, 0.0025, 30.0)[noted.parent]


def one(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """The former prior: the mix of the block group with one φ."""
    m = noted.mean
    squared = (noted.y - m) ** 2
    weight = np.where((m > 0) & (squared <= 16.0 * (noted.v + 3.0 * m)), m / (noted.v + 2.0 * m) ** 2, 0.0)
    phi = float(np.clip((weight * (squared - noted.v)).sum() / (weight * m).sum(), 1.0, 50.0))
    return lambda strength: combine(noted, m, strength * phi * m)


def tree(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """β by group and block group."""
    m = noted.mean
    beta = spread_over_tree(noted, m)
    return lambda strength: combine(noted, m, strength * (m + beta * m**2))


def scaled(noted: Noted, scale: Floats, weight: Floats) -> Callable[[float], tuple[Floats, Floats]]:
    """A mixture of normal priors with squared scales."""
    m = noted.mean
    beta = spread_over_tree(noted, m)

    def of(strength: float) -> tuple[Floats, Floats]:
        own = strength * (m + beta * m**2)
        total, first, second = (np.zeros_like(m) for _ in range(3))
        for square, w in zip(scale, weight, strict=True):
            mean, variance = combine(noted, m, square * own)
            whole = np.maximum(square * own, 0.02) + noted.v
            chance = (
                w * np.exp(-0.5 * np.minimum((noted.y - m) ** 2 / whole, 1400.0)) / np.sqrt(whole) + 1e-300
            )
            total += chance
            first += chance * mean
            second += chance * (variance + mean**2)
        mean = first / total
        return mean, np.maximum(second / total - mean**2, 0.02)

    return of


def student(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """Student's t with three degrees of freedom, as a mixture of twelve normal laws."""
    scale = np.geomspace(0.1, 300.0, 12)
    density = scale**-1.5 * np.exp(-1.5 / scale)  # of 3 / χ²(3), on a logarithmic grid
    return scaled(noted, scale, density / density.sum())


def horseshoe(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """A half-Cauchy scale."""
    scale = np.geomspace(0.003, 1000.0, 14)
    density = np.sqrt(scale) / (1.0 + scale)
    return scaled(noted, scale, density / density.sum())


def deconvolve(noted: Noted, part: Ints) -> tuple[Floats, Floats]:
    """Posterior with the law of shares of each group in each part, a nonparametric mixture on a grid."""
    mean, variance = noted.y.copy(), noted.v.copy()
    size = np.maximum(noted.adults, 1.0)[:, None]
    for g in range(mean.shape[1]):
        level = size * SHARES
        whole = noted.v[:, g, None] + size * SHARES * (1.0 - SHARES)
        fits = (
            np.exp(-0.5 * np.minimum((noted.y[:, g, None] - level) ** 2 / whole, 1400.0)) / np.sqrt(whole)
            + 1e-300
        )
        for p in np.unique(part[:, g]):
            rows = np.flatnonzero((part[:, g] == p) & (noted.adults > 0))
            law = np.full(len(SHARES), 1.0 / len(SHARES))
            if not len(rows):
                continue
            for _ in range(EM_STEPS):
                chance = fits[rows] * law
                chance /= chance.sum(axis=1, keepdims=True)
                law = chance.mean(axis=0) + 1e-9
            # given the share, persons are binomial and the noisy answer moves them as well
            binomial = (size * SHARES * (1.0 - SHARES))[rows]
            gain = binomial / (binomial + noted.v[rows, g, None])
            x = level[rows] + gain * (noted.y[rows, g, None] - level[rows])
            mean[rows, g] = (chance * x).sum(axis=1)
            spread = (chance * (x**2 + gain * noted.v[rows, g, None])).sum(axis=1) - mean[rows, g] ** 2
            variance[rows, g] = np.maximum(spread, 0.02)
    return mean, variance


def moved(noted: Noted, made: tuple[Floats, Floats]) -> Callable[[float], tuple[Floats, Floats]]:
    """A part of the posterior's move from the estimate."""
    return lambda part: (noted.y + part * (made[0] - noted.y), noted.v + part * (made[1] - noted.v))


def shares(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """By county."""
    part = np.repeat(noted.county[noted.parent][:, None], noted.y.shape[1], axis=1)
    return moved(noted, deconvolve(noted, part))


def shares_by_mix(noted: Noted) -> Callable[[float], tuple[Floats, Floats]]:
    """By county and quarter of the block groups."""
    mix = noted.above / np.maximum(noted.above.sum(axis=1, keepdims=True), 1.0)
    rank = mix.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    part = (4 * rank // len(mix))[noted.parent] + 4 * noted.county[noted.parent][:, None]
    return moved(noted, deconvolve(noted, part))


CANDIDATES = {
    "one": (one, STRENGTHS), "tree": (tree, STRENGTHS), "tree t": (student, STRENGTHS),
    "tree horseshoe": (horseshoe, STRENGTHS), "shares": (shares, MOVES), "shares by mix": (shares_by_mix, MOVES),
}  # fmt: skip


def random_areas(truth: Truth) -> list[Ints]:
    """Runs of blocks with a random start and size."""
    rng = np.random.default_rng(AREA_SEED)
    order = np.lexsort([truth.codes, truth.county])
    size = truth.persons[:, ALL, EVERYBODY]
    many = []
    for _ in range(AREAS):
        start = int(rng.integers(len(order)))
        run = cut(order[start:], size, int(rng.integers(500, 5_000)))
        many += run[:1]
    return many


def judge(truth: Truth, areas: list[Ints], x: Floats) -> Floats:
    """The five parts of six groups by block."""
    true = truth.persons[:, ADULTS, :EVERYBODY]
    error = x - true
    numbers = [list(GROUPS).index(name) for name in MINORITIES]
    bias, inside, districts = [], [], []
    above = truth.above[:, ADULTS]
    for g in numbers:
        own, adults = true[:, g], truth.persons[:, ADULTS, EVERYBODY]
        twice = (own > 0) & (own * above[:, EVERYBODY] >= 2 * above[:, g] * adults)
        bias.append(100.0 * abs(error[twice, g].sum()) / max(own[twice].sum(), 1))
        inside.append(np.abs(error[twice, g]).mean())
        districts += [abs(error[one, g].sum()) for one in packed(truth, g, 5_000)]
    off = np.array([np.abs(error[one][:, numbers].sum(axis=0)).mean() for one in areas])
    return np.array([np.mean(bias), np.mean(inside), np.abs(error).mean(), np.mean(districts), off.mean()])


def prepare(name: str, draws: int, first: int, folder: Path) -> Iterator[tuple[Noted, Ints, Truth]]:
    """Release a census ``draws`` times; yield what each release says, what guided releases, and the truth."""
    census = found(CENSUSES[name], folder, whole=False)
    workload = load_workloads("pl94-stirred-persons", None)[0]
    query = workload.histogram.query("table", ("votingage", "hispanic", "cenrace"))

    def folded_by(level: Sparse) -> Ints:
        return twelve(sum_answers(level, query).reshape(-1, 2, 2, 63)[:, 1])

    truth = None
    for number in range(first, first + draws):
        noted, guided, above = note(census, workload, number, folded_by)
        truth = truth or known(census, workload, above)
        yield noted, guided, truth


def measure(seen: Iterable[tuple[Noted, Ints, Truth]]) -> dict[str, Floats]:
    """The five parts (draws × parts) of every candidate and strength."""
    results: dict[str, list[Floats]] = {}
    for noted, guided, truth in seen:
        areas = random_areas(truth)

        def add(label: str, x: Floats, truth: Truth = truth, areas: list[Ints] = areas) -> None:
            results.setdefault(label, []).append(judge(truth, areas, six(x)))

        add("none", fit(noted, noted.y, noted.v))
        add("gls", noted.released)
        add("guided", guided)
        for label, (make, strengths) in CANDIDATES.items():
            posterior = make(noted)
            for strength in strengths:
                add(f"{label} {strength:g}", fit(noted, *posterior(strength)))
    return {label: np.stack(rows) for label, rows in results.items()}


def fit_persons(noted: Noted, mean: Floats, weight: Floats) -> Floats:
    """Persons of blocks: least squares with a prior of this mean and weight, with the block group's persons."""
    n = len(noted.persons_above)
    precision = 1.0 / noted.persons_v + weight
    best, price = (noted.persons / noted.persons_v + weight * mean) / precision, np.zeros(n)
    for _ in range(30):
        x = best - price[noted.parent] / precision
        over = np.bincount(noted.parent, np.maximum(x, 0.0), n) - noted.persons_above
        price += over / np.maximum(np.bincount(noted.parent, np.where(x > 0, 1.0 / precision, 0.0), n), 1e-3)
    return np.maximum(best - price[noted.parent] / precision, 0.0)


def weigh_units(noted: Noted, units: Ints, used: Bools) -> tuple[Floats, dict[str, Floats]]:
    """The prior mean of every block's persons, and the weight of each candidate."""
    n = len(noted.persons_above)
    around = np.bincount(noted.parent, units, n)[noted.parent]
    M = noted.persons_above[noted.parent] * units / np.maximum(around, 1)
    used = used & (M > 0) & (units < around)
    y, v = noted.persons, noted.persons_v
    squared = (y - M) ** 2
    seen = used & (squared <= 16.0 * (v + M + 0.05 * M**2))
    fisher = np.where(seen, M**2 / (v + M + 0.02 * M**2) ** 2, 0.0)
    over, under = fisher * (squared - v - M), fisher * M**2
    beta = float(np.clip((over.sum() + 100.0) / (under.sum() + 5_000.0), 0.0025, 4.0))

    def trust(variance: Floats) -> Floats:
        variance = np.maximum(variance, 0.02)
        return np.where(used, np.minimum(1.0, 5.0 / (4.0 + squared / (variance + v))) / variance, 0.0)

    bulk = 4.0 * M + beta * M**2
    all_over, all_under = (  # outliers of the state are what a block group's own β is about
        np.bincount(noted.parent, np.where(used, one, 0.0), n)
        for one in (
            M**2 / (v + M + 0.02 * M**2) ** 2 * (squared - v - M),
            M**4 / (v + M + 0.02 * M**2) ** 2,
        )
    )
    own = np.clip((all_over + 5.0 * beta) / (all_under + 5.0), 0.0025, 10.0)[noted.parent]
    near = np.exp(-0.5 * np.minimum(squared / np.maximum(bulk + v, 0.02), 1400.0)) / np.sqrt(bulk + v)
    flat = np.where((y > -2 * v**0.5) & (y < M + 2 * v**0.5), 2.5 / np.maximum(M, 1.0), 0.0)
    part = 0.95 * near / (0.95 * near + 0.05 * flat + 1e-300)
    return M, {
        "none": np.zeros(len(M)), "now": trust(bulk), "κ = 16": trust(bulk + 12.0 * M), "κ = 64": trust(bulk + 60.0 * M),
        "lower tail": trust(np.where(y < M, 4.0, 1.0) * bulk), "β by block group": trust(4.0 * M + own * M**2),
        "mixture": part * trust(bulk),
    }  # fmt: skip


def measure_vacant(seen: Iterable[tuple[Noted, Ints, Truth]], *, season: bool) -> dict[str, Floats]:
    """Bias by kind of block and the mean absolute error (draws × 5) of every candidate."""
    results: dict[str, list[Floats]] = {}
    size: list[int] = []
    for noted, _, truth in seen:
        homes, n, rng = truth.units[:, 0], len(noted.persons_above), np.random.default_rng(AREA_SEED)
        occupied = np.rint(homes * (1.0 - truth.vacant)).astype(np.int64)
        if season:
            there = (rng.random(n) < 0.1)[noted.parent] & (rng.random(len(homes)) < 0.5)
            homes = np.where(there, 4 * homes, homes)
        facilities = np.bincount(noted.parent, truth.units[:, 1:].sum(axis=1), n)[noted.parent] > 0
        plain, true = ~facilities & (homes > 0), truth.persons[:, ALL, EVERYBODY]
        vacant = 1.0 - occupied / np.maximum(homes, 1)
        usual = truth.above[:, ALL, EVERYBODY] / np.maximum(
            np.bincount(noted.parent, homes, n)[noted.parent], 1
        )
        each = true / np.maximum(homes, 1)
        kinds = [vacant > 0.2, vacant > 0.5, each >= 1.5 * usual, each <= 0.6 * usual]
        M, weights = weigh_units(noted, homes, plain)
        for label, weight in weights.items():
            error = fit_persons(noted, M, weight) - true
            bias = [100.0 * error[plain & k].sum() / max(true[plain & k].sum(), 1) for k in kinds]
            results.setdefault(label, []).append(np.array([*bias, np.abs(error[plain]).mean()]))
        size = [int((plain & k).sum()) for k in kinds]
    print(f"blocks: {', '.join(map(str, size))}")
    return {label: np.stack(rows) for label, rows in results.items()}


def compare(results: dict[str, Floats], label: str) -> Floats:
    """Ratios to ``none`` by draw (guided: to gls), with their geometric mean as the last column."""
    ratio = results[label] / results["gls" if label == "guided" else "none"]
    return np.concatenate([ratio, np.exp(np.log(ratio).mean(axis=1, keepdims=True))], axis=1)


def choose(by_census: dict[str, dict[str, Floats]]) -> dict[str, str]:
    """The strength of each candidate: the least score where it is tuned, among those that harm nobody there."""
    chosen = {}
    for label, (_, strengths) in CANDIDATES.items():
        names = [f"{label} {strength:g}" for strength in strengths]
        seen = {name: np.stack([compare(by_census[c], name).mean(axis=0) for c in TUNED]) for name in names}
        safe = [name for name in names if (seen[name][:, SAFE] <= HARM).all()]
        chosen[label] = min(safe, key=lambda name: float(seen[name][:, -1].mean())) if safe else names[-1]
    return chosen


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--census", default=",".join(CENSUSES))
    asked.add_argument("--draws", type=int, default=4)
    asked.add_argument("--first", type=int, default=40)
    asked.add_argument("--all", action="store_true", help="print every strength")
    asked.add_argument(
        "--vacant", action="store_true", help="priors of how many persons live in a block instead"
    )
    told = asked.parse_args()
    if told.vacant:
        print_vacant(told.census.split(","), told.draws, told.first)
        return
    with tempfile.TemporaryDirectory() as folder:
        by_census = {
            name: measure(prepare(name, told.draws, told.first, Path(folder)))
            for name in told.census.split(",")
        }
    tuned = all(name in by_census for name in TUNED)
    labels = list(choose(by_census).values()) if tuned else []
    for name, results in by_census.items():
        print(f"\n{name} ({'tuned' if name in TUNED else 'tested'}), {told.draws} draws\n")
        print("| prior | " + " | ".join([*PARTS, "score"]) + " |\n|" + "---|" * (len(PARTS) + 2))
        plain = results["none"]
        texts = [f"{m:.3g} ± {s:.2g}" for m, s in zip(plain.mean(axis=0), deviation(plain), strict=True)]
        print("| none | " + " | ".join([*texts, "1"]) + " |")
        every = (
            [label for label in results if label not in {"none"}] if told.all else ["gls", "guided", *labels]
        )
        for label in every:
            ratio = compare(results, label)
            texts = [f"{m:.3f} ± {s:.3f}" for m, s in zip(ratio.mean(axis=0), deviation(ratio), strict=True)]
            print(f"| {label} | " + " | ".join(texts) + " |", flush=True)


def print_vacant(names: list[str], draws: int, first: int) -> None:
    """Print bias and error of the candidates for persons by block."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            seen = list(prepare(name, draws, first, Path(folder)))
        for season in (False, True):
            print(f"\n{name}{', with a season' if season else ''}, {draws} draws\n", flush=True)
            results = measure_vacant(seen, season=season)
            print(
                "\n| prior | a fifth vacant | mostly vacant | crowded | sparse | error of a block |\n"
                + "|---" * 6
                + "|"
            )
            for label, rows in results.items():
                both = list(zip(rows.mean(axis=0), deviation(rows), strict=True))
                texts = [*(f"{m:+.2f} ± {s:.2f}" for m, s in both[:-1]), "{:.3f} ± {:.3f}".format(*both[-1])]
                print(f"| {label} | " + " | ".join(texts) + " |", flush=True)


def deviation(x: Floats) -> Floats:
    """Standard errors over draws."""
    return np.asarray(x.std(axis=0, ddof=1) / len(x) ** 0.5) if len(x) > 1 else np.full(x.shape[1], np.nan)


if __name__ == "__main__":
    main()
