"""List the files of a packet, seal them with checksums, sign the seal, and verify a packet against both.

A signature (Ed25519, RFC 8032) says who sealed a packet, which checksums alone do not prove. It covers the bytes of
``checksums.txt`` of one part, and so every file that is listed there; the internal part has one of its own. It is the raw
one, so that it can be checked without Stirred:
``openssl pkeyutl -verify -pubin -inkey office.pub -rawin -in checksums.txt -sigfile checksums.sig``.
"""

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from stirred.closed_files import FILE_MODE
from stirred.errors import InputError, PrivacyError
from stirred.text_formats import parse_json, read_plain_text

MAX_KEY_BYTES = 1 << 14  # bytes
MAKE = "make one: stirred packet new-signer office.pem"


def new_signer(path: Path) -> Path:
    """Write a new signing key that only its owner may read, and its public half beside it (``.pub``)."""
    public = path.with_suffix(".pub")
    for place in (path, public):
        if os.path.lexists(place):
            raise InputError(
                f"{place.name} exists already", why="a key is never overwritten", fix="choose another file"
            )
    key = Ed25519PrivateKey.generate()
    _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return public


def sealed_parts(packet: Path) -> list[tuple[str, Path]]:
    """Return the parts that have a list of checksums, by name: the public one, and the internal one where there is one."""
    inside = packet / INTERNAL
    found = [(PUBLIC, public_part(packet))]
    if inside.is_dir() and not inside.is_symlink():
        found.append((INTERNAL, inside))
    return found


def sign(packet: Path, signer: Path) -> Path:
    """Sign every part of a packet, each of which must be as it was sealed; return the signature of the public part."""
    parts = sealed_parts(packet)
    findings = [finding for _, folder in parts for finding in check(folder)]
    if findings:
        raise PrivacyError(
            "the packet is not as it was sealed",
            why=f"{len(findings):,} files differ from the checksums, the first is {findings[0].state}",
            fix="see them: stirred packet verify; sign the packet that stirred run wrote",
        )
    key = _private(signer)
    for name, folder in parts:
        temporary = folder / f"{SIGNATURE}.part"
        temporary.write_bytes(key.sign(read_list_bytes(folder)))
        if name == INTERNAL:
            temporary.chmod(FILE_MODE)
        temporary.replace(folder / SIGNATURE)
    return parts[0][1] / SIGNATURE


def is_signed(packet: Path) -> bool:
    """Return whether the public part has a file with the form of a signature; the signer is not checked."""
    return has_signature_form(public_part(packet) / SIGNATURE)


def unsigned_parts(packet: Path, signer: Path) -> list[str]:
    """Return the names of the parts whose checksums the owner of a public key did not sign."""
    key = _public(signer)
    found = []
    for name, folder in sealed_parts(packet):
        place, listed = folder / SIGNATURE, read_list_bytes(folder)
        try:
            if not has_signature_form(place):
                raise InvalidSignature
            key.verify(place.read_bytes(), listed)
        except InvalidSignature:
            found.append(name)
    return found


