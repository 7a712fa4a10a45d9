"""The ways into a release, each tried on a damaged census: what is said, the exit code, and what is left."""

import io
import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import stirred as st
from faulty.sound import SWAP, Files
from stirred.census import Census
from stirred.cli.main import main
from stirred.errors import StirredError
from stirred.publish.packet import Packet


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one try."""

    code: int
    said: str
    left: frozenset[str] = frozenset()
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The first line that is not the notice about the key."""
        lines = [line for line in self.said.splitlines() if not line.startswith("the key of this run")]
        return lines[0].removeprefix("error: ") if lines else ""


@dataclass(frozen=True, slots=True)
class Desk:
    """A damaged census in one folder, and an empty folder for what is made of it."""

    files: Files
    out: Path
    key: Path | None = None

    @property
    def packet(self) -> Path:
        """Where the packet is asked for."""
        return self.out / "packet"

    def listing(self) -> frozenset[str]:
        """Every file of both folders, with its size."""
        return frozenset(
            f"{path.relative_to(self.out.parent)} {path.stat().st_size if path.is_file() else 'folder'}"
            for folder in (self.files.folder, self.out)
            for path in folder.rglob("*")
        )

    def tried(self, door: str) -> Outcome:
        """Go through one door."""
        before, said = self.listing(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = DOORS[door](self)
        packet = self.packet.is_dir()
        contents = Packet(self.packet).contents() if packet else {}
        return Outcome(code, said.getvalue(), self.listing() ^ before, contents)

    def command(self, *words: str | Path) -> int:
        """Run a command as the shell would."""
        os.environ.pop("STIRRED_TRACEBACK", None)
        more = () if self.key is None or words[0] == "data" else ("--key", self.key)
        return main([str(word) for word in (*words, *more)])

    def released(self, census: Callable[[], Census]) -> int:
        """Release in Python; an error of Stirred is the only one that may occur."""
        psa = st.PermutationSwapping(match=["oblast", "clanova"], swap=["opstina"], rate="1/5")
        try:
            st.save(psa.release(census(), key=st.Key.for_tests(1)), self.packet)
        except StirredError as error:
            print(f"error: {error}")
            return 2
        return 0


DOORS: dict[str, Callable[[Desk], int]] = {
    "data check": lambda d: d.command("data", "check", d.files["census.toml"]),
    "swap": lambda d: d.command("swap", d.files["census.toml"], *SWAP, "--out", d.packet),
    "topdown": lambda d: d.command(
        "topdown",
        d.files["census.toml"],
        "--workload",
        d.files["workload.toml"],
        "--replicates",
        "0",
        "--out",
        d.packet,
    ),
    "run": lambda d: d.command("run", d.files["plan.toml"], "--out", d.packet),
    "read": lambda d: d.released(lambda: st.read(d.files["census.toml"])),
    "Census.of": lambda d: d.released(lambda: Census.of(d.files.document(), d.files.tables())),
}
