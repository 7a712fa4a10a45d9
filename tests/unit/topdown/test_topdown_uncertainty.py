"""Replicates of a release: from public arrays alone, keyed, unbiased where that is promised, and covering the truth."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, chi2

from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InputError
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.estimate import uncertainty, whole_tree
from stirred.mechanisms.topdown.estimate.uncertainty import estimate_bias, estimate_drift
from stirred.mechanisms.topdown.run.release import can_estimate_tree, estimate_release_tree
from stirred.mechanisms.topdown.run.task import Settings
from unit.topdown.runs import run

KEY = Key.for_tests(5)
SMALL = Workload.preset("small")


def outcome(census, **more):
    return run(census, SMALL, Settings(**more), key=KEY, engine=Local(workers=1))


def test_a_replicate_keeps_what_the_release_keeps(make_census):
    census = make_census(1)
    for mode in ("gls", "classic"):
        made = outcome(census, mode=mode)
        again = made.replicates(3)
        assert len(again) == 3
        for leaves in again:
            for held in made.constraints.held:
                if len(held.low) == len(made.spine.levels):
                    value = sum_answers(leaves, held.query)
                    assert ((value >= held.low[-1]) & (value <= held.high[-1])).all()
            assert leaves.counts.sum() == made.levels[0].counts.sum()  # the state's population is exact
        assert len({leaves.counts.tobytes() for leaves in again}) == 3  # fresh noise every time


def test_without_noise_a_replicate_is_the_release(make_census):
    made = outcome(make_census(2), noiseless=True)
    leaves = made.levels[-1]
    (again,) = made.replicates(1)
    assert np.array_equal(again.cells, leaves.cells)
    assert np.array_equal(again.counts, leaves.counts)


def test_replicates_depend_on_the_release_and_not_on_the_census(make_census):
    """The same released arrays with nothing of the census behind them: only the release is looked at."""
    made = outcome(make_census(1))
    above = made.estimation.above
    none = np.zeros(0, np.int64)
    nobody = [Sparse(np.zeros_like(level.first), none, none) for level in above.truth]
    hollow = replace(made, estimation=replace(made.estimation, above=replace(above, truth=nobody)))
    (first,), (second,) = made.replicates(1), hollow.replicates(1)
    assert first.counts.tobytes() == second.counts.tobytes()


def test_replicates_change_nothing_of_the_release(make_census):
    census = make_census(3)
    plain = TopDown(workload="small", replicates=0).release(census, key=KEY)
    more = TopDown(workload="small", replicates=2).release(census, key=KEY)
    assert plain.microdata["person"].equals(more.microdata["person"])
    assert {"small-replicates", "small-unbiased"} <= set(more.tables)
    again = TopDown(workload="small", replicates=2).release(census, key=KEY)
    assert all(again.tables[name].equals(table) for name, table in more.tables.items())
    with pytest.raises(InputError, match="at least two"):
        TopDown(workload="small", replicates=1)


def test_intervals_against_a_direct_count():
    """Two classes with many numbers each: every limit has its share of the differences beyond it, and no more."""
    rng = np.random.default_rng(1)
    count = np.r_[rng.integers(100, 200, 40), rng.integers(1000, 2000, 40)]
    again = count + np.rint(rng.normal(0, np.repeat([3, 9], 40), (9, 80))).astype(np.int64)
    again = np.clip(again, np.repeat([100, 1000], 40), np.repeat([199, 1999], 40))
    for level in (0.9, 0.95):
        found = uncertainty.compute_intervals(count, again, level=level)
        for cells in (slice(0, 40), slice(40, 80)):
            apart = (count - again)[:, cells].ravel()
            low, high = found["low"][cells] - count[cells], found["high"][cells] - count[cells]
            assert np.ptp(low) == np.ptp(high) == 0  # one class, one margin
            assert (apart < low[0]).sum() <= 361 * (1 - level) / 2 < (apart <= low[0]).sum() + 1
            assert (apart > high[0]).sum() <= 361 * (1 - level) / 2 < (apart >= high[0]).sum() + 1
            assert found["standard_error"][cells] == pytest.approx(np.full(40, apart.std()))
            assert found["estimate"][cells] - count[cells] == pytest.approx(np.full(40, apart.mean()))
    few = uncertainty.compute_intervals(np.array([500]), np.array([[503], [497]]))
    assert few["low"][0] < 497 < 503 < few["high"][0]  # two replicates: Student's t, and at least all of them


def test_numbers_published_as_small_are_covered():
    """Many zeros and rounded noise: a small published number is mostly a true zero. 95 % of the cells of every published
    size hold the truth in their interval; limits are six binomial standard errors of the smallest class (false alarm
    below 1e-6) below 0.945, because the release is not quite the census."""
    rng = np.random.default_rng(3)
    truth = np.where(rng.random(60_000) < 0.8, 0, rng.geometric(0.08, 60_000))

    def published(numbers):
        return np.maximum(np.rint(rng.normal(numbers, 2.0)), 0).astype(np.int64)

    release = published(truth)
    again = np.stack([published(release) for _ in range(8)])
    found = uncertainty.compute_intervals(release, again)
    inside = (found["low"] <= truth) & (truth <= found["high"])
    size = np.digitize(release, (1, 5, 20))
    for i in range(4):
        number = int((size == i).sum())
        assert inside[size == i].mean() > 0.945 - 6 * math.sqrt(0.05 * 0.95 / number)
    assert (found["low"] <= found["estimate"]).all()
    assert (found["estimate"] <= found["high"]).all()


def test_a_cell_that_never_moved_is_not_called_exact():
    count = np.array([0, 0, 0, 50])
    again = np.array([[0, 0, 3, 50], [0, 0, 0, 50], [0, 0, 0, 50]])
    found = uncertainty.compute_intervals(count, again)
    assert (found["standard_error"][:3] > 0).all()
    assert found["standard_error"][3] == 0  # a size class in which nothing ever moves
    assert (found["low"] >= 0).all()


def test_tabulated_has_cells_of_the_release_and_of_replicates():
    records = pl.LazyFrame({"area": ["a", "a", "b"]}, schema={"area": pl.Categorical})
    again = pl.LazyFrame(
        {"area": ["a", "b", "a", "c"], "replicate": [0, 0, 1, 1], "count": [3, 1, 1, 2]},
        schema={"area": pl.Categorical, "replicate": pl.Int16, "count": pl.Int32},
    )
    found, runs = uncertainty.tabulate_replicates(records, again, ["area"])
    assert found.rows() == [("a", 2), ("b", 1), ("c", 0)]
    assert runs.tolist() == [[3, 1, 0], [1, 0, 2]]
    whole, runs = uncertainty.tabulate_replicates(records, again, [])
    assert (whole.rows(), runs.tolist()) == ([(3,)], [[4], [3]])


def test_unbiased_marginals_have_the_variance_they_state(make_census):
    """z-scores of all cells of 30 draws: mean square 1. Cells of a draw are correlated, so the false-alarm probability
    is bounded through draws: the total of the root's children, one χ² each, two-sided 1e-6 in all."""
    census = make_census(4)
    query = SMALL.histogram.query("total", ())
    scores = []
    for draw in range(30):
        made = run(census, SMALL, Settings(), key=Key.for_tests(draw), engine=Local(workers=1))
        table = pl.DataFrame(pl.from_arrow(made.unbiased()))
        leaf = made.spine.levels[-1]
        totals = table.filter(
            pl.col("race").is_null(), pl.col("votingage").is_null(), pl.col("level") == leaf
        )
        truth = sum_answers(made.measurements.truth[-1], query).ravel()
        first = np.flatnonzero(totals["standard_deviation"].to_numpy() > 0)[0]
        row = totals.row(int(first), named=True)
        scores.append((row["estimate"] - truth[first]) / row["standard_deviation"])
        state = table.filter(
            pl.col("race").is_null(), pl.col("votingage").is_null(), pl.col("level") == "state"
        )
        assert state["standard_deviation"].to_list() == [0.0]  # the invariant
        assert state["estimate"].to_list() == [float(truth.sum())]
    square = float(np.sum(np.square(scores)))
    assert chi2.ppf(5e-7, 30) < square < chi2.isf(5e-7, 30)


