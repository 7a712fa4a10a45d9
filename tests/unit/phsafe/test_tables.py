"""PHSafe's settings and tables: truncation, variances, budgets of 0, group quarters, duplicates, Puerto Rico."""

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from stirred import Key, PHSafe, read
from stirred.errors import BudgetError, InputError
from stirred.frames import frame_of
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.phsafe.budgets import SDHC_2020
from stirred.mechanisms.census2020.phsafe.mechanism import Average, compute_averages
from stirred.mechanisms.release import Release
from stirred.spec import Hamming, SymmetricDifference
from unit.phsafe.small import SCHEMA, census, home, person

KEY = Key.for_tests(3)
PEOPLE = ["PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7"]


def released(homes: list[Any], persons: list[Any], **settings: Any) -> dict[str, pl.DataFrame]:
    """The exact tables of some rows, by name."""
    release = PHSafe(**{"epsilon": "inf", **settings}).release(census(homes, persons), key=KEY)
    return {name: frame_of(table) for name, table in release.tables.items()}


def counted(tables: dict[str, pl.DataFrame], name: str) -> int:
    """All counts of the nation, over all races."""
    rows = tables[name].filter(pl.col("region_type") == "USA")
    return int(
        (rows.filter(pl.col("iteration") == "*") if "iteration" in rows.columns else rows)["count"].sum()
    )


def test_the_production_budgets_add_up() -> None:
    assert SDHC_2020.total == Fraction("1.257281")
    state = sum(
        amount for levels in SDHC_2020.amounts.values() for level, amount in levels.items() if level[0] == "s"
    )
    assert state == Fraction("1.226649")  # Puerto Rico
    assert sum(SDHC_2020.amounts["PH3"].values()) / SDHC_2020.total > Fraction(1, 2)


def test_households_of_four_and_five_are_cut() -> None:
    """The Bureau's test of the truncation threshold: τ = 4 counts 8 persons, τ = 5 counts 9."""
    persons = [person("a") for _ in range(4)] + [person("b", age=9) for _ in range(5)]
    for tau, wanted in ((4, 8), (5, 9)):
        tables = released([home("a"), home("b")], persons, tau=dict.fromkeys(PEOPLE, tau))
        assert {counted(tables, name.lower()) for name in PEOPLE} == {wanted}


def test_the_filter_comes_before_the_truncation() -> None:
    parents = [person("a", relationship=1, age=40), person("a", relationship=2, age=40)]
    persons = [*parents, *(person("a", age=age) for age in (3, 5, 7))]
    tables = released([home("a")], persons, tau=dict.fromkeys(PEOPLE, 3))
    assert counted(tables, "ph1_num") == 3  # of five
    assert counted(tables, "ph3") == counted(tables, "ph6") == 3  # all children: parents take no place


def test_variances_are_those_of_the_original() -> None:
    assert CellNoise("zcdp", Fraction(1), Fraction(16)).variance == 8  # τ = 1
    assert CellNoise("zcdp", Fraction(1), Fraction(4)).variance == 2  # households
    assert CellNoise("puredp", Fraction(1), Fraction(16)).variance == pytest.approx(
        31.83385287773731, abs=1e-12
    )
    persons = [person("a")]
    release = PHSafe(
        preset="",
        definition="puredp",
        budget={"PH3.usa_*": "1/2", "PH7.usa_*": "1"},
        tau={"PH3": 5, "PH7": 1},
    ).release(census([home("a")], persons), key=KEY)
    assert frame_of(release.tables["ph3"])["variance"].unique().to_list() == [
        pytest.approx(1151.83335, abs=5e-6)
    ]
    seventh = frame_of(release.tables["ph7"])["variance"].unique().to_list()
    assert seventh == [pytest.approx(31.83385287773731, abs=1e-12)]
    eighth = dict(frame_of(release.tables["ph8_num"]).select("ph8_num_cell", "variance").iter_rows())
    assert eighth == {2: pytest.approx(2 * seventh[0]), 3: pytest.approx(seventh[0])}


