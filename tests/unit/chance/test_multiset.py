"""The digest of a census sees every value and no order."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.chance import Key
from stirred.errors import InputError

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3)), max_size=12)


def digest(rows: list[tuple[int, int, int]], width: int = 3) -> bytes:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)[:, :width]
    return Key.for_tests(1).multiset_digest([table[:, i] for i in range(width)])


@settings(deadline=None)
@given(ROWS, ROWS, st.integers(1, 3))
def test_equal_exactly_when_the_rows_are(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]], width: int
) -> None:
    same = Counter(row[:width] for row in one) == Counter(row[:width] for row in other)
    assert (digest(one, width) == digest(other, width)) == same


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_does_not_matter(rows: list[tuple[int, int, int]], random: object) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest(rows) == digest(shuffled)


def test_batches_and_workers_add_up() -> None:
    key, n = Key.for_tests(1), 20_000
    columns = [np.arange(n), np.arange(n) % 7, np.arange(n)[::-1].copy()]
    whole = key.multiset_digest(columns)
    parts = [key.multiset() for _ in range(3)]
    for start in range(0, n, 1234):
        parts[start % 3].update([column[start : start + 1234] for column in columns])
    parts[0].merge(parts[1])
    parts[0].merge(parts[2])
    assert parts[0].value() == whole
    assert parts[0].rows == n
    assert Key.for_tests(2).multiset_digest(columns) != whole


def test_columns_do_not_change_places() -> None:
    a, b = np.arange(5), np.arange(5) + 100
    key = Key.for_tests(1)
    assert key.multiset_digest([a, b]) != key.multiset_digest([b, a])
    assert key.multiset_digest([a]) != key.multiset_digest([a, np.zeros(5, dtype=np.int64)])


def test_integer_width_does_not_matter_but_sign_does() -> None:
    key = Key.for_tests(1)
    assert key.multiset_digest([np.array([1, -2], dtype=np.int8)]) == key.multiset_digest([np.array([1, -2])])
    assert key.multiset_digest([np.array([1, 2])]) != key.multiset_digest([np.array([1, -2])])


@pytest.mark.parametrize(
    "columns", [[], [np.arange(2), np.arange(3)], [np.array([0.5])], [np.zeros((2, 2), dtype=np.int64)]]
)
def test_wrong_columns_are_refused(columns: list[np.ndarray]) -> None:
    with pytest.raises(InputError):
        Key.for_tests(1).multiset_digest(columns)


def test_a_mutant_that_forgets_the_counts_would_be_seen() -> None:
    # XOR in place of addition loses pairs of equal rows; the digest must not
    twice, none = np.array([5, 5]), np.array([], dtype=np.int64)
    key = Key.for_tests(1)
    assert key.multiset_digest([np.concatenate([twice, [1]])]) != key.multiset_digest(
        [np.concatenate([none, [1]])]
    )
