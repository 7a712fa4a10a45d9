"""Persons in group quarters, partly replaced by draws from models of themselves: the 2010 system's step beside the swap.

Variables are drawn one after the other, each given the kind of group quarters, the chosen predictors and what was drawn
before (sequential regression). Who lives where, and every other variable, stays. The models are fitted to the confidential
persons without noise, so the step has no guarantee of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.arrow import pads
from stirred.chance import Key, integers
from stirred.errors import DataError, InputError
from stirred.languages import Phrase
from stirred.mechanisms.base import Check, Release
from stirred.mechanisms.released import require_schema
from stirred.mechanisms.swapping.pipeline.verify import require_kept
from stirred.mechanisms.swapping_2010.models import (
    CHANCE_GRID,
    Floats,
    Ints,
    Predictor,
    design_matrix,
    draw_levels,
    fit_multinomial,
    fit_poisson,
    multinomial_shares,
    poisson_shares,
    round_thresholds,
)

MAX_VALUES_AS_LEVELS = (
    12  # a whole number with more values than this is a number to a model, not a list of levels
)
MAX_LEVELS_IN_MODEL = 60  # levels of a variable in a model


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedColumn:
    """A variable of the persons: its levels, sorted, and the level of each person."""

    name: str
    levels: pa.Array
    codes: Ints

    @staticmethod
    def of(name: str, column: pa.ChunkedArray) -> "EncodedColumn":
        """Encode a column; what is empty is a level of its own."""
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        values = plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain
        levels = values.unique()
        levels = levels.take(pc.array_sort_indices(levels))
        return EncodedColumn(name=name, levels=levels, codes=_to_ints(pc.index_in(values, value_set=levels)))

    @property
    def numeric(self) -> bool:
        """Return whether a model takes it as a number."""
        return (
            pa.types.is_integer(self.levels.type)
            and not self.levels.null_count
            and len(self.levels) > MAX_VALUES_AS_LEVELS
        )

    def predictor(self) -> Predictor:
        """Return its columns in a model."""
        if not self.numeric:
            if len(self.levels) > MAX_LEVELS_IN_MODEL:
                raise InputError(
                    f"{self.name} has {len(self.levels):,} levels in group quarters",
                    why=f"a model takes at most {MAX_LEVELS_IN_MODEL} of a variable",
                    fix=f"take {self.name} out of synthetic_by, or recode it",
                )
            return Predictor(levels=len(self.levels))
        values = _to_ints(self.levels).astype(np.float64)
        spread = float(values.std()) or 1.0
        return Predictor(levels=values.size, values=(values - values.mean()) / spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuarters:
    """What is drawn anew: the record types, the column of kinds, its levels of group quarters, and the models."""

    homes: str
    persons: str
    kind: str
    levels: tuple[str, ...]
    models: Mapping[str, str]
    given: tuple[str, ...]
    check: int  # the place among the checks of the one of these persons

    def replace_persons(self, release: Release, run: Key, out: Path | None) -> Release:
        """Return the release with some variables of persons in group quarters drawn anew, checked again."""
        lived = PersonHomes.of(release, self)
        people = release.to_arrow(self.persons).unify_dictionaries()
        rows = lived.rows(people)
        inside = lived.quarters[rows]
        some = np.flatnonzero(inside)
        made = people
        if some.size:
            columns = {name: people[name].take(some) for name in people.column_names}
            beside = {
                name: lived.records[name].take(rows[some])
                for name in (self.kind, *self.given)
                if name not in columns
            }
            for name, values in _draw_values(columns | beside, self, run).items():
                at = people.column_names.index(name)
                made = made.set_column(
                    at, name, _replace_values(people[name].combine_chunks(), inside, values)
                )
            made = _sort_persons(made, some, lived.link, lived.identifier)
        return replace(
            release,
            microdata={
                **release.microdata,
                self.persons: _write_table(made, release.microdata[self.persons], out),
            },
            checks=require_kept(
                [
                    *(
                        check
                        for i, check in enumerate(release.checks)
                        if i != len(release.checks) + self.check
                    ),
                    *lived.check_persons(people, made),
                ]
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonHomes:
    """The released records in which persons live, and which of them are group quarters."""

    records: pa.Table
    numbers: Ints
    quarters: NDArray[np.bool_]
    link: str
    identifier: str  # of persons, where they have one

    @staticmethod
    def of(release: Release, chosen: GroupQuarters) -> "PersonHomes":
        """Read the records of a release."""
        schema, records = require_schema(release), release.to_arrow(chosen.homes)
        kinds = pc.cast(_decode_column(records[chosen.kind]), pa.string())
        inside = pc.is_in(kinds, value_set=pa.array(chosen.levels, pa.string()))
        return PersonHomes(
            records=records,
            numbers=_to_ints(records[schema.record(chosen.homes).id]),
            quarters=np.asarray(inside.to_numpy(), np.bool_),
            link=schema.record(chosen.persons).household,
            identifier=schema.record(chosen.persons).id,
        )

    def rows(self, people: pa.Table) -> Ints:
        """Return the record of each person; new numbers ascend."""
        return np.searchsorted(self.numbers, _to_ints(people[self.link]))

    def check_persons(self, before: pa.Table, after: pa.Table) -> list[Check]:
        """Check that persons elsewhere are unchanged and that as many live in each group quarters."""
        elsewhere, numbers = [], []
        for people in (before, after):
            rows = self.rows(people)
            elsewhere.append(people.filter(pa.array(~self.quarters[rows])))
            numbers.append(np.bincount(rows[self.quarters[rows]], minlength=self.numbers.size))
        return [
            Check(
                invariant=Phrase("quarters.outside"),
                kept=elsewhere[0].equals(elsewhere[1]),
                numbers=elsewhere[1].num_rows,
            ),
            Check(
                invariant=Phrase("quarters.totals"),
                kept=np.array_equal(numbers[0], numbers[1]) and before.num_rows == after.num_rows,
                numbers=int(self.quarters.sum()),
            ),
        ]


def _sort_persons(people: pa.Table, some: Ints, link: str, identifier: str) -> pa.Table:
    """Sort the persons of each group quarters by new content, because the old order would tell who was who."""
    part = people.take(some)
    others = [name for name in people.column_names if name not in (link, identifier)]
    plain = pa.table({name: _decode_column(part[name]) for name in (link, *others)})
    order = pc.sort_indices(plain, sort_keys=[(name, "ascending") for name in plain.column_names])
    whole = np.arange(people.num_rows)
    whole[some] = some[_to_ints(order)]
    turned = people.select([link, *others]).take(whole)
    kept = {name: people[name] if name == identifier else turned[name] for name in people.column_names}
    return pa.table(kept)


def _draw_values(
    columns: Mapping[str, pa.ChunkedArray], chosen: GroupQuarters, run: Key
) -> dict[str, pa.Array]:
    """Draw the new values of each variable, one variable after the other."""
    wanted = dict.fromkeys([chosen.kind, *chosen.given, *chosen.models])
    true = {name: EncodedColumn.of(name, columns[name]) for name in wanted}
    codes = {
        name: coded.codes for name, coded in true.items()
    }  # of what is known so far, drawn values included
    known, found = list(dict.fromkeys([chosen.kind, *chosen.given])), {}
    for name, family in chosen.models.items():
        target = true[name]
        predictors = [true[other].predictor() for other in known]
        before = _distinct_rows([true[other].codes for other in known], target.codes.size)
        now = _distinct_rows([codes[other] for other in known], target.codes.size)
        chances, levels = _fit_chances(family, target, predictors, before, now)
        words = integers(run.stream("swapping-2010/quarters", name), CHANCE_GRID, target.codes.size)
        new = draw_levels(round_thresholds(chances), now.row, words)
        found[name] = levels.take(pa.array(new))
        # a drawn number between two observed ones is to later models the nearest observed one
        codes[name] = _nearest_level(target, levels, new)
        known.append(name)
    return found


@dataclass(frozen=True, slots=True)
class PredictorRows:
    """Distinct rows of predictors, and the one of each person."""

    codes: Ints
    row: Ints


def _distinct_rows(columns: Sequence[Ints], size: int) -> PredictorRows:
    stacked = np.stack(columns, axis=1) if columns else np.zeros((size, 0), np.int64)
    codes, row = np.unique(stacked, axis=0, return_inverse=True)
    return PredictorRows(codes, row.ravel())


def _fit_chances(
    family: str, target: EncodedColumn, predictors: list[Predictor], before: PredictorRows, now: PredictorRows
) -> tuple[Floats, pa.Array]:
    """Return the chances and levels at each row of ``now``, by the model fitted to ``before``."""
    x, x_now = design_matrix(predictors, before.codes), design_matrix(predictors, now.codes)
    if family == "poisson":
        values = _read_counts(target)
        sums = np.bincount(before.row, values[target.codes].astype(np.float64), minlength=x.shape[0])
        b = fit_poisson(
            x, np.asarray(sums, np.float64), np.bincount(before.row, minlength=x.shape[0]).astype(np.float64)
        )
        low, high = int(values.min()), int(values.max())
        means = np.exp(np.minimum(x_now @ b, 50.0))
        return poisson_shares(means, low, high), pa.array(np.arange(low, high + 1), target.levels.type)
    levels = len(target.levels)
    if levels > MAX_LEVELS_IN_MODEL:
        raise InputError(
            f"{target.name} has {levels:,} levels in group quarters",
            why=f"a multinomial model has at most {MAX_LEVELS_IN_MODEL}",
            fix=f'{target.name} = "poisson" for a number, or recode it',
        )
    cell = before.row * levels + target.codes
    counts = np.bincount(cell, minlength=x.shape[0] * levels).reshape(-1, levels).astype(np.float64)
    return multinomial_shares(x_now, fit_multinomial(x, counts)), target.levels


def _read_counts(target: EncodedColumn) -> Ints:
    """Return the values of a variable that counts, or raise an error."""
    if not pa.types.is_integer(target.levels.type) or target.levels.null_count:
        raise _count_error(target.name, "some of its values are empty or no whole numbers")
    values = _to_ints(target.levels)
    if (values < 0).any():
        raise _count_error(target.name, "some of its values are negative")
    return values


def _count_error(name: str, why: str) -> DataError:
    return DataError(f"{name} is no count", why=why, fix=f'{name} = "multinomial" takes any levels')


def _nearest_level(target: EncodedColumn, levels: pa.Array, new: Ints) -> Ints:
    if levels.equals(target.levels):
        return new
    observed, values = _to_ints(target.levels), _to_ints(levels)[new]
    above = np.minimum(np.searchsorted(observed, values), observed.size - 1)
    below = np.maximum(above - 1, 0)
    return np.where(values - observed[below] < observed[above] - values, below, above)


def _replace_values(column: pa.Array, inside: NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """Return the column with new values in group quarters; a dictionary keeps its values and their order."""
    mask = pa.array(inside)
    if not pa.types.is_dictionary(column.type):
        return pc.replace_with_mask(column, mask, values.cast(column.type))
    plain = pc.replace_with_mask(
        column.cast(column.type.value_type), mask, values.cast(column.type.value_type)
    )
    places = pc.index_in(plain, value_set=column.dictionary).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(places, column.dictionary)


def _write_table(made: pa.Table, was: pa.Table | pads.Dataset, out: Path | None) -> pa.Table | pads.Dataset:
    if isinstance(was, pa.Table) or out is None:
        return made
    (path,) = map(Path, was.files)  # a census in parts was refused: no file with the old values is left
    pq.write_table(made, path.with_suffix(".new"), compression="snappy")
    path.with_suffix(".new").replace(path)
    return pads.dataset(path)


def _decode_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _to_ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy(), np.int64
    )
