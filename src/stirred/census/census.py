"""A census: confidential records with their schema, read by scanning and never loaded as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, get_args

import polars as pl

from stirred.census import toml
from stirred.census.progress import Progress
from stirred.census.readers import is_table, to_lazy
from stirred.census.readers.sources import redact_errors as redact_errors
from stirred.census.records import CensusFiles, find_home
from stirred.census.schema import Schema
from stirred.census.validation import Passes, validate
from stirred.census.validation.dropping import drop_invalid, require_mended
from stirred.census.variables import convert_frame
from stirred.errors import InputError, did_you_mean, require_path
from stirred.spec.notebook import write_html_table

if TYPE_CHECKING:  # guessing needs modules of its own, which a census with a schema does not
    from stirred.census.describe import Description

Invalid = Literal["refuse", "drop"]
DROPPED_NOTE = (
    "the promise is about the records that keep the rules of the schema; households with a record that breaks one "
    "were left out before the release"
)

__all__ = ["DROPPED_NOTE", "Census", "Invalid", "read", "redact_errors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """How the records of a census were held against its schema, and how many were left out."""

    invalid: Invalid
    dropped: Mapping[str, int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Census(CensusFiles):
    """Households and persons with their schema; nothing is read until it is needed.

    >>> census = Census.of({"geography": {"spine": ["county"]}},
    ...                    {"household": {"county": ["b", "a", "b"], "size": [2, 1, 2]}})
    >>> census.counts("household", ["county", "size"]).to_pydict()
    {'county': ['a', 'b'], 'size': [1, 2], 'count': [1, 2]}
    """

    _guessed: "Description | None" = field(default=None, repr=False)  # what was guessed without a schema
    # how the records were checked; a copy with other files or another schema is not checked
    _checked: Checkup | None = field(default=None, repr=False, init=False)

    @staticmethod
    def of(
        schema: object, tables: object = None, *, levels: Literal["declared", "records"] = "declared"
    ) -> "Census":
        """Make a census from tables in memory: ``Census.of(schema, tables)``, or ``Census.of(tables)`` to guess the schema.

        Tables are one frame, or frames by record type, of any data frame library; also dictionaries of columns and lists
        of rows. What was guessed is in ``guesses`` and in ``describe()``. Levels are guessed from the records only with
        ``levels="records"``: a level that no record has is then missing, which tells that no record has it.

        >>> census = Census.of({"hid": [1, 2], "region": ["a", "b"], "tenure": ["own", "rent"]})
        >>> census.guesses[0]
        'geography: region (named like a place; nothing else nests)'
        """
        if tables is None:
            return _guess(schema, confidential=levels == "records")
        if isinstance(schema, Schema):
            named = _name_tables(tables, schema)
        else:
            named, schema = _parse_document(schema, tables)
        unknown = [name for name in named if name not in schema.record_types]
        if unknown:
            raise InputError(
                f"the schema has no record type {unknown[0]}",
                why="a table was given for it",
                fix=did_you_mean(unknown[0], schema.record_types),
            )
        return Census(schema=schema, files={name: to_lazy(table) for name, table in named.items()})

    def __repr__(self) -> str:
        return f"Census({self.schema.name}: {', '.join(self.schema.record_types)}; {' > '.join(self.schema.spine)})"

    def _repr_html_(self) -> str:
        """Return the schema: record types, variables and areas; never a count or a value, which are confidential."""
        rows = [("areas", " > ".join(self.schema.spine) or "none")]
        for record in self.schema.records:
            names = [variable.label or variable.name for variable in record.variables]
            rows.append((record.name, ", ".join(names) or "variables as the files have them"))
        notes = ["Confidential: only the schema is shown.", *self.notes]
        return write_html_table(f"Census: {self.schema.label or self.schema.name}", rows, notes=notes)

    @property
    def guesses(self) -> tuple[str, ...]:
        """Return what was guessed without a schema, as sentences; "not decided" marks what a person must decide."""
        return () if self._guessed is None else self._guessed.guesses

    def describe(self) -> "Description":
        """Return the schema as a document to edit, for ``Census.of(document, tables)``; ``.toml()`` writes it."""
        from stirred.census.describe import write_document

        return write_document(self.schema) if self._guessed is None else self._guessed.copy()

    def require_valid(self, *, progress: Progress | None = None) -> None:
        """Hold all records against the schema in streaming passes; raise one error with the worst three problems.

        >>> schema = {"record": {"household": {"variables": {"size": "1..7"}}}}
        >>> Census.of(schema, {"household": {"size": [1, 9, 0]}}).require_valid()
        Traceback (most recent call last):
        ...
        stirred.errors.DataError: the records break 1 rule of the schema
          why: household.size: values outside the listed levels (2 records)
          fix: see all of them with: stirred data check census.toml, or validate(census) in Python
        """
        validate(self, progress=progress, passes=self._passes()).require_none()

    def check(self, *, invalid: Invalid = "refuse", progress: Progress | None = None) -> "Census":
        """Check the records against the schema once, and return the census; every release begins with it.

        ``invalid="refuse"`` raises one error with the worst three problems. ``invalid="drop"`` leaves out, by whole
        households, the records that break a rule; the promise of a release is then about the records that are left.

        >>> schema = {"record": {"household": {"variables": {"size": "1..7"}}}}
        >>> Census.of(schema, {"household": {"size": [1, 9, 2]}}).check(invalid="drop").count("household")
        2
        """
        if invalid not in get_args(Invalid):
            raise InputError(
                f"invalid is {invalid!r}",
                why="records that break the schema are refused or dropped",
                fix='invalid="refuse", or invalid="drop"',
            )
        if self._checked is not None and invalid in ("refuse", self._checked.invalid):
            return self
        if self._checked is not None:
            return replace(self)._mark_checked(Checkup(invalid=invalid))
        problems = validate(self, progress=progress, passes=self._passes())
        if invalid == "refuse":
            problems.require_none()
        if not problems:
            return (self if invalid == "refuse" else replace(self))._mark_checked(Checkup(invalid=invalid))
        left = drop_invalid(self, problems)
        files, forms = {**self.files, **left.files}, {**self._forms, **left.forms}
        clean = replace(self, files=files, _forms=forms, _linkable=set())
        dropped = require_mended(problems, validate(clean))
        return clean._mark_checked(Checkup(invalid=invalid, dropped=dropped))

    def _passes(self) -> Passes:
        """Return who makes the passes of a check over the records."""
        return Passes()

    @property
    def dropped_counts(self) -> Mapping[str, int]:
        """Return how many records of each type were left out as invalid; these counts are confidential."""
        return {} if self._checked is None else self._checked.dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the sentences that a specification adds about records that were left out."""
        return () if self._checked is None or self._checked.invalid == "refuse" else (DROPPED_NOTE,)

    def _mark_checked(self, checked: Checkup | None) -> Self:
        """Mark this census as checked, so that its identifiers count as unique, and return it."""
        object.__setattr__(self, "_checked", checked)
        if checked is not None:
            self._linkable.update(record.name for record in self.schema.records if record.id)
        return self


