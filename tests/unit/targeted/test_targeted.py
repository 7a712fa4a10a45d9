"""The properties of recordSwap's own tests: rates, whole households, similar partners, and risky ones moved."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import save
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InputError, PrivacyError
from stirred.frames import frame_of
from stirred.mechanisms.swap import SwapLog, TargetedSwapping, record_swap, swap_log

KEY = Key.for_tests(2021)
SPINE = ["nuts1", "nuts2", "lau"]


def people(households: int = 600, *, seed: int = 1, uneven: bool = True) -> Census:
    """Households of 1 to 4 persons in two nuts1, four nuts2 and twelve lau."""
    rng = np.random.default_rng(seed)
    lau = rng.integers(0, 12, households)
    size = rng.integers(1, 5, households)
    owner = np.repeat(np.arange(households), size)
    ages = rng.integers(0, 6, owner.size) if uneven else np.zeros(owner.size, int)
    homes = pl.DataFrame(
        {
            "hid": np.arange(households) * 3 + 1,
            "nuts1": (lau // 6).astype(str),
            "nuts2": (lau // 3).astype(str),
            "lau": np.char.add("l", lau.astype(str)),
            "grid": np.char.add("g", (lau * 10 + rng.integers(0, 3, households)).astype(str)),
            "size": size,
            "htype": rng.integers(0, 3, households),
            "tenure": rng.choice(["own", "rent"], households),
        }
    )
    persons = pl.DataFrame({"hid": owner * 3 + 1, "age": ages, "sex": rng.integers(0, 2, owner.size)})
    schema = {
        "geography": {"spine": SPINE},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
    }
    return Census.of(schema, {"household": homes, "person": persons})


def swap(**settings: Any) -> TargetedSwapping:
    usual: dict[str, Any] = {
        "hierarchy": SPINE,
        "similar": [["size", "htype"], ["size"]],
        "carry_along": ["grid"],
        "risk_variables": ["age", "sex"],
        "without_guarantee": "a test",
    }
    return TargetedSwapping(**(usual | settings))


def at_random(**settings: Any) -> TargetedSwapping:
    return swap(k_anonymity=0, risk_variables=[], **settings)


def logged(mechanism: TargetedSwapping, census: Census, key: Key = KEY) -> SwapLog:
    return swap_log(mechanism, census, key=key)


def homes(census: Census) -> pl.DataFrame:
    return frame_of(census.table("household"))


@pytest.mark.parametrize("rate", ["1/20", "1/10", "1/4"])
def test_exactly_the_rate_of_households_moves(rate: str) -> None:
    census = people()
    log = logged(at_random(swaprate=rate), census)
    assert log.moved == 600 * Fraction(rate)
    assert log.summary()["rate of households"] == float(Fraction(rate))


def test_partners_exchange_their_whole_place_and_agree_on_a_profile() -> None:
    census = people()
    log = logged(swap(swaprate="1/5"), census)
    frame = homes(census)
    pairs = frame_of(log.pairs).join(frame, left_on="household", right_on="hid")
    pairs = pairs.join(frame, left_on="partner", right_on="hid", suffix="_of_partner")
    assert (pairs["size"] == pairs["size_of_partner"]).all()
    first = pairs.filter(pl.col("rule") == "size × htype")
    assert first.height
    assert (first["htype"] == first["htype_of_partner"]).all()
    for level in SPINE:
        crossed = pairs.filter(pl.col("level") == level)
        assert (crossed[level] != crossed[f"{level}_of_partner"]).all()
    turned = pairs.select(household="partner", partner="household")
    assert turned.sort("household").equals(pairs.select("household", "partner").sort("household"))


def test_the_release_is_what_the_log_says() -> None:
    """With a mark on each household: its place is its partner's old place, nothing else changed, finer codes moved along."""
    census = people(200)
    marked = homes(census).with_columns(mark=pl.col("hid"))
    census = Census.of(census.schema, {"household": marked, "person": census.table("person")})
    mechanism = swap(swaprate="1/5", release_identifiers={"mark": "a test"}, accept_reversal=["mark"])
    released = mechanism.release(census, key=KEY).to_polars("household")
    pairs = dict(frame_of(logged(mechanism, census).pairs).select("household", "partner").iter_rows())
    before = {row["hid"]: row for row in marked.iter_rows(named=True)}
    assert pairs
    for row in released.iter_rows(named=True):
        own, place = before[row["mark"]], before[pairs.get(row["mark"], row["mark"])]
        assert {name: row[name] for name in (*SPINE, "grid")} == {
            name: place[name] for name in (*SPINE, "grid")
        }
        assert all(row[name] == own[name] for name in ("size", "htype", "tenure"))


