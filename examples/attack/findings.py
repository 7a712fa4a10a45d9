"""The table "What the Bureau found, on a synthetic census" of docs/how-to/attack.md, computed again.

Usage: python examples/attack/findings.py [--households 15000]

Prints the table in Markdown: precision / recall in per cent, for a swap of 5 %, a swap of 50 % and TopDown; about a minute
and a half on two cores.
"""

import argparse
from pathlib import Path

import polars as pl

from stirred.assess.attack import attack
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.workload import Workload

WORKLOAD = Path(__file__).parent / "blocks-by-age.toml"
RECORDS, REBUILT = "reidentification", "reidentification from tables"
EXPOSED, CERTAIN = "nonmodal unique", "nonmodal unique, one reconstruction"
ROWS = (
    ("all persons: attack on tables", "all", "attack", REBUILT),
    ("all persons: modal guess", "all", "modal guess", REBUILT),
    ("nonmodal uniques: attack on records", EXPOSED, "attack", RECORDS),
    ("nonmodal uniques: attack on tables", EXPOSED, "attack", REBUILT),
    ("nonmodal uniques: modal guess", EXPOSED, "modal guess", REBUILT),
    ("nonmodal uniques: proportional guess", EXPOSED, "proportional guess", REBUILT),
    ("nonmodal uniques in blocks with one reconstruction: attack", CERTAIN, "attack", REBUILT),
    ("the same: proportional guess", CERTAIN, "proportional guess", REBUILT),
)


def mechanisms() -> dict[str, Mechanism]:
    """The three ways of release."""
    where = {"match": ["state", "size"], "swap": ["county", "tract", "block"]}
    workload = Workload.parse(WORKLOAD.read_text(encoding="utf-8"))
    return {
        "swap 5 %": PermutationSwapping(**where, rate="1/20"),
        "swap 50 %": PermutationSwapping(**where, rate="1/2"),
        "TopDown": TopDown(workload=workload, replicates=0),
    }


def main() -> None:
    """Synthesise, release in three ways, attack each, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--households", type=int, default=15_000)
    made = synthesise("demo", households=options.parse_args().households)
    census = Census.of(made.schema, made.tables)
    tables: dict[str, dict[str, pl.DataFrame]] = {}
    for name, mechanism in mechanisms().items():
        release = mechanism.release(census, key=Key.for_tests(1))
        tables[name] = dict(attack(release, census, areas=None).tables)
    print(
        f"{census.count('person'):,} persons\n\n| | "
        + " | ".join(tables)
        + " |\n|"
        + "---|" * (len(tables) + 1)
    )
    for words, group, method, table in ROWS:
        cells = []
        for found in tables.values():
            rows = found[table].filter(pl.col("class") == group, pl.col("method") == method)
            cells.append(" / ".join(f"{100 * rows[one].item():.1f}" for one in ("precision", "recall")))
        print(f"| {words} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
