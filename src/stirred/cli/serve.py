"""The workbench: design a release by looking, in a browser on this machine.

  stirred serve                          in the folder ./workbench; prints the address to open
  stirred serve office --port 8650       another folder and port
  stirred serve --data /srv/census       may also be pointed at a census below this folder
  stirred serve --socket office.sock     listens at a Unix socket that only you may open

It listens on this machine alone. The address that is printed opens it once; from then on only that browser is answered,
until the server ends: every start has an address of its own. Plans, their history, runs and packets lie in the folder: a
server that is stopped or killed goes on where it was. Every screen shows the command and the Python that do the same.
Ctrl-C or SIGTERM closes it, with exit code 0. With --host others can reach it: the connection is not encrypted, so put a
proxy with TLS before it, and give the name that browsers use with --name. A browser does not open a Unix socket itself:
ssh -L 8642:/path/office.sock HOST leads to it, or a proxy does.
"""

import argparse
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from stirred.cli.output import console, print_json
from stirred.cli.process import StoppedBySignal
from stirred.errors import InputError

DEFAULT_PORT = 8642
BYTES_PER_UNIT = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}

MAX_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("workbench"),
        help="the folder of the workbench (default: workbench)",
    )
    parser.add_argument(
        "--port",
        type=_read_port,
        default=DEFAULT_PORT,
        help=f"the port (default: {DEFAULT_PORT}; 0: any that is free)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="folders with censuses that the workbench may be pointed at (default: the current folder)",
    )
    parser.add_argument(
        "--max-upload", default="1 GB", metavar="SIZE", help="the most that may be uploaded at once"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the interface (default: 127.0.0.1, this machine alone)"
    )
    parser.add_argument(
        "--name", nargs="+", default=[], metavar="HOST", help="other names by which browsers may call it"
    )
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="listen at a Unix socket of mode 0600, and at no port; --port is then the one that browsers name",
    )

    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _read_port(text: str) -> int:
    """Return a port number; refuse what is none."""
    if not text.isdecimal() or int(text) > MAX_PORT:
        raise InputError(
            f"there is no port {text}",
            why=f"a port is a number from 0 to {MAX_PORT}",
            fix=f"--port {DEFAULT_PORT}; or --port 0 for any that is free",
        )
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the command is asked to end."""
    from stirred._support import require_extra

    require_extra("web", why="the workbench is served with it")
    from stirred.web.server import serve
    from stirred.web.workbench import Workbench

    roots = tuple(arguments.data) or (Path.cwd(),)
    bench = Workbench.of(arguments.folder, roots=roots, most_upload=parse_size(arguments.max_upload))

    def announce(address: str) -> None:
        place = str(bench.workspace.folder)
        if arguments.json:
            print_json({"folder": place, "process": os.getpid(), "address": address})
        else:
            out = console()
            out.print(f"the workbench is in {place} (process {os.getpid()})")
            out.print(f"open {address}")
        sys.stdout.flush()

    with suppress(KeyboardInterrupt, StoppedBySignal):
        serve(
            bench,
            host=arguments.host,
            port=arguments.port,
            names=arguments.name,
            at=arguments.socket,
            told=announce,
        )
    print("the workbench is closed; a run that was under way goes on", file=sys.stderr)
    print(f"stirred serve {shlex.quote(str(arguments.folder))} opens it again", file=sys.stderr)
    return 0


def parse_size(text: str) -> int:
    """Parse a number of bytes as people write it.

    >>> parse_size("1 GB"), parse_size("500 kB"), parse_size("2000")
    (1000000000, 500000, 2000)
    """
    plain = text.strip().lower().replace(" ", "")
    unit = next((unit for unit in ("kb", "mb", "gb") if plain.endswith(unit)), "")
    number = plain.removesuffix(unit)
    if not number.isdigit() or not 0 < len(number) < 10:
        raise InputError(
            "--max-upload cannot be read", why="it is not a whole number of bytes, kB, MB or GB", fix='"1 GB"'
        )
    return int(number) * BYTES_PER_UNIT[unit]
