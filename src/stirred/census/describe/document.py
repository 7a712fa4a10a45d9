"""Hold a census.toml as an object to edit: a mapping with comments, written as TOML or made from a schema."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from stirred.census.schema import OffSpine, RecordSchema, Schema, Source, VariableSchema
from stirred.text_formats import write_toml, write_toml_key

# Write a document as TOML text that a person can edit.

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
        lines += ["", f"[{'.'.join(map(write_toml_key, path))}]" + _write_comment(table, "#")]
    lines += [
        f"{write_toml_key(key)} = {_write_value(value)}{_write_comment(notes, f'#{key}')}"
        for key, value in plain.items()
    ]
    short = {key: value for key, value in inner.items() if inline or (path and key in ONE_LINE_TABLES)}
    lines += [
        f"{write_toml_key(key)} = {_write_value(value)}" + _write_comment(value, "#")
        for key, value in short.items()
    ]
    for key, value in inner.items():
        if key not in short:
            _add_table(lines, (*path, key), value)
    for key, rows in table.items():
        for row in _list_tables(rows):
            lines += ["", f"[[{'.'.join(map(write_toml_key, (*path, key)))}]]"]
            lines += [f"{write_toml_key(name)} = {_write_value(item)}" for name, item in row.items()]


def _list_tables(value: object) -> list[Mapping[str, object]]:
    """Return the tables of a list of tables; empty for anything else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _write_comment(table: Mapping[str, object], key: str) -> str:
    return f"  # {table[key]}" if key in table else ""


def _write_value(value: object) -> str:
    """Return a value without its comments; what is neither a text nor a whole number is written as a text."""
    if isinstance(value, Mapping):
        pairs = (f"{write_toml_key(str(k))} = {_write_value(v)}" for k, v in value.items() if k != "#")
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_value, value))}]"
    return write_toml(value if isinstance(value, bool | int) else str(value))


# A census.toml as an object to edit: a mapping with comments, as text, and made from a schema.

NAME_KEYED_TABLES = frozenset(
    {"record", "variables", "level", "off_spine", "labels", "where", "forbid"}
)  # keys are names


class Description(dict[str, Any]):
    """The document of a census.toml, to edit and to give to ``Census.of`` with the tables; ``guesses`` say what was guessed.

    >>> print(Description({"name": "x", "#name": "a guess"}).toml().splitlines()[-1])
    name = "x"  # a guess
    """

    def __init__(self, document: Mapping[str, object], *, guesses: Iterable[str] = ()) -> None:
        super().__init__(copy.deepcopy(dict(document)))
        self.guesses = tuple(guesses)

    def toml(self) -> str:
        """Return the text of a census.toml, with the guesses as comments."""
        return to_toml(self)

    def copy(self) -> "Description":
        """Return a copy that can be edited without changing this one."""
        return Description(self, guesses=self.guesses)


def strip_comments(document: Mapping[str, object], *, names: bool = False) -> dict[str, object]:
    """Return the document without its comments: the keys that start with # are left out.

    >>> strip_comments({"name": "x", "#name": "a guess", "record": {"#1": {}}})
    {'name': 'x', 'record': {'#1': {}}}
    """
    return {
        key: strip_comments(value, names=key in NAME_KEYED_TABLES and not names)
        if isinstance(value, Mapping)
        else value
        for key, value in document.items()
        if names or not key.startswith("#")
    }


