"""Every loader, every data type, with empty values and without, in households and persons: one release, one packet."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
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

ROWS = 240
SCHEMA = {
    "geography": {"spine": ["oblast", "opstina"]},
    "record": {"household": {"id": "dom", "size": "clanova"}, "person": {"household": "dom"}},
}
# one column of each type, as polars has it; a letter more ("_gaps") for the same with empty values
TYPES: dict[str, pl.Series] = {
    "text": pl.Series(["crep", "lim", "žito"]),
    "digits": pl.Series(["007", "010", "7"]),
    "category": pl.Series(["a", "b", "c"], dtype=pl.Categorical),
    "levels": pl.Series(["low", "high", "low"], dtype=pl.Enum(["low", "high"])),
    "whole": pl.Series([1, -2, 300_000], dtype=pl.Int64),
    "narrow": pl.Series([1, 2, 120], dtype=pl.Int8),
    "unsigned": pl.Series([1, 2, 200], dtype=pl.UInt8),
    "decimal": pl.Series([Decimal("1.50"), Decimal("2.25"), Decimal("-3.00")], dtype=pl.Decimal(8, 2)),
    "real": pl.Series([0.1, -2.5, 1e6]),
    "single": pl.Series([0.1, 2.5, 3.0], dtype=pl.Float32),
    "truth": pl.Series([True, False, True]),
    "date": pl.Series([dt.date(2020, 4, 1), dt.date(1950, 1, 2), dt.date(2021, 12, 31)]),
    "moment": pl.Series(
        [dt.datetime(2020, 4, 1, 10, 30), dt.datetime(1950, 1, 2, 0, 0, 1), dt.datetime(2021, 1, 1)]
    ),
}


def columns(rows: int, seed: int) -> dict[str, pl.Series]:
    """Every type with empty values and without; which value a record has is drawn."""
    dice = np.random.default_rng(seed)
    found = {}
    for name, values in TYPES.items():
        for gaps in ("", "_gaps"):
            places = dice.integers(0, 4 if gaps else 3, rows)
            drawn = [None if place == 3 else int(place) for place in places]
            found[name + gaps] = values.gather(drawn).alias(name + gaps)
    return found


def homes() -> pl.DataFrame:
    dice = np.random.default_rng(3)
    place = dice.integers(0, 8, ROWS)
    own = {
        "dom": [f"D{i:04}" for i in range(ROWS)],
        "oblast": [f"o{code // 4}" for code in place],
        "opstina": [f"p{code}" for code in place],
        "clanova": dice.integers(1, 3, ROWS),
    }
    return pl.DataFrame({**own, **columns(ROWS, 4)})


def persons() -> pl.DataFrame:
    sizes = homes()["clanova"]
    links = homes()["dom"].gather(np.repeat(np.arange(ROWS), sizes.to_numpy()))
    made = {f"p_{name}": series for name, series in columns(len(links), 5).items()}
    return pl.DataFrame({"dom": links, **made})


def from_files(
    folder: Path, ending: str, write: Callable[[pl.DataFrame, Path, str], object], more: str = ""
) -> Census:
    for name, frame in (("household", homes()), ("person", persons())):
        write(frame, folder / f"{name}{ending}", name)
    records = "".join(
        f'[record.{name}]\nfiles = ["{name}{ending}"]\n{link}\n{more.replace("NAME", name)}'
        for name, link in (("household", 'id = "dom"\nsize = "clanova"'), ("person", 'household = "dom"'))
    )
    (folder / "census.toml").write_text('[geography]\nspine = ["oblast", "opstina"]\n' + records)
    return read(folder)


def in_memory(turned: Callable[[pl.DataFrame], object]) -> Callable[[Path], Census]:
    return lambda _: Census.of(SCHEMA, {"household": turned(homes()), "person": turned(persons())})


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Without what a format lacks: dictionaries, decimals, narrow numbers."""
    return frame.with_columns(
        pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String),
        pl.selectors.decimal().cast(pl.Float64),
    )


def decimals(frame: pl.DataFrame) -> list[pl.Expr]:
    """Numbers of 32 bits as the decimals that they show: Python, SPSS and Stata have numbers of 64 bits."""
    return [
        pl.col(name).cast(pl.String).cast(pl.Float64) for name in frame.select(pl.selectors.float()).columns
    ]


