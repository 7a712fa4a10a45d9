"""What the promise is computed on: a stand-in from the codebook, or the records once a person asked to read them."""

from dataclasses import dataclass, replace
from threading import RLock

from stirred.census import Census
from stirred.publish.plan.proposing import complete_schema
from stirred.web.workspace.data import ChosenData


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromiseGround:
    """A census to state promises on, and where it comes from."""

    census: Census
    records: bool  # whether these are the confidential records


class GroundCache:
    """The ground of the chosen data, made once; another codebook, figure or answer makes it anew."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._key: object = None
        self._ground: PromiseGround | None = None

    def of(self, chosen: ChosenData) -> PromiseGround:
        """Return the records where they may be read, else a stand-in with as many households as stated."""
        stamp = chosen.file.stat().st_mtime_ns if chosen.file.is_file() else 0
        key = (chosen.file, stamp, chosen.read, chosen.households)
        with self._lock:
            if self._ground is None or self._key != key:
                self._ground, self._key = _make_ground(chosen), key
            return self._ground


def _make_ground(chosen: ChosenData) -> PromiseGround:
    census = Census(schema=chosen.schema, folder=chosen.file.parent)
    if chosen.read:
        return PromiseGround(census=census.check(), records=True)
    # slow to import, and the first page does not need it
    from stirred.census.synthetic.like.population import StandInFigures, make_stand_in

    schema = complete_schema(census)
    figures = StandInFigures(households=max(2, chosen.households))
    made = Census.of(schema, make_stand_in(schema, figures, chosen.file.parent))
    return PromiseGround(
        census=replace(made, folder=chosen.file.parent), records=False
    )  # public files of areas
