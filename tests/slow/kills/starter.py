"""Start ``stirred`` many times without importing its libraries each time: this process imports them and forks.

Each child is a process of its own in a group of its own, runs ``stirred.cli.main.main`` and ends as the command does.
The parent runs no query and no kernel, so that no pool of threads is begun when it forks. What the local engine counts for
the libraries is small here, so that ``--memory "60 KB"`` divides a small census into parts.
"""

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

LIBRARY_BYTES = 20_000


def serve() -> None:
    """For each line (words, folder, file for output) start a command; answer with its process id, then its exit code."""
    _imported()
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(asked)
        print(json.dumps({"pid": child}), flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def _become(asked: dict[str, list[str] | str]) -> None:
    """Be the command, and end as it does; or by SIGKILL before a given operation on a folder."""
    from stirred.cli.main import main
    from stirred.cli.process import end_process

    os.setsid()
    if asked["operation"]:
        _killed_before(int(str(asked["operation"])))
    os.chdir(str(asked["folder"]))
    nothing = os.open(os.devnull, os.O_RDONLY)
    told = os.open(str(asked["told"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream, source in ((0, nothing), (1, told), (2, told)):
        os.dup2(source, stream)
    end_process(main(list(asked["words"])))


def _killed_before(number: int) -> None:
    """Count what makes, renames and deletes entries of folders, and end before the one of that number."""
    counted = itertools.count(1)

    def wrapped(done: Callable[..., None]) -> Callable[..., None]:
        def instead(*given: object, **named: object) -> None:
            if next(counted) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            done(*given, **named)

        return instead

    for name in ("unlink", "remove", "rmdir", "rename", "replace", "mkdir", "link", "symlink", "chmod"):
        setattr(os, name, wrapped(getattr(os, name)))


def _imported() -> None:
    import scipy.stats  # noqa: F401

    import stirred.cli.run
    import stirred.engine.local
    import stirred.mechanisms.swap.psa
    import stirred.mechanisms.topdown
    import stirred.publish
    import stirred.publish.check
    from stirred.report import html

    stirred.engine.local.LIBRARY_BYTES = LIBRARY_BYTES
    library = Path(sys.argv[1]).read_text()  # it takes a second and threads to make: the same text every time
    html.chart_library = lambda: library


if __name__ == "__main__":
    serve()
