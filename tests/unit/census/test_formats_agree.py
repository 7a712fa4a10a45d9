"""One census in many formats: the same values, the same draw, the same packet."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from stirred.census import Census, read
from stirred.chance import Key
from stirred.mechanisms.swap import PermutationSwapping
from stirred.publish import save

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
            "age": rng.integers(0, 15, links.size) * 6,
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
    "DuckDB in memory": in_memory(lambda frame: duckdb.sql("SELECT * FROM frame")),
    "narrow integers": in_memory(lambda frame: frame.with_columns(pl.selectors.integer().cast(pl.Int32))),
    "rows": in_memory(lambda frame: frame.to_dicts()),
}


def told(census: Census, out: Path) -> dict[str, str]:
    """What the packet of a census says: records and tables with their types, and the digest of the census itself."""
    psa = PermutationSwapping(
        match=["region", "size"],
        swap=["ea"],
        rate="1/4",
        tables=[["ea", "roof"], ["region", "size", "rooms"]],
    )
    release = psa.release(census, key=Key.for_tests(9))
    return {"census": release.input_digest, **save(release, out).contents()}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("polars")
    return told(FORMATS["polars"](folder), folder / "packet")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "polars"])
def test_every_format_gives_the_same_packet(name: str, wanted: dict[str, str], tmp_path: Path) -> None:
    assert told(FORMATS[name](tmp_path), tmp_path / "packet") == wanted
    assert {"data/household", "data/person", "tables/ea-roof"} <= wanted.keys()


def test_the_width_of_whole_numbers_comes_from_the_schema(tmp_path: Path) -> None:
    variables = {"size": "1..4", "roof": ["tin", "grass", "tiles"], "rent": "number"}
    document = {
        "geography": {"spine": ["region", "ea"]},
        "record": {"household": {"id": "hid", "size": "size", "variables": variables}},
    }
    kinds = set()
    for number, width in enumerate((pl.Int8, pl.UInt16, pl.Int32, pl.Int64, pl.Float64)):
        frame = homes().with_columns(pl.col("size", "ea").cast(width))
        census = Census.of(document, {"household": frame})
        psa = PermutationSwapping(match=["region", "size"], swap=["ea"], rate="1/4")
        packet = save(psa.release(census, key=Key.for_tests(9)), tmp_path / str(number))
        schema = pq.read_schema(packet.public / "data" / "household.parquet")
        kinds.add((tuple(map(str, schema.types)), packet.contents()["data/household"]))
        assert (schema.field("size").type, schema.field("ea").type) == (pa.int8(), pa.int64())
    assert len(kinds) == 1


def test_a_level_that_the_type_cannot_hold_is_no_record() -> None:
    document = {"record": {"household": {"variables": {"size": "1..7"}}}}
    census = Census.of(document, {"household": {"size": [1, 2, 1]}})
    assert census.counts("household", ["size"], {"size": ["1", "200"]}).to_pydict() == {
        "size": [1],
        "count": [2],
    }