def test_marginals_of_leaves_agree_with_the_general_formula(make_census):
    """An independent path: the full covariance of every leaf, and the estimates of its cells."""
    made = outcome(make_census(6))
    informed = made.informed
    algebra = informed.algebra
    everything = whole_tree.covariances(algebra, informed.levels, informed.leaves)
    cells = np.zeros((len(informed.leaves.parent), algebra.K, algebra.S))
    for pattern in informed.leaves.patterns:
        cells[np.ix_(pattern.members, pattern.act)] = pattern.e
    for query in whole_tree.list_marginals(SMALL):
        value, variance = whole_tree.estimate_leaves_answers(informed, everything[-2], query)
        want = whole_tree._estimate_answers(informed, cells, everything[-1], query)
        assert np.allclose(value, want[0], atol=1e-9)
        assert np.allclose(variance, want[1], atol=1e-9)


def test_tables_by_leaf_have_the_intervals_of_the_unbiased_estimate(make_census):
    """Low and high are those of the law of the noise, whoever lives there, for whole numbers and with the count inside; and
    what is published of leaves is what release and replicates list, which are public."""
    mechanism = TopDown(workload="small", replicates=4)
    release = mechanism.release(make_census(3), key=KEY)
    rows = pl.DataFrame(pl.from_arrow(release.tables["small-unbiased"])).filter(
        pl.col("level") == "block", pl.col("race").is_not_null(), pl.col("votingage").is_null()
    )
    again = pl.DataFrame(pl.from_arrow(release.tables["small-replicates"]))
    records = pl.DataFrame(pl.from_arrow(release.microdata["person"]))
    listed = {
        (str(block), race)
        for frame in (again, records)
        for block, race in frame.select("block", "race").rows()
    }
    assert set(rows.select("code", "race").rows()) == listed
    table = pl.DataFrame(pl.from_arrow(mechanism.table(release, ["block", "race"])))
    joined = table.with_columns(pl.col("block").cast(pl.String), pl.col("race").cast(pl.Int16)).join(
        rows.select(
            "race", "standard_deviation", block=pl.col("code"), unbiased=pl.col("estimate")
        ), on=["block", "race"],
    )  # fmt: skip
    assert joined.height == table.height
    for row in joined.iter_rows(named=True):
        margin = NormalDist().inv_cdf(0.975) * row["standard_deviation"]
        low = min(max(math.ceil(row["unbiased"] - margin), 0), row["count"])
        high = max(math.floor(row["unbiased"] + margin), 0, row["count"])
        if row["count"] < 5:  # what replicates say of small numbers is taken in
            assert (row["low"] <= low, high <= row["high"]) == (True, True)
        else:
            assert (row["low"], row["high"]) == (low, high)
        assert row["low"] <= row["estimate"] <= row["high"]


