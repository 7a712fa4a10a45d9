"""Targeted record swapping of a flat person file in one call, with the parameters of recordSwap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stirred.census import Census
from stirred.census.readers.frames import to_lazy
from stirred.chance import Key
from stirred.errors import InputError
from stirred.frames import collect_frame
from stirred.mechanisms.swapping.budget.by_size import Rate
from stirred.mechanisms.targeted.mechanism import TargetedSwapping


def flat_census(data: object, *, hid: str, hierarchy: Sequence[str]) -> Census:
    """Make households and persons of a person file; columns constant in all households are the household's."""
    schema = {
        "geography": {"spine": list(hierarchy)},
        "record": {"household": {"household_from": hid}, "person": {"household": hid, "of": "household"}},
    }
    return Census.of(schema, {"person": data})


def add_risks(data: object, risk: object, hierarchy: Sequence[str]) -> tuple[object, Sequence[str]]:
    """Add a matrix of risks to the file as columns, and return it with the names of the risks.

    >>> add_risks({"hid": [1, 2]}, [[0.5], [0.1]], ["lau"])[1]
    ['risk_lau']
    """
    if isinstance(risk, list | tuple) and all(isinstance(name, str) for name in risk):
        return data, list(risk)
    people = collect_frame(to_lazy(data))
    rows = isinstance(risk, list | tuple | np.ndarray)
    matrix = pl.DataFrame(np.asarray(risk, np.float64)) if rows else collect_frame(to_lazy(risk))
    if set(matrix.columns) == set(hierarchy):
        matrix = matrix.select(hierarchy)
    if matrix.shape != (people.height, len(hierarchy)):
        raise InputError(
            "the risks do not fit the file",
            why=f"they have {matrix.height:,} rows and {matrix.width} columns, the file has {people.height:,} rows and the "
            f"hierarchy {len(hierarchy)} levels",
            fix="give a risk for each row of the file and each level of the hierarchy, from coarse to fine",
        )
    names = [f"risk_{level}" for level in hierarchy]
    while set(names) & set(people.columns):
        names = [f"{name}_" for name in names]
    given = {name: matrix.to_series(i) for i, name in enumerate(names)}
    return people.with_columns(**given), names


def record_swap(
    data: object,
    *,
    hid: str,
    hierarchy: Sequence[str],
    similar: Sequence[str] | Sequence[Sequence[str]],
    key: Key,
    swaprate: Rate = "1/20",
    risk: object = (),
    **settings: Any,
) -> pl.DataFrame:
    """Return the swapped persons with their household's columns, in random order and with new numbers.

    Settings are those of TargetedSwapping: risk_variables, k_anonymity, risk_threshold, carry_along and the rest. ``risk``
    names a column of the file for each level, or is a matrix: a row for each row of the file, a column for each level.

    >>> people = {"hid": [1, 1, 2, 3, 4], "lau": ["a", "a", "a", "b", "b"], "hs": [2, 2, 1, 1, 1], "age": [40, 8, 3, 50, 7]}
    >>> made = record_swap(people, hid="hid", hierarchy=["lau"], similar=["hs"], key=Key.for_tests(1), swaprate="1/2")
    >>> sorted(made.group_by("lau").agg(pl.col("hs").sum()).rows())
    [('a', 5), ('b', 2)]
    """
    data, names = add_risks(data, risk, hierarchy)
    census = flat_census(data, hid=hid, hierarchy=hierarchy)
    mechanism = TargetedSwapping(
        hierarchy=hierarchy, similar=similar, swaprate=swaprate, risk=names, **settings
    )
    release = mechanism.release(census, key=key)
    homes, persons = release.to_polars("household"), release.to_polars("person")
    beside = [name for name in homes.columns if name == hid or name not in persons.columns]
    return persons.join(homes.select(beside), on=hid, how="left", maintain_order="left")
