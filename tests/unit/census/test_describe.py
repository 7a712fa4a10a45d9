"""Describing files of offices nobody here has seen: ids, links, weights and areas come from the records, not from names."""

import random
import tomllib
from bisect import bisect_right
from pathlib import Path

import polars as pl
import pyreadstat
import pytest

from stirred.census import check, read
from stirred.census.describe import Description, describe, strip_comments, write_document
from stirred.census.schema import NAMED_LIMITS, band_names
from stirred.census.toml import load_schema, parse_schema
from unit.census.surveys import austria, ghana

EXAMPLES = Path(__file__).parents[3] / "examples"


def described(folder: Path, *files: str, confidential: bool = False) -> Description:
    """What was written, after it was read again, checked and held against the records."""
    document = describe(files, folder=folder, confidential=confidential)
    (folder / "census.toml").write_text(document.toml(), encoding="utf-8")
    assert not check(folder)
    assert tomllib.loads(document.toml()) == strip_comments(document)
    return document


def test_an_austrian_household_file(tmp_path: Path) -> None:
    austria().write_csv(tmp_path / "silc.csv")
    document = described(tmp_path, "silc.csv")
    assert document["geography"]["spine"] == ["region"]
    home = document["record"]["household"]
    assert (home["id"], home["size"], home["weight"]) == ("hid", "size", "weight")
    assert {name: entry.get("type", entry.get("bands")) for name, entry in home["variables"].items()} == {
        "size": "integer",
        "urban": "integer",
        "eqIncome": "1-2-5",
    }
    assert read(tmp_path).count("household") == 600


def test_semicolons_decimal_commas_and_latin1(tmp_path: Path) -> None:
    frame = austria()
    comma = pl.col("eqIncome", "weight").cast(pl.String).str.replace(".", ",", literal=True)
    (tmp_path / "silc.csv").write_bytes(frame.with_columns(comma).write_csv(separator=";").encode("latin-1"))
    document = described(tmp_path, "silc.csv", confidential=True)
    home = document["record"]["household"]
    assert (home["encoding"], home["decimal"]) == ("latin1", ",")
    assert home["variables"]["eqIncome"]["bands"] == "1-2-5"
    table = read(tmp_path).table("household", ["region", "eqIncome", "weight"])
    limits, names = NAMED_LIMITS["1-2-5"], band_names(NAMED_LIMITS["1-2-5"])
    found, true = table.to_pydict(), frame.select("region", "eqIncome", "weight").to_dict(as_series=False)
    true["eqIncome"] = [names[bisect_right(limits, value)] for value in true["eqIncome"]]
    assert found == true


def test_a_ghanaian_survey_in_two_files(tmp_path: Path) -> None:
    homes, persons = ghana()
    homes.write_csv(tmp_path / "g7hh.csv")
    persons.rename({"hhid": "clid"}).write_parquet(tmp_path / "g7ind.parquet")
    document = described(tmp_path, "g7ind.parquet", "g7hh.csv")
    assert document["geography"]["spine"] == ["region", "district", "ea"]
    assert strip_comments(document["geography"])["off_spine"] == {"loc": {"of": "ea"}}
    home, person = document["record"]["household"], document["record"]["person"]
    assert (home["id"], home["size"], home["weight"]) == ("hhid", "hsize", "clustwgt")
    assert person["household"] == "clid"
    assert set(person["variables"]) == {"pid", "sex", "age"}
    # a weight that is constant in an area undoes a swap of areas
    assert any("clustwgt is the weight" in guess and "tells the ea" in guess for guess in document.guesses)


def test_areas_are_found_when_no_name_says_so(tmp_path: Path) -> None:
    homes, _ = ghana()
    blind = {"region": "q1", "district": "q2", "ea": "q3", "loc": "q4", "clustwgt": "q5", "hhid": "q0"}
    homes.rename(blind).select(sorted(blind.values())).write_csv(tmp_path / "x.csv")
    document = described(tmp_path, "x.csv")
    assert document["geography"]["spine"] == ["q1", "q2", "q3"]
    assert "not decided whether these are places" in document["geography"]["#spine"]
    home = document["record"]["household"]
    assert home["id"] == "q0"
    assert home["leave_out"] == ["q5"]  # a number that is constant in an area tells the area
    assert 'set weight = "q5"' in home["#leave_out"]


