"""The process of one job: it runs the command, and writes the exit code when it ends, whether or not a server is there.

    python -m stirred.web.jobs.runner FOLDER

The folder's lock is held by a file that the server hands over; it goes with this process.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from stirred.child_processes import Child, python_command, start_child
from stirred.closed_files import closed_stream, write_closed_text


def main(folder: Path) -> int:
    """Run the command of the folder in the folder of the workbench."""
    words = json.loads((folder / "job.json").read_text(encoding="utf-8"))["words"]
    began, asked = time.monotonic(), False
    child: Child | None = None

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        if child is not None:
            child.terminate()

    signal.signal(signal.SIGTERM, end)
    write_closed_text(folder / "pid", str(os.getpid()))
    with closed_stream(folder / "stdout", anew=True) as out, closed_stream(folder / "stderr") as err:
        child = start_child(
            python_command("stirred", *words), folder=folder.parent.parent, stdout=out, stderr=err
        )
        if asked or (folder / "cancel").exists():  # asked before the number of this process was known
            child.terminate()
        code = child.wait()
    told = {"code": code, "seconds": round(time.monotonic() - began, 2)}
    write_closed_text(folder / "result.json", json.dumps(told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
