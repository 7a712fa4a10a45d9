"""Targeted swapping against sdcMicro's own recordSwap (5.8.1, C++): how many households move, and across which level.

The vectors are of 1,000 seeds of recordSwap on one synthetic file (tests/data/peers). The two draw other bits, so their
means are compared: a difference of six standard errors has a probability below 2e-9 for each of at most 28 means, if the
laws are equal.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest

from shared_data import EXTRACTS
from stirred.chance import Key
from stirred.mechanisms.swap import TargetedSwapping, flat_census
from stirred.mechanisms.swap.pairwise import find_level_areas

KEYS = 60
PLACES = ["nuts1", "nuts2", "lau"]
STATISTICS = ["moved", "across_nuts1", "across_nuts2", "across_lau"]
BOTH: Any = [["size", "kind"], ["size"]]
DESIGNS: dict[str, dict[str, Any]] = {
    "k3_rate0": {"hierarchy": PLACES, "similar": BOTH, "k_anonymity": 3, "swaprate": "0"},
    "k3_rate5": {"hierarchy": PLACES, "similar": BOTH, "k_anonymity": 3, "swaprate": "1/20"},
    "k3_rate30": {"hierarchy": PLACES, "similar": BOTH, "k_anonymity": 3, "swaprate": "3/10"},
    "k2_rate5": {"hierarchy": PLACES, "similar": ["size"], "k_anonymity": 2, "swaprate": "1/20"},
    "k5_rate0": {"hierarchy": PLACES, "similar": ["size", "kind"], "k_anonymity": 5, "swaprate": "0"},
    "k0_rate10": {"hierarchy": PLACES, "similar": ["size"], "k_anonymity": 0, "swaprate": "1/10"},
    "lau_k3_rate5": {"hierarchy": ["lau"], "similar": BOTH, "k_anonymity": 3, "swaprate": "1/20"},
}


def count_moved(design: dict[str, Any]) -> np.ndarray:
    """Return a row for each key: households moved, and those of them by the coarsest level that they crossed."""
    people = pl.read_csv(EXTRACTS / "peers" / "recordswap_people.csv")
    census = flat_census(people, hid="hid", hierarchy=design["hierarchy"])
    mechanism = TargetedSwapping(
        **design, risk_variables=["age", "sex", "nation"], without_guarantee="a comparison with a peer"
    )
    frame = mechanism.frame(census)  # once: a log of every key would tabulate the file again
    areas = find_level_areas(frame, design["hierarchy"])
    found = []
    for seed in range(KEYS):
        partner = mechanism.pair_records(frame, Key.for_tests(seed)).partner
        moved = np.flatnonzero(partner >= 0)
        row, left = [moved.size], np.ones(moved.size, bool)
        for level in PLACES:
            if level not in design["hierarchy"]:
                row.append(0)
                continue
            area = areas[design["hierarchy"].index(level)]
            crossed = left & (area[moved] != area[partner[moved]])
            row.append(int(crossed.sum()))
            left &= ~crossed
        found.append(row)
    return np.array(found, float)


@pytest.mark.parametrize("name", DESIGNS)
def test_as_many_households_move_as_with_recordswap(name: str) -> None:
    peer = pl.read_csv(EXTRACTS / "peers" / "recordswap_moved.csv").filter(design=name)
    ours = count_moved(DESIGNS[name])
    for column, statistic in enumerate(STATISTICS):
        theirs = peer.row(by_predicate=pl.col("statistic") == statistic, named=True)
        error = np.sqrt(ours[:, column].var(ddof=1) / KEYS + theirs["deviation"] ** 2 / theirs["seeds"])
        difference = abs(ours[:, column].mean() - theirs["mean"])
        assert difference <= 6 * error + 1e-9, (statistic, ours[:, column].mean(), theirs["mean"])
    # where everybody finds a donor there, everybody finds a partner here
    assert peer.filter(statistic="without_donor")["most"].item() <= 1
