"""What leaves Stirred is data: no formula for a spreadsheet, no markup, no control character for a terminal."""

import csv
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from stirred.cli.output import console, escape_controls, table
from stirred.publish.run.writer import write_csv
from stirred.spec.card.card import escape_markdown

FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx")
PLAIN = ("-9", "+4.5", "county 1", "a=b", "", "é", "o'clock")


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_formulas_are_escaped_in_csv_and_numbers_are_not(tmp_path: Path) -> None:
    texts = [*FORMULAS, *PLAIN]
    codes, large = pa.array(texts).dictionary_encode(), pa.array(texts, pa.large_string())
    made = pa.table({"=name": texts, "code": codes, "n": [-1] * len(texts), "table": large})
    write_csv(made, tmp_path / "a.csv")
    head, *found = rows(tmp_path / "a.csv")
    assert head == ["'=name", "code", "n", "table"]
    for text, row in zip(texts, found, strict=True):
        wanted = f"'{text}" if text in FORMULAS else text
        assert row == [wanted, wanted, "-1", wanted]
    write_csv(made, tmp_path / "b.csv", escape=False)
    assert [row[0] for row in rows(tmp_path / "b.csv")[1:]] == texts


def test_missing_texts_stay_missing(tmp_path: Path) -> None:
    write_csv(pa.table({"a": pa.array([None, "=1"])}), tmp_path / "a.csv")
    assert rows(tmp_path / "a.csv")[2] == ["'=1"]


@given(some.text(max_size=40))
def test_markdown_and_terminal_get_no_active_text(text: str) -> None:
    safe = escape_markdown(text)
    assert "<" not in safe
    assert "\n" not in safe
    assert "\x1b" not in escape_controls(text)
    assert escape_controls(escape_controls(text)) == escape_controls(text)


def test_markup_of_a_name_does_not_style_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[bold]a[/bold] \x1b]8;;http://evil\x07b", table("\x1b[2Jt", ["[red]c"], [["\u202er"]]))
    out = capsys.readouterr().out
    assert "[bold]a[/bold]" in out
    assert "[red]c" in out
    assert "\x1b" not in out
    assert "\u202e" not in out
