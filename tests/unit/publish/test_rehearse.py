"""Tuning and rehearsing on a stand-in: targets are read, errors fall with the rate, intervals cover."""

from pathlib import Path

import pytest

from stirred import GaussianTables, Stirring
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.errors import InputError
from stirred.mechanisms.swap import PermutationSwapping
from stirred.publish import parse
from stirred.publish.tuning import Target, rehearse, tune

PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["size"]
swap = ["county"]
rate = "3/10"
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
"""


@pytest.fixture(scope="module")
def stand_in() -> Census:
    rows = 3000
    county = [f"c{i % 4}" for i in range(rows)]
    tenure = ["owned" if (i * 7919) % 10 < 2 + 2 * (i % 4) else "rented" for i in range(rows)]
    size = [1 + (i // 4) % 3 for i in range(rows)]
    table = {"household_id": list(range(rows)), "county": county, "tenure": tenure, "size": size}
    schema = {"geography": {"spine": ["county"]}, "record": {"household": {"id": "household_id"}}}
    return Census.of(schema, {"household": table})


def test_targets_are_read_as_people_write_them() -> None:
    assert Target.parse("mae county <= 3") == Target(metric="mae", by=("county",), limit=3.0)
    assert Target.parse("MAPE county x tenure ≤ 2.5 %").by == ("county", "tenure")
    with pytest.raises(InputError, match="cannot be read"):
        Target.parse("good numbers please")


def test_tuning_finds_the_highest_rate_within_the_target(stand_in: Census) -> None:
    psa = PermutationSwapping(match=["size"], swap=["county"], rate="1/20")
    target = Target.parse("mape county×tenure <= 8%")
    found = tune(stand_in, psa, target, runs=3)
    assert found.best.error <= target.limit
    worse = [trial for trial in found.trials if trial.setting > found.best.setting * 2]
    assert worse
    assert all(trial.error > target.limit and trial.budget < found.best.budget for trial in worse)
    with pytest.raises(InputError, match="no rate that was tried reaches"):
        tune(stand_in, psa, Target.parse("mape county×tenure <= 0.001%"), runs=2)


def test_rehearsed_intervals_cover(stand_in: Census) -> None:
    found = rehearse(parse(PLAN, folder=Path()), stand_in, runs=60)
    row = found.filter(found["size"] == "all").rows(named=True)[0]
    # 60 independent runs at 95 %: P(Bin(60, 0.95) ≤ 45) < 2e-7, even if the cells of a run moved as one
    assert row["coverage"] > 0.75
    assert row["bias"] == pytest.approx(0.0, abs=1e-9)  # the table's total is an invariant
    assert row["MAE"] > 0


def test_a_mechanism_that_releases_tables_alone_is_tuned() -> None:
    made = synthesise("demo", households=60)
    stand_in = Census.of(made.schema, made.tables)
    mechanism = GaussianTables(tables=[["state", "tenure"]], rho_squared="1")
    found = tune(stand_in, mechanism, Target.parse("mae state×tenure <= 4"), runs=1)
    assert found.best.error <= 4


def test_the_setting_that_is_turned_can_be_chosen(stand_in: Census) -> None:
    """Stirring has two: a smaller loss moves more records, so the smallest within the target is found."""
    stirring = Stirring(match=["size"], swap=["county"], rate="1/20", accept_reversal=["tenure"])
    target = Target.parse("mape county×tenure <= 8%")
    found = tune(stand_in, stirring, target, turn="loss", runs=2)
    assert found.name == "loss"
    assert found.best.error <= target.limit
    smaller = [trial for trial in found.trials if trial.setting < found.best.setting]
    assert smaller
    assert all(trial.error > target.limit and trial.budget < found.best.budget for trial in smaller)
    with pytest.raises(InputError, match="no setting 'share' to turn"):
        tune(stand_in, stirring, target, turn="share")
