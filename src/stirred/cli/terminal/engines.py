"""The flags that say where a command runs, the same for every verb that runs a mechanism."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stirred.engine import Engine


def add_engine_arguments(parser: argparse.ArgumentParser, *, default: str | None = "local") -> None:
    """Add ``--engine``, ``--master``, ``--memory`` and ``--scratch``."""
    where = parser.add_argument_group("where it runs (the result is the same)")
    where.add_argument(
        "--engine",
        choices=("local", "spark"),
        default=default,
        help="this machine, or a Spark cluster (default: " + (default or "what the plan says") + ")",
    )
    where.add_argument(
        "--master", metavar="URL", help="Spark's master, such as spark://host:7077 (default: spark-submit's)"
    )
    where.add_argument(
        "--memory",
        metavar="SIZE",
        help='what a local run may hold, such as "8 GB" (default: most that is free)',
    )
    where.add_argument(
        "--scratch", metavar="DIR", type=Path, help="where parts that do not fit lie while they are needed"
    )


@contextmanager
def open_engine(arguments: argparse.Namespace, *, planned: str = "local") -> "Iterator[Engine]":
    """Yield the engine asked for; stop it at the end if it was started for this command."""
    from stirred.engine.choice import choose_engine

    engine = choose_engine(
        arguments.engine or planned,
        memory=arguments.memory,
        scratch=arguments.scratch,
        master=arguments.master,
    )
    try:
        yield engine
    finally:
        stop = getattr(engine, "stop", None)
        if stop is not None:
            stop()
