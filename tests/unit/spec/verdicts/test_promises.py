"""What was once said and was not true: each with the right answer, and the old behaviour, which the same check finds.

Two more faults of this kind are tested where they were: the tree of TopDown, and the untouched records of a swap.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import exp, log

import mpmath
import pyarrow as pa
import pytest

from oracles.bridge import domain_of, margin_of
from oracles.census import Small, Table
from oracles.promises import Law
from oracles.rank import determines
from stirred import ExactMargins
from stirred.catalog import catalog
from stirred.census import Census
from stirred.errors import BudgetError, IncompatibleError, VoidError
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.topdown import rules as constraints
from stirred.mechanisms.topdown.rules import Record
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    Constraint,
    Custom,
    Domain,
    Hamming,
    Ledger,
    Margin,
    Multiplicative,
    Multiverse,
    OutputPremetric,
    RecordType,
    Relation,
    Specification,
    SymmetricDifference,
    Variable,
    Verdict,
    algebra,
    compare,
    compose,
)
from stirred.spec import verdict as verdict_module
from stirred.spec.card import Card, bound_odds
from stirred.spec.nearest import Distance
from stirred.spec.refinement import decide_determined
from stirred.spec.statement import FunctionOrder
from stirred.spec.verdicts.checker.check import check_implication

UNIT = "household"
TOY = Domain(
    name="toy",
    record_types=(
        RecordType(name=UNIT, variables=tuple(Variable(name=n, levels=("0", "1")) for n in ("a", "b"))),
    ),
)


def stated(
    output: OutputPremetric, budget: int, *kept: Margin, on: Domain = TOY, symmetric: bool = False
) -> Specification:
    return Specification(
        domain=on,
        multiverse=Multiverse.of(*kept),
        input_premetric=SymmetricDifference(UNIT) if symmetric else Hamming(UNIT),
        output_premetric=output,
        budget=Budget.of(budget),
    )


def everywhere(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Replace a name in every module of spec that has it."""
    for module in [m for path, m in sys.modules.items() if path.startswith("stirred.spec")]:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)


def proved(first: Specification, second: Specification) -> str:
    """The answer, after its derivation was checked."""
    verdict = first.implies(second)
    assert check_implication(first, second, verdict) == (), verdict
    return verdict.answer.value


def households(
    spine: Sequence[str] = (), record: dict[str, object] | None = None, **columns: Sequence[object]
) -> Census:
    """A census of households, column by column."""
    some = next(iter(columns.values()))
    frame = pa.table({"hid": [*range(1, len(some) + 1)], **columns})
    about = {
        "name": "mine",
        "geography": {"spine": [*spine]},
        "record": {UNIT: {"id": "hid", **(record or {})}},
    }
    return Census.of(about, {UNIT: frame})


# --- B: δ adds


def delta_adds() -> bool:
    """Ten releases at (1, 1/10) promise nothing; two have δ = 1/5, and no statement with 1/10 follows."""
    one = stated(Approximate("1/10"), 1)
    two = one + one
    if two.output_premetric != Approximate("1/5") or two.budget != Budget.of(2):
        return False
    try:
        two.under(Approximate("1/10"))
        compose([one] * 10)
    except (IncompatibleError, VoidError):
        # both reveal with probability 1/10, so one of them does with 19/100 > 1/10
        return proved(two, stated(Approximate("1/10"), 2)) != "yes"
    return False


def test_delta_adds() -> None:
    assert delta_adds()
    with pytest.raises(IncompatibleError, match="no rule makes a δ smaller"):
        (stated(Approximate("1/10"), 1) + stated(Approximate("1/10"), 1)).under(Approximate("1/10"))
    with pytest.raises(VoidError):
        compose([stated(Approximate("1/10"), 1)] * 10)
    mixed = stated(Multiplicative(), 1) + stated(Approximate("1/10"), 1)
    assert (mixed.output_premetric, mixed.budget) == (Approximate("1/10"), Budget.of(2))
    nothing = stated(Approximate("1/10"), 0)
    assert proved(nothing + nothing, nothing) != "yes"
    assert proved(stated(Approximate("1/5"), 2), stated(Approximate("1/10"), 2)) == "no"