def write_document(schema: Schema) -> Description:
    """Return the document that is read as this schema."""
    geography = schema.geography
    levels = {
        level.name: _keep_given(columns=list(level.columns), first=level.first, label=level.label)
        for level in geography.spine
    }
    return Description(
        _keep_given(
            format=1,
            name=schema.name,
            label=schema.label,
            largest_household=schema.largest_household,
            copies=schema.copies if schema.copies != 1 else None,
            geography=_keep_given(
                spine=list(geography.names),
                type=geography.typed_as if geography.typed_as != "text" else "",
                level={name: level for name, level in levels.items() if level},
                off_spine={off.name: _write_off_spine(off) for off in geography.off_spine},
                areas=None
                if geography.areas is None
                else _keep_given(
                    files=list(geography.areas.files),
                    code=geography.areas.code,
                    parent=geography.areas.parent,
                    level=geography.areas.level,
                    label=geography.areas.label,
                ),
                shapes=geography.shapes and geography.shapes.file,
                shapes_level=geography.shapes and geography.shapes.level,
                shapes_key=geography.shapes and geography.shapes.key,
            ),
            record={record.name: _write_record(record) for record in schema.records},
            rule=[
                _keep_given(
                    name=rule.name,
                    record=rule.record_type,
                    forbid={name: _write_levels(levels) for name, levels in rule.forbid},
                    at_most=list(rule.at_most or ()),
                    total=rule.total,
                    parts=list(rule.parts),
                )
                for rule in schema.rules
            ],
        )
    )


def _keep_given(**keys: object) -> dict[str, object]:
    """Return the keys that say something."""
    return {key: value for key, value in keys.items() if value is not None and value not in ("", [], {})}


def _write_off_spine(off: OffSpine) -> dict[str, object]:
    return _keep_given(
        label=off.label,
        of=off.of,
        nests_in=off.nests_in,
        kind=off.kind if off.kind != "areas" else "",
        cell_metres=off.cell_metres,
        files=list(off.files),
        key=off.key,
        column=off.column,
    )


def _write_record(record: RecordSchema) -> dict[str, object]:
    kinds = record.kinds
    return _keep_given(
        **_write_source(record.source),
        id=_write_key(record, record.id) if record.id != record.household_from else "",
        household=_write_key(record, record.household),
        household_from=_write_key(record, record.household_from),
        of=record.linked_to if record.linked_to != "household" else "",
        size=record.size,
        weight=record.weight,
        leave_out=list(record.leave_out),
        kind=None
        if kinds is None
        else _keep_given(
            column=kinds.column,
            occupied=list(kinds.occupied),
            vacant=list(kinds.vacant),
            group_quarters=list(kinds.group_quarters),
            housing_units=list(kinds.housing_units),
        ),
        where={name: list(codes) for name, codes in record.where},
        variables={variable.name: _write_variable(variable) for variable in record.variables},
    )


def _write_key(record: RecordSchema, name: str) -> str | list[str]:
    """Return a key as census.toml has it: its column, or the columns that it is made of."""
    parts = dict(record.keys).get(name)
    return name if parts is None else list(parts)


def _write_source(source: Source) -> dict[str, object]:
    plain = Source()
    keys = ("format", "separator", "header", "encoding", "decimal", "table", "sheet", "header_row", "ddi")
    changed = {key: getattr(source, key) for key in keys if getattr(source, key) != getattr(plain, key)}
    return {"files": list(source.files), **changed, "columns": list(source.columns)}


def _write_variable(variable: VariableSchema) -> dict[str, object]:
    missing = variable.missing
    told = _keep_given(policy=missing.policy, codes=list(missing.codes), empty_as=missing.empty_as)
    span = isinstance(variable.levels, range)
    if variable.bands:
        kept = _keep_given(column=variable.column, label=variable.label, labels=dict(variable.labels))
        more = _keep_given(
            missing=told if told != {"policy": "error"} else None,
            imputed=variable.imputed,
            tabulate=None if variable.tabulate else False,
        )
        return {"bands": list(variable.bands), **kept, **more}
    return {
        "type": variable.kind,
        **_keep_given(
            column=variable.column,
            label=variable.label,
            range=_write_levels(variable.levels) if span and variable.levels is not None else None,
            levels=list(variable.levels) if variable.levels is not None and not span else None,
            labels=dict(variable.labels),
            missing=told if told != {"policy": "error"} else None,
            imputed=variable.imputed,
            not_applicable=list(variable.not_applicable),
            tabulate=None if variable.tabulate else False,
        ),
    }


def _write_levels(levels: Iterable[str | int] | range) -> object:
    return f"{levels[0]}..{levels[-1]}" if isinstance(levels, range) and len(levels) else list(levels)
