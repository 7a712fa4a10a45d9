"""A census that holds many copies of a small one, each a stratum of its own: one swap of it is many independent swaps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from stirred.census.codebook.schema import VariableSchema
from stirred.frames import collect_frame
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census import Census


def copy_census(census: "Census", record_type: str, copies: int) -> tuple["Census", str]:
    """Return a census of independent copies and the variable that numbers them, without linked records."""
    schema, record = census.schema, census.schema.record(record_type)
    frame = collect_frame(census.scan(record_type, list(census.columns(record_type))))
    name = "copy"
    while name in frame.columns:
        name += "_"
    number = VariableSchema(name=name, kind="integer", levels=range(copies))
    own = [*record.variables] if record.variables else [VariableSchema(name=c) for c in frame.columns]
    alone = replace(schema, records=(replace(record, variables=(*own, number)),))
    rows = frame[np.tile(np.arange(frame.height), copies)]
    rows = rows.with_columns(pl.Series(name, np.repeat(np.arange(copies), frame.height)))
    if record.id:
        rows = rows.with_columns(pl.Series(record.id, np.arange(1, rows.height + 1)))
    return type(census)(schema=alone, files={record_type: rows.lazy()}, folder=census.folder), name


def settings_of_copies(match: Sequence[str], roles: Roles, name: str) -> dict[str, object]:
    """Return the settings of a swap within copies, with guards that refuse nothing."""
    held = [column for column in roles.held_variables if column != name]
    return {
        "match": [*match, name],
        "release_identifiers": dict.fromkeys([name, *held], "copies"),
        "accept_reversal": held,
    }
