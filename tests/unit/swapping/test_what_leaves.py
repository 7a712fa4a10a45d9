"""Every byte that leaves: what is left out leaves no trace, what is not swapped is listed and checked."""

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.errors import PrivacyError
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap import psa as mechanism_module
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.records import Members
from stirred.spec import Margin

KINDS = {"column": "kind", "occupied": [1], "vacant": [2], "group_quarters": [3]}
SCHEMA = {
    "name": "toy",
    "geography": {"spine": ["state", "block"], "off_spine": {"place": {"of": "block"}}},
    "record": {
        "household": {"id": "hid", "kind": KINDS},
        "person": {"household": "hid", "of": "household"},
    },
}
KEY = Key.for_tests(3)
SECRET = ("lonely block", "warden")  # values that only records not swapped have


def tables(n: int = 600) -> dict[str, pa.Table]:
    rng = np.random.default_rng(4)
    kind = np.where(np.arange(n) % 6 == 0, 3, np.where(np.arange(n) % 7 == 0, 2, 1))
    block = np.array([f"b{b}" for b in rng.integers(0, 9, n)], dtype=object)
    block[np.flatnonzero(kind == 3)[:2]] = SECRET[0]
    size = np.where(kind == 2, 0, rng.integers(1, 4, n))
    owner = np.repeat(np.arange(n), size)
    role = np.where(kind[owner] == 3, SECRET[1], rng.choice(["head", "child"], owner.size))
    household = {
        "hid": rng.permutation(n),
        "state": ["s"] * n,
        "block": block,
        "size": size,
        "tenure": rng.integers(0, 3, n),
        "kind": kind,
    }
    age = pa.array(rng.integers(0, 32, owner.size) * 8, pa.uint8(), mask=rng.random(owner.size) < 0.1)
    person = {
        "hid": household["hid"][owner],
        "role": role,
        "age": age,
        "place": [f"place of {b}" for b in block[owner]],
    }
    return {"household": pa.table(household), "person": pa.table(person)}


def psa(**changed: object) -> PermutationSwapping:
    settings: dict[str, object] = {"match": ["state", "size"], "swap": ["block"], "rate": "1/5"}
    return PermutationSwapping(**{**settings, **changed})


def shown(data: object) -> pl.DataFrame:
    table = data if isinstance(data, pa.Table) else data.to_table()
    return pl.from_arrow(table).with_columns(pl.selectors.categorical().cast(pl.String))


def test_what_is_left_out_leaves_no_value_in_any_dictionary(tmp_path: Path) -> None:
    there = Census.of(SCHEMA, tables())
    release = psa(untouched="drop").release(there, key=KEY)
    for name, column in (("household", "block"), ("person", "role")):
        dictionary = release.microdata[name][column].combine_chunks().dictionary.to_pylist()
        assert dictionary == sorted(set(shown(release.microdata[name])[column]))
    psa(untouched="drop").release(there, key=KEY, out=tmp_path)
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"child" in content  # dictionaries stand in the file as they are
    assert not any(secret.encode() in content for secret in SECRET)


def test_what_is_left_out_is_no_part_of_the_invariants() -> None:
    there = Census.of(SCHEMA, tables())
    release = psa(untouched="drop", carry=False).release(there, key=KEY)
    after = Census.of({**SCHEMA, "record": {"household": {"id": "hid", "kind": KINDS}}}, release.microdata)
    margins = [found for found in release.specification.multiverse if isinstance(found, Margin)]
    assert len(margins) == 2
    for margin in margins:
        assert margin.conditions() == {"kind": ("1",)}
        assert "only kind = 1" in margin.words()
        rows = [sorted(shown(margin.tabulate(census)).rows(), key=repr) for census in (there, after)]
        assert rows[0] == rows[1]


def test_whoever_is_not_swapped_is_listed_with_place_and_persons() -> None:
    there = Census.of(SCHEMA, tables())
    release = psa().release(there, key=KEY)
    words = [invariant.words() for invariant in release.specification.multiverse]
    assert any("take no part by their kind (kind = 2 or 3) with all variables and places" in w for w in words)
    assert any(w == "persons of households that take no part with their places" for w in words)
    assert any(w == "who lives together, and everything about them except where" for w in words)
    # and it is so: group quarters stand where they stood, with the same persons
    seen = []
    for source in (tables(), release.microdata):
        home = shown(source["household"]).filter(pl.col("kind") == 3).select("hid", "block")
        people = shown(source["person"]).join(home, on="hid").select("block", "role", "age")
        seen.append(sorted(people.rows(), key=repr))
    assert seen[0] == seen[1]
    assert len(seen[0]) > 50