def test_columns_nest_by_chance_in_few_records(tmp_path: Path) -> None:
    austria(12).with_columns(
        twin=pl.Series([f"t{k // 2}" for k in range(12)]), one=pl.Series(["x"] * 12)
    ).write_csv(tmp_path / "h.csv")
    document = describe(["h.csv"], folder=tmp_path)
    assert document["geography"]["spine"] == ["region"]
    assert "off_spine" not in document["geography"]


def test_codes_that_start_again_in_each_area_are_left_to_a_person(tmp_path: Path) -> None:
    homes, _ = ghana()
    homes.with_columns(district=pl.col("district") % 3, ea=pl.col("ea") % 7).write_csv(tmp_path / "h.csv")
    document = described(tmp_path, "h.csv")
    assert document["geography"]["spine"] == ["region"]
    told = document["record"]["household"]["#leave_out"]
    assert 'set [geography.level.district] columns = ["region", "district"]' in told
    assert {"district", "ea"} <= set(document["record"]["household"]["leave_out"])


def test_codes_of_a_spine_that_many_share_are_joined_in_its_order(tmp_path: Path) -> None:
    rows = [(s, c, t) for s in ("01", "02") for c in ("001", "003") for t in ("000100", "000200")] * 5
    frame = pl.DataFrame(rows, schema=["state", "county", "tract"], orient="row")
    frame.write_csv(tmp_path / "h.csv")
    told = describe(["h.csv"], folder=tmp_path).toml()
    assert '[geography.level.county] columns = ["state", "county"]' in told
    assert '[geography.level.tract] columns = ["state", "county", "tract"]' in told
    frame.select("county", geoid=pl.concat_str("state", "county", "tract")).write_csv(tmp_path / "h.csv")
    document = describe(["h.csv"], folder=tmp_path)
    assert document["geography"] == {"preset": "us", "code": "geoid"}
    assert document["record"]["household"]["variables"]["county_name"]["column"] == "county"


def test_weights_may_be_whole_or_zero_and_in_other_languages(tmp_path: Path) -> None:
    names = (
        "HWEIGHT",
        "hhwt",
        "peso",
        "gewicht",
        "poids",
        "pw",
        "wgt",
        "hhweight",
        "factor_exp",
        "pond",
        "db090",
    )
    for name in names:
        frame = austria().rename({"weight": name})
        frame.with_columns(pl.when(pl.col("size") > 2).then(name).otherwise(0)).write_csv(tmp_path / "h.csv")
        assert describe(["h.csv"], folder=tmp_path)["record"]["household"]["weight"] == name
    for name in ("height", "newton", "birthweight", "wtf", "prix"):
        austria().rename({"weight": name}).write_csv(tmp_path / "h.csv")
        assert "weight" not in describe(["h.csv"], folder=tmp_path)["record"]["household"]


def test_a_unique_column_is_never_a_variable_and_an_amount_is_banded(tmp_path: Path) -> None:
    dice = random.Random(3)
    more = austria().with_columns(
        phone=pl.Series(dice.sample(range(10**6), 600)),
        income=pl.Series([k + 0.5 for k in dice.sample(range(10**6), 600)]),
        row=pl.int_range(600),
    )
    more.write_csv(tmp_path / "h.csv")
    for confidential in (False, True):
        document = described(tmp_path, "h.csv", confidential=confidential)
        home = document["record"]["household"]
        assert home["id"] == "hid"
        assert set(home["leave_out"]) == {"phone", "row"}
        assert not {"phone", "row", "hid"} & set(home["variables"])
        assert home["variables"]["income"]["bands"] == "1-2-5"
    assert set(read(tmp_path).columns("household")) == {
        "hid",
        "region",
        "size",
        "urban",
        "eqIncome",
        "income",
        "weight",
    }
    assert sum("not decided" in guess for guess in document.guesses) >= 2
    assert any("released by bands: eqIncome (1-2-5), income (1-2-5)" in guess for guess in document.guesses)


