"""Sums that come from parts are those of plain counting: unique records, values of columns, areas, cells with keys."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stirred import CellKey, Key
from stirred.assess.attack import uniqueness
from stirred.census import Census
from stirred.engine import Engine, Local
from stirred.frames import frame_of
from stirred.mechanisms.identifiers import count_values
from stirred.mechanisms.release import Release, find_values
from stirred.mechanisms.swap import parts
from stirred.publish.documents import ground_of
from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification

SCHEMA = {
    "geography": {"spine": ["county", "block"]},
    "record": {
        "household": {"id": "hid", "kind": {"column": "kind", "vacant": ["empty"]}},
        "person": {"household": "hid", "of": "household"},
    },
}


class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def make_records(number: int) -> dict[str, dict[str, list[Any]]]:
    """Make records with empty values, units that are vacant, and a zero with either sign."""
    rng = random.Random(number)
    block = [rng.randrange(6) for _ in range(90)]
    homes: dict[str, list[Any]] = {
        "hid": list(range(90)),
        "county": [f"c{one // 2}" for one in block],
        "block": [f"b{one}" for one in block],
        "size": [rng.choice([1, 2, 3, None]) for _ in block],
        "rent": [rng.choice([0.0, -0.0, 1.5, 2.5, 9.25, None]) for _ in block],
        "kind": [rng.choice(["home", "empty", "home", None]) for _ in block],
    }
    owner = [rng.randrange(90) for _ in range(150)]
    persons = {"hid": owner, "age": [rng.choice([*range(30), None]) for _ in owner]}
    return {"household": homes, "person": persons}


TRUTH, SHOWN = make_records(1), make_records(2)
CENSUS = Census.of(SCHEMA, TRUTH)


def make_release() -> Release:
    promise = Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    return Release(
        mechanism="toy",
        parameters={},
        specification=promise,
        microdata={name: pa.table(columns) for name, columns in SHOWN.items()},
        schema=CENSUS.schema,
    )


def list_rows(records: dict[str, dict[str, list[Any]]], record_type: str, by: Sequence[str]) -> list[Any]:
    """Return the values of the records that take part, by hand; places of persons are those of their household."""
    homes, own = records["household"], records[record_type]
    rows = []
    for place in range(len(own["hid"])):
        home = own["hid"][place]  # identifiers are places
        if record_type == "household" and own["kind"][place] == "empty":
            continue
        rows.append(tuple(own[name][place] if name in own else homes[name][home] for name in by))
    return rows


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["memory", "parts"])
def test_unique_records_are_those_of_plain_counting(engine: Engine) -> None:
    release = make_release()
    found = uniqueness.measure_uniqueness(release, engine)
    assert {(one.record_type, one.place) for one in found} == {
        ("household", ""), ("household", "block"), ("person", ""), ("person", "block")
    }  # fmt: skip
    beside = uniqueness.compare_with_census(found, release, CENSUS, engine)
    assert len(beside) == len(found)
    for alone, both in zip(found, beside, strict=True):
        after = Counter(list_rows(SHOWN, alone.record_type, alone.by))
        before = Counter(list_rows(TRUTH, alone.record_type, alone.by))
        assert alone.records == after.total()
        assert alone.alone == both.alone == sum(n == 1 for n in after.values())
        assert both.before == sum(n == 1 for n in before.values())
        kept = sum(n == 1 and after[cell] == 1 for cell, n in before.items())
        assert both.as_shown == kept
    assert any(one.as_shown for one in beside)


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["memory", "parts"])
def test_values_of_columns_are_those_of_plain_counting(engine: Engine) -> None:
    columns = ["size", "rent", "kind", "block"]
    for name, counts in count_values(CENSUS, "household", columns, engine).items():
        values = Counter(one for one in TRUTH["household"][name] if one is not None)
        assert (counts.filled, counts.values) == (values.total(), len(values))
        assert counts.unique == sum(n == 1 for n in values.values())


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["memory", "parts"])
def test_areas_are_found_up_to_a_number(engine: Engine) -> None:
    homes = pa.table(SHOWN["household"])
    wanted = sorted(set(zip(SHOWN["household"]["county"], SHOWN["household"]["block"], strict=True)))
    found = find_values(homes, ["county", "block"], engine=engine, most=6)
    assert found is not None
    assert found.rows() == wanted
    assert len(wanted) == 6
    assert find_values(homes, ["county", "block"], engine=engine, most=5) is None


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["memory", "parts"])
@pytest.mark.parametrize(("most", "levels"), [(6, ["block"]), (5, [])])
def test_levels_of_too_many_areas_are_not_drawn(
    engine: Engine, most: int, levels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stirred.publish.documents.MAX_AREAS", most)
    ground = ground_of(CENSUS.schema, Path("census.toml"), [make_release()], engine)
    assert list(ground.ancestors) == levels
    if levels:
        assert ground.ancestors["block"] == {f"b{i}": (f"c{i // 2}",) for i in range(6)}


@pytest.mark.parametrize("settings", [{}, {"weight": "w", "magnitudes": ["rent"], "weight_base": "100"}])
def test_cells_with_keys_are_perturbed_in_parts(settings: dict[str, Any]) -> None:
    homes = {**TRUTH["household"], "w": [4 + 2 * (i % 5) for i in range(90)]}
    homes["rent"] = [abs(one or 0.0) for one in homes["rent"]]
    census = Census.of(
        {"geography": SCHEMA["geography"], "record": {"household": {"id": "hid"}}}, {"household": homes}
    )
    mechanism = CellKey(
        tables=[["county", "size"], ["kind"], []],
        D=3,
        V="2",
        threshold=2,
        without_guarantee="a test",
        **settings,
    )
    made = [
        mechanism.release(census, key=Key.for_tests(3), engine=one).tables for one in (Local(), InParts())
    ]
    assert made[0].keys() == made[1].keys()
    assert all(made[0][name].equals(made[1][name]) for name in made[0])
    assert len(made[0]) == 3 * (1 + len(settings.get("magnitudes", [])) + ("weight" in settings))


def test_cells_of_a_swapped_table_are_added_up_once_more() -> None:
    table = pa.table({name: TRUTH["household"][name] for name in ("county", "size")})
    count = parts.CountPart(("county", "size"))
    pieces = pa.concat_tables([count(0, table.slice(0, 40)), count(1, table.slice(40))])
    found = frame_of(parts.SumPart(("county", "size"))(0, pieces))
    wanted = Counter(zip(*(TRUTH["household"][name] for name in ("county", "size")), strict=True))
    assert {row[:-1]: row[-1] for row in found.rows()} == dict(wanted)
