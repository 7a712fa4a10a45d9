"""Describe a release, see its promise, tune it from utility, justify it.

  stirred plan new plan.toml                         a commented plan, from a few questions
  stirred plan new plan.toml --mechanism topdown     the same without asking
  stirred plan new --census census.toml --out plan.toml
                                                     a plan proposed from the schema, with its reasons; reads no record
  stirred plan new das2020 --census census.toml --out plan.toml
                                                     a plan that has a name: the products of the 2020 census
  stirred plan check plan.toml                       the whole promise and cost; writes nothing
  stirred plan tune plan.toml --target "mape county×tenure <= 2%"
                                                     the smallest loss that reaches it, on a stand-in
  stirred plan tune plan.toml --goal "mae hispanic×county <= 2" --goal "mae total×block <= 3" --limit "hispanic <= 14"
                                                     other shares of the same budget (TopDown), in a plan beside this one;
                                                     for goals that are met already, the smallest budget
  stirred plan rehearse plan.toml --runs 20          bias, spread and coverage over replicate runs on a stand-in
  stirred plan record plan.toml --out record.md      a decision record for an ethics or legal file
  stirred plan schema                                the JSON schema of plan.toml

plan tune and plan rehearse never look at the records of the plan's own census: they use a synthetic stand-in (or --stand-in
FILE). Choosing a parameter on confidential data would itself be a release and need accounting. With --goal nothing is run:
only the number of areas of each level is read, which is public or an invariant.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.output import console, print_json, show_progress, table
from stirred.cli.process import tell
from stirred.closed_files import write_closed_text
from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.publish import Plan


# The census that a plan is tuned and rehearsed on in the place of its own.


def add_stand_in(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name it."""
    parser.add_argument(
        "--stand-in", metavar="CENSUS", help="a public census.toml (default: the synthetic demo census)"
    )
    parser.add_argument(
        "--on-confidential-data",
        action="store_true",
        help="use the plan's own census, knowing that this is a release",
    )


def open_stand_in(arguments: argparse.Namespace, plan: "Plan") -> "tuple[Census, str]":
    """Open the census that a plan is tried on, with its name; never the plan's own unless asked for."""
    from stirred.census import Census, read, toml
    from stirred.census.synthetic import synthesise

    if arguments.on_confidential_data:
        tell("warning: tuning on the confidential file is a release that no budget here accounts for")
        return plan.census(), "the plan's own census"
    if arguments.stand_in:
        if _same_file(Path(arguments.stand_in), plan.folder / plan.census_file):
            raise InputError(
                "the stand-in is the plan's own census",
                why="choosing a setting on the records that are released is itself a release, which no budget accounts for",
                fix="name a public or synthetic census, or say --on-confidential-data",
            )
        return read(arguments.stand_in), arguments.stand_in
    made = synthesise("demo")
    census, file = Census.of(made.schema, made.tables), plan.folder / plan.census_file
    own = toml.load_schema(file).spine if file.is_file() else ()
    if not set(own) <= set(census.schema.spine):
        raise InputError(
            "the demo census cannot stand in for this census",
            why=f"its areas are {', '.join(census.schema.spine)}, those of the plan's census {', '.join(own)}",
            fix="make a stand-in from the codebook: stirred data synth --like CENSUS --out stand-in, then "
            "--stand-in stand-in/census.toml",
        )
    return census, "the synthetic demo census"