def test_a_delta_that_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeps(
        self: Approximate, parts: Sequence[tuple[OutputPremetric, Budget]]
    ) -> tuple[OutputPremetric, Budget]:
        return self, Budget.total(budget for _, budget in parts)

    monkeypatch.setattr(Approximate, "compose_parts", keeps)
    assert not delta_adds()


def ten_entries_fit() -> bool:
    ledger = Ledger(limit=Budget.of(10), output_premetric=Approximate("1/10"))
    try:
        for place in range(10):
            ledger = ledger.spend("m", str(place), Budget.of(1), delta="1/10")
    except BudgetError:
        return False
    return True


def test_a_ledger_adds_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ten_entries_fit()
    with pytest.raises(BudgetError, match="does not say its δ"):
        Ledger(limit=Budget.of(10), output_premetric=Approximate("1/10")).spend("m", "0", Budget.of(1))
    monkeypatch.setattr(Ledger, "delta", Fraction(0))  # the old ledger: the δ of the entries is not counted
    assert ten_entries_fit()


def test_what_a_constraint_without_variables_says_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair of data sets is known to meet it, so that a no has no witness; "unknown" is the answer."""
    size = Constraint(words="exactly 100 households", record_type=UNIT, kind="size")
    zero = Constraint(words="a = 0 for everybody", record_type=UNIT)
    for constraint, kept in ((size, Margin(UNIT)), (zero, Margin(UNIT, ("a",)))):
        tied = replace(TOY, constraints=(constraint,))
        first = stated(Multiplicative(), 1, kept, on=tied, symmetric=True)
        second = stated(Multiplicative(), 1, on=tied, symmetric=True)
        assert first.implies(second).answer is Answer.UNKNOWN
        free = replace(first, domain=TOY), replace(second, domain=TOY)
        assert proved(*free) == "no"
        with monkeypatch.context() as old:
            # the old witness: a constraint without variables does not count
            old.setattr(verdict_module, "find_inadmissible", lambda *_: "")
            assert first.implies(second).answer is Answer.NO


def test_a_multiverse_that_fixes_everything_and_an_invariant_given_and_taken_back() -> None:
    everything = Margin(UNIT, ("a", "b"))
    assert proved(stated(Multiplicative(), 2, everything), stated(Multiplicative(), 1, everything)) == "yes"
    once = stated(Multiplicative(), 1)
    back = once.given(Margin(UNIT, ("a",))).without(Margin(UNIT, ("a",)))
    assert back.budget == once.budget
    assert not any("no finite budget" in note for note in back.notes)


# --- C: budgets that are functions of the universe


def swap_of(rate: str, n: int) -> Specification:
    rows = {"m": ["m"] * n, "h": [f"h{i}" for i in range(n)], "s": [f"s{i}" for i in range(n)]}
    return PermutationSwapping(match=["m"], swap=["s"], rate=rate).specification(households(**rows))


def ranks_at_four(first: Specification, second: Specification) -> tuple[str, str]:
    return first.implies(second).answer.value, second.implies(first).answer.value


def test_swaps_that_agree_at_four_records_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    half, more = swap_of("1/2", 4), swap_of("3/4", 4)
    assert half.budget == more.budget == Budget.log(3)
    # Theorem B: at six records ½ ln(265/9) against ln 3; at two records 0 against ln 3
    assert Law("by-size", (1, 2)).at(6) > Law("by-size", (3, 4)).at(6)
    assert Law("by-size", (1, 2)).at(2) < Law("by-size", (3, 4)).at(2)
    assert swap_of("1/2", 6).budget > swap_of("3/4", 6).budget
    assert (proved(half, more), proved(more, half)) == ("no", "no")
    assert compare(half, more).overall.relation is Relation.INCOMPARABLE

    everywhere(monkeypatch, "compare_functions", lambda *_: FunctionOrder("yes", "the words are the same"))
    assert ranks_at_four(half, more) == ("yes", "yes")  # the old answer


@pytest.mark.parametrize("n", [4, 1000])
def test_the_part_about_budgets_speaks_of_every_universe(n: int) -> None:
    found = compare(swap_of("1/2", n), swap_of("9/10", n)).parts["budget"]
    assert found.relation is Relation.INCOMPARABLE
    low, high = (Law("by-size", rate) for rate in ((1, 2), (9, 10)))
    assert low.at(9) < high.at(9)
    assert low.at(10) > high.at(10)
    assert "from b = 2 to 9" in found.because


def test_catalog_entries_at_other_rates() -> None:
    entry = catalog.entry("whatif-block-group-size")
    low, high = entry.at("1/20"), entry.at("86450/86451")
    assert low.budget == high.budget == Budget.log(86450)  # b = 4549: 4550 · 19
    assert (proved(low, high), proved(high, low)) == ("no", "no")
    assert proved(entry.at("1/2"), low) == "yes"
    assert proved(low, entry.at("1/2")) == "no"


def test_the_two_censuses_are_incomparable_with_witnesses() -> None:
    swapped, noisy = catalog["das-2010"], catalog["das-2020"]
    assert (proved(swapped, noisy), proved(noisy, swapped)) == ("no", "no")
    assert proved(catalog["pl-2020"], noisy) == "yes"
    assert proved(noisy, catalog["pl-2020"]) == "no"


# --- E: the smallest distance inside a universe

Data = tuple[tuple[str, ...], ...]


def nearest(
    data: Data, records: Sequence[tuple[str, ...]], tables: Sequence[Callable[[tuple[str, ...]], object]]
) -> int:
    """By enumeration: the smallest distance to another data set with the same tables."""

    def counted(x: Data) -> list[Counter[object]]:
        return [Counter(key for record in x if (key := table(record)) is not None) for table in tables]

    told, here = counted(data), Counter(data)
    others = (x for x in combinations_with_replacement(records, len(data)) if counted(x) == told)
    return min(sum((Counter(x) - here).values()) for x in others if Counter(x) != here)


def joint() -> Specification:
    rows: Data = tuple(product("01", repeat=3))
    u, v, w = ([row[i] for row in rows] for i in range(3))
    census = households(u=u, v=v, w=w)
    first = PermutationSwapping(match=["u"], swap=["v"], rate="1/10").specification(census)
    return first + PermutationSwapping(match=["v"], swap=["w"], rate="1/10").specification(census)


def card_is_safe(spec: Specification, truth: int) -> bool:
    """The odds that the card shows are those at the true distance or above."""
    found = bound_odds(spec)
    assert found.log_odds is not None
    return float(found.log_odds) >= truth * float(spec.budget.lower(12)) and found.distance == truth


def test_two_joint_releases_are_four_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Data = tuple(product("01", repeat=3))
    pairs = [lambda r, i=i, j=j: (r[i], r[j]) for i, j in combinations(range(3), 2)]
    truth = nearest(rows, rows, pairs)
    assert truth == 4
    assert card_is_safe(joint(), truth)
    assert "a change of four household records" in Card(joint()).sentence()

    def two(*_: object) -> Distance:
        return replace(honest, value=2)

    from stirred.spec.nearest import smallest_distance

    honest = smallest_distance(joint().domain, joint().multiverse, joint().input_premetric)
    everywhere(monkeypatch, "smallest_distance", two)
    assert not card_is_safe(joint(), truth)


@pytest.mark.parametrize("untouched", ["publish", "drop"])
def test_restricted_tables_are_two_apart(untouched: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"kind": {"column": "kind", "occupied": ["1"], "vacant": ["0"]}}
    numbers = [*range(8), 0]
    columns = {"kind": ["1"] * 8 + ["0"], "h": [f"h{i}" for i in numbers], "s": [f"s{i}" for i in numbers]}
    census = households(record=kinds, **columns)
    spec = PermutationSwapping(swap=["s"], rate="1/20", untouched=untouched).specification(census)
    # the swap's own records, three of them: h and s are both invariant, so one record cannot change alone
    some: Data = (("h0", "s0"), ("h1", "s1"), ("h2", "s2"))
    records = [*product(("h0", "h1", "h2"), ("s0", "s1", "s2"))]
    truth = nearest(some, records, [lambda r: r[0], lambda r: r[1]])
    assert truth == 2
    assert card_is_safe(spec, truth)

    from stirred.spec.nearest import smallest_distance

    honest = smallest_distance(spec.domain, spec.multiverse, spec.input_premetric)
    everywhere(monkeypatch, "smallest_distance", lambda *_: replace(honest, value=1))
    assert not card_is_safe(spec, truth)


# --- F: determined or not, with the rank as the truth

QUESTIONS = Small.of({"a": "01", "b": "012"}, most=0)
TABLES = [Table(by) for by in ((), ("a",), ("b",), ("a", "b"))]
TABLES += [Table(by, (("b", values),)) for by in ((), ("a",), ("b",)) for values in (("0",), ("1", "2"))]


def wrong_answers() -> int:
    domain, wrong = domain_of(QUESTIONS), 0
    for have in combinations(TABLES, 2):
        for want in TABLES:
            verdict = decide_determined([*map(margin_of, have)], margin_of(want), domain)
            truth = determines(have, want, QUESTIONS.names, QUESTIONS.records)
            wrong += verdict.answer is (Answer.NO if truth else Answer.YES)
    return wrong


def test_no_is_never_said_without_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_answers() == 0
    # the old rule: no single table shows the wanted one, so the answer is no
    everywhere(monkeypatch, "_derive_sums", lambda *_: None)
    everywhere(monkeypatch, "find_witness", lambda *_: Verdict.no("no given table shows it"))
    assert wrong_answers() > 0


# --- G: a chain keeps the invariants of its first step


def law_of_two(
    h: tuple[int, int], s: tuple[int, int], rate: Fraction
) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """Algorithm 1 on two records: both or neither move (one alone is drawn again)."""
    both, neither = rate**2, (1 - rate) ** 2
    found: dict[tuple[tuple[int, int], ...], Fraction] = defaultdict(Fraction)
    found[tuple(sorted(zip(h, s, strict=True)))] += neither / (both + neither)
    found[tuple(sorted(zip(h, s[::-1], strict=True)))] += both / (both + neither)
    return found


def loss_of_chain(x: Data, y: Data) -> float:
    """The swap, then the number of records (1, 1) with geometric noise of ln 2 per record."""

    def output(data: Data) -> dict[int, Fraction]:
        h, s = (tuple(int(record[i]) for record in data) for i in range(2))
        found: dict[int, Fraction] = defaultdict(Fraction)
        for table, weight in law_of_two(h, s, Fraction(99, 100)).items():  # type: ignore[arg-type]
            for z in range(-8, 12):
                found[z] += weight * Fraction(1, 2) ** abs(z - sum(record == (1, 1) for record in table))
        return found

    one, other = output(x), output(y)
    return max(abs(log(one[z] / other[z])) for z in one)


SQUARE = Domain(
    name="toy",
    record_types=(
        RecordType(name=UNIT, variables=tuple(Variable(name=n, levels=("0", "1")) for n in ("h", "s"))),
    ),
)


def chain_is_kept(claimed: Specification) -> bool:
    """No pair of two records in one claimed universe loses more than was claimed."""
    records = [*product("01", repeat=2)]
    tables = [m for m in claimed.multiverse if isinstance(m, Margin)]
    limit = float(claimed.budget.upper(9))
    for x, y in permutations(combinations_with_replacement(records, 2), 2):
        named = [[dict(zip("hs", record, strict=True)) for record in data] for data in (x, y)]
        counts = [[Counter(tuple(r[n] for n in m.by) for r in data) for m in tables] for data in named]
        apart = sum((Counter(x) - Counter(y)).values())
        if counts[0] == counts[1] and loss_of_chain(x, y) > limit * apart + 1e-9:
            return False
    return True


def chained() -> Specification:
    kept = (Margin(UNIT, ("h",)), Margin(UNIT, ("s",)))
    swapped = replace(stated(Multiplicative(), 1, *kept, on=SQUARE), budget=Budget.log(99))
    noisy = replace(stated(Multiplicative(), 1, on=SQUARE), budget=Budget.log(2))
    return swapped.then(noisy, stability=1)


def test_a_chain_keeps_the_invariants_of_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {Margin(UNIT, ("h",)), Margin(UNIT, ("s",))} <= chained().multiverse.invariants
    assert chain_is_kept(chained())
    outside = loss_of_chain((("0", "0"), ("1", "1")), (("1", "1"), ("1", "1")))
    assert outside > 1.9 * log(2)  # at distance 1
    honest = algebra._carry_promise

    def forgets(first: Specification, second: Specification, stability: Fraction) -> Specification:
        return replace(honest(first, second, stability), multiverse=second.multiverse)

    monkeypatch.setattr(algebra, "_carry_promise", forgets)
    assert not chain_is_kept(chained())


# --- I: a restricted statistic, and the constants between units


def test_a_restricted_statistic_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brute force: two data sets agree on block × kind and differ on block × kind where vacant."""
    vacant = Margin(UNIT, ("block", "kind"), {"vacant": ["1"]})
    coarse, kinds = Custom("coarse kinds where vacant", (vacant,)), Margin(UNIT, ("block", "kind"))
    assert {*Record({coarse, kinds}).multiverse} == {coarse, kinds}
    small = Small.of({"block": "01", "kind": "01", "vacant": "01"}, most=1)
    shown, asked = Table(("block", "kind")), Table(("block", "kind"), (("vacant", ("1",)),))
    assert not determines([shown], asked, small.names, small.records)
    assert decide_determined([kinds], vacant, domain_of(small)).answer is Answer.NO
    # the old rule looks at the variables of the table alone, and drops the statistic
    monkeypatch.setattr(constraints, "is_summed_from", lambda whole, part: {*part.by} <= {*whole.by})
    assert {*Record({coarse, kinds}).multiverse} != {coarse, kinds}


