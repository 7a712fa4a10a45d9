"""What an operator of a standalone cluster sees: two workers, the command line, and faults that are really caused."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from slow.kills.cluster import StandaloneCluster
from stirred.census.synthetic import write_preset

pytestmark = [pytest.mark.slow, pytest.mark.spark("own")]

SWAP = ("--match", "state", "tenure", "--swap", "county", "tract", "block", "--rate", "1/20")
REASON = "the machines of this test share a loopback of their own"


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operator") / "census"
    write_preset("demo", folder, households=400)
    return folder


@contextmanager
def started(
    home: Path, *, closed: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(home, closed=closed, settings=settings) as cluster:
        yield cluster


def swap(cluster: StandaloneCluster, census: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run ``stirred swap`` on the cluster, as a process of its own."""
    scratch = out.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    words = ["swap", str(census), *SWAP, "--engine", "spark", "--master", cluster.master]
    words += ["--scratch", str(scratch), "--out", str(out), *more]
    return subprocess.run(
        [sys.executable, "-m", "stirred", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **cluster.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_an_open_network_is_refused_or_stands_in_the_receipt(census: Path, tmp_path: Path) -> None:
    with started(tmp_path / "spark", closed=False) as cluster:
        refused = swap(cluster, census, tmp_path / "refused")
        assert refused.returncode == 2, refused.stderr
        assert "the network of this cluster is open" in refused.stderr
        assert "spark.authenticate and spark.network.crypto.enabled are not true" in refused.stderr
        assert not (tmp_path / "refused").exists()
        assert not (tmp_path / "refused.key").exists()
        done = swap(cluster, census, tmp_path / "packet", "--accept-open-network", REASON)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((tmp_path / "packet" / "public" / "receipt.json").read_text())
    assert receipt["open_network_accepted"] == REASON


def test_a_closed_cluster_needs_no_reason_and_gives_the_same_contents(census: Path, tmp_path: Path) -> None:
    with started(tmp_path / "spark") as cluster:
        done = swap(cluster, census, tmp_path / "packet", "--accept-open-network", REASON)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((tmp_path / "packet" / "public" / "receipt.json").read_text())
    assert "open_network_accepted" not in receipt  # what was not needed is not told
    words = [
        "swap",
        str(census),
        *SWAP,
        "--key",
        str(tmp_path / "packet.key"),
        "--out",
        str(tmp_path / "here"),
    ]
    subprocess.run([sys.executable, "-m", "stirred", *words], check=True, capture_output=True)
    same = subprocess.run(
        [
            sys.executable,
            "-m",
            "stirred",
            "packet",
            "contents",
            str(tmp_path / "here"),
            str(tmp_path / "packet"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert same.returncode == 0, same.stdout + same.stderr


def of_another_version(folder: Path) -> Path:
    """A folder whose metadata say that stirred is older; its code is ours."""
    about = folder / "stirred-0.0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stirred\nVersion: 0.0.1\n")
    return folder


def without_stirred(folder: Path) -> Path:
    """A folder with a stirred that cannot be imported."""
    folder.mkdir(parents=True)
    (folder / "stirred.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'stirred'\", name='stirred')\n"
    )
    return folder


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (of_another_version, ("different versions", "0.0.1 on ")),
        (without_stirred, ("different versions", "not to be loaded (ModuleNotFoundError)")),
    ],
)
def test_executors_that_differ_are_named_before_a_record_is_read(
    census: Path, tmp_path: Path, make: object, told: tuple[str, str]
) -> None:
    assert callable(make)
    path = make(tmp_path / "other")
    settings = {"spark.executorEnv.PYTHONPATH": os.pathsep.join([str(path), *filter(None, sys.path)])}
    with started(tmp_path / "spark", settings=settings) as cluster:
        done = swap(cluster, census, tmp_path / "packet")
    assert done.returncode != 0
    assert all(words in done.stderr for words in told), done.stderr
    assert "stirred" in done.stderr.partition("why:")[2]
    assert not (tmp_path / "packet").exists()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"spark.driver.maxResultSize": "1k"}, "the results of a step are too large for the driver"),
    ],
    ids=["small maxResultSize"],
)
def test_a_fault_of_memory_has_its_own_message(
    census: Path, tmp_path: Path, settings: dict[str, str], told: str
) -> None:
    with started(tmp_path / "spark", settings=settings) as cluster:
        done = swap(cluster, census, tmp_path / "packet")
    assert done.returncode != 0
    assert told in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
