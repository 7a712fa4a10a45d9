"""Replace persons in group quarters by draws from models, as the 2010 system did beside the swap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import pads
from stirred.chance import Key, integers
from stirred.engine import Engine
from stirred.errors import DataError, InputError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.release import Check, Release, require_schema
from stirred.mechanisms.swap.config import Roles, Swapping2010Config
from stirred.mechanisms.swap.fingerprints import require_kept
from stirred.spec import Custom, Multiverse, Specification

if TYPE_CHECKING:
    from stirred.census import Census


# Generalised linear models of one variable, fitted to counts by iteratively reweighted least squares with a small ridge.
#
# Records are counted by their predictors first, so that neither their order nor their number of equal copies changes a
# bit. The ridge keeps coefficients finite where some level never occurs together with another.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RIDGE_PENALTY = 0.1
MAX_NEWTON_STEPS = 60  # of Newton's method, at most
CONVERGED_CHANGE = 1e-10  # the largest change of a coefficient at which it has converged
CHANCE_GRID = (
    1 << 24
)  # chances are rounded to this grid, so that machines that round sums differently draw alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """One variable as columns of a model: an indicator of each level but the first, or its value and square."""

    levels: int
    values: Floats | None = None  # of each level, where the variable is a number: centred and scaled

    @property
    def width(self) -> int:
        """Return the number of its columns."""
        return 2 if self.values is not None else self.levels - 1

    def columns(self, codes: Ints) -> Floats:
        """Return its columns for some records, from their codes."""
        if self.values is not None:
            x = self.values[codes]
            return np.stack([x, x * x], axis=1)
        return np.asarray(codes[:, None] == np.arange(1, self.levels)[None, :], np.float64)


def design_matrix(predictors: list[Predictor], codes: Ints) -> Floats:
    """Return the matrix of a model: a constant, and the columns of each predictor."""
    parts = [p.columns(codes[:, i]) for i, p in enumerate(predictors)]
    return np.concatenate([np.ones((codes.shape[0], 1)), *parts], axis=1)


def fit_multinomial(x: Floats, counts: Floats, ridge: float = RIDGE_PENALTY) -> Floats:
    r"""Coefficients B of $\ln (p_k / p_0) = x^\top b_k$, by Newton's method; ``counts`` are by row of x and level.

    >>> b = fit_multinomial(np.ones((1, 1)), np.array([[3.0, 1.0]]), ridge=0.0)
    >>> [round(float(p), 6) for p in multinomial_shares(np.ones((1, 1)), b)[0]]
    [0.75, 0.25]
    """
    width, levels = x.shape[1], counts.shape[1]
    b = np.zeros((width, levels - 1))
    total = counts.sum(axis=1, keepdims=True)
    for _ in range(MAX_NEWTON_STEPS if levels > 1 else 0):
        p = multinomial_shares(x, b)[:, 1:]
        slope = x.T @ (counts[:, 1:] - total * p) - ridge * b
        curve = max(ridge, 1e-9) * np.eye(b.size)
        for k in range(levels - 1):
            for j in range(levels - 1):
                weight = total[:, 0] * p[:, k] * ((j == k) - p[:, j])
                curve[k * width : (k + 1) * width, j * width : (j + 1) * width] += (x * weight[:, None]).T @ x
        newton = np.linalg.solve(curve, slope.T.ravel()).reshape(levels - 1, width).T
        step, b = _damp_step(np.asarray(newton, np.float64), b)
        if np.abs(step).max(initial=0.0) < CONVERGED_CHANGE:
            break
    return b


def multinomial_shares(x: Floats, b: Floats) -> Floats:
    """Return the chances of all levels at each row of x."""
    scores = np.concatenate([np.zeros((x.shape[0], 1)), x @ b], axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def fit_poisson(x: Floats, sums: Floats, numbers: Floats, ridge: float = RIDGE_PENALTY) -> Floats:
    r"""Coefficients b of $\ln \mu = x^\top b$; ``sums`` are totals of the variable by row of x, ``numbers`` of records.

    >>> b = fit_poisson(np.ones((1, 1)), np.array([12.0]), np.array([4.0]), ridge=0.0)
    >>> round(float(np.exp(b[0])), 6)
    3.0
    """
    b = np.zeros(x.shape[1])
    b[0] = np.log(max(float(sums.sum()), 0.5) / max(float(numbers.sum()), 1.0))
    start = b.copy()
    for _ in range(MAX_NEWTON_STEPS):
        mean = numbers * np.exp(np.minimum(x @ b, 50.0))
        slope = x.T @ (sums - mean) - ridge * (b - start)
        curve = (x * mean[:, None]).T @ x + max(ridge, 1e-9) * np.eye(b.size)
        step, b = _damp_step(np.asarray(np.linalg.solve(curve, slope), np.float64), b)
        if np.abs(step).max(initial=0.0) < CONVERGED_CHANGE:
            break
    return b


def _damp_step(step: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Limit a step to 2 in any coefficient, because Newton's full step may overshoot; return it and the new b."""
    step = step * min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
    return step, b + step


