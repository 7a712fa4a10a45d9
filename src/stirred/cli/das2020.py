"""The products of the 2020 census on one census, as one composed release.

  stirred das2020 census.toml --check              what would be promised, product by product; nothing is released
  stirred das2020 census.toml --out packet         TopDown (PL, DHC), SafeTab-P, SafeTab-H, PHSafe: one packet, one promise
  stirred das2020 census.toml --out swapped --swapped
                                                   the same tables from one swapped file, whose promise is that of the swap
  stirred packet compare packet swapped --out both.html
                                                   both beside each other, with the numbers that contradict each other
  stirred plan new das2020 --census census.toml    the plan that this command runs, to edit

--light has a DHC with fewer variables and the same budgets: the full one takes minutes. An interrupted run is taken up by
the same command. The key is kept outside the packet: whoever has it can undo the noise.
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.mechanism import add_places, add_ways, find_census_file, release
from stirred.cli.options import open_engine
from stirred.cli.output import console, print_json, table
from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.publish import Plan


NAME = "das2020"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_places(parser)
    parser.add_argument(
        "--swapped", action="store_true", help="swap once, and tabulate every product from the swapped file"
    )
    parser.add_argument("--light", action="store_true", help="a DHC with fewer variables, for a rehearsal")
    parser.add_argument(
        "--codes",
        type=Path,
        metavar="DIR",
        help="the folder of code lists (default: invented ones, of Stirred)",
    )
    add_ways(parser)


def run(arguments: argparse.Namespace) -> int:
    """State the promise product by product; or make the plan and run it."""
    from stirred.publish.check import require_room
    from stirred.publish.named_plans import Choices, find_named_plan
    from stirred.publish.plan.description import parse, with_invalid, with_language, with_small_effect
    from stirred.publish.plan.proposal import read_schema

    path = find_census_file(arguments.census)
    codes = "" if arguments.codes is None else os.path.relpath(arguments.codes, path.parent)
    choices = Choices(
        census=path.name,
        schema=read_schema(path) if arguments.swapped else None,
        swapped=arguments.swapped,
        light=arguments.light,
        codes=codes,
    )
    plan = parse(find_named_plan(NAME).text(choices), folder=path.parent)
    plan = with_language(with_invalid(plan, arguments.invalid), arguments.language)
    plan = with_small_effect(plan, arguments.accept_small_effect)
    if arguments.check:
        return _print_promise(plan, arguments)
    if arguments.out is None:
        raise InputError(
            "there is no place for the packet",
            why="--out is not given",
            fix="--out packet/, or --check to see only the promise",
        )
    require_room(arguments.out)
    return release(plan, arguments.out, arguments)


def _print_promise(plan: "Plan", arguments: argparse.Namespace) -> int:
    from stirred.publish.composition import state_promise
    from stirred.publish.documents import tabulate_budgets
    from stirred.spec.card import Card

    with open_engine(arguments) as engine:
        promise = state_promise(plan, plan.checked_census(engine), engine)
    if arguments.json:
        shares = [
            {
                "product": share.label,
                "unit": share.unit,
                "counted": share.counted.exact,
                "published": share.published.exact,
                "group_privacy": share.bureau.exact,
                "proved": share.proved.exact,
            }
            for share in promise.shares
        ]
        whole = {
            "specification": str(promise.whole),
            "published": str(promise.published),
            "group_privacy": str(promise.bureau),
        }
        print_json({**whole, "products": shares})
        return 0
    shown = console()
    shown.print(Card(promise.whole, language=arguments.language or "en").text())
    for part in tabulate_budgets(plan, promise).parts:
        rows = [[str(value) for value in row] for row in part.rows]
        shown.print(table(str(part.caption), list(part.columns), rows))  # type: ignore[union-attr]
    return 0
