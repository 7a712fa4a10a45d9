"""The budget of a swap in every universe: the law it states, the b it reads, and how two of them compare."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stirred import ImputedStay, NearPlaces, NoisyKey, NoisyTables, NoVacuous, UnitMatching, VaryingRates
from stirred.catalog import catalog
from stirred.census import Census
from stirred.mechanisms.swap import PermutationSwapping
from stirred.spec import Budget, SizeLaw, Specification, compare_functions
from stirred.spec.card import Card
from stirred.spec.files import from_json, to_json

KINDS = {"column": "kind", "occupied": ["o"], "vacant": ["v"]}


def census(rows: list[tuple[str, ...]], columns: str = "mhs", **record: Any) -> Census:
    table = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    if "k" in table:
        table["kind"] = table.pop("k")
    table["household_id"] = [*range(1, len(rows) + 1)]
    return Census.of(
        {
            "name": "tiny",
            "geography": {"spine": []},
            "record": {"household": {"id": "household_id", **record}},
        },
        {"household": pa.table(table)},
    )


def different(n: int) -> Census:
    return census([("m", f"h{i}", f"s{i}") for i in range(n)])


def psa(rate: str, n: int) -> Specification:
    return PermutationSwapping(match=["m"], swap=["s"], rate=rate).specification(different(n))


def test_rates_that_agree_at_four_records_are_not_called_equal() -> None:
    half, more = psa("1/2", 4), psa("3/4", 4)
    assert half.budget == more.budget == Budget.log(3)
    assert half.varies != more.varies
    assert half.varies.realised == more.varies.realised != ""
    assert compare_functions(half, more).b == 5
    assert compare_functions(more, half).b == 2
    # the same mechanisms on six records, as the review met them
    assert psa("1/2", 6).budget > psa("3/4", 6).budget


def test_nine_tenths_and_half_cross() -> None:
    # at four records both are decided by their laws: ln 9 against ln 3; at a thousand it is the other way round
    assert psa("1/2", 4).budget < psa("9/10", 4).budget
    assert psa("1/2", 1000).budget > psa("9/10", 1000).budget
    assert compare_functions(psa("1/2", 4), psa("9/10", 4)).answer == "no"
    assert compare_functions(psa("9/10", 4), psa("1/2", 4)).answer == "no"


def test_five_percent_beside_fifty_is_decided_in_one_line() -> None:
    found = compare_functions(psa("1/2", 7), psa("1/20", 7))
    assert found.answer == "yes"
    assert found.because.startswith(
        "swap rate 1/2 gives a smaller budget than swap rate 1/20 for every size b"
    )
    assert compare_functions(psa("1/20", 7), psa("1/2", 7)).answer == "no"
    assert compare_functions(psa("1/2", 7), psa("1/2", 7)).answer == "yes"


def test_the_catalog_states_theorem_1_and_its_statistic() -> None:
    entry = catalog.entry("whatif-block-group-size")
    five, odd, fifty = entry.at("1/20"), entry.at("86450/86451"), entry.at("1/2")
    assert five.budget == odd.budget == Budget.log(86450)
    assert five.varies.law == SizeLaw("theorem-1", "1/20")
    assert five.varies.b == 4549
    assert (compare_functions(five, odd).b, compare_functions(odd, five).b) == (4550, 2)
    assert compare_functions(fifty, five).answer == "yes"
    assert compare_functions(five, fifty).answer == "no"
    other = catalog.entry("whatif-county-size").at("1/2")
    assert compare_functions(fifty, other).answer == "unknown"  # strata of other sizes
    note = next(note for note in Card(five).notes() if "differs by universe" in note)
    assert "max{ln o, ln(b + 1) − ln o} at swap rate 1/20" in note
    assert "b = 4,549" in note


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("untouched", ["publish", "drop"])
def test_the_b_that_is_stated_is_the_statistic_of_the_records(untouched: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = [(*map(str, draw.integers(0, (2, 2, 3))), "ov"[draw.integers(2)]) for _ in range(9)]
    here = census(rows, "mhsk", kind=KINDS)
    spec = PermutationSwapping(match=["m"], swap=["s"], rate="1/20", untouched=untouched).specification(here)
    records = [dict(zip(("m", "h", "s", "kind"), row, strict=True)) for row in rows]
    assert spec.varies.b == spec.varies.statistic.of(records)
    assert spec.budget <= spec.varies.law.at(spec.varies.b)
    assert from_json(to_json(spec)) == spec
    moved = ImputedStay(match=["m"], swap=["s"], rate="1/20", imputed="h", levels=["1"]).specification(here)
    assert moved.varies.b == moved.varies.statistic.of(records) == 0  # all that is left holds h = 0
    assert moved.varies.law == SizeLaw("by-size", "1/20")


def test_persons_make_any_two_households_differ() -> None:
    homes = {"household_id": [1, 2, 3], "h": ["x"] * 3, "s": ["a", "a", "b"]}
    people = {"household_id": [1, 2, 3], "age": ["1", "1", "1"]}
    schema = {
        "name": "tiny",
        "geography": {"spine": []},
        "record": {
            "household": {"id": "household_id"},
            "person": {"household": "household_id", "of": "household"},
        },
    }
    here = Census.of(schema, {"household": homes, "person": people})
    spec = PermutationSwapping(swap=["s"], rate="1/20").specification(here)
    assert spec.varies.b == 3
    records = [
        {"household_id": str(i), "h": h, "s": s}
        for i, h, s in zip(homes["household_id"], homes["h"], homes["s"], strict=True)
    ]
    assert spec.varies.statistic.of(records) == 3


def test_relatives_state_their_own_law_or_words_with_every_parameter() -> None:
    here = different(5)
    common: dict[str, Any] = {"match": ["m"], "swap": ["s"], "rate": "1/20"}
    held = VaryingRates(**common, by="h", rates={"h1": "1/10", "h2": "1/5"}).specification(here)
    assert held.varies.law == SizeLaw("by-size", "1/20", "1/5")
    assert held.budget == held.varies.law.at(5)
    pools = UnitMatching(**common, loose=["m"], alpha="1/5").specification(here)
    assert pools.varies.law == SizeLaw("by-size", Fraction(1, 100))
    assert pools.varies.statistic.match == ()
    noisy = NoisyTables(**common, sigma_squared="4", tables=[["h", "s"]]).specification(here)
    assert noisy.varies.law == SizeLaw("by-size", "1/20")
    in_words = {
        "rate = 1/20, preference = 3": NearPlaces(**common, preference=3),
        "rate = 1/20, preference = 4": NearPlaces(**common, preference=4),
        "swapping-no-vacuous with rate = 1/20": NoVacuous(**common),
        'by = s, rates = {"s1": "1/10"}': VaryingRates(**common, by="s", rates={"s1": "1/10"}),
        'rarity = ["h", "s"], rare = 1/2': VaryingRates(**common, rarity=["h", "s"], rare="1/2"),
        "noisy = m, change = 1/3": NoisyKey(**common, noisy="m", change="1/3"),
    }
    told = set()
    for words, mechanism in in_words.items():
        varies = mechanism.specification(here).varies
        assert varies.law is None
        assert words in varies.words
        told.add(varies.words)
    assert len(told) == len(in_words)


def test_a_relative_with_bounds_of_its_own_is_not_given_the_law_of_the_psa() -> None:
    class Careless(PermutationSwapping):
        def bounds(self, strata: Any) -> Any:
            return PermutationSwapping.bounds(self, strata)

    careless = Careless(match=["m"], swap=["s"], rate="1/20")
    assert careless.specification(different(5)).varies.law is None
