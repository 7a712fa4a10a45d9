"""The compiled batches against parents that are solved one by one with NumPy: the same bits, whatever is solved together."""

import numpy as np
import pytest

from oracles.topdown_numpy import round_plainly, solve_plainly
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.run.task import Settings
from stirred.mechanisms.topdown.solve import batch, levels
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.rounding import pairwise_sum, sort_part
from unit.topdown.runs import run

KEY = Key.for_tests(19)


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
def test_batches_have_the_integers_of_the_oracle(make_census, monkeypatch, workload, mode):
    census = make_census(5, width=4)
    ours, certificates = solved(census, workload, mode)
    monkeypatch.setattr(batch, "MAX_BATCH_CELLS", 40)  # one parent in a batch, several threads
    monkeypatch.setattr(batch, "MAX_TABLED_CELLS", 0)  # as of a large histogram: only cells that occur
    threads, same = solved(census, workload, mode, 3)
    monkeypatch.setattr(Estimator, "batchable", lambda *_: False)
    monkeypatch.setattr(levels, "solve", solve_plainly)
    monkeypatch.setattr(levels, "round_children", round_plainly)
    theirs, expected = solved(census, workload, mode)
    assert certificates == expected == same
    for a, b, c in zip(ours, theirs, threads, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)


def test_a_parent_that_is_refused_is_solved_by_itself(make_census, monkeypatch):
    census = make_census(5, width=3)
    whole, certificates = solved(census, "pl94-persons", "gls")
    found, alone = batch.solve_batch, []
    parent = Estimator.parent

    def refuses(level, terms, parents, *rest):
        """The batch without every second of its parents."""
        node, cell, count, ends, status, numbers = found(level, terms, parents, *rest)
        begins = np.r_[0, ends[:-1]]
        stay = np.concatenate(
            [np.full(e - b, i % 2 == 1) for i, (b, e) in enumerate(zip(begins, ends, strict=True))]
        )
        status[::2] = batch.TRY_AGAIN
        left = np.r_[0, np.cumsum(stay)]
        return node[stay], cell[stay], count[stay], left[ends], status, numbers

    monkeypatch.setattr(batch, "solve_batch", refuses)
    monkeypatch.setattr(Estimator, "parent", lambda *call: alone.append(call[1]) or parent(*call))
    again, same = solved(census, "pl94-persons", "gls")
    assert alone
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
