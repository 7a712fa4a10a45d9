"""Files of records on disk, encrypted with a key that only this process has: what a killed process leaves is noise.

AES-256 in counter mode; every file has a fresh key, so no part of the key stream is used twice.
"""

import io
import os
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes


class SealedFiles:
    """The keys of the files of one folder; they are never written anywhere."""

    def __init__(self) -> None:
        self._keys: dict[Path, bytes] = {}

    def writer(self, path: Path) -> "EncryptedWriter":
        """Return a new file; it is an error if it exists."""
        self._keys[path] = os.urandom(32)
        return EncryptedWriter(path, _make_cipher(self._keys[path]).encryptor())

    def reader(self, path: Path) -> "EncryptedReader":
        """Return a file that was written before."""
        return EncryptedReader(path, _make_cipher(self._keys[path]).decryptor())


class EncryptedWriter(io.RawIOBase):
    """Encrypts what is written to a file that only its owner may read."""

    def __init__(self, path: Path, cipher: CipherContext) -> None:
        super().__init__()
        self._cipher = cipher
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 1 << 18)

    def writable(self) -> bool:
        """Return whether it can be written to."""
        return True

    def write(self, data: object) -> int:
        """Encrypt and write all of it."""
        given = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._file.write(self._cipher.update(given))
        return len(given)

    def flush(self) -> None:
        """Do nothing; the file itself is flushed when it is closed."""

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


class EncryptedReader(io.RawIOBase):
    """Decrypts a file from its beginning to its end."""

    def __init__(self, path: Path, cipher: CipherContext) -> None:
        super().__init__()
        self._cipher = cipher
        self._file = path.open("rb", 1 << 18)

    def readable(self) -> bool:
        """Return whether it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        return self._cipher.update(self._file.read(size))

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


def _make_cipher(key: bytes) -> Cipher[modes.CTR]:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16)))