def test_intervals_of_normal_replicates_cover():
    """Truth known, release and replicates normal around it, no bias: 95 % of 4,000 independent cells; the binomial's
    two-sided false-alarm probability is below 1e-6 (limits at 1e-7 each side, ± 1 % for the pooling of variances)."""
    rng = np.random.default_rng(7)
    truth = rng.integers(200, 499, 4000)
    release = np.rint(rng.normal(truth, 6)).astype(np.int64)
    again = np.rint(rng.normal(release, 6, (20, 4000))).astype(np.int64)
    found = uncertainty.compute_intervals(release, again)
    hit = int(((found["low"] <= truth) & (truth <= found["high"])).sum())
    assert binom.ppf(1e-7, 4000, 0.94) <= hit <= binom.isf(1e-7, 4000, 0.96)


def test_totals_of_leaves_allow_for_a_smoother_release(make_census):
    """Totals of blocks are moved and made wider by their size, as far as is known without unbiased ones."""
    census = make_census(3)
    release = TopDown(workload="small", mode="classic", replicates=6).release(census, key=KEY)
    tables = {name: table for name, table in release.tables.items() if name != "small-unbiased"}
    release = replace(release, tables=tables)
    again = pl.DataFrame(pl.from_arrow(release.tables["small-replicates"])).lazy()
    frame = pl.DataFrame(pl.from_arrow(release.microdata["person"])).lazy()
    totals = None
    for by in (["tract"], ["block"], ["block", "race"]):
        found = uncertainty.tabulate_uncertainty(release, census.schema, by, frame, None)
        table, runs = uncertainty.tabulate_replicates(frame, again, by)
        count = table["count"].to_numpy()
        places = (
            np.digitize(runs, uncertainty.SIZE_CLASS_LIMITS),
            np.digitize(count, uncertainty.SIZE_CLASS_LIMITS),
        )
        if by == ["tract"]:
            unseen = estimate_drift(
                count, runs, uncertainty.SIZE_CLASS_LIMITS, least=uncertainty.MIN_DRIFT_NUMBERS
            )
        else:
            totals = unseen = estimate_bias(count, runs, *places, totals=totals)
        want = uncertainty.compute_intervals(count, runs, unseen=unseen)
        assert found["high"].to_list() == want["high"].tolist()
        assert found["low"].to_list() == want["low"].tolist()


