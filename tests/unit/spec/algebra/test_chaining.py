"""A chain keeps the first promise, and the second only in the universes of both: by an exact enumeration."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import log

import pytest

from stirred.errors import SpecificationError
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    BudgetFunction,
    Domain,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    OutputPremetric,
    RecordType,
    Specification,
    Variable,
    algebra,
    chain,
)

Record = tuple[int, int]
Data = tuple[Record, ...]

TOY = Domain(
    name="toy",
    record_types=(
        RecordType(
            name="household", variables=tuple(Variable(name=n, levels=("0", "1")) for n in ("h", "s"))
        ),
    ),
)
SWAP = Multiverse.of(Margin("household", ("h",)), Margin("household", ("s",)))


def stated(
    budget: Budget, multiverse: Multiverse | None = None, measure: OutputPremetric | None = None
) -> Specification:
    return Specification(
        domain=TOY,
        multiverse=multiverse or Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=measure or Multiplicative(),
        budget=budget,
    )


SWAPPED, NOISY = stated(Budget.log(99), SWAP), stated(Budget.log(2))

# --- the chain itself, with no code of the package: swap the s of the records, then a noisy count of (1, 1)


def permutation_law(n: int, rate: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Algorithm 1: choose records, choose again where one is alone, derange the chosen ones uniformly."""
    law: dict[tuple[int, ...], Fraction] = {}
    norm = 1 - n * rate * (1 - rate) ** (n - 1)
    for k in range(n + 1):
        if k == 1:
            continue
        for chosen in combinations(range(n), k):
            weight = rate**k * (1 - rate) ** (n - k) / norm
            moves = [p for p in permutations(chosen) if all(a != b for a, b in zip(chosen, p, strict=True))]
            for move in moves:
                order = list(range(n))
                for a, b in zip(chosen, move, strict=True):
                    order[a] = b
                law[tuple(order)] = law.get(tuple(order), Fraction(0)) + weight / len(moves)
    return law


LAWS = {n: permutation_law(n, Fraction(99, 100)) for n in (2, 3)}


def published(data: Data) -> dict[int, Fraction]:
    """Weights of the noisy count of (1, 1) after the swap; two-sided geometric noise of ratio 1/2 loses ln 2 a record."""
    law: dict[int, Fraction] = {}
    for order, weight in LAWS[len(data)].items():
        count = sum((data[i][0], data[order[i]][1]) == (1, 1) for i in range(len(data)))
        for y in range(-2, len(data) + 3):  # beyond, all ratios stay as they are at the ends
            law[y] = law.get(y, Fraction(0)) + weight * Fraction(1, 2) ** abs(y - count)
    return law


def files(n: int) -> list[Data]:
    cells = list(product((0, 1), repeat=2))
    return [tuple(sorted(records)) for records in {tuple(sorted(r)) for r in product(cells, repeat=n)}]


def apart(x: Data, y: Data) -> int:
    return (Counter(x) - Counter(y)).total()


def agree(x: Data, y: Data, multiverse: Multiverse) -> bool:
    place = {"h": 0, "s": 1}
    return all(
        Counter(tuple(r[place[v]] for v in m.by) for r in x)
        == Counter(tuple(r[place[v]] for v in m.by) for r in y)
        for i in multiverse
        for m in i.needs()
    )


def loss_is_kept(promise: Specification) -> bool:
    """Whether the chain's outputs move by at most ε·d between all data sets of one universe of the promise."""
    odds = Fraction(2)  # the promise has ε = ln 2 here, so factors are compared exactly
    assert promise.budget == Budget.log(2)
    for n in LAWS:
        laws = {x: published(x) for x in files(n)}
        for x, y in permutations(laws, 2):
            if agree(x, y, promise.multiverse) and any(
                laws[x][z] > odds ** apart(x, y) * laws[y][z] for z in laws[x]
            ):
                return False
    return True


def test_the_second_promise_holds_in_the_universes_of_both() -> None:
    found = chain(SWAPPED, NOISY, stability=1)
    assert found.specification.multiverse == SWAP
    assert found.specification.budget == Budget.log(2)
    assert loss_is_kept(found.specification)
    assert SWAPPED.then(NOISY, stability=1) == found.specification


