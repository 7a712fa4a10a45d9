"""Vectors of the peers: the ONS package's worked output, and perturbation tables of ptable and tau-ARGUS."""

import csv

import polars as pl
import pytest

from shared_data import shared
from stirred import CellKey
from stirred.census import Census
from stirred.chance import Key
from stirred.frames import frame_of
from stirred.mechanisms.tables.cell_key import IntervalTable, design_table

pytestmark = pytest.mark.slow


def test_the_ons_vector() -> None:
    """200 of 200 cells, with the threshold of 10; cells that the package suppresses have no row here."""
    micro = pl.read_csv(shared("cellkey", "ons", "micro.csv")).with_row_index("id")
    expected = pl.read_csv(shared("cellkey", "ons", "expected_result.csv"))
    census = Census.of({"record": {"household": {"id": "id"}}}, {"household": micro})
    by = ["var1", "var5", "var8"]
    mechanism = CellKey(
        tables=[by],
        ptable=shared("cellkey", "ons", "ptable_10_5.parquet"),
        record_key="record_key",
        threshold=10,
    )
    shown = frame_of(mechanism.release(census, key=Key.for_tests(1)).tables["var8-by-var5-by-var1"])
    both = expected.join(shown, on=by, how="full", suffix="_shown", coalesce=True)
    assert both.height == expected.height == 200
    assert (both["count"].fill_null(0) == both["count_shown"].fill_null(0)).all()


def test_totals_with_the_table_of_ptable() -> None:
    """The file of ptable gives the totals of the design, at all but the keys where rounding moved an interval."""
    micro = pl.read_csv(shared("cellkey", "ons", "micro.csv")).with_row_index("id")
    census = Census.of(
        {"record": {"household": {"id": "id"}}}, {"household": micro.with_columns(value=pl.col("id") + 1)}
    )
    made = [
        frame_of(
            CellKey(tables=[["var1", "var5"]], magnitudes=["value"], **settings)
            .release(census, key=Key.for_tests(1))
            .tables["value-of-var5-by-var1"]
        )
        for settings in (
            {"magnitude_ptable": shared("cellkey", "ptables", "num_D5_V2_step4.csv")},
            {"D": 5, "magnitude_V": "2"},
        )
    ]
    assert made[0].select("var1", "var5", "weighted").equals(made[1].select("var1", "var5", "weighted"))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("tau_ptab_freq.txt", design_table(5, 3, js=2, stay=0.5)),
        ("cnt_D5_V3_js2_pstay0.5.csv", design_table(5, 3, js=2, stay=0.5)),
        ("cnt_D2_V1_js0.csv", design_table(2, 1)),
        ("cnt_D3_V1_js0.csv", design_table(3, 1)),
        ("num_D5_V2_step4.csv", design_table(5, 2, steps=4, classes=[1, 3, 5])),
    ],
)
def test_designs_of_ptable_and_tau_argus(name: str, table: IntervalTable) -> None:
    with shared("cellkey", "ptables", name).open() as file:
        rows = list(csv.DictReader(file, delimiter=";" if name.endswith("txt") else ","))
    assert len(rows) == sum(len(row.values) for row in table.rows.values())
    for row in rows:
        own = table.rows[float(row["i"])]
        place = own.values.tolist().index(float(row["v"]))
        assert own.chances[place] == pytest.approx(float(row["p"]), abs=1e-7)
