"""Packets that were changed, resealed or filled with something else are found out; the seal of an office is its own."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import InputError, PrivacyError, StirredError
from stirred.publish import verify
from stirred.publish.packet import checksums, seal
from stirred.publish.packet.checksums import check, is_signed, new_signer, sign, unsigned_parts

# macOS has the same program under another name
SHA256SUM = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sealed folder as a packet's public part is."""
    public = tmp_path / "packet" / "public"
    (public / "data").mkdir(parents=True)
    (public / "receipt.json").write_text("{}")
    (public / "data" / "household.csv").write_text("a\n1\n")
    seal(public)
    return public


def states(folder: Path) -> set[tuple[str, str]]:
    return {(found.path, found.state) for found in check(folder)}


def agrees(folder: Path) -> bool:
    """What ``sha256sum --check`` says of the same folder."""
    done = subprocess.run(
        [*SHA256SUM, "--check", "--strict", "--status", "checksums.txt"],
        cwd=folder,
        check=False,
        stderr=subprocess.DEVNULL,
    )
    return done.returncode == 0


def test_a_sealed_folder_is_good_here_and_for_sha256sum(folder: Path) -> None:
    assert not check(folder)
    assert agrees(folder)


def test_links_are_findings_and_are_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a\n1\n")
    target = folder / "data" / "household.csv"
    target.unlink()
    target.symlink_to(secret)
    (folder / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    assert states(folder) == {("data/household.csv", "a link"), ("elsewhere", "a link"), ("loop", "a link")}


def test_pipes_and_devices_do_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "receipt.json").unlink()
    os.mkfifo(folder / "receipt.json")
    assert states(folder) == {("pipe", "not a plain file"), ("receipt.json", "not a plain file")}
    (folder / "checksums.txt").unlink()
    os.mkfifo(folder / "checksums.txt")
    with pytest.raises(InputError, match="no packet"):
        check(folder)


def test_a_sparse_terabyte_is_not_read(folder: Path) -> None:
    with (folder / "data" / "household.csv").open("wb") as file:
        file.truncate(1 << 40)
    assert states(folder) == {("data/household.csv", "a sparse file")}


def test_too_many_folders_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder
    for _ in range(checksums.MAX_FOLDER_DEPTH + 2):
        deep /= "d"
    deep.mkdir(parents=True)
    with pytest.raises(InputError, match="no packet"):
        check(folder)
    shutil.rmtree(folder / "d")
    monkeypatch.setattr(checksums, "MAX_ENTRIES", 2)
    with pytest.raises(InputError, match="no packet"):
        check(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text + "garbage\n",
        lambda text: text.upper(),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\\" + text,
        lambda text: text.replace("  ", " ", 1),
        lambda text: text + "\n",
    ],
    ids=["empty", "garbage", "capitals", "returns", "escaped", "one space", "empty line"],
)
def test_a_list_that_is_no_list_is_refused(change: Callable[[str], str], folder: Path) -> None:
    place = folder / "checksums.txt"
    place.write_bytes(change(place.read_text()).encode())
    with pytest.raises(InputError, match="no packet"):
        check(folder)


def test_names_in_two_lines_are_found(folder: Path) -> None:
    place = folder / "checksums.txt"
    lines = place.read_text().splitlines(keepends=True)
    place.write_text("".join([*lines, "0" * 64 + lines[0][64:]]))
    assert ("data/household.csv", "listed twice") in states(folder)
    assert not agrees(folder)


def test_a_list_that_names_files_elsewhere_does_not_read_them(folder: Path, tmp_path: Path) -> None:
    place = folder / "checksums.txt"
    place.write_text(
        place.read_text() + "0" * 64 + "  ../../../../etc/passwd\n" + "0" * 64 + "  /etc/passwd\n"
    )
    assert states(folder) == {("../../../../etc/passwd", "missing"), ("/etc/passwd", "missing")}


