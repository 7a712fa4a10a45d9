"""``stirred spec`` as a user types it: one JSON document or one clear error."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from stirred.catalog import catalog
from stirred.cli.main import main
from stirred.spec import (
    Budget,
    Domain,
    Evidence,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    Specification,
    Variable,
    Verdict,
)
from stirred.spec.files import dumps, load, save


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code = main([*words, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert err == ""
    return json.loads(out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main([*words])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 3
    return err


def test_show_states_flavor_distance_odds_and_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "show", "das-2020")
    assert document["budget"] == "ρ² ≥ 55.3751"
    assert document["status"] == "published"
    assert document["odds"]["distance"] == 1
    assert document["odds"]["near_certainty_possible"] is True
    assert document["readings"][0]["epsilon_simple"] == pytest.approx(126.790925, abs=2e-6)
    assert main(["spec", "show", "das-2020"]) == 0
    text = capsys.readouterr().out
    for words in ("D_nor", "d_Ham(person)", "published by others", "constant 1", "constant 2", "≥"):
        assert words in text


def test_show_at_another_rate_unit_and_without_an_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    half = run(capsys, "spec", "show", "whatif-state", "--rate", "1/2")
    assert round(half["epsilon"], 2) == 16.42
    assert half["odds"]["distance"] == 2
    assert half["odds"]["log_factor"] == pytest.approx(2 * half["epsilon"], abs=3e-6)
    free = run(capsys, "spec", "show", "das-2020", "--constant", "2")
    assert round(free["rho_squared"], 4) == 139.6169
    copied = run(capsys, "spec", "show", "das-2020", "--copies", "2")
    assert round(copied["rho_squared"], 4) == 221.5001
    dropped = run(capsys, "spec", "show", "pl-2020", "--without", "population by state")
    assert dropped["rho_squared"] is None
    assert dropped["exact"] == "∞"


def test_compare_refuses_to_rank(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "compare", "whatif-county", "das-2020")
    verdicts = {part: finding["verdict"] for part, finding in document["parts"].items()}
    assert verdicts["multiverse"] == "incomparable"
    assert verdicts["input premetric"] == "stronger"
    assert verdicts["output premetric"] == "stronger"
    assert document["overall"]["verdict"] in {"incomparable", "unknown"}
    assert any("different units" in warning for warning in document["warnings"])


def test_compose_adds_up_and_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "total.json"
    document = run(capsys, "spec", "compose", "pl-2020", "dhc-2020", "--out", str(target))
    assert document["exact"] == "2677677240811805083/175081740127290000"
    assert load(target) == catalog["pl-2020"] + catalog["dhc-2020"]
    again = run(capsys, "spec", "show", str(target))
    assert again["exact"] == document["exact"]


def test_compose_with_unknown_cost_prints_at_least(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "compose", "pl-2020", "surname-file-2020")
    assert document["at_least"] is True
    assert document["unknown"] == ["surname-file-2020"]
    assert "≥" in document["budget"]


def test_convert_reads_at_stated_distances(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "convert", "pl-persons-2020", "--distance", "1", "2", "--distance", "3")
    rows = document["readings"]
    assert [row["distance"] for row in rows] == [1, 2, 3]
    # more than proportional: a reading is no budget
    assert rows[1]["epsilon_simple"] > 2 * rows[0]["epsilon_simple"]
    pure = run(capsys, "spec", "convert", "whatif-county")
    assert pure["rho_squared"] == pytest.approx(pure["epsilon"] ** 2 / 2, rel=1e-6)
    assert main(["spec", "convert", "pl-units-2020"]) == 0
    assert "2.7023" in capsys.readouterr().out


def test_export_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "spec", "export", "pl-2020", "--spec") == json.loads(dumps(catalog["pl-2020"]))
    target = tmp_path / "card.html"
    assert main(["spec", "export", "pl-2020", "--html", "--out", str(target)]) == 0
    assert target.read_text().startswith("<!doctype html>")
    capsys.readouterr()
    assert main(["spec", "export", "pl-2020", "--registry"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "rho": 2.63117
    }


def test_bad_input_gives_one_clear_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "did you mean das-2020" in refused(capsys, "spec", "show", "das-2002")
    assert "neither in the catalog nor a file" in refused(
        capsys, "spec", "compare", "pl-2020", "nothing-like-it"
    )
    assert "cannot read" in refused(capsys, "spec", "show", str(tmp_path / "absent.json"))
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "no JSON" in refused(capsys, "spec", "show", str(broken))
    document = json.loads(dumps(catalog["pl-2020"]))
    broken.write_text(json.dumps({**document, "version": 99}))
    assert "version 99" in refused(capsys, "spec", "show", str(broken))
    broken.write_text(json.dumps({**document, "budget": 2.63}))
    assert "budget" in refused(capsys, "spec", "show", str(broken))
    assert "delta" in refused(capsys, "spec", "show", "pl-2020", "--delta", "2")
    assert "rate" in refused(capsys, "spec", "show", "pl-2020", "--rate", "1/2")
    assert "outside [0, 1]" in refused(capsys, "spec", "show", "whatif-state", "--rate", "3/2")
    assert "invariant" in refused(capsys, "spec", "show", "pl-2020", "--without", "population")
    assert "never made" in refused(capsys, "spec", "export", "whatif-state", "--registry")
    assert "--about" in refused(
        capsys, "spec", "export", str(save(catalog["pl-2020"], tmp_path / "s.json")), "--registry"
    )
    assert "at least one record" in refused(capsys, "spec", "show", "pl-2020", "--copies", "0")
    assert "distance" in refused(capsys, "spec", "convert", "pl-2020", "--distance", "1", "0")
    assert "cannot write" in refused(capsys, "spec", "export", "pl-2020", "--spec", "--out", str(tmp_path))
    assert "cannot write" in refused(
        capsys, "spec", "compose", "pl-2020", "--out", str(tmp_path / "no" / "x")
    )
    assert "no spec.json" in refused(capsys, "spec", "show", str(tmp_path))
    assert "no specification" in refused(capsys, "spec", "show", "")


@pytest.mark.parametrize("rate", ["0", "1"])
@pytest.mark.parametrize("name", ["whatif-state", "das-2010"])
def test_rates_zero_and_one_promise_nothing(capsys: pytest.CaptureFixture[str], name: str, rate: str) -> None:
    document = run(capsys, "spec", "show", name, "--rate", rate)
    assert document["epsilon"] is None
    assert document["exact"] == "∞"
    assert "Nothing is promised" in document["sentence"]


def test_large_numbers_are_not_rounded_down_on_their_way_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "show", "das-2020", "--per", "household")
    shown = re.search(r'"rho_squared": ([0-9.]+)', json.dumps(document))
    assert shown is not None
    assert Fraction(shown[1]) >= Fraction(document["exact"])


def test_a_sum_shows_its_parts_and_a_swap_per_person_is_read_at_distance_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["spec", "compose", "pl-2020", "ddhc-b-2020"]) == 0
    text = capsys.readouterr().out
    assert "Put together from" in text
    assert "Detailed DHC-B" in text
    # a part with the same number but from elsewhere is not given the title of a published one
    own = replace(catalog["sdhc-2020"], evidence=Evidence(source="our own tables"))
    assert main(["spec", "compose", "pl-2020", str(save(own, tmp_path / "own.json"))]) == 0
    text = capsys.readouterr().out
    assert "our own tables" in text
    assert "Supplemental" not in text.split("Put together from")[1].split("\n\n")[0]
    # no person of a swapped census can change alone: that would change a household alone
    swap = run(capsys, "spec", "show", "whatif-state", "--per", "person")
    assert swap["odds"]["distance"] == 2
    assert not any("ρ²" in line["if"] for line in swap["assumptions"])


HALF, TWENTIETH = "whatif-state-size@1/2", "whatif-state-size@1/20"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main([*words]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def overall(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("overall: ")]
    return line


def test_the_overall_line_names_what_the_user_typed(capsys: pytest.CaptureFixture[str]) -> None:
    # a higher swap rate (up to 1/2) loses less at every b: ln(b + 1) − ln o falls as o = p/(1 − p) grows
    line = overall(said(capsys, "spec", "compare", HALF, TWENTIETH))
    assert line.startswith(f"overall: {HALF} promises more than {TWENTIETH}: ")
    assert "the first" not in line
    assert "the second" not in line
    # the weaker one named first: the same sentence
    assert overall(said(capsys, "spec", "compare", TWENTIETH, HALF)).startswith(
        f"overall: {HALF} promises more than {TWENTIETH}: "
    )


@pytest.mark.parametrize(
    "words",
    [
        [HALF, TWENTIETH],
        ["whatif-state-size", "whatif-state-size", "--rate", "1/2", "1/20"],
        [HALF, "whatif-state-size", "--rate", "1/20"],  # a rate in the name is kept
    ],
)
def test_each_side_has_its_own_rate(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    document = run(capsys, "spec", "compare", *words)
    assert [document[side]["name"] for side in ("first", "second")] == [HALF, TWENTIETH]
    assert document["overall"]["verdict"] == "stronger"
    # Table 5 of the paper: state × size has ε = 18.13 at 5 % and 15.19 at 50 %
    assert round(document["first"]["epsilon"], 2) == 15.19
    assert round(document["second"]["epsilon"], 2) == 18.13


def test_one_rate_holds_for_each_swap_and_only_for_swaps(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "compare", "whatif-state-size", "das-2020", "--rate", "1/2")
    assert document["first"]["name"] == HALF
    assert document["second"]["name"] == "das-2020"
    shown = run(capsys, "spec", "show", "whatif-state@1/2")
    assert shown == run(capsys, "spec", "show", "whatif-state", "--rate", "1/2")
    added = run(capsys, "spec", "compose", HALF, TWENTIETH)
    assert added["epsilon"] == pytest.approx(15.1888 + 18.1332, abs=2e-4)


def test_why_prints_both_derivations_with_the_right_names(capsys: pytest.CaptureFixture[str]) -> None:
    plain = said(capsys, "spec", "compare", "whatif-state-size", "das-2020")
    text = said(capsys, "spec", "compare", "whatif-state-size", "das-2020", "--why")
    assert text.startswith(plain)
    forth, back = text[len(plain) :].split("does das-2020 imply whatif-state-size? no\n")
    assert "does whatif-state-size imply das-2020? no" in forth
    assert "whatif-state-size may publish all household characteristics by state exactly" in forth
    # the derivation of the reverse speaks of the two in the other order: the names must not change places
    assert "das-2020 may publish housing units by block exactly, which whatif-state-size protects" in back
    assert "└─ witness: x = " in forth
    assert "└─ witness: x = " in back
    for words in ("the first", "the second"):
        assert words not in text


def test_json_always_carries_the_derivations(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "spec", "compare", "das-2010", "das-2020")
    assert document["overall"]["verdict"] == "incomparable"
    for way, asked in (
        ("forth", "does das-2010 imply das-2020?"),
        ("back", "does das-2020 imply das-2010?"),
    ):
        found = document["derivations"][way]
        assert (found["question"], found["answer"]) == (asked, "no")
        witness = found["derivation"]["witness"]
        assert witness["x"] != witness["x'"]
    assert not re.search(r'"(because|claim)": "[^"]*the (first|second)\b', json.dumps(document))


def test_check_verifies_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "spec", "check", HALF, TWENTIETH)
    forth, back = text.splitlines()
    assert forth.startswith(f"does {HALF} imply {TWENTIETH}? proved: ")
    assert back.startswith(f"does {TWENTIETH} imply {HALF}? refuted with a witness that was verified: ")
    document = run(capsys, "spec", "check", "das-2010", "das-2020")
    assert document["verified"] is True
    assert [found["problems"] for found in document["implications"]] == [[], []]


def test_check_ends_with_one_where_a_derivation_does_not_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that answers yes where the budget is larger, with the derivation of the true direction."""
    half, twentieth = (catalog.entry("whatif-state-size").at(rate) for rate in ("1/2", "1/20"))
    proof = half.implies(twentieth)
    monkeypatch.setattr(Specification, "implies", lambda _self, _other: proof)
    text = said(capsys, "spec", "check", TWENTIETH, HALF, code=1)
    assert f"does {TWENTIETH} imply {HALF}? NOT VERIFIED (yes was claimed): " in text
    assert f"does {HALF} imply {TWENTIETH}? proved" in text
    # and one that answers no and shows nothing
    monkeypatch.setattr(Specification, "implies", lambda _self, _other: Verdict.no("surely not"))
    assert main(["spec", "check", HALF, TWENTIETH, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verified"] is False


def test_check_of_one_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    swap = save(catalog["das-2010"], tmp_path / "mine.json")
    text = said(capsys, "spec", "check", str(swap))
    assert "does mine.json imply itself? proved: " in text
    assert "does it promise anything? yes" in text
    # inside a universe of swapped censuses the smallest change is an exchange of two households
    assert "smallest distance that can occur in a universe: 2 by d_Ham(household)" in text
    document = run(capsys, "spec", "check", "pl-2020")
    assert document["promises_something"]["answer"] == "yes"
    assert document["smallest_distance"]["value"] == 1
    unknown = json.loads(swap.read_text())
    swap.write_text(json.dumps(unknown).replace('"tenure"', '"tenvre"', 1))
    assert "did you mean" in refused(capsys, "spec", "check", str(swap))


def test_check_says_where_nothing_is_promised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kind = RecordType(name="household", variables=(Variable(name="tenure"), Variable(name="block")))
    every = Specification(
        domain=Domain(name="toy", record_types=(kind,)),
        multiverse=Multiverse.of(Margin("household", ("tenure", "block"))),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    document = run(capsys, "spec", "check", str(save(every, tmp_path / "all.json")))
    assert document["promises_something"]["answer"] == "no"
    assert document["smallest_distance"]["value"] is None
    assert document["verified"] is True
    infinite = replace(every, multiverse=Multiverse.none(), budget=Budget.infinite())
    text = said(capsys, "spec", "check", str(save(infinite, tmp_path / "none.json")))
    assert "does it promise anything? no, because none.json promises nothing: its budget is infinite" in text
    assert "invariants: none are declared" in text


def own_specification(folder: Path) -> Path:
    """A user's release that keeps persons by state, in a domain of her own where states have another name."""
    kind = RecordType(name="person", variables=tuple(Variable(name=name) for name in ("land", "age", "sex")))
    spec = Specification(
        domain=Domain(name="mine", record_types=(kind,)),
        multiverse=Multiverse.of(Margin("person", ("land",))),
        input_premetric=Hamming("person"),
        output_premetric=NormalizedRenyi(),
        budget=Budget.of(1),
    )
    return save(spec, folder / "mine.json")


def test_without_a_map_domains_stay_apart_and_a_hint_tells_how(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = str(own_specification(tmp_path))
    text = said(capsys, "spec", "compare", mine, "das-2020")
    assert overall(text).startswith("overall: the two are not ranked")
    (hint,) = [line for line in text.splitlines() if line.startswith("hint: ")]
    assert "--map same restates mine.json on the domain CEF" in hint
    assert "equal names: age, sex)" in hint
    assert "unknown, because the domains differ" in said(capsys, "spec", "check", mine, "das-2020")


def test_a_map_restates_the_first_on_the_domain_of_the_second(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = str(own_specification(tmp_path))
    document = run(capsys, "spec", "compare", mine, "das-2020", "--map", "land=state")
    assert document["first"]["domain"] == "CEF"
    assert document["parts"]["domain"]["verdict"] == "equal"
    # ρ² = 1 within universes of equal population by state, against ρ² = 55.38 within smaller ones
    assert document["parts"]["multiverse"]["verdict"] == "stronger"
    assert document["overall"]["verdict"] == "stronger"
    assert document["overall"]["because"].startswith("mine.json promises more than das-2020: ")
    assert "mine.json is restated from the domain mine on CEF, where land = state" in document["warnings"]
    assert run(capsys, "spec", "check", mine, "das-2020", "--map", "land=state")["verified"] is True
    # a map that leaves a variable out is refused, and never read as "no invariant"
    assert "'land' has no counterpart" in refused(
        capsys, "spec", "compare", mine, "das-2020", "--map", "same"
    )


def test_bad_maps_and_rates_give_one_clear_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mine = str(own_specification(tmp_path))
    assert "did you mean whatif-state-size@1/2" in refused(capsys, "spec", "show", "whatif-stat-size@1/2")
    assert "no swap" in refused(capsys, "spec", "show", "pl-2020@1/2")
    assert "swap rate" in refused(capsys, "spec", "show", "whatif-state@often")
    assert "swap rate" in refused(capsys, "spec", "show", "whatif-state@")
    assert "outside [0, 1]" in refused(capsys, "spec", "show", "whatif-state@3/2")
    assert "one budget" in refused(capsys, "spec", "show", f"{mine}@1/2")
    assert "3 swap rates" in refused(capsys, "spec", "compare", HALF, HALF, "--rate", "1/2", "1/3", "1/4")
    assert "no swap rate" in refused(capsys, "spec", "compare", "pl-2020", "dhc-2020", "--rate", "1/2")
    assert "cannot read the map" in refused(capsys, "spec", "compare", mine, "das-2020", "--map", "land")
    assert "did you mean land?" in refused(capsys, "spec", "compare", mine, "das-2020", "--map", "lnd=state")
    assert "nothing to map" in refused(capsys, "spec", "compare", "pl-2020", "das-2020", "--map", "a=b")
    assert "mapped twice" in refused(
        capsys, "spec", "compare", mine, "das-2020", "--map", "land=state", "land=county"
    )
    assert "two specifications" in refused(capsys, "spec", "check", mine, "--map", "same")
