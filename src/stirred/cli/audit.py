"""Audit a plan: does the implementation keep its promise?

  stirred audit plan.toml                              claimed and observed loss, with a verdict
  stirred audit plan.toml --runs 1000000 --seconds 600 more runs: a sharper lower bound
  stirred audit plan.toml --method exact               only the exact loss, where the mechanism states its law
  stirred audit plan.toml --json                       {claimed, observed_lower, exact, verdict: pass|fail|unknown, …}

Nothing confidential is read: a few records are invented from the schema. All data sets with the same invariants are
listed, and the mechanism is held against its claim, per unit of the input premetric, in three ways:

  exact     the largest loss over all pairs of these data sets, in fractions, with the pair where it occurs
  sampled   a lower bound from runs of the real release on one pair, and agreement of what it shows with the exact law
  one-run   a lower bound from one release in which coins exchange the values of many pairs of records

Mechanisms that add noise are audited by it: released numbers minus true ones, against the law that is claimed; and by
runs on neighbouring data sets, which show what one record changes. Order of rows, notes, names, metadata are compared too.

  pass      every part passes: loss and law, or noise and sensitivity; order, texts and repeated runs
  fail      the loss is above the claim, or a part fails; by chance alone with probability 1e-6
  unknown   a part was not tested (it is named), the time or the runs did not suffice, or the mechanism claims nothing
"""

import argparse
from typing import TYPE_CHECKING

from stirred.cli.output import console, print_json, show_progress, table

if TYPE_CHECKING:
    from stirred.assess.audit import AuditResult, WorstPair


MAX_VARIABLES_SHOWN = 6  # variables of a pair of data sets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("plan", help="the plan (see stirred plan new)")
    parser.add_argument(
        "--runs", type=int, default=20_000, help="runs on each data set of a pair (default: 20000)"
    )
    parser.add_argument(
        "--records", type=int, default=4, help="invented records of one universe, 2 to 6 (default: 4)"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the lower bound that is shown (default: 0.95)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="after which what is not known stays unknown (default: 60)",
    )
    parser.add_argument(
        "--method",
        action="append",
        choices=("exact", "sampled", "one-run"),
        help="only this one; may be repeated (default: all)",
    )
    parser.add_argument(
        "--on-confidential-data",
        action="store_true",
        help="audit the records of the census itself, knowing that what is printed is then confidential",
    )
    parser.add_argument(
        "--require-pass",
        action="store_true",
        help="exit with 1 unless the verdict is pass, for automatic checks",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Audit, and say what was found; a fail is a problem, with exit code 1."""
    from stirred.assess.audit.entry import AUDIT_METHODS
    from stirred.publish import load
    from stirred.publish.assessment import audit_plan

    plan = load(arguments.plan)
    with show_progress(quiet=arguments.json) as progress:
        found = audit_plan(
            plan,
            plan.census(),
            runs=arguments.runs,
            confidence=arguments.confidence,
            records=arguments.records,
            seconds=arguments.seconds,
            methods=tuple(arguments.method or AUDIT_METHODS),
            on_records=arguments.on_confidential_data,
            progress=progress,
        )
    code = int(found.verdict == "fail" or (arguments.require_pass and found.verdict != "pass"))
    if arguments.json:
        print_json({"confidential": arguments.on_confidential_data, **found.as_json()})
        return code
    out = console()
    heads = ["mechanism", "claimed", "observed, at least", "exact", "verdict"]
    rows = [
        [label, _loss(one, one.claimed), _loss(one, one.observed_lower), _loss(one, one.exact), one.verdict]
        for label, one in zip(found.labels, found.results, strict=True)
    ]
    out.print(table("Loss per unit", heads, rows))
    for label, one in zip(found.labels, found.results, strict=True):
        out.print(f"{label}: {one.verdict}: {one.reason}")
        if one.scope:
            out.print(f"  {one.scope}")
        for test in one.tests:
            if test.finding != one.reason:
                out.print(f"  {test.name}: {test.outcome}: {test.finding}")
        if one.worst is not None:
            out.print(_pair(one.worst))
    whose = "the plan's own records: confidential" if arguments.on_confidential_data else "invented records"
    out.print(
        f"on {whose}; bounds hold with confidence {arguments.confidence:.0%}, and a correct mechanism fails with "
        f"probability {found.results[0].false_alarm:.0e} at most"
    )
    return code


def _loss(result: "AuditResult", value: float | None) -> str:
    if value is None:
        return "–"
    symbol = "ε" if result.unit == "epsilon" else "ρ²"
    return f"{symbol} = ∞" if value == float("inf") else f"{symbol} = {value:.4f}"


def _pair(worst: "WorstPair") -> str:
    """Describe the records in which two data sets differ, with the variables that tell them apart."""
    lines = [f"  the pair with the largest loss, at distance {worst.distance} (invented):"]
    changed = [
        [row for row in one if row not in other]
        for one, other in ((worst.first, worst.second), (worst.second, worst.first))
    ]
    rows = [row for part in changed for row in part]
    varying = [i for i in range(len(worst.columns)) if len({row[i] for row in rows}) > 1][
        :MAX_VARIABLES_SHOWN
    ]
    for name, part, chance in zip(("first", "second"), changed, worst.chances, strict=True):
        told = "; ".join(" ".join(f"{worst.columns[i]}={row[i]}" for i in varying) for row in part)
        lines.append(f"    {name}: {told or 'no such record'}; the output has probability {chance:.3g}")
    return "\n".join(lines)
