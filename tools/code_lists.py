"""Make the invented code lists of the detailed products: python tools/code_lists.py [FOLDER].

The codes of the synthetic censuses are among them. Names are made of syllables and name nobody; what each code, group and
flag is stands here alone.
"""

import sys
from itertools import count, product
from pathlib import Path

from stirred.census.synthetic.households import (
    DETAILED_RACE_WEIGHTS,
    ETHNICITY_WEIGHTS,
    NOT_HISPANIC_CODE,
    parse_weights,
)
from stirred.mechanisms.census2020.safetab.groups import (
    CODE_FILE,
    ETHNICITY_FILE,
    FILE_COLUMNS,
    MAP_FILE,
    RACE_FILE,
)

FOLDER = Path(__file__).parents[1] / "src/stirred/mechanisms/safetab/lists"
PEOPLES = ("Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord")
QUARTERS = ("North", "East", "South", "West")
GROUPS = 9  # detailed groups of a quarter; the last three are told apart in the nation and in states only
FINE_ONLY = 3
SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", ("a", "e", "i", "o", "u"))]


def names() -> "list[str]":
    """Names that nobody has, each once."""
    pairs = product(SYLLABLES, SYLLABLES, ("n", "r", "l"))
    return [f"{a}{b}{c}".capitalize() for a, b, c in list(pairs)[::37]]


def main(folder: Path) -> None:
    """Write the four files."""
    fresh = iter(names())
    number = count(1001)
    races: list[tuple[object, ...]] = []
    codes: list[tuple[str, str]] = []
    leads: list[tuple[str, str]] = []

    def iteration(name: str, level: int, *, fine: bool = False, coarse: bool = False) -> tuple[str, str]:
        pair = (f"{next(number):04d}", f"{next(number):04d}")
        flags = ("Null", "Null") if level == 0 else (fine, coarse)
        races.append((pair[0], f"{name} alone", level, True, *flags))
        races.append((pair[1], f"{name} alone or in any combination", level, False, *flags))
        return pair

    for people, (name, text) in enumerate(zip(PEOPLES, DETAILED_RACE_WEIGHTS, strict=True)):
        given = [code for code, _ in parse_weights(text)]
        major = iteration(name, 0)
        general = given.pop(0) if given[0].endswith("000") else ""
        if general:  # the box of a people that names no group
            codes.append((general, f"{name}, no group named"))
            leads.extend((to, general) for to in major)
        spare = (f"{people + 1}{i:03d}" for i in count(900))
        for quarter in QUARTERS:
            region = iteration(f"{quarter} {name}", 1)
            other = iteration(f"Other {quarter} {name}", 2, coarse=True)
            for place in range(GROUPS):
                fine = place >= GROUPS - FINE_ONLY
                group = next(fresh)
                detailed = iteration(group, 2, fine=fine)
                for _ in range(2 if place == 0 else 1):
                    code = given.pop(0) if given else next(spare)
                    codes.append((code, group))
                    targets = (*major, *region, *detailed, *(other if fine else ()))
                    leads.extend((to, code) for to in targets)
    ethnicities: list[tuple[object, ...]] = []

    def ethnic(name: str, level: int, *, fine: bool = False, coarse: bool = False) -> str:
        code = f"{next(number):04d}"
        flags = ("Null", "Null") if level == 0 else (fine, coarse)
        ethnicities.append((code, name, level, *flags))
        return code

    harbour, inland = ethnic("Harbour people", 0), ethnic("Not of the Harbour people", 0)
    codes.append((str(NOT_HISPANIC_CODE), "Not of the Harbour people"))
    leads.append((inland, str(NOT_HISPANIC_CODE)))
    given = [code for code, _ in parse_weights(ETHNICITY_WEIGHTS)] + [str(code) for code in range(9001, 9019)]
    for part, quarter in enumerate(("Upper", "Lower", "Outer")):
        region = ethnic(f"{quarter} Harbour", 1)
        other = ethnic(f"Other {quarter} Harbour", 2, coarse=True)
        for place, code in enumerate(given[part::3]):
            fine = place >= GROUPS - FINE_ONLY + 1
            group = next(fresh)
            codes.append((code, group))
            detailed = ethnic(group, 2, fine=fine)
            leads.extend((to, code) for to in (harbour, region, detailed, *([other] if fine else [])))
    folder.mkdir(exist_ok=True)
    rows = {RACE_FILE: races, ETHNICITY_FILE: ethnicities, CODE_FILE: sorted(codes), MAP_FILE: sorted(leads)}
    for file, lines in rows.items():
        text = "\n".join("|".join(map(str, line)) for line in [FILE_COLUMNS[file], *lines])
        (folder / file).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