def test_persons_stay_with_their_household() -> None:
    census = people(300)
    release = swap(swaprate="1/4").release(census, key=KEY)
    persons, released = release.to_polars("person"), release.to_polars("household")
    assert (
        persons.group_by("hid")
        .len()
        .join(released, on="hid")
        .filter(pl.col("len") != pl.col("size"))
        .is_empty()
    )
    assert any("person" in check.invariant and check.kept for check in release.checks)


def risk_levels(census: Census, k: int) -> dict[int, str]:
    """Who must cross which level, counted with a data frame."""
    joined = frame_of(census.table("person")).join(homes(census), on="hid")
    found: dict[int, str] = {}
    for level in reversed(SPINE):
        above = SPINE[: SPINE.index(level) + 1]
        rare = joined.with_columns(n=pl.len().over([*above, "age", "sex"])).filter(pl.col("n") < k)
        found |= dict.fromkeys(rare["hid"].to_list(), level)
    return found


@pytest.mark.parametrize("k", [2, 6, 14])
def test_the_risky_move_across_the_right_level(k: int) -> None:
    census = people(300)
    must = risk_levels(census, k)
    mechanism = swap(k_anonymity=k, swaprate="0")
    log = logged(mechanism, census)
    frame = homes(census)
    place = {row["hid"]: row for row in frame.iter_rows(named=True)}
    pairs = dict(frame_of(log.pairs).select("household", "partner").iter_rows())
    stayed = [hid for hid in must if hid not in pairs]
    assert len(stayed) == log.without_partner
    for hid, level in must.items():
        if hid in pairs:
            assert place[hid][level] != place[pairs[hid]][level]


def test_a_larger_k_swaps_not_less() -> None:
    census = people(400)
    moved = [logged(swap(k_anonymity=k, swaprate="0"), census).moved for k in (2, 4, 8)]
    assert moved == sorted(moved)
    assert moved[0] < moved[-1]


def test_the_rate_is_a_minimum() -> None:
    census = people(400)
    assert logged(swap(k_anonymity=8, swaprate="1/20"), census).moved > 400 / 20


def test_given_risks_decide_and_are_not_published() -> None:
    census = people(300)
    rng = np.random.default_rng(4)
    risky = homes(census).with_columns(
        r1=pl.Series(rng.random(300) / 4), r2=pl.Series(rng.random(300) / 2), r3=pl.Series(rng.random(300))
    )
    census = Census.of(census.schema, {"household": risky, "person": census.table("person")})
    mechanism = swap(
        k_anonymity=0, risk_variables=[], risk=["r1", "r2", "r3"], risk_threshold="0.9", swaprate="0"
    )
    log = logged(mechanism, census)
    must = set(risky.filter(pl.col("r3") > 0.9)["hid"])
    chosen = frame_of(log.pairs)
    assert must - set(chosen["household"]) == set() or log.without_partner
    assert set(chosen.filter("selected")["household"]) <= must
    assert not {"r1", "r2", "r3"} & set(mechanism.release(census, key=KEY).to_polars("household").columns)


def test_risks_of_persons_count_as_the_largest_of_their_household() -> None:
    census = people(300)
    rng = np.random.default_rng(5)
    persons = frame_of(census.table("person"))
    persons = persons.with_columns(
        **{f"p{i}": pl.Series(rng.random(persons.height) * 0.3 * i) for i in (1, 2, 3)}
    )
    of_persons = Census.of(census.schema, {"household": homes(census), "person": persons})
    largest = persons.group_by("hid").agg(pl.col("p1", "p2", "p3").max())
    of_homes = Census.of(
        census.schema,
        {"household": homes(census).join(largest, on="hid"), "person": census.table("person")},
    )
    mechanism = swap(
        k_anonymity=0, risk_variables=[], risk=["p1", "p2", "p3"], risk_threshold="0.85", swaprate="1/50"
    )
    by_home, by_person = (logged(mechanism, some) for some in (of_homes, of_persons))
    must = set(largest.filter(pl.col("p3") > 0.85)["hid"])
    for log in (by_home, by_person):
        moved = frame_of(log.pairs)
        assert len(must - set(moved["household"])) == log.without_partner < len(must)
    made = mechanism.release(of_persons, key=KEY)
    assert not {"p1", "p2", "p3"} & {*made.to_polars("person").columns, *made.to_polars("household").columns}
    assert made.to_polars("person").height == persons.height


def test_no_released_order_depends_on_the_risk_of_a_person() -> None:
    """Two censuses that differ in the risks of equal persons: members of a household stand in the same order."""
    census = people(60)
    persons = frame_of(census.table("person"))
    found = []
    for turn in (False, True):
        risk = pl.int_range(persons.height).cast(pl.Float64) / 1000
        marked = persons.with_columns(p=risk.reverse() if turn else risk)
        some = Census.of(census.schema, {"household": homes(census), "person": marked})
        mechanism = TargetedSwapping(
            hierarchy=["lau"],
            similar=["size"],
            carry_along=["grid"],
            risk=["p"],
            risk_threshold="9",
            swaprate="1/5",
        )
        group = mechanism.frame(some).members[0]
        codes = group.codes(group.words)
        found.append(np.stack([codes["age"], codes["sex"]]))
    assert (found[0] == found[1]).all()


