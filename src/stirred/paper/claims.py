r"""What the paper says in words, checked on small cases: Examples 2 and 3, Section 6.2, Appendices C and G, posteriors.

Every function enumerates, or runs the mechanism, and returns rows; the paper's side is its sentence as a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.budget import theorem_1
from stirred.mechanisms.swap.enumeration import (
    Labels,
    Law,
    Permutation,
    all_permutations,
    apply,
    distance,
    largest_loss_of,
    outputs,
    repeat_labels,
    stratified_law,
    swapping_law,
    tabulate,
    universe,
)
from stirred.paper.documents import compare_number, state_number
from stirred.spec import Budget

Rows = list[dict[str, Any]]
RATES: Final = (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2))
IN_WORDS: Final = "the paper says it in words and prints no number"


def claims(*, seed: int = 1) -> dict[str, Any]:
    """Return the facts that the paper states in sentences, each as a computed number."""
    rows = [*example_2(seed=seed), *example_3(), *unit_mixing(), *pair_swapping(), *metric(), *posteriors()]
    return {
        "name": "claims",
        "title": "What the paper says in words, on small cases",
        "source": "one run of the swap on 480 invented households; else all data sets and outputs, in fractions",
        "inputs": {"seed": seed, "rates": [str(rate) for rate in RATES]},
        "rows": rows,
    }


# ---- Example 2: adults × children as the key --------------------------------------------------------------------------


def make_households() -> Census:
    """Make 480 households of two counties with four blocks each: adults, children and tenure."""
    index = np.arange(480)
    frame = pl.DataFrame(
        {
            "household_id": index + 1,
            "county": np.where(index % 2, "B", "A"),
            "block": np.char.add(np.where(index % 2, "B", "A"), (index // 2 * 7 % 4).astype(str)),
            "adults": (1 + index * 5 % 3).astype(np.int16),
            "children": (index * 11 % 7 // 2).astype(np.int16),
            "tenure": np.where((index * index + index // 8) % 5 < 2, "owned", "rented"),
        }
    )
    schema = {
        "name": "example-2",
        "geography": {"spine": ["county", "block"]},
        "record": {"household": {"id": "household_id"}},
    }
    return Census.of(schema, {"household": frame})


def example_2(*, seed: int = 1, match: Sequence[str] = ("county", "adults", "children")) -> Rows:
    """Compute Example 2: the swap key is adults × children inside a county; blocks are swapped."""
    census = make_households()
    tables = [
        ["block"],
        ["block", "adults"],
        ["block", "children"],
        ["county", "tenure"],
        ["block", "tenure"],
    ]
    mechanism = PermutationSwapping(match=match, swap=["block"], rate="1/2", tables=tables, microdata=False)
    release = mechanism.release(census, key=Key.for_tests(seed))
    changed = [_count_changed(census, release.tables[" × ".join(table)], table) for table in tables]
    what = "cells that one run at 50% changes"
    return [
        _row(
            "3.1", f"adults, children and households by block: {what}", compare_number(sum(changed[:3]), "0")
        ),
        _row("3.1", f"tenure by county: {what}", compare_number(changed[3], "0")),
        _row("3.1", f"tenure by block: {what}", state_number(changed[4], IN_WORDS)),
    ]


def _count_changed(census: Census, after: object, by: Sequence[str]) -> int:
    """Count the cells of a table that a release shows with another count."""
    tables = [census.counts("household", list(by)), after]
    before, shown = (
        pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col(by).cast(pl.String)) for table in tables
    )
    both = before.join(shown, on=list(by), how="full", suffix="_after", coalesce=True).fill_null(0)
    return int((both["count"] != both["count_after"]).sum())


# ---- Example 3: TopDown's multiverse is no swap's ---------------------------------------------------------------------

PLACE, KIND, AGE = range(3)  # block; housing unit or group quarters; 25 to 34 years old or not


def example_3(records: int = 3) -> Rows:
    """Check Example 3: no match, hold and swap variables give the universes of the 2020 invariants."""
    data = list(combinations_with_replacement(list(product((0, 1), repeat=3)), records))
    topdown = _partition(data, [(), (PLACE, KIND)])
    swaps = [
        _partition(data, [(*match, *hold), (*match, *swap)])
        for roles in product(range(3), repeat=3)
        for match, hold, swap in [[[v for v in range(3) if roles[v] == role] for role in range(3)]]
        if hold and swap
    ]
    young = _partition(data, [(AGE,)])
    kept = sum(_refines(one, young) for one in swaps)
    return [
        _row(
            "3.2",
            f"of {len(swaps)} choices of a swap, those with TopDown's universes",
            compare_number(swaps.count(topdown), "0"),
        ),
        _row(
            "3.2",
            "those that do not keep the number of people aged 25 to 34",
            compare_number(len(swaps) - kept, "0"),
        ),
        _row(
            "3.2",
            "whether TopDown's invariants keep it (1) or not (0)",
            compare_number(int(_refines(topdown, young)), "0"),
        ),
    ]


def _partition(
    data: Sequence[tuple[tuple[int, ...], ...]], margins: Sequence[Sequence[int]]
) -> frozenset[frozenset[int]]:
    """Return the universes of data sets with equal margins, each as the set of its data sets' numbers."""
    found: dict[object, set[int]] = {}
    for number, records in enumerate(data):
        value = tuple(
            tuple(sorted(tuple(record[v] for v in margin) for record in records)) for margin in margins
        )
        found.setdefault(value, set()).add(number)
    return frozenset(frozenset(one) for one in found.values())


