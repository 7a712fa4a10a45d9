"""Dangerous releases are refused by plan, command and Python, leave nothing, and go out only where a setting names them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.census import Census, read
from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import InputError, PrivacyError
from stirred.mechanisms.swap import (
    ImputedStay,
    NearPlaces,
    NoisyKey,
    NoisyTables,
    NoVacuous,
    PermutationSwapping,
    UnitMatching,
    VaryingRates,
)
from stirred.mechanisms.swap import guards as guards_module
from stirred.mechanisms.swap.guards import STANDING_GUARD, StandingRecords
from stirred.publish import load, run
from stirred.publish.check import explain
from stirred.publish.run import execute
from weighted_survey import SCHEMA, SWAP, households, persons, put_back, written

KEY = Key.for_tests(3)
ROWS = 400
NAMED = {"match": SWAP["match"], "swap": SWAP["swap"]}
ON_PURPOSE = {"release_identifiers": {"weight": "a test", "school": "a test"}}

CENSUS = """name = "homes"
[geography]
spine = ["county"]
type = "integer"
[record.household]
files = ["household.parquet"]
"""


def homes(**more: object) -> pl.DataFrame:
    """400 households in five counties, with columns that name each of them: nothing in the schema says so."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "household_id": rng.permutation(ROWS) + 5_000,
            "hid": [f"H{i:05d}" for i in rng.permutation(ROWS)],
            "county": rng.integers(0, 5, ROWS),
            "size": rng.integers(1, 4, ROWS),
            "rooms": rng.integers(1, 9, ROWS),
            "income": np.round(rng.gamma(2.0, 20_000.0, ROWS), 2),
            **more,
        }
    )


def folder_of(path: Path, frame: pl.DataFrame, text: str = CENSUS) -> Path:
    frame.write_parquet(path / "household.parquet")
    (path / "census.toml").write_text(text)
    return path


def plan(path: Path, *, match: list[str], swap: list[str], more: str = "") -> Path:
    text = f'title = "t"\ncensus = "census.toml"\n[[mechanism]]\nname = "permutation-swapping"\nmatch = {match}\n'
    text += f'swap = {swap}\nrate = "1/10"\n{more}\n[assess]\nutility = false\n'
    (path / "plan.toml").write_text(text.replace("'", '"'))
    return path / "plan.toml"


def listed(path: Path) -> list[str]:
    return sorted(str(item.relative_to(path)) for item in path.rglob("*"))


def refused_everywhere(
    path: Path, words: str, capsys: pytest.CaptureFixture[str], *, match: list[str], swap: list[str]
) -> str:
    """Plan, plan check, command and Python refuse with what, why and fix, and leave the folder as it was."""
    plan(path, match=match, swap=swap)
    before = listed(path)
    out = str(path / "packet")
    given = ["--match", *match, "--swap", *swap, "--rate", "1/10"]
    told = ""
    for command in (
        ["run", str(path / "plan.toml"), "--out", out],
        ["plan", "check", str(path / "plan.toml")],
        ["swap", str(path), *given, "--out", out],
    ):
        assert main(command) == 2, command
        told = capsys.readouterr().err
        assert words in told
        assert "why:" in told
        assert "fix:" in told
        assert listed(path) == before
    mechanism = PermutationSwapping(match=match, swap=swap, rate="1/10")
    (path / "out").mkdir()
    with pytest.raises(PrivacyError, match=words):
        mechanism.release(read(path / "census.toml"), key=KEY, out=path / "out")
    assert listed(path / "out") == []
    (path / "out").rmdir()
    with pytest.raises(PrivacyError, match=words):
        run(load(path / "plan.toml"), path / "packet", key=KEY)
    assert listed(path) == before
    return told