def test_the_noise_of_production_is_as_published() -> None:
    shown = {row[0:3]: row[-2] for row in PHSafe().exhibits(None)[0].parts[0].rows}  # type: ignore[union-attr]
    assert shown["PH1_num", "USA", "*"] == pytest.approx(304, abs=0.5)
    assert shown["PH1_num", "STATE", "*"] == pytest.approx(121.6, abs=0.05)
    assert shown["PH1_num", "STATE", "A-G"] == pytest.approx(41.3, abs=0.05)
    assert shown["PH3", "STATE", "A-G"] == pytest.approx(12.2, abs=0.05)
    assert shown["PH8_denom", "STATE", "A-G"] == pytest.approx(41.3, abs=0.05)


def test_a_budget_of_0_leaves_a_table_out() -> None:
    nothing = dict.fromkeys(SDHC_2020.amounts, "0")
    rows = [home("a")], [person("a")]
    only = released(*rows, budget={**nothing, "PH4": "1"})
    assert set(only) == {"ph4", "ph5_num"}
    assert only["ph4"]["count"].to_list() == only["ph5_num"]["count"].to_list()
    level = released(*rows, budget={**nothing, "PH1_num.state_H,I": "1"})
    assert set(level) == {"ph1_num"}
    assert level["ph1_num"]["iteration"].unique().sort().to_list() == ["H", "I"]
    with pytest.raises(InputError, match="no table"):
        released(*rows, budget=nothing)


def test_derived_tables_repeat_the_noise() -> None:
    release = PHSafe().release(census([home("a")], [person("a")]), key=KEY)
    tables = {name: frame_of(table) for name, table in release.tables.items()}
    assert tables["ph4"]["count"].to_list() == tables["ph5_num"]["count"].to_list()
    keys = ["region_type", "region", "iteration"]
    seventh = tables["ph7"].group_by(keys).agg(pl.col("count").filter(pl.col("ph7_cell") < 4).sum())
    owners = tables["ph8_num"].filter(pl.col("ph8_num_cell") == 2).join(seventh, on=keys)
    assert owners["count"].to_list() == owners["count_right"].to_list()
    assert release.ledger is not None
    assert release.ledger.total == release.specification.budget
    other = PHSafe(neighbours="household").release(census([home("a")], [person("a")]), key=KEY)
    assert other.tables["ph1_num"].equals(
        release.tables["ph1_num"]
    )  # the words of the promise change no draw
    assert other.ledger is not None
    assert other.ledger.total == other.specification.budget
    assert not {entry.on for entry in release.ledger.entries} & {"PH5_num", "PH8_num"}


def test_residents_of_group_quarters_are_never_counted() -> None:
    homes = [home("a"), home("q", kind=3)]
    persons = [
        person("a"),
        person("a", relationship=30, age=20),
        person("q", relationship=30, age=20),
        person("q"),
    ]
    tables = released(homes, persons)
    assert counted(tables, "ph1_num") == counted(tables, "ph7") == 1
    assert counted(tables, "ph1_denom") == 1


def test_vacant_units_have_no_household() -> None:
    tables = released([home("a"), home("v", kind=2)], [person("a")])
    assert counted(tables, "ph1_denom") == counted(tables, "ph8_denom") == counted(tables, "ph5_denom") == 1


def test_a_record_that_no_cell_takes_is_dropped_silently() -> None:
    odd = [person("a", relationship=6)]
    tables = released([home("a", hht2=2, tenure=0)], odd)  # an own child where the unit record knows of none
    assert [counted(tables, name) for name in ("ph3", "ph6", "ph7")] == [0, 0, 0]
    assert counted(tables, "ph1_num") == 1


