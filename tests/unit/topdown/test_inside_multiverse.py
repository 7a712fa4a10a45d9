"""Accounting inside the multiverse: every pair of a small world is enumerated exactly, and the figure is attained."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.topdown import TopDown, Workload, promise
from stirred.mechanisms.topdown.measure import Allotment
from stirred.mechanisms.topdown.promise import MultiverseCost, cost_in_multiverse, is_determined
from stirred.mechanisms.topdown.tree import Tree, split_tree
from stirred.mechanisms.topdown.workload import Rule, SpineOptions, load_workloads
from stirred.spec import Budget, Domain, Margin, Multiverse, rho_squared_to_epsilon

PEOPLE = 3
WORLD = pl.DataFrame(
    {"state": ["a", "a", "b", "b"], "county": ["a1", "a2", "b1", "b1"], "block": ["1", "2", "3", "4"]}
).with_columns(aian=pl.Series(["1", "", "", ""]))
TEXT = """
name = "tiny"
rho_squared = "3/2"
levels = ["us", "state", "county", "block"]
[[axis]]
name = "hispanic"
size = 2
recodes.yes = [-1, 0]
recodes.no = [0, -1]
[[query]]
name = "total"
[[query]]
name = "hispanic"
of = ["hispanic"]
[[query]]
name = "yes"
of = ["yes"]
[[query]]
name = "no"
of = ["no"]
[level_shares]
us = "1/10"
state = "4/10"
county = "2/10"
block = "3/10"
[query_shares]
us = { total = "1/2", hispanic = "1/2" }
state = { total = "3/4", hispanic = "1/4" }
county = { total = "2/3", hispanic = "1/3" }
block = { total = "1/5", hispanic = "4/5" }
"""
TINY = Workload.parse(TEXT)


def held(query: str = "total", level: str = "state") -> Rule:
    return Rule(name="exact", kind="exact", query=query, level=level)


TYPES = [(block, cell) for block in range(4) for cell in (0, 1)]  # all that a person can be
DATA_SETS = np.array(
    [[people.count(kind) for kind in TYPES] for people in combinations_with_replacement(TYPES, PEOPLE)]
)


ONE_STATE = WORLD.with_columns(state=pl.lit("a"))
NATION = WORLD.with_columns(nation=pl.lit("n"))
NESTED = ("us", "state", "county", "block")


def spine_of(world: pl.DataFrame) -> tuple[str, ...]:
    """The levels that a world names; where no nation is named, several states get a common root."""
    return ("nation", "county", "block") if "nation" in world.columns else NESTED[1:]


def tree(workload: Workload, options: SpineOptions | None = None, world: pl.DataFrame = WORLD) -> Allotment:
    """What is measured in which geounit, in the tree of the world or in one with split states."""
    frame, levels = world, spine_of(world)
    if options:
        frame, levels, workload = split_tree(options, world, levels, workload)
    return Allotment.of(Tree.of(frame, levels, root="us"), workload)


def answered(workload: Workload, name: str, above: np.ndarray) -> np.ndarray:
    """The 0/1 rows of a query in all geounits of a level, over the types of persons."""
    query = workload.query(name)
    cells = query.of(np.array([cell for _, cell in TYPES]))
    node = above[[block for block, _ in TYPES]]
    places = [(n, answer) for n in range(above.max() + 1) for answer in range(query.size)]
    return np.array([(node == n) & (cells == answer) for n, answer in places]).astype(np.int64)


def measured(allotment: Allotment) -> tuple[np.ndarray, list[Fraction]]:
    """The rows of all that is measured, and ρ of each."""
    rows, weights = [], []
    spine, workload = allotment.spine, allotment.workload
    for d in range(len(spine.levels)):
        for query in workload.queries:
            for place, row in enumerate(answered(workload, query.name, spine.ancestor(d))):
                start = int(allotment.start[d][place // query.size])
                rho = allotment.rho[start, d].get(query.name) if start >= 0 else None
                if rho:
                    rows.append(row)
                    weights.append(rho)
    return np.array(rows), weights


def worst(workload: Workload, options: SpineOptions | None = None, world: pl.DataFrame = WORLD) -> Fraction:
    r"""The largest $D_\alpha/\alpha$ per squared distance, over all pairs of all universes: $\sum \rho v^2/2$ exactly."""
    rows, weights = measured(tree(workload, options, world))
    whole = lcm(*(w.denominator for w in weights))
    scaled = np.array([int(w * whole) for w in weights])
    spine = Tree.of(world, spine_of(world), root="us")
    kept = [answered(workload, r.query, spine.ancestor(spine.depth(r.level) or 0)) for r in workload.rules]
    values = DATA_SETS @ np.concatenate([np.zeros((1, len(TYPES)), np.int64), *kept]).T
    largest = Fraction(0)
    for value in np.unique(values, axis=0):
        universe = DATA_SETS[(values == value).all(axis=1)]
        moved = universe[:, None] - universe[None]
        far = np.abs(moved).sum(axis=2) // 2
        lost = (moved @ rows.T) ** 2 @ scaled
        for d in range(1, int(far.max(initial=0)) + 1):
            most = int(lost[far == d].max(initial=0))
            largest = max(largest, Fraction(most, 2 * whole * d * d))
    return largest


SUMS = {(level, query) for level in ("us", "state") for query in ("total", "hispanic")}


@pytest.mark.parametrize(
    ("rules", "options", "free"),
    [
        ((), None, set()),
        ((held(),), None, {("us", "total"), ("state", "total")}),
        ((held(level="us"),), None, {("us", "total")}),
        ((held(level="block"),), None, {(level, "total") for level in TINY.levels}),
        ((held("hispanic"),), None, SUMS),
        ((held("yes"), held("no")), None, SUMS),
        ((held("yes"),), None, set()),  # almost: all but one kind of person is still open
        ((held(),), SpineOptions(aian="aian"), {("us", "total")}),  # almost: the parts of a state are open
    ],
    ids=["none", "state", "us", "block", "finer", "two halves", "one half", "parts of states"],
)
def test_no_pair_inside_a_universe_loses_more_than_the_figure(
    rules: tuple[Rule, ...], options: SpineOptions | None, free: set[tuple[str, str]]
) -> None:
    workload = replace(TINY, rules=rules)
    found = cost_in_multiverse(workload, options, NESTED)
    assert set(found.free) == free
    assert found.rho_squared + found.saving == TINY.rho_squared
    assert worst(workload, options) <= found.rho_squared


def test_the_figure_is_attained() -> None:
    """One person changes everything and stays in the state. Without invariants the sum of all stays, as distance asks."""
    workload = replace(TINY, rules=(held(),))
    assert worst(workload) == cost_in_multiverse(workload).rho_squared
    assert worst(TINY) == TINY.rho_squared - TINY.rho("us", "total")


def test_a_query_that_is_almost_determined_must_be_charged() -> None:
    """With the Hispanic of each state exact, the others can move, and leaving out the total would claim too much."""
    workload = replace(TINY, rules=(held("yes"),))
    for query in ("total", "hispanic"):
        assert worst(workload) > TINY.rho_squared - TINY.rho("state", query) - TINY.rho("us", query)
    several = replace(TINY, rules=(held(level="us"),))
    assert worst(several) > cost_in_multiverse(several).rho_squared - TINY.rho("state", "total")


def test_leaving_out_the_total_of_split_states_would_claim_too_much() -> None:
    """State a has two parts: one person moves between them, and the total of each part moves."""
    workload = replace(TINY, rules=(held(),))
    wrongly = cost_in_multiverse(workload).rho_squared
    assert worst(workload, SpineOptions(aian="aian")) > wrongly
    assert (
        worst(workload, SpineOptions(aian="aian"))
        <= cost_in_multiverse(workload, SpineOptions(aian="aian")).rho_squared
    )


@pytest.mark.parametrize(
    ("world", "level"), [(ONE_STATE, "state"), (NATION, "us")], ids=["one state", "a nation without states"]
)
def test_the_share_of_a_level_that_is_spent_on_parts_is_charged(world: pl.DataFrame, level: str) -> None:
    """The census has no nation above its one state, or splits the nation: the parts are measured in its place."""
    workload, parts = replace(TINY, rules=(held(level=level),)), SpineOptions(aian="aian")
    assert worst(workload, parts, world) > TINY.rho_squared - TINY.rho("us", "total")
    assert worst(workload, parts, world) <= cost_in_multiverse(workload, parts, spine_of(world)).rho_squared
    assert (
        worst(workload, parts, world) <= cost_in_multiverse(workload, parts).rho_squared
    )  # of an unknown census


def test_levels_in_another_order_than_the_areas_nest_are_refused() -> None:
    """The total of a state would seem to be a sum of exact totals of blocks."""
    wrong = Workload.parse(TEXT.replace('"state", "county", "block"]', '"block", "county", "state"]'))
    census = Census.of(
        {"geography": {"spine": list(NESTED[1:])}, "record": {"person": {}}}, {"person": WORLD}
    )
    for use in (tree, lambda workload: TopDown(workload=workload).specification(census)):
        with pytest.raises(InputError, match="lists its levels as us, block, county, state"):
            use(replace(wrong, rules=(held(),)))


def renyi(order: Fraction, shift: int, rho: Fraction) -> Decimal:
    r"""$D_\alpha/\alpha$ of a discrete Gaussian with $\sigma^2 = 1/\rho$ and its shift, summed over −60…60."""
    with localcontext() as context:
        context.prec = 60
        r, a = Decimal(rho.numerator) / rho.denominator, Decimal(order.numerator) / order.denominator

        def weight(x: Decimal) -> Decimal:
            return (-r * x * x / 2).exp()

        points = [Decimal(x) for x in range(-60, 61)]
        norm = sum(map(weight, points))
        terms = sum((a * (-r * (x - shift) ** 2 / 2) + (1 - a) * (-r * x * x / 2)).exp() for x in points)
        return (terms / norm).ln() / (a - 1) / a


@pytest.mark.parametrize("shift", [1, 2])
def test_the_loss_of_one_answer_is_exact_for_whole_orders_and_less_between_them(shift: int) -> None:
    """What the enumeration adds up: ρv²/2, attained at every whole α (60 digits), never exceeded (α = 3/2)."""
    rho = Fraction(3, 8)
    bound = Decimal(3) / 8 * shift**2 / 2
    assert abs(renyi(Fraction(2), shift, rho) - bound) < Decimal("1e-50")
    assert abs(renyi(Fraction(3), shift, rho) - bound) < Decimal("1e-50")
    assert renyi(Fraction(3, 2), shift, rho) <= bound + Decimal("1e-50")


def test_the_geometry_of_specifications_agrees() -> None:
    domain = Domain(name="toy", spine=("us", "state", "county", "block"))
    exact = Multiverse.of(Margin("person", ("state",)))
    free = cost_in_multiverse(replace(TINY, rules=(held(),))).free
    for level in TINY.levels:
        wanted = Multiverse.of(Margin("person", (level,)))
        assert bool(exact.refines(wanted, domain)) == (
            (level, "total") in free or not TINY.rho(level, "total")
        )
    assert not exact.refines(Multiverse.of(Margin("person", ("state", "hispanic"))), domain)


def test_a_level_that_the_census_lacks_or_bypasses_keeps_its_free_queries_free() -> None:
    """State b has one county: it is measured as that county with both parts, and its total is still that of the state."""
    workload = replace(TINY, rules=(held(),))
    allotment = tree(workload)
    assert allotment.start[1].tolist() == [1, -1]
    assert allotment.start[2].tolist() == [-1, -1, 1]  # counties a1 and a2 have one block each
    assert worst(workload) == cost_in_multiverse(workload).rho_squared


def test_the_state_total_of_the_production_workload_is_free() -> None:
    workload = Workload.preset("pl94-persons")
    found = cost_in_multiverse(workload)
    assert found.free == {("state", "total"): workload.rho("state", "total")}
    assert str(Budget.of(found.rho_squared)) == "1.7293"
    epsilon = rho_squared_to_epsilon(found.rho_squared, promise.CERTIFICATE_DELTA, tight=True)
    assert promise.format_epsilon(epsilon) == "13.68"
    assert not cost_in_multiverse(workload, SpineOptions(aian="aiannh")).free
    assert not cost_in_multiverse(Workload.preset("pl94-units")).free
    assert not cost_in_multiverse(
        Workload.preset("dhc-light-persons")
    ).free  # it agrees with noisy counts, which are no invariants


def test_the_ledger_shows_both_figures() -> None:
    workload = Workload.preset("small")
    found = cost_in_multiverse(workload)
    account = promise.build_ledger([(workload, found)], promise.build_budget(workload.rho_squared))
    free = [entry for entry in account.entries if "free inside the multiverse" in entry.on]
    assert account.total == Budget.sqrt(workload.rho_squared)
    assert [entry.budget for entry in free] == [Budget.sqrt(found.saving)]
    rows = promise.list_costs(workload, proved=found).rows
    assert rows[1][0] == Phrase("topdown.inside.row")
    assert rows[1][1] == str(Budget.of(found.rho_squared))


def test_the_preset_of_the_house_spends_nothing_on_what_is_free() -> None:
    published, ours = load_workloads("pl94", None), load_workloads("pl94-stirred", None)
    for theirs, own in zip(published, ours, strict=True):
        assert own.rho_squared == theirs.rho_squared
        assert own.mode == theirs.mode == "gls"  # guided draws blocks to the mix of their block group
        assert cost_in_multiverse(own) == MultiverseCost(own.rho_squared, {})
        assert (own.rules, own.histogram, own.record) == (theirs.rules, theirs.histogram, theirs.record)
    for level in ours[0].levels:
        for query in ours[0].queries:
            if (level, query.name) != ("state", "total") and published[0].rho(level, query.name) > Fraction(
                1, 1000
            ):
                assert ours[0].rho(level, query.name) > published[0].rho(level, query.name)


def test_rank_decides_what_several_exact_queries_determine() -> None:
    total, hispanic, yes, no = (TINY.query(name) for name in ("total", "hispanic", "yes", "no"))
    assert is_determined(hispanic, [yes, total])
    assert is_determined(no, [yes, total])
    assert not is_determined(hispanic, [yes])
    assert not is_determined(yes, [total])
