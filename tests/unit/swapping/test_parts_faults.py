"""Swapping by parts: kernels that run again change nothing, only run keys travel, and faults do not get out."""

import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.chance.words import Hasher, hash_texts, identifier_words
from stirred.engine import Local, PartRows
from stirred.engine.local import LocalFlow, LocalParts
from stirred.errors import DataError, InputError, PrivacyError
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import NoisyKey, PermutationSwapping
from stirred.mechanisms.swap import parts as parts_module
from stirred.mechanisms.swap import psa as mechanism_module
from stirred.mechanisms.swap.frame import estimate_size
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.parts import PART_COLUMN, PartByValues
from stirred.mechanisms.swap.records import Members

SCHEMA = {
    "geography": {"spine": ["county", "block"]},
    "record": {
        "household": {"id": "hid", "kind": {"column": "kind", "occupied": [1], "group_quarters": [3]}},
        "person": {"household": "hid", "of": "household", "id": "pid"},
    },
}
KEY = Key.for_tests(2)


class Parted(Local):
    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 5


def tables(n: int = 1200) -> dict[str, pa.Table]:
    rng = np.random.default_rng(3)
    block = rng.integers(0, 12, n)
    size = rng.integers(1, 4, n)
    home = {
        "hid": rng.permutation(n) + 10,
        "county": [f"c{b // 6}" for b in block],
        "block": block,
        "kind": np.where(np.arange(n) % 8 == 0, 3, 1),
        "size": size,
        "tenure": rng.choice(["own", "rent"], n),
    }
    owner = np.repeat(np.arange(n), size)
    person = {"hid": home["hid"][owner], "pid": np.arange(owner.size), "age": rng.integers(0, 90, owner.size)}
    return {"household": pa.table(home), "person": pa.table(person)}


def census(data: dict[str, pa.Table] | None = None) -> Census:
    return Census.of(SCHEMA, data or tables())


def psa(**changed: Any) -> PermutationSwapping:
    return PermutationSwapping(**{"match": ["size"], "swap": ["county", "block"], "rate": "1/3", **changed})


def released(engine: Any = None, key: Key = KEY, **changed: Any) -> Release:
    return psa(**changed).release(census(), key=key, engine=engine)


def same(one: Release, other: Release) -> bool:
    def rows(table: Any) -> list[Any]:
        return table.to_pylist()

    return all(rows(one.microdata[name]) == rows(other.microdata[name]) for name in one.microdata)


# ---- a task that runs again, elsewhere, on rows in another order --------------------------------------------------


def rearranged(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(table.num_rows).permutation(table.num_rows)))


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every kernel is pickled, and runs twice: what it gives must be the same. Part kernels see rows rearranged."""
    seen: list[str] = []
    flow_map, parts_map = LocalFlow.map, LocalParts.map

    def of_batches(kernel: Any) -> Callable[[pa.Table], pa.Table]:
        other = pickle.loads(pickle.dumps(kernel))
        seen.append(type(kernel).__name__)

        def both(table: pa.Table) -> pa.Table:
            found = kernel(table)
            assert found.equals(other(table))
            return found

        return both

    def of_parts(kernel: Any) -> Callable[..., pa.Table]:
        other = pickle.loads(pickle.dumps(kernel))
        name = type(kernel).__name__
        seen.append(name)

        def both(part: int, *tables: pa.Table) -> pa.Table:
            found = kernel(part, *tables)
            twice = other(part, *map(rearranged, tables))
            if name in (
                "SwapPart",
                "MembersOfReleased",
            ):  # in the order of their rows, which the next exchange forgets
                keys = [(column, "ascending") for column in found.column_names]
                assert found.sort_by(keys).equals(twice.sort_by(keys))
            else:
                assert found.equals(twice)
            return found

        return both

    monkeypatch.setattr(
        LocalFlow, "map", lambda self, kernel, schema: flow_map(self, of_batches(kernel), schema)
    )
    monkeypatch.setattr(
        LocalParts, "map", lambda self, kernel, schema: parts_map(self, of_parts(kernel), schema)
    )
    return seen


def test_kernels_travel_and_run_again(again: list[str]) -> None:
    for settings in ({}, {"untouched": "drop", "tables": [["county", "tenure"]]}):
        assert same(released(**settings), released(Parted(), **settings))
    key = Key.fresh()  # a private key: pickling it raises, its runs' keys do not
    with pytest.raises(PrivacyError):
        pickle.dumps(key)
    released(Parted(), key)
    NoisyKey(match=["size"], swap=["block", "county"], rate="1/3", noisy="size", change="1/4").release(
        census(), key=key, engine=Parted()
    )
    batches = {
        "IdentifierWords",
        "SurveyHomes",
        "SurveyMembers",
        "PartByValues",
        "PartByOrder",
        "DistinctLevels",
    }
    parts = {
        "MembersOfReleased",
        "StrataPart",
        "SwapPart",
        "CountPart",
        "FingerprintPart",
        "HomesPart",
        "MembersPart",
    }
    assert batches | parts <= set(again)


def test_no_records_are_gathered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that comes to one place is less than a hundredth of the records."""
    gathered: list[int] = []
    for kind in (LocalFlow, LocalParts):
        original = kind.gather

        def counted(self: Any, *steps: Any, original: Any = original) -> pa.Table:
            found = original(self, *steps)
            gathered.append(found.num_rows)
            return found

        monkeypatch.setattr(kind, "gather", counted)
    data = tables(20_000)
    psa().release(census(data), key=KEY, engine=Parted(), out=tmp_path)
    assert gathered
    assert sum(gathered) * 100 < sum(table.num_rows for table in data.values())