def poisson_shares(means: Floats, low: int, high: int) -> Floats:
    """Return the chances of low … high for each mean, of a Poisson variable that lies there."""
    k = np.arange(low, high + 1)
    logs = k[None, :] * np.log(np.maximum(means, 1e-300))[:, None] - np.array([lgamma(i + 1.0) for i in k])
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def round_thresholds(chances: Floats) -> Ints:
    """Return where each level ends on the grid; the last end is the whole grid."""
    ends = np.rint(np.cumsum(chances, axis=1) * CHANCE_GRID).astype(np.int64)
    ends[:, -1] = CHANCE_GRID
    return np.maximum.accumulate(ends, axis=1)


def draw_levels(ends: Ints, rows: Ints, words: Ints) -> Ints:
    """Return the level into which each word, below the grid, falls; ``rows`` are the chances of each record.

    >>> draw_levels(round_thresholds(np.array([[0.5, 0.5]])), np.array([0, 0]), np.array([0, CHANCE_GRID - 1]))
    array([0, 1])
    """
    found = np.empty(rows.size, np.int64)
    for start in range(0, rows.size, 1 << 16):
        some = slice(start, start + (1 << 16))
        found[some] = (words[some, None] >= ends[rows[some], :-1]).sum(axis=1)
    return found


# Persons in group quarters, partly replaced by draws from models of themselves: the 2010 system's step beside the swap.
#
# Variables are drawn one after the other, each given the kind of group quarters, the chosen predictors and what was
# drawn before (sequential regression). Who lives where, and every other variable, stays. The models are fitted to the
# confidential persons without noise, so the step has no guarantee of its own.

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


# What a swap says and refuses where persons in group quarters are drawn anew.


def choose_quarters(settings: Swapping2010Config, census: "Census", roles: Roles) -> GroupQuarters | None:
    """Return what is drawn anew, or None; refuse settings that fit no group quarters or no persons."""
    if not settings.synthetic:
        if settings.synthetic_by:
            raise _setting_error("synthetic_by without synthetic", "nothing is drawn anew", _EXAMPLE_FIX)
        return None
    kinds = census.schema.record(settings.resolution).kinds
    if kinds is None or not kinds.group_quarters or kinds.column not in roles.released_variables:
        why = "census.toml names no levels of group quarters, or their column is not published"
        raise _setting_error(
            "no group quarters are known", why, "group_quarters = […] in census.toml, and publish the column"
        )
    if settings.untouched != "publish" or not roles.members:
        why = "persons in group quarters are not published"
        raise _setting_error(
            "nobody is there to be drawn anew", why, 'untouched = "publish" and carry = true'
        )
    wanted = list(settings.synthetic)
    found = [(kind, names) for kind, names in roles.members if set(wanted) <= set(names)]
    if not found:
        known = {name for _, names in roles.members for name in names}
        strange = next((name for name in wanted if name not in known), wanted[0])
        raise _setting_error(
            f"persons have no published variable {strange}",
            "it cannot be drawn",
            did_you_mean(strange, known),
        )
    persons, names = found[0]
    for name in settings.synthetic_by:
        if name in wanted or name not in {*names, *roles.released_variables}:
            why = "models depend on variables that are published and not drawn anew themselves"
            raise _setting_error(
                f"no model depends on {name}",
                why,
                did_you_mean(name, {*names, *roles.released_variables} - {*wanted}),
            )
    return GroupQuarters(
        homes=settings.resolution,
        persons=persons,
        kind=kinds.column,
        levels=tuple(map(str, kinds.group_quarters)),
        models=dict(settings.synthetic),
        given=tuple(settings.synthetic_by),
        check=[kind for kind, _ in roles.members].index(persons) - len(roles.members),
    )


def restate_for_quarters(found: Specification, names: Sequence[str]) -> Specification:
    """Return the promise without invariants of persons in group quarters, except their number."""
    kept = [part for part in found.multiverse.invariants if not isinstance(part, Custom)]
    along = [part for part in found.multiverse.invariants if isinstance(part, Custom)]
    determined = tuple(dict.fromkeys(margin for part in along for margin in part.determined_by))
    own = [
        Custom(name=f"quarters.{key}", determined_by=determined, description=Phrase(f"quarters.{key}"))
        for key in ("outside", "totals")
    ]
    note = Phrase("quarters.note", variables=", ".join(names))
    return replace(found, multiverse=Multiverse(frozenset([*kept, *own])), notes=(*found.notes, note))


def require_one_file(size: int, engine: Engine) -> None:
    """Refuse a census in parts: the models are fitted in the memory of one machine."""
    if not engine.fits(size):
        raise InputError(
            "persons in group quarters cannot be drawn anew here",
            why="the models are fitted in the memory of one machine, and the census is in parts",
            fix="run it with an engine whose memory holds the census, or leave synthetic out",
        )


_EXAMPLE_FIX = 'synthetic = { race = "multinomial" }'


def _setting_error(what: str, why: str, fix: str) -> InputError:
    return InputError(what, why=why, fix=fix)