def _refines(fine: frozenset[frozenset[int]], coarse: frozenset[frozenset[int]]) -> bool:
    return all(any(one <= other for other in coarse) for one in fine)


# ---- Section 6.2: households of another size with probability α --------------------------------------------------------


def mixed_law(p: Fraction, alpha: Fraction, stratum: Sequence[int]) -> Law:
    """Return the law that swaps with probability α in the whole pool, else among households of equal size."""
    wide, narrow = swapping_law(p), stratified_law(p, keys=stratum)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        near = narrow(hold, swap)
        return {g: alpha * chance + (1 - alpha) * near.get(g, 0) for g, chance in wide(hold, swap).items()}

    return law


def unit_mixing(
    p: Fraction = Fraction(1, 4), alphas: Sequence[Fraction] = (Fraction(0), Fraction(1, 10))
) -> Rows:
    """Check Section 6.2: counties keep their households; populations change as soon as α > 0."""
    sizes, counties = (1, 1, 2, 2), (0, 1, 0, 1)
    rows: Rows = []
    for alpha in alphas:
        law = mixed_law(p, alpha, sizes)
        ends = [apply(g, counties) for g, chance in law(sizes, counties).items() if chance]
        homes = {end.count(0) for end in ends}
        people = {sum(size for size, county in zip(sizes, end, strict=True) if not county) for end in ends}
        what = f"α = {alpha}: values that a county's"
        invariant = "by sizes alone the population is invariant"
        rows += [
            _row("6.2", f"{what} number of households takes", compare_number(len(homes), "1")),
            _row(
                "6.2", f"{what} population takes", state_number(len(people), IN_WORDS if alpha else invariant)
            ),
        ]
    found = largest_loss_of(mixed_law(p, alphas[-1], sizes), (0, 1, 2, 3), counties).budget
    rows.append(
        _row(
            "6.2",
            f"α = {alphas[-1]}: largest loss per household in this pool",
            state_number(found.upper(6), "open in the paper: it is finite"),
        )
    )
    return rows


# ---- Appendix C: disjoint pairs ----------------------------------------------------------------------------------------


def pair_law(p: Fraction) -> Law:
    """Return the law of disjoint pairs that exchange places: k pairs weigh the odds to the power 2k."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        del swap
        pairs = [g for g in all_permutations(len(hold)) if all(g[j] == i for i, j in enumerate(g))]
        weights = {g: (p / (1 - p)) ** sum(i != j for i, j in enumerate(g)) for g in pairs}
        total = sum(weights.values(), Fraction(0))
        return {g: weight / total for g, weight in weights.items()}

    return law


def pair_swapping(n: int = 3) -> Rows:
    """Check Appendix C: disjoint pairs do not reach the whole universe, permutations do."""
    one = tuple(range(n))
    tables = universe(one, one)
    rows: Rows = []
    for name, law_of in (("disjoint pairs", pair_law), ("permutations", swapping_law)):
        reached = outputs(law_of(RATES[0]), one, one)
        missing = [table for table in tables if table not in reached]
        finite = sum(largest_loss_of(law_of(p), one, one).budget.is_finite for p in RATES)
        pairs = law_of is pair_law
        count = (
            state_number(len(missing), f"in words; the first is {missing[0]}")
            if pairs
            else compare_number(len(missing), "0")
        )
        rows += [
            _row(
                "C.2",
                f"{name}: data sets of a universe of {n} different records that are never reached",
                count,
            ),
            _row(
                "C.2",
                f"{name}: rates of 3 with a finite budget",
                compare_number(finite, "0" if pairs else str(len(RATES))),
            ),
        ]
    return rows


# ---- Appendix G: the normalised Rényi distance is a metric ---------------------------------------------------------------

ORDERS: Final = 1 + np.geomspace(1e-3, 1e2, 400)


def normalised_renyi(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    r"""$\sup_{\alpha>1} \alpha^{-1/2}\max\{\sqrt{D_\alpha(P\|Q)}, \sqrt{D_\alpha(Q\|P)}\}$ on a grid of orders.

    The first order is 1, where $D_\alpha$ is the Kullback–Leibler divergence.

    >>> round(normalised_renyi(np.array([0.5, 0.5]), np.array([0.25, 0.75])), 4)
    0.3815
    """
    return float(np.sqrt(max(_largest(p, q), _largest(q, p))))


def _largest(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the largest of D_α(P‖Q)/α."""
    ratio = np.log(p / q)
    orders = np.log((np.exp(ratio[:, None] * (ORDERS - 1)) * p[:, None]).sum(axis=0)) / (ORDERS - 1)
    return max(0.0, float((p * ratio).sum()), float((orders / ORDERS).max()))


