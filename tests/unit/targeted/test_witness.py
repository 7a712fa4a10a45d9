"""The pairs of data sets that show why no budget is finite, run with many keys."""

from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import PrivacyError
from stirred.mechanisms.swap import TargetedSwapping
from stirred.mechanisms.swap.pairwise import witness_by_cycle

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
        release_identifiers={"answer": "a test"},
        accept_reversal=["answer"],
        **settings,
    )
    frame = mechanism.frame(census)
    found = set()
    for number in range(KEYS):
        with suppress(PrivacyError):  # a draw in which nobody moved is refused
            columns = mechanism.draw_swap(frame, Key.for_tests(number), Local())
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


def cycle_lengths(g: tuple[int, ...]) -> list[int]:
    """The lengths of the cycles of a permutation."""
    left, found = set(range(len(g))), []
    while left:
        start = at = left.pop()
        length = 1
        while (at := g[at]) != start:
            left.remove(at)
            length += 1
        found.append(length)
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_cycles_do_not_reach_the_universe(n: int) -> None:
    """All products of disjoint cycles of at most n, enumerated: none turns n + 1 households in one circle.

    Of the same households with the last two exchanged, one cycle of n does.
    """
    size = n + 1
    made = [g for g in permutations(range(size)) if max(cycle_lengths(g)) <= n]
    first, second = list(range(size)), list(range(size))  # the area of each household
    second[-2:] = second[-1], second[-2]
    event = tuple((i + 1) % size for i in range(size))

    def reached(areas: list[int]) -> set[tuple[int, ...]]:
        return {tuple(areas[g[i]] for i in range(size)) for g in made}

    assert event not in reached(first)
    assert event in reached(second)
    assert sum(a != b for a, b in zip(first, second, strict=True)) == witness_by_cycle(n)["distance"] == 2


def test_the_witness_of_cycles_runs() -> None:
    """Four households, one cycle of three."""
    settings: dict[str, Any] = {"swaprate": "3/4", "k_anonymity": 0, "cycle": 3}
    first, second, turned = tiny("ABCD"), tiny("ABDC"), tiny("BCDA")
    found = outcomes(first, **settings)
    assert as_it_is(turned) not in found
    assert as_it_is(turned) in outcomes(second, **settings)
    assert len(found) == 8  # each of four may stay, the others turn in two ways
    mechanism = TargetedSwapping(hierarchy=["area"], similar=[[]], **settings)
    assert mechanism.parameters()["cycle"] == 3
    assert not mechanism.specification(first).budget.is_finite
    more = mechanism.details()["more_witnesses"]
    assert isinstance(more, list)
    assert more == [witness_by_cycle(3)]


@pytest.mark.parametrize("rate", ["1/2", "1"])
def test_every_budget_is_infinite(rate: str) -> None:
    promise = TargetedSwapping(hierarchy=["area"], similar=[[]], swaprate=rate, k_anonymity=0).specification(
        tiny("AABB")
    )
    assert not promise.budget.is_finite
    assert promise.evidence.status == "proved"
