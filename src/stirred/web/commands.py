"""The commands of a workbench: what it runs is what it shows, and what it shows runs as shown."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from stirred.web.forms import AttackerForm

NOBODY = AttackerForm()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCommand:
    """A command as it is typed in the folder of the workbench, and the same in Python."""

    words: tuple[str, ...]
    python: str = ""
    note: str = ""
    program: str = "stirred"

    @property
    def text(self) -> str:
        """Return the command line."""
        return shlex.join((self.program, *self.words))


def serve(folder: str) -> ShownCommand:
    """Open the same workbench again."""
    return ShownCommand(
        words=("serve", folder),
        python="from pathlib import Path\n\n"
        "from stirred.web.server import serve\n"
        "from stirred.web.workbench import Workbench\n\n"
        f'serve(Workbench.of(Path({folder!r})), host="127.0.0.1", port=8642, told=print)',
        note="Stop it with Ctrl-C; plans, runs and packets stay in the folder.",
    )


def difference(before: str, after: str) -> ShownCommand:
    """Compare two versions of the plan line by line; the system's diff ends with 1 where they differ."""
    return ShownCommand(
        words=("-u", before, after),
        program="diff",
        python="import difflib\nfrom pathlib import Path\n\n"
        f"before, after = (Path(p).read_text().splitlines() for p in ({before!r}, {after!r}))\n"
        'print("\\n".join(difflib.unified_diff(before, after, lineterm="")))',
        note="Every version is a plan of its own: each can be checked and run.",
    )


def synth(households: int | None = None) -> ShownCommand:
    """Make the demo census in the folder ``census``."""
    more = () if households is None else ("--households", str(households))
    asked = "" if households is None else f", households={households}"
    return ShownCommand(
        words=("data", "synth", "demo", "--out", "census", *more),
        python="from pathlib import Path\n"
        "from stirred.census.synthetic import write_preset\n\n"
        f'write_preset("demo", Path("census"){asked})',
    )


def describe(files: Sequence[str], *, sheets: Sequence[str] = (), tables: Sequence[str] = ()) -> ShownCommand:
    """Guess a codebook from files, and from these sheets of a workbook or tables of a database."""
    flags = [word for name in sheets for word in ("--sheet", name)]
    flags += [word for name in tables for word in ("--table", name)]
    named = "".join(
        f", {key}={list(value)!r}" for key, value in (("sheets", sheets), ("tables", tables)) if value
    )
    return ShownCommand(
        words=("data", "describe", *files, *flags, "--out", "census/census.toml"),
        python="from pathlib import Path\n"
        "from stirred.census.describe import describe\n\n"
        f'found = describe({[name.removeprefix("census/") for name in files]!r}, folder=Path("census"){named})\n'
        'Path("census/census.toml").write_text(found.toml(), encoding="utf-8")',
    )


def check_data(census: str) -> ShownCommand:
    """Hold the records against the codebook."""
    return ShownCommand(
        words=("data", "check", census),
        python=f"import stirred as st\n\nst.read({census!r}).require_valid()",
    )


def check_plan(plan: str) -> ShownCommand:
    """State the promise and let the guards look, with a trial draw."""
    return ShownCommand(
        words=("plan", "check", plan),
        python="import stirred as st\n"
        "from stirred.publish.check import explain\n\n"
        f"print(explain(st.load({plan!r})).sentence)",
    )


def run(plan: str, out: str, *, key: str = "") -> ShownCommand:
    """Run a plan; with a key that exists the same packet is made again."""
    made = f"st.Key.load({key!r})" if key else "st.Key.fresh()"
    return ShownCommand(
        words=("run", plan, "--out", out, *(("--key", key) if key else ())),
        python=f"import stirred as st\n\nst.run({plan!r}, {out!r}, key={made})",
    )


def assess(
    packet: str, census: str, out: str, only: Sequence[str], attacker: AttackerForm = NOBODY
) -> ShownCommand:
    """Hold a packet against the truth."""
    needed, settings = _doubting("assess_packet", attacker)
    return ShownCommand(
        words=("assess", packet, "--truth", census, "--out", out, "--only", *only, *attacker.words),
        python="from pathlib import Path\n\nimport stirred as st\n"
        f"{needed}\n"
        "from stirred.publish.assessment import write_assessments\n\n"
        f"packet = st.Packet({packet!r})\n"
        f"found = assess_packet(packet, st.read({census!r}), only={list(only)!r}{settings})\n"
        f'write_assessments([found], Path({out!r}), private=bool(packet.receipt()["private"]))',
        note="Internal: metrics against the truth are a release.",
    )


def compare(packets: Sequence[str], out: str) -> ShownCommand:
    """Compare packets side by side, from their public parts."""
    return ShownCommand(
        words=("packet", "compare", *packets, "--out", out),
        python="from pathlib import Path\n"
        "from stirred.publish.side_by_side import write_comparison\n\n"
        f"write_comparison([Path(p) for p in {list(packets)!r}], Path({out!r}))",
    )


def frontier(
    plan: str, out: str, rates: Sequence[str], rho: Sequence[str], attacker: AttackerForm = NOBODY
) -> ShownCommand:
    """Draw risk against error over a family of releases."""
    more = (*(("--rates", *rates) if rates else ()), *(("--rho", *rho) if rho else ()), *attacker.words)
    needed, settings = _doubting("", attacker)
    return ShownCommand(
        words=("frontier", plan, *more, "--out", out),
        python="from pathlib import Path\n\nimport stirred as st\n"
        f"{needed}{chr(10) if needed else ''}"
        "from stirred.publish.frontier import build_family, draw_frontier\n\n"
        f"plan = st.load({plan!r})\n"
        f"members = build_family(plan, rates={list(rates)!r}, rho_squared={list(rho)!r})\n"
        f"draw_frontier(members, plan.checked_census(), Path({out!r}), key=st.Key.fresh(){settings})",
        note="Internal: it holds releases against the truth.",
    )


def _doubting(name: str, attacker: AttackerForm) -> tuple[str, str]:
    """Return the import and the argument for what an attacker knows and wants."""
    names = [*(["DoubtSettings"] if attacker.python else []), *([name] if name else [])]
    needed = f"from stirred.publish.assessment import {', '.join(names)}" if names else ""
    return needed, f", settings={attacker.python}" if attacker.python else ""


def verify(packet: str) -> ShownCommand:
    """Compare every file of a packet with its checksum."""
    return ShownCommand(
        words=("packet", "verify", packet),
        python="from pathlib import Path\n\nfrom stirred.publish import verify\n\n"
        f"print(verify(Path({packet!r})))",
    )
