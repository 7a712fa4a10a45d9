"""The census object: counts, tables and batches, from memory and from files."""

import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.census import Census, expand, read
from stirred.census.geography import read_ancestors
from stirred.census.records import count_used_again
from stirred.census.toml import parse_schema
from stirred.errors import DataError, InputError, SchemaError

HOUSEHOLDS = {
    "h": [1, 2, 3, 4],
    "state": ["a", "a", "b", "b"],
    "county": ["a1", "a2", "b1", "b1"],
    "size": [2, 1, 3, 0],
}
PERSONS = {"h": [1, 1, 2, 3, 3, 3], "sex": ["m", "f", "f", "m", "m", "f"]}
SCHEMA = {
    "geography": {"spine": ["state", "county"]},
    "record": {"household": {"id": "h", "size": "size"}, "person": {"household": "h"}},
}


def toy() -> Census:
    return Census.of(SCHEMA, {"household": HOUSEHOLDS, "person": PERSONS})


def test_counts_are_sorted_and_only_non_zero() -> None:
    assert toy().counts("household", ["county", "size"]).to_pydict() == {
        "county": ["a1", "a2", "b1", "b1"],
        "size": [2, 1, 0, 3],
        "count": [1, 1, 1, 1],
    }


def test_the_total_is_one_row_even_of_an_empty_census() -> None:
    assert toy().counts("person", []).to_pydict() == {"count": [6]}
    empty = Census.of({}, {"household": {"size": pl.Series([], dtype=pl.Int64)}})
    assert empty.counts("household", []).to_pydict() == {"count": [0]}
    assert empty.counts("household", ["size"]).num_rows == 0


def test_persons_take_what_they_lack_from_their_household() -> None:
    counts = toy().counts("person", ["state", "sex"])
    assert counts.to_pydict() == {
        "state": ["a", "a", "b", "b"],
        "sex": ["f", "m", "f", "m"],
        "count": [2, 1, 1, 2],
    }
    assert toy().table("person", ["county"])["county"].to_pylist() == ["a1", "a1", "a2", "b1", "b1", "b1"]


def test_a_join_in_parts_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 500
    households = {
        "h": list(range(rows)),
        "state": [str(i % 3) for i in range(rows)],
        "county": [str(i % 7) for i in range(rows)],
    }
    persons = {"h": [i % rows for i in range(3 * rows)], "sex": ["mf"[i % 2] for i in range(3 * rows)]}
    census = Census.of(
        {
            "geography": {"spine": ["state"]},
            "record": {"household": {"id": "h"}, "person": {"household": "h"}},
        },
        {"household": households, "person": {**persons, "h": [str(h) for h in persons["h"]]}},
    )
    asked = [(["state", "sex"], None), (["county"], {"state": ["1"]}), ([], {"county": ["2", "3"]})]
    whole = [census.counts("person", by, where) for by, where in asked]
    monkeypatch.setattr("stirred.census.records.MAX_HOUSEHOLDS_JOINED", 60)
    for (by, where), expected in zip(asked, whole, strict=True):
        assert census.counts("person", by, where).equals(expected)


def test_where_takes_text_for_integers_and_columns_of_the_household() -> None:
    assert toy().counts("household", [], {"size": ["2", "3"]}).to_pydict() == {"count": [2]}
    assert toy().counts("person", ["sex"], {"state": ["b"]}).to_pydict() == {
        "sex": ["f", "m"],
        "count": [1, 2],
    }
    with pytest.raises(InputError, match="size holds integers"):
        toy().counts("household", [], {"size": ["two"]})


def test_unknown_names_come_with_a_guess() -> None:
    with pytest.raises(InputError, match="did you mean county"):
        toy().counts("household", ["conty"])
    with pytest.raises(SchemaError, match="did you mean household"):
        toy().count("houshold")
    with pytest.raises(InputError, match="named twice"):
        toy().counts("household", ["size", "size"])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40), st.randoms())
def test_counts_do_not_depend_on_the_order_of_records(
    rows: list[tuple[int, int]], chance: random.Random
) -> None:
    shuffled = rows.copy()
    chance.shuffle(shuffled)
    tables = []
    for records in (rows, shuffled):
        frame = pl.DataFrame(records, schema=["x", "y"], orient="row")
        tables.append(Census.of({}, {"household": frame}).counts("household", ["x", "y"]))
    assert tables[0].equals(tables[1])
    expected = sorted({row: rows.count(row) for row in rows}.items())
    assert list(zip(*tables[0].to_pydict().values(), strict=True)) == [(*row, n) for row, n in expected]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_batches_hold_at_most_so_many_rows_and_keep_the_order(rows: int) -> None:
    batches = list(toy().batches("person", ["sex", "county"], rows=rows))
    assert all(0 < batch.num_rows <= rows for batch in batches)
    assert pa.Table.from_batches(batches).equals(toy().table("person", ["sex", "county"]))


