"""The page of faults in the reference: what every door says of each fault. Run it to write the page anew."""

import tempfile
from pathlib import Path

from faulty.doors import Desk, Outcome
from faulty.faults import FILES, RULES, Fault
from faulty.sound import Files
from stirred.census import check
from stirred.errors import StirredError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"
HEAD = """# Faults in files, and what is said of them

A census of two regions is damaged in each of these ways, and then goes through `stirred data check`, `swap`, `topdown`,
`run`, `mechanism.release(st.read(…))` and `mechanism.release(Census.of(schema, tables))`. The table shows what `data check`
finds, what a release says in its first line (why and how to fix it follow), and the two exit codes; in Python the same words
are a `StirredError`. The digits 7391 stand in every identifier, area and note of the records: they are in no message, log or
file name. After a refusal both folders are as they were: no key, no log, no packet. `tests/e2e/test_faults.py` holds this
page against every door.
"""
COLUMNS = ("fault", "`data check` says", "exit", "a release says", "exit", "left")


def row(fault: Fault, checked: str, outcome: Outcome, code: int) -> str:
    """One line of the table."""
    left = "the packet" if fault.right else "nothing"
    said = "the packet of the sound census" if fault.right else outcome.first
    return _line(fault.name, checked, str(code), said, str(outcome.code), left)


def checked(files: Files) -> str:
    """What ``data check`` finds, as sentences."""
    try:
        problems = check(files["census.toml"])
    except StirredError as error:
        return error.what
    return "; ".join(str(problem) for problem in problems.worst(2)) or str(problems)


def page(rows: dict[str, list[str]]) -> str:
    """The whole page."""
    parts = [HEAD]
    for title, lines in rows.items():
        parts.append(
            "\n".join([f"## {title}\n", _line(*COLUMNS), _line(*["---"] * len(COLUMNS)), *lines]) + "\n"
        )
    return "\n".join(parts)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def tried(fault: Fault, folder: Path) -> str:
    """Damage a census, go through two doors, and tell it."""
    for name in ("office", "out"):
        (folder / name).mkdir()
    files = Files.sound(folder / "office")
    fault.damage(files)
    desk = Desk(files, folder / "out")
    return row(fault, checked(files), desk.tried("swap"), desk.tried("data check").code)


def main() -> None:
    """Write the page."""
    rows: dict[str, list[str]] = {}
    for title, faults in (("Records that break a rule", RULES), ("Files that are not what they say", FILES)):
        rows[title] = []
        for fault in faults:
            with tempfile.TemporaryDirectory() as folder:
                rows[title].append(tried(fault, Path(folder)))
    PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
