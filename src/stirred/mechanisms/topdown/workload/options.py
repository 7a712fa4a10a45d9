"""Which tree is measured, where it is not the census's own: the AIAN split and optimized block groups."""

from dataclasses import dataclass

from stirred.languages import Phrase

CUTOFF = 12  # the production system's allowance above √n
WHOLE = "none"  # asks for no split, also where production had one


@dataclass(frozen=True, slots=True, kw_only=True)
class SpineOptions:
    """Which tree is measured: ``aian`` names the geography that marks AIAN areas, ``block_groups`` the entities.

    >>> SpineOptions(aian="aiannh").words()
    ('spine: states are split into AIAN areas (aiannh) and the remainder; a state itself is not measured',)
    """

    aian: str | None = None
    block_groups: tuple[str, ...] | None = None
    split_at: str = "state"

    def __bool__(self) -> bool:
        return self.aian is not None or self.block_groups is not None

    def words(self) -> tuple[str, ...]:
        """What a specification says about it."""
        notes = []
        if self.aian is not None:
            notes.append(Phrase("topdown.spine.aian", level=self.split_at, areas=self.aian))
        if self.block_groups is not None:
            leaves = str(CUTOFF + 1)
            if self.block_groups:
                within = ", ".join(self.block_groups)
                notes.append(Phrase("topdown.spine.groups_within", within=within, leaves=leaves))
            else:
                notes.append(Phrase("topdown.spine.groups", leaves=leaves))
        return tuple(notes)

    def document(self) -> dict[str, object]:
        """JSON-able and canonical, for the parameters of a run."""
        groups = None if self.block_groups is None else list(self.block_groups)
        return {"aian": self.aian, "block_groups": groups, "split_at": self.split_at}

    @property
    def entities(self) -> tuple[str, ...]:
        """The geographies beside the spine that it uses."""
        names = (self.aian, *(self.block_groups or ()))
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def common(self, spine: tuple[str, ...]) -> int:
        """How many levels from the top both trees have: a subtree below one of them is one in both."""
        if self.aian is not None:
            return (spine.index(self.split_at) if self.split_at in spine else 0) + 1
        return len(spine) - (2 if "block_group" in spine[-2:-1] else 1)
