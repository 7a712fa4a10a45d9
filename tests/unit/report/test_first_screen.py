"""The first screen answers six questions in words, from public numbers unless the truth is given."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from stirred.assess.assessment import assess_tables
from stirred.census import Census
from stirred.report.first_screen import first_screen
from stirred.report.risk import PlainRisk
from stirred.report.sections import write_joint_cost
from stirred.spec import (
    Budget,
    Domain,
    Evidence,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
)

DOMAIN = Domain(name="toy", spine=("county", "block_group"))
TABLE = pa.table(
    {
        "county": ["a", "b", "c"],
        "count": [100, 5, 7],
        "estimate": [120.0, 5.5, 7.0],
        "standard_error": [5.0, 1.0, 0.0],
        "low": [110.2, 3.5, None],
        "high": [129.8, 7.5, None],
    }
)
TABLES = {"by-county": (["county"], TABLE)}


def specification(epsilon: str = "1", *, kept: bool = True, zcdp: bool = False) -> Specification:
    margins = [Margin("household", ("county",)), Margin("household", ("block_group",))] if kept else []
    return Specification(
        domain=DOMAIN,
        multiverse=Multiverse(frozenset(margins)),
        input_premetric=Hamming("household"),
        output_premetric=NormalizedRenyi() if zcdp else Multiplicative(),
        budget=Budget.of(Fraction(epsilon)),
        evidence=Evidence(status="proved", source="a proof"),
    )


def told(replies: object, number: int) -> str:
    reply = replies[number]  # type: ignore[index]
    parts = [reply.question]
    if reply.table is not None:
        parts += [" ".join(row) for row in (reply.table.columns, *reply.table.rows)]
    for answer in reply.answers:
        parts += [answer.release, answer.figure, answer.words]
    return " ".join([*parts, *reply.more])


def test_every_question_is_answered_in_words() -> None:
    replies = first_screen({"": specification()}, tables={"": TABLES}, labels={"block_group": "small area"})
    assert [reply.question for reply in replies] == [
        "How much could an attacker learn?",
        "Who is protected?",
        "What is exact, and so unprotected?",
        "How far did the numbers move?",
        "Which number do I quote?",
        "What does this not promise?",
    ]
    assert "Someone who starts at 50:50" in told(replies, 0)
    assert "medical test" in told(replies, 0)
    assert "Each household" in told(replies, 1)
    assert "2 sets of numbers" in told(replies, 2)
    assert "households by small area" in told(replies, 2)  # a label, no code
    assert "block_group" not in told(replies, 2)
    assert "The estimate" in told(replies, 4)
    assert "by-county 1 of 2" in told(replies, 4)  # one of two uncertain counts lies outside its interval
    assert "other releases" in told(replies, 5)


def test_what_anyone_finds_stands_before_the_odds() -> None:
    plain = PlainRisk(figure="95 of 100 households are shown where they live", words="Nobody can tell which.")
    reply = first_screen({"": specification()}, tables={}, risks={"": plain})[0]
    assert reply.answers[0].figure == plain.figure
    assert reply.answers[0].words.index("Nobody can tell") < reply.answers[0].words.index("odds up to")


def test_noise_that_pulls_no_count_away_is_not_said_to() -> None:
    noisy = pa.table(
        {
            "area": ["a"],
            "count": [7],
            "estimate": [7.0],
            "standard_error": [2.0],
            "low": [3.0],
            "high": [11.0],
        }
    )
    text = told(first_screen({"": specification()}, tables={"": {"t1": (["area"], noisy)}}), 4)
    assert "The estimate" in text
    assert "Counts are for adding up" in text
    assert "average" not in text


def test_exact_tables_are_named_by_what_determines_them() -> None:
    """A label that only lists variables is shortened, and its × are words."""
    spec = specification()
    by = ("state", "county", "tract", "block_group", "size")
    both = Margin("household", by, label=f"households by {' × '.join(by)}")
    domain = Domain(name="toy", spine=by[:4])
    spec = replace(spec, domain=domain, multiverse=Multiverse(frozenset([both])))
    text = told(first_screen({"": spec}, tables={"": TABLES}, labels={"block_group": "small area"}), 2)
    assert "As counted: households by small area and size." in text
    named = replace(spec, multiverse=Multiverse(frozenset([replace(both, label="homes by size")])))
    assert "As counted: homes by size." in told(first_screen({"": named}, tables={"": TABLES}), 2)


def test_uncertainty_is_told_from_public_numbers_table_by_table() -> None:
    shown = first_screen({"": specification()}, tables={"": TABLES})[3].table
    assert shown is not None
    assert shown.columns == ("table", "1–9", "100–999")  # a class without a cell has no column
    # an exact cell of 7 does not narrow the interval of the uncertain one of 5, and from 100 on it is in per cent
    plain = [cell.replace("\u00a0", " ") for cell in shown.rows[0]]
    assert plain == ["by-county", "± 2.0", "± 8.2%"]


def test_the_widest_interval_of_a_class_stands_beside_the_middle_one_rounded_up() -> None:
    """Three large cells of ± 0.1% and one of ± 4.4583%: the middle alone would be false of the last."""
    sizes, halves = [1000.0, 2000.0, 4000.0, 1200.0], [1.0, 2.0, 4.0, 53.5]
    wide = pa.table(
        {
            "county": list("abcd"),
            "count": [int(size) for size in sizes],
            "estimate": sizes,
            "standard_error": [half / 2 for half in halves],
            "low": [size - half for size, half in zip(sizes, halves, strict=True)],
            "high": [size + half for size, half in zip(sizes, halves, strict=True)],
        }
    )
    shown = first_screen({"": specification()}, tables={"": {"t": (["county"], wide)}})[3].table
    assert shown is not None
    assert shown.columns == ("table", "1,000+")
    assert shown.rows[0][1].replace("\u00a0", " ") == "± 0.10% (≤ 4.5%)"


def test_empty_cells_do_not_narrow_the_intervals_of_small_ones() -> None:
    """Nine published zeros known well beside one cell of 5 that is not: a summary of "below 10" would be false."""
    zeros = pa.table(
        {
            "county": [str(i) for i in range(10)],
            "count": [0] * 9 + [5],
            "estimate": [0.0] * 9 + [5.0],
            "standard_error": [0.3] * 9 + [2.0],
            "low": [0.0] * 9 + [1.0],
            "high": [0.5] * 9 + [9.0],
        }
    )
    shown = first_screen({"": specification()}, tables={"": {"t": (["county"], zeros)}})[3].table
    assert shown is not None
    assert shown.columns == ("table", "0", "1–9")
    assert [cell.replace("\u00a0", " ") for cell in shown.rows[0]] == ["t", "± 0.50", "± 4.0"]


def test_the_truth_is_told_only_with_an_assessment() -> None:
    census = Census.of(
        {"geography": {"spine": ["county"]}}, {"household": {"county": ["a"] * 110 + ["b"] * 5 + ["c"] * 7}}
    )
    found = assess_tables(
        "x", census, {"by-county": ("household", ["county"], TABLE.select(["county", "count"]))}
    )
    text = told(first_screen({"": specification()}, tables={"": TABLES}, assessments=[found]), 3)
    assert "by-county – 0 – 10 –" in text  # the cell of 110 lost 10, those of 5 and 7 nothing
    quoted = TABLE.append_column("quote", pa.array(["estimate", "count", "count"]))
    both_numbers = assess_tables("x", census, {"by-county": ("household", ["county"], quoted)})
    text = told(first_screen({"": specification()}, tables={"": TABLES}, assessments=[both_numbers]), 3)
    # the estimate of 120 is quoted for 110 and errs by 10; that of 5.5 is not quoted, the count of 5 is
    assert "by-county – 0 – 10 –" in text
    assert both_numbers.tables[0].quoted_pair().arrays()[1].tolist() == [120.0, 5.0, 7.0]
    kept = TABLE.select(["county"]).append_column("count", pa.array([110, 5, 7]))
    kept = kept.append_column("standard_error", pa.array([0.0] * 3))
    exact = assess_tables("y", census, {"by-county": ("household", ["county"], kept)})
    both = {"x": specification(), "y": specification("2")}
    text = told(first_screen(both, tables={}, assessments=[found, exact]), 3)
    assert "by-county 3 3.3 exact" in text  # what is promised is said, not averaged
    # over cells that no release keeps exact: the third of them has no stated error
    text = told(first_screen(both, tables={"x": TABLES}, assessments=[found, exact]), 3)
    assert "by-county 2 5.0 exact" in text


def test_the_worst_table_of_each_release_is_named_before_any_second_one() -> None:
    def outside(number: int) -> pa.Table:
        counts = [9] * number + [5] * (10 - number)
        same = {name: [value] * 10 for name, value in (("estimate", 5.0), ("standard_error", 1.0))}
        return pa.table(
            {"a": list(range(10)), "count": counts, **same, "low": [3.0] * 10, "high": [7.0] * 10}
        )

    releases = {
        "x": {f"x{i}": (["a"], outside(9 - i)) for i in range(6)},
        "y": {"y0": (["a"], outside(1))},
    }
    both = {"x": specification(), "y": specification("2")}
    text = told(first_screen(both, tables=releases), 4)
    assert "x, x0 9 of 10; y, y0 1 of 10; x, x1 8 of 10" in text
    assert "1 more table" in text


def test_nothing_exact_and_no_tables_are_said_plainly() -> None:
    replies = first_screen({"": specification(kept=False)}, tables={})
    assert "Nothing" in told(replies, 2)
    assert "Not stated" in told(replies, 3)
    assert "No table is published" in told(replies, 4)
    assert "Nothing about what is exact" not in told(replies, 5)


def test_releases_with_the_same_answer_share_it() -> None:
    both = {"often": specification("2"), "rarely": specification("1")}
    replies = first_screen(both, tables={}, together=write_joint_cost(both))
    assert [answer.release for answer in replies[1].answers] == [""]
    assert [answer.release for answer in replies[0].answers] == ["often", "rarely"]
    assert "often and rarely together costs ε = 3.0000" in told(replies, 6)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_publishing_all_adds_up_or_says_that_it_cannot(number: int) -> None:
    person = Specification(
        domain=Domain(name="other"),
        multiverse=Multiverse(),
        input_premetric=Hamming("person"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    given = {"a": specification("1"), "b": specification("2"), "c": person}
    text = write_joint_cost(dict(list(given.items())[:number]))
    expected = {1: "", 2: "Publishing a and b together costs", 3: "c comes on top"}[number]
    assert expected in text
    assert bool(text) is (number > 1)
