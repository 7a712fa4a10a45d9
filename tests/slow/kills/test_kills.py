"""Kills at random instants: what is taken up is what an undisturbed run makes, and nothing readable is left."""

from pathlib import Path

import pytest

from slow.kills.__main__ import kill, kill_on_spark
from slow.kills.harness import Trial
from slow.kills.jobs import BUREAU, DAS2020, LOCAL, SPARK, Job

pytestmark = pytest.mark.slow


def sound(trials: list[Trial], jobs: tuple[Job, ...], number: int) -> None:
    kills = [found for trial in trials for found in trial.kills]
    assert len(kills) == number
    assert {found.job for found in kills} == {job.name for job in jobs}
    assert not [found for found in kills if found.faults]
    assert all(trial.compared for trial in trials)


def test_killed_runs_end_as_undisturbed_ones(tmp_path: Path) -> None:
    sound(kill(LOCAL, tmp_path / "kills", kills=24, seed=1), LOCAL, 24)


def test_killed_products_of_the_bureau_end_as_undisturbed_ones(tmp_path: Path) -> None:
    sound(kill(BUREAU, tmp_path / "kills", kills=20, seed=3), BUREAU, 20)


def test_killed_das2020_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    sound(kill(DAS2020, tmp_path / "kills", kills=4, seed=5, households=120), DAS2020, 4)


@pytest.mark.spark("own")
@pytest.mark.usefixtures("no_spark")
def test_a_cluster_that_loses_drivers_and_workers(tmp_path: Path) -> None:
    sound(kill_on_spark(tmp_path / "kills", kills=6, seed=2), SPARK, 6)


def test_what_the_harness_would_notice(tmp_path: Path) -> None:
    """A record in plain text, an open folder and a readable scratch are found."""
    from slow.kills.left import faults

    out, scratch = tmp_path / "packet", tmp_path / "scratch"
    part = tmp_path / "packet.part"
    (part / "state").mkdir(parents=True)
    part.chmod(0o755)
    (part / "rows.csv").write_text("ZQ7391-000001,c1\n")
    scratch.mkdir()
    (scratch / "0-0.sealed").write_bytes(bytes(10_000))
    (scratch / "0-0.sealed").chmod(0o600)
    assert sorted(faults(tmp_path, out, scratch)) == [
        "0-0.sealed in scratch is no noise",
        "packet.part has mode 755",
        "rows.csv shows an identifier",
    ]
