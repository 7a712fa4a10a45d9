"""The benchmark of who pays, against numbers computed by hand."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
who_pays = importlib.import_module("who_pays")


def persons_of(rows):
    """Blocks with (Black, White, everybody), all of voting age."""
    found = np.zeros((len(rows), 2, who_pays.EVERYBODY + 1), np.int64)
    for block, (black, white, everybody) in enumerate(rows):
        found[block, :, 2], found[block, :, 1], found[block, :, who_pays.EVERYBODY] = black, white, everybody
    return found


def test_segregation_is_what_paper_gives():
    apart, alone, exposed = who_pays.segregation(persons_of([(10, 0, 10), (0, 10, 10)]), 2)
    assert (apart, alone, exposed) == (1.0, 1.0, 0.0)
    # shares 3/4 and 1/4 of the group, 1/4 and 3/4 of the rest: half of (1/2 + 1/2)
    apart, alone, exposed = who_pays.segregation(persons_of([(3, 1, 4), (1, 3, 4)]), 2)
    assert (apart, alone, exposed) == pytest.approx((0.5, 3 / 4 * 3 / 4 + 1 / 4 * 1 / 4, 2 * 3 / 4 * 1 / 4))


def test_areas_cut_block_groups_and_are_the_same_again():
    blocks = 400
    codes = np.array([f"{number:05}" for number in range(blocks)])
    truth = who_pays.Truth(
        persons_of([(5, 45, 50)] * blocks), np.ones((blocks, 8), np.int64), np.zeros(blocks),
        np.arange(blocks) // 10, np.arange(blocks) // 200, codes,
    )  # fmt: skip
    found = who_pays.areas(truth)
    assert len(found) > 50
    for one in found:
        assert (np.diff(one) == 1).all()
        assert len(set(truth.county[one])) == 1
        assert one[0] % 10 or (one[-1] + 1) % 10
    again = who_pays.areas(truth)
    assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))


def test_a_joint_score_leaves_out_what_is_not_there():
    parts = {"a": 2.0, "b": 1.0, "c": float("nan")}
    assert who_pays.join_score(parts, {"a": 1.0, "b": 2.0, "c": float("nan")}) == pytest.approx(1.0)
