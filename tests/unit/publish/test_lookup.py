"""What a look-up, a table and a report say of an interval: what it is made to hold, and what was measured."""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stirred.languages import Language
from stirred.mechanisms.effect import CLASS_NAMES, KindCoverage, MeasuredCoverage, lookup_coverage
from stirred.mechanisms.registry import list_measured_coverage
from stirred.publish.packet import lookup
from stirred.publish.packet.lookup import COLUMNS, PublishedCell, describe_tables, look_up
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


KINDS = tuple(
    KindCoverage(
        level="block", above="block_group", kind=kind, settings={"workload": ("pl94-stirred",), "mode": ("gls",)},
        classes=(None, None, held, None, None, None),
    )
    for kind, held in (("twice", (91.2, 93.8)), ("majority", (94.2, 95.9)), ("other", (96.0, 96.0)))
)  # fmt: skip


def write_packet(folder: Path, here: tuple[int, int], *, mode: str = "gls") -> Path:
    """Write the public part of a packet: block 1 with so many persons of race 1 and 2, in a block group of 100 + 20."""
    public = folder / "public"
    (public / "tables").mkdir(parents=True)
    (public / "data").mkdir()
    entry = {"name": "topdown", "settings": {"workload": "pl94-stirred", "mode": mode}}
    receipt = {"private": True, "tables": {"race": "person"}, "mechanisms": [entry]}
    (public / "receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    rows = [("1", race) for race, number in zip((1, 2), here, strict=True) for _ in range(number)]
    rows += [
        ("2", race)
        for race, number in zip((1, 2), (100, 20), strict=True)
        for _ in range(number - here[race - 1])
    ]
    people = pl.DataFrame(rows, schema=["block", "race"], orient="row").with_columns(block_group=pl.lit("0"))
    people.write_parquet(public / "data/person.parquet")
    table = people.group_by("block", "race").agg(count=pl.len())
    table = table.with_columns(
        estimate=pl.col("count") + 0.5,
        standard_error=pl.lit(2.0),
        low=pl.lit(0.0),
        high=pl.lit(99.0),
        quote=pl.lit("estimate"),
    )
    table.write_parquet(public / "tables/race.parquet")
    return folder


@pytest.mark.parametrize(
    ("here", "said"),
    [
        (
            (10, 6),
            "91 to 94 of 100 cells published as 5–19, whose published share of the block is at least twice that of",
        ),
        ((2, 5), "91 to 94 of 100"),  # 5 of 7 against 20 of 120
        (
            (30, 9),
            "for 96 of 100 cells published as 5–19, that are at most half of the block and not twice",
        ),
    ],
)
def test_a_look_up_says_how_often_intervals_of_cells_like_this_one_held(tmp_path, monkeypatch, here, said):
    """The kind follows the released records: there is nothing else in the folder, and other records give another kind."""
    own = MeasuredCoverage(key="topdown", name="TopDown", levels={}, source="", kinds=KINDS)
    monkeypatch.setattr(lookup, "list_measured_coverage", lambda name="": (own,))
    cell = look_up(write_packet(tmp_path / "packet", here), {"block": "1", "race": "2"})
    assert said in cell.sentences()[-1]
    majority = look_up(write_packet(tmp_path / "other", (10, 3)), {"block": "1", "race": "1"})
    assert (
        "94 to 96 of 100 cells published as 5–19, that are more than half of the block"
        in majority.sentences()[-1]
    )


def test_kinds_are_said_where_they_were_measured_alone(tmp_path, monkeypatch):
    own = MeasuredCoverage(
        key="topdown", name="TopDown", levels={"block": (None, None, (90.0, 99.0))}, source="", kinds=KINDS
    )
    monkeypatch.setattr(lookup, "list_measured_coverage", lambda name="": (own,))
    asked = {"block": "1", "race": "2"}
    other = look_up(write_packet(tmp_path / "classic", (10, 6), mode="classic"), asked)
    assert other.sentences()[-1].startswith("The interval is made to hold")
    assert "90 to 99 of 100 cells published as 5–19;" in other.sentences()[-1]  # another mode: by size
    bare = write_packet(tmp_path / "bare", (10, 6))
    (bare / "public/data/person.parquet").unlink()
    assert "90 to 99 of 100" in look_up(bare, asked).sentences()[-1]  # tables alone were published


def test_the_figures_of_kinds_are_those_of_the_page():
    lines = (PAGE.parents[1] / "benchmarks/who-pays.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| shares, mode | kind of cell | 0 |"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 : start + 11]]
    modes = {"pl94-stirred, gls": "gls", "pl94-stirred, guided": "guided", "pl94, classic": "classic"}
    found = [one for each in list_measured_coverage("topdown") for one in each.kinds]
    assert len(found) == len(rows)
    for (name, kind, *cells), one in zip(rows, found, strict=True):
        settings = {"workload": name.split(",")[0], "mode": modes[name]}
        assert one.covers(settings, ["block", "race"], kind)
        assert not one.covers(settings | {"rho_squared": "1"}, ["block", "race"], kind)
        read = [None if cell == "–" else tuple(map(float, (cell.split("–") * 2)[:2])) for cell in cells]
        assert read == list(one.classes)


def test_no_method_is_told_what_was_measured_of_another() -> None:
    told = describe_tables(Language.of("en"), ["gaussian-tables"])
    assert "How often they do was not measured for this method." in " ".join(told.split())
    assert "TopDown" not in told
    cell = PublishedCell(
        table="t", where={"block": "1"}, count=3, weighted=None, estimate=3.0, standard_error=2.0, low=0.0, high=8.0,
        private=True, mechanism="gaussian-tables",
    )  # fmt: skip
    assert cell.sentences()[2].endswith("95 in 100 cells published like this one.")
