"""At an infinite budget PHSafe is a tabulation: held against plain loops over the Bureau's codes, in memory and in parts."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import Key, PHSafe
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.engine import Local
from stirred.frames import frame_of
from stirred.mechanisms.release import Release
from unit.phsafe.small import SCHEMA

KEY = Key.for_tests(5)
MOST = 1000  # persons of a household: nobody is left out


class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


@pytest.fixture(scope="module")
def people() -> Census:
    """700 synthetic households in two states."""
    made = synthesise("demo", households=700, seed=4)
    homes, persons = (frame_of(made.tables[name]) for name in ("household", "person"))
    state = np.where(np.arange(homes.height) % 3 == 0, "06", "44")
    homes = homes.with_columns(pl.Series("state", state)).drop("county", "tract", "block_group", "block")
    return Census.of(SCHEMA, {"household": homes, "person": persons})


def hht2(row: dict[str, Any]) -> str:
    """HHT2 as the Bureau defines it."""
    children = row["children"] > 0
    if row["kind"] != 1:
        return "00"
    if row["couple"] in (1, 2):
        return "01" if children else "02"
    if row["couple"] in (3, 4):
        return "03" if children else "04"
    alone, with_children, relatives, others = (
        ("09", "10", "11", "12") if row["sex"] == 1 else ("05", "06", "07", "08")
    )
    if row["type"] == 4:
        return alone
    return with_children if children else relatives if row["type"] in (2, 3) else others


def codes(race: int, hispanic: int) -> list[str]:
    """The iterations of a record."""
    found = ["*", "ABCDEF"[race - 1] if race <= 6 else "G"]
    if hispanic == 2:
        found.append("H")
    elif race == 1:
        found.append("I")
    return found


def plainly(census: Census) -> dict[str, Counter[tuple[str, str, int]]]:
    """All tables by loops: counts by region, iteration and cell."""
    found: dict[str, Counter[tuple[str, str, int]]] = {}
    homes = {row["household_id"]: row for row in frame_of(census.table("household")).iter_rows(named=True)}

    def add(table: str, row: dict[str, Any], iterations: list[str], cell: int) -> None:
        for region in ("1", row["state"]):
            for code in iterations:
                found.setdefault(table, Counter())[region, code, cell] += 1

    for row in homes.values():
        if row["kind"] != 1:
            continue
        own = codes(row["race"], row["hispanic"])
        add("ph1_denom", row, own, 1)
        add("ph8_denom", row, own, 2 if row["tenure"] in (1, 2) else 3)
        if row["type"] in (1, 2, 3):
            add("ph5_denom", row, own, 1)
    for one in frame_of(census.table("person")).iter_rows(named=True):
        row = homes[one["household_id"]]
        if row["kind"] == 3:
            continue
        relship = 20 if one["relationship"] == 0 else one["relationship"] + 19
        age, kind, theirs = one["age"], hht2(row), codes(row["race"], row["hispanic"])
        add("ph1_num", row, theirs, 2 if age < 18 else 3)
        add("ph7", row, theirs, {1: 2, 2: 3, 3: 4, 4: 4}[row["tenure"]])
        add("ph8_num", row, theirs, 2 if row["tenure"] in (1, 2) else 3)
        pair = {("01", 1): 3, ("02", 1): 3, ("01", 2): 4, ("02", 2): 4}
        pair |= {("03", 3): 6, ("04", 3): 6, ("03", 4): 7, ("04", 4): 7}
        single = {"09": 9, "10": 10, "11": 10, "12": 10, "05": 12, "06": 13, "07": 13, "08": 13}
        add("ph2", row, [""], pair.get((kind, row["couple"])) or single[kind])
        if relship in (20, 21, 23, *range(25, 34)) and row["type"] <= 3:
            add("ph4", row, theirs, 2 if age < 18 else 3)
            add("ph5_num", row, theirs, 2 if age < 18 else 3)
        if age >= 18:
            continue
        place = {"01": 0, "03": 1, "10": 2, "06": 3}
        if relship in (25, 26, 27) and kind in place:
            add("ph3", row, codes(one["race"], one["hispanic"]), 4 + place[kind])
            step = 0 if age < 4 else 1 if age <= 5 else 2 if age <= 11 else 3
            add("ph6", row, [""], 3 + 5 * place[kind] + step)
        elif relship not in (25, 26, 27):
            kin = 9 if relship == 30 else 10 if relship in (28, 29, 31, 32, 33) else 2
            add("ph3", row, codes(one["race"], one["hispanic"]), kin)
    return found


def told(release: Release) -> dict[str, Counter[tuple[str, str, int]]]:
    """The released tables in the same form, without zeros."""
    found = {}
    for name, table in release.tables.items():
        rows = frame_of(table).iter_rows(named=True)
        cell = f"{name}_cell"
        found[name] = Counter(
            {
                (row["region"], row.get("iteration", ""), row[cell]): row["count"]
                for row in rows
                if row["count"]
            }
        )
    return found


def test_without_noise_it_is_a_tabulation(people: Census) -> None:
    tau = dict.fromkeys(("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7"), MOST)
    wanted = plainly(people)
    assert told(PHSafe(epsilon="inf", tau=tau).release(people, key=KEY)) == wanted
    assert len(wanted) == 11
    assert all(len(cells) > 4 for cells in wanted.values())


def test_parts_give_the_same_numbers(people: Census) -> None:
    """With truncation and noise, so that orders and draws agree too."""
    mechanism = PHSafe(tau=dict.fromkeys(("PH1_num", "PH2", "PH4", "PH7"), 3))
    here = mechanism.release(people, key=KEY)
    there = mechanism.release(people, key=KEY, engine=InParts())
    assert {name: table.to_pylist() for name, table in here.tables.items()} == {
        name: table.to_pylist() for name, table in there.tables.items()
    }
    assert here.input_digest == there.input_digest


def test_the_order_of_the_files_changes_nothing(people: Census) -> None:
    mechanism = PHSafe(epsilon="inf", tau={"PH1_num": 2, "PH7": 1, "PH3": 1})
    turned = Census.of(
        SCHEMA,
        {
            name: people.table(name).take(list(reversed(range(people.count(name)))))
            for name in ("household", "person")
        },
    )
    assert told(mechanism.release(people, key=KEY)) == told(mechanism.release(turned, key=KEY))
