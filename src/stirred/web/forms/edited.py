"""A plan after a form, in its own text: comments and the order of lines stay where nothing changed."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stirred.mechanisms.config import write_toml
from stirred.toml_text import TomlError, parse_toml
from stirred.web.forms.document import Document, document_of, text_of

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
