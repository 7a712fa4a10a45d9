"""List the texts of cards and reports that changed since a commit: what was said before and what is said now.

    python tools/list_changed_texts.py 78f74704                                        prints the list
    python tools/list_changed_texts.py 78f74704 docs/benchmarks/changed-sentences.md   writes it below the page's mark

English is listed in full; the other languages, which have the same keys, as numbers.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "src/stirred/languages"
MARK = "<!-- below: written by tools/list_changed_texts.py -->\n"
SPACES = str.maketrans("", "", " \u00a0\u202f")


def join_keys(tables: dict[str, Any], above: str = "") -> dict[str, str]:
    """Return the texts of nested tables by dotted key."""
    found: dict[str, str] = {}
    for key, entry in tables.items():
        found |= (
            join_keys(entry, f"{above}{key}.") if isinstance(entry, dict) else {f"{above}{key}": str(entry)}
        )
    return found


def read_before(commit: str, language: str) -> dict[str, str]:
    """Return the texts of a language as they were in a commit."""
    command = ["git", "-C", str(ROOT), "show", f"{commit}:{FOLDER}/{language}.toml"]
    return join_keys(
        tomllib.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    )


def escape_marks(text: str) -> str:
    """Return a text in which Markdown marks nothing."""
    for mark in ("\\", "*", "_", "<", "[", "$", "`"):
        text = text.replace(mark, "\\" + mark)
    return text.replace("\u00a0", " ")


def list_changes(commit: str) -> list[str]:
    """Return the lines of the list."""
    numbers, english = [], []
    for language in ("en", "de", "fr", "es"):
        before = read_before(commit, language)
        now = join_keys(tomllib.loads((ROOT / FOLDER / f"{language}.toml").read_text()))
        kept = [key for key in now if key in before]
        changed = [key for key in kept if before[key] != now[key]]
        words = [key for key in changed if before[key].translate(SPACES) != now[key].translate(SPACES)]
        new, gone = [key for key in now if key not in before], [key for key in before if key not in now]
        row = (len(before), len(words), len(changed) - len(words), len(gone), len(new), len(now))
        numbers.append(f"| {language} | {' | '.join(f'{number:,}' for number in row)} |")
        if language == "en":
            english = [
                "**Other words**",
                "",
                *(f"- `{key}`: {escape_marks(before[key])} → {escape_marks(now[key])}" for key in words),
                "",
                "**No longer said, or said under another key**",
                "",
                *(f"- `{key}`: {escape_marks(before[key])}" for key in gone),
                "",
                "**Another space only** (before %): "
                + ", ".join(f"`{key}`" for key in changed if key not in words)
                + ".",
            ]
    return [
        "| language | texts before | other words | another space | gone | new | texts now |",
        "|---|---|---|---|---|---|---|",
        *numbers,
        "",
        "## English, every text",
        "",
        *english,
    ]


def main() -> None:
    """Print the list, or write it below the mark of a page."""
    told = "\n".join(list_changes(sys.argv[1])) + "\n"
    if len(sys.argv) < 3:
        print(told, end="")
        return
    page = Path(sys.argv[2])
    page.write_text(page.read_text().partition(MARK)[0] + MARK + "\n" + told)


if __name__ == "__main__":
    main()
