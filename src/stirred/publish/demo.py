"""The demo: a synthetic census released three ways, compared in one report, with a second process for the second core."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import FrameType, TracebackType

from stirred._support import require_extra
from stirred.assess.assessment import Assessment
from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.child_processes import PIPE, python_command, start_child
from stirred.engine import Progress, silent
from stirred.errors import InputError, PrivacyError
from stirred.kernels import compile_slowest
from stirred.languages import Language
from stirred.publish.check import ReadyPlan, prepare
from stirred.publish.documents import assess_questions, ground_of, labels_of, measure_risk
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.receipt import read_release
from stirred.publish.plan.description import Plan, load
from stirred.publish.run.execute import run
from stirred.publish.side_by_side import comparison_report, tables_of
from stirred.report import render
from stirred.spec.files import load as load_specification

GO = "go\n"


class SecondProcess:
    """A process that runs one plan when it is told to; leaving the block before it is finished stops it."""

    def __init__(self, plan: Path, out: Path, key_file: Path, progress: Progress) -> None:
        self._progress = progress
        words = [str(path.absolute()) for path in (plan, out, key_file)]
        command = python_command("stirred.publish.demo", *words)
        self._process = start_child(command, folder=out.parent, stdin=PIPE, stdout=PIPE)
        self._reader = Thread(target=self._forward, daemon=True)
        self._reader.start()

    def __enter__(self) -> "SecondProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self.wait()

    def go(self) -> None:
        """Tell the process that the census and the key are there."""
        self._tell(GO)

    def wait(self) -> bool:
        """Wait until the process ends; whether it made the packet."""
        self._tell("")
        code = self._process.wait()
        self._reader.join()
        return code == 0

    def _tell(self, text: str) -> None:
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        try:
            pipe.write(text.encode())
            pipe.close()
        except BrokenPipeError:  # it has ended already, and its exit code says how
            pass

    def _forward(self) -> None:
        pipe = self._process.stdout
        if pipe is None:
            return
        with pipe:
            for line in pipe:
                step, done, total = json.loads(line)
                self._progress(step, done, total)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(words: Sequence[str]) -> int:
    """Compile, wait for the line, run the plan, and print each step as one line of JSON."""
    signal.signal(signal.SIGTERM, _leave)  # files in scratch folders are removed on the way out
    plan, out, key_file = map(Path, words)
    compile_slowest()
    if sys.stdin.readline() != GO:
        return 1

    def report_step(step: str, done: int, total: int) -> None:
        print(json.dumps([f"{plan.stem}: {step}", done, total]), flush=True)

    run(load(plan), out, key=Key.load(key_file), progress=report_step)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))


SWAP = """# Households swap within the state among households of the same size; their persons travel along.
title = "{title}"
census = "../census/census.toml"

[[mechanism]]
name = "{name}"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/20"
"""

TOPDOWN = """# Noisy counts at every level with the budget shares of the 2020 redistricting file, then consistent records.
title = "{title}"
census = "../census/census.toml"

[[mechanism]]
name = "topdown"
workload = "pl94-persons"
mode = "gls"
replicates = 8
"""

QUESTIONS = """
[assess]
relations = [["county", "tenure"], ["race", "tenure"], ["size", "county"]]
segregation = [["tract", "hispanic"], ["tract", "race"]]
propensity = ["county", "tenure", "hispanic"]
improbable = "block"

[[assess.regression]]
outcome = "size"
on = ["tenure", "county"]
"""

# asked of every release, so that the answers can be compared
PERSON_QUESTIONS = """
[[assess.of]]
record_type = "person"
segregation = [["tract", "hispanic"], ["tract", "race"]]
"""

TABLES = """
[[table]]
name = "hispanic-by-county"
record_type = "person"
by = ["county", "hispanic"]

[[table]]
name = "race-by-tract"
record_type = "person"
by = ["tract", "race"]

