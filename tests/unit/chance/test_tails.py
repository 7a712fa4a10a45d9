"""Drawing only what lies above a bound gives the places and values that drawing everything would give."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from stirred.chance import DiscreteGaussian, Key
from stirred.chance.inversion import FallingLaw
from stirred.chance.noise import draw_exceeding, draw_subset, enclose_tail
from stirred.errors import InputError

LAW = FallingLaw(Fraction(1, 8), Fraction(0), mirrored=True)  # a variance of 4


def test_every_set_is_equally_likely() -> None:
    """Chi-squared over the 10 sets of 2 of 5; a false alarm has probability 1e-7."""
    key, rounds = Key.for_tests(3), 4_000
    seen = Counter(tuple(draw_subset(key.stream("set", i), 5, 2).tolist()) for i in range(rounds))
    assert set(seen) == set(combinations(range(5), 2))
    expected = rounds / comb(5, 2)
    assert sum((n - expected) ** 2 / expected for n in seen.values()) < chi2.isf(1e-7, 9)


def test_most_of_the_numbers_are_chosen_by_leaving_some_out() -> None:
    chosen = draw_subset(Key.for_tests(4).stream("most"), 1000, 990)
    assert len(set(chosen.tolist())) == 990
    assert np.all(np.diff(chosen) > 0)
    with pytest.raises(InputError, match="cannot choose 3 of 2"):
        draw_subset(Key.for_tests(4).stream("most"), 2, 3)


def test_the_same_law_as_drawing_everything() -> None:
    """The values above 3, by count of places and by value; chi-squared, a false alarm has probability 2e-7."""
    n, rounds, above = 400, 250, 3
    few, full = Counter[int](), Counter[int]()
    few_values, full_values = Counter[int](), Counter[int]()
    noise = DiscreteGaussian(4)
    for i in range(rounds):
        places, values = draw_exceeding(Key.for_tests(5), ("rare", i), n, LAW, above)
        few[len(places)] += 1
        few_values.update(values.tolist())
        drawn = noise.draw(Key.for_tests(6).stream("all", i), n)
        full[int((drawn > above).sum())] += 1
        full_values.update(drawn[drawn > above].tolist())
    for one, other in ((few, full), (few_values, full_values)):
        cells = [k for k in one | other if one[k] + other[k] >= 20]
        a, b = (sum(c[k] for k in cells) for c in (one, other))
        statistic = sum(
            (one[k] * (b / a) ** 0.5 - other[k] * (a / b) ** 0.5) ** 2 / (one[k] + other[k]) for k in cells
        )
        assert statistic < chi2.isf(1e-7, len(cells) - 1)


def test_a_bound_far_beyond_the_noise_is_enclosed_all_the_same() -> None:
    _, bits, low, high = enclose_tail(LAW, 60, 20)
    assert 0 < low <= high
    assert (high - low) << 20 <= low
    assert bits > 650  # P(X > 60) is about 2^-656
    places, values = draw_exceeding(Key.for_tests(7), ("far",), 10**9, LAW, 60)
    assert len(places) == len(values) == 0
