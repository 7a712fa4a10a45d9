"""Files that an attacker might have: some of the people, with errors and earlier addresses, without the secret."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean

Draws = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    """The quality of an attacker's file: ``coverage`` of the people, and shares with an error.

    ``stale`` is the share of households that are listed where they do not live any more; ``wrong_area`` and ``wrong_sex``
    are shares of persons, ``wrong_age`` the share whose age is one year off.
    """

    name: str
    coverage: float = 1.0
    stale: float = 0.0
    wrong_area: float = 0.0
    wrong_sex: float = 0.0
    wrong_age: float = 0.0

    def __post_init__(self) -> None:
        for name in ("coverage", "stale", "wrong_area", "wrong_sex", "wrong_age"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is not between 0 and 1", why="it is a share", fix=f"{name}=0.1")


PERFECT = Attacker(name="perfect")
"""Everyone, with the right block, sex and age: the strong attacker of the reconstruction study."""

COMMERCIAL = Attacker(
    name="commercial", coverage=0.93, stale=0.5, wrong_area=0.13, wrong_sex=0.02, wrong_age=0.25
)
"""Like merged commercial files of 2010: 93 % of the people, about 37 % of the records right in block, sex and age class."""

ATTACKERS = {attacker.name: attacker for attacker in (PERFECT, COMMERCIAL)}


def find_attacker(name: str) -> Attacker:
    """Return the preset attacker of that name.

    >>> find_attacker("perfect").coverage
    1.0
    """
    if name not in ATTACKERS:
        raise InputError(
            f"no attacker is called {name}",
            why="the presets are " + ", ".join(ATTACKERS),
            fix=did_you_mean(name, ATTACKERS) + "; or make one: Attacker(name=…, coverage=…)",
        )
    return ATTACKERS[name]


def make_attacker_file(
    people: pl.DataFrame, attacker: Attacker, *, area: str, household: str = "", seed: int
) -> pl.DataFrame:
    """Make the attacker's file with columns id, area and what is known; a share of it is wrong.

    >>> people = pl.DataFrame({"id": [0, 1], "block": ["a", "b"], "sex": [1, 2], "age": [3, 40]})
    >>> make_attacker_file(people, PERFECT, area="block", seed=1).equals(people)
    True
    """
    draws = np.random.default_rng(seed)
    found = people.filter(_choose_rows(draws, people.height, attacker.coverage))
    if not found.height:
        return found
    groups = found[household] if household else pl.Series(np.arange(found.height))
    homes = groups.rank("dense").to_numpy().astype(np.int64) - 1
    moved = _choose_rows(draws, int(homes.max()) + 1, attacker.stale)[homes]
    from_home = draws.integers(0, found.height, int(homes.max()) + 1)[
        homes
    ]  # one new address for all of them
    elsewhere = draws.integers(0, found.height, found.height)
    wrong = _choose_rows(draws, found.height, attacker.wrong_area)
    place = np.where(moved, from_home, np.arange(found.height))
    place = np.where(wrong, elsewhere, place)
    columns = [found[area].gather(place)]
    if "sex" in found.columns and attacker.wrong_sex:
        sexes = found["sex"].unique().sort()
        at = found["sex"].rank("dense").to_numpy().astype(np.int64) - 1
        turned = np.where(_choose_rows(draws, found.height, attacker.wrong_sex), (at + 1) % len(sexes), at)
        columns.append(sexes.gather(turned).alias("sex"))
    if "age" in found.columns and found["age"].dtype.is_numeric() and attacker.wrong_age:
        step = np.where(draws.random(found.height) < 0.5, 1, -1)
        off = np.where(_choose_rows(draws, found.height, attacker.wrong_age), step, 0)
        ages = found["age"].cast(pl.Int64).to_numpy() + off
        columns.append(pl.Series("age", np.maximum(ages, 0)))
    return found.with_columns(columns)


def _choose_rows(draws: Draws, many: int, share: float) -> NDArray[np.bool_]:
    return draws.random(many) < share
