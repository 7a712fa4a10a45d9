"""What random changes of files have found: each was a hang, a traceback, or a write through a link."""

from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred import Packet, Workload
from stirred.census import read
from stirred.chance import Key
from stirred.chance.seals import AuthenticFolder, keep_mark, read_mark
from stirred.cli.main import main
from stirred.errors import ForgedStateError, InputError, PlanError, SchemaError, StirredError
from stirred.publish import load
from stirred.publish.packet import seal
from stirred.publish.packet.checksums import new_signer, sign, unsigned_parts
from stirred.publish.packet.lookup import look_up
from stirred.publish.plan.description import WeightsPlan
from stirred.publish.weights import read_totals
from stirred.spec.files import load as load_specification

ENDLESS = Path("/dev/zero")


@pytest.mark.parametrize("file", [str(ENDLESS), "no\\u0000name", "."])
def test_a_schema_that_names_a_device_for_its_codes(file: str, tmp_path: Path) -> None:
    text = CENSUS.replace('levels = ["o", "r"]', f'codes_from = "{file}"')
    (tmp_path / "census.toml").write_text(text)
    with pytest.raises(SchemaError, match="cannot read the codes"):
        read(tmp_path)


def test_a_table_of_codes_that_is_no_csv(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text('code\n"' + "a" * 200_000 + '"\n')
    (tmp_path / "census.toml").write_text(CENSUS.replace('levels = ["o", "r"]', 'codes_from = "codes.csv"'))
    with pytest.raises(SchemaError, match="cannot read the codes"):
        read(tmp_path)


def test_files_that_do_not_end_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="not a plain file"):
        read(ENDLESS)
    with pytest.raises(PlanError, match="cannot be read"):
        load(ENDLESS)
    with pytest.raises(InputError, match="cannot read"):
        load_specification(ENDLESS)
    with pytest.raises(InputError, match="cannot read"):
        Workload.load(ENDLESS)
    with pytest.raises(PlanError, match="no public totals"):
        read_totals(WeightsPlan(recalibrate_to=(str(ENDLESS),), column="w", record_type="a"), tmp_path)


def test_a_workload_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_bytes(b"name = '\x93'")
    with pytest.raises(InputError, match="UTF-8"):
        Workload.load(tmp_path / "w.toml")


def test_the_mark_of_a_run_is_a_short_plain_file(tmp_path: Path) -> None:
    mark = tmp_path / "run"
    assert read_mark(mark) is None
    keep_mark(mark, "identity")
    assert read_mark(mark) == b"identity"
    mark.unlink()
    mark.symlink_to(ENDLESS)
    with pytest.raises(ForgedStateError):
        read_mark(mark)


def test_nothing_is_written_through_links_of_a_state(tmp_path: Path) -> None:
    state, victim = tmp_path / "state", tmp_path / "victim"
    state.mkdir()
    for name in ("run.new", "a.new", "a.seal.new"):
        (state / name).symlink_to(victim)
    keep_mark(state / "run", "identity")
    AuthenticFolder(state, Key.for_tests(1), b"run").keep("a", b"content")
    assert not victim.exists()
    assert not [path for path in state.iterdir() if path.is_symlink()]


@pytest.fixture
def packet(tmp_path: Path) -> Path:
    """A sealed folder with a table that is no Parquet file and a receipt nested without end."""
    public = tmp_path / "packet" / "public"
    (public / "tables").mkdir(parents=True)
    (public / "tables" / "a.parquet").write_bytes(b"PAR1" + b"\xff" * 40 + b"PAR1")
    (public / "receipt.json").write_text("{}")
    seal(public)
    return public.parent


def test_damaged_files_of_a_packet_are_one_clear_error(packet: Path) -> None:
    for read_it in (Packet(packet).read_tables, Packet(packet).contents):
        with pytest.raises(InputError, match="damaged"):
            read_it()
    with pytest.raises(InputError, match="damaged"):
        look_up(packet, {"county": "1"}, table="a")
    (packet / "public" / "receipt.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="no packet"):
        Packet(packet).receipt()


def test_a_signed_packet_without_its_list(packet: Path, tmp_path: Path) -> None:
    public = new_signer(tmp_path / "office.pem")
    sign(packet, tmp_path / "office.pem")
    (packet / "public" / "checksums.txt").unlink()
    with pytest.raises(InputError, match="no packet"):
        unsigned_parts(packet, public)
    (packet / "public" / "checksums.txt").symlink_to(ENDLESS)
    with pytest.raises(InputError, match="no packet"):
        unsigned_parts(packet, public)


def test_a_plan_whose_census_is_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "household.csv").write_text(households(5))
    text = f'title = "t"\ncensus = "{ENDLESS}"\n[[mechanism]]\nname = "exact-margins"\n'
    text += 'rows = "county"\ncolumns = "tenure"\nrho_squared = "1/2"\n'
    (tmp_path / "plan.toml").write_text(text)
    assert main(["plan", "check", str(tmp_path / "plan.toml")]) == 2
    assert "not a plain file" in capsys.readouterr().err
    with pytest.raises(StirredError):
        load(tmp_path / "plan.toml").census()
