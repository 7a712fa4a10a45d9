"""The compiled batches against the general path, which is the oracle: the same bits, whatever is solved together."""

import numpy as np
import pytest

from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.run.task import Settings
from stirred.mechanisms.topdown.solve import batch
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.networks import pairwise_sum, sort_part
from unit.topdown.runs import run

KEY = Key.for_tests(19)


@pytest.fixture(autouse=True)
def _small_trees_too(monkeypatch):
    monkeypatch.setattr(batch, "MIN_COMPILED_GEOUNITS", 0)


def test_small_trees_compile_nothing(make_census, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(batch, "solve_batch", None)  # calling it would fail
    solved(make_census(5, width=3), "pl94-persons", "gls")


def test_a_part_of_a_large_tree_is_solved_in_batches(make_census, monkeypatch):
    monkeypatch.undo()
    census, units = make_census(5, width=3), Workload.preset("pl94-units")
    made = run(census, units, Settings(), key=KEY, engine=Local(workers=1)).estimation
    small = Estimator.of(made.targets, made.above.constraints)
    part = Estimator.of(made.targets, made.above.constraints, geounits=batch.MIN_COMPILED_GEOUNITS)
    assert batch.LevelSolver(small, 1).shared is None
    assert batch.LevelSolver(part, 1).shared is not None


def solved(census, workload, mode, workers=1):
    made = run(
        census, Workload.preset(workload), Settings(mode=mode), key=KEY, engine=Local(workers=workers)
    ).estimation
    return [
        array for level in made.levels for array in (level.first, level.cells, level.counts)
    ], made.certificates


@pytest.mark.parametrize(
    ("workload", "mode"),
    [
        ("pl94-persons", "gls"),
        ("pl94-units", "gls"),
        ("pl94-units", "classic"),
        ("pl94-persons", "classic"),
        ("pl94-persons", "guided"),
    ],
)
def test_batches_and_the_general_path_give_the_same_integers(make_census, monkeypatch, workload, mode):
    census = make_census(5, width=4)
    ours, certificates = solved(census, workload, mode)
    monkeypatch.setattr(batch, "MAX_BATCH_CELLS", 40)  # one parent in a batch, several threads
    monkeypatch.setattr(batch, "MAX_TABLED_CELLS", 0)  # as of a large histogram: only cells that occur
    threads, same = solved(census, workload, mode, 3)
    monkeypatch.setattr(Estimator, "batchable", lambda *_: False)
    theirs, expected = solved(census, workload, mode)
    assert certificates == expected == same
    for a, b, c in zip(ours, theirs, threads, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)


def test_a_parent_that_is_refused_goes_the_general_way(make_census, monkeypatch):
    census = make_census(5, width=3)
    whole, certificates = solved(census, "pl94-persons", "gls")
    found = batch.solve_batch

    def refuses(level, terms, parents, *rest):
        x, begin, status, numbers = found(level, terms, parents, *rest)
        status[::2] = batch.TRY_AGAIN
        return x, begin, status, numbers

    monkeypatch.setattr(batch, "solve_batch", refuses)
    again, same = solved(census, "pl94-persons", "gls")
    assert certificates == same
    assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 128, 129, 300, 1000])
def test_sums_run_as_numpy_adds(n):
    x = np.random.default_rng(n).normal(size=(n, 2)) * 1e3
    for column in x.T:
        assert pairwise_sum(np.ascontiguousarray(column), n) == np.ascontiguousarray(column).sum()
    assert [pairwise_sum(np.ascontiguousarray(c), n) for c in x.T] == np.asfortranarray(x).sum(
        axis=0
    ).tolist()
    a = x[:, 0].copy()
    sort_part(a, 0, n)
    assert a.tolist() == sorted(x[:, 0])
