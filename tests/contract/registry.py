"""The mechanisms that keep the contract: add a line here and the whole suite runs over it.

A case makes the mechanism anew for each test. Its match, swap and query variables are those of the suite's censuses (see
``test_contract.py``): state, county, tract; size, tenure; persons with age and sex.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from stirred import (
    CellKey,
    ExactMargins,
    GaussianTables,
    PHSafe,
    SafeTabH,
    SafeTabP,
    SpecialTabulations,
    Workload,
)
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.stirring import Stirring
from stirred.mechanisms.swap import (
    ImputedStay,
    NearPlaces,
    NoisyKey,
    NoisyTables,
    NoVacuous,
    PermutationSwapping,
    Swapping2010,
    TargetedSwapping,
    UnitMatching,
    VaryingRates,
)
from stirred.mechanisms.topdown import TopDown

TOTALS = Path(__file__).resolve().parents[1] / "data" / "safetab_h"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Any:
    """A module of the examples folder, loaded once as it lies there, without being installed."""
    module_name = f"stirred_examples_{name}"
    if module_name not in sys.modules:
        spec = spec_from_file_location(module_name, EXAMPLES / name / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[module_name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module_name])
    return sys.modules[module_name]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism of the suite; ``make`` gives a fresh one."""

    name: str
    make: Callable[[], Mechanism]


WORKLOAD = (Path(__file__).parent / "workload.toml").read_text()  # of the golden packets too

CASES = [
    Case("topdown", lambda: TopDown(workload=Workload.parse(WORKLOAD), replicates=0)),
    Case("topdown-classic", lambda: TopDown(workload=Workload.parse(WORKLOAD), mode="classic", replicates=0)),
    Case("own-mechanism", lambda: example("own_mechanism").NoisyCounts()),
    Case(
        "permutation-swapping",
        lambda: PermutationSwapping(match=["state", "size"], swap=["county", "tract"], rate="1/2"),
    ),
    Case(
        "stirring",
        lambda: Stirring(match=["state", "size"], swap=["county", "tract"], rate="1/2"),
    ),
    Case(
        "permutation-swapping-tables",
        lambda: PermutationSwapping(
            match=["state", "size"],
            swap=["county", "tract"],
            rate="1/2",
            microdata=False,
            tables=[["county", "tenure"]],
        ),
    ),
]

SWAP: dict[str, Any] = {"match": ["state", "size"], "swap": ["county", "tract"], "rate": "1/3"}

VARIANTS = [
    Case("stirring-loss", lambda: Stirring(**{**SWAP, "rate": None}, loss="2", law="auto", carry=False)),
    Case(
        "stirring-both",
        lambda: Stirring(**SWAP, loss="6", shuffle_first="tenure", shuffle_levels=["rent"], law="types"),
    ),
    Case("varying-rates", lambda: VaryingRates(**SWAP, by="tenure", rates={"rent": "1/2"})),
    Case(
        "varying-rates-rarity",
        lambda: VaryingRates(**SWAP, rarity=["tract", "size"], rare="1/2", counts_up_to=250),
    ),
    Case("imputed-stay", lambda: ImputedStay(**SWAP, imputed="tenure", levels=["rent"])),
    Case("no-vacuous", lambda: NoVacuous(**SWAP, carry=False)),
    Case("near-places", lambda: NearPlaces(**SWAP, preference="3")),
    Case("unit-matching", lambda: UnitMatching(**SWAP, loose=["size"], alpha="1/2")),
    Case("noisy-key", lambda: NoisyKey(**SWAP, noisy="size", change="1/4")),
    Case("noisy-tables", lambda: NoisyTables(**SWAP, tables=[["tract", "tenure"]], sigma_squared="4")),
    Case("cell-key", lambda: CellKey(tables=[["county", "tenure"]], without_guarantee="a test")),
    Case(
        "targeted-swapping",
        lambda: TargetedSwapping(
            hierarchy=["county", "tract"],
            similar=[["state", "size", "tenure"], ["state", "size"]],
            swaprate="1/3",
            risk_variables=["size", "tenure"],
            without_guarantee="a test",
        ),
    ),
    Case(
        "swapping-2010",
        lambda: Swapping2010(
            swap=["county", "tract"],
            rate="1/3",
            equal=["size"],
            race=["tenure"],
            unique=["tenure", "size"],
            without_guarantee="a test",
        ),
    ),
    Case(
        "gaussian-tables",
        lambda: GaussianTables(tables=[["county"], ["tract"]], rho_squared="1/2", shares=["3/4", "1/4"]),
    ),
    Case(
        "special-tabulations",
        lambda: SpecialTabulations(
            tables=[["county", "tenure"]], rounding="fives", least_area=2, without_guarantee="a test"
        ),
    ),
    Case("exact-margins", lambda: ExactMargins(rows="county", columns="tenure", rho_squared="1/2")),
    Case(
        "safetab-h",  # a household with exactly one woman is hers
        lambda: SafeTabH(
            totals=TOTALS / "t1.txt",
            codes=TOTALS / "codes",
            preset="",
            budget={"STATE-1": "1", "COUNTY-1": "1"},
            thresholds={"STATE-1": "10,20,30", "COUNTY-1": "10,20,30"},
            races=["sex"],
            ethnicity="",
            householder="sex",
            householders=["f"],
            household_type="size",
            types={"1": "4", "2": "1", "3": "5"},
            tenures={"own": "2", "rent": "3"},
        ),
    ),
    # the suite's censuses have neither race nor relationship: PH1 without iterations is what can be made
    Case("phsafe", lambda: PHSafe(tau={"PH1_num": 2})),
]

LISTS = Path(__file__).parent / "code_lists"  # its codes are levels of tenure
DETAILED = [
    Case(
        "safetab-p",
        lambda: SafeTabP(
            preset="",
            codes=LISTS,
            budget={"STATE-1": "1", "COUNTY-1": "1"},
            thresholds={"STATE-1": "20,40,10000", "COUNTY-1": "20,40,10000"},
            suppression="0.9",
            races=["tenure"],
            ethnicity="",
            sexes=["f", "m"],
        ),
    ),
]

EVERY = [*CASES, *VARIANTS, *DETAILED]
# no finite bound is known or there is none: the budget is infinite, and nothing is published without a reason
UNBOUNDED = {"swapping-noisy-key", "cell-key", "swapping-2010", "targeted-swapping", "special-tabulations"}
# rules without noise: every key gives the same release
WITHOUT_NOISE = {"special-tabulations"}
