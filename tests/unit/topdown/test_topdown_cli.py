"""stirred topdown from the command line: the promise as JSON, a sealed packet, refusals that leave nothing behind."""

import json

import pytest

from stirred.census.synthetic import write_preset
from stirred.cli.main import main
from stirred.publish.packet import verify


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census") / "demo"
    write_preset("demo", folder, households=150)
    return str(folder / "census.toml")


def test_check_says_what_is_promised_and_releases_nothing(census, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["topdown", census, "--workload", "pl94", "--check", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    persons = document["workloads"]["pl94-persons"]
    assert persons["rho_squared"] == "293764/114921"
    assert persons["semantics"]["cenrace"]["epsilon"].startswith("10.08")
    assert any("no level us" in note for note in document["notes"])
    assert list(tmp_path.iterdir()) == []


def test_a_packet_is_sealed_and_never_overwritten(census, capsys, tmp_path):
    out = tmp_path / "packet"
    assert main(["topdown", census, "--workload", "small", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["private"] is True
    assert verify(out) == []
    receipt = json.loads((out / "public/receipt.json").read_text())
    assert all(entry["kept"] for entry in receipt["mechanisms"][0]["invariants"])
    assert len(receipt["mechanisms"][0]["ledger"]) == 5 + 1  # levels, and the state total that is free inside
    assert {path.name for path in (out / "public/data").iterdir()} == {"mechanism", "person.parquet"}
    assert not list(out.rglob("*.key"))
    assert main(["topdown", census, "--workload", "small", "--out", str(out)]) == 2
    assert "never overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workload", "pl49-persons"], "did you mean"),
        (["--rho-squared", "much"], "not an exact number"),
        (["--workload", "dhc-persons"], "--given"),
    ],
)
def test_refusals_name_the_cure(census, capsys, tmp_path, words, said):
    assert main(["topdown", census, "--out", str(tmp_path / "packet"), *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
