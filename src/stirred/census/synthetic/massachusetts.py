"""Massachusetts 1940: the county and tenure counts of the paper's Table 1, with sizes that depend on neither.

The paper's microdata are not public. Owned and rented households by county are its Table 1, exactly; so is the number
of two-person households, 264,331, the largest stratum b of its Table 2. The other sizes are rounded shares of that time.
**Size is independent of county, and of tenure given the county: a random permutation assigns the sizes.**
"""

import numpy as np
import pyarrow as pa

from stirred.census.synthetic.plans import apportion
from stirred.chance import Key, permutation
from stirred.errors import InputError

TABLE_1: dict[str, tuple[int, int]] = {
    "Barnstable": (7_461, 3_825),
    "Berkshire": (14_736, 18_417),
    "Bristol": (33_747, 63_931),
    "Dukes": (1_207, 534),
    "Essex": (53_936, 81_300),
    "Franklin": (7_433, 6_442),
    "Hampden": (30_597, 58_166),
    "Hampshire": (9_427, 8_630),
    "Middlesex": (104_144, 147_687),
    "Nantucket": (593, 432),
    "Norfolk": (44_885, 40_285),
    "Plymouth": (24_857, 23_882),
    "Suffolk": (49_656, 176_553),
    "Worcester": (53_126, 78_535),
}
"""Owned and rented households by county (the paper, Table 1)."""

HOUSEHOLD_COUNT = 1_144_424
TWO_PERSON_COUNT = 264_331
# Shares of sizes 1, 3, 4, … 12 among all other households; every one of them stays below that of two persons.
OTHER_SIZES: dict[int, float] = {
    1: 0.099, 3: 0.285, 4: 0.238, 5: 0.153, 6: 0.092, 7: 0.055, 8: 0.033, 9: 0.02, 10: 0.012, 11: 0.007, 12: 0.006
}  # fmt: skip


def apportion_sizes() -> dict[int, int]:
    """Return how many households of each size there are; 12 stands for 12 or more.

    >>> counts = apportion_sizes()
    >>> counts[2] == max(counts.values()) == 264331, sum(counts.values())
    (True, 1144424)
    """
    sizes = sorted(OTHER_SIZES)
    others = apportion(HOUSEHOLD_COUNT - TWO_PERSON_COUNT, np.array([OTHER_SIZES[size] for size in sizes]))
    return dict(sorted([(2, TWO_PERSON_COUNT), *zip(sizes, others.tolist(), strict=True)]))


def make_massachusetts(key: Key, households: int | None = None) -> dict[str, pa.Table]:
    """Return one record per household: state, county, tenure and size."""
    if households not in (None, HOUSEHOLD_COUNT):
        raise InputError(
            "massachusetts-1940 has 1,144,424 households",
            why="its counts are those of the paper",
            fix="leave --households out",
        )
    counties = list(TABLE_1)
    cells = np.array([count for pair in TABLE_1.values() for count in pair])
    cell = np.repeat(np.arange(cells.size, dtype=np.int8), cells)
    counts = apportion_sizes()
    sizes = np.repeat(np.array(list(counts), dtype=np.int16), list(counts.values()))
    sizes = sizes[permutation(key.stream("massachusetts-1940", "size"), HOUSEHOLD_COUNT)]
    household = pa.table(
        {
            "household_id": np.arange(1, HOUSEHOLD_COUNT + 1, dtype=np.int64),
            "state": pa.DictionaryArray.from_arrays(
                np.zeros(HOUSEHOLD_COUNT, dtype=np.int8), ["Massachusetts"]
            ),
            "county": pa.DictionaryArray.from_arrays(cell // 2, counties),
            "size": sizes,
            "tenure": pa.DictionaryArray.from_arrays(cell % 2, ["owned", "rented"]),
        }
    )
    return {"household": household}


def massachusetts_schema(*, files: bool = True) -> dict[str, object]:
    """Return the schema of the Massachusetts census as census.toml has it; in memory it names no files."""
    return {
        "name": "massachusetts-1940",
        "label": "Massachusetts 1940, synthetic: size is independent of county, and of tenure given the county",
        "largest_household": 12,
        "geography": {"spine": ["state", "county"]},
        "record": {
            "household": {
                **({"files": ["household/*.parquet"]} if files else {}),
                "id": "household_id",
                "size": "size",
                "variables": {
                    "size": {"label": "persons (12: twelve or more)", "type": "integer", "range": "1..12"},
                    "tenure": {"label": "tenure", "levels": ["owned", "rented"]},
                },
            }
        },
    }