def metric(parts: int = 7) -> Rows:
    """Check Appendix G: D_NoR is a metric on laws; its square, the usual zCDP parameter, is none."""
    grid = [(a, b, parts - a - b) for a in range(1, parts) for b in range(1, parts - a)]
    laws = [np.array(one, np.float64) / parts for one in grid]
    apart = np.array([[normalised_renyi(p, q) for q in laws] for p in laws])
    broken = _triangles(apart)
    wrong = int(
        (apart != apart.T).sum() + (np.diag(apart) > 1e-6).sum() + (apart + np.eye(len(laws)) < 1e-3).sum()
    )
    what = f"triples of {len(laws)} laws on three points that break the triangle inequality"
    return [
        _row("G", f"D_NoR: {what}", compare_number(broken, "0")),
        _row(
            "G",
            "D_NoR: pairs of laws that are not symmetric, or are equal at a distance, or different at 0",
            compare_number(wrong, "0"),
        ),
        _row(
            "G", f"its square: {what}", state_number(_triangles(apart**2), "why the paper takes ρ and not ρ²")
        ),
    ]


def _triangles(apart: NDArray[np.float64]) -> int:
    """Count triples (a, b, c) with d(a, c) > d(a, b) + d(b, c)."""
    return int((apart[:, None, :] > apart[:, :, None] + apart[None, :, :] + 1e-6).sum())


# ---- beliefs over a whole universe -----------------------------------------------------------------------------------


def priors(size: int) -> Iterator[list[Fraction]]:
    """Yield even, rising and falling beliefs over the data sets of a universe."""
    for weights in ([1] * size, list(range(1, size + 1)), [2 ** (size - i) for i in range(size)]):
        yield [Fraction(weight, sum(weights)) for weight in weights]


def posteriors(p: Fraction = Fraction(1, 4)) -> Rows:
    """Check over whole universes that odds move by e^(ε d) at most, and beliefs by e^(ε Δ)."""
    beyond, single, largest = 0, 0, Fraction(1)
    for margins in ((2, 2), (2, 1, 1), (1, 1, 1)):
        hold = swap = repeat_labels(margins)
        epsilon = theorem_1(len(hold), p)
        tables = universe(hold, swap)
        laws = [outputs(swapping_law(p), hold, arrangement) for arrangement in tables.values()]
        apart = [[distance(a, b) for b in tables] for a in tables]
        for prior in priors(len(tables)):
            for table in tables:
                weights = [
                    belief * law[tabulate(hold, tables[table])]
                    for belief, law in zip(prior, laws, strict=True)
                ]
                moved = [w / sum(weights) / belief for w, belief in zip(weights, prior, strict=True)]
                worst: dict[int, Fraction] = {}
                for i, j in product(range(len(moved)), repeat=2):
                    worst[apart[i][j]] = max(worst.get(apart[i][j], Fraction(0)), moved[i] / moved[j])
                beyond += sum(
                    Budget.log(ratio) > epsilon * d for d, ratio in worst.items() if d and ratio > 1
                )
                single += max(moved) > 1 and Budget.log(max(moved)) > epsilon * max(worst)
                largest = max(largest, *moved)
    return [
        _row(
            "2",
            "whole universes, every output, three priors: odds that move by more than e^(ε d)",
            compare_number(beyond, "0"),
        ),
        _row(
            "2",
            "beliefs in one data set that move by more than e^(ε Δ), Δ the universe's largest distance",
            compare_number(int(single), "0"),
        ),
        _row(
            "2",
            "the largest factor on a belief in one data set",
            state_number(round(float(largest), 6), "a reading of Definition 1"),
        ),
    ]


def _row(section: str, what: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {"section": section, "what": what, **numbers}
