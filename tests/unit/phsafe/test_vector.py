"""The Bureau's end-to-end vector (PHSafe, test2), written down by hand: exact tables at an infinite budget.

The rows are those of DAS_2020_SDHC_Production_Code, phsafe/test/system/end_to_end_inputs/test2 (Apache-2.0). Of its 516
expected rows those that are not 0 are listed; the others follow from the tables' definitions.
"""

from itertools import product
from pathlib import Path

import pytest

from stirred import Key, PHSafe, read
from stirred.cli.main import main

PERSONS = """RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP
3,100000001,49,1,01,20
3,100000001,17,1,01,21
3,100000001,12,1,01,21
3,100000002,19,1,01,20
5,100000004,94,1,01,38
5,100000004,19,2,01,38
3,100000002,19,1,01,20
3,100000012,35,1,01,20
5,100000014,20,1,01,20
5,100000015,15,2,01,20"""
UNITS = """RTYPE,MAFID,FINAL_POP,NPF,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT
2,100000001,2,2,1,01,2,1,02,1
2,100000002,1,0,1,01,2,4,09,5
2,100000003,0,0,0,00,2,0,00,0
2,100000005,0,0,0,00,2,0,00,0
4,100000004,2,0,0,00,2,0,00,0
2,100000002,1,0,1,01,2,4,09,5
2,100000012,3,0,1,01,2,1,09,5
2,100000014,5,0,1,01,2,1,09,5
4,100000015,3,0,1,02,1,1,09,5"""
GEO = """RTYPE,MAFID,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK,TABBLKGRPCE,REGIONCE,DIVISIONCE,PLACEFP,AIANNHCE
2,100000001,44,055,450200,4069,1,4,2,99999,9999
2,100000002,44,161,890500,2078,0,2,2,19828,9999
2,100000003,29,161,890400,1073,9,1,2,62912,9999
2,100000005,29,161,890400,1073,9,1,2,99999,0001
4,100000004,29,065,960100,1123,1,1,0,99999,9999
2,100000012,06,139,060102,1005,1,9,0,83606,0002
4,100000014,06,139,060102,1005,1,9,0,83606,0002
4,100000015,06,140,060103,1004,0,8,2,19828,0002"""
TAU = {"PH1_num": 5, "PH2": 10, "PH3": 5, "PH4": 5, "PH6": 5, "PH7": 5}
CODES = "*ABCDEFGHI"
# the cells of each table, and the cell of the one person (or household) that is counted, by the codes *, A and I
TABLES: dict[str, tuple[tuple[int, ...], int, str]] = {
    "PH1_num": ((2, 3), 3, CODES),
    "PH1_denom": ((1,), 1, CODES),
    "PH2": ((3, 4, 6, 7, 9, 10, 12, 13), 9, ""),
    "PH3": ((2, 4, 5, 6, 7, 9, 10), 0, CODES),
    "PH4": ((2, 3), 3, CODES),
    "PH5_num": ((2, 3), 3, CODES),
    "PH5_denom": ((1,), 1, CODES),
    "PH6": ((3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21), 0, ""),
    "PH7": ((2, 3, 4), 3, CODES),
    "PH8_num": ((2, 3), 2, CODES),
    "PH8_denom": ((2, 3), 2, CODES),
}


def expected(name: str) -> str:
    """The expected file of a table."""
    cells, counted, codes = TABLES[name]
    iteration = "ITERATION_CODE|" if codes else ""
    lines = [f"REGION_ID|REGION_TYPE|{iteration}{name.upper()}_DATA_CELL|NOISE_DISTRIBUTION|VARIANCE|COUNT"]
    for region, code, cell in product(("06|STATE", "1|USA"), codes or [""], sorted(map(str, cells))):
        count = int(cell == str(counted) and code in ("", "*", "A", "I"))
        middle = f"{code}|" if codes else ""
        lines.append(f"{region}|{middle}{cell}|Two-Sided Geometric|0|{count}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("test2")
    for name, text in (("persons.csv", PERSONS), ("units.csv", UNITS), ("geo.csv", GEO)):
        (place / name).write_text(text)
    return place


def test_all_eleven_tables_from_python(folder: Path, tmp_path: Path) -> None:
    mechanism = PHSafe(definition="puredp", epsilon="inf", tau=TAU, states=["06"])
    release = mechanism.release(read(folder), key=Key.for_tests(1), out=tmp_path)
    assert not release.private
    assert sorted(path.name for path in release.files) == sorted(f"{name}.csv" for name in TABLES)
    for name in TABLES:
        assert (tmp_path / f"{name}.csv").read_text() == expected(name), name


def test_all_eleven_tables_from_the_command(folder: Path, tmp_path: Path) -> None:
    key, out = tmp_path / "tests.key", tmp_path / "packet"
    tau = [f"{name}={value}" for name, value in TAU.items()]
    words = ["phsafe", str(folder), "--definition", "puredp", "--epsilon", "inf", "--tau", *tau]
    words += ["--states", "06", "--key", str(key), "--out", str(out)]
    assert main(words) != 0  # no packet without noise, unless its key marks it as not private
    assert not out.exists()
    key.unlink(missing_ok=True)
    Key.for_tests(1).save(key)
    assert main(words) == 0
    for name in TABLES:
        assert (out / "public" / "data" / "mechanism" / f"{name}.csv").read_text() == expected(name), name
    assert '"private": false' in (out / "public" / "receipt.json").read_text()