# ---- identifiers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["household_id", "hid", "income"])
def test_identifiers_are_refused(column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = {"household_id", "hid", "income"} - {column}
    folder_of(tmp_path, homes().drop(others))
    told = refused_everywhere(
        tmp_path, f"{column} would identify records", capsys, match=["size"], swap=["county"]
    )
    assert "400 of 400 household records have a value of their own" in told
    assert f'release_identifiers = {{ {column} = "why" }}' in told
    assert not any(str(value) in told for value in homes()[column][:50])


def test_the_corrected_run_starts_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of(tmp_path, homes())
    given = ["swap", str(tmp_path), "--match", "size", "--swap", "county", "--rate", "1/10", "--out"]
    out = str(tmp_path / "packet")
    assert main([*given, out]) == 2
    assert (
        main([*given, out, "--drop", "hid", "household_id", "--release-identifiers", "income=a register"])
        == 0
    )
    assert "identifying columns released on purpose: income" in capsys.readouterr().out
    receipt = json.loads((tmp_path / "packet" / "public" / "receipt.json").read_text())
    first = receipt["mechanisms"][0]["guards"][0]
    assert first["accepted"] is True
    assert "400 of 400" in first["finding"]
    assert receipt["mechanisms"][0]["settings"]["release_identifiers"] == {"income": "a register"}
    report = (tmp_path / "packet" / "public" / "report.html").read_text()
    assert "identifying columns released on purpose: income" in report


def test_hold_does_not_accept_it_and_a_name_that_is_not_released_is_refused() -> None:
    census = Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {}}}, {"household": homes()}
    )
    settings = {"match": ["size"], "swap": ["county"], "rate": "1/10"}
    with pytest.raises(PrivacyError, match="income would identify"):
        PermutationSwapping(**settings, hold=["income", "rooms"]).refuse(census)
    named = PermutationSwapping(
        **settings, hold=["income", "rooms"], release_identifiers={"income": "a test"}
    )
    assert named.release(census, key=KEY).guards[0].accepted
    with pytest.raises(PrivacyError, match="income would identify"):
        PermutationSwapping(**settings, drop=["hid", "household_id"]).refuse(census)
    with pytest.raises(InputError, match="release_identifiers names incme"):
        PermutationSwapping(**settings, release_identifiers={"incme": "a test"}).refuse(census)
    for unreasoned in (["income"], {"income": " "}, "income"):
        with pytest.raises(InputError, match="reason"):
            PermutationSwapping(**settings, release_identifiers=unreasoned)
    with pytest.raises(InputError, match="accept_reversal names incme"):
        PermutationSwapping(**settings, accept_reversal=["incme"]).refuse(census)
    with pytest.raises(InputError, match="should be a valid list"):
        PermutationSwapping(**settings, accept_reversal="income")


def test_only_variables_of_a_table_count_where_no_records_go_out() -> None:
    census = Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {}}}, {"household": homes()}
    )
    settings = {"match": ["size"], "swap": ["county"], "rate": "1/10", "microdata": False}
    PermutationSwapping(**settings, tables=[["county", "rooms"]]).refuse(census)
    with pytest.raises(PrivacyError, match="hid would identify"):
        PermutationSwapping(**settings, tables=[["county", "hid"]]).refuse(census)


def test_persons_are_looked_at_too() -> None:
    frame = homes().drop("household_id", "income")
    people = pl.DataFrame(
        {"hid": frame["hid"], "name": [f"n{i}" for i in range(ROWS)], "age": np.arange(ROWS) % 60}
    )
    document = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid"}},
    }
    census = Census.of(document, {"household": frame, "person": people})
    settings = {"match": ["size"], "swap": ["county"], "rate": "1/10"}
    with pytest.raises(PrivacyError, match="name would identify"):
        PermutationSwapping(**settings).release(census, key=KEY)
    PermutationSwapping(**settings, carry=False).release(census, key=KEY)
    PermutationSwapping(**settings, drop=["name"]).release(census, key=KEY)


