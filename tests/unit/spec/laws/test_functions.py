"""Budgets that are functions of the universe: the order of two laws against brute force, and every universe at once."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import SpecificationError, StirredError
from stirred.spec import (
    Budget,
    BudgetFunction,
    Custom,
    Domain,
    Hamming,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    SizeLaw,
    Specification,
    compare_functions,
    compare_laws,
    statement,
)
from stirred.spec.files import from_json, to_json
from stirred.spec.statement import PlainPromise
from stirred.spec.verdict import DataSet

MOST = 5000
STATISTIC = LargestStratum("household", ("size",), ("tenure",), ("block",))

# --- an oracle of its own: derangements by their other recursion, and e^(6ε) written out


def _derangements() -> list[int]:
    found = [1, 0]
    for n in range(2, 61):
        found.append((n - 1) * (found[-1] + found[-2]))
    return found


D = _derangements()


def sixth(kind: str, low: Fraction, high: Fraction, b: int) -> Fraction:
    small, large = low / (1 - low), high / (1 - high)
    if kind == "theorem-1":
        return max(large, (b + 1) / small) ** 6
    if kind == "by-exchange":
        return max(large, (b - 1) / small) ** 6
    if b == 3 and small == large:
        o = small  # 0, 2 or 3 records move, with weights 1, o² and o³/2; losses at distances 2, 3 and 2
        two, three, step = o**2, o**3 / 2, o / 2
        return max(*(max(x, 1 / x) ** 3 for x in (two, step)), max(three, 1 / three) ** 2)
    ratio = (
        Fraction(D[max(b, 4) if b > 2 else 2], D[max(b, 4) - 2 if b > 2 else 0])
        if b <= 60
        else Fraction(b * b - b + 1)
    )
    return max(large**2, ratio / small**2) ** 3


def signs(first: SizeLaw, second: SizeLaw, sizes: Any) -> list[int]:
    found = []
    for b in sizes:
        one = sixth(first.kind, first.rate, first.highest, b)
        other = sixth(second.kind, second.rate, second.highest, b)
        found.append((one > other) - (one < other))
    return found


# odds whose products cover everything up to the end of the brute force, and rates of every day
rates = st.builds(lambda i, j: Fraction(i, i + j), st.integers(1, 90), st.integers(1, 12)) | st.sampled_from(
    [Fraction(p) for p in ("1/2", "3/4", "1/20", "1/100", "9/10", "99/100", "86450/86451")]
)
kinds = st.sampled_from(["theorem-1", "by-size", "by-exchange"])
one_rate = st.builds(SizeLaw, kinds, rates)
two_rates = st.builds(lambda kind, p, q: SizeLaw(kind, min(p, q), max(p, q)), kinds, rates, rates)
laws = one_rate | two_rates


@settings(max_examples=20)
@given(laws, laws)
def test_the_order_of_two_laws_is_that_of_brute_force_up_to_5000(first: SizeLaw, second: SizeLaw) -> None:
    order = compare_laws(first, second)
    brute = signs(first, second, range(2, MOST + 1))
    assert [order.sign(b) for b in range(2, MOST + 1)] == brute
    # and beyond: both sides of every change, and far out
    ends = {end for run in order.runs for end in (run.first, run.last) if end is not None}
    far = sorted({*ends, *(b + step for b in ends for step in (-1, 1)), 10**6, 10**9, 10**15} - {1})
    assert [order.sign(b) for b in far] == signs(first, second, far)
    seen = {run.sign for run in order.runs} - {0}
    assert order.relation == {(): "equal", (-1,): "smaller", (1,): "larger"}.get(
        tuple(sorted(seen)), "crosses"
    )
    back = compare_laws(second, first)
    assert [(run.first, -run.sign) for run in back.runs] == [(run.first, run.sign) for run in order.runs]
    assert {order.relation, back.relation} in ({"equal"}, {"crosses"}, {"smaller", "larger"})


@settings(deadline=None, max_examples=200)
@given(laws, st.integers(2, 10**6) | st.integers(2, 70))
def test_a_law_is_its_formula_and_never_falls(law: SizeLaw, b: int) -> None:
    power = sixth(law.kind, law.rate, law.highest, b)
    assert law.power(b) == power
    assert law.at(b) * 6 == Budget.log(power)
    assert law.at(b) <= law.at(b + 1)
    assert law.at(0) == law.at(1) == Budget.zero()


@pytest.mark.parametrize(
    ("one", "other"), [("2", "3"), ("5", "7"), ("9/2", "10"), ("1/19", "86450"), ("31", "97")]
)
def test_theorem_1_crosses_where_b_plus_1_is_the_product_of_the_odds(one: str, other: str) -> None:
    small, large = Fraction(one), Fraction(other)
    order = compare_laws(*(SizeLaw("theorem-1", o / (1 + o)) for o in (small, large)))
    place = small * large - 1
    assert order.relation == "crosses"
    assert (order.before, order.after) == ("smaller", "larger")
    assert place.denominator == 1
    assert order.at == order.equal_at == place
    assert [(run.first, run.last) for run in order.runs] == [
        (2, place - 1),
        (place, place),
        (place + 1, None),
    ]


def test_half_and_three_quarters_agree_at_four_records_only() -> None:
    half, more = SizeLaw("by-size", "1/2"), SizeLaw("by-size", "3/4")
    assert half.at(3) == Budget.log(2) * Fraction(1, 2)  # from one moved record more: w(2)/w(3) = 2
    assert more.at(3) == Budget.log(3)
    assert half.at(4) == more.at(4) == Budget.log(3)
    assert half.at(5) == Budget.log(22) * Fraction(1, 2)
    order = compare_laws(half, more)
    assert (order.relation, order.at, order.equal_at) == ("crosses", 4, 4)
    assert (order.before, order.after) == ("smaller", "larger")
    assert order.sentence() == (
        "swap rate 1/2 gives a smaller budget than swap rate 3/4 from b = 2 to 3, the same at b = 4, a larger one from "
        "b = 5 on (b: records in the largest stratum)"
    )


def test_half_is_below_a_twentieth_at_every_size() -> None:
    for kind in ("theorem-1", "by-size"):
        order = compare_laws(SizeLaw(kind, "1/2"), SizeLaw(kind, "1/20"))
        assert order.relation == "smaller"
        assert order.sentence().endswith("for every size b of the largest stratum")
        assert "swap rate 1/2 gives a smaller budget than swap rate 1/20" in order.sentence()


def test_a_change_far_out_is_found_exactly() -> None:
    # Theorem 1 at odds o against the same by size: b + 1 against √(b² − b + 1), at odds that nearly make up for it
    far = 10**12
    odds = Fraction((far + 1) ** 2, far * far - far + 1)  # the square of the ratio at which both agree
    close = Fraction(10**18 + int((odds - 1) * 10**18) // 2, 10**18)
    first, second = SizeLaw("theorem-1", close / (1 + close)), SizeLaw("by-size", Fraction(1, 2))
    order = compare_laws(first, second)
    assert order.relation == "crosses"
    assert order.at is not None
    assert order.at > 10**11
    around = [order.at - 1, order.at, order.at + 1]
    assert [order.sign(b) for b in around] == signs(first, second, around)


def test_rates_of_none_and_all_are_infinite_at_every_size() -> None:
    nobody, some = SizeLaw("by-size", 0), SizeLaw("by-size", "1/20")
    assert not nobody.at(2).is_finite
    assert nobody.at(0) == Budget.zero()
    assert compare_laws(nobody, some).relation == "larger"
    assert compare_laws(some, SizeLaw("theorem-1", "1/2", 1)).relation == "smaller"
    assert compare_laws(nobody, SizeLaw("theorem-1", 1)).relation == "equal"


def test_a_law_refuses_what_it_is_not() -> None:
    for attempt in (
        lambda: SizeLaw("by-size", 0.05),
        lambda: SizeLaw("by-size", "3/2"),
        lambda: SizeLaw("by-size", "1/2", "1/20"),
        lambda: SizeLaw("by-luck", "1/2"),
        lambda: SizeLaw("by-size", "1/2").at(-1),
        lambda: SizeLaw("by-size", "1/2").at(True),
        lambda: BudgetFunction(),
        lambda: BudgetFunction(words="through b", b=-1),
        lambda: BudgetFunction(law=SizeLaw("by-size", "1/2"), most=Budget.of(3)),
    ):
        with pytest.raises(StirredError):
            attempt()


# --- the statistic b


def test_b_is_a_function_of_the_swap_invariants_and_0_exactly_in_singletons() -> None:
    statistic = LargestStratum("household", ("m",), ("h",), ("s",))
    records = [dict(zip("mhs", levels, strict=True)) for levels in product("ab", "xy", "uv")]
    for size in range(5):
        universes: dict[object, list[int]] = {}
        for data in combinations_with_replacement(records, size):
            margins = tuple(tuple(sorted(r["m"] + r[name] for r in data)) for name in "hs")
            universes.setdefault(margins, []).append(statistic.of(data))
        for found in universes.values():
            assert len(set(found)) == 1
            assert (found[0] == 0) == (len(found) == 1)


def test_records_that_take_no_part_are_not_counted() -> None:
    homes = [{"kind": k, "h": h, "s": s} for k, h, s in (("o", "x", "u"), ("o", "y", "v"), ("v", "x", "v"))]
    assert LargestStratum("household", (), ("h",), ("s",)).of(homes) == 3
    assert LargestStratum("household", (), ("h",), ("s",), where={"kind": ["o"]}).of(homes) == 2
    left_out = LargestStratum("household", (), ("h",), ("s",), without=[{"kind": ["v"]}])
    assert left_out.of(homes) == 2
    assert [margin.words() for margin in left_out.needs()][2:] == [
        "households by h where kind = v",
        "households by s where kind = v",
    ]


@pytest.mark.parametrize(
    "restricted",
    [
        {},
        {"where": {"kind": ["o"]}},
        {"without": [{"kind": ["v"]}]},
        {"without": [{"kind": ["v"]}, {"h": ["1"]}]},
        {"where": {"h": ["0", "1"]}, "without": [{"kind": ["v"]}, {"h": ["1"], "s": ["0"]}]},
    ],
)
def test_the_tables_it_needs_determine_b(restricted: dict[str, Any]) -> None:
    """All files of up to four records: where these tables agree, b agrees."""
    b = LargestStratum("household", ("m",), ("h",), ("s",), **restricted)
    records = [
        dict(zip(("m", "kind", "h", "s"), ("0", *values), strict=True))
        for values in product("ov", "012", "01")
    ]
    found: dict[tuple[object, ...], set[int]] = {}
    for number in range(5):
        for chosen in combinations_with_replacement(records, number):
            data = DataSet.of("household", [(record, 1) for record in chosen])
            tables = tuple(tuple(sorted(data.table(margin).items())) for margin in b.needs())
            found.setdefault(tables, set()).add(b.of(chosen))
    assert {*map(len, found.values())} == {1}
    assert len({value for values in found.values() for value in values}) > 2


def test_the_order_of_variables_plays_no_part() -> None:
    one = LargestStratum("household", ("a", "b"), ("c", "d"), ("e", "f"))
    assert one == LargestStratum("household", ("b", "a"), ("d", "c"), ("f", "e"))


def test_one_statistic_below_another_is_never_above_it() -> None:
    names = ("m", "h", "s")
    records = [dict(zip(names, levels, strict=True)) for levels in product("ab", "xy", "uv")]
    choices = [
        LargestStratum("household", match, hold, swap)
        for match in ((), ("m",))
        for hold in ((), ("h",), ("h", "m"))
        for swap in ((), ("s",), ("s", "m"))
    ]
    data = [found for size in range(4) for found in combinations_with_replacement(records, size)]
    values = {choice: [choice.of(found) for found in data] for choice in choices}
    for first, second in product(choices, repeat=2):
        if first.never_above(second):
            assert all(a <= b for a, b in zip(values[first], values[second], strict=True))


# --- two functions in every universe


def function(law: SizeLaw, b: int, realised: str = "", **more: Any) -> BudgetFunction:
    return BudgetFunction(law=law, statistic=STATISTIC, b=b, realised=realised, **more)


def promised(
    rate: str, b: int, realised: str = "", *, kind: Any = "by-size", budget: Budget | None = None
) -> PlainPromise:
    law = SizeLaw(kind, rate)
    return PlainPromise(law.at(b) if budget is None else budget, function(law, b, realised))


def test_the_swap_at_half_implies_that_at_a_twentieth_and_not_the_reverse() -> None:
    found = compare_functions(promised("1/2", 900), promised("1/20", 7))
    assert found.answer == "yes"
    assert "swap rate 1/2 gives a smaller budget than swap rate 1/20" in found.because
    back = compare_functions(promised("1/20", 7), promised("1/2", 900))
    assert (back.answer, back.b) == ("no", 2)


def test_a_tie_at_the_realised_universe_decides_nothing_elsewhere() -> None:
    half, more = promised("1/2", 4, "shapes"), promised("3/4", 4, "shapes")
    assert half.budget == more.budget
    assert (compare_functions(half, more).answer, compare_functions(half, more).b) == ("no", 5)
    assert (compare_functions(more, half).answer, compare_functions(more, half).b) == ("no", 2)


@pytest.mark.parametrize(
    ("first", "second", "answer", "b"),
    [
        (PlainPromise(Budget.of(1)), PlainPromise(Budget.of(2)), "yes", None),
        (PlainPromise(Budget.of(2)), PlainPromise(Budget.of(1)), "no", None),
        (promised("1/20", 9), PlainPromise(Budget.infinite()), "yes", None),
        (promised("0", 9), PlainPromise(Budget.of(7)), "no", 2),
        (promised("1/2", 9), PlainPromise(Budget.of(7)), "no", 1098),  # b(b − 1) + 1 > e^14 first at 1098
        (promised("1/2", 9), PlainPromise(Budget.of(10**6)), "no", None),
        (PlainPromise(Budget.log(19)), promised("1/20", 9), "yes", None),  # |ln o| = ln 19 at b = 2
        (PlainPromise(Budget.log(20)), promised("1/20", 9), "no", 2),
        (PlainPromise(Budget.log(19)), promised("1/20", 9, budget=Budget.log(18)), "no", 9),
        (PlainPromise(Budget.log(19)), promised("1/20", 0, budget=Budget.zero()), "yes", None),
        (PlainPromise(Budget.zero()), PlainPromise(Budget.of(1), BudgetFunction(words="w")), "yes", None),
        (PlainPromise(Budget.of(1)), PlainPromise(Budget.of(2), BudgetFunction(words="w")), "unknown", None),
        (
            PlainPromise(Budget.of(1)),
            PlainPromise(Budget.of(2), BudgetFunction(words="w", least=Budget.of(1))),
            "yes",
            None,
        ),
        (
            PlainPromise(Budget.of(2), BudgetFunction(words="w", most=Budget.of(3))),
            PlainPromise(Budget.of(3)),
            "yes",
            None,
        ),
        (PlainPromise(Budget.of(2), BudgetFunction(words="w")), PlainPromise(Budget.of(3)), "unknown", None),
        (PlainPromise(Budget.of(4), BudgetFunction(words="w", b=5)), PlainPromise(Budget.of(3)), "no", 5),
    ],
)
def test_constants_and_functions(
    first: PlainPromise, second: PlainPromise, answer: str, b: int | None
) -> None:
    found = compare_functions(first, second)
    assert (found.answer, found.b) == (answer, b)
    assert found.because
    assert bool(found) is (answer == "yes")


def test_the_first_place_above_a_constant_is_the_first() -> None:
    law = SizeLaw("by-size", "1/2")
    assert law.at(1098) > Budget.of(7)
    assert law.at(1097) <= Budget.of(7)


def test_a_sharper_value_must_be_met_where_it_holds() -> None:
    sharp = promised("1/20", 9, "here", budget=Budget.log(20))
    plain = promised("1/20", 9, "there")
    assert compare_functions(sharp, plain).answer == "yes"
    assert compare_functions(plain, sharp).answer == "unknown"  # its law gives more than ln 20 there
    assert compare_functions(promised("1/2", 9, "there"), sharp).answer == "yes"  # and half gives less
    same = promised("1/20", 9, "here")
    found = compare_functions(same, sharp)
    assert (found.answer, found.b, found.realised) == ("no", 9, True)
    assert compare_functions(sharp, promised("1/20", 9, "here", budget=Budget.log(21))).answer == "yes"
    unknown = promised("1/20", 9, budget=Budget.log(20))
    assert compare_functions(unknown, replace(unknown, budget=unknown.budget)).answer == "unknown"
    assert compare_functions(unknown, unknown).answer == "yes"


def test_a_raised_value_counts_against_the_first() -> None:
    raised = promised("1/20", 9, budget=Budget.of(50))
    assert compare_functions(raised, promised("1/20", 9)).answer == "unknown"
    assert compare_functions(promised("1/20", 9), raised).answer == "yes"
    assert compare_functions(raised, promised("1/20", 9, budget=Budget.of(51))).answer == "unknown"
    here, there = promised("1/20", 9, "here", budget=Budget.of(50)), promised("1/20", 9, "here")
    assert compare_functions(here, there).answer == "no"
    assert compare_functions(there, here).answer == "yes"


def test_other_strata_are_not_mixed_up() -> None:
    fine = LargestStratum("household", ("size", "state"), ("tenure",), ("block",))
    here, there = promised("1/2", 9), promised("1/20", 9)
    other = replace(there, varies=replace(there.varies, statistic=fine, words=""))
    assert compare_functions(here, other).answer == "unknown"
    # a first b that is never the larger one helps: the law never falls
    found = compare_functions(
        replace(other, varies=replace(here.varies, statistic=fine), budget=here.budget), there
    )
    assert found.answer == "yes"
    nowhere = replace(there, varies=replace(there.varies, statistic=None))
    assert compare_functions(here, nowhere).answer == "unknown"


@settings(deadline=None, max_examples=300)
@given(
    st.tuples(
        one_rate,
        st.integers(2, 12),
        st.sampled_from(["", "r", "s"]),
        st.sampled_from([None, "1/3", "1", "5"]),
    ),
    st.tuples(
        one_rate,
        st.integers(2, 12),
        st.sampled_from(["", "r", "s"]),
        st.sampled_from([None, "1/3", "1", "5"]),
    ),
)
def test_every_answer_is_right_in_every_universe(one: Any, two: Any) -> None:
    """Universes up to b = 40: for each b one that is nobody's, and the realised ones in every way the digests allow."""
    promises = []
    for law, b, digest, own in (one, two):
        budget = law.at(b) if own is None else Budget.of(own)
        promises.append(PlainPromise(budget, function(law, b, f"{digest}{b}" if digest else "")))
    first, second = promises
    answer = compare_functions(first, second)
    places = (first.varies.b, second.varies.b)
    digests = (first.varies.realised, second.varies.realised)
    worlds = [False, True] if places[0] == places[1] and "" in digests else [digests[0] == digests[1] != ""]
    truths = []
    for one_universe in worlds:
        pairs = [(first.varies.law.at(b), second.varies.law.at(b)) for b in range(2, 41)]
        if one_universe:
            pairs.append((first.budget, second.budget))
        else:
            pairs.append((first.budget, second.varies.law.at(places[0])))
            pairs.append((first.varies.law.at(places[1]), second.budget))
        truths.append(all(mine <= theirs for mine, theirs in pairs))
    if answer.answer == "yes":
        assert all(truths)
        assert compare_laws(first.varies.law, second.varies.law).relation in {"equal", "smaller"}
    if answer.answer == "no" and answer.realised:
        assert digests[0] == digests[1] != ""
        assert first.budget > second.budget
    elif answer.answer == "no":
        assert first.varies.law.at(answer.b) > second.varies.law.at(answer.b)


