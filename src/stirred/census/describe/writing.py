"""Write a document as TOML text that a person can edit."""

import json
import re
from collections.abc import Mapping

BARE = re.compile(r"^[A-Za-z0-9_-]+$")
HEAD = """\
# A first description of a census, guessed from its files. Correct it by hand, then: stirred data check census.toml
"""


def to_toml(document: Mapping[str, object]) -> str:
    """Write tables for record types, with one line per variable; the key ``#`` becomes a comment.

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
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping) and key != "#"}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    inline = bool(path) and path[-1] in ("variables", "level", "off_spine")
    if path and (plain or inline):
        lines += ["", f"[{'.'.join(map(_key, path))}]" + _comment(table)]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in inner.items():
        if inline:
            lines.append(f"{_key(key)} = {_value(value)}" + _comment(value))
        else:
            _table(lines, (*path, key), value)


def _comment(table: Mapping[str, object]) -> str:
    return f"  # {table['#']}" if "#" in table else ""


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
