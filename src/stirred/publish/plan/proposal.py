"""Propose plans: for a mechanism from the schema of a census, or plans that have a name."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stirred.census import Census, Schema, toml
from stirred.census.records import drop_household_columns, find_home, household_layout
from stirred.census.schema import RecordSchema
from stirred.census.variables import add_keys, list_variables
from stirred.errors import InputError, PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.registry import find_mechanism
from stirred.publish.plan.models import HEAD, PLACEHOLDERS, TABLE, new_plan, questions

# A plan proposed for a census: from its schema and the columns of its files, never from its records.

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


def propose_plan(kind: type[Mechanism], census: Path, plan: Path) -> ProposedPlan:
    """Return the plan that a mechanism proposes for the census in a census.toml, for the path ``plan``."""
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
        text=_text(kind, found, title, place),
        files=dict(found.files),
        choices=(*_choices(found), *_list_left_out(schema, found), *_list_banded(schema, found)),
        undecided=found.undecided,
    )


def complete_schema(census: Census) -> Schema:
    """Return the schema with the variables that the columns of the files give; read no record."""
    return replace(
        census.schema, records=tuple(_complete_record(census, record) for record in census.schema.records)
    )


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


def _text(kind: type[Mechanism], found: Proposal, title: str, census: str) -> str:
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
        summary=f"{(kind.Config.__doc__ or kind.name).strip().splitlines()[0]}\n# {READ_NOTE}",
        title=write_toml(title),
        census=write_toml(census),
        name=kind.name,
        settings="".join(lines),
        table="".join(tables),
        **PLACEHOLDERS,
    )


# Plans that have a name: several products on one census, written out for ``plan new NAME`` and for the command NAME.

MAX_PERSONS = 99_999  # more persons than any household has: nobody is cut off
SWAP = {"match": ["state", "size"], "swap": ["county", "tract", "block_group", "block"], "rate": "1/20"}
Table = tuple[str, str, str, tuple[str, ...]]  # label, name, record type, variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person may choose of a named plan."""

    title: str = ""
    census: str = "census.toml"  # as the plan names it
    schema: Schema | None = None  # without one, the variables of the synthetic censuses
    swapped: bool = False  # swap once and tabulate every product from the swapped file
    light: bool = False  # a small DHC, for a rehearsal
    codes: str = ""  # the folder of code lists, as the plan names it


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlan:
    """A plan with a name, one sentence about it, and its text."""

    name: str
    summary: str
    text: Callable[[Choices], str]


def find_named_plan(name: str) -> NamedPlan:
    """Return the plan of a name.

    >>> find_named_plan("das2020").name
    'das2020'
    """
    if name not in NAMED:
        raise PlanError(
            f"there is no plan called {name}",
            why="it is neither a file name, which ends in .toml, nor the name of a plan",
            fix=did_you_mean(name, NAMED),
        )
    return NAMED[name]


def read_schema(census: Path) -> Schema:
    """Return the schema of a census.toml with the variables of its files; read no record."""
    # merged

    file = census / "census.toml" if census.is_dir() else census
    return complete_schema(Census(schema=toml.load_schema(file), folder=file.parent))


