"""Releases side by side: the same cells for all, and what is exact is said for each release by itself."""

import pyarrow as pa

from stirred.assess.assessment import Assessment, align_cells, assess_tables
from stirred.census import Census
from stirred.report.document import Note
from stirred.report.utility import _count_unchanged, write_truth_sections

CENSUS = Census.of(
    {"geography": {"spine": ["county"]}, "record": {"person": {"variables": {"race": [1, 2, 3]}}}},
    {"person": {"county": ["a", "a", "a", "b"], "race": [1, 1, 2, 1]}},
)
TRUTH = {("a", 1): 2, ("a", 2): 1, ("b", 1): 1}


def released(
    name: str, cells: dict[tuple[str, int], int], counties: tuple[int, int], error: float
) -> Assessment:
    """A release with a table of races, which lists cells at will, and one of counties."""
    races = pa.table(
        {
            "county": [county for county, _ in cells],
            "race": [race for _, race in cells],
            "count": list(cells.values()),
            "standard_error": [1.0] * len(cells),
        }
    )
    totals = pa.table({"county": ["a", "b"], "count": list(counties), "standard_error": [error, error]})
    tables = {"races": ("person", ["county", "race"], races), "totals": ("person", ["county"], totals)}
    return assess_tables(name, CENSUS, tables)


# the first lists three cells that are empty on both sides; the second fills one and leaves one out
FIRST = released("first", TRUTH | {("a", 3): 0, ("b", 2): 0, ("b", 3): 0}, (3, 1), 0.0)
SECOND = released("second", {("a", 1): 2, ("a", 2): 2, ("b", 3): 1}, (2, 2), 1.0)
LUCKY = released("lucky", TRUTH, (3, 1), 1.0)


def test_cells_that_are_empty_on_both_sides_do_not_count() -> None:
    assert FIRST.tables[0].pair.frame.height == 3
    sentence = _count_unchanged(SECOND.tables[0].pair)
    assert (
        sentence == "33% of the 3 cells with records in the census did not change; 1 empty cells got records."
    )


def test_all_releases_stand_on_the_same_cells() -> None:
    whole = align_cells([FIRST, SECOND, LUCKY])
    frames = [assessment.tables[0].pair.frame for assessment in whole]
    assert [frame.height for frame in frames] == [4, 4, 4]
    assert all(
        frame.select("county", "race", "reference").equals(frames[0].select("county", "race", "reference"))
        for frame in frames
    )


def test_exact_is_said_of_each_release_and_only_where_it_is_promised() -> None:
    notes = {
        b.text: b.tone
        for s in write_truth_sections([FIRST, SECOND, LUCKY])
        for b in s.blocks
        if isinstance(b, Note)
    }
    good = [text for text, tone in notes.items() if tone == "good"]
    assert good == ["first is exact in every cell of these tables, as promised: totals."]
    assert not any(text.startswith("second") for text in notes)
    assert "lucky changed no cell of these tables, though it does not promise so: races, totals." in notes
    broken = released("broken", TRUTH, (2, 2), 0.0)
    assert broken.broken_tables() == ("totals",)
