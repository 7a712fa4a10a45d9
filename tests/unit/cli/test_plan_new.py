"""Plans proposed from a schema: for the files of several countries, by every mechanism, without reading a record."""

import random
import tomllib
from pathlib import Path

import polars as pl
import pytest

from stirred.cli.main import main
from stirred.errors import InputError, PlanError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_mechanism
from stirred.publish import load
from stirred.publish.check import explain
from stirred.publish.plan.proposal import choose_mechanism, propose_plan, read_schema

NAMES = [item.name for item in OWN_REGISTRATIONS]
TABLES = ("exact-margins", "cell-key", "gaussian-tables", "special-tabulations")
MARK = "planted-value"


def austria(folder: Path, homes: int = 120) -> Path:
    """One flat person file with the columns of its households, as EU-SILC files have them."""
    dice, rows = random.Random(3), []
    for number in range(homes):
        land = dice.choice(["Wien", "Tirol", "Kärnten"])
        home = {
            "db030": 5000 + number,
            "bundesland": land,
            "bezirk": f"{land[:2]}{dice.randint(1, 3)}",
            "wohnung": dice.choice(["eigen", "miete"]),
            "gewicht": round(100 + 50 * dice.random(), 2),
        }
        rows += [
            home
            | {
                "pid": f"{number}-{person}",
                "geschlecht": dice.choice(["m", "w"]),
                "alter": dice.randint(0, 90),
                "einkommen": round(dice.lognormvariate(9, 1), 2),
            }
            for person in range(dice.randint(1, 4))
        ]
    pl.DataFrame(rows).write_csv(folder / "p.csv")
    (folder / "census.toml").write_text(
        """name = "silc"
label = "Haushalte"
[geography]
spine = ["bundesland", "bezirk"]
[record.household]
files = ["p.csv"]
household_from = "db030"
size = "size"
weight = "gewicht"
[record.household.variables]
wohnung = {levels = ["eigen", "miete"]}
[record.person]
files = ["p.csv"]
id = "pid"
household = "db030"
[record.person.variables]
geschlecht = {levels = ["m", "w"]}
alter = {type = "integer", range = "0..120"}
einkommen = {type = "number"}
""",
        encoding="utf-8",
    )
    return folder / "census.toml"


def ghana(folder: Path, homes: int = 200) -> Path:
    """A survey of households by region, district and enumeration area, whose weight is constant within areas."""
    dice = random.Random(5)
    areas = [(f"R{i % 3}", f"D{i % 6}", 700 + i, dice.randint(200, 900) / 4) for i in range(24)]
    rows = []
    for number in range(homes):
        region, district, ea, weight = dice.choice(areas)
        rows.append(
            {
                "hhid": f"{ea}-{number}",
                "region": region,
                "district": district,
                "ea": ea,
                "loc": 1 + ea % 2,
                "hhsize": dice.randint(1, 5),
                "water": dice.choice(["pipe", "well", "river"]),
                "wealth": dice.randint(1, 5),
                "expenditure": round(dice.lognormvariate(8, 1), 3),
                "wta": weight,
            }
        )
    pl.DataFrame(rows).write_csv(folder / "h.csv")
    (folder / "census.toml").write_text(
        """name = "glss"
[geography]
spine = ["region", "district", "ea"]
[geography.off_spine]
loc = {of = "ea"}
[record.household]
files = ["h.csv"]
id = "hhid"
size = "hhsize"
weight = "wta"
[record.household.variables]
hhsize = {type = "integer", range = "1..30"}
water = {type = "text"}
wealth = {type = "integer", range = "1..5"}
expenditure = {type = "number"}
""",
        encoding="utf-8",
    )
    return folder / "census.toml"


def brazil(folder: Path, persons: int = 200) -> Path:
    """Persons alone, without households, with R factors as text."""
    dice = random.Random(7)
    rows = [
        {
            "cpf": 10_000 + i,
            "uf": f"UF{i % 4}",
            "municipio": f"M{i % 4}{i % 12}",
            "cor ou raça": dice.choice(["branca", "preta", "parda"]),
            "sexo": dice.choice(["f", "m"]),
        }
        for i in range(persons)
    ]
    pl.DataFrame(rows).write_parquet(folder / "p.parquet")
    (folder / "census.toml").write_text(
        """name = "pnad"
[geography]
spine = ["uf", "municipio"]
[record.person]
files = ["p.parquet"]
id = "cpf"
[record.person.variables]
"cor ou raça" = {levels = ["branca", "preta", "parda"]}
sexo = {levels = ["f", "m"]}
""",
        encoding="utf-8",
    )
    return folder / "census.toml"


