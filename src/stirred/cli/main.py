"""The command ``stirred``: one module per verb, each loaded only when it is called; every mechanism is a verb."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from stirred.cli.terminal.ending import ended, traced
from stirred.cli.terminal.limits import require_addresses
from stirred.cli.terminal.signals import StoppedBySignal, heed
from stirred.errors import InputError
from stirred.mechanisms.registry import registered

# verb → (module, one line of help). A verb's module has add_arguments(parser) and run(arguments) -> int.
VERBS: dict[str, tuple[str, str]] = {
    "assess": ("stirred.cli.assess", "compare a packet with the truth, or publish its accuracy"),
    "budget": ("stirred.cli.budget", "the budget of a swap from its stratum and rate, and back"),
    "catalog": ("stirred.cli.catalog", "the published specifications"),
    "data": ("stirred.cli.data", "describe, check and synthesise censuses"),
    "demo": ("stirred.cli.demo", "three releases of a synthetic census, compared in one report"),
    "lookup": ("stirred.cli.lookup", "one published number with its interval and a sentence"),
    "packet": ("stirred.cli.packet", "verify and compare packets"),
    "plan": ("stirred.cli.plan", "describe a release, see its promise, tune and justify it"),
    "reproduce": ("stirred.cli.reproduce", "the tables and figures of the paper"),
    "run": ("stirred.cli.run", "run a plan: plan → packet"),
    "spec": ("stirred.cli.spec.verbs", "show, compare, check, compose, convert and export specifications"),
}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Show the examples of a description as they are written."""


def _add_verbs(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Add every verb; only the one that is called is imported: help stays quick, a broken extra breaks one verb alone."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    called = next((word for word in words if not word.startswith("-")), None)
    for verb, (module_name, text) in VERBS.items():
        sub = verbs.add_parser(verb, help=text, formatter_class=Formatter)
        if verb == called:
            module = importlib.import_module(module_name)
            sub.description = module.__doc__
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    for item in registered().values():
        names = [item.verb, item.name] if item.verb else [item.name]
        if names[0] in VERBS:
            raise InputError(
                f"the mechanism {item.name} cannot be a command",
                why=f"stirred {names[0]} is another one",
                fix="rename the mechanism of that package",
            )
        sub = verbs.add_parser(names[0], aliases=names[1:], help=item.summary, formatter_class=Formatter)
        if called in names:
            importlib.import_module("stirred.cli.mechanism").add_arguments(item.name, sub)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every error into one message and an exit code."""
    heed()
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="stirred",
        description="Formally private official statistics that keep some numbers exact.",
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    try:
        require_addresses()
        _add_verbs(parser, words)
        arguments = parser.parse_args(words)
        if arguments.version:
            from importlib.metadata import version

            print(version("stirred"))
            return 0
        if arguments.verb is None:
            parser.print_help()
            return 0
        result: int = arguments.run(arguments)
    except BrokenPipeError:
        return 0
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if traced(error) or (isinstance(error, SystemExit) and not isinstance(error, StoppedBySignal)):
            raise
        return ended(error)
    else:
        return result


if __name__ == "__main__":
    raise SystemExit(main())
