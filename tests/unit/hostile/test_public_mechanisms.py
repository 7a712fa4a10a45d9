"""For every mechanism: two censuses with the same invariants and the same released content have the same public bytes.

The second run also happens at another time, in another place, for another user, on a machine of another name.
"""

import getpass
import json
import os
import platform
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from contract.registry import LISTS, TOTALS, WORKLOAD
from stirred import SafeTabH
from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import StirredError
from stirred.mechanisms.census2020.phsafe.tables import Answers
from stirred.mechanisms.census2020.safetab.households.tables import Measurement
from stirred.mechanisms.census2020.safetab.persons import mechanism
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.mechanisms.swap.frame import Frame, apply_moves
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.pairwise import PairwiseSwapping
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPipeline
from stirred.mechanisms.swap.records import Column
from stirred.mechanisms.tables import exact_margins as margins
from stirred.mechanisms.tables.gaussian import ListedCells
from stirred.mechanisms.topdown import measure
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.run import upper_tree
from stirred.publish import load, run

TOML = """[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household.csv"]
id = "id"
[record.household.variables]
size = "1..4"
tenure = ["o", "r"]
[record.person]
files = ["person.csv"]
household = "id"
[record.person.variables]
age = "0..99"
sex = ["f", "m"]
"""
PLAN = """title = "t"
census = "census.toml"
[publish]
formats = ["parquet", "csv"]
microdata = {microdata}
[assess]
utility = false
[[mechanism]]
name = "{name}"
{settings}
"""
SWAP = 'match = ["state", "size"]\nswap = ["county", "tract"]\nrate = "1/3"\n'
TABLE = '[[table]]\nname = "a"\nby = ["county", "tenure"]\n'
VARIANTS = {
    "permutation-swapping": SWAP + TABLE,
    "stirring": SWAP + TABLE,
    "swapping-varying-rates": SWAP + 'by = "tenure"\nrates = {r = "1/2"}\n' + TABLE,
    "swapping-imputed-stay": SWAP + 'imputed = "tenure"\nlevels = ["r"]\n' + TABLE,
    "swapping-no-vacuous": SWAP + "carry = false\n" + TABLE,
    "swapping-near-places": SWAP + 'preference = "3"\n' + TABLE,
    "swapping-unit-matching": SWAP + 'loose = ["size"]\nalpha = "1/2"\n' + TABLE,
    "swapping-noisy-tables": SWAP + 'tables = [["county", "tenure"]]\nsigma_squared = "4"\n' + TABLE,
}
WITHOUT = 'without_guarantee = "a test"\n'
PAIRWISE = {
    "targeted-swapping": (
        'hierarchy = ["county", "tract"]\nsimilar = [["state", "size"]]\nswaprate = "1/3"\n'
        'risk_variables = ["size", "tenure"]\n' + WITHOUT + TABLE
    ),
    "swapping-2010": (
        'swap = ["county", "tract"]\nrate = "1/3"\nequal = ["size"]\nrace = ["tenure"]\n'
        'unique = ["tenure", "size"]\n' + WITHOUT + TABLE
    ),
}
MARGINS = 'rows = "county"\ncolumns = "tenure"\nrho_squared = "1/2"\n' + TABLE
NOISY = 'tables = [["county", "tenure"], ["tract"]]\nrho_squared = "1/2"\n'
TOPDOWN = (
    'workload = "w.toml"\nreplicates = 2\n[[table]]\nname = "a"\nrecord_type = "person"\nby = ["county"]\n'
)
DETAILED = (
    'preset = ""\nraces = ["tenure"]\nethnicity = ""\nsexes = ["f", "m"]\n'
    'budget = {STATE-1 = "1", COUNTY-1 = "1"}\nthresholds = {STATE-1 = "20,40,9999", COUNTY-1 = "20,40,9999"}\n'
)
SETS = 2  # of its groups: states and counties
RNG = np.random.default_rng(3)
ROWS = 240
TRACT = RNG.permuted(np.arange(ROWS) % 6)
SIZE = RNG.integers(1, 4, ROWS)
TENURE = RNG.choice(["o", "r"], ROWS)
KEY = Key.for_tests(1)