def test_a_link_of_persons_that_are_swapped_without_their_households() -> None:
    """Five persons to a household: no value is unique, and still each names a household."""
    people = pl.DataFrame(
        {"serial": np.arange(8_000) // 4, "county": np.arange(8_000) % 7, "age": np.arange(8_000) % 60}
    )
    census = Census.of({"geography": {"spine": ["county"]}, "record": {"person": {}}}, {"person": people})
    with pytest.raises(PrivacyError, match="it has 2,000 different values"):
        PermutationSwapping(swap=["county"], rate="1/10", resolution="person").refuse(census)


# ---- columns that undo the swap ----------------------------------------------------------------------------------


def test_weights_of_areas_are_refused_however_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "school")
    told = refused_everywhere(
        tmp_path, "weight would identify records", capsys, match=SWAP["match"], swap=SWAP["swap"]
    )
    assert "580 different values" in told
    plan(tmp_path, **NAMED, more='release_identifiers = { weight = "a test" }')
    assert main(["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "packet")]) == 2
    told = capsys.readouterr().err
    assert "weight would undo the swap" in told
    assert "change the settings" in told
    assert "each draw is a release of its own" in told


def test_before_and_after_on_a_survey_like_ghanas(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = households()
    census = Census.of(SCHEMA, {"household": truth, "person": persons(truth)})
    assert truth.height == 8_700
    with monkeypatch.context() as old:  # without the guard, as it was
        old.setattr(guards_module, "measure_reversals", lambda *_, **__: ())
        before = PermutationSwapping(**SWAP, **ON_PURPOSE).release(census, key=KEY)
    assert put_back(truth, before.to_polars("household")) == (8_700, 8_700)
    for kept, found in (([], "school, weight"), (["weight"], "school"), (["school"], "weight")):
        named = {name: "a test" for name in ON_PURPOSE["release_identifiers"] if name not in kept}
        with pytest.raises(PrivacyError, match=f"^{found} would undo"):
            PermutationSwapping(**SWAP, drop=kept, release_identifiers=named).release(census, key=KEY)
    after = PermutationSwapping(**SWAP, drop=["weight", "school"]).release(census, key=KEY)
    (guard,) = [guard for guard in after.guards if guard.name == guards_module.REVERSAL_GUARD]
    assert not guard.accepted
    assert all(int(row[2].rstrip("%")) <= int(row[3].rstrip("%")) + 3 for row in guard.rows)
    on_purpose = PermutationSwapping(**SWAP, accept_reversal=["weight", "school"], **ON_PURPOSE).release(
        census, key=KEY
    )
    assert on_purpose.guards[2].accepted
    assert "weight guesses ea right for 90%" in on_purpose.guards[2].finding


@pytest.mark.parametrize("rate", ["1/50", "1/2", "3/4"])
def test_it_is_found_at_every_rate(rate: str) -> None:
    census = Census.of(
        {"geography": SCHEMA["geography"], "record": {"household": SCHEMA["record"]["household"]}},
        {"household": households()},
    )
    with pytest.raises(PrivacyError, match="weight would undo"):
        PermutationSwapping(**{**SWAP, "rate": rate}, release_identifiers={"weight": "a test"}).release(
            census, key=KEY
        )


def test_a_code_of_a_coarser_place_is_found_and_so_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A postcode tells the district, not the block; the district is a swapped variable too."""
    rng = np.random.default_rng(2)
    block = rng.integers(0, 300, 6_000)
    data = {
        "hid": np.arange(6_000),
        "district": block // 30,
        "block": block,
        "size": rng.integers(1, 4, 6_000),
        "postcode": 7_000 + block // 30 * 3 + rng.integers(0, 3, 6_000),
    }
    document = {"geography": {"spine": ["district", "block"]}, "record": {"household": {"id": "hid"}}}
    census = Census.of(document, {"household": pl.DataFrame(data)})
    settings = {"match": ["size"], "swap": ["district", "block"], "rate": "1/10"}
    with pytest.raises(PrivacyError, match="postcode guesses district"):
        PermutationSwapping(**settings).release(census, key=KEY)
    table = {"tables": [["district", "postcode"]], "microdata": False}
    with pytest.raises(PrivacyError, match="postcode guesses district"):
        PermutationSwapping(**settings, **table).release(census, key=KEY)
    for sample in (500, 2_000):  # of a file that is too large to be measured whole
        monkeypatch.setattr(guards_module, "RECORDS_SAMPLED", sample)
        for more in ({}, table):
            with pytest.raises(PrivacyError, match="postcode guesses district"):
                PermutationSwapping(**settings, **more).release(census, key=KEY)


def test_large_places_are_measured_on_groups_of_equal_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two districts of 5,000 households: of a weight that eight households share the first records show none twice."""
    rng = np.random.default_rng(5)
    cluster = rng.permutation(np.repeat(np.arange(1_250), 8))
    data = {"hid": np.arange(10_000), "district": cluster % 2, "weight": 1.0 + cluster / 7}
    document = {"geography": {"spine": ["district"]}, "record": {"household": {"id": "hid"}}}
    census = Census.of(document, {"household": pl.DataFrame(data)})
    monkeypatch.setattr(guards_module, "RECORDS_SAMPLED", 600)
    with pytest.raises(PrivacyError, match="weight would undo"):
        PermutationSwapping(swap=["district"], rate="1/10", release_identifiers={"weight": "a test"}).release(
            census, key=KEY
        )


# ---- nothing moves -----------------------------------------------------------------------------------------------


NOTHING: dict[str, Callable[[], PermutationSwapping]] = {
    "psa": lambda: PermutationSwapping(match=["serial"], swap=["county"], rate="1/10"),
    "1a": lambda: VaryingRates(
        match=["serial"], swap=["county"], rate="1/10", by="rooms", rates={"1": "1/5"}
    ),
    "2": lambda: ImputedStay(match=["serial"], swap=["county"], rate="1/10", imputed="rooms", levels=["1"]),
    "3": lambda: NoVacuous(match=["serial"], swap=["county"], rate="1/10"),
    "4": lambda: NearPlaces(match=["serial"], swap=["county"], rate="1/10", preference="3"),
    "5": lambda: UnitMatching(
        match=["serial", "size"], loose=["size"], alpha="1/2", swap=["county"], rate="1/10"
    ),
    "6a": lambda: NoisyKey(
        match=["serial", "size"], noisy="size", change="1/4", swap=["county"], rate="1/10"
    ),
    "6b": lambda: NoisyTables(
        match=["serial"], swap=["county"], rate="1/10", tables=[["county", "rooms"]], sigma_squared="4"
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_swap_in_which_nothing_moves_is_refused(name: str) -> None:
    """40 records are too few to judge identifiers: only the strata show it."""
    frame = homes().head(40).drop("household_id", "hid", "income").with_columns(serial=pl.int_range(40))
    census = Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {}}}, {"household": frame}
    )
    mechanism = NOTHING[name]()
    promise = mechanism.specification(census)
    with pytest.raises(PrivacyError, match="nothing can move"):
        mechanism.refuse_promise(census, promise)
    with pytest.raises(PrivacyError, match="nothing can move"):
        mechanism.release(census, key=KEY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"county": pl.lit(1)}, "400 in strata with one swap value"),
        ({"rooms": pl.lit(1)}, "400 in strata with one held combination"),
        (
            {"size": pl.int_range(pl.len()) // 2, "rooms": pl.lit(1)},
            "400 in strata of two records that are alike",
        ),
    ],
)
def test_a_raw_file_is_refused(
    change: dict[str, pl.Expr], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CENSUS + 'id = "household_id"\n[record.household.variables]\nsize = "0..200"\nrooms = "1..9"\n'
    frame = homes().drop("hid", "income").with_columns(**change)
    folder_of(tmp_path, frame, text)
    told = refused_everywhere(tmp_path, "nothing can move", capsys, match=["size"], swap=["county"])
    assert words in told


def test_what_stays_is_told_by_count() -> None:
    data = {
        "size": [1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5],
        "county": [1, 1, 1, 1, 1, 1, 1, 2, 3, 1, 2, 1, 2],
        "rooms": [1, 1, 2, 1, 2, 3, 1, 1, 1, 1, 2, 3, 4],
    }
    census = Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {}}}, {"household": pl.DataFrame(data)}
    )
    release = PermutationSwapping(match=["size"], swap=["county"], rate="1/2").release(census, key=KEY)
    (guard,) = [guard for guard in release.guards if guard.name == STANDING_GUARD]
    assert guard.finding == (
        "9 of 13 records, in 4 of 5 strata: 1 alone in their stratum; 2 in strata of two records that are alike; "
        "3 in strata with one swap value; 3 in strata with one held combination"
    )


