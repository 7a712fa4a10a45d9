"""One published number: what to quote, with its interval, and what it means.

  stirred lookup packet/ --where county=001 tenure=owned            (a level by its label or by its code)
  stirred lookup packet/ --table tenure-by-county --where county=001 tenure=owned --json

Reads only the public part of the packet.
"""

import argparse
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from stirred.cli.output import console, print_json
from stirred.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("packet", help="the packet, or a copy of its public part")
    parser.add_argument("--table", help="the table to look in (default: the one with just these variables)")
    parser.add_argument(
        "--where", nargs="+", action="extend", required=True, metavar="NAME=LEVEL", help="the cell"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Find the cell and say what it means."""
    from stirred.publish.packet.lookup import encode_cell, label_cell, list_labels, look_up

    where = {}
    for word in arguments.where:
        name, equals, level = word.partition("=")
        if not equals:
            raise InputError(
                f"{word!r} names no level",
                why="a cell is given by a level of each variable",
                fix="write NAME=LEVEL, such as county=001",
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