COUNTRIES = {"austria": austria, "ghana": ghana, "brazil": brazil}


@pytest.mark.parametrize("country", COUNTRIES)
def test_a_proposed_swap_passes_the_check_at_once(
    country: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    census = COUNTRIES[country](tmp_path)
    plan = tmp_path / "plan.toml"
    assert main(["plan", "new", "--census", str(census), "--out", str(plan)]) == 0
    told = capsys.readouterr().out
    assert "no record was read" in told
    explained = explain(load(plan))
    assert explained.records > 0
    checked = explained.document()
    (compared,) = checked["compared_losses"]
    assert [one["step"] for one in checked["losses"]] == [1] * len(checked["losses"])
    assert all(f"ε = {one['epsilon']} by {one['mechanism']}" in compared for one in checked["losses"])
    assert "by stirring and" in compared
    assert "by permutation-swapping" in compared
    text = plan.read_text(encoding="utf-8")
    settings = tomllib.loads(text)["mechanism"][0]
    expected = {
        "austria": (["bundesland", "size"], ["bezirk"], ["wohnung"], ["gewicht", "einkommen"]),
        "ghana": (
            ["region", "hhsize"],
            ["district", "ea"],
            None,  # water has no listed values: a guard judges it
            ["expenditure", "loc", "wta"],
        ),
        "brazil": (["uf"], ["municipio"], ["cor ou raça", "sexo"], []),
    }[country]
    assert (settings["match"], settings["swap"], settings.get("hold")) == expected[:3]
    assert sorted(settings.get("drop", [])) == sorted(expected[3])
    for word in ("match", "swap", "rate", "hold", "tables")[: 5 if "hold" in settings else 3]:
        assert f"{word}: " in told
    assert " — " in told
    assert {"austria": "wohnung", "ghana": "without listed levels: water", "brazil": "no size"}[country] in (
        text + told
    )
    tables = tomllib.loads(text)["table"]
    published = {name for table in tables for name in table["by"]} | set(settings.get("hold", []))
    assert not published & {
        "db030",
        "pid",
        "gewicht",
        "hhid",
        "wta",
        "cpf",
        "einkommen",
        "expenditure",
        "loc",
    }


def test_a_new_plan_begins_with_the_swap_that_loses_least_and_says_why(tmp_path: Path) -> None:
    from stirred.census.toml import parse_schema

    def choose(variables: dict[str, object], spine: list[str]) -> tuple[str, str]:
        homes = {"household": {"variables": {"region": {}, "ea": {}, **variables}}}
        return choose_mechanism(parse_schema({"geography": {"spine": spine}, "record": homes}))

    name, why = choose({"tenure": ["own", "rent", "other"]}, ["region", "ea"])
    assert name == "stirring"
    assert "about half" in why
    name, why = choose({"tenure": ["own", "rent"]}, ["region", "ea"])
    assert name == "stirring"
    assert "two ways at most" in why
    assert choose({"tenure": ["own", "rent"]}, []) == ("gaussian-tables", "")
    # persons make households differ, whatever is listed
    name, why = choose_mechanism(read_schema(austria(tmp_path)))
    assert name == "stirring"
    found = propose_plan(find_mechanism(name), tmp_path / "census.toml", tmp_path / "p.toml", reason=why)
    assert found.choices[0] == f"mechanism: stirring — {why}"
    assert f"# {why}\n" in found.text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("country", ["austria", "ghana"])
def test_every_mechanism_can_be_chosen(country: str, name: str, tmp_path: Path) -> None:
    census, plan = COUNTRIES[country](tmp_path, 60), tmp_path / "plan.toml"
    if name in ("safetab-p", "safetab-h"):  # neither census has detailed codes
        with pytest.raises(PlanError, match="cannot be proposed"):
            propose_plan(find_mechanism(name), census, plan)
        return
    if name == "swapping-imputed-stay":
        with pytest.raises(PlanError, match="cannot be proposed"):
            propose_plan(find_mechanism(name), census, plan)
        text = census.read_text(encoding="utf-8")
        mark = 'wohnung = {levels = ["eigen", "miete"], imputed = "flag"}\nflag = {levels = ["0", "1"]}'
        census.write_text(text.replace('wohnung = {levels = ["eigen", "miete"]}', mark), encoding="utf-8")
        if country == "austria":
            frame = pl.read_csv(tmp_path / "p.csv").with_columns(flag=(pl.col("db030") % 2).cast(pl.String))
            frame.write_csv(tmp_path / "p.csv")
        else:
            return
    if name == "phsafe" and country == "ghana":  # it has no persons, whom this mechanism counts
        with pytest.raises(PlanError, match="cannot be proposed"):
            propose_plan(find_mechanism(name), census, plan)
        return
    found = propose_plan(find_mechanism(name), census, plan)
    found.write(plan)
    assert found.choices
    # sixty households have strata of two or three: a proposal for a census is accepted here with a reason
    plan.write_text(f'accept_small_effect = "a test"\n{plan.read_text(encoding="utf-8")}', encoding="utf-8")
    explained = explain(load(plan))
    assert explained.records > 0
    assert main(["plan", "check", str(plan)]) == 0


def test_the_workload_of_topdown_counts_by_listed_levels(tmp_path: Path) -> None:
    census, plan = austria(tmp_path), tmp_path / "plan.toml"
    assert main(["plan", "new", str(plan), "--census", str(census), "--mechanism", "topdown"]) == 0
    workload = tomllib.loads((tmp_path / "workload.toml").read_text(encoding="utf-8"))
    assert workload["record"] == "person"
    assert workload["levels"] == ["bundesland", "bezirk"]
    assert [axis["name"] for axis in workload["axis"]] == ["geschlecht_level"]
    assert workload["rule"][0] | {"query": "total", "level": "bundesland"} == workload["rule"][0]
    assert "total" not in workload["query_shares"]["bundesland"]  # exact there: nothing is spent on it
    assert "total" in workload["query_shares"]["bezirk"]
    assert (
        main(["plan", "new", str(tmp_path / "two.toml"), "--census", str(census), "--mechanism", "topdown"])
        != 0
    )
    assert not (tmp_path / "two.toml").exists()  # its workload would overwrite the first


@pytest.mark.parametrize("name", NAMES)
def test_a_census_without_geography_is_told_what_it_lacks(name: str, tmp_path: Path) -> None:
    census = brazil(tmp_path)
    text = census.read_text(encoding="utf-8").replace('spine = ["uf", "municipio"]\n', "")
    census.write_text(text, encoding="utf-8")
    if name in TABLES:  # tables need no areas
        found = propose_plan(find_mechanism(name), census, tmp_path / "plan.toml")
        settings = tomllib.loads(found.text)["mechanism"][0]
        counted = settings.get("tables") or [[settings["rows"], settings["columns"]]]
        assert {variable for by in counted for variable in by} == {"cor ou raça", "sexo"}
        return
    with pytest.raises(PlanError, match="no geography") as caught:
        propose_plan(find_mechanism(name), census, tmp_path / "plan.toml")
    assert "[geography] spine" in str(caught.value)


def test_variables_that_are_not_declared_are_not_guessed(tmp_path: Path) -> None:
    census = brazil(tmp_path)
    text = census.read_text(encoding="utf-8").split("[record.person.variables]")[0]
    census.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match="declares no variables"):
        propose_plan(find_mechanism(NAMES[0]), census, tmp_path / "plan.toml")