# ---- refusals leave nothing, interrupted runs go on ----------------------------------------------------------------


def test_a_late_refusal_leaves_nothing_and_an_interrupted_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "school")
    plan(tmp_path, match=SWAP["match"], swap=SWAP["swap"])
    before = listed(tmp_path)
    command = ["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "packet")]
    own = ["--key", str(tmp_path / "mine.key")]
    assert main([*command, *own]) == 2
    assert listed(tmp_path) == before  # the key that this command made is gone too
    KEY.save(tmp_path / "mine.key")
    assert main([*command, *own]) == 2
    assert listed(tmp_path) == sorted([*before, "mine.key"])  # one that was there before stays
    plan(tmp_path, match=SWAP["match"], swap=SWAP["swap"], more='drop = ["weight"]')
    write = execute.write_packet

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "write_packet", stopped)
    assert main([*command, *own]) == 130
    assert "packet.part" in listed(tmp_path)
    monkeypatch.setattr(execute, "write_packet", write)
    monkeypatch.setattr(PermutationSwapping, "release", stopped)  # it is taken up, not run again
    assert main([*command, *own]) == 0
    guards = json.loads((tmp_path / "packet" / "public" / "receipt.json").read_text())["mechanisms"][0][
        "guards"
    ]
    assert [guard["name"] for guard in guards] == [
        guards_module.IDENTIFIER_GUARD,
        STANDING_GUARD,
        guards_module.REVERSAL_GUARD,
    ]
    assert guards[2]["rows"]


