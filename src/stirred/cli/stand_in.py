"""The census that a plan is tuned and rehearsed on in the place of its own."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.publish import Plan


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
    from stirred.census import Census, read
    from stirred.census.codebook import parse
    from stirred.census.synthetic import synthesise

    if arguments.on_confidential_data:
        print(
            "warning: tuning on the confidential file is a release that no budget here accounts for",
            file=sys.stderr,
        )
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
    own = parse.load_schema(file).spine if file.is_file() else ()
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
