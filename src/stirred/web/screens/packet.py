"""Packet: its files, checked against their checksums, to be downloaded as a public or an internal archive."""

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from stirred.errors import InputError
from stirred.publish.packet.checksums import verify
from stirred.publish.packet.walk import entries
from stirred.web.jobs import commands
from stirred.web.pages import bench_of, number_of, page
from stirred.web.workbench import Workbench

PARTS = ("public", "internal")
CHUNK = 1 << 18


def routes() -> list[Route]:
    """The addresses of this screen."""
    return [
        Route("/packet/{number}", packet),
        Route("/packet/{number}/download/{part}", download),
    ]


def packet(request: Request) -> Response:
    """What the packet holds, whether every file is as it was sealed, and how it is made again."""
    bench, number = bench_of(request), number_of(request)
    found = bench.packet(number)
    files = {
        part: [(entry.name, entry.path.stat().st_size) for entry in entries(found.folder / part)]
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
    """How the packet is made again; one that a command of the shell made has no run here."""
    job = next((job for job in bench.line.all() if job.number == number and job.kind == "run"), None)
    if job is None:
        return []
    again = commands.run(f"plans/{job.plan:04}.toml", "again", key=f"packets/{number:04}.key")
    return [replace(again, note="Makes the same packet again: same key, same bytes.")]


def download(request: Request) -> Response:
    """One part of a packet as a ZIP archive that is made while it is sent; the key is never in it."""
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
    return StreamingResponse(zipped(folder), media_type="application/zip", headers=headers)


class Pieces:
    """A file that gives away what was written to it."""

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.position = 0

    def write(self, data: bytes, /) -> int:
        """Hold a piece."""
        self.held.append(bytes(data))
        self.position += len(data)
        return len(data)

    def tell(self) -> int:
        """How much was written."""
        return self.position

    def flush(self) -> None:
        """Do nothing: pieces are taken as they come."""

    def close(self) -> None:
        """Do nothing: pieces are taken as they come."""

    def taken(self) -> bytes:
        """What was written since the last time."""
        found, self.held = b"".join(self.held), []
        return found


def zipped(folder: Path) -> Iterator[bytes]:
    """The plain files of a folder as a ZIP archive, in pieces; links are left out."""
    pieces = Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in entries(folder):
            if entry.fault:
                continue
            info = zipfile.ZipInfo(f"{folder.name}/{entry.name}", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as target, entry.path.open("rb") as source:
                while chunk := source.read(CHUNK):
                    target.write(chunk)
                    if pieces.held:
                        yield pieces.taken()
    yield pieces.taken()