def test_a_proposal_reads_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    census = austria(tmp_path)
    plain = propose_plan(find_mechanism(NAMES[0]), census, tmp_path / "plan.toml").text

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("records were read")

    monkeypatch.setattr(pl.LazyFrame, "collect", refuse)
    monkeypatch.setattr(pl, "collect_all", refuse)
    assert propose_plan(find_mechanism(NAMES[0]), census, tmp_path / "plan.toml").text == plain
    header = (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()[0]
    cells = ",".join([MARK] * (header.count(",") + 1))
    (tmp_path / "p.csv").write_text(f"{header}\n{cells}\n", encoding="utf-8")
    assert propose_plan(find_mechanism(NAMES[0]), census, tmp_path / "plan.toml").text == plain


def test_a_mechanism_without_a_proposal_gets_its_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = find_mechanism(NAMES[0])
    monkeypatch.setattr(kind, "propose", classmethod(lambda cls, schema: Mechanism.propose(schema)))
    found = propose_plan(kind, brazil(tmp_path), tmp_path / "sub" / "plan.toml")
    assert "makes no proposal" in found.undecided[0]
    assert tomllib.loads(found.text)["census"] == "../census.toml"
    with pytest.raises(InputError, match="its folder does not exist"):
        found.write(tmp_path / "sub" / "plan.toml")


def test_a_plan_is_never_overwritten(tmp_path: Path) -> None:
    census = brazil(tmp_path)
    (tmp_path / "plan.toml").write_text("mine")
    assert main(["plan", "new", "--census", str(census), "--out", str(tmp_path / "plan.toml")]) != 0
    assert (tmp_path / "plan.toml").read_text() == "mine"


def test_tuning_asks_for_a_stand_in_that_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    census, plan = ghana(tmp_path), tmp_path / "plan.toml"
    assert main(["plan", "new", "--census", str(census), "--out", str(plan)]) == 0
    tuning = ["plan", "tune", str(plan), "--target", "mape district×wealth <= 200%", "--runs", "1"]
    assert main(tuning) != 0
    assert "data synth --like" in capsys.readouterr().err
    stand_in = tmp_path / "stand-in"
    made = ["data", "synth", "--like", str(census), "--out", str(stand_in), "--households", "300"]
    assert main([*made, "--areas", "region=3", "district=6", "ea=24", "--levels", "water=3"]) == 0
    assert main([*tuning, "--stand-in", str(stand_in / "census.toml")]) == 0
    for own in (census, census.parent):
        assert main([*tuning, "--stand-in", str(own)]) == 2
        assert "the stand-in is the plan's own census" in capsys.readouterr().err


def test_a_proposal_takes_no_decision_for_a_guard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What hold names is released on purpose, so a proposal must not name a column that may tell who is who."""
    rows = [
        f"{i},c{i % 2},c{i % 2}s{i % 4},c{i % 2}s{i % 4}w{i % 12},{i % 5 + 1},{7919 * i}" for i in range(600)
    ]
    text = "\n".join(["hhno,county,sub_county,ward,members,income", *rows])
    (tmp_path / "homes.csv").write_text(text + "\n")
    census, plan = str(tmp_path / "census.toml"), str(tmp_path / "plan.toml")
    assert main(["data", "describe", str(tmp_path / "homes.csv"), "--out", census]) == 0
    described = Path(census).read_text()
    assert 'spine = ["county", "sub_county", "ward"]' in described
    assert 'size = "members"' in described
    assert 'income = {bands = "1-2-5"}' in described
    Path(census).write_text(described.replace('income = {bands = "1-2-5"}', 'income = {type = "integer"}'))
    assert main(["plan", "new", "--census", census, "--out", plan]) == 0
    capsys.readouterr()
    assert main(["plan", "check", plan]) == 2
    assert "income would identify records" in capsys.readouterr().err


def test_areas_beside_the_spine_are_dropped_where_guards_judge_the_columns() -> None:
    from stirred.census.toml import parse_schema
    from stirred.mechanisms.swap.config import SwapConfig
    from stirred.mechanisms.swap.proposal import propose_swap

    variables = {
        "region": ["a", "b"],
        "ea": {"type": "text"},
        "tenure": ["own", "rent"],
        "place": {"type": "text"},
    }
    geography = {"spine": ["region", "ea"], "off_spine": {"place": {}}}
    for more, hold, drop in (({}, ["tenure"], None), ({"income": {"type": "integer"}}, None, ["place"])):
        homes = {"id": "hid", "variables": variables | more}
        found = propose_swap(
            parse_schema({"geography": geography, "record": {"household": homes}}), SwapConfig
        ).settings
        assert (found.get("hold"), found.get("drop")) == (hold, drop)
