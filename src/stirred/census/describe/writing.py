"""Write a document as TOML text that a person can edit."""

import json
import re
from collections.abc import Mapping

BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")
ONE_LINE_TABLES = frozenset({"kind", "where"})  # tables of a record type that fit in a line
FILE_COMMENT = """\
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
    lines = [FILE_COMMENT.rstrip("\n")]
    _add_table(lines, (), document)
    return "\n".join(lines) + "\n"


def _add_table(lines: list[str], path: tuple[str, ...], table: Mapping[str, object]) -> None:
    inline = bool(path) and path[-1] in ("variables", "level", "off_spine")
    notes = {} if inline else {key: value for key, value in table.items() if key.startswith("#")}
    plain = {
        k: v
        for k, v in table.items()
        if not isinstance(v, Mapping) and not _list_tables(v) and k not in notes
    }
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if path and (plain or inline):
        lines += ["", f"[{'.'.join(map(_quote_key, path))}]" + _write_comment(table, "#")]
    lines += [
        f"{_quote_key(key)} = {_write_value(value)}{_write_comment(notes, f'#{key}')}"
        for key, value in plain.items()
    ]
    short = {key: value for key, value in inner.items() if inline or (path and key in ONE_LINE_TABLES)}
    lines += [
        f"{_quote_key(key)} = {_write_value(value)}" + _write_comment(value, "#")
        for key, value in short.items()
    ]
    for key, value in inner.items():
        if key not in short:
            _add_table(lines, (*path, key), value)
    for key, rows in table.items():
        for row in _list_tables(rows):
            lines += ["", f"[[{'.'.join(map(_quote_key, (*path, key)))}]]"]
            lines += [f"{_quote_key(name)} = {_write_value(item)}" for name, item in row.items()]


def _list_tables(value: object) -> list[Mapping[str, object]]:
    """Return the tables of a list of tables; empty for anything else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _write_comment(table: Mapping[str, object], key: str) -> str:
    return f"  # {table[key]}" if key in table else ""


def _quote_key(key: str) -> str:
    return key if BARE_KEY.match(key) else json.dumps(key, ensure_ascii=False)


def _write_value(value: object) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{_quote_key(str(k))} = {_write_value(v)}" for k, v in value.items() if k != "#")
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_write_value(item) for item in value) + "]"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
