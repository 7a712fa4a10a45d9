"""The laws of stirring against what Coq computed (formal/computed.json), and mutants that the comparison catches."""

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from stirred.mechanisms.stirring.law import count_cycles, enumerate_cycles, injection_chance, trade_chances

FORMAL = Path(__file__).parents[3] / "formal"
WEIGHTS = [Fraction(1, 3), Fraction(1), Fraction(7), Fraction(40)]  # λ, as in formal/evaluate.v

Numbers = Mapping[str, list]  # type: ignore[type-arg]
Permutation = tuple[int, ...]
Law = Callable[[int, Fraction], Mapping[Permutation, Fraction]]
Choices = Callable[[int, Fraction], Sequence[Fraction]]


@pytest.fixture(scope="module")
def coq() -> Numbers:
    return json.loads((FORMAL / "computed.json").read_text())  # type: ignore[no-any-return]


def fractions(flat: Sequence[int]) -> list[Fraction]:
    return [Fraction(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def laws_agree(coq: Numbers, law_of: Law) -> bool:
    """Compare every permutation of up to five records, by its number of cycles."""
    for (weight, n), row in zip(product(WEIGHTS, range(2, 7)), coq["stirring_laws"], strict=True):
        if n < 6:
            expected = dict(enumerate(fractions(row), 1))
            if any(p != expected[count_cycles(s)] for s, p in law_of(n, weight).items()):
                return False
    return True


def run_steps(choices: Choices) -> Law:
    """Return the law of a shuffle: at step i position i trades with position j with probability ``choices(i, λ)[j]``."""

    def law(n: int, weight: Fraction) -> Mapping[Permutation, Fraction]:
        found = {tuple(range(n)): Fraction(1)}
        for i in range(1, n):
            after: dict[Permutation, Fraction] = {}
            for s, p in found.items():
                for j, q in enumerate(choices(i, weight)):
                    t = list(s)
                    t[i], t[j] = t[j], t[i]
                    after[tuple(t)] = after.get(tuple(t), Fraction(0)) + p * q
            found = after
        return found

    return law


def choose(i: int, weight: Fraction) -> list[Fraction]:
    """Stay with weight λ, or trade with one of the i earlier records."""
    return [*[1 / (weight + i)] * i, weight / (weight + i)]


def choose_inverted(i: int, weight: Fraction) -> list[Fraction]:
    """1/λ stands where λ belongs."""
    return choose(i, 1 / weight)


def choose_late(i: int, weight: Fraction) -> list[Fraction]:
    """The weight of the next step is used."""
    return [*[1 / (weight + i + 1)] * i, (weight + 1) / (weight + i + 1)]


def choose_again(i: int, weight: Fraction) -> list[Fraction]:
    """Record i itself is among those that it may trade with."""
    moves = i / (weight + i) / (i + 1)
    return [*[moves] * i, weight / (weight + i) + moves]


def test_the_law_by_cycles(coq: Numbers) -> None:
    assert laws_agree(coq, enumerate_cycles)


def test_the_steps_of_the_sampler(coq: Numbers) -> None:
    assert laws_agree(coq, run_steps(choose))


def test_records_that_go_to_given_places(coq: Numbers) -> None:
    for (weight, n), row in zip(product(WEIGHTS, range(2, 7)), coq["stirring_injections"], strict=True):
        told = [(m, f) for m in (1, 2) for f in range(m + 1)]
        assert [injection_chance(n, weight, m, f) for m, f in told] == fractions(row)


def test_trades_of_two_types(coq: Numbers) -> None:
    for weight, rows in zip(WEIGHTS, coq["stirring_trades"], strict=True):
        for (n1, n2), row in zip(product(range(1, 5), repeat=2), rows, strict=True):
            assert trade_chances(n1, n2, weight) == fractions(row)
            if weight != 1:
                assert trade_chances(n1, n2, 1 / weight) != fractions(row)


@pytest.mark.parametrize("mutant", [choose_inverted, choose_late, choose_again])
def test_mutants_of_the_sampler_are_caught(coq: Numbers, mutant: Choices) -> None:
    law = run_steps(mutant)
    assert sum(law(4, Fraction(7)).values()) == 1  # a law, but another one
    assert not laws_agree(coq, law)
