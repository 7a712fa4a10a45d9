"""Hold a plan as a document that forms change: read, proposed, edited in its own text, with its reasons."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stirred.closed_files import write_closed_text
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import read_extra
from stirred.mechanisms.registry import find_registration, list_mechanisms
from stirred.publish.plan.models import PlanConfig
from stirred.publish.plan.proposal import propose_plan
from stirred.text_formats import TomlError, parse_toml, write_toml

# A plan as a document that forms change: read from its text, and written again as TOML.

Document = dict[str, Any]
ORDER = tuple(PlanConfig.model_fields)


def document_of(text: str) -> Document:
    """Return the document of a plan, with its mechanisms as a list."""
    found = dict(parse_toml(text))
    stated = found.get("mechanism", [])
    found["mechanism"] = [dict(stated)] if isinstance(stated, Mapping) else [dict(one) for one in stated]
    return found


def text_of(document: Mapping[str, Any]) -> str:
    """Return the plan as TOML: simple keys first, then tables in the order of the reference.

    >>> print(text_of({"title": "t", "mechanism": [{"name": "x", "rate": "1/2"}], "budget": {"owner": "o"}}), end="")
    title = "t"
    <BLANKLINE>
    [[mechanism]]
    name = "x"
    rate = "1/2"
    <BLANKLINE>
    [budget]
    owner = "o"
    """
    keys = [*(key for key in ORDER if key in document), *(key for key in document if key not in ORDER)]
    lines = [f"{key} = {write_toml(document[key])}" for key in keys if not _is_table(document[key])]
    for key in keys:
        if _is_table(document[key]):
            lines += _tables(key, document[key])
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _tables(name: str, value: object) -> list[str]:
    """Write a table or an array of tables; nested values of a [[mechanism]] stand in one line."""
    lines: list[str] = []
    several = isinstance(value, list)
    tables: list[Mapping[str, Any]] = value if isinstance(value, list) else [value]  # type: ignore[list-item]
    for table in tables:
        lines += ["", f"[[{name}]]" if several else f"[{name}]"]
        inline = name == "mechanism"
        lines += [
            f"{key} = {write_toml(inner)}" for key, inner in table.items() if inline or not _is_table(inner)
        ]
        for key, inner in table.items():
            if not inline and _is_table(inner):
                lines += _tables(f"{name}.{key}", inner)
    return lines


# A plan after a form, in its own text: comments and the order of lines stay where nothing changed.

HEAD_PATTERN = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]\]?\s*(#.*)?")
Table = Mapping[str, Any]


class _OtherwiseWrittenError(Exception):
    """The text has a form that is not changed in place."""


def edit_text(text: str, document: Document) -> str:
    """Return the text with only the lines of changed settings rewritten, or all of it where that fails.

    >>> text = '# why\\n[[mechanism]]\\nrate = "1/20"  # a start\\n'
    >>> print(edit_text(text, {"mechanism": [{"rate": "1/4", "swap": ["block"]}]}), end="")
    # why
    [[mechanism]]
    rate = "1/4"  # a start
    swap = ["block"]
    """
    try:
        made = _edit_lines(text, document)
        return made if document_of(made) == document else text_of(document)
    except (_OtherwiseWrittenError, TomlError):
        return text_of(document)


def _edit_lines(text: str, document: Document) -> str:
    blocks = list(_blocks(text.splitlines()))
    before = document_of(text)
    more: Document = {}
    for name in dict.fromkeys([*before, *document]):
        old, new = before.get(name), document.get(name)
        if old == new:
            continue
        if not _is_tables(old if name in before else new):
            _set(
                blocks[0],
                {} if name not in before else {name: old},
                {} if name not in document else {name: new},
            )
            continue
        olds, news = _list_tables(old), _list_tables(new)
        own = [block for block in blocks if block.name == name]
        if len(own) != len(olds):
            raise _OtherwiseWrittenError
        for block, was, now in zip(own, olds, news, strict=False):
            _set(block, was, now)
        for block in own[len(news) :]:
            block.clear()
        if len(news) > len(olds):
            more[name] = news[len(olds) :] if isinstance(new, list) else new
    lines = [line for block in blocks for line in block.lines]
    return "\n".join(lines).rstrip("\n") + "\n" + (text_of(more) if more else "")


class _Block:
    """A header with the lines up to the next one; the first block has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []

    def clear(self) -> None:
        """Take the table out; comments at its end are about the next one."""
        last = max((n for n, line in enumerate(self.lines) if not _is_remark(line)), default=-1)
        self.lines = self.lines[last + 1 :]