def write_das2020(choices: Choices) -> str:
    """Write TopDown (PL, then DHC), SafeTab-P, SafeTab-H and PHSafe on one census, or on one swapped file."""
    free = {"rho_squared": "inf"} if choices.swapped else {}
    inf = {"epsilon": "inf"} if choices.swapped else {}
    codes: dict[str, object] = {"codes": choices.codes} if choices.codes else {}
    more: dict[str, object] = {"tau": dict.fromkeys(_CUT, MAX_PERSONS)} if choices.swapped else {}
    dhc = "dhc-light" if choices.light else "dhc"
    products: list[tuple[str, str, str, Mapping[str, object]]] = [
        ("topdown", "pl", "2020 Redistricting Data (P.L. 94-171)", {"workload": "pl94", "replicates": 0, **free}),
        ("topdown", "dhc", "Demographic and Housing Characteristics, in agreement with PL",
         {"workload": dhc, "given": "pl", "replicates": 0, **free}),
        ("safetab-p", "ddhc-a", "Detailed DHC-A: T1 and T2", {"preset": "ddhc-a-2020", **codes, **inf}),
        ("safetab-h", "ddhc-b", "Detailed DHC-B: T3 and T4, for the groups that T1 shows",
         {"preset": "ddhc-b-2020", "totals": "ddhc-a", **codes, **inf}),
        ("phsafe", "sdhc", "Supplemental DHC: PH1 to PH8", {"preset": "sdhc-2020", **more, **inf}),
    ]  # fmt: skip
    lines = [_HEAD_SWAPPED if choices.swapped else _HEAD]
    lines.append(f"title = {write_toml(_title(choices))}\ncensus = {write_toml(choices.census)}\n\n")
    if choices.swapped:
        lines.append(_mechanism("permutation-swapping", "swap", _SWAP_WORDS, _swap(choices.schema)))
    for mechanism, label, words, settings in products:
        lines.append(
            _mechanism(mechanism, label, words, {**({"from": "swap"} if choices.swapped else {}), **settings})
        )
    lines += [_table(table) for table in _tables(choices.schema)]
    for name, source in _RETABULATED[:2] if choices.swapped else _RETABULATED:
        of = "swap" if choices.swapped else source
        lines.append(f"[[retabulation]]\nname = {write_toml(name)}\nof = {write_toml(of)}\n\n")
    return "".join(lines) + _FOOT


def _title(choices: Choices) -> str:
    if choices.title:
        return choices.title
    return "The 2020 census, swapped" if choices.swapped else "The 2020 census"


def _swap(schema: Schema | None) -> Mapping[str, object]:
    """Return what the mechanism proposes for the schema."""
    if schema is None:
        return SWAP
    found = find_mechanism("permutation-swapping").propose(schema)
    return SWAP if found is None else found.settings


def _tables(schema: Schema | None) -> Sequence[Table]:
    areas = ("state", "county") if schema is None else schema.spine
    return [table for table in _TABLES if table[3][0] in areas]


def _mechanism(name: str, label: str, words: str, settings: Mapping[str, object]) -> str:
    lines = [f"# {words}\n[[mechanism]]\nname = {write_toml(name)}\nlabel = {write_toml(label)}\n"]
    lines += [f"{key} = {write_toml(value)}\n" for key, value in settings.items()]
    return "".join(lines) + "\n"


def _table(table: Table) -> str:
    label, name, record_type, by = table
    return (
        f"[[table]]\nname = {write_toml(name)}\nof = {write_toml(label)}\n"
        f"record_type = {write_toml(record_type)}\nby = {write_toml(list(by))}\n\n"
    )


_CUT = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")
_TABLES: tuple[Table, ...] = (
    ("pl", "pl-persons-by-state", "person", ("state", "gq_type", "votingage", "hispanic", "race")),
    ("pl", "pl-persons-by-county", "person", ("county", "hispanic", "race")),
    ("pl", "pl-units-by-county", "household", ("county", "h1")),
    ("dhc", "dhc-persons-by-state", "person", ("state", "sex", "hispanic", "race")),
    ("dhc", "dhc-persons-by-county", "person", ("county", "hispanic", "race")),
    ("dhc", "dhc-units-by-state", "household", ("state", "tenvac")),
    ("dhc", "dhc-units-by-county", "household", ("county", "tenvac")),
)
_RETABULATED = (
    ("Demographic Profile", "dhc"),
    ("Congressional District file", "dhc"),
    ("Privacy-Protected Microdata File", "dhc"),
    ("Noisy Measurement Files", "dhc"),
)
_SWAP_WORDS = "The Permutation Swapping Algorithm, once: all products below are tables of the swapped file"
_HEAD = """# The 2020 census in one plan: five products, whose budgets add up to one promise per person.
# Settings that are not written here are those of the 2020 production: see docs/how-to/das2020.md.
"""
_HEAD_SWAPPED = """# The 2020 census, had it been swapped: the same products, tabulated from one swapped file.
# The promise is that of the swap alone; tables of a public file cost nothing. See docs/how-to/das2020.md.
"""
_FOOT = """[publish]
microdata = true
formats = ["parquet"]

[budget]
owner = ""

[assess]
utility = false
"""
NAMED = {
    "das2020": NamedPlan(
        name="das2020",
        summary="the products of the 2020 census on one census, as one composed release",
        text=write_das2020,
    )
}
