"""How far a job is, from the lines that its command writes: names of steps and percentages, no value of a record."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from stirred.web.jobs.job import Job

MAX_LINES = 2000
STEP_PATTERN = re.compile(r" *[\d.]+ s  (?P<step>[^\d%]+?)(?: (?P<percent>\d+) %)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """One step of a job: whether it has ended, and how far it is where that is known."""

    name: str
    done: bool
    percent: int | None = None


def steps_of_job(job: Job, packets: Path, *, running: bool) -> list[JobStep]:
    """Return the steps in the order in which they were last reported; the last one may be under way."""
    found = _read_log(packets / f"{job.number:04}.log") if job.kind == "run" else _read_messages(job)
    last = next(reversed(found), "")
    return [
        JobStep(name=name, done=True)
        if not running or name != last or percent == 100
        else JobStep(name=name, done=False, percent=percent)
        for name, percent in found.items()
    ]


def _read_log(path: Path) -> dict[str, int | None]:
    """Return the steps of a run from the log beside its packet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[-MAX_LINES:]
    except OSError:
        return {}
    found: dict[str, int | None] = {}
    for line in lines:
        try:
            event = json.loads(line)
            name, state, percent = str(event["step"]), event["state"], event.get("percent")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line that is being written
        found.pop(name, None)
        found[name] = 100 if state == "done" else percent if isinstance(percent, int) else None
    return found


def _read_messages(job: Job) -> dict[str, int | None]:
    """Return the steps of another command from what it prints on standard error."""
    found: dict[str, int | None] = {}
    for line in job.messages().splitlines()[-MAX_LINES:]:
        told = STEP_PATTERN.fullmatch(line)
        if told:
            found.pop(told["step"], None)
            found[told["step"]] = int(told["percent"]) if told["percent"] else None
    return found
