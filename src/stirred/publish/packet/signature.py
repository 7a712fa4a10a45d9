"""Signatures of packets (Ed25519, RFC 8032): who sealed a packet, which checksums alone do not prove.

A signature covers the bytes of ``checksums.txt`` of one part, and so every file that is listed there; the internal part
has one of its own. It is the raw one, so that it can be checked without Stirred:
``openssl pkeyutl -verify -pubin -inkey office.pub -rawin -in checksums.txt -sigfile checksums.sig``.
"""

import os
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
from stirred.publish.packet.checksums import (
    INTERNAL,
    PUBLIC,
    SIGNATURE,
    check,
    has_signature_form,
    public_part,
    read_list_bytes,
)

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
