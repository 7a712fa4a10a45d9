"""The totals that drive SafeTab-H: every form they come in, the digest of the lists, and what is refused."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stirred as st
from stirred import SafeTabH
from stirred.errors import StirredError
from stirred.mechanisms.census2020.safetab.groups import CodeLists
from stirred.mechanisms.census2020.safetab.households.tables import LISTS_KEY, read_totals
from unit.safetab_h.test_counts import KEY, all_totals, mechanism, town
from unit.safetab_h.towns import write


def test_totals_are_read_from_every_place(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    plain = tmp_path / "pop-group-totals.txt"
    whole = read_totals(plain)
    table = whole.frame.to_arrow().replace_schema_metadata({LISTS_KEY: b"abc"})
    packet = tmp_path / "packet" / "public" / "data" / "mechanism"
    packet.mkdir(parents=True)
    pq.write_table(table, packet / "t1.parquet")
    comma = tmp_path / "t1.csv"
    whole.frame.write_csv(comma)
    spark = tmp_path / "spark" / "t1"
    spark.mkdir(parents=True)
    lines = plain.read_text().splitlines()
    (spark / "headers.csv").write_text(lines[0] + "\n")
    (spark / "part-0.csv").write_text("\n".join(lines[1:9]) + "\n")
    (spark / "part-1.csv").write_text("\n".join(lines[9:]) + "\n")
    (tmp_path / "spark" / "t1.lists").write_text("def\n")
    for path, lists in ((tmp_path / "packet", "abc"), (comma, ""), (tmp_path / "spark", "def")):
        found = read_totals(path)
        assert found.digest() == whole.digest()
        assert found.lists == lists


def test_lists_must_be_those_of_the_totals(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    digest = CodeLists.read(tmp_path / "codes").digest()
    (tmp_path / "t1.lists").write_text(f"{digest}\n")
    assert not any("digest" in note for note in mechanism(tmp_path).release(census, key=KEY).notes)
    (tmp_path / "t1.lists").write_text("0" * 64)
    with pytest.raises(StirredError, match="made with other code lists"):
        mechanism(tmp_path).refuse(census)
    (tmp_path / "t1.lists").unlink()
    assert any("no digest" in note for note in mechanism(tmp_path).release(census, key=KEY).notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("REGION_ID|REGION_TYPE|ITERATION_CODE\n1|USA|A1\n", "lack count"),
        ("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n1|USA|A1|x\n", "have no whole number"),
        ("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n1|LAND|A1|3\n", "unknown region type"),
        ("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n1|USA|A1|3\n1|USA|A1|4\n", "stand there twice"),
        ("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT\n|USA|A1|3\n", "lack a region"),
    ],
)
def test_wrong_totals_are_refused(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, town(1), all_totals(1))
    (tmp_path / "pop-group-totals.txt").write_text(text)
    with pytest.raises(StirredError, match=said):
        mechanism(tmp_path).refuse(st.read(tmp_path))


def test_totals_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    for path in (None, tmp_path / "nothing"):
        with pytest.raises(StirredError, match="totals"):
            mechanism(tmp_path, totals=path).refuse(census)
    later = tmp_path / "later"
    later.mkdir()
    mechanism(tmp_path, totals=later).refuse(census)  # an earlier [[mechanism]] of a plan will make them
    with pytest.raises(StirredError, match="not there"):
        mechanism(tmp_path, totals=later).release(census, key=KEY)


def test_settings_that_contradict_themselves_are_refused() -> None:
    for settings, said in (
        ({"budget": {"T5-USA-1": "1"}}, "no table, region type and level"),
        ({"budget": {"USA-1": "-1"}}, "negative"),
        ({"thresholds": {"T3-USA-1": "3,2,1"}}, "thresholds"),
        ({"thresholds": {"T3-USA-1": "3"}}, "thresholds"),
        ({"preset": "", "total": "1"}, "cannot be divided"),
        ({"preset": "ddhc-a"}, "preset"),
        ({"budget": {"USA-1": 0.1}}, "not exact"),
        ({"total": 8.9}, "not exact"),
        ({"total": "many"}, "not an exact number"),
        ({"totals": 3}, "totals"),
        ({"races": "race_code_1"}, "races"),
        ({"definition": "approximate"}, "definition"),
        ({"epsilon": "1"}, "epsilon"),
        ({"most_codes": 0}, "most_codes"),
    ):
        with pytest.raises(StirredError, match=said):
            SafeTabH(**settings)  # type: ignore[arg-type]


def test_a_table_of_totals_may_have_more_columns(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    frame = read_totals(tmp_path / "pop-group-totals.txt").frame.with_columns(pl.lit(1.5).alias("variance"))
    pq.write_table(frame.to_arrow(), tmp_path / "t1.parquet")
    assert read_totals(tmp_path / "t1.parquet").frame.height == frame.height
    assert isinstance(frame.to_arrow(), pa.Table)