def _blocks(lines: list[str]) -> Iterator[_Block]:
    block = _Block("")
    for line in lines:
        found = HEAD_PATTERN.fullmatch(line)
        if found:
            yield block
            block = _Block(found[1])
        block.lines.append(line)
    yield block


def _set(block: _Block, old: Table, new: Table) -> None:
    """Change, take out and add the settings of one table."""
    for key in dict.fromkeys([*old, *new]):
        if key in old and key in new and old[key] == new[key]:
            continue
        if key not in old:
            last = max((n for n, line in enumerate(block.lines) if not _is_remark(line)), default=-1)
            block.lines.insert(last + 1, f"{key} = {write_toml(new[key])}")
            continue
        first, end, remark = _place(block.lines, key, old[key])
        block.lines[first:end] = [f"{key} = {write_toml(new[key])}{remark}"] if key in new else []


def _place(lines: list[str], key: str, value: object) -> tuple[int, int, str]:
    """Return the lines that state a value, and the comment behind it."""
    for first, line in enumerate(lines):
        if not re.match(rf"\s*{re.escape(key)}\s*=", line):
            continue
        for at in (n for n, letter in enumerate(line) if letter == "#"):
            if _states(line[:at], key, value):
                return first, first + 1, line[len(line[:at].rstrip()) :]
        for end in range(first + 1, len(lines) + 1):
            if _states("\n".join(lines[first:end]), key, value):
                return first, end, ""
    raise _OtherwiseWrittenError


def _states(text: str, key: str, value: object) -> bool:
    try:
        return parse_toml(text) == {key: value}
    except TomlError:
        return False


def _is_remark(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_tables(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _list_tables(value: object) -> list[Table]:
    return [] if value is None else value if isinstance(value, list) else [value]  # type: ignore[list-item]


# Reasons: what is accepted although a guard refuses it has a written reason in the plan, which the report prints.

MIN_REASON_CHARACTERS = 12  # characters of a reason


def list_accepted(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every name that a setting accepts although a guard refuses it, with the setting."""
    for settings in document.get("mechanism", []):
        name = str(settings.get("name", ""))
        if name not in list_mechanisms():
            continue
        for key, field in find_registration(name).Config.model_fields.items():
            if read_extra(field).get("overrides"):
                yield from ((str(item), key) for item in settings.get(key) or ())


def subject(name: str, setting: str) -> str:
    """Return what the reason is about, as the report prints it: why … is exact.

    >>> subject("weight", "accept_reversal")
    'the column weight (accept_reversal)'
    """
    return f"the column {name} ({setting})"


def label_setting(document: Mapping[str, Any], setting: str) -> str:
    """Return what a setting is called on the screens."""
    for stated in document.get("mechanism", []):
        name = str(stated.get("name", ""))
        fields = find_registration(name).Config.model_fields if name in list_mechanisms() else {}
        if setting in fields:
            return str(read_extra(fields[setting]).get("label") or setting.replace("_", " "))
    return setting.replace("_", " ")


def require_reasons(document: Document) -> None:
    """Refuse a plan that accepts something without a reason."""
    written = {str(one.get("invariant", "")): str(one.get("text", "")) for one in document.get("reason", [])}
    for name, setting in list_accepted(document):
        if len(written.get(subject(name, setting), "").strip()) < MIN_REASON_CHARACTERS:
            raise PrivacyError(
                f"{name} is accepted without a reason",
                why=f"“{label_setting(document, setting)}” publishes what a guard refuses, and the report says why",
                fix=f"write the reason for {name}, in at least {MIN_REASON_CHARACTERS} characters; or do not accept it",
            )


def with_reason(
    document: Document, invariant: str, text: str, *, kind: str = "operation", citation: str = ""
) -> None:
    """State, change or, with an empty text, take back a reason."""
    others = [one for one in document.get("reason", []) if one.get("invariant") != invariant]
    if text.strip():
        others.append(
            {"invariant": invariant, "kind": kind, "text": text.strip()}
            | ({"citation": citation.strip()} if citation.strip() else {})
        )
    if others:
        document["reason"] = others
    else:
        document.pop("reason", None)


# A first plan for a census: proposed by the method from the codebook; the files that it names lie beside the plans.


def propose_text(kind: type[Mechanism], census: Path, plans: Path) -> str:
    """Return the text of a proposed plan; write its files, under another name where one exists."""
    found = propose_plan(kind, census, plans / "new.toml")
    text = found.text
    for name, content in found.files.items():
        place, number = plans / name, 1
        while place.exists() and place.read_text(encoding="utf-8") != content:
            number += 1
            place = plans / f"{Path(name).stem}-{number}{Path(name).suffix}"
        if not place.exists():
            write_closed_text(place, content)
        if place.name != name:
            text = text.replace(f'"{name}"', f'"{place.name}"')
    return text
