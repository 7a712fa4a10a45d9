"""``stirred spec list`` and ``stirred demo`` as a user types them."""

import json
from pathlib import Path

import pytest

from stirred.cli.main import main


def test_json_has_all_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = {row["name"]: row for row in json.loads(out)["entries"]}
    assert len(rows) == 30 + 5
    assert rows["pl-persons-2020"]["exact"] == "293764/114921"
    assert rows["das-2020"]["at_least"] is True
    assert rows["ddhc-b-2020"]["exact"] == "4447651/250000"  # 2 × 8.895302, not the printed 17.79
    assert rows["sdhc-2020"]["rho_squared_proved"] == 0.628641
    assert (rows["sdhc-2020"]["status"], rows["sdhc-2020-proved"]["status"]) == ("published", "proved")
    assert rows["topdown-2020"]["epsilon_simple"] == 52.825422
    assert [rate["rate"] for rate in rows["whatif-state"]["rates"]] == ["1/20", "1/2"]
    assert rows["whatif-state"]["b"] == 13_475_623


def test_delta_moves_the_readings(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for delta in ("1e-10", "1/1000000"):
        assert main(["catalog", "pl-2020", "--delta", delta, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["entries"][0]["epsilon_simple"])
    assert found[0] > found[1]


def test_table_cuts_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    for words in (
        "≥ 126.7910",
        "≥ 57.8896",
        "≥ 43.6012",
        "52.8255",
        "13,475,623",
        "19.3609",
        "whatif-block-group-size",
        "unknown cost",
    ):
        assert words in out


@pytest.mark.parametrize("words", [["das-2002"], ["--delta", "0"], ["--delta", "x"]])
def test_bad_input_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


def test_demo_shows_both_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--promises", "--out", str(tmp_path / "demo")]) == 0
    assert "specifications.html" in capsys.readouterr().out
    page = (tmp_path / "demo" / "specifications.html").read_text()
    assert page.count("<article") == 2
    assert "incomparable" in page
