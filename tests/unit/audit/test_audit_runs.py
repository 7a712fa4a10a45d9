"""Runs against laws, noise of TopDown, and the command; statistical tests fail by chance with probability 1e-6 at most."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from planted import square
from stirred import Workload
from stirred.assess.audit import audit
from stirred.assess.audit.noise_tests import NoiseGroup, NoiseLaw, judge_group
from stirred.assess.audit.pairs import law_test
from stirred.assess.audit.sampling import Clock, Draws, count_draws
from stirred.census import Census
from stirred.chance import Key, discrete_gaussian
from stirred.cli.main import main
from stirred.languages import Language
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import read_content
from stirred.mechanisms.swap import (
    ImputedStay,
    NearPlaces,
    NoisyKey,
    NoVacuous,
    PermutationSwapping,
    UnitMatching,
    VaryingRates,
)
from stirred.mechanisms.topdown import TopDown

SWAP = {"swap": ["county"], "rate": "1/3"}
SIZED = {"match": ["size"], **SWAP}
LAWS = [
    PermutationSwapping(**SIZED),
    VaryingRates(**SWAP, by="tenure", rates={"b": "1/2"}),
    VaryingRates(**SWAP, rarity=["tenure"], rare="1/2"),
    ImputedStay(**SWAP, imputed="tenure", levels=["c"]),
    NoVacuous(**SWAP),
    NearPlaces(**SWAP, preference="3"),
    UnitMatching(**SIZED, loose=["size"], alpha="1/2"),
    NoisyKey(**SIZED, noisy="size", change="1/4"),
]


def few() -> Census:
    schema = {
        "geography": {"spine": ["county"]},
        "record": {
            "household": {
                "variables": {"county": list("abcd"), "tenure": list("abc"), "size": "1..2"},
            }
        },
    }
    return Census.of(
        schema, {"household": {"county": list("abcd"), "tenure": list("abcb"), "size": [1, 1, 2, 1]}}
    )


@pytest.mark.parametrize("mechanism", LAWS, ids=lambda mechanism: mechanism.name)
def test_copies_in_one_release_follow_the_exact_law(mechanism: Mechanism) -> None:
    """2,000 copies each: an exact binomial test of every output, with a union bound."""
    law = mechanism.exact_law(few())
    assert law is not None
    assert sum(law.values()) == 1
    seen = count_draws(mechanism, few(), key=Key.for_tests(5), runs=2000, clock=Clock(None))
    assert law_test(law, seen, alarm=1e-7).outcome == "pass"


def test_copies_stand_for_runs() -> None:
    """What single releases show, and what copies show, follow one law: both are compared with it."""
    mechanism = PermutationSwapping(swap=["county"], rate="1/2")
    law = mechanism.exact_law(square(3))
    assert law is not None
    single: dict[object, int] = {}
    for number in range(60):
        shown = read_content(mechanism.release(square(3), key=Key.for_tests(7).bind("single", number)))
        single[shown] = single.get(shown, 0) + 1
    assert law_test(law, Draws(single, 60), alarm=1e-7).outcome != "fail"  # type: ignore[arg-type]
    assert set(single) <= set(law)


def test_noise_is_judged_by_its_law() -> None:
    claimed = NoiseLaw("gaussian", 25.0)
    for variance, outcome in ((25, "pass"), (16, "fail"), (36, "fail")):
        noise = discrete_gaussian(Key.for_tests(3).stream("noise", str(variance)), Fraction(variance), 4000)
        found = judge_group(NoiseGroup(names=("q",), law=claimed, noise=noise), error=0.05, alarm=1e-7)
        assert found.test.outcome == outcome
    few_draws = NoiseGroup(names=("q",), law=claimed, noise=np.zeros(50, np.int64))
    assert judge_group(few_draws, error=0.05, alarm=1e-7).test.outcome == "unknown"


WORKLOAD = """name = "small"
title = "Households by tenure"
source = "made for these tests"
record = "household"
rho_squared = "1/2"
levels = ["state", "county"]
[[axis]]
name = "tenure"
labels = ["own", "rent"]
[axis.source]
cases = [{ tenure = ["own"] }, {}]
[[query]]
name = "total"
[[query]]
name = "detailed"
of = ["tenure"]
[level_shares]
state = "1/2"
county = "1/2"
[query_shares.state]
total = "1/2"
detailed = "1/2"
[query_shares.county]
total = "1/2"
detailed = "1/2"
[passes]
state = [["*"]]
county = [["*"]]
"""


def test_noise_of_topdown_and_what_it_spends() -> None:
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"variables": {"tenure": ["own", "rent"]}}},
    }
    homes = {"state": ["s"] * 15, "county": list("abc") * 5, "tenure": ["own", "rent", "own"] * 5}
    census = Census.of(schema, {"household": homes})
    mechanism = TopDown(workload=Workload.parse(WORKLOAD), replicates=0)
    found = mechanism.measured_noise(census, key=Key.for_tests(1))
    assert sum(one.loss for one in found) == Fraction(1, 2)
    assert {one.parameter for one in found} == {Fraction(8)}
    assert {one.noise.size for one in found} == {1, 2, 3, 6}
    assert any(one.noise.any() for one in found)


PLAN = """title = "four households"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = []
swap = ["county"]
rate = "1/4"
[publish]
microdata = true
"""
CENSUS = """name = "four"
[geography]
spine = ["county"]
[record.household]
files = ["homes.csv"]
[record.household.variables]
tenure = ["a", "b", "c", "d"]
"""


def test_the_command_prints_numbers_and_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    Path("census.toml").write_text(CENSUS)
    Path("homes.csv").write_text("county,tenure\nsecret-place,a\n")
    assert main(["audit", "plan.toml", "--runs", "500", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["claimed"] == pytest.approx(2.197225, abs=1e-6)
    assert found["exact"] == found["claimed"]
    assert 0 < found["observed_lower"] < found["exact"]
    assert found["verdict"] == "pass"
    assert "secret-place" not in json.dumps(found)
    assert main(["audit", "plan.toml", "--method", "sampled", "--runs", "50", "--require-pass"]) == 1
    assert "unknown" in capsys.readouterr().out


def test_linked_records_that_are_left_out_are_named() -> None:
    """The data sets have households alone; where the schema has persons too, the result says it."""
    schema = {
        "geography": {"spine": ["county"]},
        "record": {
            "household": {"id": "hid", "variables": {"county": list("ab"), "tenure": list("ab")}},
            "person": {"household": "hid", "variables": {"age": "0..9"}},
        },
    }
    tables = {
        "household": {"hid": [1, 2], "county": ["a", "b"], "tenure": ["a", "b"]},
        "person": {"hid": [1, 2], "age": [3, 4]},
    }
    swap = PermutationSwapping(match=[], swap=["county"], rate="1/2")
    found = audit(swap, Census.of(schema, tables), runs=200, records=2, methods=("exact",))
    assert found.left_out == ("person",)
    assert "no person records" in found.scope
    assert found.as_json()["left_out"] == ["person"]
    alone = audit(swap, few(), runs=200, records=2, methods=("exact",))
    assert (alone.left_out, alone.scope) == ((), "")
    german = Language.of("de")
    assert german.knows(found.sentence)
    assert german.translate(found.sentence) != found.sentence
