"""The line of steps: what was chosen so far, and what is missing for the next one."""

from dataclasses import dataclass

from stirred.errors import StirredError
from stirred.web.workbench import Workbench


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its address, what was chosen in it, and why it cannot be done yet."""

    name: str
    title: str
    address: str
    chosen: str = ""
    missing: str = ""


def steps_of(bench: Workbench) -> list[Step]:
    """Return the seven steps, from the files of the workbench alone; read no record."""
    data = bench.data.read_choice()
    text = bench.history.text()
    packets = bench.packets()
    no_data = "" if data else "choose data first"
    no_plan = no_data or ("" if text else "choose a promise first")
    no_packet = "" if packets else (no_plan or "run the plan first")
    return [
        Step(name="data", title="Data", address="/data", chosen=_data(bench)),
        Step(name="promise", title="Promise", address="/promise", chosen=_promise(bench), missing=no_data),
        Step(name="method", title="Method", address="/method", chosen=_method(bench), missing=no_plan),
        Step(name="run", title="Run", address="/run", chosen=_runs(bench), missing=no_plan),
        Step(
            name="look",
            title="Look",
            address=f"/look/{packets[0]}" if packets else "/run",
            chosen=f"packet {packets[0]}" if packets else "",
            missing=no_packet,
        ),
        Step(
            name="compare",
            title="Compare",
            address="/compare",
            chosen=_count_noun(len(packets), "packet") if packets else "",
            missing=no_packet,
        ),
        Step(
            name="packet",
            title="Packet",
            address=f"/packet/{packets[0]}" if packets else "/run",
            chosen="ready to download" if packets else "",
            missing=no_packet,
        ),
    ]


def _data(bench: Workbench) -> str:
    data = bench.data.read_choice()
    if data is None:
        return ""
    try:
        schema = data.schema
    except StirredError:
        return "the codebook has a mistake"
    return f"{schema.label or schema.name}, {'records read' if data.read else 'codebook only'}"


def _promise(bench: Workbench) -> str:
    if not bench.history.text():
        return ""
    try:
        names = [str(one.get("name", "")) for one in bench.document()["mechanism"]]
    except StirredError:
        return "the plan has a mistake"
    return f"{', '.join(names)} (plan {bench.history.current})"


def _method(bench: Workbench) -> str:
    if not bench.history.text():
        return ""
    try:
        tables = len(bench.document().get("table", []))
    except StirredError:
        return ""
    return _count_noun(tables, "table")


def _runs(bench: Workbench) -> str:
    runs = [job for job in bench.line.all() if job.kind == "run"]
    if not runs:
        return ""
    return f"run {runs[-1].number}: {runs[-1].state}"


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
