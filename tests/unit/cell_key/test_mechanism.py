"""The cell key method as a mechanism: consistent noise, no finite budget with its witness, chains, and what it hides."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import CellKey, save
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import DataError, InputError, PrivacyError
from stirred.frames import frame_of
from stirred.mechanisms.tables.cell_key import GridTable, IntervalTable, design_table, write_intervals
from stirred.mechanisms.tables.cell_key.cells import KeyedCells, RecordKeys


def small(n: int = 400) -> Census:
    rng = np.random.default_rng(3)
    return Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {"id": "hid"}}},
        {
            "household": {
                "hid": [f"h{i}" for i in range(n)],
                "county": rng.choice(["a", "b", "c"], n).tolist(),
                "tenure": rng.choice(["own", "rent"], n, p=[0.9, 0.1]).tolist(),
                "size": rng.integers(1, 9, n).tolist(),
            }
        },
    )


def released(census: Census, **settings: Any) -> dict[str, pl.DataFrame]:
    mechanism = CellKey(**({"tables": [["county"], ["county", "tenure"], ["size"]]} | settings))
    release = mechanism.release(census, key=Key.for_tests(5))
    return {name: frame_of(table) for name, table in release.tables.items()}


def test_the_same_records_have_the_same_count_in_every_table() -> None:
    """County a has owners only, so two tables count the same records in two cells."""
    census = small()
    frame = census.table("household").to_pandas()
    frame.loc[frame["county"] == "a", "tenure"] = "own"
    census = Census.of(census.schema, {"household": pl.from_pandas(frame)})
    found = released(census, D=5, V="6")
    one = found["county"].filter(pl.col("county") == "a")["count"].item()
    two = (
        found["tenure-by-county"]
        .filter((pl.col("county") == "a") & (pl.col("tenure") == "own"))["count"]
        .item()
    )
    assert one == two


def test_noise_stays_within_d_and_moves_something() -> None:
    census = small()
    true = frame_of(census.counts("household", ["size"]))
    both = true.join(released(census, D=4, V="3")["size"], on="size", suffix="_shown")
    change = (both["count_shown"] - both["count"]).to_numpy()
    assert np.abs(change).max() <= 4
    assert change.any()


def test_counts_by_parts_and_in_batches_are_the_same() -> None:
    census = small()
    keys = RecordKeys(Key.for_tests(1), "hid", 10**8)
    table = census.table("household")
    kernel = KeyedCells(("county",), keys)
    whole = frame_of(kernel(table)).sort("county")
    split = pl.concat([frame_of(kernel(table.slice(start, 37))) for start in range(0, 400, 37)])
    sums = split.group_by("county").agg(pl.col("count").sum(), pl.col("__keys").sum() % 10**8).sort("county")
    assert whole.equals(sums)

    class Parts(Local):
        def fits(self, size: int) -> bool:
            return False

    mechanism = CellKey(tables=[["county", "tenure"]])
    first = mechanism.release(census, key=Key.for_tests(1)).tables["tenure-by-county"]
    assert first.equals(
        mechanism.release(census, key=Key.for_tests(1), engine=Parts()).tables["tenure-by-county"]
    )


def test_a_perturbed_zero_is_not_shown() -> None:
    """KeyedCells of one record that fall to 0 have no row, as cells without records: they cannot be told apart."""
    census = Census.of(
        {"record": {"household": {"id": "hid", "variables": {"kind": "0..59"}}}},
        {"household": {"hid": list(range(60)), "kind": list(range(60))}},
    )
    shown = released(census, tables=[["kind"]], D=2, V="1")["kind"]
    assert 0 < shown.height < 60
    assert shown["count"].min() >= 1


@pytest.mark.parametrize("dialect", ["decimal", "integer"])
def test_the_witness_against_every_finite_budget(dialect: str, tmp_path: Path) -> None:
    """Enumerated over all keys: one record is shown with the stated chance, no record never is."""
    if dialect == "integer":
        path = tmp_path / "grid.csv"
        rows = [f"{n},{k},{(-1 if k < 100 else 1) if n == 1 else 0}" for n in (1, 2, 3) for k in range(256)]
        path.write_text("pcv,ckey,pvalue\n" + "\n".join(rows))
        mechanism = CellKey(tables=[["a"]], ptable=path, period=1)
    else:
        mechanism = CellKey(tables=[["a"]], D=3, V="2", digits=5)
    table = mechanism.perturbation
    assert isinstance(table, GridTable | IntervalTable)
    keys = np.arange(table.modulus)
    witness: Any = mechanism.details()["witness"]
    assert witness["distance"] == 1
    for count, chance in zip((0, 1), witness["chances"], strict=True):
        counts = np.full(len(keys), count)
        assert ((counts + table.noise(counts, keys)) > 0).mean() == pytest.approx(chance, abs=1e-4)
    assert witness["chances"][0] == 0 < witness["chances"][1]


def test_it_is_published_only_with_a_reason(tmp_path: Path) -> None:
    census = small()
    without = CellKey(tables=[["county"]]).release(census, key=Key.for_tests(1))
    assert not without.specification.budget.is_finite
    with pytest.raises(PrivacyError, match="protects nothing"):
        save(without, tmp_path / "packet")
    reason = CellKey(tables=[["county"]], without_guarantee="as in the last census")
    save(reason.release(census, key=Key.for_tests(1)), tmp_path / "packet")
    assert "as in the last census" in (tmp_path / "packet" / "public" / "card.md").read_text()


def test_sums_of_perturbed_counts_and_records_without_a_key_are_refused() -> None:
    census = small()
    mechanism = CellKey(tables=[["county", "tenure"]])
    with pytest.raises(InputError, match="no table of county was made"):
        mechanism.table(mechanism.release(census, key=Key.for_tests(1)), ["county"])
    nameless = Census.of({"geography": {"spine": ["county"]}}, {"household": {"county": ["a", "b"]}})
    with pytest.raises(DataError, match="no identifier"):
        CellKey(tables=[["county"]]).refuse(nameless)


def test_a_table_in_a_file_is_told_by_its_digest_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("i;v;p_int_ub\n0;0;1\n1;-1;0.5\n1;1;1\n")
    told = CellKey(tables=[["a"]], ptable=path).parameters()
    assert len(str(told["ptable"])) == 64
    assert not {"D", "V", "js"} & set(told)


def test_a_perturbation_table_is_named_by_text_or_by_path(tmp_path: Path) -> None:
    place = tmp_path / "ptable.csv"
    write_intervals(design_table(3, 1), place, separator=",")
    rows = {"hid": list(range(90)), "county": ["a", "b", "c"] * 30}
    schema = {"geography": {"spine": ["county"]}, "record": {"household": {"id": "hid"}}}
    census = Census.of(schema, {"household": rows})
    made = [
        CellKey(tables=[["county"]], ptable=name).release(census, key=Key.for_tests(1)).tables["county"]
        for name in (str(place), place)
    ]
    assert made[0].equals(made[1])
    other = CellKey(tables=[["county"]], magnitude_ptable=str(place))
    assert "magnitude_V" not in other.parameters()
    with pytest.raises(InputError, match="ptable"):
        CellKey(tables=[["county"]], ptable=5)  # type: ignore[arg-type]