def test_a_pair_outside_loses_twice_as_much() -> None:
    x, y = ((0, 0), (1, 1)), ((1, 1), (1, 1))
    assert apart(x, y) == 1
    first, second = published(x), published(y)
    worst = max(abs(log(first[z] / second[z])) for z in first)
    assert 1.38 < worst < 2 * log(2)  # two records' worth of noise at distance 1
    assert not agree(x, y, SWAP)


def test_the_old_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stated the second promise in the second's own universes alone."""
    honest: Callable[..., Specification] = algebra._carry_promise

    def forgets(first: Specification, second: Specification, stability: Fraction) -> Specification:
        return replace(honest(first, second, stability), multiverse=second.multiverse)

    monkeypatch.setattr(algebra, "_carry_promise", forgets)
    claimed = SWAPPED.then(NOISY, stability=1)
    assert claimed.multiverse == Multiverse.none()
    assert not loss_is_kept(claimed)


def test_the_swap_is_stable_inside_its_universes() -> None:
    """The hypothesis of the tests above: one permutation for both keeps the margins and moves no pair farther apart."""
    for n, law in LAWS.items():
        for x, y in permutations(files(n), 2):
            if not agree(x, y, SWAP):
                continue
            hold, mine = zip(*sorted(x), strict=True)
            # y with its records in an order in which as few swap values as possible differ from those of x
            theirs = min(
                (
                    values
                    for values in permutations(s for _, s in y)
                    if Counter(zip(hold, values, strict=True)) == Counter(y)
                ),
                key=lambda values: sum(a != b for a, b in zip(mine, values, strict=True)),
            )
            for order in law:
                ends = [tuple((hold[i], v[order[i]]) for i in range(n)) for v in (mine, theirs)]
                assert agree(ends[0], x, SWAP)
                assert agree(ends[1], x, SWAP)
                assert apart(ends[0], ends[1]) <= apart(x, y)


def test_no_invariant_of_either_step_is_dropped() -> None:
    by_h, by_s = Multiverse.of(Margin("household", ("h",))), Multiverse.of(Margin("household", ("s",)))
    found = chain(stated(Budget.of(9), by_h), stated(Budget.of(1), by_s), stability=2)
    carried = found.also or found.specification
    assert carried.multiverse == by_h & by_s
    assert carried.budget == Budget.of(2)
    assert any("as stated by the caller" in note for note in carried.notes)


def test_delta_and_functions_are_scaled_too() -> None:
    approximate = stated(Budget.log(2), measure=Approximate("1/100"))
    found = chain(stated(Budget.of(9), measure=Approximate("1/2")), approximate, stability=3)
    carried = found.also or found.specification
    assert (carried.output_premetric, carried.budget) == (Approximate("7/100"), Budget.log(8))
    void = chain(SWAPPED, replace(approximate, output_premetric=Approximate("1/4")), stability=3)
    assert void.sharper.answer is Answer.UNKNOWN
    assert void.specification.budget == SWAPPED.budget
    function = BudgetFunction(words="it grows", least=Budget.log(2), most=Budget.log(4))
    varying = chain(SWAPPED, replace(NOISY, varies=function), stability=2)
    carried = varying.also or varying.specification
    assert carried.varies is not None
    assert (carried.varies.least, carried.varies.most) == (Budget.log(4), Budget.log(16))


def test_what_rule_2_does_not_reach() -> None:
    other = replace(NOISY, domain=Domain(name="other"))
    assert chain(SWAPPED, other, stability=1).sharper.answer is Answer.UNKNOWN
    assert chain(SWAPPED, other, stability=1).specification.multiverse == SWAP
    assert chain(SWAPPED, NOISY).specification.budget == Budget.log(99)
    for bad in (0.5, -1):
        with pytest.raises(SpecificationError):
            chain(SWAPPED, NOISY, stability=bad)  # type: ignore[arg-type]
