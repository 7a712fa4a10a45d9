"""Every mechanism, those of other packages too: each public byte is its output, an invariant, or public anyway."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from contract.leaks import unexplained
from contract.registry import EVERY, Case
from contract.test_contract import KEY, SCHEMA, census
from stirred import GaussianTables
from stirred.census import Census

HOUSEHOLDS = 240
# without a finite bound and without a reason to publish all the same: no packet is made of it
NEVER_PUBLISHED = {"noisy-key"}


# what changes between the censuses, where it is not the places of all households of one state and size
CHANGES = {
    "imputed-stay": "owners",  # the places of those who rent are exact
    "gaussian-tables": "places",  # only which areas have records is exact
    **dict.fromkeys(("phsafe", "safetab-p", "safetab-h", "topdown", "topdown-classic"), "persons"),
}


@cache
def exchanged(pair: int, change: str = "households") -> Census:
    """The same town (``pair`` 0), or one of the same universe in which something has changed.

    Households, or owners alone, of one state and size exchange their places; with "persons" ages and sexes change too;
    with "places" every household gets any place.
    """
    rng = np.random.default_rng(pair)
    before = census(HOUSEHOLDS)
    names = ["hid", "state", "county", "tract", "size", "tenure"]
    homes = before.scan("household", names).collect().with_row_index("row")
    people = before.scan("person", ["hid", "age", "sex"]).collect()
    rows = np.arange(homes.height)
    moving = homes.filter(tenure="own") if change == "owners" else homes
    for _, group in moving.group_by(["state", "size"], maintain_order=True) if pair else ():
        places = group["row"].to_numpy()
        rows[places] = rng.choice(places, len(places)) if change == "places" else rng.permuted(places)
    areas = homes.select("county", "tract")[rows]
    homes = homes.drop("row").with_columns(areas["county"], areas["tract"])
    if pair and change == "persons":
        order = rng.permutation(people.height)
        people = people.with_columns(people["age"][order], people["sex"][order])
    return Census.of(SCHEMA, {"household": homes, "person": people})


@pytest.mark.parametrize("pair", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [c for c in EVERY if c.name not in NEVER_PUBLISHED], ids=lambda c: c.name)
def test_every_public_byte_is_explained(case: Case, pair: int, tmp_path: Path) -> None:
    other = exchanged(pair, CHANGES.get(case.name, "households"))
    assert unexplained(case.make(), exchanged(0), other, key=KEY, folder=tmp_path) == []


class Telling(GaussianTables):
    """A mutant: a note counts the households that the first tract has in truth."""

    def release(self, census: Census, **named: Any) -> Any:
        made = super().release(census, **named)
        number = int(pl.DataFrame(census.counts("household", ["tract", "tenure"]))["count"][0])
        return replace(made, notes=(*made.notes, f"{number} households"))


def test_a_note_that_counts_is_found(tmp_path: Path) -> None:
    mutant = Telling(tables=[["county"], ["tract"]], rho_squared="1/2")
    found = unexplained(mutant, exchanged(0), exchanged(1, "places"), key=KEY, folder=tmp_path)
    assert any(name.startswith("receipt") and "notes" in name for name in found)