# --- what the tests must catch


def _words_are_not_compared() -> None:
    words = "a function of b, here 4, which the invariants determine"
    law, other = SizeLaw("by-size", "1/2"), SizeLaw("by-size", "3/4")
    pairs = [
        (BudgetFunction(words=words), BudgetFunction(words=words)),
        (BudgetFunction(words=words, law=law, statistic=STATISTIC, b=4),
         BudgetFunction(words=words, law=other, statistic=STATISTIC, b=4)),
    ]  # fmt: skip
    for mine, theirs in pairs:
        for first, second in ((mine, theirs), (theirs, mine)):
            assert not compare_functions(
                PlainPromise(Budget.log(3), first), PlainPromise(Budget.log(3), second)
            )


def test_words_alone_are_never_equal() -> None:
    _words_are_not_compared()


def test_comparing_words_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_words(budget: Budget, mine: Any, other: Budget, theirs: Any) -> statement.FunctionOrder:
        same = mine.words == theirs.words and budget == other
        return statement.FunctionOrder("yes" if same else "unknown", mine.words)

    monkeypatch.setattr(statement, "_compare_both", by_words)
    with pytest.raises(AssertionError):
        _words_are_not_compared()


def test_looking_at_the_realised_b_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_b(budget: Budget, mine: Any, other: Budget, theirs: Any) -> statement.FunctionOrder:
        smaller = (
            mine.law is not None and theirs.law is not None and mine.law.at(mine.b) <= theirs.law.at(theirs.b)
        )
        return statement.FunctionOrder("yes" if smaller else "unknown", "")

    monkeypatch.setattr(statement, "_compare_both", at_b)
    with pytest.raises(AssertionError):
        _words_are_not_compared()


