"""Write what was guessed about areas as the geography of census.toml."""

from collections.abc import Sequence

from stirred.census.codebook import presets
from stirred.census.describe.guess import names
from stirred.census.describe.guess.nesting import (
    KNOWN_LEVEL_DEPTHS,
    MAX_COLUMNS_COMPARED,
    Nesting,
    find_nesting,
)
from stirred.census.describe.records import Document, RecordGuess

UNDECIDED_GUESS = (
    "geography: not decided: no column nests in another, and none is named like a place; without areas tables with noise "
    "or cell keys can be published, and no swap"
)


def write_geography(parts: Sequence[RecordGuess], guesses: list[str]) -> tuple[Document, dict[str, str]]:
    """Return the geography, and its columns with the names of their levels; persons inherit it."""
    homes = [part for part in parts if not part.of]
    for part in homes:
        code = next((facts.name for facts in part.sheet.match_names(names.GEO_CODE_NAMES)), "")
        levels = {name.lower() for name in part.sheet.columns} & set(presets.SPINES["us"])
        if code and len(levels) < 3:
            guesses.append(f"geography: {code} holds the whole code (named like one)")
            _clear_identifier(part, code)
            taken = {code: code, **{f"\x00{level}": level for level in presets.SPINES["us"]}}
            return {"preset": "us", "code": code}, taken
    found = [(part, _find_part_nesting(part)) for part in homes]
    best = max(found, key=lambda pair: (pair[1].named, len(pair[1].chain)), default=None)
    if best is None or not best[1].chain:
        guesses.append(UNDECIDED_GUESS)
        _omit_loose_places(found)
        return {}, {}
    part, nesting = best
    named = {
        column: column.lower() if column.lower() in KNOWN_LEVEL_DEPTHS else column for column in nesting.chain
    }
    document: Document = {"spine": list(named.values())}
    document["#spine"] = _explain_nesting(nesting)
    guesses.append(f"geography: {' > '.join(named.values())} ({_explain_nesting(nesting)})")
    guesses += [
        f"geography: not decided: whether each {named[column]} lies in one area above it (too few records to tell)"
        for column in nesting.weak
    ]
    for column in nesting.finer:
        part.roles.leave_out.setdefault(
            column,
            f"each value lies in one {named[nesting.chain[-1]]}, so it tells the place; not decided: if it is an area, "
            f"add it to the spine: spine = [{', '.join(f'{chr(34)}{name}{chr(34)}' for name in (*named.values(), column))}]",
        )
    renamed = {level: {"column": column} for column, level in named.items() if level != column}
    if renamed:
        document["level"] = renamed
    areas = dict(named)
    beside: Document = {}
    for column, level in nesting.beside.items():
        tells = f"constant within each {named[level]}, so it tells the {named[level]} when it is published"
        if column == part.roles.weight:
            part.roles.why["weight"] = f"{part.roles.why['weight']}; {tells}"
        elif part.sheet.columns[column].shape == "decimal":
            part.roles.leave_out[column] = f'{tells}; not decided: if it is a weight, set weight = "{column}"'
        else:
            areas[column] = column
            beside[column] = {"of": named[level], "#": f"constant within each {named[level]}"}
            guesses.append(f"geography: {column} lies beside the spine (constant within each {named[level]})")
    if beside:
        document["off_spine"] = beside
    _omit_loose_places([(part, nesting)])
    return document, areas


def _find_part_nesting(part: RecordGuess) -> Nesting:
    roles, sheet = part.roles, part.sheet
    columns = [name for name in sheet.columns if name not in {*roles.special_columns, roles.size}]
    watched = [
        name for name, facts in sheet.columns.items() if facts.shape == "decimal" or name == roles.weight
    ]
    return find_nesting(sheet, columns, watched=watched[:MAX_COLUMNS_COMPARED])


def _explain_nesting(nesting: Nesting) -> str:
    if len(nesting.chain) == 1:
        return "named like a place; nothing else nests"
    nests = "each code lies in one code of the level before"
    return nests if nesting.named else f"{nests}; not decided whether these are places"


def _omit_loose_places(found: Sequence[tuple[RecordGuess, Nesting]]) -> None:
    """Leave out columns named like places that do not nest, because they would tell where a record is."""
    for part, nesting in found:
        above = list(nesting.chain)
        for column in sorted(nesting.loose, key=lambda name: KNOWN_LEVEL_DEPTHS.get(name.lower(), 0)):
            known = column.lower() in KNOWN_LEVEL_DEPTHS
            joined = ", ".join(f'"{name}"' for name in (*above, column))
            part.roles.leave_out[column] = (
                "named like a place, does not nest; not decided: if its codes start again in each area, "
                f"set [geography.level.{column}] columns = [{joined}]"
            )
            above += [column] if known else []  # the order of levels that many censuses share


def _clear_identifier(part: RecordGuess, column: str) -> None:
    """Remove a column of areas from the identifiers and from the columns that are left out."""
    part.roles.leave_out.pop(column, None)
    if part.roles.id == column:
        part.roles.id = ""