def test_unbiased_totals_show_the_bias_that_replicates_do_not():
    """Areas that lose twice as much to their neighbours as the release does again, and a noise ten times larger."""
    rng = np.random.default_rng(5)
    true = np.rint(np.exp(rng.normal(4.0, 1.0, 20_000))).astype(np.int64)

    def published(numbers, lost):
        moved = lost * (np.sqrt(numbers) - np.sqrt(numbers).mean())
        noise = rng.normal(0.0, 3.0, len(numbers))
        return np.maximum(np.rint(numbers - moved + noise), 0).astype(np.int64), noise

    count, noise = published(true, 1.0)
    again = np.stack([published(count, 0.5)[0] for _ in range(6)])
    estimate = true + noise + rng.normal(0.0, 30.0, len(true))
    places = (
        np.digitize(again, uncertainty.SIZE_CLASS_LIMITS),
        np.digitize(count, uncertainty.SIZE_CLASS_LIMITS),
    )
    seen = estimate_bias(count, again, *places, estimate, np.full(len(true), 30.15))
    assert seen.slope == pytest.approx(0.5, abs=0.12)
    found = uncertainty.compute_intervals(count, again, unseen=seen)
    for size in (count >= 200, (count >= 50) & (count < 200)):
        plain = (true - uncertainty.compute_intervals(count, again)["estimate"])[size].mean()
        assert abs((true - found["estimate"])[size].mean()) < 0.35 * abs(plain)
        assert 0.94 < ((found["low"] <= true) & (true <= found["high"]))[size].mean() < 0.99
    unknown = estimate_bias(count, again, *places)
    assert unknown.ratio == 1.0
    assert (np.diff(unknown.factor(np.array([5, 50, 500, 5_000]))) > 0).all()


def test_mode_classic_knows_the_tree_estimate_of_its_measurements(make_census):
    """One key and one census have the same noise in both modes, so the estimate over the tree is the same number."""
    census = make_census(3)
    classic, tree = outcome(census, mode="classic"), outcome(census, mode="gls").informed
    found = estimate_release_tree(replace(classic.task, replicates=2), classic.estimation, None)
    assert found is not None
    informed, solve = found
    assert solve is None
    for own, want in zip(informed.levels, tree.levels, strict=True):
        assert np.array_equal(own.e, want.e)
    for one, other in zip(informed.leaves.patterns, tree.leaves.patterns, strict=True):
        assert np.array_equal(one.e, other.e)
    assert not can_estimate_tree(classic.task)  # without replicates nothing is published of it
    wide = replace(classic.task, workload=Workload.preset("dhc-persons"), replicates=2)
    assert not can_estimate_tree(wide)  # the closed form does not fit


