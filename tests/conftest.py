"""Which tests run in one process: those on Spark, by their kind of session, and those that share work; which are slow."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.nodeid import NodeId
from hypothesis import HealthCheck, settings

from spark_sessions import KINDS, SESSIONS
from stirred.engine import Spark

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A file of tests is worked on by one process, since its tests share what is slow to make; these files share with each other.
TOGETHER = {
    "packet": "test_packet test_report_page",
    "sources": "test_catalogs test_errors_complete test_house",
}
GROUPS = {name: group for group, names in TOGETHER.items() for name in names.split()}
APART = {"test_documents"}  # pages have nothing in common: whoever is free takes the next one, at the end
# the longest files begin, so that both processes end at the same time
LONGEST = [
    "test_parts",
    "test_topdown_shards",
    "test_faults",
    "test_three_doors",
    "test_contract",
    "test_planted_bugs",
    "test_verdicts",
    "test_packet",
    "test_types_agree",
    "test_packets",
    "test_exhaustive",
    "test_never_twice",
    "test_layouts",
]

# tests that take long without being marked, one a line
SLOW_LIST = Path(__file__).with_name("slow.txt")

# no test depends on the clock, and a run that passes passes again: the same examples each time
settings.register_profile(
    "stirred", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stirred")


def _kind(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("spark")
    return str(mark.args[0]) if mark else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the groups and order them; Spark tests are one, sorted by kind: sessions start once, and never two at a time."""
    listed = {line for line in SLOW_LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    on_spark = [item for item in items if _kind(item)]
    others = [item for item in items if not _kind(item)]
    # what kills a worker comes last, so that few tests wait for a new one
    kills = ("killed", "lost")
    on_spark.sort(
        key=lambda item: (KINDS.index(_kind(item) or "own"), any(word in item.name for word in kills))
    )
    others.sort(key=_rank)
    items[:] = on_spark + others
    if getattr(config.option, "loadgroup", False):
        for item in items:
            if item.path.stem in APART:
                continue
            own = f"{item.path.parent.name}.{item.path.stem}"
            group = "spark" if _kind(item) else GROUPS.get(item.path.stem, own)
            # what xdist_group does in pytest-xdist 3.8 has no effect with pytest 9.2
            item._id = NodeId.parse(f"{item.nodeid}@{group}")


def _rank(item: pytest.Item) -> int:
    """Long files first, pages last; others stay in their order between them."""
    name = item.path.stem
    return LONGEST.index(name) if name in LONGEST else len(LONGEST) + (name in APART)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop Spark after the last of its tests, so that the others have the memory."""
    yield
    if _kind(item) and not (nextitem and _kind(nextitem)):
        SESSIONS.stop()


@pytest.fixture
def spark(request: pytest.FixtureRequest) -> Iterator[Spark]:
    """An engine on the kind of session that the test's mark names."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@spark"), "Spark tests must be one group: make test"
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


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """One real browser for all page tests of a process: a second one cannot be driven beside it."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    apps = (Path(f"/Applications/{app}.app/Contents/MacOS/{app}") for app in ("Chromium", "Google Chrome"))
    path = found or next((str(app) for app in apps if app.exists()), None)
    assert path, "no browser: run bash tools/browser"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()
