"""A swap by flows and parts gives what the swap in memory gives: every byte, word and number of the release."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from matrices import mark_slow
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Flow, Local
from stirred.engine.local import LocalFlow
from stirred.engine.tables import to_plain
from stirred.errors import DataError, InputError, PrivacyError
from stirred.mechanisms.contents import digest
from stirred.mechanisms.release import Release
from stirred.mechanisms.stirring import Stirring
from stirred.mechanisms.swap import (
    ImputedStay,
    NearPlaces,
    NoisyKey,
    NoisyTables,
    NoVacuous,
    PermutationSwapping,
    Swapping2010,
    TargetedSwapping,
    UnitMatching,
    VaryingRates,
)
from stirred.mechanisms.swap.pipeline import SwapMechanism
from trusted import trusted

KEY = Key.for_tests(11)
KINDS = {"column": "kind", "occupied": [1], "vacant": [2], "group_quarters": [3]}
SPINE = ["state", "county", "block"]
HOMES = 350  # four batches of households, nine of persons


class Parted(Local):
    """This machine, where nothing fits; rows come shuffled and in batches of an odd size."""

    parts: ClassVar[int] = 3
    rows: ClassVar[int] = 97

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        assert size >= 0
        return self.parts

    def records(self, census: Census, record_type: str, columns: Sequence[str]) -> Flow:
        table = to_plain(census.table(record_type, list(columns)))
        mixed = table.take(pa.array(np.random.default_rng(5).permutation(table.num_rows)))

        def batches() -> Iterator[pa.Table]:
            for start in range(0, mixed.num_rows, self.rows):
                yield mixed.slice(start, self.rows)

        return LocalFlow(batches, table.schema, self.workers)


def parted(parts: int, rows: int = 97) -> Parted:
    return type("Parted", (Parted,), {"parts": parts, "rows": rows})()  # type: ignore[no-any-return]


def tables(n: int = HOMES) -> dict[str, pa.Table]:
    """Text and numbers, empty ones among them, two zeros, dates, truth values; households of 0 to 4."""
    rng = np.random.default_rng(9)
    number = np.arange(n)
    county = rng.integers(0, 5, n)
    block = county * 10 + rng.integers(0, 4, n)
    kind = np.where(number % 9 == 0, 3, np.where(number % 11 == 0, 2, 1))
    size = np.where(kind == 2, 0, rng.integers(1, 5, n))
    hid = rng.permutation(n) * 7 - 50
    home = {
        "hid": hid,
        "state": pa.array([f"state {c // 3}" for c in county], pa.string()),
        "county": pa.array([f"c{c}" for c in county], pa.string()),
        "block": pa.array(block, pa.int32()),
        "kind": pa.array(kind, pa.int8()),
        "size": pa.array(size, pa.int16()),
        "tenure": pa.array(
            rng.choice(["own", "rent", "freé"], n), pa.string(), mask=rng.random(n) < 0.1
        ).dictionary_encode(),
        "race": pa.array(rng.integers(-3, 6, n), mask=rng.random(n) < 0.1),
        "income": np.where(rng.random(n) < 0.5, -0.0, rng.integers(0, 3, n) / 2),
        "owned": rng.random(n) < 0.5,
        "allocated": (rng.random(n) < 0.15).astype(np.int8),
        "since": pa.array(rng.integers(0, 3, n), pa.int32()).cast(pa.date32()),
    }
    owner = rng.permutation(np.repeat(number, size))
    person = {
        "hid": hid[owner],
        "pid": rng.permutation(owner.size),
        "size": pa.array(size[owner], pa.int16()),
        "county": home["county"].take(pa.array(owner)),
        "age": pa.array(rng.integers(0, 90, owner.size), pa.uint8(), mask=rng.random(owner.size) < 0.1),
        "role": pa.array(
            rng.choice(["head", "child", "ß"], owner.size), pa.string(), mask=rng.random(owner.size) < 0.1
        ),
        "code": rng.choice(rng.integers(-(2**62), 2**62, 60), owner.size),
    }
    return {"household": pa.table(home), "person": pa.table(person)}


@cache
def census(*, text: bool = False, numbered: bool = True, kinds: str = "all", n: int = HOMES) -> Census:
    data = tables(n)
    if text:
        data = {
            name: table.set_column(
                0, "hid", pc.binary_join_element_wise("h", pc.cast(table["hid"], pa.string()), "/")
            )
            for name, table in data.items()
        }
    if not numbered:
        data["person"] = data["person"].drop_columns(["pid"])
    person = {"household": "hid", "of": "household", **({"id": "pid"} if numbered else {})}
    home: dict[str, Any] = {"id": "hid"}
    if kinds:
        home["kind"] = KINDS if kinds == "all" else {"column": "kind", "vacant": [2], "group_quarters": [3]}
    document = {"geography": {"spine": SPINE}, "record": {"household": home, "person": person}}
    return Census.of(document, data)


def shown(data: Any) -> pa.Table:
    table = data if isinstance(data, pa.Table) else data.to_table()
    return to_plain(table).combine_chunks()


def assert_equal(one: Release, other: Release) -> None:
    assert one.input_digest == other.input_digest
    assert one.specification == other.specification
    assert str(one.specification) == str(other.specification)
    for field in ("bounds", "untouched", "notes", "evidence", "budget"):
        assert getattr(one.specification, field) == getattr(other.specification, field)
    assert one.notes == other.notes
    assert one.guards == other.guards
    assert one.checks == other.checks
    assert one.ledger == other.ledger
    assert one.parameters == other.parameters
    assert one.private is other.private
    for mine, yours in ((one.microdata, other.microdata), (one.tables, other.tables)):
        assert list(mine) == list(yours)
        for name in mine:
            assert shown(mine[name]).schema == shown(yours[name]).schema
            assert shown(mine[name]).equals(shown(yours[name])), name
            assert digest(mine[name]) == digest(yours[name]), f"{name}: a zero has no sign"


BASE: dict[str, Any] = {"match": ["state", "size"], "swap": ["county", "block"], "rate": "1/4"}
MECHANISMS: dict[str, tuple[type[SwapMechanism], dict[str, Any]]] = {
    "psa": (PermutationSwapping, {}),
    "no match": (PermutationSwapping, {"match": []}),
    "fine strata": (
        PermutationSwapping,
        {"match": ["size", "tenure", "race", "income", "owned", "since", "kind"]},
    ),
    "some held": (
        PermutationSwapping,
        {"hold": ["tenure", "race"], "tables": [["tenure", "block"], ["race"]]},
    ),
    "some dropped": (PermutationSwapping, {"drop": ["kind", "since", "owned"]}),
    "moving along": (PermutationSwapping, {"swap": ["block"], "match": ["size"]}),
    "no persons": (PermutationSwapping, {"carry": False, "tables": [["county", "tenure", "owned"]]}),
    "tables alone": (
        PermutationSwapping,
        {"microdata": False, "tables": [["county", "race"], ["since", "block"]]},
    ),
    "1a": (VaryingRates, {"by": "tenure", "rates": {"rent": "1/2", "own": "1/3"}}),
    "1b": (VaryingRates, {"by": "block", "rates": {"3": "1/2"}}),
    "1c": (VaryingRates, {"rarity": ["race", "block"], "rare": "1/2"}),
    "1c by state": (VaryingRates, {"rarity": ["state", "race", "block"], "rare": "1/2", "counts_up_to": 2}),
    "2": (ImputedStay, {"imputed": "allocated", "levels": ["1"]}),
    "2, text": (ImputedStay, {"imputed": "tenure", "levels": ["freé", "own"], "carry": False}),
    "3": (NoVacuous, {"carry": False, "hold": ["owned"]}),
    "4": (NearPlaces, {"preference": "3"}),
    "5": (UnitMatching, {"loose": ["size"], "alpha": "1/5"}),
    "5, all loose": (UnitMatching, {"loose": ["size", "state"], "alpha": "1/5"}),
    "6a": (NoisyKey, {"noisy": "size", "change": "1/4"}),
    "6a, text": (NoisyKey, {"match": ["size", "tenure"], "noisy": "tenure", "change": "1/4"}),
    "6a, empty": (NoisyKey, {"match": ["state", "race"], "noisy": "race", "change": "1/4", "carry": False}),
    "6b": (NoisyTables, {"tables": [["county", "tenure"], ["race", "block"]], "sigma_squared": "4"}),
    "stirring": (Stirring, {}),
    "stirring by types": (
        Stirring,
        {"match": ["state", "size", "race"], "law": "auto", "carry": False, "hold": ["owned"]},
    ),
    "stirring by several types": (
        Stirring,
        {"match": ["state", "size"], "law": "types", "carry": False, "hold": ["tenure"]},
    ),
    "stirring by places": (Stirring, {"match": ["kind"], "swap": ["county"], "drop": ["block"]}),
    "stirring, shuffled first": (
        Stirring,
        {"loss": "7", "shuffle_first": "tenure", "shuffle_levels": ["rent"], "carry": False},
    ),
}


def make(name: str, **changed: Any) -> SwapMechanism:
    kind, settings = MECHANISMS[name]
    return kind(**{**BASE, **settings, **changed})


# one of each way to cut: by strata, by rarity, by pairs of units, by a noisy key
FOUR_WAYS = ("psa", "1c", "5", "6a")
# one of each class: their law decides who stays
EACH_CLASS = (*FOUR_WAYS, "2", "3", "4", "6b", "stirring")


@cache
def in_memory(name: str, untouched: str = "publish") -> Release:
    return make(name, untouched=untouched).release(census(), key=KEY)


@pytest.mark.parametrize(
    ("name", "parts"),
    mark_slow(
        product(MECHANISMS, (1, 3, 16)),
        quick=[*product(MECHANISMS, (3,)), *product(FOUR_WAYS, (1, 16))],
    ),
)
def test_every_mechanism_gives_the_same_release(name: str, parts: int) -> None:
    """Quick: every mechanism in three parts, and one of each way to cut in one and in sixteen."""
    assert_equal(in_memory(name), make(name).release(census(), key=KEY, engine=parted(parts)))


@pytest.mark.parametrize("name", mark_slow(MECHANISMS, quick=EACH_CLASS))
def test_the_same_where_those_who_stay_are_left_out(name: str) -> None:
    """Quick: one mechanism of each class."""
    mechanism = make(name, untouched="drop")
    assert_equal(in_memory(name, "drop"), mechanism.release(census(), key=KEY, engine=parted(2)))


@pytest.mark.parametrize(
    ("text", "kinds", "untouched"),
    mark_slow(
        product((False, True), ("all", "some", ""), ("publish", "drop")),
        quick=[
            (False, "all", "publish"),
            (True, "all", "drop"),
            (False, "some", "drop"),
            (True, "some", "publish"),
            (False, "", "publish"),
            (True, "", "drop"),
        ],
    ),
)
def test_text_identifiers_and_kinds(text: bool, kinds: str, untouched: str) -> None:
    """Quick: every pair of two settings."""
    there = census(text=text, kinds=kinds, numbered=not text)
    mechanism = make("psa", untouched=untouched)
    assert_equal(
        mechanism.release(there, key=KEY),
        mechanism.release(there, key=KEY, engine=parted(4, rows=101)),
    )


@pytest.mark.parametrize("n", [0, 1, 2, 13])
@pytest.mark.parametrize("name", ["psa", "1c", "2", "6a", "6b"])
def test_very_small_censuses(n: int, name: str) -> None:
    """One record, and two in strata of their own, cannot move: both engines refuse them with the same words."""
    told = []
    for engine in (Local(), parted(4)):
        try:
            told.append(make(name).release(census(n=n), key=KEY, engine=engine))
        except PrivacyError as error:
            told.append(str(error))
    if 0 < n < 3:
        assert "nothing can move" in str(told[0])
        assert told[0] == told[1]
    else:
        assert_equal(*told)


def test_written_files_hold_the_same(tmp_path: Path) -> None:
    mechanism = make("psa", tables=[["county", "tenure"]])
    on_disk = mechanism.release(census(), key=KEY, engine=parted(6), out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["household.parquet", "person.parquet"]
    assert_equal(mechanism.release(census(), key=KEY), on_disk)


def test_persons_can_be_the_resolution() -> None:
    mechanism = PermutationSwapping(
        match=["size"], swap=["county"], hold=["age", "role"], rate="1/3", resolution="person", carry=False
    )
    assert_equal(mechanism.release(census(), key=KEY), mechanism.release(census(), key=KEY, engine=parted(3)))


def test_nothing_is_left_in_the_scratch_folder(tmp_path: Path) -> None:
    engine = parted(3)
    object.__setattr__(engine, "scratch", tmp_path)
    make("psa", untouched="drop").release(census(), key=KEY, engine=engine)
    assert not list(tmp_path.iterdir())


def test_progress_names_the_steps() -> None:
    seen: list[str] = []
    make("psa").release(census(), key=KEY, engine=parted(2), progress=lambda step, *_: seen.append(step))
    assert list(dict.fromkeys(seen)) == [
        "guards",
        "read",
        "digest",
        "strata",
        "swap",
        "verify",
        "write",
        "write person",
    ]


# ---- refusals: the same words as in memory, and nothing of a record in them ---------------------------------------


def failing(there: Census, error: type[Exception], tmp_path: Path, **changed: Any) -> str:
    """What the swap itself says, which relies on no check of the records before it."""
    told = []
    trusted(there)
    for engine in (Local(), parted(3)):
        with pytest.raises(error) as caught:
            make("psa", **changed).release(there, key=KEY, engine=engine, out=tmp_path)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert not list(tmp_path.iterdir())
    return told[0]


def changed(record_type: str, table: pa.Table, **document: Any) -> Census:
    person = {"household": "hid", "of": "household", "id": "pid"}
    record = {"household": {"id": "hid", "kind": KINDS}, "person": person}
    return Census.of(
        {"geography": {"spine": SPINE}, "record": record, **document}, {**tables(), record_type: table}
    )


def test_refusals_are_those_in_memory(tmp_path: Path) -> None:
    home, person = tables()["household"], tables()["person"]
    twice = changed("household", pa.concat_tables([home, home.slice(3, 5)]))
    assert "5 records repeat" in failing(twice, DataError, tmp_path)
    orphans = changed("household", home.slice(0, HOMES - 50))
    assert "belong to no household" in failing(orphans, DataError, tmp_path)
    failing(census(), PrivacyError, tmp_path, untouched="refuse")
    empty = pa.array([None, *home["hid"].to_pylist()[1:]], pa.int64())
    assert "empty in some records" in failing(
        changed("household", home.set_column(0, "hid", empty)), DataError, tmp_path
    )
    nowhere = pa.array([None, *person["hid"].to_pylist()[1:]], pa.int64())
    for untouched in ("publish", "drop"):
        told = failing(
            changed("person", person.set_column(0, "hid", nowhere)), DataError, tmp_path, untouched=untouched
        )
        assert "1 records belong to no household" in told


# of 350 households at one in a thousand this key swaps none
SWAPS_NOBODY: dict[str, SwapMechanism] = {
    "targeted": TargetedSwapping(
        hierarchy=["county"],
        drop=["block"],
        similar=[["size"]],
        swaprate="1/1000",
        k_anonymity=0,
        without_guarantee="a test",
    ),
    "2010": Swapping2010(swap=["county", "block"], rate="1/1000", equal=["size"], without_guarantee="a test"),
}


@pytest.mark.parametrize("name", SWAPS_NOBODY)
def test_a_draw_in_which_nobody_moved_is_refused_in_parts_too(name: str, tmp_path: Path) -> None:
    """Without an error the file would be published as it is; the mutant asks only the draw in memory."""
    told = set()
    for engine in (Local(), parted(1), parted(3)):
        with pytest.raises(PrivacyError, match="nobody changed places") as caught:
            SWAPS_NOBODY[name].release(census(kinds=""), key=KEY, engine=engine, out=tmp_path)
        told.add(str(caught.value))
    assert len(told) == 1
    assert not list(tmp_path.iterdir())


def test_links_of_another_type_are_compared_or_refused_without_showing_one(tmp_path: Path) -> None:
    person = tables()["person"]
    text = pc.cast(person["hid"], pa.string())
    there = changed("person", person.set_column(0, "hid", text))
    here = make("psa").release(there, key=KEY)
    assert_equal(here, make("psa").release(there, key=KEY, engine=parted(3)))
    assert shown(here.microdata["person"]).num_rows == person.num_rows
    strange = pc.replace_substring(text, "1", "secret")
    told = failing(changed("person", person.set_column(0, "hid", strange)), DataError, tmp_path)
    assert "cannot be compared" in told
    assert "secret" not in told


def test_without_an_identifier_it_says_what_to_do() -> None:
    record = {"household": {"kind": KINDS}}
    there = Census.of(
        {"geography": {"spine": SPINE}, "record": record},
        {"household": tables()["household"].drop_columns(["hid"])},
    )
    with pytest.raises(InputError, match="have no identifier") as caught:
        make("psa").release(there, key=KEY, engine=parted(3))
    assert "census.toml" in str(caught.value)


def test_linked_records_are_refused_where_a_law_cannot_carry_them() -> None:
    with pytest.raises(InputError, match="vacuous swaps"):
        make("3", carry=True).release(census(), key=KEY, engine=parted(3))


@pytest.mark.slow
def test_a_stratum_of_four_million_and_many_small_ones(tmp_path: Path) -> None:
    """One stratum holds nearly all records, so one part does; the others are strata of about five."""
    n = 4_400_000
    rng = np.random.default_rng(2)
    home = pa.table(
        {
            "hid": rng.permutation(n),
            "block": rng.integers(0, 300_000, n, dtype=np.int32),
            "size": np.where(np.arange(n) < 4_000_000, 0, rng.integers(1, 80_000, n)).astype(np.int32),
            "tenure": rng.integers(1, 4, n, dtype=np.int8),
        }
    )
    there = Census.of(
        {"geography": {"spine": ["block"]}, "record": {"household": {"id": "hid"}}}, {"household": home}
    )
    mechanism = PermutationSwapping(
        match=["size"], swap=["block"], rate="1/20", release_identifiers={"size": "a test"}
    )
    here = mechanism.release(there, key=KEY)
    by_parts = mechanism.release(there, key=KEY, engine=parted(7, rows=1 << 17), out=tmp_path)
    for name in ("input_digest", "specification", "notes"):
        assert getattr(here, name) == getattr(by_parts, name)
    assert shown(here.microdata["household"]).equals(shown(by_parts.microdata["household"]))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_promise_alone_is_the_same_by_parts(name: str) -> None:
    mechanism = make(name)
    assert mechanism.specification(census()) == mechanism.specification(census(), engine=parted(3))
