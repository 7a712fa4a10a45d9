"""Fill the block groups of synthetic states with homes and persons, in pieces of any size."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.census.synthetic.areas import (
    BLOCK_LOGIT_SD_BY_GROUP,
    Neighbourhoods,
    Spine,
    draw_neighbourhoods,
    draw_places,
    draw_spine,
    draw_state_shares,
    place_blocks,
)
from stirred.census.synthetic.households import (
    AGE_QUANTILE_STEPS,
    AGE_QUANTILES,
    GQ_CODES,
    GQ_TYPE,
    GROUP_TILTS,
    HOUSEHOLDER_AGE,
    KIND,
    MALE_SHARE_BY_WAY,
    MAX_HOUSEHOLD_PERSONS,
    MEN,
    MIDDLE,
    OLDEST,
    OWN_BY_AGE,
    OWN_BY_GROUP,
    OWN_BY_WAY,
    PARENT,
    SIZE_BLOCK,
    SIZE_TILT_REACH,
    SPREAD,
    TENURE,
    TILT_OF_GROUP,
    UNIT_ROWS,
    UNTILTED_SIZE_SHARES,
    VACANCY,
    WAY_LIMITS,
    YOUNGEST,
    Codes,
    People,
    describe_household,
    draw_below,
    draw_facilities,
    draw_group,
    draw_normal,
    draw_unit,
    give_codes,
    gq_type,
    pick_share,
    write_family,
    write_resident,
)
from stirred.census.synthetic.plans import PopulationPlan, StatePlan
from stirred.chance import Key
from stirred.kernels import compile_kernel

# The kernel that fills block groups: blocks with uneven numbers of homes, their households, vacant units, facilities.

BLOCK_SHARE_LOG_SD = 0.85  # standard deviation of the logarithm of a block's share of homes
BLOCK_SPREAD = 0.55  # how much blocks differ within their block group
VACANCY_LIMITS: NDArray[np.float64] = np.cumsum([0.26, 0.03, 0.09, 0.05, 0.33, 0.01, 0.23])
GQ_DETAILED: NDArray[np.int16] = np.array(GQ_CODES, dtype=np.int16)
GQ_MAJOR: NDArray[np.int8] = np.array([gq_type(code) for code in GQ_CODES], dtype=np.int8)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compile_kernel
def fill_block_shares(dice: NDArray[np.uint64], blocks: int, empty: float, total: Floats) -> None:
    """Fill ``total`` with cumulative shares of homes by block; ``empty`` is the probability of no homes."""
    sum_ = 0.0
    for block in range(blocks):
        bare = draw_unit(dice) < empty
        weight = np.exp(BLOCK_SHARE_LOG_SD * draw_normal(dice))
        if not bare:
            sum_ += weight
        total[block] = sum_
    if sum_ == 0.0:
        total[blocks - 1] = 1.0
        sum_ = 1.0
    for block in range(blocks):
        total[block] /= sum_


@compile_kernel
def fill_tilted_sizes(theta: float, limits: Floats) -> None:
    """Fill ``limits`` with cumulative size distributions, one for each tilt of the groups."""
    for row in range(GROUP_TILTS.size):
        sum_ = 0.0
        for size in range(MAX_HOUSEHOLD_PERSONS):
            sum_ += UNTILTED_SIZE_SHARES[size] * np.exp((theta + GROUP_TILTS[row]) * SIZE_TILT_REACH[size])
            limits[row, size] = sum_
        for size in range(MAX_HOUSEHOLD_PERSONS):
            limits[row, size] /= sum_


@compile_kernel
def fill_block_groups(
    begin: int,
    end: int,
    seeds: NDArray[np.uint64],
    occupied: Ints,
    vacant: Ints,
    facility_counts: Ints,
    first_facility: Ints,
    places: NDArray[np.int8],
    residents: NDArray[np.int16],
    first_block: Ints,
    composition: Floats,
    size_tilt: Floats,
    own: Floats,
    age_power: Floats,
    empty: Floats,
    favourites: Floats,
    block_out: NDArray[np.int32],
    units: NDArray[np.int8],
    sizes: NDArray[np.int16],
    facility: NDArray[np.int16],
    people: People,
    codes: Codes,
) -> int:
    """Write all units and persons of the block groups begin..end-1; returns the persons, or -1 if there is no room."""
    dice = np.empty(2, dtype=np.uint64)
    limits = np.empty(8)
    names = np.empty(MAX_HOUSEHOLD_PERSONS, dtype=np.uint64)
    size_limits = np.empty((GROUP_TILTS.size, MAX_HOUSEHOLD_PERSONS))
    at, person, room = 0, 0, people.shape[1]
    for group in range(begin, end):
        dice[0] = seeds[group, 0]
        dice[1] = seeds[group, 1] | np.uint64(1)
        favourite = favourites[group]
        blocks = first_block[group + 1] - first_block[group]
        total = np.empty(blocks)
        fill_block_shares(dice, blocks, empty[group], total)
        here = np.empty(facility_counts[group], dtype=np.int64)
        for f in range(here.size):  # some facilities are in blocks without other homes
            here[f] = (
                draw_below(dice, blocks) if draw_unit(dice) < 0.12 else pick_share(total, draw_unit(dice))
            )
        u_occupied, u_vacant = draw_unit(dice), draw_unit(dice)
        done_occupied, done_vacant = 0, 0
        for block in range(blocks):
            homes = int(total[block] * occupied[group] + u_occupied) - done_occupied
            empty_homes = int(total[block] * vacant[group] + u_vacant) - done_vacant
            done_occupied += homes
            done_vacant += empty_homes
            theta = size_tilt[group] + SIZE_BLOCK * draw_normal(dice)
            own_here = own[group] + BLOCK_SPREAD * draw_normal(dice) + 0.4 * (theta - size_tilt[group])
            top, sum_ = -1e300, 0.0
            for g in range(8):
                limits[g] = composition[group, g] + BLOCK_LOGIT_SD_BY_GROUP[g] * draw_normal(dice)
                top = max(top, limits[g])
            for g in range(8):
                sum_ += np.exp(limits[g] - top)
                limits[g] = sum_
            for g in range(8):
                limits[g] /= sum_
            if homes > 0:
                fill_tilted_sizes(theta, size_limits)
            for _ in range(homes):
                if person + MAX_HOUSEHOLD_PERSONS > room:
                    return -1
                g = draw_group(limits, draw_unit(dice))
                size = 1 + pick_share(size_limits[TILT_OF_GROUP[g]], draw_unit(dice))
                way = pick_share(WAY_LIMITS[min(size, 6) - 1], draw_unit(dice))
                # old and young neighbourhoods differ in their couples and single persons, less in their parents
                power = age_power[group] if way < PARENT else 1.0 + 0.25 * (age_power[group] - 1.0)
                age = int(AGE_QUANTILES[way, int(AGE_QUANTILE_STEPS * draw_unit(dice) ** power)])
                sex = 1 if draw_unit(dice) < MALE_SHARE_BY_WAY[way] else 2
                couple = write_family(dice, people, person, size, way, age, sex, g, limits, names)
                for member in range(size):
                    give_codes(people, codes, person + member, names[member], favourite)
                describe_household(units, at, people, person, size, couple)
                age = int(units[HOUSEHOLDER_AGE, at])
                odds = own_here + OWN_BY_WAY[way] + OWN_BY_AGE[min(9, (age - 15) // 10)] + OWN_BY_GROUP[g]
                if draw_unit(dice) * (1.0 + np.exp(-odds)) < 1.0:
                    free = 0.12 + 0.011 * max(0, age - 40) if age < 85 else 0.75
                    units[TENURE, at] = 2 if draw_unit(dice) < free else 1
                else:
                    units[TENURE, at] = 4 if draw_unit(dice) < 0.04 else 3
                block_out[at] = first_block[group] + block
                sizes[at] = size
                person += size
                at += 1
            for _ in range(empty_homes):
                units[KIND, at] = 2
                units[VACANCY, at] = 1 + pick_share(VACANCY_LIMITS, draw_unit(dice))
                block_out[at] = first_block[group] + block
                at += 1
            for f in range(here.size):
                if here[f] != block:
                    continue
                place = places[first_facility[group] + f]
                living = residents[first_facility[group] + f]
                if person + living > room:
                    return -1
                for _ in range(living):
                    low, high, g = YOUNGEST[place], OLDEST[place], draw_group(limits, draw_unit(dice))
                    middle, spread, men = MIDDLE[place], SPREAD[place], MEN[place]
                    write_resident(
                        dice, people, codes, person, place, low, high, middle, spread, men, g, favourite
                    )
                    person += 1
                units[KIND, at] = 3
                units[GQ_TYPE, at] = GQ_MAJOR[place]
                facility[at] = GQ_DETAILED[place]
                block_out[at] = first_block[group] + block
                sizes[at] = living
                at += 1
    return person


# Make one state at a time: draw its areas once, then make households and persons in pieces of any size.

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


# Draw all states of a plan without their persons: first codes and ids, and the tables of areas.

LEVEL_CODE_WIDTHS = (2, 5, 11, 12, 15)  # characters of a code at each level


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnState:
    """A state with its first codes and ids in the census."""

    state: State
    position: int
    first: Mapping[str, int]  # of each level below the state, and of units and persons

    def geography(self, *, integer_codes: bool) -> dict[str, pa.Array]:
        """Return the codes of every block at every level, by block."""
        spine = self.state.spine
        if not integer_codes:
            text = pa.array(np.char.zfill(spine.block_codes().astype(str), 15))
            return {
                level: pc.utf8_slice_codeunits(text, 0, width).dictionary_encode()
                for level, width in zip(SPINE_LEVELS, LEVEL_CODE_WIDTHS, strict=True)
            }
        group = np.repeat(np.arange(spine.plan.block_groups, dtype=np.int32), spine.group_blocks)
        codes = {
            "state": np.full(group.size, self.position, dtype=np.int8),
            "county": (self.first["county"] + spine.group_county[group]).astype(np.int16),
            "tract": (self.first["tract"] + spine.group_tract[group]).astype(np.int32),
            "block_group": (self.first["block_group"] + group).astype(np.int32),
            "block": (self.first["block"] + np.arange(group.size)).astype(np.int32),
        }
        return {level: pa.array(column) for level, column in codes.items()}

    def make_pieces(self, geography: Mapping[str, pa.Array]) -> Iterator[dict[str, pa.Table]]:
        """Yield household and person tables, in the order of block groups."""
        unit, person = self.first["unit"], self.first["person"]
        for begin, end in self.state.cut_pieces():
            made = make_tables(
                self.state.make_piece(begin, end), dict(geography), first_unit=unit, first_person=person
            )
            yield made
            unit += made["household"].num_rows
            person += made["person"].num_rows


def draw_states(census: PopulationPlan, key: Key) -> list[DrawnState]:
    """Draw all states, without their persons."""
    shares = draw_state_shares(census.states, census.shares, key)
    first = {"county": 0, "tract": 0, "block_group": 0, "block": 0, "unit": 1, "person": 1}
    drawn = []
    for position, one in enumerate(census.states):
        state = draw_state(one, shares[position], census.empty, key)
        drawn.append(DrawnState(state=state, position=position, first=dict(first)))
        first["county"] += one.counties
        first["tract"] += one.tracts
        first["block_group"] += one.block_groups
        first["block"] += one.blocks
        first["unit"] += state.units
        first["person"] += state.max_persons
    return drawn


def make_geography_table(
    one: DrawnState, codes: Mapping[str, pa.Array], key: Key, *, integer_codes: bool
) -> pa.Table:
    """Return one row per block: codes, place and coordinates."""
    spine = one.state.spine
    x, y = place_blocks(spine.plan.blocks, spine.plan.counties)
    more = {"geoid": pa.array(spine.block_codes())} if integer_codes else {}
    return pa.table({**codes, **more, "place": draw_places(spine, key), "x": x, "y": y})


def make_areas_table(geography: pa.Table) -> pa.Table:
    """Return one row per area of any level, with its parent; codes are text that begins with the parent's."""
    rows: dict[str, list[str]] = {"code": [], "parent": [], "level": []}
    for level, width in zip(SPINE_LEVELS, (0, *LEVEL_CODE_WIDTHS), strict=False):
        codes = pc.unique(geography[level].cast(pa.string())).to_pylist()
        rows["code"] += codes
        rows["parent"] += [code[:width] for code in codes]
        rows["level"] += [level] * len(codes)
    return pa.table(rows)