# --- in a specification


def swap(rate: str = "1/20", b: int = 9) -> Specification:
    law = SizeLaw("by-size", rate)
    return Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.of(*STATISTIC.needs()),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=law.at(b),
        varies=function(law, b, "digest"),
    )


def test_one_part_that_is_not_rescaled_keeps_its_law() -> None:
    spec = swap()
    assert spec.per("person").varies == spec.varies  # a person's change alters one household
    assert spec.given(Margin("household", ("race",))).varies == spec.varies
    for changed in (
        spec.per("person", link="free"),
        spec.under(NormalizedRenyi()),
        spec + spec,
        spec + swap("1/2"),
    ):
        assert changed.varies is not None
        assert changed.varies.law is None
        assert "swap rate 1/20" in changed.varies.words
    assert (spec + spec).varies.words.startswith("composed of: 2 times max{ln o")
    assert "swap rate 1/2 " in (spec + swap("1/2")).varies.words
    assert compare_functions(spec + spec, swap("1/2") + swap("1/2")).answer == "unknown"
    assert all(part.varies is not None and part.varies.law is not None for part in (spec + spec).parts)


def test_raising_the_budget_leaves_the_law_elsewhere() -> None:
    spec = swap()
    raised = spec.within(Budget.of(50))
    assert raised.varies is not None
    assert raised.varies.law == spec.varies.law
    assert compare_functions(spec, raised).answer == "yes"
    assert compare_functions(raised, spec).answer == "no"
    assert compare_functions(swap("1/20"), swap("1/2").within(Budget.of(50))).answer == "no"


