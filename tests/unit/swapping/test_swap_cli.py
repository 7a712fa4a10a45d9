"""The command ``stirred swap``: a packet at once or none, refusals, one JSON document."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.chance import Key
from stirred.cli.main import main

TOML = """
name = "toy"
[geography]
spine = ["state", "county"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.person]
files = ["person.parquet"]
household = "hid"
of = "household"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    n = 500
    size = rng.integers(1, 4, n)
    county = rng.integers(0, 6, n)
    homes = {
        "hid": np.arange(n),
        "state": county // 3,
        "county": county,
        "size": size,
        "tenure": rng.integers(0, 2, n),
    }
    pq.write_table(pa.table(homes), tmp_path / "household.parquet")
    people = {"hid": np.repeat(np.arange(n), size), "age": rng.integers(0, 90, size.sum())}
    pq.write_table(pa.table(people), tmp_path / "person.parquet")
    (tmp_path / "census.toml").write_text(TOML)
    Key.for_tests(1).save(tmp_path / "test.key")
    return tmp_path


def call(folder: Path, *more: str, out: str = "packet") -> int:
    words = [
        "swap",
        str(folder / "census.toml"),
        "--match",
        "state",
        "size",
        "--swap",
        "county",
        "--rate",
        "1/5",
    ]
    return main([*words, "--out", str(folder / out), "--key", str(folder / "test.key"), *more])


def test_a_packet_is_written_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--table", "county", "tenure", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["private"] is False
    packet = folder / "packet"
    names = {str(path.relative_to(packet)) for path in packet.rglob("*") if path.is_file()}
    assert names >= {
        "public/data/household.parquet",
        "public/data/person.parquet",
        "public/tables/county-tenure.parquet",
        "public/spec.json",
        "public/card.html",
        "public/receipt.json",
    }
    assert main(["packet", "verify", str(packet)]) == 0
    receipt = json.loads((packet / "public" / "receipt.json").read_text())["mechanisms"][0]
    assert all(check["kept"] for check in receipt["invariants"])
    assert receipt["parameters"]["rate"] == "1/5"
    assert not (folder / "packet.part").exists()
    assert not (folder / "packet.work").exists()
    assert pq.read_table(packet / "public" / "data" / "household.parquet").num_rows == 500


def test_the_same_key_gives_the_same_bytes(folder: Path) -> None:
    for out in ("one", "two"):
        assert call(folder, out=out) == 0
    files = [path.relative_to(folder / "one") for path in (folder / "one").rglob("*") if path.is_file()]
    assert files
    assert all((folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes() for name in files)


@pytest.mark.parametrize("rate", ["0", "1", "2", "x"])
def test_refusals_leave_nothing_behind(folder: Path, rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--rate", rate) == 2
    assert "error:" in capsys.readouterr().err
    assert not (folder / "packet").exists()
    assert not (folder / "packet.part").exists()


def test_a_packet_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder) == 0
    assert call(folder) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_promise_can_be_read_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--check", "--json") == 0
    assert "d_Ham(household)" in json.loads(capsys.readouterr().out)["specification"]
    assert call(folder, "--check") == 0
    assert "household" in capsys.readouterr().out
    assert not (folder / "packet").exists()
