"""Check packets.

stirred packet verify packet/            every file against its checksum; a changed byte is named
stirred packet verify copy/ --public     also refuse a copy that still holds the internal part
stirred packet compare a/ b/ --out x.html   one report on two or more packets, side by side
"""

import argparse
import sys
from pathlib import Path

from stirred.cli.output import console, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words of the command."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    verify = verbs.add_parser("verify", help="hold every file against its checksum")
    verify.add_argument("packet", help="the packet, or a copy of its public part")
    verify.add_argument("--public", action="store_true", help="refuse anything that is not public")
    verify.add_argument("--json", action="store_true", help="print one JSON document")
    compare = verbs.add_parser("compare", help="two or more packets side by side, as one report")
    compare.add_argument("packets", nargs="+", help="packets, or copies of their public parts")
    compare.add_argument("--out", required=True, metavar="FILE", help="the HTML file to write")


def run(arguments: argparse.Namespace) -> int:
    """Exit 0 when all is well, 1 when a file is not as sealed."""
    if arguments.action == "compare":
        from stirred.publish.side_by_side import write_comparison

        path = write_comparison([Path(p) for p in arguments.packets], Path(arguments.out))
        console().print(f"open {path}")
        return 0
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
