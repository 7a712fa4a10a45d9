"""Forms from the settings of mechanisms, and the promise that they change."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from bench_client import BenchClient, form_in
from layouts import LAYOUTS
from stirred import PermutationSwapping, Stirring
from stirred.census import Schema
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.registry import Registration, list_mechanisms
from stirred.mechanisms.swap.config import SwapConfig
from stirred.spec import SizeLaw
from stirred.web.document import document_of, edit_text, text_of
from stirred.web.forms import DEFAULT_SUFFIX, NAME_PREFIX, SHOWN_FIELD, fields_of, kind_of, settings_of
from stirred.web.workbench import Workbench


class ForeignConfig(SwapConfig):
    """Swap as another package does it."""

    style: Literal["gentle", "firm"] = Field(default="gentle", description="how it is done")


class Foreign(PermutationSwapping):
    """A mechanism of another package."""

    name: ClassVar[str] = "foreign-swap"
    config: ForeignConfig

    @classmethod
    def propose(cls, schema: Schema) -> None:
        """Nothing: a plan then begins with the examples of the settings."""


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {**list_mechanisms()}
    found["foreign-swap"] = Registration(
        name="foreign-swap", target=f"{__name__}:Foreign", summary="a mechanism of another package"
    )
    load = Registration.load
    monkeypatch.setattr(
        Registration, "load", lambda self: Foreign if self.name == "foreign-swap" else load(self)
    )
    for module in (
        "stirred.mechanisms.registry.list_mechanisms",
        "stirred.web.screens.plan.list_mechanisms",
        "stirred.web.document.list_mechanisms",
        "stirred.publish.plan.description.list_mechanisms",
    ):
        monkeypatch.setattr(module, lambda: found)


def sent(config: type[MechanismConfig], settings: dict[str, object]) -> dict[str, list[str]]:
    """What a browser sends for untouched fields."""
    form: dict[str, list[str]] = {SHOWN_FIELD: []}
    for field in fields_of(config, settings):
        form[SHOWN_FIELD].append(field.name)
        if field.kind == "switch":
            form[NAME_PREFIX + field.name] = ["on"] if field.value else []
        elif field.kind == "variables":
            form[NAME_PREFIX + field.name] = list(field.chosen)
            if field.value is None:
                form[NAME_PREFIX + field.name + DEFAULT_SUFFIX] = ["on"]
        else:
            form[NAME_PREFIX + field.name] = [str(field.value) if field.kind == "choice" else field.text]
    return form


@pytest.mark.parametrize("name", list(list_mechanisms()))
def test_an_untouched_form_changes_nothing(name: str) -> None:
    config = list_mechanisms()[name].Config
    settings = {
        key: field.examples[0]
        for key, field in config.model_fields.items()
        if field.examples and (field.is_required() or "hold" in key or "tables" in key)
    }
    assert settings_of(config, sent(config, settings), settings) == settings
    assert all(field.sentence for field in fields_of(config, settings))


def test_a_plan_comes_back_from_its_document() -> None:
    text = (
        'title = "t"\ncensus = "c"\n[[mechanism]]\nname = "x"\nrates = {rent = "1/10"}\n[[table]]\nname = "a"\nby = ["b"]\n'
        '[assess]\nutility = true\n[[assess.regression]]\noutcome = "s"\non = ["t"]\n'
    )
    document = document_of(text)
    assert document_of(text_of(document)) == document


EDITED = """# of the office
title = "t"            # named
census = "c#1"

[[mechanism]]
name = "x"
match = [
  "state",  # first
  "size",
]
hold = ["a#b"]         # stays
rate = "1/20"          # a start
# [[reason]]
[[table]]
name = "a"
by = ["b"]