def test_a_duplicate_identifier_drops_the_household(tmp_path: Any) -> None:
    units = "RTYPE,MAFID,FINAL_POP,NPF,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT\n"
    units += "2,1,1,0,1,01,2,4,09,5\n2,2,1,0,1,01,2,4,09,5\n2,2,1,0,1,01,2,4,09,5\n2,3,1,0,1,01,2,4,09,5\n"
    geo = "RTYPE,MAFID,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK\n"
    geo += "".join(f"2,{number},44,001,000100,1000\n" for number in (1, 2, 3, 3))
    persons = "RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP\n"
    persons += "".join(f"3,{number},40,1,01,20\n" for number in (1, 2, 3, 4))
    for name, text in (("units.csv", units), ("geo.csv", geo), ("persons.csv", persons)):
        (tmp_path / name).write_text(text)
    release = PHSafe(epsilon="inf").release(read(tmp_path), key=KEY)
    tables = {name: frame_of(table) for name, table in release.tables.items()}
    assert counted(tables, "ph1_num") == counted(tables, "ph1_denom") == 1


def test_puerto_rico_is_a_run_of_its_own() -> None:
    rows = [home("a", state="72"), home("b", state="01")], [person("a"), person("b")]
    both = census(*rows)
    with pytest.raises(InputError, match="Puerto Rico is a run of its own"):
        PHSafe(states=["72", "01"])
    with pytest.raises(InputError, match="holds states and Puerto Rico"):
        PHSafe().release(both, key=KEY)
    island = PHSafe(states=["72"])
    assert island.specification(both).rho_squared.exact == "1226649/1000000"
    tables = {name: frame_of(table) for name, table in island.release(both, key=KEY).tables.items()}
    for table in tables.values():
        assert set(zip(table["region_type"], table["region"], strict=True)) == {("STATE", "72")}
    assert counted(released(*rows, states=["01"]), "ph1_num") == 1
    with pytest.raises(InputError, match="did you mean"):
        PHSafe(states=["02"]).release(both, key=KEY)


