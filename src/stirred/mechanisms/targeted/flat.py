"""Targeted record swapping of a flat person file in one call, with the parameters of recordSwap."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.swapping.budget.by_size import Rate
from stirred.mechanisms.targeted.mechanism import TargetedSwapping


def flat_census(data: object, *, hid: str, hierarchy: Sequence[str]) -> Census:
    """The households and persons of a person file; a column is of the household where it is constant in all of them."""
    schema = {
        "geography": {"spine": list(hierarchy)},
        "record": {"household": {"household_from": hid}, "person": {"household": hid, "of": "household"}},
    }
    return Census.of(schema, {"person": data})


def record_swap(
    data: object,
    *,
    hid: str,
    hierarchy: Sequence[str],
    similar: Sequence[str] | Sequence[Sequence[str]],
    key: Key,
    swaprate: Rate = "1/20",
    **settings: Any,
) -> pl.DataFrame:
    """The swapped persons, each with its household's columns, in a random order and with new household numbers.

    Settings are those of TargetedSwapping: risk_variables, k_anonymity, risk, risk_threshold, carry_along and the rest.

    >>> people = {"hid": [1, 1, 2, 3, 4], "lau": ["a", "a", "a", "b", "b"], "hs": [2, 2, 1, 1, 1], "age": [40, 8, 3, 50, 7]}
    >>> made = record_swap(people, hid="hid", hierarchy=["lau"], similar=["hs"], key=Key.for_tests(1), swaprate="1/2")
    >>> sorted(made.group_by("lau").agg(pl.col("hs").sum()).rows())
    [('a', 5), ('b', 2)]
    """
    census = flat_census(data, hid=hid, hierarchy=hierarchy)
    mechanism = TargetedSwapping(hierarchy=hierarchy, similar=similar, swaprate=swaprate, **settings)
    release = mechanism.release(census, key=key)
    homes, persons = release.to_polars("household"), release.to_polars("person")
    beside = [name for name in homes.columns if name == hid or name not in persons.columns]
    return persons.join(homes.select(beside), on=hid, how="left", maintain_order="left")
