"""Two censuses with the same invariants and the same released records: every public byte is the same."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.frame import Frame, apply_moves
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.pipeline import SwapPipeline
from stirred.mechanisms.swap.records import Column
from stirred.publish import load, run

TOML = """[geography]
spine = ["state", "county"]
[record.household]
files = ["household.csv"]
id = "id"
[record.household.variables]
size = "1..5"
tenure = ["o", "r"]
[record.person]
files = ["person.csv"]
household = "id"
[record.person.variables]
age = "0..99"
"""
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "1/3"
[publish]
formats = ["parquet", "csv"]
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
[assess]
utility = false
"""
RNG = np.random.default_rng(3)
ROWS = 400
SIZE, COUNTY = RNG.integers(1, 4, ROWS), RNG.integers(1, 6, ROWS)
TENURE = RNG.choice(["o", "r"], ROWS)
AGE = [RNG.integers(0, 99, size).tolist() for size in SIZE]
KEY = Key.for_tests(1)


def partner(rows: np.ndarray) -> np.ndarray:
    """A rearrangement of the places within strata: every second record takes the place of the one before it."""
    order = np.lexsort((rows, SIZE))
    moved = np.arange(ROWS)
    for a, b in zip(order[::2], order[1::2], strict=True):
        if SIZE[a] == SIZE[b]:
            moved[a], moved[b] = b, a
    return moved


MOVED = partner(np.arange(ROWS))


def written(folder: Path, county: np.ndarray, *, order: np.ndarray) -> Path:
    folder.mkdir()
    (folder / "census.toml").write_text(TOML)
    (folder / "plan.toml").write_text(PLAN)
    homes = [f"{i},1,{county[i]},{SIZE[i]},{TENURE[i]}\n" for i in order]
    (folder / "household.csv").write_text("id,state,county,size,tenure\n" + "".join(homes))
    people = [f"{i},{age}\n" for i in order for age in AGE[i]]
    (folder / "person.csv").write_text("id,age\n" + "".join(people))
    return folder


def public(folder: Path, monkeypatch: pytest.MonkeyPatch, moves: Mapping[int, int]) -> dict[str, bytes]:
    """Every public byte where the draw is replaced by these moves, and the key of the run by a fixed one."""

    def swapped(self: PermutationSwapping, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        del self, run
        everybody = np.arange(frame.rows, dtype=np.uint32)
        givers = np.array([moves[i] for i in range(frame.rows)], np.uint32)
        return apply_moves(frame, Moves(receivers=everybody, givers=givers), engine)

    def bound(self: SwapPipeline, key: Key, digest: bytes) -> Key:
        del self, digest
        return key.bind("the same in both")

    monkeypatch.setattr(PermutationSwapping, "draw_swap", swapped)
    monkeypatch.setattr(SwapPipeline, "run_key", bound)
    packet = run(load(folder / "plan.toml"), folder / "packet", key=KEY)
    return {
        path.relative_to(packet.public).as_posix(): path.read_bytes()
        for path in sorted(packet.public.rglob("*"))
        if path.is_file()
    }


def different(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name in one if one[name] != other[name]]


@pytest.fixture
def same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The public parts of two censuses that differ in most places."""
    one = written(tmp_path / "one", COUNTY, order=np.arange(ROWS))
    other = written(tmp_path / "other", COUNTY[MOVED], order=np.arange(ROWS))
    stay = dict(enumerate(range(ROWS)))
    back = dict(enumerate(MOVED.tolist()))
    return public(one, monkeypatch, stay), public(other, monkeypatch, back)


def test_only_the_keyed_digest_of_the_census_differs(same: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
    one, other = same
    assert different(one, other) == ["checksums.txt", "receipt.json"]
    told: list[Any] = [json.loads(part["receipt.json"]) for part in same]
    digests = [part["mechanisms"][0].pop("input_digest") for part in told]
    assert digests[0] != digests[1], "it is keyed: without the key it is a random number"
    assert told[0] == told[1]
    for words in (
        b"Who stands alone",
        b"tries to undo the swap",
        b"What the exact numbers alone give away",
    ):  # the chapter on risk is among what is equal
        assert words in one["report.html"]


def test_a_mutant_that_tells_the_number_of_moves_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same two releases, but a note counts the records that moved."""
    release = PermutationSwapping.release
    counts = iter(("0 moved", "12 moved"))

    def telling(self: PermutationSwapping, *given: Any, **named: Any) -> Any:
        found = release(self, *given, **named)
        object.__setattr__(found, "notes", (*found.notes, next(counts)))
        return found

    monkeypatch.setattr(PermutationSwapping, "release", telling)
    parts = []
    for name in ("one", "other"):
        folder = written(tmp_path / name, COUNTY, order=np.arange(ROWS))
        parts.append(public(folder, monkeypatch, dict(enumerate(range(ROWS)))))
    told = [json.loads(part["receipt.json"]) for part in parts]
    assert told[0] != told[1]


def test_nothing_public_depends_on_path_or_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    for name in ("a", "another-place"):
        folder = written(tmp_path / name, COUNTY, order=np.arange(ROWS))
        parts.append(public(folder, monkeypatch, dict(enumerate(range(ROWS)))))
        shutil.rmtree(folder / "packet")
    assert not different(*parts)
    assert not [name for name, content in parts[0].items() if str(tmp_path).encode() in content]
