"""Numbers that are published twice: what is compared, what is not, and that every listed quantity names its tables."""

import pyarrow as pa
import pytest

from stirred.assess.contradictions import Quantity, Side, find_contradictions
from stirred.languages import Phrase
from stirred.publish.named_plans import list_quantities


def table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def found(first: pa.Table, second: pa.Table, one: Side, two: Side) -> tuple[int, int, float]:
    quantity = Quantity(name="x", first=one, second=two)
    (told,) = find_contradictions({one.table: first, two.table: second}, [quantity])
    return told.compared, told.differ, told.largest


def test_sums_of_some_rows_are_compared_by_area() -> None:
    units = table(state=["1", "1", "2"], tenvac=[0, 1, 0], count=[5, 2, 9])
    homes = table(region=["1", "2"], region_type=["STATE", "STATE"], count=[7, 8])
    one = Side(table="a", by=("state",), where={"tenvac": ("0", "1")})
    two = Side(table="b", by=("region",), where={"region_type": ("STATE",)})
    assert found(units, homes, one, two) == (2, 1, 1.0)


def test_a_suppressed_row_is_not_compared() -> None:
    groups = table(iteration=["x", "y"], count=[3, 4])
    others = table(iteration=["x"], count=[3])
    assert found(
        groups, others, Side(table="t3", by=("iteration",)), Side(table="t4", by=("iteration",))
    ) == (1, 0, 0)


def test_a_cell_that_no_released_record_has_is_zero() -> None:
    first = table(county=["1", "2"], count=[3, 4])
    second = table(county=["1"], count=[3])
    sides = [Side(table=name, by=("county",), complete=True) for name in ("a", "b")]
    assert found(first, second, *sides) == (2, 1, 4.0)


def test_totals_without_areas_are_compared() -> None:
    assert found(table(count=[2, 3]), table(count=[5]), Side(table="a", by=()), Side(table="b", by=())) == (
        1,
        0,
        0,
    )


@pytest.mark.parametrize("lacking", [{}, {"a": table(state=["1"])}, {"a": table(count=[1])}])
def test_what_is_not_published_is_not_compared(lacking: dict[str, pa.Table]) -> None:
    quantity = Quantity(name="x", first=Side(table="a", by=("state",)), second=Side(table="a", by=("state",)))
    assert find_contradictions(lacking, [quantity]) == ()


def test_every_quantity_has_words_of_its_own() -> None:
    quantities = list_quantities()
    words = [str(Phrase(f"composed.quantity.{quantity.name}")) for quantity in quantities]
    assert len(set(words)) == len(words) == 18
    assert len({quantity.name for quantity in quantities}) == len(quantities)
    for quantity in quantities:
        assert len(quantity.first.by) == len(quantity.second.by)
