"""The promises of several mechanisms in one plan: exact sums, reading an earlier release, tables of released records."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.catalog import catalog
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.errors import PlanError
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.promise import cost_in_multiverse
from stirred.publish import parse
from stirred.publish.composition import PlanPromise, build_account, convert_comparable, state_promise
from stirred.publish.named_plans import Choices, find_named_plan
from stirred.publish.plan import Plan
from stirred.spec import Budget, Hamming, Multiplicative, NormalizedRenyi


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Census:
    place = tmp_path_factory.mktemp("composition")
    write_preset("demo", place, households=12)
    return read(place / "census.toml")


@pytest.fixture(scope="module")
def whole(census: Census) -> tuple[Plan, PlanPromise]:
    """The full presets: the synthetic census has no tribal areas, so places stand for them."""
    text = find_named_plan("das2020").text(Choices())
    for preset in ("ddhc-a-2020", "ddhc-b-2020"):
        text = text.replace(f'preset = "{preset}"', f'preset = "{preset}"\nregions = {{ AIANNH = "place" }}')
    plan = parse(text, folder=census.folder)
    return plan, state_promise(plan, census)


def test_the_full_presets_compose_to_the_catalogs_figures(whole: tuple[Plan, PlanPromise]) -> None:
    _, promise = whole
    published, proved = (
        convert_comparable(promise.published).fraction,
        convert_comparable(promise.whole).fraction,
    )
    assert published == catalog["das-2020"].rho_squared.fraction
    assert (
        convert_comparable(promise.bureau).fraction == catalog["das-2020-group-privacy"].rho_squared.fraction
    )
    assert proved == catalog["das-2020-proved"].rho_squared.fraction
    assert round(float(published or 0), 5) == 55.37504
    assert convert_comparable(promise.bureau).upper(5) == Decimal("57.88960")
    assert convert_comparable(promise.whole).upper(5) == Decimal("43.60112")
    # and inside the multiverse, where the population of whole states is measured though it is exact
    free = cost_in_multiverse(Workload.preset("pl94-persons")).free
    assert Budget.of((proved or 0) - free["state", "total"]).upper(5) == Decimal("42.77412")
    assert promise.whole.input_premetric == Hamming("person")
    assert promise.whole.output_premetric == NormalizedRenyi()


def test_each_product_adds_its_own_share(whole: tuple[Plan, PlanPromise]) -> None:
    plan, promise = whole
    shares = {share.label: share for share in promise.shares}
    assert list(shares) == ["pl", "dhc", "ddhc-a", "ddhc-b", "sdhc"]
    assert shares["dhc"].proved.fraction == Fraction(24811, 5000) + Fraction(15401, 2000)
    assert shares["ddhc-a"].counted.fraction == Fraction("4.944")
    assert shares["ddhc-b"].proved.fraction == 2 * Fraction("8.895302")
    assert shares["sdhc"].published.fraction == 2 * Fraction("1.257281")
    assert shares["sdhc"].bureau.fraction == 4 * Fraction("1.257281")
    assert shares["sdhc"].proved.fraction == Fraction("1.257281") / 2
    assert shares["ddhc-a"].proved.fraction == 2 * Fraction("4.944")
    total = sum((share.proved.fraction or Fraction(0) for share in promise.shares), Fraction(0))
    assert total == promise.whole.rho_squared.fraction
    ledger = build_account(plan, promise)
    assert ledger is not None
    assert ledger.total == promise.whole.budget
    assert [entry.budget.is_zero for entry in ledger.entries] == [False] * 5 + [True] * 4


def test_a_later_release_weakens_the_ledger(whole: tuple[Plan, PlanPromise]) -> None:
    plan, promise = whole
    ledger = build_account(plan, promise)
    assert ledger is not None
    later = ledger.spend("surname file", "d_Ham(person)", promise.parts[0].budget)
    assert later.total > ledger.total
    assert (promise.whole + promise.parts[0]).budget == later.total


def test_invariants_of_all_products_are_declared(whole: tuple[Plan, PlanPromise]) -> None:
    _, promise = whole
    for part in promise.parts:
        assert set(part.multiverse) <= set(promise.whole.multiverse)


def test_a_swapped_plan_promises_what_the_swap_promises(census: Census) -> None:
    plan = parse(find_named_plan("das2020").text(Choices(swapped=True, light=True)), folder=census.folder)
    promise = state_promise(plan, census)
    assert [step.source for step in plan.steps] == [None, 0, 0, 0, 0, 0]
    assert promise.whole == promise.parts[0]
    assert promise.whole.output_premetric == Multiplicative()
    assert [share.label for share in promise.shares] == ["swap"]


HEAD = 'title = "t"\ncensus = "census.toml"\n'
TOPDOWN = '[[mechanism]]\nname = "topdown"\nworkload = "pl94-persons"\nreplicates = 0\n'


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ('from = "pl"\n', "from in mechanism.topdown"),
        ('[[table]]\nname = "t"\nof = "pl"\nrecord_type = "person"\nby = ["state"]\n', "table t"),
        ('[[retabulation]]\nname = "profile"\nof = "pl"\n', "the retabulation profile"),
    ],
)
def test_a_label_that_nobody_has_is_refused(more: str, what: str) -> None:
    with pytest.raises(PlanError, match=what):
        parse(HEAD + TOPDOWN + more, folder=Path())


def test_two_equal_labels_are_refused() -> None:
    text = HEAD + TOPDOWN + 'label = "x"\n' + TOPDOWN + 'label = "x"\n' + TOPDOWN + 'from = "x"\n'
    with pytest.raises(PlanError, match="two \\[\\[mechanism\\]\\] entries are called x"):
        parse(text, folder=Path())


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(PlanError, match="no plan called das2021"):
        find_named_plan("das2021")
