"""The entry functions: what is attacked, what is public, what is unknown, and the counterfactual."""

from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred import CellKey
from stirred.assess.attack import attack, count_uniques, measure_uniques
from stirred.assess.attack.linkage import (
    LinkVariables,
    choose_donors,
    choose_targets,
    group_people,
    leave_one_out,
    replace_secrets,
)
from stirred.assess.attack.reconstruction import AREA_SCHEMA
from stirred.assess.attack.records import EXPOSED_GROUP, reconstruction_measures
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.errors import InputError
from stirred.frames import frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping

RECALL = "recall of reidentification, released records"
NAMES = ["block", "block_group", "sex", "age", "race", "hispanic"]


@cache
def census() -> Census:
    made = synthesise("demo", households=300)
    return Census.of(made.schema, made.tables)


def swapped(one: Census, rate: str = "1/2") -> Release:
    psa = PermutationSwapping(match=["state", "size"], swap=["county", "tract", "block"], rate=rate)
    return psa.release(one, key=Key.for_tests(1))


def test_an_attack_on_records_and_on_their_tables() -> None:
    found = attack(swapped(census()), census(), areas=10, again=swapped, left_out=20)
    assert {"reidentification", "reidentification from tables", "reconstructed areas"} <= set(found.tables)
    recall = found.measure(RECALL, "all records")
    assert recall.value is not None
    assert recall.low is not None
    assert recall.high is not None
    assert recall.low <= recall.value <= recall.high
    assert {b.name for b in recall.baselines} == {
        "modal guess",
        "proportional guess",
        "majority of the address",
        "attack on the truth",
    }
    ceiling = next(b.value for b in recall.baselines if b.name == "attack on the truth")
    assert recall.value < ceiling
    public = {m.name for m in found.measures if m.public}
    assert public == {
        "areas with one reconstruction only",
        "records that two reconstructions can place differently",
    }
    excess = found.measure("excess of an attack over the same without the person")
    assert excess.kind == "relative"
    assert {m.kind for m in found.measures if m is not excess} == {"absolute"}
    assert "reidentification" not in str(found.tables["reconstructed areas"].columns)


def test_what_cannot_be_attacked_is_unknown_and_what_was_named_wrongly_is_refused() -> None:
    plain = Census.of(
        {"geography": {"spine": ["county"]}},
        {
            "household": {
                "county": ["a", "a", "b"] * 4,
                "size": [1, 1, 2, 2] * 3,
                "tenure": ["o", "r", "o"] * 4,
            }
        },
    )
    release = PermutationSwapping(match=["size"], swap=["county"], rate="1/2").release(
        plain, key=Key.for_tests(1)
    )
    unknown = attack(release, plain).measures
    assert [m.value for m in unknown] == [None]
    assert "known=" in unknown[0].reason
    named = attack(release, plain, known=["size"], secret=["tenure"])
    assert named.measure(RECALL, "all records").value is not None
    with pytest.raises(InputError, match="has no tenur"):
        attack(release, plain, known=["size"], secret=["tenur"])
    with pytest.raises(InputError, match="an attacker who knows county cannot want it"):
        attack(release, plain, known=["size"], secret=["county"])
    with pytest.raises(InputError, match="the release has no tract"):
        attack(release, plain, area="tract")
    with pytest.raises(InputError, match="the release has no table t"):
        attack(release, plain, known=["size"], secret=["tenure"], tables=["t"])


def test_tables_with_bounded_noise_are_reconstructed() -> None:
    draws = np.random.default_rng(1)
    people = Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {"id": "id"}}},
        {
            "household": {
                "id": list(range(48)),
                "county": [f"c{i // 8}" for i in range(48)],
                "size": draws.integers(1, 4, 48).tolist(),
                "tenure": [("own", "rent")[i] for i in draws.integers(0, 2, 48)],
            }
        },
    )
    tables = [["county", "size"], ["county", "tenure"], ["county", "size", "tenure"]]
    release = CellKey(tables=tables, D=2, V=1, without_guarantee="a test").release(
        people, key=Key.for_tests(1)
    )
    found = attack(release, people, known=["size"], secret=["tenure"], bound=2, areas=None)
    areas = found.tables["reconstructed areas"]
    assert areas["status"].to_list() == ["solved"] * 6
    assert areas["unique"].null_count() == 6  # a number that may be off proves nothing
    only = found.measure("areas with one reconstruction only")
    assert only.value is None
    assert (only.low, only.high) == (0.0, 1.0)
    assert (
        found.measure("recall of reidentification, records reconstructed from tables", "all records").value
        is not None
    )


