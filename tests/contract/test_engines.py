"""The same release on both engines: equal bytes for the same key, whoever works, whoever is lost on the way.

Every mechanism runs over the same files on this machine in memory, on this machine in parts, in two workers under one
Java process, and on a cluster of two executors. Equal means: SHA-256 of the Arrow data in the published order, promise,
checks, notes and the digest of the input.
"""

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from contract.registry import CASES, EVERY, Case
from contract.test_contract import census as small_census
from flow_kernels import KillLater
from spark_sessions import SESSIONS
from stirred.census import Census, read
from stirred.chance import Key
from stirred.engine import Engine, Local, Spark
from stirred.mechanisms.contents import digest_release
from stirred.mechanisms.release import Release
from stirred.spec.files import dumps

KEY = Key.for_tests(23)
HOUSEHOLDS = 12_000
TOML = """name = "contract"
[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household*.parquet"]
id = "hid"
[record.person]
files = ["person.parquet"]
household = "hid"
of = "household"
"""
# publish counts of the census: no kernel over parts runs there, and only those record who ran them
COUNTING = {"own-mechanism", "exact-margins", "gaussian-tables", "special-tabulations", "cell-key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A census in Parquet files, the households in two of them."""
    place = tmp_path_factory.mktemp("census")
    data = small_census(HOUSEHOLDS, tracts=12, sizes=4)
    homes = data.table("household")
    pq.write_table(homes.slice(0, 5_000), place / "household-1.parquet", row_group_size=999)
    pq.write_table(homes.slice(5_000), place / "household-2.parquet")
    pq.write_table(data.table("person"), place / "person.parquet", row_group_size=5_001)
    (place / "census.toml").write_text(TOML)
    return place


@pytest.fixture(scope="module")
def data(folder: Path) -> Census:
    return read(folder)


@dataclass(frozen=True, slots=True)
class Told:
    """All that a release says."""

    contents: dict[str, str]
    rest: tuple[object, ...]


def told(release: Release) -> Told:
    # the example's own invariant is registered by whoever loads it last; its words say the same
    promised = "" if release.mechanism == "noisy-counts" else dumps(release.specification)
    rest = (
        str(release.specification), promised, release.checks, release.notes, release.input_digest,
        dict(release.parameters), release.private,
    )  # fmt: skip
    return Told(digest_release(release), rest)


_MADE: dict[str, Told] = {}


def here(case: Case, data: Census) -> Told:
    """The release in memory, made once."""
    if case.name not in _MADE:
        _MADE[case.name] = told(case.make().release(data, key=KEY))
    return _MADE[case.name]


def there(case: Case, data: Census, engine: Engine, out: Path) -> Told:
    out.mkdir()
    return told(case.make().release(engine.census(data), key=KEY, engine=engine, out=out))


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_in_parts_on_this_machine(case: Case, data: Census, tmp_path: Path) -> None:
    assert there(case, data, InParts(), tmp_path / "out") == here(case, data)


def on_spark(case: Case, data: Census, spark: Spark, tmp_path: Path) -> None:
    assert there(case, data, spark, tmp_path / "out") == here(case, data)
    records = data.count("household") + data.count("person")
    assert spark.gathered_rows <= records / 100, "the driver held more than 1 % of the census"
    if case.name not in COUNTING:
        assert len({process for _, process in spark.worker_processes}) >= 2


# relatives of the swap that run the same kernels on a cluster as one that stays
RELATIVES = [
    "varying-rates",
    "varying-rates-rarity",
    "imputed-stay",
    "unit-matching",
    "no-vacuous",
    "near-places",
    "topdown-classic",
    "stirring-both",
    "stirring-loss",
    "permutation-swapping-tables",
]


# these run on a cluster of two executors below, which is two workers and more
CLUSTER = ("topdown", "own-mechanism", "permutation-swapping")


@pytest.mark.spark("local")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow) if case.name in (*RELATIVES, *CLUSTER) else case
        for case in EVERY
    ],
    ids=lambda case: case.name,
)
def test_two_workers_of_one_machine(case: Case, data: Census, spark: Spark, tmp_path: Path) -> None:
    """Quick: every mechanism whose kernels no other one runs, here or on the cluster."""
    on_spark(case, data, spark, tmp_path)


