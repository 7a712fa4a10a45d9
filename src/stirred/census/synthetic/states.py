"""Make one state at a time: draw its areas once, then make households and persons in pieces of any size."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.synthetic.people.families import UNIT_ROWS
from stirred.census.synthetic.people.homes import fill_block_groups
from stirred.census.synthetic.people.neighbourhoods import Neighbourhoods, draw_neighbourhoods
from stirred.census.synthetic.people.quarters import draw_facilities
from stirred.census.synthetic.plans import StatePlan
from stirred.census.synthetic.spine import Floats, Ints, Spine, draw_spine
from stirred.chance import Key

SPINE_LEVELS = ("state", "county", "tract", "block_group", "block")
UNIT_COLUMNS = (
    *("kind", "tenure", "type", "couple", "children", "multigenerational", "elderly"),
    *("sex", "age", "race", "hispanic", "vacancy", "gq_type"),
    *("relatives", "minors", "young"),
)
assert len(UNIT_COLUMNS) == UNIT_ROWS
PERSON_COLUMNS = ("relationship", "sex", "age", "race", "hispanic")
CODE_COLUMNS = (*(f"race_code_{k}" for k in range(1, 9)), "ethnicity_code")
UNITS_PER_PIECE = (
    400_000  # units in one piece: small enough for memory, large enough for Parquet's row groups
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Columns of consecutive block groups: units, and the persons of those units."""

    block: NDArray[np.int32]  # position in the state
    units: NDArray[np.int8]
    sizes: NDArray[np.int16]
    facility: NDArray[np.int16]
    people: NDArray[np.int8]
    codes: NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state whose households can be made; every block group has its own seeds, so pieces may have any size."""

    spine: Spine
    life: Neighbourhoods
    seeds: NDArray[np.uint64]
    facility_counts: Ints
    places: NDArray[np.int8]
    residents: NDArray[np.int16]

    @property
    def units_by_group(self) -> Ints:
        """Return housing units and facilities by block group."""
        return self.spine.occupied + self.life.vacant + self.facility_counts

    @property
    def units(self) -> int:
        """Return the number of all housing units and facilities."""
        return int(self.units_by_group.sum())

    @property
    def max_persons(self) -> int:
        """Return an upper bound on the persons of this state; it separates the person ids of states."""
        return 13 * self.spine.plan.households + int(self.residents.sum()) + 1

    def cut_pieces(self, units: int = UNITS_PER_PIECE) -> Iterator[tuple[int, int]]:
        """Yield ranges of block groups of about so many units."""
        ends = np.cumsum(self.units_by_group)
        begin = 0
        while begin < ends.size:
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + units, side="right")))
            yield begin, min(end, ends.size)
            begin = end

    def make_piece(self, begin: int, end: int) -> Piece:
        """Return the units and persons of the block groups begin..end-1."""
        n = int(self.units_by_group[begin:end].sum())
        first_facility = np.concatenate([[0], np.cumsum(self.facility_counts)]).astype(np.int64)
        living = int(self.residents[first_facility[begin] : first_facility[end]].sum())
        room = int(3.2 * self.spine.occupied[begin:end].sum()) + living + 100
        while True:
            block = np.zeros(n, dtype=np.int32)
            units = np.zeros((UNIT_ROWS, n), dtype=np.int8)
            sizes, facility = np.zeros(n, dtype=np.int16), np.zeros(n, dtype=np.int16)
            people = np.empty((len(PERSON_COLUMNS), room), dtype=np.int8)
            codes = np.empty((len(CODE_COLUMNS), room), dtype=np.int16)
            persons = fill_block_groups(
                begin,
                end,
                self.seeds,
                self.spine.occupied,
                self.life.vacant,
                self.facility_counts,
                first_facility,
                self.places,
                self.residents,
                self.spine.first_block,
                self.life.composition,
                self.life.size,
                self.life.own,
                self.life.age,
                self.life.empty,
                self.life.favourite,
                block,
                units,
                sizes,
                facility,
                people,
                codes,
            )
            if persons >= 0:
                return Piece(
                    block=block,
                    units=units,
                    sizes=sizes,
                    facility=facility,
                    people=people[:, :persons],
                    codes=codes[:, :persons],
                )
            room *= 2


def draw_state(plan: StatePlan, shares: Floats, empty: float, key: Key) -> State:
    """Draw the areas of a state and the character of its neighbourhoods; its persons are made later, in pieces."""
    spine = draw_spine(plan, key)
    groups = np.arange(plan.block_groups, dtype=np.uint64)
    counts, places, residents = draw_facilities(key.blocks(("facilities", plan.code), groups))
    return State(
        spine=spine,
        life=draw_neighbourhoods(spine, shares, empty, key),
        seeds=key.blocks(("people", plan.code), groups),
        facility_counts=counts,
        places=places,
        residents=residents,
    )


def make_tables(
    piece: Piece, geography: dict[str, pa.Array], *, first_unit: int, first_person: int
) -> dict[str, pa.Table]:
    """Return the household and person tables of a piece; ids continue from the given numbers."""
    ids = np.arange(first_unit, first_unit + piece.sizes.size, dtype=np.int64)
    small = dict(zip(UNIT_COLUMNS, piece.units, strict=True))
    taken = pa.array(piece.block)
    household = {
        "household_id": ids,
        **{level: column.take(taken) for level, column in geography.items()},
        "kind": small.pop("kind"),
        "size": piece.sizes,
        **small,
        "gq_code": piece.facility,
    }
    persons = piece.people.shape[1]
    person = {
        "person_id": np.arange(first_person, first_person + persons, dtype=np.int64),
        "household_id": np.repeat(ids, piece.sizes),
        **dict(zip(PERSON_COLUMNS, piece.people, strict=True)),
        **dict(zip(CODE_COLUMNS, piece.codes, strict=True)),
    }
    return {"household": pa.table(household), "person": pa.table(person)}
