"""The mechanism: its promise, its hygiene, its refusals, and mutants that its own verification must stop."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.errors import BudgetError, DataError, InputError, PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap import psa as mechanism_module
from stirred.mechanisms.swap.budget import theorem_1, tight_budget
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.records import Members
from trusted import trusted

SCHEMA = {
    "name": "toy",
    "geography": {"spine": ["state", "county", "tract"]},
    "record": {
        "household": {"id": "hid", "kind": {"column": "kind", "occupied": [1], "vacant": [2]}},
        "person": {"household": "hid", "of": "household"},
    },
}
KEY = Key.for_tests(7)


def tables(n: int = 3_000, seed: int = 1) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 5, n)
    tract = rng.integers(0, 40, n)
    ids = rng.permutation(10 * n)[:n]
    household = pa.table(
        {
            "hid": ids,
            "state": [f"{t // 20}" for t in tract],
            "county": [f"{t // 5:02d}" for t in tract],
            "tract": [f"{t:03d}" for t in tract],
            "size": size,
            "tenure": pa.array(rng.choice(["own", "rent", None], n)),
            "kind": np.where(size == 0, 2, 1),
        }
    )
    owner = np.repeat(np.arange(n), size)
    person = pa.table(
        {
            "hid": ids[owner],
            "tract": pa.array([f"{t:03d}" for t in tract[owner]]),
            "age": rng.integers(0, 50, owner.size),
            "sex": rng.choice(["f", "m"], owner.size),
        }
    )
    return household, person


def census(household: pa.Table, person: pa.Table | None = None) -> Census:
    if person is None:
        schema = {**SCHEMA, "record": {"household": SCHEMA["record"]["household"]}}
        return Census.of(schema, {"household": household})
    return Census.of(SCHEMA, {"household": household, "person": person})


def psa(**changed: object) -> PermutationSwapping:
    settings: dict[str, object] = {"match": ["state", "size"], "swap": ["county", "tract"], "rate": "1/5"}
    return PermutationSwapping(**{**settings, **changed})


def frame(table: object) -> pl.DataFrame:
    return pl.from_arrow(table).with_columns(pl.selectors.categorical().cast(pl.String))


def test_it_is_a_mechanism() -> None:
    assert isinstance(psa(), Mechanism)
    assert psa().parameters()["rate"] == "1/5"


def test_permuting_the_rows_of_the_input_changes_no_public_byte(tmp_path: Path) -> None:
    household, person = tables()
    rng = np.random.default_rng(2)
    contents = []
    for attempt in range(2):
        out = tmp_path / str(attempt)
        out.mkdir()
        if attempt:
            household = household.take(rng.permutation(household.num_rows))
            person = person.take(rng.permutation(person.num_rows))
        psa(tables=[["county", "tenure"]]).release(census(household, person), key=KEY, out=out)
        contents.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    assert set(contents[0]) == {"household.parquet", "person.parquet"}
    assert contents[0] == contents[1]


def test_persons_travel_with_their_household() -> None:
    household, person = tables()
    release = psa().release(census(household, person), key=KEY)
    homes, people = frame(release.microdata["household"]), frame(release.microdata["person"])
    assert homes["hid"].to_list() == list(range(1, homes.height + 1))
    assert (
        people.group_by("hid")
        .len()
        .join(homes, on="hid")
        .select((pl.col("len") == pl.col("size")).all())
        .item()
    )
    shown = people.join(homes.select("hid", pl.col("tract").alias("home")), on="hid")
    assert (shown["tract"] == shown["home"]).all()
    # some household moved, with all who live there
    before = frame(person).group_by("tract", "age", "sex").len().sort("tract", "age", "sex")
    after = people.group_by("tract", "age", "sex").len().sort("tract", "age", "sex")
    assert not before.equals(after)
    # families stay together: the multiset of households' ages is untouched
    ages = [
        f.group_by("hid").agg(pl.col("age").sort()).select("age").to_series().to_list()
        for f in (frame(person), people)
    ]
    assert sorted(map(tuple, ages[0])) == sorted(map(tuple, ages[1]))


def test_the_two_margins_are_kept_and_the_joint_table_is_not() -> None:
    household, _ = tables()
    release = psa(tables=[["tract", "tenure"], ["county", "state", "size"]]).release(
        census(household), key=KEY
    )
    before, after = frame(household), frame(release.microdata["household"])

    def counts(data: pl.DataFrame, *by: str) -> list[tuple[object, ...]]:
        return sorted(data.group_by(by).len().rows(), key=repr)

    for kept in (("state", "size", "county", "tract"), ("state", "size", "tenure", "kind")):
        assert counts(before, *kept) == counts(after, *kept)
    assert counts(before, "tract", "tenure") != counts(after, "tract", "tenure")
    table = frame(release.tables["tract × tenure"])
    assert sorted(table.rows(), key=repr) == counts(after, "tract", "tenure")
    assert all(check.kept and check.numbers > 0 for check in release.checks)
    vacant = pl.col("kind") == 2
    untouched = [counts(d.filter(vacant), "state", "county", "tract", "tenure") for d in (before, after)]
    assert untouched[0] == untouched[1]
    assert any("take no part" in line for line in release.specification.untouched)
    assert not release.private


def test_the_specification_comes_first_and_is_theorem_1_at_the_realised_b() -> None:
    household, _ = tables()
    spec = psa().specification(census(household))
    occupied = frame(household).filter(pl.col("kind") == 1)
    b = occupied.group_by("state", "size").len()["len"].max()
    by_name = {bound.name: bound.budget for bound in spec.bounds}
    assert theorem_1(b, "1/5") in by_name.values()
    assert tight_budget(b, "1/5") in by_name.values()
    assert spec.budget == min(bound.budget for bound in spec.bounds if bound.status == "proved")
    assert str(spec.input_premetric) == "d_Ham(household)"
    assert str(spec.output_premetric) == "D_mult"
    words = " ".join(invariant.words() for invariant in spec.multiverse)
    assert "households by state × size × county × tract" in words


@pytest.mark.parametrize("rate", ["0", "1"])
def test_rates_zero_and_one_are_told_and_refused(rate: str) -> None:
    household, _ = tables(100)
    mechanism = psa(rate=rate)
    assert not mechanism.specification(census(household)).budget.is_finite
    with pytest.raises(PrivacyError, match="protects nothing"):
        mechanism.release(census(household), key=KEY)


def test_all_records_alike_make_singleton_universes_and_say_so() -> None:
    alike = pa.table(
        {
            "hid": [1, 2, 3],
            "state": ["0"] * 3,
            "county": ["0"] * 3,
            "tract": ["0"] * 3,
            "size": [2] * 3,
            "kind": [1] * 3,
        }
    )
    spec = psa(rate="0").specification(census(alike))
    assert spec.budget.is_zero
    assert any("every universe is a singleton" in note for note in spec.notes)
    with pytest.raises(PrivacyError, match="nothing can move"):
        psa().release(census(alike), key=KEY)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_very_small_censuses(n: int) -> None:
    household, person = tables(3)
    household = household.slice(0, n)
    mine = pa.compute.is_in(person["hid"], household["hid"].combine_chunks())
    there = census(household, person.filter(mine))
    if n:  # one record cannot move, and these two lie in strata of their own
        with pytest.raises(PrivacyError, match=f"{n} alone in their stratum"):
            psa().release(there, key=KEY)
        return
    release = psa().release(there, key=KEY)
    assert release.microdata["household"].num_rows == release.microdata["person"].num_rows == 0


def test_strata_of_one_are_listed() -> None:
    household, _ = tables(60)
    spec = psa(match=["state", "size", "tenure", "county"], swap=["tract"]).specification(census(household))
    assert any("alone in their stratum" in line for line in spec.untouched)


def test_missing_values_are_a_value_of_their_own() -> None:
    household, _ = tables()
    release = psa(match=["tenure"], swap=["state", "county", "tract"]).release(census(household), key=KEY)
    nulls = [
        frame(t).filter(pl.col("kind") == 1)["tenure"].null_count()
        for t in (household, release.microdata["household"])
    ]
    assert nulls[0] == nulls[1] > 0


def test_a_census_without_identifiers_is_ordered_by_content(tmp_path: Path) -> None:
    household = tables()[0].drop_columns(["hid"])
    schema = {"geography": SCHEMA["geography"], "record": {"household": {}}}
    seen = set()
    for attempt in range(2):
        out = tmp_path / str(attempt)
        out.mkdir()
        shuffled = household.take(np.random.default_rng(attempt).permutation(household.num_rows))
        psa().release(Census.of(schema, {"household": shuffled}), key=KEY, out=out)
        seen.add((out / "household.parquet").read_bytes())
    assert len(seen) == 1


def test_persons_can_be_the_resolution() -> None:
    _, person = tables()
    schema = {"geography": {"spine": ["tract"]}, "record": {"person": {}}}
    mechanism = psa(resolution="person", match=["sex"], swap=["tract"], drop=["hid"])
    spec = mechanism.specification(Census.of(schema, {"person": person}))
    assert str(spec.input_premetric) == "d_Ham(person)"
    release = mechanism.release(Census.of(schema, {"person": person}), key=KEY)
    assert release.microdata["person"].column_names == ["tract", "age", "sex"]  # the order of the file


def test_tables_alone_release_no_records_and_gain_from_two_types() -> None:
    household, _ = tables()
    release = psa(tables=[["county", "tenure"]], microdata=False).release(census(household), key=KEY)
    assert not release.microdata
    assert release.tables["county × tenure"].column_names == ["county", "tenure", "count"]
    assert all(check.kept for check in release.checks)


def test_the_draw_changes_with_parameters_and_data_and_key() -> None:
    household, _ = tables()

    def content(mechanism: PermutationSwapping, table: pa.Table, key: Key) -> list[tuple[object, ...]]:
        return frame(mechanism.release(census(table), key=key).microdata["household"]).rows()

    base = content(psa(), household, KEY)
    assert content(psa(), household, KEY) == base
    assert content(psa(), household, Key.for_tests(8)) != base
    assert content(psa(rate="1/6"), household, KEY) != base
    more = pa.concat_tables([household, household.slice(0, 1).set_column(0, "hid", [[10**9]])])
    assert content(psa(), more, KEY)[: len(base)] != base


def test_refusals_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    household, person = tables(200)
    there = census(household, person)
    with pytest.raises(InputError, match="both a match and a swap variable"):
        psa(match=["state", "county"]).roles(there)
    with pytest.raises(InputError, match="did you mean county"):
        psa(swap=["countty"]).roles(there)
    with pytest.raises(InputError, match="tract is held while county is swapped"):
        psa(swap=["county"]).roles(there)
    with pytest.raises(InputError, match="nothing is to be swapped"):
        psa(swap=[]).roles(there)
    with pytest.raises(InputError, match="should be a valid list"):
        psa(swap="county")
    with pytest.raises(BudgetError, match="float"):
        psa(rate=0.05)
    with pytest.raises(PrivacyError, match="untouched"):
        psa(untouched="refuse").release(there, key=KEY)
    twice = census(pa.concat_tables([household, household]), person)
    with pytest.raises(DataError, match="used before by another record"):
        psa().release(twice, key=KEY)
    orphans = census(household.slice(0, 40), person)
    with pytest.raises(DataError, match="orphans"):
        psa().release(orphans, key=KEY)
    # the swap itself relies on no check of the records
    with pytest.raises(DataError, match="not unique"):
        psa().release(trusted(twice), key=KEY)
    with pytest.raises(DataError, match="belong to no household"):
        psa().release(trusted(orphans), key=KEY)


def test_untouched_records_can_be_left_out_with_their_persons() -> None:
    household, person = tables(400)
    kind = np.where(
        np.arange(400) % 3 == 0, 2, household["kind"].to_numpy()
    )  # some are vacant on paper, with persons
    household = household.set_column(household.column_names.index("kind"), "kind", [kind])
    release = psa(untouched="drop").release(census(household, person), key=KEY)
    homes, people = frame(release.microdata["household"]), frame(release.microdata["person"])
    assert homes.height == int((kind == 1).sum())
    assert people.height == int(homes["size"].sum())
    assert not release.specification.untouched or "take no part" not in release.specification.untouched[0]


def test_a_level_between_moves_along() -> None:
    household, _ = tables()
    release = psa(swap=["tract"]).release(census(household), key=KEY)
    homes = frame(release.microdata["household"])
    nested = homes.select(
        pl.col("county") == (pl.col("tract").cast(pl.Int64) // 5).cast(pl.String).str.zfill(2)
    )
    assert nested.to_series().all()


# Mutants: the run itself must stop, whatever the tests say.


def mutant(monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    household, person = tables()
    monkeypatch.setattr(mechanism_module, "draw_moves", change)
    with pytest.raises(PrivacyError, match="does not keep its invariants"):
        psa().release(census(household, person), key=KEY)


def test_mutant_strata_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(words: object, *, ids: np.ndarray, **_: object) -> Moves:
        rows = np.arange(400, dtype=np.uint32)
        return Moves(receivers=rows, givers=np.roll(rows, 1))

    mutant(monkeypatch, draw)


def test_mutant_values_copied_instead_of_permuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(words: object, *, strata: np.ndarray, **_: object) -> Moves:
        rows = np.flatnonzero(strata == 0).astype(np.uint32)
        return Moves(receivers=rows, givers=np.full_like(rows, rows[0]))

    mutant(monkeypatch, draw)


def test_mutant_swap_variable_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    original = mechanism_module.apply_moves

    def leave_tract(frame: object, *rest: object) -> dict[str, object]:
        columns = original(frame, *rest)
        return {**columns, "tract": frame.columns["tract"]}

    household, person = tables()
    monkeypatch.setattr(mechanism_module, "apply_moves", leave_tract)
    with pytest.raises(PrivacyError, match="by state × size × county × tract"):
        psa().release(census(household, person), key=KEY)


def test_mutant_held_variable_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    original = mechanism_module.apply_moves

    def move_tenure(frame: object, moves: Moves, engine: object) -> dict[str, object]:
        columns = original(frame, moves, engine)
        column = frame.columns["tenure"]
        return {**columns, "tenure": replace(column, codes=np.roll(column.codes, 1))}

    household, person = tables()
    monkeypatch.setattr(mechanism_module, "apply_moves", move_tenure)
    with pytest.raises(PrivacyError, match="all held variables"):
        psa().release(census(household, person), key=KEY)


def test_mutant_persons_not_carried_along(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Members.batches

    def stay(self: Members, order: np.ndarray, **options: int) -> object:
        # persons keep the place of their household in the input: the published order is ignored
        yield from original(self, np.arange(order.size, dtype=np.uint32), **options)

    household, person = tables()
    monkeypatch.setattr(Members, "batches", stay)
    with pytest.raises(PrivacyError, match="person records"):
        psa().release(census(household, person), key=KEY)


def test_the_closed_forms_warn_about_strata_that_hardly_swap() -> None:
    household, _ = tables(300)
    release = psa(match=["state", "size", "county"], swap=["tract"], rate=Fraction(1, 50)).release(
        census(household), key=KEY
    )
    assert any("effective rate" in note for note in release.notes)
