"""What Coq computed (formal/computed.json) against Stirred's exact fractions, and mutants that the comparison catches."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import pytest

from stirred.mechanisms.swap.bounds import ratio_exact
from stirred.mechanisms.swap.budget import theorem_1
from stirred.mechanisms.swap.enumeration import (
    Labels,
    Law,
    Permutation,
    all_permutations,
    apply,
    count_moved,
    distance,
    outputs,
    repeat_labels,
    swapping_law,
    tabulate,
    universe,
)
from stirred.spec.budgets import Budget
from stirred.spec.laws import LargestStratum, SizeLaw, compute_odds, count_derangements

FORMAL = Path(__file__).parents[3] / "formal"
RATES = [Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(19, 20)]
FEW = [Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)]

Numbers = Mapping[str, list]  # type: ignore[type-arg]


@pytest.fixture(scope="module")
def coq() -> Numbers:
    return json.loads((FORMAL / "computed.json").read_text())  # type: ignore[no-any-return]


def fractions(flat: Sequence[int]) -> list[Fraction]:
    return [Fraction(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


# ---- the comparisons: each takes the function of Stirred that it tests, so that mutants can be put in its place --------


def laws_agree(coq: Numbers, law_of: Callable[[Fraction], Law]) -> bool:
    rows = iter(coq["laws"])
    for p, n in product(RATES, range(2, 9)):
        expected = fractions(next(rows))
        if n > 5:
            continue  # all permutations of six and more records take too long here
        law = law_of(p)(tuple(range(n)), tuple(range(n)))
        for k, value in zip([0, *range(2, n + 1)], expected, strict=True):
            if any(law.get(g, Fraction(0)) != value for g in all_permutations(n) if count_moved(g) == k):
                return False
    return True


def chances_agree(coq: Numbers, law_of: Callable[[Fraction], Law]) -> bool:
    law = law_of(Fraction(1, 4))
    for hold_margins, swap_margins, *rows in coq["all_chances"]:
        hold, swap = repeat_labels(hold_margins), repeat_labels(swap_margins)
        found = {}
        for table, arrangement in universe(hold, swap).items():
            for after, chance in outputs(law, hold, arrangement).items():
                found[digits(table), digits(after)] = chance  # type: ignore[arg-type]
        stated = {
            (row[0], row[i]): Fraction(row[i + 1], row[i + 2]) for row in rows for i in range(1, len(row), 3)
        }
        if found != stated:
            return False
    return True


def digits(table: Sequence[tuple[tuple[int, int], int]]) -> int:
    """A table as Coq prints it: two digits for each record, in order."""
    return int("".join(f"{h + 1}{s + 1}" * count for (h, s), count in table))


def universe_losses(law: Law, hold: Labels, swap: Labels) -> list[Fraction]:
    """The largest quotient of two chances of one output at each distance 2 … n."""
    sets = universe(hold, swap)
    laws = [(table, outputs(law, hold, arrangement)) for table, arrangement in sets.items()]
    worst = dict.fromkeys(range(2, len(hold) + 1), Fraction(1))
    for i, (one, first) in enumerate(laws):
        for other, second in laws[i + 1 :]:
            ratios = {(first.get(z, Fraction(0)), second.get(z, Fraction(0))) for z in {*first, *second}}
            d = distance(one, other)
            for a, b in ratios:
                if not a or not b:
                    return []
                worst[d] = max(worst[d], a / b, b / a)
    return [worst[d] for d in sorted(worst)]


def losses_agree(coq: Numbers, law_of: Callable[[Fraction], Law], most: int) -> bool:
    for hold_margins, swap_margins, (tables,), *by_rate in coq["universes"]:
        hold, swap = repeat_labels(hold_margins), repeat_labels(swap_margins)
        if tables > most:
            continue
        assert len(universe(hold, swap)) == tables
        for p, flat in zip(FEW, by_rate, strict=True):
            if universe_losses(law_of(p), hold, swap) != fractions(flat):
                return False
    return True


def paper_budgets_agree(coq: Numbers, budget: Callable[[int, Fraction], Budget]) -> bool:
    return all(
        budget(b, p) == Budget.log(value)
        for p, row in zip(RATES, coq["paper_budgets"], strict=True)
        for b, value in enumerate(fractions(row), 2)
    )


def strata_agree(coq: Numbers, largest: Callable[[list[tuple[int, ...]]], int]) -> bool:
    return all(
        largest([tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]) == b
        for b, *flat in coq["strata_sizes"]
    )


def largest_stratum(records: list[tuple[int, ...]]) -> int:
    statistic = LargestStratum("household", match=("m",), hold=("h",), swap=("s",))
    return statistic.of([dict(zip("mhs", map(str, record), strict=True)) for record in records])


# ---- Stirred ------------------------------------------------------------------------------------------------------------


def test_derangement_numbers(coq: Numbers) -> None:
    assert coq["derangement_numbers"] == [count_derangements(k) for k in range(10)]


def test_the_law_of_algorithm_1(coq: Numbers) -> None:
    assert laws_agree(coq, swapping_law)


def test_every_chance_of_small_universes(coq: Numbers) -> None:
    assert chances_agree(coq, swapping_law)


def test_every_loss_of_small_universes(coq: Numbers) -> None:
    assert losses_agree(coq, swapping_law, 12)


@pytest.mark.slow
def test_every_loss_of_universes_of_five_records(coq: Numbers) -> None:
    assert losses_agree(coq, swapping_law, 120)


def test_budgets(coq: Numbers) -> None:
    assert paper_budgets_agree(coq, theorem_1)
    for p, row in zip(RATES, coq["by_size_budgets"], strict=True):
        assert [SizeLaw("by-size", p).power(b) for b in range(2, 9)] == fractions(row)


def test_ratios_of_two_types(coq: Numbers) -> None:
    for p, rows in zip(RATES, coq["reductions"], strict=True):
        for (n1, n2), row in zip(product(range(1, 5), repeat=2), rows, strict=True):
            assert [ratio_exact(n1, n2, compute_odds(p), t) for t in range(min(n1, n2))] == fractions(row)


def test_the_largest_stratum(coq: Numbers) -> None:
    assert strata_agree(coq, largest_stratum)


# ---- mutants ------------------------------------------------------------------------------------------------------------


def no_redraw(p: Fraction) -> Law:
    """A lone selection is left alone in place of drawn again."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        chances = {
            g: p ** count_moved(g) * (1 - p) ** (n - count_moved(g)) / count_derangements(count_moved(g))
            for g in all_permutations(n)
        }
        chances[tuple(range(n))] += n * p * (1 - p) ** (n - 1)
        return chances

    return law