MAKERS: dict[str, Callable[[], object]] = {
    "polars": lambda: pl.DataFrame(PERSONS),
    "lazy": lambda: pl.LazyFrame(PERSONS),
    "pandas": lambda: pd.DataFrame(PERSONS),
    "arrow": lambda: pa.table(PERSONS),
    "batch": lambda: pa.RecordBatch.from_pydict(PERSONS),
    "dict": lambda: PERSONS,
    "duckdb": lambda: duckdb.from_arrow(pa.table(PERSONS)),
}


@pytest.mark.parametrize("library", MAKERS)
def test_tables_come_from_any_library(library: str) -> None:
    census = Census.of(SCHEMA, {"household": HOUSEHOLDS, "person": MAKERS[library]()})
    assert census.counts("person", ["state"]).to_pydict() == {"state": ["a", "b"], "count": [3, 3]}


def test_something_that_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="cannot read a table from int"):
        Census.of({}, {"household": 3})
    with pytest.raises(InputError, match="no record type houshold"):
        Census.of(parse_schema({"record": {"household": {}}}), {"houshold": {}})


def test_categories_in_any_encoding_are_counted_as_text() -> None:
    series = pl.Series(["x", "y", "x"])
    plain = Census.of({}, {"household": pl.DataFrame({"k": series})})
    coded = Census.of({}, {"household": pl.DataFrame({"k": series.cast(pl.Categorical)})})
    listed = Census.of({}, {"household": pl.DataFrame({"k": series.cast(pl.Enum(["y", "x"]))})})
    for census in (coded, listed):
        assert census.counts("household", ["k"]).equals(plain.counts("household", ["k"]))


def test_missing_values_by_policy() -> None:
    variables = {
        "a": {"levels": ["1", "2"], "missing": {"policy": "level", "codes": ["9"], "empty_as": "9"}},
        "b": {"type": "integer", "missing": {"policy": "keep", "codes": [99]}},
    }
    census = Census.of(
        {"record": {"household": {"variables": variables}}},
        {"household": {"a": ["1", "", "9"], "b": [5, 99, None]}},
    )
    assert census.table("household").to_pydict() == {"a": ["1", "9", "9"], "b": [5, None, None]}
    assert census.domain.levels("household", "a") == ("1", "2", "9")


def test_codes_are_cut_and_joined() -> None:
    schema = {
        "geography": {
            "spine": ["state", "county", "group"],
            "level": {
                "state": {"column": "ST"},
                "county": {"columns": ["ST", "CO"]},
                "group": {"columns": ["ST", "CO", "BLOCK"], "first": 6},
            },
        }
    }
    census = Census.of(schema, {"household": {"ST": ["01"], "CO": ["003"], "BLOCK": ["7001"]}})
    row = census.table("household", ["state", "county", "group"]).to_pydict()
    assert row == {"state": ["01"], "county": ["01003"], "group": ["010037"]}


def test_a_record_type_may_be_part_of_a_file() -> None:
    table = {"kind": ["occupied", "gq", "vacant", "gq"], "n": [1, 2, 3, 4]}
    schema = {
        "record": {
            "home": {"where": {"kind": ["occupied", "vacant"]}},
            "facility": {"where": {"kind": ["gq"]}},
        }
    }
    census = Census.of(schema, {"home": table, "facility": table})
    assert (census.count("home"), census.count("facility")) == (2, 2)


def test_weights_are_summed_and_never_counted() -> None:
    schema = {"record": {"household": {"weight": "w", "variables": {"x": ["a", "b"]}}}}
    census = Census.of(schema, {"household": {"x": ["a", "b", "a"], "w": [10, 20, 30]}})
    assert census.sum_weights("household", ["x"]).to_pydict() == {"x": ["a", "b"], "weight": [40, 20]}
    assert census.counts("household", ["x"])["count"].to_pylist() == [2, 1]
    with pytest.raises(InputError, match="no weight"):
        toy().sum_weights("household", [])