# of the second
[[table]]
name = "d"
by = ["e"]
[assess]
utility = true         # or not
[[assess.regression]]
outcome = "s"
on = ["t"]
"""


@pytest.mark.parametrize(
    ("change", "gone", "there"),
    [
        (lambda d: d["mechanism"][0].update(rate="1/4"), ["1/20"], ['rate = "1/4"          # a start']),
        (lambda d: d["mechanism"][0].update(match=["size"]), ["# first"], ['match = ["size"]']),
        (lambda d: d["mechanism"][0].pop("hold"), ["# stays"], ["# a start"]),
        (lambda d: d.update(title="u", language="de"), [], ['title = "u"            # named', "language"]),
        (lambda d: d["table"].pop(), [], ["# of the second"]),
        (lambda d: d["table"].append({"name": "n", "by": ["b"]}), [], ["# of the second"]),
        (
            lambda d: d.update(reason=[{"invariant": "i", "text": "w"}], budget={"owner": "o"}),
            [],
            ["# first"],
        ),
        (lambda d: d["assess"].update(utility=False), [], ["utility = false         # or not"]),
        (
            lambda d: d["assess"]["regression"][0].update(on=["z"]),
            ["# or not"],
            ['on = ["z"]'],
        ),  # written anew
    ],
)
def test_a_change_keeps_the_comments_of_a_plan(
    change: Callable[[dict[str, Any]], object], gone: list[str], there: list[str]
) -> None:
    document = document_of(EDITED)
    change(document)
    made = edit_text(EDITED, document)
    assert document_of(made) == document
    assert all(text not in made for text in gone)
    assert all(text in made for text in there)
    assert edit_text(EDITED, document_of(EDITED)) == EDITED


def test_stirring_has_a_slider_for_the_rate_and_one_for_the_loss(client: BenchClient) -> None:
    assert client.post("/promise/start", {"mechanism": "stirring"}).status == 303
    page = client.get("/promise")
    assert 'data-field="s.rate"' in page.text
    assert 'data-field="s.loss" data-values=" 20' in page.text  # the first stop leaves the loss out
    form = form_in(page.text, "/promise?part=0")
    capped = client.post("/promise/answer?part=0", {**form, "s.loss": "4"}).words
    loose = client.post("/promise/answer?part=0", {**form, "s.loss": ""}).words
    assert "ln(57250309/1048576)" in capped  # e⁴ rounded down to a fraction
    assert "57250309" not in loose


def test_the_slider_says_what_the_formula_says(client: BenchClient, bench: Workbench) -> None:
    assert client.post("/promise/start", {"mechanism": "permutation-swapping"}).status == 303
    client.post("/data/figures", {"households": "200", "largest": "264331", "back": "/promise"})
    page = client.get("/promise")
    assert "no record was read" in page.words
    form = form_in(page.text, "/promise?part=0")
    for rate in ("1/100", "1/20", "1/10", "1/2"):
        reply = client.post("/promise/answer?part=0", {**form, "s.rate": rate})
        expected = SizeLaw("by-size", Fraction(rate)).at(264331)
        assert f"ε = {expected}" in reply.words
        assert expected.exact in reply.text
    refused = client.post("/promise/answer?part=0", {**form, "s.rate": "1"})
    assert "its protection loss budget is infinite" in refused.words
    assert "Way out:" in refused.words
    broken = client.post("/promise/answer?part=0", {**form, "s.rate": "many"})
    assert "it is not an exact number" in broken.words
    kept = client.get("/promise/universe").words
    assert "bits per record" in kept
    assert client.post("/promise/universe?part=0", {**form, "s.rate": "1/2"}).words == kept  # not of the rate
    finer = client.post(
        "/promise/universe?part=0", {**form, "s.match": ["county", "size"], "s.swap": ["block"]}
    )
    assert "bits per record" in finer.words
    assert finer.words != kept
    wrong = client.post("/promise/universe?part=0", {**form, "s.rate": "many"})
    assert "not counted" in wrong.words


def test_the_records_stay_unread_until_asked(client: BenchClient, bench: Workbench) -> None:
    for name in ("household.csv", "person.csv"):
        path = bench.require_data().file.parent / name
        path.write_text(path.read_text().splitlines()[0] + "\n")  # only the names of the columns are there
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    assert "Stated on a stand-in of 200 households" in client.get("/promise").words
    assert client.post("/run/check").status == 422  # the guards look at records


def test_the_guards_tell_their_counts_where_the_choice_is_made(client: BenchClient, bench: Workbench) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    codebook, records = bench.require_data().file, bench.require_data().file.with_name("household.csv")
    codebook.write_text(codebook.read_text().replace("tenure = {", 'meter = {type = "text"}\ntenure = {'))
    head, *lines = records.read_text().splitlines()
    records.write_text("\n".join([f"{head},meter", *(f"{line},m{n}" for n, line in enumerate(lines))]) + "\n")
    form = form_in(client.get("/promise").text, "/promise?part=0")
    assert "The guards have not looked" in client.get("/promise").words
    bench.data.change(read=True)
    fine = client.post("/promise/answer?part=0", form)
    assert "records published unchanged none: all 5 strata have two swap values" in fine.words
    assert "measured on the released file by the run" in fine.words
    some = client.post("/promise/answer?part=0", {**form, "s.match": ["county", "size"], "s.swap": ["block"]})
    assert "2 of 300 records, in 2 of 15 strata: 2 alone in their stratum" in some.words
    refused = client.post("/promise/answer?part=0", {**form, "s.hold.default": "on"})  # all that is there
    assert "meter would identify records in the release" in refused.words
    assert "300 of 300 household records have a value of their own" in refused.words
    assert "release_identifiers" in refused.words
    assert "Check the plan on the records" in client.get("/promise").words


def test_what_a_guard_refuses_needs_a_reason(client: BenchClient, bench: Workbench) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    form = form_in(client.get("/promise").text, "/promise?part=0") | {"s.accept_reversal": ["tenure"]}
    refused = client.post("/promise?part=0", form)
    assert refused.status == 422
    assert "tenure is accepted without a reason" in refused.words
    assert 'name="why.accept_reversal.tenure"' in refused.text
    assert bench.history.current == 1
    kept = client.post(
        "/promise?part=0", {**form, "why.accept_reversal.tenure": "the register of owners is public"}
    )
    assert kept.status == 303
    plan = bench.plan()
    assert plan.reasons[0].invariant == "the column tenure (accept_reversal)"
    assert plan.reasons[0].text == "the register of owners is public"
    text = bench.history.text().replace("[[reason]]", "[about]\ncontact = 'x'\n#").split("[about]")[0]
    assert client.post("/method/text", {"text": text}).status == 422


def test_a_mechanism_of_another_package_has_a_form(
    foreign: None, client: BenchClient, bench: Workbench
) -> None:
    assert "a mechanism of another package" in client.get("/promise").words
    assert client.post("/promise/start", {"mechanism": "foreign-swap"}).status == 303
    page = client.get("/promise")
    form = form_in(page.text, "/promise?part=0") | {"s.swap": ["county", "block"], "s.rate": "1/4"}
    assert {"s.swap", "s.rate"} <= set(form)
    assert client.post("/promise?part=0", form).status == 303
    assert bench.document()["mechanism"][0]["rate"] == "1/4"
    method = client.get("/method")
    assert "how it is done" in method.words
    other = form_in(method.text, "/method") | {"0:s.style": "firm", "title": "Ours"}
    assert client.post("/method", other).status == 303
    assert bench.document()["mechanism"][0]["style"] == "firm"


def test_history_is_undone_and_shown_as_a_diff(client: BenchClient, bench: Workbench) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    form = form_in(client.get("/promise").text, "/promise?part=0")
    client.post("/promise?part=0", {**form, "s.rate": "1/4"})
    page = client.get("/history")
    assert '+ rate = "1/4"' in page.words
    assert "# a start, not a choice" in bench.history.text()  # the comments of the proposed plan stay
    assert (
        client.post("/history/restore", {"number": str(bench.history.undo()), "back": "history"}).status
        == 303
    )
    assert bench.history.current == 1
    assert bench.history.redo() == 2
    assert (bench.workspace.plans / "0002.toml").is_file()
    assert client.post("/history/restore", {"number": "99"}).status == 422


def test_the_method_screen_keeps_tables_reasons_and_the_owner(client: BenchClient, bench: Workbench) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    form = form_in(client.get("/method").text, "/method")
    first = form["reason.invariant"][0]
    form |= {
        "owner": ["Chief"],
        "limit": ["31/2"],
        "reason.text": ["a law asks for it", *form["reason.text"][1:]],
    }
    form["table.by"][-1] = "county size"
    assert client.post("/method", form).status == 303
    plan = bench.plan()
    assert (plan.owner, str(plan.limit)) == ("Chief", "15.5000")
    assert plan.reasons[0].invariant == first
    assert plan.tables[-1].name == "size-by-county"
    over = client.post("/method", {**form, "limit": "1/2"})
    assert over.status == 303
    assert "the plan spends more than its limit" in client.get("/promise").words


@pytest.mark.parametrize(("layout", "kind", "names", "other"), [
    ("workbook", "sheet", ["Households", "Persons"], "Readme"),
    ("ENIGH", "table", ["hogares", "poblacion"], ""),
])  # fmt: skip
def test_sheets_and_tables_are_chosen_before_files_are_described(
    layout: str, kind: str, names: list[str], other: str, tmp_path: Path
) -> None:
    bench = Workbench.of(tmp_path / "bench")
    client = BenchClient(bench)
    bench.workspace.own_census.mkdir(mode=0o700)
    (file, *_) = LAYOUTS[layout].write(bench.workspace.own_census)
    page = client.get("/data")
    assert f"which {kind}s?" in page.words
    for name in (*names, *filter(None, [other])):
        assert f'name="{kind}" value="{name}"' in page.text
    refused = client.post("/data/describe")
    assert refused.status == 422
    assert f"no {kind} is chosen" in refused.words
    assert client.post("/data/describe", {kind: "<no such>"}).status == 422
    assert client.post("/data/describe", {kind: names}).status == 303
    (job,) = bench.line.all()
    flags = [word for name in names for word in (f"--{kind}", name)]
    assert list(job.words) == ["data", "describe", f"census/{file}", *flags, "--out", "census/census.toml"]


def test_a_workbook_that_is_none_is_said_on_the_page(tmp_path: Path) -> None:
    bench = Workbench.of(tmp_path / "bench")
    bench.workspace.own_census.mkdir(mode=0o700)
    (bench.workspace.own_census / "book.xlsx").write_bytes(b"no workbook")
    assert "book.xlsx" in BenchClient(bench).get("/data").words


def test_levels_are_typed_and_variables_are_ticked() -> None:
    fields = Stirring.Config.model_fields
    assert kind_of(fields["swap"])[0] == "variables"
    assert kind_of(fields["shuffle_levels"])[0] == "value"
