"""The catalog computes every ε when it is shown, names its sources, and admits what nobody has stated."""

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import stirred.catalog
from stirred.catalog import catalog
from stirred.catalog.entries import list_parts, variants
from stirred.errors import InputError, StirredError
from stirred.spec import (
    Approximate,
    Budget,
    Domain,
    Hamming,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
    compare,
)

FIELDS = {
    "name",
    "title",
    "unit",
    "output_premetric",
    "invariants",
    "delta",
    "epsilon_simple",
    "epsilon_tight",
    "exact",
    "source",
}


def test_rows_have_the_documented_fields() -> None:
    for row in catalog.rows():
        assert set(row) >= FIELDS
        assert ("rho_squared" in row) != ("epsilon" in row)


def test_another_delta_moves_every_reading_and_no_budget() -> None:
    before = {row["name"]: row for row in catalog.rows()}
    after = {row["name"]: row for row in catalog.rows(Fraction(1, 10**12))}
    moved = 0
    for name, row in before.items():
        assert after[name]["exact"] == row["exact"]
        if row.get("rho_squared") is None:
            continue
        for key in ("epsilon_simple", "epsilon_tight"):
            assert float(str(after[name][key])) > float(str(row[key]))
            moved += 1
    assert moved == 34  # seventeen zCDP entries, two readings each


def test_no_epsilon_is_stored() -> None:
    """No published ε, nor any float, stands in the source of the catalog's figures."""
    room = Path(stirred.catalog.__file__).parent
    files = [room / "products.py", room.parent / "spec" / "conversions.py"]
    files += [room.parent / "mechanisms" / "census2020" / "factors.py"]
    trees = [ast.parse(file.read_text()) for file in files]
    numbers = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not [value for value in numbers if isinstance(value, float)]
    for epsilon in ("17.90", "17.14", "26.34", "34.33", "52.83", "126.78", "19.36", "18.29"):
        assert epsilon not in [value for value in numbers if isinstance(value, str)]


def test_readings_are_rounded_up() -> None:
    row = catalog.entry("pl-persons-2020").row()
    # 17.9001846… and 17.1435507… by the certificates and an independent computation
    assert row["epsilon_simple"] == 17.900185
    assert row["epsilon_tight"] == 17.143551


def test_totals_that_leave_releases_out_say_so() -> None:
    for name in ("das-2020", "das-2020-proved", "das-2020-group-privacy", "das-2020-printed"):
        row = catalog.entry(name).row()
        assert row["at_least"] is True
        assert len(row["omits"]) == 5  # type: ignore[arg-type]
        assert "≥" in catalog.entry(name).card().budget()
    assert "≥" not in catalog.entry("pl-2020").card().budget()


def test_releases_of_unknown_cost_are_entries() -> None:
    unknown = [row for row in catalog.rows() if row.get("status") == "unknown"]
    assert len(unknown) == 5
    assert all(row["rho_squared"] is None and row["exact"] is None for row in unknown)
    with pytest.raises(InputError, match="nobody has stated"):
        catalog.entry("surname-file-2020")


def test_unknown_name_is_helped() -> None:
    with pytest.raises(InputError, match=r"did you mean.*das-2020"):
        catalog["das-2002"]


def test_the_room_can_be_indexed() -> None:
    assert stirred.catalog["pl-2020"] == catalog["pl-2020"]


def test_the_card_says_which_constant_and_why() -> None:
    card = catalog.entry("das-2020").card()
    assert any("constant 1" in note and "household link" in note for note in card.notes())
    assert any("constant 2" in variant.words for variant in card.variants)


def test_swaps_are_read_at_distance_two() -> None:
    for name in catalog:
        swapped = (name.startswith("whatif") and not name.endswith("-stirred")) or name == "das-2010"
        expected = 2 if swapped else 1  # stirring counts exchanges
        assert catalog.entry(name).card().bound_odds().distance == expected, name


def test_assumptions_of_the_2020_das() -> None:
    words = [assumption.words for assumption in variants(catalog["das-2020"])]
    assert len(words) == 6  # constant 2, a copy, per household, three invariants
    infinite = [a for a in variants(catalog["das-2020"]) if not a.specification.budget.is_finite]
    assert len(infinite) == 3


def test_every_line_of_a_total_says_at_least() -> None:
    lines = catalog.entry("das-2020").card().variants
    assert (
        len(lines) == 8
    )  # proved factors, group privacy, constant 2, a copy, per household, three invariants
    assert all("≥" in line.budget or "∞" in line.budget for line in lines)


# What an answer may be without being false. Households, units and facilities of a block are exact after a swap down to
# the block: it fixes all that the 2020 DAS fixes. A swap of counties or tracts leaves the units of a block open.
@pytest.mark.parametrize(
    ("swap", "true"),
    [
        (
            name,
            {"weaker", "unknown"} if "block" in name or name == "das-2010" else {"incomparable", "unknown"},
        )
        for name in catalog
        if name.startswith("whatif") or name == "das-2010"
    ],
)
def test_compare_does_not_rank_swapping_and_the_2020_das(swap: str, true: set[str]) -> None:
    found = compare(catalog[swap], catalog["das-2020"])
    relations = {part: finding.relation.value for part, finding in found.parts.items()}
    assert relations["domain"] == "equal"
    assert relations["multiverse"] in true
    # what is stated per exchange says nothing of persons: the tables are those of several record types
    assert relations["input premetric"] == ("weaker" if swap.endswith("-stirred") else "stronger")
    assert relations["output premetric"] == "stronger"
    assert found.overall.relation.value in {"incomparable", "unknown"}
    assert found.warnings


def test_the_parts_of_an_approximate_total_are_shown_by_epsilon() -> None:
    part = Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=Approximate("1/1000"),
        budget=Budget.of(2),
    )
    assert [(piece.budget, piece.counted) for piece in list_parts(part + part)] == [
        ("ε = 2.0000", "ε = 2.0000")
    ] * 2
    pure = replace(part, output_premetric=Multiplicative())
    shown = list_parts(pure + pure.under(NormalizedRenyi()).within(Budget.sqrt(2)))
    assert sorted(piece.budget for piece in shown) == ["ε = 2.0000", "ρ² = 2.0000"]
    assert {piece.counted for piece in shown} == {"ρ² = 2.0000"}


def test_a_swap_is_asked_for_at_a_rate() -> None:
    assert catalog["whatif-state@1/2"] == catalog.entry("whatif-state").at(Fraction(1, 2))
    assert (
        stirred.catalog.compare("whatif-state@1/2", catalog["whatif-state@1/2"]).overall.relation.value
        == "equal"
    )
    for wrong in ("whatif-stat@1/2", "das-2020@1/2", "whatif-state@", "whatif-state@2", "@1/2"):
        with pytest.raises(StirredError):
            catalog[wrong]
