"""Where two methods meet at equal success of one attack."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred.assess.risk import RiskMeasure
from stirred.census import Census, read
from stirred.cli.main import main
from stirred.errors import InputError
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.tables.exact_margins import ExactMargins
from stirred.publish.equate import HEURISTIC, equate

PLAN = """title = "swap"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "{rate}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(households(40))
    return tmp_path


def swap(rate: str) -> PermutationSwapping:
    return PermutationSwapping(match=["state", "size"], swap=["county"], rate=rate)


def staying(release: Release, census: Census) -> RiskMeasure:
    """An attack that succeeds for a share of about 1 − rate, a little more or less with each key."""
    del census
    rate = float(Fraction(str(release.parameters["rate"])))
    jitter = (int(release.input_digest[-4:], 16) / 65535 - 0.5) / 100
    return RiskMeasure(name="stub", about="all", kind="absolute", value=1 - rate + jitter, unit="share")


def test_equal_success_is_at_the_same_rate(folder: Path) -> None:
    found = equate(swap("1/10"), swap("1/4"), read(folder), attack=staying, runs=2)
    assert found.setting is not None
    assert found.low is not None
    assert found.high is not None
    assert abs(float(found.setting) - 0.1) < 0.02
    assert found.low <= Fraction(1, 10) <= found.high
    assert HEURISTIC in found.words
    values = [item.value for item in found.tried]
    assert min(values) < found.first.value < max(values)


def test_no_setting_may_reach_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.publish.equate.ROUNDS", 1)

    def nothing(release: Release, census: Census) -> RiskMeasure:
        found = staying(release, census)
        first = release.parameters["rate"] == "9/10"
        return RiskMeasure(
            name="stub", about="all", kind="absolute", value=0.01 if first else found.value, unit="share"
        )

    found = equate(swap("9/10"), swap("1/4"), read(folder), attack=nothing, runs=2)
    assert found.setting is None
    assert "has more" in found.words
    assert HEURISTIC in found.words


def test_a_method_without_a_knob_is_refused(folder: Path) -> None:
    class Fixed(ExactMargins):
        def knobs(self):  # type: ignore[no-untyped-def]
            return ()

    fixed = Fixed(rows="county", columns="tenure", rho_squared="1/2")
    with pytest.raises(InputError, match="cannot be turned"):
        equate(swap("1/10"), fixed, read(folder), attack=staying)
    with pytest.raises(InputError, match="one run"):
        equate(swap("1/10"), swap("1/4"), read(folder), attack=staying, runs=1)


def test_the_verb(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.publish.equate.STEPS", 2)  # fewer settings, for a quick test
    monkeypatch.setattr("stirred.publish.equate.ROUNDS", 1)
    (folder / "census.toml").write_text(CENSUS + 'age = {type = "integer", range = "0..99"}\n')
    lines = [f"{i},1,{1 + i % 3},{1 + i % 2},{'or'[i % 5 == 0]},{i // 2}" for i in range(80)]
    (folder / "household.csv").write_text(
        "\n".join(["household_id,state,county,size,tenure,age", *lines, ""])
    )
    for name, rate in (("a", "1/10"), ("b", "1/4")):
        (folder / f"{name}.toml").write_text(PLAN.format(rate=rate))
    words = ["equate", str(folder / "a.toml"), str(folder / "b.toml"), "--runs", "2", "--json"]
    asked = ["--record-type", "household", "--area", "county", "--known", "age", "--secret", "tenure"]
    assert main([*words, *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["note"] == HEURISTIC
    assert found["name"] == "rate"
    assert found["internal"]
    assert 0 < found["low"] <= found["setting"] <= found["high"] <= 0.5
    (folder / "other.toml").write_text(CENSUS)
    (folder / "b.toml").write_text(PLAN.format(rate="1/4").replace("census.toml", "other.toml"))
    assert main(words) == 2
    assert "two censuses" in capsys.readouterr().err
