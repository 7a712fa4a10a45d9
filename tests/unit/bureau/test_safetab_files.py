"""Folders in SafeTab's formats: what they mean, and one clear error for each thing that can be wrong."""

from pathlib import Path

import pytest

import stirred as st
from shared_data import shared
from stirred.census import check
from stirred.census.geography import read_ancestors, read_crosswalk
from stirred.cli.main import main
from stirred.errors import StirredError
from stirred.publish import parse
from stirred.publish.run.inputs import input_files, input_identity

AREAS = """TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|AIANNHCE
01|001|000001|0001|22800|0001
01|001|000001|1002|99999|9999
02|003|000002|0001|22800|0001
"""
CODES = "|".join([*(f"QRACE{place}" for place in range(1, 9)), "QSPAN"])
PERSONS = f"""QAGE|QSEX|HOUSEHOLDER|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|CENRACE|{CODES}
028|1|True|01|001|000001|0001|01|1000|Null|Null|Null|Null|Null|Null|Null|1010
115|2|False|02|003|000002|0001|63|1012|1021|Null|Null|Null|Null|Null|Null|2020
"""
HOUSEHOLDS = f"""TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|HHRACE|{CODES}|HOUSEHOLD_TYPE|TEN
01|001|000001|1002|09|1011|1012|Null|Null|Null|Null|Null|Null|1010|5|3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("GRF-C.txt", AREAS), ("person-records.txt", PERSONS), ("household-records.txt", HOUSEHOLDS)
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_is_a_census(folder: Path) -> None:
    census = st.read(folder)
    assert census.schema.record_types == ("household", "person")
    assert not check(folder)
    names = [
        "state",
        "county",
        "tract",
        "block_group",
        "block",
        "place",
        "aiannh",
        "age",
        "race_code_1",
        "race_code_2",
    ]
    assert census.table("person", [*names, "ethnicity_code"]).to_pylist() == [
        dict(zip([*names, "ethnicity_code"], row, strict=True))
        for row in (
            ("01", "01001", "01001000001", "010010000010", "010010000010001", "0122800", "0001", 28, 1000, None, 1010),
            ("02", "02003", "02003000002", "020030000020", "020030000020001", "0222800", "0001", 115, 1012, 1021, 2020),
        )
    ]  # fmt: skip
    assert census.table("household", ["block_group", "place", "type", "tenure", "race"]).to_pylist() == [
        {"block_group": "010010000011", "place": None, "type": 5, "tenure": 3, "race": 9}
    ]


def test_the_public_areas_are_those_of_the_list(folder: Path) -> None:
    census = st.read(folder)
    blocks = read_ancestors(census.schema, folder).collect()
    assert sorted(blocks["county"]) == ["01001", "01001", "02003"]
    assert blocks["block"].str.len_chars().unique().to_list() == [15]
    places = read_crosswalk(census.schema, "place", folder).collect()["place"].drop_nulls().unique()
    assert sorted(places) == ["0122800", "0222800"]


def test_one_kind_of_records_is_enough(folder: Path) -> None:
    (folder / "household-records.txt").unlink()
    assert st.read(folder).schema.record_types == ("person",)
    assert st.read(folder / "census.toml").schema.record_types == ("person",)


def test_the_identity_covers_every_file(folder: Path) -> None:
    key = st.Key.for_tests(1)
    census = st.read(folder)
    assert {path.name for _, path in input_files(census)} == {
        "GRF-C.txt", "person-records.txt", "household-records.txt"
    }  # fmt: skip
    before = input_identity(census, key)
    (folder / "GRF-C.txt").write_text(AREAS + "02|003|000002|0002|99999|9999\n")
    assert input_identity(st.read(folder), key) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.rstrip("\n").encode(),
        lambda text: text.replace("QAGE|QSEX", "QAGE|É|QSEX").replace("8|1|", "8|é|1|").replace("5|2|", "5|é|2|").encode(),
    ],
    ids=["windows", "bom", "no last line feed", "another column"],
)  # fmt: skip
def test_files_of_other_systems_are_read_alike(folder: Path, change) -> None:
    before = st.read(folder).table("person", ["block", "sex", "race_code_8", "ethnicity_code"])
    (folder / "person-records.txt").write_bytes(change(PERSONS))
    assert st.read(folder).check().table("person", before.column_names).equals(before)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("GRF-C.txt", None, "the folder lacks GRF-C.txt"),
        ("person-records.txt", "", "person-records.txt is empty"),
        ("person-records.txt", PERSONS.split("\n", 1)[1], "the first line of person-records.txt names none"),
        ("person-records.txt", PERSONS.replace("QSPAN", "QSPAM"), "person-records.txt lacks QSPAN"),
        ("person-records.txt", PERSONS.replace("|", ","), "names none of its columns"),
        ("person-records.txt", PERSONS.replace("CENRACE", "QSEX"), "lacks CENRACE"),
        ("person-records.txt", PERSONS.encode("utf-16"), "is not a text file"),
        ("GRF-C.txt", AREAS.replace("|PLACEFP", ""), "GRF-C.txt lacks PLACEFP"),
        ("household-records.txt", HOUSEHOLDS.replace("TEN", "TENURE"), "household-records.txt lacks TEN"),
    ],
)
def test_a_wrong_folder_gives_one_clear_error(folder: Path, file: str, text, said: str) -> None:
    path = folder / file
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StirredError) as error:
        st.read(folder)
    assert said in str(error.value)
    assert "1012" not in str(error.value)
    assert error.value.fix


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("028|1", "128|1", "age: values outside the listed levels (1 record)"),
        ("028|1", "abc|1", "person.age: "),
        ("028|1", "028|7", "sex: values outside the listed levels (1 record)"),
        ("|63|", "|64|", "race: values outside the listed levels (1 record)"),
        ("|1012|", "|Wht|", "race_code_1: "),
        ("02|003|000002|0001", "02|003|000002|0009", "codes that the file of areas does not know (1 area)"),
        ("02|003|000002|0001", "2|3|2|1", "codes that the file of areas does not know (1 area)"),
        ("|2020", "|20é0", "ethnicity_code: "),
        ("|2020", "|2020|1", "person"),
    ],
)
def test_wrong_values_are_counted_and_never_shown(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "person-records.txt").write_text(PERSONS.replace(old, new, 1))
    with pytest.raises(StirredError) as error:
        st.read(folder).check()
    assert said in str(error.value)
    assert new not in str(error.value)


def test_latin1_bytes_are_refused_and_not_shown(folder: Path) -> None:
    (folder / "person-records.txt").write_bytes(PERSONS.replace("|2020", "|20é0").encode("latin-1"))
    with pytest.raises(StirredError) as error:
        st.read(folder).check()
    assert "é" not in str(error.value)
    assert error.value.fix


def test_an_area_list_that_lost_its_zeros_is_refused(folder: Path) -> None:
    (folder / "GRF-C.txt").write_text(AREAS.replace("02|003|000002|0001", "2|3|2|1"))
    with pytest.raises(StirredError, match="areas without a code"):
        st.read(folder).check()


def test_a_block_in_two_places_is_refused(folder: Path) -> None:
    (folder / "GRF-C.txt").write_text(AREAS + "01|001|000001|0001|22801|0001\n")
    with pytest.raises(StirredError, match="its file puts in two areas"):
        st.read(folder).check()


def test_files_without_records_are_a_census_without_records(folder: Path) -> None:
    (folder / "person-records.txt").write_text(PERSONS.split("\n", 1)[0] + "\n")
    assert st.read(folder).check().count("person") == 0


def test_commands_and_plans_take_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["exact-margins", str(folder), "--rows", "state", "--columns", "tenure", "--rho-squared", "1/2"]
    assert main([*words, "--check", "--json"]) == 0
    assert "bureau" in capsys.readouterr().out
    assert main(["data", "check", str(folder)]) == 0
    mechanism = (
        '[[mechanism]]\nname = "exact-margins"\nrows = "state"\ncolumns = "tenure"\nrho_squared = "1/2"\n'
    )
    plan = parse(f'title = "t"\ncensus = "{folder.name}"\n{mechanism}', folder=folder.parent)
    assert plan.checked_census().count("household") == 1


@pytest.mark.slow  # it reads the shared data
def test_the_program_s_own_example() -> None:
    for name, records in (("p_toy", 10), ("h_toy", 6)):
        census = st.read(shared("safetab", name))
        assert census.count(census.schema.record_types[0]) == records
    dropped = census.check(invalid="drop")  # one of its households lies in a state that GRF-C does not list
    assert dropped.count("household") == 5
