"""Draw all states of a plan without their persons: first codes and ids, and the tables of areas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.census.synthetic.people.neighbourhoods import draw_state_shares
from stirred.census.synthetic.plans import PopulationPlan
from stirred.census.synthetic.spine import draw_places, place_blocks
from stirred.census.synthetic.states import SPINE_LEVELS, State, draw_state, make_tables
from stirred.chance import Key

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
