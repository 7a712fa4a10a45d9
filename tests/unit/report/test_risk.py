"""The chapter on risk: counted in the release alone in public, beside the census in the internal report."""

import pyarrow as pa
import pytest

from stirred.assess.attack.uniqueness import compare_with_census, count_cells_of_one, measure_uniqueness
from stirred.assess.risk import RiskMeasure, name_measure
from stirred.census import Census
from stirred.engine import Local
from stirred.languages import Language
from stirred.mechanisms.release import Release
from stirred.report import Report, render
from stirred.report.risk import (
    InversionShares,
    write_before_and_after,
    write_inversion,
    write_measures,
    write_unique,
)
from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification

SCHEMA = {"geography": {"spine": ["county", "block"]}}
PLACES = {"county": ["a", "a", "a", "b"], "block": ["1", "1", "2", "3"]}
TRUTH = Census.of(SCHEMA, {"household": {**PLACES, "size": [1, 1, 2, 3]}})
SHOWN = pa.table({**PLACES, "size": [1, 2, 1, 3]})


def release() -> Release:
    promise = Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    return Release(
        mechanism="toy",
        parameters={},
        specification=promise,
        microdata={"household": SHOWN},
        schema=TRUTH.schema,
    )


def test_records_that_are_alone_without_and_with_their_place() -> None:
    without, placed = measure_uniqueness(release(), Local())
    assert (without.by, without.records, without.alone) == (("size",), 4, 2)
    assert (placed.place, placed.alone) == ("block", 4)
    assert without.measures()[0].public


def test_the_census_beside_it_is_not_public() -> None:
    found = compare_with_census(measure_uniqueness(release(), Local()), release(), TRUTH, Local())
    assert [(one.before, one.as_shown) for one in found] == [
        (2, 2),
        (2, 1),
    ]  # (2, block 2) and (3, block 3); one is kept
    assert [measure.public for measure in found[1].measures()] == [True, False]
    told = write_before_and_after(found)
    assert told is not None
    assert "50%" in told.lead


def test_the_public_section_does_not_know_the_census() -> None:
    """The same release of another census gives the same words; only the internal section differs."""
    other = Census.of(SCHEMA, {"household": {**PLACES, "size": [3, 3, 3, 3]}})
    public, internal = [], []
    for census in (TRUTH, other):
        found = measure_uniqueness(release(), Local())
        public.append(write_unique(found, (0, 0), limited=True))
        internal.append(write_before_and_after(compare_with_census(found, release(), census, Local())))
    assert public[0] == public[1]
    assert internal[0] != internal[1]


@pytest.mark.parametrize("code", ["en", "de", "fr", "es"])
def test_the_section_is_said_in_every_language(code: str) -> None:
    found = measure_uniqueness(release(), Local())
    section = write_unique(found, (0, 0), limited=False, labels={"size": "persons"})
    assert section is not None
    report = Report(
        title="t", subtitle="", audience="public", sections=(section,), language=Language.of(code)
    )
    page = render(report)
    words = {"en": "alone", "de": "allein", "fr": "seuls", "es": "solos"}
    assert words[code] in page
    assert "risk.alone" not in page


def test_tables_alone_are_told_by_their_cells_of_one() -> None:
    tables = {"t": (["size"], pa.table({"size": [1, 2, 3], "count": [1, 5, 1]}))}
    assert count_cells_of_one(tables) == (3, 2)
    section = write_unique((), count_cells_of_one(tables), limited=False)
    assert section is not None
    assert section.lead == "Of 3 published cells 2 show a count of 1; no records are published."
    assert write_unique((), (0, 0), limited=True) is None


@pytest.mark.parametrize("code", ["en", "de", "fr", "es"])
def test_what_undoing_a_swap_finds_is_said_in_every_language(code: str) -> None:
    found = InversionShares(
        record_type="household",
        share=0.95,
        guess=0.002,
        best=0.95,
        sure=0.99,
    )
    section = write_inversion(found)
    report = Report(
        title="t", subtitle="", audience="public", sections=(section,), language=Language.of(code)
    )
    page = render(report)
    assert "risk.undone" not in page
    assert "95" in page


@pytest.mark.parametrize("code", ["de", "fr", "es"])
def test_measures_are_named_in_every_language(code: str) -> None:
    """Names, kinds and sentences of measures are phrases, also where a part of them is a value."""
    measures = [
        RiskMeasure(
            name=name_measure("recall", source=name_measure("source.records")),
            about=name_measure("about.exposed"),
            kind="absolute",
            value=0.5,
            unit="share",
        ),
        RiskMeasure(
            name=name_measure("implied"), about="households", kind="relative", value=None, unit="share"
        ),
    ]
    section = write_measures("t", "l", [("r", one) for one in measures])
    page = render(
        Report(title="t", subtitle="", audience="public", sections=(section,), language=Language.of(code))
    )
    for words in ("recall of", "released records", "count is implied", "Absolute risk", "unknown"):
        assert words not in page
    assert Language.of(code).say("measure.implied") in page
