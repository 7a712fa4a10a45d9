"""Describe a packet to its readers: START-HERE for people, and the columns as a Frictionless Data Package for programs.

START-HERE says which number to quote and what each file is. Nothing of the description of columns comes from the records:
levels, ranges, labels and what an empty field means are the schema's, whose domain ``spec.json`` publishes too; types are
those of the released files. A column whose levels the schema leaves open has no list: one made from the records would tell
which levels a released file merely happens to lack.
"""

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from stirred.census.schema import RecordSchema, Schema, VariableSchema
from stirred.languages import Language

if TYPE_CHECKING:
    import pyarrow as pa


DATA_PACKAGE = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEASURES: Mapping[str, str] = {
    "count": "released records in the cell",
    "weighted": "the sum of their weights",
    "estimate": "the true number, estimated",
    "standard_error": "standard error of the estimate; 0: exact",
    "variance": "variance of the noise on the count",
    "low": "lower end of the 95% interval of the true number",
    "high": "upper end of the 95% interval of the true number",
    "quote": "the column to quote",
}


def describe_package(
    schema: Schema, *, title: str, resources: "Iterable[tuple[str, str, pa.Schema]]"
) -> dict[str, object]:
    """Return the document: for each released file its path, the record type that it holds or counts, and its columns."""
    return {
        "$schema": PROFILE,
        "title": title,
        "resources": [
            {
                "name": path.rpartition(".")[0],
                "path": path,
                "format": path.rpartition(".")[2],
                "recordType": record_type,
                "schema": {
                    "missingValues": [""],
                    "fields": [describe_field(schema, record_type, field) for field in columns],
                },
            }
            for path, record_type, columns in resources
        ],
    }


def describe_field(schema: Schema, record_type: str, field: "pa.Field") -> dict[str, object]:
    """Return one column: its type, and what the schema says of it."""
    told: dict[str, object] = {"name": field.name, "type": _name_type(field.type)}
    variable = _find_variable(schema, record_type, field.name)
    if variable is None:
        titles = {**{area.name: area.label for area in schema.geography.spine}, **MEASURES}
        return told | ({"title": titles[field.name]} if titles.get(field.name) else {})
    told |= {"title": variable.label} if variable.label else {}
    required: dict[str, object] = {"required": True} if variable.missing.policy != "keep" else {}
    levels = variable.all_levels
    if isinstance(levels, range) and levels and levels.step == 1:
        required |= {"minimum": levels[0], "maximum": levels[-1]}
    elif levels is not None:
        words = dict(variable.labels)
        told["categories"] = [
            {"value": level} | ({"label": words[str(level)]} if str(level) in words else {})
            for level in levels
        ]
    return told | ({"constraints": required} if required else {})


def _find_variable(schema: Schema, record_type: str, name: str) -> VariableSchema | None:
    """Return the variable of a record type or of the type that it is linked to, or None for areas and measures."""
    record: RecordSchema | None = schema.record(record_type) if record_type in schema.record_types else None
    while record is not None:
        if name in record.names:
            return record.variable(name)
        record = schema.record(record.linked_to) if record.linked_to else None
    return None


def _name_type(kind: "pa.DataType") -> str:
    """Return the name of a type in a Table Schema.

    >>> import pyarrow as pa
    >>> [_name_type(kind) for kind in (pa.int8(), pa.dictionary(pa.int32(), pa.string()), pa.bool_(), pa.date32())]
    ['integer', 'string', 'boolean', 'date']
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "number": lambda one: pa.types.is_floating(one) or pa.types.is_decimal(one),
        "date": pa.types.is_date,
        "datetime": pa.types.is_timestamp,
        "list": pa.types.is_list,
    }
    return next((name for name, fits in tests.items() if fits(kind)), "string")


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
