"""Look up a published number; verify, sign and compare packets.

stirred packet lookup packet/ --where county=001 tenure=owned   one number: what to quote, its interval, what it means
stirred packet lookup packet/ --table tenure-by-county --where county=001 tenure=owned --json
stirred packet verify packet/            every file against its checksum; a changed byte is named
stirred packet verify copy/ --public     also refuse a copy that still holds the internal part
stirred packet verify p/ --signer o.pub  also whether the owner of this public key signed it
stirred packet new-signer office.pem     make a signing key, and its public half office.pub
stirred packet sign packet/ --signer office.pem   sign the public part, and the internal one where there is one
stirred packet compare a/ b/ --out x.html   one report on two or more packets, side by side
stirred packet contents a/ [b/]          what records and tables say (SHA-256), whoever wrote the files; two: do they agree

lookup reads only the public part; a level is given by its label or by its code.
"""

import argparse
import sys
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from stirred.cli.output import console, escape_line, print_json
from stirred.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_lookup(verbs.add_parser("lookup", help="one published number: which to quote, with its interval"))
    verify = verbs.add_parser("verify", help="compare every file with its checksum")
    verify.add_argument("packet", help="the packet, or a copy of its public part")
    verify.add_argument("--public", action="store_true", help="refuse anything that is not public")
    verify.add_argument(
        "--signer", type=Path, metavar="FILE", help="the public key of who must have signed it"
    )
    verify.add_argument("--json", action="store_true", help="print one JSON document")
    signer = verbs.add_parser("new-signer", help="make a signing key (Ed25519, PEM) and its public half")
    signer.add_argument("file", type=Path, help="the private key to write, such as office.pem")
    sign = verbs.add_parser("sign", help="sign the parts of a packet")
    sign.add_argument("packet", type=Path, help="the packet, or a copy of its public part")
    sign.add_argument("--signer", type=Path, required=True, metavar="FILE", help="the private signing key")
    compare = verbs.add_parser("compare", help="two or more packets side by side, as one report")
    compare.add_argument("packets", nargs="+", help="packets, or copies of their public parts")
    compare.add_argument("--out", required=True, metavar="FILE", help="the HTML file to write")
    for action in (signer, sign, compare):
        action.add_argument("--json", action="store_true", help="print one JSON document")
    told = verbs.add_parser(
        "contents", help="digests of what records and tables say, whoever wrote the files"
    )
    told.add_argument("packets", nargs="+", help="a packet, or two that should say the same")
    told.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action; return 0 when all is well, 1 when a file is not as sealed."""
    if arguments.action == "lookup":
        return _lookup(arguments)
    if arguments.action == "compare":
        from stirred.publish.side_by_side import write_comparison

        path = write_comparison([Path(p) for p in arguments.packets], Path(arguments.out))
        return _print_result(arguments, {"report": str(path)}, f"open {path}")
    if arguments.action == "contents":
        return _contents([Path(p) for p in arguments.packets], json=arguments.json)
    if arguments.action == "new-signer":
        from stirred.publish.packet.checksums import new_signer

        public = new_signer(arguments.file)
        made = {"private": str(arguments.file), "public": str(public)}
        return _print_result(arguments, made, f"private: {arguments.file} (keep it secret)\npublic: {public}")
    if arguments.action == "sign":
        from stirred.publish.packet.checksums import sign

        signature = sign(arguments.packet, arguments.signer)
        return _print_result(arguments, {"signature": str(signature)}, f"signed: {signature}")
    return _verify(
        Path(arguments.packet), public=arguments.public, signer=arguments.signer, json=arguments.json
    )


def _print_result(arguments: argparse.Namespace, document: dict[str, str], text: str) -> int:
    """Say what was made, to a program or to a person."""
    if arguments.json:
        print_json(document)
    else:
        console().print(text)
    return 0


def _verify(packet: Path, *, public: bool, signer: Path | None, json: bool) -> int:
    """Verify a packet; return 0 when every file is as sealed and the signature, if asked for, is valid."""
    from stirred.publish.packet.checksums import is_signed, sealed_parts, unsigned_parts, verify

    parts = [name for name, _ in sealed_parts(packet)]
    unsigned = [] if signer is None else unsigned_parts(packet, signer)
    signed = None if signer is None else not unsigned
    findings = verify(packet, public=public)
    good = not findings and signed is not False
    if json:
        listed = [{"path": f.path, "state": f.state} for f in findings]
        print_json(
            {"packet": str(packet), "good": good, "signed": signed, "unsigned": unsigned, "findings": listed}
        )
        return int(not good)
    for finding in findings:
        print(f"{finding.state}: {escape_line(finding.path)}", file=sys.stderr)
    for part in unsigned:
        named = "" if signer is None else escape_line(signer.name)
        print(f"{part} is not signed by {named}: no signature, or one of somebody else", file=sys.stderr)
    if good:
        console().print("every file is as it was sealed")
        if signed:
            console().print(f"signed by the owner of this key: {', '.join(parts)}")
        elif is_signed(packet):
            console().print(
                "a signature lies there that was not checked: whether it is one, and whose, tells --signer office.pub"
            )
        else:
            console().print("unsigned: whoever changes a file can seal it again")
    return int(not good)


def _contents(folders: list[Path], *, json: bool) -> int:
    """Compare the contents of packets; return 0 when all say the same, 1 when they do not."""
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
        shown.print(f"{escape_line(name)}: " + " ≠ ".join(digests))
    if len(folders) == 2:
        shown.print("they say the same" if not apart else f"{len(apart)} differ: {', '.join(apart)}")
    return int(bool(apart))


def add_lookup(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``packet lookup``."""
    parser.add_argument("packet", help="the packet, or a copy of its public part")
    parser.add_argument("--table", help="the table to look in (default: the one with just these variables)")
    parser.add_argument(
        "--where", nargs="+", action="extend", required=True, metavar="NAME=LEVEL", help="the cell"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _lookup(arguments: argparse.Namespace) -> int:
    """Find the cell and say what it means."""
    from stirred.publish.packet.lookup import MEASURES, encode_cell, label_cell, list_labels, look_up

    where = {}
    for word in arguments.where:
        name, equals, level = word.partition("=")
        if not equals:
            raise InputError(
                f"{word!r} names no level",
                why="a cell is given by a level of each variable",
                fix="write NAME=LEVEL, such as county=001",
            )
        if name in MEASURES:
            raise InputError(
                f"{name} is a number of a cell, no variable",
                why="--where says which cell, and its numbers are what is looked up",
                fix=f"leave {name}={level} out",
            )
        where[name] = level
    packet = Path(arguments.packet)
    try:
        found = look_up(packet, encode_cell(packet, where), table=arguments.table)
    except InputError as error:
        near = {
            name: get_close_matches(where[name], words, n=2)
            for name, words in list_labels(packet, where).items()
        }
        told = [f"{name}={word}" for name, words in near.items() for word in words if word != where[name]]
        if told:
            raise InputError(error.what, why=error.why, fix=f"did you mean {' or '.join(told)}?") from None
        raise
    if arguments.json:
        print_json(found.document())
    else:
        for sentence in replace(found, where=label_cell(packet, found.where)).sentences():
            console().print(sentence)
    return 0
