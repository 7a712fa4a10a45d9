"""Find where two methods meet: the ρ² or swap rate of the second at which one attack finds as many people as in the first.

  stirred equate swap.toml topdown.toml
  stirred equate swap.toml topdown.toml --census census.toml --area block --known sex age --secret race hispanic
  stirred equate a.toml b.toml --runs 10 --json

Each plan has one mechanism; the setting of the second is turned. The answer is heuristic, for this attack and this census:
it proves nothing about other attacks. It is computed with the confidential records, so it is internal.
"""

import argparse
from typing import TYPE_CHECKING

from stirred.cli.output import console, print_json, show_progress, table
from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.publish.equate import Success
    from stirred.publish.plan.description import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("first", help="the plan of the method that stays as it is")
    parser.add_argument("second", help="the plan of the method whose setting is turned")
    parser.add_argument("--census", metavar="CENSUS", help="census.toml (default: that of the first plan)")
    parser.add_argument(
        "--record-type", default="", metavar="NAME", help="the records that are attacked (default: persons)"
    )
    parser.add_argument(
        "--area", default="", metavar="NAME", help="the area that the attacker knows (default: the smallest)"
    )
    parser.add_argument("--known", nargs="+", metavar="NAME", help="the variables that the attacker knows")
    parser.add_argument(
        "--secret", nargs="+", metavar="NAME", help="the variables that the attacker wants to learn"
    )
    parser.add_argument("--runs", type=int, default=5, help="releases for each setting (default: 5)")
    parser.add_argument("--seed", type=int, default=1, help="the number of the keys for tests (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Attack releases of both methods, and print where they meet."""
    from stirred.census import read
    from stirred.publish import load
    from stirred.publish.equate import HEURISTIC, equate, exposed_recall

    plans = [load(arguments.first), load(arguments.second)]
    census = read(arguments.census) if arguments.census else _same_census(plans)
    for plan in plans:
        if len(plan.mechanisms) != 1:
            raise InputError(
                f"the plan {plan.title!r} has {len(plan.mechanisms)} mechanisms",
                why="one method is compared with one other",
                fix="write a plan for each method",
            )
    chosen = exposed_recall(
        record_type=arguments.record_type,
        area=arguments.area,
        known=arguments.known,
        secret=arguments.secret,
        seed=arguments.seed,
    )
    first, second = (plan.mechanisms[0] for plan in plans)
    with show_progress(quiet=arguments.json) as progress:
        found = equate(
            first, second, census, attack=chosen, runs=arguments.runs, seed=arguments.seed, progress=progress
        )
    if arguments.json:
        tried = [_row(item) for item in found.tried]
        print_json(
            {
                "measure": found.measure,
                "about": found.about,
                "first": _row(found.first),
                "name": found.name,
                "setting": None if found.setting is None else float(found.setting),
                "low": None if found.low is None else float(found.low),
                "high": None if found.high is None else float(found.high),
                "tried": tried,
                "note": HEURISTIC,
                "because": found.because,
                "internal": True,
            }
        )
        return 0
    rows = [["first", found.first.budget, *_format_row(found.first)]]
    rows += [[f"{found.name} = {float(s.setting or 0):.4g}", s.budget, *_format_row(s)] for s in found.tried]
    console().print(table(found.measure, ["method", "budget", "success", "interval"], rows))
    console().print(f"about: {found.about}")
    console().print(found.words)
    console().print("computed with the confidential data, do not publish")
    return 0


def _same_census(plans: "list[Plan]") -> "Census":
    one, two = ((plan.folder / plan.census_file).resolve() for plan in plans)
    if one != two:
        raise InputError(
            "the two plans name two censuses",
            why="methods are compared on one census",
            fix="name it: --census census.toml",
        )
    return plans[0].census().check(invalid=plans[0].invalid)


def _row(item: "Success") -> dict[str, object]:
    return {
        "setting": None if item.setting is None else float(item.setting),
        "budget": item.budget,
        "value": item.value,
        "low": item.low,
        "high": item.high,
        "runs": item.runs,
    }


def _format_row(item: "Success") -> list[str]:
    return [f"{item.value:.3f}", f"{item.low:.3f} to {item.high:.3f}"]