def _private(path: Path) -> Ed25519PrivateKey:
    if os.name == "posix" and path.is_file() and path.stat().st_mode & 0o077:
        raise PrivacyError(
            f"others may read {path.name}",
            why="whoever has it can sign packets in the name of the office",
            fix="chmod 600 the file, or make a new signer",
        )
    try:
        key = load_pem_private_key(_bytes(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "a private")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(_bytes(path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, "a public")
    return key


def _bytes(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > MAX_KEY_BYTES:
        raise _no_key(path, "a")
    return path.read_bytes()


def _no_key(path: Path, kind: str) -> InputError:
    return InputError(
        f"{path.name} is not {kind} signing key",
        why="it is not an Ed25519 key in PEM format without password",
        fix=f"sign with the private file, verify with the .pub file; {MAKE}",
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise InputError(
            f"cannot write {path.name}",
            why=error.strerror or "the system gives no reason",
            fix="choose a folder that exists",
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


# Every entry below a folder, without following links: plain files, and what does not belong in a packet.

MAX_ENTRIES = 200_000  # entries of a packet; a release of thousands of part files stays far below
MAX_FOLDER_DEPTH = 16  # folders in folders
SPARSE_BYTES = 1 << 20  # bytes from which a file that occupies almost nothing on disk is refused


CONTROL = "a name with control characters"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry: its name below the folder, and why it cannot be a file of a packet ("" where it can)."""

    name: str
    path: Path
    fault: str


def list_entries(folder: Path) -> Iterator[FolderEntry]:
    """Yield all entries below a folder by name; enter folders, do not follow links."""
    found = sorted(_walk_folder(folder, "", MAX_FOLDER_DEPTH), key=lambda entry: entry.name)
    yield from found


def _walk_folder(folder: Path, above: str, depth: int) -> Iterator[FolderEntry]:
    number = 0
    with os.scandir(folder) as listed:
        for entry in listed:
            number += 1
            if number > MAX_ENTRIES:
                raise _too_large()
            name, path = f"{above}{entry.name}", Path(entry.path)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if depth == 0:
                    raise _too_large()
                for inner in _walk_folder(path, f"{name}/", depth - 1):
                    number += 1
                    if number > MAX_ENTRIES:
                        raise _too_large()
                    yield inner
                if not entry.name.isprintable():
                    yield FolderEntry(name, path, CONTROL)
            else:
                yield FolderEntry(name, path, _find_fault(path, mode))


def _find_fault(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    if not stat.S_ISREG(mode):
        return "not a plain file"
    if not path.name.isprintable():  # a line feed in a name would forge a line of what is printed about it
        return CONTROL
    told = path.lstat()
    # a sparse file of a terabyte would take hours to read and holds nothing
    if told.st_size > SPARSE_BYTES and told.st_blocks * 512 * 64 < told.st_size:
        return "a sparse file"
    return ""


def _too_large() -> InputError:
    return InputError(
        "this is no packet",
        why=f"it has more than {MAX_ENTRIES:,} files or more than {MAX_FOLDER_DEPTH} folders in each other",
        fix="give the folder stirred run wrote",
    )


# The checksums of a packet: written when it is sealed, compared with its files when it is verified.
#
# The list has the format of ``sha256sum``: what is good here is good there. ``sha256sum --check`` alone does not
# notice files that are not listed.

CHECKSUMS, SIGNATURE = "checksums.txt", "checksums.sig"
PUBLIC, INTERNAL = "public", "internal"
SIGNATURE_BYTES = 64
KEY_LOOK_BYTES = 1 << 16  # bytes in which a key is looked for
KEY_MARKS = (b"stirred-key-1 ", b"PRIVATE KEY-----")
KEY_INSIDE = "a secret key: whoever has it can undo the noise or sign for the office"
MAX_LIST_BYTES = 64 << 20  # bytes
_LINE = re.compile(r"([0-9a-f]{64})  ([^\\\x00-\x1f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """One entry that is not as the checksums say, such as changed, missing or not listed."""

    path: str
    state: str


def sha256(path: Path) -> str:
    """Return the SHA-256 of a plain file, read in pieces; do not follow a link or block on a pipe."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> Iterator[Path]:
    """Yield all plain files below a folder except its checksums and their signature, by name."""
    for entry in list_entries(folder):
        if not entry.fault and entry.name not in (CHECKSUMS, SIGNATURE):
            yield entry.path


def digest_all(paths: Sequence[Path]) -> list[bytes]:
    """Return the SHA-256 of plain files in their order, several at a time: hashing releases the interpreter lock."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda path: bytes.fromhex(sha256(path)), paths))


def seal(folder: Path, digest: Callable[[Sequence[Path]], Sequence[bytes]] = digest_all) -> None:
    """Write the checksums of a folder, in the format that ``sha256sum --check`` reads; ``digest`` is who reads them."""
    paths = list(list_files(folder))
    lines = [
        f"{found.hex()}  {path.relative_to(folder).as_posix()}\n"
        for path, found in zip(paths, digest(paths), strict=True)
    ]
    place = folder / CHECKSUMS
    if place.is_symlink():  # nothing is written elsewhere
        place.unlink()
    place.write_text("".join(lines), encoding="utf-8")


def check(folder: Path) -> list[Discrepancy]:
    """Return every entry that differs from the checksums, is missing, not listed, or no plain file."""
    listed = _read_list(folder)
    findings = [
        Discrepancy(path=name, state="listed twice")
        for name, n in Counter(n for n, _ in listed).items()
        if n > 1
    ]
    digests = dict(listed)
    seen: set[str] = set()
    plain: list[FolderEntry] = []
    for entry in list_entries(folder):
        if entry.name == CHECKSUMS:
            continue
        if entry.name == SIGNATURE and not entry.fault:
            if not has_signature_form(entry.path):
                findings.append(Discrepancy(path=entry.name, state="not a signature"))
            continue
        seen.add(entry.name)
        if entry.fault:
            findings.append(Discrepancy(path=entry.name, state=entry.fault))
        elif entry.name not in digests:
            findings.append(Discrepancy(path=entry.name, state="not listed"))
        elif holds_key(entry.path):
            findings.append(Discrepancy(path=entry.name, state=KEY_INSIDE))
        else:
            plain.append(entry)
    for entry, found in zip(plain, digest_all([entry.path for entry in plain]), strict=True):
        if found.hex() != digests[entry.name]:
            findings.append(Discrepancy(path=entry.name, state="changed"))
    findings += [Discrepancy(path=name, state="missing") for name in digests.keys() - seen]
    return sorted(findings, key=lambda finding: (finding.path, finding.state))


def has_signature_form(path: Path) -> bool:
    """Return whether a plain file has the length of an Ed25519 signature; the signer is not checked."""
    return not path.is_symlink() and path.is_file() and path.stat().st_size == SIGNATURE_BYTES


def holds_key(path: Path) -> bool:
    """Return whether a plain file begins with the key of a run, or with a private signing key."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        begin = file.read(KEY_LOOK_BYTES)
    return any(mark in begin for mark in KEY_MARKS)


def read_list_bytes(folder: Path) -> bytes:
    """Read the list of checksums, up to a limit of size."""
    path = folder / CHECKSUMS
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_LIST_BYTES:
            raise _unreadable(folder)
        return path.read_bytes()
    except OSError:
        raise _unreadable(folder) from None


def _unreadable(folder: Path) -> InputError:
    return InputError(
        "this is no packet",
        why=f"{folder.name}/{CHECKSUMS} cannot be read",
        fix="give the folder stirred run wrote",
    )


def _read_list(folder: Path) -> list[tuple[str, str]]:
    """Return the lines of the list as (name, digest)."""
    try:
        lines = read_list_bytes(folder).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise _unreadable(folder) from None
    if lines[-1] == "":
        lines.pop()
    matched = [_LINE.fullmatch(line) for line in lines]
    found = [(match[2], match[1]) for match in matched if match is not None]
    if not found or len(found) < len(lines):
        raise InputError(
            "this is no packet",
            why=f"{len(lines) - len(found):,} lines of {folder.name}/{CHECKSUMS} are not checksums"
            if lines
            else f"{folder.name}/{CHECKSUMS} is empty",
            fix="give the folder stirred run wrote",
        )
    return found


def verify(packet: Path, *, public: bool = False) -> list[Discrepancy]:
    """Compare a packet with its checksums; with ``public`` refuse one that still holds the internal part."""
    if public:
        folder = public_part(packet)
        # the folder decides what is internal; a file may have any name
        inside = any(INTERNAL in entry.name.split("/")[:-1] for entry in list_entries(folder))
        if inside or os.path.lexists(packet / INTERNAL) or folder.resolve().name == INTERNAL:
            raise PrivacyError(
                "this copy is not public",
                why="it still holds the internal part, computed with the confidential data",
                fix=f"copy only the folder {PUBLIC}/ of the packet",
            )
        beside = [path.name for path in packet.iterdir()] if folder != packet else []
        keys = [entry for entry in list_entries(folder) if not entry.fault and holds_key(entry.path)]
        if keys or any(name != PUBLIC for name in beside):
            raise PrivacyError(
                "this copy is not public",
                why=f"{len(keys):,} of its files hold a secret key, and {max(len(beside) - 1, 0):,} lie beside it",
                fix=f"copy only the folder {PUBLIC}/ of the packet, as stirred run wrote it",
            )
        return [*check(folder), *_other_plan(folder)]
    parts = [part for part in (PUBLIC, INTERNAL) if _is_folder(packet / part)]
    if not parts:
        return [*check(packet), *_other_plan(packet)]
    findings = [
        Discrepancy(path=entry, state="not listed")
        for entry in sorted(path.name for path in packet.iterdir())
        if entry not in parts
    ]
    for part in parts:
        findings += [Discrepancy(path=f"{part}/{f.path}", state=f.state) for f in check(packet / part)]
    if PUBLIC in parts:
        told = _other_plan(packet / PUBLIC)
        findings += [Discrepancy(path=f"{PUBLIC}/{f.path}", state=f.state) for f in told]
    return findings


def _other_plan(folder: Path) -> list[Discrepancy]:
    """Compare the plan with the receipt, which states its SHA-256: who seals a packet again may forget one of them."""
    plan, told = folder / "plan.toml", folder / "receipt.json"
    if told.is_symlink() or plan.is_symlink() or not told.is_file() or not plan.is_file():
        return []
    try:
        document = parse_json(read_plain_text(told))
    except (OSError, ValueError):
        return [Discrepancy(path=told.name, state="not a receipt")]
    stated = document.get("plan_sha256") if isinstance(document, dict) else None
    if stated is None or stated == sha256(plan):
        return []
    return [Discrepancy(path=plan.name, state="not the plan that the receipt names")]


def public_part(packet: Path) -> Path:
    """Return the public part of a packet; a copy of it is itself a packet."""
    return packet / PUBLIC if _is_folder(packet / PUBLIC) else packet


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
