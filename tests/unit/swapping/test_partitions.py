"""Margins of small strata as numbers: every partition has one, and shapes read them back."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from oracles.strata import partitions
from stirred.mechanisms.swap.records import Column
from stirred.mechanisms.swap.strata import (
    MAX_RECORDS_RANKED,
    MAX_RECORDS_WITH_MARGINS,
    PARTITION_COUNTS,
    ROWS_PER_CALL,
    count_shapes,
    form_strata,
    rank_margins,
    unrank_margins,
    write_margins,
)


def column(name: str, codes: np.ndarray) -> Column:
    return Column(name=name, codes=codes, type=pa.int64())


def test_every_partition_has_one_rank() -> None:
    assert MAX_RECORDS_RANKED >= MAX_RECORDS_WITH_MARGINS
    assert PARTITION_COUNTS[40, 40] == 37338 < 2**16  # OEIS A000041
    for n in range(1, 13):
        every = [unrank_margins(n, rank) for rank in range(PARTITION_COUNTS[n, n])]
        assert every == sorted(tuple(sorted(p, reverse=True)) for p in partitions(n))
    for n in (MAX_RECORDS_RANKED - 1, MAX_RECORDS_RANKED):
        every = [unrank_margins(n, rank) for rank in range(0, PARTITION_COUNTS[n, n], 997)]
        assert every == sorted(set(every))
        assert {sum(parts) for parts in every} == {n}


@pytest.mark.parametrize("kinds", [2, 5, 60])
def test_ranks_say_the_margins_of_records(kinds: int) -> None:
    """Also of strata with records that take no part, and of the largest stratum that is counted."""
    rng = np.random.default_rng(kinds)
    n = 3 * ROWS_PER_CALL // 2
    codes = rng.permutation(
        np.concatenate([np.full(MAX_RECORDS_RANKED, 7), np.arange(n - MAX_RECORDS_RANKED) % (n // 11) + 8])
    )
    taking = rng.random(n) < 0.9
    taking[codes == 7] = True
    place = column("place", rng.integers(-3, kinds, n))
    found = form_strata([column("match", codes)], rows=n, taking_part=taking)
    chosen = found.sizes >= 3
    ranks = rank_margins(found, [place], chosen)
    counted: dict[int, Counter[int]] = {}
    for stratum, value in zip(found.codes[taking].tolist(), place.codes[taking].tolist(), strict=True):
        counted.setdefault(stratum, Counter())[value] += 1
    for stratum, rank in zip(np.flatnonzero(chosen).tolist(), ranks.tolist(), strict=True):
        expected = tuple(sorted(counted[stratum].values(), reverse=True))
        assert unrank_margins(int(found.sizes[stratum]), rank) == expected


@pytest.mark.parametrize("known", [True, False])
def test_shapes_list_the_margins_of_all_strata(known: bool) -> None:
    rng = np.random.default_rng(1)
    n = 4000
    match, held, moved = rng.integers(0, 500, n), rng.integers(0, 4, n), rng.integers(0, 6, n)
    found = count_shapes(
        form_strata([column("match", match)], rows=n),
        [column("held", held)] if known else None,
        [column("moved", moved)],
    )
    expected: Counter[tuple[int, str]] = Counter()
    for stratum in np.unique(match):
        sides = [Counter(side[match == stratum].tolist()) for side in (held, moved)]
        size = sides[0].total()
        many = len(sides[1]) > 2 and (len(sides[0]) > 2 if known else size > 1)
        text = write_margins(sides[0].values() if known else None, sides[1].values()) if many else ""
        expected[size, text] += 1
    got: Counter[tuple[int, str]] = Counter()
    for size, text, times in zip(found.n.tolist(), found.margins, found.strata.tolist(), strict=True):
        got[size, text] += times
    assert got == expected
