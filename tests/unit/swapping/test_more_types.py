"""Three and more types: ε ≤ (2 − 2/r) ε₂, with ε₂ from Φ; against brute force, and where ε = ε₂ fails."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from math import factorial, prod

import numpy as np
import pyarrow as pa
import pytest

from oracles.strata import partitions
from stirred.census import Census
from stirred.engine import Local
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap import bounds as budgets
from stirred.mechanisms.swap import bounds as exchanges
from stirred.mechanisms.swap.bounds import (
    bound_by_exchanges,
    bound_exchange,
    bounds,
    claim,
    margins_exact,
    phi,
)
from stirred.mechanisms.swap.budget import tight_budget
from stirred.mechanisms.swap.enumeration import (
    distance,
    largest_of,
    outputs,
    repeat_labels,
    swapping_law,
    tabulate,
    universe,
)
from stirred.mechanisms.swap.strata import Stratum, StratumTable
from stirred.spec import Budget
from stirred.spec.laws import compute_odds

Columns = tuple[tuple[int, ...], ...]  # a table as its columns, each over the rows
RATES = ("1/20", "1/2", "9/10")
NAME = "three or more types, by exchanges"


def parts(total: int, most: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Ways to write a total as one number for each place, none above its limit."""
    if len(most) == 1:
        if total <= most[0]:
            yield (total,)
        return
    for first in range(min(total, most[0]) + 1):
        for rest in parts(total - first, most[1:]):
            yield (first, *rest)