def town(
    folder: Path, name: str, settings: str, *, tract: np.ndarray, order: np.ndarray, seed: int = 0
) -> Path:
    """A census with these places of the households; ``seed`` shuffles the sexes of all persons."""
    folder.mkdir()
    (folder / "census.toml").write_text(TOML)
    (folder / "w.toml").write_text(WORKLOAD)
    microdata = "false" if "noisy-tables" in name or name in ("exact-margins", "gaussian-tables") else "true"
    (folder / "plan.toml").write_text(PLAN.format(name=name, settings=settings, microdata=microdata))
    homes = [f"{i},1,{tract[i] // 2},{tract[i]},{SIZE[i]},{TENURE[i]}\n" for i in order]
    (folder / "household.csv").write_text("id,state,county,tract,size,tenure\n" + "".join(homes))
    sexes = np.random.default_rng(seed).permuted(np.arange(SIZE.sum()) % 2)
    ages = np.arange(SIZE.sum()) * 7 % 90
    rows = zip(np.repeat(np.arange(ROWS), SIZE), ages, sexes, strict=True)
    (folder / "person.csv").write_text(
        "id,age,sex\n" + "".join(f"{i},{age},{'fm'[sex]}\n" for i, age, sex in rows)
    )
    return folder


def released(folder: Path) -> dict[str, bytes]:
    packet = run(load(folder / "plan.toml"), folder / "packet", key=KEY, internal=False)
    return {
        p.relative_to(packet.public).as_posix(): p.read_bytes()
        for p in sorted(packet.public.rglob("*"))
        if p.is_file()
    }


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Another time, place, user and machine."""
    before = time.time
    (tmp_path / "far away").mkdir()
    with pytest.MonkeyPatch.context() as other:
        for name, value in {
            "HOME": "/far",
            "USER": "eve",
            "LOGNAME": "eve",
            "TZ": "Asia/Tokyo",
            "LANG": "C",
        }.items():
            other.setenv(name, value)
        other.setenv("HOSTNAME", "far-host")
        other.chdir(tmp_path / "far away")
        time.tzset()
        other.setattr(socket, "gethostname", lambda: "far-host")
        other.setattr(platform, "node", lambda: "far-host")
        other.setattr(getpass, "getuser", lambda: "eve")
        other.setattr(os, "getpid", lambda: 7)
        other.setattr(time, "time", lambda: before() + 1e8)
        yield tmp_path / "far away"
    time.tzset()


def same_moves(patch: pytest.MonkeyPatch, kind: type[SwapMechanism], moves: np.ndarray) -> None:
    """Replace the draw of a swap by these moves, and the key of the run by a fixed one."""

    def swapped(self: SwapMechanism, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        del self, run
        everybody = np.arange(frame.rows, dtype=np.uint32)
        return apply_moves(frame, Moves(receivers=everybody, givers=moves.astype(np.uint32)), engine)

    def bound(self: SwapPipeline, key: Key, digest: bytes) -> Key:
        del self, digest
        return key.bind("the same in both")

    def logged(self: Any, frame: Frame, run: Key, engine: Engine) -> Any:
        return swapped(self, frame, run, engine), {}

    patch.setattr(kind, "draw_swap", swapped)
    if issubclass(kind, PairwiseSwapping):
        patch.setattr(kind, "draw_and_log", logged)
    patch.setattr(SwapPipeline, "run_key", bound)


def exchanged(name: str) -> np.ndarray:
    """Places exchanged in pairs within strata; imputed records stay, and without carried persons no type mixes."""
    order = np.lexsort((np.arange(ROWS), TENURE, SIZE))
    moved = np.arange(ROWS)
    for a, b in zip(order[::2], order[1::2], strict=False):
        if SIZE[a] == SIZE[b] and not (name == "swapping-imputed-stay" and "r" in (TENURE[a], TENURE[b])):
            moved[a], moved[b] = b, a
    return moved


@pytest.mark.parametrize("name", [*VARIANTS, *PAIRWISE])
def test_every_swap_with_the_same_release_has_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    kind, moved, order = find_mechanism(name), exchanged(name), np.arange(ROWS)
    assert issubclass(kind, SwapMechanism)
    settings = (VARIANTS | PAIRWISE)[name]
    one = town(tmp_path / "one", name, settings, tract=TRACT, order=order)
    other = town(tmp_path / "other", name, settings, tract=TRACT[moved], order=order)
    same_moves(monkeypatch, kind, order)
    here = released(one)
    request.getfixturevalue("elsewhere")
    same_moves(monkeypatch, kind, moved)
    there = released(other)
    told: list[Any] = [json.loads(part.pop("receipt.json")) for part in (here, there)]
    digests = [part["mechanisms"][0].pop("input_digest") for part in told]
    assert digests[0] != digests[1], "the censuses differ; keyed, the digest is a random number"
    assert told[0] == told[1]
    assert [file for file in here if here[file] != there.get(file)] == ["checksums.txt"]
    assert here.keys() == there.keys()


def test_exact_margins_with_the_same_table_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its table to the first release."""
    counted: list[np.ndarray] = []
    table, noise, seen = margins.ExactMargins._count_table, margins.draw_lattice_noise, [np.zeros(0)]

    def counting(self: margins.ExactMargins, census: Any) -> Any:
        found = table(self, census)
        counted.append(found[0])
        return found

    def leading(*given: Any, **named: Any) -> Any:
        if seen[0].size == 0:
            seen[0] = counted[-1] + noise(*given, **named)
        return seen[0] - counted[-1]

    monkeypatch.setattr(margins.ExactMargins, "_count_table", counting)
    monkeypatch.setattr(margins, "draw_lattice_noise", leading)
    shuffled = TRACT.copy()
    for a, b in zip(np.flatnonzero(TENURE == "o"), np.flatnonzero(TENURE == "r"), strict=False):
        shuffled[a], shuffled[b] = shuffled[b], shuffled[a]
    order = np.arange(ROWS)
    here = released(town(tmp_path / "one", "exact-margins", MARGINS, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    there = released(town(tmp_path / "other", "exact-margins", MARGINS, tract=shuffled, order=order[::-1]))
    assert (counted[0] != counted[-1]).any()
    assert here == there


def test_noisy_tables_with_the_same_counts_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its counts to the first release; places and tenures are others."""
    noisy, seen, truths = ListedCells.add_noise, {}, []

    def leading(self: ListedCells, variance: Any, key: Key) -> Any:
        truths.append(self.frame["count"].to_list())
        return seen.setdefault(self.by, noisy(self, variance, key))

    monkeypatch.setattr(ListedCells, "add_noise", leading)
    order = np.arange(ROWS)
    here = released(town(tmp_path / "one", "gaussian-tables", NOISY, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    shuffled = np.random.default_rng(9).integers(0, 6, ROWS)
    there = released(town(tmp_path / "other", "gaussian-tables", NOISY, tract=shuffled, order=order[::-1]))
    assert truths[0] != truths[2]
    assert here == there


def test_phsafe_with_the_same_counts_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its counts to the first release; ages and sexes are others."""
    noisy, seen, truths = Answers.add_noise, {}, []

    def leading(self: Answers, key: Key) -> Any:
        truths.append(self.counts)
        return seen.setdefault(self.measured.place, noisy(self, key))

    monkeypatch.setattr(Answers, "add_noise", leading)
    settings, order = "tau = { PH1_num = 2 }\n", np.arange(ROWS)
    here = released(town(tmp_path / "one", "phsafe", settings, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    other = town(tmp_path / "other", "phsafe", settings, tract=TRACT, order=order[::-1], seed=5)
    persons = (other / "person.csv").read_text().splitlines()
    (other / "person.csv").write_text("\n".join([persons[0], *persons[40:]]) + "\n")  # fewer persons
    there = released(other)
    half = len(truths) // 2
    assert any((a != b).any() for a, b in zip(truths[:half], truths[half:], strict=True))
    told: list[Any] = [json.loads(part.pop("receipt.json")) for part in (here, there)]
    digests = [part["mechanisms"][0].pop("input_digest") for part in told]
    assert digests[0] != digests[1], "the censuses differ; keyed, the digest is a random number"
    assert told[0] == told[1]
    assert [file for file in here if here[file] != there.get(file)] == ["checksums.txt"]
    assert here.keys() == there.keys()


@pytest.mark.parametrize("mode", ["gls", "classic"])
def test_topdown_with_the_same_measurements_has_the_same_bytes(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its answers to the first measurements; the tree is the same."""
    truths: list[Any] = []

    def lead(read: Any) -> Any:
        def leading(measured: Measurements, *given: Any) -> Any:
            with lock:  # parents of one level are solved in several threads
                if not any(measured.truth is truth for truth in truths):
                    truths.append(measured.truth)
                number = next(i for i, truth in enumerate(truths) if truth is measured.truth)
            return read(replace(measured, truth=truths[number - second[0]]) if second else measured, *given)

        return leading

    lock = Lock()
    second: list[int] = []
    # both places where exact answers meet their noise: one query of some geounits, and all queries of many parents
    monkeypatch.setattr(Measurements, "_add_exact", lead(Measurements._add_exact))
    monkeypatch.setattr(measure, "_linear_by_kind", lead(measure._linear_by_kind))
    monkeypatch.setattr(upper_tree, "digest_run", lambda *_: b"the same in both")
    settings = f'mode = "{mode}"\n' + TOPDOWN
    order = np.arange(ROWS)
    here = released(town(tmp_path / "one", "topdown", settings, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    second.append(len(truths))
    shuffled = np.random.default_rng(9).permuted(TRACT)
    there = released(town(tmp_path / "other", "topdown", settings, tract=shuffled, order=order[::-1], seed=5))
    assert len(truths) == 2 * second[0]
    assert any(
        (a.counts.tolist() != b.counts.tolist()) for a, b in zip(truths[0], truths[second[0]], strict=True)
    )
    assert [file for file in here if here[file] != there.get(file)] == []
    assert here.keys() == there.keys()


def test_detailed_counts_with_the_same_measurements_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its counts to what the first run measured."""
    measured, seen, counted = mechanism.measure_groups, [], []

    def leading(item: Any, counts: Any, *rest: Any) -> Any:
        counted.append((item.kind.name, counts.keys.tolist(), counts.counts.tolist()))
        if len(counted) <= SETS:
            seen.append(measured(item, counts, *rest))
        return seen[(len(counted) - 1) % SETS]

    monkeypatch.setattr(mechanism, "measure_groups", leading)
    monkeypatch.setattr(mechanism, "encode_counts", lambda *_: [b"the same in both"])
    settings, order = f'codes = "{LISTS}"\n' + DETAILED, np.arange(ROWS)
    here = released(town(tmp_path / "one", "safetab-p", settings, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    shuffled = np.random.default_rng(9).permuted(TRACT)
    there = released(
        town(tmp_path / "other", "safetab-p", settings, tract=shuffled, order=order[::-1], seed=5)
    )
    assert len(counted) == 2 * SETS
    assert counted[:SETS] != counted[SETS:]
    assert here == there


HOUSEHOLDS = f"""totals = "{TOTALS / "t1.txt"}"
codes = "{TOTALS / "codes"}"
preset = ""
budget = {{ "STATE-1" = "1", "COUNTY-1" = "1" }}
thresholds = {{ "STATE-1" = "10,20,30", "COUNTY-1" = "10,20,30" }}
races = ["sex"]
ethnicity = ""
householder = "sex"
householders = ["f"]
household_type = "size"
types = {{ "1" = "4", "2" = "1", "3" = "5" }}
tenures = {{ "o" = "2", "r" = "3" }}
"""


def test_households_of_groups_with_the_same_counts_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The noise of the second run is what leads from its counts to the first release."""
    noisy, made, sources = Measurement.add_noise, {}, []

    def leading(
        self: Measurement, level: Any, groups: np.ndarray, source: np.ndarray, key: Key, label: Any
    ) -> Any:
        sources.append(source)
        place = (label, level.file, groups.tobytes())
        if place not in made:
            made[place] = noisy(self, level, groups, source, key, label)
        return made[place]

    monkeypatch.setattr(Measurement, "add_noise", leading)
    monkeypatch.setattr(SafeTabH, "_bind_key", lambda _, key, *__: key.bind("the same in both"))
    order = np.arange(ROWS)
    here = released(town(tmp_path / "one", "safetab-h", HOUSEHOLDS, tract=TRACT, order=order))
    request.getfixturevalue("elsewhere")
    shuffled = np.random.default_rng(9).permuted(TRACT)
    there = released(
        town(tmp_path / "other", "safetab-h", HOUSEHOLDS, tract=shuffled, order=order[::-1], seed=5)
    )
    half = len(sources) // 2
    assert any((a != b).any() for a, b in zip(sources[:half], sources[half:], strict=True))
    assert [file for file in here if here[file] != there.get(file)] == []
    assert here.keys() == there.keys()


def test_every_mechanism_is_here() -> None:
    """One without a finite bound publishes nothing, or promises nothing of this."""
    unbounded = {
        "swapping-noisy-key",
        "cell-key",
        "special-tabulations",
    }
    here = {
        *VARIANTS,
        *PAIRWISE,
        "exact-margins",
        "gaussian-tables",
        "topdown",
        "safetab-p",
        "safetab-h",
        "phsafe",
        *unbounded,
    }
    assert here == {name for name, item in list_mechanisms().items() if item.target.startswith("stirred.")}


def test_a_mechanism_without_a_bound_publishes_nothing(tmp_path: Path) -> None:
    settings = SWAP + 'noisy = "size"\nchange = "1/4"\n'
    folder = town(tmp_path / "one", "swapping-noisy-key", settings, tract=TRACT, order=np.arange(ROWS))
    with pytest.raises(StirredError):
        released(folder)
    assert not (folder / "packet").exists()
