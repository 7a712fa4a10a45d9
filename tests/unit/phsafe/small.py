"""Small censuses for PHSafe, made from rows."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from stirred.census import Census

HOME = ("household_id", "state", "kind", "type", "hht2", "couple", "tenure", "race", "hispanic")
PERSON = ("household_id", "relationship", "age", "race", "hispanic")
SCHEMA: dict[str, Any] = {
    "name": "small",
    "geography": {"spine": ["state"]},
    "record": {
        "household": {
            "id": "household_id",
            "kind": {"column": "kind", "occupied": [1], "vacant": [2], "group_quarters": [3]},
        },
        "person": {"household": "household_id", "of": "household"},
    },
}


def home(
    number: str, *, state: str = "01", kind: int = 1, tenure: int = 1, race: int = 1, hht2: int = 1
) -> tuple[Any, ...]:
    """A unit record: a married couple with own children, unless said otherwise."""
    return (number, state, kind, 1 if kind == 1 else 0, hht2, 1, tenure, race, 1)


def person(number: str, *, relationship: int = 6, age: int = 10, race: int = 1) -> tuple[Any, ...]:
    """A person: a biological child of ten, unless said otherwise."""
    return (number, relationship, age, race, 1)


def frames(homes: Sequence[Any], persons: Sequence[Any]) -> dict[str, pl.DataFrame]:
    """Rows as two tables."""
    texts = {"household_id": pl.String(), "state": pl.String()}
    return {
        "household": pl.DataFrame(
            list(homes), {name: texts.get(name, pl.Int64()) for name in HOME}, orient="row"
        ),
        "person": pl.DataFrame(
            list(persons), {name: texts.get(name, pl.Int64()) for name in PERSON}, orient="row"
        ),
    }


def census(homes: Sequence[Any], persons: Sequence[Any]) -> Census:
    """Rows as a census."""
    return Census.of(SCHEMA, frames(homes, persons))
