"""A workbench that is served by a process of its own."""

import http.client
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class RunningBench:
    """A real server in a process of its own."""

    folder: Path
    roots: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None
    address: str = ""

    def start(self) -> str:
        words = [sys.executable, "-m", "stirred", "serve", str(self.folder)]
        self.process = subprocess.Popen(
            [*words, "--port", str(self.port), "--data", str(self.roots), "--max-upload", "200 kB"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.address = lines[1].split()[1]
        self.port = int(self.address.split(":")[2].split("/")[0])
        return self.address

    def enter(self) -> tuple[dict[str, str], str]:
        """Open the address once: the header with the cookie, and the token of forms."""
        reply, _ = self.ask("GET", self.address.removeprefix(self.origin))
        cookie = {"cookie": str(reply.getheader("set-cookie")).split(";")[0]}
        _, page = self.ask("GET", "/", **cookie)
        found = re.search(r'data-csrf="([^"]+)"', page)
        assert found
        return cookie, found[1]

    def ask(
        self, method: str, path: str, body: str = "", **headers: str
    ) -> tuple[http.client.HTTPResponse, str]:
        """One request in a connection of its own; the names of headers have hyphens for underscores."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.request(method, path, body or None, {n.replace("_", "-"): v for n, v in headers.items()})
            reply = line.getresponse()
            return reply, reply.read().decode(errors="replace")
        finally:
            line.close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self, number: int = signal.SIGKILL) -> tuple[int, str]:
        """Send a signal; the exit code, and what was said on standard error."""
        if self.process is None:
            return 0, ""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=30)
        code, self.process = self.process.returncode, None
        return code, said