def test_levels_above_and_beside_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "areas.csv").write_text("code,parent\nN,\nN1,N\nN2,N\nL1,N1\nL2,N1\nL3,N2\n")
    (tmp_path / "district.csv").write_text("lau,district\nL1,east\nL2,west\nL3,west\n")
    pl.DataFrame({"h": [1, 2, 3], "lau": ["L3", "L1", "L2"]}).write_parquet(tmp_path / "h.parquet")
    pl.DataFrame({"h": [1, 1, 3]}).write_parquet(tmp_path / "p.parquet")
    (tmp_path / "census.toml").write_text(
        """
        [geography]
        spine = ["nation", "region", "lau"]
        areas = {files = ["areas.csv"]}
        off_spine.district = {of = "lau", files = ["district.csv"], key = "lau"}
        [record.household]
        files = ["h.parquet"]
        id = "h"
        [record.person]
        files = ["p.parquet"]
        household = "h"
        """
    )
    census = read(tmp_path)
    assert census.counts("household", ["nation", "region"]).to_pydict() == {
        "nation": ["N", "N"],
        "region": ["N1", "N2"],
        "count": [2, 1],
    }
    assert census.counts("household", ["district"]).to_pydict() == {
        "district": ["east", "west"],
        "count": [1, 2],
    }
    assert census.counts("person", ["region", "district"]).to_pydict() == {
        "region": ["N1", "N2"],
        "district": ["west", "west"],
        "count": [1, 2],
    }


def test_every_chain_of_areas_is_followed(tmp_path: Path) -> None:
    # children before their parents, a code listed twice, parents that are not listed, an area without a code, a cycle
    lines = ["L1,D1", "D1,R1", "R1,", "L1,D2", "D2,R1", "L2,D2", "L3,D9", ",D1", "L4,L5", "L5,L4", "L6,D2"]
    (tmp_path / "areas.csv").write_text("code,parent\n" + "\n".join(lines) + "\n")
    pl.DataFrame({"lau": ["L1"]}).write_parquet(tmp_path / "h.parquet")
    (tmp_path / "census.toml").write_text(
        'geography.spine = ["region", "district", "lau"]\ngeography.areas = {files = ["areas.csv"]}\n'
        'record.household.files = ["h.parquet"]\n'
    )
    parents: dict[str, str] = {}
    for line in lines:
        code, parent = line.split(",")
        parents.setdefault(code, parent)
    by_hand = []
    for code in filter(None, parents):
        district = parents[code]
        if region := district and parents.get(district, ""):
            by_hand.append((code, district, region))
    census = read(tmp_path)
    found = read_ancestors(census.schema, census.folder)
    assert found.select("lau", "district", "region").collect().rows() == by_hand
    assert found.select("region").filter(pl.col("region") == "R1").collect(engine="streaming").height == 3
    assert found.collect_schema().names() == found.collect().columns


def test_no_frame_is_given_to_two_callers(tmp_path: Path) -> None:
    # threads that share a frame of polars can wait for each other for ever
    pl.DataFrame({"h": [1, 2], "county": ["a", "b"]}).write_parquet(tmp_path / "h.parquet")
    text = 'geography.spine = ["county"]\nrecord.household = {files = ["h.parquet"], id = "h"}\n'
    (tmp_path / "census.toml").write_text(text)
    given = Census.of({"geography": {"spine": ["county"]}}, {"household": {"county": ["a", "b"]}})
    for census in (read(tmp_path), given):
        kept = [*census.files.values()]
        for ask in (census.source, census.file, census.scan):
            kept += [ask("household"), ask("household")]
        kept += [*census._opened.values(), *census._scanned.values()]
        assert len({id(frame._ldf) for frame in kept}) == len(kept)


def test_a_partitioned_folder_keeps_its_codes_as_text(tmp_path: Path) -> None:
    for state in ("01", "44"):
        folder = tmp_path / "households" / f"state={state}"
        folder.mkdir(parents=True)
        pl.DataFrame({"size": [1, 2]}).write_parquet(folder / "part.parquet")
    (tmp_path / "census.toml").write_text(
        'geography.spine = ["state"]\nrecord.household.files = ["households"]\n'
    )
    census = read(tmp_path / "census.toml")
    assert census.counts("household", ["state"]).to_pydict() == {"state": ["01", "44"], "count": [2, 2]}


def test_files_and_globs_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, value in (("b", 2), ("a", 1), ("c", 3)):
        pl.DataFrame({"x": [value]}).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "census.toml").write_text('record.household.files = ["*.parquet"]\n')
    assert read(tmp_path).table("household")["x"].to_pylist() == [1, 2, 3]


def test_a_column_that_is_not_there_is_told_by_read(tmp_path: Path) -> None:
    pl.DataFrame({"sise": [1]}).write_parquet(tmp_path / "h.parquet")
    (tmp_path / "census.toml").write_text(
        'record.household.files = ["h.parquet"]\nrecord.household.variables.size = "1..7"\n'
    )
    with pytest.raises(SchemaError, match="did you mean sise"):
        read(tmp_path)


