"""What an interrupted run left is used only as that run wrote it."""

from pathlib import Path

import pytest

from stirred.chance import Key
from stirred.chance.seals import SEAL_ENDING, AuthenticFolder
from stirred.errors import PrivacyError


@pytest.fixture
def kept(tmp_path: Path) -> AuthenticFolder:
    found = AuthenticFolder(tmp_path, Key.for_tests(1), b"run 1")
    found.keep("a", b"content")
    return found


def test_what_was_kept_is_read_again(kept: AuthenticFolder) -> None:
    assert kept.read("a") == b"content"
    assert kept.read("b") is None
    kept.keep("a", b"other")
    assert kept.read("a") == b"other"
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.folder.iterdir())


def test_a_file_without_its_seal_was_not_finished(kept: AuthenticFolder) -> None:
    (kept.folder / f"a{SEAL_ENDING}").unlink()
    assert kept.read("a") is None


@pytest.mark.parametrize("content", [b"", b"contenT", b"content "])
def test_a_changed_file_is_refused(kept: AuthenticFolder, content: bytes) -> None:
    (kept.folder / "a").write_bytes(content)
    with pytest.raises(PrivacyError, match="was changed"):
        kept.read("a")


def test_a_changed_or_cut_seal_is_refused(kept: AuthenticFolder) -> None:
    seal = kept.folder / f"a{SEAL_ENDING}"
    told = seal.read_bytes()
    for other in (b"", told[:-1], told + b"0", b"\xff" * 64, bytes(reversed(told))):
        seal.write_bytes(other)
        with pytest.raises(PrivacyError):
            kept.read("a")


def test_files_of_another_run_key_or_name_are_refused(kept: AuthenticFolder) -> None:
    for other in (
        AuthenticFolder(kept.folder, Key.for_tests(1), b"run 2"),
        AuthenticFolder(kept.folder, Key.for_tests(2), b"run 1"),
    ):
        with pytest.raises(PrivacyError):
            other.read("a")
    for ending in ("", SEAL_ENDING):
        (kept.folder / f"a{ending}").rename(kept.folder / f"b{ending}")
    with pytest.raises(PrivacyError):
        kept.read("b")


def test_links_are_refused(kept: AuthenticFolder, tmp_path: Path) -> None:
    (kept.folder / "a").rename(kept.folder / "elsewhere")
    (kept.folder / "a").symlink_to(kept.folder / "elsewhere")
    with pytest.raises(PrivacyError):
        kept.read("a")
