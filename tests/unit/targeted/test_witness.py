"""The pairs of data sets that show why no budget is finite, run with many keys."""

from typing import Any

import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.targeted import TargetedSwapping

SCHEMA: dict[str, Any] = {"geography": {"spine": ["area"]}, "record": {"household": {"id": "hid"}}}
KEYS = 200


def tiny(places: str, kinds: str = "") -> Census:
    """Households a, b, c … at these places; ``kinds`` is what is rare or not."""
    answers = "abcdefgh"[: len(places)]
    return Census.of(
        SCHEMA,
        {
            "household": {
                "hid": list(range(1, len(places) + 1)),
                "area": list(places),
                "answer": list(answers),
                "kind": list(kinds or "x" * len(places)),
            }
        },
    )


def outcomes(census: Census, **settings: Any) -> set[frozenset[tuple[str, str]]]:
    """Which answers stand where, over many keys."""
    mechanism = TargetedSwapping(
        hierarchy=["area"],
        similar=[[]],
        release_identifiers=["answer"],
        accept_reversal=["answer"],
        **settings,
    )
    frame = mechanism.frame(census)
    found = set()
    for number in range(KEYS):
        columns = mechanism.swapped(frame, Key.for_tests(number), Local())
        shown = (columns[name].arrow().to_pylist() for name in ("area", "answer"))
        found.add(frozenset(zip(*shown, strict=True)))
    return found


def as_it_is(census: Census) -> frozenset[tuple[str, str]]:
    frame = census.table("household").to_pylist()
    return frozenset((row["area"], row["answer"]) for row in frame)


def test_a_certain_number_of_swaps() -> None:
    """Four households, one swap: the first data set never comes out as it is, its neighbour comes out as the first."""
    settings: dict[str, Any] = {"swaprate": "1/2", "k_anonymity": 0}
    first, second = tiny("AABB"), tiny("BAAB")
    assert as_it_is(first) not in outcomes(first, **settings)
    assert as_it_is(first) in outcomes(second, **settings)
    witness = TargetedSwapping(hierarchy=["area"], similar=[[]], **settings).details()["witness"]
    assert isinstance(witness, dict)
    assert witness["chances"][0] == 0


def test_a_certain_selection() -> None:
    """One rare household is always swapped away: it is never released where it is, and comes there from elsewhere."""
    settings: dict[str, Any] = {"swaprate": "0", "k_anonymity": 2, "risk_variables": ["kind"]}
    first, second = tiny("AAABBB", "rxxxxx"), tiny("BAAABB", "rxxxxx")
    assert not any(("A", "a") in found for found in outcomes(first, **settings))
    assert any(("A", "a") in found for found in outcomes(second, **settings))
    assert as_it_is(first) in outcomes(second, **settings)


def test_disjoint_pairs_do_not_reach_the_universe() -> None:
    """Three households in three areas: no set of disjoint pairs turns them in a circle, whatever the rate."""
    start, turned = tiny("ABC"), tiny("CAB")
    for rate in ("1/3", "2/3", "1"):
        assert as_it_is(turned) not in outcomes(start, swaprate=rate, k_anonymity=0)


@pytest.mark.parametrize("rate", ["1/2", "1"])
def test_every_budget_is_infinite(rate: str) -> None:
    promise = TargetedSwapping(hierarchy=["area"], similar=[[]], swaprate=rate, k_anonymity=0).specification(
        tiny("AABB")
    )
    assert not promise.budget.is_finite
    assert promise.evidence.status == "proved"
