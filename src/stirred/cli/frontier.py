"""Draw risk against error over a family of releases of one census.

  stirred frontier plan.toml --out frontier/
  stirred frontier plan.toml --rates 1/100 1/20 1/2 --rho 1/10 1 10 --out frontier/

Every [[mechanism]] of the plan is released by itself, and held against the census: --rates are tried for every
swap rate, --rho for every total ρ² (the usual zCDP ρ), --epsilon for every total ε and for the largest loss of stirring.
One that continues another (given = "…") is released with it.
The plan's tables measure the error. Results are internal. An interrupted run goes on with the same command.
"""

import argparse
from pathlib import Path

from stirred.cli.assess import add_attack_arguments, settings_of
from stirred.cli.options import load_key
from stirred.cli.output import console, print_json, show_progress, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("plan", help="the plan, with one [[mechanism]] for each method")
    parser.add_argument("--rates", nargs="+", default=[], metavar="P", help='swap rates, such as "1/20"')
    parser.add_argument("--rho", nargs="+", default=[], metavar="RHO", help='total ρ², such as "1/2"')
    parser.add_argument("--epsilon", nargs="+", default=[], metavar="EPSILON", help='total ε, such as "8"')
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write; must not exist")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key)")
    add_attack_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Release, attack, draw."""
    from stirred.publish import load
    from stirred.publish.assessment import DoubtSettings, choose_common_headline
    from stirred.publish.check import require_room
    from stirred.publish.frontier import (
        build_family,
        common_errors,
        draw_frontier,
        list_points,
        require_tables,
        write_guarantee,
    )
    from stirred.report.risk import write_number

    out, plan = Path(arguments.out), load(arguments.plan)
    require_room(out)
    require_tables(plan)
    members = build_family(plan, rates=arguments.rates, rho_squared=arguments.rho, epsilon=arguments.epsilon)
    settings = DoubtSettings(**settings_of(arguments))  # type: ignore[arg-type]
    truth, key = plan.checked_census(), load_key(out, arguments.key)
    with show_progress(quiet=arguments.json) as progress:
        found = draw_frontier(members, truth, out, key=key, settings=settings, progress=progress)
    if arguments.json:
        print_json({"folder": str(out), "report": str(out / "report.html"), **list_points(members, found)})
        return 0
    rows = [
        [
            member.name,
            write_guarantee(one.specification),
            "–" if error is None else f"{error:,.3g}",
            "–" if risk is None or risk.value is None else write_number(risk.value, risk.unit),
        ]
        for member, one, error, risk in zip(
            members, found, common_errors(found), choose_common_headline(found), strict=True
        )
    ]
    named = next((risk.name for risk in choose_common_headline(found) if risk is not None), "risk")
    console().print(table("Risk against error", ["release", "guarantee", "mean absolute error", named], rows))
    console().print(f"open {out / 'report.html'}: computed with the confidential data, do not publish")
    return 0
