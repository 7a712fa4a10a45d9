"""Invented records in the layouts of ten kinds of survey files: the names of the columns are real, nothing else is."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import xlsxwriter

Row = dict[str, object]
Rows = list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The files of a survey, how they are described, and what describing must find."""

    write: Callable[[Path], list[str]]  # the files; returns the arguments of stirred data describe
    spine: tuple[str, ...]
    weight: str = ""
    key: tuple[str, ...] | str = ""  # of the households, or of the records where there are no households
    never: frozenset[str] = frozenset()  # columns that no release may hold: keys, weights, texts
    banded: frozenset[str] = frozenset()  # numbers that a release holds by their bands alone
    constant: frozenset[str] = frozenset()  # columns with one value, by which no table is proposed


def _homes(seed: int, number: int = 240) -> tuple[random.Random, range]:
    return random.Random(seed), range(number)


def eu_silc(folder: Path) -> list[str]:
    """Register of households (D) and of persons (R), linked by RX030 to DB030."""
    dice, numbers = _homes(1)
    homes, persons = [], []
    for number in numbers:
        size = dice.randint(1, 4)
        home = 10_000 + number
        homes.append(
            {
                "DB010": 2021,
                "DB020": "XX",
                "DB030": home,
                "DB040": f"XX{number % 6 + 1}",
                "DB075": number % 4 + 1,
                "DB090": round(100 + 400 * dice.random(), 3),
                "DB100": dice.randint(1, 3),
                "HX040": size,
            }
        )
        persons += [
            {
                "RB010": 2021,
                "RB020": "XX",
                "RB030": home * 100 + k,
                "RX030": home,
                "RB050": round(90 + 300 * dice.random(), 4),
                "RX020": dice.randint(0, 90),
                "RB090": dice.randint(1, 2),
                "RB210": dice.randint(1, 4),
            }
            for k in range(1, size + 1)
        ]
    pl.DataFrame(homes).write_csv(folder / "silc_households.csv")
    pl.DataFrame(persons).write_csv(folder / "silc_persons.csv")
    return ["silc_households.csv", "silc_persons.csv"]


def eu_lfs(folder: Path) -> list[str]:
    """One file of persons with the number of their household."""
    dice, numbers = _homes(2)
    rows = [
        {
            "COUNTRY": "XX",
            "YEAR": 2022,
            "QUARTER": 1,
            "REGION": f"XX{number % 5 + 1}1",
            "DEGURBA": number % 3 + 1,
            "HHNUM": 7_000 + number,
            "HHSEQNUM": k,
            "COEFFQ": round(0.2 + dice.random(), 5),
            "SEX": dice.randint(1, 2),
            "AGE": dice.randint(0, 90),
            "ILOSTAT": dice.choice([1, 2, 3, 9]),
            "HATLEV1D": dice.choice(["L", "M", "H"]),
        }
        for number in numbers
        for k in range(1, dice.randint(1, 4) + 1)
    ]
    pl.DataFrame(rows).write_csv(folder / "lfs.csv")
    return ["lfs.csv"]


def dhs(folder: Path) -> list[str]:
    """Recode of household members in Stata, with labels; households are a cluster and a number."""
    import pyreadstat

    dice, _ = _homes(3)
    rows: Rows = []
    for cluster in range(1, 31):
        region, urban, weight = cluster % 4 + 1, dice.randint(1, 2), dice.randint(400_000, 1_900_000)
        for home in range(1, 9):
            size, fuel = dice.randint(1, 5), dice.randint(1, 3)
            rows += [
                {
                    "hv000": "XX7",
                    "hv001": cluster,
                    "hv002": home,
                    "hvidx": k,
                    "hv005": weight,
                    "hv009": size,
                    "hv024": region,
                    "hv025": urban,
                    "hv226": fuel,
                    "hv104": dice.randint(1, 2),
                    "hv105": dice.randint(0, 90),
                }
                for k in range(1, size + 1)
            ]
    labels: dict[str, dict[float, str]] = {
        "hv025": {1: "urban", 2: "rural"},
        "hv104": {1: "male", 2: "female"},
        "hv226": {1: "gas", 2: "wood", 3: "dung"},
    }
    frame = pl.DataFrame(rows).to_pandas()
    pyreadstat.write_dta(frame, str(folder / "XXPR71FL.dta"), variable_value_labels=labels)
    return ["XXPR71FL.dta"]