def test_constants_between_changed_and_added_records() -> None:
    """One changed record is one removed and one added; without fixed numbers no constant leads back."""
    every = [*combinations_with_replacement("xy", 2)]
    for x, y in product(every, every):
        symmetric = sum(((Counter(x) - Counter(y)) + (Counter(y) - Counter(x))).values())
        assert symmetric == 2 * sum((Counter(x) - Counter(y)).values())
    total = Margin(UNIT)
    changed, added = stated(Multiplicative(), 2, total), stated(Multiplicative(), 1, total, symmetric=True)
    assert (proved(changed, added), proved(added, changed)) == ("yes", "yes")
    assert proved(stated(Multiplicative(), 2), stated(Multiplicative(), 1, symmetric=True)) == "no"


# --- noise on a table that the other release's invariants fix


def both_releases() -> tuple[Specification, Specification]:
    counties = ["a", "b"] * 20
    census = households(
        spine=("county", "tract"),
        county=counties,
        tract=[f"{county}{i % 3}" for i, county in enumerate(counties)],
        size=[1 + i % 4 for i in range(40)],
        tenure=["own", "rent", "rent", "own", "own"] * 8,
    )
    swap = PermutationSwapping(match=["county", "size"], swap=["tract"], rate="1/10").specification(census)
    return swap, ExactMargins(rows="county", columns="tenure", rho_squared="1/2").specification(census)


