"""The microdata detail file: the Bureau's columns and codes, as its own file has them."""

from pathlib import Path

import polars as pl
import pytest

from shared_data import shared
from stirred import Workload
from stirred.census import Census, ppmf
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.run.records import make_facility_rows, make_rows, write_mdf

REAL = (
    Path(__file__).resolve().parents[3] / "shared" / "data" / "guernsey2010" / "ppmf_20210608_persons.parquet"
)
BLOCKS = ["390599771001000", "390599771001000", "390599771002005"]


def test_persons_of_pl(tmp_path: Path):
    records = pl.DataFrame({
        "block": BLOCKS, "GQTYPE_PL": [0, 3, 0], "VOTING_AGE": [1, 2, 2], "CENHISP": [1, 2, 1], "CENRACE": [1, 63, 7],
    })  # fmt: skip
    place = write_mdf(Workload.preset("pl94-persons"), records.to_arrow(), tmp_path)
    assert place.read_text().splitlines() == [
        "SCHEMA_TYPE_CODE|SCHEMA_BUILD_ID|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|EPNUM|RTYPE|GQTYPE_PL|VOTING_AGE|"
        "CENHISP|CENRACE",
        "MPD|stirred-1|39|059|977100|1|1000|1|3|0|1|1|01",
        "MPD|stirred-1|39|059|977100|1|1000|2|5|3|2|2|63",
        "MPD|stirred-1|39|059|977100|2|2005|1|3|0|2|1|07",
    ]
    again = ppmf(place).scan("person").collect()
    assert again.height == 3


def test_persons_of_dhc_and_units():
    records = pl.DataFrame({
        "block": BLOCKS, "RELSHIP": [0, 33, 27], "QSEX": [1, 2, 2], "QAGE": [40, 19, 85], "CENHISP": [1, 1, 2],
        "CENRACE": [1, 2, 3],
    })  # fmt: skip
    made = make_rows("RELSHIP", records, (BLOCKS[0], 4))
    assert made.select("EPNUM", "RTYPE", "GQTYPE", "RELSHIP", "LIVE_ALONE").rows() == [
        ("5", "3", "000", "20", "1"), ("6", "5", "501", "38", "9"), ("1", "5", "301", "37", "9"),
    ]  # fmt: skip
    units = make_rows("HH_STATUS", pl.DataFrame({"block": BLOCKS[:2], "HH_STATUS": [1, 0]}))
    whole = pl.concat(
        [units, make_facility_rows(pl.DataFrame({"block": BLOCKS[2:], "kind": [5], "count": [2]}))]
    )
    assert whole.select("RTYPE", "HH_STATUS").rows() == [("2", "1"), ("2", "2"), ("4", "0"), ("4", "0")]


@pytest.mark.slow
def test_the_bureaus_own_file_comes_back_unchanged():
    real = pl.read_parquet(shared("guernsey2010", "ppmf_20210608_persons.parquet"))
    numbers = ("GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")
    records = real.select(pl.col("geoid").alias("block"), *(pl.col(name).cast(pl.Int16) for name in numbers))
    common = [name for name in real.columns if name != "geoid"]
    assert make_rows("GQTYPE_PL", records).select(common).equals(real.select(common))


@pytest.mark.parametrize(("workload", "facilities"), [("pl94", 3), ("pl94-units", 0)])
def test_facilities_have_rows_where_the_release_states_them(workload: str, facilities: int, tmp_path: Path):
    schema = {
        "geography": {"spine": ["state", "block"]},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    blocks = ["390599771002005", "390599771001000"]
    homes = pl.DataFrame({
        "household_id": range(5), "state": ["39"] * 5, "block": [blocks[i] for i in (0, 0, 1, 1, 0)],
        "kind": [1, 3, 2, 3, 3], "gq_type": [0, 5, 0, 1, 5],
    })  # fmt: skip
    persons = pl.DataFrame(
        {"household_id": [0, 1, 3, 4], "age": [30] * 4, "hispanic": [1] * 4, "race": [1] * 4}
    )
    census = Census.of(schema, {"household": homes, "person": persons})
    TopDown(workload=workload, names="bureau", keep_nmf=True, replicates=0).release(
        census, key=Key.for_tests(1), out=tmp_path
    )
    rows = pl.read_csv(tmp_path / "mdf-household.txt", separator="|", infer_schema_length=0)
    quarters = rows.filter(RTYPE="4")
    assert quarters["TABBLK"].to_list() == ["1000", "2005", "2005"][:facilities]
    assert quarters["HH_STATUS"].unique().to_list() == ["0"] * min(facilities, 1)
    assert rows.filter(RTYPE="2").height == 2
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("nmf-*/*/*/part-0.parquet")}
    assert not files  # every level is in folders by state
    constraint = pl.read_parquet(tmp_path / "nmf-pl94-units/Block.parquet/Constraint/State=39/part-0.parquet")
    assert set(constraint["query_name"]) == {"total_con"}
    assert constraint["geocode"].to_list() == ["3905997710011000", "3905997710022005"]
    if facilities:
        place = tmp_path / "nmf-pl94-persons/Block.parquet"
        answers = pl.read_parquet(place / "DPQuery/State=39/part-0.parquet")
        whole = answers.filter(query_name="detailed_dpq").row(0, named=True)
        assert (whole["query_shape"], whole["cenrace"], len(whole["value"])) == (
            [8, 2, 2, 63],
            "detailed",
            2016,
        )
        total = answers.filter(query_name="total_dpq").row(0, named=True)
        assert (total["query_shape"], total["hhgq"]) == ([1, 1, 1, 1], "*")
        bounds = pl.read_parquet(place / "Constraint/State=39/part-0.parquet")
        assert set(bounds["query_name"]) == {"hhgq_total_lb_con", "hhgq_total_ub_con"}
