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
from stirred.spec import Evidence
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
    assert document["budget"] == "ρ² ≥ 55.3749"
    assert document["status"] == "published"
    assert document["odds"]["distance"] == 1
    assert document["odds"]["near_certainty_possible"] is True
    assert document["readings"][0]["epsilon_simple"] == pytest.approx(126.790652, abs=2e-6)
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
    assert round(free["rho_squared"], 4) == 139.6162
    copied = run(capsys, "spec", "show", "das-2020", "--copies", "2")
    assert round(copied["rho_squared"], 4) == 221.4995
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
    assert "nothing is promised" in document["sentence"]


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