def charged_twice() -> bool:
    """Whether the sum costs more than the swap: county × tenure is the same in all of the swap's universes."""
    swap, noisy = both_releases()
    total = swap + noisy
    return total.output_premetric != swap.output_premetric or total.budget > swap.budget


def test_noise_on_a_fixed_table_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    swap, noisy = both_releases()
    # by counting: the swap keeps county × size × tenure, of which county × tenure is a sum
    small = Small.of({"county": "ab", "size": "12", "tenure": "or"}, most=1)
    kept, measured = Table(("county", "size", "tenure")), Table(("county", "tenure"))
    assert determines([kept], measured, small.names, small.records)
    assert not charged_twice()
    assert (swap + noisy).budget == swap.budget
    assert proved(swap + noisy, swap.given((swap + noisy).multiverse)) == "yes"
    everywhere(monkeypatch, "is_free", lambda *_: False)
    assert charged_twice()


def test_noise_on_another_table_is_charged() -> None:
    """The swap does not keep tract × tenure: that is what it moves."""
    swap, noisy = both_releases()
    moved = replace(noisy, measures=(Margin(UNIT, ("tract", "tenure")),))
    unstated = replace(noisy, measures=())
    for other in (moved, unstated):
        total = swap + other
        assert total.output_premetric != swap.output_premetric or total.budget > swap.budget


def test_the_figures_of_this_file() -> None:
    """ln 99 at two records and rate 99/100, from Algorithm 1 itself."""
    found = law_of_two((0, 1), (0, 1), Fraction(99, 100))
    kept, moved = (found[t] for t in (((0, 0), (1, 1)), ((0, 1), (1, 0))))
    assert mpmath.almosteq(exp(2 * log(99)), float(moved / kept))
