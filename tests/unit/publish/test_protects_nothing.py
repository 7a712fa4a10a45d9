"""Plans that publish the truth, or nothing, are refused before a key exists; an accepted one says so on its first line."""

import csv
import json
import random
from pathlib import Path

import polars as pl
import pytest

import stirred as st
from stirred.cli.main import main
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change, geometric_change
from stirred.mechanisms.registry import list_mechanisms

REGIONS = {"A": ["A01", "A02", "A03"], "B": ["B01", "B02", "B03"]}
CENSUS = """name = "t"
largest_household = 10
[geography]
spine = ["region", "gem"]
type = "text"
[record.household]
files = ["h.csv"]
id = "hid"
size = "size"
weight = "weight"
[record.household.variables]
size = "1..10"
tenure = ["own", "rent", "free"]
[record.person]
files = ["p.csv"]
id = "pid"
household = "hid"
[record.person.variables]
sex = ["f", "m"]
age = "0..115"
rel = ["head", "child"]
"""
SWAP = 'name = "permutation-swapping"\nmatch = ["region", "size"]\nswap = ["gem"]\ndrop = ["weight"]\nrate = '
TABLES = 'tables = [["gem", "tenure"]]\n'
NOTHING = {
    "swap 1e-6": SWAP + '"1/1000000"',
    "swap 1e-3": SWAP + '"1/1000"',
    "targeted": 'name = "targeted-swapping"\nhierarchy = ["region", "gem"]\nsimilar = [["size"]]\n'
    'swaprate = "1/100000"\ndrop = ["weight"]\nwithout_guarantee = "x"',
    "gaussian": f'name = "gaussian-tables"\n{TABLES}rho_squared = "1000000"',
    "cell key V": f'name = "cell-key"\n{TABLES}D = 1\nV = "1/1000000"\nwithout_guarantee = "x"',
    "cell key pstay": f'name = "cell-key"\n{TABLES}pstay = "0.9999"\nwithout_guarantee = "x"',
    "rounding": f'name = "special-tabulations"\n{TABLES}base = 1\nwithout_guarantee = "x"',
    "margins": 'name = "exact-margins"\nrows = "gem"\ncolumns = "tenure"\nrho_squared = "1000000"',
}