@pytest.mark.parametrize("name", ["weight2", "latitude", "isco", "idunit", "code_2", "account"])
def test_a_number_that_is_no_amount_is_not_banded(name: str, tmp_path: Path) -> None:
    dice = random.Random(3)
    values = [float(k) if name != "account" else k for k in dice.sample(range(10**6), 599)]
    more = austria().with_columns(pl.Series(name, [*values, values[0]]))
    more.write_csv(tmp_path / "h.csv")
    home = described(tmp_path, "h.csv")["record"]["household"]
    assert name in home.get("leave_out", ()) or home["variables"][name].get("type") == "number"


def test_what_singles_out_records_is_left_out_and_a_constant_has_no_table(tmp_path: Path) -> None:
    dice = random.Random(3)
    rare = [f"t{dice.randint(1, 30)}" if k > 20 else f"u{k}" for k in range(600)]
    hours = [dice.randint(0, 40) if k > 20 else 41 + k for k in range(600)]
    more = austria().with_columns(trade=pl.Series(rare), hours=pl.Series(hours), year=2021)
    more.write_csv(tmp_path / "h.csv")
    document = described(tmp_path, "h.csv")
    home = document["record"]["household"]
    assert home["leave_out"] == ["trade"]
    assert home["variables"]["hours"]["bands"] == "1-2-5"
    assert home["variables"]["year"]["tabulate"] is False
    assert any(
        "trade is left out (some of its values are of one record alone" in guess for guess in document.guesses
    )


def test_a_file_whose_columns_are_all_special_keeps_out_what_is_left_out(tmp_path: Path) -> None:
    dice = random.Random(4)
    austria().select("hid", "region").with_columns(phone=pl.Series(dice.sample(range(10**6), 600))).write_csv(
        tmp_path / "h.csv"
    )
    described(tmp_path, "h.csv")
    assert read(tmp_path).columns("household") == ("hid", "region")


@pytest.mark.parametrize("file", ["survey.csv", "survey.parquet", "persons.sav", "persons.dta"])
def test_a_flat_person_file(tmp_path: Path, file: str) -> None:
    homes, persons = ghana()
    flat = persons.join(homes, on="hhid", how="left", maintain_order="left")
    if file.endswith("csv"):
        flat.write_csv(tmp_path / file)
    elif file.endswith("parquet"):
        flat.write_parquet(tmp_path / file)
    else:
        write = pyreadstat.write_sav if file.endswith("sav") else pyreadstat.write_dta
        labels = {"water": {k: f"w{k}" for k in range(1, 9)}}
        write(flat.to_pandas(), tmp_path / file, variable_value_labels=labels)
    document = described(tmp_path, file)
    home, person = document["record"]["household"], document["record"]["person"]
    assert (home["household_from"], home["size"], home["weight"]) == ("hhid", "hsize", "clustwgt")
    assert set(home["variables"]) == {"hsize", "water"}
    assert person["household"] == "hhid"
    assert person["id"] == ["hhid", "pid"]  # a number within the household is no variable
    assert set(person["variables"]) == {"sex", "age"}
    assert document["geography"]["spine"] == ["region", "district", "ea"]
    census = read(tmp_path)
    assert (census.count("household"), census.count("person")) == (homes.height, persons.height)
    if file.startswith("persons"):  # value labels are a codebook
        assert home["variables"]["water"]["levels"] == list(range(1, 9))


