"""Words of rows depend on values alone, and fingerprints see every change of a kept table."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from stirred.mechanisms.swap.fingerprints import Fingerprint, KeptTable, MemberReader, Scatter, Verifier
from stirred.mechanisms.swap.records import LinkedType, encode_table, group_members, lay_out_table

N = 200
RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "hid": pa.array(np.arange(N, dtype=np.uint64)),
        "age": pa.array(RNG.integers(-4, 90, N), pa.int16(), mask=RNG.random(N) < 0.1),
        "size": pa.array(RNG.integers(0, 5, N), pa.int8()),
        "role": pa.array(RNG.choice(["head", "child", "ß"], N), pa.string(), mask=RNG.random(N) < 0.1),
        "income": pa.array(RNG.integers(0, 3, N) / 2),
    }
)
NAMES = ["age", "size", "role", "income"]


def words(table: pa.Table, scatter: Scatter, names: list[str] = NAMES) -> list[int]:
    columns = encode_table(table, names)
    tables = scatter.words(columns, names)
    return scatter.rows(((tables[name], columns[name].codes) for name in names), table.num_rows).tolist()


def test_a_part_and_another_type_give_the_same_words() -> None:
    scatter = Scatter.fresh(9)
    whole = words(TABLE, scatter)
    assert len(set(whole)) > N / 2
    parts = [word for start in range(0, N, 7) for word in words(TABLE.slice(start, 7), scatter)]
    assert parts == whole, "one part has empty values, another has none, and dictionaries differ"
    other = TABLE.set_column(3, "role", TABLE["role"].dictionary_encode())
    other = other.set_column(1, "age", TABLE["age"].cast(pa.int64()))
    assert words(other, scatter) == whole
    assert words(TABLE, Scatter.fresh(9)) != whole
    assert words(TABLE, scatter, ["size", "age", "role", "income"]) != whole


def test_packed_members_have_the_words_of_their_columns() -> None:
    scatter = Scatter.fresh(9)
    kind = LinkedType(record_type="person", link="hid", identifier="", variables=tuple(NAMES), refilled=())
    owner = encode_table(TABLE, ["hid"])["hid"]
    group = group_members(kind, lambda names: [TABLE.select(list(names))], lay_out_table(TABLE, NAMES), owner)
    packed = MemberReader.of(scatter, group).prints(group.codes(group.words), owner.codes)
    columns = encode_table(TABLE, NAMES)
    codes = {name: columns[name].codes for name in NAMES}
    plain = MemberReader(scatter, scatter.words(columns, NAMES)).prints(codes, owner.codes)
    assert packed == plain


@pytest.mark.parametrize("change", ["exchanged", "copied", "elsewhere", "none"])
def test_a_change_of_a_kept_table_is_seen(change: str) -> None:
    columns = encode_table(TABLE, ["hid", *NAMES])
    tables = (KeptTable("all", ("size", "income")), KeptTable("held", ("role", "age")))
    kept = Verifier(tables, Scatter.fresh(9), linked=True).reader(columns)
    ids = columns["hid"].codes

    def prints(columns: dict, rows: np.ndarray) -> list[Fingerprint]:
        return kept.prints({n: c.take_rows(rows) for n, c in columns.items()}, slice(0, N), ids[rows])

    before = prints(columns, np.arange(N, dtype=np.uint32))
    order = np.random.default_rng(1).permutation(N).astype(np.uint32)
    roles, ages = columns["role"].codes.copy(), columns["age"].codes
    one, other = 0, int(np.flatnonzero((roles != roles[0]) & (ages != ages[0]))[0])
    if change == "exchanged":
        roles[[one, other]] = roles[[other, one]]
    elif change == "copied":
        roles[one] = roles[other]
    after = prints({**columns, "role": replace(columns["role"], codes=roles)}, order)
    if change == "elsewhere":
        after[-1] = kept.prints({n: c.take_rows(order) for n, c in columns.items()}, slice(0, N), ids)[-1]
    assert after[0] == before[0]
    assert (after[-1] == before[-1]) is (change == "none")
    assert (after[1] == before[1]) is (change in ("elsewhere", "none"))


@pytest.mark.parametrize(("rows", "numbers"), [(0, [0, 0]), (N, None)])
def test_cells_are_counted(rows: int, numbers: list[int] | None) -> None:
    part = TABLE.slice(0, rows)
    columns = encode_table(part, NAMES)
    tables = (KeptTable("pairs", ("size", "role")), KeptTable("some", ("income",), ("size", ("1", "2"))))
    found = Verifier(tables, Scatter.fresh(5), linked=False).reader(columns).cells(columns, rows)
    pairs = {(row["size"], row["role"]) for row in part.to_pylist()}
    some = {row["income"] for row in part.to_pylist() if row["size"] in (1, 2)}
    assert found == (numbers or [len(pairs), len(some)])
