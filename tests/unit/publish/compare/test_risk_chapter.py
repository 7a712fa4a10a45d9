"""The public chapter on risk: from releases alone, for every mechanism, in every language."""

import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from stirred import ExactMargins, GaussianTables, Plan
from stirred.assess.attack.inference import guess_by_area, infer_table
from stirred.assess.universe import measure_universe, measures
from stirred.assess.universe.measures import measure_disclosure
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.engine import Local
from stirred.languages import CODES, Language
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Release, scan_records
from stirred.mechanisms.swap import PermutationSwapping, TargetedSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.publish import documents
from stirred.publish.documents import public_risk
from stirred.report import Report, Section, render

PLACES = ["county", "tract", "block_group", "block"]
MAKERS: dict[str, Mechanism] = {
    "swap": PermutationSwapping(match=["state", "size"], swap=PLACES, rate="1/20"),
    "topdown": TopDown(workload="pl94-persons", replicates=0),
    "targeted": TargetedSwapping(
        hierarchy=PLACES,
        similar=[["state", "size"]],
        swaprate="1/10",
        risk_variables=["tenure"],
        without_guarantee="a test",
    ),
    "margins": ExactMargins(rows="county", columns="tenure", rho_squared="1/2"),
    "tables": GaussianTables(tables=[["tract", "tenure"]], rho_squared="4"),
}


@pytest.fixture(scope="module")
def truth() -> Census:
    drawn = synthesise("demo", households=120)
    return Census.of(drawn.schema, drawn.tables)


RELEASES: dict[str, Release] = {}


def made(mechanism: Mechanism, truth: Census) -> Release:
    """The release of a mechanism, made once."""
    if mechanism.name not in RELEASES:
        RELEASES[mechanism.name] = mechanism.release(truth, key=Key.for_tests(1))
    return RELEASES[mechanism.name]


def chapter(mechanism: Mechanism, truth: Census, shown: Any = None) -> dict[str, Section]:
    """The sections by title; ``shown`` takes the place of the release."""
    release = shown or made(mechanism, truth)
    plan = SimpleNamespace(steps=[SimpleNamespace(mechanism=mechanism, source=None)], tables=[])
    tables = {
        name: (by, mechanism.table(release, by))
        for name, by in mechanism.list_own_tables(release).items()
        if by and set(by) <= {*truth.schema.spine, "tenure"}
    }
    found = public_risk(
        cast("Plan", plan), truth.schema, release.specification, [release], tables, Local(), {}
    )
    return {section.title: section for section in found}


GIVEN, GUESSED, NOISY = (
    "What the exact numbers alone give away",
    "What someone guesses who knows only the place",
    "What someone finds who knows how large the errors are",
)


def test_every_release_says_what_exact_numbers_give_away_and_what_an_attack_finds(truth: Census) -> None:
    attacks = {
        "swap": "What someone finds who tries to undo the swap",
        "topdown": GUESSED,
        "targeted": GUESSED,
        "margins": NOISY,
        "tables": NOISY,
    }
    for name, mechanism in MAKERS.items():
        found = chapter(mechanism, truth)
        assert GIVEN in found, name
        assert attacks[name] in found, name
        words = " ".join(str(one) for one in paragraphs(found[attacks[name]]))
        assert "absolute risk" in words, name
        assert "confidential data were not used" in words, name


def paragraphs(section: Section) -> Iterator[str]:
    for block in section.blocks:
        yield from getattr(block, "paragraphs", ())


@pytest.mark.parametrize("name", ["swap", "targeted", "topdown"])
def test_the_numbers_of_the_release_are_those_of_the_census(name: str, truth: Census) -> None:
    """Both have the same invariants, so what is counted in the one is true of the other."""
    mechanism = MAKERS[name]
    release = made(mechanism, truth)
    told = [one for one in measure_disclosure(release) if one.records is not None]
    assert told
    for one in told:
        columns = scan_records(release.microdata[one.record_type]).collect_schema().names()
        if not {*columns} <= {*truth.columns(one.record_type), *truth.schema.spine}:
            assert one.certain == 0  # TopDown has variables of its own, and no table of them is exact
            continue
        beside = measure_universe(release, truth, work=0)
        bits = beside.measure("ways to assign all values (labelled)", one.record_type).value
        assert one.values == pytest.approx(2 ** (bits or 0.0))
        places = beside.measure("ways to place records whose other values are known").value
        assert one.places == pytest.approx(2 ** (places or 0.0))
        sure = beside.measure("records that certainly stand in a cell").value or 0.0
        assert one.certain == round(sure * ((one.records or 0) - one.fixed))


