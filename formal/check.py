"""Check the machine-checked proofs: compile them, look for gaps and axioms, and compare what Coq computes.

    python3 formal/check.py           check everything; install Coq and MathComp from Debian if they are missing
    python3 formal/check.py --write   write README.md, the pages of docs and computed.json from the sources

Only the standard library is needed. Everything is built in build/formal.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "stirred"
BUILD = HERE.parent / "build" / "formal"
DOCS = HERE.parent / "docs" / "explain" / "proofs.md"
APPENDIX = HERE.parent / "docs" / "theory" / "appendix.md"
PACKAGES = (
    "coq",
    "libcoq-mathcomp-ssreflect",
    "libcoq-mathcomp-fingroup",
    "libcoq-mathcomp-algebra",
    "libcoq-mathcomp-zify",
    "libcoq-mathcomp-algebra-tactics",
)
TRY = "From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.\n"
GAPS = re.compile(r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|bypass_check)\b")
STATED = re.compile(
    r"^(?:#+ (?:\d+\w?\. )?|(?:[-*] )?\*\*)((?:Theorem|Lemma|Proposition|Corollary) \w+)\b", re.M
)
MARK = re.compile(r"\*\[([^\]]+)\]\*")
CLOSED = "Closed under the global context"
COMPUTED = (
    "derangement_numbers",
    "laws",
    "paper_budgets",
    "by_size_budgets",
    "reductions",
    "all_chances",
    "universes",
    "strata_sizes",
    "stirring_laws",
    "stirring_injections",
    "stirring_trades",
)
INSTALL_SECONDS = 600


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    if "--write" in arguments and not installed():
        write_pages(the_map())
        print("wrote README.md and the pages of docs; computed.json needs Coq")
        return 0
    if not installed() and (reason := install()):
        print("the proofs were not checked: Coq and MathComp could not be installed", file=sys.stderr)
        print(f"  why: {reason}", file=sys.stderr)
        print(f"  fix: apt-get install --no-install-recommends {' '.join(PACKAGES)}", file=sys.stderr)
        return 2
    proofs = the_map()
    faults = [*gaps(), *unmarked(proofs["statement"]), *build()]
    if faults:
        return refuse(faults)
    if "--write" in arguments:
        write_pages(proofs)
        (HERE / "computed.json").write_text(written(computed()))
    faults = [*assumptions(proofs["theorem"]), *stale(proofs)]
    if faults:
        return refuse(faults)
    print(f"{len(proofs['theorem'])} theorems, no gap, no axiom; {time.monotonic() - started:.0f} seconds")
    return 0


def refuse(faults: list[str]) -> int:
    print("the proofs do not hold", *faults, sep="\n  ", file=sys.stderr)
    return 1


def the_map() -> dict[str, list[dict[str, str]]]:
    return tomllib.loads((HERE / "map.toml").read_text(encoding="utf-8"))


def sources() -> list[Path]:
    """The files in the order of _CoqProject."""
    names = (HERE / "_CoqProject").read_text().split()
    return [HERE / name for name in names if name.endswith(".v")]


# ---- Coq ---------------------------------------------------------------------------------------------------------------


def installed() -> bool:
    if shutil.which("coqc") is None or shutil.which("coq_makefile") is None:
        return False
    BUILD.mkdir(parents=True, exist_ok=True)
    probe = BUILD / "probe.v"
    probe.write_text(TRY)
    return subprocess.run(["coqc", "-w", "none", probe.name], cwd=BUILD, capture_output=True).returncode == 0


def install() -> str:
    """Install the Debian packages where that is allowed, within a bounded time; return why they are not there, or ""."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    rights = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if rights and (
        shutil.which("sudo") is None or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode
    ):
        return "only root may install, and sudo asks for a password or is missing"
    print(
        f"installing Coq and MathComp (240 MB to fetch, 1.6 GB on disk), {INSTALL_SECONDS} s at most …",
        flush=True,
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    plain = [
        "-qq",
        "-o",
        "Acquire::Retries=1",
        "-o",
        "Acquire::http::Timeout=20",
        "-o",
        "DPkg::Lock::Timeout=60",
    ]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = [*rights, "apt-get", *plain]
    deadline = time.monotonic() + INSTALL_SECONDS

    def call(*words: str) -> bool:
        left = deadline - time.monotonic()
        try:
            return (
                left > 0
                and subprocess.run([*apt, *words], env=environment, timeout=left, **quiet).returncode == 0
            )
        except subprocess.TimeoutExpired:
            return False

    fetch = ("install", "-y", "--no-install-recommends", "--download-only", *PACKAGES)
    # fetch first: what the time limit may stop is a download, never the unpacking
    if not call(*fetch) and not (call("update") and call(*fetch)):
        return f"the packages could not be fetched in {INSTALL_SECONDS} seconds"
    unpacked = subprocess.run(
        [*apt, "install", "-y", "--no-install-recommends", *PACKAGES], env=environment, **quiet
    )
    if unpacked.returncode:
        return "apt-get fetched the packages and could not unpack them"
    return "" if installed() else "the packages are unpacked, and coqc does not find MathComp"


def gaps() -> list[str]:
    """Every word that would leave something unproved."""
    found = []
    for path in sources():
        text = re.sub(r"\(\*.*?\*\)", lambda m: "\n" * m.group().count("\n"), path.read_text(), flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if match := GAPS.search(line):
                found.append(f"{path.name}:{number}: {match.group()}")
    return found


def build() -> list[str]:
    """Compile what has changed."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for path in [*sources(), HERE / "_CoqProject"]:
        copy = BUILD / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)
    commands = (
        ["coq_makefile", "-f", "_CoqProject", "-o", "Makefile.coq"],
        ["make", "-f", "Makefile.coq", "-j1"],
    )
    for command in commands:
        done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
        if done.returncode:
            return [*done.stdout.splitlines()[-3:], *done.stderr.splitlines()[-15:]]
    return []


def assumptions(theorems: list[dict[str, str]]) -> list[str]:
    """Ask Coq what each listed theorem rests on, and print the list."""
    lines = [f"From Stirred Require {path.stem}." for path in sources() if path.stem != "evaluate"]
    lines += [f"Print Assumptions Stirred.{t['file']}.{t['name']}." for t in theorems]
    faults = []
    for theorem, answer in zip(theorems, _asked(lines, len(theorems)), strict=True):
        name = f"{theorem['file']}.{theorem['name']}"
        print(f"{name:<48} {answer.splitlines()[0] if answer else 'missing'}")
        if answer != CLOSED:
            faults.append(f"{name}: {answer or 'there is no such theorem'}")
    return faults


def _asked(lines: list[str], number: int) -> list[str]:
    """What Coq answers to each of the last ``number`` lines; "" where it refuses."""
    done = subprocess.run(
        ["coqtop", "-q", "-Q", ".", "Stirred", "-w", "none"],
        cwd=BUILD,
        input="\n".join([*lines[:-number], *(f"{line}\nCheck I." for line in lines[-number:])]) + "\n",
        capture_output=True,
        text=True,
    )
    parts = re.split(r"I\s*:\s*True", done.stdout)[:-1]
    answers = []
    for part in parts:
        told = re.sub(r"^(?:\s*Coq < )+", "", re.sub(r"\n(?:Coq < )+", "\n", part.strip())).strip()
        told = re.sub(r"\s*Coq <\s*$", "", told).strip()
        answers.append(CLOSED if CLOSED in told else told.replace("Toplevel input", ""))
    return answers if len(answers) == number else [""] * number


# ---- the marks of proof.md ---------------------------------------------------------------------------------------------


def unmarked(statements: list[dict[str, str]], source: Path = SOURCE) -> list[str]:
    """What a proof.md states that is not listed or not marked, and marks that are not those of the list."""
    found = []
    for page in sorted(source.rglob("*proof.md")):
        name = page.relative_to(source).as_posix()
        text = page.read_text(encoding="utf-8")
        listed = [one for one in statements if one["source"] == name]
        told = set(STATED.findall(text)) - {one["name"] for one in listed}
        found += [f"{name}: {stated} is not in map.toml" for stated in sorted(told)]
        if not listed:
            found.append(f"{name}: nothing of it is in map.toml")
        used = set()
        for one in listed:
            mark = mark_of(text, one)
            if mark is None or not stands_for(mark.group(1), one):
                found.append(
                    f"{name}: {one['name']} does not carry the mark *[{one['status']}: …]* of map.toml"
                )
            elif mark.start() in used:
                found.append(f"{name}: {one['name']} has no mark of its own")
            else:
                used.add(mark.start())
        spare = [mark.group() for mark in MARK.finditer(text) if mark.start() not in used]
        found += [f"{name}: {mark} belongs to no statement of map.toml" for mark in spare]
    return found


def mark_of(text: str, one: dict[str, str]) -> re.Match[str] | None:
    """The first mark behind a statement's heading: on its line, or on the next one where it is a line of its own."""
    if "head" in one:
        start = text.find(one["head"])
        end = start + len(one["head"])
    else:
        stated = next((match for match in STATED.finditer(text) if match.group(1) == one["name"]), None)
        start, end = (stated.start(), stated.end()) if stated else (-1, -1)
    if start < 0:
        return None
    stop = text.index("\n", end)
    if text[start] == "#":
        stop = text.index("\n", stop + 1)
    return MARK.search(text, end, stop)


def stands_for(mark: str, one: dict[str, str]) -> bool:
    """A mark begins with the status of its statement and names theorems that are listed with it."""
    return mark.startswith(one["status"]) and {*re.findall(r"`(\w+)`", mark)} == {*one.get("theorems", ())}


# ---- what Coq computed -------------------------------------------------------------------------------------------------


def computed() -> dict[str, object]:
    """The results of evaluate.v as nested lists of whole numbers."""
    results = {}
    for name in COMPUTED:
        text = (BUILD / f"{name}.out").read_text()
        value = text[text.index("=") + 1 : text.rindex(":")]
        value = value.replace("[::", "[").replace(";", ",").replace("%N", "").replace("%num", "")
        results[name] = json.loads(value)
    return results


def written(results: dict[str, object]) -> str:
    """One line for each entry, so that a change shows where it is."""
    lines = []
    for name, value in results.items():
        rows = ",\n    ".join(json.dumps(row, separators=(",", ":")) for row in value)
        lines.append(f'  "{name}": [\n    {rows}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---- pages -------------------------------------------------------------------------------------------------------------


def statement(theorem: dict[str, str]) -> str:
    """The statement of a theorem, verbatim from its file."""
    text = (HERE / f"{theorem['file']}.v").read_text()
    found = re.search(
        rf"^(?:Theorem|Lemma|Corollary) {re.escape(theorem['name'])}\b.*?\.$(?=\n(?:Proof|Qed))",
        text,
        re.M | re.S,
    )
    return found.group() if found else ""


def theorem_pages(theorems: list[dict[str, str]]) -> str:
    parts, file = [], ""
    for theorem in theorems:
        if theorem["file"] != file:
            file = theorem["file"]
            parts.append(f"### {file}.v\n")
        parts.append(f"**{theorem['name']}.** {theorem['words']}\n\n```coq\n{statement(theorem)}\n```\n")
    return "\n".join(parts)


def statement_table(statements: list[dict[str, str]]) -> str:
    parts, source = [], ""
    for one in statements:
        if one["source"] != source:
            source = one["source"]
            parts += [
                "",
                f"### {source}",
                "",
                "| statement | what it says | status | Coq |",
                "|---|---|---|---|",
            ]
        names = ", ".join(f"`{name}`" for name in one.get("theorems", ()))
        parts.append(
            f"| {one['name']} | {one['words']} | {one['status']} | {'; '.join(filter(None, [names, one.get('note')]))} |"
        )
    return "\n".join(parts).strip() + "\n"


def appendix(statements: list[dict[str, str]]) -> str:
    """What the paper states: in words, with the test that checks it and the Coq theorem that proves it."""
    parts = []
    for one in statements:
        if "says" not in one:
            continue
        tests = [f"[`{test.partition('::')[2]}`](../../{test.partition('::')[0]})" for test in one["tests"]]
        coq = "; ".join(
            filter(None, [", ".join(f"`{name}`" for name in one.get("theorems", ())), one.get("note")])
        )
        parts += [
            f"## {one['name']}\n",
            f"{one['says']}\n",
            f"- Tests: {', '.join(tests)}",
            f"- Coq: {one['status']}{': ' if coq else ''}{coq}\n",
        ]
    return "\n".join(parts)


def pages(proofs: dict[str, list[dict[str, str]]]) -> dict[Path, str]:
    """README.md and the pages of docs with their lists renewed between the two marks."""
    made = {}
    for path, text in (
        (HERE / "README.md", theorem_pages(proofs["theorem"])),
        (DOCS, statement_table(proofs["statement"])),
        (APPENDIX, appendix(proofs["statement"])),
    ):
        page = path.read_text(encoding="utf-8")
        head, rest = page.split("<!-- from map.toml -->\n", 1)
        tail = rest.split("<!-- end -->", 1)[1]
        made[path] = f"{head}<!-- from map.toml -->\n\n{text}\n<!-- end -->{tail}"
    return made


def write_pages(proofs: dict[str, list[dict[str, str]]]) -> None:
    for path, text in pages(proofs).items():
        path.write_text(text, encoding="utf-8")


def stale(proofs: dict[str, list[dict[str, str]]]) -> list[str]:
    """Pages and numbers that no longer are what the sources give."""
    found = [
        f"{path.name} is not what map.toml and the sources give: python3 formal/check.py --write"
        for path, text in pages(proofs).items()
        if path.read_text(encoding="utf-8") != text
    ]
    if (HERE / "computed.json").read_text() != written(computed()):
        found.append("computed.json is not what Coq computes: python3 formal/check.py --write")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
