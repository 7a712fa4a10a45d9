"""The command ``stirred``: runs a verb and turns every error into one message and an exit code."""

import gc
import sys
from collections.abc import Sequence

from stirred.cli.process.ending import ended, traced
from stirred.cli.process.limits import require_addresses
from stirred.cli.process.pipes import nobody_reads, settled
from stirred.cli.process.signals import StoppedBySignal, heed
from stirred.cli.terminal.parser import VERBS as VERBS
from stirred.cli.terminal.parser import by_method, parser_for, require_verb


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every error into one message and an exit code."""
    heed()
    gc.set_threshold(
        50_000
    )  # to look for garbage while modules are loaded takes a tenth of a second, and there is none
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        settled(sys.stdout)  # so that Python finds nothing to write, and to complain about, when it ends


def _run(words: list[str]) -> int:
    lost: OSError | None = None
    try:
        require_addresses()
        words = by_method(words)
        parser = parser_for(words)
        require_verb(parser, words)
        arguments = parser.parse_args(words)
        if arguments.version:
            from importlib.metadata import version

            print(version("stirred"))
            return 0
        if arguments.verb is None:
            parser.print_help()
            return 0
        result: int = arguments.run(arguments)
        if lost := settled(sys.stdout):
            raise lost
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if isinstance(error, BrokenPipeError) and (error is lost or nobody_reads(sys.stdout)):
            return 0  # a reader that stopped, as head does, has what it wanted
        if traced(error) or (isinstance(error, SystemExit) and not isinstance(error, StoppedBySignal)):
            raise
        return ended(error)
    else:
        return result


if __name__ == "__main__":
    raise SystemExit(main())
