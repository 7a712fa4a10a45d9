"""Propose a plan for a census: from its schema and the columns of its files, never from its records."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stirred.census import Census, Schema, toml
from stirred.census.records import drop_household_columns, find_home, household_layout
from stirred.census.schema import RecordSchema
from stirred.census.variables import add_keys, list_variables
from stirred.errors import InputError, PlanError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.registry import default_mechanism, list_compared
from stirred.publish.plan.models import HEAD, PLACEHOLDERS, TABLE, new_plan, questions
from stirred.text_formats import write_toml

READ_NOTE = (
    "Proposed from the schema and the names of the columns; no record was read, so the plan reveals nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedPlan:
    """The text of a plan, the files that it names, and the choices as sentences."""

    text: str
    files: dict[str, str]
    choices: tuple[str, ...]
    undecided: tuple[str, ...]

    def write(self, path: Path) -> None:
        """Write the plan and its files; none is overwritten."""
        for place in (path, *(path.parent / name for name in self.files)):
            if place.exists():
                raise InputError(
                    f"{place.name} exists already",
                    why="a plan is never overwritten",
                    fix="choose another --out (a new plan: in another folder), or move the file away",
                )
        if not path.parent.is_dir():
            raise InputError(
                f"cannot write {path.name}",
                why="its folder does not exist",
                fix="make the folder first, or choose another --out",
            )
        for name, text in self.files.items():
            (path.parent / name).write_text(text, encoding="utf-8")
        path.write_text(self.text, encoding="utf-8")


def choose_mechanism(schema: Schema) -> tuple[str, str]:
    """Return the mechanism that a new plan begins with, and the reason of those that give one."""
    name = default_mechanism(schema.spine)
    reasons: list[str] = []
    for kind in list_compared() if schema.spine else ():
        advice = kind.advise(schema)
        if advice is not None and advice.chosen:
            name, reasons = kind.name, [advice.reason]
        elif advice is not None:
            reasons.append(advice.reason)
    return name, "; ".join(reasons)


def propose_plan(kind: type[Mechanism], census: Path, plan: Path, *, reason: str = "") -> ProposedPlan:
    """Return the plan that a mechanism proposes for the census in a census.toml, for the path ``plan``.

    ``reason`` says why this mechanism was chosen; empty where the user named it.
    """
    file = census / "census.toml" if census.is_dir() else census
    schema = complete_schema(Census(schema=toml.load_schema(file), folder=file.parent))
    found = kind.propose(schema)
    title, place = schema.label or schema.name, os.path.relpath(file, plan.parent)
    if found is None:
        answers = {key: value for key, (_, value) in questions(kind).items()}
        text = new_plan(kind, answers | {"title": title, "census": place})
        told = f"{kind.name} makes no proposal of its own: these are examples of its settings"
        return ProposedPlan(text=f"# {told}.\n{text}", files={}, choices=(), undecided=(told,))
    return ProposedPlan(
        text=_text(kind, found, title, place, reason),
        files=dict(found.files),
        choices=(
            *((f"mechanism: {kind.name} — {reason}",) if reason else ()),
            *_choices(found),
            *_list_left_out(schema, found),
            *_list_banded(schema, found),
        ),
        undecided=found.undecided,
    )


def complete_schema(census: Census) -> Schema:
    """Return the schema with the variables that the columns of the files give; read no record."""
    return replace(
        census.schema, records=tuple(_complete_record(census, record) for record in census.schema.records)
    )


def read_schema(census: Path) -> Schema:
    """Return the schema of a census.toml with the variables of its files; read no record."""
    file = census / "census.toml" if census.is_dir() else census
    return complete_schema(Census(schema=toml.load_schema(file), folder=file.parent))


def _complete_record(census: Census, record: RecordSchema) -> RecordSchema:
    if not record.variables:
        raise PlanError(
            f"the schema declares no variables of {record.name} records",
            why="without them an identifier cannot be told from a category, and records are not read for a proposal",
            fix="let stirred data describe FILE… write the variables, or list them in census.toml",
        )
    schema = census.schema
    types = add_keys(schema, record, census.source(record.name)).collect_schema()
    home = find_home(schema, record)
    if record.household_from:
        types = household_layout(schema, record, types) or types
    elif home is not None:
        taken = household_layout(schema, home, types) or pl.Schema()
        types = drop_household_columns(
            record, home, pl.LazyFrame(schema=types), taken.names()
        ).collect_schema()
    return replace(record, variables=list_variables(schema, record, types))


def _choices(found: Proposal) -> Iterator[str]:
    for key, value in found.settings.items():
        words = isinstance(value, list) and all(isinstance(item, str) for item in value)
        shown = ", ".join(value) if words and isinstance(value, list) else write_toml(value).strip('"')
        yield f"{key}: {shown or 'none'} — {found.reasons.get(key, 'as its default')}"
    if "tables" in found.reasons and "tables" not in found.settings:
        told = "; ".join(f"{record_type} by {' × '.join(by)}" for record_type, by in found.tables)
        yield f"tables: {told or 'none'} — {found.reasons['tables']}"


def _list_banded(schema: Schema, found: Proposal) -> Iterator[str]:
    """Yield the numbers that are released by their bands alone."""
    dropped = found.settings.get("drop", ())
    for record in schema.records:
        names = [
            v.name
            for v in record.variables
            if v.bands and not (isinstance(dropped, list) and v.name in dropped)
        ]
        if names:
            yield f"by bands: {', '.join(names)} — {record.name} numbers that census.toml coarsens; no value is released"


def _list_left_out(schema: Schema, found: Proposal) -> Iterator[str]:
    """Yield what no release has, by record type: columns left out, and numbers without bands."""
    dropped = found.settings.get("drop")
    for record in schema.records:
        numbers = [
            v.name
            for v in record.variables
            if v.kind == "number" and v.name not in (record.weight, *schema.spine)
        ]
        if numbers and dropped is None:
            yield (
                f"not released: {', '.join(numbers)} — {record.name} numbers without bands: "
                f'{numbers[0]} = {{ bands = "1-2-5" }} in census.toml'
            )
        if record.leave_out:
            yield f"not released: {', '.join(record.leave_out)} — leave_out of {record.name} records in census.toml"


def _text(kind: type[Mechanism], found: Proposal, title: str, census: str, reason: str) -> str:
    lines = [
        f"{f'{key} = {write_toml(value)}'.ljust(28)}  # {found.reasons.get(key, '')}".rstrip(" #") + "\n"
        for key, value in found.settings.items()
    ]
    lines += [f"# not decided: {words}\n" for words in found.undecided]
    names: list[str] = []
    tables = []
    for record_type, by in found.tables:
        start = "-by-".join("".join(c if c.isalnum() else "-" for c in name) for name in reversed(by))
        name = start if start not in names else f"{record_type}-{start}"
        names.append(name)
        tables.append(TABLE.format(name=name, record_type=record_type, by=write_toml(list(by))))
    return HEAD.format(
        summary="\n# ".join(
            filter(None, ((kind.Config.__doc__ or kind.name).strip().splitlines()[0], reason, READ_NOTE))
        ),
        title=write_toml(title),
        census=write_toml(census),
        name=kind.name,
        settings="".join(lines),
        table="".join(tables),
        **PLACEHOLDERS,
    )