def lsms(folder: Path) -> list[str]:
    """Households and their roster, by region, district and enumeration area."""
    dice, _ = _homes(4)
    homes, roster = [], []
    for area in range(36):
        weight = round(200 + 900 * dice.random(), 4)
        for number in range(7):
            size, home = dice.randint(1, 5), f"{area:03}-{number:02}"
            homes.append(
                {
                    "hhid": home,
                    "region": area % 3 + 1,
                    "district": area % 9 + 10,
                    "ea_id": 500 + area,
                    "rural": dice.randint(0, 1),
                    "hh_wgt": weight,
                    "hhsize": size,
                    "roof": dice.randint(1, 5),
                    "consumption": round(dice.lognormvariate(7, 1), 2),
                }
            )
            roster += [
                {
                    "hhid": home,
                    "indiv": k,
                    "sex": dice.randint(1, 2),
                    "age": dice.randint(0, 90),
                    "relation": min(k, 4),
                }
                for k in range(1, size + 1)
            ]
    pl.DataFrame(homes).write_csv(folder / "hh_cover.csv")
    pl.DataFrame(roster).write_csv(folder / "individual_roster.csv")
    return ["hh_cover.csv", "individual_roster.csv"]


def ipums(folder: Path) -> list[str]:
    """A rectangular extract of the CPS: persons with the columns of their household; counties start again in each state."""
    dice, numbers = _homes(5)
    rows: Rows = []
    for number in numbers:
        size, state = dice.randint(1, 4), number % 5 + 1
        home = {
            "YEAR": 2023,
            "SERIAL": number + 1,
            "MONTH": 3,
            "HWTFINL": round(900 + 800 * dice.random(), 4),
            "ASECWTH": round(900 + 800 * dice.random(), 4),
            "STATEFIP": state,
            "COUNTY": dice.randint(1, 4),
            "OWNERSHP": dice.choice([10, 22]),
        }
        rows += [
            home
            | {
                "PERNUM": k,
                "ASECWT": round(900 + 800 * dice.random(), 4),
                "AGE": dice.randint(0, 85),
                "SEX": dice.randint(1, 2),
                "RACE": dice.choice([100, 200, 651]),
                "INCTOT": dice.randint(0, 99_999),
            }
            for k in range(1, size + 1)
        ]
    pl.DataFrame(rows).write_csv(folder / "cps_00001.csv")
    return ["cps_00001.csv"]


def eph(folder: Path) -> list[str]:
    """Households and persons of the Argentine survey: CODUSU and NRO_HOGAR name a household together; ages end in .0."""
    dice, numbers = _homes(6)
    homes, persons = [], []
    for dwelling in numbers:
        region, town = 40 + dwelling % 4, 10 * (dwelling % 4) + dwelling // 4 % 3
        for number in range(1, dice.choice([1, 1, 1, 2]) + 1):
            size, weight = dice.randint(1, 4), dice.randint(100, 900)
            key = {
                "CODUSU": f"TQRM{dwelling:05}XX",
                "ANO4": 2023,
                "TRIMESTRE": 3,
                "NRO_HOGAR": number,
                "REGION": region,
                "AGLOMERADO": town,
                "PONDERA": weight,
            }
            homes.append(key | {"IX_TOT": size, "II7": dice.randint(1, 9), "ITF": dice.randint(1, 400) * 500})
            persons += [
                key
                | {
                    "COMPONENTE": k,
                    "CH04": dice.randint(1, 2),
                    "CH06": f"{dice.randint(0, 90)}.0",
                    "ESTADO": dice.randint(0, 4),
                }
                for k in range(1, size + 1)
            ]
    pl.DataFrame(homes).write_csv(folder / "usu_hogar_T323.txt", separator=";")
    pl.DataFrame(persons).write_csv(folder / "usu_individual_T323.txt", separator=";")
    return ["usu_hogar_T323.txt", "usu_individual_T323.txt"]


