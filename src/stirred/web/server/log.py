"""The log of a workbench: one line a request with the name of its handler; no address, no value and no file name."""

import json
import os
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from stirred.closed_files import append_closed
from stirred.errors import InputError

MAX_LOG_BYTES = 10 << 20  # then the log begins anew, and the one before it is kept


@dataclass(frozen=True, slots=True)
class RequestLog:
    """A file of JSON lines in the folder of the workbench."""

    path: Path
    lock: Lock

    @staticmethod
    def of(folder: Path) -> "RequestLog":
        """Return the log of a folder; refuse a name that is not a plain file of the user."""
        log = RequestLog(folder / "serve.log", Lock())
        os.close(append_closed(log.path))
        return log

    def log_answer(self, method: str, handler: str, status: int, seconds: float) -> None:
        """Log an answered request with the name of its handler, never with the address."""
        known = method if method in ("GET", "HEAD", "POST") else "other"
        self._write({"method": known, "handler": handler, "status": status, "ms": round(1000 * seconds, 1)})

    def log_failure(self, error: BaseException) -> None:
        """Log the type and place of a fault, without its message, which may name a value."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        self._write({"fault": type(error).__name__, "at": places})

    def _write(self, event: dict[str, object]) -> None:
        """Append a line; where the log was replaced by a link or the disk is full, the request is answered all the same."""
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n"
        with self.lock, suppress(InputError, OSError):
            descriptor = append_closed(self.path)
            try:
                os.write(descriptor, line.encode())
                is_full = os.fstat(descriptor).st_size > MAX_LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                self.path.replace(self.path.with_suffix(".old.log"))
