"""A folder ``OUT.part`` that no run of ours made is refused and left as it is, whichever verb would write there."""

import getpass
import os
import stat
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import stirred as st
from modes import open_to_others
from small_census import CENSUS, households
from stirred.cli.main import main
from stirred.errors import InputError, PrivacyError, StirredError
from stirred.publish import load, run
from stirred.publish.assessment import publish_accuracy, write_assessments
from stirred.publish.run.part import MARK, PartFolder, write_whole

KEY = st.Key.for_tests(3)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "gaussian-tables"
record = "household"
tables = [["county", "tenure"]]
rho_squared = "1/2"
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    folder = tmp_path / "town"
    folder.mkdir()
    (folder / "census.toml").write_text(CENSUS)
    (folder / "household.csv").write_text(households(40))
    (folder / "plan.toml").write_text(PLAN)
    return folder


def ran(town: Path) -> object:
    return run(load(town / "plan.toml"), town / "out", key=KEY)


def saved(town: Path) -> object:
    mechanism = load(town / "plan.toml").mechanisms[0]
    return st.save(mechanism.release(st.read(town / "census.toml"), key=KEY), town / "out")


def assessed(town: Path) -> object:
    return write_assessments([], town / "out", private=False)


def published(town: Path) -> object:
    swap = st.PermutationSwapping(match=["state"], swap=["county"], rate="1/3")
    census = st.read(town / "census.toml")
    packet = st.save(swap.release(census, key=KEY), town / "packet")
    return publish_accuracy(packet, census, town / "out", epsilon=Fraction(1), key=KEY)


VERBS: dict[str, Callable[[Path], object]] = {
    "run": ran,
    "save": saved,
    "assess": assessed,
    "accuracy": published,
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_link_leads_to_is_not_emptied(verb: str, town: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "public").mkdir(parents=True)
    (victim / "public" / "thesis.txt").write_text("ten years of work")
    (victim / "notes.txt").write_text("more")
    before = contents(victim)
    (town / "out.part").symlink_to(victim, target_is_directory=True)
    with pytest.raises(InputError, match="is a link"):
        VERBS[verb](town)
    assert contents(victim) == before
    assert (town / "out.part").is_symlink()
    assert not (town / "out").exists()


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_of_somebody_else_is_not_emptied(verb: str, town: Path) -> None:
    other = town / "out.part"
    (other / "public" / "data").mkdir(parents=True)
    (other / "public" / "thesis.txt").write_text("ten years of work")
    (other / "state").mkdir()
    before = contents(other)
    with pytest.raises(PrivacyError, match=f"belongs to user {getpass.getuser()}"):
        VERBS[verb](town)
    assert contents(other) == before
    assert not (town / "out").exists()


def test_the_command_refuses_it_before_it_makes_a_key(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (town / "out.part").mkdir()
    (town / "out.part" / "thesis.txt").write_text("ten years of work")
    assert main(["run", str(town / "plan.toml"), "--out", str(town / "out")]) == 2
    assert "is not a folder of an interrupted run" in capsys.readouterr().err
    assert not (town / "out.key").exists()
    assert (town / "out.part" / "thesis.txt").exists()


def test_an_empty_folder_holds_nothing_that_could_be_lost(town: Path) -> None:
    (town / "out.part").mkdir(mode=0o755)
    ran(town)
    assert not (town / "out.part").exists()


def test_a_mark_that_was_left_alone_does_not_stop_another_run(town: Path) -> None:
    """A process that is killed when its packet has its name leaves the folder with its mark."""
    (town / "out.part").mkdir()
    (town / "out.part" / MARK).write_text("of a run that is complete")
    ran(town)
    assert not (town / "out.part").exists()
    (town / "out.part").mkdir()
    (town / "out.part" / MARK).write_text("of a run that is complete")
    with pytest.raises(InputError, match="exists already"):
        ran(town)
    assert not (town / "out.part").exists()


def test_a_result_is_whole_or_not_there(town: Path) -> None:
    def stopped() -> None:
        with write_whole(town / "out", "test", closed=True) as folder:
            (folder / "half").write_text("x")
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not (town / "out").exists()
    assert not PartFolder(town / "out").path.exists()


def test_a_folder_of_another_user_is_not_written_to(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (town / "out.part").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InputError, match="belongs to user"):
        assessed(town)


@pytest.fixture
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_mask")
def test_all_that_is_computed_from_the_truth_is_closed(town: Path) -> None:
    """In every verb that writes; the family of the frontier is looked at where it is made."""
    census, plan, key = str(town / "census.toml"), str(town / "plan.toml"), str(town / "k")
    KEY.save(town / "k")
    packet = str(town / "packet")
    words = ["permutation-swapping", census, "--match", "state", "--swap", "county", "--rate", "1/3"]
    truth = ["--truth", census, "--only", "utility", "universe"]
    for command in (
        [*words, "--out", packet, "--key", key],
        ["run", plan, "--out", str(town / "tables"), "--key", key],
        ["assess", packet, *truth, "--out", str(town / "assessed")],
        ["assess", packet, *truth[:2], "--out", str(town / "metrics.csv")],
        ["assess", packet, *truth[:2], "--out", str(town / "metrics.xlsx")],
        [
            "plan",
            "rehearse",
            plan,
            "--stand-in",
            census,
            "--on-confidential-data",
            "--runs",
            "2",
            "--out",
            str(town / "rehearsed.csv"),
        ],
        ["plan", "record", plan, "--out", str(town / "record.md")],
        ["data", "describe", str(town / "household.csv"), "--out", str(town / "described.toml")],
    ):
        assert main(command) == 0, command
    made = ["assessed", "metrics.csv", "metrics.xlsx", "rehearsed.csv", "record.md", "described.toml"]
    made += ["packet.log", "tables.log", "tables/internal"]
    for name in made:
        assert (town / name).exists(), name
        assert open_to_others(town / name) == [], name
    assert stat.S_IMODE((town / "packet" / "public").stat().st_mode) == 0o755
    assert stat.S_IMODE((town / "packet").stat().st_mode) == 0o755


@pytest.mark.parametrize("kind", ["link", "pipe", "second name"])
def test_a_log_is_a_plain_file_of_its_own(kind: str, town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, victim = town / "out.log", town / "victim"
    victim.write_text("kept\n")
    if kind == "link":
        log.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(log)
    else:
        log.hardlink_to(victim)
    assert main(["run", str(town / "plan.toml"), "--out", str(town / "out")]) == 2
    assert "out.log cannot be written" in capsys.readouterr().err
    assert victim.read_text() == "kept\n"
    assert not (town / "out.key").exists()


@pytest.mark.parametrize("name", ["k", "plan.toml", "census.toml", "household.csv"])
def test_a_pipe_in_place_of_a_file_does_not_block(name: str, town: Path) -> None:
    KEY.save(town / "k")
    (town / name).unlink()
    os.mkfifo(town / name, 0o600)
    words = ["run", str(town / "plan.toml"), "--out", str(town / "out"), "--key", str(town / "k")]
    assert main(words) == 2
    assert not (town / "out").exists()
    with pytest.raises(StirredError):
        st.Key.load(town / "k") if name == "k" else ran(town)
