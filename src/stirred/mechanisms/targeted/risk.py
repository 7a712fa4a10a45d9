"""Count how rare the members of a household are in each area, and decide who must be swapped across which level."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.members import Members
from stirred.mechanisms.swapping.records.packing import Digits, rank_columns, unpack_digits
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.targeted.donors import MAX_DENSE_TABLE, number_densely

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def number_combinations(columns: Sequence[Column], rows: int) -> Ints:
    """Return the combination of some columns as a dense number, 0 for all records without columns."""
    varying = [column for column in columns if column.span > 1]
    if not varying:
        return np.zeros(rows, np.int64)
    digits = Digits.of(varying)
    if digits.range < 2**62:
        return number_densely(digits.numbers().view(np.int64), digits.range)[1]
    return np.asarray(rank_columns(varying).codes.astype(np.int64))


def find_level_areas(frame: Frame, hierarchy: Sequence[str]) -> list[Ints]:
    """Return the area of each record at each level, distinguishing codes that repeat in other areas."""
    spine, found = frame.roles.spine, []
    for number, level in enumerate(hierarchy):
        deepest = spine.index(level) if level in spine else -1
        above = [name for name in spine[: deepest + 1] if name in frame.roles.released_variables]
        found.append(
            number_combinations(
                frame.of(tuple(dict.fromkeys([*above, *hierarchy[: number + 1]]))), frame.rows
            )
        )
    return found


def measure_rarity(frame: Frame, areas: Sequence[Ints], variables: Sequence[str]) -> list[Floats]:
    r"""The risk $1 / \min_j n_{h,j}$ of each household: n counts the persons like its member j in the area of level h.

    Variables of households alone count households; without variables everyone has the same risk.
    """
    if not variables:
        return [np.ones(frame.rows) for _ in areas]
    group = _find_members(frame, variables)
    if group is None:
        alike = number_combinations(frame.of(tuple(variables)), frame.rows)
        return [_inverse_counts(area, alike) for area in areas]
    owners = np.repeat(np.arange(frame.rows), np.diff(group.starts))
    own = {digit.name: numbers for digit, numbers in unpack_digits(group.digits, group.words)}
    columns = [
        Column(name=name, codes=own[name], type=pa.uint64())
        if name in own
        else frame.columns[name].take_rows(owners.astype(np.uint32))
        for name in variables
    ]
    alike = number_combinations([column.store_reach() for column in columns], owners.size)
    return [_largest_by_home(group.starts, _inverse_counts(area[owners], alike)) for area in areas]


@compile_kernel
def _largest_by_home(starts: Ints, values: Floats) -> Floats:
    """Return the largest value of each household, 0 where nobody lives."""
    found = np.zeros(starts.size - 1)
    for home in range(found.size):
        for i in range(starts[home], starts[home + 1]):
            found[home] = max(found[home], values[i])
    return found


def read_risks(frame: Frame, columns: Sequence[str]) -> list[Floats]:
    """Return the risks of a column for each level: a household's own, or the largest of its members."""
    return [
        _read_numbers(frame.columns[name]) if name in frame.columns else _read_member_risk(frame, name)
        for name in columns
    ]


def _read_member_risk(frame: Frame, name: str) -> Floats:
    """Return the largest risk of the members of each household, 0 where nobody lives."""
    for group in frame.members:
        if name in group.kind.read:
            codes = group.codes(group.words)[name]
            column = next(digit for digit in group.digits if digit.name == name)
            risks = column.decode(codes, holds_empty=name in group.empty)
            return _largest_by_home(group.starts, _to_floats(risks, name))
    raise memory_error(name)


def find_risk_levels(risks: Sequence[Floats], threshold: float) -> NDArray[np.int8]:
    """Return the coarsest level where a household's risk exceeds the threshold, or the number of levels."""
    found = np.full(risks[0].size if risks else 0, len(risks), np.int8)
    for level in range(len(risks) - 1, -1, -1):
        found[risks[level] > threshold] = level
    return found


def _inverse_counts(area: Ints, alike: Ints) -> Floats:
    """Return, for each record, one over the number of records in its area that are alike."""
    kinds = int(alike.max(initial=0)) + 1
    cells, bound = area * kinds + alike, (int(area.max(initial=0)) + 1) * kinds
    if bound > max(MAX_DENSE_TABLE, 4 * cells.size):
        cells = number_densely(cells, bound)[1]
    shares = 1.0 / np.maximum(np.bincount(cells), 1)
    return np.asarray(shares[cells])


def _find_members(frame: Frame, variables: Sequence[str]) -> Members | None:
    """Return the linked records that have some of the variables, or None if households have all of them."""
    beyond = [name for name in variables if name not in frame.roles.released_variables]
    if not beyond:
        return None
    for group in frame.members:
        if set(beyond) <= set(group.kind.variables):
            return group
    raise memory_error(beyond[0])


def add_unseen(roles: Roles, names: Sequence[str]) -> Roles:
    """Return the roles with variables of linked records that are read for the risk and not released."""
    kept, unseen = [], []
    for record_type, variables in roles.members:
        own = tuple(name for name in names if name in variables)
        kept.append((record_type, tuple(name for name in variables if name not in own)))
        unseen.append((record_type, own))
    known = {name for _, variables in roles.members for name in variables}
    for name in names:
        if name not in known:
            raise InputError(
                f"no record has the given risk {name}",
                why="a given risk is a variable of the records that are swapped, or of linked records that are published",
                fix=did_you_mean(name, {*known, *roles.released_variables}),
            )
    return replace(roles, members=tuple(kept), unseen_along=tuple(unseen)) if names else roles


def memory_error(name: str) -> InputError:
    """Return the error of risk variables of persons if the census does not fit in memory."""
    return InputError(
        f"the risk of {name} cannot be counted here",
        why="persons are counted in the memory of one machine, and the census is in parts",
        fix="run it with an engine whose memory holds the census, name risk variables of households, or give a column "
        "of risks for each level: risk=[…]",
    )


def _read_numbers(column: Column) -> Floats:
    if column.values is None:
        return _to_floats(pa.array(column.codes), column.name)
    return _to_floats(column.values, column.name)[column.codes]


def _to_floats(values: pa.Array, name: str) -> Floats:
    """Return values as risks, 0 for empty ones; raise an error if one is negative or no number."""
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    try:
        numbers = plain.cast(pa.float64()).fill_null(0.0)
    except pa.ArrowInvalid:
        raise _risk_error(name, "some of its values are no numbers") from None
    found = np.nan_to_num(numbers.to_numpy(zero_copy_only=False))
    if (found < 0).any():
        raise _risk_error(name, "some of its values are negative")
    return np.asarray(found, np.float64)


def _risk_error(name: str, why: str) -> InputError:
    return InputError(
        f"{name} does not hold risks", why=why, fix="give a column of numbers from 0 on for each level"
    )
