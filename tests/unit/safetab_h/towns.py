"""A small folder in SafeTab-H's format, with code lists and totals, and an independent tabulation in plain loops."""

from collections import Counter
from pathlib import Path

AREAS = """TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|AIANNHCE
01|001|000001|0001|22800|0001
01|001|000001|1002|99999|9999
02|003|000002|0001|10000|0001
72|001|000009|0001|55555|9999
"""
HEADER = (
    "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|HHRACE|QRACE1|QRACE2|QRACE3|QRACE4|QRACE5|QRACE6|QRACE7|QRACE8|QSPAN"
    "|HOUSEHOLD_TYPE|TEN"
)
BLOCKS = ("01|001|000001|0001", "01|001|000001|1002", "02|003|000002|0001", "72|001|000009|0001")
RACES = """ITERATION_CODE|ITERATION_NAME|LEVEL|ALONE|DETAILED_ONLY|COARSE_ONLY
0000|everybody alone|0|True|Null|Null
A1|north alone|1|True|False|False
B1|north in combination|1|False|False|False
A2|north coast alone|2|True|False|False
B2|north coast in combination|2|False|False|False
C2|south coast alone|2|True|True|False
D2|south coast in combination|2|False|True|False
F2|south coast, coarse|2|False|False|True
"""
ETHNICITIES = """ITERATION_CODE|ITERATION_NAME|LEVEL|DETAILED_ONLY|COARSE_ONLY
E1|islander|1|False|False
E2|hill islander|2|False|False
"""
CODES = """RACE_ETH_CODE|RACE_ETH_NAME
1000|north
1001|north coast
2000|south coast
9000|islander
9999|nobody
"""
MAP = """ITERATION_CODE|RACE_ETH_CODE
0000|1000
A1|1000
B1|1000
A1|1001
B1|1001
A2|1001
B2|1001
C2|2000
D2|2000
F2|2000
E1|9000
E2|9000
"""
LISTS = {
    "race-characteristic-iterations.txt": RACES,
    "ethnicity-characteristic-iterations.txt": ETHNICITIES,
    "race-and-ethnicity-codes.txt": CODES,
    "race-and-ethnicity-code-to-iteration.txt": MAP,
}
KINDS = (
    "USA",
    "STATE",
    "COUNTY",
    "TRACT",
    "PLACE",
    "AIANNH",
    "PR-STATE",
    "PR-COUNTY",
    "PR-TRACT",
    "PR-PLACE",
)
FINE = ("USA", "STATE", "PR-STATE")
COMMON = {1: ("A1", "B1", "E1"), 2: ("A2", "B2", "E2")}
T3_CELLS = (
    {0: {1, 2, 3, 4, 5}},
    {0: {1, 2, 3, 4, 5}, 1: {1, 2, 3}, 6: {4, 5}},
    {0: {1, 2, 3, 4, 5}, 1: {1, 2, 3}, 2: {1}, 3: {2, 3}, 6: {4, 5}, 7: {4}, 8: {5}},
    {0: {1, 2, 3, 4, 5}, 1: {1, 2, 3}, 2: {1}, 3: {2, 3}, 4: {2}, 5: {3}, 6: {4, 5}, 7: {4}, 8: {5}},
)
T4_CELLS = ({0: {1, 2, 3, 4}}, {0: {1, 2, 3, 4}, 1: {1}, 2: {2}, 3: {3, 4}})
Household = tuple[int, tuple[str, ...], str, int, int]  # block, race codes, ethnicity, type, tenure


def line(household: Household) -> str:
    block, races, ethnicity, kind, tenure = household
    codes = [*races, *["Null"] * (8 - len(races))]
    return "|".join([BLOCKS[block], "01", *codes, ethnicity, str(kind), str(tenure)])


def write(folder: Path, households: list[Household], totals: dict[tuple[str, str, str], int]) -> Path:
    """The census in ``folder``, the lists in ``folder/codes``, the totals in pop-group-totals.txt."""
    (folder / "codes").mkdir(parents=True, exist_ok=True)
    for name, text in LISTS.items():
        (folder / "codes" / name).write_text(text)
    (folder / "GRF-C.txt").write_text(AREAS)
    (folder / "household-records.txt").write_text("\n".join([HEADER, *map(line, households)]) + "\n")
    rows = [f"{region}|{kind}|{code}|{count}" for (kind, region, code), count in totals.items()]
    (folder / "pop-group-totals.txt").write_text(
        "\n".join(["REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT", *rows]) + "\n"
    )
    return folder


def regions(block: int) -> dict[str, str]:
    """The regions of a block, by type."""
    state, county, tract, code = BLOCKS[block].split("|")
    fields = AREAS.splitlines()[1 + block].split("|")
    ids = {"STATE": state, "COUNTY": state + county, "TRACT": state + county + tract}
    if fields[4] != "99999":
        ids["PLACE"] = state + fields[4]
    if state == "72":
        return {f"PR-{kind}": region for kind, region in ids.items()}
    if fields[5] != "9999":
        ids["AIANNH"] = fields[5]
    assert code
    return {"USA": "1", **ids}


def iterations(races: tuple[str, ...], ethnicity: str, kind: str) -> set[str]:
    """The groups of a householder, from the texts above."""
    rows = {row.split("|")[0]: row.split("|") for row in RACES.splitlines()[1:]}
    ethnic = {row.split("|")[0]: row.split("|") for row in ETHNICITIES.splitlines()[1:]}
    leads = [tuple(row.split("|")) for row in MAP.splitlines()[1:]]

    def legal(code: str) -> bool:
        row = rows.get(code) or ethnic[code]
        flag = row[-1] if kind in FINE else row[-2]
        return row[2] != "0" and flag != "True"

    alone = [
        {to for to, code in leads if code == race and rows.get(to, [""] * 4)[3] == "True"} for race in races
    ]
    found = set.intersection(*alone) if alone else set()
    found |= {to for to, code in leads if code in races and to in rows and rows[to][3] == "False"}
    found |= {to for to, code in leads if code == ethnicity and to in ethnic}
    return {code for code in found if legal(code)}


def tabulated(
    households: list[Household],
    totals: dict[tuple[str, str, str], int],
    thresholds: tuple[int, int, int],
) -> dict[str, Counter[tuple[str, str, str, int]]]:
    """T3 and T4 without noise: every legal group of the totals, every cell of its level, zeros included."""
    rows = {row.split("|")[0]: row.split("|") for row in (RACES + ETHNICITIES).splitlines()}
    result: dict[str, Counter[tuple[str, str, str, int]]] = {"t3": Counter(), "t4": Counter()}
    for (kind, region, code), total in totals.items():
        row = rows.get(code)
        flag = row and (row[-1] if kind in FINE else row[-2])
        if row is None or row[2] == "0" or flag == "True":
            continue
        level = sum(total >= cut for cut in thresholds)
        cells = (("t3", T3_CELLS[level], 3), ("t4", T4_CELLS[int(total >= thresholds[0])], 4))
        for table, maps, place in cells:
            for cell, sources in maps.items():
                result[table][kind, region, code, cell] = sum(
                    household[place] in sources
                    and regions(household[0]).get(kind) == region
                    and code in iterations(household[1], household[2], kind)
                    for household in households
                )
    return result
