"""Starting Spark: one clear word where something is missing, and no trace in a session of the user's."""

import builtins
import socketserver
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_sessions import SESSIONS
from stirred.engine import Spark
from stirred.engine.spark import session as spark_session
from stirred.errors import InputError, MissingExtraError, StirredError


def java_that_says(folder: Path, words: str) -> str:
    """A folder with a program named java."""
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    java.chmod(0o755)
    return str(folder)


def test_engine_does_not_import_pyspark() -> None:
    code = "import sys, stirred, stirred.engine; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_everything_else_imports_without_pyspark_and_pandas() -> None:
    code = """
import sys, pkgutil, importlib
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
import stirred
for module in pkgutil.walk_packages(stirred.__path__, "stirred."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_java_that_ends_first_leaves_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    server = socketserver.BaseServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    spark_session._silence_server(server)
    said = []
    for fault in (EOFError(), ConnectionResetError(), ValueError("a fault of pyspark")):
        try:
            raise fault
        except (EOFError, OSError, ValueError):
            server.handle_error(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
        said.append("Traceback" in capsys.readouterr().err)
    assert said == [False, False, True]


@pytest.mark.parametrize("silent", [True, False])
def test_a_connection_to_java_that_breaks_logs_no_traceback(silent: bool) -> None:
    """py4j writes to the root logger what it raises too; without the filter it reads like a crash."""
    code = f"""
import socket, threading
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR
from stirred.engine.spark import session

server = socket.create_server(("127.0.0.1", 0))
def hang_up():
    while True:
        server.accept()[0].close()
threading.Thread(target=hang_up, daemon=True).start()
if {silent}:
    session.silence_gateway()
assert GatewayClient(port=server.getsockname()[1]).send_command("c\\n") == ERROR
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("Traceback" not in done.stderr) is silent


@pytest.mark.parametrize("absent", ["pyspark", "pandas"])
def test_without_a_package_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == absent:
            raise ModuleNotFoundError(f"No module named {absent!r}", name=absent)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as told:
        Spark(master="local[2]")
    assert str(told.value) == (
        f"the Spark engine needs {absent}, which is not installed\n"
        "  why: Spark is an optional part of Stirred\n"
        "  fix: pip install 'stirred[spark]'"
    )


def test_without_java_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError) as told:
        spark_session.require_java()
    assert str(told.value) == (
        "the Spark engine needs Java 17 or newer and none was found\n"
        "  why: there is no java in JAVA_HOME or PATH\n"
        "  fix: apt-get install openjdk-17-jre-headless   (Debian), or: brew install openjdk@17   (macOS)"
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingExtraError, match="none was found"):
        spark_session.require_java()


@pytest.mark.parametrize(
    ("words", "found"),
    [('openjdk version "11.0.22"', "Java 11"), ('java version "1.8.0_402"', "Java 8"), ("oops", "broken")],
)
def test_an_old_java_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, found: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_that_says(tmp_path, words))
    with pytest.raises(MissingExtraError, match=f"the one found is {found}") as told:
        spark_session.require_java()
    assert "apt-get install openjdk-17-jre-headless" in told.value.fix


def test_java_of_today_is_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", java_that_says(tmp_path, 'openjdk version "21" 2023-09-19'))
    spark_session.require_java()


def test_the_engine_starts_no_java_before_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="needs Java 17"):
        Spark(master="local[2]")


def test_a_session_of_another_make_is_refused() -> None:
    class Old:
        version = "3.5.1"
        _jsparkSession = None  # noqa: N815 — Spark's

    class Connect:
        version = "4.3.0"

    with pytest.raises(StirredError, match=r"Spark 3\.5\.1 is too old"):
        spark_session.adapt_session(Old())
    with pytest.raises(InputError, match="not a classic Spark session"):
        spark_session.adapt_session(Connect())


def test_settings_of_a_session_that_we_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    local = spark_session.default_settings(None)
    assert (local["spark.master"], local["spark.driver.host"]) == ("local[*]", "127.0.0.1")
    assert local["spark.executorEnv.OMP_NUM_THREADS"] == "1"
    assert local["spark.executorEnv.POLARS_MAX_THREADS"] == "1"
    far = spark_session.default_settings("spark://head:7077")
    assert far["spark.master"] == "spark://head:7077"
    assert "spark.driver.host" not in far
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert "spark.master" not in spark_session.default_settings(None)


@pytest.mark.slow
@pytest.mark.spark("own")
def test_an_engine_stops_what_it_started(no_spark: None) -> None:
    from pyspark import SparkContext

    config = {**SESSIONS.config, "spark.app.name": "mine"}
    with Spark(master="local[2]", config=config) as engine:
        assert engine.context.appName == "mine"
        assert engine.session.conf.get("spark.ui.enabled") == "false"
        scratch = engine.scratch
        assert scratch.stat().st_mode & 0o777 == 0o700
        with pytest.raises(InputError, match="runs in this process already"):
            Spark(master="local[2]")
    assert SparkContext._active_spark_context is None
    assert not scratch.exists()


@pytest.mark.spark("local")
def test_a_session_of_the_user_is_left_as_it_was(spark: Spark) -> None:
    user = SESSIONS.session
    before = dict(user.conf.getAll)
    with Spark(user) as engine:
        assert engine.session.conf.get("spark.sql.adaptive.enabled") == "false"
        assert engine.records.__doc__
        assert dict(user.conf.getAll) == before
        assert user.conf.get("spark.sql.adaptive.enabled") == "true"
    assert not user.sparkContext._jsc.sc().isStopped()
    assert user.range(3).count() == 3
