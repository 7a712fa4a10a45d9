"""Write START-HERE: which number to quote and what each file of a packet is, as a page and as text."""

from html import escape
from pathlib import Path
from urllib.parse import quote

from stirred.languages import Language

START_HERE = "START-HERE"
FILES = (  # what lies in the public part of a packet, in the order in which people open it
    ("report.html", "report"),
    ("card.html", "card"),
    ("tables/*.csv", "csv"),
    ("tables/*.parquet", "parquet"),
    ("tables/README.txt", "readme"),
    ("data*/*.parquet", "data"),
    ("labels.json", "labels"),
    ("datapackage.json", "columns"),
    ("spec.json", "spec"),
    ("plan.toml", "plan"),
    ("redo.py", "redo"),
    ("receipt.json", "receipt"),
    ("registry.yaml", "registry"),
)
COMMANDS = ("sha256sum -c checksums.txt", "stirred packet verify ..")  # both in the folder of the guide
SEALED = ("checksums.txt", "checksums")  # written last, over all others
STYLE = (
    "body{font:17px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1d2327;"
    "background:#fbfaf7}a{color:#0b6e6e}li{margin:.35rem 0}"
    "pre{overflow-x:auto;border-left:3px solid #0b6e6e;padding:.3rem .8rem;margin:.3rem 0}"
    "@media(prefers-color-scheme:dark){body{color:#e7e5df;background:#14181b}a{color:#5fc4bd}}"
)


def write_guide(public: Path, *, title: str, language: Language, private: bool = True) -> None:
    """Write START-HERE.html and START-HERE.txt for the files that the folder holds."""
    say = language.say
    rows = [(name, say(f"packet.start.file.{key}")) for name, key in FILES if any(public.glob(name))]
    rows.append((SEALED[0], say(f"packet.start.file.{SEALED[1]}")))
    tables = any(public.glob("tables/*.parquet"))
    rule = say("packet.readme.rule") if tables else say("report.first.quote.records_words")
    marks = [] if private else [say("packet.start.not_private")]
    heading = say("packet.start.title", title=title)
    number, files, check = (say(f"packet.start.{key}") for key in ("quote", "files", "check"))
    width = max(len(name) for name, _ in rows) + 2
    lines = [*marks, heading, "=" * len(heading), "", number, "", f"  {rule}", "", files, ""]
    lines += [f"  {name:<{width}}{words}" for name, words in rows]
    lines += ["", check, "", *(f"  {command}" for command in COMMANDS), ""]
    (public / f"{START_HERE}.txt").write_text("\n".join(lines), encoding="utf-8")
    told = "".join(f"<pre>{escape(command)}</pre>" for command in COMMANDS)
    items = "".join(f"<li>{_link(public, name)}: {escape(words)}</li>" for name, words in rows)
    page = (
        f'<!doctype html>\n<html lang="{language.code}">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(heading)}</title>'
        f"<style>{STYLE}</style></head>\n<body><main>\n"
        + "".join(f"<p><strong>{escape(mark)}</strong></p>\n" for mark in marks)
        + f"<h1>{escape(heading)}</h1>\n<h2>{escape(number)}</h2>\n<p>{escape(rule)}</p>\n"
        f"<h2>{escape(files)}</h2>\n<ul>{items}</ul>\n<p>{escape(check)}</p>\n{told}\n</main></body>\n</html>\n"
    )
    (public / f"{START_HERE}.html").write_text(page, encoding="utf-8")


MAX_FILES_LINKED = 40  # files of one kind that are linked one by one


def _link(public: Path, name: str) -> str:
    """Return a link to a file, or to each of several; to their folder where they are many."""
    if "*" not in name:
        return f'<a href="{escape(name)}"><code>{escape(name)}</code></a>'
    found = sorted(path.relative_to(public).as_posix() for path in public.glob(name))
    if len(found) > MAX_FILES_LINKED:
        found = sorted({one.rpartition("/")[0] + "/" for one in found})
    return ", ".join(f'<a href="{escape(quote(one))}"><code>{escape(one)}</code></a>' for one in found)
