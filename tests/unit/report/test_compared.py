"""A comparison in a report: one sentence that names both sides, and the names never change places."""

from dataclasses import replace

from stirred.catalog import catalog
from stirred.languages import Language
from stirred.mechanisms.effect import ExpectedEffect
from stirred.publish.side_by_side import comparison_sections
from stirred.report import Note, TableBlock, sections
from stirred.report.comparison import NamedComparison, insert_names
from stirred.report.document import Fold
from stirred.spec import Verdict, compare

SWAP = catalog.entry("whatif-state-size")
RARE, OFTEN = SWAP.at("1/20"), SWAP.at("1/2")
LEAD = "PSA at 50 % promises more than PSA at 5 %."


def test_the_lead_says_in_one_line_which_promises_more() -> None:
    section = sections.write_comparison("PSA at 5 %", "PSA at 50 %", compare(RARE, OFTEN))
    assert section.lead.startswith(LEAD)
    assert sections.write_comparison("PSA at 50 %", "PSA at 5 %", compare(OFTEN, RARE)).lead.startswith(LEAD)
    parts, answers = (block for block in section.blocks if isinstance(block, TableBlock))
    assert [row[:2] for row in parts.rows][-1] == ("budget", "weaker")
    assert [row[:2] for row in answers.rows] == [
        ("Does PSA at 5 % imply PSA at 50 %?", "no, refuted"),
        ("Does PSA at 50 % imply PSA at 5 %?", "yes, proved"),
    ]
    notes = [block.text for block in section.blocks if isinstance(block, Note)]
    assert any(text.startswith("The budget of PSA at 5 % ") for text in notes)
    text = " ".join([section.lead, *notes, *(word for row in (*parts.rows, *answers.rows) for word in row)])
    assert "the first" not in text
    assert "the second" not in text


def test_an_open_reverse_still_says_what_is_known() -> None:
    found = compare(RARE, OFTEN)
    half_open = replace(found, forth=Verdict.unknown("no rule"))
    line = NamedComparison(first="rare", second="often", found=half_open).overall
    assert line.startswith("often promises at least as much as rare: ")
    assert line.endswith("; whether it promises more is unknown")
    refuted = compare(catalog["das-2010"], catalog["das-2020"])
    half_open = replace(refuted, back=Verdict.unknown("no rule"))
    line = NamedComparison(first="A", second="B", found=half_open).overall
    assert line.startswith("A does not imply B: A may publish ")
    assert line.endswith("; whether B implies A is unknown")


def test_a_quoted_source_keeps_its_words() -> None:
    text = "the budget of the second is published, not proved here: Smith, the first draft"
    assert insert_names(text, "A", "B", times=1).endswith(
        "of B is published, not proved here: Smith, the first draft"
    )
    assert insert_names("at the second's smallest budget", "A", "B") == "at B's smallest budget"
    # names are put in once: a file may be called "the first"
    assert (
        insert_names("the first implies the second", "the second", "the first")
        == "the second implies the first"
    )


def test_three_releases_are_compared_two_by_two_under_their_findings() -> None:
    found = comparison_sections(["often", "rare", "again"], [OFTEN, RARE, OFTEN])
    pairs = [one for one in found if one.title == "Two by two"]
    assert len(pairs) == 1
    titles = [str(fold.title) for fold in pairs[0].blocks if isinstance(fold, Fold)]
    assert len(titles) == 3
    assert titles[0].startswith("often beside rare: often promises more than rare")
    two = [str(one.title) for one in comparison_sections(["often", "rare"], [OFTEN, RARE])]
    assert "often beside rare" in two


def test_a_loss_is_written_as_the_language_writes_numbers() -> None:
    effect = ExpectedEffect(kind="records", share=0.1, records=100, losses={"one": "9.8602", "two": "∞"})
    told = effect.compare_losses("swap.losses.finding")
    assert told is not None
    assert "ε = 9,8602 durch one und ε = ∞ durch two" in Language.of("de").translate(told)
