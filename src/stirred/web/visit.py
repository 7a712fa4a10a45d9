"""A guided first visit: the real screens with an invented census, and one sentence of explanation on each."""

from dataclasses import dataclass
from typing import Literal

from stirred.web.workbench import Workbench
from stirred.web.workspace import CODEBOOK, read_document, write_document

VISIT_HOUSEHOLDS = 2_000  # of the demo census of a visit: made and swapped in seconds
ADDRESSES = ("/data", "/promise", "/promise", "/run", "/look")
TITLES = ("Data", "Method", "Promise", "Run", "Look")
SENTENCES = (
    "These households are invented; the codebook below says what a record looks like, and nothing else is read.",
    "A method decides how a number may differ from the truth: the one that is ticked lets households exchange places.",
    "Move the slider: the more households change places, the less anyone can learn, and the further counts are off.",
    "A run draws the swap with a fresh key, checks that every exact number stayed the same, and writes a packet here.",
    "This is what a reader gets: who is protected and how well, what is exact, and how far each table may be off.",
)
STEPS = {"data": (0,), "promise": (1, 2), "run": (3,), "look": (4,)}  # screen → stops of the visit on it
Action = Literal["", "wait", "link", "method", "promise", "run", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One stop of the visit: its number, its sentence, and what its button does."""

    number: int
    title: str
    sentence: str
    action: Action
    button: str = ""
    address: str = ""
    plan: int = 0
    total: int = len(TITLES)


def can_visit(bench: Workbench) -> bool:
    """Return whether this workbench has no data of its own, or those of a visit."""
    return bench.data.read_choice() is None or _is_census_of_visit(bench)


def _is_census_of_visit(bench: Workbench) -> bool:
    made = bench.latest("synth")
    chosen = bench.data.read_choice()
    own = bench.workspace.own_census / CODEBOOK
    return made is not None and chosen is not None and chosen.file == own


def set_visit(bench: Workbench, *, on: bool) -> None:
    """Begin or end the visit; the choice stands in a file, so that it outlives the server."""
    write_document(bench.workspace.folder / "visit.json", {"on": on})


def is_visited(bench: Workbench) -> bool:
    """Return whether a visit is under way."""
    return read_document(bench.workspace.folder / "visit.json").get("on") is True


def find_stop(bench: Workbench, screen: str) -> Stop | None:
    """Return the stop of the visit that a screen is; None where no visit is under way."""
    if not is_visited(bench):
        return None
    next_one = _find_next(bench)
    here = [number for number in STEPS.get(screen, ()) if number <= next_one]
    if not here:
        return Stop(
            number=next_one + 1,
            title=TITLES[next_one],
            sentence="The visit goes on where you left it.",
            action="link",
            button=f"Go on with step {next_one + 1}: {TITLES[next_one]}",
            address=_address(bench, next_one),
        )
    number = here[-1]
    action, button = _choose_button(bench, number)
    return Stop(
        number=number + 1,
        title=TITLES[number],
        sentence=SENTENCES[number],
        action=action,
        button=button,
        address=_address(bench, min(number + 1, len(TITLES) - 1)),
        plan=bench.history.current,
    )


def _find_next(bench: Workbench) -> int:
    """Return the first stop that is not done yet, from the files of the workbench."""
    if bench.data.read_choice() is None:
        return 0
    if not bench.history.text():
        return 1
    run = bench.latest("run", plan=bench.history.current)
    if run is None:
        return 3
    return 4 if run.state == "done" else 3


def _address(bench: Workbench, number: int) -> str:
    packets = bench.packets()
    return f"/look/{packets[0]}" if number == 4 and packets else ADDRESSES[number]


def _choose_button(bench: Workbench, number: int) -> tuple[Action, str]:
    if number == 0:
        made = bench.latest("synth")
        if made is not None and made.state in ("failed", "cancelled", "interrupted"):
            return "", f"the demo census is {made.state}: see below"
        ready = bench.data.read_choice() is not None and (made is None or made.ended)
        return ("link", "Next: choose a method") if ready else ("wait", "the demo census is being made …")
    if number == 1:
        return "method", "Next: propose a plan with this method"
    if number == 2:
        return "promise", "Next: keep this promise"
    if number == 3:
        run = bench.latest("run", plan=bench.history.current)
        if run is None:
            return "run", f"Next: run plan {bench.history.current}"
        if run.state == "done":
            return "link", "Next: look at the packet"
        if run.state in ("failed", "cancelled", "interrupted"):
            return "", f"the run is {run.state}: see below"
        return "wait", "the run is under way …"
    return "end", "End the visit"
