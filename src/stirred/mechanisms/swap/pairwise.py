"""Share what all pairwise swaps need: risks, an infinite budget with its witnesses, and a log for the office."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.kernels import compile_kernel
from stirred.languages import Phrase
from stirred.mechanisms.contents import Law
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.swap.config import PairwiseConfig, Roles
from stirred.mechanisms.swap.estimates import keeps_table, list_moving
from stirred.mechanisms.swap.frame import ColumnsAndLog, Frame, MemoryRecords, StrataSummary, apply_moves
from stirred.mechanisms.swap.guards import expect_share_moved
from stirred.mechanisms.swap.pairs import MAX_DENSE_TABLE, Pairing, number_densely, to_moves
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPromise
from stirred.mechanisms.swap.promise import describe_dependence, state_specification
from stirred.mechanisms.swap.records import Column, Digits, Members, rank_columns, unpack_digits
from stirred.mechanisms.swap.strata import NO_STRATUM
from stirred.spec import Bound, Budget

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# Count how rare the members of a household are in each area, and decide who must be swapped across which level.

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


# Who was swapped with whom, for the office's quality assurance: it goes to the internal part of a packet, or nowhere.


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapLog:
    """The confidential log of what a pairwise swap did to the records of the census."""

    pairs: (
        pa.Table
    )  # one row for each household that moved: whose place it took, level, rule, who was selected
    households: int  # that take part
    persons: int
    moved: int
    moved_persons: int
    rules: Mapping[str, int]  # swaps by the rule that found the partner
    levels: Mapping[str, int]  # swaps by the level that was crossed
    without_partner: int  # households that had to be swapped, and nobody was left
    tables: Mapping[str, int]  # cells of each table of level × variable that changed, counted on the output

    @property
    def exact(self) -> tuple[str, ...]:
        """Return the tables that stayed exact."""
        return tuple(name for name, changed in self.tables.items() if not changed)

    def summary(self) -> dict[str, object]:
        """Return all figures without a record; they depend on the census, so they are for the office alone."""
        share = (self.moved / max(self.households, 1), self.moved_persons / max(self.persons, 1))
        return {
            "households moved": self.moved,
            "rate of households": share[0],
            "rate of persons": share[1] if self.persons else None,
            "swaps by rule": dict(self.rules),
            "swaps by level": dict(self.levels),
            "households without a partner": self.without_partner,
            "tables that stayed exact": list(self.exact),
            "cells changed": dict(self.tables),
        }

    def internal(self) -> dict[str, pa.Table]:
        """Return the log as two tables: ``swaps``, a row for each moved household, and ``figures``."""
        rows = [
            ("households that take part", "", self.households),
            ("households moved", "", self.moved),
            ("persons of households that take part", "", self.persons),
            ("persons moved", "", self.moved_persons),
            ("households without a partner", "", self.without_partner),
            *(("swaps by rule", name, number) for name, number in self.rules.items()),
            *(("swaps by level", name, number) for name, number in self.levels.items()),
            *(("cells changed", name, number) for name, number in self.tables.items()),
        ]
        figure, of, number = zip(*rows, strict=True)
        figures = pa.table({"figure": list(figure), "of": list(of), "number": pa.array(number, pa.int64())})
        return {"swaps": self.pairs, "figures": figures}


def make_log(frame: Frame, pairing: Pairing, *, rules: Sequence[str], levels: Sequence[str]) -> SwapLog:
    """Make the log of one draw, with rows in the order of the identifiers."""
    rows = np.flatnonzero(pairing.moved_mask)
    rows = rows[np.argsort(frame.ids[rows], kind="stable")]
    begun, partner = pairing.begun, pairing.partner[rows]
    names = frame.columns[frame.roles.identifier] if frame.roles.identifier else None
    if names is None:
        own, other = pa.array(rows), pa.array(partner)
    else:
        own, other = (names.take_rows(some.astype(np.uint32)).arrow() for some in (rows, partner))
    sizes = sum((np.diff(group.starts) for group in frame.members), np.zeros(frame.rows, np.int64))
    part = frame.strata.codes != NO_STRATUM
    return SwapLog(
        pairs=pa.table(
            {
                "household": own,
                "partner": other,
                "level": pa.array(np.array(levels, object)[pairing.level[rows]], pa.string()),
                "rule": pa.array(np.array(rules, object)[pairing.tier[rows]], pa.string()),
                "selected": pa.array(begun[rows]),
            }
        ),
        households=int(part.sum()),
        persons=int(sizes[part].sum()),
        moved=rows.size,
        moved_persons=int(sizes[rows].sum()),
        rules={name: int((begun & (pairing.tier == i)).sum()) for i, name in enumerate(rules)},
        levels={name: int((begun & (pairing.level == i)).sum()) for i, name in enumerate(levels)},
        without_partner=int(pairing.failed.sum()),
        tables=_count_changed(frame, rows, partner, levels),
    )


def _count_changed(frame: Frame, rows: Ints, givers: Ints, levels: Sequence[str]) -> dict[str, int]:
    """Count the changed cells of tables of a level by a held variable, and by what partners agree on.

    Only records that moved change a cell: they are counted where they were and where they are.
    """
    roles = frame.roles
    asked: list[tuple[str, ...]] = [
        (level, name) for level in levels for name in roles.held_variables if name != level
    ]
    asked += [(level, *roles.match) for level in levels if len(roles.match) > 1]
    found = {}
    for by in dict.fromkeys(asked):
        columns = []
        for name in by:
            codes = frame.columns[name].codes
            now = givers if name in roles.moving_variables else rows
            both = np.concatenate([codes[rows], codes[now]])
            columns.append(replace(frame.columns[name], codes=both, reach=None))
        cells = number_combinations(columns, 2 * rows.size)
        number = int(cells.max(initial=-1)) + 1
        before, after = (np.bincount(some, minlength=number) for some in np.split(cells, 2))
        found[" × ".join(by)] = int((before != after).sum())
    return found


# Pairs of data sets that show why a swap has no finite budget: an event that one of them makes impossible (proof.md).

Witness = dict[str, object]


def list_witnesses(first: Witness, *more: Witness | None) -> dict[str, object]:
    """Return the witnesses of a mechanism for programs: the first, and all others that hold too."""
    return {"witness": first, "more_witnesses": [witness for witness in more if witness]}


def witness_by_number(rate: Fraction, cycle: int = 2) -> Witness:
    """Return the witness of a certain number of swaps: a file is never released as it is."""
    n = max(1, -(-rate.denominator * cycle // (2 * rate.numerator)))
    return {
        "first": f"two areas of {n} households each, alike in all profiles and risks, no two of them with the same answer",
        "second": "the same households, one of each area in the place of the other",
        "distance": 2,
        "event": "the released records are those of the first",
        "chances": [0, "above 0"],
        "why": "a swap is certain, and every swap changes the records; of the second, it may be that one back",
    }


def witness_by_risk(k: int) -> Witness:
    """Return the witness of a certain selection: a rare household never stays."""
    return {
        "first": f"two areas of {max(k, 1) + 1} alike households each, one of them with a rare answer, in the first area",
        "second": "the same households, that one and one of the second area in each other's place",
        "distance": 2,
        "event": "the rare answer is released in the first area",
        "chances": [0, "above 0"],
        "why": "who is rare is swapped with certainty, to the other area",
    }


def witness_by_cycle(cycle: int) -> Witness:
    """Return the witness of disjoint cycles of at most n records: a circle of n + 1 is impossible.

    >>> witness_by_cycle(3)["distance"]
    2
    """
    n = cycle + 1
    return {
        "first": f"{n} households in {n} areas, alike in all profiles, no two of them with the same answer",
        "second": "the same households, the last two of them in each other's place",
        "distance": 2,
        "event": f"all {n} households of the first are turned in one circle, each to the place of the next",
        "chances": [0, "above 0"],
        "why": f"disjoint cycles of at most {cycle} records never make a circle of {n}; of the second, one cycle of "
        f"{cycle} makes the same records, with one household where it is",
    }


def witness_by_cap(cap: Fraction) -> Witness:
    """Return the witness of a capped number of swaps: an output with one swap more is impossible."""
    return {
        "first": f"a state of different households in which the cap {cap} allows m swaps, and the same event needs m + 1",
        "second": "the same households after one of these m + 1 swaps",
        "distance": 2,
        "event": "the records of the first after m + 1 disjoint swaps",
        "chances": [0, "above 0"],
        "why": "no release has more than m swaps; from the second, m are enough",
    }


def witness_by_model() -> Witness:
    """Return the witness of a model fitted without noise: a level that nobody has is never drawn."""
    return {
        "first": "no person in group quarters has the answer a",
        "second": "the same persons, one of whom has the answer a",
        "distance": 1,
        "event": "a person in group quarters is released with the answer a",
        "chances": [0, "above 0"],
        "why": "the model draws the levels that occur, and only these",
    }


# What all pairwise swaps have in common: an infinite budget, the reason to publish, and a log for the office.


class PairwiseSwapping(SwapMechanism):
    """A swap of disjoint pairs: no protection loss budget is finite (proof.md), and the reason to publish is a setting."""

    seconds_per_million: ClassVar[float] = 6.0
    bytes_per_record: ClassVar[int] = 200

    config: PairwiseConfig

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """Return the share of records that is swapped in any case."""

    @abstractmethod
    def pair_records(self, frame: Frame, run: Key) -> Pairing:
        """Draw who changes places with whom."""

    @property
    @abstractmethod
    def rules(self) -> tuple[str, ...]:
        """Return the rules by which partners are found, in words, in the order in which they are tried."""

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """Return the areas that swaps cross, from coarse to fine."""

    # The promise: the swap's invariants, and no finite budget

    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the invariants with one infinite bound, the reason to publish as a note, and the share that moves."""
        bound = Bound(
            name=Phrase("targeted.bound"), budget=Budget.infinite(), source=Phrase("targeted.source")
        )
        found = state_specification(
            strata,
            census,
            (bound,),
            law=None,
            depends=describe_dependence(self),
            released=self.views(census),
        )
        notes = [Phrase("targeted.note.witness")]
        if self.config.without_guarantee:
            notes.append(Phrase("budget_note.without_guarantee", reason=self.config.without_guarantee))
        return SwapPromise(
            specification=replace(found, notes=(*notes, *found.notes)), effect=self.expect_moves(strata)
        )

    def expect_moves(self, strata: StrataSummary) -> ExpectedEffect | None:
        """Return the share that is swapped in any case; how many records are risky is known to the draw alone."""
        if not self.rate:
            return None
        moved = expect_share_moved(strata.shapes, strata.frame.stays, self.rate)
        return replace(moved, share=float(self.rate))

    # The law of moves

    def highest_rate(self) -> float:
        """Return the share of records that moves at least."""
        return float(self.rate)

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return no columns: any two records may be paired, so all of them are in one part."""
        del frame
        return ()

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap; raise an error if nobody moved."""
        return apply_moves(frame, to_moves(self._pair_some(frame, run)), engine)

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns and the log; raise an error if nobody moved."""
        found = self._pair_some(frame, run)
        log = make_log(frame, found, rules=self.rules, levels=self.levels)
        return apply_moves(frame, to_moves(found), engine), log.internal()

    def _pair_some(self, frame: Frame, run: Key) -> Pairing:
        # here and not where files are written: in parts and on a cluster too, all records of a draw are in one frame
        found = self.pair_records(frame, run)
        if frame.rows and not found.moved_mask.any():
            raise PrivacyError(
                "nobody changed places, so the file would be published as it is",
                why="no record was selected, or no selected record found a partner",
                fix="choose a higher rate, more records at risk, or fewer variables on which partners agree",
            )
        return found

    def exact_law(self, census: "Census") -> Law | None:
        """Return None, because who is paired depends on all records."""
        del census
        return None

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether a table is exact: nothing in it moves, or all that stays is what partners agree on."""
        return keeps_table(by, match=self.match, swap=list_moving(self.match, self.swap, schema))


def swap_log(
    mechanism: PairwiseSwapping, census: "Census", *, key: Key, engine: Engine | None = None
) -> SwapLog:
    """Return the log of the release that this key gives, by drawing again in memory."""
    pipeline = mechanism.pipeline
    with pipeline.open_records(census.check(), engine or Local()) as source:
        if not isinstance(source, MemoryRecords):
            raise InputError(
                "the log needs the census in memory",
                why="the draw is made again to see who was swapped",
                fix="ask for it with Local() on a machine whose memory holds the census",
            )
        run = pipeline.run_key(key, source.survey(pipeline.digest_key(key)).digest)
        found = mechanism.pair_records(source.frame, run)
        return make_log(source.frame, found, rules=mechanism.rules, levels=mechanism.levels)