def enigh(folder: Path) -> list[str]:
    """Mexican households and persons in a database: folioviv and foliohog, codes with leading zeros."""
    import duckdb

    dice, numbers = _homes(7)
    homes, persons = [], []
    for dwelling in numbers:
        place, weight = f"{dwelling % 8 + 1:02}{dwelling % 3 + 1:03}", dice.randint(50, 700)
        for number in range(1, dice.choice([1, 1, 2]) + 1):
            size = dice.randint(1, 5)
            key = {"folioviv": f"{dwelling:010}", "foliohog": str(number)}
            homes.append(
                key
                | {
                    "ubica_geo": place,
                    "tam_loc": dice.randint(1, 4),
                    "factor": weight,
                    "tot_integ": size,
                    "clase_hog": dice.randint(1, 5),
                    "ing_cor": round(dice.lognormvariate(10, 1), 2),
                }
            )
            persons += [
                key
                | {
                    "numren": f"{k:02}",
                    "sexo": dice.randint(1, 2),
                    "edad": dice.randint(0, 90),
                    "hablaind": dice.randint(1, 2),
                }
                for k in range(1, size + 1)
            ]
    with duckdb.connect(str(folder / "enigh.duckdb")) as base:
        for name, rows in (("hogares", homes), ("poblacion", persons)):
            table = pl.DataFrame(rows).to_arrow()
            base.register("rows", table)
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
            base.unregister("rows")
    return ["enigh.duckdb", "--table", "hogares", "--table", "poblacion"]


def ses(folder: Path) -> list[str]:
    """Employees of enterprises: no households; the number of the enterprise lies in one location."""
    dice, _ = _homes(8)
    rows: Rows = []
    for unit in range(120):
        place, size, weight = (
            f"XX{unit % 3 + 1}",
            dice.choice(["E10_49", "E50_249", "E250"]),
            round(1 + 9 * dice.random(), 3),
        )
        rows += [
            {
                "country": "XX",
                "location": place,
                "size": size,
                "economicActivity": dice.choice("BCDFG"),
                "IDunit": 4_000 + unit,
                "sex": dice.choice(["male", "female"]),
                "age": dice.choice(["(15,29]", "(29,39]", "(39,49]", "(49,120]"]),
                "education": dice.randint(1, 6),
                "earningsMonth": round(dice.lognormvariate(8, 0.6), 2),
                "weights": weight,
            }
            for _ in range(dice.randint(4, 9))
        ]
    pl.DataFrame(rows).write_csv(folder / "ses.csv")
    return ["ses.csv"]


def flat_persons(folder: Path) -> list[str]:
    """One person a row without any area: names, a telephone number in a note, truth values."""
    dice, numbers = _homes(9, 400)
    rows = [
        {
            "id": number + 1,
            "surname": f"Name{dice.randint(1, 260)}",
            "sex": dice.choice(["f", "m"]),
            "age": dice.randint(0, 95),
            "married": dice.random() < 0.5,
            "income": dice.randint(0, 90_000),
            "note": f"call 555 01{number:02}" if number % 5 == 0 else "",
        }
        for number in numbers
    ]
    pl.DataFrame(rows).write_parquet(folder / "people.parquet")
    return ["people.parquet"]