def test_what_lies_beside_the_two_parts_is_found(folder: Path) -> None:
    packet = folder.parent
    assert not verify(packet)
    (packet / "raw.csv").write_text("secret")
    assert [(f.path, f.state) for f in verify(packet)] == [("raw.csv", "not listed")]
    (packet / "raw.csv").unlink()
    (packet / "internal").symlink_to("/tmp", target_is_directory=True)
    with pytest.raises(PrivacyError, match="not public"):
        verify(packet, public=True)


def test_a_resealed_packet_is_told_from_the_offices(folder: Path, tmp_path: Path) -> None:
    office, other = tmp_path / "office.pem", tmp_path / "other.pem"
    public, others = new_signer(office), new_signer(other)
    assert office.stat().st_mode & 0o077 == 0
    packet = folder.parent
    assert not is_signed(packet)
    assert unsigned_parts(packet, public)
    sign(packet, office)
    assert not unsigned_parts(packet, public)
    assert not unsigned_parts(folder, public), "a copy of the public part is signed too"
    assert unsigned_parts(packet, others)
    assert not check(folder)
    assert agrees(folder)
    (folder / "receipt.json").write_text('{"forged": true}')
    seal(folder)
    assert not check(folder), "the checksums alone do not notice"
    assert unsigned_parts(packet, public)
    sign(packet, other)
    assert unsigned_parts(packet, public)


def test_openssl_agrees_with_the_signature(folder: Path, tmp_path: Path) -> None:
    told = subprocess.run(["openssl", "version"], check=False, capture_output=True, text=True).stdout
    if not told.startswith("OpenSSL 3"):
        pytest.skip("the openssl of macOS knows no Ed25519; brew install openssl@3")
    public = new_signer(tmp_path / "office.pem")
    sign(folder, tmp_path / "office.pem")
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public), "-rawin"]
    words += ["-in", "checksums.txt", "-sigfile", "checksums.sig"]
    assert subprocess.run(words, cwd=folder, check=False, capture_output=True).returncode == 0


def test_keys_are_checked(folder: Path, tmp_path: Path) -> None:
    office = tmp_path / "office.pem"
    public = new_signer(office)
    with pytest.raises(InputError, match="exists"):
        new_signer(office)
    public.chmod(0o600)
    with pytest.raises(StirredError, match="not a private signing key"):
        sign(folder, public)
    with pytest.raises(StirredError, match="not a public signing key"):
        unsigned_parts(folder, office)
    with pytest.raises(StirredError, match="not a signing key"):
        unsigned_parts(folder, tmp_path / "absent.pub")
    office.chmod(0o644)
    with pytest.raises(PrivacyError, match="others may read"):
        sign(folder, office)
    office.chmod(0o600)
    (folder / "receipt.json").write_text("changed")
    with pytest.raises(PrivacyError, match="not as it was sealed"):
        sign(folder, office)


def test_the_command_signs_and_verifies(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packet, office = str(folder.parent), tmp_path / "office.pem"
    assert main(["packet", "new-signer", str(office)]) == 0
    assert main(["packet", "verify", packet, "--signer", str(office.with_suffix(".pub"))]) == 1
    assert main(["packet", "verify", packet]) == 0
    assert "unsigned" in capsys.readouterr().out
    assert main(["packet", "sign", packet, "--signer", str(office)]) == 0
    assert main(["packet", "verify", packet, "--signer", str(office.with_suffix(".pub"))]) == 0
    assert "signed by" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["extra.csv", "data/extra.parquet"])
