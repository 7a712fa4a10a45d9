"""Every printed number of the paper has a computed twin, and the computed side moves with its inputs."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.catalog.products import DHC_PERSONS, DHC_UNITS, PL_PERSONS, PL_UNITS, PRODUCTS, WHAT_IFS
from stirred.cli.main import main
from stirred.mechanisms.swap.budget import theorem_1, tight_budget
from stirred.paper import budgets, documents, text_numbers
from stirred.paper.budgets import bound_gap, theorem_3
from stirred.paper.massachusetts import PAPER_SWAPPED

# the paper, as printed: Tables 3, 4 and 5, Section 3.5, and the text
PRINTED = {
    "table-budgets": [0.07, 2.70, 2.56, 17.90, 7.70, 34.33, 4.96, 26.34, 15.29, 52.83],
    "table-2020": [15.29, 52.83, 19.776, 17.79, 2.515, 55.371, 126.78, 8.42, 19.36],
    "table-whatif": [19.36, 16.42, 18.13, 15.19, 17.99, 15.05, 16.70, 13.75, 11.68, 8.73, 11.37, 8.42],
    "estimate-2010": [18.29, 19],
    "text-numbers": [
        *(435_805, 708_619, 1_144_424, 264_331, 1.20, 77, 6.91, 99.9, 35.4, 95.2, 0.148, 2.63, 12.66, 15.29),
        *(99_999, 221.48, 364.31, 13.47, 3.4, 1, 95),
    ],
}
# what the paper states and nothing can compute from its formulas: these are inputs, and the page shows them
STATED = {
    "table-whatif": [13_475_623, 3_948_028, 3_420_628, 939_185, 6_204, 4_549],
    "estimate-2010": [3_650_000, ["1/50", "1/25"]],
    "table-budgets": [1e-10],
}
MAKE: dict[str, Any] = {
    "table-budgets": budgets.table_budgets,
    "table-2020": budgets.table_2020,
    "table-whatif": budgets.table_whatif,
    "estimate-2010": budgets.estimate_2010,
    "text-numbers": text_numbers.text_numbers,
}


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_number_has_a_computed_twin(name: str) -> None:
    rows = MAKE[name]()["rows"]
    for printed in PRINTED[name]:
        near = [row for row in rows if row["paper"] == printed]
        assert near, printed
        # equal as far as the paper prints it, or nearly so for a reason that stands beside it
        rounded = [row for row in near if row["reason"].startswith("the paper prints")]
        assert rounded or any(abs(row["difference"]) <= max(0.006, 0.01 * printed) for row in near), printed
    assert not [row for row in rows if row["reason"] == "not explained"]


@pytest.mark.parametrize("name", STATED)
def test_what_only_the_paper_knows_is_an_input(name: str) -> None:
    inputs = MAKE[name]()["inputs"].values()
    assert all(value in inputs for value in STATED[name])


def test_the_computed_side_moves_with_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [PL_UNITS, replace(PL_PERSONS, counted=PL_PERSONS.counted * 2), DHC_UNITS, DHC_PERSONS]
    changed = budgets.table_budgets(parts)["rows"]
    plain = budgets.table_budgets()["rows"]
    assert [a["computed"] == b["computed"] for a, b in zip(plain, changed, strict=True)] == [
        *([True] * 2),
        *([False] * 2),
        *([True] * 4),
        *([False] * 2),
    ]
    assert changed[2]["reason"], "a number that is not the paper's must say why"
    doubled = [replace(one, counted=one.counted * 2) for one in PRODUCTS]
    was, now = (budgets.table_2020(given)["rows"] for given in (PRODUCTS, doubled))
    assert now[0]["computed"] == pytest.approx(2 * was[0]["computed"], abs=2e-6)
    larger = [replace(WHAT_IFS[0], largest=2 * WHAT_IFS[0].largest + 1), *WHAT_IFS[1:]]
    rows = budgets.table_whatif(larger)["rows"]
    assert rows[0]["computed"] == pytest.approx(19.360832 + 0.693147, abs=3e-6)  # ln 2 more
    assert rows[0]["reason"] == "not explained"
    assert budgets.estimate_2010(b=1000)["rows"][0]["computed"] < 11
    four = text_numbers.text_numbers(copies=4)["rows"][-2]["computed"]
    assert four == pytest.approx(16 * 55.371)
    plain = {row["what"]: row["computed"] for row in text_numbers.text_numbers()["rows"]}
    monkeypatch.setattr(text_numbers, "CONFIRMED_THOUSANDS", 2 * text_numbers.CONFIRMED_THOUSANDS)
    monkeypatch.setattr(text_numbers, "PAPER_SWAPPED", {**PAPER_SWAPPED, "Dukes": (947, 795)})
    monkeypatch.setattr(text_numbers, "apportion_sizes", lambda: {1: 5, 2: 7})
    moved = {row["what"]: row["computed"] for row in text_numbers.text_numbers()["rows"]}
    changed = [what for what, value in moved.items() if value != plain[what]]
    assert [what.partition(" (")[0] for what in changed] == [
        "owned homes after the swap",
        "households after the swap",
        "largest stratum b",
        "MAPE between the two halves of the paper's Table 1",
        "their race and ethnicity predicted rightly, in percent",
        "the same in percent of all vulnerable people",
    ]


@pytest.mark.parametrize("b", [2, 3, 4, 5, 10, 30])
def test_theorem_1_lies_above_theorem_3_by_no_more_than_the_gap(b: int) -> None:
    for rate in (Fraction(1, 100), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)):
        least, claimed = theorem_3(b, rate), theorem_1(b, rate)
        assert least <= tight_budget(b, rate) <= claimed
        if b >= 4:
            assert claimed.upper(9) - least.upper(9) <= bound_gap(b) + Fraction(1, 10**9)
    assert theorem_3(b, Fraction(1)).upper(6).is_infinite()


@pytest.mark.parametrize("b", [2, 4, 10, 100, 264_331])
def test_the_table_of_the_theory_page(b: int) -> None:
    page_of_it = Path(__file__).parents[2] / "docs" / "theory" / "tight-budget.md"
    cells = [budget(b, rate).upper(4) for rate in ("1/20", "1/2") for budget in (theorem_1, tight_budget)]
    shown = " | ".join(str(cell) if cell else "0" for cell in cells)
    assert f"\n| {b:,} | {shown} |\n" in page_of_it.read_text(encoding="utf-8")


def test_the_gap_goes_down_to_zero() -> None:
    gaps = [bound_gap(b) for b in range(4, 40)]
    assert gaps == sorted(gaps, reverse=True)
    assert bound_gap(10**6) < Fraction(2, 10**6)
    assert Fraction("0.148") < bound_gap(10) < Fraction("0.14801")


def test_the_largest_strata_of_2000_are_counted_from_tables(tmp_path: Path) -> None:
    sizes = {f"hh{size}": [10 * size, size, 0, 1] for size in range(1, 8)}
    places = {
        "state": ["01", "01", "01", "02"],
        "county": ["001", "001", "003", "001"],
        "tract": list("aabc"),
    }
    frame = pl.DataFrame({**places, **sizes})
    frame.write_parquet(tmp_path / "tracts.parquet")
    frame.with_columns(block_group=pl.lit("1")).write_parquet(tmp_path / "block_groups.parquet")
    rows = budgets.table_whatif_2000(data=tmp_path)["rows"]
    found = {row["match"]: (row["b"], row["where"]) for row in rows}
    assert found["state"] == (sum(11 * size for size in range(1, 8)), "01")
    assert found["county × household size"] == (77, "01001, 7 persons")


def test_commands_say_what_they_need_and_write_what_they_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "table-whatif-2000"]) == 2
    assert "--data DIR" in capsys.readouterr().err
    assert main(["reproduce", "table-whatif", "estimate-2010", "--out", str(tmp_path / "paper")]) == 0
    written = json.loads((tmp_path / "paper" / "table-whatif.json").read_text())
    assert {"name", "source", "inputs", "rows"} <= written.keys()
    assert {"computed", "paper", "difference", "reason"} <= written["rows"][0].keys()
    shown = (tmp_path / "paper" / "index.html").read_text()
    assert "14 printed numbers: 0 are equal, 14 are equal as far as the paper prints them" in shown
    assert "<script" not in shown
    assert "http" not in shown


def test_a_small_input_is_not_rounded_to_nothing(tmp_path: Path) -> None:
    row = {"computed": 1, "paper": 1, "difference": 0, "reason": ""}
    part = {"name": "x", "title": "x", "source": "x", "inputs": {"delta": 1e-10}, "rows": [row]}
    assert "delta = 1e-10" in documents.write_page([part], {}, tmp_path).read_text()


def test_a_row_of_several_numbers_is_shown_as_several_rows(tmp_path: Path) -> None:
    owned, rented = PAPER_SWAPPED["Dukes"]
    row = {
        "county": "Dukes",
        "computed": {"owned": owned, "rented": rented + 1},
        "paper": {"owned": owned, "rented": rented},
        "difference": {"owned": 0, "rented": 1},
        "reason": "<drawn>",
    }
    document = {"name": "table", "title": "T", "source": "s", "inputs": {}, "rows": [row]}
    shown = documents.write_page([document], {"left": "needs data"}, tmp_path).read_text()
    assert "2 printed numbers: 1 are equal, 0 are equal as far as the paper prints them, 1 differ" in shown
    assert shown.count("&lt;drawn&gt;") == 1
    assert "left: not computed (needs data)" in shown