# --- spec.json

names = st.sampled_from(["size", "state", "tenure", "block", "kind"])
variables = st.lists(names, max_size=3)
conditions = st.dictionaries(
    names, st.lists(st.sampled_from("abc"), min_size=1, max_size=2), min_size=1, max_size=2
)
statistics = st.builds(
    LargestStratum,
    st.sampled_from(["household", "person"]),
    variables,
    variables,
    variables,
    st.none() | conditions,
    st.lists(conditions, max_size=2),
)
budget_functions = st.builds(
    BudgetFunction,
    words=st.sampled_from(["", "the words"]),
    law=laws,
    statistic=st.none() | statistics,
    b=st.none() | st.integers(0, 10**9),
    realised=st.sampled_from(["", "ab12"]),
)


@settings(deadline=None, max_examples=50)
@given(budget_functions)
def test_a_budget_function_is_read_back_equal(varies: BudgetFunction) -> None:
    kept = Multiverse.none() if varies.statistic is None else Multiverse.of(*varies.statistic.needs())
    spec = replace(swap(), multiverse=kept, varies=varies)
    again = from_json(to_json(spec))
    assert again == spec
    assert again.varies == varies
    assert from_json(to_json(spec + spec)).varies == (spec + spec).varies


def test_a_budget_function_of_more_than_the_invariants_is_refused() -> None:
    function = BudgetFunction(law=SizeLaw("theorem-1", "1/20"), statistic=STATISTIC, b=7)
    tables = Multiverse.of(*STATISTIC.needs())
    stated = replace(swap(), multiverse=tables, varies=function)
    assert stated.given(Margin("household", ("size", "tenure", "block"))).varies == function
    with pytest.raises(SpecificationError, match="not a function of the universe") as refused:
        replace(stated, multiverse=Multiverse.of(Margin("household", ("size", "block"))))
    assert "households by size × tenure" in refused.value.fix
    # of an invariant that says nothing about what determines it, no rule says that b is open
    replace(stated, multiverse=Multiverse.of(Custom("published by others")))


