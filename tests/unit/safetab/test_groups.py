"""Population groups counted by the engine, against plain loops over the records; regions from public files alone."""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.census import Census, read
from stirred.engine import Local
from stirred.errors import InputError
from stirred.mechanisms.census2020.safetab.groups import (
    REGION_TYPES,
    CodeLists,
    CountsInParts,
    GroupMap,
    GroupSet,
    Iteration,
    Tally,
    choose_region_types,
    count_groups,
    find_regions,
    split_sets,
)

KINDS = tuple(REGION_TYPES.values())
LISTS = CodeLists(
    iterations=(
        Iteration("A", "north alone", 1, True),
        Iteration("B", "north in combination", 1, False),
        Iteration("C", "south alone", 1, True, detailed_only=True),
        Iteration("D", "south in combination", 1, False, coarse_only=True),
        Iteration("E", "islander", 1, None),
        Iteration("F", "hill people alone", 2, True),
        Iteration("G", "hill people in combination", 2, False),
    ),
    leads_to={
        "10": frozenset("ABFG"),
        "11": frozenset("AB"),
        "20": frozenset("CD"),
        "90": frozenset("E"),
        "99": frozenset(),
    },
)


@dataclass(frozen=True)
class Sexes:
    """Two cells by sex."""

    number: int = 2
    columns: tuple[str, ...] = ("sex",)

    def expression(self) -> pl.Expr:
        return pl.when(pl.col("sex").is_between(1, 2)).then(pl.col("sex") - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def toy(seed: int, n: int = 60) -> list[dict[str, Any]]:
    """Records in two states and in Puerto Rico; some codes are unknown, some values missing."""
    rng = random.Random(seed)
    return [
        {
            "hid": i,
            "state": (state := rng.choice(["01", "02", "72"])),
            "county": state + rng.choice(["001", "003"]),
            "sex": rng.choice([1, 1, 2, 2, None, 7]),
            "race_code_1": rng.choice([10, 11, 20, 55]),
            "race_code_2": rng.choice([0, 0, 10, 11, 20]),
            "ethnicity_code": rng.choice([90, 99, None]),
        }
        for i in range(n)
    ]


def of(rows: list[dict[str, Any]]) -> Census:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    homes = frame.select("hid", "state", "county")
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
    }
    return Census.of(schema, {"household": homes, "person": frame.drop("state", "county")})


def tally(census: Census) -> Tally:
    found = find_regions(census, KINDS)
    maps = {
        (level, fine): GroupMap.of(LISTS, level, fine=fine, most_codes=2)
        for level in (1, 2)
        for fine in (True, False)
    }
    sets = tuple(
        GroupSet(kind, level, found.of(kind), maps[level, kind.fine])
        for kind in choose_region_types(census, KINDS)
        for level in (1, 2)
    )
    races = ("race_code_1", "race_code_2")
    return Tally(sets=sets, regions=found, races=races, ethnicity="ethnicity_code", cells=Sexes())


def by_loops(rows: list[dict[str, Any]]) -> Counter[tuple[str, int, str, str, int]]:
    """The same counts, written without any of the program's code but the lists."""
    kind = {item.code: item for item in LISTS.iterations}
    counts: Counter[tuple[str, int, str, str, int]] = Counter()
    for row in rows:
        if row["sex"] not in (1, 2):
            continue
        races = [str(row[name]) for name in ("race_code_1", "race_code_2") if row[name]]
        leads = [LISTS.leads_to.get(code, frozenset()) for code in races]
        prefix = "PR-" if row["state"] == "72" else ""
        places = {"STATE": row["state"], "COUNTY": row["county"]} | ({} if prefix else {"USA": "1"})
        for name, place in places.items():
            fine = name != "COUNTY"
            for code, item in kind.items():
                if item.coarse_only if fine else item.detailed_only:
                    continue
                inside = {
                    True: all(code in lead for lead in leads),
                    False: any(code in lead for lead in leads),
                    None: code in LISTS.leads_to.get(str(row["ethnicity_code"]), frozenset()),
                }[item.alone]
                if inside:
                    counts[prefix + name, item.level, place, code, row["sex"]] += 1
    return counts


@pytest.mark.parametrize("engine", [Local(), Parted()], ids=["in memory", "in parts"])
def test_groups_are_those_of_plain_loops(engine: Local) -> None:
    rows = toy(3)
    census = of(rows)
    counting = tally(census)
    found: Counter[tuple[str, int, str, str, int]] = Counter()
    made = count_groups(census, counting, engine=engine)
    if isinstance(made, CountsInParts):
        made = split_sets(made.parts.gather(), len(counting.sets), counting.cells.number)
    for item, counts in zip(counting.sets, made, strict=True):
        assert (counts.keys[1:] > counts.keys[:-1]).all()
        for key, count in zip(counts.keys.tolist(), counts.counts.tolist(), strict=True):
            group, cell = divmod(key, 2)
            region, iteration = divmod(group, item.iterations)
            name = (item.kind.name, item.level, item.regions[region], item.mapping.codes[iteration], cell + 1)
            found[name] += count
    assert found == by_loops(rows)


def test_regions_come_from_the_file_of_areas_and_not_from_records(tmp_path: Path) -> None:
    """An area without a record is a region too, and a record elsewhere makes none."""
    (tmp_path / "areas.csv").write_text("code,parent\n01,\n01001,01\n01003,01\n")
    (tmp_path / "household.csv").write_text("hid,county\n1,01001\n2,09009\n")
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["state", "county"]\ntype = "text"\n[geography.areas]\nfiles = ["areas.csv"]\n'
        '[record.household]\nfiles = ["household.csv"]\nid = "hid"\n'
    )
    found = find_regions(read(tmp_path), KINDS)
    assert dict(found.ids) == {"USA": ("1",), "STATE": ("01",), "COUNTY": ("01001", "01003")}


def test_a_type_without_a_public_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "areas.csv").write_text("code,parent\n01,\n01001,01\n")
    (tmp_path / "household.csv").write_text("hid,county,place\n1,01001,7\n")
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["state", "county"]\ntype = "text"\n[geography.off_spine.place]\nof = "county"\n'
        '[geography.areas]\nfiles = ["areas.csv"]\n[record.household]\nfiles = ["household.csv"]\nid = "hid"\n'
    )
    with pytest.raises(InputError, match="the areas of place are not listed"):
        find_regions(read(tmp_path), KINDS)


def test_some_code_lists_are_shared_by_many_regions_and_mapped_once() -> None:
    census = of(toy(1))
    maps = {id(item.mapping) for item in tally(census).sets}
    assert len(maps) == 4
