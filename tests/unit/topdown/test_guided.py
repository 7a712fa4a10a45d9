"""The mode guided: units as prior knowledge, sums held first; the same bits wherever the tree is cut."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.counts import sum_answers
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.prior import (
    MOMENTS_PER_UNIT,
    Guidance,
    LeafUnits,
    UnitSpread,
    cross_sums,
    round_sums,
    sum_moments,
)
from stirred.mechanisms.topdown.run.subtrees import gather as shard_geography
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import build_whole_tree
from stirred.mechanisms.topdown.solve.parent import add_prior
from stirred.mechanisms.topdown.solve.rounding import aim_at, keep_sums, round_children
from unit.topdown.runs import run
from unit.topdown.shard_engines import Narrow, assert_same

KEY = Key.for_tests(1)


def holding(workload: Workload, *parts: str) -> Workload:
    """The workload with the sums of these axes listed as the first pass of every level above the leaves."""
    query = workload.histogram.query("held", parts)
    first = dict.fromkeys(workload.levels[:-1], (("held",), ("*",)))
    return replace(
        workload, queries=(*workload.queries, query), passes=first | {workload.levels[-1]: (("*",),)}
    )


PL94 = holding(Workload.preset("pl94-persons"), "hhinstlevels", "hispanic")


@pytest.mark.parametrize(
    ("depth", "states", "replicates"),
    [(2, 1, 0), *(pytest.param(d, s, 2, marks=pytest.mark.slow) for d in range(5) for s in (1, 3))],
)
def test_the_same_release_wherever_it_is_cut(make_census, monkeypatch, depth, states, replicates):
    census = make_census(3, states=states)
    mechanism = TopDown(workload=PL94, mode="guided", rho_squared=20, replicates=replicates)
    whole = mechanism.release(census, key=KEY)
    assert all(check.kept for check in whole.checks)
    monkeypatch.setattr(shard_geography, "choose_cut_level", lambda sizes: min(depth, len(sizes) - 1))
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


def test_the_guide_reads_noisy_answers_and_invariants_alone(make_census):
    """Without the census, after it was measured, everything that guides the solve is the same."""
    task = Task(
        census=make_census(3),
        workload=PL94,
        settings=Settings(mode="guided"),
        key=KEY,
        engine=Local(workers=1),
    )
    above = build_whole_tree(task)
    informed = TreeEstimate.of(Measurements(above.allotment, above.truth, KEY), above.constraints)
    before = Guidance.of(informed, above.constraints)
    informed.measurements.truth.clear()
    after = Guidance.of(informed, above.constraints)
    assert before.prior is not None
    assert after.prior is not None
    for name in ("persons", "variance"):
        assert np.array_equal(getattr(before.prior, name), getattr(after.prior, name))
    assert np.array_equal(before.prior.scatter.totals, after.prior.scatter.totals)
    assert np.array_equal(before.sums[0][0].value, after.sums[0][0].value)


def test_sums_of_two_crossed_queries_are_both_kept_at_the_root(make_census):
    workload = replace(Workload.preset("pl94-stirred-persons"), rho_squared=Fraction(400))
    made = run(make_census(3), workload, Settings(mode="guided"), key=KEY, engine=Local(workers=1))
    total = float(made.levels[0].totals[0])
    first, second = Guidance.of(made.informed, made.constraints).sums[0]
    for one in (first, second):
        wanted = round_sums(one.value[0], total, np.ones(one.query.size, bool))
        assert (sum_answers(made.levels[0], one.query)[0] == wanted).all(), one.query.name
    assert cross_sums(made.informed, (first, first), np.arange(2016), total) is None


def test_spreads_follow_the_moments_and_public_constants_where_there_are_none():
    seen = np.array([[0.05 * 1e6, 1e6], [0.0, 0.0]]) * MOMENTS_PER_UNIT
    spread = UnitSpread.of(seen.astype(np.int64))
    assert np.isclose(spread.totals[0], 0.05, rtol=0.01)
    assert spread.totals[1] == 1.0


def test_the_prior_says_how_many_persons_live_in_a_leaf_and_not_who(make_census):
    """All cells of one kind get the same term, and one query: no leaf is drawn to the mix of its parent."""
    made = run(make_census(3), PL94, Settings(mode="guided"), key=KEY, engine=Local(workers=1))
    cells = np.arange(PL94.histogram.cells)
    prior = Guidance.of(made.informed, made.constraints).leaves(cells)
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.choice(cells, 40, replace=False))
    children, parent = np.arange(6), rng.integers(1, 30, 40).astype(float)
    linear, allowed = rng.normal(size=(6, 40)), np.ones((6, 40), bool)
    groups, weights = np.zeros((1, 40), np.int32), np.ones((1, 1))
    terms, queries, own = add_prior(
        prior, children, chosen, parent, allowed, linear, groups, weights, np.zeros(6, np.int64)
    )
    kind = prior.kind[chosen]
    added = terms - linear
    assert (added > 0).any()
    for a in np.unique(kind):
        assert np.ptp(added[:, kind == a], axis=1).max() < 1e-12
    assert len(queries) == 1 + len(np.unique(kind))
    assert all(len(np.unique(query[query >= 0])) == 1 for query in queries)
    assert (own >= 0).all()


def test_a_workload_without_facilities_has_no_prior(make_census):
    made = run(
        make_census(3), Workload.preset("small"), Settings(mode="gls"), key=KEY, engine=Local(workers=1)
    )
    assert LeafUnits.of(Workload.preset("small"), made.constraints, len(made.spine.levels) - 1) is None
    assert Guidance.of(made.informed, made.constraints).prior is None
    units = LeafUnits(
        Workload.preset("small").histogram.query("total", ()),
        np.ones((made.spine.size(-1), 1), np.int64), np.ones((made.spine.size(-2), 1), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
    assert (sum_moments(made.informed, units)[1] == 0).all()


def test_aimed_sums_are_rounded_to_a_neighbour_and_everything_else_is_kept():
    rng = np.random.default_rng(1)
    for _ in range(20):
        C, n = int(rng.integers(2, 6)), int(rng.integers(4, 12))
        x = rng.gamma(0.5, 2.0, (C, n))
        parent = np.ceil(x.sum(axis=0))
        x *= parent / x.sum(axis=0)
        aims, groups = rng.integers(0, 3, n).astype(np.int32), np.zeros(n, np.int32)
        whole = np.full((C, 1), 1e300)
        kept = aim_at(keep_sums(parent.astype(np.int64), groups, -whole, whole), aims)
        made = np.empty((C, n), np.int64)
        assert round_children(x, np.ones((C, n), bool), kept, True, made)
        assert (made >= 0).all()
        assert (made.sum(axis=0) == parent).all()
        assert (np.abs(made - x) < 1 + 1e-6).all()
        for aim in range(3):
            assert (np.abs((made - x)[:, aims == aim].sum(axis=1)) < 1 + 1e-3).all()
        assert (np.abs((made - x).sum(axis=1)) < 1 + 1e-3).all()
