"""Every extract of public data has its source, its licence and its checksum in a README."""

import hashlib

from shared_data import EXTRACTS


def test_extracts_are_named_with_their_checksums_and_are_small() -> None:
    told = (EXTRACTS / "README.md").read_text(encoding="utf-8")
    skipped = {".py", ".R", ".md", ".pyc"}
    files = [path for path in EXTRACTS.rglob("*") if path.is_file() and path.suffix not in skipped]
    for path in files:
        line = (
            f"| `{path.relative_to(EXTRACTS).as_posix()}` | {hashlib.sha256(path.read_bytes()).hexdigest()} |"
        )
        assert line in told, f"tests/data/README.md lacks {line}"
    assert told.count("| `") == len(files)
    assert sum(path.stat().st_size for path in files) < 5_000_000
