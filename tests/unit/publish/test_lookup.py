"""What a look-up, a table and a report say of an interval: what it is made to hold, and what was measured."""

import re
from dataclasses import replace
from pathlib import Path

from stirred.mechanisms.coverage import CLASS_NAMES, lookup_coverage
from stirred.mechanisms.registry import list_measured_coverage
from stirred.publish.packet.lookup import COLUMNS, PublishedCell
from stirred.report.uncertainty import _coverage

LEVELS = ("tract", "block group", "block")
HEADINGS = {
    "Stirring, measured": "stirring",
    "swap": "swap",
    "Unbiased": "unbiased",
}  # words of a heading → the method of its tables
PAGE = Path(__file__).resolve().parents[3] / "docs/explain/topdown-uncertainty.md"


def test_a_sentence_says_what_the_interval_was_measured_to_hold():
    cell = PublishedCell(
        table="t", where={"block": "1"}, count=3, weighted=None, estimate=2.5, standard_error=2.0, low=0.0, high=8.0,
        private=True,
    )  # fmt: skip
    head, quote, interval = cell.sentences()
    assert head == "t: block = 1"
    assert quote == "Quote the estimate, 2.5 (0.0 to 8.0). The published count, 3, is for adding up."
    assert "made to hold the true number of 95 in 100 cells published like this one" in interval
    assert lookup_coverage(list_measured_coverage(), 3) == (92, 100)
    swap = list_measured_coverage("permutation-swapping")
    assert lookup_coverage(swap, 3, ["block"]) == (96, 100)  # another method, another range
    assert (
        "it did so for 95 to 100 of 100 cells published as 1–4; of cells whose true number is 1" in interval
    )


def test_an_exact_number_has_no_interval_and_a_wide_one_no_tenths():
    cell = PublishedCell(
        table="t", where={"county": "1"}, count=13_965, weighted=None, estimate=14_229.64, standard_error=39.0,
        low=14_152.4, high=14_306.8, private=False,
    )  # fmt: skip
    head, quote, interval = cell.sentences()
    assert "NOT PRIVATE" in head
    assert quote.startswith("Quote the estimate, 14,230 (14,152 to 14,307). The published count, 13,965, is")
    assert "because the method pulls counts towards the average" in quote
    assert "1 to 19" not in interval  # no such cell has this interval
    exact = replace(cell, standard_error=0.0, low=None, high=None)
    assert exact.sentences()[1:] == [
        "Quote 13,965: it is exact.",
        "It is published as it was counted: an invariant.",
    ]


def test_tables_and_reports_say_it_by_level_and_size():
    assert re.search(r"TopDown, by replicates: block group +98–99 +97–99 +94–100", COLUMNS)
    assert re.search(r"swap: block group +100 +98 +97", COLUMNS)
    assert "84 to 99 of 100 lie in their interval" in COLUMNS
    by_level, words = _coverage(())[0].blocks
    assert [row[1] for row in by_level.rows] == ["tract", "block group", "block"] * 4
    assert (
        len({row[0] for row in by_level.rows}) == 4
    )  # released numbers, unbiased estimates, swap, stirring: each by itself
    assert by_level.rows[2][2:5] == ("97–100", "95–100", "93–98")
    assert "84 to 99 of 100" in words.paragraphs[0]


FINER = {"20–49": "20–99", "50–99": "20–99", "100–199": "100–999", "200–499": "100–999", "500+": "100–999"}


def documented() -> dict[tuple[str, str], dict[str, list[float]]]:
    """Method and level → size → every figure of the page at nominal 95 %, as it is now."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    sizes: list[str] = []
    what, nominal, method = "", "95", "topdown"
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            method = next((one for word, one in HEADINGS.items() if word in line), "topdown")
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if "1–4" in cells:
            sizes, what, nominal = cells, "", "95"
            continue
        if not cells or len(cells) != len(sizes):
            continue
        first = sizes.index("all")
        named = next((c for c in cells[:first] if re.search(r"tract|block", c)), "")
        what = named.split(", ")[-1].split(": ")[-1] or what
        nominal = next((c for c in cells[:first] if c in {"90", "95"}), nominal if not named else "95")
        level = next((level for level in LEVELS if what.startswith(level + " ") or what == level), None)
        level = "block group" if what.startswith("block group") else level
        if level is None or "before" in cells[:first] or nominal != "95":
            continue
        for size, cell in zip(sizes, cells, strict=True):
            number = re.match(r"[0-9.]+", cell)
            if size[:1].isdigit() and number:
                size_class = FINER.get(size, size.replace("1000", "1,000"))
                found.setdefault((method, level), {}).setdefault(size_class, []).append(float(number[0]))
    return found


def test_the_figures_are_those_of_the_page():
    found = documented()
    measured = {one.key: one for one in list_measured_coverage()}
    assert all(PAGE.name in one.source for one in measured.values())
    assert set(found) == {(method, level) for method, one in measured.items() for level in one.levels}
    for (method, level), sizes in found.items():
        row = measured[method].levels[level]
        assert {CLASS_NAMES.index(size) for size in sizes} == {
            i for i, one in enumerate(row) if one is not None
        }
        for size, figures in sizes.items():
            assert (min(figures), max(figures)) == row[CLASS_NAMES.index(size)], (
                method,
                level,
                size,
                figures,
            )
