"""The promise of stirring counts exchanges: held against enumeration, shown on the card, audited; wrong ones are caught."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log, prod
from typing import Any

import pytest
from tests.oracles import stirring as oracle

from planted import square
from stirred import Exchanges, Hamming, PermutationSwapping, Stirring, catalog
from stirred.assess.audit import audit
from stirred.census import Census
from stirred.chance import Key
from stirred.languages import Language
from stirred.mechanisms.exhibits import Listing
from stirred.mechanisms.stirring.law import Asked, LawName, StratumShape, StratumShapes, choose_laws
from stirred.publish.assessment import published_specification
from stirred.spec import Answer, Approximate, Budget, NormalizedRenyi, SizeLaw
from stirred.spec.card import Card, bound_odds

SWAP = {"swap": ["county"], "rate": "1/3"}


class HalfStated(Stirring):
    """Stirs as it should, and states half of what one exchange loses."""

    def make_promise(self, strata: Any, census: Census) -> Any:
        right = Stirring.make_promise(self, strata, census)
        budget = right.specification.budget * Fraction(1, 2)
        return replace(right, specification=replace(right.specification, budget=budget, bounds=()))


class DrawnRarely(Stirring):
    """States the promise of its rate, and draws at a fifth of it."""

    def draw_swap(self, frame: Any, run: Any, engine: Any) -> Any:
        return Stirring(**{**dict(self.config), "rate": Fraction(self.config.rate) / 5}).draw_swap(
            frame, run, engine
        )


def odds_of_an_exchange(n: int, weight: Fraction) -> Fraction:
    """Return the largest ratio of chances between two arrangements of n different records, one exchange apart."""
    start = tuple((i, i) for i in range(n))
    here = oracle.published(start, lambda data: oracle.ewens(len(data), weight))
    return max(
        oracle.worst_ratio(here, oracle.published(other, lambda data: oracle.ewens(len(data), weight)))
        for other in oracle.neighbours(start)
    )


@pytest.mark.parametrize(("n", "rate"), [(3, "1/3"), (4, "1/4"), (4, "9/10")])
def test_the_card_shows_the_odds_of_one_exchange_as_enumerated(n: int, rate: str) -> None:
    mechanism = Stirring(swap=["county"], rate=rate)
    promise = mechanism.specification(square(n))
    p = Fraction(rate)
    enumerated = odds_of_an_exchange(n, (n - 1) * (1 - p) / p)
    assert promise.input_premetric == Exchanges("household")
    assert promise.budget == Budget.log(enumerated)
    shown = bound_odds(promise)
    assert (shown.distance, shown.log_odds) == (1, Budget.log(enumerated).upper(6))
    half = HalfStated(swap=["county"], rate=rate).specification(square(n))
    assert half.budget < Budget.log(enumerated)
    assert bound_odds(half).log_odds < shown.log_odds


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("en", "two households trade places"),
        ("de", "zwei Haushalte ihre Orte tauschen"),
        ("fr", "deux ménages échangent leurs lieux"),
        ("es", "dos hogares se cambian los lugares"),
    ],
)
def test_every_language_says_what_an_exchange_is(code: str, told: str) -> None:
    card = Card(Stirring(**SWAP).specification(square(3)), language=code)
    assert told in card.sentence()
    assert "ρ²" in " ".join(card.notes())
    example = card.write_example()
    assert "county" in example
    assert "tenure" in example
    assert Language.of(code).say("card.worked.two_answers", one="x")[2:] not in example


def test_the_promise_per_changed_record_stays_in_the_details() -> None:
    mechanism = Stirring(swap=["county"], rate="1/3")
    per_record, per_exchange = (
        mechanism.record_specification(square(4)),
        mechanism.specification(square(4)),
    )
    assert per_record.input_premetric == Hamming("household")
    assert per_record.budget == per_exchange.budget * Fraction(3, 4)
    assert per_record.multiverse == per_exchange.multiverse
    # the algebra knows the constant 1 only
    assert per_exchange.per("household").budget == per_exchange.budget
    assert "(h − ⌈h/r⌉)" in str(mechanism.details()["loss_by_distance"])


def test_an_audit_passes_what_is_right_and_fails_half_of_it() -> None:
    """A right mechanism fails with probability 1e-6 at most; keys are fixed, so the test repeats."""
    right = audit(Stirring(**SWAP), square(3), runs=1000, on_records=True)
    assert (right.verdict, right.exact_text) == ("pass", "ln(4)")
    assert right.claimed == pytest.approx(right.exact)
    half = audit(HalfStated(**SWAP), square(4), methods=("exact",), on_records=True)
    assert half.verdict == "fail"
    assert "above the claim" in half.tests[0].finding


@pytest.mark.slow
def test_runs_alone_fail_half_of_it_and_another_draw() -> None:
    sampled = audit(HalfStated(**SWAP), square(3), runs=4000, methods=("sampled",), on_records=True)
    assert sampled.verdict == "fail"
    rarely = audit(DrawnRarely(**SWAP), square(4), runs=1000, on_records=True)
    assert (rarely.verdict, rarely.parts["law"]) == ("fail", "fail")


def town() -> Census:
    """Households with persons, some of which take no part."""
    n = 24
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {
            "household": {
                "id": "hid",
                "variables": {"kind": ["home", "quarters"], "tenure": ["own", "rent"], "size": "1..2"},
                "kind": {"column": "kind", "occupied": ["home"], "group_quarters": ["quarters"]},
            },
            "person": {"household": "hid", "of": "household", "variables": {"age": "0..99"}},
        },
    }
    homes = {
        "hid": list(range(n)),
        "state": ["s"] * n,
        "county": [f"c{i % 3}" for i in range(n)],
        "kind": ["quarters" if i > 20 else "home" for i in range(n)],
        "tenure": [("own", "rent")[i // 2 % 2] for i in range(n)],
        "size": [i % 2 + 1 for i in range(n)],
    }
    people = {"hid": list(range(n)), "age": [20 + i for i in range(n)]}
    return Census.of(schema, {"household": homes, "person": people})


def test_releases_beside_it_add_up_in_either_order() -> None:
    settings = {"match": ["state", "size"], "swap": ["county"], "rate": "1/3"}
    mine, theirs = (kind(**settings).specification(town()) for kind in (Stirring, PermutationSwapping))
    assert mine.multiverse == theirs.multiverse
    for both in (mine + theirs, theirs + mine):
        assert both.input_premetric == Hamming("household")
        assert both.budget == mine.budget + theirs.budget
    assert (mine + mine).input_premetric == Exchanges("household")
    # persons go with their household: the constant is known with them too
    assert replace(mine, varies=None).implies(replace(mine.per("household"), varies=None, parts=()))


def test_noisy_metrics_cost_twice_for_an_exchange() -> None:
    promise = Stirring(**SWAP).specification(square(3))
    whole = published_specification(promise, Fraction(1, 10), 3)
    assert whole.input_premetric == Exchanges("household")
    assert whole.budget == promise.budget + Budget.of(Fraction(6, 10))


def row(held: list[str]) -> Census:
    """One stratum of households in places of their own, with these tenures."""
    n = len(held)
    schema = {"geography": {"spine": ["county"]}, "record": {"household": {}}}
    return Census.of(schema, {"household": {"county": [f"c{i}" for i in range(n)], "tenure": held}})


# of the theory note, enumerated: PSA, stirring by cycles, stirring by types
ENUMERATED = [
    (list("abcdef"), "1/10", 7.777, 4.302, None),
    (list("aaaabbb"), "1/4", 3.633, 2.646, 2.468),
    (list("aaabbb"), "1/10", 5.668, 4.302, 4.275),
    (list("aaaaabb"), "1/2", 1.728, 1.709, 1.494),
]


@pytest.mark.parametrize(("held", "rate", "psa", "cycles", "types"), ENUMERATED)
def test_a_swap_says_what_others_would_lose_at_its_share(
    held: list[str], rate: str, psa: float, cycles: float, types: float | None
) -> None:
    settings = {"swap": ["county"], "accept_reversal": ["tenure"]}
    mine = PermutationSwapping(**settings, rate=rate).expected_effect(row(held))
    assert mine is not None
    best = "stirring" if types is None else "stirring, law = auto"
    assert [*mine.losses] == ["permutation-swapping", best]
    # the share is rounded to four digits, the losses up at the fourth decimal
    assert float(mine.losses["permutation-swapping"]) == pytest.approx(psa, abs=2e-3)
    assert float(mine.losses[best]) == pytest.approx(types or cycles, abs=2e-3)
    stirred = Stirring(**settings, rate=Fraction(f"{mine.share:.6f}"), law="cycles")
    theirs = stirred.expected_effect(row(held))
    assert theirs is not None
    assert [*theirs.losses] == ["stirring", "permutation-swapping", *([best] if types else [])]
    assert float(theirs.losses["stirring"]) == pytest.approx(cycles, abs=2e-3)
    assert float(theirs.losses["permutation-swapping"]) == pytest.approx(psa, abs=2e-3)


def test_the_report_compares_and_says_that_it_may() -> None:
    release = Stirring(**SWAP).release(row(list("abcdefgh")), key=Key.for_tests(1))
    larger, shown = Stirring(**SWAP).exhibits(release)[:2]
    assert all(isinstance(part, Listing) and [*part.numeric] == [*part.columns] for part in larger.parts)
    assert "by permutation-swapping" in str(shown.finding)
    assert "exact tables give these numbers" in str(shown.note)
    assert release.effect is not None
    assert not replace(release.effect, losses={}).compare_losses()


def pair_of_laws(n: int, weight: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return the chances of every output under a data set and under one that is an exchange away."""
    start = tuple((i, i) for i in range(n))
    here, there = (
        oracle.published(data, lambda data: oracle.ewens(len(data), weight))
        for data in (start, next(iter(oracle.neighbours(start))))
    )
    return [(here[y], there[y]) for y in here]