def test_a_file_from_before_laws_still_loads() -> None:
    old = to_json(replace(swap(), varies=BudgetFunction(words="through b", universe="b = 7")))
    assert set(old["varies"]) == {"words", "universe", "least", "most"}
    varies = from_json(old).varies
    assert varies == BudgetFunction(words="through b", universe="b = 7")
    assert varies.law is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("law", {"kind": "by-luck", "rate": "1/2", "highest": "1/2"}),
        ("law", {"kind": "by-size", "rate": "0.5", "highest": "1/2"}),
        ("law", {"kind": "by-size", "rate": "3/2", "highest": "2"}),
        ("b", -1),
        ("statistic", {"kind": "largest-stratum"}),
        ("unheard", 1),
    ],
)
def test_a_broken_function_is_refused(key: str, value: object) -> None:
    document = to_json(swap())
    document["varies"][key] = value
    with pytest.raises(StirredError):
        from_json(document)


def test_words_name_the_rate() -> None:
    assert "swap rate 1/20" in swap().varies.words
    assert "equal size" in swap().varies.words
    two = SizeLaw("by-size", "1/20", "1/10").words()
    assert "swap rates from 1/20 to 1/10" in two
    assert "o₁ = 1/19" in two
    assert "∞" in SizeLaw("by-size", 1).words()
    with pytest.raises(SpecificationError):
        BudgetFunction(words="")
