"""Guess which column of a file is the identifier, the weight and the size, and which must not be a variable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stirred.census.describe.guess import names
from stirred.census.describe.guess.facts import ColumnFacts, Sheet

UNIQUE_REASON = "every record has another value"


@dataclass(slots=True, kw_only=True)
class ColumnRoles:
    """The special columns of one record type, each with the reason, and the columns that are left out."""

    id: str = ""
    household: str = ""
    household_from: str = ""
    size: str = ""
    weight: str = ""
    why: dict[str, str] = field(default_factory=dict)  # role → reason
    leave_out: dict[str, str] = field(default_factory=dict)  # column → reason
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns made of several, and those

    @property
    def special_columns(self) -> set[str]:
        """Return the columns that are not variables; an area that is part of a key stays one."""
        special = {self.id, self.household, self.household_from, self.weight}
        parts = {
            part for name in special for part in self.keys.get(name, ()) if not names.PLACE_NAMES.search(part)
        }
        return (special - {""}) | set(self.leave_out) | set(self.keys) | parts


def find_roles(sheet: Sheet, *, link: str = "") -> ColumnRoles:
    """Return the special columns of a file; ``link`` names the household column where it is known."""
    roles = ColumnRoles(household=link, keys=sheet.keys)
    nested = [facts.name for facts in sheet.columns.values() if facts.is_nested]
    roles.leave_out = dict.fromkeys(nested, "a field holds several values, or bytes")
    if "" in sheet.columns:  # the row names of R, or the index of pandas
        roles.leave_out[""] = "the column has no name"
    _find_identifier(sheet, roles)
    _find_weight(sheet, roles)
    sizes = [
        facts
        for facts in sheet.match_names(names.SIZE_NAMES)
        if facts.shape == "whole" and _is_at_least(facts, 0)
    ]
    if sizes and not link:
        roles.size, roles.why["size"] = sizes[0].name, "named like one; it must count the persons exactly"
    return roles


def _find_identifier(sheet: Sheet, roles: ColumnRoles) -> None:
    unique = [
        facts
        for facts in sheet.columns.values()
        if (facts.unique or not sheet.rows)
        and facts.name != roles.household
        and facts.name not in sheet.labels
    ]
    able = [facts for facts in unique if facts.may_be_code]
    rank = {facts.name: _rank_identifier(facts, sheet) for facts in able}
    ranked = sorted(able, key=lambda facts: rank[facts.name])
    ranked = [
        facts for facts in ranked if rank[facts.name] < 2 or (sheet.has_enough_rows and rank[facts.name] == 2)
    ]
    if ranked:
        best = ranked[0]
        roles.id = best.name
        rivals = [facts.name for facts in ranked[1:] if rank[facts.name] == rank[best.name]]
        liked = "unique, named like one" if rank[best.name] < 2 else "unique, not named like one"
        liked = "unique together" if best.name in sheet.keys else liked
        roles.why["id"] = f"{liked}; not decided against {', '.join(rivals)}" if rivals else liked
    if not sheet.has_enough_rows:
        return
    weights = {facts.name for facts in _list_weights(sheet)}
    for facts in unique:
        if facts.name not in {roles.id, *weights, *roles.leave_out, *sheet.keys}:
            what = "an identifier" if facts.may_be_code else "a number"
            roles.leave_out[facts.name] = (
                f"{UNIQUE_REASON}, so it would tell who is who; not decided whether it is {what}"
            )


def _rank_identifier(facts: ColumnFacts, sheet: Sheet) -> int:
    if facts.name in sheet.keys:
        return -1
    if names.HOUSEHOLD_ID_NAMES.search(facts.name) or names.PERSON_ID_NAMES.search(facts.name):
        return 0
    if names.INDEX_NAMES.search(facts.name) or names.AMOUNT.search(facts.name):
        return 3
    return 1 if names.ID_NAMES.search(facts.name) else 2


def _find_weight(sheet: Sheet, roles: ColumnRoles) -> None:
    found = [facts for facts in _list_weights(sheet) if facts.name not in (roles.id, roles.household)]
    if not found:
        return
    listed = {name: place for place, name in enumerate(names.list_role_names("weight"))}
    best = min(
        found,
        key=lambda facts: (
            listed.get(facts.name.lower(), len(listed)),
            facts.shape != "decimal",
            len(facts.name),
        ),
    )
    roles.weight = best.name
    unique = f"; {UNIQUE_REASON}, so it tells who is who" if best.unique and sheet.has_enough_rows else ""
    sign = "positive" if best.lowest else "never negative"
    roles.why["weight"] = f"{sign}, named like one{unique}"
    for facts in found:
        if facts is not best:
            roles.leave_out[facts.name] = (
                f"named like a weight beside {best.name}; not decided which one to use"
            )


def _list_weights(sheet: Sheet) -> Sequence[ColumnFacts]:
    return [
        facts
        for facts in sheet.match_names(names.WEIGHT_NAMES)
        if facts.shape in ("decimal", "whole")
        and facts.empty == 0
        and _is_at_least(facts, 0)
        and (facts.shape == "decimal" or len(facts.name) > 2)
    ]


def _is_at_least(facts: ColumnFacts, bound: float) -> bool:
    return facts.lowest is not None and facts.lowest >= bound