def read(path: str | Path) -> Census:
    """Return the census that a census.toml describes; the schema is checked, the records are only scanned."""
    require_path(
        "what is read", path, fix='st.read("census.toml"); for tables in memory: st.Census.of(tables)'
    )
    path = Path(path)
    if path.is_dir():
        path = path / "census.toml"
    census = Census(schema=toml.load_schema(path), folder=path.parent)
    for record in census.schema.records:
        with redact_errors(record.name):
            # the columns are compared with the schema; households of a person file are not made for it
            convert_frame(census.schema, record, pl.LazyFrame(schema=census.layout(record.name)))
    return census


def _guess(tables: object, *, confidential: bool) -> Census:
    if isinstance(tables, Schema) or (isinstance(tables, Mapping) and {"record", "geography"} & set(tables)):
        raise InputError(
            "a census needs tables",
            why="only a schema was given",
            fix="give the tables too: Census.of(schema, tables)",
        )
    from stirred.census.describe import describe_tables, strip_comments

    several = isinstance(tables, Mapping) and bool(tables) and all(map(is_table, tables.values()))
    given = dict(tables) if isinstance(tables, Mapping) and several else {"": tables}
    frames = {str(name): to_lazy(table) for name, table in given.items()}
    document = describe_tables(frames, confidential=confidential)
    schema = toml.parse_schema(strip_comments(document))
    files = dict(zip(schema.record_types, frames.values(), strict=False)) if "" in frames else frames
    files = {name: frame for name, frame in files.items() if name in schema.record_types}
    if not files:  # the persons of a table that was named household
        files = dict(zip(schema.record_types, frames.values(), strict=False))
    return Census(schema=schema, files=files, _guessed=document)


def _name_tables(tables: object, schema: Schema) -> Mapping[str, object]:
    """Return the tables by record type; a single table belongs to the only type with a file of its own."""
    if isinstance(tables, Mapping):
        return tables
    own = [record.name for record in schema.records if find_home(schema, record) is None]
    if len(own) != 1:
        raise InputError(
            "one table was given for several record types",
            why="it cannot be told which of them it holds",
            fix="give the tables by record type: {" + ", ".join(f'"{name}": …' for name in own) + "}",
        )
    return {own[0]: tables}


def _parse_document(document: object, tables: object) -> tuple[Mapping[str, object], Schema]:
    if not isinstance(document, Mapping):
        raise InputError(
            f"cannot read a schema from {type(document).__name__}",
            why="two arguments are a schema and its tables",
            fix="give a dictionary of the shape of census.toml first, or only the tables",
        )
    from stirred.census.describe import strip_comments

    plain = strip_comments(document)
    records = plain.get("record", {})
    if isinstance(tables, Mapping) and isinstance(records, Mapping):
        plain["record"] = {**{name: {} for name in tables}, **records}
    schema = toml.parse_schema(plain)
    return _name_tables(tables, schema), schema
