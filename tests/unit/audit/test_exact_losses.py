"""The exact losses of small universes, and what they are compared with."""

from fractions import Fraction

import pytest

from planted import CyclicLaw, GeometricCounts, NoRedrawLaw, square
from stirred import CellKey, Stirring
from stirred.assess.audit import AuditResult, audit
from stirred.assess.audit.datasets import enumerate_universe
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import read_content
from stirred.mechanisms.swap import NearPlaces, NoVacuous, PermutationSwapping, VaryingRates

EXACT = ("exact",)


def stated_law_passes(found: AuditResult) -> bool:
    """Whether the loss passes, and the whole is unknown because no run was made."""
    assert found.verdict == "unknown"
    assert "law: not tested" in found.reason
    assert "order: not tested" in found.reason
    return found.parts["loss"] == "pass"


def swap(rate: str) -> PermutationSwapping:
    return PermutationSwapping(swap=["county"], rate=rate)


@pytest.mark.parametrize(
    ("n", "rate", "loss"),
    [
        (4, "1/20", 4.0431),
        (4, "1/2", 1.0986),
        (4, "3/4", 1.0986),
        (5, "1/20", 4.4900),
        pytest.param(5, "1/2", 1.5455, marks=pytest.mark.slow),
        pytest.param(5, "3/4", 1.0986, marks=pytest.mark.slow),
        pytest.param(6, "1/20", 4.6357, marks=pytest.mark.slow),
        pytest.param(6, "1/2", 1.6912, marks=pytest.mark.slow),
        pytest.param(6, "3/4", 1.0986, marks=pytest.mark.slow),
    ],
)
def test_exact_loss_of_the_swap(n: int, rate: str, loss: float) -> None:
    """The facts' values, to four digits, over all pairs of n! data sets."""
    found = audit(swap(rate), square(n), methods=EXACT, on_records=True, seconds=None)
    assert found.exact is not None
    assert found.exact == pytest.approx(loss, abs=6e-5)
    assert stated_law_passes(found)
    assert found.claimed is not None
    assert found.exact <= found.claimed + 1e-9


def test_worst_pair_is_shown_of_invented_records_alone() -> None:
    invented = audit(swap("1/4"), square(4), methods=EXACT)
    assert invented.worst is not None
    assert invented.worst.distance == 2
    assert invented.worst.loss == invented.exact
    assert len(invented.worst.first) == 4
    own = audit(swap("1/4"), square(4), methods=EXACT, on_records=True)
    assert own.worst is None
    assert not own.measures[0].public


def test_a_universe_is_all_tables_with_the_margins() -> None:
    census = Census.of(
        {"record": {"household": {"variables": {"county": ["a", "b"], "tenure": ["a", "b"]}}}},
        {"household": {"county": list("aabb"), "tenure": list("abab")}},
    )
    universe = enumerate_universe(census, swap("1/4").specification(census))
    assert universe is not None
    assert len(universe) == 3  # 2 × 2 tables with margins 2, 2 and 2, 2
    assert universe.distances().max() == 4
    assert universe.texts(0) == (("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"))


def test_exchanges_are_the_fewest_steps_inside_a_universe() -> None:
    census = square(4)
    promise = Stirring(swap=["county"], rate="1/3").specification(census)
    universe, by_records = (
        enumerate_universe(census, one)
        for one in (promise, Stirring(swap=["county"], rate="1/3").record_specification(census))
    )
    assert universe is not None
    assert by_records is not None
    steps, changed = universe.distances(), by_records.distances()
    assert {*steps[0].tolist()} == {0, 1, 2, 3}
    assert ((changed <= 2 * steps) & (steps <= changed)).all()
    # a cycle of four records is three exchanges, two pairs that trade are two
    assert {*steps[changed == 4].tolist()} == {2, 3}


def test_cyclic_shuffle_has_an_infinite_loss() -> None:
    found = audit(CyclicLaw(swap=["county"], rate="1/4"), square(4), methods=EXACT, on_records=True)
    assert found.verdict == "fail"
    assert found.exact == float("inf")
    assert found.as_json()["exact"] == "inf"


def test_without_redraw_the_loss_is_no_larger() -> None:
    """So only a comparison of laws can find it: see test_planted_bugs."""
    found = audit(NoRedrawLaw(swap=["county"], rate="1/4"), square(4), methods=EXACT, on_records=True)
    assert stated_law_passes(found)
    assert found.exact == pytest.approx(2.19722, abs=1e-5)


def test_geometric_noise_is_tight_and_cell_keys_claim_nothing() -> None:
    geometric = audit(GeometricCounts(), square(2), methods=EXACT, on_records=True)
    assert (stated_law_passes(geometric), geometric.exact_text) == (True, "ln(4)")
    keyed = Census.of(
        {"record": {"household": {"id": "hid", "variables": {"county": ["a", "b"]}}}},
        {"household": {"hid": [1, 2], "county": ["a", "b"]}},
    )
    mechanism = CellKey(tables=[["county"]])
    law = mechanism.exact_law(keyed)
    assert law is not None
    assert sum(law.values()) == 1
    assert {read_content(mechanism.release(keyed, key=Key.for_tests(seed))) for seed in range(20)} <= {*law}
    found = audit(mechanism, keyed, methods=EXACT, on_records=True)
    assert (found.exact, found.claimed, found.verdict) == (float("inf"), float("inf"), "unknown")
    assert found.reason.startswith("no claim")


SAME = {"swap": ["county"], "rate": "1/3"}


@pytest.mark.parametrize(
    "mechanism",
    [
        VaryingRates(**SAME, by="tenure", rates={"a": "1/2"}),
        NoVacuous(**SAME),
        NearPlaces(**SAME, preference="3"),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_variants_keep_their_claims(mechanism: Mechanism) -> None:
    assert stated_law_passes(audit(mechanism, square(4), methods=EXACT, on_records=True))


def test_many_records_are_not_enumerated() -> None:
    levels = list("abcdef")
    census = Census.of(
        {"record": {"household": {"variables": {"county": levels, "tenure": levels}}}},
        {"household": {"county": levels * 3, "tenure": levels * 3}},
    )
    found = audit(swap("1/4"), census, on_records=True, seconds=5)
    assert (found.verdict, found.data_sets) == ("unknown", 0)


def test_no_time_is_unknown() -> None:
    found = audit(swap("1/4"), square(4), seconds=0.0, on_records=True)
    assert found.verdict == "unknown"
    assert found.exact is None


def test_few_runs_are_unknown_though_the_exact_loss_is_known() -> None:
    found = audit(swap("1/4"), square(3), runs=20, on_records=True)
    assert found.exact is not None
    assert found.verdict == "unknown"
    assert found.parts["law"] == "unknown"


def test_refusals() -> None:
    with pytest.raises(InputError, match="schema of a census"):
        audit(swap("1/4"))
    with pytest.raises(InputError, match="no method"):
        audit(swap("1/4"), square(2), methods=("guess",))
    with pytest.raises(InputError, match="make no audit"):
        audit(swap("1/4"), square(2), runs=0)


def test_laws_sum_to_one() -> None:
    law = swap("1/4").exact_law(square(3))
    assert law is not None
    assert sum(law.values()) == Fraction(1)
