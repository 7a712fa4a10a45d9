"""An interrupted run: what the mechanism spent and said is in the packet of the run that takes it up."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.chance.seals import AuthenticFolder
from stirred.mechanisms.registry import find_mechanism
from stirred.mechanisms.release import Release
from stirred.publish import Packet, load, run
from stirred.publish.run import execute

MECHANISMS = {
    "permutation-swapping": 'match = ["state"]\nswap = ["county", "tract", "block_group", "block"]\nrate = "1/5"\n',
    "topdown": 'workload = "small"\nreplicates = 0\n',
    # codes that it has words for, and a tree that the receipt states because the census has AIAN areas
    "topdown on production's tree": 'workload = "pl94-persons"\nreplicates = 0\nkeep_nmf = true\n',
    "exact-margins": 'rows = "county"\ncolumns = "tenure"\nrho_squared = "1/2"\n',
}


ON_DISK = ("microdata", "tables", "files")  # the packet's checksums are those of these


def stopped(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("made", MECHANISMS)
def test_the_packet_is_that_of_an_undisturbed_run(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = made.partition(" ")[0]
    write_preset("demo", tmp_path / "census", households=150)
    if made.endswith("tree"):
        with_aian_areas(tmp_path / "census")
    (tmp_path / "plan.toml").write_text(
        f'title = "t"\ncensus = "census/census.toml"\n[[mechanism]]\nname = "{name}"\n{MECHANISMS[made]}'
        "[assess]\nutility = false\n"
    )
    plan, key = load(tmp_path / "plan.toml"), Key.for_tests(5)
    releases: list[Release] = []
    write = execute.write_packet

    def seen(content: Any, *more: Any, **named: Any) -> None:
        releases.extend(content.releases)
        write(content, *more, **named)

    monkeypatch.setattr(execute, "write_packet", seen)
    whole = run(plan, tmp_path / "whole", key=key)
    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "again", key=key)
    assert not (tmp_path / "again").exists()
    monkeypatch.setattr(find_mechanism(name), "release", stopped)  # it is not run a second time
    again = run(plan, tmp_path / "again", key=key)
    first, second = releases
    assert first.ledger is not None
    for own in fields(Release):  # a field that is added later is kept too, or this fails
        if own.name not in ON_DISK:
            assert getattr(first, own.name) == getattr(second, own.name), own.name
    assert receipt(whole) == receipt(again)
    assert (whole.public / "checksums.txt").read_text() == (again.public / "checksums.txt").read_text()
    assert [line["budget"] for line in receipt(again)["mechanisms"][0]["ledger"]] == [
        entry.budget.exact for entry in first.ledger.entries
    ]


def test_what_an_earlier_version_kept_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_preset("demo", tmp_path / "census", households=150)
    text = 'title = "t"\ncensus = "census/census.toml"\n[[mechanism]]\nname = "exact-margins"\n'
    (tmp_path / "plan.toml").write_text(text + MECHANISMS["exact-margins"] + "[assess]\nutility = false\n")
    plan, key = load(tmp_path / "plan.toml"), Key.for_tests(5)
    whole = run(plan, tmp_path / "whole", key=key)
    keep = AuthenticFolder.keep

    def less(self: AuthenticFolder, name: str, content: bytes) -> None:
        if name == "data.json":
            content = json.dumps({k: v for k, v in json.loads(content).items() if k != "labels"}).encode()
        keep(self, name, content)

    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        once.setattr(AuthenticFolder, "keep", less)
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "again", key=key)
    again = run(plan, tmp_path / "again", key=key)
    assert (whole.public / "checksums.txt").read_text() == (again.public / "checksums.txt").read_text()


def with_aian_areas(census: Path) -> None:
    """Call the places of a census AIAN areas."""
    described, areas = census / "census.toml", census / "geography.parquet"
    described.write_text(described.read_text().replace("off_spine.place]", "off_spine.aiannh]"))
    pl.read_parquet(areas).rename({"place": "aiannh"}).write_parquet(areas)


def receipt(packet: Packet) -> Any:
    return json.loads((packet.public / "receipt.json").read_text())
