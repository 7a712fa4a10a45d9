"""Plans: what is understood, and what each wrong plan is told."""

import json
from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred.errors import InputError, PlanError, StirredError
from stirred.mechanisms.registry import find_mechanism
from stirred.publish import load, parse
from stirred.publish.check import prepare
from stirred.publish.plan.models import PLACEHOLDERS, new_plan, questions

GOOD = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "1/20"
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
"""

ROWS = households(40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(ROWS)
    return tmp_path


def test_a_good_plan(folder: Path) -> None:
    plan = parse(GOOD, folder=folder)
    ready = prepare(plan, folder / "packet")
    census, specification = ready.census, ready.specification
    assert census.count("household") == 40
    assert specification.budget.is_finite
    assert plan.digest == parse(GOOD, folder=folder).digest


def test_a_census_whose_name_is_too_long_for_the_system_is_refused_when_the_plan_is_read(
    folder: Path,
) -> None:
    levels = 'name = "swapping-imputed-stay"\nimputed = "tenure"\nlevels = ["1"]'
    text = GOOD.replace('name = "permutation-swapping"', levels)
    with pytest.raises(InputError, match="no file or folder can have this name"):
        parse(text.replace("census.toml", "a" * 300), folder=folder)


WRONG = {
    "no TOML": ("title = ", "not valid TOML"),
    "unknown key": (GOOD + "\n[publish]\nmicrodatta = true\n", "did you mean microdata"),
    "unknown top key": (GOOD.replace("title", "titel", 1), "titel"),
    "no title": (GOOD.replace('title = "t"\n', ""), "lacks title"),
    "no census": (GOOD.replace('census = "census.toml"\n', ""), "lacks census"),
    "no mechanism": ('title = "t"\ncensus = "census.toml"\n', "mechanism"),
    "unknown mechanism": (
        GOOD.replace("permutation-swapping", "permutation-swaping"),
        "did you mean permutation-swapping",
    ),
    "rate as a number": (GOOD.replace('"1/20"', "0.05"), 'rate = "1/20"'),
    "rate of 5": (GOOD.replace('"1/20"', '"5"'), "five percent"),
    "rate no number": (GOOD.replace('"1/20"', '"five"'), "exact number"),
    "rate below zero": (GOOD.replace('"1/20"', '"-1/20"'), "0 to 1"),
    "match as a text": (GOOD.replace('["state", "size"]', '"state"'), "a list of variables"),
    "swap in match": (
        GOOD.replace('swap = ["county"]', 'swap = ["size"]'),
        "both a match and a swap variable",
    ),
    "nothing swapped": (GOOD.replace('swap = ["county"]', "swap = []"), "swap"),
    "unknown variable": (GOOD.replace('"size"]', '"sise"]'), "did you mean size"),
    "unknown table variable": (GOOD.replace('"tenure"]', '"tenur"]'), "did you mean tenure"),
    "unknown record type": (GOOD + 'record_type = "person"\n', "person"),
    "table twice": (GOOD + '[[table]]\nname = "tenure-by-county"\nby = ["county"]\n', "stands twice"),
    "table with a path": (GOOD.replace("tenure-by-county", "../x"), "file name"),
    "empty table": (GOOD.replace('["county", "tenure"]', "[]"), "no variables"),
    "nothing published": (GOOD.split("[[table]]")[0] + "[publish]\nmicrodata = false\n", "publishes nothing"),
    "budget as a float": (GOOD + "[budget]\nlimit = 0.1\n", "never a float"),
    "budget overdrawn": (GOOD + '[budget]\nlimit = "1/10"\n', "more than its limit"),
    "census elsewhere": (GOOD.replace("census.toml", "no.toml"), "not there"),
    "format unknown": (GOOD + '[publish]\nformats = ["xls"]\n', "formats"),
    "reason unknown": (GOOD + '[[reason]]\ninvariant = "x"\nkind = "whim"\ntext = "y"\n', "kind"),
    "rate one": (GOOD.replace('"1/20"', '"1"'), "protects nothing"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_plan_says_what_and_how_to_fix_it(name: str, folder: Path) -> None:
    text, expected = WRONG[name]
    with pytest.raises(StirredError) as caught:
        prepare(parse(text, folder=folder), folder / "packet")
    message = str(caught.value)
    assert expected in message
    assert "fix:" in message or "why:" in message
    assert sorted(p.name for p in folder.iterdir()) == ["census.toml", "household.csv"]  # nothing was written


def test_an_existing_packet_and_an_unwritable_place_are_refused(folder: Path) -> None:
    plan = parse(GOOD, folder=folder)
    (folder / "packet").mkdir()
    with pytest.raises(StirredError, match="never overwritten"):
        prepare(plan, folder / "packet")
    with pytest.raises(StirredError, match="cannot write"):
        prepare(plan, folder / "no" / "packet")


def test_a_plan_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        load(tmp_path / "plan.toml")
    assert caught.value.why == "plan.toml: No such file or directory"
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError) as caught:
        load(tmp_path / "plan.toml")
    assert caught.value.why == "plan.toml is not text in UTF-8"


@pytest.mark.parametrize(("key", "placeholder"), PLACEHOLDERS.items())
def test_a_placeholder_is_a_comment_in_the_template_and_refused_as_a_reason(
    key: str, placeholder: str
) -> None:
    kind = find_mechanism("exact-margins")
    template = new_plan(kind, {name: usual for name, (_, usual) in questions(kind).items()})
    assert f'# {key} = "{placeholder}"' in template.splitlines()
    assert parse(template, folder=Path()).reasons == ()
    reason = {"invariant": "county", "kind": "law", "text": "apportionment", "citation": "Article I"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in (reason | {key: placeholder}).items()]
    with pytest.raises(PlanError, match=f"has no {key}"):
        parse(template + "\n[[reason]]\n" + "\n".join(lines), folder=Path())


def test_an_empty_reason_is_refused() -> None:
    kind = find_mechanism("exact-margins")
    template = new_plan(kind, {name: usual for name, (_, usual) in questions(kind).items()})
    with pytest.raises(PlanError, match="has no text"):
        parse(f'{template}\n[[reason]]\ninvariant = "i"\nkind = "law"\ntext = " "\n', folder=Path())