def test_plan_check_shows_a_trial_draw_and_says_that_it_is_one(tmp_path: Path) -> None:
    written(tmp_path, "school", "weight")
    found = explain(load(plan(tmp_path, match=SWAP["match"], swap=SWAP["swap"])))
    assert [guard.name for guard in found.guards] == [
        guards_module.IDENTIFIER_GUARD,
        STANDING_GUARD,
        guards_module.REVERSAL_GUARD,
    ]
    assert "internal, on a trial draw" in found.guards[2].finding
    later = explain(load(tmp_path / "plan.toml"), trial=False)
    assert "measured on the released file by the run" in later.guards[2].finding
    assert later.document()["guards"]


# ---- mutants: each guard is needed ---------------------------------------------------------------------------------


def test_without_its_guard_each_route_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above fail when a guard is switched off, because then these releases go out."""
    document = {"geography": {"spine": ["county"]}, "record": {"household": {}}}
    census = Census.of(document, {"household": homes()})
    settings = {"match": ["size"], "swap": ["county"], "rate": "1/10"}
    with monkeypatch.context() as off:
        off.setattr(guards_module, "find_identifying", lambda *_, **__: ())
        went = PermutationSwapping(**settings).release(census, key=KEY).to_polars()
    assert went["hid"].n_unique() == went["income"].n_unique() == ROWS
    alone = Census.of(document, {"household": homes().select("county", "rooms", size=pl.int_range(ROWS))})
    with monkeypatch.context() as off:
        off.setattr(guards_module, "find_identifying", lambda *_, **__: ())
        off.setattr(StandingRecords, "fixed_records", property(lambda _: 0))
        raw = PermutationSwapping(**settings).release(alone, key=KEY).to_polars()
    assert (
        raw.select("county", "rooms", "size")
        .sort("size")
        .equals(homes().select("county", "rooms", size=pl.int_range(ROWS)).sort("size"))
    )
