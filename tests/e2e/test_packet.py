"""From plan to packet with the real command: sealed, resumable, public parts that know nothing of the truth."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import PLAN, STIRRED, write_census

Command = Callable[..., subprocess.CompletedProcess[str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_packet_verifies_and_one_flipped_byte_is_named(
    packet: Path, command: Command, tmp_path: Path
) -> None:
    assert command("packet", "verify", packet).returncode == 0
    copy = tmp_path / "copy"
    shutil.copytree(packet, copy)
    target = copy / "public" / "tables" / "tenure-by-county.parquet"
    data = bytearray(target.read_bytes())
    data[len(data) // 2] ^= 1
    target.write_bytes(data)
    done = command("packet", "verify", copy)
    assert done.returncode == 1
    assert "changed: public/tables/tenure-by-county.parquet" in done.stderr


def test_a_copy_with_the_internal_part_is_not_public(packet: Path, called: Command, tmp_path: Path) -> None:
    done = called("packet", "verify", packet, "--public")
    assert done.returncode == 2
    assert "internal part" in done.stderr
    shutil.copytree(packet / "public", tmp_path / "copy")
    assert called("packet", "verify", tmp_path / "copy", "--public").returncode == 0


def test_an_interrupted_run_resumes_to_the_same_bytes(packet: Path, town: Path, called: Command) -> None:
    """SIGKILL when a run is swapping and when it has its tables; then one run to the end (tests/slow/kills has the rest)."""
    out, key = town / "resumed", town / "town.key"
    part = town / "resumed.part"
    words = [str(STIRRED), "run", str(town / "plan.toml"), "--out", str(out), "--key", str(key)]
    marks = ("state/data.work", "public/tables/*.parquet")
    killed = 0
    for mark in marks:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not list(part.glob(mark)):
            time.sleep(0.001)  # leaves the processor to the run
        if process.poll() is not None:  # it was quicker than this test
            shutil.rmtree(out)
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        if out.exists():  # it finished in between
            shutil.rmtree(out)
            continue
        killed += 1
    assert killed
    assert called(*words[1:]).returncode == 0
    assert contents(out / "public") == contents(packet / "public")
    assert contents(out / "internal") == contents(packet / "internal")
    assert not (town / "resumed.part").exists()


def test_public_bytes_do_not_know_what_was_not_released(
    packet: Path, town: Path, called: Command, tmp_path: Path
) -> None:
    """A marker in a column the plan does not release appears nowhere, and changes no public byte."""
    marker = "ZQXJ7731"
    write_census(tmp_path, extra=marker)
    (tmp_path / "plan.toml").write_text(PLAN)
    done = called("run", tmp_path / "plan.toml", "--out", tmp_path / "packet", "--key", town / "town.key")
    assert done.returncode == 0, done.stderr
    public = contents(tmp_path / "packet" / "public")
    assert not [name for name, data in public.items() if marker.encode() in data]
    assert public == contents(packet / "public")


def test_the_script_makes_the_packet_again(packet: Path, town: Path, tmp_path: Path) -> None:
    for name in ("redo.py", "plan.toml"):
        shutil.copy(packet / "public" / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "redo.py", str(town), str(town / "town.key"), "again"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "again" / "public") == contents(packet / "public")


def test_the_key_is_nowhere_in_the_packet(packet: Path, town: Path) -> None:
    secret = (town / "town.key").read_text().split()[-1]
    raw = bytes.fromhex(secret)
    for name, data in contents(packet).items():
        assert secret.encode() not in data, name
        assert raw not in data, name


def test_look_up_says_the_number_and_its_interval(packet: Path, called: Command) -> None:
    found = called("lookup", packet, "--where", "county=c1", "tenure=owned", "--json")
    cell = json.loads(found.stdout)
    assert cell["low"] <= cell["estimate"] <= cell["high"]
    exact = called("lookup", packet, "--where", "block=c1b3")
    assert "exact" in exact.stdout
    wrong = called("lookup", packet, "--where", "county=c9", "tenure=owned")
    assert wrong.returncode == 2
    assert "did you mean" in wrong.stderr


def test_plan_check_explains_and_writes_nothing(town: Path, packet: Path, called: Command) -> None:
    before = sorted(p.name for p in town.iterdir())
    done = called("plan", "check", town / "plan.toml", "--json")
    document = json.loads(done.stdout)
    assert document["budget"] > 0
    assert document["invariants"]
    assert sorted(p.name for p in town.iterdir()) == before


def test_accuracy_has_a_price(packet: Path, town: Path, called: Command, tmp_path: Path) -> None:
    done = called(
        "assess",
        packet,
        "--truth",
        town / "census.toml",
        "--publish",
        "--epsilon",
        "1/10",
        "--out",
        tmp_path / "a",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    before = json.loads(called("plan", "check", town / "plan.toml", "--json").stdout)["budget"]
    assert document["budget"] == pytest.approx(before + 3 / 10, abs=2e-6)
    internal = called("assess", packet, "--truth", town / "census.toml", "--out", tmp_path / "m.xlsx")
    assert internal.returncode == 0, internal.stderr
    assert (tmp_path / "m.xlsx").stat().st_size > 2000


def test_a_test_key_says_not_private_on_every_page(town: Path, called: Command, tmp_path: Path) -> None:
    from stirred.chance import Key

    Key.for_tests(1).save(tmp_path / "test.key")
    done = called("run", town / "plan.toml", "--out", tmp_path / "p", "--key", tmp_path / "test.key")
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "p").rglob("*.html"):
        assert "NOT PRIVATE" in page.read_text(), page.name
    assert "NOT PRIVATE" in called("lookup", tmp_path / "p", "--where", "county=c1", "tenure=owned").stdout


def test_the_decision_record_names_owner_reasons_and_what_is_not_protected(
    town: Path, called: Command
) -> None:
    text = called("plan", "record", town / "plan.toml").stdout
    for expected in (
        "Chief methodologist",
        "enumeration areas",
        "What is not protected",
        "draws no legal conclusion",
    ):
        assert expected in text


def test_the_registry_entry_fits_the_registry(packet: Path) -> None:
    import yaml
    from jsonschema import Draft202012Validator

    from shared_data import extract

    schema = json.loads(extract("registry_schema.json").read_text())
    entry = yaml.safe_load((packet / "public" / "registry.yaml").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(entry)] == []


def test_a_census_that_changed_since_is_not_resumed(tmp_path: Path, town: Path) -> None:
    from stirred.chance import Key
    from stirred.errors import PrivacyError
    from stirred.publish import load, run

    write_census(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    plan, key = load(tmp_path / "plan.toml"), Key.load(town / "town.key")

    def interrupted(step: str, done: int, total: int) -> None:
        if step == "tables":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "out", key=key, progress=interrupted)
    assert (tmp_path / "out.part" / "public" / "data").exists()
    write_census(tmp_path, households=601)
    with pytest.raises(PrivacyError, match="changed since"):
        run(plan, tmp_path / "out", key=key)
