"""Digests of files by an engine: the values of sha256sum, no link followed, what an executor sees compared."""

import hashlib
import os
from pathlib import Path

import pytest

from stirred.engine import Local, Spark, base
from stirred.publish.packet import seal


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for number in range(5):
        path = tmp_path / f"file {number}"
        path.write_bytes(bytes([number]) * (1 << number))
        made.append(path)
    return made


@pytest.mark.parametrize("workers", [1, 3])
def test_digests_are_in_the_order_of_the_files(files: list[Path], workers: int) -> None:
    expected = [hashlib.sha256(path.read_bytes()).digest() for path in files]
    assert Local(workers=workers).digest_files(files) == expected
    assert Local(workers=workers).digest_files([]) == []


def test_no_link_is_followed(files: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(files[0])
    with pytest.raises(OSError, match=r"symbolic|links"):
        Local().digest_files([link])
    assert base.digest_there(str(link)) is None
    assert base.digest_there(str(tmp_path / "nowhere")) is None


def test_a_file_that_another_machine_sees_otherwise_is_another_file(files: list[Path]) -> None:
    found = base.digest_there(str(files[2]))
    assert found is not None
    assert base.same_file(files[2], found)
    assert not base.same_file(files[2], found._replace(size=found.size + 1))
    os.utime(files[2], ns=(1, 1))
    assert not base.same_file(files[2], found)
    assert not base.same_file(files[2], None)


def test_the_checksums_of_a_folder_are_the_same_whoever_reads_it(files: list[Path], tmp_path: Path) -> None:
    seal(tmp_path)
    first = (tmp_path / "checksums.txt").read_text()
    (tmp_path / "checksums.txt").unlink()
    seal(tmp_path, Local(workers=2).digest_files)
    assert (tmp_path / "checksums.txt").read_text() == first
    assert f"{hashlib.sha256(files[3].read_bytes()).hexdigest()}  file 3" in first


@pytest.mark.slow
@pytest.mark.spark("cluster")
def test_large_files_are_digested_by_the_executors(
    spark: Spark, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CLUSTER_BYTES", 4)
    read_here: list[Path] = []
    monkeypatch.setattr(
        Local,
        "digest_files",
        lambda _self, paths: [read_here.append(p) or base.digest_plain(p) for p in paths],
    )
    expected = [hashlib.sha256(path.read_bytes()).digest() for path in files]
    assert spark.digest_files(files) == expected
    assert read_here == files[:2]  # those of fewer than 4 bytes
