"""The log of a workbench: one line a request with the name of its handler; no address, no value and no file name."""

import json
import os
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

MOST_BYTES = 10 << 20  # then the log begins anew, and the one before it is kept


@dataclass(frozen=True, slots=True)
class RequestLog:
    """A file of JSON lines in the folder of the workbench."""

    path: Path
    lock: Lock

    @staticmethod
    def of(folder: Path) -> "RequestLog":
        """The log of a folder."""
        return RequestLog(folder / "serve.log", Lock())

    def answered(self, method: str, handler: str, status: int, seconds: float) -> None:
        """A request that was answered; the handler is a name of the program, never the address."""
        known = method if method in ("GET", "HEAD", "POST") else "other"
        self._write({"method": known, "handler": handler, "status": status, "ms": round(1000 * seconds, 1)})

    def failed(self, error: BaseException) -> None:
        """A fault: its type and where it happened; its message may name a value and is left out."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        self._write({"fault": type(error).__name__, "at": places})

    def _write(self, event: dict[str, object]) -> None:
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n"
        with self.lock:
            if self.path.exists() and self.path.stat().st_size > MOST_BYTES:
                self.path.replace(self.path.with_suffix(".old.log"))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(line)
