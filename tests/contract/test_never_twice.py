"""Never the same noise twice: with one key, two runs share randomness only if they publish the same bytes.

Every mechanism, every kind of change: a record, a link, the geography, a rate or a budget. The secrets that streams and
blocks are made of are recorded; two runs whose publications differ must have none in common, because the difference of
two releases that share noise shows the change exactly. Recording is deterministic: no false alarms. At the end releases
are really subtracted.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from contract.registry import example
from stirred import ExactMargins, GaussianTables
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import NoisyKey, NoisyTables, NoVacuous, PermutationSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.publish.plan import load
from stirred.publish.tuning import Target, rehearse, tune

SPINE = ["state", "county", "tract", "block_group", "block"]
SCHEMA: dict[str, Any] = {
    "geography": {"spine": SPINE},
    "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
}
KEY = Key.for_tests(5)


def tables(households: int = 160) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One state, 2 counties, 4 tracts, 8 blocks in the order of their codes; sizes 1 to 3."""
    number = range(households)
    block = [i % 8 for i in number]
    home = pl.DataFrame(
        {
            "household_id": [10 + i for i in number],
            "state": ["1"] * households,
            "county": [f"1{b // 4}" for b in block],
            "tract": [f"1{b // 2}" for b in block],
            "block_group": [f"1{b // 2}" for b in block],
            "block": [f"1{b}" for b in block],
            "kind": [1] * households,
            "gq_type": [0] * households,
            "size": [1 + (i // 8) % 3 for i in number],
            "tenure": ["own" if i % 5 < 3 else "rent" for i in number],
        }
    )
    person = home.select("household_id", pl.int_ranges(0, "size").alias("n")).explode("n").drop("n")
    person = person.with_row_index("i").select(
        "household_id",
        age=(pl.col("i").cast(pl.Int64) * 13) % 90,
        hispanic=1 + (pl.col("i").cast(pl.Int64) % 4) // 3,
        race=1 + pl.col("i").cast(pl.Int64) % 5,
    )
    return home, person


def changed(change: str) -> Census:
    home, person = tables()
    first = pl.int_range(pl.len()) == 0
    match change:
        case "a held value":
            home = home.with_columns(tenure=pl.when(first).then(pl.lit("rent")).otherwise("tenure"))
        case "a person's race":
            person = person.with_columns(race=pl.when(first).then(pl.lit(6)).otherwise("race"))
        case "a person's home":
            last = home["household_id"][-1]
            person = person.with_columns(
                household_id=pl.when(first).then(pl.lit(last)).otherwise("household_id")
            )
        case "a block's tract":
            # block 12 goes from tract 11 to tract 10: every block has the records it had, in the same order
            moved = pl.col("block") == "12"
            home = home.with_columns(
                pl.when(moved).then(pl.lit("10")).otherwise(name).alias(name)
                for name in ("tract", "block_group")
            )
        case "a name":
            home = home.with_columns(county=pl.col("county").replace({"11": "19"}))
        case "one household less":
            gone = home["household_id"][-1]
            home, person = (frame.filter(pl.col("household_id") != gone) for frame in (home, person))
        case "the order of records":
            home, person = home.reverse(), person.reverse()
    return Census.of(SCHEMA, {"household": home, "person": person})


CHANGES = (
    "a held value",
    "a person's race",
    "a person's home",
    "a block's tract",
    "a name",
    "one household less",
)
AREAS = ["county", "tract", "block_group", "block"]
SWAP: dict[str, Any] = {"match": ["state", "size"], "swap": AREAS}
# a mechanism, and the same with one parameter changed
PAIRS: dict[str, tuple[Callable[[], Mechanism], Callable[[], Mechanism]]] = {
    "own": (
        lambda: example("own_mechanism").NoisyCounts(area="tract"),
        lambda: example("own_mechanism").NoisyCounts(area="tract", sigma_squared=Fraction(5)),
    ),
    "swapping": (
        lambda: PermutationSwapping(**SWAP, rate="1/2"),
        lambda: PermutationSwapping(**SWAP, rate="1/3"),
    ),
    "swapping, tables": (
        lambda: PermutationSwapping(**SWAP, rate="1/2", microdata=False, tables=[["tract", "tenure"]]),
        lambda: PermutationSwapping(**SWAP, rate="1/2", microdata=False, tables=[["tenure", "tract"]]),
    ),
    "no vacuous swaps": (
        lambda: NoVacuous(**SWAP, rate="1/2", carry=False),
        lambda: NoVacuous(**SWAP, rate="1/3", carry=False),
    ),
    "noisy key": (
        lambda: NoisyKey(**SWAP, rate="1/2", noisy="size", change="1/4"),
        lambda: NoisyKey(**SWAP, rate="1/2", noisy="size", change="1/5"),
    ),
    "noisy tables": (
        lambda: NoisyTables(**SWAP, rate="1/2", tables=[["tract", "tenure"]], sigma_squared=9),
        lambda: NoisyTables(**SWAP, rate="1/2", tables=[["tract", "tenure"]], sigma_squared=10),
    ),
    "gaussian tables": (
        lambda: GaussianTables(record="household", tables=[["county"], ["tract"]], rho_squared="1"),
        lambda: GaussianTables(record="household", tables=[["county"], ["tract"]], rho_squared="2"),
    ),
    "exact margins": (
        lambda: ExactMargins(rows="county", columns="tenure", both=True, rho_squared="1"),
        lambda: ExactMargins(rows="county", columns="tenure", both=True, rho_squared="2"),
    ),
    "topdown": (
        lambda: TopDown(rho_squared="1", replicates=0),
        lambda: TopDown(rho_squared="2", replicates=0),
    ),
    "topdown, closed form": (
        lambda: TopDown(rho_squared="1", mode="gls", replicates=0),
        lambda: TopDown(rho_squared="2", mode="gls", replicates=0),
    ),
}


def content(release: Release) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, data in [*release.microdata.items(), *release.tables.items()]:
        table = data.to_table() if isinstance(data, pads.Dataset) else data
        found[name] = (table.column_names, table.to_pylist())
    return found


class Recorder:
    """Runs mechanisms and remembers the secrets their streams and blocks came from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.secrets: set[bytes] = set()
        derive = Key._derive

        def derived(key: Key, purpose: str, name: tuple[str | bytes | int, ...]) -> bytes:
            secret = derive(key, purpose, name)
            if purpose in ("stream", "blocks"):
                self.secrets.add(secret)
            return secret

        monkeypatch.setattr(Key, "_derive", derived)

    def run(self, mechanism: Mechanism, census: Census) -> tuple[set[bytes], dict[str, Any]]:
        self.secrets = set()
        published = content(mechanism.release(census, key=KEY))
        assert self.secrets, "a run without randomness is not what this test is for"
        return self.secrets, published


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


@pytest.mark.parametrize("name", PAIRS)
def test_a_changed_census_and_the_same_key(name: str, recorder: Recorder) -> None:
    make, _ = PAIRS[name]
    secrets, published = recorder.run(make(), changed("nothing"))
    for change in CHANGES:
        other, result = recorder.run(make(), changed(change))
        assert not secrets & other or result == published, f"the noise is used again after changing {change}"


@pytest.mark.parametrize("name", PAIRS)
def test_a_changed_parameter_and_the_same_key(name: str, recorder: Recorder) -> None:
    make, another = PAIRS[name]
    census = changed("nothing")
    assert not recorder.run(make(), census)[0] & recorder.run(another(), census)[0]


@pytest.mark.parametrize("name", PAIRS)
def test_the_order_of_records_is_no_change(name: str, recorder: Recorder) -> None:
    make, _ = PAIRS[name]
    assert recorder.run(make(), changed("nothing")) == recorder.run(make(), changed("the order of records"))


def test_no_two_mechanisms_share_noise(recorder: Recorder) -> None:
    census = changed("nothing")
    runs = [recorder.run(make(), census)[0] for make, _ in PAIRS.values()]
    assert len(set.union(*runs)) == sum(map(len, runs))


def test_the_recorder_sees_noise_that_forgets_the_census(recorder: Recorder) -> None:
    class Forgetful:
        """The mutant: bound to name and parameters alone."""

        name, parameters = "forgetful", staticmethod(dict)

        def release(self, census: Census, *, key: Key) -> Any:
            noise = int(key.bind(self.name, "{}").stream("count").words32(1)[0])
            return type(
                "Made", (), {"microdata": {}, "tables": {"t": _one(census.count("household") + noise)}}
            )

    secrets, published = recorder.run(Forgetful(), changed("nothing"))  # type: ignore[arg-type]
    other, result = recorder.run(Forgetful(), changed("one household less"))  # type: ignore[arg-type]
    assert secrets & other
    assert result != published


def _one(number: int) -> Any:
    return pa.table({"count": [number]})


def test_the_recorder_sees_a_topdown_that_forgets_the_tree(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_leaves(key: Key, _spine: object, leaf: Any, _constraints: object) -> bytes:
        return key.digest(leaf.first.tobytes(), leaf.cells.tobytes(), leaf.counts.tobytes())

    monkeypatch.setattr("stirred.mechanisms.topdown.run.upper_tree.digest_input", of_leaves)
    runs = [
        recorder.run(TopDown(rho_squared="1", replicates=0), changed(name))
        for name in ("nothing", "a block's tract")
    ]
    assert runs[0][0] & runs[1][0]
    assert runs[0][1] != runs[1][1]


def test_replicates_of_tuning_and_rehearsal_never_share_noise(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs: list[set[bytes]] = []
    release = PermutationSwapping.release

    def recorded(mechanism: PermutationSwapping, census: Census, **more: Any) -> Release:
        recorder.secrets = set()
        made = release(mechanism, census, **more)
        runs.append(recorder.secrets)
        return made

    monkeypatch.setattr(PermutationSwapping, "release", recorded)
    census = changed("nothing")
    tune(census, PermutationSwapping(**SWAP, rate="1/2"), Target.parse("mae tract×tenure <= 5"), runs=3)
    (tmp_path / "plan.toml").write_text(
        """title = "rehearsal"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/2"
[[table]]
name = "tenure"
record_type = "household"
by = ["tract", "tenure"]
"""
    )
    rehearse(load(tmp_path / "plan.toml"), census, runs=3)
    assert len(runs) >= 9
    assert all(runs)
    assert len(set.union(*runs)) == sum(map(len, runs))


# ---- subtracted ------------------------------------------------------------------------------------------------------


def test_subtracted_swaps_do_not_show_the_one_changed_record() -> None:
    """With shared randomness two releases would differ in one household; with independent ones in many.

    160 households in three strata, half of them moved: that two independent swaps publish microdata less than 10
    records apart has probability far below 1e-9 (some 80 records move to one of 8 blocks in each).
    """
    mechanism = PermutationSwapping(**SWAP, rate="1/2")
    one, other = (
        content(mechanism.release(changed(change), key=KEY))["household"][1]
        for change in ("nothing", "a held value")
    )
    number = {"household_id"}  # given anew in the order of publication
    count = [
        Counter(tuple(sorted((k, row[k]) for k in row.keys() - number)) for row in rows)
        for rows in (one, other)
    ]
    apart = sum(((count[0] - count[1]) + (count[1] - count[0])).values())
    assert apart > 10


@pytest.mark.parametrize("change", ["a person's race", "a block's tract"])
def test_subtracted_measurements_do_not_show_the_change(change: str, tmp_path: Path) -> None:
    """The noisy measurements of TopDown with one key: with shared noise nearly all their differences would be zero.

    Every part of ρ² = 1/10 gives a variance above 10, so two independent answers to one cell agree with probability
    below 0.1 (1/√(4π·10)); that half of more than 1,000 do has probability below 1e-200 (Chernoff).
    """
    answers: list[dict[tuple[str, str, str], list[int]]] = []
    for name in ("nothing", change):
        out = tmp_path / ("before" if name == "nothing" else "after")
        out.mkdir()
        TopDown(rho_squared="1/10", keep_nmf=True, replicates=0).release(changed(name), key=KEY, out=out)
        answers.append({})
        for path in out.rglob("DPQuery/*.parquet"):
            for row in pq.read_table(path).to_pylist():
                answers[-1][path.parts[-3], row["geocode"], row["query_name"]] = row["value"]
    both = [(answers[0][name], answers[1][name]) for name in answers[0].keys() & answers[1].keys()]
    cells = [a == b for one, other in both for a, b in zip(one, other, strict=True)]
    assert len(cells) > 1000
    assert 2 * sum(cells) < len(cells)