def test_expand_refuses_what_counts_nothing() -> None:
    table = {"b": ["x", "y"], "n": [1, -1], "t": ["1", "2"], "m": [None, 1]}
    for column, words in (
        ("n", "1 counts are empty or negative"),
        ("m", "1 counts are empty"),
        ("t", "does not hold integers"),
    ):
        with pytest.raises(DataError, match=words):
            expand(table, {column: {"k": 1}})
    with pytest.raises(InputError, match="the table has no column z"):
        expand(table, {"z": {"k": 1}})


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20))
def test_expand_and_count_give_the_table_back(cells: list[tuple[int, int]]) -> None:
    table = {
        "block": [f"{i:03}" for i in range(len(cells))],
        "hh1": [a for a, _ in cells],
        "hh2": [b for _, b in cells],
    }
    records = expand(table, {"hh1": {"size": 1}, "hh2": {"size": 2}}, keep=["block"], number="id")
    assert records["id"].to_pylist() == list(range(1, sum(map(sum, cells)) + 1))
    counts = Census.of({}, {"household": records}).counts("household", ["block", "size"]).to_pydict()
    found = {(b, s): n for b, s, n in zip(counts["block"], counts["size"], counts["count"], strict=True)}
    expected = {(f"{i:03}", k + 1): row[k] for i, row in enumerate(cells) for k in (0, 1) if row[k]}
    assert found == expected


def test_two_households_with_one_id_never_double_their_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"record": {"household": {"id": "h"}, "person": {"household": "h"}}}
    homes = {"h": [7_001, 7_001, 8], "county": ["a", "b", "c"]}
    census = Census.of(schema, {"household": homes, "person": {"h": [7_001, 7_001, 8]}})
    for asked in (
        lambda: census.counts("person", ["county"]),
        lambda: census.counts("person", [], {"county": ["a"]}),
        lambda: census.table("person", ["county"]),
        lambda: list(census.batches("person", ["county"])),
    ):
        with pytest.raises(DataError, match=r"household.h: 1 identifiers") as caught:
            asked()
        assert "7001" not in repr(caught.value)
    assert census.counts("person", [])["count"].to_pylist() == [3]  # no join, nothing doubled
    monkeypatch.setattr("stirred.census.records.MAX_HOUSEHOLDS_JOINED", 1)  # also when joined in parts
    with pytest.raises(DataError, match="identifiers"):
        census.counts("person", ["county"])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"tenure": [3.5, "SECRET"]}),
        {"tenure": [3, "SECRET"]},
        {"tenure": ["SECRET"], "size": [1, 2]},
    ],
    ids=["pandas", "dictionary", "lengths"],
)
def test_columns_that_cannot_be_read_are_not_shown(frame: object) -> None:
    with pytest.raises(DataError, match="cannot read the columns") as caught:
        Census.of({}, {"household": frame})
    assert "SECRET" not in repr(caught.value)


@pytest.mark.parametrize("home", [pl.Int64, pl.UInt64, pl.Float64, pl.String, pl.Int32])
@pytest.mark.parametrize("link", [pl.Int64, pl.UInt64, pl.Float64, pl.String, pl.Int32])
def test_a_join_in_parts_meets_one_identifier_in_two_types(
    home: type[pl.DataType], link: type[pl.DataType], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(50)
    census = Census.of(
        {"record": {"household": {"id": "h"}, "person": {"household": "h"}}},
        {
            "household": pl.DataFrame(
                {"h": pl.Series(numbers).cast(pl.Int64), "county": ["a"] * 50}
            ).with_columns(pl.col("h").cast(home)),
            "person": pl.DataFrame({"h": pl.Series(numbers).cast(pl.Int64).cast(link)}),
        },
    )
    monkeypatch.setattr("stirred.census.records.MAX_HOUSEHOLDS_JOINED", 7)
    assert census.counts("person", ["county"]).to_pydict() == {"county": ["a"], "count": [50]}


def test_identifiers_beyond_63_bits_are_joined_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = pl.Series("h", [2**64 - 1, 2**64 - 2, 5], dtype=pl.UInt64)
    homes = ids.to_frame().with_columns(county=pl.lit("a"))
    census = Census.of(
        {"record": {"household": {"id": "h"}, "person": {"household": "h"}}},
        {"household": homes, "person": ids.to_frame()},
    )
    monkeypatch.setattr("stirred.census.records.MAX_HOUSEHOLDS_JOINED", 1)
    assert census.counts("person", ["county"])["count"].to_pylist() == [3]


@given(st.lists(st.none() | st.integers(0, 12), max_size=30), st.sampled_from([1, 2, 1000]), st.booleans())
def test_identifiers_used_again_are_counted_in_any_order(
    ids: list[int | None], batch: int, text: bool
) -> None:
    named = [i for i in ids if i is not None]
    column = pl.Series("id", ids, dtype=pl.Int64).cast(pl.String if text else pl.Int64)
    with pytest.MonkeyPatch.context() as patch, pl.Config() as config:
        config.set_streaming_chunk_size(batch)
        patch.setattr("stirred.census.records.IDS_PER_PART", 5)
        assert count_used_again(column.to_frame().lazy(), len(ids)) == len(named) - len(set(named))
