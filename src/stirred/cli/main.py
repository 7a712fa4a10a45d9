"""The command ``stirred``: one module per verb, each loaded only when it is called; every mechanism is a verb."""

import argparse
import errno
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from stirred.errors import InputError, StirredError
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


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


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
    """Parse, run, and turn every expected error into one message and exit code 2."""
    in_front = threading.current_thread() is threading.main_thread()
    if in_front and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # a scheduler stops a job with SIGTERM; scratch files, which hold records, must still be removed
        signal.signal(signal.SIGTERM, _leave)
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="stirred",
        description="Formally private official statistics that keep some numbers exact.",
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    try:
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
    except StirredError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except (OSError, MemoryError) as error:
        if os.environ.get("STIRRED_TRACEBACK"):
            raise
        print(f"error: {_of_the_system(error)}", file=sys.stderr)
        return 74  # EX_IOERR of sysexits.h
    except Exception as error:
        # A traceback may show values of records: it is printed only to someone who asks for it.
        if os.environ.get("STIRRED_TRACEBACK"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        print(
            f"error: unexpected {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}\n"
            "  why: this is a fault of stirred, or of a file it did not understand\n"
            "  fix: report it; with STIRRED_TRACEBACK=1 the whole traceback is shown, which may hold confidential values",
            file=sys.stderr,
        )
        return 70
    else:
        return result


_SPACE = "free some space and run the same command again: it goes on from what is finished in OUT.part"
_FIXES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: "check the rights of the files and folders that the command names",
    errno.EPERM: "check the rights of the files and folders that the command names",
    errno.EROFS: "choose an --out on a disk that can be written to",
    errno.ENOENT: "check that the files and folders that the command names exist",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
}


def _of_the_system(error: OSError | MemoryError) -> StirredError:
    """An error of the operating system in our words; a path may hold a value of a record, so none is shown.

    >>> print(_of_the_system(OSError(errno.ENOSPC, "No space left on device", "/data/household.parquet")))
    the system refused to go on
      why: No space left on device
      fix: free some space and run the same command again: it goes on from what is finished in OUT.part
    """
    if isinstance(error, MemoryError):
        return StirredError(
            "the memory is used up",
            why="the command needs more than this process may hold",
            fix="--memory 4GB works in parts on disk; or close other programs",
        )
    number = error.errno or 0
    return StirredError(
        "the system refused to go on",
        why=os.strerror(number) if number else type(error).__name__,
        fix=_FIXES.get(number, "look at the disk and at the rights of its folders, then run it again"),
    )


if __name__ == "__main__":
    raise SystemExit(main())
