"""Check packets.

stirred packet verify packet/            every file against its checksum; a changed byte is named
stirred packet verify copy/ --public     also refuse a copy that still holds the internal part
stirred packet compare a/ b/ --out x.html   one report on two or more packets, side by side
stirred packet contents a/ [b/]          what records and tables say (SHA-256), whoever wrote the files; two: do they agree
"""

import argparse
import sys
from pathlib import Path

from stirred.cli.terminal.output import console, print_json
from stirred.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    verify = verbs.add_parser("verify", help="compare every file with its checksum")
    verify.add_argument("packet", help="the packet, or a copy of its public part")
    verify.add_argument("--public", action="store_true", help="refuse anything that is not public")
    verify.add_argument("--json", action="store_true", help="print one JSON document")
    compare = verbs.add_parser("compare", help="two or more packets side by side, as one report")
    compare.add_argument("packets", nargs="+", help="packets, or copies of their public parts")
    compare.add_argument("--out", required=True, metavar="FILE", help="the HTML file to write")
    told = verbs.add_parser(
        "contents", help="digests of what records and tables say, whoever wrote the files"
    )
    told.add_argument("packets", nargs="+", help="a packet, or two that should say the same")
    told.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Exit 0 when all is well, 1 when a file is not as sealed."""
    if arguments.action == "compare":
        from stirred.publish.compare.side_by_side import write_comparison

        path = write_comparison([Path(p) for p in arguments.packets], Path(arguments.out))
        console().print(f"open {path}")
        return 0
    if arguments.action == "contents":
        return _contents([Path(p) for p in arguments.packets], json=arguments.json)
    from stirred.publish import verify

    findings = verify(Path(arguments.packet), public=arguments.public)
    if arguments.json:
        print_json(
            {
                "packet": arguments.packet,
                "good": not findings,
                "findings": [{"path": f.path, "state": f.state} for f in findings],
            }
        )
    elif findings:
        for finding in findings:
            print(f"{finding.state}: {finding.path}", file=sys.stderr)
    else:
        console().print("every file is as it was sealed")
    return 1 if findings else 0


def _contents(folders: list[Path], *, json: bool) -> int:
    """Exit 0 when all packets say the same, 1 when they do not."""
    from stirred.publish.packet import Packet

    if len(folders) > 2:
        raise InputError(
            "contents takes one packet or two",
            why=f"{len(folders)} are given",
            fix="compare them two at a time",
        )
    told = [Packet(folder).contents() for folder in folders]
    names = sorted({name for one in told for name in one})
    apart = [name for name in names if len({one.get(name) for one in told}) > 1]
    if json:
        print_json({"contents": dict(zip(map(str, folders), told, strict=True)), "different": apart})
        return int(bool(apart))
    shown = console()
    for name in names:
        digests = list(dict.fromkeys(one.get(name, "not there") for one in told))
        shown.print(f"{name}: " + " ≠ ".join(digests))
    if len(folders) == 2:
        shown.print("they say the same" if not apart else f"{len(apart)} differ: {', '.join(apart)}")
    return int(bool(apart))
