"""The command ``stirred``: runs a verb and turns every error into one message and an exit code."""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

from stirred.cli.parser import EXIT_CODES
from stirred.cli.process import (
    StoppedBySignal,
    end_process,
    flush_stream,
    has_no_reader,
    install_handlers,
    report_error,
    require_addresses,
    speak_json,
    wants_traceback,
)
from stirred.cli.verbs import parser_for, require_verb, respell


def run() -> NoReturn:
    """Run the command of this process, and end the process."""
    end_process(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every error into one message and an exit code."""
    install_handlers()
    gc.set_threshold(
        50_000
    )  # to look for garbage while modules are loaded takes a tenth of a second, and there is none
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        flush_stream(sys.stdout)  # so that Python finds nothing to write, and to complain about, when it ends


def _run(words: list[str]) -> int:
    lost: OSError | None = None
    speak_json(on="--json" in words)  # before they are understood: what is wrong with them is an error too
    try:
        require_addresses()
        if words == ["help", "exit-codes"]:
            print(f"exit codes: {EXIT_CODES}")
            return 0
        words = respell(words)
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
        if lost := flush_stream(sys.stdout):
            raise lost
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if isinstance(error, BrokenPipeError) and (error is lost or has_no_reader(sys.stdout)):
            return 0  # a reader that stopped, as head does, has what it wanted
        if wants_traceback(error) or (
            isinstance(error, SystemExit) and not isinstance(error, StoppedBySignal)
        ):
            raise
        return report_error(error)
    else:
        return result


if __name__ == "__main__":
    run()
