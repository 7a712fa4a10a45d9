"""In one run the promise of each mechanism is stated once, and each section of the report is built once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.registry import find_mechanism
from stirred.publish import Packet, documents, load, run
from stirred.publish.check import prepare
from stirred.report import Report

PLAN = """title = "t"
census = "census/census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/5"
[[mechanism]]
name = "topdown"
workload = "small"
replicates = 0
[[mechanism]]
name = "exact-margins"
rows = "county"
columns = "tenure"
rho_squared = "1/2"
[[mechanism]]
name = "swapping-imputed-stay"
match = ["state"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/5"
imputed = "tenure"
levels = ["4"]
[[table]]
name = "tenure"
by = ["county", "tenure"]
"""
NAMES = ("permutation-swapping", "topdown", "exact-margins", "swapping-imputed-stay")


class Counted:
    """How often publish asked each mechanism for something; what a mechanism asks itself during its run is not counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.inside = False
        for kind in {base for name in NAMES for base in find_mechanism(name).__mro__}:
            for method in ("state_promise", "exhibits", "release"):
                if method in vars(kind):
                    monkeypatch.setattr(kind, method, self.wrapped(method, vars(kind)[method]))

    @contextmanager
    def within(self) -> Iterator[bool]:
        before, self.inside = self.inside, True
        yield not before
        self.inside = before

    def wrapped(self, method: str, function: Any) -> Any:
        def called(mechanism: Any, *words: Any, **named: Any) -> Any:
            with self.within() as outside:
                if outside:
                    self.calls[method, mechanism.name] += 1
                return function(mechanism, *words, **named)

        return called


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_preset("demo", tmp_path / "census", households=150)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_the_promise_and_the_exhibits_are_asked_for_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, counted = load(folder / "plan.toml"), Counted(monkeypatch)
    run(plan, folder / "packet", key=Key.for_tests(1))
    for method in ("state_promise", "exhibits", "release"):
        assert {name: counted.calls[method, name] for name in NAMES} == dict.fromkeys(NAMES, 1)


def test_the_check_before_a_run_says_how_far_it_is(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    prepare(load(folder / "plan.toml"), folder / "packet", progress=lambda *event: told.append(event))
    assert {step for step, _, _ in told} == {"check"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == told[-1][2] == len(told) - 1 > 3


def test_a_resumed_run_states_the_promise_once_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load(folder / "plan.toml")

    def stopped(step: str, done: int, total: int) -> None:
        if step == "report":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, folder / "packet", key=Key.for_tests(1), progress=stopped)
    counted = Counted(monkeypatch)
    run(plan, folder / "packet", key=Key.for_tests(1))
    assert {name: counted.calls["state_promise", name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert not any(counted.calls["release", name] for name in NAMES)


def test_the_public_sections_are_part_of_the_internal_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: dict[str, Report] = {}
    built: list[str] = []
    render, sections = documents.render, documents.public_sections

    def rendered(report: Report) -> str:
        reports[report.audience] = report
        return render(report)

    def once(*words: Any) -> Any:
        built.append("sections")
        return sections(*words)

    monkeypatch.setattr(documents, "render", rendered)
    monkeypatch.setattr(documents, "public_sections", once)
    packet: Packet = run(load(folder / "plan.toml"), folder / "packet", key=Key.for_tests(1))
    assert built == ["sections"]
    public, internal = reports["public"].sections, reports["internal"].sections
    assert len(internal) > len(public) > 3
    assert all(mine is theirs for mine, theirs in zip(public, internal[-len(public) :], strict=True))
    assert "INTERNAL" in (packet.folder / "internal/report.html").read_text()
    assert "INTERNAL" not in (packet.public / "report.html").read_text()
