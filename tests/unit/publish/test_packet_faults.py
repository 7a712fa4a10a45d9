"""Packets: what is internal is decided by folders, reasons are asked for each invariant, CSV needs little memory."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from small_census import CENSUS, households
from stirred.chance import Key
from stirred.errors import InputError, PrivacyError
from stirred.publish import Packet, load, run, verify
from stirred.publish.check import explain
from stirred.publish.run.writer import ROWS_PER_BATCH, write_csv

ROWS_OF_CSV = households(60)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "1/20"
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
"""
REASON = """[[reason]]
invariant = "{invariant}"
kind = "law"
text = "a law"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(ROWS_OF_CSV)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_the_folder_decides_what_is_internal(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN.replace("county-tenure", "internal-migration"))
    packet = run(load(folder / "plan.toml"), folder / "ran", key=Key.for_tests(5))
    with pytest.raises(PrivacyError, match="not public"):
        verify(packet.folder, public=True)
    with pytest.raises(PrivacyError, match="not public"):
        verify(packet.folder / "internal", public=True)
    shutil.copytree(packet.public, folder / "copy")
    assert not verify(folder / "copy", public=True)
    shutil.copytree(packet.folder / "internal", folder / "copy" / "data" / "internal")
    with pytest.raises(PrivacyError, match="not public"):
        verify(folder / "copy", public=True)


def test_the_warning_names_each_invariant_without_a_reason(folder: Path) -> None:
    kept = explain(load(folder / "plan.toml")).unexplained
    assert len(kept) > 1
    subject, _, by = kept[0].partition(" by ")
    turned = f"{subject.upper()} by {' × '.join(reversed(by.split(' × ')))}"
    (folder / "plan.toml").write_text(PLAN + REASON.format(invariant=turned))
    assert explain(load(folder / "plan.toml")).unexplained == kept[1:]
    (folder / "plan.toml").write_text(PLAN + REASON.format(invariant="something else"))
    assert explain(load(folder / "plan.toml")).unexplained == kept


def test_csv_needs_the_memory_of_a_few_batches(tmp_path: Path) -> None:
    """Arrow's own allocations are counted: no clock, and nothing that another test holds."""
    rows = 20 * ROWS_PER_BATCH
    table = pa.table({"id": range(rows), "county": pa.array(["c1", "c2"] * (rows // 2)).dictionary_encode()})
    pq.write_table(table, tmp_path / "household.parquet", row_group_size=2 * ROWS_PER_BATCH)
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        write_csv(pads.dataset(tmp_path / "household.parquet"), tmp_path / "household.csv")
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < table.nbytes / 2
    text = (tmp_path / "household.csv").read_text().splitlines()
    assert text[:3] == ['"id","county"', '0,"c1"', '1,"c2"']
    assert len(text) == rows + 1
    write_csv(table, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "household.csv").read_bytes()


def test_tables_of_a_packet_without_a_plan_are_read(folder: Path) -> None:
    packet = run(load(folder / "plan.toml"), folder / "ran", key=Key.for_tests(5), internal=False)
    (packet.public / "plan.toml").unlink()
    assert Packet(packet.folder).tables() == {"county-tenure": "household"}
    receipt = packet.public / "receipt.json"
    receipt.write_text(receipt.read_text().replace("county-tenure", "county-tenures"))
    with pytest.raises(InputError, match="does not list the tables"):
        packet.tables()
