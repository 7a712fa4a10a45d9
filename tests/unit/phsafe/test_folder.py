"""The Bureau's folder of PHSafe: recognised by its files, read with the synthetic census's codes, and no value shown."""

from pathlib import Path

import pytest

from stirred import read
from stirred.errors import DataError, InputError
from stirred.frames import frame_of

UNITS = "RTYPE,MAFID,FINAL_POP,NPF,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT\n"
GEO = "RTYPE,MAFID,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK\n"
PERSONS = "RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP\n"


def folder(place: Path, units: str, geo: str, persons: str) -> Path:
    for name, text in (
        ("units.csv", UNITS + units),
        ("geo.csv", GEO + geo),
        ("persons.csv", PERSONS + persons),
    ):
        (place / name).write_text(text)
    return place


def test_codes_become_those_of_the_synthetic_census(tmp_path: Path) -> None:
    units = "2,a,1,0,1,01,2,7,08,5\n2,b,0,0,0,00,0,0,00,0\n4,c,1,0,0,00,0,0,00,0\n2,d,2,2,2,07,3,1,01,2\n"
    geo = "".join(f"2,{name},44,001,000100,1000\n" for name in "abcd")
    persons = "3,a,40,1,01,20\n3,d,9,2,12,25\n3,d,30,2,12,36\n5,c,30,1,01,37\n3,x,1,1,01,20\n"
    census = read(folder(tmp_path, units, geo, persons)).check()
    homes = frame_of(census.table("household", ["household_id", "kind", "type", "hht2", "couple", "race"]))
    assert homes.rows() == [
        ("a", 1, 5, 8, 0, 1),
        ("b", 2, 0, 0, 0, 0),
        ("c", 3, 0, 0, 0, 0),
        ("d", 1, 1, 1, 2, 7),
    ]
    people = frame_of(census.table("person", ["household_id", "relationship", "age", "race", "hispanic"]))
    assert people.rows() == [
        ("a", 1, 40, 1, 1),
        ("d", 6, 9, 12, 2),
        ("d", 17, 30, 12, 2),
        ("c", 18, 30, 1, 1),
    ]
    assert frame_of(census.table("household", ["block"]))["block"].unique().to_list() == ["440010001001000"]


def test_what_is_no_code_is_refused_by_count(tmp_path: Path) -> None:
    units, geo = "2,a,1,0,1,01,2,7,08,5\n", "2,a,44,001,000100,1000\n"
    place = folder(tmp_path, units, geo, "3,a,SECRET,1,01,20\n3,a,40,1,01,38\n")
    with pytest.raises(DataError) as told:
        read(place).check()
    assert "SECRET" not in str(told.value)
    assert "person" in str(told.value)


def test_a_file_or_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path, "", "", "")
    (place / "geo.csv").unlink()
    with pytest.raises(InputError, match=r"geo\.csv"):
        read(place)
    (place / "geo.csv").write_text("RTYPE,MAFID\n")
    with pytest.raises(DataError, match="TABBLKST"):
        read(place)
