"""The page: chapters in order, charts that say in words what they show, tables with few digits, no address, any language."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from stirred.assess.assessment import assess_tables
from stirred.assess.conclusions import ChangedNumber, Coefficient, Conclusions, Estimate
from stirred.catalog import catalog
from stirred.census import Census
from stirred.census.geography import BorderLines
from stirred.census.toml import parse_schema
from stirred.languages import Language, Phrase
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.release import Release
from stirred.publish.documents import ground_of
from stirred.report import Report, Section, charts, render, sections, utility
from stirred.report.charts import Ground, areas
from stirred.report.document import Chart, Note, Paragraphs, ReleaseAnswer, Reply, make_table, unfold
from stirred.report.html import card_in_words
from stirred.report.sections import draw_exhibit
from stirred.report.uncertainty import Labels, write_published
from stirred.spec import (
    Budget,
    Domain,
    Evidence,
    Hamming,
    Multiverse,
    NormalizedRenyi,
    RecordPremetric,
    Specification,
    SymmetricDifference,
)

PALE = re.compile(r"https?://(?!www\.w3\.org|vega\.github\.io|github\.com)", re.I)


def big_table(cells: int = 60) -> pa.Table:
    estimate = [3.0 * (i + 1) ** 2 for i in range(cells)]
    error = [1.0 + 0.01 * value for value in estimate]
    return pa.table(
        {
            "tract": [f"t{i:02}" for i in range(cells)],
            "count": [round(value) for value in estimate],
            "estimate": estimate,
            "standard_error": error,
            "low": [v - 2 * e for v, e in zip(estimate, error, strict=True)],
            "high": [v + 2 * e for v, e in zip(estimate, error, strict=True)],
        }
    )


def section(chapter: str) -> Section:
    return Section(title=f"about {chapter}", lead="A finding.", chapter=chapter)  # type: ignore[arg-type]


def test_chapters_stand_in_reading_order_and_risk_only_where_there_is_some() -> None:
    report = Report(
        title="t",
        subtitle="",
        audience="public",
        sections=tuple(map(section, ("method", "accuracy", "promise", "exact"))),
    )
    assert list(report.chapters()) == ["promise", "accuracy", "exact", "method"]
    text = render(report)
    assert 'id="risk"' not in text
    assert text.index("about promise") < text.index("about exact") < text.index("about method")
    risky = Exhibit(title="Guards", finding="One guard looked.", chapter="risk")
    with_risk = Report(
        title="t", subtitle="", audience="public", sections=(section("method"), draw_exhibit(risky))
    )
    assert render(with_risk).index('id="risk"') < render(with_risk).index('id="method"')


def test_published_numbers_show_small_cells_too() -> None:
    found = write_published({"by-tract": (["tract"], big_table())})
    charts_shown = [block for block in unfold(found.blocks) if isinstance(block, Chart)]
    names = [chart.name for chart in charts_shown]
    assert names == ["uncertainty-by-size", "table-by-tract-large", "table-by-tract-small"]
    small = next(chart for chart in charts_shown if chart.name.endswith("small"))
    assert small.data is not None
    assert all(float(row[2].replace(",", "")) < 3000 for row in small.data.rows)
    assert found.lead.startswith("0 of 1 published tables are exact")


def test_exact_tables_are_said_and_not_drawn() -> None:
    exact = pa.table(
        {
            "tract": ["a"],
            "count": [3],
            "estimate": [3.0],
            "standard_error": [0.0],
            "low": [None],
            "high": [None],
        }
    ).cast(
        pa.schema(
            [
                ("tract", pa.string()),
                ("count", pa.int64()),
                ("estimate", pa.float64()),
                ("standard_error", pa.float64()),
                ("low", pa.float64()),
                ("high", pa.float64()),
            ]
        )
    )
    found = write_published({"x": (["tract"], exact)})
    assert not [block for block in found.blocks if isinstance(block, Chart)]
    assert found.lead == "Every published cell is exact."


def test_areas_are_a_map_where_there_are_borders() -> None:
    square = [[[(0, 0), (9, 0), (9, 9), (0, 9), (0, 0)]]]
    codes = [f"t{i:02}" for i in range(60)]
    borders = BorderLines(level="tract", areas=dict.fromkeys(codes, square), width=9, height=9)
    for ground, mark in (
        (Ground(levels=("tract",), borders=borders), "geoshape"),
        (Ground(levels=("tract",)), "rect"),
    ):
        found = write_published({"by-tract": (["tract"], big_table())}, ground=ground, labels=Labels())
        drawn = [b for b in found.blocks if isinstance(b, Chart) and b.name == "areas-uncertain"]
        assert mark in json.dumps(drawn[0].spec)
        assert drawn[0].data is not None


def test_a_report_knows_how_areas_nest_and_what_codes_mean(tmp_path: Path) -> None:
    square = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    feature = {
        "type": "Feature",
        "properties": {"code": "t1"},
        "geometry": {"type": "Polygon", "coordinates": [square]},
    }
    (tmp_path / "t.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    schema = parse_schema(
        {
            "geography": {"spine": ["county", "tract"], "shapes": "t.geojson", "shapes_key": "code"},
            "record": {"household": {"variables": {"tenure": {"levels": [1], "labels": {"1": "rented"}}}}},
        }
    )
    records = pa.table({"county": ["b", "a"], "tract": ["t1", "t2"], "tenure": [1, 1]})
    release = Release(
        mechanism="m",
        parameters={},
        specification=Specification.__new__(Specification),
        microdata={"household": records},
    )
    ground = ground_of(schema, tmp_path / "census.toml", [release])
    assert ground.order("tract", ["t1", "t2"]) == ["t2", "t1"]
    assert ground.drawn_level == "tract"
    assert ground.labels["tenure"] == {"1": "rented"}


def test_a_signed_picture_has_a_legend_with_both_halves() -> None:
    values = {f"t{i}": float(i - 5) for i in range(11)}
    chart = areas("a", "t", "s", values, ground=Ground(), level="tract", value="change, %", signed=True)
    assert chart is not None
    text = json.dumps(chart.spec)
    assert '"domain": [-5.0, 0, 5.0]' in text
    assert '"values": [-5.0, -2.5, 0, 2.5, 5.0]' in text
    assert areas("a", "t", "s", {"t1": 1.0}, ground=Ground(), level="tract", value="v") is None
    halves = {name: value / 2 for name, value in values.items()}
    small = areas("a", "t", "s", halves, ground=Ground(), level="tract", value="v", signed=True)
    assert small is not None
    assert "enden bei 2,5\u00a0%" in Language.of("de").translate(small.sentence)


def test_names_of_tiles_stand_only_where_they_fit_and_can_be_read() -> None:
    def draw(number: int) -> str:
        values = {f"{at:05}": float(at) for at in range(number)}
        chart = areas("a", "t", "s", values, ground=Ground(), level="tract", value="v")
        assert chart is not None
        return json.dumps(chart.spec)

    few, many = draw(40), draw(2_000)
    assert '"names"' in few
    assert '"n": "39"' in few
    assert "night ?" in few  # on a tile of full colour a name has the colour of the page
    assert '"names"' not in many
    assert '"n":' not in many


def test_conditions_are_told_with_labels() -> None:
    """A code of the census stands in sentences and cards of a report by its label, escaped."""
    levels = {"kind": {"2": "vacant", "3": "<gq>"}}
    note = Note(text="homes with kind = 2 or 3; size = 2")
    part = Section(title="t", lead="kind = 3", blocks=(note,))
    page = render(Report(title="t", subtitle="", audience="public", sections=(part,), levels=levels))
    assert "homes with vacant or &lt;gq&gt;; size = 2" in page
    assert card_in_words("<p>kind = 3</p>", levels) == "<p>&lt;gq&gt;</p>"
    assert card_in_words("<p>kind = 3 or 4</p>", levels) == "<p>kind = 3 or 4</p>"  # a code without a label


def test_errors_have_two_digits_and_relative_error_goes_by_size() -> None:
    people = ["a"] * 1234 + ["b"] * 5 + ["c"] * 17
    census = Census.of({"geography": {"spine": ["county"]}}, {"household": {"county": people}})
    noisy = pa.table({"county": ["a", "b", "c"], "count": [1200, 6, 18]})
    found = assess_tables("x", census, {"t": ("household", ["county"], noisy)})
    parts = utility.write_truth_sections([found])
    chart = next(b for b in parts[0].blocks if isinstance(b, Chart) and b.name == "error-by-size-t")
    assert chart.data is not None
    assert [row[0] for row in chart.data.rows] == ["1–9", "10–99", "1,000+"]
    assert chart.data.rows[0][3] == "20"  # from 5 to 6
    assert chart.data.rows[1][3] == "5.9"
    metrics, meaning = parts[0].blocks[-1].blocks  # type: ignore[union-attr]
    assert all(f"{name}: " in meaning.paragraphs[1] for name in ("MAE", "RMSE", "MAPE (paper)", "TVD"))  # type: ignore[union-attr]
    assert sum("MAPE" in column for column in metrics.columns) == 1  # type: ignore[union-attr]


def test_every_chart_has_words_and_a_table() -> None:
    found = write_published({"by-tract": (["tract"], big_table())}, ground=Ground(levels=("tract",)))
    text = render(Report(title="t", subtitle="s", audience="public", sections=(found,)))
    labels = re.findall(r'<div class="chart" id="[^"]+" role="img" aria-label="([^"]+)"', text)
    assert len(labels) == sum(isinstance(block, Chart) for block in unfold(found.blocks)) == 4
    assert all(len(label) > 30 for label in labels)
    assert text.count("The numbers behind this chart") == 4
    assert not PALE.search(text.partition('<script type="module">')[0])


def test_black_is_never_written_into_a_chart() -> None:
    found = write_published({"by-tract": (["tract"], big_table())}, ground=Ground(levels=("tract",)))
    specs = json.dumps([b.spec for b in found.blocks if isinstance(b, Chart)])
    assert not re.search(r'"(black|#000|#000000|white|#fff)"', specs)


@pytest.mark.parametrize("code", ["en", "de", "fr", "es"])
def test_numbers_follow_the_language(code: str) -> None:
    block = make_table("t", ["a", "n"], [["x", 12345.5]], numeric=["n"])
    reply = Reply(
        question=Phrase("card.status.proved"), answers=(ReleaseAnswer(figure="1"),), chapter="promise"
    )
    one = Section(title="t", lead="l", blocks=(block,))
    report = Report(title="t", subtitle="", audience="public", sections=(one,), first=(reply,))
    language = Language.of(code)
    text = render(replace(report, language=language))
    assert f'<html lang="{code}">' in text
    assert language.write_number("12,345.5") in text
    assert language.say("card.status.proved") in text


def test_charts_keep_their_names_apart() -> None:
    one = charts.lines("a", "t", "s", [{"x": 1, "y": 2}], x="x", y="y")
    report = Report(
        title="t", subtitle="", audience="public", sections=(Section(title="t", lead="l", blocks=(one, one)),)
    )
    with pytest.raises(Exception, match="same name"):
        render(report)


def test_the_twelve_questions_of_the_docs_point_to_cards_that_exist() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/explain/reading-a-report.md").read_text()
    assert len(re.findall(r"^### \d+\. ", page, re.MULTILINE)) == 12


def test_what_users_conclude_has_errors_of_two_digits_and_numbers_as_precise() -> None:
    changed = ChangedNumber(what="entropy index", about="persons", original=0.105731, protected=0.103149)
    kept = replace(changed, original=0.105731, protected=0.105731)
    fit = Coefficient(
        model="size on tenure",
        about="households",
        original=Estimate(name="tenure", value=1.234567, error=0.012345),
        protected=Estimate(name="tenure", value=1.198765, error=0.023456),
    )
    found = utility.write_conclusions([("x", Conclusions(changes=(changed, kept), coefficients=(fit,)))])
    numbers, fits = found.blocks
    assert numbers.rows[0][3:] == ("0.1057", "0.1031", "−0.0026")  # type: ignore[union-attr]
    assert numbers.rows[1][3:] == ("0.1057", "0.1057", "0")  # type: ignore[union-attr]
    assert fits.rows[0][4:7] == ("1.235", "1.199", "0.023")  # type: ignore[union-attr]
    assert "by −2.4% in x (0.1057 to 0.1031)" in found.lead


@pytest.mark.parametrize(
    ("premetric", "words"),
    [
        (SymmetricDifference("person"), "one person record added or removed"),
        (Hamming("person"), "one person record changed"),
    ],
)
def test_the_lead_names_the_change_that_the_promise_is_about(premetric: RecordPremetric, words: str) -> None:
    spec = Specification(
        domain=Domain(name="d"),
        multiverse=Multiverse.none(),
        input_premetric=premetric,
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(Fraction(2)),
        evidence=Evidence(status="proved", source="a test"),
    )
    assert words in str(sections.write_promise(spec).lead)


def test_labels_of_charts_cannot_leave_their_script() -> None:
    """A label of the census in a chart and in the table under it: no tag of it reaches the page."""
    evil = "</script><script>alert(1)</script>"
    chart = charts.bars("c", evil, evil, [{"area": evil, "error": 1.0}], category="area", value="error")
    part = Section(title="t", lead="l", blocks=(chart,))
    page = render(Report(title="t", subtitle="", audience="public", sections=(part,)))
    assert "alert(1)" in page  # it is shown, as text
    assert evil not in page
    assert "<script>alert" not in page
    ends = page.count("</script>")
    plain = replace(
        part,
        blocks=(charts.bars("c", "t", "s", [{"area": "a", "error": 1.0}], category="area", value="error"),),
    )
    assert ends == render(Report(title="t", subtitle="", audience="public", sections=(plain,))).count(
        "</script>"
    )


def test_a_promise_with_an_exception_is_told_in_one_language() -> None:
    (words, _) = sections.write_promise(catalog["pl-2020"]).blocks
    assert isinstance(words, Paragraphs)
    told = Language.of("de").translate(words.paragraphs[0])
    assert "(außer mit Wahrscheinlichkeit 10⁻¹⁰)" in told
    assert "except" not in told
