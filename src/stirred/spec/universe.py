"""The realised universe: the values of the invariants, with a digest that can be published or withheld.

The values are released exactly anyway, so their digest may be published; where a release is not out yet it can be
withheld, or salted so that it commits to the values without showing them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from stirred.errors import SpecificationError
from stirred.spec.multiverse import Margin

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.spec.multiverse import AtLeast, Invariant, Multiverse, SupportsCounts

WITHHELD = "withheld: the values of the invariants are not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    r"""$\mathcal D_c(x) = \{x' : c(x') = c(x)\}$ (Equation 2), given by the realised values of the invariants."""

    multiverse: "Multiverse"
    values: "Mapping[Invariant, pa.Table]" = field(repr=False)
    digest: str  # of the values, or why it is withheld

    @property
    def is_withheld(self) -> bool:
        return not self.digest.startswith("sha256:")

    @property
    def numbers(self) -> int:
        """How many numbers the invariants fix."""
        return sum(int(table.num_rows) for table in self.values.values())

    def withheld(self) -> "Universe":
        """The same universe without its values and their digest."""
        return Universe(multiverse=self.multiverse, values={}, digest=WITHHELD)

    def to_json(self) -> dict[str, object]:
        return {"invariants": [invariant.words() for invariant in self.multiverse], "digest": self.digest}


def universe(census: "SupportsCounts", multiverse: "Multiverse", *, salt: bytes = b"") -> Universe:
    """The universe a census lies in; with a salt the digest commits to the values without showing them."""
    values = {invariant: invariant.realised(census) for invariant in multiverse}
    total = hashlib.sha256(len(salt).to_bytes(8, "big") + salt)
    # in the order of what the invariants are, not of what they are called
    for invariant in sorted(values, key=lambda invariant: invariant.identity()):
        total.update(_digest(invariant.identity(), values[invariant]))
    return Universe(multiverse=multiverse, values=values, digest=f"sha256:{total.hexdigest()}")


class _Sink:
    """A file that is only hashed, so that a nation's tables are never held as text."""

    closed = False

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _digest(words: str, table: "pa.Table") -> bytes:
    """A digest of a table that depends on its values alone: not on the order of rows, nor on dictionary codes."""
    import pyarrow as pa
    from pyarrow import csv

    names = sorted(table.column_names)
    plain = pa.table({name: table[name].cast(pa.string()) for name in names})
    plain = plain.sort_by([(name, "ascending") for name in names])
    sink = _Sink()
    sink.write(words.encode() + b"\x00")
    csv.write_csv(plain, sink)
    return sink.hash.digest()


def reaches(invariant: "AtLeast", counts: "SupportsCounts") -> "pa.Table":
    """The inequality by area, listing the one answer that is not the rule.

    Against a number, areas without any record fail, so those that reach it are listed; against a margin, areas where
    both are zero hold, so those that fail are listed. The table then says nothing about the counts themselves.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    by = list(invariant.statistic.by)
    left = _plain(
        counts.counts(invariant.statistic.record_type, by, invariant.statistic.conditions() or None)
    )
    if not by:
        reached = _total(left) >= _threshold(invariant, counts)
        return pa.table({"holds": pa.array([reached])})
    if not isinstance(invariant.than, Margin):
        chosen = left.filter(pc.greater_equal(left["count"].cast(pa.int64()), invariant.than))
        return _listed(chosen, by, holds=True)
    right = _plain(counts.counts(invariant.than.record_type, by, invariant.than.conditions() or None))
    both = right.rename_columns([*by, "than"]).join(left, keys=by, join_type="left outer")
    missing = pc.less(pc.fill_null(both["count"].cast(pa.int64()), 0), both["than"].cast(pa.int64()))
    return _listed(both.filter(missing), by, holds=False)


def _plain(table: "pa.Table") -> "pa.Table":
    """Dictionary columns as their values: two files may code the same areas differently."""
    import pyarrow as pa

    columns = {
        name: table[name].cast(table.schema.field(name).type.value_type)
        if pa.types.is_dictionary(table.schema.field(name).type)
        else table[name]
        for name in table.column_names
    }
    return pa.table(columns)


def _total(table: "pa.Table") -> int:
    return sum(table["count"].to_pylist())


def _threshold(invariant: "AtLeast", counts: "SupportsCounts") -> int:
    if not isinstance(invariant.than, Margin):
        return invariant.than
    return _total(counts.counts(invariant.than.record_type, (), invariant.than.conditions() or None))


def _listed(table: "pa.Table", by: list[str], *, holds: bool) -> "pa.Table":
    import pyarrow as pa

    chosen = table.select(by).sort_by([(name, "ascending") for name in by])
    return chosen.append_column("holds", pa.array([holds] * chosen.num_rows, pa.bool_()))


def refuse_single_universe() -> NoReturn:
    """A specification for one realised universe only is refused, with the paper's reason (Section 2.1)."""
    raise SpecificationError(
        "a specification covers a multiverse, not one universe",
        why="the value of an invariant is accidental, only its being published is essential: "
        "the promise must hold whatever value it takes",
        fix="give Multiverse.of(the invariants); their realised values go into the receipt",
    )
