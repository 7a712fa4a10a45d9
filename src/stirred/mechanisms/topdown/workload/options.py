"""Which tree is measured, where it is not the census's own: the AIAN split and optimized block groups."""

from dataclasses import dataclass, field

from stirred.errors import InputError
from stirred.languages import Phrase

LATER = {"later": True}  # a field that came later: at its default it is no part of what the key is bound to
PLACE_GEOGRAPHY = "place"
STRONG_SUBDIVISION_STATES = (
    "09",
    "23",
    "25",
    "26",
    "27",
    "33",
    "34",
    "36",
    "42",
    "44",
    "50",
    "55",
)  # states with strong county subdivisions
GROUP_SIZE_ALLOWANCE = 12  # the production system's allowance above √n
PART_SUFFIX = "_part"  # ends the name of a level whose areas are cut by the border of AIAN areas
OPTIMIZED_SUFFIX = "_optimized"  # ends the name of a level whose areas are made anew
NO_SPLIT = "none"  # asks for no split, also where production had one


@dataclass(frozen=True, slots=True, kw_only=True)
class SpineOptions:
    """The measured tree: ``aian`` is the geography that marks AIAN areas, ``block_groups`` the entities.

    ``strong_mcd`` names the county subdivisions that stand for places in twelve states, ``quarters`` keeps blocks with other
    types of group quarters apart, ``primitives`` are the entities whose pieces lie between county and tract. ``bounds``
    takes bounds from the exact population of each AIAN part, as the code of the production did.

    >>> SpineOptions(aian="aiannh").words()
    ('spine: states are split into AIAN areas (aiannh) and the remainder; a state itself is not measured',)
    """

    aian: str | None = None
    block_groups: tuple[str, ...] | None = None
    split_at: str = "state"
    strong_mcd: str | None = field(default=None, metadata=LATER)
    quarters: bool = field(default=False, metadata=LATER)
    primitives: tuple[str, ...] | None = field(default=None, metadata=LATER)
    bounds: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        if self.quarters and not self.has_new_block_groups:
            raise InputError(
                "types of group quarters shape optimized block groups, and none are asked for",
                why="the blocks of a tract are grouped by them",
                fix="name the geographies that block groups made anew respect as well (an empty list: none)",
            )
        if self.bounds and self.aian is None:
            raise InputError(
                "bounds of parts are asked for, and no area is split into parts",
                why="the parts are the AIAN areas of a state and the remainder",
                fix="name the geography of AIAN areas (aian), or leave out the bounds of parts",
            )
        if self.strong_mcd is not None and PLACE_GEOGRAPHY not in (self.block_groups or ()):
            raise InputError(
                f"{self.strong_mcd} stands for places in some states, and block groups do not respect places",
                why="county subdivisions take the place of places there",
                fix=f"let block groups made anew respect {PLACE_GEOGRAPHY}",
            )

    def __bool__(self) -> bool:
        return self.aian is not None or self.has_new_block_groups

    @property
    def has_new_block_groups(self) -> bool:
        """Return whether block groups are made anew."""
        return self.block_groups is not None or self.primitives is not None

    @property
    def extra_levels(self) -> tuple[str, ...]:
        """Return the levels that it may add to the census's own."""
        groups = ("block_group",) if self.has_new_block_groups else ()
        return groups if self.primitives is None else ("prim", "tract_subset_group", "tract_subset", *groups)

    def words(self) -> tuple[str, ...]:
        """Return what a specification says about the measured tree."""
        notes = []
        if self.aian is not None:
            notes.append(Phrase("topdown.spine.aian", level=self.split_at, areas=self.aian))
        if self.bounds:
            notes.append(Phrase("topdown.spine.bounds"))
        if self.primitives is not None:
            notes.append(Phrase("topdown.spine.primitives", entities=", ".join(self.primitives)))
        if self.has_new_block_groups:
            leaves = str(GROUP_SIZE_ALLOWANCE + 1)
            if self.block_groups:
                within = ", ".join(self.block_groups)
                notes.append(Phrase("topdown.spine.groups_within", within=within, leaves=leaves))
            else:
                notes.append(Phrase("topdown.spine.groups", leaves=leaves))
        if self.strong_mcd is not None:
            notes.append(
                Phrase(
                    "topdown.spine.strong_mcd",
                    areas=self.strong_mcd,
                    states=", ".join(STRONG_SUBDIVISION_STATES),
                )
            )
        if self.quarters:
            notes.append(Phrase("topdown.spine.quarters"))
        return tuple(notes)

    def document(self) -> dict[str, object]:
        """Return a canonical JSON-able form, for the parameters of a run."""
        groups = None if self.block_groups is None else list(self.block_groups)
        later: dict[str, object] = {}
        if self.strong_mcd is not None:
            later["strong_mcd"] = self.strong_mcd
        if self.quarters:
            later["quarters"] = True
        if self.primitives is not None:
            later["primitives"] = list(self.primitives)
        if self.bounds:
            later["bounds"] = True
        return {"aian": self.aian, "block_groups": groups, "split_at": self.split_at} | later

    @property
    def entities(self) -> tuple[str, ...]:
        """Return the off-spine geographies that it uses."""
        names = (self.aian, *(self.block_groups or ()), self.strong_mcd, *(self.primitives or ()))
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def count_common_levels(self, spine: tuple[str, ...]) -> int:
        """Return how many levels from the top both trees share."""
        if self.aian is not None:
            return (spine.index(self.split_at) if self.split_at in spine else 0) + 1
        if self.primitives is not None and "county" in spine:
            return spine.index("county") + 1
        return len(spine) - (2 if "block_group" in spine[-2:-1] else 1)
