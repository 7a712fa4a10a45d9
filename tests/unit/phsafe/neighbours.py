"""Many small censuses tabulated at once: each is a state of its own, with the households that it shares by name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance.words import Hasher, Words
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.census2020.phsafe import counting
from stirred.mechanisms.census2020.phsafe.budgets import MeasuredTable, list_measured
from stirred.mechanisms.census2020.phsafe.counting import (
    HOUSEHOLD_VARIABLES,
    PERSON_VARIABLES,
    TABULATION_BY_NAME,
    CensusColumns,
)
from unit.phsafe.small import census, frames, home, person

Ints = NDArray[np.int64]
PEOPLE, HOMES = ("PH1_num", "PH3", "PH7"), ("PH1_denom", "PH8_denom")
Data = tuple[
    tuple[Any, ...], tuple[Any, ...]
]  # unit rows, person rows; the same household has one name in all of them


@dataclass(frozen=True)
class ByName(Hasher):
    """Households of one name are hashed alike in every census."""

    def words(self, array: pa.Array) -> Words:
        return Hasher.words(self, pa.array([text.partition("|")[2] for text in array.to_pylist()]))


def vectors(data: Sequence[Data], tau: int) -> dict[str, Ints]:
    """The exact counts of every measured table and iteration level: one row for each census."""
    homes = [(f"{n}|{row[0]}", f"{n:06d}", *row[2:]) for n, (units, _) in enumerate(data) for row in units]
    persons = [(f"{n}|{row[0]}", *row[1:]) for n, (_, people) in enumerate(data) for row in people]
    states = tuple(f"{n:06d}" for n in range(len(data)))
    tables = frames(homes, persons)
    columns = CensusColumns.of(census([home("a")], [person("a")]), {}, state="state")
    kernel = counting.CountKernel(
        columns=columns,
        tau=tuple((name, tau) for name in PEOPLE),
        households=HOMES,
        states=states,
        hasher=ByName(11, 12),
    )
    found = frame_of(kernel(0, arrow_of(tables["household"]), arrow_of(tables["person"])))
    every = frozenset([*HOUSEHOLD_VARIABLES, *(f"person.{name}" for name in PERSON_VARIABLES)])
    amounts = dict.fromkeys(
        ((t, f"state_{level}") for t in (*PEOPLE, *HOMES) for level in TABULATION_BY_NAME[t].levels), None
    )
    wanted: Iterable[MeasuredTable] = list_measured(
        amounts, dict.fromkeys(PEOPLE, tau), "zcdp", every, nation=False
    )
    from stirred.mechanisms.census2020.phsafe.tables import Answers  # a mutant may stand there

    return {item.place: Answers.of(found, item, states).counts.reshape(len(data), -1) for item in wanted}


UNITS = tuple(home(name, tenure=tenure, race=race) for name in "ab" for tenure, race in ((1, 1), (3, 2)))
PERSONS = tuple(person(name, age=age, race=race) for name in "ab" for age, race in ((5, 1), (30, 2)))
START: Data = (
    (UNITS[0], UNITS[2]),
    (PERSONS[0], PERSONS[0], PERSONS[1], PERSONS[1], PERSONS[2], PERSONS[2], PERSONS[2]),
)


def removed(rows: tuple[Any, ...], places: Iterable[int]) -> tuple[Any, ...]:
    """The rows without those at some places."""
    gone = set(places)
    return tuple(row for place, row in enumerate(rows) if place not in gone)


def changes(rows: tuple[Any, ...], possible: Sequence[Any], most: int) -> list[tuple[Any, ...]]:
    """The rows after at most so many were added or removed."""
    found = [rows]
    for number in range(1, most + 1):
        for added in range(number + 1):
            for gone in combinations(range(len(rows)), number - added):
                left = removed(rows, gone)
                found += [(*left, *more) for more in combinations_with_replacement(possible, added)]
    return found


def code_neighbours(start: Data) -> list[Data]:
    """All censuses with one person row more or less at most, and any two unit rows more or less, as the code counts."""
    return [
        (units, people) for units in changes(start[0], UNITS, 2) for people in changes(start[1], PERSONS, 1)
    ]


def contents(name: str, most: int) -> list[Data]:
    """All that can be recorded of one household: no unit record, one, or two; so many persons at most."""
    units = [row for row in UNITS if row[0] == name]
    people = [row for row in PERSONS if row[0] == name]
    return [
        (tuple(some), tuple(who))
        for records in (0, 1, 2)
        for some in combinations_with_replacement(units, records)
        for number in range(most + 1)
        for who in combinations_with_replacement(people, number)
    ]


def largest(rows: Ints, base: Ints, norm: Callable[[Ints], Any]) -> int:
    """The largest norm of a difference from one row."""
    return max(int(norm(row - base)) for row in rows)


def l1(row: Ints) -> int:
    """The sum of absolute values."""
    return int(np.abs(row).sum())


def squared(row: Ints) -> int:
    """The square of the Euclidean length."""
    return int((row**2).sum())
