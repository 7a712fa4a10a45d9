"""Faulty files through every door: one message without a value of a record, a documented exit code, and nothing left."""

import re
from pathlib import Path

import pytest

import stirred as st
from faulty.doors import DOORS, Desk, Outcome
from faulty.faults import FAULTS, SLOW, Fault
from faulty.sound import MARK, NOTE, Files
from faulty.table import PAGE, checked

LINES = PAGE.read_text(encoding="utf-8").splitlines()
RENEW = "write the page anew: PYTHONPATH=src:tests python -m faulty.table"
SHOWN = ("swap", "run", "read")
RELEASES = [door for door in DOORS if door != "data check"]


def is_quick(fault: Fault, place: int, door: str) -> bool:
    """Whether every run of the tests sends this fault through this door: the check, and one release in turn."""
    doors = [name for name in RELEASES if fault.tables or name != "Census.of"]
    return not fault.slow and door in ("data check", doors[place % len(doors)])


CASES = [
    pytest.param(
        fault,
        door,
        id=f"{fault.id}:{door}",
        marks=[] if is_quick(fault, place, door) else [pytest.mark.slow],
    )
    for place, fault in enumerate((*FAULTS, SLOW))
    for door in DOORS
    if fault.tables or door != "Census.of"
]


def desk(folder: Path, fault: Fault | None, *, key: Path | None = None) -> Desk:
    for name in ("office", "out"):
        (folder / name).mkdir()
    files = Files.sound(folder / "office")
    if fault is not None:
        fault.damage(files)
    return Desk(files, folder / "out", key)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "test.key"
    st.Key.for_tests(1).save(path)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, key: Path) -> dict[str, Outcome]:
    """What every door gives for the census without a fault."""
    return {door: desk(tmp_path_factory.mktemp("sound"), None, key=key).tried(door) for door in DOORS}


def test_the_sound_census_passes_every_door(sound: dict[str, Outcome]) -> None:
    for door, outcome in sound.items():
        assert outcome.code == 0, (door, outcome.said)
        assert bool(outcome.contents) == (door != "data check")


@pytest.mark.parametrize(("fault", "door"), CASES)
def test_a_fault_is_told_without_a_value_and_leaves_nothing(
    fault: Fault, door: str, tmp_path: Path, key: Path, request: pytest.FixtureRequest
) -> None:
    """Quick: every fault through ``data check`` and through one release, so that every door meets a dozen faults."""
    place = desk(tmp_path, fault, key=key if fault.right else None)
    outcome = place.tried(door)
    said = outcome.said.replace(str(tmp_path), "")
    if fault.right:
        assert outcome.code == 0, said
        assert outcome.contents == request.getfixturevalue("sound")[door].contents
        require_unseen(NOTE, said, tmp_path / "out")
        require_row(fault, door, outcome, place)
        return
    if not fault.slow:
        require_row(fault, door, outcome, place)
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert MARK not in said
    assert not outcome.left
    if door == "data check" and outcome.code == 1:
        assert "rule" in said
        return
    assert outcome.code == 2, said
    # A check that takes long says how far it is, on any machine that is slow enough.
    assert re.sub(r"\A( +[\d.]+ s  check( \d+%(, about [^\n]+ left)?)?\n)+", "", said).startswith("error: ")
    assert "\n  why: " in said
    assert "\n  fix: " in said


def require_row(fault: Fault, door: str, outcome: Outcome, place: Desk) -> None:
    """The page of the reference says what was said."""
    told = next(line for line in LINES if line.startswith(f"| {fault.name} |")).strip("| \n").split(" | ")
    if door == "data check":
        assert told[1:3] == [checked(place.files), str(outcome.code)], RENEW
    else:
        assert told[4] == str(outcome.code), RENEW
        assert fault.right or door not in SHOWN or told[3] == outcome.first, RENEW


def test_the_page_has_every_fault_and_no_other() -> None:
    names = [line.split(" | ")[0].removeprefix("| ") for line in LINES if line.startswith("| ")]
    assert [name for name in names if name not in ("fault", "---")] == [fault.name for fault in FAULTS]
    assert len(FAULTS) >= 40


def require_unseen(mark: str, said: str, folder: Path) -> None:
    """A mark stands in no message and in no file."""
    assert mark not in said
    for path in folder.rglob("*"):
        assert mark not in path.name
        assert not path.is_file() or mark.encode() not in path.read_bytes()