def test_drawn_numbers_have_the_variance_of_their_closed_form():
    """Normal numbers that are drawn to their mean by the best part g: c - x has 1 / (1 - u²) times the variance of x - y.

    The oracle is the closed form: with the part g fixed, $A/B = 1 - g$, Var(x - y) = g²s²(2 - g) and Var(c - x) = g s².
    Standard errors of the ratio of variances are below 0.012 (20,000 numbers), and 0.08 is more than six of them.
    """
    rng = np.random.default_rng(8)
    noise, spread, size = 30.0, 60.0, 20_000
    g = spread**2 / (spread**2 + noise**2)
    census = rng.normal(10_000.0, spread, size)

    def published(numbers):
        return 10_000.0 + g * (numbers + rng.normal(0.0, noise, numbers.shape) - 10_000.0)

    count = published(census)
    again = np.stack([published(count) for _ in range(10)])
    found = estimate_drift(np.rint(count).astype(np.int64), np.rint(again).astype(np.int64), ())
    u = 1.0 - g
    ratio = (census - count).var() / (count - again).var()
    assert ratio == pytest.approx(1.0 / (1.0 - u**2), abs=0.08)
    assert found.factors[0] == pytest.approx(1.0 + u / 2.0, abs=0.02)  # the larger of the two below u = 0.65
    assert found.factors[0] ** 2 >= ratio - 0.08
    totals = estimate_drift(
        np.rint(count).astype(np.int64), np.rint(again).astype(np.int64), (), by_cells=True
    )
    assert totals.factors[0] == pytest.approx(math.sqrt((1 + 4 * u) / (1 + u)), abs=0.02)


def test_the_exact_interval_is_taken_where_it_is_not_longer(make_census):
    """Totals of tracts, mode classic: its replicates spread more than the tree estimate of the same measurements."""
    census = make_census(3)
    release = TopDown(workload="small", mode="classic", replicates=6).release(census, key=KEY)
    frame = pl.DataFrame(pl.from_arrow(release.microdata["person"])).lazy()
    known = pl.DataFrame(pl.from_arrow(release.tables["small-unbiased"]))
    known = known.filter(pl.col("level") == "tract", pl.col("race").is_null(), pl.col("votingage").is_null())
    found = uncertainty.tabulate_uncertainty(release, census.schema, ["tract"], frame, None).sort("tract")
    assert found["standard_error"].to_list() == known.sort("code")["standard_deviation"].to_list()
    margin = 1.959963984540054 * known.sort("code")["standard_deviation"]
    assert found["high"].to_numpy() == pytest.approx((known.sort("code")["estimate"] + margin).to_numpy())


def test_numbers_drawn_to_a_prior_have_wider_intervals():
    """Replicates that go half of the way to the prior mean again, beside a noise of the same size as that drift."""
    rng = np.random.default_rng(6)
    prior = np.full(4_000, 60.0)
    count = np.rint(prior + rng.normal(0.0, 8.0, len(prior))).astype(np.int64)

    def drawn(part):
        noise = rng.normal(0.0, 4.0, (8, len(prior)))
        return np.rint(prior + part * (count - prior) + noise).astype(np.int64)

    assert estimate_drift(count, drawn(1.0), (50,)).factors == pytest.approx(1.0, abs=0.02)
    assert estimate_drift(count, drawn(0.5), ()).factors == pytest.approx(
        5 / 3, abs=0.01
    )  # u = 1 is taken for 0.8
    few = estimate_drift(count[:20], drawn(0.5)[:, :20], (50,))
    assert few.factors[0] == few.factors[1]
    assert (few.shift(count) == 0).all()


def test_a_classic_workload_without_a_closed_form_has_replicates_alone(make_census):
    """The lowest level measures ages in two groups, so that no leaf has an unbiased estimate of its cells."""
    workload = Workload.parse(
        """
name = "ages"
rho_squared = "2"
mode = "classic"
levels = ["state", "block"]
[[axis]]
name = "age"
size = 4
source = { column = "age", cuts = [18, 40, 65] }
recodes.grown = [0, 1, 1, 1]
[[query]]
name = "grown"
of = ["grown"]
[[query]]
name = "total"
[level_shares]
state = "1/2"
block = "1/2"
[query_shares]
state = { total = 1 }
block = { grown = 1 }
"""
    )
    release = TopDown(workload=workload, mode="classic", replicates=2).release(make_census(5), key=KEY)
    assert "ages-replicates" in release.tables
    assert "ages-unbiased" not in release.tables
