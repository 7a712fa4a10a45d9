"""Infer confidential counts from public numbers: posteriors of noisy counts, differences between tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from stirred.assess.risk import AttackResult, Baseline, RiskMeasure, name_measure
from stirred.assess.universe.bounds import find_separators, keep_maximal
from stirred.assess.universe.counting import log_gamma
from stirred.errors import InputError
from stirred.frames import collect_frame, frame_of, series_of

MAX_LEVELS = 100  # of a variable that can be guessed


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityGuess:
    """The success of guessing an area's commonest value, beside that of all records, by released records.

    Each record is guessed from the others, so that an area with one record gives nothing away; absolute risk, and of a kind
    that every table by area gives.
    """

    variable: str
    area: str
    records: int
    found: float
    guess: float

    @property
    def gain(self) -> float:
        """Return the share of the misses of the guess without an area that the area turns into hits."""
        return (self.found - self.guess) / (1 - self.guess) if self.guess < 1 else 0.0


def guess_by_area(records: pl.LazyFrame, area: str, variable: str) -> MajorityGuess | None:
    """Compare the guess by area with the guess without one; None for one level or very many.

    >>> frame = pl.LazyFrame({"block": ["a", "a", "a", "b", "b", "c"], "race": [1, 1, 2, 2, 2, 1]})
    >>> found = guess_by_area(frame, "block", "race")
    >>> round(found.found, 3), round(found.guess, 3)
    (0.667, 0.5)
    """
    cells = collect_frame(records.group_by([area, variable]).agg(pl.len().cast(pl.Int64).alias("n")))
    whole = cells.group_by(variable).agg(pl.col("n").sum()).sort("n", variable, descending=[True, False])
    if not 2 <= whole.height <= MAX_LEVELS:
        return None
    total, commonest = int(whole["n"].sum()), whole[variable][0]
    # in an area with one record the guess is the one without an area
    single = pl.col("n").sum().over(area) == 1
    spared = cells.filter(single & pl.col(variable).eq_missing(pl.lit(commonest))).height
    return MajorityGuess(
        variable=variable,
        area=area,
        records=total,
        found=(_expected_hits(cells, area) + spared) / total,
        guess=int(whole["n"][0]) / total,
    )


def _expected_hits(cells: pl.DataFrame, area: str) -> float:
    """Return the expected hits of the commonest value among the others; a tie is decided by lot.

    Without the record itself its value has one less, so only records with the one commonest value can be guessed right.
    """
    ordered = pl.col("n").sort(descending=True)
    areas = cells.group_by(area).agg(
        ordered.first().alias("top"),
        ordered.slice(1, 1).sum().alias("second"),
        (pl.col("n") == ordered.slice(1, 1).sum()).sum().alias("seconds"),
    )
    top, second = pl.col("top"), pl.col("second")
    tied = top / (1 + pl.col("seconds"))
    hits = (
        pl.when(top - 1 > second).then(top).when((top - 1 == second) & (second > 0)).then(tied).otherwise(0.0)
    )
    return float(areas.select(hits.sum()).item())


# From prior to posterior for noisy counts: what an attacker believes about a count before and after its publication.
#
# The belief in a true count c after the noisy number x is proportional to prior(c) · noise(x − c), over the counts
# that the invariants allow. What is said of counts is absolute risk. What one record does to the odds of two
# neighbouring counts is relative risk, and a budget bounds it.

Floats = NDArray[np.float64]
REACH_DEVIATIONS = 9  # standard deviations of noise that are weighed
MAX_BOUND_WIDTH = 100_000  # bounds within which a prior is summed
CHUNK_NUMBERS = 4_000_000  # numbers held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise:
    """Noise whose law is public: Gaussian (σ, also discrete) or two-sided geometric (ε per record)."""

    law: str  # "gaussian" or "geometric"
    scale: float  # σ, or 1/ε

    def __post_init__(self) -> None:
        if self.law not in ("gaussian", "geometric") or not self.scale > 0:
            raise InputError(
                f"{self.law} noise of scale {self.scale} is not known",
                why="the law is gaussian or geometric, and the scale is above 0",
                fix='KnownNoise(law="gaussian", scale=3.0)',
            )

    def log_weight(self, gap: Floats) -> Floats:
        """Return the logarithm of the probability of the noise, up to a constant."""
        return -(gap**2) / (2 * self.scale**2) if self.law == "gaussian" else -np.abs(gap) / self.scale

    @property
    def reach(self) -> int:
        """Return the largest gap that is weighed; a geometric tail is longer than a Gaussian one."""
        return int(np.ceil(REACH_DEVIATIONS * self.scale * (1 if self.law == "gaussian" else 3))) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """An attacker's belief before the release: a name for the report, and the log weight of each count."""

    name: str
    log_weight: Callable[[Floats], Floats]


