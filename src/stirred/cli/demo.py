"""Three releases of a synthetic census, compared in one report.

  stirred demo                 a census of 60,000 households; a swap and a stirring of 5%, TopDown; demo/report.html
  stirred demo --out here      the same in another folder
  stirred demo --language de   cards and public reports of the three packets in German; also fr, es
  stirred demo --promises      only the 2020 census beside a swapped one, as one page of specifications

Each release is a packet of its own (demo/swap-5, demo/stirring-5, demo/topdown) made from a plan in demo/plans.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stirred.cli.output import console, print_json, show_progress
from stirred.cli.parser import add_language_argument

PAIR = ("das-2020", "whatif-county-size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the demo (default: demo)")
    parser.add_argument("--promises", action="store_true", help="only the page of specifications")
    add_language_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Make the demo and name the report to open."""
    if arguments.promises:
        arguments.out.mkdir(parents=True, exist_ok=True)
        return _print_result(arguments, _promises(arguments.out, arguments.language or "en"))
    with show_progress(quiet=arguments.json) as progress:
        progress("libraries", 0, 1)  # the slowest of imports: something is shown before them
        from stirred.publish.demo import demo

        progress("libraries", 1, 1)
        report = demo(arguments.out, progress=progress, language=arguments.language or "en")
    return _print_result(arguments, report, summary=_summarize(arguments.out))


def _print_result(arguments: argparse.Namespace, report: Path, summary: Sequence[str] = ()) -> int:
    if arguments.json:
        print_json({"report": str(report)})
    else:
        for line in (*summary, f"open {report}"):
            console().print(line)
    return 0


def _summarize(out: Path) -> list[str]:
    """Return what was made in four lines: the census, and each release with its budget and the odds it allows."""
    from stirred.publish.demo import PLANS
    from stirred.spec.card import Card
    from stirred.spec.files import load

    lines = [f"one synthetic census ({out / 'census'}), released three ways:"]
    for name in PLANS:
        card = Card(load(out / name / "public" / "spec.json"))
        lines.append(f"  {name}: {card.budget()}, odds up to {card.bound_odds().factor} times")
    return lines


def _promises(out: Path, language: str) -> Path:
    from stirred.catalog import catalog
    from stirred.languages import Language
    from stirred.spec import compare
    from stirred.spec.card import page

    cards = [replace(catalog.entry(name).card(), language=language) for name in PAIR]
    target = out / "specifications.html"
    say = Language.of(language).say
    comparison = compare(cards[0].specification, cards[1].specification)
    text = page(cards, heading=say("card.demo.heading"), lead=(say("card.demo.lead"),), comparison=comparison)
    target.write_text(text, encoding="utf-8")
    return target
