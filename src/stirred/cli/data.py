"""Describe, check and synthesise censuses.

stirred data describe households.parquet persons.parquet > census.toml
    guesses a census.toml from files: identifiers, links, weights, areas that nest, households inside a person
    file. Edit it by hand: what is not decided is marked. Levels and counts are read off the records, so they
    are left out unless you say --confidential. Of a database name the --table, of a workbook with several sheets the
    --sheet, once for each record type.

stirred data check census.toml
    holds the records against the schema and tells every problem at once, by column, rule and count, never by
    value or record. Exit code 1 when there is a problem.

stirred data synth demo --out demo/
    writes a synthetic census without any confidential source.

stirred data synth --like census.toml --areas region=10 district=58 --out stand-in/
    writes a stand-in for your own census from its codebook and published figures, for plan tune and plan rehearse.
"""

import argparse
from collections.abc import Iterator, Mapping
from os.path import relpath
from pathlib import Path

from stirred.cli.output import console, print_json, show_progress, table
from stirred.closed_files import write_closed_text
from stirred.errors import InputError

PRESETS = ("demo", "state", "nation", "massachusetts-1940")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    describe = what.add_parser("describe", help="guess a census.toml from files")
    describe.add_argument(
        "files", nargs="+", metavar="FILE", help="a file, a folder or a quoted glob per record type"
    )
    describe.add_argument(
        "--confidential", action="store_true", help="write levels, ranges and counts of the records too"
    )
    describe.add_argument(
        "--format",
        default="",
        metavar="FORMAT",
        help="of the files, where their names do not tell it: csv, …",
    )
    describe.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME",
        help="a table of a DuckDB database, or H or P of an IPUMS extract; once per record type",
    )
    describe.add_argument(
        "--sheet",
        action="append",
        default=[],
        metavar="NAME",
        help="a sheet of an Excel workbook; once per record type",
    )
    describe.add_argument("--ddi", default="", help="the codebook of an IPUMS extract")
    describe.add_argument("--out", type=Path, help="write the census.toml there instead of showing it")
    describe.add_argument("--json", action="store_true", help="one JSON document")
    check = what.add_parser("check", help="check the records with the schema")
    check.add_argument("census", type=Path, metavar="CENSUS", help="a census.toml, or the folder it lies in")
    check.add_argument("--json", action="store_true", help="one JSON document")
    synth = what.add_parser("synth", help="write a synthetic census")
    synth.add_argument("preset", nargs="?", choices=PRESETS, metavar="PRESET", help=", ".join(PRESETS))
    synth.add_argument(
        "--like",
        type=Path,
        metavar="CENSUS",
        help="a census.toml: make a stand-in from its codebook alone; no file of records is opened",
    )
    synth.add_argument("--out", type=Path, required=True, help="the folder to write to")
    synth.add_argument(
        "--households",
        type=int,
        help="how many households (the preset's own number, or 10,000, when left out)",
    )
    synth.add_argument(
        "--areas",
        nargs="+",
        default=[],
        metavar="LEVEL=NUMBER",
        help="with --like: how many areas a level of the spine has",
    )
    synth.add_argument(
        "--levels",
        nargs="+",
        default=[],
        metavar="VARIABLE=NUMBER",
        help="with --like: how many values a variable has whose codebook lists none",
    )
    synth.add_argument(
        "--table",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="with --like: published tables of counts (CSV or Parquet, with a column count) to follow",
    )
    synth.add_argument("--seed", type=int, default=1, help="the same seed gives the same census (default 1)")
    synth.add_argument("--json", action="store_true", help="one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"describe": _describe, "check": _check, "synth": _synth}[arguments.what](arguments)


def _describe(arguments: argparse.Namespace) -> int:
    from stirred.census.describe import describe, strip_comments

    files = list(arguments.files)
    if arguments.out is not None:
        if arguments.out.exists():
            raise InputError(
                f"{arguments.out.name} is there already",
                why="it is not overwritten",
                fix="choose another --out",
            )
        # the files are named from where census.toml will lie
        files = [name if Path(name).is_absolute() else relpath(name, arguments.out.parent) for name in files]
    folder = Path() if arguments.out is None else arguments.out.parent
    with show_progress(quiet=arguments.json) as progress:
        document = describe(
            files,
            folder=folder,
            confidential=arguments.confidential,
            ddi=arguments.ddi,
            format=arguments.format,
            tables=arguments.table,
            sheets=arguments.sheet,
            progress=progress,
        )
    text = document.toml()
    if arguments.out is not None:
        write_closed_text(arguments.out, text)  # its codes and ranges come from the records
    if arguments.json:
        print_json(
            {
                "census": strip_comments(document),
                "toml": text,
                "guesses": list(document.guesses),
                "confidential": arguments.confidential,
            }
        )
    elif arguments.out is None:
        print(text, end="")
    else:
        open_questions = sum("not decided" in guess for guess in document.guesses)
        asked = f" ({open_questions} marked as not decided)" if open_questions else ""
        console().print(f"wrote {arguments.out}{asked}; edit it, then: stirred data check {arguments.out}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from stirred.census import check

    with show_progress(quiet=arguments.json) as progress:
        problems = check(arguments.census, progress=progress)
    if arguments.json:
        print_json(problems.to_json())
    elif problems:
        rows = [[p.record_type, p.column, p.rule, f"{p.count:,} {p.of}", p.fix] for p in problems.problems]
        console().print(table("Problems", ["records", "column", "rule", "how many", "fix"], rows))
    else:
        console().print(str(problems))
    return 1 if problems else 0


def _synth(arguments: argparse.Namespace) -> int:
    from stirred.census.synthetic import write_preset

    if (arguments.preset is None) == (arguments.like is None):
        raise InputError(
            "what to synthesise is not clear",
            why="a synthetic census is one of the presets, or a stand-in for a census of your own",
            fix="stirred data synth demo --out demo, or stirred data synth --like census.toml --out stand-in",
        )
    if arguments.like is not None:
        return _stand_in(arguments)
    with show_progress(quiet=arguments.json) as progress:
        summary = write_preset(
            arguments.preset,
            arguments.out,
            households=arguments.households,
            seed=arguments.seed,
            progress=progress,
        )
    if arguments.json:
        print_json(summary)
    else:
        rows = [[key.replace("_", " "), _format_value(value)] for key, value in _flatten(summary)]
        console().print(table(f"Synthetic census {arguments.preset}", ["", ""], rows))
    return 0


def _stand_in(arguments: argparse.Namespace) -> int:
    from stirred.census.synthetic.stand_in import write_stand_in

    summary = write_stand_in(
        arguments.like,
        arguments.out,
        households=10_000 if arguments.households is None else arguments.households,
        areas=_numbers("--areas", arguments.areas),
        levels=_numbers("--levels", arguments.levels),
        tables=arguments.table,
        seed=arguments.seed,
    )
    if arguments.json:
        print_json(summary)
    else:
        rows = [[key, _format_value(value)] for key, value in _flatten(summary)]
        console().print(table("Stand-in", ["", ""], rows))
    return 0


def _numbers(flag: str, given: list[str]) -> dict[str, int]:
    """Parse the pairs NAME=NUMBER of a flag.

    >>> _numbers("--areas", ["region=10", "district=58"])
    {'region': 10, 'district': 58}
    """
    found = {}
    for pair in given:
        name, _, number = pair.partition("=")
        if not name or not number.isdigit():
            raise InputError(
                f"{flag} {pair} cannot be read",
                why="it is not a name, an equals sign and a whole number",
                fix=f"{flag} region=10 district=58",
            )
        found[name] = int(number)
    return found


def _flatten(summary: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in summary.items():
        if isinstance(value, Mapping):
            yield from _flatten({f"{key}: {inner}": deeper for inner, deeper in value.items()})
        else:
            yield key, value


def _format_value(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
