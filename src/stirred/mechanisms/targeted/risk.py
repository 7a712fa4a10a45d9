"""Count how rare the members of a household are in each area, and decide who must be swapped across which level."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.members import Members
from stirred.mechanisms.swapping.records.packing import Digits, ranked, unpacked
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.targeted.donors import ROOM, dense

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def joined(columns: Sequence[Column], rows: int) -> Ints:
    """The combination of some columns as a dense number; without columns all records are alike."""
    varying = [column for column in columns if column.span > 1]
    if not varying:
        return np.zeros(rows, np.int64)
    digits = Digits.of(varying)
    if digits.range < 2**62:
        return dense(digits.numbers().view(np.int64), digits.range)[1]
    return np.asarray(ranked(varying).codes.astype(np.int64))


def level_areas(frame: Frame, hierarchy: Sequence[str]) -> list[Ints]:
    """The area of each record at each level; codes that repeat in other areas above are told apart."""
    spine, found = frame.roles.spine, []
    for number, level in enumerate(hierarchy):
        deepest = spine.index(level) if level in spine else -1
        above = [name for name in spine[: deepest + 1] if name in frame.roles.released]
        found.append(joined(frame.of(tuple(dict.fromkeys([*above, *hierarchy[: number + 1]]))), frame.rows))
    return found


def by_rarity(frame: Frame, areas: Sequence[Ints], variables: Sequence[str]) -> list[Floats]:
    r"""The risk $1 / \min_j n_{h,j}$ of each household: n counts the persons like its member j in the area of level h.

    Variables of households alone count households; without variables everyone has the same risk.
    """
    if not variables:
        return [np.ones(frame.rows) for _ in areas]
    group = _members(frame, variables)
    if group is None:
        alike = joined(frame.of(tuple(variables)), frame.rows)
        return [_shares(area, alike) for area in areas]
    owners = np.repeat(np.arange(frame.rows), np.diff(group.starts))
    own = {digit.name: numbers for digit, numbers in unpacked(group.digits, group.words)}
    columns = [
        Column(name=name, codes=own[name], type=pa.uint64())
        if name in own
        else frame.columns[name].taken(owners.astype(np.uint32))
        for name in variables
    ]
    alike = joined([column.measured() for column in columns], owners.size)
    return [_largest(group.starts, _shares(area[owners], alike)) for area in areas]


@compiled
def _largest(starts: Ints, values: Floats) -> Floats:
    """The largest value of each household; 0 where nobody lives."""
    found = np.zeros(starts.size - 1)
    for home in range(found.size):
        for i in range(starts[home], starts[home + 1]):
            found[home] = max(found[home], values[i])
    return found


def given(frame: Frame, columns: Sequence[str]) -> list[Floats]:
    """The risks of a column for each level: of a household, or the largest of its members; an empty one is 0."""
    return [
        _numbers(frame.columns[name]) if name in frame.columns else _of_members(frame, name)
        for name in columns
    ]


def _of_members(frame: Frame, name: str) -> Floats:
    """The largest risk of the members of each household; 0 where nobody lives."""
    for group in frame.members:
        if name in group.kind.read:
            codes = group.codes(group.words)[name]
            column = next(digit for digit in group.digits if digit.name == name)
            risks = column.decode(codes, holds_empty=name in group.empty)
            return _largest(group.starts, _floats(risks, name))
    raise not_in_memory(name)


def levels_of(risks: Sequence[Floats], threshold: float) -> NDArray[np.int8]:
    """The coarsest level at which the risk of a household exceeds the threshold; the number of levels where none does."""
    found = np.full(risks[0].size if risks else 0, len(risks), np.int8)
    for level in range(len(risks) - 1, -1, -1):
        found[risks[level] > threshold] = level
    return found


def _shares(area: Ints, alike: Ints) -> Floats:
    """One over the number of records that are alike in an area, for each of them."""
    kinds = int(alike.max(initial=0)) + 1
    cells, bound = area * kinds + alike, (int(area.max(initial=0)) + 1) * kinds
    if bound > max(ROOM, 4 * cells.size):
        cells = dense(cells, bound)[1]
    shares = 1.0 / np.maximum(np.bincount(cells), 1)
    return np.asarray(shares[cells])


def _members(frame: Frame, variables: Sequence[str]) -> Members | None:
    """The linked records that have some of the variables, or None where all are variables of households."""
    beyond = [name for name in variables if name not in frame.roles.released]
    if not beyond:
        return None
    for group in frame.members:
        if set(beyond) <= set(group.kind.variables):
            return group
    raise not_in_memory(beyond[0])


def with_unseen(roles: Roles, names: Sequence[str]) -> Roles:
    """The roles with variables of linked records that are read for the risk and not released."""
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
                fix=did_you_mean(name, {*known, *roles.released}),
            )
    return replace(roles, members=tuple(kept), unseen_along=tuple(unseen)) if names else roles


def not_in_memory(name: str) -> InputError:
    """The error of risk variables of persons where the census does not fit."""
    return InputError(
        f"the risk of {name} cannot be counted here",
        why="persons are counted in the memory of one machine, and the census is in parts",
        fix="run it with an engine whose memory holds the census, name risk variables of households, or give a column "
        "of risks for each level: risk=[…]",
    )


def _numbers(column: Column) -> Floats:
    if column.values is None:
        return _floats(pa.array(column.codes), column.name)
    return _floats(column.values, column.name)[column.codes]


def _floats(values: pa.Array, name: str) -> Floats:
    """Values as risks; what is empty is 0."""
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    try:
        numbers = plain.cast(pa.float64()).fill_null(0.0)
    except pa.ArrowInvalid:
        raise _no_risks(name, "some of its values are no numbers") from None
    found = np.nan_to_num(numbers.to_numpy(zero_copy_only=False))
    if (found < 0).any():
        raise _no_risks(name, "some of its values are negative")
    return np.asarray(found, np.float64)


def _no_risks(name: str, why: str) -> InputError:
    return InputError(
        f"{name} does not hold risks", why=why, fix="give a column of numbers from 0 on for each level"
    )
