"""stirred budget: the documents the issue shows, the tables people read, and the errors."""

import json
from typing import Any

import pytest

from stirred.cli.main import main


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["budget", *words, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert isinstance(found, dict)
    return found


def test_four_rates(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--stratum", "264331", "--rate", "1/100", "1/20", "1/10", "1/2")
    assert found["stratum"] == 264331
    assert found["rows"][0] == {
        "rate": "1/100",
        "epsilon": 17.080082,
        "epsilon_tight": 17.080076,
        "exact": "ln(26168868)",
    }
    assert [row["rate"] for row in found["rows"]] == ["1/100", "1/20", "1/10", "1/2"]
    assert [round(row["epsilon"], 2) for row in found["rows"]] == [17.08, 15.43, 14.68, 12.48]
    assert set(found["tight_at"]) == {"epsilon", "epsilon_tight"}


def test_rate_may_be_repeated_and_decimal(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--stratum", "10", "--rate", "0.05", "--rate", "1/2")
    assert [row["rate"] for row in found["rows"]] == ["1/20", "1/2"]


def test_rates_for_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--stratum", "10", "--epsilon", "3")
    assert found == {"stratum": 10, "epsilon": "3", "rates": [0.353863, 0.952574]}


def test_margins(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--margins", "163885", "100446", "--rate", "1/2")
    (row,) = found["rows"]
    assert row["claimed"] == "two types, exact reduction"
    assert round(row["epsilon"], 3) == 1.434
    assert [round(bound["epsilon"], 2) for bound in row["bounds"]] == [12.48, 12.48, 6.0, 1.43]
    assert all(bound["tight"] and bound["source"] for bound in row["bounds"])


def test_margins_of_three_types(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--margins", "2", "2", "1", "--rate", "9/10", "1/20")
    assert found["margins"] == [2, 2, 1]
    high, low = found["rows"]
    assert high["claimed"] == "three or more types, by exchanges"
    # brute force finds 0.5186 at distance 2 where all swap values differ; 4/3 of it
    assert round(high["epsilon"], 3) == 0.691
    assert low["claimed"] == "largest loss by size"
    assert main(["budget", "--margins", "3", "--rate", "1/2"]) != 0
    assert "two or more" in capsys.readouterr().err


def test_the_table_says_where_it_is_tight(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", "--stratum", "264331", "--rate", "1/100"]) == 0
    shown = capsys.readouterr().out
    assert "17.080082" in shown
    assert "17.080076" in shown
    assert "some universe" in shown
    assert "asymptotically sharp" in shown


def test_every_budget_stands_with_its_flavor_and_odds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", "--stratum", "2", "--rate", "1/2"]) == 0
    assert main(["budget", "--stratum", "10", "--rate", "1/2"]) == 0
    shown = capsys.readouterr().out
    for words in ("d_Ham", "D_mult", "swapping invariants", "Proved", "odds may move by", "e^(2ε)"):
        assert words in shown
    # ½ ln(d(10)/d(8)) at p = ½, twice: d(10)/d(8) = 1334961/14833 = 89.99…, rounded up
    assert "× 90.0" in shown
    assert main(["budget", "--margins", "3", "4", "--rate", "1/2"]) == 0
    assert "e^(2ε)" in capsys.readouterr().out
    found = document(capsys, "--stratum", "10", "--rate", "1/2")
    assert found["flavor"]["distance"] == 2


def test_numbers_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    huge = "9" * 5000
    assert main(["budget", "--stratum", huge, "--rate", "1/2"]) == 2
    assert "5000 digits" in capsys.readouterr().err
    assert document(capsys, "--stratum", "10", "--epsilon", huge)["rates"] == [1e-06, 0.999999]
    assert main(["budget", "--stratum", "٣", "--rate", "1/2"]) == 2
    assert "whole number" in capsys.readouterr().err


@pytest.mark.parametrize("rate", ["0", "1"])
def test_never_and_always(capsys: pytest.CaptureFixture[str], rate: str) -> None:
    assert main(["budget", "--stratum", "9", "--rate", rate]) == 0
    assert "∞" in capsys.readouterr().out
    assert document(capsys, "--stratum", "9", "--rate", rate)["rows"][0]["exact"] == "∞"
    assert document(capsys, "--stratum", "0", "--rate", rate)["rows"][0]["epsilon"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stratum", "10", "--rate", "3/2"], "outside [0, 1]"),
        (["--stratum", "-3", "--rate", "1/2"], "cannot hold -3"),
        (["--stratum", "1e5", "--rate", "1/2"], "cannot read"),
        (["--stratum", "10", "--rate", "lots"], "cannot read"),
        (["--stratum", "10", "--epsilon", "1"], "1.1990"),
        (["--stratum", "10"], "--rate"),
        (["--rate", "1/2"], "--stratum"),
        (["--stratum", "10", "--margins", "5", "5", "--rate", "1/2"], "either"),
        (["--margins", "5", "5", "--epsilon", "3"], "--epsilon"),
    ],
)
def test_bad_input_is_one_error(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["budget", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
