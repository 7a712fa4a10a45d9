"""Numbers of data sets: closed forms, exact counting and sampling against enumeration and published counts."""

from itertools import permutations, product
from math import comb, factorial, log, prod

import numpy as np
import pytest

from stirred.assess.universe import count_tables, log_placements, log_range, sample_tables
from stirred.assess.universe.counting import log_choices, log_estimate

SMALL = [
    ([3, 2], [2, 2, 1]),
    ([2, 2, 2], [3, 2, 1]),
    ([4, 1, 1], [2, 2, 2]),
    ([1, 1, 1, 2], [3, 2]),
    ([5, 3], [4, 4]),
]


def compositions(total: int, limits: list[int]) -> list[tuple[int, ...]]:
    return [x for x in product(*(range(limit + 1) for limit in limits)) if sum(x) == total]


def enumerated(rows: list[int], columns: list[int]) -> int:
    """Tables with these margins, one row after another."""
    if len(rows) == 1:
        return 1
    return sum(
        enumerated(rows[1:], [c - x for c, x in zip(columns, row, strict=True)])
        for row in compositions(rows[0], columns)
    )


@pytest.mark.parametrize(("rows", "columns"), SMALL)
def test_exact_counting_is_enumeration(rows: list[int], columns: list[int]) -> None:
    exact = count_tables(rows, columns)
    assert exact == enumerated(rows, columns) == count_tables(columns, rows)
    low, high = log_range(rows, columns)
    assert low - 1e-9 <= log(exact) <= high + 1e-9
    assert low - 1e-9 <= log_estimate(rows, columns) <= high + 1e-9


def test_placements_are_distinct_orders() -> None:
    values = [s for s, many in enumerate([3, 2, 1]) for _ in range(many)]
    assert round(np.exp(log_placements([3, 2, 1]))) == len({*permutations(values)})


@pytest.mark.parametrize("kinds", [1, 2, 999_999, 1_000_001, 10**9, 10**22])
def test_choices_of_any_number_of_kinds(kinds: int) -> None:
    for n in (0, 1, 2, 700):
        assert float(log_choices(n, kinds)) == pytest.approx(log(comb(n + kinds - 1, n)), rel=1e-9, abs=1e-9)


def test_rows_of_one_record_have_a_closed_form() -> None:
    columns = [7, 5, 3]
    exact = factorial(15) // prod(map(factorial, columns))
    assert count_tables([1] * 15, columns) == exact
    low, high = log_range([1] * 15, columns)
    assert low == pytest.approx(log(exact)) == pytest.approx(high)


def test_counting_gives_up_rather_than_to_run_for_ever() -> None:
    assert count_tables([40] * 12, [40] * 12) is None


@pytest.mark.parametrize(("rows", "columns"), [*SMALL, ([10, 62, 13, 11], [65, 25, 6]), ([4] * 4, [4] * 4)])
def test_sampling_agrees_with_exact_counting(rows: list[int], columns: list[int]) -> None:
    """Six standard errors: a false alarm below 1e-8 each; where rows are drawn exactly the error is 0."""
    exact = count_tables(rows, columns, states=10**6)
    found = sample_tables(rows, columns, samples=400)
    assert exact is not None
    assert found is not None
    assert abs(found.log_count - log(exact)) <= 6 * found.error + 1e-9


# tables that others counted: hair and eye colour of 592 students (Diaconis and Efron 1985; Diaconis and Gangolli 1995)
HAIR_AND_EYES = ([220, 215, 93, 64], [108, 286, 71, 127], 1_225_914_276_768_514)


def test_the_interval_covers_a_published_count() -> None:
    rows, columns, exact = HAIR_AND_EYES
    found = sample_tables(rows, columns, samples=400)
    assert found is not None
    low, high = found.interval(1 - 1e-6)
    assert low <= log(exact) <= high
    assert found.error < 0.02


def test_the_interval_covers_large_tables_of_known_size() -> None:
    """Two rows, and many rows of one record beside two large ones: both have exact numbers by convolution."""
    columns = [int(c) for c in np.random.default_rng(5).multinomial(900, [0.05] * 20)]
    for rows in ([500, 400], [2, 30, *[1] * 868]):
        exact = by_convolution(rows, columns)
        found = sample_tables(rows, columns, samples=60)
        assert found is not None
        low, high = found.interval(1 - 1e-6)
        assert low - 1e-6 <= exact <= high + 1e-6


def by_convolution(rows: list[int], columns: list[int]) -> float:
    """The coefficient of a product of polynomials, one for each column: rows of one record are placed in k! ways."""
    large = [r for r in rows if r > 1]
    ones = len(rows) - len(large)
    first, second = large[0], large[1] if ones else 0
    ways = np.zeros((first + 1, second + 1), object)
    ways[0, 0] = 1
    for column in columns:
        following = np.zeros_like(ways)
        for x in range(min(first, column) + 1):
            for y in range(min(second, column - x) + 1) if second else (0,):
                left = column - x - y
                weight = 1 if not ones else factorial(column) // factorial(left)
                following[x:, y:] += ways[: first + 1 - x, : second + 1 - y] * weight
        ways = following
    found = ways[first, second]
    if not ones:
        return log(found)
    return log(found) + log(factorial(ones)) - sum(log(factorial(column)) for column in columns)
