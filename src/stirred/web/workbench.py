"""The workbench as one object: its folder, its history, its jobs and its answers; every screen is given it."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.publish.packet import Packet
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import parse
from stirred.roots import reading_below
from stirred.web.forms.document import Document, document_of
from stirred.web.jobs.job import Job
from stirred.web.jobs.line import JobLine
from stirred.web.server.session import Session
from stirred.web.stating.answer import Stating
from stirred.web.stating.ground import GroundCache, StatedGround
from stirred.web.workspace.data import ChosenData, DataChoice
from stirred.web.workspace.folder import Workspace
from stirred.web.workspace.history import PlanHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """All that a screen needs."""

    workspace: Workspace
    session: Session
    history: PlanHistory
    data: DataChoice
    line: JobLine
    stating: Stating
    grounds: GroundCache
    most_upload: int  # bytes

    @staticmethod
    def of(folder: Path, *, roots: tuple[Path, ...] = (), most_upload: int = 1 << 30) -> "Workbench":
        """The workbench in a folder; nothing is started yet."""
        workspace = Workspace.of(folder, roots=roots)
        return Workbench(
            workspace=workspace,
            session=Session.fresh(),
            history=PlanHistory.of(workspace.plans, workspace.lock),
            data=DataChoice(workspace),
            line=JobLine(workspace.jobs, lock=workspace.lock, roots=workspace.allowed),
            stating=Stating(workspace),
            grounds=GroundCache(),
            most_upload=most_upload,
        )

    def chosen(self) -> ChosenData:
        """The chosen data; refused where there are none."""
        found = self.data.chosen()
        if found is None:
            raise InputError(
                "no data are chosen",
                why="a promise is about a census, and none was named, uploaded or made yet",
                fix="choose data first",
            )
        return found

    def ground(self) -> StatedGround:
        """What promises are stated on."""
        return self.grounds.of(self.chosen())

    def warm(self) -> None:
        """Make what promises are stated on before a person asks, where data are chosen; a mistake is told when they ask."""
        with suppress(StirredError, OSError), reading_below(self.workspace.allowed):
            chosen = self.data.chosen()
            if chosen is not None:
                ground = self.grounds.of(chosen)
                if self.history.text():
                    self.stating.answer(self.document(), ground, largest=chosen.largest)

    def document(self) -> Document:
        """The current plan; refused where there is none."""
        text = self.history.text()
        if not text:
            raise InputError(
                "there is no plan yet", why="no promise was chosen", fix="choose a method in the step Promise"
            )
        return document_of(text)

    def plan(self, number: int | None = None) -> Plan:
        """A version of the plan, as a run reads it."""
        return parse(self.history.text(number), folder=self.workspace.plans)

    def plan_of(self, text: str) -> Plan:
        """The plan of a text, as a run would read it."""
        return parse(text, folder=self.workspace.plans)

    def census_from_plans(self) -> str:
        """The census as plans name it."""
        return os.path.relpath(self.chosen().file, self.workspace.plans)

    def census_from_here(self) -> str:
        """The census as a command in the folder of the workbench names it."""
        return os.path.relpath(self.chosen().file, self.workspace.folder)

    def packet(self, number: int) -> Packet:
        """The packet of a run; refused where there is none."""
        folder = self.workspace.packets / f"{number:04}"
        if not (folder / "public").is_dir():
            raise InputError(
                "there is no such packet", why="no run of this number has ended", fix="choose one of the list"
            )
        return Packet(folder)

    def next_number(self) -> int:
        """The number of the next job; one that a command of the shell has used for a packet or a report is left out."""
        made = [*self.workspace.packets.iterdir(), *self.workspace.reports.iterdir()]
        used = {int(path.name[:4]) for path in made if path.name[:4].isdecimal()}
        number = self.line.next_number()
        while number in used:
            number += 1
        return number

    def packets(self) -> list[int]:
        """The numbers of all packets, the newest first."""
        names = (path.name for path in self.workspace.packets.iterdir() if (path / "public").is_dir())
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def latest(self, kind: str, *, plan: int = 0) -> Job | None:
        """The newest job of a kind, of a version of the plan if one is given."""
        found = [job for job in self.line.all() if job.kind == kind and (not plan or job.plan == plan)]
        return found[-1] if found else None