# ---- faults -------------------------------------------------------------------------------------------------------


def test_mutants_of_the_draw_are_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def mixed(words: object, *, strata: np.ndarray, **_: object) -> Moves:
        rows = np.arange(strata.size, dtype=np.uint32)
        return Moves(receivers=rows, givers=np.roll(rows, 1))

    def copied(words: object, *, strata: np.ndarray, **_: object) -> Moves:
        rows = np.flatnonzero(strata == 0).astype(np.uint32)
        return Moves(receivers=rows, givers=np.full_like(rows, rows[0]))

    for mutant in (mixed, copied):
        monkeypatch.setattr(mechanism_module, "draw_moves", mutant)
        with pytest.raises(PrivacyError, match="does not keep its invariants"):
            psa(match=["size", "tenure"]).release(census(), key=KEY, engine=Parted(), out=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("microdata", [True, False])
def test_a_held_variable_that_moves_is_stopped(monkeypatch: pytest.MonkeyPatch, microdata: bool) -> None:
    original = mechanism_module.apply_moves

    def moved(frame: Any, moves: Moves, engine: object) -> dict[str, Any]:
        columns = original(frame, moves, engine)
        tenure = frame.columns["tenure"]
        return {**columns, "tenure": replace(tenure, codes=np.zeros_like(tenure.codes))}

    monkeypatch.setattr(mechanism_module, "apply_moves", moved)
    with pytest.raises(PrivacyError, match="all held variables"):
        released(Parted(), microdata=microdata, tables=[["block", "tenure"]])


def test_a_moved_facility_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = mechanism_module.draw_moves

    def draw(words: object, *, strata: np.ndarray, **rest: Any) -> Moves:
        moves = original(words, strata=strata, **rest)
        stays = np.flatnonzero(strata == np.uint32(0xFFFFFFFF)).astype(np.uint32)
        return Moves(
            receivers=np.append(moves.receivers, stays), givers=np.append(moves.givers, np.roll(stays, 1))
        )

    monkeypatch.setattr(mechanism_module, "draw_moves", draw)
    with pytest.raises(PrivacyError, match="take no part by their kind"):
        released(Parted())


def test_persons_of_another_household_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = parts_module.group_members

    def elsewhere(*arguments: Any, **options: Any) -> Members:
        group = original(*arguments, **options)
        starts = group.starts.copy()
        starts[1] = 0  # the persons of the first household live in the second
        return replace(group, starts=starts)

    monkeypatch.setattr(parts_module, "group_members", elsewhere)
    with pytest.raises(PrivacyError, match="person records"):
        released(Parted())


def test_a_part_that_is_lost_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = parts_module.SwapPart.run_pieces

    def lost(self: Any, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        return (piece.slice(1) for piece in original(self, part, *flows))

    monkeypatch.setattr(parts_module.SwapPart, "run_pieces", lost)
    with pytest.raises(DataError, match=r"belong to no household"):
        released(Parted())
    with pytest.raises(PrivacyError, match="does not keep its invariants"):
        released(Parted(), carry=False)


def test_the_comparison_sees_identifiers_that_are_ranks_in_their_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariants hold all the same: only the comparison of both ways tells."""
    right = released(carry=False)
    assert same(right, released(Parted(), carry=False))
    original = PermutationSwapping.draw_swap

    def ranked(self: Any, frame: Any, *rest: Any) -> Any:
        return original(self, replace(frame, ids=np.argsort(np.argsort(frame.ids)).astype(np.uint64)), *rest)

    monkeypatch.setattr(PermutationSwapping, "draw_swap", ranked)
    wrong = released(Parted(), carry=False)
    assert all(check.kept for check in wrong.checks)
    assert not same(right, wrong)


def test_the_comparison_sees_strata_that_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    right = released(carry=False)

    def by_place(self: Any, table: pa.Table) -> pa.Table:
        part = pa.array((np.arange(table.num_rows) % self.parts).astype(np.int32))
        return table.append_column(PART_COLUMN, part)

    monkeypatch.setattr(PartByValues, "__call__", by_place)
    wrong = released(Parted(), carry=False)
    assert not same(right, wrong)
    assert wrong.specification != right.specification


# ---- values as words ----------------------------------------------------------------------------------------------


def test_text_is_hashed_as_siphash_says() -> None:
    """The reference vectors of SipHash-2-4: key 00 … 0f, texts 00, 00 01, …"""
    vectors = {0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 2: "5a4fa9d909806c0d", 15: "e545be4961ca29a1"}
    key = np.frombuffer(bytes(range(16)), np.uint64)
    for length, digits in vectors.items():
        out = np.empty(1, np.uint64)
        hash_texts(
            np.arange(max(length, 1), dtype=np.uint8), np.array([0, length], np.int64), key[0], key[1], out
        )
        assert out.tobytes().hex() == digits


def test_words_depend_on_values_alone() -> None:
    plain = pa.array(["b", None, "", "a longer text than eight", "b"])
    forms = [
        plain,
        plain.cast(pa.large_string()),
        plain.dictionary_encode(),
        plain.cast(pa.string_view()),
        pa.concat_arrays([pa.array(["x", "y"]), plain]).slice(2),
    ]
    found = [Hasher(1, 2).words(form) for form in forms]
    for other in found[1:]:
        assert (found[0] == other).all()
    assert len(set(found[0].tolist())) == 4  # an empty text is no empty value
    narrow, wide = (identifier_words(pa.array([-1, 5], kind), name="id") for kind in (pa.int8(), pa.int64()))
    assert narrow.tolist() == wide.tolist() == [2**64 - 1, 5]


def test_the_digest_does_not_depend_on_how_text_is_stored() -> None:
    data = tables()
    coded = data["household"].set_column(1, "county", data["household"]["county"].dictionary_encode())
    one, other = (
        psa().release(census({**data, "household": home}), key=KEY) for home in (data["household"], coded)
    )
    assert one.input_digest == other.input_digest


def test_the_estimate_grows_with_records_and_columns() -> None:
    there = census()
    roles = psa().roles(there)
    whole, alone = estimate_size(there, roles), estimate_size(there, psa(carry=False).roles(there))
    assert alone.people == 0
    assert whole.memory > alone.memory > 1200 * 32
    assert whole.homes == alone.homes


def test_parts_are_never_so_large_that_text_overflows() -> None:
    there = census()
    size = replace(estimate_size(there, psa().roles(there)), rows=400_000_000)
    assert size.count_parts(Parted(), size.homes) == 12  # of 2²⁵ records


class Bounded(Parted):
    """A bound of so few bytes that no user can set it; the parts of strata are many."""

    room: ClassVar[int] = 30_000

    @property
    def bound_bytes(self) -> int:
        return self.room


def test_a_stratum_that_no_bound_holds_is_refused_before_a_key_exists() -> None:
    census = Census.of(SCHEMA, tables())
    coarse = PermutationSwapping(match=["county"], swap=["block"], rate="1/4")
    with pytest.raises(InputError, match="the largest stratum takes") as told:
        coarse.specification(census, engine=Bounded())
    assert "agree on county" in told.value.why
    # 600 households of about 80 bytes beside the libraries, in tenths of a GB
    assert told.value.fix == 'name more match variables, or a larger bound: memory = "0.7 GB"'
    fine = PermutationSwapping(match=["county", "size", "tenure"], swap=["block"], rate="1/4")
    assert fine.specification(census, engine=Bounded()) == fine.specification(census)
    assert coarse.specification(census, engine=Parted()) == coarse.specification(census), "no bound was set"


def test_what_a_stratum_takes_is_estimated_from_its_types(tmp_path: Path) -> None:
    """The arrays of a swap of one large part, by the tracer of numpy, are at most what admission counts."""
    n = 200_000
    rng = np.random.default_rng(1)
    data = {
        "hid": np.arange(n),
        "county": np.array(["one", "two"])[rng.integers(0, 2, n)],
        "block": rng.integers(0, 900, n).astype(np.int16),
        "kind": np.ones(n, np.int8),
        "size": pa.array(rng.integers(1, 4, n), pa.int8(), mask=rng.random(n) < 0.1),
    }
    census = Census.of(SCHEMA, {"household": pa.table(data), "person": tables(1)["person"].slice(0, 0)})
    mechanism = PermutationSwapping(match=[], swap=["county", "block"], rate="1/2")
    roles = mechanism.pipeline.roles(census)
    work = parts_module.Work(
        law=mechanism,
        roles=roles,
        microdata=True,
        kinds=None,
        read=tuple(n for n in roles.columns_read if n != "hid"),
    )
    flow = Local().records(census, "household", ["hid", *work.read])
    assert isinstance(flow, LocalFlow)
    plain = flow.gather()
    rows = PartRows(
        plain.schema.set(0, pa.field("hid", pa.uint64())),
        plain.num_rows,
        lambda: (plain.slice(i, 10_000).cast(rows.schema) for i in range(0, n, 10_000)),
    )
    for kernel in (parts_module.SwapPart(work, KEY, 3), parts_module.StrataPart(work, None)):
        for _ in kernel.run_pieces(0, rows):
            pass  # compiled, if it was not
        tracemalloc.start()
        try:
            for _ in kernel.run_pieces(0, rows):
                pass
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < kernel.weigh(rows)
        assert kernel.weigh(rows) < 3 * peak