def test_several_releases_lose_what_their_product_law_loses() -> None:
    """δ = Σ (P − e^ε Q)⁺ over all outputs of two and three independent releases; no smaller ε would do."""
    one = pair_of_laws(3, Fraction(4))
    for releases, delta in ((2, "1/10"), (3, "1/20")):
        stated = Stirring(**SWAP).repeated_specification(square(3), releases=releases, delta=delta)
        assert stated.output_premetric == Approximate(delta)
        assert stated.input_premetric == Exchanges("household")
        both = [
            (prod(p for p, _ in chosen), prod(q for _, q in chosen))
            for chosen in product(one, repeat=releases)
        ]
        power = exp(float(stated.budget.upper(12)))
        for factor, within in ((1, True), (0.999, False)):
            lost = sum(max(0.0, float(p) - factor * power * float(q)) for p, q in both)
            assert (lost <= float(Fraction(delta)) + 1e-9) is within
    assert stated.budget < Stirring(**SWAP).specification(square(3)).budget * 3
    plain = Stirring(**SWAP).repeated_specification(square(3), releases=2, delta=0)
    assert float(plain.budget.upper(9)) == pytest.approx(2 * log(4), abs=1e-8)


def test_concentrated_privacy_is_that_of_the_law() -> None:
    """D_α/α is largest as α → 1, the Kullback-Leibler divergence: no smaller ρ² would do."""
    stated = Stirring(**SWAP).concentrated_specification(square(3))
    assert stated.output_premetric == NormalizedRenyi()
    assert float(stated.rho_squared.upper(9)) == pytest.approx(log(4) * 3 / 5, abs=1e-8)
    one = pair_of_laws(3, Fraction(4))
    for alpha in (1.0001, 1.5, 2, 5, 50):
        moment = sum(float(p) ** alpha * float(q) ** (1 - alpha) for p, q in one)
        assert log(moment) / (alpha - 1) / alpha <= float(stated.rho_squared.upper(9)) + 1e-9
    told = sum(float(p) * log(p / q) for p, q in one)
    assert told == pytest.approx(float(stated.rho_squared.upper(9)), abs=1e-6)


