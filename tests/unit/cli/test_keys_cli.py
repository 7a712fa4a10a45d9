"""The key of a command-line run: beside the packet, for its owner alone, never inside."""

import stat
from pathlib import Path

import pytest

from stirred.chance import Key
from stirred.cli.options import load_key
from stirred.errors import PrivacyError


def test_the_key_lies_beside_the_packet_and_is_taken_up_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = load_key(tmp_path / "packet", None)
    path = tmp_path / "packet.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key(tmp_path / "packet", None) == key
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "packet.key" in shown.err
    assert path.read_text().split()[-1] not in shown.err


@pytest.mark.parametrize("place", ["packet/run.key", "packet.part/run.key", "packet/public/../x.key"])
def test_a_key_is_never_put_into_the_packet(tmp_path: Path, place: str) -> None:
    for folder in ("packet/public", "packet.part"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(PrivacyError, match="would lie in the packet"):
        load_key(tmp_path / "packet", str(tmp_path / place))
    assert not list(tmp_path.rglob("*.key"))


def test_a_key_that_is_there_is_used(tmp_path: Path) -> None:
    Key.for_tests(3).save(tmp_path / "k")
    assert load_key(tmp_path / "packet", str(tmp_path / "k")) == Key.for_tests(3)
