"""One census in many formats: the same values, the same draw, the same release."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

from stirred.census import Census, read
from stirred.chance import Key
from stirred.frames import frame_of
from stirred.mechanisms.swapping import PermutationSwapping

ROWS = 120
HEAD = '[geography]\nspine = ["region", "ea"]\n'


def homes() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    ea = np.sort(rng.integers(10, 22, ROWS))
    return pl.DataFrame(
        {
            "hid": np.arange(1, ROWS + 1) * 7,
            "region": ea // 6,
            "ea": ea,
            "size": rng.integers(1, 5, ROWS),
            "roof": rng.choice(["tin", "grass", "tiles"], ROWS),
            "rent": np.round(rng.choice([10.5, 20.25, 7.0], ROWS), 2),
            "rooms": [None if i % 11 == 0 else int(i % 5) for i in range(ROWS)],
        }
    )


def persons() -> pl.DataFrame:
    frame = homes()
    rng = np.random.default_rng(6)
    links = np.repeat(frame["hid"].to_numpy(), frame["size"].to_numpy())
    return pl.DataFrame(
        {
            "hid": links,
            "sex": rng.choice(["f", "m"], links.size),
            "age": rng.integers(0, 90, links.size),
            "job": [None if i % 7 == 0 else f"j{i % 4}" for i in range(links.size)],
        }
    )


def toml(folder: Path, endings: str, more: str = "") -> Census:
    records = "".join(
        f'[record.{name}]\nfiles = ["{name}{endings}"]\n{link}\n{more.replace("NAME", name)}'
        for name, link in (("household", 'id = "hid"\nsize = "size"'), ("person", 'household = "hid"'))
    )
    (folder / "census.toml").write_text(HEAD + records)
    return read(folder)


def as_csv(folder: Path, separator: str = ",") -> Census:
    homes().write_csv(folder / "household.csv", separator=separator)
    persons().write_csv(folder / "person.csv", separator=separator)
    return toml(folder, ".csv")


def as_parquet(folder: Path) -> Census:
    homes().write_parquet(folder / "household.parquet")
    persons().cast({"age": pl.Int8}).write_parquet(folder / "person.parquet")
    return toml(folder, ".parquet")


def as_dictionaries(folder: Path) -> Census:
    homes().cast({"roof": pl.Categorical}).write_parquet(folder / "household.parquet")
    persons().cast({"sex": pl.Enum(["f", "m"]), "job": pl.Categorical}).write_parquet(
        folder / "person.parquet"
    )
    return toml(folder, ".parquet")


def as_arrow(folder: Path) -> Census:
    homes().write_ipc(folder / "household.arrow")
    persons().write_ipc(folder / "person.arrow")
    return toml(folder, ".arrow")


def as_duckdb(folder: Path) -> Census:
    with duckdb.connect(str(folder / "census.duckdb")) as connection:
        for name, frame in (("household", homes().to_arrow()), ("person", persons().to_arrow())):
            connection.register("there", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM there")
            connection.unregister("there")
    (folder / "household.duckdb").symlink_to(folder / "census.duckdb")
    (folder / "person.duckdb").symlink_to(folder / "census.duckdb")
    return toml(folder, ".duckdb", 'table = "NAME"\n')


def as_spss(folder: Path) -> Census:
    pyreadstat.write_sav(homes().to_pandas(), str(folder / "household.sav"))
    pyreadstat.write_sav(persons().to_pandas(), str(folder / "person.sav"))
    return toml(folder, ".sav")


def as_stata(folder: Path) -> Census:
    pyreadstat.write_dta(homes().to_pandas(), str(folder / "household.dta"))
    pyreadstat.write_dta(persons().to_pandas(), str(folder / "person.dta"))
    return toml(folder, ".dta")


def in_memory(turned: Callable[[pl.DataFrame], object]) -> Callable[[Path], Census]:
    schema = {
        "geography": {"spine": ["region", "ea"]},
        "record": {"household": {"id": "hid", "size": "size"}, "person": {"household": "hid"}},
    }
    return lambda _: Census.of(schema, {"household": turned(homes()), "person": turned(persons())})


def as_factors(frame: pl.DataFrame) -> pd.DataFrame:
    made = frame.to_pandas()
    return made.astype({name: "category" for name in ("roof", "sex", "job") if name in made})


FORMATS: dict[str, Callable[[Path], Census]] = {
    "CSV": as_csv,
    "CSV with semicolons": lambda folder: as_csv(folder, ";"),
    "Parquet": as_parquet,
    "Parquet with dictionaries": as_dictionaries,
    "Arrow": as_arrow,
    "DuckDB": as_duckdb,
    "SPSS": as_spss,
    "Stata": as_stata,
    "polars": in_memory(lambda frame: frame),
    "pandas": in_memory(lambda frame: frame.to_pandas()),
    "pandas with categories": in_memory(as_factors),
    "pyarrow": in_memory(lambda frame: frame.to_arrow()),
}


def released(census: Census) -> dict[str, pl.DataFrame]:
    psa = PermutationSwapping(match=["region", "size"], swap=["ea"], rate="1/4")
    release = psa.release(census, key=Key.for_tests(9))
    found = {"digest": pl.DataFrame({"input": [release.input_digest]})}
    for name, data in release.microdata.items():
        table = data if isinstance(data, pa.Table) else data.to_table()
        frame = frame_of(table)
        text = pl.selectors.by_dtype(pl.Categorical, pl.Enum)
        found[name] = frame.with_columns(text.cast(pl.String), pl.selectors.integer().cast(pl.Int64))
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_release(name: str, tmp_path: Path) -> None:
    wanted, found = released(FORMATS["polars"](tmp_path)), released(FORMATS[name](tmp_path))
    assert wanted.keys() == found.keys()
    for part, frame in wanted.items():
        assert found[part].equals(frame), part
