"""The plan of each preset: states with their numbers of areas and households, and the composition of the population.

Massachusetts 1940 is one of them. The paper's microdata are not public. Owned and rented households by county are its
Table 1, exactly; so is the number of two-person households, 264,331, the largest stratum b of its Table 2. The other sizes
are rounded shares of that time. **Size is independent of county, and of tenure given the county: a random permutation
assigns the sizes.**
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key, permutation
from stirred.errors import InputError, did_you_mean

# Householders by group (Hispanic, white, black, AIAN, Asian, NHPI, other, two or more; the last seven not Hispanic).
NATIONAL_SHARES = (0.150, 0.645, 0.124, 0.0066, 0.053, 0.0014, 0.005, 0.015)
NEW_ENGLAND_SHARES = (0.130, 0.735, 0.052, 0.004, 0.034, 0.001, 0.011, 0.033)

# Counties, tracts, block groups and persons of the 50 states and DC in the 2020 census, by state code.
_STATE_NUMBERS = """
01 67 1437 3925 5024279|02 30 177 504 733391|04 15 1765 4773 7151502|05 75 823 2294 3011524
06 58 9129 25607 39538223|08 64 1447 4058 5773714|09 8 883 2716 3605944|10 3 262 706 989948
11 1 206 571 689545|12 67 5160 13388 21538187|13 159 2796 7446 10711908|15 5 461 1083 1455271
16 44 456 1284 1839106|17 102 3265 9898 12812508|18 92 1696 5290 6785528|19 99 896 2703 3190369
20 105 829 2461 2937880|21 120 1306 3581 4505836|22 64 1388 4294 4657757|23 16 407 1184 1362359
24 24 1475 4079 6177224|25 14 1620 5116 7029917|26 83 3017 8386 10077331|27 87 1505 4706 5706494
28 82 878 2445 2961279|29 115 1654 5031 6154913|30 56 319 900 1084225|31 93 553 1648 1961504
32 17 779 1963 3104614|33 10 350 997 1377529|34 21 2181 6599 9288994|35 33 612 1614 2117522
36 62 5411 16070 20201249|37 100 2672 7111 10439388|38 53 228 632 779094|39 88 3168 9472 11799448
40 77 1205 3374 3959353|41 36 1001 2970 4237256|42 67 3446 10173 13002700|44 5 250 792 1097379
45 46 1323 3408 5118425|46 66 242 694 886667|47 95 1701 4562 6910840|48 254 6896 18638 29145505
49 29 716 2020 3271616|50 14 193 552 643077|51 133 2198 5963 8631393|53 39 1784 5311 7705281
54 55 546 1639 1793716|55 72 1542 4692 5893718|56 23 160 457 576851
"""
NATION_BLOCKS = 8_132_968
NATION_HOUSEHOLDS = 130_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlan:
    """The numbers of areas and occupied households of one state."""

    code: int
    counties: int
    tracts: int
    block_groups: int
    blocks: int
    households: int

    def scale(self, households: int) -> "StatePlan":
        """Return the same state with other households: fewer or more areas of the same size.

        >>> StatePlan(code=1, counties=3, tracts=30, block_groups=90, blocks=900, households=9000).scale(3000).tracts
        10
        """
        ratio = households / self.households
        tracts = max(self.counties, round(self.tracts * ratio))
        groups = min(max(tracts, round(self.block_groups * ratio)), 9 * tracts)
        blocks = min(max(groups, round(self.blocks * ratio)), 900 * groups)
        return replace(self, tracts=tracts, block_groups=groups, blocks=blocks, households=households)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationPlan:
    """All states of a preset; one key gives one census."""

    name: str
    states: tuple[StatePlan, ...]
    shares: tuple[float, ...]
    integer_codes: bool = False
    empty: float = 0.25  # share of blocks without a home
    title: str = ""

    @property
    def households(self) -> int:
        """Return the number of occupied households of all states."""
        return sum(state.households for state in self.states)


def apportion(total: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return whole numbers in proportion to weights, by largest remainder; they add up exactly.

    >>> apportion(10, np.array([1.0, 1.0, 1.0])).tolist()
    [4, 3, 3]
    """
    exact = total * weights / weights.sum()
    floor: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = total - int(floor.sum())
    largest = np.argsort(floor - exact, kind="stable")[: max(missing, 0)]
    floor[largest] += 1
    return floor


def _plan_nation(households: int) -> tuple[StatePlan, ...]:
    rows = [
        [int(cell) for cell in item.split()]
        for line in _STATE_NUMBERS.strip().splitlines()
        for item in line.split("|")
    ]
    table = np.array(rows, dtype=np.int64)
    # Sparsely populated states have more blocks per block group; the total is that of the 2020 tabulation.
    rural = (table[:, 4] / table[:, 1]) ** -0.12
    blocks = apportion(NATION_BLOCKS, table[:, 3] * rural)
    homes = apportion(NATION_HOUSEHOLDS, table[:, 4].astype(np.float64))
    states = tuple(
        StatePlan(
            code=int(row[0]),
            counties=int(row[1]),
            tracts=int(row[2]),
            block_groups=int(row[3]),
            blocks=int(k),
            households=int(n),
        )
        for row, k, n in zip(table, blocks, homes, strict=True)
    )
    if households == NATION_HOUSEHOLDS:
        return states
    scaled = apportion(households, homes.astype(np.float64))
    return tuple(state.scale(int(n)) for state, n in zip(states, scaled, strict=True))


DEMO_PLAN = StatePlan(code=91, counties=3, tracts=36, block_groups=110, blocks=3_000, households=60_000)
STATE_PLAN = StatePlan(code=92, counties=5, tracts=250, block_groups=800, blocks=25_000, households=430_000)
PRESETS = ("demo", "state", "nation", "massachusetts-1940")


def find_plan(preset: str, households: int | None = None) -> PopulationPlan:
    """Return the plan of a preset, with its own number of households or another.

    >>> nation = find_plan("nation")
    >>> [sum(getattr(s, k) for s in nation.states) for k in ("counties", "tracts", "block_groups", "blocks")]
    [3143, 84414, 239780, 8132968]
    >>> nation.households
    130000000
    """
    if households is not None and households < 1:
        raise InputError(
            "a census needs at least one household",
            why="persons live in households",
            fix="--households N with N of 1 or more",
        )
    if preset == "nation":
        states = _plan_nation(households or NATION_HOUSEHOLDS)
        return PopulationPlan(
            name=preset,
            states=states,
            shares=NATIONAL_SHARES,
            integer_codes=True,
            empty=0.29,
            title="Synthetic nation",
        )
    if preset not in ("demo", "state"):
        raise InputError(
            f"there is no preset {preset}",
            why="a preset names a kind of synthetic census that Stirred knows",
            fix=did_you_mean(preset, PRESETS),
        )
    one = DEMO_PLAN if preset == "demo" else STATE_PLAN
    if households is not None and households != one.households:
        one = one.scale(households)
    return PopulationPlan(
        name=preset, states=(one,), shares=NEW_ENGLAND_SHARES, title=f"Synthetic {preset} census"
    )


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
