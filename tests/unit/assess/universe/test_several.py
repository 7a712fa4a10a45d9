"""Three and more exact tables: counted by listing all tables, exactly, and by sampling."""

from itertools import combinations_with_replacement
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.assess.universe import measure_universe
from stirred.assess.universe import sizes as sizes_module
from stirred.assess.universe.sizes import count_several, sample_several
from stirred.census import Census
from stirred.spec import Margin, Multiverse

PAIRS = [(0, 1), (1, 2), (0, 2)]  # not decomposable
CHAIN = [(0, 1), (1, 2), (2, 3)]


def problem(
    sizes: tuple[int, ...], tables: list[tuple[int, ...]], records: int, seed: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The margins of a random table."""
    index = np.indices(sizes).reshape(len(sizes), -1)
    truth = np.bincount(
        np.random.default_rng(seed).integers(0, index.shape[1], records), minlength=index.shape[1]
    )
    members, margins, start = [], [], 0
    for axes in tables:
        code = np.ravel_multi_index([index[axis] for axis in axes], [sizes[axis] for axis in axes])
        members.append(code + start)
        margins.append(np.bincount(code, truth).astype(np.int64))
        start += int(code.max()) + 1
    return np.array(members, dtype=np.int32), np.concatenate(margins)


def listed(members: NDArray[np.int32], margins: NDArray[np.int64], records: int) -> int:
    """All tables with so many records, by listing them."""
    found = 0
    for way in combinations_with_replacement(range(members.shape[1]), records):
        sums = np.bincount(members[:, list(way)].ravel(), minlength=margins.size)
        found += bool((sums == margins).all())
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sizes", "tables"), [((2, 2, 3), PAIRS), ((2, 2, 2, 2), CHAIN)], ids=["pairs", "chain"]
)
def test_exact_counting_and_sampling_agree_with_a_list(
    sizes: tuple[int, ...], tables: list[tuple[int, ...]], seed: int
) -> None:
    members, margins = problem(sizes, tables, 4, seed)
    every = listed(members, margins, 4)
    assert count_several(members, margins) == every
    found = sample_several(members, margins, samples=2_000, seed=seed)
    assert found is not None
    assert found.log_count == pytest.approx(log(every), abs=max(4 * found.error, 1e-9))


def test_the_interval_of_sampling_covers_the_exact_number_of_larger_tables() -> None:
    """Of sixteen tables of 27 cells, at least fourteen 95 % intervals cover it."""
    held = 0
    for seed in range(16):
        members, margins = problem((3, 3, 3), PAIRS, 40, seed)
        exact = count_several(members, margins, states=10**6)
        found = sample_several(members, margins, samples=600, seed=seed)
        assert exact is not None
        assert found is not None
        low, high = found.interval()
        held += low - 1e-9 <= log(exact) <= high + 1e-9
    assert held >= 14


def test_a_universe_of_three_tables_is_sampled_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    rows = {
        name: rng.integers(0, many, 60).astype(str).tolist() for name, many in (("a", 3), ("b", 2), ("c", 2))
    }
    census = Census.of({}, {"household": rows})
    pairs = Multiverse.of(*(Margin("household", by) for by in (("a", "b"), ("b", "c"), ("a", "c"))))
    name = "tables that agree with the invariants (unlabelled)"
    exact = measure_universe(pairs, census).measure(name)
    assert exact.reason == "counted by: exact"
    monkeypatch.setattr(sizes_module, "count_several", lambda *_: None)
    sampled = measure_universe(pairs, census).measure(name)
    assert "sampled" in sampled.reason
    assert sampled.low is not None
    assert sampled.high is not None
    assert sampled.low <= (exact.value or 0.0) <= sampled.high