def test_the_exact_numbers_of_the_truth_give_the_same_section_and_a_mutant_another(
    truth: Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting in the census would change nothing in the one section, and is found in the others."""
    mechanism = MAKERS["targeted"]
    release = made(mechanism, truth)
    shown = chapter(mechanism, truth, release)
    confidential = replace(release, microdata={name: truth.table(name) for name in release.microdata})
    monkeypatch.setattr(
        measures, "measure_disclosure", lambda _, **asked: measure_disclosure(confidential, **asked)
    )
    assert chapter(mechanism, truth, release)[GIVEN] == shown[GIVEN]
    monkeypatch.undo()

    def of_the_truth(*_: object) -> pl.LazyFrame:
        return truth.scan("person", ["block", "race", "sex", "age"])

    monkeypatch.setattr(documents, "join_household", of_the_truth)
    monkeypatch.setattr(documents, "choose_questions", lambda *_: [(("race", "sex", "block"), "block")])
    mutant = chapter(mechanism, truth, release)
    assert mutant[GUESSED] != shown[GUESSED]


def test_what_is_left_out_is_said_with_the_command(truth: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_RECORDS_UNDONE", 10)
    monkeypatch.setattr(documents, "MAX_RECORDS", 10)
    found = chapter(MAKERS["swap"], truth)
    words = " ".join(map(str, paragraphs(found["What this report leaves out"])))
    assert "undoing the swap" in words
    assert "Who stands alone" in words
    assert "stirred assess PACKET --truth census.toml --only attack" in words


def test_it_is_said_in_every_language(truth: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [one for name in ("topdown", "tables") for one in chapter(MAKERS[name], truth).values()]
    monkeypatch.setattr(documents, "MAX_RECORDS_UNDONE", 10)
    sections += chapter(MAKERS["topdown"], truth).values()
    report = Report(title="t", subtitle="", audience="public", sections=tuple(sections))
    for code in (code for code in CODES if code != "en"):
        page = render(replace(report, language=Language.of(code)))
        assert "exact numbers" not in page
        assert "about" not in re.findall(r'class="number">(\w+) ', page)
        assert not re.search(r"risk\.(given|noisy|majority|left_out)", page)


def test_the_expected_hits_are_those_of_a_simulation() -> None:
    rng = np.random.default_rng(1)
    counts = rng.negative_binomial(2, 0.25, 20_000)
    noisy = counts + rng.normal(0, 1.5, counts.size)
    table = pl.DataFrame({"a": range(counts.size), "estimate": noisy, "standard_error": 1.5})
    found = infer_table("t", table, ["a"])
    assert found is not None
    guess = np.bincount(counts).max() / counts.size
    assert found.guess == pytest.approx(guess, abs=0.01)
    weights = np.bincount(counts, minlength=counts.max() + 1) / counts.size
    levels = np.arange(weights.size)
    best = [
        levels[np.argmax(weights * np.exp(-((one - levels) ** 2) / (2 * 1.5**2)))] for one in noisy[:4_000]
    ]
    assert found.found == pytest.approx(np.mean(best == counts[:4_000]), abs=0.02)


def test_the_guess_by_area_is_that_of_all_others() -> None:
    rng = np.random.default_rng(2)
    area, value = rng.integers(0, 12, 60), rng.integers(0, 3, 60)
    frame = pl.LazyFrame({"area": area, "value": value})
    found = guess_by_area(frame, "area", "value")
    assert found is not None
    modes = np.bincount(value)
    hits = 0.0
    for place, own in zip(area, value, strict=True):
        rest = np.bincount(value[area == place], minlength=3)
        rest[own] -= 1
        top = np.flatnonzero(rest == rest.max()) if rest.sum() else np.array([modes.argmax()])
        hits += (own in top) / top.size
    assert found.found == pytest.approx(hits / 60)
    assert found.guess == pytest.approx(modes.max() / 60)