[[table]]
name = "persons-by-block"
record_type = "person"
by = ["block"]
"""

PLANS = {
    "swap-5": SWAP.format(title="Swap at 5%", name="permutation-swapping")
    + TABLES
    + QUESTIONS
    + PERSON_QUESTIONS,
    "stirring-5": SWAP.format(title="Stirring at 5%", name="stirring")
    + TABLES
    + QUESTIONS
    + PERSON_QUESTIONS,
    "topdown": TOPDOWN.format(title="TopDown") + TABLES + PERSON_QUESTIONS,
}


SECOND_PLAN = "topdown"  # runs in a second process, where there is a second core


def demo(out: Path, *, seed: int = 1, progress: Progress | None = None, language: str = "en") -> Path:
    """Synthesise, plan, run and compare; return the report. Take up what exists already.

    ``language`` is that of the packets' cards and public reports; the comparison of the three is in English.
    """
    require_extra("report", why="the demo ends with a report, whose charts are drawn with it")
    say = progress or silent
    key_file = out / "demo.key"
    _require_place(out, key_file)
    out.mkdir(parents=True, exist_ok=True)
    plans = out / "plans"
    plans.mkdir(exist_ok=True)
    for name, text in PLANS.items():
        stated = "" if language == "en" else f'language = "{Language.of(language).code}"\n'
        (plans / f"{name}.toml").write_text(stated + text, encoding="utf-8")
    todo = [name for name in PLANS if not (out / name).exists()]
    found: dict[str, Assessment] = {}
    with ExitStack() as stack:
        second = None
        if SECOND_PLAN in todo and (os.cpu_count() or 1) > 1:
            process = SecondProcess(plans / f"{SECOND_PLAN}.toml", out / SECOND_PLAN, key_file, say)
            second = stack.enter_context(process)
        _release_all(out, [name for name in todo if second is None or name != SECOND_PLAN], second, seed, say)
        for name in sorted(PLANS, key=lambda name: name == SECOND_PLAN):
            if name == SECOND_PLAN and second is not None and not second.wait():
                _run_plan(out, SECOND_PLAN, say)
            say("assessments", len(found), len(PLANS))
            found[name] = _assess_packet(load(plans / f"{name}.toml"), Packet(out / name))
    say("assessments", len(PLANS), len(PLANS))
    say("comparison", 0, 1)
    packets = {name: Packet(out / name) for name in PLANS}
    described = {name: load(plans / f"{name}.toml") for name in PLANS}
    census_file = out / "census" / "census.toml"
    schema = read(census_file).schema
    tables = {name: tables_of(packet) for name, packet in packets.items()}
    words = labels_of(schema)
    plain = {
        plan.title: measure_risk(plan, schema, [read_release(packets[name], plan)], tables[name]).plain(
            words.variables
        )
        for name, plan in described.items()
    }
    report = comparison_report(
        [plan.title for plan in described.values()],
        [load_specification(packet.public / "spec.json") for packet in packets.values()],
        [found[name] for name in PLANS],
        title="One census, released three ways",
        subtitle="A synthetic census of 60,000 households, so that even the comparison with the truth may be shown",
        tables={described[name].title: shown for name, shown in tables.items()},
        risks={title: one for title, one in plain.items() if one is not None},
        ground=ground_of(schema, census_file, [read_release(packets["swap-5"], described["swap-5"])]),
        words=words,
    )
    target = out / "report.html"
    temporary = target.with_suffix(".part")
    temporary.write_text(render(report), encoding="utf-8")
    temporary.replace(target)
    say("comparison", 1, 1)
    return target


def _release_all(
    out: Path, names: Sequence[str], second: SecondProcess | None, seed: int, say: Progress
) -> None:
    """Make the census and the key, let the second process begin, and run the named plans here."""
    census, key_file = out / "census", out / "demo.key"
    if not (census / "census.toml").exists():
        say("census", 0, 1)
        write_preset("demo", census, seed=seed)
        say("census", 1, 1)
    ready = {name: prepare(load(out / "plans" / f"{name}.toml"), out / name) for name in names}
    if not key_file.exists():
        Key.fresh().save(key_file)
    if second is not None:
        second.go()
    for index, name in enumerate(names):
        say("releases", index, len(names))
        _run_plan(out, name, say, ready[name])
    say("releases", len(names), len(names))


def _run_plan(out: Path, name: str, say: Progress, prepared: ReadyPlan | None = None) -> None:
    plan, key = load(out / "plans" / f"{name}.toml"), Key.load(out / "demo.key")

    def report_step(step: str, done: int, total: int) -> None:
        say(f"{name}: {step}", done, total)  # two releases run at once

    run(plan, out / name, key=key, progress=report_step, prepared=prepared)


def _require_place(out: Path, key_file: Path) -> None:
    """Refuse a place that cannot be written to, and an interrupted demo whose key is gone."""
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(
            f"the demo cannot be written to {out.name}",
            why=f"{there.name} is not a folder that can be written to",
            fix="choose another --out",
        )
    begun = [name for name in PLANS if (out / f"{name}.part").exists()]
    if begun and not key_file.exists():
        raise PrivacyError(
            f"{begun[0]}.part was begun with a key that is not there",
            why=f"an interrupted run is taken up with its own key, and there is no {key_file.name}",
            fix=f"put {key_file.name} back, or delete the folder {begun[0]}.part",
        )


def _assess_packet(plan: Plan, packet: Packet) -> Assessment:
    census = read(plan.folder / plan.census_file)
    found = assess_questions(plan, census, [read_release(packet, plan)], packet.read_tables())
    return replace(found, name=plan.title)