def test_a_flat_file_as_r_writes_it(tmp_path: Path) -> None:
    dice = random.Random(5)
    lines = ['"","db030","rb030","hsize","db040","age","rb090","pl030","py010n","db090"']
    for home in range(1, 121):
        size, region, weight = dice.randint(1, 5), dice.choice(["Tyrol", "Wien"]), dice.randint(100, 900) / 4
        for number in range(size):
            age = dice.randint(0, 90)
            work = (f'"{dice.randint(1, 7)}"', str(dice.randint(0, 9000) / 4)) if age >= 15 else ("NA", "NA")
            head = f'"{len(lines)}",{home},{100 * home + number},"{size}","{region}",{age}'
            lines.append(f'{head},"{dice.choice(["male", "female"])}",{work[0]},{work[1]},{weight}')
    (tmp_path / "eusilc.csv").write_text("\n".join(lines) + "\n")
    for confidential in (False, True):
        document = described(tmp_path, "eusilc.csv", confidential=confidential)
        home, person = document["record"]["household"], document["record"]["person"]
        assert (home["household_from"], home["size"], home["weight"]) == ("db030", "hsize", "db090")
        assert (person["id"], person["leave_out"]) == ("rb030", [""])
        assert person["variables"]["py010n"]["bands"] == "1-2-5"
        assert person["variables"]["pl030"]["missing"] == {"policy": "keep", "codes": ["NA"]}
        census = read(tmp_path)
        ages = census.table("person", ["age", "py010n", "pl030"]).to_pydict()
        young = [age in ("0-<5", "5-<10", "10-<15") for age in ages["age"]]
        assert young == [value is None for value in ages["py010n"]] == [v is None for v in ages["pl030"]]


def test_a_size_that_does_not_count_the_persons_is_a_variable(tmp_path: Path) -> None:
    homes, persons = ghana()
    homes.with_columns(pl.col("hsize").clip(upper_bound=4)).write_csv(tmp_path / "households.csv")
    persons.write_csv(tmp_path / "persons.csv")
    home = described(tmp_path, "households.csv", "persons.csv")["record"]["household"]
    assert "size" not in home
    assert "hsize" in home["variables"]


def test_a_wide_file_is_described(tmp_path: Path) -> None:
    dice = random.Random(6)
    wide = {f"v{k}": [dice.randint(1, 2 + k % 7) for _ in range(600)] for k in range(200)}
    austria().hstack(pl.DataFrame(wide)).write_csv(tmp_path / "h.csv")
    document = described(tmp_path, "h.csv")
    assert document["geography"]["spine"] == ["region"]
    assert len(document["record"]["household"]["variables"]) == 203


def test_nothing_of_the_records_is_shown_unless_asked_for(tmp_path: Path) -> None:
    homes, persons = ghana()
    homes.with_columns(water=pl.lit("SECRET") + pl.col("water").cast(pl.String)).write_csv(tmp_path / "h.csv")
    persons.write_csv(tmp_path / "p.csv")
    document = describe(["h.csv", "p.csv"], folder=tmp_path)
    for text in (document.toml(), " ".join(document.guesses)):
        assert "SECRET" not in text
        assert "7000" not in text
        assert "600" not in text
    assert "few values: list what may occur" in document.toml()
    assert "SECRET1" in describe(["h.csv", "p.csv"], folder=tmp_path, confidential=True).toml()


def test_one_record_and_no_record_can_be_described(tmp_path: Path) -> None:
    for rows in (0, 1):
        austria().head(rows).write_parquet(tmp_path / "h.parquet")
        document = describe(["h.parquet"], folder=tmp_path, confidential=True)
        assert document["record"]["household"]["id"] == "hid"
        assert any("too few records" in guess for guess in document.guesses)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("census.toml")), ids=lambda path: path.parent.name)
def test_a_schema_is_written_and_read_again(path: Path) -> None:
    schema = load_schema(path)
    document = write_document(schema)
    assert parse_schema(document, folder=path.parent) == schema
    assert parse_schema(tomllib.loads(document.toml()), folder=path.parent) == schema


def test_a_description_is_edited_without_changing_the_first() -> None:
    first = Description(
        {"record": {"household": {"id": "a", "#id": "unique"}}}, guesses=["household: a is …"]
    )
    second = first.copy()
    second["record"]["household"]["id"] = "b"
    assert first["record"]["household"]["id"] == "a"
    assert second.guesses == first.guesses
    assert 'id = "b"  # unique' in second.toml()
