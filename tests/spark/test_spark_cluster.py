"""A real cluster of two executors: who worked, what was gathered, and a worker killed in the middle."""

import base64
import logging
from pathlib import Path

import pyarrow as pa
import pytest

from flow_kernels import PART, Keyed, KillOnce, Numbered, Sorted
from spark_sessions import SESSIONS
from stirred.engine import Local, Parts, Spark
from stirred.errors import StirredError

pytestmark = pytest.mark.spark("cluster")

ROWS = pa.table({"id": pa.array(range(20_000), pa.uint64()), "t": [f"v{i % 17}" for i in range(20_000)]})
NUMBERED = ROWS.schema.append(PART)
SORTED = NUMBERED.append(pa.field("seen", pa.uint16()))
PARTS = 8


def parts(engine: Spark | Local) -> Parts:
    flow = engine.stream_released(ROWS).map(Numbered("id", PARTS), NUMBERED)
    return engine.exchange(flow, by="part", parts=PARTS).map(Sorted("id"), SORTED)


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    return parts(Local()).gather()


def test_kernels_run_in_two_executors_and_files_stay_in_order(
    spark: Spark, expected: pa.Table, tmp_path: Path
) -> None:
    data = parts(spark).write(tmp_path, "made")
    assert data.to_table() == expected
    assert len({executor for executor, _ in spark.worker_processes}) == 2
    assert len({process for _, process in spark.worker_processes}) >= 2
    assert spark.gathered_rows == PARTS  # a mark of each part that was written, and no record
    assert spark.count_shuffled_bytes() > 0
    assert spark.watch.retried == 0


@pytest.mark.parametrize(
    "executor",
    [
        pytest.param(False, id="python worker"),
        # an executor is killed in test_what_a_lost_executor_kept_is_made_again too, and in the middle of a release
        pytest.param(True, id="executor", marks=pytest.mark.slow),
    ],
)
def test_a_killed_worker_changes_nothing_and_is_told(
    spark: Spark, expected: pa.Table, tmp_path: Path, caplog: pytest.LogCaptureFixture, executor: bool
) -> None:
    spark.probe = KillOnce(tmp_path / "killed", part=5, executor=executor)
    with caplog.at_level(logging.INFO, logger="stirred.engine"):
        data = parts(spark).write(tmp_path, "made")
    assert (tmp_path / "killed").exists()
    assert data.to_table() == expected
    assert spark.watch.retried >= 1
    assert "again" in caplog.text
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("made")] == ["made.parquet"]
    assert len(list((tmp_path / "made.parquet").iterdir())) == PARTS


def test_what_a_kernel_carries_stands_in_no_log(spark: Spark) -> None:
    secret = bytes(97 + (i * 7) % 26 for i in range(32))  # no other text has these 32 letters
    flow = spark.stream_released(ROWS).map(Numbered("id", 2), NUMBERED)
    parts = spark.exchange(flow, by="part", parts=2)
    parts.map(Keyed(secret), NUMBERED).keep().drop()
    with pytest.raises(StirredError, match="a task on the cluster failed") as told:
        parts.map(Keyed(secret, fails=True), NUMBERED).gather()
    assert secret.decode() not in str(told.value)
    logs = SESSIONS.written()
    assert any(path.name == "stderr" for path in logs)
    assert any("events" in path.parts for path in logs)
    text = b"".join(path.read_bytes() for path in logs)
    assert b"stirred-error" in text, "the failure was logged, so the secret could have been"
    settings = "".join(f"{name}={value}" for name, value in spark.context.getConf().getAll()).encode()
    for form in (secret, secret.hex().encode(), base64.b64encode(secret)):
        assert form not in text
        assert form not in settings


def test_what_a_lost_executor_kept_is_made_again(spark: Spark, expected: pa.Table, tmp_path: Path) -> None:
    kept = parts(spark).keep()
    spark.probe = KillOnce(tmp_path / "killed", part=2, executor=True)
    assert kept.gather() == expected
    assert spark.watch.retried >= 1
    kept.drop()
    assert spark.gathered_rows == ROWS.num_rows