def _same_file(one: Path, other: Path) -> bool:
    """Return whether two names of a census (its folder or its census.toml) mean one file."""
    files = [place / "census.toml" if place.is_dir() else place for place in (one, other)]
    return all(file.exists() for file in files) and files[0].samefile(files[1])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = verbs.add_parser("new", help="write a commented plan")
    new.add_argument(
        "plan", nargs="?", help="the file to write, which must not exist; or the name of a plan (das2020)"
    )
    new.add_argument("--out", metavar="FILE", help="the same (default: plan.toml)")
    new.add_argument(
        "--mechanism", metavar="NAME", help="do not ask: a command of stirred --help that is one mechanism"
    )
    new.add_argument(
        "--census",
        metavar="CENSUS",
        help="propose the settings from this census.toml: from its schema and column names, never from records",
    )
    new.add_argument("--swapped", action="store_true", help="of das2020: every product from one swapped file")
    new.add_argument("--light", action="store_true", help="of das2020: a DHC with fewer variables")
    new.add_argument("--json", action="store_true", help="print one JSON document")
    check = verbs.add_parser("check", help="explain the whole promise and cost")
    check.add_argument("plan", help="the plan (see stirred plan new)")
    check.add_argument("--json", action="store_true", help="print one JSON document")
    tune = verbs.add_parser("tune", help="find the smallest loss that reaches a target")
    tune.add_argument("plan", help="the plan (see stirred plan new)")
    tune.add_argument("--target", help='such as "mape county×tenure <= 2%%"')
    tune.add_argument(
        "--goal",
        action="append",
        default=[],
        metavar="GOAL",
        help='a table and its mean absolute error, such as "mae hispanic×county <= 2", or a group in the districts where it '
        'is packed: "mae black voting age in packed districts <= 40"; may be given several times',
    )
    tune.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="LIMIT",
        help='with --goal: the largest ε of an attribute, or of a move inside a level: "hispanic <= 12"',
    )
    tune.add_argument("--out", metavar="FILE", help="with --goal: the plan to write (default: tuned-PLAN)")
    tune.add_argument(
        "--turn",
        default="",
        metavar="SETTING",
        help="with --target: which setting, where a method has several, such as rate or loss",
    )
    add_stand_in(tune)
    tune.add_argument("--runs", type=int, default=5, help="replicate runs at each rate")
    tune.add_argument("--json", action="store_true", help="print one JSON document")
    rehearse = verbs.add_parser("rehearse", help="bias, spread and coverage over replicate runs")
    rehearse.add_argument("plan", help="the plan (see stirred plan new)")
    rehearse.add_argument("--runs", type=int, default=20, help="replicate runs (default: 20)")
    add_stand_in(rehearse)
    rehearse.add_argument("--out", metavar="FILE", help="a CSV file to write")
    rehearse.add_argument("--json", action="store_true", help="print one JSON document")
    schema = verbs.add_parser("schema", help="the JSON schema of plan.toml, for editors and programs")
    schema.add_argument("--json", action="store_true", help="the same: it is a JSON document")
    record = verbs.add_parser("record", help="write a decision record")
    record.add_argument("plan", help="the plan (see stirred plan new)")
    record.add_argument("--out", metavar="FILE", help="the Markdown file to write (default: standard output)")
    record.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    actions = {
        "new": _new,
        "check": _check,
        "tune": _tune,
        "rehearse": _rehearse,
        "schema": _schema,
        "record": _record,
    }
    return actions[arguments.action](arguments)


def _new(arguments: argparse.Namespace) -> int:
    from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_registration
    from stirred.publish.plan.models import new_plan, questions

    if arguments.plan and not arguments.plan.endswith(".toml") and "/" not in arguments.plan:
        return _new_named(arguments)
    path = Path(arguments.out or arguments.plan or "plan.toml")
    if arguments.census:
        return _propose(path, arguments)
    if path.exists():
        raise InputError(
            f"{path.name} exists already", why="a plan is never overwritten", fix="choose another name"
        )
    kind = find_registration(arguments.mechanism or OWN_REGISTRATIONS[0].name)
    answers = {key: value for key, (_, value) in questions(kind).items()}
    if arguments.mechanism is None and sys.stdin.isatty() and not arguments.json:
        for key, (question, usual) in questions(kind).items():
            answers[key] = input(f"{question} [{usual}] ").strip() or usual
    text = new_plan(kind, answers)
    path.write_text(text, encoding="utf-8")
    if arguments.json:
        print_json({"plan": str(path), "files": [], "choices": [], "undecided": []})
    else:
        console().print(f"wrote {path}: edit it, then stirred plan check {path}")
    return 0