def on_a_cluster(case: Case, data: Census, spark: Spark, tmp_path: Path) -> None:
    on_spark(case, data, spark, tmp_path)
    if case.name not in COUNTING:
        assert len({executor for executor, _ in spark.worker_processes}) == 2


# what every mechanism does on a cluster is shown with two workers of one machine; here by kinds. The swap's release is that
# of the search for its key, below
@pytest.mark.spark("cluster")
@pytest.mark.parametrize(
    "case",
    [case if case.name in CLUSTER[:2] else pytest.param(case, marks=pytest.mark.slow) for case in EVERY],
    ids=lambda case: case.name,
)
def test_a_cluster_of_two_executors(case: Case, data: Census, spark: Spark, tmp_path: Path) -> None:
    on_a_cluster(case, data, spark, tmp_path)


# ---- a worker is lost ------------------------------------------------------------------------------------------------


@pytest.fixture
def lost(spark: Spark, tmp_path: Path) -> Iterator[Spark]:
    (tmp_path / "tasks").mkdir()
    spark.probe = KillLater(tmp_path / "tasks", after=3)
    yield spark
    assert (tmp_path / "killed").exists(), "nobody was killed"


@pytest.mark.spark("cluster")
@pytest.mark.parametrize(
    "name",
    [
        "permutation-swapping",
        pytest.param("topdown", marks=pytest.mark.slow),
        pytest.param("topdown-classic", marks=pytest.mark.slow),
    ],
)
def test_an_executor_lost_in_the_middle(
    name: str, data: Census, lost: Spark, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    case = next(case for case in CASES if case.name == name)
    with caplog.at_level(logging.INFO, logger="stirred.engine"):
        assert there(case, data, lost, tmp_path / "out") == here(case, data)
    assert "again" in caplog.text, "the log does not show the retry"
    assert lost.watch.retried >= 1


# ---- the key is nowhere ----------------------------------------------------------------------------------------------


def secrets_of(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """Every secret that is derived from here on, the key's own included."""
    found: set[bytes] = set()
    derive, bind = Key._derive, Key.bind

    def derived(key: Key, purpose: str, name: Any) -> bytes:
        found.add(key._secret)
        return derive(key, purpose, name)

    def bound(key: Key, *context: Any) -> Key:
        made = bind(key, *context)
        found.add(made._secret)
        return made

    monkeypatch.setattr(Key, "_derive", derived)
    monkeypatch.setattr(Key, "bind", bound)
    return found


def forms(secret: bytes) -> list[bytes]:
    """How 32 bytes may be written."""
    import base64

    return [secret, secret.hex().encode(), base64.b64encode(secret), repr(secret)[2:-1].encode()]


@pytest.mark.spark("cluster")
@pytest.mark.parametrize("name", ["permutation-swapping", pytest.param("topdown", marks=pytest.mark.slow)])
def test_the_key_is_in_no_log_and_no_setting(
    name: str, data: Census, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name == name)
    here(case, data)
    found = secrets_of(monkeypatch)
    on_a_cluster(case, data, spark, tmp_path)
    assert KEY._secret in found
    assert len(found) >= 2, "a run binds its key"
    settings = repr(spark.context.getConf().getAll()).encode() + repr(sorted(os.environ.items())).encode()
    files = SESSIONS.written()
    assert any("events" in str(file) for file in files), "there is an event log to look at"
    assert any(file.name in {"stderr", "stdout"} for file in files), "there are executor logs to look at"
    text = settings + b"".join(file.read_bytes() for file in files)
    assert len(text) > 100_000
    for secret in found:
        for form in forms(secret):
            assert form not in text


@pytest.mark.spark("cluster")
def test_the_search_finds_a_key_that_is_told(spark: Spark) -> None:
    """The mutant: a job whose description carries the key."""
    key = Key.fresh()
    spark.context.setJobDescription(f"swap with {key._secret.hex()}")
    try:
        spark.session.range(0, 2, 1, 2).count()
    finally:
        spark.context.setJobDescription("")
    text = b"".join(file.read_bytes() for file in SESSIONS.written())
    assert any(form in text for form in forms(key._secret))
    assert re.search(rb"SparkListenerJobStart", text)