def uniform() -> Prior:
    """Return the prior under which all counts are equally likely."""
    return Prior(name="every count is equally likely", log_weight=np.zeros_like)


def poisson(mean: float) -> Prior:
    """Return a Poisson prior, for an attacker who knows the average count.

    >>> float(poisson(2.0).log_weight(np.array([3.0]))[0].round(4))
    -1.7123
    """
    return Prior(
        name=f"counts are Poisson with mean {mean:g}",
        log_weight=lambda c: c * np.log(mean) - mean - log_gamma(c + 1),
    )


def posterior_counts(
    noisy: ArrayLike,
    noise: KnownNoise,
    prior: Prior,
    *,
    low: ArrayLike = 0,
    high: ArrayLike | None = None,
) -> pl.DataFrame:
    """Return the likeliest true count of each noisy count and its chance, within the given bounds.

    >>> noise = KnownNoise(law="geometric", scale=0.5)
    >>> posterior_counts([3, 8], noise, uniform(), high=[3, 20])["chance"].round(3).to_list()
    [0.865, 0.762]
    """
    x = np.atleast_1d(np.asarray(noisy, np.float64))
    least = np.broadcast_to(np.asarray(low, np.float64), x.shape)
    most = np.broadcast_to(np.asarray(np.inf if high is None else high, np.float64), x.shape)
    if np.any(most < least):
        raise InputError(
            "the bounds of a count exclude every value",
            why="the smallest value is above the largest",
            fix="take both from the same invariants",
        )
    offsets = np.arange(-noise.reach, noise.reach + 1, dtype=np.float64)
    parts = [
        _posterior(x[i : i + step], least[i : i + step], most[i : i + step], offsets, noise, prior)
        for step in [max(1, CHUNK_NUMBERS // offsets.size)]
        for i in range(0, x.size, step)
    ]
    likeliest, chance, mean, exact = (np.concatenate(found) for found in zip(*parts, strict=True))
    columns = {"noisy": x, "low": least, "high": most, "likeliest": likeliest, "chance": chance, "mean": mean}
    return pl.DataFrame({name: series_of(values) for name, values in {**columns, "implied": exact}.items()})


def _posterior(
    x: Floats, least: Floats, most: Floats, offsets: Floats, noise: KnownNoise, prior: Prior
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    # the window lies around the noisy count, moved into the bounds
    centre = np.clip(np.round(x), least, most)
    counts = centre[:, None] + offsets[None, :]
    allowed = (counts >= least[:, None]) & (counts <= most[:, None])
    weights = noise.log_weight(x[:, None] - counts) + _weigh_counts(prior, counts)
    weights = np.where(allowed, weights, -np.inf)
    chances = np.exp(weights - _log_sum(weights)[:, None])
    best = chances.argmax(axis=1)
    rows = np.arange(x.size)
    mean = (chances * np.where(allowed, counts, 0)).sum(axis=1)
    return counts[rows, best], chances[rows, best], mean, least == most


def _weigh_counts(prior: Prior, counts: Floats) -> Floats:
    """Return the prior weight of each count; each whole number is weighed once where that is less work."""
    first, last = counts.min(initial=np.inf), counts.max(initial=-np.inf)
    if not last - first < counts.size or not np.array_equal(counts[:, 0], np.rint(counts[:, 0])):
        return prior.log_weight(np.maximum(counts, 0))
    once = prior.log_weight(np.maximum(np.arange(first, last + 1), 0))
    found: Floats = once[(counts - first).astype(np.int64)]
    return found


def prior_to_posterior(
    noisy: ArrayLike,
    noise: KnownNoise,
    *,
    priors: Sequence[Prior] = (),
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    about: str = "counts",
) -> AttackResult:
    """Measure how sure the best guess of each count is, by prior, with and without the invariants' bounds.

    ``low`` and ``high`` are the bounds from the invariants (see ``frechet_bounds``). With the ``truth`` it is also said how
    many of the best guesses are right; all else is computed from what is published.
    """
    measures: list[RiskMeasure] = []
    tables: dict[str, pl.DataFrame] = {}
    x = np.atleast_1d(np.asarray(noisy, np.float64))
    for prior in priors or (uniform(),):
        cases: list[tuple[str, ArrayLike, ArrayLike | None]] = [(name_measure("case.without"), 0.0, None)]
        if low is not None or high is not None:
            cases.append((name_measure("case.with"), 0.0 if low is None else low, high))
        for words, least, most in cases:
            found = posterior_counts(x, noise, prior, low=least, high=most)
            before = _prior_chance(found, prior)
            tables[f"{prior.name}, {words}"] = found
            measures.append(
                RiskMeasure(
                    name=name_measure("count_guess", case=words),
                    about=f"{about}, if {prior.name}",
                    kind="absolute",
                    value=float(found["chance"].to_numpy().mean()),
                    unit="share",
                    public=True,
                    baselines=() if before is None else (Baseline(name="before the release", value=before),),
                )
            )
            if truth is not None:
                right = np.asarray(truth) == found["likeliest"].to_numpy()
                measures.append(
                    RiskMeasure(
                        name=name_measure("count_found", case=words),
                        about=f"{about}, if {prior.name}",
                        kind="absolute",
                        value=float(right.mean()),
                        unit="share",
                    )
                )
    measures.append(_one_record(noise, about))
    return AttackResult(measures=tuple(measures), tables=tables)


def _log_sum(weights: Floats) -> Floats:
    """Return the logarithm of a sum of weights that are given by their logarithms, along the last axis."""
    top = weights.max(axis=-1)
    found: Floats = top + np.log(np.exp(weights - top[..., None]).sum(axis=-1))
    return found


def _prior_chance(found: pl.DataFrame, prior: Prior) -> float | None:
    """Return the chance of the best guess without the noisy number, if the bounds leave finitely many counts."""
    spans = found.select("low", "high").unique()
    widths = (spans["high"] - spans["low"]).to_numpy()
    if not np.isfinite(widths).all() or widths.max() > MAX_BOUND_WIDTH:
        return None
    best = {}
    for least, most in spans.iter_rows():
        weights = prior.log_weight(np.arange(least, most + 1))
        best[least, most] = float(np.exp(weights.max() - _log_sum(weights)))
    return float(np.mean([best[pair] for pair in found.select("low", "high").iter_rows()]))


def _one_record(noise: KnownNoise, about: str) -> RiskMeasure:
    """Measure how far one record moves the odds of two neighbouring counts."""
    pure = noise.law == "geometric"
    value = 1 / noise.scale if pure else (2 * 1.96 * noise.scale + 1) / (2 * noise.scale**2)
    return RiskMeasure(
        name=name_measure("count_odds"),
        about=about,
        kind="relative",
        value=value,
        unit="epsilon",
        confidence=1.0 if pure else 0.95,
        public=True,
        reason="" if pure else "exceeded with a chance of at most 0.05",
    )


def frechet_bounds(rows: ArrayLike, columns: ArrayLike, total: ArrayLike) -> tuple[Floats, Floats]:
    """Return the bounds of counts whose two margins and total are exact.

    >>> low, high = frechet_bounds([4, 1], [3, 3], 5)
    >>> low.tolist(), high.tolist()
    ([2.0, 0.0], [3.0, 1.0])
    """
    r, c, n = (np.asarray(given, np.float64) for given in (rows, columns, total))
    return np.maximum(0.0, r + c - n), np.minimum(r, c)


# Prior to posterior for a noisy table of a release, with the bounds that its exact tables give.


def add_bounds(table: pl.DataFrame, by: Sequence[str], exact: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add the bounds of each count that exact tables of some of its variables give; Dobra and Fienberg's where they apply.

    >>> cells = pl.DataFrame({"a": ["x"], "b": ["u"]})
    >>> tables = [pl.DataFrame({"a": ["x", "y"], "count": [4, 1]}), pl.DataFrame({"b": ["u", "v"], "count": [3, 2]})]
    >>> add_bounds(cells, ["a", "b"], tables).select("low", "high").row(0)
    (2.0, 3.0)
    """
    frame = table.with_columns(pl.lit(float("inf")).alias("high"), pl.lit(0.0).alias("sum"))
    shown = [frozenset(name for name in one.columns if name in by) for one in exact]
    shared = find_separators(shown)
    sharp = (
        shared is not None
        and frozenset(by) == frozenset[str]().union(*shown)
        and len({*shown}) == len(keep_maximal(shown))
    )
    for names, one in zip(shown, exact, strict=True):
        margin = _margin_column(frame, one, names)
        frame = frame.with_columns(
            pl.min_horizontal("high", margin).alias("high"), (pl.col("sum") + margin).alias("sum")
        )
    for names in shared or ():
        one = next(table for table, has in zip(exact, shown, strict=True) if names <= has)
        frame = frame.with_columns((pl.col("sum") - _margin_column(frame, one, names)).alias("sum"))
    low = pl.max_horizontal(pl.lit(0.0), "sum") if sharp else pl.lit(0.0)
    return frame.with_columns(low.alias("low")).drop("sum")


def _margin_column(frame: pl.DataFrame, table: pl.DataFrame, names: frozenset[str]) -> pl.Series:
    """Return the margin of each row of the frame."""
    if not names:
        return pl.Series("margin", [float(table["count"].sum())] * frame.height, pl.Float64)
    keys = sorted(names)
    counts = (
        table.with_columns(pl.col(keys).cast(pl.String))
        .group_by(keys)
        .agg(pl.col("count").sum().alias("margin"))
    )
    found = frame.select(keys).join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return found["margin"].cast(pl.Float64).fill_null(0.0)


# What published tables with known errors let anyone believe, and what a guess finds without them.
#
# The prior is a law of counts with the mean and the spread of the published table, without the spread of its noise:
# a negative binomial law, or a Poisson law where counts do not vary more. Errors are taken as normal with the
# published standard error.

MAX_CELLS_WEIGHED = 200_000  # cells of a table that are weighed, evenly spread over it
MAX_STANDARD_ERROR = 1_000.0  # standard errors beyond this leave nearly as much open as no number
SURE_CHANCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredTable:
    """The expected success of the best guess of a cell, after the table and before it; absolute risk.

    Who has the table may also ignore it, so ``found`` is never below ``guess``. ``ones`` cells count exactly one record
    with a chance of 0.95 or more.
    """

    name: str
    by: tuple[str, ...]
    cells: int
    found: float
    guess: float
    ones: int


def infer_table(
    name: str, table: pl.DataFrame, by: Sequence[str], exact: Sequence[pl.DataFrame] = ()
) -> InferredTable | None:
    """Measure what a published table reveals of its cells; None where it states no finite error.

    ``exact`` are sums of the table that hold exactly: they bound its cells.

    >>> table = pl.DataFrame({"a": [1, 2, 3, 4], "estimate": [0.2, 9.0, 4.1, 2.9], "standard_error": [0.3] * 4})
    >>> found = infer_table("t", table, ["a"])
    >>> round(found.found, 2), round(found.guess, 2)
    (0.98, 0.15)
    """
    if not {"estimate", "standard_error"} <= {*table.columns}:
        return None
    noisy = table.with_columns(pl.col("estimate", "standard_error").cast(pl.Float64)).filter(
        pl.col("standard_error").is_finite()
        & (pl.col("standard_error") > 0)
        & pl.col("estimate").is_finite()
        & (pl.col("standard_error") <= MAX_STANDARD_ERROR)
    )
    if noisy.height < 2:
        return None
    prior, guess = estimate_prior(noisy["estimate"].to_numpy(), noisy["standard_error"].to_numpy())
    if noisy.height > MAX_CELLS_WEIGHED:
        noisy = noisy.gather_every(noisy.height // MAX_CELLS_WEIGHED + 1)
    noisy = noisy.with_columns(pl.col("standard_error").round_sig_figs(2))
    if exact:
        texts = noisy.with_columns(pl.col(list(by)).cast(pl.String))
        noisy = add_bounds(texts, by, exact)
    right, ones = 0.0, 0
    for (scale,), rows in noisy.sort("standard_error").group_by("standard_error", maintain_order=True):
        found = posterior_counts(
            rows["estimate"].to_numpy(),
            KnownNoise(law="gaussian", scale=float(str(scale))),
            prior,
            low=rows["low"].to_numpy() if exact else 0,
            high=rows["high"].to_numpy() if exact else None,
        )
        right += float(found["chance"].sum())
        ones += found.filter((pl.col("likeliest") == 1) & (pl.col("chance") >= SURE_CHANCE)).height
    return InferredTable(
        name=name,
        by=tuple(by),
        cells=noisy.height,
        found=max(right / noisy.height, guess),
        guess=guess,
        ones=ones,
    )


def estimate_prior(estimates: Floats, errors: Floats) -> tuple[Prior, float]:
    """Estimate the law of counts by moments; return it with the chance of its likeliest count.

    >>> prior, best = estimate_prior(np.array([0.0, 0, 0, 0, 10]), np.full(5, 0.1))
    >>> round(best, 2)
    0.55
    """
    mean = max(float(np.clip(estimates, 0, None).mean()), 1e-3)
    spread = float(estimates.var() - np.mean(errors**2))
    if spread <= mean * (1 + 1e-9):
        return _with_mode(poisson(mean), np.floor(mean))
    size, chance = mean**2 / (spread - mean), mean / spread

    def log_weight(c: Floats) -> Floats:
        ways = log_gamma(c + size) - log_gamma(c + 1) - log_gamma(size)
        found: Floats = ways + size * np.log(chance) + c * np.log1p(-chance)
        return found

    mode = np.floor((size - 1) * (1 - chance) / chance) if size > 1 else 0.0
    return _with_mode(
        Prior(name=f"counts are negative binomial with mean {mean:g}", log_weight=log_weight), mode
    )


def _with_mode(prior: Prior, mode: float) -> tuple[Prior, float]:
    return prior, float(np.exp(prior.log_weight(np.array([mode]))[0]))


# Differencing: numbers of small areas that follow by subtraction, between overlapping areas and between releases.
#
# Two published partitions of a region cut it into pieces. A piece is an edge between the two areas it lies in. The
# totals of the areas determine a piece exactly if its edge is a bridge of this graph: without it the areas fall apart
# into two groups, and the piece is the difference between the totals of one group's areas of either kind.

COUNT, ERROR = "count", "standard_error"
SMALL_RECORDS = 10  # a piece with fewer records is small


@dataclass(frozen=True, slots=True)
class Graph:
    """The areas of two partitions as nodes, the pieces as edges, and for each bridge the areas on one side of it."""

    edges: tuple[tuple[int, int], ...]
    nodes: int

    def find_bridges(self) -> dict[int, list[int]]:
        """Return the bridges by the number of their edge, each with the nodes below it in a depth-first tree."""
        near: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for number, (a, b) in enumerate(self.edges):
            near[a].append((b, number))
            near[b].append((a, number))
        order, low, entered = [-1] * self.nodes, [0] * self.nodes, list[int]()
        ends, found = [0] * self.nodes, dict[int, list[int]]()
        for start in range(self.nodes):
            if order[start] >= 0:
                continue
            stack = [(start, -1, iter(near[start]))]
            order[start] = low[start] = len(entered)
            entered.append(start)
            while stack:
                node, above, rest = stack[-1]
                step = next(rest, None)
                if step is None:
                    stack.pop()
                    ends[node] = len(entered)
                    if stack:
                        parent = stack[-1][0]
                        low[parent] = min(low[parent], low[node])
                        if low[node] > order[parent]:
                            found[above] = entered[order[node] : ends[node]]
                    continue
                other, number = step
                if number == above:
                    continue
                if order[other] >= 0:
                    low[node] = min(low[node], order[other])
                    continue
                order[other] = low[other] = len(entered)
                entered.append(other)
                stack.append((other, number, iter(near[other])))
        return found


def difference_areas(
    pieces: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    *,
    areas: Sequence[str],
    small: int = SMALL_RECORDS,
) -> AttackResult:
    """Find the pieces of two overlapping geographies that follow from their published totals, with errors.

    ``pieces`` lists which two areas overlap (two columns, named in ``areas``), with ``count`` where the truth is known;
    ``first`` and ``second`` are the published totals, with ``standard_error`` where they are noisy.

    >>> pieces = pl.DataFrame({"tract": ["1", "1", "2"], "place": ["x", "y", "y"]})
    >>> tracts = pl.DataFrame({"tract": ["1", "2"], "count": [12, 30]})
    >>> places = pl.DataFrame({"place": ["x", "y"], "count": [9, 33]})
    >>> difference_areas(pieces, tracts, places, areas=["tract", "place"]).tables["pieces"]["difference"].to_list()
    [9.0, 3.0, 30.0]
    """
    one, two = areas
    for frame, needed in ((pieces, {one, two}), (first, {one, COUNT}), (second, {two, COUNT})):
        if not needed <= {*frame.columns}:
            raise InputError(
                f"a table lacks {sorted(needed - {*frame.columns})[0]}",
                why="pieces name both areas, and totals their area and a count",
                fix=f"give columns {', '.join(sorted(needed))}",
            )
    given = pieces.with_columns(pl.col(one, two).cast(pl.String))
    totals, errors, place = dict[int, float](), dict[int, float](), dict[tuple[str, str], int]()
    for side, frame in ((one, first), (two, second)):
        for row in frame.with_columns(pl.col(side).cast(pl.String)).iter_rows(named=True):
            number = place.setdefault((side, row[side]), len(place))
            totals[number], errors[number] = float(row[COUNT]), float(row.get(ERROR) or 0.0)
    edges = tuple(
        (place[one, a], place[two, b])
        for a, b in given.select(one, two).iter_rows()
        if (one, a) in place and (two, b) in place
    )
    kept = given.filter(
        pl.col(one).is_in([a for s, a in place if s == one])
        & pl.col(two).is_in([b for s, b in place if s == two])
    )
    sides = Graph(edges, len(place)).find_bridges()
    kind = {number: side for (side, _), number in place.items()}
    differences: list[float | None] = [None] * len(edges)
    spreads: list[float | None] = [None] * len(edges)
    numbers: list[int | None] = [None] * len(edges)
    for edge, nodes in sides.items():
        gap = sum(totals[node] if kind[node] == one else -totals[node] for node in nodes)
        # the side that holds the piece's own first area counts it with a plus
        differences[edge] = gap if edges[edge][0] in nodes else -gap
        spreads[edge] = sum(errors[node] ** 2 for node in nodes) ** 0.5
        numbers[edge] = len(nodes)
    found = kept.with_columns(
        pl.Series("difference", differences, pl.Float64),
        pl.Series("spread", spreads, pl.Float64),
        pl.Series("totals_used", numbers, pl.Int64),
    )
    return AttackResult(measures=_piece_measures(found, areas, small), tables={"pieces": found})


def _piece_measures(found: pl.DataFrame, areas: Sequence[str], small: int) -> tuple[RiskMeasure, ...]:
    many = max(found.height, 1)
    known = found.filter(pl.col("difference").is_not_null())
    # one total that is itself the piece was published anyway
    new = known.filter(pl.col("totals_used") > 1)
    tiny = new.filter(pl.col("difference").round() < small)
    about = f"pieces where {areas[0]} and {areas[1]} overlap"
    exact = all((known["spread"] == 0).to_list())
    note = "" if exact else "the totals are noisy: a difference has the noise of all totals that it uses"
    measures = [
        _piece_measure("pieces that follow by subtraction", about, new.height / many, note),
        _piece_measure(
            f"pieces that follow by subtraction and count fewer than {small} records",
            about,
            tiny.height / many,
            note,
        ),
    ]
    if COUNT in found.columns and new.height:
        right = new.filter(pl.col("difference").round() == pl.col(COUNT)).height / new.height
        measures.append(
            RiskMeasure(
                name=name_measure("differences"),
                about=f"{about} and that follow",
                kind="absolute",
                value=right,
                unit="share",
                baselines=(Baseline(name="if the totals were exact", value=1.0),),
            )
        )
    return tuple(measures)


def _piece_measure(name: str, about: str, value: float, reason: str) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, unit="share", public=True, reason=reason
    )


def compare_releases(
    first: pl.DataFrame, second: pl.DataFrame, *, by: Sequence[str], small: int = SMALL_RECORDS
) -> AttackResult:
    """Compare two publications of one table: records that came or left, or noise that averages out.

    Cells that both publish exactly differ by the records that changed; of two noisy numbers the better mean is known.

    >>> old, new = (pl.DataFrame({"block": ["a", "b"], "count": c}) for c in ([3, 7], [4, 7]))
    >>> compare_releases(old, new, by=["block"]).tables["changes"]["difference"].to_list()
    [1.0]
    """
    one, two = (_plain_counts(frame, by) for frame in (first, second))
    both = one.join(two, on=list(by), how="full", coalesce=True, nulls_equal=True, suffix="_second")
    both = both.with_columns(pl.selectors.numeric().fill_null(0.0))
    variance = pl.col("variance") + pl.col("variance_second")
    both = both.with_columns(
        (pl.col(f"{COUNT}_second") - pl.col(COUNT)).alias("difference"), variance.sqrt().alias("spread")
    )
    exact = both.filter(pl.col("spread") == 0)
    changed = exact.filter(pl.col("difference") != 0)
    telling = changed.filter(pl.col("difference").abs() < small)
    noisy = both.filter((pl.col("variance") > 0) & (pl.col("variance_second") > 0))
    weight = pl.col("variance_second") / variance
    mean = weight * pl.col(COUNT) + (1 - weight) * pl.col(f"{COUNT}_second")
    better = (pl.col("variance") * pl.col("variance_second") / variance).sqrt()
    averaged = noisy.select(*by, mean.alias("mean"), better.alias("spread"))
    about = f"cells by {', '.join(by)} that two releases publish"
    many = max(both.height, 1)
    measures = [
        _piece_measure("cells whose exact change is shown", about, changed.height / many, ""),
        _piece_measure(f"cells that changed by fewer than {small} records", about, telling.height / many, ""),
    ]
    if noisy.height:
        ratio = float((averaged["spread"] / noisy["variance"].sqrt()).to_numpy().mean())
        measures.append(
            RiskMeasure(
                name=name_measure("averaged"),
                about=about,
                kind="relative",
                value=ratio,
                unit="share",
                public=True,
                baselines=(Baseline(name="of the first release alone", value=1.0),),
                reason="both budgets are spent: the composition of the two releases bounds it",
            )
        )
    return AttackResult(measures=tuple(measures), tables={"changes": changed, "averaged": averaged})


def _plain_counts(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    error = pl.col(ERROR).fill_null(0.0).cast(pl.Float64) ** 2 if ERROR in frame.columns else pl.lit(0.0)
    value = "estimate" if "estimate" in frame.columns else COUNT
    return frame.select(
        *(pl.col(name).cast(pl.String) for name in by),
        pl.col(value).cast(pl.Float64).alias(COUNT),
        error.alias("variance"),
    )


def make_pieces(counts: pl.DataFrame | pa.Table, areas: Sequence[str]) -> pl.DataFrame:
    """Return the pieces of a table of counts by two areas, for ``difference_areas``."""
    frame = counts if isinstance(counts, pl.DataFrame) else frame_of(counts)
    return frame.group_by(list(areas)).agg(pl.col(COUNT).sum()).sort(list(areas))