def _new_named(arguments: argparse.Namespace) -> int:
    """Write a plan that has a name; with a census its swap and its tables fit the schema."""
    import os

    from stirred.publish.named_plans import Choices, find_named_plan
    from stirred.publish.plan.proposal import ProposedPlan, read_schema

    plan, path = find_named_plan(arguments.plan), Path(arguments.out or "plan.toml")
    choices = Choices(swapped=arguments.swapped, light=arguments.light)
    if arguments.census:
        file = Path(arguments.census)
        file = file / "census.toml" if file.is_dir() else file
        choices = replace(choices, census=os.path.relpath(file, path.parent), schema=read_schema(file))
    ProposedPlan(text=plan.text(choices), files={}, choices=(), undecided=()).write(path)
    if arguments.json:
        print_json({"plan": str(path), "files": [], "choices": [], "undecided": []})
    else:
        console().print(f"wrote {path} ({plan.summary}): edit it, then stirred plan check {path}")
    return 0


def _propose(path: Path, arguments: argparse.Namespace) -> int:
    from stirred.mechanisms.registry import find_mechanism
    from stirred.publish.plan.proposal import READ_NOTE, choose_mechanism, propose_plan, read_schema

    census = Path(arguments.census)
    name, reason = (arguments.mechanism, "") if arguments.mechanism else choose_mechanism(read_schema(census))
    found = propose_plan(find_mechanism(name), census, path, reason=reason)
    found.write(path)
    if arguments.json:
        told = {"choices": list(found.choices), "undecided": list(found.undecided)}
        print_json({"plan": str(path), "files": list(found.files), **told})
        return 0
    out = console()
    for choice in found.choices:
        out.print(choice)
    for words in found.undecided:
        out.print(f"not decided: {words}", style="yellow")
    out.print(READ_NOTE)
    out.print(f"wrote {', '.join([str(path), *found.files])}: edit it, then stirred plan check {path}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from stirred.publish import load
    from stirred.publish.check import explain

    found = explain(load(arguments.plan))
    if arguments.json:
        print_json(found.document())
        return 0
    out = console()
    out.print(f"{found.title}\n", style="bold")
    out.print(found.sentence + "\n")
    if found.warning:
        out.print(f"{found.warning}\n", style="yellow")
    out.print(
        table(
            "Published exactly, hence not protected",
            ["invariant", "numbers fixed"],
            [[k.words, "all" if k.numbers is None else f"{k.numbers:,}"] for k in found.kept],
        )
    )
    out.print(
        table(
            "Budget by part",
            ["part", "budget (rounded up)", "exactly"],
            [list(part) for part in found.parts],
        )
    )
    for doubt in found.doubts:
        out.print(f"warning: {doubt}", style="yellow")
    for effect in found.effects:
        out.print(f"expected effect: {effect}")
    for compared in found.compared:
        out.print(f"compared: {compared}")
    for guard in found.guards:
        out.print(f"guard: {guard.name}: {guard.finding}")
    for words in found.unexplained:
        out.print(f"no reason is given for: {words}", style="yellow")
    for note in found.specification.notes:
        out.print(f"note: {note}")
    out.print(
        f"{found.records:,} records; about {found.seconds:,.0f} s and {found.memory / 1e9:.1f} GB on two cores"
    )
    return 0


def _tune(arguments: argparse.Namespace) -> int:
    if bool(arguments.goal) == bool(arguments.target):
        raise InputError(
            "plan tune needs --target or --goal, and not both",
            why="a target is tried on a stand-in, goals are reached in closed form",
            fix='--target "mae county <= 3", or --goal "mae hispanic×county <= 2"',
        )
    return _tune_shares(arguments) if arguments.goal else _tune_knob(arguments)


def _tune_shares(arguments: argparse.Namespace) -> int:
    from stirred.mechanisms.proposal import Cap, Goal
    from stirred.publish import load
    from stirred.publish.tuning import choose_path, tune_shares
    from stirred.spec import Budget

    path = choose_path(Path(arguments.plan), arguments.out)
    goals = [Goal.parse(text) for text in arguments.goal]
    caps = [Cap.parse(text) for text in arguments.limit]
    made = tune_shares(load(arguments.plan), goals, caps, stem=path.stem if arguments.out else None)
    made.plan.write(path)
    found = made.found
    if arguments.json:
        errors = [
            {"table": e.table, "goal": e.limit, "before": e.before, "after": e.after} for e in found.errors
        ]
        costs = [
            {"change": c.what, "epsilon_before": str(c.before), "epsilon": str(c.after)} for c in found.costs
        ]
        told = {"files": list(found.files), "errors": errors, "costs": costs, "sentence": found.sentence}
        print_json({"plan": str(path), **told, "read": found.read})
        return 0
    out = console()
    errors_shown = [[e.table, f"{e.before:.2f}", f"{e.after:.2f}", f"{e.limit:g}"] for e in found.errors]
    out.print(
        table("Expected absolute error (linear estimate)", ["table", "before", "after", "goal"], errors_shown)
    )
    costs_shown = [[c.what, *(str(Budget.of(str(e))) for e in (c.before, c.after))] for c in found.costs]
    out.print(
        table(
            "ε at δ = 10⁻¹⁰, by what one person's record may change",
            ["change", "before", "after"],
            costs_shown,
        )
    )
    out.print(found.sentence)
    out.print(found.read)
    out.print(f"wrote {', '.join([str(path), *found.files])}: stirred plan check {path}")
    return 0


def _tune_knob(arguments: argparse.Namespace) -> int:
    from stirred.mechanisms.exhibits import format_beside_error, format_error
    from stirred.publish import load
    from stirred.publish.tuning import Target, tune

    plan = load(arguments.plan)
    target = Target.parse(arguments.target)
    stand_in, source = open_stand_in(arguments, plan)
    with show_progress(quiet=arguments.json) as progress:
        found = tune(
            stand_in, plan.mechanisms[0], target, turn=arguments.turn, runs=arguments.runs, progress=progress
        )
    if arguments.json:
        trials = [
            {
                found.name: str(t.setting),
                "budget": float(t.budget.upper(6)),
                "error": t.error,
                "spread": t.spread,
            }
            for t in found.trials
        ]
        best = trials[found.trials.index(found.best)]
        print_json({"target": arguments.target, "stand_in": source, "best": best, "trials": trials})
        return 0
    rows = [
        [
            str(t.setting),
            str(t.budget),
            f"{format_beside_error(t.error, t.spread)} ± {format_error(t.spread)}",
        ]
        for t in found.trials
    ]
    symbol = found.best.symbol
    out = console()
    out.print(table(f"Tried on {source}", [found.name, f"{symbol} (rounded up)", target.metric], rows))
    out.print(
        f'{found.name} = "{found.best.setting}" reaches {arguments.target} with {symbol} = {found.best.budget}, the '
        f"least tried; {found.effect}"
    )
    if not arguments.on_confidential_data:
        words = "found on the stand-in; choosing on the confidential file would itself be a release"
        out.print(f"{words} and need accounting")
    return 0


def _rehearse(arguments: argparse.Namespace) -> int:
    from stirred.mechanisms.exhibits import format_error
    from stirred.publish import load
    from stirred.publish.tuning import rehearse, write_rehearsal

    plan = load(arguments.plan)
    stand_in, source = open_stand_in(arguments, plan)
    with show_progress(quiet=arguments.json) as progress:
        found = rehearse(plan, stand_in, runs=arguments.runs, progress=progress)
    if arguments.out:
        write_rehearsal(found, Path(arguments.out))
    if arguments.json:
        print_json({"stand_in": source, "rows": found.rows(named=True)})
        return 0
    columns = ["table", "size", "cells", "bias", "interval", "MAE", "RMSE", "coverage"]
    rows = [
        [
            row["table"],
            row["size"],
            f"{row['cells']:,}",
            format_error(row["bias"], signed=True),
            f"{format_error(row['bias_low'], signed=True)} to {format_error(row['bias_high'], signed=True)}",
            format_error(row["MAE"]),
            format_error(row["RMSE"]),
            "–" if row["coverage"] is None else f"{100 * row['coverage']:.1f}%",
        ]
        for row in found.rows(named=True)
    ]
    console().print(table(f"{arguments.runs} runs on {source}", columns, rows))
    return 0


def _schema(_: argparse.Namespace) -> int:
    from stirred.publish.plan.models import build_schema

    print_json(build_schema())
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from stirred.publish import load
    from stirred.publish.check import decision_record, explain

    plan = load(arguments.plan)
    text = decision_record(plan, explain(plan, trial=False))
    if arguments.out:
        write_closed_text(Path(arguments.out), text)  # it states numbers that were counted in the census
    if arguments.json:
        print_json({"file": arguments.out, "text": text})
    elif arguments.out:
        console().print(f"wrote {arguments.out}")
    else:
        sys.stdout.write(text)
    return 0
