"""What lacks a guarantee inherits none: a swap promises what its own class states, or cannot be made at all."""

from abc import ABC
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.mechanisms.swap import PermutationSwapping, TargetedSwapping
from stirred.mechanisms.swap.bounds import bounds
from stirred.mechanisms.swap.frame import Frame
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPipeline
from stirred.mechanisms.swap.psa import ProvedSwapping, RateSwapping, StratumSwapping
from stirred.mechanisms.swap.records import Column
from stirred.spec import Budget

ROWS = 24
STRATA = {"match": ["size"], "swap": ["county"], "rate": "1/4", "carry": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "permutation-swapping": STRATA,
    "swapping-varying-rates": STRATA | {"by": "tenure", "rates": {"rent": "1/3"}},
    "swapping-imputed-stay": STRATA | {"imputed": "tenure", "levels": ["other"]},
    "swapping-no-vacuous": STRATA,
    "swapping-near-places": STRATA | {"preference": "2"},
    "swapping-unit-matching": STRATA | {"loose": ["size"], "alpha": "1/2"},
    "swapping-noisy-key": STRATA | {"noisy": "size", "change": "1/4"},
    "swapping-noisy-tables": STRATA | {"tables": [["county", "tenure"]], "sigma_squared": "4"},
    "targeted-swapping": {"hierarchy": ["county"], "similar": [["size"]], "k_anonymity": 0},
    "swapping-2010": {"swap": ["county"], "state": "state", "equal": ["size"]},
}
WITHOUT_BOUND = {"swapping-noisy-key", "targeted-swapping", "swapping-2010"}


def town() -> Census:
    schema = {"geography": {"spine": ["state", "county"]}, "record": {"household": {"id": "id"}}}
    homes = {
        "id": list(range(ROWS)),
        "state": ["s"] * ROWS,
        "county": [f"c{i % 3}" for i in range(ROWS)],
        "size": [i % 2 for i in range(ROWS)],
        "tenure": [("own", "rent", "other")[i // 2 % 3] for i in range(ROWS)],
    }
    return Census.of(schema, {"household": pa.table(homes)})


def swaps() -> dict[str, type[SwapMechanism]]:
    """Every registered mechanism of the swap room."""
    found = {name: find_mechanism(name) for name in list_mechanisms()}
    return {name: kind for name, kind in found.items() if issubclass(kind, SwapMechanism)}


def test_all_swaps_are_looked_at() -> None:
    assert swaps().keys() == {
        *SETTINGS,
        "stirring",
    }  # stirring owns a pipeline too, and states its own promise


@pytest.mark.parametrize("name", SETTINGS)
def test_a_finite_budget_and_what_is_proved_come_together(name: str) -> None:
    """Knobs, size laws and a finite budget are those of classes that are proved, and of no other."""
    kind = swaps()[name]
    mechanism = kind(**SETTINGS[name])
    spec = mechanism.specification(town())
    assert spec.budget.is_finite == (name not in WITHOUT_BOUND)
    assert issubclass(kind, ProvedSwapping) == spec.budget.is_finite
    assert bool(mechanism.knobs()) == spec.budget.is_finite
    if not spec.budget.is_finite:
        assert spec.varies.law is None
        assert not mechanism.keeps(["county", "tenure"], town().schema)


@pytest.mark.parametrize("name", [*SETTINGS, "stirring"])
def test_what_others_would_lose_is_the_same_in_a_whole_universe(name: str) -> None:
    """The comparison stands in the public report, so it may depend on nothing but what is exact."""
    kind, settings = swaps()[name], SETTINGS.get(name, STRATA)
    homes = town().scan("household").collect()
    told = set()
    for turn in range(3):
        # the places of each stratum are dealt out anew: match × swap and match × held stay as they are
        moved = homes.with_columns(pl.col("county").shuffle(seed=turn).over("size"))
        other = Census.of(town().schema, {"household": moved.to_arrow()})
        effect = kind(**settings).state_promise(other)[1]
        told.add(None if effect is None else tuple(effect.losses.items()))
    assert len(told) == 1
    losses = dict(told.pop() or ())
    if name not in {"targeted-swapping", "swapping-2010"}:
        assert {name, "permutation-swapping", "stirring"} <= {one.partition(",")[0] for one in losses}
        assert (losses[name] == "∞") == (name in WITHOUT_BOUND)


def test_only_the_psa_is_the_psa() -> None:
    """No registered swap inherits from it: its closed forms and bounds are its own."""
    kinds = swaps()
    assert [name for name, kind in kinds.items() if issubclass(kind, PermutationSwapping)] == [
        "permutation-swapping"
    ]


@pytest.mark.parametrize("name", sorted(WITHOUT_BOUND))
def test_a_new_hook_with_a_proved_default_does_not_leak(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProvedSwapping, "best_bound", lambda self: Budget.zero(), raising=False)
    monkeypatch.setattr(PermutationSwapping, "closer_bound", lambda self: Budget.zero(), raising=False)
    kind = swaps()[name]
    assert not hasattr(kind, "best_bound")
    assert not hasattr(kind, "closer_bound")
    shared = {*kind.__mro__} & {*PermutationSwapping.__mro__}
    assert shared <= {RateSwapping, StratumSwapping, SwapMechanism, Mechanism, ABC, object}


def test_only_laws_of_two_records_that_are_known_give_intervals() -> None:
    """A swap within strata has no closed form unless it states one."""
    made = {name: kind(**SETTINGS[name]) for name, kind in swaps().items() if name in SETTINGS}
    found = {name for name, one in made.items() if getattr(one, "pair_law", None) is not None}
    assert found == {"permutation-swapping"}


def test_what_is_shared_states_no_budget() -> None:
    """The shared classes leave the promise open, and the pipeline has no word for one."""
    assert "make_promise" in SwapMechanism.__abstractmethods__
    assert {"bounds", "size_law"} <= RateSwapping.__abstractmethods__
    assert {"bounds", "size_law"} <= ProvedSwapping.__abstractmethods__
    words = ("budget", "bound", "rate", "epsilon", "size_law", "knob")
    for kind in (SwapPipeline, SwapMechanism):
        fields = {*getattr(kind, "__slots__", ())}
        assert not [name for name in fields for word in words if word in name]


class Bare(SwapMechanism):
    """A law of moves that promises nothing: nobody moves."""

    name = "bare"

    def refuse_degenerate(self) -> None:
        """Refuse nothing."""

    def highest_rate(self) -> float:
        return 0.0

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        del run, engine
        return frame.columns


def test_a_swap_that_states_no_promise_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="make_promise"):
        Bare(swap=["county"])


def test_a_swap_at_a_rate_states_its_own_bounds_and_law() -> None:
    class Careless(ProvedSwapping):
        name = "careless"

    with pytest.raises(TypeError, match=r"bounds.*size_law"):
        Careless(**STRATA)

    class Hasty(ProvedSwapping):
        name = "hasty"

        def bounds(self, strata: Any) -> Any:
            return bounds(strata, self.rate)

    with pytest.raises(TypeError, match="size_law"):
        Hasty(**STRATA)


def test_the_pipeline_of_a_swap_carries_the_settings_that_all_swaps_have() -> None:
    pipeline = TargetedSwapping(hierarchy=["county"], similar=[["size"]], k_anonymity=0).pipeline
    assert (pipeline.match, pipeline.swap) == (("size",), ("county",))
    assert pipeline.roles(town()).hold == ("tenure",)  # the state moves along
