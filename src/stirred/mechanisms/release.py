"""What a mechanism hands over: records and tables that may be published, with their specification."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.errors import InputError, did_you_mean
from stirred.extras import import_optional
from stirred.frames import frame_of
from stirred.mechanisms.effect import ExpectedEffect
from stirred.spec import Ledger, Specification
from stirred.spec.notebook import write_html_table

if TYPE_CHECKING:
    import pandas as pd

    from stirred.census import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant held against the output: its name in words, whether it is kept, how many numbers it fixes.

    Words of releases are plain text, as the files of an interrupted run keep them; reports recognise the catalog's.
    """

    invariant: str
    kept: bool
    numbers: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "invariant", str(self.invariant))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What a guard found before a release: a sentence with counts and no value, and whether a setting accepts it by name.

    ``rows`` are what it measured: columns, what they predict, share guessed, share by chance.
    """

    name: str
    finding: str
    accepted: bool = False
    rows: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))
        object.__setattr__(self, "finding", str(self.finding))
        object.__setattr__(self, "rows", tuple(tuple(map(str, row)) for row in self.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What may be published, with its specification and the record of how it was made.

    ``tables`` are small (an Arrow table each); ``microdata`` may be larger than memory (an Arrow table, or a Parquet
    dataset on disk), by record type. Rows stand in an order that does not depend on the confidential file, and neither do
    notes, names, checks and guards, except through invariants and what the records and tables show. ``schema``
    says what the variables are, and ``folder`` where the files of areas beside the spine lie: tables need both.
    ``internal`` is not part of what may be published: tables about the confidential records, for the office alone, which
    a run writes to the internal part of its packet and nowhere else.
    """

    mechanism: str
    parameters: Mapping[str, object]
    specification: Specification
    microdata: Mapping[str, "pa.Table | pads.Dataset"] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    files: tuple[
        Path, ...
    ] = ()  # of the mechanism's own in the folder that it wrote to, such as noisy measurements
    checks: tuple[Check, ...] = ()
    ledger: Ledger | None = None
    notes: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    settings: Mapping[str, object] = field(
        default_factory=dict
    )  # of the mechanism, as a plan states them, where they are not its parameters
    input_digest: str = ""  # keyed with the run's own key: equal only for the same run on the same input
    private: bool = True  # False when made with Key.for_tests
    effect: ExpectedEffect | None = None  # stated before the run; None where the mechanism states none
    internal: Mapping[str, pa.Table] = field(default_factory=dict, compare=False, repr=False)
    schema: "Schema | None" = field(default=None, compare=False, repr=False)
    folder: Path | None = field(default=None, compare=False, repr=False)
    labels: Mapping[str, Mapping[str, Mapping[str, str]]] = field(
        default_factory=dict, compare=False, repr=False
    )  # words for codes that the codebook of the census does not have: record type → variable → code → label

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(map(str, self.notes)))

    def __repr__(self) -> str:
        held = ", ".join([*self.microdata, *(f"table {name}" for name in self.tables)]) or "nothing"
        mark = "" if self.private else ", NOT PRIVATE"
        return f"Release({self.mechanism}: {held}; {self.specification.shown_budget}{mark})"

    def _repr_html_(self) -> str:
        """Return an HTML summary: what may be published, under which promise, and what is exact."""
        rows = [("promise", str(self.specification))]
        rows += [(name, f"{_count_rows(data):,} released records") for name, data in self.microdata.items()]
        rows += [(f"table {name}", f"{table.num_rows:,} rows") for name, table in self.tables.items()]
        rows += [
            ("exact", f"{check.invariant} ({check.numbers:,} numbers)") for check in self.checks if check.kept
        ]
        mark = () if self.private else ("NOT PRIVATE: made with a test key",)
        return write_html_table(f"Release: {self.mechanism}", rows, notes=(*mark, *self.notes))

    def to_arrow(self, record_type: str = "") -> pa.Table:
        """Return the released records of a type as an Arrow table; by default of the only or first type."""
        name = record_type or next(iter(self.microdata), "")
        if name not in self.microdata:
            raise InputError(
                f"the release has no {name or 'records'}",
                why="it holds " + (", ".join(self.microdata) or "tables alone"),
                fix=did_you_mean(name, self.microdata) if self.microdata else "see release.tables",
            )
        data = self.microdata[name]
        return data if isinstance(data, pa.Table) else data.to_table()

    def to_polars(self, record_type: str = "") -> pl.DataFrame:
        """Return the released records of a type as a polars frame."""
        return frame_of(self.to_arrow(record_type))

    def to_pandas(self, record_type: str = "") -> "pd.DataFrame":
        """Return the released records of a type as a pandas frame."""
        import_optional("pandas", "pandas", why="the frame is one of pandas")
        return self.to_arrow(record_type).to_pandas()


def _count_rows(data: "pa.Table | pads.Dataset") -> int:
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
