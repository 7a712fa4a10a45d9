"""The realised universe: values of the invariants and their digest, from counts alone."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from stirred.errors import SpecificationError
from stirred.spec import AtLeast, Custom, Invariant, Margin, Multiverse, universe

Row = dict[str, str]


class Toy:
    """A census in memory that can only be asked for counts."""

    def __init__(self, **records: list[Row]) -> None:
        self.records = {name.replace("_", " "): rows for name, rows in records.items()}

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        chosen = [r for r in self.records[record_type] if all(r[k] in v for k, v in (where or {}).items())]
        found = sorted(Counter(tuple(r[k] for k in by) for r in chosen).items())
        columns = {k: pa.array([key[i] for key, _ in found], pa.string()) for i, k in enumerate(by)}
        return pa.table({**columns, "count": pa.array([n for _, n in found], pa.int64())})


HOUSEHOLDS = [{"block": "1", "tenure": "o"}, {"block": "1", "tenure": "r"}, {"block": "2", "tenure": "r"}]
SWAPPED = [{"block": "1", "tenure": "r"}, {"block": "1", "tenure": "r"}, {"block": "2", "tenure": "o"}]
INVARIANTS = Multiverse.of(Margin("household", ("block",)), Margin("household", ("tenure",)))


def test_swapping_stays_in_its_universe_and_nothing_else_does() -> None:
    here, there = (universe(Toy(household=rows), INVARIANTS) for rows in (HOUSEHOLDS, SWAPPED))
    assert here.digest == there.digest
    assert here.digest.startswith("sha256:")
    assert here.numbers == 4
    joint = Multiverse.of(Margin("household", ("block", "tenure")))
    assert universe(Toy(household=HOUSEHOLDS), joint).digest != universe(Toy(household=SWAPPED), joint).digest


def test_the_digest_depends_on_values_alone() -> None:
    turned = list(reversed(HOUSEHOLDS))
    named = Multiverse.of(Margin("household", ("block",), label="homes"), Margin("household", ("tenure",)))
    base = universe(Toy(household=HOUSEHOLDS), INVARIANTS)
    assert base.digest == universe(Toy(household=turned), INVARIANTS).digest
    assert base.digest != universe(Toy(household=HOUSEHOLDS), INVARIANTS, salt=b"secret").digest
    assert universe(Toy(household=HOUSEHOLDS), named).digest == base.digest


def test_names_do_not_change_the_digest() -> None:
    # labels that turn the alphabetical order of the two around
    named = Multiverse.of(
        Margin("household", ("block",), label="z"), Margin("household", ("tenure",), label="a")
    )
    assert named == INVARIANTS
    census = Toy(household=HOUSEHOLDS)
    assert universe(census, named).digest == universe(census, INVARIANTS).digest
    assert Custom("c", description="one").identity() == Custom("c", description="two").identity()


def test_inequalities_are_realised_by_area() -> None:
    census = Toy(
        household=HOUSEHOLDS,
        person=[{"block": "1"}, {"block": "3"}],
        group_quarters=[{"block": "1"}, {"block": "2"}],
    )
    some = AtLeast(Margin("household", ("block",)), 2).tabulate(census).to_pylist()
    assert some == [{"block": "1", "holds": True}]
    inequality = AtLeast(Margin("person", ("block",)), Margin("group quarters", ("block",)))
    assert inequality.tabulate(census).to_pylist() == [{"block": "2", "holds": False}]
    total = AtLeast(Margin("person"), Margin("group quarters")).tabulate(census)
    assert total["holds"].to_pylist() == [True]


def test_the_digest_of_an_inequality_says_nothing_about_the_counts() -> None:
    two = Multiverse.of(AtLeast(Margin("household", ("block",)), 2))
    none_there = Toy(household=HOUSEHOLDS[:2])  # block 2 is empty instead of holding one
    assert universe(Toy(household=HOUSEHOLDS), two).digest == universe(none_there, two).digest
    assert universe(Toy(household=HOUSEHOLDS[1:]), two).digest != universe(none_there, two).digest


class Coded(Toy):
    """The same census with its areas as dictionary codes."""

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        table = super().counts(record_type, by, where)
        return pa.table(
            {n: table[n] if n == "count" else table[n].dictionary_encode() for n in table.column_names}
        )


def test_codes_do_not_matter() -> None:
    files = {
        "household": HOUSEHOLDS,
        "person": [{"block": "2"}],
        "group_quarters": [{"block": "1"}, {"block": "2"}],
    }
    both = INVARIANTS & AtLeast(Margin("person", ("block",)), Margin("group quarters", ("block",)))
    both &= AtLeast(Margin("household", ("block",)), 1)
    assert universe(Coded(**files), both).digest == universe(Toy(**files), both).digest


def test_the_two_sides_of_an_inequality_share_their_areas() -> None:
    with pytest.raises(SpecificationError, match="areas"):
        AtLeast(Margin("person", ("block",)), Margin("person", ("county",)))
    with pytest.raises(SpecificationError, match="at least 0"):
        AtLeast(Margin("person", ("block",)), 0)
    with pytest.raises(SpecificationError, match="one text"):
        Margin("person", "block")


class Largest(Invariant):
    """An invariant of one's own in a few lines: the largest block."""

    def words(self) -> str:
        return "number of households in the largest block"

    def needs(self) -> tuple[Margin, ...]:
        return (Margin("household", ("block",)),)

    def tabulate(self, counts: Toy) -> pa.Table:  # type: ignore[override]
        return pa.table({"count": [max(counts.counts("household", ("block",))["count"].to_pylist())]})


def test_an_invariant_of_ones_own() -> None:
    largest = Largest()
    found = universe(Toy(household=HOUSEHOLDS), Multiverse.of(largest))
    assert found.values[largest]["count"].to_pylist() == [2]
    with pytest.raises(SpecificationError, match="cannot compute the invariant"):
        Custom("secret").tabulate(Toy())