def test_the_check_shows_other_divergences_and_several_releases() -> None:
    (shown,), numbers = Stirring(**SWAP).preview(square(4))
    changes, releases = shown.parts
    assert [row[:2] for row in changes.rows] == [(2, 1), (3, 2), (4, 3), (10, 9)]
    assert [row[0] for row in releases.rows] == [1, 2, 4, 8]
    assert numbers["epsilon_per_record"] == "3/4*ln(6)"
    assert numbers["epsilon_of_releases"]["1"] == pytest.approx(log(6), abs=2e-6)


def test_comparisons_know_the_loss_of_an_exchange_in_every_universe() -> None:
    """Stirring at a higher rate promises more; the swap's promise does not give stirring's, with a pair as witness."""
    often, rarely = (catalog[f"whatif-state-size-stirred@{rate}"] for rate in ("1/2", "1/20"))
    swapped = catalog["whatif-state-size@1/20"]
    assert often.implies(rarely).answer is Answer.YES
    assert rarely.implies(often).answer is Answer.NO
    assert swapped.implies(rarely).answer is Answer.NO
    assert rarely.implies(rarely).answer is Answer.YES


@pytest.mark.parametrize("rate", ["1/20", "1/2", "9/10"])
@pytest.mark.parametrize("law", ["auto", "cycles"])
def test_the_law_of_the_largest_stratum_is_never_below_what_is_lost(rate: str, law: LawName) -> None:
    for n in range(2, 40):
        for held in (None, (n - 1, 1), (n - 2, 1, 1) if n > 2 else None):
            shapes = StratumShapes.of([StratumShape(n, held, None)])
            lost = choose_laws(shapes, Asked.of(rate=rate, law=law))[0].loss
            assert lost <= SizeLaw("by-exchange", rate).at(n)
