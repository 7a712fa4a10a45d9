"""Make the synthetic file that recordSwap and Stirred both swap: python tests/data/peers/make_people.py.

24 areas in three levels with rare nationalities, so that households must be swapped across every level. No person in it
exists.
"""

from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).parent
HOUSEHOLDS = 1500


def draw_people(households: int = HOUSEHOLDS) -> pl.DataFrame:
    """Return a flat file of persons, whole numbers alone, sorted by household."""
    rng = np.random.default_rng(20261118)
    area_sizes = rng.dirichlet(np.full(24, 4.0))
    lau = np.sort(rng.choice(24, households, p=area_sizes))
    size = rng.choice(np.arange(1, 7), households, p=[0.36, 0.31, 0.14, 0.12, 0.05, 0.02])
    kind = rng.choice(3, households, p=[0.5, 0.35, 0.15])
    order = rng.permutation(households)  # household numbers say nothing about places
    lau, size, kind = lau[order], size[order], kind[order]
    home = np.repeat(np.arange(households), size)
    return pl.DataFrame(
        {
            "hid": home + 1,
            "nuts1": lau[home] // 12 + 1,
            "nuts2": lau[home] // 6 + 1,
            "lau": lau[home] + 1,
            "size": size[home],
            "kind": kind[home] + 1,
            "age": rng.choice(4, home.size, p=[0.28, 0.36, 0.26, 0.1]) + 1,
            "sex": rng.integers(1, 3, home.size),
            "nation": rng.choice(6, home.size, p=[0.93, 0.035, 0.018, 0.01, 0.005, 0.002]) + 1,
        }
    )


if __name__ == "__main__":
    draw_people().write_csv(HERE / "recordswap_people.csv")