def write(rows: list[dict[str, object]], path: Path) -> None:
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """160 invented households in six places, with their persons."""
    rng = random.Random(3)
    homes: list[dict[str, object]] = []
    people: list[dict[str, object]] = []
    for i in range(160):
        region = rng.choice("AB")
        size = rng.choice([1, 1, 2, 2, 3, 4])
        homes.append(
            {"hid": f"{i:04d}", "region": region, "gem": rng.choice(REGIONS[region]), "size": size}
            | {"tenure": rng.choice(["own", "rent", "free"]), "weight": round(rng.uniform(80, 120), 2)}
        )
        people += [
            {"pid": f"{i:04d}{j}", "hid": f"{i:04d}", "sex": rng.choice("fm"), "age": rng.randint(0, 95)}
            | {"rel": "child" if j else "head"}
            for j in range(size)
        ]
    write(homes, tmp_path / "h.csv")
    write(people, tmp_path / "p.csv")
    (tmp_path / "census.toml").write_text(CENSUS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(mechanism: str, more: str = "") -> Path:
    path = Path("plan.toml")
    path.write_text(
        f'title = "t"\ncensus = "census.toml"\n{more}\n[[mechanism]]\n{mechanism}\n[assess]\nutility = false\n'
    )
    return path


@pytest.mark.parametrize("name", NOTHING)
def test_it_is_refused_with_its_expected_effect(
    name: str, office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan(NOTHING[name])
    before = sorted(office.iterdir())
    for command in (["run", str(path), "--out", "packet"], ["plan", "check", str(path)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "would publish nearly the truth" in told
        assert "expected to" in told
        assert "accept_small_effect" in told
    assert sorted(office.iterdir()) == before


def test_accepted_with_a_reason_it_is_said_on_the_first_line(office: Path) -> None:
    path = plan(NOTHING["rounding"], 'accept_small_effect = "invented records of a course"')
    assert main(["run", str(path), "--out", "packet"]) == 0
    first = (office / "packet/public/card.md").read_text().splitlines()[0]
    assert "nearly the truth" in first
    assert "invented records of a course" in first
    notes = json.loads((office / "packet/public/spec.json").read_text())["notes"]
    assert any("invented records of a course" in note for note in notes)


def test_a_release_made_in_python_is_not_saved_either(office: Path) -> None:
    census = st.read("census.toml")
    swap = st.PermutationSwapping(match=["region", "size"], swap=["gem"], rate="1/1000", drop=["weight"])
    release = swap.release(census, key=st.Key.for_tests(1))
    with pytest.raises(st.errors.PrivacyError, match="nearly the truth"):
        st.save(release, office / "packet")
    assert not (office / "packet").exists()
    st.save(release, office / "packet", accept_small_effect="a test of saving")


def test_every_mechanism_of_ours_states_its_effect() -> None:
    """A mechanism without its own statement would leave a plan that protects nothing unseen."""
    base = st.mechanisms.base.Mechanism
    for name, kind in list_mechanisms().items():
        own = kind.load() if hasattr(kind, "load") else st.mechanisms.registry.find_mechanism(name)
        assert own.expected_effect is not base.expected_effect, name


def test_chances_of_no_noise_against_the_laws_summed_by_hand() -> None:
    from math import exp

    for variance in (0.05, 0.3, 1.0, 7.5):
        weights = [exp(-k * k / (2 * variance)) for k in range(-200, 201)]
        assert gaussian_change(variance) == pytest.approx(1 - 1 / sum(weights), rel=1e-12)
    for scale in (0.2, 1.0, 9.0):
        weights = [exp(-abs(k) / scale) for k in range(-2000, 2001)]
        assert geometric_change(scale) == pytest.approx(1 - 1 / sum(weights), rel=1e-12)


def test_the_expected_share_is_the_share_that_moves(office: Path) -> None:
    """The mean of 200 draws; a deviation of six standard errors has a chance below 1e-8."""
    census = st.read("census.toml")
    swap = st.PermutationSwapping(match=["region"], swap=["gem"], rate="1/5", drop=["weight"], carry=False)
    effect = swap.expected_effect(census)
    assert isinstance(effect, ExpectedEffect)
    truth = pl.read_csv("h.csv")
    expected = 0.0
    for region in "AB":  # by hand: q = p(1 − (1−p)^(n−1)) / (1 − np(1−p)^(n−1))
        n = truth.filter(pl.col("region") == region).height
        rest = 0.8 ** (n - 1)
        expected += n * 0.2 * (1 - rest) / (1 - n * 0.2 * rest)
    assert effect.share == pytest.approx(expected / 160, rel=1e-9)


def test_a_census_without_records_is_refused(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("h.csv", "p.csv"):
        (office / name).write_text((office / name).read_text().splitlines()[0] + "\n")
    assert main(["run", str(plan(SWAP + '"1/5"')), "--out", "packet"]) == 2
    assert "the census has no records" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["A01 ", "a01"])
def test_areas_that_differ_by_a_space_or_by_case_are_refused(
    code: str, office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (office / "h.csv").read_text().replace("A01,", f"{code},", 1)
    (office / "h.csv").write_text(text)
    assert main(["run", str(plan(SWAP + '"1/5"')), "--out", "packet"]) == 2
    assert "look like another one" in capsys.readouterr().err


@pytest.mark.parametrize(("column", "sentence"), [("weight", "weights of 0"), ("rel", "more than one head")])
def test_doubtful_records_are_released_with_a_warning(
    column: str, sentence: str, office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if column == "weight":
        homes = pl.read_csv("h.csv", schema_overrides={"hid": pl.String})
        homes.with_columns(weight=pl.when(pl.col("hid") == "0003").then(0.0).otherwise("weight")).write_csv(
            "h.csv"
        )
    else:
        (office / "p.csv").write_text((office / "p.csv").read_text().replace("child", "head", 1))
    path = plan(SWAP + '"1/5"')
    assert main(["run", str(path), "--out", "packet"]) == 0
    told = capsys.readouterr()
    assert f"{sentence} (1 " in told.err
    public = b"".join(p.read_bytes() for p in (office / "packet/public").rglob("*") if p.is_file())
    assert sentence.encode() not in public
