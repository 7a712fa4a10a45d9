"""An engine by its name, as plans and commands give it."""

from pathlib import Path
from typing import cast

from stirred.engine.base import Engine
from stirred.engine.local import Local
from stirred.errors import InputError, did_you_mean

NAMES = ("local", "spark")


def engine_named(
    name: str, *, memory: str | None = None, scratch: Path | None = None, master: str | None = None
) -> Engine:
    """The engine of that name; ``memory`` bounds the local one, ``master`` says where Spark runs.

    >>> engine_named("local", memory="4 GB").name
    'local'
    """
    if scratch is not None and not scratch.is_dir():
        raise InputError(
            f"there is no folder {scratch}",
            why="parts would lie there",
            fix="make it first, or leave --scratch out",
        )
    if name == "local":
        if master is not None:
            raise InputError("a master is for Spark", fix='--engine spark, or engine = "spark" in the plan')
        return cast(Engine, Local(memory=memory, scratch=scratch))
    if name == "spark":
        from stirred.engine.spark import Spark

        if memory is not None:
            raise InputError(
                "memory bounds the local engine",
                why="Spark's executors have their own settings",
                fix="spark-submit --executor-memory 8g; see docs/how-to/cluster.md",
            )
        return cast(Engine, Spark(master=master, scratch=scratch))
    raise InputError(f"there is no engine {name}", fix=did_you_mean(name, NAMES))
