"""Define the multiverse that invariants induce, and the universe that a census lies in."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from stirred.errors import SpecificationError, require_kind
from stirred.spec.domain import Domain
from stirred.spec.invariants import Custom, Invariant, SupportsCounts
from stirred.spec.refinement import refines
from stirred.spec.verdict import Verdict

if TYPE_CHECKING:
    import pyarrow as pa


# The multiverse that invariants induce: where protection extends.


@dataclass(frozen=True, slots=True)
class Multiverse:
    r"""The universes $\mathcal D_c(x) = \{x' : c(x') = c(x)\}$ of a set of invariants, for all their values.

    >>> from stirred.spec.invariants import Margin
    >>> print(Multiverse.of(Margin("person", ("state",))) & Multiverse.of(Margin("household", ("block",))))
    {households by block, persons by state}
    """

    invariants: frozenset[Invariant] = frozenset()

    @staticmethod
    def of(*invariants: Invariant) -> "Multiverse":
        for invariant in invariants:
            require_kind(
                "an invariant",
                invariant,
                Invariant,
                wanted="an Invariant",
                fix='Multiverse.of(Margin("household", ("block",)))',
                error=SpecificationError,
            )
        return Multiverse(frozenset(invariants))

    @staticmethod
    def realised_only(values: object) -> NoReturn:
        """Refuse a single universe, which is one accidental value of the invariants (Section 2.1)."""
        del values
        refuse_single_universe()

    @staticmethod
    def none() -> "Multiverse":
        """Return the vacuous multiverse {X}, which has no invariant."""
        return Multiverse()

    @property
    def is_vacuous(self) -> bool:
        return not self.invariants

    def __and__(self, other: "Multiverse | Invariant") -> "Multiverse":
        """Return the multiverse of both sets of invariants."""
        return Multiverse.join((self, Multiverse.of(other) if isinstance(other, Invariant) else other))

    @staticmethod
    def join(several: Iterable["Multiverse"]) -> "Multiverse":
        """Return the multiverse of all these invariants; of two equal ones the one that says ``keeps_with`` stays."""
        found: dict[Invariant, Invariant] = {}
        for invariant in (one for multiverse in several for one in multiverse.invariants):
            if invariant not in found or (isinstance(invariant, Custom) and invariant.keeps_with):
                found[invariant] = invariant
        return Multiverse(frozenset(found.values()))

    def __iter__(self) -> Iterator[Invariant]:
        return iter(sorted(self.invariants, key=lambda invariant: (invariant.words(), invariant.identity())))

    def __len__(self) -> int:
        return len(self.invariants)

    def check(self, domain: Domain) -> "Multiverse":
        """Return this multiverse if the domain has every record type and variable it names; otherwise raise.

        A domain without record types, or a record type without variables, is not checked.
        """
        tables = [
            needed for invariant in self if not isinstance(invariant, Custom) for needed in invariant.needs()
        ]
        for margin in tables if domain.record_types else ():
            kind = domain.record_type(margin.record_type)
            for name in (*margin.by, *margin.conditions()) if kind.variables else ():
                if name not in domain.spine:
                    domain.variable(margin.record_type, name)
        return self

    def refines(self, other: "Multiverse", domain: Domain) -> Verdict:
        """Decide whether every universe of this multiverse lies in one of the other's."""
        return refines(self, other, domain)

    def __str__(self) -> str:
        return "{" + ", ".join(invariant.words() for invariant in self) + "}"


def refuse_single_universe() -> NoReturn:
    """Refuse a specification for one realised universe only, with the paper's reason (Section 2.1)."""
    raise SpecificationError(
        "a specification covers a multiverse, not one universe",
        why="the value of an invariant is accidental, only its being published is essential: "
        "the promise must hold whatever value it takes",
        fix="give Multiverse.of(the invariants); their realised values go into the receipt",
    )


# The realised universe: the values of the invariants, with a digest.
#
# The values are released exactly anyway, so their digest may be published; where a release is not out yet it can be
# salted, so that it commits to the values without showing them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    r"""$\mathcal D_c(x) = \{x' : c(x') = c(x)\}$ (Equation 2), given by the realised values of the invariants."""

    multiverse: Multiverse
    values: "Mapping[Invariant, pa.Table]" = field(repr=False)
    digest: str  # of the values

    @property
    def numbers(self) -> int:
        """Return how many numbers the invariants fix."""
        return sum(int(table.num_rows) for table in self.values.values())

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
