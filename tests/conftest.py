"""Spark tests run one after the other in one process, by the kind of session that they need."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from spark_sessions import KINDS, SESSIONS
from stirred.engine import Spark

# no test depends on the clock
settings.register_profile("stirred", deadline=None)
settings.load_profile("stirred")


def _kind(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("spark")
    return str(mark.args[0]) if mark else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark tests last, sorted by kind, in one group: sessions start once, and never two at a time."""
    on_spark = [item for item in items if _kind(item)]
    for item in on_spark:
        item.add_marker(pytest.mark.xdist_group("spark"))
    others = [item for item in items if not _kind(item)]
    items[:] = others + sorted(on_spark, key=lambda item: KINDS.index(_kind(item) or "own"))


@pytest.fixture
def spark(request: pytest.FixtureRequest) -> Iterator[Spark]:
    """An engine on the kind of session that the test's mark names."""
    SESSIONS.use(_kind(request.node) or "local")
    with SESSIONS.engine() as engine:
        yield engine


@pytest.fixture
def no_spark() -> None:
    """Nothing runs in this process; the test starts its own session and stops it."""
    SESSIONS.use("own")


def pytest_sessionfinish() -> None:
    """Stop what still runs."""
    SESSIONS.clean()
