"""Find the engine that a plan or a command names."""

from pathlib import Path
from typing import cast

from stirred.engine.base import Engine, Progress
from stirred.engine.local import LIBRARY_BYTES, Local
from stirred.errors import InputError, did_you_mean

ENGINE_NAMES = ("local", "spark")


def choose_engine(
    name: str,
    *,
    memory: str | None = None,
    scratch: Path | None = None,
    master: str | None = None,
    accept_open_network: str = "",
) -> Engine:
    """Return the engine of that name; ``memory`` bounds the local one, ``master`` says where Spark runs.

    ``accept_open_network`` is the reason for which a cluster without authentication or encryption is used.

    >>> choose_engine("local", memory="4 GB").name
    'local'
    """
    if scratch is not None and not scratch.is_dir():
        raise InputError(
            f"there is no folder {scratch}",
            why="temporary files would be written there",
            fix="make it first, or leave --scratch out",
        )
    if name == "local":
        if master is not None:
            raise InputError(
                "a master was given, but the engine is not Spark",
                why="the local engine has no cluster to connect to",
                fix='--engine spark, or engine = "spark" in the plan',
            )
        return cast(Engine, Local(memory=memory, scratch=scratch))
    if name == "spark":
        from stirred.engine.spark import Spark

        if memory is not None:
            raise InputError(
                "memory bounds the local engine",
                why="Spark's executors have their own settings",
                fix="spark-submit --executor-memory 8g; see docs/how-to/cluster.md",
            )
        return cast(Engine, Spark(master=master, scratch=scratch, accept_open_network=accept_open_network))
    raise InputError(
        f"there is no engine {name}",
        why="an engine is chosen by its name",
        fix=did_you_mean(name, ENGINE_NAMES),
    )


def find_bound(engine: Engine) -> int | None:
    """Return how many bytes records may take in this process where somebody set a bound; None on other engines.

    >>> find_bound(Local(memory="4 GB")), find_bound(Local())
    (3400000000, None)
    """
    found: int | None = getattr(engine, "bound_bytes", None)
    return found


def name_bound(size: int) -> str:
    """Return the smallest bound, in tenths of a GB, within which records may take that many bytes.

    >>> name_bound(3_350_000_000)
    '4.0 GB'
    """
    return f"{-(-(size + LIBRARY_BYTES) // 10**8) / 10:.1f} GB"


def name_work(engine: Engine, work: str, progress: Progress) -> None:
    """Tell an engine that runs its jobs elsewhere what the next ones are for, and who is told of long ones."""
    name = getattr(engine, "name_work", None)
    if name is not None:
        name(work, progress)
