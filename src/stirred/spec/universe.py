"""The realised universe: the values of the invariants, with a digest that can be published or withheld.

The values are released exactly anyway, so their digest may be published; where a release is not out yet it can be
withheld, or salted so that it commits to the values without showing them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stirred.spec.invariants.margins import Invariant, SupportsCounts
from stirred.spec.multiverse import Multiverse

if TYPE_CHECKING:
    import pyarrow as pa

WITHHELD = "withheld: the values of the invariants are not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    r"""$\mathcal D_c(x) = \{x' : c(x') = c(x)\}$ (Equation 2), given by the realised values of the invariants."""

    multiverse: Multiverse
    values: "Mapping[Invariant, pa.Table]" = field(repr=False)
    digest: str  # of the values, or why it is withheld

    @property
    def is_withheld(self) -> bool:
        return not self.digest.startswith("sha256:")

    @property
    def numbers(self) -> int:
        """Return how many numbers the invariants fix."""
        return sum(int(table.num_rows) for table in self.values.values())

    def withhold(self) -> "Universe":
        """Return the universe without its values and their digest."""
        return Universe(multiverse=self.multiverse, values={}, digest=WITHHELD)

    def to_json(self) -> dict[str, object]:
        return {"invariants": [invariant.words() for invariant in self.multiverse], "digest": self.digest}


def universe(census: SupportsCounts, multiverse: Multiverse, *, salt: bytes = b"") -> Universe:
    """Return the universe of a census; with a salt the digest commits to the values without showing them."""
    values = {invariant: invariant.tabulate(census) for invariant in multiverse}
    total = hashlib.sha256(len(salt).to_bytes(8, "big") + salt)
    # in the order of what the invariants are, not of what they are called
    for invariant in sorted(values, key=lambda invariant: invariant.identity()):
        total.update(_digest(invariant.identity(), values[invariant]))
    return Universe(multiverse=multiverse, values=values, digest=f"sha256:{total.hexdigest()}")


class _HashingFile:
    """A writable file that only computes a digest, so that large tables are never held as text."""

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
    """Return a digest of a table that depends on its values alone, not on row order or dictionary codes."""
    import pyarrow as pa
    from pyarrow import csv

    names = sorted(table.column_names)
    plain = pa.table({name: table[name].cast(pa.string()) for name in names})
    plain = plain.sort_by([(name, "ascending") for name in names])
    sink = _HashingFile()
    sink.write(words.encode() + b"\x00")
    csv.write_csv(plain, sink)
    return sink.hash.digest()
