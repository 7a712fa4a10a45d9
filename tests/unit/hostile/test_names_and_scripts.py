"""Names of a schema, a plan or a table never leave their folder, and the text of a plan never becomes code."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from small_census import CENSUS, households
from stirred._support import is_file_name, make_file_name, make_file_names, path_in
from stirred.census import Census, read
from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import PlanError, SchemaError, StirredError
from stirred.mechanisms.swap import PermutationSwapping
from stirred.publish import parse, run, save

EVIL = (
    "../../../../evil",
    "..",
    "/evil",
    "a/b",
    "a\\b",
    "evil\x00",
    "-rf",
    "",
    "a" * 300,
    "con:stream",
    "e\u0301",
)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county"]
rate = "1/3"
[assess]
utility = false
"""


def town(folder: Path) -> Path:
    (folder / "census.toml").write_text(CENSUS)
    (folder / "household.csv").write_text(households(40))
    return folder


@pytest.mark.parametrize("name", EVIL)
def test_a_record_type_that_is_no_file_name_is_refused(name: str, tmp_path: Path) -> None:
    document = {"record": {name: {"id": "h"}}}
    with pytest.raises(SchemaError):
        Census.of(document, {name: {"h": [1, 2], "county": ["a", "b"]}})
    with pytest.raises(StirredError, match="file name"):
        path_in(tmp_path, name, ".parquet")


@pytest.mark.parametrize("name", EVIL)
def test_a_table_of_a_plan_that_is_no_file_name_is_refused(name: str) -> None:
    text = PLAN + f"[[table]]\nname = {name!a}\nby = ['county']\n".replace("\\x00", "\\u0000")
    with pytest.raises(PlanError):
        parse(text.replace("'", '"'), folder=Path())


def test_a_release_made_in_python_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    census = read(town(tmp_path))
    release = PermutationSwapping(match=["state"], swap=["county"], rate="1/3").release(
        census, key=Key.for_tests(1)
    )
    before = sorted(tmp_path.rglob("*"))
    hostile = {"../../evil": release.microdata["household"]}
    object.__setattr__(release, "microdata", hostile)
    with pytest.raises(StirredError):
        save(release, tmp_path / "packet")
    assert sorted(tmp_path.rglob("*")) == before


def test_columns_with_path_names_stay_in_the_packet(tmp_path: Path) -> None:
    """A table that the mechanism names after a column gets a harmless file name."""
    frame = {"household_id": list(range(40)), "county": [1, 2] * 20, "../../x": [1, 2, 3, 4] * 10}
    census = Census.of({"record": {"household": {"id": "household_id"}}}, {"household": frame})
    swap = PermutationSwapping(swap=["county"], rate="1/3", tables=[["county", "../../x"]])
    (tmp_path / "inside").mkdir()
    packet = save(swap.release(census, key=Key.for_tests(1)), tmp_path / "inside" / "packet")
    assert {path.name for path in tmp_path.iterdir()} == {"inside"}
    assert (packet.public / "tables" / "county-x.parquet").exists()


@given(some.text(max_size=300))
def test_any_text_becomes_a_file_name(text: str) -> None:
    assert is_file_name(make_file_name(text).strip("-") or "table")
    assert "/" not in make_file_name(text)


@given(some.lists(some.text("aA- ×/", max_size=5), unique=True, max_size=12))
def test_different_texts_get_different_files(texts: list[str]) -> None:
    found = make_file_names(texts)
    assert len({name.casefold() for name in found.values()}) == len(texts)


@pytest.mark.parametrize(
    "comment",
    [
        "'''\nimport pathlib; pathlib.Path(\"pwned\").touch()\n'''",
        '\\\'\'\'; __import__("pathlib").Path("pwned").touch() #',
        "{plan} {__import__}",
    ],
)
def test_a_comment_in_a_plan_never_becomes_code(
    comment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town(tmp_path)
    text = "".join(f"# {line}\n" for line in comment.split("\n")) + PLAN
    Key.for_tests(1).save(tmp_path / "test.key")
    packet = run(parse(text, folder=tmp_path), tmp_path / "packet", key=Key.for_tests(1))
    script = (packet.public / "redo.py").read_text()
    assert comment.split("\n")[0] not in script
    monkeypatch.chdir(tmp_path)
    compile(script, "redo.py", "exec")
    exec(script, {"__name__": "read", "__file__": str(packet.public / "redo.py")})
    assert not (tmp_path / "pwned").exists()


def test_the_command_names_the_record_type_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town(tmp_path)
    (tmp_path / "census.toml").write_text(CENSUS.replace("record.household", 'record."../../../evil"'))
    before = sorted(tmp_path.rglob("*"))
    words = ["swap", str(tmp_path), "--swap", "county", "--rate", "1/3", "--out", str(tmp_path / "packet")]
    assert main(words) != 0
    assert "name of a file" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