def numbers_alone(frame: pl.DataFrame) -> pd.DataFrame:
    """For SPSS and Stata, which know text, numbers and dates: truth values as the words of the other formats."""
    words = plain(frame).with_columns(pl.selectors.boolean().cast(pl.String), *decimals(plain(frame)))
    made = words.to_pandas(date_as_object=True)
    return made.astype({name: object for name in made.columns if made[name].dtype == "str"}).where(
        made.notna(), None
    )


def nullable(frame: pl.DataFrame) -> pd.DataFrame:
    """The nullable types of pandas: Int64, boolean, string, category."""
    return frame.to_arrow().to_pandas(types_mapper=NULLABLE.get)


NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.large_string(): pd.StringDtype(),
    pa.string(): pd.StringDtype(),
}


def dictionaries(frame: pl.DataFrame, path: Path, _: str) -> None:
    """As R writes factors: every text column is a dictionary."""
    table = plain(frame).to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_large_string(field.type) or pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode())
    pq.write_table(table, path)


def spss_labels(frame: pl.DataFrame, path: Path, name: str) -> None:
    """As haven writes factors: codes with value labels; the codes are what is read."""
    made = numbers_alone(frame)
    labels = {column: {1: "one", 2: "two"} for column in made if column.removeprefix("p_") == "narrow"}
    pyreadstat.write_sav(made, str(path), variable_value_labels=labels)


def database(frame: pl.DataFrame, path: Path, name: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("there", frame.to_arrow())
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM there")


def csv(frame: pl.DataFrame, path: Path, _: str) -> None:
    frame.write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S%.f")


LOADERS: dict[str, Callable[[Path], Census]] = {
    "CSV": lambda folder: from_files(folder, ".csv", csv),
    "TSV": lambda folder: from_files(
        folder, ".tsv", lambda f, p, _: f.write_csv(p, separator="\t", datetime_format="%Y-%m-%d %H:%M:%S%.f")
    ),
    "Parquet": lambda folder: from_files(folder, ".parquet", lambda f, p, _: f.write_parquet(p)),
    "Parquet of R": lambda folder: from_files(folder, ".parquet", dictionaries),
    "Arrow": lambda folder: from_files(folder, ".arrow", lambda f, p, _: f.write_ipc(p)),
    "DuckDB": lambda folder: from_files(folder, ".duckdb", database, 'table = "NAME"\n'),
    "SPSS": lambda folder: from_files(
        folder, ".sav", lambda f, p, _: pyreadstat.write_sav(numbers_alone(f), str(p))
    ),
    "SPSS of haven": lambda folder: from_files(folder, ".sav", spss_labels),
    "Stata": lambda folder: from_files(
        folder, ".dta", lambda f, p, _: pyreadstat.write_dta(numbers_alone(f), str(p))
    ),
    "pandas": in_memory(lambda frame: frame.to_pandas()),
    "pandas nullable": in_memory(nullable),
    "pyarrow": in_memory(lambda frame: frame.to_arrow()),
    "DuckDB relation": in_memory(lambda frame: duckdb.sql("SELECT * FROM frame")),
    "rows": in_memory(lambda frame: frame.with_columns(decimals(frame)).to_dicts()),
}


def told(census: Census, out: Path) -> tuple[dict[str, str], dict[str, object]]:
    psa = PermutationSwapping(match=["oblast", "clanova"], swap=["opstina"], rate="1/4")
    release = psa.release(census, key=Key.for_tests(9))
    kinds = {
        f"{record}.{field.name}": field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for record in release.microdata
        for field in release.to_arrow(record).schema
    }
    return {"census": release.input_digest, **save(release, out).contents()}, kinds


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, object]]:
    return told(in_memory(lambda frame: frame)(Path()), tmp_path_factory.mktemp("polars") / "packet")


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_gives_the_packet_of_the_polars_frame(
    name: str, wanted: tuple[dict[str, str], dict[str, object]], tmp_path: Path
) -> None:
    found, kinds = told(LOADERS[name](tmp_path), tmp_path / "packet")
    text = (pa.string(), pa.large_string())
    other = {key: (str(kinds[key]), str(kind)) for key, kind in wanted[1].items() if kinds[key] != kind}
    assert not {key: pair for key, pair in other.items() if not {*pair} <= {str(kind) for kind in text}}
    assert found == wanted[0]
