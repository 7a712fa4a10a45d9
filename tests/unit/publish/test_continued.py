"""DHC after PL from a plan: ``given`` names an earlier packet, or an earlier mechanism of the same plan."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import InputError, PlanError, PrivacyError
from stirred.mechanisms.topdown import TopDown
from stirred.publish import Packet, load, parse, promise, run, verify
from stirred.publish.check import explain
from stirred.spec.files import load as load_specification

HEAD = 'title = "{title}"\ncensus = "census/census.toml"\n'
PL = '[[mechanism]]\nname = "topdown"\nworkload = "pl94-persons"\nreplicates = 0\n{label}'
DHC = '[[mechanism]]\nname = "topdown"\nworkload = "dhc-persons"\nmode = "workload"\nreplicates = 0\ngiven = "{given}"\n'
LATER = DHC.replace(
    '"dhc-persons"', '"later.toml"'
)  # a product with few cells that continues PL in the same way
WORKLOAD = """name = "later"
title = "PL by sex"
source = "this test"
record = "person"
mode = "classic"
rho_squared = "1"
levels = ["state", "county", "tract", "block_group", "block"]
given = "pl94-persons"
given_map = { hhgq = "hhgq", votingage = "votingage", hispanic = "hispanic", cenrace = "cenrace" }
[[axis]]
name = "hhgq"
size = 8
source = { column = "gq_type" }
[[axis]]
name = "sex"
labels = ["male", "female"]
source = { column = "sex", offset = 1 }
[[axis]]
name = "votingage"
size = 2
source = { column = "age", cuts = [18] }
[[axis]]
name = "hispanic"
size = 2
source = { column = "hispanic", offset = 1 }
[[axis]]
name = "cenrace"
size = 63
source = { column = "race", offset = 1 }
[[query]]
name = "sex * votingage"
of = ["sex", "votingage"]
[[query]]
name = "detailed"
of = ["hhgq", "sex", "votingage", "hispanic", "cenrace"]
""" + "".join(
    f'[rho.{level}]\n"sex * votingage" = "1/10"\ndetailed = "1/10"\n'
    for level in ("state", "county", "tract", "block_group", "block")
)
END = "[assess]\nutility = false\n"
KEY = Key.for_tests(5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("continued")
    write_preset("demo", place / "census", households=12)
    (place / "later.toml").write_text(WORKLOAD)
    (place / "pl.toml").write_text(HEAD.format(title="PL") + PL.format(label="") + END)
    run(load(place / "pl.toml"), place / "pl", key=KEY)
    return place


def agrees(earlier: Path, later: Path) -> None:
    """Every block has the same persons by Hispanic origin and race."""
    names = ["block", "hispanic", "race"]
    first, second = (
        pl.read_parquet(folder / "person.parquet").select(pl.col(names).cast(pl.String)).sort(names)
        for folder in (earlier, later)
    )
    assert first.height > 0
    assert first.equals(second)


def test_an_earlier_packet(folder: Path) -> None:
    (folder / "dhc.toml").write_text(HEAD.format(title="DHC") + DHC.format(given="pl") + END)
    packet = run(load(folder / "dhc.toml"), folder / "dhc", key=KEY)
    assert verify(packet.folder) == []
    agrees(folder / "pl/public/data", packet.public / "data")
    before = load_specification(folder / "pl/public/spec.json")
    whole = load_specification(packet.public / "spec.json")
    assert whole.rho_squared > before.rho_squared


def test_an_earlier_mechanism_of_the_same_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD.format(title="Both") + PL.format(label='label = "pl"\n') + LATER.format(given="pl") + END
    # the label comes before a packet of the same name
    plan = parse(text, folder=folder)
    assert [step.continues for step in plan.steps] == [None, 0]
    release = TopDown.release

    def interrupted(mechanism: TopDown, *words: Any, **named: Any) -> Any:
        if mechanism.given is not None:
            raise KeyboardInterrupt
        return release(mechanism, *words, **named)

    with monkeypatch.context() as once:
        once.setattr(TopDown, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(plan, folder / "both", key=KEY)
    packet = run(plan, folder / "both", key=KEY)  # takes up the first release
    assert verify(packet.folder) == []
    agrees(packet.public / "data-1", packet.public / "data-2")
    alone = Packet(folder / "pl")
    assert pl.read_parquet(packet.public / "data-1/person.parquet").equals(
        pl.read_parquet(alone.public / "data/person.parquet")
    )
    # the earlier promise is counted once: the same total as with the packet
    (folder / "again.toml").write_text(HEAD.format(title="Later") + LATER.format(given="pl") + END)
    one = explain(load(folder / "again.toml")).specification
    assert load_specification(packet.public / "spec.json").rho_squared == one.rho_squared
    # the path of the run is nowhere in the packet
    for name in ("receipt.json", "spec.json", "report.html"):
        assert str(folder) not in (packet.public / name).read_text()


def test_an_earlier_budget_is_never_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse(
        HEAD.format(title="t") + PL.format(label="") + DHC.format(given="topdown") + END, folder=folder
    )
    both = promise(plan, plan.census())
    assert both.rho_squared > promise(load(folder / "pl.toml"), plan.census()).rho_squared
    stated = TopDown.specification

    def forgetful(mechanism: TopDown, *words: Any, **named: Any) -> Any:
        return stated(mechanism.replace(given=None), *words, **named)

    monkeypatch.setattr(TopDown, "specification", forgetful)
    with pytest.raises(PrivacyError, match="does not include the release"):
        promise(plan, plan.census())


def test_an_estimate_that_does_not_fit_is_refused_first(folder: Path) -> None:
    text = HEAD.format(title="t") + DHC.format(given="pl").replace('mode = "workload"', 'mode = "gls"') + END
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(InputError, match="closed-form estimate"):
        run(parse(text, folder=folder), folder / "refused", key=KEY)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_label_that_two_mechanisms_have_is_refused(folder: Path) -> None:
    text = HEAD.format(title="t") + 2 * PL.format(label="") + DHC.format(given="topdown") + END
    with pytest.raises(PlanError, match=r"two .* are called topdown"):
        parse(text, folder=folder)
    with pytest.raises(PlanError, match="label"):
        parse(HEAD.format(title="t") + PL.format(label="label = 3\n") + END, folder=folder)
