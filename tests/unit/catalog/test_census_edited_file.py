"""The domain of the catalog: its constraints say what they tie, and a swap's invariants name what a swap leaves alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from stirred.catalog import catalog, releases
from stirred.catalog.releases import CEF, PERSON_VARIABLES, SPINE, swap_invariants
from stirred.spec import Multiverse

Record = dict[str, str]


@dataclass(frozen=True)
class File:
    """A Census Edited File of a few records."""

    records: dict[str, list[Record]]

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        kept = [
            record
            for record in self.records[record_type]
            if all(record[name] in values for name, values in (where or {}).items())
        ]
        cells = Counter(tuple(record[name] for name in by) for record in kept)
        return pa.table(
            {"cell": [str(cell) for cell in sorted(cells)], "count": [cells[c] for c in sorted(cells)]}
        )

    def changed(self, record_type: str, place: int, **values: str) -> "File":
        records = {kind: [dict(record) for record in held] for kind, held in self.records.items()}
        records[record_type][place].update(values)
        return File(records)


def at(block: str) -> Record:
    return {"state": "1", "county": "1", "tract": "1", "block_group": "1", "block": block}


def a_file() -> File:
    household = {"type": "family", "age": "40", "race": "a", "hispanic": "no", "members": "m", "size": "2"}
    person = {"household": "h1", "age": "40", "sex": "f", "race": "a", "hispanic": "no", "relationship": "r"}
    return File(
        {
            "household": [
                {**at("1"), **household, "tenure": "own"},
                {**at("2"), **household, "tenure": "rent"},
            ],
            "housing unit": [
                {**at("1"), "occupancy": "occupied"},
                {**at("2"), "occupancy": "occupied"},
                {**at("1"), "occupancy": "vacant"},
            ],
            "group quarters": [
                {**at("1"), "type": "prison", "occupancy": "occupied"},
                {**at("2"), "type": "prison", "occupancy": "occupied"},
            ],
            "person": [
                {**at("1"), **person, "quarters": "household"},
                {**at("1"), **person, "household": "g1", "quarters": "group quarters"},
            ],
        }
    )


def agree(multiverse: Multiverse, first: File, second: File) -> bool:
    return all(invariant.tabulate(first) == invariant.tabulate(second) for invariant in multiverse)


# One record that a swap leaves alone, changed in one variable.
UNTOUCHED = [
    ("housing unit", 2, {"block": "2"}),
    ("group quarters", 0, {"type": "dormitory"}),
    ("group quarters", 1, {"block": "1"}),
    ("group quarters", 1, {"type": "dormitory"}),
    ("person", 1, {"age": "41"}),
    ("person", 1, {"relationship": "s"}),
    ("person", 1, {"household": "g2"}),
]
SWAPS = ["das-2010", *(name for name in catalog if name.startswith("whatif"))]


def open_to_change(multiverse: Multiverse) -> list[str]:
    """The kinds of untouched records that could differ inside one universe."""
    file = a_file()
    return [
        kind
        for kind, place, values in UNTOUCHED
        if agree(multiverse, file, file.changed(kind, place, **values))
    ]


@pytest.mark.parametrize("name", SWAPS)
def test_what_a_swap_leaves_alone_is_among_its_invariants(name: str) -> None:
    assert open_to_change(catalog[name].multiverse) == []


def test_leaving_them_out_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "unswapped_margins", lambda **_: ())
    assert {*open_to_change(swap_invariants(("state", "size"), SPINE[1:]))} == {
        "housing unit",
        "group quarters",
        "person",
    }


@pytest.mark.parametrize("name", ["das-2010", "whatif-block-group", "whatif-block-group-size"])
def test_a_swap_itself_keeps_every_invariant(name: str) -> None:
    file = a_file()
    swapped = file.changed("household", 0, block="2").changed("household", 1, block="1")
    assert agree(catalog[name].multiverse, file, swapped)
    assert not agree(catalog[name].multiverse, file, file.changed("household", 0, tenure="rent"))


@pytest.mark.parametrize("name", SWAPS)
def test_their_names_are_plain(name: str) -> None:
    words = [invariant.words() for invariant in catalog[name].multiverse]
    assert len(words) == 5
    for start in ("vacant", "group quarters by type", "persons in group quarters"):
        assert any(said.startswith(start) for said in words), start
    assert catalog[name].multiverse.check(CEF) == catalog[name].multiverse


def test_restrictions_name_declared_levels() -> None:
    for name in catalog:
        for margin in (needed for invariant in catalog[name].multiverse for needed in invariant.needs()):
            for variable, values in margin.conditions().items():
                assert {*values} <= {*(CEF.levels(margin.record_type, variable) or ())}


def test_constraints_say_what_they_tie() -> None:
    tied: dict[str, set[str]] = {}
    for constraint in CEF.constraints:
        assert constraint.variables
        for variable in constraint.variables:
            CEF.variable(constraint.record_type, variable)  # refuses what is not there
        tied.setdefault(constraint.record_type, set()).update(constraint.variables)
    # owning or renting breaks no edit rule, and no unit's place does
    assert "tenure" not in tied["household"]
    assert not any(variables & {*SPINE} for variables in tied.values())
    assert tied["person"] == {"household", "age", "sex", "relationship", "quarters"} < {*PERSON_VARIABLES}