def cyclic(p: Fraction) -> Law:
    """The selected records are turned in one random cycle in place of a uniform derangement."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        kept = 1 - n * p * (1 - p) ** (n - 1)
        found = {}
        for g in all_permutations(n):
            k = count_moved(g)
            ways = 1
            for j in range(1, k):
                ways *= j
            if is_cycle(g):
                found[g] = p**k * (1 - p) ** (n - k) / (kept * ways)
        return found

    return law


def is_cycle(g: Permutation) -> bool:
    start = next((i for i, j in enumerate(g) if i != j), None)
    if start is None:
        return True
    seen, at = 1, g[start]
    while at != start:
        seen, at = seen + 1, g[at]
    return seen == count_moved(g)


def every_stratum(records: list[tuple[int, ...]]) -> int:
    sizes = [sum(other[0] == record[0] for other in records) for record in records]
    return max(sizes, default=0)


@pytest.mark.parametrize("mutant", [no_redraw, cyclic])
def test_mutants_of_the_law_are_caught(coq: Numbers, mutant: Callable[[Fraction], Law]) -> None:
    law = mutant(Fraction(1, 4))((0, 1, 2), (0, 1, 2))
    assert sum(law.values()) == 1  # a law, but another one
    assert not laws_agree(coq, mutant)
    assert not chances_agree(coq, mutant)
    assert not losses_agree(coq, mutant, 6)


def test_a_wrong_b_is_caught(coq: Numbers) -> None:
    assert not strata_agree(coq, every_stratum)
    assert not paper_budgets_agree(coq, lambda b, p: theorem_1(b - 1, p))


def test_the_comparison_is_complete(coq: Numbers) -> None:
    def margins(n: int, most: int) -> Iterator[tuple[int, ...]]:
        if n == 0:
            yield ()
        for k in range(min(n, most), 0, -1):
            yield from ((k, *rest) for rest in margins(n - k, k))

    every = [(list(h), list(s)) for n in range(2, 6) for h, s in product(margins(n, n), repeat=2)]
    assert [(hold, swap) for hold, swap, *_ in coq["universes"]] == every
    assert tabulate((0, 1), apply((1, 0), (0, 1)))  # record i receives the value of record g(i), as in Coq
    assert len(list(permutations(range(5)))) == 120
