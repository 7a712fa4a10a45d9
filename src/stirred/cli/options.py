"""Declare the options that verbs share: the engine, invalid records, and the key of a run."""

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.output import PROGRESS_KINDS, show_progress
from stirred.cli.process import tell
from stirred.errors import ClusterError, InputError, PrivacyError, StirredError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.chance import Key
    from stirred.engine import Engine


# The flags that say where a command runs, the same for every verb that runs a mechanism.


def add_engine_arguments(parser: argparse.ArgumentParser, *, default: str | None = "local") -> None:
    """Add ``--engine``, ``--master``, ``--memory``, ``--scratch`` and what is accepted of a cluster."""
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
    where.add_argument(
        "--accept-open-network",
        metavar="REASON",
        default="",
        help="use a cluster without authentication or encryption; the reason stands in the receipt",
    )
    where.add_argument(
        "--progress",
        choices=PROGRESS_KINDS,
        help="how the steps are told on standard error (default: bars or lines, nothing with --json)",
    )


@contextmanager
def open_engine(
    arguments: argparse.Namespace, *, planned: str = "local", accepted: str = ""
) -> "Iterator[Engine]":
    """Yield the engine asked for, and stop it at the end if it was started for this command.

    ``planned`` and ``accepted`` are what the plan says: the engine, and the reason for an open network.
    """
    from stirred.engine.choice import choose_engine

    name = arguments.engine or planned
    with tell_start(arguments, name):
        engine = choose_engine(
            name,
            memory=arguments.memory,
            scratch=arguments.scratch,
            master=arguments.master,
            accept_open_network=arguments.accept_open_network or accepted,
        )
    try:
        yield engine
    finally:
        stop = getattr(engine, "stop", None)
        if stop is not None:
            stop()


START_TOLD_SECONDS = (
    2.0  # seconds after which the start of an engine is a step; what is refused at once is an error alone
)


@contextmanager
def tell_start(arguments: argparse.Namespace, engine: str) -> "Iterator[None]":
    """Tell the start of a cluster as a step, where it takes longer than a refusal."""
    if engine == "local":
        yield
        return
    with show_progress(quiet=arguments.json, kind=arguments.progress) as progress:
        told = threading.Event()

        def begin() -> None:
            told.set()
            progress(engine, 0, 1)

        late = threading.Timer(START_TOLD_SECONDS, begin)
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()
            late.join()
        if told.is_set():
            progress(engine, 1, 1)


# The flag that says what is done with records that break the schema, the same for every verb that releases.


def add_invalid_argument(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``--invalid``; ``default`` is said in the help."""
    parser.add_argument(
        "--invalid",
        choices=("refuse", "drop"),
        help="when records break the schema: refuse, or drop their households and release the rest "
        f"(default: {default})",
    )


def tell_about_records(census: "Census") -> None:
    """Say on the terminal how many records were left out, and what is doubtful; the counts stand in no file."""
    from stirred.census.validation import find_doubts

    gone = ", ".join(f"{count:,} {name} records" for name, count in census.dropped_counts.items() if count)
    if gone:
        tell(f"left out because they break the schema: {gone} (confidential: do not publish)")
    for doubt in find_doubts(census):
        tell(f"warning: {doubt} (confidential: do not publish)")


# The key of a run: read from a file, or drawn and kept beside the packet.


def key_file(out: Path, given: str | None) -> Path:
    """Return the path of a run's key: as given, or OUT.key beside the packet."""
    return Path(given) if given else out.with_name(out.name + ".key")


@contextmanager
def clean_after_refusal(*paths: Path) -> Iterator[None]:
    """Delete the files made in the block after a refusal; keep them after an interruption."""
    made = [path for path in paths if not path.exists()]
    try:
        yield
    except ClusterError:
        raise
    except StirredError:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def is_rehearsal(out: Path, given: str | None) -> bool:
    """Return whether the key file holds a key for tests, whose packets are marked as not private."""
    from stirred.chance import Key

    path = key_file(out, given)
    return path.is_file() and path.stat().st_size > 0 and not Key.load(path).private


def rehearsal_key() -> "Key":
    """Return a key for tests for a run without any noise; it marks the packet as not private."""
    from stirred.chance import Key

    tell("a rehearsal without noise: the packet is marked as NOT PRIVATE and must not be published")
    return Key.for_tests(1)


def load_key(out: Path, given: str | None) -> "Key":
    """Load the key from its file, or create the file; refuse a file inside the packet."""
    from stirred.chance import Key

    path = key_file(out, given)
    part = out.with_name(out.name + ".part")
    # the packet's folder, and the one it is made in
    for folder in (out, part):
        if path.resolve().is_relative_to(folder.resolve()):
            raise PrivacyError(
                "the key would lie in the packet",
                why="whoever gets the packet could undo the noise",
                fix="choose another place for --key",
            )
    if path.is_file() and not path.stat().st_size and not part.exists():
        path.unlink()  # of a run that was killed before it had drawn a key
    if path.exists():
        return Key.load(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write the key {path.name}",
            why="its folder does not exist",
            fix="make the folder first, or choose another --key",
        )
    if part.exists():
        raise PrivacyError(
            f"{part.name} was begun with a key that is not there",
            why=f"an interrupted run is taken up with its own key, and there is no {path.name}",
            fix=f"give the key with --key, or delete the folder {part.name}",
        )
    key = Key.fresh()
    key.save(path)
    tell(
        f"the key of this run is in {path}: whoever has it can undo the noise. Keep it as you keep the census, or destroy "
        "it once the packet is final."
    )
    return key
