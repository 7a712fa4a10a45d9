"""The mode guided: units as prior knowledge, sums held first; the same bits wherever the tree is cut."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import TopDown, Workload, prior
from stirred.mechanisms.topdown.counts import sum_answers
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.prior import (
    MOMENTS_PER_UNIT,
    Guidance,
    LeafUnits,
    UnitSpread,
    cross_sums,
    round_sums,
    sum_leaf_moments,
    sum_moments,
)
from stirred.mechanisms.topdown.rules import Constraints, tighten_bounds
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


def move_persons(census: Census) -> Census:
    """The census whose persons of households live in other occupied homes: units and facilities stay where they are."""
    homes, persons = (pl.DataFrame(census.table(name)) for name in ("household", "person"))
    occupied = homes.filter(pl.col("kind") == 1)["household_id"].to_numpy()
    inside = np.isin(persons["household_id"].to_numpy(), occupied)
    rng, owner = np.random.default_rng(5), persons["household_id"].to_numpy().copy()
    owner[inside] = rng.choice(occupied, int(inside.sum()))
    return Census.of(census.schema, {"household": homes, "person": persons.with_columns(household_id=owner)})


def task_of(census: Census, engine: Local) -> Task:
    return Task(census=census, workload=PL94, settings=Settings(mode="guided"), key=KEY, engine=engine)


def assert_bounds_are_those_of(one: Constraints, other: Constraints) -> None:
    assert [held.name for held in one.held] == [held.name for held in other.held]
    for first, second in zip(one.held, other.held, strict=True):
        for name in ("low", "high"):
            for x, y in zip(getattr(first, name), getattr(second, name), strict=True):
                assert np.array_equal(x, y)


@dataclass
class Guided:
    """Everything that guided a release, and the release."""

    guides: list[list[np.ndarray]]
    release: list[tuple[object, ...]]

    @staticmethod
    def of(census: Census, answers: Measurements, engine: Local, monkeypatch: pytest.MonkeyPatch) -> "Guided":
        """Release a census with the noisy ``answers`` of another, whatever its own are."""
        guides: list[list[np.ndarray]] = []
        build = Guidance.of

        def build_and_note(informed: TreeEstimate, *more: Any) -> Guidance:
            made = build(informed, *more)
            noted = [x for sums in made.sums.values() for one in sums for x in (one.value, one.variance)]
            if made.prior is not None:
                known = made.prior
                noted += [
                    known.persons,
                    known.variance,
                    known.scatter.totals,
                    known.units.leaf,
                    known.units.kind,
                ]
            guides.append(noted)
            return made

        def repeat(self: Measurements, depth: int, start: int, query: Query, nodes: Any, numbers: Any) -> Any:
            return READ_ANSWERS(answers, depth, start, query, self.numbers(depth, nodes), numbers)

        with monkeypatch.context() as patch:
            patch.setattr(Guidance, "of", staticmethod(build_and_note))
            patch.setattr(Measurements, "answers", repeat)
            mechanism = TopDown(workload=PL94, mode="guided", replicates=0)
            made = pl.DataFrame(mechanism.release(census, key=KEY, engine=engine).microdata["person"])
        columns = sorted(set(made.columns) - {"person_id"})
        rows = made.select(pl.col(columns).cast(pl.String)).group_by(columns).len().sort(columns).rows()
        return Guided(guides, rows)

    def guides_as(self, other: "Guided") -> bool:
        return len(self.guides) == len(other.guides) and all(
            len(one) == len(two) and all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))
            for one, two in zip(self.guides, other.guides, strict=True)
        )


READ_ANSWERS = Measurements.answers


def read_true_persons(patch: pytest.MonkeyPatch) -> None:
    build = prior.UnitPrior.of

    def of(informed: TreeEstimate, units: LeafUnits, scatter: UnitSpread) -> prior.UnitPrior:
        true = sum_answers(informed.measurements.truth[-1], units.query).astype(float)
        return replace(build(informed, units, scatter), persons=true)

    patch.setattr(prior.UnitPrior, "of", staticmethod(of))


def read_true_moments(patch: pytest.MonkeyPatch) -> None:
    build = prior.sum_moments

    def moments(informed: TreeEstimate, units: LeafUnits) -> np.ndarray:
        true = int((informed.measurements.truth[-1].totals ** 2).sum())
        return build(informed, units) + true * MOMENTS_PER_UNIT

    patch.setattr(prior, "sum_moments", moments)


def read_true_sums(patch: pytest.MonkeyPatch) -> None:
    build = prior.QuerySums.of

    def of(informed: TreeEstimate, depth: int, query: Query, *, alone: bool = False) -> prior.QuerySums:
        true = sum_answers(informed.measurements.truth[depth], query).astype(float)
        return replace(build(informed, depth, query, alone=alone), value=true)

    patch.setattr(prior.QuerySums, "of", staticmethod(of))


@pytest.mark.parametrize("mutant", [None, read_true_persons, read_true_moments, read_true_sums])
@pytest.mark.parametrize("shards", [False, True])
def test_the_guide_reads_noisy_answers_and_invariants_alone(make_census, monkeypatch, cut_at, shards, mutant):
    """Two censuses of one universe with equal noisy answers have one guide and one release, wherever the tree is cut."""
    first = make_census(3)
    second = move_persons(first)
    trees = [build_whole_tree(task_of(census, Local(workers=1))) for census in (first, second)]
    assert_bounds_are_those_of(*(above.constraints for above in trees))
    assert not np.array_equal(*(above.truth[-1].totals for above in trees))
    answers = Measurements(trees[0].allotment, trees[0].truth, KEY)
    if shards:
        cut_at(2)
    if mutant is not None:
        mutant(monkeypatch)
    engine = Narrow(workers=1) if shards else Local(workers=1)
    one, other = (Guided.of(census, answers, engine, monkeypatch) for census in (first, second))
    assert len(one.guides) > 1 if shards else len(one.guides) == 1
    assert one.guides_as(other) == (mutant is None)
    if mutant is None:
        assert one.release == other.release


def test_bounds_of_parts_change_no_units(make_census):
    """Where parts bound the level above the leaves, its bounds no longer say how many units it has."""
    task = task_of(make_census(3), Local(workers=1))
    above = build_whole_tree(task)
    last = len(above.spine.levels) - 1
    totals = above.truth[last - 1].totals
    tight = replace(
        above.constraints,
        held=tuple(tighten_bounds(held, totals, last - 1) for held in above.constraints.held),
    )
    units, same = (LeafUnits.of(PL94, bounds, last) for bounds in (above.constraints, tight))
    facilities = next(one for one in PL94.rules if one.kind == "facilities")
    high = next(held for held in tight.held if held.name == facilities.name).high[last - 1]
    parent, parents = above.spine.parent[last], above.spine.size(last - 1)
    true = np.zeros((parents, high.shape[1]), np.int64)
    np.add.at(true, parent, units.leaf)
    assert (high // facilities.largest != true).any()  # what the bounds would have said
    assert np.array_equal(same.leaf, units.leaf)
    assert np.array_equal(same.sum_above(parent, parents), true)
    informed = TreeEstimate.of(Measurements(above.allotment, above.truth, KEY), above.constraints)
    assert np.array_equal(sum_leaf_moments(informed, tight), sum_leaf_moments(informed, above.constraints))


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
    known = Guidance.of(made.informed, made.constraints).leaves(cells)
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.choice(cells, 40, replace=False))
    children, parent = np.arange(6), rng.integers(1, 30, 40).astype(float)
    linear, allowed = rng.normal(size=(6, 40)), np.ones((6, 40), bool)
    groups, weights = np.zeros((1, 40), np.int32), np.ones((1, 1))
    terms, queries, own = add_prior(
        known, children, chosen, parent, allowed, linear, groups, weights, np.zeros(6, np.int64)
    )
    kind = known.kind[chosen]
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
        np.ones((made.spine.size(-1), 1), np.int64), np.zeros(1, np.int64),
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
