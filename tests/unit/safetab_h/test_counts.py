"""SafeTab-H without noise against plain loops; its domains; who is counted, on every engine."""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import stirred as st
from shared_data import shared
from stirred import SafeTabH
from stirred.census import Census
from stirred.engine import Local
from stirred.mechanisms.census2020.safetab.households.tables import T3, T4
from unit.safetab_h.towns import KINDS, Household, regions, tabulated, write

KEY = st.Key.for_tests(5)
LOW, MIDDLE, HIGH = 10, 20, 30
BUDGET = {f"{kind}-{level}": "1" for kind in KINDS for level in (1, 2)}
CUTS = dict.fromkeys(BUDGET, f"{LOW},{MIDDLE},{HIGH}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def town(seed: int, number: int = 60) -> list[Household]:
    chance = random.Random(seed)
    codes = ["1000", "1001", "2000", "9999", "1234"]
    return [
        (
            chance.randrange(4),
            tuple(chance.choice(codes) for _ in range(chance.choice([1, 1, 2, 3, 8]))),
            chance.choice(["9000", "9999", "Null"]),
            chance.randrange(6),
            chance.randrange(5),
        )
        for _ in range(number)
    ]


def all_totals(seed: int) -> dict[tuple[str, str, str], int]:
    """Totals of most groups, of groups that are illegal, and of regions that nobody lives in."""
    chance = random.Random(seed)
    places = {(kind, region) for block in range(4) for kind, region in regions(block).items()}
    codes = ("A1", "B1", "E1", "A2", "B2", "C2", "D2", "F2", "E2", "0000", "none")
    return {
        (kind, region, code): chance.randrange(-5, 45)
        for kind, region in sorted(places | {("COUNTY", "01999"), ("PR-PLACE", "7299999")})
        for code in codes
        if chance.random() < 0.8
    }


def mechanism(folder: Path, **more: object) -> SafeTabH:
    settings: dict[str, object] = {
        "totals": folder / "pop-group-totals.txt", "codes": folder / "codes", "preset": "", "budget": BUDGET,
        "thresholds": CUTS, "epsilon": "inf",
    }  # fmt: skip
    return SafeTabH(**(settings | more))  # type: ignore[arg-type]


def rows(release: st.Release, table: str) -> Counter[tuple[str, str, str, int]]:
    frame = pl.DataFrame(pl.from_arrow(release.tables[table]))
    found = {row[:4]: row[4] for row in frame.select(frame.columns[:5]).iter_rows()}
    assert len(found) == frame.height
    return Counter(found)


@pytest.mark.parametrize("seed", [1, 2])
def test_without_noise_it_is_the_plain_tabulation(tmp_path: Path, seed: int) -> None:
    households, totals = town(seed), all_totals(seed)
    write(tmp_path, households, totals)
    expected = tabulated(households, totals, (LOW, MIDDLE, HIGH))
    census = st.read(tmp_path)
    whole = mechanism(tmp_path).release(census, key=KEY)
    for table in ("t3", "t4"):
        assert dict(rows(whole, table)) == dict(expected[table])
        assert sum(expected[table].values()) > 0
    assert all(check.kept for check in whole.checks)
    parts = mechanism(tmp_path).release(census, key=KEY, engine=InParts(workers=1))
    assert parts.tables == whole.tables


def test_noise_is_the_same_on_every_engine_and_for_every_order(tmp_path: Path) -> None:
    households, totals = town(3), all_totals(3)
    one = write(tmp_path / "one", households, totals)
    other = write(tmp_path / "other", households[::-1], dict(reversed(totals.items())))
    made = [
        mechanism(folder, epsilon=None).release(st.read(folder), key=KEY, engine=engine)
        for folder, engine in ((one, None), (other, None), (one, InParts(workers=1)))
    ]
    assert made[0].tables == made[1].tables == made[2].tables
    assert made[0].tables != mechanism(one).release(st.read(one), key=KEY).tables


@pytest.mark.parametrize(
    ("cut", "t3", "t4"),
    [
        ("999999,999999,999999", {0}, {0}),
        ("-999999,999999,999999", {0, 1, 6}, {0, 1, 2, 3}),
        ("-999999,-999999,999999", {0, 1, 2, 3, 6, 7, 8}, {0, 1, 2, 3}),
        ("-999999,-999999,-999999", set(range(9)), {0, 1, 2, 3}),
    ],
)
def test_thresholds_at_their_extremes_give_exactly_the_domains(
    tmp_path: Path, cut: str, t3: set[int], t4: set[int]
) -> None:
    write(tmp_path, town(1, 5), all_totals(1))
    release = mechanism(tmp_path, thresholds=dict.fromkeys(BUDGET, cut)).release(st.read(tmp_path), key=KEY)
    for table, domain in (("t3", t3), ("t4", t4)):
        cells: dict[tuple[str, str, str], set[int]] = {}
        for kind, region, code, cell in rows(release, table):
            cells.setdefault((kind, region, code), set()).add(cell)
        assert set(map(frozenset, cells.values())) == {frozenset(domain)}


@pytest.mark.slow  # it reads the shared data
@pytest.mark.parametrize(("cut", "cells"), [("999999", 1), ("-999999", 9)])
def test_the_program_s_own_example_has_exactly_its_legal_groups(cut: str, cells: int) -> None:
    folder = shared("safetab", "h_toy")
    lists = folder / "input_dir_zcdp"
    legal: dict[str, list[str]] = {}
    for name in ("race", "ethnicity"):
        for line in (lists / f"{name}-characteristic-iterations.txt").read_text().splitlines()[1:]:
            fields = line.split("|")
            legal[fields[0]] = [fields[2], *fields[-2:]]
    given = [line.split("|") for line in (folder / "pop-group-totals.txt").read_text().splitlines()[1:]]
    groups = {
        (kind, region, code)
        for region, kind, code, _ in given
        if code in legal
        and legal[code][0] in ("1", "2")
        and not (kind == "AIANNH" and legal[code][0] == "1")  # which has no budget
        and legal[code][2 if kind in ("USA", "STATE", "PR-STATE") else 1] != "True"
    }
    made = SafeTabH(
        totals=folder / "pop-group-totals.txt",
        codes=lists,
        thresholds=dict.fromkeys(BUDGET, f"{cut},{cut},{cut}"),
    )
    release = made.release(st.read(folder).check(invalid="drop"), key=KEY)
    found = Counter(key[:3] for key in rows(release, "t3"))
    assert set(found) == groups
    assert set(found.values()) == {cells}


def test_a_total_decides_the_file(tmp_path: Path) -> None:
    totals = {
        ("STATE", "01", code): total
        for code, total in zip(("A1", "B1", "E1", "A2"), (5, 15, 25, 35), strict=True)
    }
    write(tmp_path, town(1), totals)
    cuts = dict.fromkeys(BUDGET, "10,20,30") | {f"T4-{place}": "20" for place in BUDGET}
    release = mechanism(tmp_path, thresholds=cuts).release(st.read(tmp_path), key=KEY, out=tmp_path)
    found = {}
    for path in sorted(tmp_path.glob("t[34]/*/*.csv")):
        lines = path.read_text().splitlines()
        table = "T3" if path.stem.startswith("T03") else "T4"
        assert lines[0] == f"REGION_ID|REGION_TYPE|ITERATION_CODE|{table}_DATA_CELL|COUNT"
        found[path.stem] = {line.split("|")[2] for line in lines[1:]}
    assert found == {
        "T03001": {"A1"}, "T03002": {"B1"}, "T03003": {"E1"}, "T03004": {"A2"},
        "T04001": {"A1", "B1"}, "T04002": {"E1", "A2"},
    }  # fmt: skip
    assert {path.name for path in release.files} == {"t3", "t4"}


def test_sums_are_sums_also_where_negative_counts_are_cut(tmp_path: Path) -> None:
    write(tmp_path, town(4), all_totals(4))
    census = st.read(tmp_path)
    for clamp in (False, True):
        release = mechanism(tmp_path, epsilon=None, clamp=clamp).release(census, key=KEY)
        lows = []
        for table, levels in (("t3", T3), ("t4", T4)):
            found = rows(release, table)
            groups = {key[:3] for key in found}
            for group in groups:
                cells = {key[3]: count for key, count in found.items() if key[:3] == group}
                level = next(level for level in levels if set(level.published_cells) == set(cells))
                for total, parts in level.sums.items():
                    assert cells[total] == sum(cells[part] for part in parts)
                if table == "t3" and 4 in cells:
                    assert cells[3] == cells[4] + cells[5]
                if table == "t3" and 1 in cells:
                    assert cells[0] == cells[1] + cells[6]
                lows.append(min(cells.values()))
        assert (min(lows) < 0) is not clamp


def test_a_householder_is_the_person_who_is_one(tmp_path: Path) -> None:
    """Codes of the householder; a household with two householders, or none, is counted nowhere."""
    folder = write(tmp_path, [], {("STATE", "01", code): 50 for code in ("A1", "B1", "E1")})
    census = Census.of(
        {
            "geography": {"spine": ["state"], "type": "text"},
            "record": {
                "household": {"id": "h", "variables": {"type": "0..5", "tenure": "0..4"}},
                "person": {
                    "household": "h",
                    "of": "household",
                    "variables": {
                        "relationship": "0..9",
                        "race_code_1": "0..9999",
                        "ethnicity_code": "0..9999",
                    },
                },
            },
        },
        {
            "household": {
                "h": [1, 2, 3, 4],
                "state": ["01"] * 4,
                "type": [1, 4, 2, 5],
                "tenure": [1, 2, 3, 4],
            },
            "person": {
                "h": [1, 1, 2, 3, 3, 4],
                "relationship": [1, 2, 0, 1, 1, 5],
                "race_code_1": [1000, 2000, 1001, 1000, 1000, 1000],
                "ethnicity_code": [0, 9000, 9000, 9000, 9000, 9000],
            },
        },
    )
    for engine in (None, InParts(workers=1)):
        release = mechanism(folder).release(census, key=KEY, engine=engine)
        found = rows(release, "t3")
        assert {code: found["STATE", "01", code, 0] for code in ("A1", "B1", "E1")} == {
            "A1": 2,
            "B1": 2,
            "E1": 1,
        }
        assert (found["STATE", "01", "A1", 2], found["STATE", "01", "A1", 7]) == (1, 1)
        assert rows(release, "t4")["STATE", "01", "E1", 2] == 1
