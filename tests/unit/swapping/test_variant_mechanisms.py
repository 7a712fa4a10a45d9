"""Every relative of the PSA runs, states its own specification and keeps its invariants."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError, PrivacyError
from stirred.mechanisms.swap import (
    ImputedStay,
    NearPlaces,
    NoisyKey,
    NoisyTables,
    NoVacuous,
    PermutationSwapping,
    UnitMatching,
    VaryingRates,
)
from stirred.spec import Budget

KEY = Key.for_tests(1)
BASE = {"match": ["state", "size"], "swap": ["county"], "rate": "1/5"}
VARIANTS = {
    "1a": (VaryingRates, {"by": "tenure", "rates": {"rent": "1/2"}}),
    "1b": (VaryingRates, {"by": "county", "rates": {"3": "1/2"}}),
    "1c": (VaryingRates, {"rarity": ["tenure", "race", "county"], "rare": "1/2"}),
    "2": (ImputedStay, {"imputed": "allocated", "levels": ["1"]}),
    "3": (NoVacuous, {}),
    "4": (NearPlaces, {"preference": "3"}),
    "5": (UnitMatching, {"loose": ["size"], "alpha": "1/5"}),
    "6a": (NoisyKey, {"noisy": "size", "change": "1/10"}),
    "6b": (NoisyTables, {"tables": [["county", "tenure"]], "sigma_squared": "4"}),
}


def household(n: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(1)
    county = rng.integers(0, 8, n)
    return pa.table(
        {
            "hid": np.arange(n) * 3,
            "state": county // 4,
            "county": county,
            "size": rng.integers(1, 5, n),
            "tenure": rng.choice(["own", "rent"], n),
            "race": rng.integers(0, 12, n),
            "allocated": (rng.random(n) < 0.1).astype(np.int8),
        }
    )


def census(table: pa.Table) -> Census:
    schema = {"geography": {"spine": ["state", "county"]}, "record": {"household": {"id": "hid"}}}
    return Census.of(schema, {"household": table})


def make(law: str, **changed: object) -> PermutationSwapping:
    kind, settings = VARIANTS[law]
    return kind(**{**BASE, **settings, **changed})


def counts(data: object, *by: str) -> list[tuple[object, ...]]:
    frame = pl.from_arrow(data).with_columns(pl.selectors.categorical().cast(pl.String))
    return sorted(frame.group_by(by).len().rows())


@pytest.mark.parametrize("law", VARIANTS)
def test_it_runs_and_its_promise_has_its_own_law(law: str) -> None:
    table = household()
    mechanism = make(law)
    promise = mechanism.specification(census(table))
    release = mechanism.release(census(table), key=KEY)
    assert release.specification == promise
    assert promise.bounds
    if law == "6a":
        assert promise.evidence.status == "unknown"
        assert not promise.budget.is_finite
    else:
        assert promise.evidence.status == "proved"
        assert promise.budget.is_finite
    assert all(check.kept for check in release.checks)
    assert release.mechanism != "permutation-swapping"
    plain = PermutationSwapping(**BASE).parameters()
    assert set(mechanism.parameters()) > set(plain) or law == "3"


@pytest.mark.parametrize("law", [law for law in VARIANTS if law != "6b"])
def test_rows_of_the_input_decide_nothing(law: str) -> None:
    table = household()
    other = table.take(np.random.default_rng(2).permutation(table.num_rows))
    first, second = (make(law).release(census(t), key=KEY).microdata["household"] for t in (table, other))
    assert first.equals(second)


@pytest.mark.parametrize("law", ["1a", "1b", "1c", "2", "3", "4"])
def test_the_strata_keep_their_places(law: str) -> None:
    table = household()
    after = make(law).release(census(table), key=KEY).microdata["household"]
    assert counts(table, "state", "size", "county") == counts(after, "state", "size", "county")
    assert counts(table, "county", "tenure") != counts(after, "county", "tenure")


def test_loosened_matching_keeps_only_the_pools() -> None:
    table = household()
    after = make("5").release(census(table), key=KEY).microdata["household"]
    assert counts(table, "state", "county") == counts(after, "state", "county")
    assert counts(table, "size", "county") != counts(after, "size", "county")
    words = str(make("5").specification(census(table)).multiverse)
    assert "county × size" not in words


def test_imputed_records_are_released_as_they_are_and_listed() -> None:
    table = household()
    release = make("2").release(census(table), key=KEY)
    marked = [
        counts(
            pl.from_arrow(t).filter(pl.col("allocated") == 1).to_arrow(), "state", "county", "size", "race"
        )
        for t in (table, release.microdata["household"])
    ]
    assert marked[0] == marked[1]
    number = int(np.sum(table["allocated"].to_numpy()))
    assert any(
        f"{number:,} household records were imputed" in line for line in release.specification.untouched
    )
    plain = PermutationSwapping(**BASE).specification(census(table))
    assert release.specification.budget < plain.budget


def test_noisy_tables_cover_empty_cells_and_release_no_record() -> None:
    table = household(60)
    release = make("6b", tables=[["county", "race"]]).release(census(table), key=KEY)
    assert not release.microdata
    found = release.tables["county × race"]
    levels = [len(table[name].unique()) for name in ("county", "race")]
    assert found.num_rows == levels[0] * levels[1]


def test_a_noisy_key_prints_the_loss_found_at_its_own_noise() -> None:
    found = {}
    for change in ("1/10", "1/2", "1"):
        bounds = make("6a", change=change).specification(census(household())).bounds
        assert [bound.status for bound in bounds] == ["unknown", "estimated"]
        assert f"probability {change}" in bounds[1].source
        found[change] = bounds[1].budget
    # the less noise, the closer to the exact strata of which the invariants do not speak
    assert found["1"] < found["1/2"] < found["1/10"]
    never = make("6a", change="0")
    assert not never.specification(census(household())).bounds[1].budget.is_finite
    with pytest.raises(PrivacyError, match="never changes"):
        never.release(census(household()), key=KEY)


def test_the_noise_after_the_swap_keeps_its_own_promise() -> None:
    mechanism = make("6b", tables=[["county", "tenure"], ["county", "race"], ["size", "tenure"]])
    swap, noise = (
        mechanism.specification(census(household())),
        mechanism.noise_specification(census(household())),
    )
    # two tables have a variable that moves and one that is held: ρ² = 2 · (√2)² / (2 · 4), by hand
    assert noise.rho_squared == Budget.of("1/2")
    assert str(noise.output_premetric) == "D_nor"
    assert noise.multiverse == swap.multiverse
    assert any("ρ² = 1/2" in note for note in swap.notes)
    alone = make("6b", tables=[["size", "tenure"]]).noise_specification(census(household()))
    assert alone.budget.is_zero  # such a table is an invariant


def test_a_rate_that_looks_at_a_level_which_moves_along_is_law_1b() -> None:
    rng = np.random.default_rng(5)
    tract = rng.integers(0, 40, 3_000)
    data = pa.table({"hid": np.arange(3_000), "county": tract // 10, "tract": tract, "kept": tract % 3})
    schema = {"geography": {"spine": ["county", "tract"]}, "record": {"household": {"id": "hid"}}}
    there = Census.of(schema, {"household": data})
    names = {}
    for by in ("county", "tract", "kept"):
        rated = VaryingRates(swap=["tract"], rate="1/5", by=by, rates={"1": "1/2"})
        names[by] = rated.specification(there).bounds[0].name
    assert names == {
        "county": "rates by own place",
        "tract": "rates by own place",
        "kept": "rates by held variables",
    }
    with pytest.raises(InputError, match="no rate can depend on hid"):
        VaryingRates(swap=["tract"], rate="1/5", by="hid", rates={"1": "1/2"}).specification(there)


def test_places_prefer_to_be_near() -> None:
    rng = np.random.default_rng(3)
    tract = rng.integers(0, 40, 4_000)
    data = {"hid": np.arange(4_000), "county": tract // 10, "tract": tract, "mark": np.arange(4_000)}
    schema = {"geography": {"spine": ["county", "tract"]}, "record": {"household": {"id": "hid"}}}
    there = Census.of(schema, {"household": pa.table(data)})
    settings = {"swap": ["county", "tract"], "rate": "1/2", "release_identifiers": {"mark": "a test"}}

    def left(mechanism: PermutationSwapping) -> float:
        after = pl.from_arrow(mechanism.release(there, key=KEY).microdata["household"]).sort("mark")
        moved = after["tract"].to_numpy() != tract
        return float((after["county"].to_numpy() != tract // 10)[moved].mean())

    assert left(NearPlaces(preference=1, **settings)) > left(NearPlaces(preference=50, **settings)) + 0.02


def test_refusals() -> None:
    with pytest.raises(InputError, match="one source"):
        VaryingRates(**BASE)
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        make("1a", rates={"rent": "1"})
    with pytest.raises(InputError, match="loosened"):
        make("5", loose=["tenure"])
    with pytest.raises(InputError, match="not a match variable"):
        make("6a", noisy="tenure")
    with pytest.raises(InputError, match="at least 1"):
        make("4", preference="1/2")


def test_noisy_tables_release_no_records() -> None:
    with pytest.raises(InputError, match="no records are released"):
        make("6b", microdata=True)


def test_a_census_without_identifiers_has_tables_with_intervals() -> None:
    """The place of a record tells it apart."""
    table = household(400)
    nameless = Census.of({"geography": {"spine": ["state", "county"]}}, {"household": table.drop(["hid"])})
    release = PermutationSwapping(**BASE).release(nameless, key=KEY)
    numbered = pa.table(
        {"hid": np.arange(400), **dict(zip(table.column_names[1:], table.columns[1:], strict=True))}
    )
    data = release.microdata["household"]
    shown = PermutationSwapping(**BASE).table(release, ["county", "tenure"])
    assert sum(shown.column("count").to_pylist()) == 400
    assert counts(data, "size", "state") == counts(numbered, "size", "state")
    assert set(shown.column_names) >= {"estimate", "low", "high"}
