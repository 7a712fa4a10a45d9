"""The workbench as one object: its folder, its history, its jobs and its answers; every screen is given it."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.publish.packet import Packet
from stirred.publish.plan.description import Plan, parse
from stirred.roots import reading_below
from stirred.web.document import Document, document_of
from stirred.web.jobs import Job, JobQueue
from stirred.web.promise import GroundCache, PromiseCalculator, PromiseGround
from stirred.web.security import Session
from stirred.web.workspace import ChosenData, DataChoice, PlanHistory, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """The workbench that every screen is given: folder, history, jobs and answers."""

    workspace: Workspace
    session: Session
    history: PlanHistory
    data: DataChoice
    line: JobQueue
    stating: PromiseCalculator
    grounds: GroundCache
    most_upload: int  # bytes

    @staticmethod
    def of(folder: Path, *, roots: tuple[Path, ...] = (), most_upload: int = 1 << 30) -> "Workbench":
        """Open the workbench in a folder; start nothing yet."""
        workspace = Workspace.of(folder, roots=roots)
        return Workbench(
            workspace=workspace,
            session=Session.fresh(),
            history=PlanHistory.of(workspace.plans, workspace.lock),
            data=DataChoice(workspace),
            line=JobQueue(workspace.jobs, lock=workspace.lock, roots=workspace.readable_folders),
            stating=PromiseCalculator(workspace),
            grounds=GroundCache(),
            most_upload=most_upload,
        )

    def require_data(self) -> ChosenData:
        """Return the chosen data; refuse where none are chosen."""
        found = self.data.read_choice()
        if found is None:
            raise InputError(
                "no data are chosen",
                why="a promise is about a census, and none was named, uploaded or made yet",
                fix="choose data first",
            )
        return found

    def ground(self) -> PromiseGround:
        """Return what promises are stated on."""
        return self.grounds.of(self.require_data())

    def warm(self) -> None:
        """Make what promises are stated on before a person asks, where data are chosen; a mistake is told when they ask."""
        with suppress(StirredError, OSError), reading_below(self.workspace.readable_folders):
            chosen = self.data.read_choice()
            if chosen is not None:
                ground = self.grounds.of(chosen)
                if self.history.text():
                    self.stating.answer(self.document(), ground, largest=chosen.largest)

    def document(self) -> Document:
        """Return the document of the current plan; refuse where there is none."""
        text = self.history.text()
        if not text:
            raise InputError(
                "there is no plan yet", why="no promise was chosen", fix="choose a method in the step Method"
            )
        return document_of(text)

    def plan(self, number: int | None = None) -> Plan:
        """Return a version of the plan, as a run reads it."""
        return parse(self.history.text(number), folder=self.workspace.plans)

    def plan_of(self, text: str) -> Plan:
        """Return the plan of a text, as a run would read it."""
        return parse(text, folder=self.workspace.plans)

    def census_from_here(self) -> str:
        """Return the path of the census from the folder of the workbench, as commands name it."""
        return os.path.relpath(self.require_data().file, self.workspace.folder)

    def packet(self, number: int) -> Packet:
        """Return the packet of a run; refuse where there is none."""
        folder = self.workspace.packets / f"{number:04}"
        if not (folder / "public").is_dir():
            raise InputError(
                "there is no such packet", why="no run of this number has ended", fix="choose one of the list"
            )
        return Packet(folder)

    def next_number(self) -> int:
        """Return the number of the next job; skip numbers that packets or reports of the shell have used."""
        made = [*self.workspace.packets.iterdir(), *self.workspace.reports.iterdir()]
        used = {int(path.name[:4]) for path in made if path.name[:4].isdecimal()}
        number = self.line.next_number()
        while number in used:
            number += 1
        return number

    def packets(self) -> list[int]:
        """Return the numbers of all packets, the newest first."""
        names = (path.name for path in self.workspace.packets.iterdir() if (path / "public").is_dir())
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def latest(self, kind: str, *, plan: int = 0) -> Job | None:
        """Return the newest job of a kind, of a version of the plan if one is given; None if there is none."""
        found = [job for job in self.line.all() if job.kind == kind and (not plan or job.plan == plan)]
        return found[-1] if found else None
