"""What a release says: as a digest of its published bytes, and as a value that can be counted.

Two engines write different Parquet files (row groups, encodings, dictionaries) of the same rows. The digest sees column
names, types without dictionaries, and values in order; not how they were cut into batches.

Audits compare contents, which have neither the order of rows nor identifiers: those of the exact law of a mechanism, those
that runs release, and those of another data set. The order of the rows and every other text that leaves with a release
are compared by themselves (``collect_public_parts``), because a law in fractions says nothing about them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pads, pc
from stirred.engine.tables import plain_schema, stream_tables
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.release import Release

if TYPE_CHECKING:
    from stirred.census import Schema

Row = tuple[str, ...]
Content = tuple[tuple[str, tuple[Row, ...]], ...]  # records and tables by name, their rows as sorted texts
Law = Mapping[Content, Fraction]
MAX_OUTPUTS = 20_000  # outputs; a larger law is not enumerated


def digest(data: "pa.Table | pads.Dataset") -> str:
    """Return the digest of one table or set of records.

    >>> one = pa.table({"a": pa.array(["x", "y", None]).dictionary_encode()})
    >>> digest(one) == digest(pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    True
    """
    columns = [_ColumnDigest(field) for field in plain_schema(data.schema)]
    for table in stream_tables(data):
        for column, told in zip(table.columns, columns, strict=True):
            for chunk in column.chunks:
                told.add(chunk)
    return hashlib.sha256(b"".join(told.digest() for told in columns)).hexdigest()


def table_digest(counts: "pl.DataFrame | pa.Table") -> str:
    """Return the digest of a table of counts with its labels, which are compared as texts.

    >>> one = pl.DataFrame({"county": [1, 2], "count": [5, 7]})
    >>> table_digest(one) == table_digest(one.with_columns(pl.lit("9").alias("county")))
    False
    """
    frame = counts if isinstance(counts, pl.DataFrame) else frame_of(counts)
    names = [name for name in frame.columns if name != "count"]
    plain = frame.select(pl.col(names).cast(pl.String), pl.col("count").cast(pl.Int64))
    return digest(arrow_of(plain))


def digest_release(release: Release) -> dict[str, str]:
    """Return the digest of every record type and table of a release."""
    return {
        name: digest(data) for name, data in sorted([*release.microdata.items(), *release.tables.items()])
    }


class _ColumnDigest:
    """Three hashes of one column that do not depend on how it was cut: validity, numbers, letters."""

    def __init__(self, field: pa.Field) -> None:
        self.there = hashlib.sha256(f"{field.name}\n{field.type}\n".encode())
        self.numbers, self.letters = hashlib.sha256(), hashlib.sha256()

    def add(self, array: pa.Array) -> None:
        """Add more values to the three hashes."""
        there = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), np.uint8)
        self.there.update(there.tobytes())
        if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            values = (
                pc.fill_null(array.cast(pa.binary()), b"") if array.null_count else array.cast(pa.binary())
            )
            lengths = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
            self.numbers.update(lengths.tobytes())
            start = np.frombuffer(values.buffers()[1], np.int32)[values.offset] if len(values) else 0
            letters = values.buffers()[2]
            if letters is not None:
                self.letters.update(memoryview(letters)[start : start + int(lengths.sum())])
            return
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        if array.null_count:
            array = pc.fill_null(array, pa.scalar(0, array.type))
        self.numbers.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).tobytes())

    def digest(self) -> bytes:
        """Return the three digests, one after the other."""
        return self.there.digest() + self.numbers.digest() + self.letters.digest()


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """Return the rows of a frame as texts, columns sorted by name; an empty value is an empty text.

    >>> rows_of(pl.DataFrame({"b": [1, None], "a": ["x", "y"]}))
    [('x', '1'), ('y', '')]
    """
    columns = [pl.col(name).cast(pl.String).fill_null("") for name in sorted(frame.columns)]
    return frame.select(columns).rows()


def make_content(rows: Mapping[str, Sequence[Row]]) -> Content:
    """Return the content of records and tables given as rows in any order; empty ones are left out.

    >>> make_content({"household": [("b",), ("a",)]})
    (('household', (('a',), ('b',))),)
    """
    return tuple((name, tuple(sorted(rows[name]))) for name in sorted(rows) if rows[name])


def identifier_columns(schema: "Schema | None", name: str) -> set[str]:
    """Return the identifier columns of a record type, which are new in each release."""
    if schema is None or name not in schema.record_types:
        return set()
    record = schema.record(name)
    return {record.id, record.household} - {""}


def read_content(release: Release) -> Content:
    """Return the content of a release, without the order of its rows and without identifiers."""
    found: dict[str, list[Row]] = {}
    for name in release.microdata:
        frame = release.to_polars(name)
        found[name] = rows_of(frame.drop(identifier_columns(release.schema, name) & {*frame.columns}))
    for name, table in release.tables.items():
        found[name] = rows_of(frame_of(table))
    return make_content(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicParts:
    """Everything public in one release: its content, its rows in their order, and the texts around them.

    ``rows`` holds the texts of every row as released, by record type and table, without identifiers; ``texts`` holds
    column names and types, identifiers, notes, checks, guards, settings, the promise and the ledger.
    """

    content: Content
    columns: Mapping[str, Row]
    rows: Mapping[str, tuple[Row, ...]]
    texts: Mapping[str, str]


def collect_public_parts(release: Release) -> PublicParts:
    """Return everything that a release publishes; ``internal`` and the keyed digest are not published."""
    columns: dict[str, Row] = {}
    rows: dict[str, tuple[Row, ...]] = {}
    texts: dict[str, str] = {
        "notes": repr(release.notes),
        "checks": repr(release.checks),
        "guards": repr(release.guards),
        "settings": repr((release.mechanism, dict(release.parameters), dict(release.settings))),
        "promise": repr((str(release.specification), release.specification.notes)),
        "ledger": repr(release.ledger),
        "labels": repr(release.labels),
        "names of records and tables": repr(([*release.microdata], [*release.tables])),
    }
    for name, data in (*release.microdata.items(), *release.tables.items()):
        frame = frame_of(data if isinstance(data, pa.Table) else data.to_table())
        hidden = [column for column in frame.columns if column in identifier_columns(release.schema, name)]
        kept = [column for column in frame.columns if column not in hidden]
        columns[name] = tuple(kept)
        rows[name] = tuple(
            frame.select(pl.col(column).cast(pl.String).fill_null("") for column in kept).rows()
        )
        plain = plain_schema(data.schema)
        texts[f"columns of {name}"] = repr([(field.name, str(field.type)) for field in plain])
        texts[f"metadata of {name}"] = repr(data.schema.metadata)
        if hidden:
            texts[f"identifiers of {name}"] = repr(frame.select(hidden).rows())
    return PublicParts(content=read_content(release), columns=columns, rows=rows, texts=texts)


def clamped_geometric(count: int, ratio: Fraction, low: int, high: int) -> dict[int, Fraction]:
    r"""The law of count + noise, moved into [low, high]: $\Pr(k) \propto q^{|k|}$, with the exact sums of both tails.

    >>> {value: str(chance) for value, chance in clamped_geometric(0, Fraction(1, 2), 0, 2).items()}
    {0: '2/3', 1: '1/6', 2: '1/6'}
    """
    found = {value: (1 - ratio) / (1 + ratio) * ratio ** abs(value - count) for value in range(low + 1, high)}
    # P(noise ≥ k) = q^k / (1 + q) for k ≥ 1, and 1 − q^(1 − k) / (1 + q) for k ≤ 0
    found[low] = 1 - _geometric_from(low - count + 1, ratio)
    found[high] = _geometric_from(high - count, ratio)
    return dict(sorted(found.items()))


def _geometric_from(start: int, ratio: Fraction) -> Fraction:
    return ratio**start / (1 + ratio) if start > 0 else 1 - ratio ** (1 - start) / (1 + ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNoise:
    """The law that is claimed for the noise of one query, and where that noise stands in a release.

    ``parameter`` is σ² of a discrete Gaussian, or the scale of a two-sided geometric law. ``loss`` is what the account
    spends on this query: ρ², or ε. ``table``, ``column`` and ``rows`` name the released numbers that have this noise: an
    audit subtracts the true numbers itself, from counts that it tabulates or from a run of ``without_noise``.
    ``noise`` is what the mechanism reports: published answers minus exact ones. An audit believes it only where it is
    false, as no report of a mechanism about itself shows that it keeps its promise. Without a table the only table of counts
    is meant, if it has as many rows. Only an audit on an invented census may see any of this.
    """

    name: str
    kind: Literal["gaussian", "geometric"]
    parameter: Fraction
    loss: Fraction
    noise: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    table: str = ""
    column: str = "count"
    rows: tuple[int, ...] | None = None  # of the table; None: all
    record: str = ""  # the type of the records that it counts; the mechanism's own unless it is named