def test_a_matrix_of_risks_for_a_flat_file() -> None:
    census = people(150)
    flat = frame_of(census.table("person")).join(homes(census), on="hid")
    risk = np.zeros((flat.height, 3))
    rare = flat["hid"].to_numpy() == flat["hid"][0]
    risk[np.flatnonzero(rare)[:1], 0] = 1.0  # one member: the whole household must leave its nuts1
    found = []
    for given in (risk, pl.DataFrame(risk, schema=SPINE).select(*reversed(SPINE)), risk.tolist()):
        made = record_swap(
            flat.with_columns(mark=pl.when(pl.Series(rare)).then(1).otherwise(0)), hid="hid", hierarchy=SPINE,
            similar=[["size"]], carry_along=["grid"], risk=given, risk_threshold="1/2", swaprate="0", key=KEY,
            accept_reversal=["mark"],
        )  # fmt: skip
        assert not {name for name in made.columns if name.startswith("risk")}
        found.append(set(made.filter(pl.col("mark") == 1)["nuts1"].cast(pl.String)))
    assert found == [{"1" if flat["nuts1"][0] == "0" else "0"}] * 3
    with pytest.raises(InputError, match="do not fit the file"):
        record_swap(flat, hid="hid", hierarchy=SPINE, similar=["size"], risk=risk[:, :2], key=KEY)
    with pytest.raises(InputError, match="does not hold risks"):
        record_swap(flat.drop("grid"), hid="hid", hierarchy=SPINE, similar=["size"], risk=risk - 1, key=KEY)


def test_a_risk_of_zero_is_never_selected() -> None:
    census = people(200)
    none = homes(census).with_columns(r=pl.when(pl.col("tenure") == "own").then(0.0).otherwise(0.2))
    census = Census.of(census.schema, {"household": none, "person": census.table("person")})
    mechanism = TargetedSwapping(
        hierarchy=["lau"], similar=["size"], risk=["r"], risk_threshold="0.5", swaprate="1/5", carry_along=["grid"],
    )  # fmt: skip
    chosen = frame_of(logged(mechanism, census).pairs).filter("selected")
    assert 15 <= chosen.height <= 20  # an area may run out of households with a risk
    assert set(chosen.join(none, left_on="household", right_on="hid")["tenure"]) == {"rent"}


def test_what_all_profiles_have_stays_exact_and_what_one_has_may_not() -> None:
    census = people()
    mechanism = swap(swaprate="1/2")
    log = logged(mechanism, census)
    assert "lau × size" in log.exact
    assert log.tables["lau × tenure"] > 0
    assert sum(log.rules.values()) * 2 == log.moved
    release = mechanism.release(census, key=KEY)
    by = ["lau", "size"]
    before = homes(census).group_by(by).len().sort(by)
    assert (
        release.to_polars("household")
        .with_columns(pl.col("lau").cast(pl.String))
        .group_by(by)
        .len()
        .sort(by)
        .equals(before)
    )
    assert mechanism.keeps(["lau", "size"], census.schema)
    assert not mechanism.keeps(["lau", "htype"], census.schema)


def test_the_order_of_the_file_and_the_parts_change_nothing() -> None:
    census = people(300)
    turned = Census.of(
        census.schema,
        {"household": homes(census).reverse(), "person": frame_of(census.table("person")).reverse()},
    )
    first, second = (swap().release(some, key=KEY) for some in (census, turned))
    assert first.to_arrow("household").equals(second.to_arrow("household"))
    assert first.to_arrow("person").equals(second.to_arrow("person"))


class Nothing(Local):
    """An engine without memory."""

    def fits(self, size: int) -> bool:
        del size
        return False


def test_persons_risks_need_memory() -> None:
    with pytest.raises(InputError, match="risk of age cannot be counted"):
        swap().release(people(50), key=KEY, engine=Nothing())


def test_without_a_reason_it_is_not_published(tmp_path: Any) -> None:
    census = people(200)
    made = swap(without_guarantee="").release(census, key=KEY)
    with pytest.raises(PrivacyError):
        save(made, tmp_path / "packet")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"risk_variables": [], "k_anonymity": 3}, "nothing to count"),
        ({"risk": ["size"]}, "1 columns of risks are given for 3 levels"),
        ({"similar": [["lau"]]}, "is in a similarity profile and moves"),
        ({"similar": ["size", ["htype"]]}, "similar is not as it should be"),
        ({"k_anonymity": -1}, "greater than or equal to 0"),
        ({"swaprate": "3/2"}, "outside"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        swap(**settings)


def test_nobody_swapped_is_refused() -> None:
    with pytest.raises(PrivacyError, match="swaps nobody"):
        at_random(swaprate="0").release(people(50), key=KEY)