def test_unique_records_with_place_and_without() -> None:
    one = census()
    release = swapped(one)
    people = frame_of(one.table("person", ["block", "sex", "age"]))
    alone = people.group_by("block", "sex", "age").len().filter(pl.col("len") == 1).height
    measure = measure_uniques(one, ["block", "sex", "age"], "person")
    assert measure.value == alone
    assert not measure.public
    assert measure_uniques(release, ["block", "sex", "age"], "person").public
    everything = count_uniques(release, [None, ["sex"]], "person")
    assert "household_id" not in everything["by"][0]
    assert everything["unique"][0] > 0.9 * everything["records"][0]
    near, far = measure_uniques(release), measure_uniques(release, place=False)
    assert near.value is not None
    assert far.value is not None
    assert far.value < near.value
    assert "block" not in far.about
    with pytest.raises(InputError, match="no variable is left"):
        measure_uniques(release, ["block"], place=False)


def test_undecided_areas_make_an_interval_instead_of_a_value() -> None:
    rows = [
        {"area": str(i), "records": 4, "unique": u, "solvar_low": 0.0, "solvar_high": h}
        for i, (u, h) in enumerate([(True, 0.0), (None, 0.5), (False, 0.0)])
    ]
    areas = pl.DataFrame(rows, schema_overrides=AREA_SCHEMA)
    one, spread = reconstruction_measures(areas, whole=True)
    assert one.value is None
    assert (one.low, one.high) == (1 / 3, 2 / 3)
    assert "1 of 3 areas" in one.reason
    assert spread.value is None
    assert (spread.low, spread.high) == (0.0, pytest.approx(1 / 6))


def test_a_census_without_a_person_differs_in_what_that_person_told() -> None:
    variables = LinkVariables(area="block", parent="block_group")
    truth = variables.add_keys(frame_of(census().table("person", NAMES)))
    exposed = group_people(truth)[EXPOSED_GROUP]
    targets = choose_targets(truth, exposed, most=50, seed=1)
    assert exposed[targets].all()
    assert truth["area"].gather(targets).n_unique() == targets.size > 3
    donors = choose_donors(truth, targets, seed=1)
    assert (truth["area"].gather(targets) == truth["area"].gather(donors)).all()
    changed = replace_secrets(census(), "person", variables.secret, targets, donors)
    before, after = (frame_of(one.table("person")) for one in (census(), changed))
    for name in before.columns:
        if name not in variables.secret:
            assert before[name].equals(after[name])
    moved = before.select(variables.secret).hash_rows() != after.select(variables.secret).hash_rows()
    assert set(np.flatnonzero(moved.to_numpy())) <= set(targets.tolist())

    def exact(one: Census) -> pl.DataFrame:
        return variables.add_keys(frame_of(one.table("person", NAMES)))

    found = leave_one_out(
        census(), exact, truth, targets, record_type="person", secret=variables.secret, seed=1
    )
    assert found.included.all()  # the truth itself is published
    assert found.left_out.mean() < 0.5
    assert found.excess == 1 - found.left_out.mean()
    low, high = found.interval()
    assert low <= found.excess <= high

    def nothing(one: Census) -> pl.DataFrame:
        return exact(census())  # a release that does not depend on the census has no excess

    assert (
        leave_one_out(
            census(), nothing, truth, targets, record_type="person", secret=variables.secret, seed=1
        ).excess
        == 0
    )


def test_a_release_of_other_tables_says_that_it_has_none() -> None:
    release = swapped(census())
    bare = Release(
        mechanism="none",
        parameters={},
        specification=release.specification,
        tables={"totals": pa.table({"block": ["a"], "sex": [1], "race": [1], "count": [1]})},
        schema=release.schema,
    )
    found = attack(bare, census(), known=["sex"], secret=["race"], record_type="person")
    assert found.measure("areas with one reconstruction only").value == 1