def test_where_nobody_stays_today_it_is_still_said_that_they_would() -> None:
    data = tables()
    occupied = shown(data["household"]).filter(pl.col("kind") == 1).to_arrow()
    census = Census.of(
        {**SCHEMA, "record": {"household": {"id": "hid", "kind": KINDS}}}, {"household": occupied}
    )
    spec = psa().specification(census)
    assert any("take no part" in invariant.words() for invariant in spec.multiverse)
    assert not any("take no part" in line for line in spec.untouched)


def test_a_code_of_another_geography_does_not_travel_with_persons() -> None:
    release = psa().release(Census.of(SCHEMA, tables()), key=KEY)
    assert release.microdata["person"].column_names == ["hid", "role", "age"]
    before, after = (shown(t["person"])["age"] for t in (tables(), release.microdata))
    assert before.null_count() == after.null_count() > 0
    assert sorted(before.drop_nulls()) == sorted(after.drop_nulls())


def test_mutant_vacant_units_move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = tables()
    original = mechanism_module.draw_moves
    table = data["household"]
    vacant = np.flatnonzero(table["kind"].to_numpy() == 2).astype(np.uint32)  # one stratum: state s, size 0

    def draw(*words: object, **settings: object) -> Moves:
        moves = original(*words, **settings)
        return Moves(
            receivers=np.append(moves.receivers, vacant), givers=np.append(moves.givers, np.roll(vacant, 1))
        )

    monkeypatch.setattr(mechanism_module, "draw_moves", draw)
    with pytest.raises(PrivacyError, match="take no part by their kind"):
        psa().release(Census.of(SCHEMA, data), key=KEY, out=tmp_path)
    assert not list(tmp_path.iterdir())  # nothing was released


def test_mutant_group_quarters_exchange_their_persons(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = tables()
    table = shown(data["household"]).with_row_index()
    alike = table.filter(pl.col("kind") == 3).filter(
        (pl.col("size") == 2) & (pl.col("tenure") == 1)
    )  # equal in all that is held, apart in their places
    one, other = alike.unique("block", keep="first", maintain_order=True)["index"].to_list()[:2]
    original = Members.batches

    def exchanged(self: Members, order: np.ndarray, **options: int) -> object:
        order = order.copy()
        places = [int(np.flatnonzero(order == row)[0]) for row in (one, other)]
        order[places] = order[places[::-1]]
        yield from original(self, order, **options)

    monkeypatch.setattr(Members, "batches", exchanged)
    with pytest.raises(PrivacyError, match="with the place of those not swapped"):
        psa().release(Census.of(SCHEMA, data), key=KEY, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_identifiers_the_order_of_the_input_decides_nothing_though_the_kind_is_not_released() -> None:
    household = tables()["household"].drop_columns(["hid"])
    schema = {**SCHEMA, "record": {"household": {"kind": KINDS}}}
    mechanism = psa(match=["state"], tables=[["block", "tenure"]], microdata=False, rate="1/2")
    seen = []
    for attempt in range(6):
        rows = np.random.default_rng(attempt).permutation(household.num_rows)
        census = Census.of(schema, {"household": household.take(rows)})
        seen.append(mechanism.release(census, key=KEY).tables["block × tenure"])
    assert all(table.equals(seen[0]) for table in seen)


def test_runs_share_no_randomness_when_only_the_kind_differs() -> None:
    """Who takes part is no released variable here, yet it decides the draw: the key is bound to it."""
    household = tables()["household"]
    there = {**SCHEMA, "record": {"household": {"id": "hid", "kind": KINDS}}}
    digests = set()
    for change in (False, True):
        kind = household["kind"].to_numpy().copy()
        if change:
            kind[0] = 5 - kind[0]  # group quarters become vacant: no released variable changes
        table = household.set_column(household.column_names.index("kind"), "kind", [kind])
        mechanism = psa(match=["state"], tables=[["block", "tenure"]], microdata=False)
        digests.add(mechanism.release(Census.of(there, {"household": table}), key=KEY).input_digest)
    assert len(digests) == 2


def test_two_zeros_and_other_odd_values_say_nothing_about_the_order_of_the_input() -> None:
    rng = np.random.default_rng(8)
    data = tables()
    odd = [-0.0, 0.0, 2.5]
    data = {
        name: table.append_column("odd", [rng.choice(odd, table.num_rows)]) for name, table in data.items()
    }
    seen = []
    for _ in range(4):
        data = {name: table.take(rng.permutation(table.num_rows)) for name, table in data.items()}
        seen.append(psa().release(Census.of(SCHEMA, data), key=KEY).microdata)
    for name, table in data.items():
        assert all(found[name].equals(seen[0][name]) for found in seen)
        assert sorted(shown(table)["odd"]) == sorted(shown(seen[0][name])["odd"])
