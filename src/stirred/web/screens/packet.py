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
from stirred.publish.packet.walk import list_entries
from stirred.web.jobs import commands
from stirred.web.pages import bench_of, number_of, page
from stirred.web.workbench import Workbench

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
