"""What exact numbers give away is summed from marks of released records: as from whole records, and few bytes of each."""

import random
from dataclasses import replace
from math import exp
from typing import Any

import pyarrow as pa
import pytest

from stirred.assess.universe import measures, sizes
from stirred.census import Census
from stirred.engine import Engine, Local
from stirred.engine.local import LocalFlow, LocalParts
from stirred.mechanisms.release import Release
from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
from stirred.spec.invariants import Custom, Invariant

BYTES_PER_RECORD = (
    64  # bytes of a household that may be held: its marks and number, and the sum of its members
)
SCHEMA = {
    "geography": {"spine": ["county", "block"]},
    "record": {
        "household": {"id": "hid", "kind": {"column": "kind", "vacant": ["empty"]}},
        "person": {"household": "hid", "of": "household"},
    },
}
OWN = ["county", "block", "size", "tenure", "rent", "kind", "weight"]
HELD = ["size", "tenure", "rent", "kind", "weight"]
STAYING = {"kind": ["empty"]}
PEOPLE = Margin("person", ("hid", "age"))
EXACT: dict[str, tuple[str, list[Invariant]]] = {
    "swap": (
        "household",
        [
            Margin("household", HELD),
            Margin("household", ["size", "county", "block"]),
            Margin("household", OWN, where=STAYING),
            Custom("together", (PEOPLE, Margin("household", ["hid", *HELD])), keeps_with="household"),
        ],
    ),
    "one table": ("household", [Margin("household", ["size", "tenure"])]),
    "total": ("household", [Margin("household")]),
    "a part": ("household", [Margin("household", ["county"], where=STAYING)]),
    "three": (
        "household",
        [Margin("household", pair) for pair in (["size", "block"], ["size", "rent"], ["tenure"])],
    ),
    "a circle": (
        "household",
        [Margin("household", pair) for pair in (["size", "kind"], ["kind", "rent"], ["rent", "size"])],
    ),
    "persons by place": ("person", [Margin("person", ["age"]), Margin("person", ["county", "tenure"])]),
}


class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def make_release(exact: list[Invariant], homes: int, people: int, *, text: bool) -> Release:
    """Return random records with empty values, identifiers as text or numbers, and persons without a household."""
    rng = random.Random(homes)
    block = [rng.randrange(homes // 10) for _ in range(homes)]
    ids: list[Any] = [f"home {number}" if text else 3 * number for number in range(homes)]
    household = {
        "hid": rng.sample(ids, homes),
        "county": [f"county {one // 4}" for one in block],
        "block": [f"a block with a long name {one}" for one in block],
        "size": [rng.choice([1, 2, 3, None]) for _ in block],
        "tenure": [rng.choice(["own", "rent", "", None]) for _ in block],
        "rent": [rng.choice([0.0, -0.0, 1.5, None]) for _ in block],
        "kind": [rng.choice(["home", "empty", "home", None]) for _ in block],
        "weight": [rng.randrange(1, 4) for _ in block],
    }
    person = {
        "hid": [rng.choice([*ids, None]) for _ in range(people)],
        "age": [rng.choice([*range(6), None]) for _ in range(people)],
    }
    promise = Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.of(*exact),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    tables = {"household": household, "person": person}
    return Release(
        mechanism="toy",
        parameters={},
        specification=promise,
        microdata={name: pa.table(columns) for name, columns in tables.items()},
        schema=Census.of(SCHEMA, tables).schema,
    )


def measure_whole(release: Release, record_type: str) -> measures.Disclosure:
    """Return the numbers by whole records: from the cells of all tables, as polars groups them."""
    census = measures.census_from_release(release)
    columns = [name for name in census.columns(record_type) if name != "hid"]
    shape = sizes.build_shape(release.specification.multiverse, census, record_type, variables=columns)
    strata = sizes.size_strata(shape, areas=census.schema.spine, work=0, exactly=0)
    places = None if strata is None or shape.has_free_variables else sizes.log_places(shape, strata)
    return replace(
        measures._describe_shape(measures.Disclosure(record_type=record_type, exact=()), shape),
        places=None if places is None else exp(places.value / shape.records),
    )


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
@pytest.mark.parametrize("name", EXACT)
def test_the_numbers_are_those_of_whole_records_in_memory_and_in_parts(name: str, text: bool) -> None:
    record_type, exact = EXACT[name]
    release = make_release(exact, 120, 200, text=text)
    engines: list[Engine] = [Local(), InParts()]
    (found,), (apart,) = (
        [one for one in measures.measure_disclosure(release, engine=engine) if one.record_type == record_type]
        for engine in engines
    )
    assert found == apart  # to the last bit
    whole = measure_whole(release, record_type)
    assert (found.records, found.fixed, found.certain) == (whole.records, whole.fixed, whole.certain)
    for sums, cells in ((found.values, whole.values), (found.places, whole.places)):
        assert sums == (cells if cells is None else pytest.approx(cells, rel=1e-12))
    if name == "swap":
        assert found.fixed
        assert found.places is not None
        assert found.places > 1


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["memory", "parts"])
def test_few_bytes_of_a_record_are_held(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A household and its persons take 125 bytes as they are released here; in parts only sums come back."""
    release = make_release(EXACT["swap"][1], 2_000, 3_000, text=True)
    held = list[int]()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("records were read whole")

    def weigh(kind: type, limit: int) -> None:
        gather = kind.gather  # type: ignore[attr-defined]

        def gather_few(self: Any, *asked: Any) -> pa.Table:
            found = gather(self, *asked)
            held.append(found.nbytes)
            assert found.nbytes <= limit
            return found

        monkeypatch.setattr(kind, "gather", gather_few)

    monkeypatch.setattr(sizes, "collect_frame", refuse)
    inside = isinstance(engine, InParts)
    weigh(LocalParts, 10_000)
    weigh(LocalFlow, 0 if inside else BYTES_PER_RECORD * 2_000)
    (found,) = (
        one for one in measures.measure_disclosure(release, engine=engine) if one.record_type == "household"
    )
    assert found.places is not None
    assert sum(held) <= (10_000 if inside else BYTES_PER_RECORD * 2_000)
