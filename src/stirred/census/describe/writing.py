"""Write a document as TOML text that a person can edit."""

import json
import re
from collections.abc import Mapping

BARE = re.compile(r"^[A-Za-z0-9_-]+$")
SHORT = frozenset({"kind", "where"})  # tables of a record type that fit in a line
HEAD = """\
# A first description of a census, guessed from its files. Correct it by hand, then: stirred data check census.toml
"""


def to_toml(document: Mapping[str, object]) -> str:
    """Write tables for record types, with one line per variable; the key ``#`` becomes a comment, and ``#id`` one on ``id``.

    >>> print(to_toml({"name": "x", "record": {"household": {"variables": {"size": {"range": "1..7"}}}}}), end="")
    # A first description of a census, guessed from its files. Correct it by hand, then: stirred data check census.toml
    name = "x"
    <BLANKLINE>
    [record.household.variables]
    size = {range = "1..7"}
    """
    lines = [HEAD.rstrip("\n")]
    _table(lines, (), document)
    return "\n".join(lines) + "\n"


def _table(lines: list[str], path: tuple[str, ...], table: Mapping[str, object]) -> None:
    inline = bool(path) and path[-1] in ("variables", "level", "off_spine")
    notes = {} if inline else {key: value for key, value in table.items() if key.startswith("#")}
    plain = {
        k: v for k, v in table.items() if not isinstance(v, Mapping) and not _tables(v) and k not in notes
    }
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if path and (plain or inline):
        lines += ["", f"[{'.'.join(map(_key, path))}]" + _comment(table, "#")]
    lines += [f"{_key(key)} = {_value(value)}{_comment(notes, f'#{key}')}" for key, value in plain.items()]
    short = {key: value for key, value in inner.items() if inline or (path and key in SHORT)}
    lines += [f"{_key(key)} = {_value(value)}" + _comment(value, "#") for key, value in short.items()]
    for key, value in inner.items():
        if key not in short:
            _table(lines, (*path, key), value)
    for key, rows in table.items():
        for row in _tables(rows):
            lines += ["", f"[[{'.'.join(map(_key, (*path, key)))}]]"]
            lines += [f"{_key(name)} = {_value(item)}" for name, item in row.items()]


def _tables(value: object) -> list[Mapping[str, object]]:
    """The tables of a list of tables; empty for anything else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _comment(table: Mapping[str, object], key: str) -> str:
    return f"  # {table[key]}" if key in table else ""


def _key(key: str) -> str:
    return key if BARE.match(key) else json.dumps(key, ensure_ascii=False)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(k))} = {_value(v)}" for k, v in value.items() if k != "#") + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
