"""Refuse settings of SafeTab-P that are of the wrong kind or contradict themselves, before any census is seen."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import get_args

from stirred.errors import InputError, did_you_mean, require_kind
from stirred.mechanisms.safetab.noise import Definition
from stirred.mechanisms.safetab.persons.statement import KnownInvariants, NeighbourKind
from stirred.mechanisms.safetab.regions import set_columns

CHOICES = {
    "definition": get_args(Definition),
    "neighbours": get_args(NeighbourKind),
    "invariants": get_args(KnownInvariants),
    "epsilon": ("inf", None),
}


def require_kinds(
    *,
    codes: object,
    columns: Mapping[str, object],
    lists: Mapping[str, object],
    tables: Mapping[str, object],
    choices: Mapping[str, object],
) -> None:
    """Refuse a setting of a wrong type, and one that names something that does not exist."""
    if codes is not None:
        require_kind("codes", codes, (str, Path), wanted="a folder", fix='codes="lists"')
    for name, value in columns.items():
        require_kind(name, value, str, wanted="a text", fix=f'{name}="…"')
    for name, value in lists.items():
        require_kind(name, value, (list, tuple), wanted="a list of texts", fix=f'{name}=["…"]')
    for name, value in tables.items():
        if value is not None:
            require_kind(name, value, Mapping, wanted="a table", fix=f'{name}={{"STATE-2": "…"}}')
    for name, value in choices.items():
        if value not in CHOICES[name]:
            words = [word for word in CHOICES[name] if word is not None]
            raise InputError(
                f"{name} of SafeTab-P is unknown",
                why=f"it is one of {', '.join(words)}",
                fix=did_you_mean(str(value), words),
            )


def require_sense(
    *,
    races: Sequence[str],
    ethnicity: str,
    most_codes: int,
    sexes: Sequence[str],
    regions: Mapping[str, str],
    first_stage: Fraction,
    suppression: Fraction,
) -> None:
    """Refuse settings that cannot be true together."""
    if len(sexes) != 2:
        raise InputError(
            "sexes are not two levels", why="T2 has a part for each of two", fix='sexes = ["1", "2"]'
        )
    if not races and not ethnicity:
        raise InputError(
            "no column holds codes", why="groups are found by codes", fix='races = ["race_code_1"]'
        )
    if len(races) > most_codes:
        raise InputError(
            f"{len(races)} columns of race codes are more than most_codes",
            why="the noise is made for persons with at most that many codes",
            fix=f"most_codes = {len(races)}",
        )
    if not 0 < first_stage < 1:
        raise InputError(
            "first_stage lies outside 0 to 1",
            why="both the first look and what follows it need a part of the budget",
            fix='first_stage = "1/10"',
        )
    if not 0 <= suppression < 1:
        raise InputError(
            "suppression is not below 1",
            why="no bound hides every row without persons",
            fix='suppression = "0.9999", or "0" to show all',
        )
    set_columns(regions)  # refuses region types that do not exist