def test_the_promise_is_per_person_added_or_removed() -> None:
    spec = PHSafe().specification(census([home("a")], [person("a")]))
    assert spec.input_premetric == SymmetricDifference("person")
    assert spec.rho_squared.exact == "1257281/1000000"
    assert [invariant.words() for invariant in spec.multiverse] == [
        "which areas of level state hold a housing unit record"
    ]
    assert PHSafe(rho_squared="2").specification(census([home("a")], [person("a")])).rho_squared.exact == "2"
    moving = PHSafe(neighbours="changed").specification(census([home("a")], [person("a")]))
    assert (moving.input_premetric, moving.rho_squared.exact) == (
        Hamming("person", link="free"),
        "1257281/500000",
    )
    whole = PHSafe(neighbours="household").specification(census([home("a")], [person("a")]))
    assert (whole.input_premetric, whole.rho_squared.exact) == (Hamming("household"), "1257281/2000000")
    assert "one household changed" in whole.notes[0]
    assert "Theorem 2" in whole.evidence.source
    (knob,) = PHSafe().knobs()
    assert sum(a for a in knob.turned(Fraction(3)).amounts.values()) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"definition": "puredp"}, BudgetError, "no ε"),
        ({"rho_squared": "0"}, BudgetError, "positive"),
        ({"epsilon": "1"}, BudgetError, "not the budget of zcdp"),
        ({"tau": {"PH5_denom": 3}}, InputError, "no table of persons"),
        ({"budget": {"PH9": "1"}}, InputError, "did you mean"),
        ({"budget": {"PH2.state_A-G": "1"}}, InputError, "did you mean"),
        ({"budget": {"PH2": "-1"}}, BudgetError, "negative"),
        ({"columns": {"sexe": "sex"}}, InputError, "did you mean"),
        ({"preset": "", "budget": {"PH2": "1"}}, InputError, "has no τ"),
        ({"preset": "sdhc"}, InputError, "should be 'sdhc-2020'"),
        ({"states": "06"}, InputError, "valid list"),
        ({"tau": {"PH3": 0}}, InputError, "greater than or equal to 1"),
        ({"budget": {"PH2": 0.5}}, BudgetError, "floats are not exact"),
        ({"budget": {"PH2": "half"}}, BudgetError, "not an exact number"),
        ({"rho_squared": 0.5}, BudgetError, "float"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        PHSafe(**settings)


def test_columns_may_be_called_otherwise() -> None:
    made = census([home("a")], [person("a")])
    renamed = made.table("person").rename_columns(
        ["household_id", "relationship", "years", "race", "hispanic"]
    )
    other = type(made).of(SCHEMA, {"household": made.table("household"), "person": renamed})
    assert "ph1_num" not in PHSafe(epsilon="inf").release(other, key=KEY).tables
    assert "PH1_num" in " ".join(PHSafe().specification(other).notes)
    with_age = PHSafe(epsilon="inf", columns={"person.age": "years"}).release(other, key=KEY)
    assert counted({"ph1_num": frame_of(with_age.tables["ph1_num"])}, "ph1_num") == 1


def test_averages_follow_with_an_interval() -> None:
    exact = Average.of(250.0, 0.0, 100.0, 0.0)
    assert (exact.value, exact.low, exact.high) == (2.5, 2.5, 2.5)
    wide = Average.of(25_000.0, 121.6**2, 10_000.0, 121.6**2)
    assert wide.low is not None
    assert wide.high is not None
    delta = (
        1.96 * 121.6 * (1 + 2.5**2) ** 0.5 / 10_000
    )  # the delta method, close to Fieller where noise is small
    assert (wide.high - wide.low) / 2 == pytest.approx(delta, rel=1e-3)
    tables = released([home("a"), home("b", tenure=3)], [person("a"), person("a", age=4), person("b")])
    upper = {
        name.upper().replace("_NUM", "_num").replace("_DENOM", "_denom"): t for name, t in tables.items()
    }
    found = {(name, region): average.value for name, region, average in compute_averages(upper)}
    assert found["household", "USA 1"] == 1.5
    assert (found["owner", "STATE 01"], found["renter", "STATE 01"]) == (2.0, 1.0)


def test_exhibits_say_what_is_noisy_and_what_is_left_out() -> None:
    mechanism = PHSafe()
    release: Release = mechanism.release(census([home("a")], [person("a")]), key=KEY)
    titles = [str(exhibit.title) for exhibit in mechanism.exhibits(release)]
    assert titles == [
        "The noise of every table",
        "Persons whom truncation leaves out",
        "Average sizes of households and families",
    ]
    assert "not published" in str(mechanism.exhibits(release)[1].note)
    only = PHSafe(budget=dict.fromkeys(SDHC_2020.amounts, "0") | {"PH3.state_H,I": "1"})
    release = only.release(census([home("a")], [person("a")]), key=KEY)
    (listing,) = only.exhibits(release)[0].parts
    assert [row[:3] for row in listing.rows] == [("PH3", "STATE", "H,I")]


def test_the_noise_has_the_variance_that_is_published() -> None:
    """Forty states of one household: 1,960 counts of PH3 with one law."""
    homes = [home(f"{n}", state=f"{n:02d}") for n in range(1, 41)]
    release = PHSafe(rho_squared="1/2").release(census(homes, [person("1")]), key=KEY)
    rows = frame_of(release.tables["ph3"]).filter(
        (pl.col("region_type") == "STATE") & pl.col("iteration").is_in(list("ABCDEFG"))
    )
    assert rows.height == 40 * 7 * 7
    drawn = rows["count"].to_numpy().astype(float)
    wanted = rows["variance"][0]
    assert 0.85 < (drawn**2).mean() / wanted < 1.15  # five standard deviations
    inside = ((rows["low"] <= 0) & (rows["high"] >= 0)).mean()
    assert isinstance(inside, float)
    assert 0.92 < inside < 0.98
