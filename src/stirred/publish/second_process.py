"""Run a plan in a second process, so that two cores share its work and the compiling of kernels.

The process starts before the census exists: it imports libraries and compiles meanwhile, then waits for a line.
"""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from types import FrameType, TracebackType

from stirred.chance import Key
from stirred.child_processes import PIPE, python_command, start_child
from stirred.engine import Progress
from stirred.kernels import compile_slowest
from stirred.publish.plan.description import load
from stirred.publish.run.execute import run

GO = "go\n"


class SecondProcess:
    """A process that runs one plan when it is told to; leaving the block before it is finished stops it."""

    def __init__(self, plan: Path, out: Path, key_file: Path, progress: Progress) -> None:
        self._progress = progress
        words = [str(path.absolute()) for path in (plan, out, key_file)]
        command = python_command("stirred.publish.second_process", *words)
        self._process = start_child(command, folder=out.parent, stdin=PIPE, stdout=PIPE)
        self._reader = Thread(target=self._forward, daemon=True)
        self._reader.start()

    def __enter__(self) -> "SecondProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self.wait()

    def go(self) -> None:
        """Tell the process that the census and the key are there."""
        self._tell(GO)

    def wait(self) -> bool:
        """Wait until the process ends; whether it made the packet."""
        self._tell("")
        code = self._process.wait()
        self._reader.join()
        return code == 0

    def _tell(self, text: str) -> None:
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        try:
            pipe.write(text.encode())
            pipe.close()
        except BrokenPipeError:  # it has ended already, and its exit code says how
            pass

    def _forward(self) -> None:
        pipe = self._process.stdout
        if pipe is None:
            return
        with pipe:
            for line in pipe:
                step, done, total = json.loads(line)
                self._progress(step, done, total)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(words: Sequence[str]) -> int:
    """Compile, wait for the line, run the plan, and print each step as one line of JSON."""
    signal.signal(signal.SIGTERM, _leave)  # files in scratch folders are removed on the way out
    plan, out, key_file = map(Path, words)
    compile_slowest()
    if sys.stdin.readline() != GO:
        return 1

    def report_step(step: str, done: int, total: int) -> None:
        print(json.dumps([f"{plan.stem}: {step}", done, total]), flush=True)

    run(load(plan), out, key=Key.load(key_file), progress=report_step)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