def workbook(folder: Path) -> list[str]:
    """Households and persons on two sheets of a workbook, below a title, beside a sheet with notes."""
    dice, numbers = _homes(10)
    homes: Rows = []
    persons: Rows = []
    for number in numbers:
        size, region = dice.randint(1, 4), number % 4 + 1
        homes.append(
            {
                "household_id": number + 1,
                "region": f"{region:02}",
                "district": f"{region:02}{number // 4 % 3 + 1}",
                "hhsize": size,
                "tenure": dice.choice(["own", "rent"]),
                "weight": 10 + number % 7 / 2,
            }
        )
        persons += [
            {
                "household_id": number + 1,
                "person_no": k,
                "sex": dice.choice(["f", "m"]),
                "age": dice.randint(0, 90),
            }
            for k in range(1, size + 1)
        ]
    with xlsxwriter.Workbook(folder / "survey.xlsx") as book:
        book.add_worksheet("Readme").write(0, 0, "Invented records")
        for name, rows in (("Households", homes), ("Persons", persons)):
            sheet = book.add_worksheet(name)
            sheet.write(0, 0, "Survey of households")
            sheet.write_row(2, 0, list(rows[0]))
            for place, row in enumerate(rows, start=3):
                sheet.write_row(place, 0, list(row.values()))
    return ["survey.xlsx", "--sheet", "Households", "--sheet", "Persons"]


LAYOUTS: Mapping[str, Layout] = {
    "EU-SILC": Layout(
        write=eu_silc,
        spine=("DB040",),
        weight="DB090",
        key="DB030",
        never=frozenset(["DB090", "RB050"]),
        banded=frozenset(["RX020"]),
        constant=frozenset(["DB010", "DB020", "RB010", "RB020"]),
    ),
    "EU-LFS": Layout(
        write=eu_lfs,
        spine=("REGION",),
        key="HHNUM",
        never=frozenset(["COEFFQ", "HHSEQNUM"]),
        banded=frozenset(["AGE"]),
        constant=frozenset(["COUNTRY", "YEAR", "QUARTER"]),
    ),
    "DHS": Layout(
        write=dhs,
        spine=("hv024", "hv001"),
        weight="hv005",
        key=("hv001", "hv002"),
        never=frozenset(["hv002", "hvidx", "hv005"]),
        banded=frozenset(["hv105"]),
        constant=frozenset(["hv000"]),
    ),
    "LSMS": Layout(
        write=lsms,
        spine=("region", "district", "ea_id"),
        weight="hh_wgt",
        key="hhid",
        never=frozenset(["indiv", "hh_wgt"]),
        banded=frozenset(["consumption", "age"]),
    ),
    "IPUMS": Layout(
        write=ipums,
        spine=("STATEFIP",),
        weight="ASECWTH",
        key="SERIAL",
        never=frozenset(["PERNUM", "HWTFINL", "ASECWTH", "ASECWT", "COUNTY"]),
        banded=frozenset(["AGE", "INCTOT"]),
        constant=frozenset(["YEAR", "MONTH"]),
    ),
    "EPH": Layout(
        write=eph,
        spine=("REGION", "AGLOMERADO"),
        weight="PONDERA",
        key=("CODUSU", "NRO_HOGAR"),
        never=frozenset(["CODUSU", "NRO_HOGAR", "COMPONENTE", "PONDERA"]),
        banded=frozenset(["ITF", "CH06"]),
        constant=frozenset(["ANO4", "TRIMESTRE"]),
    ),
    "ENIGH": Layout(
        write=enigh,
        spine=("ubica_geo",),
        weight="factor",
        key=("folioviv", "foliohog"),
        never=frozenset(["folioviv", "foliohog", "numren", "factor"]),
        banded=frozenset(["ing_cor", "edad"]),
    ),
    "SES": Layout(
        write=ses,
        spine=("location",),
        weight="weights",
        never=frozenset(["IDunit", "weights"]),
        banded=frozenset(["earningsMonth"]),
        constant=frozenset(["country"]),
    ),
    "flat persons": Layout(
        write=flat_persons,
        spine=(),
        key="id",
        never=frozenset(["id", "surname", "note"]),
        banded=frozenset(["age", "income"]),
    ),
    "workbook": Layout(
        write=workbook,
        spine=("region", "district"),
        weight="weight",
        key="household_id",
        never=frozenset(["person_no", "weight"]),
        banded=frozenset(["age"]),
    ),
}