def tables(rows: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[Columns]:
    """All tables with these margins."""
    if len(columns) == 1:
        yield (rows,)
        return
    for first in parts(columns[0], rows):
        for rest in tables(tuple(r - f for r, f in zip(rows, first, strict=True)), columns[1:]):
            yield (first, *rest)


@cache
def stayers(have: tuple[int, ...], need: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """Of one column, how many ways send its tokens to the rows that need them, by how many stay in each row."""
    found = {((), need): 1}
    for h, tokens in enumerate(have):
        later: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for (stay, left), ways in found.items():
            for sent in parts(tokens, left):
                ways_here = ways * factorial(tokens) // prod(factorial(k) for k in sent)
                key = ((*stay, sent[h]), tuple(a - b for a, b in zip(left, sent, strict=True)))
                later[key] = later.get(key, 0) + ways_here
        found = later
    return {stay: ways for (stay, _), ways in found.items()}


def weight(x: Columns, z: Columns, o: Fraction) -> Fraction:
    """P(z | x)/c = Σ over assignments of Φ(t)."""
    rows = tuple(map(sum, zip(*x, strict=True)))
    found = {tuple(0 for _ in rows): 1}
    for have, need in zip(x, z, strict=True):
        later: dict[tuple[int, ...], int] = {}
        for (stay, ways), (more, others) in product(found.items(), stayers(have, need).items()):
            key = tuple(a + b for a, b in zip(stay, more, strict=True))
            later[key] = later.get(key, 0) + ways * others
        found = later
    return sum(
        (
            ways * value(rows, tuple(r - s for r, s in zip(rows, stay, strict=True)), o)
            for stay, ways in found.items()
        ),
        Fraction(0),
    )


@cache
def value(rows: tuple[int, ...], leaving: tuple[int, ...], o: Fraction) -> Fraction:
    return phi(rows, leaving, o)


def as_columns(hold: tuple[int, ...], swap: tuple[int, ...]) -> Columns:
    table = np.zeros((max(swap) + 1, max(hold) + 1), int)
    np.add.at(table, (list(swap), list(hold)), 1)
    return tuple(tuple(column) for column in table.tolist())


@pytest.mark.parametrize(
    ("rows", "columns"), [((2, 1, 1), (2, 2)), ((2, 2, 1), (2, 1, 1, 1)), ((1, 1, 1, 1), (2, 1, 1))]
)
@pytest.mark.parametrize("rate", ["1/4", "2/3"])
def test_phi_gives_the_law_of_the_tables(rows: tuple[int, ...], columns: tuple[int, ...], rate: str) -> None:
    p = Fraction(rate)
    hold, swap = repeat_labels(rows), repeat_labels(columns)
    n = len(hold)
    c = (1 - p) ** n / (1 - n * p * (1 - p) ** (n - 1))
    for arrangement in universe(hold, swap).values():
        for other in universe(hold, swap).values():
            law = outputs(swapping_law(p), hold, arrangement)
            expected = law[tabulate(hold, other)]
            assert (
                c * weight(as_columns(hold, arrangement), as_columns(hold, other), compute_odds(p))
                == expected
            )


def shapes(n: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    sides = [side for side in partitions(n) if len(side) >= 3]
    return [(hold, swap) for hold in sides for swap in sides]


@cache
def exact(hold: tuple[int, ...], swap: tuple[int, ...], rate: str) -> tuple[Budget, Budget]:
    """ε and ε₂ of a universe by brute force: all permutations, pairs and outputs."""
    fixed = repeat_labels(hold)
    sets = universe(fixed, repeat_labels(swap))
    names = list(sets)
    laws = [outputs(swapping_law(Fraction(rate)), fixed, arrangement) for arrangement in sets.values()]
    units = np.array([[distance(one, other) for other in names] for one in names])
    near = np.where(units == 2, units, 0)
    return largest_of(laws, units, names).budget, largest_of(laws, near, names).budget


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_the_theorem_on_sixty_cases(every: int) -> None:
    smaller = 0
    cases = [(n, *shape, rate) for n in (4, 5) for shape in shapes(n) for rate in RATES]
    assert len(cases) == 60
    for n, hold, swap, rate in cases[::every]:
        whole, at_two = exact(hold, swap, rate)
        r = min(len(hold), len(swap))
        found = bound_by_exchanges(hold, swap, rate)
        assert found is not None
        # Theorem N, Theorem O, and both together
        assert whole <= at_two * (2 - Fraction(2, r))
        assert at_two * (2 - Fraction(2, r)) <= found.budget
        # one exchange needs no factor
        stratum = Stratum(
            n=n, hold_types=len(hold), swap_types=len(swap), hold_margins=hold, swap_margins=swap
        )
        assert at_two * 2 <= bound_exchange(StratumTable.of([stratum]), rate) <= found.budget * 2
        smaller += found.budget < tight_budget(n, rate)
        # up to this size the worst pair is at distance 2
        assert whole == at_two
    assert every > 1 or smaller == SMALLER


SMALLER = 30


def test_the_example_of_five_records() -> None:
    whole, at_two = exact((3, 1, 1), (2, 2, 1), "9/10")
    found = bound_by_exchanges((3, 1, 1), (2, 2, 1), "9/10")
    assert found is not None
    shown = [
        float(each.upper(6))
        for each in (whole, at_two * Fraction(4, 3), found.budget, tight_budget(5, "9/10"))
    ]
    assert shown == pytest.approx([0.5005, 0.6673, 0.6915, 2.1972], abs=1e-4)


def test_the_worst_pair_need_not_be_at_distance_two() -> None:
    """The witness of proof.md, Section 3a: all pairs and outputs of its universe, in fractions."""
    o = compute_odds(Fraction(1, 42))
    every = list(tables((23, 2, 1), (22, 2, 2)))
    assert len(every) == 16
    laws = [[weight(x, z, o) for z in every] for x in every]
    best: dict[int, Fraction] = {}
    for i, x in enumerate(every):
        for j, y in enumerate(every[:i]):
            apart = sum(abs(a - b) for p, q in zip(x, y, strict=True) for a, b in zip(p, q, strict=True)) // 2
            ratio = max(max(a / b, b / a) for a, b in zip(laws[i], laws[j], strict=True))
            best[apart] = max(best.get(apart, Fraction(1)), ratio)
    losses = {apart: Budget.log(ratio) * Fraction(1, apart) for apart, ratio in best.items()}
    assert max(losses, key=lambda apart: losses[apart]) == 3
    assert losses[3] > losses[2]
    assert (str(losses[2].upper(5)), str(losses[3].upper(5))) == ("4.54598", "4.54607")
    # the theorem holds there: r = 3
    assert losses[3] <= losses[2] * Fraction(4, 3)
    x, other, z = (
        ((21, 1, 0), (1, 0, 1), (1, 1, 0)),
        ((20, 1, 1), (1, 1, 0), (2, 0, 0)),
        ((22, 0, 0), (1, 0, 1), (0, 2, 0)),
    )
    ratio = weight(x, z, o) / weight(other, z, o)
    assert max(ratio, 1 / ratio) == best[3]


def naive(margins: tuple[int, ...], o: Fraction) -> Fraction:
    """The maximum of Theorem O, from its words."""
    values = {
        t: phi(margins, t, o) for t in product(*(range(m + 1) for m in margins)) if 2 * max(t) <= sum(t)
    }
    best = Fraction(1)
    for t, own in values.items():
        for h, i in product(range(len(margins)), repeat=2):
            other = tuple(v + (place in (h, i)) for place, v in enumerate(t))
            if other in values:
                best = max(best, values[other] / own, own / values[other])
    return best


@pytest.mark.parametrize("margins", [(2, 1, 1), (3, 2, 1), (2, 2, 2), (1, 1, 1, 1), (4, 2, 2, 1), (5, 3)])
@pytest.mark.parametrize("rate", RATES)
def test_the_packed_evaluation_is_the_plain_one(margins: tuple[int, ...], rate: str) -> None:
    found = bound_by_exchanges(margins, None, rate)
    assert found is not None
    share = 1 - Fraction(1, len(margins))
    assert found.budget == Budget.log(naive(margins, compute_odds(Fraction(rate)))) * share


def test_two_types_are_theorem_c() -> None:
    for one, other in ((3, 2), (5, 5), (7, 1), (6, 2)):
        for rate in RATES:
            found = bound_by_exchanges((one, other), None, rate)
            assert found is not None
            assert found.budget == margins_exact(one, other, rate)


def stratum(hold: tuple[int, ...], swap: tuple[int, ...], *, known: bool = True) -> Stratum:
    return Stratum(
        n=sum(hold),
        hold_types=len(hold),
        swap_types=len(swap),
        hold_margins=hold if known else None,
        swap_margins=swap if known else None,
    )


def test_the_claim_uses_it_where_it_is_smaller() -> None:
    found = bounds([stratum((2, 2, 1), (2, 2, 1))], "9/10")
    assert claim(found).name == NAME
    assert (
        str(claim(found).budget.upper(3)) == "0.692"
    )  # 4/3 of 0.5186, which brute force finds at distance 2
    assert claim(found).budget == exact((2, 2, 1), (2, 2, 1), "9/10")[1] * Fraction(4, 3)
    # at a small rate Theorem B is smaller, and the bound is not listed
    assert NAME not in [bound.name for bound in bounds([stratum((1, 1, 1, 1, 1), (1, 1, 1, 1, 1))], "1/20")]


def test_a_stratum_without_margins_keeps_theorem_b() -> None:
    known, unknown = stratum((2, 2, 1), (2, 2, 1)), stratum((2, 2, 1), (2, 2, 1), known=False)
    assert claim(bounds([known, unknown], "9/10")).budget == tight_budget(5, "9/10")
    smaller = stratum((2, 1, 1), (2, 1, 1), known=False)
    mixed = claim(bounds([known, smaller], "1/2")).budget
    only = claim(bounds([known], "1/2")).budget
    assert mixed == max(only, tight_budget(4, "1/2"))
    large = Stratum(n=100, hold_types=3, swap_types=3)
    assert claim(bounds([known, large], "1/2")).budget == tight_budget(100, "1/2")


def test_strata_with_two_types_beside_it_count() -> None:
    known = stratum((2, 2, 1), (2, 2, 1))
    two = Stratum(n=60, hold_types=2, swap_types=9, hold_margins=(55, 5))
    found = claim(bounds([known, two], "1/2")).budget
    assert found == max(claim(bounds([known], "1/2")).budget, claim(bounds([two], "1/2")).budget)


def test_no_claim_is_below_the_truth() -> None:
    for n in (4, 5):
        for hold, swap in shapes(n):
            for rate in RATES:
                whole, _ = exact(hold, swap, rate)
                assert whole <= claim(bounds([stratum(hold, swap)], rate)).budget


def test_a_mutant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that change only one t are not enough."""
    cases = [(hold, swap, rate) for hold, swap in shapes(4) for rate in RATES]

    def violations() -> int:
        exchanges._largest_exchange_ratio.cache_clear()
        found = [(bound_by_exchanges(*case), exact(*case)[0]) for case in cases]
        exchanges._largest_exchange_ratio.cache_clear()
        return sum(each is None or each.budget < whole for each, whole in found)

    assert violations() == 0
    earlier = exchanges._list_earlier
    total = lambda state: sum(map(sum, state))  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(
            exchanges,
            "_list_earlier",
            lambda state: {s for s in earlier(state) if total(s) == total(state) - 1},
        )
        assert violations() > 0


def test_limits_keep_theorem_b(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bound_by_exchanges((14, 14, 13), None, "1/2") is None  # 41 records
    assert bound_by_exchanges((2, 2, 1), None, "1/2", below=Budget.of("1/10")) is None
    monkeypatch.setattr(budgets, "MAX_STATES", 0)
    assert claim(bounds([stratum((2, 2, 1), (2, 2, 1))], "9/10")).budget == tight_budget(5, "9/10")


class Parted(Local):
    """This machine, where nothing fits."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def test_a_census_of_small_strata_uses_its_margins() -> None:
    """Two strata of five and one of three; persons along leave only the swap side known, which is enough here."""
    area = ["a"] * 5 + ["b"] * 5 + ["c"] * 3
    held = ["x", "x", "y", "y", "z"] * 2 + ["x", "y", "z"]
    place = ["1", "1", "2", "2", "3"] * 2 + ["1", "2", "3"]
    household = {"hid": range(13), "area": area, "held": held, "place": place}
    person = {"hid": range(13), "age": range(13)}
    data = {"household": pa.table({k: pa.array(list(v)) for k, v in household.items()})}
    schema = {"geography": {"spine": []}, "record": {"household": {"id": "hid"}}}
    along = {**data, "person": pa.table({k: pa.array(list(v)) for k, v in person.items()})}
    linked = {**schema, "record": {**schema["record"], "person": {"household": "hid", "of": "household"}}}
    psa = PermutationSwapping(match=["area"], swap=["place"], rate="9/10")
    expected = claim(bounds([stratum((2, 2, 1), (2, 2, 1)), stratum((1, 1, 1), (1, 1, 1))], "9/10"))
    for there in (Census.of(schema, data), Census.of(linked, along)):
        found = psa.specification(there)
        assert found == psa.specification(there, engine=Parted())
        assert found.budget == expected.budget
    assert expected.budget == tight_budget(3, "9/10")  # three different values on both sides attain it
    only = Census.of(schema, {"household": data["household"].slice(0, 10)})
    found = psa.specification(only)
    assert found == psa.specification(only, engine=Parted())
    assert NAME in [bound.name for bound in found.bounds]
    assert found.budget == claim(bounds([stratum((2, 2, 1), (2, 2, 1))], "9/10")).budget


def test_margins_travel_as_words() -> None:
    columns = StratumTable.of([stratum((1, 2, 2), (3, 1, 1)), Stratum(n=9, hold_types=3, swap_types=3)])
    assert columns.margins.tolist() == ["2.2.1/3.1.1", ""]
    assert columns.list_many_types() == [(9, ""), (5, "2.2.1/3.1.1")]
