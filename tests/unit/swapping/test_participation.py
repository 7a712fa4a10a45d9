"""Who takes part is decided in one place: the swap and its tables agree, also about records with an empty kind."""

import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.estimates import count_stratum_sizes

KINDS = {"column": "kind", "occupied": [1], "vacant": [2], "group_quarters": [3]}
VARIABLES = {"size": "integer", "kind": {"type": "integer", "missing": "keep"}}
SCHEMA = {
    "geography": {"spine": ["county"]},
    "record": {"household": {"id": "hid", "kind": KINDS, "variables": VARIABLES}},
}


class Parted(Local):
    """This machine, where nothing fits."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


@pytest.mark.parametrize("engine", [Local(), Parted()], ids=["memory", "parts"])
def test_records_with_an_empty_kind_take_part_in_the_swap_and_in_its_tables(engine: Local) -> None:
    n = 300
    kind = [(1, 1, 2, None, 3)[i % 5] for i in range(n)]
    home = pa.table(
        {
            "hid": range(n),
            "county": [f"c{i % 7}" for i in range(n)],
            "size": [i % 3 for i in range(n)],
            "kind": pa.array(kind, pa.int8()),
        }
    )
    mechanism = PermutationSwapping(match=["size"], swap=["county"], rate="1/2")
    release = mechanism.release(Census.of(SCHEMA, {"household": home}), key=Key.for_tests(4), engine=engine)
    found = count_stratum_sizes(mechanism, release, engine)
    taking = sum(level not in (2, 3) for level in kind)
    assert (found["size"] * found["strata"]).sum() == taking
    (told,) = release.specification.untouched
    assert told.startswith(f"{n - taking:,} household records")
