"""``stirred das2020`` from census to packet: noisy and swapped, the same tables, contradictions in one of them alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred import PHSafe
from stirred.assess.contradictions import Contradiction, find_contradictions
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.cli.main import main
from stirred.engine import Local
from stirred.publish import Packet, load, parse, run, verify
from stirred.publish.named_plans import list_quantities
from stirred.spec.files import load as load_specification

PRODUCTS = {"t1", "t2", "t3", "t4", "ph1_num", "ph8_denom", "pl-persons-by-state", "dhc-units-by-county"}


class Worlds:
    """One census, released with noise and swapped."""

    def __init__(self, place: Path, *, households: int | None = None) -> None:
        write_preset("demo", place / "census", households=households)
        self.place = place
        common = ["das2020", str(place / "census"), "--light", "--json"]
        assert main([*common, "--out", str(place / "noisy")]) == 0
        assert main([*common, "--swapped", "--out", str(place / "swapped")]) == 0
        self.noisy, self.swapped = Packet(place / "noisy"), Packet(place / "swapped")


def differing(packet: Packet) -> tuple[Contradiction, ...]:
    return tuple(one for one in find_contradictions(packet.read_tables(), list_quantities()) if one.differ)


def check(worlds: Worlds) -> None:
    """What holds in every census: sealed packets, the same tables, one promise each, and who contradicts itself."""
    for packet in (worlds.noisy, worlds.swapped):
        assert verify(packet.folder) == []
        assert set(packet.table_names()) >= PRODUCTS
        assert packet.receipt()["private"] is True
    assert worlds.noisy.table_names() == worlds.swapped.table_names()
    assert str(load_specification(worlds.noisy.public / "spec.json").input_premetric) == "d_Ham(person)"
    assert str(load_specification(worlds.swapped.public / "spec.json").output_premetric) == "D_mult"
    assert differing(worlds.noisy)
    assert differing(worlds.swapped) == ()
    assert len(find_contradictions(worlds.swapped.read_tables(), list_quantities())) >= 15


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("das2020"), households=200)


def test_both_worlds(worlds: Worlds, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    check(worlds)
    report = worlds.noisy.public / "report.html"
    assert "The products together" in report.read_text()
    assert "Numbers that are published twice" in report.read_text()


def test_swapped_tables_have_counts_and_no_intervals(worlds: Worlds) -> None:
    for name in ("t1", "ph1_num", "t4"):
        noisy, swapped = worlds.noisy.frame(name), worlds.swapped.frame(name)
        assert {"standard_error", "low", "high"} <= set(noisy.columns)
        assert "standard_error" not in swapped.columns
        assert "count" in swapped.columns


def test_swapped_tables_are_those_of_the_swapped_file(worlds: Worlds) -> None:
    persons = pl.read_parquet(worlds.swapped.public / "data-1" / "person.parquet")
    homes = pl.read_parquet(worlds.swapped.public / "data-1" / "household.parquet")
    lived = persons.join(homes.select("household_id", "county"), on="household_id")
    found = worlds.swapped.frame("pl-persons-by-county").group_by("county").agg(pl.col("count").sum())
    wanted = lived.group_by(pl.col("county").cast(pl.String)).agg(pl.len().cast(pl.Int64).alias("count"))
    assert found.cast({"count": pl.Int64}).sort("county").equals(wanted.sort("county"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


@pytest.mark.parametrize("name", [pytest.param("noisy", marks=pytest.mark.slow), "swapped"])
def test_in_parts_the_contents_are_the_same(worlds: Worlds, tmp_path: Path, name: str) -> None:
    made: Packet = getattr(worlds, name)
    plan = parse((made.public / "plan.toml").read_text(), folder=worlds.place / "census")
    key = Key.load(worlds.place / f"{name}.key")
    assert (
        run(plan, tmp_path / "parts", key=key, engine=Parted(), internal=False).contents() == made.contents()
    )


def test_the_ledger_has_every_product(worlds: Worlds) -> None:
    lines = worlds.noisy.receipt()["ledger"]
    assert isinstance(lines, list)
    assert [line["by"] for line in lines][:5] == ["pl", "dhc", "ddhc-a", "ddhc-b", "sdhc"]
    assert {line["budget"] for line in lines[5:]} == {"0"}


def test_the_written_plan_is_what_the_command_runs(
    worlds: Worlds, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    census, file = worlds.place / "census" / "census.toml", tmp_path / "plan.toml"
    assert main(["plan", "new", "das2020", "--census", str(census), "--out", str(file), "--json"]) == 0
    capsys.readouterr()
    wanted = load(worlds.noisy.public / "plan.toml")
    assert [step.label for step in load(file).steps] == [step.label for step in wanted.steps]
    assert load(file).tables == wanted.tables
    assert main(["plan", "new", "das2021"]) == 2
    words = [
        "--census",
        str(census),
        "--out",
        str(tmp_path / "swapped.toml"),
        "--swapped",
        "--light",
        "--json",
    ]
    assert main(["plan", "new", "das2020", *words]) == 0
    swapped = load(worlds.swapped.public / "plan.toml")
    assert load(tmp_path / "swapped.toml").mechanisms[0] == swapped.mechanisms[0]


def test_check_states_the_products(worlds: Worlds, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["das2020", str(worlds.place / "census"), "--light", "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [line["product"] for line in told["products"]] == ["pl", "dhc", "ddhc-a", "ddhc-b", "sdhc"]


@pytest.mark.slow
def test_the_demo_census(tmp_path: Path) -> None:
    check(Worlds(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
def test_an_interrupted_run_gives_the_same_bytes(
    worlds: Worlds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    """Stopped before PHSafe, which reads what comes before it from the state of the run."""
    made = worlds.swapped if swapped else worlds.noisy
    plan = parse((made.public / "plan.toml").read_text(), folder=worlds.place / "census")
    key = Key.for_tests(7)
    whole = run(plan, tmp_path / "whole", key=key)
    release = PHSafe.release

    def interrupted(*words: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(PHSafe, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "again", key=key)
    assert PHSafe.release is release
    again = run(plan, tmp_path / "again", key=key)
    assert (whole.public / "checksums.txt").read_text() == (again.public / "checksums.txt").read_text()


def test_a_small_swap_is_published_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_preset("demo", tmp_path / "census", households=20)
    words = ["das2020", str(tmp_path / "census"), "--light", "--swapped", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "nearly the truth" in capsys.readouterr().err
    assert main([*words, "--accept-small-effect", "a rehearsal"]) == 0
    assert "a rehearsal" in (tmp_path / "out" / "public" / "plan.toml").read_text(encoding="utf-8")
