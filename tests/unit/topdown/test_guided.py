"""The mode guided: units as prior knowledge, sums held first; the same bits wherever the tree is cut."""

from dataclasses import replace

import pytest

from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.run.subtrees import cut as shard_geography
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
    monkeypatch.setattr(shard_geography, "chosen", lambda sizes: min(depth, len(sizes) - 1))
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)
