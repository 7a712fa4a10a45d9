"""Noise of totals: in proportion to contributors, none for nothing, interpolated between classes, keys rotated."""

import numpy as np
import pytest

from stirred.errors import InputError
from stirred.mechanisms.tables.cell_key import design_table
from stirred.mechanisms.tables.cell_key.perturbation import Flex, MagnitudeNoise, rotate_digits

TABLE = design_table(5, 2, steps=4, classes=[1, 3, 5])
KEYS = np.arange(0, 10**8, 997_003)


def test_noise_grows_with_the_largest_contributor() -> None:
    noise = MagnitudeNoise(table=TABLE, multiplier=Flex(large=0.1, small=0.1))
    totals = np.full(len(KEYS), 1e6)
    one = noise.noise(totals, np.full((len(KEYS), 1), 1e4), KEYS)
    ten = noise.noise(totals, np.full((len(KEYS), 1), 1e5), KEYS)
    assert ten == pytest.approx(10 * one)
    # class 5 is symmetric with variance 2: a step is a tenth of the contributor
    assert one.std() == pytest.approx(0.1 * 1e4 * 2**0.5, rel=0.1)


def test_a_class_between_two_is_interpolated() -> None:
    noise = MagnitudeNoise(table=TABLE, multiplier=Flex(large=1.0, small=1.0))
    at = {x: noise.noise(np.full(len(KEYS), x), np.ones((len(KEYS), 1)), KEYS) for x in (3.0, 4.0, 5.0)}
    assert at[4.0] == pytest.approx((at[3.0] + at[5.0]) / 2)


def test_nothing_has_no_noise_and_sensitive_cells_have_more() -> None:
    noise = MagnitudeNoise(table=TABLE, multiplier=Flex(large=0.1, small=0.1), extra=1.0)
    totals, largest = np.full(len(KEYS), 100.0), np.full((len(KEYS), 1), 10.0)
    assert not noise.noise(0 * totals, 0 * largest, KEYS).any()
    plain, more = (noise.noise(totals, largest, KEYS, np.full(len(KEYS), mark)) for mark in (False, True))
    moved = plain != 0
    assert np.abs(more[moved]) == pytest.approx(np.abs(plain[moved]) + 1.0)


def test_the_multiplier_falls_from_small_to_large() -> None:
    flex = Flex(fp=1000.0, small=0.2, large=0.05, q=3.0)
    found = flex.of(np.array([1.0, 999.0, 1000.0, 2000.0, 1e9]))
    assert found[:3] == pytest.approx([0.2, 0.2, 0.2], abs=1e-3)
    assert (np.diff(found[2:]) < 0).all()
    assert found[-1] == pytest.approx(0.05, abs=1e-3)
    with pytest.raises(InputError):
        Flex(fp=10.0, small=0.01, large=0.05)


def test_rotated_keys_are_keys_of_their_own() -> None:
    keys = np.array([12_345_678])
    assert [int(rotate_digits(keys, by, 8)[0]) for by in (0, 1, 8, 9)] == [
        12_345_678,
        23_456_781,
        12_345_678,
        23_456_781,
    ]
