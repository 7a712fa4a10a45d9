"""Show a packet: its promise, its numbers and reports, its files with checksums, and its download."""

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from stirred.errors import InputError
from stirred.publish.packet.checksums import list_entries, verify
from stirred.publish.packet.lookup import read_labels
from stirred.web import commands
from stirred.web.forms import AttackerForm, last_text
from stirred.web.pages import bench_of, form_of, number_of, page
from stirred.web.security import REPORT_POLICY
from stirred.web.workbench import Workbench

# Look: what a packet promises and how good its numbers are, as its own public report says it.

DOUBTS = ("utility", "attack", "universe", "audit")
REPORTS = {"public": "public/report.html", "internal": "internal/report.html", "card": "public/card.html"}

REPORT_SUFFIXES = (".html", "-assessed/report.html", "-frontier/report.html")  # after the number of a job


def look_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/look/{number}", look),
        Route("/look/{number}/report/{part}", packet_report),
        Route("/look/{number}/assess", assess, methods=["POST"]),
        Route("/reports/{number}", made_report),
    ]


def look(request: Request) -> Response:
    """Show the public report, the checks of exact numbers, and the assessments made so far."""
    bench, number = bench_of(request), number_of(request)
    packet = bench.packet(number)
    attacker = AttackerForm.propose(bench.require_data().schema)
    return page(
        request,
        "look.html.j2",
        title=f"Packet {number}",
        step="look",
        shown=[
            _assessing(bench, number, bench.next_number(), DOUBTS[:2], attacker),
        ],
        number=number,
        receipt=packet.receipt(),
        checks=packet.checks(),
        levels=read_labels(packet.folder),
        parts=[name for name, place in REPORTS.items() if (packet.folder / place).is_file()],
        assessed=[
            one for one in bench.line.all() if one.kind == "assess" and f"packets/{number:04}" in one.words
        ],
        doubts=DOUBTS,
        attacker=attacker,
        record_types=list(bench.require_data().schema.record_types),
        packets=bench.packets(),
        read=bench.require_data().read,
    )


def packet_report(request: Request) -> Response:
    """Return a report of a packet, under a policy by which it can call nothing of the workbench."""
    bench, part = bench_of(request), str(request.path_params["part"])
    packet = bench.packet(number_of(request))
    if part not in REPORTS:
        raise InputError("there is no such report", why="a packet has three", fix="choose one of the list")
    return _frame_report((packet.folder / REPORTS[part]).read_bytes())


def made_report(request: Request) -> Response:
    """Return the report of a comparison, an assessment or a frontier."""
    bench = bench_of(request)
    job = bench.line.job(number_of(request))
    places = (f"{job.number:04}{place}" for place in REPORT_SUFFIXES)
    found = [path for place in places if (path := bench.workspace.reports / place).is_file()]
    if not found:
        raise InputError(
            "there is no report yet", why="the job has not ended", fix="wait for it in the step Run"
        )
    return _frame_report(found[0].read_bytes())


def assess(request: Request) -> Response:
    """Let a packet be held against the truth; the result is internal."""
    bench, number = bench_of(request), number_of(request)
    bench.packet(number)
    asked = [doubt for doubt in DOUBTS if doubt in form_of(request).get("only", ())]
    if not bench.require_data().read or not asked or last_text(form_of(request), "internal") != "on":
        raise InputError(
            "this assessment cannot begin",
            why="it reads the records: they must be open, the result is internal, and something must be asked",
            fix="let the records be read in the step Data, tick what to look into, and that the result is internal",
        )
    attacker = AttackerForm.of(form_of(request), bench.require_data().schema)
    with bench.line.lock:
        mine = bench.next_number()
        words = _assessing(bench, number, mine, asked, attacker).words
        bench.line.add("assess", words, title=f"assess packet {number}", number=mine)
    return RedirectResponse(f"/look/{number}", 303)


def _assessing(
    bench: Workbench, packet: int, job: int, only: tuple[str, ...] | list[str], attacker: AttackerForm
) -> commands.ShownCommand:
    census = bench.census_from_here()
    return commands.assess(f"packets/{packet:04}", census, f"reports/{job:04}-assessed", only, attacker)


def _frame_report(content: bytes) -> Response:
    headers = {"content-security-policy": REPORT_POLICY}
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


# Packet: its files, checked against their checksums, to be downloaded as a public or an internal archive.

PARTS = ("public", "internal")
CHUNK_BYTES = 1 << 18


def packet_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/packet/{number}", packet),
        Route("/packet/{number}/download/{part}", download),
    ]


def packet(request: Request) -> Response:
    """Show what the packet holds, whether every file is as sealed, and how to make it again."""
    bench, number = bench_of(request), number_of(request)
    found = bench.packet(number)
    files = {
        part: [(entry.name, entry.path.stat().st_size) for entry in list_entries(found.folder / part)]
        for part in PARTS
        if (found.folder / part).is_dir()
    }
    return page(
        request,
        "packet.html.j2",
        title=f"Packet {number}",
        step="packet",
        shown=[*_again(bench, number), commands.verify(f"packets/{number:04}")],
        number=number,
        receipt=found.receipt(),
        findings=verify(found.folder),
        files=files,
        packets=bench.packets(),
        has_key=(bench.workspace.packets / f"{number:04}.key").is_file(),
    )


def _again(bench: Workbench, number: int) -> list[commands.ShownCommand]:
    """Return the commands that make the packet again; none where a command of the shell made it."""
    job = next((job for job in bench.line.all() if job.number == number and job.kind == "run"), None)
    if job is None:
        return []
    again = commands.run(f"plans/{job.plan:04}.toml", "again", key=f"packets/{number:04}.key")
    return [replace(again, note="Makes the same packet again: same key, same bytes.")]


def download(request: Request) -> Response:
    """Send one part of a packet as a ZIP archive, made while it is sent; it never holds the key."""
    bench, number = bench_of(request), number_of(request)
    part = str(request.path_params["part"])
    folder = bench.packet(number).folder / part
    if part not in PARTS or not folder.is_dir():
        raise InputError(
            "there is no such part",
            why="a packet has a public and an internal part",
            fix="choose one of them",
        )
    headers = {"content-disposition": f'attachment; filename="packet-{number:04}-{part}.zip"'}
    return StreamingResponse(zip_folder(folder), media_type="application/zip", headers=headers)


class Pieces:
    """A writable file that returns what was written since the last call."""

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.position = 0

    def write(self, data: bytes, /) -> int:
        """Hold a piece."""
        self.held.append(bytes(data))
        self.position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.position

    def flush(self) -> None:
        """Do nothing: pieces are taken as they come."""

    def close(self) -> None:
        """Do nothing: pieces are taken as they come."""

    def take(self) -> bytes:
        """Return what was written since the last call."""
        found, self.held = b"".join(self.held), []
        return found


def zip_folder(folder: Path) -> Iterator[bytes]:
    """Yield the plain files of a folder as a ZIP archive, in pieces; leave links out."""
    pieces = Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in list_entries(folder):
            if entry.fault:
                continue
            info = zipfile.ZipInfo(f"{folder.name}/{entry.name}", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as target, entry.path.open("rb") as source:
                while chunk := source.read(CHUNK_BYTES):
                    target.write(chunk)
                    if pieces.held:
                        yield pieces.take()
    yield pieces.take()