def test_a_file_that_is_not_listed_is_found_in_the_public_part(folder: Path, name: str) -> None:
    (folder / name).write_text("secret")
    assert states(folder) == {(name, "not listed")}
    assert [(found.path, found.state) for found in verify(folder.parent)] == [
        (f"public/{name}", "not listed")
    ]
    assert main(["packet", "verify", str(folder.parent)]) != 0


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602])
def test_a_signing_key_that_the_group_or_others_may_use_is_refused(
    folder: Path, tmp_path: Path, mode: int
) -> None:
    office = tmp_path / "office.pem"
    before = os.umask(0)
    try:
        new_signer(office)
    finally:
        os.umask(before)
    assert office.stat().st_mode & 0o777 == 0o600
    office.chmod(mode)
    with pytest.raises(PrivacyError, match="others may read"):
        sign(folder, office)
    assert not is_signed(folder.parent)


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\t", "\x1b[1A"])
def test_a_name_cannot_forge_a_line(end: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"a{end}every file is as it was sealed").write_text("")
    (folder / f"b{end}every file is as it was sealed").mkdir()
    assert {found.state for found in check(folder)} == {"a name with control characters"}
    assert main(["packet", "verify", str(folder.parent)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("a name with control characters: public/") for line in lines)


@pytest.fixture
def whole(folder: Path, tmp_path: Path) -> Path:
    """A packet with an internal part, signed by an office."""
    inside = folder.parent / "internal"
    inside.mkdir(mode=0o700)
    (inside / "metrics.csv").write_text("a\n1\n")
    seal(inside)
    new_signer(tmp_path / "office.pem")
    sign(folder.parent, tmp_path / "office.pem")
    return folder.parent


def test_a_signature_covers_the_internal_part_too(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["packet", "verify", str(whole), "--signer", str(tmp_path / "office.pub")]
    assert main(command) == 0
    assert "public, internal" in capsys.readouterr().out
    (whole / "internal" / "metrics.csv").write_text("a\n2\n")
    seal(whole / "internal")
    assert not verify(whole), "the checksums alone do not notice"
    assert main(command) == 1
    told = capsys.readouterr()
    assert "signed by the owner" not in told.out
    assert "internal is not signed by office.pub" in told.err
    (whole / "internal" / "checksums.sig").unlink()
    assert main(command) == 1


@pytest.mark.parametrize("content", [b"", b"anything", b"x" * 65])
def test_not_any_bytes_are_a_signature(
    content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "checksums.sig").write_bytes(content)
    assert states(folder) == {("checksums.sig", "not a signature")}
    assert not is_signed(folder)
    (folder / "checksums.sig").write_bytes(b"x" * 64)  # of this length they may be one
    assert main(["packet", "verify", str(folder)]) == 0
    assert "was not checked" in capsys.readouterr().out


def test_a_copy_with_a_key_is_not_public(folder: Path, tmp_path: Path) -> None:
    packet = folder.parent
    assert not verify(packet, public=True)
    Key.fresh().save(packet / "office.key")
    with pytest.raises(PrivacyError, match="not public"):
        verify(packet, public=True)
    (packet / "office.key").rename(folder / "notes.txt")
    for _ in range(2):
        with pytest.raises(PrivacyError, match="1 of its files hold a secret key"):
            verify(packet, public=True)
        with pytest.raises(PrivacyError, match="1 of its files hold a secret key"):
            verify(folder, public=True)
        assert verify(packet)
        seal(folder)  # listed, it is a key all the same
    (folder / "notes.txt").unlink()
    new_signer(folder / "office.pem")
    seal(folder)
    with pytest.raises(PrivacyError, match="hold a secret key"):
        verify(folder, public=True)


def test_another_plan_than_the_receipt_names(folder: Path) -> None:
    (folder / "plan.toml").write_text('title = "t"\n')
    digest = hashlib.sha256((folder / "plan.toml").read_bytes()).hexdigest()
    (folder / "receipt.json").write_text(json.dumps({"plan_sha256": digest}))
    seal(folder)
    assert not verify(folder.parent)
    (folder / "plan.toml").write_text('title = "another"\n')
    seal(folder)
    found = [(one.path, one.state) for one in verify(folder.parent)]
    assert found == [("public/plan.toml", "not the plan that the receipt names")]
    assert verify(folder, public=True)
    (folder / "receipt.json").write_text("[" * 10_000)
    seal(folder)
    assert [one.state for one in verify(folder)] == ["not a receipt"]
